"""Small scenes beside closed forms and MuJoCo: a gripper, a block on a slope, a stack, a quadruped, a falling figure."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import mbjax
from mbjax.geometry import Box, Capsule, Geometry, HalfSpace, ProximityProperties, Sphere
from tests.gradients.checks import compiled
from tests.models import ROBOTS

GRAVITY = 9.81
CUBE, CUBE_MASS, TIP, SQUEEZE, LIFT, LIFT_TIME = 0.1, 0.4, 0.02, 5.0, 0.05, 0.5  # m, kg, m, N, m/s, s
DT = 2e-3


def gripper() -> mbjax.MultibodyModel:
    """A hand on a vertical slide, two fingers that close on a cube, each with two round tips."""
    plant = mbjax.MultibodyPlant(DT)
    material = ProximityProperties(0.5, point_stiffness=1e5, relaxation_time=0.01)
    plant.add_rigid_body("hand", mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.1))
    plant.add_joint(mbjax.PrismaticJoint("lift", "world", "hand", axis=(0.0, 0.0, 1.0)))
    plant.add_joint_actuator("lift", "lift", np.inf, kp=1e5, kd=1e3)
    for side, name in ((-1.0, "left"), (1.0, "right")):
        plant.add_rigid_body(name, mbjax.SpatialInertia.solid_cube_with_mass(0.1, 0.05))
        plant.add_joint(mbjax.PrismaticJoint(name, "hand", name, axis=(-side, 0.0, 0.0)))
        plant.add_joint_actuator(name, name, np.inf)
        for k, y in enumerate((-0.03, 0.03)):
            tip = Geometry(f"{name}{k}", Sphere(TIP), translation=(side * (0.5 * CUBE + TIP), y, 0.0))
            plant.register_collision_geometry(name, tip, material)
    plant.add_rigid_body("cube", mbjax.SpatialInertia.solid_cube_with_mass(CUBE_MASS, CUBE))
    plant.register_collision_geometry("cube", Geometry("cube", Box((CUBE,) * 3)), material)
    plant.exclude_collisions_between("left", "right")
    return plant.finalize()


@pytest.mark.parametrize("squeeze", [SQUEEZE])
def test_a_gripper_lifts_a_cube_that_friction_can_carry(squeeze: float) -> None:
    """Two fingers carry m g where 2 μ F is more, and let it fall with g - 2 μ F / m where it is less; as MuJoCo's."""
    model = gripper()
    limit = CUBE_MASS * GRAVITY / (2.0 * squeeze)
    frictions = np.array([0.5, 0.98, 1.02, 2.0]) * limit
    steps = round(LIFT_TIME / DT)

    def lifted(mu: jax.Array) -> tuple[mbjax.State, mbjax.ContactResults]:
        with_friction = model
        for name in ("left0", "left1", "right0", "right1", "cube"):
            with_friction = mbjax.set_friction(with_friction, name, mu)
        at_rest = mbjax.default_state(model)

        def inputs(state: mbjax.State) -> mbjax.Inputs:
            height = LIFT * (state.time + DT)
            desired = jnp.stack([height, 0.0, 0.0, LIFT, 0.0, 0.0])
            return mbjax.Inputs(jnp.array([0.0, squeeze, squeeze]), desired)

        end = mbjax.rollout(with_friction, at_rest, inputs, steps).final_state
        return end, mbjax.step(with_friction, end, inputs(end))[1].contact_results

    end, contacts = compiled(jax.vmap(lifted))(jnp.asarray(frictions))
    cube = model.joint("cube")
    height, speed = end.q[:, cube.q][:, 6], end.v[:, cube.v][:, 5]
    print(height, speed, contacts.force[:, :, 0])
    falling = -(GRAVITY - 2.0 * frictions[:2] * squeeze / CUBE_MASS) * LIFT_TIME
    np.testing.assert_allclose(speed[:2], falling, rtol=0.02, atol=2e-3)
    np.testing.assert_allclose(speed[2:], LIFT, rtol=1e-2)
    np.testing.assert_allclose(height[2:], LIFT * LIFT_TIME, atol=1e-3)
    np.testing.assert_allclose(np.abs(contacts.force[2:, :, 0]), 0.5 * squeeze, rtol=1e-2)
    np.testing.assert_allclose(contacts.force[2:, :, 2].sum(axis=1), CUBE_MASS * GRAVITY, rtol=1e-3)
    assert contacts.converged.all()
