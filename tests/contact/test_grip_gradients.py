"""How far a box slides in a grip of two rigid fingers, and its derivatives by grip force, modulus and friction."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.geometry import Box, Geometry, ProximityProperties
from tests.gradients.checks import all_gradients, compare

MASS, GRAVITY, DT, STEPS = 1.0, 9.81, 0.005, 20
PAD = ProximityProperties(0.9).add_rigid_hydroelastic_properties()
SOFT = ProximityProperties(0.6, hunt_crossley_dissipation=2.0, relaxation_time=0.03)
SOFT = SOFT.add_compliant_hydroelastic_properties(0.1, 5e5)
FRICTION = 2.0 * 0.6 * 0.9 / (0.6 + 0.9)  # of the pair, as in Drake
DEPTH = 1e-4  # of the fingers in the box at the start, in m
TILTED = (1.0, 3e-3, -2e-3, 1e-3)  # exactly upright, triangles of the fingers lie along sides of elements of the box


def gripper(approximation: str) -> mbjax.MultibodyModel:
    """A compliant box between two fingers that slide along x."""
    plant = mbjax.MultibodyPlant(DT, discrete_contact_approximation=approximation)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        finger = plant.add_rigid_body(side, mbjax.SpatialInertia.solid_box_with_mass(0.2, 0.02, 0.06, 0.08))
        X = mbjax.RigidTransform(jnp.eye(3), jnp.array([-0.11 * sign, 0.0, 0.0]))
        joint = mbjax.PrismaticJoint(f"{side}_slide", "world", side, axis=[sign, 0, 0], X_PF=X)
        plant.add_joint(joint)
        plant.register_collision_geometry(finger, Geometry("pad", Box((0.02, 0.06, 0.08))), PAD)
    box = plant.add_rigid_body("box", mbjax.SpatialInertia.solid_box_with_mass(MASS, 0.2, 0.1, 0.2))
    plant.register_collision_geometry(box, Geometry("skin", Box((0.2, 0.1, 0.2))), SOFT)
    plant.exclude_collisions_between("left", "right")
    return plant.finalize()


def fall_in_grip(model: mbjax.MultibodyModel, force: jax.Array) -> jax.Array:
    """How far the box has come down in m after some steps, while each finger presses with a force in N."""
    start = mbjax.default_state(model)
    q = start.q.at[model.joint("box").q].set(jnp.array([*TILTED, 0.0, 0.0, 0.0]))
    for side in ("left", "right"):
        q = q.at[model.joint(f"{side}_slide").q].set(DEPTH)
    push = jnp.zeros(model.num_velocities)
    for side in ("left", "right"):
        push = push.at[model.joint(f"{side}_slide").v].set(force)
    inputs = mbjax.Inputs(applied_generalized_force=push)
    after = mbjax.rollout(model, mbjax.State(q, start.v, start.time), inputs, num_steps=STEPS).q[-1]
    return -after[model.joint("box").q][6]


WEAK, STRONG = 4.0, 30.0  # N; the weight needs 6.8


@pytest.mark.whole_run("derivatives of surfaces in tests/geometry, and of steps with points in contact")
@pytest.mark.parametrize("approximation", ["sap", "similar", "lagged"])
def test_slip_has_derivatives(approximation: str) -> None:
    """Forward = reverse = differences, in a grip that is too weak, as friction tells, and in one that holds."""
    model = gripper(approximation)
    modulus, friction = jnp.array(5e5), jnp.array(0.6)

    def slip(forces: jax.Array, modulus: jax.Array, friction: jax.Array) -> jax.Array:
        changed = mbjax.set_proximity_properties(
            model, "box::skin", hydroelastic_modulus=modulus, static_friction=friction, dynamic_friction=friction
        )
        return jax.lax.map(lambda force: fall_in_grip(changed, force), forces)

    result = all_gradients(slip, jnp.array([WEAK, STRONG]), modulus, friction, step=1e-6)
    compare(result, tolerance=1e-6)
    weak, strong = result.reverse
    fall = STEPS * (STEPS + 1) * DT**2 / 2.0  # how far steps of 1 m/s² lead from rest
    assert abs(weak[0] / (-2.0 * FRICTION / MASS * fall) - 1.0) < 0.2  # the grip has to form first
    assert np.all(weak[[0, 2, 3]] != 0.0)
    assert abs(strong[1]) < 1e-3 * abs(weak[0])
