"""The forms of the step's matrix beside the derivative of its residual, and the laws' two ways to say the same."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.contact import calc_contact_points, find_moved_bodies
from mbjax.contact.forms import choose
from mbjax.contact.forms.all_points import AllPoints
from mbjax.contact.forms.deepest_points import DeepestPoints
from mbjax.contact.forms.points_on_tree import PointsOnDeepTree, PointsOnTree
from mbjax.contact.laws.sap_law import SapLaw
from mbjax.contact.movers.contact_jacobian import calc_contact_jacobian
from mbjax.contact.movers.contact_paths import ContactPaths, find_contact_paths
from mbjax.contact.movers.moved_bodies import find_slots
from mbjax.contact.newton.contact_hessian import contact_hessian_of_pairs
from mbjax.contact.search.convex_problem import calc_problem_residual, calc_row_motion, calc_stiffness
from mbjax.geometry import Box, Geometry, HalfSpace, ProximityProperties, Sphere
from mbjax.kinematics import calc_position_kinematics
from mbjax.simulation.discrete_acceleration import calc_step_problem
from mbjax.simulation.ports import as_inputs
from mbjax.spatial.component_algebra import symmetric_matrix
from tests.contact.test_quadruped import quadruped, standing

APPROXIMATIONS = ("sap", "similar", "lagged")
OTHER_LAWS = pytest.mark.whole_run("sap; balls roll under the others beside Drake's in test_step_against_drake.py")


def test_every_form_of_the_matrix_is_the_derivative_of_the_residual() -> None:
    """Of A1 on its feet, with a knee locked: by the branches of the tree, as a whole, and by articulated bodies."""
    model = quadruped()
    state, height = standing(model)
    v = jnp.asarray(np.random.default_rng(0).normal(scale=0.3, size=model.num_velocities))
    model = mbjax.lock_joint(model, "FL_calf_joint")
    state = mbjax.State(state.q.at[height].add(-5e-3), v, state.time)
    topology, n = model.topology, model.num_velocities

    @jax.jit
    def products(x: jax.Array) -> Any:
        problem, *_ = calc_step_problem(model, state, as_inputs(model, None))
        H = jax.jacfwd(lambda a: calc_problem_residual(topology, problem, a))(x)
        stiffness = calc_stiffness(problem, calc_row_motion(problem, jnp.where(problem.terms.locked, 0.0, x)))
        matrices = [x.newton_matrix(topology) for x in by_forms(problem, (PointsOnTree, PointsOnDeepTree))]
        b = jnp.where(problem.terms.locked, 0.0, jnp.linspace(-1.0, 1.0, n))
        free = jnp.where(problem.terms.locked, 0.0, x)
        solved = [(x.solve(stiffness, b), x.solver(stiffness)(b)) for x in matrices]
        return H, b, solved, [x.inertia_product(free) for x in matrices], stiffness.contacts

    H, b, solved, inertial, stiffness = products(jnp.linspace(-30.0, 20.0, n))
    assert np.sum(np.any(np.asarray(stiffness) != 0.0, axis=0)) >= 2
    for x in jax.tree.leaves(solved):
        np.testing.assert_allclose(x, np.linalg.solve(H, b), rtol=0.0, atol=1e-9 * float(jnp.abs(x).max()))
    for x in inertial[1:]:
        np.testing.assert_allclose(x, inertial[0], rtol=0.0, atol=1e-12 * float(jnp.abs(x).max()))


def by_forms(problem: Any, forms: tuple = ()) -> list[Any]:
    """The problem with its points side by side in other forms: dense by their paths, and by their Jacobian."""
    v, law, moved = problem.contacts.v_AcBc_W, problem.contacts.law, problem.contacts.moved
    contacts = [form(v, law, moved) for form in (*forms, AllPoints)]
    contacts.append(DeepestPoints(v, law, calc_contact_jacobian(moved)))
    return [dataclasses.replace(problem, contacts=x) for x in contacts]


@pytest.mark.whole_run("every form of the matrix is the derivative of the residual")
def test_contacts_do_what_their_jacobian_says() -> None:
    """An arm between two balls of the world, in pairs where it comes first and where it comes second."""
    plant = mbjax.MultibodyPlant(2e-3)
    inertia = mbjax.SpatialInertia.solid_sphere_with_mass(0.3, 0.1)
    for body, parent, kind in (("upper", "world", mbjax.BallRpyJoint), ("lower", "upper", mbjax.RevoluteJoint)):
        plant.add_rigid_body(body, inertia)
        plant.add_joint(kind(f"to_{body}", parent, body, X_BM=(-0.3, 0.0, 0.1)))
    for body, name, x in (
        ("world", "first", 0.4),
        ("upper", "one", 0.1),
        ("lower", "two", 0.2),
        ("world", "last", 0.9),
    ):
        plant.register_collision_geometry(body, Geometry(name, Sphere(0.1), translation=(x, 0.2, 0.3)), 0.6)
    paths = compare_with_jacobian(plant.finalize())
    assert paths.is_single
    assert paths.is_A.any()
    assert not paths.is_A.all()


@pytest.mark.whole_run("every form of the matrix is the derivative of the residual")
def test_contacts_between_any_two_bodies_do_what_their_jacobian_says() -> None:
    """Boxes and balls of three trees: of one branch, of two, of two trees, and with the ground."""
    paths = compare_with_jacobian(three_trees())
    assert (paths.forth.any(0) & paths.back.any(0)).any()
    assert len(paths.points) > paths.num_points
    assert any(slots > 1 for _, _, slots in find_slots(tuple(paths.of_sides.tolist())))  # which are added up


def three_trees(**settings: Any) -> mbjax.MultibodyModel:
    """A floating box with a ball on either side and a box beyond one, a ball, and a box that slides on the ground."""
    plant, rng = mbjax.MultibodyPlant(2e-3, **settings), np.random.default_rng(0)
    rubber = ProximityProperties(dynamic_friction=0.5, point_stiffness=1e4, relaxation_time=0.01)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), rubber)
    for body, parent, joint, shape in (
        ("trunk", "world", mbjax.QuaternionFloatingJoint, Box((0.5, 0.5, 0.5))),
        ("left", "trunk", mbjax.RevoluteJoint, Sphere(0.3)),
        ("right", "trunk", mbjax.BallRpyJoint, Sphere(0.3)),
        ("hand", "right", mbjax.PrismaticJoint, Box((0.5, 0.5, 0.5))),
        ("ball", "world", mbjax.QuaternionFloatingJoint, Sphere(0.3)),
        ("cart", "world", mbjax.PlanarJoint, Box((0.5, 0.5, 0.5))),
    ):
        plant.add_rigid_body(body, mbjax.SpatialInertia.solid_box_with_mass(1.0, 0.2, 0.2, 0.2))
        plant.add_joint(joint(f"to_{body}", parent, body, X_PF=0.1 * rng.normal(size=3)))
        plant.register_collision_geometry(body, Geometry(body, shape), rubber)
    return plant.finalize()


def compare_with_jacobian(model: mbjax.MultibodyModel) -> ContactPaths:
    """Velocities, forces and responses by paths and by a Jacobian, and a matrix of either beside the residual's."""
    rng, n = np.random.default_rng(2), model.num_velocities
    state, topology = mbjax.default_state(model), model.topology
    q = state.q + 0.05 * rng.normal(size=state.q.shape)

    @jax.jit
    @jax.vmap
    def compare(x: jax.Array, dv: jax.Array) -> Any:
        problem, *_ = calc_step_problem(model, mbjax.State(q, 0.1 * dv, state.time), as_inputs(model, None))
        by_paths, by_jacobian = by_forms(problem)
        moved, dense = by_paths.contacts.moved, by_jacobian.contacts.moved
        f, diagonal = jnp.linspace(-1.0, 1.0, 3 * dense.J.shape[1]).reshape(3, -1), jnp.linspace(0.5, 2.0, n)
        did = [(form.velocities(dv), form.generalized(f), form.response(diagonal)) for form in (moved, dense)]
        H = jax.jacfwd(lambda a: calc_problem_residual(topology, problem, a))(x)
        stiffness = calc_stiffness(problem, calc_row_motion(problem, x))
        b, matrices = jnp.linspace(-1.0, 1.0, n), [x.newton_matrix(topology) for x in (problem, by_paths, by_jacobian)]
        return did, H, b, [matrix.solve(stiffness, b) for matrix in matrices], stiffness.contacts

    (by_paths, by_jacobian), H, b, solved, stiffness = compare(*(jnp.asarray(rng.normal(size=(3, n))) for _ in "xv"))
    for got, expected in zip(by_paths, by_jacobian, strict=True):
        assert np.all(np.abs(expected).max(axis=-1) > 0.0)
        np.testing.assert_allclose(got, expected, rtol=0.0, atol=1e-14 * np.abs(expected).max())
    assert np.any(np.asarray(stiffness) != 0.0)
    for x in solved:
        exact = np.linalg.solve(H, b[..., None])[..., 0]
        np.testing.assert_allclose(x, exact, rtol=0.0, atol=1e-12 * np.abs(exact).max())
    points = calc_contact_points(model, calc_position_kinematics(model, q))
    return find_contact_paths(topology, points.mobods_A, points.mobods_B)


@pytest.mark.whole_run("every form of the matrix is the derivative of the residual, and fingers beside Drake's")
def test_contacts_of_fingers_that_mimic() -> None:
    """Of two that close on each other and on the ground, with one velocity for both: a Jacobian sums what it moves."""
    plant = mbjax.MultibodyPlant(2e-3)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), 0.6)
    plant.add_rigid_body("palm", mbjax.SpatialInertia.solid_box_with_mass(1.0, 0.2, 0.2, 0.2))
    for finger, y in (("left", 0.05), ("right", -0.05)):
        plant.add_rigid_body(finger, mbjax.SpatialInertia.solid_sphere_with_mass(0.3, 0.1))
        plant.add_joint(mbjax.RevoluteJoint(finger, "palm", finger, X_PF=(0.1, y, 0.0)))
        plant.register_collision_geometry(finger, Geometry(finger, Sphere(0.1)), 0.6)
    plant.add_mimic("right", "left", -0.7)
    model = plant.finalize()
    topology, n = model.topology, model.num_velocities
    rng = np.random.default_rng(1)
    q, v = mbjax.default_state(model).q + 0.02, jnp.asarray(rng.normal(size=n))

    @jax.jit
    def compare(x: jax.Array) -> Any:
        problem, points, _ = calc_step_problem(model, mbjax.State(q, v, jnp.zeros(())), as_inputs(model, None))
        moved, jacobian = find_moved_bodies(topology, problem.terms.position, points), problem.contacts.moved
        f = jnp.linspace(-1.0, 1.0, 3 * len(points.pairs)).reshape(3, -1)
        did = [(form.velocities(x), form.generalized(f)) for form in (moved, jacobian)]
        H = jax.jacfwd(lambda a: calc_problem_residual(topology, problem, a))(x)
        stiffness = calc_stiffness(problem, calc_row_motion(problem, x))
        return did, H, problem.newton_matrix(topology).solve(stiffness, x), stiffness.contacts

    x = jnp.linspace(-1.0, 1.0, n)
    (by_paths, by_jacobian), H, solved, stiffness = compare(x)
    for got, expected in zip(by_paths, by_jacobian, strict=True):
        np.testing.assert_allclose(got, expected, rtol=0.0, atol=1e-14 * float(jnp.abs(expected).max()))
    assert np.all(np.any(np.asarray(stiffness) != 0.0, axis=0))
    exact = np.linalg.solve(H, x)
    np.testing.assert_allclose(solved, exact, rtol=0.0, atol=1e-12 * np.abs(exact).max())


@pytest.mark.whole_run("every form of the matrix is the derivative of the residual")
def test_what_moves_two_bodies_together_feels_nothing_of_a_contact_between_them() -> None:
    """Not even the rounding of a stiffness of 1e12: the trunk's rows of the matrix are exactly zero."""
    model = three_trees()
    topology, contact = model.topology, model.layout.contact
    bodies = np.array([[contact.geometries[g].body for g in pair] for pair in contact.pairs])
    roots = topology.mobod_roots[np.array(topology.body_mobods)[bodies]]
    within = [pair for pair, (a, b) in enumerate(roots) if a == b]

    @jax.jit
    def hessian(q: jax.Array) -> jax.Array:
        position = calc_position_kinematics(model, q)
        points = calc_contact_points(model, position)
        stiff = 1e12 * jnp.asarray([[1.0], [2.0], [3.0], [0.1], [0.2], [0.3]])
        G = jnp.where(np.isin(points.pairs, within), stiff, 0.0)
        return contact_hessian_of_pairs(find_moved_bodies(topology, position, points))(G)

    H = np.tril(hessian(mbjax.default_state(model).q + 0.05))
    base = np.flatnonzero(topology.velocity_mobods == model.topology.body_mobods[1])
    assert np.any(H != 0.0)
    assert np.all(H[:, base] == 0.0)
    assert np.all(H[base] == 0.0)


def test_slots_of_the_same_bodies_are_found() -> None:
    """Points of three bodies in two slots, one more of a fourth, then of the first twice; and a box among feet."""
    assert find_slots((1, 1, 1, 2, 3, 2, 3)) == [(0, 1, 3), (3, 2, 2)]
    assert find_slots((1, 2, 3, 3, 3)) == [(0, 2, 1), (2, 1, 3)]
    mobods = (1, 2, 3, 1, 2, 3, 4, 1, 1)
    runs = find_slots(mobods)
    assert runs == [(0, 3, 2), (6, 1, 1), (7, 1, 2)]
    assert sorted(k for start, n, slots in runs for k in range(start, start + n * slots)) == list(range(len(mobods)))


@pytest.mark.parametrize(
    "approximation", ["sap", *(pytest.param(x, marks=OTHER_LAWS) for x in APPROXIMATIONS if x != "sap")]
)
def test_stiffness_and_power_along_a_line_are_those_of_the_impulse(approximation: str) -> None:
    """At random velocities, sticking, slipping and apart, and where nothing slips at all."""
    plant = mbjax.MultibodyPlant(2e-3)
    plant.add_rigid_body("ball", mbjax.SpatialInertia.solid_sphere_with_mass(0.3, 0.1))
    plant.register_collision_geometry("ball", Geometry("ball", Sphere(0.1)), 0.6)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), 0.8)
    plant.set_discrete_contact_approximation(approximation)
    model = plant.finalize()
    state = mbjax.default_state(model)
    q = state.q.at[6].set(0.0999)

    @jax.jit
    @jax.vmap
    def compare(v: jax.Array, d: jax.Array, s: jax.Array) -> Any:
        problem, *_ = calc_step_problem(model, mbjax.State(q, state.v, state.time), as_inputs(model, None))
        law = problem.contacts.law
        jacobian = jax.jacfwd(lambda v: law.impulse(v[:, None])[:, 0])
        power, rate = law.power_along(v[:, None], d[:, None])(s)[:, 0]
        return (
            law.impulse((v + s * d)[:, None])[:, 0] @ d,
            power,
            d @ jacobian(v + s * d) @ d,
            rate,
            jacobian(v),
            symmetric_matrix(law.stiffness(v[:, None]))[..., 0],
            sticks(law, v),
        )

    def sticks(law: Any, v: jax.Array) -> Any:
        """Straight into the ground: impulse and stiffness, and those of the law of points that stick."""
        into = -law.normal_W * jnp.abs(v[2])
        return (law.impulse(into), law.stiffness(into)), law.sticking_law(into)

    rng = np.random.default_rng(1)
    scales = 10.0 ** rng.uniform(-7.0, 0.0, (400, 1))
    v = rng.normal(size=(400, 3)) * scales * np.where(rng.uniform(size=(400, 1)) < 0.1, [[0.0, 0.0, 1.0]], 1.0)
    expected, power, expected_rate, rate, jacobian, stiffness, (pressed, stuck) = compare(
        jnp.asarray(v), jnp.asarray(rng.normal(size=(400, 3)) * scales), jnp.asarray(rng.uniform(size=400))
    )
    assert np.any(expected != 0.0)
    np.testing.assert_allclose(power, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())
    assert np.all(np.abs(pressed[1]).max(axis=(1, 2)) > 0.0)
    for got, wanted in zip(stuck, pressed, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12 * np.abs(wanted).max())
    np.testing.assert_allclose(rate, expected_rate, rtol=1e-9, atol=1e-9 * np.abs(expected_rate).max())
    np.testing.assert_allclose(stiffness, -jacobian, rtol=0.0, atol=1e-9 * np.abs(jacobian).max())


def test_stiffness_in_single_precision_stays_semidefinite() -> None:
    """A micrometre a second of slip beside centimetres along the normal, at the edge of the cone, where it slides.

    What rounding leaves along the normal must not tilt the direction of slip: light bodies were left with a matrix that
    was not positive, and steps ended in NaN.
    """
    rng, count, T = np.random.default_rng(4), 200, jnp.float32
    normal, slip = rng.normal(size=(2, 3, count))
    normal /= np.linalg.norm(normal, axis=0)
    slip -= normal * (normal * slip).sum(axis=0)
    slip *= 2e-6 / np.linalg.norm(slip, axis=0)
    v_n = rng.uniform(5e-3, 5e-2, count)
    R_n, R_t, mu = jnp.full(count, 4e-4, T), jnp.full(count, 4e-2, T), jnp.ones(count, T)
    v_hat = jnp.asarray(v_n + 1e-8, T)
    law = SapLaw(jnp.asarray(normal, T), mu, R_t, R_n, v_hat, jnp.ones(count, bool))
    stiffness = symmetric_matrix(law.stiffness(jnp.asarray(normal * v_n + slip, T)))
    values = np.linalg.eigvalsh(np.moveaxis(np.asarray(stiffness, float), 2, 0))
    is_sliding = (values[:, 2] > 0.0) & (values[:, 2] < 2000.0)  # sticking: 1 / R_n
    print(f"least {(values[:, 0] / values[:, 2])[is_sliding].min():.1e} of the largest, {is_sliding.sum()} slide")
    assert is_sliding.sum() > 50
    assert (values[:, 0] > -1e-6 * values[:, 2]).all()


@pytest.mark.whole_run("every form of the matrix is the derivative of the residual")
def test_worlds_by_articulated_bodies_as_by_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of A1 on its feet, the worlds pressed down unlike each other; on a CPU articulated bodies are kernels."""
    model = quadruped()
    state, height = standing(model)
    q = jnp.tile(state.q, (5, 1)).at[:, height].add(-1e-3 * jnp.arange(5.0))
    v = jnp.asarray(np.random.default_rng(0).normal(scale=0.3, size=(5, model.num_velocities)))

    def after(deepest: int) -> tuple[Any, Any]:
        monkeypatch.setattr(choose, "DEEPEST", deepest)
        jax.clear_caches()  # what was traced knows the other

        def step(q: jax.Array, v: jax.Array) -> tuple[Any, Any]:
            state, outputs = mbjax.step(model, mbjax.State(q, v, jnp.zeros(())))
            return state.v, outputs.contact_results.num_iterations

        return jax.jit(jax.vmap(step))(q, v)

    (by_branches, iterations), (articulated, _) = after(100), after(0)
    assert np.max(iterations) > 5
    np.testing.assert_allclose(articulated, by_branches, rtol=0.0, atol=1e-9 * float(jnp.abs(by_branches).max()))
    assert bool(jnp.any(articulated != by_branches))  # two ways
