"""Exact Hessians: the model of a Riccati recursion is that of the total cost, and searches end quadratically."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import trajectory_optimization as to
from mbjax.trajectory_optimization.curvature import Curvature, calc_curvature
from mbjax.trajectory_optimization.expansion import Expansion, expand, total_cost
from mbjax.trajectory_optimization.rolled_out import rolled_out

from .problems import pendulum


def turn(model: mbjax.MultibodyModel, x: mbjax.State, u: jax.Array) -> mbjax.State:
    """A body that efforts turn and push, along its manifold."""
    v = x.v + 0.3 * u + 0.1 * jnp.roll(x.v, 1) * x.v
    return mbjax.State(mbjax.integrate_configuration(model, x.q, 0.3 * v), v, x.time)


def turning_body() -> to.Problem:
    """A free body to a pose, by residuals and by a number, with another number at each step."""
    plant = mbjax.MultibodyPlant(0.3)
    plant.add_rigid_body("body", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
    model = plant.finalize()
    start = mbjax.State(jnp.array([0.8, 0.6, 0.0, 0.0, 0.1, 0.2, 0.3]), jnp.linspace(-1.0, 1.0, 6), jnp.zeros(()))
    goal = jnp.array([0.5, 0.5, -0.5, 0.5, 1.0, 0.0, 0.0])
    limits = jnp.full(6, -jnp.inf), jnp.full(6, jnp.inf)
    running = [to.Effort(0.3), lambda model, x, u: 0.1 * jnp.sum(jnp.cos(x.q) * u[0])]
    return to.Problem(model, start, 4, running, to.JointGoal(goal, weight=3.0), limits, dynamics=turn)


@pytest.mark.parametrize(
    "make", [pendulum, pytest.param(turning_body, marks=pytest.mark.whole_run("a plane pendulum, beside it"))]
)
def test_the_exact_model_is_the_hessian_of_the_total_cost(make: Callable) -> None:
    problem = make()
    nu = len(problem.low)
    efforts = jnp.asarray(np.random.default_rng(0).normal(size=(problem.num_steps, nu)))

    @jax.jit
    def both(efforts: jax.Array) -> tuple[jax.Array, jax.Array, Expansion, Curvature]:
        def cost(efforts: jax.Array) -> jax.Array:
            return total_cost(problem, rolled_out(problem, efforts), efforts)

        states = rolled_out(problem, efforts)
        e = expand(problem, states, efforts, jax.tree.map(lambda x: x[1:], states), None)
        return jax.grad(cost)(efforts), jax.hessian(cost)(efforts), e, calc_curvature(problem, states, efforts, e, None)

    gradient, hessian, e, curvature = both(efforts)
    exact = curvature.added_to(e, jnp.ones(()))
    moves = np.zeros((problem.num_steps + 1, e.A.shape[-1], efforts.size))  # of the states, by all efforts
    own = np.eye(efforts.size).reshape(problem.num_steps, nu, -1)
    for k in range(problem.num_steps):
        moves[k + 1] = e.A[k] @ moves[k] + e.B[k] @ own[k]
    slope = np.einsum("kx,kxn->n", e.l_x, moves) + np.ravel(e.l_u)
    np.testing.assert_allclose(slope, np.ravel(gradient), atol=1e-11 * np.max(np.abs(gradient)))

    def whole(e: Expansion) -> np.ndarray:
        mixed = np.einsum("kux,kun,kxm->nm", e.l_ux, own, moves[:-1])
        of_states = np.einsum("kxy,kxn,kym->nm", e.l_xx, moves, moves)
        return of_states + np.einsum("kuw,kun,kwm->nm", e.l_uu, own, own) + mixed + mixed.T

    expected = np.reshape(hessian, (efforts.size, -1))
    np.testing.assert_allclose(whole(exact), expected, atol=1e-11 * np.max(np.abs(expected)))
    assert np.max(np.abs(whole(e) - expected)) > 1e-3 * np.max(np.abs(expected))  # Gauss and Newton's is another


BOUNDED = pytest.mark.whole_run("searches without bounds, and derivatives of optima with them")


@pytest.mark.parametrize(
    "kind",
    [{}, *(pytest.param({x: True}, marks=BOUNDED) for x in ("limited", "constrained"))],
    ids=["free", "limited", "constrained"],
)
def test_searches_end_quadratically(kind: dict) -> None:
    problem = pendulum(goal=3.0, **kind)
    plain, exact = (to.solve(problem, solver=to.FeasibilityDDP(tolerance=1e-14, hessian=h)) for h in HESSIANS)
    assert exact.report.converged
    np.testing.assert_allclose(exact.cost, plain.cost, rtol=1e-7 if "constrained" in kind else 1e-10)
    np.testing.assert_allclose(exact.efforts, plain.efforts, atol=1e-5)
    assert 3 * exact.report.iterations < 2 * plain.report.iterations
    if not kind:
        before, last = exact.report.history.expected[exact.report.iterations - 2 : exact.report.iterations]
        assert abs(last) < 1e-6 * before


HESSIANS = "gauss_newton", "exact"


def test_another_hessian() -> None:
    with pytest.raises(mbjax.ModelError, match="must be 'gauss_newton' or 'exact', got 'none'"):
        to.FeasibilityDDP(hessian="none")
