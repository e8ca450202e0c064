"""Rollouts under a policy: its memory, data, early ends, restarts, records, gradients and sharding."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax

STEPS = 12


MODEL = mbjax.load("cart_pole", time_step=0.02)
PENDULUM = mbjax.load("pendulum", time_step=0.02)


def start(angle: float = 0.3) -> mbjax.State:
    return mbjax.State(jnp.array([0.0, angle]), jnp.zeros(2))


def filtered(gain: jax.Array):
    """A controller that filters what it sees, and adds noise given for each step."""

    def policy(state: mbjax.State, memory: jax.Array, noise: jax.Array):
        memory = 0.7 * memory + 0.3 * state.q[0]
        return jnp.array([1.0]) * (gain * memory + noise), memory

    return policy


def noise() -> jax.Array:
    return 0.1 * jax.random.normal(jax.random.key(1), (STEPS,))


def by_hand(gain: jax.Array, q: jax.Array) -> jax.Array:
    """The same by a scan of the caller's own."""

    def body(carry, given):
        state, memory = carry
        u, memory = filtered(gain)(state, memory, given)
        state, _ = mbjax.step(PENDULUM, state, u)
        return (state, memory), state.q

    first = mbjax.State(q, jnp.zeros(1), jnp.zeros(()))
    return jax.lax.scan(body, (first, jnp.zeros(())), noise())[1]


@pytest.mark.parametrize("checkpoint", [pytest.param(None, marks=pytest.mark.whole_run("checkpoint=5")), 5])
def test_memory_and_data_equal_a_scan_by_hand_with_its_gradient(
    checkpoint: int | None, request: pytest.FixtureRequest
) -> None:
    """Trimmed: the values; gradients of a hundred steps are in g32 of tests/gradients."""

    def by_rollout(gain: jax.Array, q: jax.Array) -> jax.Array:
        return mbjax.rollout_policy(
            PENDULUM,
            mbjax.State(q, jnp.zeros(1)),
            filtered(gain),
            memory=jnp.zeros(()),
            data=noise(),
            record=lambda step: step.after.q,
            checkpoint=checkpoint,
        ).recorded

    def cost_of(roll):
        return lambda gain, q: jnp.sum(roll(gain, q) ** 2)

    at = jnp.asarray(3.0), jnp.array([0.3])
    if request.config.getoption("--trimmed"):
        np.testing.assert_allclose(*(jax.jit(cost_of(roll))(*at) for roll in (by_rollout, by_hand)), rtol=1e-11)
        return
    found = jax.jit(jax.value_and_grad(cost_of(by_rollout), (0, 1)))(*at)
    wanted = jax.jit(jax.value_and_grad(cost_of(by_hand), (0, 1)))(*at)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def falls(state: mbjax.State) -> jax.Array:
    return jnp.abs(state.q[1]) > 0.4


def resting(state: mbjax.State, memory: None, data: None):
    return jnp.zeros(1), memory


def test_worlds_end_each_by_itself_and_stay() -> None:
    """A pole that starts lower falls sooner; it stays as it fell, and its neighbours are bit-equal to worlds alone."""

    @jax.jit
    @jax.vmap
    def run(angle: jax.Array) -> mbjax.PolicyRollout:
        first = mbjax.State(jnp.array([0.0, 1.0]) * angle, jnp.zeros(2))
        return mbjax.rollout_policy(MODEL, first, resting, 2 * STEPS, until=falls)

    result = run(jnp.array([0.35, 0.2, 0.01]))
    assert result.num_ends.tolist() == [1, 1, 0]
    taken = result.num_steps
    assert taken[0] < taken[1] < taken[2] == 2 * STEPS
    q = result.recorded.q
    for world in range(2):  # angles at the last step and the one before
        assert abs(float(q[world, taken[world] - 1, 1])) > 0.4 >= abs(float(q[world, taken[world] - 2, 1]))
        end = result.final_state.q[world]
        np.testing.assert_array_equal(
            q[world, taken[world] - 1 :], np.broadcast_to(end, q[world, taken[world] - 1 :].shape)
        )
    other = run(jnp.array([0.39, 0.2, 0.01]))
    np.testing.assert_array_equal(q[1:], other.recorded.q[1:])


def test_a_policy_need_not_be_defined_where_a_world_has_ended() -> None:
    """The gradient by a gain that two worlds share is that of differences, though one world ends below the root."""

    @jax.jit
    @jax.value_and_grad
    def run(gain: jax.Array) -> jax.Array:
        def policy(state: mbjax.State, memory: None, data: None):
            return gain * jnp.sqrt(1.0 + state.q), memory

        def end(speed: jax.Array) -> jax.Array:
            first = mbjax.State(jnp.array([-0.9]), speed[None])
            ended = mbjax.rollout_policy(PENDULUM, first, policy, STEPS, until=lambda state: state.q[0] < -1.0)
            return ended.final_state.q[0]

        return jnp.sum(jax.vmap(end)(jnp.array([-2.0, 2.0])))

    h = 1e-5
    differences = (run(1.0 + h)[0] - run(1.0 - h)[0]) / (2.0 * h)
    np.testing.assert_allclose(run(1.0)[1], differences, rtol=1e-6)


@pytest.mark.whole_run("restarts by functions, and their worlds")
def test_worlds_restart_and_have_gradients() -> None:
    """What follows an end depends on the start anew: the gradient is that of differences, through all episodes."""

    @jax.jit
    @functools.partial(jax.value_and_grad, has_aux=True)
    def run(angle: jax.Array) -> tuple[jax.Array, mbjax.PolicyRollout]:
        first = mbjax.State(jnp.array([0.0, 1.0]) * angle, jnp.zeros(2))
        result = mbjax.rollout_policy(
            MODEL,
            first,
            resting,
            3 * STEPS,
            until=falls,
            restart=first,
            record=lambda step: (step.state.time, step.ends, step.after.q),
        )
        return jnp.sum(result.recorded[2] ** 2), result

    (_, result), gradient = run(jnp.asarray(0.35))
    h = 1e-6
    numeric = (run(jnp.asarray(0.35 + h))[0][0] - run(jnp.asarray(0.35 - h))[0][0]) / (2.0 * h)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-7)
    time, ends, q = result.recorded
    assert int(result.num_ends) == int(ends.sum()) >= 2
    first, second = np.flatnonzero(ends)[:2]
    assert float(time[first + 1]) == 0.0
    np.testing.assert_allclose(q[first + 1 : second + 1], q[: second - first], rtol=1e-13)
    assert int(result.num_steps) == 3 * STEPS


def test_a_restart_may_be_a_function_of_memory_and_data() -> None:
    def again(state: mbjax.State, memory: jax.Array, key: jax.Array):
        return mbjax.State(0.1 * jax.random.normal(key, (2,)), jnp.zeros(2), jnp.zeros(())), memory + 1

    def policy(state: mbjax.State, memory: jax.Array, key: jax.Array):
        return jax.random.normal(key, (1,)), memory

    keys = jax.random.split(jax.random.key(0), STEPS)
    run = jax.jit(
        lambda keys: mbjax.rollout_policy(
            MODEL, start(0.39), policy, memory=jnp.array(0), data=keys, until=falls, restart=again
        )
    )
    result = run(keys)
    assert int(result.memory) == int(result.num_ends) >= 1


def test_progress_is_told() -> None:
    told = []
    mbjax.rollout_policy(MODEL, start(), resting, STEPS, progress=lambda done, total: told.append((done, total)))
    jax.effects_barrier()
    assert sorted(told) == [(k + 1, STEPS) for k in range(STEPS)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"policy": jnp.zeros((STEPS, 1))}, "use mbjax.rollout"),
        ({"policy": lambda state, memory, data: jnp.zeros(1)}, "must return a pair"),
        ({"policy": lambda state, memory, data: (jnp.zeros(1), state.q)}, "a memory like the one"),
        ({"num_steps": None}, "give num_steps"),
        ({"data": jnp.zeros(STEPS + 1)}, "leading axis of 12 steps"),
        ({"restart": start()}, "needs until="),
        ({"restart": 5, "until": falls}, r"restart must be a mbjax\.State, or a function"),
        ({"restart": lambda state, memory, data: state, "until": falls}, r"must return a pair \(state, memory\)"),
        ({"restart": lambda state, memory, data: (state, 1), "until": falls}, "restart must return a memory like"),
        ({"until": True}, "until must be a function"),
        ({"until": lambda state: state.q > 0.0}, r"one truth value, got shape \(2,\)"),
        ({"record": None}, "record must be a function"),
        ({"progress": 0}, "progress must be a whole number of steps of at least 1"),
        ({"progress": "x"}, "progress must be"),
    ],
)
def test_misuse_is_refused_in_words(options: dict, words: str) -> None:
    arguments = {"policy": resting, "num_steps": STEPS} | options
    with pytest.raises(mbjax.ModelError, match=words):
        mbjax.rollout_policy(MODEL, start(), **arguments)
