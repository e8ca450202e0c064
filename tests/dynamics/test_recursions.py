"""The recursions of one world, and of many on a CPU, give what the sums over all mobods give, gradients included."""

import dataclasses
import functools
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.dynamics import calc_reflected_inertia, calc_tree_motion
from mbjax.dynamics.articulated_body.recursion import solve_with_pivots
from mbjax.dynamics.composite_body.recursion import mass_matrix_by_recursion, mass_matrix_by_sums
from mbjax.dynamics.forward_dynamics import ForwardDynamicsTerms, articulated_body_recursion, solve_by_sums_over_tree
from mbjax.dynamics.mass_matrix_factor import solve_with_both
from mbjax.dynamics.newton_euler.recursion import calc_motion, calc_torques
from mbjax.dynamics.newton_euler.sums import moved_to_mobods, newton_euler
from mbjax.dynamics.records.direction_rows import PlacedRows, calc_placed_inertia
from mbjax.execution.recursions import walk_plan
from mbjax.forces import calc_gravity_on_mobods
from mbjax.kinematics import calc_position_kinematics, placed, placement_of
from mbjax.kinematics.recursive_poses import poses_by_sums, poses_outward
from mbjax.model import locked_velocities
from mbjax.topology import direction_parents
from tests.gradients.checks import compiled
from tests.models import ALL_KINDS, JOINT_CLASSES, SCREW_PITCH, load_robot, random_tree, relative_error
from tests.test_program_size import chain

from .test_jacobians import with_elements

CONSTANT = ("planar", "screw", "quaternion_floating", "revolute", "prismatic")  # hinge maps in F
G1 = pytest.mark.whole_run("a quadruped, and trees of every joint")
MODELS = {
    "every joint": lambda: random_tree(11, ALL_KINDS).model,
    "constant hinge maps": lambda: random_tree(5, CONSTANT).model,
    "one direction a joint": lambda: load_robot("panda_description/urdf/panda.urdf"),
    "gravity on some bodies": with_elements,
    "many branches": lambda: branched(5),
    "many branches of every kind": lambda: branched(5, ("revolute", "planar", "ball_rpy", "prismatic", "screw")),
    "quadruped": lambda: load_robot("a1_description/urdf/a1.urdf", "floating"),
    "humanoid": lambda: load_robot("g1_description/urdf/g1_29dof_rev_1_0.urdf", "floating"),
}
LARGE = "humanoid", "many branches of every kind"
ARM = pytest.mark.whole_run("many branches of hinges, and slides among constant hinge maps")
NAMES = [
    pytest.param(name, marks=[G1] * (name in LARGE) + [ARM] * (name == "one direction a joint")) for name in MODELS
]


def left_out(instead: str, *names: str) -> list:
    """NAMES, of which the trimmed run leaves `names` out too."""
    mark = pytest.mark.whole_run(instead)
    return [pytest.param(*x.values, marks=[*x.marks, mark] if x.values[0] in names else x.marks) for x in NAMES]


def branched(height: int, kinds: tuple[str, ...] = ("revolute",)) -> mbjax.MultibodyModel:
    """A tree in which each body has two more: so many parents wait that it is not walked as numbered."""
    model = tree_of([kinds[i % len(kinds)] for i in range(2**height - 1)], lambda i: (i - 1) // 2)
    assert walk_plan(direction_parents(model.topology)).order is not None
    return model


def tree_of(kinds: Sequence[str], parent: Callable[[int], int]) -> mbjax.MultibodyModel:
    """A joint of each kind and nothing else, on the body `parent(i)`, or on the world where that is negative."""
    plant = mbjax.MultibodyPlant()
    for i, kind in enumerate(kinds):
        plant.add_rigid_body(f"b{i}", mbjax.SpatialInertia.solid_box_with_mass(1.0 + 0.1 * i, 0.1, 0.2, 0.3))
        joint, inboard = JOINT_CLASSES[kind][0], "world" if parent(i) < 0 else f"b{parent(i)}"
        of_kind = {"axis": [1.0, 0.3 * i, -0.5]} if joint.has_axis else {}
        of_kind |= {"screw_pitch": SCREW_PITCH} if joint.has_pitch else {}
        X_PF, X_BM = [0.1, 0.2 - 0.01 * i, 0.3], [0.05, 0.0, 0.02 * i]
        plant.add_joint(joint(f"j{i}", inboard, f"b{i}", X_PF=X_PF, X_BM=X_BM, **of_kind))
    return plant.finalize()


@functools.cache
def model_of(name: str) -> mbjax.MultibodyModel:
    """Without what follows others: those models have no recursion."""
    model = MODELS[name]()
    assert not model.topology.followers
    return model


@functools.cache
def case(name: str) -> tuple:
    """A model with a state, torques and forces on every mobod."""
    model = model_of(name)
    state, keys = mbjax.random_state(model, jax.random.key(3)), jax.random.split(jax.random.key(4), 4)
    vdot, tau, weight = jax.random.normal(keys[0], (3, model.num_velocities))
    F = 5.0 * jax.random.normal(keys[1], (6, model.topology.num_mobods))
    return model, state.q, state.v, vdot, tau, weight, F


def both_ways(model, q, v, vdot, tau, F) -> dict:
    """Inverse and forward dynamics under weights alone, other forces and none, by recursion and by sums.

    The last velocity is locked.
    """
    position = calc_position_kinematics(model, q)
    motion = calc_tree_motion(model, position, q, v)
    locked = locked_velocities(model).at[-1].set(True)
    diagonal = calc_reflected_inertia(model) + 0.1
    found = {}
    for name, weights, F_T in (
        ("weights", True, calc_gravity_on_mobods(model, position)),
        ("forces", False, F),
        ("nothing", False, None),
    ):
        F_W = F_T if weights or F_T is None else moved_to_mobods(position, F_T, -1.0)
        F_W = None if weights else F_W
        terms = ForwardDynamicsTerms(motion, tau, F_T, diagonal, locked)
        factor, solved = solve_by_sums_over_tree(terms)
        placed_rows = PlacedRows(factor.directions, calc_placed_inertia(model.topology, motion.inertia_W))
        tau_of_motion = calc_torques(model.topology, calc_motion(model, q, v, vdot, weights, F_W))
        found[name] = {
            "recursion": (tau_of_motion, articulated_body_recursion(model, q, v, tau, F_W, diagonal, locked, weights)),
            "sums": (newton_euler(motion, vdot, F_T), (factor, solved, placed_rows)),
        }
    return found


def positions_both_ways(model, q, v) -> dict:
    """Poses of all bodies and the mass matrix."""
    diagonal = calc_reflected_inertia(model) + 0.1
    return {
        "recursion": (poses_outward(model, q), mass_matrix_by_recursion(model, q, diagonal)),
        "sums": (poses_by_sums(model, q), mass_matrix_by_sums(model, q, diagonal)),
    }


def largest_error(found, expected) -> float:
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    return max(relative_error(a, b) for a, b in pairs)


@pytest.mark.parametrize("name", left_out("the other trees", "constant hinge maps", "quadruped"))
def test_recursions_give_what_sums_give(name: str) -> None:
    """Torques, accelerations, the factor and what is placed, to rounding; a locked velocity has none."""
    model, q, v, vdot, tau, _, F = case(name)
    for forces, ways in jax.jit(lambda *x: both_ways(model, *x))(q, v, vdot, tau, F).items():
        assert largest_error(ways["recursion"], ways["sums"]) < 1e-12, forces
        assert ways["recursion"][1][1][-1] == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_recursions_at_positions_alone(name: str) -> None:
    """Poses and mass matrix, also where bodies are welded together and joints have several directions."""
    model, q, v, *_ = case(name)
    ways = jax.jit(lambda *x: positions_both_ways(model, *x))(q, v)
    (R_WB, p_WB), M = ways["recursion"]
    assert largest_error(((R_WB.reshape(-1, 3, 3), p_WB), M), ways["sums"]) < 1e-12
    np.testing.assert_array_equal(M, M.T)
    np.linalg.cholesky(M)


IN_CHUNKS = "two chunks of constant hinge maps in test_many_worlds.py, and every joint"


@pytest.mark.parametrize(
    "name", left_out(IN_CHUNKS, "constant hinge maps", "gravity on some bodies", "many branches", "quadruped")
)
def test_many_worlds_as_alone(name: str) -> None:
    """Every public function that has a recursion, 100 worlds at a time, a few and one by one."""
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
    few = together(states.q[:20], states.v[:20], tau[:20])
    assert largest_error(few, jax.tree.map(lambda x: x[:20], one_by_one)) < 1e-12


@pytest.mark.parametrize("worlds", [None, pytest.param(3, marks=pytest.mark.whole_run("one world"))])
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


@pytest.mark.whole_run("many worlds in single precision")
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


OWN = "body_mass", "gravity", "frame_translation", "joint_axis", "screw_pitch", "joint_damping"
OWN_TRIMMED = OWN[:2]  # inertias and forces; frames and axes are in the test below


@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        ("constant hinge maps", "1"),
        pytest.param("constant hinge maps", "0", marks=G1),
        pytest.param("every joint", "1", marks=G1),
        pytest.param("quadruped", "1", marks=G1),
        pytest.param("quadruped", "0", marks=G1),
    ],
)
def test_worlds_with_models_of_their_own(
    name: str, kernels: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Of each world its own masses or gravity beside what all share, positions too; whole run: frames and axes too."""
    own = OWN_TRIMMED if request.config.getoption("--trimmed") else OWN
    model, q, v, vdot, *_ = case(name)
    scales = np.linspace(0.5, 2.0, 3)
    monkeypatch.setenv("MBJAX_ONE_KERNEL", kernels)
    jax.clear_caches()

    def with_scaled(leaf, scale):
        scaled = {leaf: getattr(model.parameters, leaf) * scale}
        return dataclasses.replace(model, parameters=dataclasses.replace(model.parameters, **scaled))

    def everything(model):
        accelerations = mbjax.forward_dynamics(model, q, v, vdot, force_elements=True)
        torques = mbjax.inverse_dynamics(model, q, v, vdot, force_elements=True), mbjax.bias_term(model, q, v)
        poses = mbjax.body_poses_in_world(model, q)
        return accelerations, torques, mbjax.mass_matrix(model, q), (poses.rotation, poses.translation)

    alone = compiled(everything)
    for leaf in (leaf for leaf in own if getattr(model.parameters, leaf).size):
        together = compiled(jax.vmap(lambda scale, leaf=leaf: everything(with_scaled(leaf, scale))))(scales)
        for i in (0, 2):
            found = jax.tree.map(lambda x, i=i: x[i], together)
            assert largest_error(found, alone(with_scaled(leaf, scales[i]))) < 1e-12, leaf
    jax.clear_caches()


@pytest.mark.parametrize("kernels", ["1", pytest.param("0", marks=G1)])
def test_derivatives_where_worlds_differ_in_one_leaf_alone(kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All share positions, of an arm stretched out: forward and reverse mode, differences, and each as alone."""
    model = mbjax.load(mbjax.reference_models.path("arm"))
    q, v = jnp.zeros(model.num_positions), jnp.linspace(-1.0, 1.0, model.num_velocities)
    results = {
        "frame_translation": lambda model: mbjax.body_poses_in_world(model, q).translation,
        "joint_axis": lambda model: mbjax.mass_matrix(model, q),
        "rotor_inertia": lambda model: mbjax.mass_matrix(model, q),
        "gravity": lambda model: mbjax.inverse_dynamics(model, q, v, v, force_elements=True),
    }
    monkeypatch.setenv("MBJAX_ONE_KERNEL", kernels)
    jax.clear_caches()
    for leaf, result in results.items():
        given = getattr(model.parameters, leaf)
        assert given.size
        direction = np.max(np.abs(given)) * jax.random.normal(jax.random.key(given.size), given.shape)

        def cost(step, leaf=leaf, result=result, given=given, direction=direction):
            parameters = dataclasses.replace(model.parameters, **{leaf: given + step * direction})
            found = jnp.ravel(result(dataclasses.replace(model, parameters=parameters)))
            return jnp.sum(jnp.cos(jnp.arange(found.size)) * found**2)

        steps, h = jnp.asarray([0.0, 0.1, 0.2]), 1e-5
        points = jnp.concatenate([steps, steps + h, steps - h])
        values, reverse = compiled(jax.vmap(jax.value_and_grad(cost)))(points)
        forward = compiled(jax.vmap(lambda step, cost=cost: jax.jvp(cost, (step,), (jnp.ones(()),))[1]))(steps)
        assert relative_error(reverse[:3], forward) < 1e-12, leaf
        assert relative_error(reverse[:3], (values[3:6] - values[6:]) / (2.0 * h)) < 1e-7, leaf
        assert relative_error(values[2], compiled(cost)(steps[2])) < 1e-12, leaf
    jax.clear_caches()


@pytest.mark.parametrize("kernels", ["1", pytest.param("0", marks=G1)])
def test_worlds_that_share_all_but_one_argument(
    kernels: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Values and gradients of forward and inverse dynamics; trimmed: of forward dynamics, by q and tau."""
    monkeypatch.setenv("MBJAX_ONE_KERNEL", kernels)
    jax.clear_caches()
    model, q, v, vdot, tau, weight, _ = case("constant hinge maps")

    def acceleration(q, v, tau):
        return mbjax.forward_dynamics(model, q, v, tau, force_elements=True)

    def torque(q, v, vdot):
        return mbjax.inverse_dynamics(model, q, v, vdot, force_elements=True)

    functions = ((acceleration, tau), (torque, vdot))
    for function, last in functions[:1] if request.config.getoption("--trimmed") else functions:
        arguments = q, v, last

        def gradient(*x, function=function):
            return function(*x), jax.grad(lambda *x: jnp.sum(weight * function(*x)), (0, 1, 2))(*x)

        one = jax.jit(gradient)
        for i in (0, 2) if request.config.getoption("--trimmed") else range(3):
            axes = tuple(0 if k == i else None for k in range(3))
            given = [jnp.stack([x, 0.9 * x, 1.1 * x]) if k == i else x for k, x in enumerate(arguments)]
            together = jax.jit(jax.vmap(gradient, axes))(*given)
            alone = one(*(x[2] if k == i else x for k, x in enumerate(given)))
            assert largest_error(jax.tree.map(lambda x: x[2], together), alone) < 1e-11, (function, i)
    jax.clear_caches()


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


def test_a_placed_model_moves_with_its_leaves() -> None:
    """The gradient by the model passes through its placement: forward mode, reverse mode and differences agree."""
    model, q, v, _, tau, weight, _ = case("constant hinge maps")
    direction = jax.tree.map(lambda x: 0.1 * jax.random.normal(jax.random.key(x.size), x.shape), model.parameters)

    def cost(step):
        parameters = jax.tree.map(lambda x, d: x + step * d, model.parameters, direction)
        changed = dataclasses.replace(model, parameters=parameters)
        return jnp.sum(weight * mbjax.forward_dynamics(changed, q, v, tau, force_elements=True))

    value, zero, step = jax.jit(cost), jnp.zeros(()), 1e-6
    reverse, forward = jax.jit(jax.grad(cost))(zero), jax.jit(lambda x: jax.jvp(cost, (x,), (jnp.ones(()),))[1])(zero)
    assert relative_error(reverse, forward) < 1e-12
    assert relative_error(reverse, (value(step) - value(-step)) / (2.0 * step)) < 1e-7


def test_recursions_of_worlds_are_kernels_of_their_own() -> None:
    """On a CPU, whatever the robot: each loop over the tree one kernel."""
    model, q, v, _, tau, *_ = case("quadruped")
    worlds = (jnp.stack([x] * 64) for x in (q, v, tau))

    def accelerations(q, v, tau):
        return mbjax.forward_dynamics(model, q, v, tau, force_elements=True)

    program = jax.jit(jax.vmap(accelerations)).lower(*worlds).compile().as_text()
    assert program.count('xla_cpu_small_call="true"') >= 3
