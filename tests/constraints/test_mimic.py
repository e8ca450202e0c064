"""Mimic joints of a URDF, coupled: they move as with the coordinate eliminated."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.constraints.test_plant_constraints_against_drake import GRIPPER
from tests.models import relative_error

RATIO, OFFSET = 1.5, 0.02
T = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, RATIO]])  # (arm, slide, follow) = T (arm, slide) + offset


@functools.cache
def loaded(mimic: str) -> mbjax.MultibodyModel:
    return mbjax.load(GRIPPER, mimic=mimic)


def state() -> mbjax.State:
    q, v = T @ np.array([0.4, 0.03]) + np.array([0.0, 0.0, OFFSET]), T @ np.array([1.1, -0.3])
    return mbjax.State(jnp.asarray(q), jnp.asarray(v), jnp.zeros(()))


@pytest.mark.whole_run("a gripper that moves as Drake's, in test_plant_constraints_against_drake.py")
def test_coupled_joints_accelerate_as_with_the_coordinate_eliminated() -> None:
    """In a continuous plant, which Drake refuses; how eliminated ones move is tested in tests/model."""
    start, u = state(), jnp.array([2.0])
    _, vdot = jax.jit(mbjax.time_derivatives)(loaded("couple"), start, u)
    reduced = mbjax.State(start.q[:2], start.v[:2], start.time)
    _, expected = jax.jit(mbjax.time_derivatives)(loaded("eliminate"), reduced, u)
    assert relative_error(vdot, T @ expected) < 1e-8


def test_report_and_options() -> None:
    coupled, free = loaded("couple"), loaded("free")
    assert coupled.constraint_names == ("gripper::follow mimics slide",)
    assert free.num_constraints == 0
    assert any(e.status == "used" and "coupler constraint" in e.message for e in coupled.report())
    assert any(e.status == "recorded" and 'mimic="free"' in e.message for e in free.report())
    mbjax.check_constraints(coupled, mbjax.bound_constraints(coupled), state().q, state().v)
    with pytest.raises(mbjax.ModelError, match="mimic='weld': choose one of 'couple', 'eliminate', 'free'"):
        mbjax.load(GRIPPER, mimic="weld")


def test_two_grippers_keep_their_own_couplers() -> None:
    plant = mbjax.MultibodyPlant()
    parser = mbjax.Parser(plant)
    for _ in range(2):
        parser.add_models(GRIPPER)
    model = plant.finalize()
    assert model.constraint_names == ("gripper::follow mimics slide", "gripper_1::follow mimics slide")
    G = np.asarray(mbjax.constraints_jacobian(model, mbjax.bound_constraints(model), mbjax.default_positions(model)))
    np.testing.assert_array_equal(G, [[0.0, -RATIO, 1.0, 0, 0, 0], [0, 0, 0, 0.0, -RATIO, 1.0]])
