"""`linearize` against derivatives of the step itself, with limits, friction, damping, saturation, locks and contact."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import trajectory_optimization as to
from mbjax.trajectory_optimization.linearization import differentiate_model_step, differentiate_rates
from tests.gradients.checks import OFFSETS, WEIGHTS

ROBOT = """<robot name="mixed"><link name="base"/>{links}
<joint name="a" type="revolute"><parent link="base"/><child link="l0"/><axis xyz="0 1 0"/>
  <limit lower="-0.5" upper="0.5" effort="3" velocity="9"/><dynamics damping="0.3" friction="0.4"/></joint>
<joint name="b" type="prismatic"><parent link="l0"/><child link="l1"/><origin xyz="0 0 -0.4"/><axis xyz="1 0 0"/>
  <limit lower="-0.1" upper="0.1" effort="4" velocity="9"/><dynamics damping="1.0"/></joint>
<joint name="c" type="continuous"><parent link="l1"/><child link="l2"/><origin xyz="0.1 0 -0.3"/><axis xyz="0 0.6 0.8"/>
  <dynamics damping="0.1" friction="0.2"/></joint></robot>"""
LINK = """<link name="l{i}"><inertial><origin xyz="0.1 0.02 -0.2"/><mass value="1.{i}"/>
<inertia ixx="0.08" iyy="0.07" izz="0.03" ixy="0.001" ixz="0.002" iyz="0"/></inertial></link>"""


def mixed(time_step: float) -> mbjax.MultibodyModel:
    text = ROBOT.format(links="".join(LINK.format(i=i) for i in range(3)))
    return mbjax.load(text, base="fixed", time_step=time_step, actuators="joints")


STATES = mbjax.State(
    jnp.array([[0.1, 0.02, 0.3], [0.51, -0.11, 2.0], [-0.6, 0.0, -1.0], [0.2, 0.05, 0.5], [0.5, -0.1, 0.0]]),
    jnp.array([[0.5, -0.3, 1.0], [0.4, -0.2, 0.0], [-0.1, 0.001, 1e-4], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
    jnp.zeros(5),
)
EFFORTS = jnp.array(
    [[1.0, 2.0, 0.1], [0.5, -9.0, 0.1], [5.0, 0.1, 0.2], [0.0, 0.0, 0.0], [3.0, -4.0, 0.0]]
)  # the last: joints exactly at their limits, at rest, with efforts exactly at theirs


linearize = jax.jit(to.linearize)


@functools.partial(jax.jit, static_argnums=0)
def each_state(differentiate, model: mbjax.MultibodyModel, efforts: jax.Array) -> to.Linearization:
    """A and B at all states, by differentiating the model."""
    return jax.vmap(lambda x, u: differentiate(model, x, mbjax.Inputs(actuation=u)))(STATES, efforts)


@pytest.mark.whole_run("the same matrices against finite differences, below")
def test_a_step_with_limits_friction_damping_and_saturation():
    model = mixed(0.01)
    A, B = linearize(model, STATES, EFFORTS)
    expected = each_state(differentiate_model_step, model, EFFORTS)
    for i in range(5):
        scale = np.max(np.abs(expected.A[i]))
        np.testing.assert_allclose(A[i], expected.A[i], atol=1e-10 * scale)
        np.testing.assert_allclose(B[i], expected.B[i], atol=1e-10)


@jax.jit
def after_a_move(model: mbjax.MultibodyModel, state: mbjax.State, effort: jax.Array, z: jax.Array, other: Any) -> Any:
    """The state after a step from one that is moved along z, and the tangent to it from another one."""
    after = mbjax.step(model, to.move_state(model, state, z[:6]), effort + z[6:])[0]
    return after, to.difference_states(model, other, after)


@pytest.mark.parametrize("k", [0, 1])  # in the middle; and beyond limits, with an effort that saturates
def test_a_step_against_finite_differences(k):
    model, h = mixed(0.01), 1e-6
    state, effort = jax.tree.map(lambda x: x[k], STATES), EFFORTS[k]
    A, B = (M[k] for M in linearize(model, STATES, EFFORTS))
    after, _ = after_a_move(model, state, effort, jnp.zeros(9), state)

    def moved(z: jax.Array) -> jax.Array:
        return after_a_move(model, state, effort, z, after)[1]

    columns = [sum(w * moved(o * h * e) for o, w in zip(OFFSETS, WEIGHTS, strict=True)) / h for e in jnp.eye(9)]
    expected = jnp.stack(columns, axis=1)
    np.testing.assert_allclose(jnp.concatenate([A, B], axis=1), expected, atol=1e-8 * np.max(np.abs(expected)))
    if k == 1:
        assert np.max(np.abs(A[3:, :3])) > 10.0  # a limit pushes back
        assert np.all(B[:, 1] == 0.0)  # an effort beyond its limit does nothing


@pytest.mark.whole_run("a step with limits, friction, damping and saturation against finite differences")
def test_a_locked_joint_stays():
    model = mbjax.lock_joint(mixed(0.01), "b")
    A, B = linearize(model, STATES, EFFORTS)
    expected = each_state(differentiate_model_step, model, EFFORTS)
    np.testing.assert_allclose(A[0, jnp.array([3, 5])], expected.A[0, jnp.array([3, 5])], atol=1e-10)
    np.testing.assert_allclose(B[0], expected.B[0], atol=1e-10)
    assert np.all(A[:, 4] == 0.0)
    assert np.all(B[:, 4] == 0.0)


@pytest.mark.whole_run("a step against finite differences, above")
def test_a_continuous_plant():
    model = mixed(0.0)
    A, B = linearize(model, STATES, EFFORTS)
    expected = each_state(differentiate_rates, model, EFFORTS)
    np.testing.assert_allclose(A, expected.A, atol=1e-9)
    np.testing.assert_allclose(B, expected.B, atol=1e-9)


def body_with_an_arm(time_step: float) -> mbjax.MultibodyModel:
    """A free body with one driven hinge."""
    hinge = """<joint name="hinge" type="continuous"><parent link="l0"/><child link="l1"/><origin xyz="0.1 0 0.2"/>
      <axis xyz="0 0.6 0.8"/></joint>"""
    text = f'<robot name="body">{LINK.format(i=0)}{LINK.format(i=1)}{hinge}</robot>'
    return mbjax.load(text, base="floating", time_step=time_step, actuators="joints")


@pytest.mark.whole_run("a step against finite differences, above, and moves of a floating body in test_slopes.py")
@pytest.mark.parametrize("time_step", [0.01, 0.0])
def test_a_floating_base_is_linearized_along_its_manifold(time_step):
    """Columns by differences of what a step, or a short time of the plant, makes of moved states."""
    model = body_with_an_arm(time_step)
    state = mbjax.random_state(model, jax.random.key(1))
    state = mbjax.State(state.q, jnp.array([0.3, -2.0, 1.0, 0.5, 0.1, -0.4, 0.7]))
    effort, n = jnp.array([0.4]), 14
    A, B = to.linearize(model, state, effort)

    @jax.jit
    def rates(z: jax.Array) -> jax.Array:
        """The tangent from what becomes of `state` to what becomes of the moved one: after a step, or its rate."""
        x, u = to.move_state(model, state, z[:n]), effort + z[n:]
        if time_step:
            return to.difference_states(model, mbjax.step(model, state, effort)[0], mbjax.step(model, x, u)[0])

        def later(time: jax.Array, x: mbjax.State, u: jax.Array) -> mbjax.State:
            _, vdot = mbjax.time_derivatives(model, x, u)
            return mbjax.State(mbjax.integrate_configuration(model, x.q, time * x.v), x.v + time * vdot)

        def apart(time: jax.Array) -> jax.Array:
            return to.difference_states(model, later(time, state, effort), later(time, x, u))

        return jax.jvp(apart, (jnp.array(0.0),), (jnp.array(1.0),))[1]

    h = 1e-4
    columns = [sum(w * rates(o * h * e) for o, w in zip(OFFSETS, WEIGHTS, strict=True)) / h for e in jnp.eye(n + 1)]
    np.testing.assert_allclose(jnp.concatenate([A, B], axis=1), jnp.stack(columns, axis=1), atol=1e-7)
    assert np.max(np.abs(B)) > 1e-3


@pytest.mark.whole_run("closed forms; with contact the step itself is differentiated, as tests/contact does")
def test_a_step_with_contact():
    text = """<robot name="ball"><link name="ball"><inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01"
      ixy="0" ixz="0" iyz="0"/></inertial>
      <collision><geometry><sphere radius="0.1"/></geometry></collision></link></robot>"""
    model = mbjax.load(text, base="floating", time_step=0.01, ground=True)
    state = mbjax.State(jnp.array([1.0, 0, 0, 0, 0, 0, 0.0999]), jnp.array([0.0, 0.5, 0, 0.3, 0, -0.1]))
    A, _ = to.linearize(model, state, jnp.zeros(0))
    after, h = mbjax.step(model, state)[0], 1e-6

    @jax.jit
    def moved(dx: jax.Array) -> jax.Array:
        return to.difference_states(model, after, mbjax.step(model, to.move_state(model, state, dx))[0])

    columns = [sum(w * moved(o * h * e) for o, w in zip(OFFSETS, WEIGHTS, strict=True)) / h for e in jnp.eye(12)]
    np.testing.assert_allclose(A, jnp.stack(columns, axis=1), atol=1e-4)


def test_numbers_of_states_and_efforts():
    with pytest.raises(mbjax.ModelError, match="5 states and 2 efforts"):
        to.linearize(mixed(0.01), STATES, EFFORTS[:2])
