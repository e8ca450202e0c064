"""Configurations and velocities on the constraints: nearest, whatever the start, with a status and derivatives."""

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.constraints import BoundConstraintSet, ConstraintSet
from mbjax.constraints.row_inverse import invert_under_rows
from tests.constraints.mechanisms import (
    PLANAR,
    Mechanism,
    four_bar,
    hinge,
    link,
    random_mechanism,
    slider_crank,
    spring_leg,
    stewart_platform,
)
from tests.gradients.checks import WHOLE_RUN, Gradients, central_differences, check_gradients, compare, compiled
from tests.models import relative_error

compiled_assembly_q = jax.jit(mbjax.assembly_q, static_argnames=("tolerance", "max_iterations"))
assembly_qdot = jax.jit(mbjax.assembly_qdot)
RANDOM_KINDS = ("quaternion_floating", "revolute", "universal", "prismatic")


def assembly_q(model, cset, q_guess, weights=None, **options) -> mbjax.AssemblyResult:
    """One program for all weights: those of 1 are passed too."""
    weights = np.ones(model.num_velocities) if weights is None else weights
    return compiled_assembly_q(model, cset, q_guess, weights, **options)


@functools.cache
def floating_rod(turns: bool = False) -> Mechanism:
    """A free body whose point hangs on a rod from the world, given twice: quaternions, redundant rows."""
    plant = mbjax.MultibodyPlant()
    link(plant, "body", 1.3, [0.02, 0.01, 0.0])
    model = plant.finalize()
    point, anchor = np.array([0.3, 0.1, -0.2]), np.array([0.5, -0.4, 0.8])
    constraints = ConstraintSet()
    for name in ("rod", "same rod"):
        constraints.add_distance_constraint("world", anchor, "body", point, 0.6, name=name)
    if not turns:
        axes = np.eye(6)[[2]]
        constraints.add_loop_constraint("world", "body", np.zeros(3), np.zeros(3), axes, name="no turn about z")
    q = jnp.concatenate([jnp.array([1.0, 0.0, 0.0, 0.0]), jnp.zeros(3)])
    return Mechanism(model, constraints.bind(model), q, jnp.zeros(6))


def guesses(mechanism: Mechanism, size: float, number: int = 4) -> jax.Array:
    d = size * np.random.default_rng(0).normal(size=(number, mechanism.model.num_velocities))
    return compiled(jax.vmap(mbjax.integrate_configuration, (None, None, 0)))(mechanism.model, mechanism.q, d)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(four_bar, marks=pytest.mark.whole_run("one that converges with a locked crank, below")),
        pytest.param(floating_rod, marks=pytest.mark.whole_run("its velocities with weights of zero, below")),
        pytest.param(
            functools.partial(floating_rod, turns=True),
            marks=pytest.mark.whole_run("a four-bar that converges with a locked crank, below"),
        ),
    ],
    ids=["four-bar", "floating body", "floating body that turns"],
)
@pytest.mark.parametrize(
    "size",
    [
        *(pytest.param(size, marks=pytest.mark.whole_run("a four-bar that converges, below")) for size in (0.0, 0.3)),
        1.0,
    ],
)
def test_assembles_from_near_and_far(make, size: float) -> None:
    """No error, quaternions of unit length; the change is along Gᵀ λ, as nearness demands."""
    mechanism = make()
    model, cset = mechanism.model, mechanism.cset
    for q_guess in guesses(mechanism, size):
        result = assembly_q(model, cset, q_guess)
        assert mbjax.AssemblyStatus(int(result.status)) is mbjax.AssemblyStatus.CONVERGED
        assert np.abs(result.error).max() < 1e-12
        assert int(result.iterations) < 30
        if make is not four_bar:
            np.testing.assert_allclose(np.linalg.norm(result.q[:4]), 1.0, rtol=0, atol=1e-14)
        else:
            G = np.asarray(mbjax.constraints_jacobian(model, cset, result.q))
            change = np.asarray(result.q - q_guess)
            np.testing.assert_allclose(change - G.T @ np.linalg.lstsq(G.T, change, rcond=None)[0], 0.0, atol=1e-9)


SPATIAL = {
    "leg with springs": spring_leg,
    "Stewart platform": stewart_platform,
    "random, two loops": lambda: random_mechanism(1, 2, RANDOM_KINDS),
    "random, three loops": lambda: random_mechanism(2, 3, RANDOM_KINDS),
}


@pytest.mark.whole_run("a four-bar that converges, and velocities of a floating body on redundant rows")
@pytest.mark.parametrize("name", SPATIAL)
def test_assembles_spatial_mechanisms_from_random_guesses(name: str) -> None:
    """Up to about a radian and a metre in every coordinate; CONVERGED means no error, and nothing else does."""
    mechanism = SPATIAL[name]()
    sizes = (0.1, 0.3, 1.0)
    q_guess = jnp.concatenate([guesses(mechanism, size) for size in sizes])
    result = compiled(jax.vmap(mbjax.assembly_q, (None, None, 0)))(mechanism.model, mechanism.cset, q_guess)
    error = np.linalg.norm(result.error, axis=1)
    converged = np.asarray(result.status) == mbjax.AssemblyStatus.CONVERGED
    print(f"{converged.sum()} of {len(error)} converged, {np.asarray(result.iterations).max()} rounds at most")
    np.testing.assert_array_equal(converged, error <= 1e-12)
    assert converged.all()


@pytest.mark.whole_run("a crank that is locked, below, and velocities with weights of zero")
def test_weights_say_what_may_change() -> None:
    """With weights of zero on all joints but the crank's, the crank stays and the others close the loop."""
    mechanism = four_bar()
    q_guess = mechanism.q + jnp.array([0.0, 0.2, -0.1])
    result = assembly_q(mechanism.model, mechanism.cset, q_guess, jnp.array([1.0, 0.0, 0.0]))
    assert int(result.status) == mbjax.AssemblyStatus.CONVERGED
    np.testing.assert_allclose(result.q, mechanism.q, rtol=0, atol=1e-12)


def test_weights_that_cannot_be_are_refused() -> None:
    mechanism = four_bar()
    q_guess = mechanism.q + jnp.array([0.0, 0.2, -0.1])
    with pytest.raises(mbjax.ModelError, match="one for each velocity"):
        mbjax.assembly_q(mechanism.model, mechanism.cset, q_guess, jnp.ones(2))
    with pytest.raises(mbjax.ModelError, match="at least zero"):
        mbjax.assembly_q(mechanism.model, mechanism.cset, q_guess, jnp.array([1.0, -1.0, 1.0]))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_iterations": 0}, "max_iterations must be a whole number of at least 1, got 0"),
        ({"max_iterations": 2.5}, "max_iterations must be a whole number"),
        ({"max_iterations": "a"}, "max_iterations must be a whole number"),
        ({"tolerance": -1e-9}, "tolerance must be a finite number > 0"),
        ({"tolerance": "1"}, "tolerance must be one number"),
        ({"tolerance": np.inf}, "tolerance must be a finite number > 0"),
        ({"q_guess": [0.0, np.nan, 0.0]}, "q_guess must be finite"),
        ({"cset": spring_leg}, "bound to another model"),
    ],
)
def test_what_assembly_refuses(given: dict, message: str) -> None:
    mechanism = four_bar()
    given = {"cset": mechanism.cset, "q_guess": mechanism.q} | given
    if callable(given["cset"]):
        given["cset"] = given["cset"]().cset
    with pytest.raises(mbjax.ModelError, match=message):
        mbjax.assembly_q(mechanism.model, **given)
    if "another model" in message:
        with pytest.raises(mbjax.ModelError, match=message):
            mbjax.assembly_qdot(mechanism.model, given["cset"], mechanism.q, mechanism.v)


def arm_on_a_rod(length: float, dtype: type) -> tuple[mbjax.MultibodyModel, BoundConstraintSet]:
    """Three links of this length in a plane, whose tip is a rod of 0.4 lengths away from a point."""
    plant, parent = mbjax.MultibodyPlant(), "world"
    for i in range(3):
        link(plant, f"l{i}", 1.0, [-0.5 * length, 0.0, 0.0], 0.2 * length)
        hinge(plant, f"j{i}", parent, f"l{i}", [length if i else 0.0, 0.0, 0.0])
        parent = f"l{i}"
    model = mbjax.astype(plant.finalize(), dtype)
    anchor, tip = length * np.array([1.8, 1.0, 0.0]), length * np.array([1.0, 0.0, 0.0])
    rod = ConstraintSet().add_distance_constraint("world", anchor, parent, tip, 0.4 * length, name="rod")
    return model, rod.bind(model)


SIZES = {jnp.float64: [1.0, 1e8, 1e-12], jnp.float32: [1.0, 1e4, 1e-6]}
ROUNDING = {jnp.float64: 1e-12, jnp.float32: 1e-5}


@pytest.mark.parametrize("dtype", SIZES, ids=["float64", "float32"])
def test_velocities_of_small_mechanisms_with_weights_of_any_size(dtype: type) -> None:
    """Links of 5 mm, and weights times any number: the rank of the rows depends on neither, so all of them hold."""
    model, cset = arm_on_a_rod(0.005, dtype)
    q, v_guess = jnp.array([0.4, 0.3, 0.2], dtype), np.array([1.0, 2.0, 3.0])
    G = np.asarray(mbjax.constraints_jacobian(model, cset, q), float)
    for ratios in ([1.0, 1.0, 1.0], [300.0, 1.0, 1.0], [100.0, 100.0, 1.0]):
        to_rows = G.T / np.array(ratios)[:, None]
        nearest = v_guess - to_rows @ np.linalg.solve(G @ to_rows, G @ v_guess)
        for size in SIZES[dtype]:
            weights = size * jnp.array(ratios, dtype)
            v = np.asarray(assembly_qdot(model, cset, q, jnp.asarray(v_guess, dtype), weights), float)
            assert relative_error(v, nearest) < 10.0 * ROUNDING[dtype]  # of weights as unlike as 300 and 1
            assert np.abs(G @ v).max() < ROUNDING[dtype] * np.linalg.norm(G) * np.linalg.norm(v)


@pytest.mark.parametrize(
    "dtype", [jnp.float32, pytest.param(jnp.float64, marks=pytest.mark.whole_run("the same in float32"))]
)
def test_small_mechanisms_are_assembled_with_weights_of_any_size(dtype: type) -> None:
    """The links of 5 mm turn as those of 0.5 m do, with weights of 1 times any number."""
    model, cset = arm_on_a_rod(0.005, dtype)
    q = jnp.array([0.4, 0.3, 0.2], dtype)
    for size in SIZES[dtype]:
        found = assembly_q(model, cset, q, size * jnp.ones(3, dtype))
        assert int(found.status) == mbjax.AssemblyStatus.CONVERGED
        assert np.abs(found.error).max() < ROUNDING[dtype] * 0.005
        np.testing.assert_allclose(found.q, [-0.17113257, 0.65748936, 0.85835366], rtol=0, atol=ROUNDING[dtype] + 1e-8)


@pytest.mark.parametrize("redundant", [False, True])
def test_inverse_under_rows(redundant: bool) -> None:
    """The inverse of [H Gᵀ; G 0] where it has one, and K X K = K where rows are redundant, of any length or zero."""
    rng = np.random.default_rng(0)
    H, G = rng.normal(size=(5, 5)), rng.normal(size=(3, 5)) * np.array([[1.0], [1e-6], [1e3]])
    if redundant:
        G = np.concatenate([G, G[:1] + 1e6 * G[1:2], np.zeros((1, 5))])
    K = np.block([[H, G.T], [G, np.zeros((len(G), len(G)))]])
    X = np.asarray(invert_under_rows(jnp.asarray(H), jnp.asarray(G)))
    size = np.concatenate([np.ones(5), 1.0 / np.maximum(np.linalg.norm(G, axis=1), 1e-300)])
    size[-1] = 1.0 if redundant else size[-1]
    np.testing.assert_allclose(size[:, None] * (K @ X @ K - K) * size, 0.0, rtol=0, atol=1e-10)
    if not redundant:
        np.testing.assert_allclose((X @ K) * size / size[:, None], np.eye(8), rtol=0, atol=1e-10)


@functools.cache
def planar_arm(links: int = 3) -> Mechanism:
    """Unit links in a plane whose tip goes to a goal: `p_AP` of its loop."""
    plant = mbjax.MultibodyPlant()
    bodies = ["world", *(f"l{i + 1}" for i in range(links))]
    for body in bodies[1:]:
        link(plant, body, 1.0, [0.5, 0.0, 0.0])
    for i, (parent, body) in enumerate(itertools.pairwise(bodies)):
        hinge(plant, f"j{i + 1}", parent, body, [1.0 if i else 0.0, 0.0, 0.0])
    goal = [2.55, -0.52, 0.0]
    constraints = ConstraintSet().add_loop_constraint("world", bodies[-1], goal, [1.0, 0.0, 0.0], PLANAR, name="tip")
    model = plant.finalize()
    return Mechanism(model, constraints.bind(model), jnp.array([-0.7, 1.05, -0.3, 0.4][:links]), jnp.zeros(links))


PATTERNS = [p for p in itertools.product([0.0, 1.0], repeat=3) if any(p)] + [(1.0, 0.3, 2.0), (0.0, 0.1, 3.0)]


def missed_nearness(weights: np.ndarray, change: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Largest entry of W δ + Gᵀ λ with the best λ, relative to the largest weight: zero where q is the nearest."""
    slope = weights * change / weights.max(axis=1, keepdims=True)
    best = [g - J.T @ np.linalg.lstsq(J.T, g, rcond=1e-10)[0] for g, J in zip(slope, G, strict=True)]
    return np.abs(best).max(axis=1)


def five_bar() -> Mechanism:
    """Two arms of two links whose tips are one."""
    plant, constraints = mbjax.MultibodyPlant(), ConstraintSet()
    for name, x, lengths in (("left", 0.0, (0.6, 0.8)), ("right", 0.7, (0.5, 0.9))):
        for k, length in enumerate(lengths):
            link(plant, f"{name}{k}", 1.0, [0.5 * length, 0.0, 0.0])
        hinge(plant, f"{name}_root", "world", f"{name}0", [x, 0.0, 0.0])
        hinge(plant, f"{name}_elbow", f"{name}0", f"{name}1", [lengths[0], 0.0, 0.0])
    constraints.add_loop_constraint("left1", "right1", [0.8, 0.0, 0.0], [0.9, 0.0, 0.0], PLANAR, name="tip")
    model = plant.finalize()
    return Mechanism(model, constraints.bind(model), jnp.zeros(4), jnp.zeros(4))


@pytest.mark.whole_run("velocities with weights of zero, and a locked crank")
def test_the_nearest_configuration_is_found_to_rounding_whatever_the_weights() -> None:
    """A five-bar with weights over nine decades, and zeros: those below 1e-7 of the largest count as zero.

    Before `finish` the worst of these missed 1e-3 of the largest weight.
    """
    mechanism, rng = five_bar(), np.random.default_rng(0)
    starts = rng.uniform(-1.5, 1.5, (60, 4))
    weights = np.where(rng.uniform(size=(60, 4)) < 0.3, 0.0, 10.0 ** rng.uniform(-7.0, 2.0, (60, 4)))
    weights[weights.max(axis=1) == 0.0] = 1.0
    found = compiled(jax.vmap(mbjax.assembly_q, (None, None, 0, 0)))(mechanism.model, mechanism.cset, starts, weights)
    G = compiled(jax.vmap(mbjax.constraints_jacobian, (None, None, 0)))(mechanism.model, mechanism.cset, found.q)
    counted = np.where(weights < 1e-7 * weights.max(axis=1, keepdims=True), 0.0, weights)
    missed = missed_nearness(counted, np.asarray(found.q) - starts, np.asarray(G))
    converged = np.asarray(found.status) == mbjax.AssemblyStatus.CONVERGED
    print(f"{converged.sum()} of 60 converged, and miss {missed[converged].max():.1e} at most")
    assert converged.mean() > 0.8
    assert missed[converged].max() < 1e-10
    assert np.linalg.norm(found.error, axis=1)[converged].max() <= 1e-12


def nearest_by_hand(goal: np.ndarray, q_guess: np.ndarray, weights: np.ndarray) -> float:
    """The least weighted square of the change that brings the tip of three unit links to the goal, by enumeration."""
    direction = np.linspace(-np.pi, np.pi, 4001)  # of the last link
    x, y = goal[0] - np.cos(direction), goal[1] - np.sin(direction)
    within = x * x + y * y <= 4.0
    x, y, direction = x[within], y[within], direction[within]
    least = np.inf
    for side in (1.0, -1.0):
        q2 = side * np.arccos(np.clip((x * x + y * y - 2.0) / 2.0, -1.0, 1.0))
        q1 = np.arctan2(y, x) - np.arctan2(np.sin(q2), 1.0 + np.cos(q2))
        change = np.stack([q1, q2, direction - q1 - q2], -1) - q_guess
        change -= 2.0 * np.pi * np.round(change / (2.0 * np.pi))
        least = min(least, float(np.min(change**2 @ weights)))
    return least


@pytest.mark.whole_run("a four-bar that converges, and velocities with weights of zero")
def test_reaches_what_can_be_reached_whatever_the_weights() -> None:
    """Seeded goals, guesses and weights, zeros among them: all converge, and most of them to the nearest solution.

    One that cannot leaves its neighbours alone.

    Of these 10 goals with 9 patterns of weights each, 53 converged before weights of zero were exact.
    """
    arm, rng = planar_arm(), np.random.default_rng(3)
    angles = np.cumsum(rng.uniform(-2.0, 2.0, (10, 3)), axis=1)
    goals = np.stack([np.cos(angles).sum(1), np.sin(angles).sum(1), np.zeros(10)], -1)
    starts = rng.uniform(-2.0, 2.0, (10, 3))
    goals[0], starts[0] = arm.cset.constraints[0].p_AP, arm.q
    goals, starts, weights = (
        np.concatenate(x)
        for x in zip(*[(goals, starts, np.tile(pattern, (10, 1))) for pattern in PATTERNS], strict=True)
    )

    def at(goal: jax.Array) -> BoundConstraintSet:
        return arm.cset.with_numbers("tip", p_AP=goal)

    def reach(goal: jax.Array, q_guess: jax.Array, weights: jax.Array) -> mbjax.AssemblyResult:
        return mbjax.assembly_q(arm.model, at(goal), q_guess, weights)

    program = compiled(jax.vmap(reach))
    found = program(goals, starts, weights)
    assert np.linalg.norm(found.error, axis=1).max() <= 1e-12
    np.testing.assert_array_equal(found.status, mbjax.AssemblyStatus.CONVERGED)
    objective = np.sum(weights * (np.asarray(found.q) - starts) ** 2, axis=1)
    least = np.array([nearest_by_hand(*case) for case in zip(goals, starts, weights, strict=True)])
    nearest = objective < least + 0.01 * (1.0 + least)
    print(f"{nearest.sum()} of {nearest.size} are the nearest")
    assert nearest.mean() > 0.8
    G = compiled(jax.vmap(lambda goal, q: mbjax.constraints_jacobian(arm.model, at(goal), q)))(goals, found.q)
    assert missed_nearness(weights, np.asarray(found.q) - starts, np.asarray(G)).max() < 1e-12
    # a world whose goal is out of reach leaves the others alone, to the last bit
    goals[1] = [5.0, 0.0, 0.0]
    beside, others = program(goals, starts, weights), np.arange(len(goals)) != 1
    assert int(beside.status[1]) != mbjax.AssemblyStatus.CONVERGED
    assert np.isfinite(beside.q).all()
    assert np.linalg.norm(beside.error[1]) > 1.0
    for x, y in zip(*map(jax.tree.leaves, (beside, found)), strict=True):
        np.testing.assert_array_equal(x[others], y[others])


@pytest.mark.whole_run("velocities with weights of zero")
@pytest.mark.parametrize("weights", [(1.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 1.0)])
def test_derivatives_with_weights_of_zero(weights) -> None:
    """By the goal, the guess and the weights that are not zero."""
    arm, weights = planar_arm(), np.array(weights)

    def reach(x: jax.Array) -> jax.Array:
        cset = arm.cset.with_numbers("tip", p_AP=arm.cset.constraints[0].p_AP + jnp.append(x[:2], 0.0))
        return mbjax.assembly_q(arm.model, cset, arm.q + x[2:5], weights * (1.0 + x[5:])).q

    check_gradients(reach, jnp.zeros(8), scale=1.0)


@pytest.mark.whole_run("velocities with weights of zero")
def test_what_weights_of_zero_leave_open_changes_least() -> None:
    """Four links, the first is dear: it rests, and the change of the others is in the range of their columns of Gᵀ."""
    arm = planar_arm(4)
    cset = arm.cset.with_numbers("tip", p_AP=[2.0, 1.0, 0.0])
    weights = jnp.array([1.0, 0.0, 0.0, 0.0])
    found = assembly_q(arm.model, cset, arm.q, weights)
    assert int(found.status) == mbjax.AssemblyStatus.CONVERGED
    change, G = np.asarray(found.q - arm.q), np.asarray(mbjax.constraints_jacobian(arm.model, cset, found.q))
    assert abs(change[0]) < 1e-12
    across = np.linalg.svd(G[:, 1:])[2][2]  # what the three can do without moving the tip
    assert abs(across @ change[1:]) < 1e-11
    check_gradients(lambda x: assembly_q(arm.model, cset, arm.q + x, weights).q, jnp.zeros(4), scale=1.0)


def nearest_velocity(v_guess: np.ndarray, G: np.ndarray, free: np.ndarray) -> np.ndarray:
    """With weights of 1, or 0 where `free`: two problems of least squares, one after the other."""
    column, row = G[:, free], G @ v_guess
    inverse = np.linalg.pinv(column, rcond=1e-10)
    rest = np.round(np.eye(len(row)) - column @ inverse, 13)  # what the free ones cannot do: zero where that is all
    x = np.zeros(v_guess.size)
    x[~free] = -np.linalg.pinv(np.round(rest @ G[:, ~free], 12), rcond=1e-10) @ (rest @ row)
    x[free] = -inverse @ (row + G[:, ~free] @ x[~free])
    return v_guess + x


@pytest.mark.parametrize(
    "free",
    [
        (3, 4),
        (0, 1, 2, 3, 4),
        *(pytest.param(x, marks=pytest.mark.whole_run("two of them, and five")) for x in ((0,), (2, 3, 4, 5))),
    ],
)
def test_velocities_with_weights_of_zero_are_exact(free) -> None:
    """Redundant rows; fewer, as many and more free velocities than rows: the coordinates that are dear come first."""
    mechanism, rng = floating_rod(), np.random.default_rng(2)
    q, v_guess = guesses(mechanism, 0.4, 1)[0], rng.normal(size=6)
    is_free = np.isin(np.arange(6), free)
    weights = jnp.asarray(np.where(is_free, 0.0, 1.0))
    v = assembly_qdot(mechanism.model, mechanism.cset, q, v_guess, weights)
    G = np.asarray(mbjax.constraints_jacobian(mechanism.model, mechanism.cset, q))
    np.testing.assert_allclose(v, nearest_velocity(v_guess, G, is_free), rtol=0, atol=1e-11)
    np.testing.assert_allclose(G @ np.asarray(v), 0.0, rtol=0, atol=1e-12)

    def by(x: jax.Array) -> jax.Array:
        moved = mbjax.integrate_configuration(mechanism.model, q, x[:6])
        return mbjax.assembly_qdot(mechanism.model, mechanism.cset, moved, v_guess + x[6:], weights)

    if len(free) in (1, 4):
        check_gradients(by, jnp.zeros(12))


def test_a_guess_that_is_not_finite_inside_of_jit_is_reported() -> None:
    mechanism = four_bar()
    found = assembly_q(mechanism.model, mechanism.cset, mechanism.q.at[0].set(jnp.nan))
    assert int(found.status) == mbjax.AssemblyStatus.NOT_FINITE


@pytest.mark.whole_run("states that contradict their constraints are named")
def test_status_says_why_it_did_not_converge() -> None:
    mechanism = four_bar()
    q_guess = guesses(mechanism, 1.0, 1)[0]
    stopped = assembly_q(mechanism.model, mechanism.cset, q_guess, max_iterations=2)
    assert int(stopped.status) == mbjax.AssemblyStatus.ITERATION_LIMIT
    assert int(stopped.iterations) == 2
    out_of_reach = eqx.tree_at(lambda c: c.constraints[0].p_AP, mechanism.cset, jnp.array([5.0, 0.0, 0.0]))
    stretched = assembly_q(mechanism.model, out_of_reach, jnp.zeros_like(mechanism.q))
    failed = assembly_q(mechanism.model, out_of_reach, mechanism.q)  # comes by singular points and goes on, by rounding
    for result in (stretched, failed):
        assert int(result.status) == mbjax.AssemblyStatus.SINGULAR
        assert np.isfinite(result.q).all()
        assert np.abs(result.error).max() > 1.0
    assert np.linalg.norm(failed.error) < 2.91  # the least that was seen on the way
    for status in mbjax.AssemblyStatus:
        assert status.message.endswith((".", "elsewhere."))


AWAY = np.array([0.1, -0.2, 0.15])


def assembled(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """q and the number of iterations, by a leaf of the loop, the guess near AWAY and the weights."""
    mechanism = four_bar()
    cset = eqx.tree_at(lambda c: c.constraints[0].p_AP, mechanism.cset, mechanism.cset.constraints[0].p_AP + x[:3])
    found = mbjax.assembly_q(mechanism.model, cset, mechanism.q + AWAY + x[3:6], 1.0 + x[6:])
    return found.q, found.iterations


slopes = compiled(jax.jacrev(assembled, has_aux=True))


@pytest.mark.whole_run("an assembled four-bar, below, and derivatives of motion under contacts")
def test_derivatives_are_those_of_the_nearest_configuration() -> None:
    """By the guess, the weights and a leaf of the loop; not by the number of iterations."""
    x, (reverse, iterations) = jnp.zeros(9), slopes(np.zeros(9))
    assert int(iterations) > 0
    forward = compiled(jax.jacfwd(assembled, has_aux=True))(x)[0] if WHOLE_RUN else reverse
    differences = compiled(lambda x: central_differences(lambda x: assembled(x)[0], x))(x)
    compare(Gradients(*map(np.asarray, (forward, reverse, differences)), [f"entry {k}" for k in range(9)]))


@pytest.mark.whole_run("an assembled four-bar, below, and derivatives of motion under contacts")
def test_derivative_at_a_guess_that_is_the_solution() -> None:
    """G45: no iteration is needed there, and the derivatives are those of the law.

    By the loop's frame -G⁺ ∂error, by the guess 1 - G⁺ G.
    """
    mechanism = four_bar()
    model, q = mechanism.model, assembly_q(mechanism.model, mechanism.cset, mechanism.q).q

    def with_frame(p_AP: jax.Array) -> BoundConstraintSet:
        return eqx.tree_at(lambda c: c.constraints[0].p_AP, mechanism.cset, p_AP)

    def error(p_AP: jax.Array) -> jax.Array:
        return mbjax.constraints_position_error(model, with_frame(p_AP), q)

    p_AP = mechanism.cset.constraints[0].p_AP
    both, iterations = slopes(np.concatenate([np.zeros(3), q - mechanism.q - AWAY, np.zeros(3)]))
    slope, by_guess = both[:, :3], both[:, 3:6]
    G = np.asarray(mbjax.constraints_jacobian(model, mechanism.cset, q))
    assert int(iterations) == 0
    assert np.abs(slope).max() > 0.1
    np.testing.assert_allclose(slope, -np.linalg.pinv(G) @ jax.jit(jax.jacfwd(error))(p_AP), rtol=0, atol=1e-10)
    np.testing.assert_allclose(by_guess, np.eye(3) - np.linalg.pinv(G) @ G, rtol=0, atol=1e-10)


@pytest.mark.whole_run("velocities with weights of zero")
def test_velocities_are_the_nearest_that_keep_the_rows() -> None:
    """G v = 0, v - v_guess along W⁻¹ Gᵀ; redundant rows do no harm; the gradient is that of differences."""
    mechanism = floating_rod()
    model, cset = mechanism.model, mechanism.cset
    q = guesses(mechanism, 0.4, 1)[0]
    rng = np.random.default_rng(1)
    v_guess, weights = jnp.asarray(rng.normal(size=6)), jnp.asarray(rng.uniform(0.5, 2.0, 6))
    v = np.asarray(assembly_qdot(model, cset, q, v_guess, weights))
    G = np.asarray(mbjax.constraints_jacobian(model, cset, q))
    np.testing.assert_allclose(G @ v, 0.0, atol=1e-13)
    projector = np.linalg.pinv(G / np.sqrt(weights))
    expected = v_guess - projector @ (G @ v_guess) / np.sqrt(weights)
    assert relative_error(v, expected) < 1e-12
    check_gradients(lambda x: mbjax.assembly_qdot(model, cset, q, v_guess + x[:6], weights + x[6:]), jnp.zeros(12))


@pytest.mark.whole_run("velocities with weights of zero, above, which keep the rows")
def test_rows_on_velocities_count_for_velocities_alone() -> None:
    """A contact and a rolling row leave q as it is, and hold for v beside the rows with a position."""
    mechanism = floating_rod()
    model, q = mechanism.model, guesses(mechanism, 0.4, 1)[0]
    constraints = mbjax.ConstraintSet()
    constraints.add_contact_constraint("body", np.array([0.1, -0.2, 0.3]), [[0.3, 0.1, 1.0]], name="contact")
    constraints.add_custom_constraint(lambda model, q, v: v[3:4] - q[4] * v[1:2], 1, "velocity", name="rolling")
    on_velocities = constraints.bind(model)
    np.testing.assert_allclose(assembly_q(model, on_velocities, q).q, q, rtol=0, atol=1e-15)
    both = BoundConstraintSet((*mechanism.cset.constraints, *on_velocities.constraints), model.topology)
    found = assembly_q(model, both, q)
    np.testing.assert_allclose(found.q, assembly_q(model, mechanism.cset, q).q, rtol=0, atol=1e-14)
    v = assembly_qdot(model, both, found.q, jnp.arange(1.0, 7.0))
    np.testing.assert_allclose(mbjax.constraints_jacobian(model, both, found.q) @ v, 0.0, rtol=0, atol=1e-12)
    assert np.abs(v).max() > 0.1


def test_inconsistent_states_are_named() -> None:
    mechanism = slider_crank()
    mbjax.check_constraints(mechanism.model, mechanism.cset, mechanism.q, mechanism.v)
    with pytest.raises(mbjax.ModelError, match=r"'loop': position error 0\.0\d+ .*assembly_q"):
        mbjax.check_constraints(mechanism.model, mechanism.cset, mechanism.q.at[2].add(0.05), None)
    with pytest.raises(mbjax.ModelError, match=r"'loop': velocity error 0\.3 "):
        mbjax.check_constraints(mechanism.model, mechanism.cset, mechanism.q, mechanism.v.at[2].add(0.3))
    with pytest.raises(mbjax.ModelError, match="check_constraints: tolerance must be one number, got 'a'"):
        mbjax.check_constraints(mechanism.model, mechanism.cset, mechanism.q, tolerance="a")
    with pytest.raises(mbjax.ModelError, match="'loop': position error nan"):
        mbjax.check_constraints(mechanism.model, mechanism.cset, mechanism.q * jnp.nan)
    off = mechanism.cset.with_active({"loop": False})
    mbjax.check_constraints(mechanism.model, off, mechanism.q.at[2].add(0.05))
    with pytest.raises(mbjax.ModelError, match="outside of jit"):
        jax.jit(mbjax.check_constraints)(mechanism.model, mechanism.cset, mechanism.q)


def test_locked_joints_and_switched_off_rows_stay_out_of_it() -> None:
    mechanism = four_bar()
    locked = mbjax.lock_joint(mechanism.model, "crank_pivot")
    q_guess = mechanism.q + jnp.array([0.1, 0.2, -0.1])
    result = assembly_q(locked, mechanism.cset, q_guess)
    assert int(result.status) == mbjax.AssemblyStatus.CONVERGED
    assert result.q[0] == q_guess[0]
    off = assembly_q(mechanism.model, mechanism.cset.with_active({"loop": False}), q_guess)
    np.testing.assert_array_equal(off.q, q_guess)
    assert float(assembly_qdot(locked, mechanism.cset, result.q, jnp.ones(3))[0]) == 0.0
