"""Derivatives of constrained dynamics: of every leaf of model and constraints, near singular sets, doubled, twice."""

import collections

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.constraints import calc_constrained_dynamics, calc_constrained_dynamics_terms
from tests.gradients.checks import OFFSETS, WEIGHTS, Gradients, central_differences, check_gradients, compare, compiled
from tests.models import relative_error

from . import mechanisms
from .test_constrained_forward_dynamics import doubled, torques

LEAVES_THAT_MOVE = (
    *("[0]", "[1]", "[2]", "[3]", "[4][0]", "[4][1]", "[4][2]", "[4][3]"),
    *(".axes", ".p_AP", ".p_BS", ".quaternion_AP", ".stabilization_time"),
)


def motion(model, cset, q, v, tau):
    """vdot and λ with gravity, springs and damping."""
    forces = mbjax.force_elements_contribution(model, q, v)
    return tuple(mbjax.constrained_forward_dynamics(model, cset, q, v, tau, forces))


def with_constraints(cset: mbjax.BoundConstraintSet, constraints) -> mbjax.BoundConstraintSet:
    return mbjax.BoundConstraintSet(constraints, cset.topology)


@pytest.mark.whole_run("derivatives of motion under contacts")
def test_every_leaf_of_a_loop() -> None:
    """q, v, tau, applied forces, masses, gravity, damping, and every number of the constraint."""
    case = mechanisms.slider_crank()
    p = case.model.parameters

    def f(q, v, tau, body, numbers, constraints):
        mass, com, gravity, damping = numbers
        where = lambda m: (  # noqa: E731
            m.parameters.body_mass,
            m.parameters.body_com,
            m.parameters.gravity,
            m.parameters.joint_damping,
        )
        model = eqx.tree_at(where, case.model, (mass, com, gravity, damping))
        cset = with_constraints(case.cset, constraints)
        forces = mbjax.force_elements_contribution(model, q, v) + mbjax.MultibodyForces(jnp.zeros_like(v), body)
        return tuple(mbjax.constrained_forward_dynamics(model, cset, q, v, tau, forces))

    body = jnp.asarray(np.random.default_rng(0).normal(size=(case.model.num_bodies, 6)))
    numbers = (p.body_mass, p.body_com, p.gravity, p.joint_damping)
    result = check_gradients(f, case.q, case.v + 0.1, torques(case), body, numbers, case.cset.constraints)
    moved = np.abs(result.reverse).max(axis=0) > 0.0
    named = [name for name, m in zip(result.names, moved, strict=True) if m]
    for leaf in LEAVES_THAT_MOVE:
        assert any(leaf in name for name in named), leaf


def test_a_gradient_factorizes_once_and_solves_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for the motion, once for its derivative, whatever there is to differentiate."""
    case, calls = mechanisms.four_bar(), collections.Counter()

    def counted(name: str):
        method = getattr(mbjax.Direct, name)
        return lambda *args: calls.update([name]) or method(*args)

    for name in ("init", "solve"):
        monkeypatch.setattr(mbjax.Direct, name, counted(name))

    def gradient(model, cset, q, v, tau):
        def moved(*x):
            terms = calc_constrained_dynamics_terms(*x, None)
            return calc_constrained_dynamics(model.topology, mbjax.Direct(), terms)[:2]

        result, pull = eqx.filter_vjp(moved, model, cset, q, v, tau)
        return pull(result)

    eqx.filter_make_jaxpr(gradient)(case.model, case.cset, case.q, case.v, torques(case))
    assert calls == {"init": 1, "solve": 2 * 2}  # each is traced for its transpose too


@pytest.mark.whole_run("its pull in test_kinds.py")
def test_the_stabilization_time_alone() -> None:
    """Only the rows move: the equation of the velocities has no tangent."""
    case = mechanisms.slider_crank()

    def f(time):
        cset = with_constraints(
            case.cset, tuple(eqx.tree_at(lambda c: c.stabilization_time, c, time) for c in case.cset.constraints)
        )
        return mbjax.constrained_forward_dynamics(case.model, cset, case.q + 0.01, case.v + 0.1, torques(case)).vdot

    assert np.abs(check_gradients(f, jnp.asarray(0.2)).reverse).max() > 1e-3


@pytest.mark.whole_run("derivatives of motion under contacts")
def test_spatial_loops_with_a_shared_branch() -> None:
    """G46: two loops over the same links, springs among them; directions instead of whole Jacobians."""
    case, rng = mechanisms.spring_leg(), np.random.default_rng(1)
    arguments = (case.q, case.v, torques(case))
    directions = tuple(jnp.asarray(rng.normal(size=(3, x.size))) for x in arguments)
    weights = jnp.asarray(rng.normal(size=case.model.num_velocities + case.cset.num_rows))

    def f(*x):
        return weights @ jnp.concatenate(motion(case.model, case.cset, *x))

    check_directions(f, arguments, directions)


def check_directions(f, arguments, directions, tolerance: float = 1e-6) -> None:
    """Forward = reverse = differences of a scalar function along given directions of all arguments."""
    origin, count = jnp.zeros(directions[0].shape[0]), directions[0].shape[0]

    def along(t):
        return f(*(x + t @ d for x, d in zip(arguments, directions, strict=True)))[None]

    forward, reverse, differences = compiled(
        lambda t: (jax.jacfwd(along)(t), jax.jacrev(along)(t), central_differences(along, t))
    )(origin)
    names = [f"direction {i}" for i in range(count)]
    compare(Gradients(*(np.asarray(x) for x in (forward, reverse, differences)), names), tolerance)


OTHERS = [
    pytest.param(solver, marks=pytest.mark.whole_run("values of all strategies"))
    for solver in (mbjax.Direct(), mbjax.NullSpace())
]


@pytest.mark.whole_run("values with the same constraints twice, and derivatives of motion under contacts")
@pytest.mark.parametrize("solver", [mbjax.Proximal(), *OTHERS], ids=["prox", "direct", "null"])
def test_the_same_constraint_twice(solver, request: pytest.FixtureRequest) -> None:
    """G41: the derivative of the acceleration is that of the single set, in both modes; trimmed: in reverse mode."""
    case = mechanisms.four_bar()
    tau, twice = torques(case), doubled(case)

    def vdot(cset, solver, q, v):
        return mbjax.constrained_forward_dynamics(case.model, cset, q, v, tau, None, solver).vdot

    single = compiled(lambda q, v: jax.jacfwd(lambda *x: vdot(case.cset, None, *x), (0, 1))(q, v))(case.q, case.v)
    modes = (jax.jacrev,) if request.config.getoption("--trimmed") else (jax.jacfwd, jax.jacrev)
    both = compiled(lambda q, v: [jac(lambda *x: vdot(twice, solver, *x), (0, 1))(q, v) for jac in modes])
    for mode in both(case.q, case.v):
        for got, expected in zip(mode, single, strict=True):
            assert relative_error(got, expected) < 1e-8


def test_proximal_derivatives_are_those_of_the_law_whatever_the_iterations() -> None:
    """G45: an iteration that has converged early or late, with the gradient of the exact elimination."""
    rng = np.random.default_rng(4)
    A, G, c, gamma, weights = (jnp.asarray(rng.normal(size=n)) for n in ((5, 5), (3, 5), 5, 3, (2, 8)))
    H = A @ A.T + 2.0 * jnp.eye(5)

    def slopes(solver: mbjax.constraints.AbstractConstraintSolver) -> np.ndarray:
        def solution(H, G, c, gamma):
            return weights @ jnp.concatenate(tuple(mbjax.solve_constrained_system(H, G, c, gamma, solver)))

        jacobians = jax.jit(jax.jacrev(solution, argnums=(0, 1, 2, 3)))(H, G, c, gamma)
        return np.concatenate([np.reshape(x, (2, -1)) for x in jacobians], axis=1)

    exact = slopes(mbjax.Direct())
    assert np.abs(exact).max() > 0.1
    for mu, iterations in ((1e-6, 3), (1e-6, 12), (1e-2, 60)):
        assert relative_error(slopes(mbjax.Proximal(mu, iterations)), exact) < 1e-10


@pytest.mark.whole_run("points that coincide, in test_kinds.py, and dead centres in forward dynamics")
@pytest.mark.parametrize("away", [1e-1, 1e-3])
def test_near_a_dead_centre(away: float) -> None:
    """With the slider locked the rows are almost one there, and forces large: still those of differences."""
    case = mechanisms.slider_crank()
    locked = mbjax.lock_joint(case.model, "slide")
    arguments = (mechanisms.slider_crank_positions(jnp.asarray(away)), jnp.zeros(3), torques(case))
    directions = tuple(away * jnp.asarray(np.random.default_rng(2).normal(size=(2, 3))) for _ in arguments)

    def f(*x):
        vdot, force = mbjax.constrained_forward_dynamics(locked, case.cset, *x)
        return away * (jnp.sum(vdot) + jnp.sum(force))

    check_directions(f, arguments, directions)


@pytest.mark.whole_run("second derivatives of the solvers, in test_solvers.py")
def test_second_derivatives() -> None:
    """The Hessian of a cost along two directions, against differences of gradients."""
    case = mechanisms.four_bar()
    tau, rng = torques(case), np.random.default_rng(3)
    directions = jnp.asarray(rng.normal(size=(2, 9)))

    def cost(t):
        dq, dv, dtau = jnp.split(t @ directions, 3)
        vdot, force = motion(case.model, case.cset, case.q + dq, case.v + dv, tau + dtau)
        return jnp.sum(jnp.sin(0.1 * vdot)) + jnp.sum(jnp.sin(force))

    def gradient_twice(t):
        gradient = jax.grad(cost)(t)
        return gradient, gradient

    both, h = compiled(jax.jacfwd(gradient_twice, has_aux=True)), 1e-4
    hessian, _ = both(jnp.zeros(2))
    values = np.array([[both(h * offset * e)[1] for e in np.eye(2)] for offset in OFFSETS])
    assert relative_error(hessian, hessian.T) < 1e-10
    assert relative_error(hessian, np.tensordot(WEIGHTS, values, 1).T / h) < 1e-6


@pytest.mark.whole_run("derivatives of motion under contacts of several worlds")
def test_gradients_of_many_worlds() -> None:
    """What each world has alone; constraints that all share get the sum. Switches differ between worlds."""
    case, count = mechanisms.slider_crank(), 5
    q = jax.vmap(mechanisms.slider_crank_positions)(jnp.linspace(0.5, 2.0, count))
    v, tau = jnp.asarray(np.random.default_rng(4).normal(size=(2, count, 3)))
    active = jnp.array([1.0, 1.0, 0.0, 1.0, 1.0])

    def cost(constraints, q, v, tau, active):
        cset = with_constraints(case.cset, constraints).with_active({"loop": active})
        return sum(jnp.sum(jnp.sin(x)) for x in motion(case.model, cset, q, v, tau))

    gradient = jax.grad(cost, (0, 1, 2, 3))
    alone = compiled(gradient)
    each = [alone(case.cset.constraints, q[i], v[i], tau[i], active[i]) for i in range(count)]

    def total(constraints, q, v, tau, active):
        return jnp.sum(jax.vmap(cost, (None, 0, 0, 0, 0))(constraints, q, v, tau, active))

    together = compiled(jax.grad(total, (0, 1, 2, 3)))(case.cset.constraints, q, v, tau, active)
    for k in (1, 2, 3):
        assert relative_error(together[k], np.stack([e[k] for e in each])) < 1e-10
    summed = jax.tree.map(lambda *x: np.sum(np.stack(x), axis=0), *(e[0] for e in each))
    for got, expected in zip(jax.tree.leaves(together[0]), jax.tree.leaves(summed), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-9 * max(1.0, float(np.abs(expected).max(initial=0.0))))
