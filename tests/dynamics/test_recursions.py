"""The recursions of one world, and of many on a CPU, give what the sums over all mobods give, gradients included."""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.dynamics import calc_reflected_inertia
from mbjax.dynamics.articulated_body.recursion import solve_with_pivots
from mbjax.dynamics.forward_dynamics import articulated_body_recursion
from mbjax.dynamics.mass_matrix_factor import solve_with_both
from mbjax.kinematics import placed, placement_of
from tests.models import ALL_KINDS, relative_error
from tests.test_program_size import chain

from .recursion_models import both_ways, case, largest_error, left_out, positions_both_ways, tree_of

EVERY_FORCE = "weights", "forces", "nothing"
TRIMMED_FORCES = {
    "every joint": ("forces",),
    "gravity on some bodies": ("weights",),
    "many branches": ("nothing",),
}


@pytest.mark.parametrize(
    "name", left_out("every joint", "constant hinge maps", "gravity on some bodies", "many branches", "quadruped")
)
def test_recursions_give_what_sums_give(name: str, request: pytest.FixtureRequest) -> None:
    """Torques, accelerations, the factor and what is placed, to rounding; a locked velocity has none.

    Trimmed: one kind of forces on each tree.
    """
    model, q, v, vdot, tau, _, F = case(name)
    kinds = TRIMMED_FORCES[name] if request.config.getoption("--trimmed") else EVERY_FORCE
    for forces, ways in jax.jit(lambda *x: both_ways(model, *x, kinds=kinds))(q, v, vdot, tau, F).items():
        assert largest_error(ways["recursion"], ways["sums"]) < 1e-12, forces
        assert ways["recursion"][1][1][-1] == 0.0


@pytest.mark.parametrize(
    "name", left_out("every joint, and many branches", "constant hinge maps", "gravity on some bodies", "quadruped")
)
def test_recursions_at_positions_alone(name: str) -> None:
    """Poses and mass matrix, also where bodies are welded together and joints have several directions."""
    model, q, v, *_ = case(name)
    ways = jax.jit(lambda *x: positions_both_ways(model, *x))(q, v)
    (R_WB, p_WB), M = ways["recursion"]
    assert largest_error(((R_WB.reshape(-1, 3, 3), p_WB), M), ways["sums"]) < 1e-12
    np.testing.assert_array_equal(M, M.T)
    np.linalg.cholesky(M)


IN_CHUNKS = "neighbours of a bad world, as alone, in tests/execution/test_worlds.py"


@pytest.mark.whole_run("neighbours of a bad world, and batches of batches, as alone, in tests/execution/test_worlds.py")
@pytest.mark.parametrize(
    "name", left_out(IN_CHUNKS, "constant hinge maps", "gravity on some bodies", "many branches", "quadruped")
)
def test_many_worlds_as_alone(name: str, request: pytest.FixtureRequest) -> None:
    """Every public function that has a recursion, 100 worlds at a time, a few (whole run) and one by one."""
    model, *_ = case(name)
    states = jax.vmap(lambda key: mbjax.random_state(model, key))(jax.random.split(jax.random.key(6), 100))
    tau = jax.random.normal(jax.random.key(7), states.v.shape)

    def everything(q, v, tau):
        poses = mbjax.body_poses_in_world(model, q)
        return (
            mbjax.forward_dynamics(model, q, v, tau, force_elements=True),
            mbjax.inverse_dynamics(model, q, v, tau, force_elements=True),
            mbjax.mass_matrix(model, q),
            (poses.rotation, poses.translation),
        )

    together = jax.jit(jax.vmap(everything))
    one_by_one = jax.jit(lambda *x: jax.lax.map(lambda y: everything(*y), x))(states.q, states.v, tau)
    assert largest_error(together(states.q, states.v, tau), one_by_one) < 1e-12
    if not request.config.getoption("--trimmed"):
        few = together(states.q[:20], states.v[:20], tau[:20])
        assert largest_error(few, jax.tree.map(lambda x: x[:20], one_by_one)) < 1e-12


@pytest.mark.whole_run("recursions give what sums give, and are kernels, above and below")
@pytest.mark.parametrize("worlds", [None, 3])
def test_long_chains(worlds: int | None) -> None:
    """XLA shares long calculations out to threads, which kernels have not: none of theirs is so long.

    Links keep their length, and M v̇ + bias = tau, of terms that are 10^12 times as large as tau.
    """
    model, x = chain(800), jnp.linspace(-1.0, 1.0, 800)

    def everything(q):
        M, poses = mbjax.mass_matrix(model, q), mbjax.body_poses_in_world(model, q)
        vdot = mbjax.forward_dynamics(model, q, q, q, force_elements=True)
        bias = mbjax.inverse_dynamics(model, q, q, jnp.zeros_like(q), force_elements=True)
        return M, poses.translation, vdot, bias

    function = everything if worlds is None else jax.vmap(everything)
    M, translation, vdot, bias = jax.jit(function)(x if worlds is None else jnp.stack([x] * worlds))
    np.testing.assert_array_equal(M, jnp.swapaxes(M, -1, -2))
    np.testing.assert_allclose(jnp.linalg.norm(jnp.diff(translation[..., 1:, :], axis=-2), axis=-1), 0.3, rtol=1e-12)
    terms = jnp.einsum("...ij,...j->...i", jnp.abs(M), jnp.abs(vdot))
    tau = jnp.einsum("...ij,...j->...i", M, vdot) + bias
    assert np.max(np.abs(tau - x)) < 1e-14 * np.max(terms)


@pytest.mark.whole_run("Christoffel symbols in test_identities.py; those by leaves in test_recursions_of_own_models")
def test_derivatives_of_poses_and_mass_matrix(request: pytest.FixtureRequest) -> None:
    """Forward and reverse mode and differences, by q and by masses; whole run: second ones both ways round."""
    model, q, _, _, _, weight, _ = case("constant hinge maps")
    dq = mbjax.velocity_to_qdot(model, q, jnp.linspace(-1.0, 1.0, model.num_velocities))
    masses = model.parameters.body_mass

    def cost(q, masses):
        heavier = dataclasses.replace(model, parameters=dataclasses.replace(model.parameters, body_mass=masses))
        R = mbjax.body_poses_in_world(heavier, q).rotation
        return weight @ mbjax.mass_matrix(heavier, q) @ weight + jnp.sum(jnp.sin(R * jnp.arange(9.0).reshape(3, 3)))

    directions = (dq, 0.1 * masses)

    @jax.jit
    def derivatives(q, masses):
        gradient = jax.grad(cost, (0, 1))
        reverse = sum(jnp.vdot(a, b) for a, b in zip(gradient(q, masses), directions, strict=True))
        forward = jax.jvp(cost, (q, masses), directions)[1]
        if request.config.getoption("--trimmed"):
            return reverse, forward, forward, forward
        over_reverse = jax.jvp(lambda q: jnp.vdot(gradient(q, masses)[1], masses), (q,), (dq,))[1]
        over_forward = jax.grad(lambda m: jax.jvp(lambda q: cost(q, m), (q,), (dq,))[1])(masses) @ masses
        return reverse, forward, over_reverse, over_forward

    reverse, forward, over_reverse, over_forward = derivatives(q, masses)
    assert relative_error(reverse, forward) < 1e-12
    assert relative_error(over_reverse, over_forward) < 1e-11
    value, step = jax.jit(cost), 1e-6
    ahead, behind = (value(q + s * directions[0], masses + s * directions[1]) for s in (step, -step))
    assert relative_error(reverse, (ahead - behind) / (2.0 * step)) < 1e-7


@pytest.mark.whole_run("double precision, and what stays single, in g53 of tests/gradients")
def test_recursions_in_single_precision() -> None:
    """As exact as the sums, both beside double precision."""
    arguments = case("humanoid")
    model, q, v, vdot, tau, _, F = arguments
    exact = jax.jit(lambda *x: both_ways(model, *x))(q, v, vdot, tau, F)["weights"]["sums"]
    single = mbjax.astype(model, jnp.float32)
    inputs = (x.astype(jnp.float32) for x in (q, v, vdot, tau, F))
    ways = jax.jit(lambda *x: both_ways(single, *x))(*inputs)["weights"]

    def torques_and_accelerations(found) -> tuple:
        return found[0], found[1][1]

    exact, *singles = map(torques_and_accelerations, (exact, ways["recursion"], ways["sums"]))
    for expected, by_recursion, by_sums in zip(exact, *singles, strict=True):
        assert relative_error(by_recursion, expected) < 4.0 * relative_error(by_sums, expected) + 1e-6


KINDS = [kind for kind in ALL_KINDS if kind != "weld"]


@pytest.mark.whole_run("trees of every joint")
@pytest.mark.parametrize("kind", KINDS)
def test_trees_of_one_kind(kind: str) -> None:
    """Where no joint turns, all slide or none has an axis; what floats are roots, one beside the other."""
    model = tree_of([kind] * 3, lambda i: -1 if kind.endswith("floating") else i - 1)
    state, keys = mbjax.random_state(model, jax.random.key(3)), jax.random.split(jax.random.key(4), 2)
    vdot, tau = jax.random.normal(keys[0], (2, model.num_velocities))
    F = jax.random.normal(keys[1], (6, model.topology.num_mobods))
    for ways in jax.jit(lambda *x: both_ways(model, *x))(state.q, state.v, vdot, tau, F).values():
        assert largest_error(ways["recursion"], ways["sums"]) < 1e-12
    ways = jax.jit(lambda *x: positions_both_ways(model, *x))(state.q, state.v)
    (R_WB, p_WB), M = ways["recursion"]
    assert largest_error(((R_WB.reshape(-1, 3, 3), p_WB), M), ways["sums"]) < 1e-12


@pytest.mark.whole_run("recursions give what sums give, with kernels, above")
def test_sums_where_there_are_no_kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on other devices: public functions with forces and without, their gradients, and of worlds, to rounding."""
    model, q, v, _, tau, weight, _ = case("constant hinge maps")
    F = jax.random.normal(jax.random.key(8), (model.num_bodies, 6))
    forces = mbjax.MultibodyForces(jnp.zeros(model.num_velocities), F)

    trimmed = request.config.getoption("--trimmed")  # leaves out force elements: each world as alone has them

    def dynamics(q, v, x):
        ways = [{"forces": forces}] if trimmed else [{"forces": forces}, {"force_elements": True}]
        functions = mbjax.forward_dynamics, mbjax.inverse_dynamics
        return [function(model, q, v, x, **given) for function in functions for given in ways]

    def everything(q, v, x):
        values, pull = jax.vjp(dynamics, q, v, x)
        return values, pull([weight] * len(values)), mbjax.body_poses_in_world(model, q).translation

    found = []
    worlds = [jnp.stack([x, 0.9 * x]) for x in (q, v, tau)]
    for switch in ("1", "0"):
        monkeypatch.setenv("MBJAX_ONE_KERNEL", switch)
        jax.clear_caches()
        programs = [(jax.jit(jax.vmap(everything)), worlds)]
        if not trimmed:
            programs.append((jax.jit(everything), [q, v, tau]))
        lowered = [(program.lower(*given), given) for program, given in programs]
        assert all(("xla_cpu_small_call" in program.as_text()) == (switch == "1") for program, _ in lowered)
        found.append([program.compile()(*given) for program, given in lowered])
    jax.clear_caches()
    assert largest_error(*found) < 1e-11


class Heavier(mbjax.AbstractForceElement):
    """Holds up what the robot would weigh with a heavier body: asks of a model that it changes."""

    body: str = eqx.field(static=True)

    def resolve(self, plant):
        del plant
        return self

    def forces(self, model, position, velocity, q, v):
        del position, velocity, v
        heavier = mbjax.set_mass(model, self.body, 2.0 * mbjax.mass(model, self.body))
        total = mbjax.MultibodyForces.zero(model)
        return dataclasses.replace(total, generalized=-mbjax.gravity_generalized_forces(heavier, q))

    def potential_energy(self, model, position, q):
        return jnp.zeros((), model.dtype)


@pytest.mark.whole_run("a force of one's own in test_signed_distances.py, and shared placements in test_worlds.py")
def test_force_elements_may_change_the_model() -> None:
    """What follows from a model alone is not that of another one, within a function of the user's either."""
    model, q, v, vdot, *_ = case("constant hinge maps")
    body = model.body_names[2]
    changed = dataclasses.replace(model, force_elements=(Heavier(body),))
    heavier = mbjax.set_mass(model, body, 2.0 * mbjax.mass(model, body))

    def torque(model, force_elements, q):
        return mbjax.inverse_dynamics(model, q, v, vdot, force_elements=force_elements)

    found = jax.jit(functools.partial(torque, changed, True))(q) - jax.jit(functools.partial(torque, model, True))(q)
    assert relative_error(found, mbjax.gravity_generalized_forces(heavier, q)) < 1e-12


@pytest.mark.whole_run("matrices of steps that are solved, in tests/contact/test_newton_matrix.py")
def test_solving_again_with_the_factor() -> None:
    """By recursion and by the rolled loops of arrays, of one world and under `vmap`."""
    model, q, v, _, tau, weight, _ = case("quadruped")
    rhs = jnp.stack([tau, weight])

    @jax.jit
    def both(q, rhs):
        locked = jnp.zeros(model.num_velocities, bool)
        diagonal = calc_reflected_inertia(model) + 0.1
        factor, *_ = articulated_body_recursion(model, q, v, tau, None, diagonal, locked, False)
        one, other = (functools.partial(f, model.topology, *factor[:2]) for f in (solve_with_pivots, solve_with_both))
        M = mbjax.mass_matrix(model, q) + jnp.diag(diagonal - calc_reflected_inertia(model))
        return one(rhs[0]), other(rhs[0]), jax.vmap(one)(rhs), jnp.linalg.solve(M, rhs.T).T

    one, other, several, expected = both(q, rhs)
    assert relative_error(one, other) < 1e-12
    assert relative_error(several, expected) < 1e-10


@pytest.mark.whole_run("recursions give what sums give, above: each places its model")
def test_placement_is_found_once_where_the_model_is_known() -> None:
    """A constant of the program, in loops too; with a model that is traced it belongs to the program."""
    model, q, v, *_ = case("one direction a joint")
    assert placement_of(placed(model)) is None  # nothing is traced here

    def rolled(model, q, v):
        return jax.lax.fori_loop(0, 3, lambda _, v: v + 1e-3 * mbjax.forward_dynamics(model, q, v, v), v)

    closed = jax.jit(functools.partial(rolled, model)).lower(q, v).as_text()
    passed = jax.jit(rolled).lower(model, q, v).as_text()
    assert closed.count(" = stablehlo.") < passed.count(" = stablehlo.")
    np.testing.assert_allclose(
        jax.jit(functools.partial(rolled, model))(q, v), jax.jit(rolled)(model, q, v), rtol=1e-12
    )


@pytest.mark.whole_run("derivatives where worlds differ in one leaf, and those by every leaf in test_leaf_coverage.py")
def test_a_placed_model_moves_with_its_leaves() -> None:
    """The gradient by the model passes through its placement: forward mode, reverse mode and differences agree."""
    model, q, v, _, tau, weight, _ = case("constant hinge maps")
    direction = jax.tree.map(lambda x: 0.1 * jax.random.normal(jax.random.key(x.size), x.shape), model.parameters)

    def cost(step):
        parameters = jax.tree.map(lambda x, d: x + step * d, model.parameters, direction)
        changed = dataclasses.replace(model, parameters=parameters)
        return jnp.sum(weight * mbjax.forward_dynamics(changed, q, v, tau, force_elements=True))

    step = 1e-6

    @jax.jit
    def derivatives(steps):
        values, reverse = jax.lax.map(jax.value_and_grad(cost), steps)
        return values, reverse[0], jax.jvp(cost, (steps[0],), (jnp.ones(()),))[1]

    values, reverse, forward = derivatives(jnp.array([0.0, step, -step]))
    assert relative_error(reverse, forward) < 1e-12
    assert relative_error(reverse, (values[1] - values[2]) / (2.0 * step)) < 1e-7


def test_recursions_of_worlds_are_kernels_of_their_own() -> None:
    """On a CPU, whatever the robot: each loop over the tree one kernel."""
    model, q, v, _, tau, *_ = case("quadruped")
    worlds = (jnp.stack([x] * 64) for x in (q, v, tau))

    def accelerations(q, v, tau):
        return mbjax.forward_dynamics(model, q, v, tau, force_elements=True)

    program = jax.jit(jax.vmap(accelerations)).lower(*worlds).compile().as_text()
    assert program.count('xla_cpu_small_call="true"') >= 3
