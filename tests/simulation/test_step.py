"""The discrete step: closed forms, stiffness, effort limits."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.dynamics.derivatives import rule
from mbjax.execution import forget_traces
from tests.models import relative_error

DT = 1e-3


@pytest.fixture(scope="module")
def arm() -> mbjax.MultibodyModel:
    return mbjax.load(mbjax.reference_models.path("arm"), time_step=DT)


def spinning_body(**joint) -> mbjax.MultibodyModel:
    """One body of inertia 2 about the z axis it turns on, without gravity."""
    plant = mbjax.MultibodyPlant(DT)
    plant.set_gravity([0.0, 0.0, 0.0])
    inertia = mbjax.SpatialInertia(1.0, np.zeros(3), mbjax.UnitInertia(2.0, 2.0, 2.0))
    plant.add_rigid_body("body", inertia)
    plant.add_joint(mbjax.RevoluteJoint("joint", "world", "body", **joint))
    plant.add_joint_actuator("motor", "joint", 5.0)
    return plant.finalize()


@pytest.mark.parametrize("damping", [0.0, 3.0, 1e6])
def test_damping_acts_on_the_new_velocity(damping: float) -> None:
    model = spinning_body(damping=damping)
    state = mbjax.State(jnp.array([0.3]), jnp.array([1.5]), jnp.array(0.0))
    after, outputs = mbjax.step(model, state, jnp.array([4.0]))
    v = (2.0 * 1.5 + DT * 4.0) / (2.0 + DT * damping)
    np.testing.assert_allclose(after.v[0], v, rtol=1e-9)
    np.testing.assert_allclose(after.q[0], 0.3 + DT * v, rtol=1e-14)
    np.testing.assert_allclose(outputs.generalized_acceleration[0], (v - 1.5) / DT, rtol=1e-9)
    np.testing.assert_allclose(after.time, DT)


@pytest.mark.parametrize(("u", "expected"), [(4.0, 4.0), (7.0, 5.0), (-9.0, -5.0)])
def test_feed_forward_effort_is_limited(u: float, expected: float) -> None:
    state = mbjax.State(jnp.zeros(1), jnp.zeros(1), jnp.array(0.0))
    after, outputs = mbjax.step(spinning_body(), state, jnp.array([u]))
    np.testing.assert_allclose(outputs.net_actuation, [expected])
    np.testing.assert_allclose(after.v, [DT * expected / 2.0], rtol=1e-14)


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, 0))
def steps_to_random_targets(model, key):
    """The state before, the desired one, the state after, and the efforts."""
    state, target = mbjax.random_state(model, key), mbjax.random_state(model, jax.random.fold_in(key, 1))
    desired = jnp.concatenate([target.q, target.v])
    after, outputs = mbjax.step(model, state, mbjax.Inputs(desired_state=desired))
    return state, desired, after, outputs.net_actuation


@pytest.mark.parametrize(("kp", "kd"), [(1e6, 1e3), (1e4, 1e2), (1e6, 0.0)])
def test_efforts_are_the_saturated_law_at_the_end_of_the_step(arm, kp: float, kd: float) -> None:
    model = mbjax.set_controller_gains(arm, kp, kd)
    limit = np.asarray(model.parameters.effort_limit)
    keys = jax.random.split(jax.random.key(0), 500)
    state, desired, after, effort = steps_to_random_targets(model, keys)
    u = kp * (desired[:, :7] - state.q - DT * after.v) + kd * (desired[:, 7:] - after.v)
    wrong, used = np.abs(effort - np.clip(u, -limit, limit)) / limit, np.abs(effort) / limit
    assert wrong.max() < 1e-9
    assert used.max() <= 1.0 + 1e-12
    assert (used > 0.999).any()


def test_stiff_gains_reach_the_target_and_stay(arm) -> None:
    model = mbjax.set_controller_gains(arm, 1e6, 1e5)
    target = jnp.full(7, 0.1)
    inputs = mbjax.Inputs(desired_state=jnp.concatenate([target, jnp.zeros(7)]))
    end = mbjax.rollout(model, mbjax.default_state(model), inputs, 3000).final_state
    np.testing.assert_allclose(end.q, target, atol=2e-4)
    np.testing.assert_allclose(end.v, 0.0, atol=1e-6)


def test_forces_at_points_equal_forces_at_origins(arm) -> None:
    state = mbjax.random_state(arm, jax.random.key(1))
    p, F = jnp.array([0.1, -0.2, 0.3]), jnp.array([0.5, 0.4, -0.3, 1.0, 2.0, -3.0])
    applied = mbjax.AppliedSpatialForces(["tool", "elbow_housing"], [F, -F], [p, p])
    _, vdot = mbjax.time_derivatives(arm, state, mbjax.Inputs(applied_spatial_forces=applied))
    poses = mbjax.body_poses_in_world(arm, state.q)
    body = np.zeros((arm.num_bodies, 6))
    for name, force in (("tool", F), ("elbow_housing", -F)):
        i = arm.body_index(name)
        lever = np.asarray(poses.rotation[i] @ p)
        body[i] += np.concatenate([force[:3] + np.cross(lever, force[3:]), force[3:]])
    forces = mbjax.force_elements_contribution(arm, state.q, state.v)
    forces = forces + mbjax.MultibodyForces(jnp.zeros(7), jnp.asarray(body))
    expected = mbjax.forward_dynamics(arm, state.q, state.v, jnp.zeros(7), forces)
    assert relative_error(vdot, expected) < 1e-11


def test_a_continuous_model_has_no_step() -> None:
    model = mbjax.load(mbjax.reference_models.path("pendulum"))
    with pytest.raises(mbjax.ModelError, match=r"time_step=0\.001"):
        mbjax.step(model, mbjax.default_state(model))


def test_a_step_goes_back_through_the_recursion_of_inverse_dynamics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rows act as well, joint limits here, as in forward dynamics; JAX's own transpose compiles twice as long."""
    calls, cotangent = [], rule.calc_torque_cotangent

    def counted(*args, **keywords):
        calls.append(args)
        return cotangent(*args, **keywords)

    monkeypatch.setattr(rule, "calc_torque_cotangent", counted)
    model = mbjax.load("cart_pole", time_step=0.01)
    state = mbjax.default_state(model)
    assert model.layout.limited_joints

    def speed(q):
        return jnp.sum(mbjax.step(model, mbjax.State(q, state.v, state.time))[0].v)

    forget_traces()
    jax.jit(jax.grad(speed)).lower(state.q)
    assert calls
