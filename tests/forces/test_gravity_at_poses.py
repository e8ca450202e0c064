"""Weights of bodies from poses alone, as from all kinematics: values, and gradients by q and every leaf."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.forces.gravity import calc_gravity_at_poses, calc_gravity_on_bodies
from mbjax.kinematics import calc_position_kinematics
from tests.dynamics.test_jacobians import with_elements
from tests.gradients.checks import check_gradients, compiled
from tests.models import relative_error


@pytest.fixture(scope="module")
def model() -> mbjax.MultibodyModel:
    """Several kinds of joints; some bodies feel no gravity, and no element acts."""
    return dataclasses.replace(with_elements(), force_elements=())


@pytest.mark.whole_run(
    "gradients agree with differences, below; values beside Drake's in tests/model and tests/dynamics"
)
def test_values_and_gradients_are_those_of_the_kinematics(model) -> None:
    states = jax.vmap(lambda key: mbjax.random_state(model, key))(jax.random.split(jax.random.key(0), 3))
    weights = jnp.asarray(np.random.default_rng(0).normal(size=(model.num_bodies, 6)))

    def both(way):
        def total(model, q):
            F = way(model, q)
            return jnp.sum(weights * F), F

        return lambda model, q: eqx.filter_value_and_grad(lambda x: total(*x), has_aux=True)((model, q))

    def by_kinematics(model, q):
        return calc_gravity_on_bodies(model, calc_position_kinematics(model, q))

    ways = [compiled(jax.vmap(both(way), (None, 0))) for way in (calc_gravity_at_poses, by_kinematics)]
    found, expected = (way(model, states.q) for way in ways)
    (_, F), _ = found
    is_felt = np.abs(F[0]).max(axis=1) > 0.0
    assert 0 < is_felt.sum() < model.num_bodies - 1  # the world, and those without gravity
    assert max(relative_error(a, b) for a, b in zip(*map(jax.tree.leaves, (found, expected)), strict=True)) < 1e-12


def test_gradients_agree_with_differences(model) -> None:
    """By the change of a configuration in which all angles are zero."""
    q, v = mbjax.default_state(model).q, jnp.zeros(model.num_velocities)
    weights = jnp.cos(jnp.arange(model.num_bodies * 6.0)).reshape(-1, 6)

    def total(dq: jax.Array) -> jax.Array:
        moved = mbjax.integrate_configuration(model, q, dq)
        return jnp.sum(weights * mbjax.force_elements_contribution(model, moved, v).body)

    check_gradients(total, v)
