"""Linear quadratic regulators: equal to scipy's, stable where they act, with derivatives of the solution."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import mbjax
from mbjax import controllers
from mbjax import trajectory_optimization as to
from tests.gradients.checks import WHOLE_RUN, compiled

Q, R = jnp.array([1.0, 10.0, 0.1, 1.0]), jnp.array([0.01])


@functools.cache
def cart() -> mbjax.MultibodyModel:
    return mbjax.load("cart_pole", time_step=0.02)


@functools.cache
def upright() -> controllers.Regulator:
    return controllers.lqr(cart(), mbjax.default_state(cart()), [0.0], Q, R)


def random_problem(seed: int, n: int = 6, m: int = 2) -> tuple:
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(n, n)), rng.normal(size=(n, m))
    half, r = rng.normal(size=(n, n)), rng.normal(size=(m, m))
    return tuple(jnp.asarray(x) for x in (A, B, half @ half.T, r @ r.T + np.eye(m)))


@pytest.mark.parametrize("seed", range(5))
def test_the_riccati_solution_is_that_of_scipy(seed: int) -> None:
    given = random_problem(seed)
    exact = scipy.linalg.solve_discrete_are(*(np.asarray(x) for x in given))
    np.testing.assert_allclose(controllers.discrete_riccati(*given), exact, rtol=1e-9, atol=1e-9 * abs(exact).max())


def test_what_nothing_stabilizes_is_seen() -> None:
    A, B = jnp.diag(jnp.array([1.1, 0.5])), jnp.array([[0.0], [1.0]])
    assert jnp.isnan(controllers.discrete_riccati(A, B, jnp.eye(2), jnp.eye(1))).all()
    with pytest.raises(mbjax.ModelError, match="do not fit"):
        controllers.discrete_riccati(A, B.T, jnp.eye(2), jnp.eye(1))


def test_derivatives_of_the_riccati_solution() -> None:
    """By all four matrices, also of a solution in its own derivative."""
    given = random_problem(1, 3, 1)
    check = mbjax.check_grads(lambda x: controllers.discrete_riccati(*x), given, quiet=True)
    assert check, str(check)

    def twice(x):
        return jax.grad(lambda a: jnp.sum(controllers.discrete_riccati(a * given[0], *given[1:])))(x)

    check = mbjax.check_grads(twice, jnp.array(1.0), quiet=True)
    assert check, str(check)


def test_the_gain_is_that_of_scipy_and_holds_the_pole() -> None:
    """The closed loop's modes lie within the unit circle; whole run: the pole comes back from 0.2 rad."""
    found, model = upright(), cart()
    A, B = (np.asarray(x) for x in to.linearize(model, mbjax.default_state(model), jnp.zeros(1)))
    P = scipy.linalg.solve_discrete_are(A, B, np.diag(Q), np.diag(R))
    K = np.linalg.solve(np.diag(R) + B.T @ P @ B, B.T @ P @ A)
    np.testing.assert_allclose(found.K, K, rtol=1e-8)
    assert abs(np.linalg.eigvals(A - B @ found.K)).max() < 1.0
    if not WHOLE_RUN:
        return
    start = mbjax.State(jnp.array([0.0, 0.2]), jnp.zeros(2))
    after = compiled(lambda start: mbjax.rollout(model, start, found, 800))(start)
    np.testing.assert_allclose(after.q[-1], 0.0, atol=1e-4)


@pytest.mark.whole_run("gains of a pole, beside scipy")
def test_a_floating_body_is_held_in_tangent_coordinates() -> None:
    """Its attitude is a quaternion, which wheels turn; nothing moves it along, and that is said."""
    plant = mbjax.MultibodyPlant(0.01)
    inertia = mbjax.SpatialInertia(1.0, (0.0, 0.0, 0.0), mbjax.UnitInertia(0.1, 0.1, 0.1))
    plant.add_rigid_body("hull", inertia)
    for axis in "xyz":
        plant.add_rigid_body(f"wheel_{axis}", inertia)
        direction = tuple(float(axis == other) for other in "xyz")
        plant.add_joint(mbjax.RevoluteJoint(f"spin_{axis}", "hull", f"wheel_{axis}", axis=direction))
        plant.add_joint_actuator(f"motor_{axis}", f"spin_{axis}")
    model = mbjax.set_gravity(plant.finalize(), (0.0, 0.0, 0.0))
    state = mbjax.default_state(model)
    names = model.velocity_names()
    with pytest.raises(mbjax.ModelError, match="no feedback stabilizes"):
        controllers.lqr(model, state, jnp.zeros(3), 1.0, 1.0)  # nothing moves it along
    attitude = [k for k, name in enumerate(names) if name.endswith(("wx", "wy", "wz"))]
    assert len(attitude) == 3
    A, B = to.linearize(model, state, jnp.zeros(3))
    kept = np.array([*attitude, *(model.num_velocities + k for k in attitude)])
    A, B = A[jnp.ix_(kept, kept)], B[kept]
    P = controllers.discrete_riccati(A, B, jnp.eye(6), jnp.eye(3))
    exact = scipy.linalg.solve_discrete_are(*(np.asarray(x) for x in (A, B, np.eye(6), np.eye(3))))
    np.testing.assert_allclose(P, exact, rtol=1e-8, atol=1e-8 * abs(exact).max())
    K = np.zeros((3, 2 * model.num_velocities))
    K[:, kept] = np.linalg.solve(np.eye(3) + B.T @ P @ B, B.T @ P @ A)
    regulator = controllers.Regulator(model, state, jnp.zeros(3), jnp.asarray(K), jnp.zeros((0, 0)))
    turned = mbjax.integrate_configuration(
        model, state.q, jnp.zeros(model.num_velocities).at[jnp.array(attitude)].set(0.8)
    )
    trajectory = compiled(lambda q: mbjax.rollout(model, mbjax.State(q, state.v), regulator, 1500))(turned)
    dq = mbjax.difference_configuration(model, state.q, trajectory.q[-1])
    np.testing.assert_allclose(dq[jnp.array(attitude)], 0.0, atol=1e-3)


def test_states_that_are_not_at_rest_and_continuous_models_are_refused() -> None:
    tilted = mbjax.State(jnp.array([0.0, 0.3]), jnp.zeros(2))
    with pytest.raises(mbjax.ModelError, match=r"not at rest under the effort: '.*pole_pivot"):
        controllers.lqr(cart(), tilted, [0.0], Q, R)
    with pytest.raises(mbjax.ModelError, match="continuous"):
        controllers.lqr(mbjax.load("cart_pole"), tilted, [0.0], Q, R)
    with pytest.raises(mbjax.ModelError, match=r"Q has shape \(3,\)"):
        controllers.lqr(cart(), tilted, [0.0], jnp.ones(3), R)
    with pytest.raises(mbjax.ModelError, match="one more state"):
        controllers.time_varying_lqr(cart(), mbjax.State(jnp.zeros((5, 2)), jnp.zeros((5, 2))), jnp.zeros((5, 1)), Q, R)


def test_costs_that_tell_nothing_or_the_wrong_thing() -> None:
    """Of Q and R the symmetric part counts; a motion that Q does not see is named, and so is a wrong number."""
    state, twist = mbjax.default_state(cart()), jnp.array([[0.0, 0.3], [-0.3, 0.0]])
    found = controllers.lqr(cart(), state, [0.0], jnp.diag(Q) + jnp.kron(jnp.eye(2), twist), R)
    np.testing.assert_allclose(found.K, upright().K, rtol=1e-9)
    for unseeing, words in (
        (0.0, "mostly of the .* multiplied by 1.083"),
        ([0.0, 1.0, 0.0, 1.0], "position of '.*slider"),
    ):
        with pytest.raises(mbjax.ModelError, match=f"lqr: Q does not see a motion, .*{words}"):
            controllers.lqr(cart(), state, [0.0], jnp.array(unseeing), R)
    for q, r, words in (
        (Q, 0.0, r"lqr: R must be a finite number > 0, got 0\.0"),
        (Q, jnp.nan, "lqr: R must be a finite number > 0, got nan"),
        (-1.0, R, r"lqr: Q must be a finite number >= 0, got -1\.0"),
        (-jnp.eye(4), R, "lqr: Q must be positive semidefinite; the least eigenvalue of its symmetric part is -1"),
    ):
        with pytest.raises(mbjax.ModelError, match=words):
            controllers.lqr(cart(), state, [0.0], q, r)


def test_locked_joints_cost_nothing() -> None:
    """The gain of a slide that carries a locked one is that of 2 kg, and there is none for what is locked."""
    plant = mbjax.MultibodyPlant(0.01)
    inertia = mbjax.SpatialInertia(1.0, (0.0, 0.0, 0.0), mbjax.UnitInertia(0.1, 0.1, 0.1))
    for name, parent, axis in (("first", "world", (1.0, 0.0, 0.0)), ("second", "first", (0.0, 1.0, 0.0))):
        plant.add_rigid_body(name, inertia)
        plant.add_joint(mbjax.PrismaticJoint(name, parent, name, axis=axis))
    plant.add_joint_actuator("motor", "first")
    model = mbjax.lock_joint(plant.finalize(), "second")
    found = controllers.lqr(model, mbjax.default_state(model), [0.0], 1.0, 1.0)
    A, B = np.array([[1.0, 0.01], [0.0, 1.0]]), np.array([[0.5e-4], [0.5e-2]])  # 2 kg in a step of 0.01 s
    P = scipy.linalg.solve_discrete_are(A, B, np.eye(2), np.eye(1))
    np.testing.assert_allclose(found.K[:, ::2], np.linalg.solve(np.eye(1) + B.T @ P @ B, B.T @ P @ A), rtol=1e-8)
    np.testing.assert_array_equal(found.K[:, 1::2], 0.0)


@pytest.mark.whole_run("gains beside scipy's, and derivatives of the Riccati solution")
def test_derivatives_of_the_regulator() -> None:
    """By the masses of the model and the weights."""
    known = cart()  # files are not read in a trace

    def gain(x):
        mass, weight = x
        model = mbjax.set_mass(known, "pole", mass)
        return controllers.lqr(model, mbjax.default_state(model), jnp.zeros(1), Q * weight, R).K

    check = mbjax.check_grads(gain, (jnp.array(0.5), jnp.array(1.0)), quiet=True)
    assert check, str(check)


@pytest.mark.whole_run("gains beside scipy's, and derivatives of the Riccati solution")
def test_derivatives_of_gains_along_a_trajectory() -> None:
    """By the mass of the pole: forward = reverse = differences."""
    efforts = 5.0 * jnp.sin(0.2 * jnp.arange(20.0))[:, None]
    trajectory = mbjax.rollout(cart(), mbjax.default_state(cart()), efforts)

    def gain(mass):
        model = mbjax.set_mass(cart(), "pole", mass)
        return jnp.sum(controllers.time_varying_lqr(model, trajectory, efforts, Q, R).K[0])

    def both(mass):
        return gain(mass), jax.jvp(gain, (mass,), (jnp.ones_like(mass),))[1], jax.grad(gain)(mass)

    run, h = compiled(both), 1e-5
    _, forward, reverse = run(jnp.array(0.5))
    np.testing.assert_allclose(forward, reverse, rtol=1e-10)
    np.testing.assert_allclose(reverse, (run(jnp.array(0.5 + h))[0] - run(jnp.array(0.5 - h))[0]) / (2 * h), rtol=1e-6)


@pytest.mark.whole_run("the gain is that of scipy")
def test_along_a_trajectory_gains_are_those_of_the_recursion_by_hand() -> None:
    """And they follow it from beside it, where efforts alone do not."""
    model, steps = cart(), 60
    efforts = 5.0 * jnp.sin(0.2 * jnp.arange(60.0))[:, None]
    trajectory = mbjax.rollout(model, mbjax.default_state(model), efforts)
    twist = jnp.kron(jnp.eye(2), jnp.array([[0.0, 0.3], [-0.3, 0.0]]))  # costs nothing
    costs = jnp.diag(Q) + twist, R, jnp.diag(10.0 * Q) + twist
    found = controllers.time_varying_lqr(model, trajectory, efforts, *costs)
    A, B = (np.asarray(x) for x in to.linearize(model, trajectory, efforts))
    P, q, r = np.diag(10.0 * Q), np.diag(Q), np.diag(R)
    for k in reversed(range(steps)):
        K = np.linalg.solve(r + B[k].T @ P @ B[k], B[k].T @ P @ A[k])
        np.testing.assert_allclose(found.K[k], K, rtol=1e-8, atol=1e-9)
        P = q + A[k].T @ P @ A[k] - A[k].T @ P @ B[k] @ K
    np.testing.assert_allclose(found.cost_to_go[0], P, rtol=1e-8)
    beside = mbjax.State(jnp.array([0.02, 0.02]), jnp.zeros(2))
    followed = mbjax.rollout(model, beside, found, steps)
    alone = mbjax.rollout(model, beside, efforts)
    assert abs(followed.q - trajectory.q)[-1].max() < 0.2 * abs(alone.q - trajectory.q)[-1].max()
