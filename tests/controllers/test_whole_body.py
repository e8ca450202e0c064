"""The whole-body program: its solution is Clarabel's, and the exact one, within cones and limits."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from pydrake.solvers import ClarabelSolver, MathematicalProgram, SolverOptions

import mbjax
from mbjax import controllers
from mbjax.controllers import quadratic_program
from mbjax.controllers.quadratic_program import QuadraticProgram, solve_quadratic_program
from mbjax.controllers.whole_body import Weights, whole_body_program
from tests.gradients.checks import compiled

FEET = [f"{end}_{side}_foot" for end in ("front", "rear") for side in ("left", "right")]
solved = compiled(solve_quadratic_program)


@functools.cache
def quadruped() -> mbjax.MultibodyModel:
    return mbjax.load("quadruped")


def by_clarabel(program: QuadraticProgram) -> np.ndarray:
    """The same program by an independent solver."""
    Q, q, A, b, G, h = (np.asarray(x) for x in program)
    problem = MathematicalProgram()
    x = problem.NewContinuousVariables(len(q))
    problem.AddQuadraticCost(Q, q, x, is_convex=True)
    problem.AddLinearEqualityConstraint(A, b, x)
    problem.AddLinearConstraint(G, np.full(len(h), -np.inf), h, x)
    options = SolverOptions()
    for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas", "tol_ktratio"):
        options.SetOption(ClarabelSolver.id(), name, 1e-13)
    result = ClarabelSolver().Solve(problem, None, options)
    assert result.is_success()
    return result.GetSolution(x)


def random_program(seed: int) -> QuadraticProgram:
    rng = np.random.default_rng(seed)
    half, A, G, inside = (rng.normal(size=s) for s in ((10, 10), (4, 10), (14, 10), 10))
    given = half @ half.T + 0.1 * np.eye(10), 10.0 * rng.normal(size=10), A, A @ inside
    return QuadraticProgram(*map(jnp.asarray, (*given, G, G @ inside + rng.uniform(0.1, 0.5, size=14))))


@pytest.mark.parametrize("seed", range(4))
def test_random_programs_are_solved_as_by_clarabel(seed: int) -> None:
    program = random_program(seed)
    found = solved(program)
    assert found.converged
    np.testing.assert_allclose(found.x, by_clarabel(program), atol=1e-6)


def test_programs_of_a_batch_are_as_alone_and_nan_stays_in_its_own() -> None:
    programs = [random_program(seed) for seed in range(3)]
    programs[1] = programs[1]._replace(q=jnp.full(10, jnp.nan))
    found = compiled(jax.vmap(solve_quadratic_program))(jax.tree.map(lambda *x: jnp.stack(x), *programs))
    np.testing.assert_array_equal(found.converged, [True, False, True])
    assert jnp.isnan(found.x[1]).all()
    for k in (0, 2):
        np.testing.assert_allclose(found.x[k], solved(programs[k]).x, atol=1e-12)


def test_a_program_without_a_solution_says_so() -> None:
    program = random_program(0)
    never = program._replace(G=program.G.at[1].set(-program.G[0]), h=program.h.at[1].set(-program.h[0] - 1.0))
    found = solved(never)
    assert not found.converged
    assert jnp.isnan(found.x).all()


def test_derivatives_of_a_program_hold_what_is_active() -> None:
    program = random_program(3)

    def of(scale):
        return solve_quadratic_program(program._replace(q=scale[0] * program.q, h=scale[1] + program.h)).x

    check = mbjax.check_grads(of, jnp.array([1.0, 0.0]), quiet=True)
    assert check, str(check)


@pytest.mark.parametrize(("q", "by_q", "by_h"), [(1.0, -1.0, 0.0), (-1.0, 0.0, 1.0), (0.0, -1.0, 0.0)])
def test_derivatives_where_an_inequality_is_idle_active_or_between(q: float, by_q: float, by_h: float) -> None:
    """The least x²/2 + q x with x <= 0; between, at q = 0, the slope is that of the idle side."""
    one, none = jnp.ones((1, 1)), (jnp.zeros((0, 1)), jnp.zeros(0))

    def least(x):
        return solve_quadratic_program(QuadraticProgram(one, x[:1], *none, one, x[1:])).x[0]

    at = jnp.array([q, 0.0])
    np.testing.assert_allclose(compiled(jax.jacfwd(least))(at), [by_q, by_h], atol=1e-12)
    np.testing.assert_allclose(compiled(jax.grad(least))(at), [by_q, by_h], atol=1e-12)


def exact_optimum(program: QuadraticProgram, near: np.ndarray) -> np.ndarray:
    """The optimum with the inequalities active that hold with equality nearby, refined in extended precision.

    The optimality conditions, which suffice as the program is convex, say that these were the right ones.
    """
    Q, q, A, b, G, h = (np.asarray(x) for x in program)
    is_active = h - G @ near < 1e-9
    rows, right = np.concatenate([A, G[is_active]]), np.concatenate([-q, b, h[is_active]])
    K = np.block([[Q, rows.T], [rows, np.zeros((len(rows), len(rows)))]])
    factor, found = scipy.linalg.lu_factor(K), np.zeros(len(K), np.longdouble)
    for _ in range(10):
        left = right - K.astype(np.longdouble) @ found
        found = found + scipy.linalg.lu_solve(factor, left.astype(float))
    x, multipliers = found[: len(q)].astype(float), found[len(q) + len(b) :]
    assert abs(left).max() < 1e-12
    assert (multipliers >= 0.0).all()
    assert (h - G @ x >= -1e-14).all()
    return x


def posed(x):
    """The quadruped's state with bent legs, and what it shall do."""
    model = quadruped()
    state = mbjax.default_state(model)
    bent = jnp.zeros(18).at[6:].set(jnp.tile(jnp.array([0.0, 0.7, -1.4]), 4))
    q = mbjax.integrate_configuration(model, state.q, bent + 0.05 * jnp.sin(jnp.arange(18.0)) + x)
    state = mbjax.State(mbjax.integrate_configuration(model, state.q, bent), state.v)
    tasks = (
        controllers.CenterOfMassTask(mbjax.center_of_mass_position_in_world(model, state.q), weight=10.0),
        controllers.MomentumTask(damping=5.0, weight=0.1),
        controllers.PostureTask(state.q, weight=0.1),
    )
    return mbjax.State(q, 0.1 * jnp.cos(jnp.arange(18.0))), tasks


def terms(x, friction, active):
    """The program of a state, and its solution."""
    model = quadruped()
    state, tasks = posed(x)
    contacts = controllers.ContactPoints(FEET, friction=friction)
    weights = Weights(*(jnp.asarray(w) for w in (1e4, 50.0, 1e-4, 0.1, 0.1)))
    program = whole_body_program(model, state, tasks, contacts, active, weights)
    return program, controllers.whole_body(model, state, tasks, contacts, active)


def test_the_program_of_a_quadruped_is_optimal() -> None:
    """Standing, on a trot's two feet, and with friction that limits; one program serves all.

    Of efforts and forces, whose weights are small, Clarabel is 3e-4 to 4e-3 off, so its accelerations are compared.
    """
    limit, run = quadruped().parameters.effort_limit, compiled(terms)
    for friction, active in ((0.7, [1, 1, 1, 1]), (0.1, [1, 1, 1, 1]), (0.7, [1, 0, 0, 1])):
        is_down = jnp.asarray(active, bool)
        program, found = run(jnp.zeros(18), jnp.asarray(friction), is_down)
        assert found.converged
        x = np.concatenate([found.vdot, found.effort, np.ravel(found.contact_forces)])
        np.testing.assert_allclose(x, exact_optimum(program, x), atol=1e-9)
        np.testing.assert_allclose(found.vdot, by_clarabel(program)[:18], atol=1e-6)
        forces = np.asarray(found.contact_forces)
        np.testing.assert_array_equal(forces[~np.asarray(is_down)], 0.0)
        assert (np.linalg.norm(forces[:, :2], axis=1) <= friction * forces[:, 2] + 1e-6).all()
        assert (abs(found.effort) <= limit + 1e-6).all()


def test_a_leg_carries_its_weight_whatever_that_is() -> None:
    """A sliding leg of 1 kg to 400 kg at rest, where weights take the same share off; also without gravity."""
    plant = mbjax.MultibodyPlant()
    up, inertia = (0.0, 0.0, 1.0), mbjax.SpatialInertia(1.0, (0.0, 0.0, 0.0), mbjax.UnitInertia(0.1, 0.1, 0.1))
    for name, parent in (("trunk", "world"), ("foot", "trunk")):
        plant.add_rigid_body(name, inertia)
        plant.add_joint(mbjax.PrismaticJoint(f"{name}_slide", parent, name, axis=up))
    plant.add_joint_actuator("leg", "foot_slide")
    model, still = plant.finalize(), mbjax.State(jnp.array([0.5, -0.5]), jnp.zeros(2))
    point = controllers.ContactPoints(["foot"])

    def force(mass, gravity):
        changed = mbjax.set_mass(mbjax.set_mass(model, "trunk", mass), "foot", mass)
        changed = mbjax.set_gravity(changed, -gravity * jnp.array(up))
        center = mbjax.center_of_mass_position_in_world(changed, still.q)
        found = controllers.whole_body(changed, still, [controllers.CenterOfMassTask(center)], point)
        return found.contact_forces[0, 2]

    masses = jnp.array([0.5, 6.0, 200.0])
    run = compiled(jax.vmap(jax.value_and_grad(force), (0, None)))
    carried, slope = run(masses, jnp.array(9.81))
    share = carried / (2.0 * masses * 9.81)
    assert ((share > 0.997) & (share < 1.0)).all()
    np.testing.assert_allclose(share, share[0], rtol=1e-9)
    np.testing.assert_allclose(slope, 2.0 * 9.81 * share, rtol=1e-6)
    nothing, _ = run(masses, jnp.array(0.0))
    np.testing.assert_allclose(nothing, 0.0, atol=1e-9)


@pytest.mark.whole_run("derivatives of programs by all that they are made of, and those of dynamics")
def test_derivatives_by_state_friction_and_mass() -> None:
    """Along a line through all of them, where two feet stand and friction limits: forward = reverse = differences."""
    model = quadruped()
    active = jnp.array([True, False, False, True])

    def effort(t):
        state, tasks = posed(0.1 * t * jnp.cos(jnp.arange(18.0)))
        contacts = controllers.ContactPoints(FEET, friction=0.1 + 0.05 * t)
        heavier = mbjax.set_mass(model, "trunk", 8.0 + t)
        found = controllers.whole_body(heavier, state, tasks, contacts, active)
        return jnp.sum(jnp.sin(jnp.arange(12.0)) * found.effort) + jnp.sum(found.contact_forces[0])

    def both(t):
        return effort(t), jax.jvp(effort, (t,), (jnp.ones_like(t),))[1], jax.grad(effort)(t)

    run, h = compiled(both), 1e-5
    _, forward, reverse = run(jnp.array(0.3))
    np.testing.assert_allclose(forward, reverse, rtol=1e-9)
    np.testing.assert_allclose(reverse, (run(jnp.array(0.3 + h))[0] - run(jnp.array(0.3 - h))[0]) / (2 * h), rtol=1e-6)


@pytest.mark.whole_run("the program of a quadruped is optimal")
def test_a_standing_quadruped_takes_a_push() -> None:
    """40 N from the side for 0.1 s: it gives way by a centimetre, and is back a second later."""
    model = mbjax.load("quadruped", time_step=0.002, ground=0.8, contact_pairs=[("*foot*", "ground")])
    q = mbjax.default_positions(model).at[7:].set(jnp.tile(jnp.array([0.0, 0.7, -1.4]), 4)).at[6].set(0.349)
    center = mbjax.center_of_mass_position_in_world(model, q)
    upright = mbjax.relative_transform(model, q, "world", "trunk")
    tasks = (
        controllers.CenterOfMassTask(center, weight=10.0),
        controllers.FrameTask("trunk", upright, axes=(0, 1, 2), weight=5.0),
        controllers.PostureTask(q, weight=0.01),
    )
    feet = controllers.ContactPoints(FEET, friction=0.6)

    def turn(state, k):
        push = jnp.where((k >= 50) & (k < 100), 40.0, 0.0) * jnp.array([[0.0, 0.0, 0.0, 0.0, 1.0, 0.0]])
        found = controllers.whole_body(model, state, tasks, feet)
        inputs = mbjax.Inputs(found.effort, applied_spatial_forces=mbjax.AppliedSpatialForces(["trunk"], push))
        state, _ = mbjax.step(model, state, inputs)
        return state, (mbjax.center_of_mass_position_in_world(model, state.q)[1], found.converged)

    run = compiled(lambda state: jax.lax.scan(turn, state, jnp.arange(600)))
    end, (aside, converged) = run(mbjax.State(q, jnp.zeros(18), jnp.zeros(())))
    assert converged.all()
    assert 5e-3 < jnp.max(aside) < 20e-3
    assert abs(aside[-1]) < 1e-3
    assert end.q[0] > 0.9999


def test_what_is_missing_or_wrong_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    model = quadruped()
    state, tasks = posed(jnp.zeros(18))
    with pytest.raises(mbjax.ModelError, match="active has shape"):
        controllers.whole_body(model, state, tasks, controllers.ContactPoints(FEET), [True])
    with pytest.raises(mbjax.ModelError, match="tasks must be"):
        controllers.whole_body(model, state, ())
    with pytest.raises(mbjax.ModelError, match="a list with a frame"):
        controllers.ContactPoints("foot")
    with pytest.raises(mbjax.ModelError, match="friction has shape"):
        controllers.ContactPoints(FEET, friction=jnp.ones(3))
    foot = controllers.ContactPoints(FEET)
    for wrong, words in (
        ({"normal": (0.0, 0.0, 0.0)}, "normal must be finite and not all zero"),
        ({"friction": -0.6}, r"friction must be a finite number >= 0, got -0\.6"),
    ):
        with pytest.raises(mbjax.ModelError, match=f"ContactPoints: {words}"):
            controllers.ContactPoints(FEET, **wrong)
    for name, value in (("contact_weight", jnp.ones(3)), ("force_weight", -1.0)):
        with pytest.raises(mbjax.ModelError, match=f"whole_body: {name} must be"):
            controllers.whole_body(model, state, tasks, foot, **{name: value})
    with pytest.raises(mbjax.ModelError, match=r"tasks must be a list .* got PostureTask"):
        controllers.whole_body(model, state, tasks[2], foot)
    with pytest.raises(mbjax.ModelError, match=r"contacts must be controllers\.ContactPoints.* got list"):
        controllers.whole_body(model, state, tasks, FEET)
    monkeypatch.setitem(__import__("sys").modules, "qpax", None)
    with pytest.raises(ImportError, match=r"mbjax\[control\]"):
        quadratic_program.search(*random_program(0))
