"""Wrenches on bodies as actuators: forces by their equation, limits, and errors."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.gradients.checks import all_gradients

TEXT = """<robot name="flying_arm"><link name="body"><inertial><mass value="1.2"/>
<inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0.001" ixz="0" iyz="0"/></inertial></link>
<link name="arm"><inertial><origin xyz="0.1 0 0"/><mass value="0.2"/>
<inertia ixx="0.001" iyy="0.002" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="elbow" type="revolute"><parent link="body"/><child link="arm"/><origin xyz="0 0 -0.1"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" effort="1.5" velocity="9"/><dynamics damping="0.01"/></joint></robot>"""
POINTS = np.array([[0.2, 0.0, 0.05], [0.0, 0.2, 0.05], [-0.2, 0.0, 0.05], [0.0, -0.2, 0.05]])


@pytest.fixture(scope="module")
def flying_arm() -> mbjax.MultibodyModel:
    return mbjax.load(TEXT, base="floating", time_step=0.01, actuators="joints")


@pytest.fixture(scope="module")
def rotors() -> mbjax.WrenchActuators:
    return mbjax.WrenchActuators.propellers(["body"] * 4, POINTS, drag=[0.02, -0.02, 0.02, -0.02], high=8.0)


def state_of(model: mbjax.MultibodyModel) -> mbjax.State:
    state = mbjax.random_state(model, jax.random.key(1))
    return mbjax.State(state.q, 0.3 * jnp.arange(1.0, 8.0), state.time)


EFFORTS = jnp.array([2.0, 3.0, 4.0, 5.0])


def test_propellers_push_at_their_points_and_drag_about_their_axis(flying_arm, rotors):
    state = state_of(flying_arm)
    R = mbjax.body_pose_in_world(flying_arm, state.q, "body").rotation
    f = R[:, 2] * EFFORTS[:, None]
    t = np.cross(POINTS @ R.T, f) + np.array([0.02, -0.02, 0.02, -0.02])[:, None] * f
    forces = rotors.spatial_forces(flying_arm, state.q, EFFORTS)
    np.testing.assert_allclose(forces.F_Bq_W, np.concatenate([t, f], axis=1), atol=1e-12)
    # the same accelerations as generalized forces, and as wrenches on the body
    G = rotors.matrix(flying_arm, state.q)
    inputs = rotors.inputs(flying_arm, state, EFFORTS, actuation=jnp.array([0.4]))
    applied, none = inputs.applied_spatial_forces, jnp.zeros(7)
    step = jax.jit(lambda tau, F: mbjax.step(flying_arm, state, mbjax.Inputs(
        actuation=inputs.actuation, applied_generalized_force=tau,
        applied_spatial_forces=dataclasses.replace(applied, F_Bq_W=F),
    ))[0].v)  # fmt: skip
    np.testing.assert_allclose(step(none, applied.F_Bq_W), step(G @ EFFORTS, 0.0 * applied.F_Bq_W), atol=1e-12)


def test_efforts_beyond_limits_act_as_limits(flying_arm, rotors):
    q = state_of(flying_arm).q
    given = rotors.spatial_forces(flying_arm, q, jnp.array([-1.0, 9.0, 8.0, 1.0])).F_Bq_W
    kept = rotors.spatial_forces(flying_arm, q, jnp.array([0.0, 8.0, 8.0, 1.0])).F_Bq_W
    np.testing.assert_array_equal(given, kept)


@pytest.mark.whole_run("the wrenches and their matrix, above")
def test_gradients_of_wrenches(flying_arm, rotors):
    q = state_of(flying_arm).q

    def pushed(x):
        actuators = mbjax.WrenchActuators(["body", "arm"], x[:12].reshape(2, 6))
        moved = mbjax.integrate_configuration(flying_arm, q, x[14:])
        return actuators.matrix(flying_arm, moved) @ x[12:14]

    gradients = all_gradients(pushed, 0.1 * jnp.arange(1.0, 22.0))
    np.testing.assert_allclose(gradients.reverse, gradients.forward, atol=1e-10)
    np.testing.assert_allclose(gradients.differences, gradients.forward, atol=1e-7)


def test_what_wrench_actuators_cannot_be():
    with pytest.raises(mbjax.ModelError, match="must be a list"):
        mbjax.WrenchActuators("body", jnp.zeros((1, 6)))
    with pytest.raises(mbjax.ModelError, match=r"2 bodies need \(2, 6\)"):
        mbjax.WrenchActuators(["a", "a"], jnp.zeros((1, 6)))
    with pytest.raises(mbjax.ModelError, match="as many different names"):
        mbjax.WrenchActuators(["a", "a"], jnp.zeros((2, 6)), names=["left", "left"])
    with pytest.raises(mbjax.ModelError, match="'right' must be at least 1"):
        mbjax.WrenchActuators(["a", "a"], jnp.zeros((2, 6)), low=[0, 1], high=[0, 0], names=["left", "right"])
    with pytest.raises(mbjax.ModelError, match="a point each"):
        mbjax.WrenchActuators.propellers(["a", "a"], jnp.zeros((3, 3)))
