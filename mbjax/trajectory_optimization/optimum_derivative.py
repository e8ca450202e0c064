"""Derivatives of an optimum by everything that the problem holds: one linear-quadratic problem more.

At the optimum the gradient of the Lagrangian is zero. Along a change of the problem's numbers the solution moves so
that it stays zero: K dz = -r, with K the matrix of second derivatives (of dynamics too) and r the change of the
gradient. K dz = -r is itself a linear-quadratic optimal control problem, solved by a Riccati recursion. Efforts at a
limit and active constraints stay there.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.linear_algebra import cholesky, cholesky_solve

from .abstract_solver import Found
from .costs import running_costs, terminal_costs
from .expansion import value_of
from .feasibility_ddp import limits_along
from .multipliers import bounds_of, evaluate, is_evaluated, mask_of
from .problem import Problem
from .states import difference_states, move_state

REFINEMENTS = 25  # of the multipliers of active constraints, by the method of multipliers
WEIGHT = 1e4  # of active constraints, times the size of the second derivatives


@eqx.filter_custom_jvp
def at_optimum(problem: Problem, found: Found) -> tuple[Any, Float[Array, "steps nu"]]:
    """States and efforts that were found, with the derivatives of an optimum by the problem's leaves."""
    return found.states, found.efforts


@at_optimum.def_jvp
def _at_optimum_jvp(primals: tuple, tangents: tuple) -> tuple:
    problem, found = primals
    change = tangents[0]
    states, efforts = at_optimum(problem, found)
    moved_states, moved_efforts = move_of_optimum(problem, change, found)

    def moved(dx: Array, x: Any) -> Any:
        return move_state(problem.model, x, dx)

    zero = jnp.zeros_like(moved_states)
    _, of_states = eqx.filter_jvp(
        lambda dx: jax.vmap(moved)(dx, jax.lax.stop_gradient(found.states)), (zero,), (moved_states,)
    )
    return (states, efforts), (of_states, moved_efforts)


class Conditions(NamedTuple):
    """Optimality conditions at a solution: gradients of the Lagrangian by stage, gaps, and active constraints."""

    gradient: Float[Array, "steps nz"]
    gradient_at_end: Float[Array, " ndx"]
    gaps: Float[Array, "steps ndx"]
    gap_at_start: Float[Array, " ndx"]
    active: Float[Array, "steps rows"]  # distances from the bounds, zero where inactive
    active_at_end: Float[Array, " rows"]
    bounds: Float[Array, "steps nu"]  # limits of the efforts that are at one


def active_rows(
    problem: Problem, found: Found, x: Any, u: Any, stage: Any, k: Any, at_end: bool
) -> tuple[Array, Array]:
    """Distances of constraints from the bounds at which they are, zero for inactive ones; and their multipliers."""
    distances, multipliers = [jnp.zeros(0, found.efforts.dtype)], [jnp.zeros(0, found.efforts.dtype)]
    for i, constraint in enumerate(problem.constraints):
        if not is_evaluated(constraint, at_end):
            continue
        assert found.penalties is not None
        value, multiplier = evaluate(constraint, problem, x, u, stage), found.penalties.multipliers[i][k]
        lower, upper = bounds_of(constraint, value)
        equal = lower == upper
        bound = jnp.where(equal | (multiplier > 0.0), upper, lower)
        is_active = mask_of(problem, constraint)[k] & (equal | (multiplier != 0.0))
        distances.append(jnp.where(is_active, value - jnp.where(is_active, bound, 0.0), 0.0))
        multipliers.append(jnp.where(is_active, multiplier, 0.0))
    return jnp.concatenate(distances), jnp.concatenate(multipliers)


def lagrangian(problem: Problem, found: Found, z: Float[Array, " nz"], k: Any, x: Any, u: Any, x_after: Any) -> Array:
    """Cost of one step, plus costate · gap, plus multipliers · constraints, at the tangent z = (dx, du)."""
    ndx, stage = found.costates.shape[-1], problem.stage(k)
    x, u = move_state(problem.model, x, z[:ndx]), u + z[ndx:]
    terms = running_costs(problem, x, u, stage, k)
    gap = difference_states(problem.model, x_after, problem.next_state(x, u, stage))
    rows, multipliers = active_rows(problem, found, x, u, stage, k, False)
    return value_of(terms) + found.costates[k + 1] @ gap + multipliers @ rows


def lagrangian_at_end(problem: Problem, found: Found, dx: Float[Array, " ndx"], x: Any) -> Array:
    """Terminal cost plus multipliers · constraints, at the tangent dx."""
    stage, x = problem.stage(-1), move_state(problem.model, x, dx)
    terms = terminal_costs(problem, x)
    rows, multipliers = active_rows(problem, found, x, None, stage, problem.num_steps, True)
    return value_of(terms) + multipliers @ rows


def split_states(states: Any) -> tuple[Any, Any, Any, Any]:
    """The first state, the states before each step, those after each, and the last."""
    return tuple(
        jax.tree.map(lambda x, part=part: x[part], states) for part in (0, slice(None, -1), slice(1, None), -1)
    )


def conditions(problem: Problem, found: Found, sides: Array) -> Conditions:
    """The optimality conditions as functions of the problem's numbers, at the solution."""
    model, (first, before, after, last) = problem.model, split_states(found.states)
    ndx = found.costates.shape[-1]
    steps = jnp.arange(problem.num_steps)

    def of_step(k: Any, x: Any, u: Array, x_after: Any) -> tuple[Array, Array, Array]:
        zero = jnp.zeros(ndx + u.shape[0], u.dtype)
        gradient = jax.grad(lambda z: lagrangian(problem, found, z, k, x, u, x_after))(zero)
        gap = difference_states(model, x_after, problem.next_state(x, u, problem.stage(k)))
        return gradient, gap, active_rows(problem, found, x, u, problem.stage(k), k, False)[0]

    gradient, gaps, active = jax.vmap(of_step)(steps, before, found.efforts, after)
    at_end = jax.grad(lambda dx: lagrangian_at_end(problem, found, dx, last))(jnp.zeros(ndx, found.efforts.dtype))
    rows, _ = active_rows(problem, found, last, None, problem.stage(-1), problem.num_steps, True)
    bounds = jnp.zeros_like(found.efforts)
    if problem.low is not None:
        low, high = limits_along(problem, found.efforts)
        bounds = jnp.where(sides < 0, low, jnp.where(sides > 0, high, 0.0))
    return Conditions(gradient, at_end, gaps, difference_states(model, first, problem.start), active, rows, bounds)


def sides_of_limits(problem: Problem, found: Found) -> Float[Array, "steps nu"]:
    """-1 and 1 for efforts that are held at their lower and upper limit, as are all whose limits are equal; else 0."""
    if problem.low is None:
        return jnp.zeros_like(found.efforts)
    low, high = limits_along(problem, found.efforts)
    at_low = (found.efforts <= low) & ((found.effort_slopes > 0.0) | (low == high))
    at_high = (found.efforts >= high) & (found.effort_slopes < 0.0)
    return jnp.where(at_low, -1.0, jnp.where(at_high, 1.0, 0.0)).astype(found.efforts.dtype)


class Factor(NamedTuple):
    """The Riccati recursion's matrices, which every right-hand side shares."""

    A: Float[Array, "steps ndx ndx"]
    B: Float[Array, "steps ndx nu"]
    V_xx: Float[Array, "steps_and_end ndx ndx"]
    K: Float[Array, "steps nu ndx"]
    root: Float[Array, "steps nu nu"]  # Cholesky factor of Q_uu, identity where efforts are held
    free: Bool[Array, "steps nu"]


def factor_second_derivatives(
    A: Array, B: Array, H: Float[Array, "steps nz nz"], H_at_end: Array, free: Array
) -> Factor:
    """Riccati recursion of the matrices alone."""
    ndx, nu = A.shape[-1], B.shape[-1]
    one = jnp.eye(nu, dtype=A.dtype)

    def backward(V: Array, step: tuple) -> tuple:
        A, B, H, free = step
        Q_xx, Q_ux, Q_uu = H[:ndx, :ndx] + A.T @ V @ A, H[ndx:, :ndx] + B.T @ V @ A, H[ndx:, ndx:] + B.T @ V @ B
        root = cholesky(jnp.where(free[:, None] & free, Q_uu, one))
        K = cholesky_solve(root, jnp.where(free[:, None], Q_ux, 0.0))
        V = Q_xx - Q_ux.T @ K
        V = 0.5 * (V + V.T)
        return V, (V, K, root)

    _, (V, K, root) = jax.lax.scan(backward, H_at_end, (A, B, H, free), reverse=True)
    return Factor(A, B, jnp.concatenate([V, H_at_end[None]]), K, root, free)


def solve_factored(
    factor: Factor, r: Float[Array, "steps nz"], r_at_end: Array, gaps: Array, gap_at_start: Array
) -> tuple[Float[Array, "steps_and_end ndx"], Float[Array, "steps nu"]]:
    """Minimizer of the linear-quadratic problem with gradients r and gaps: linear in both."""
    ndx = factor.A.shape[-1]

    def backward(V_x: Array, step: tuple) -> tuple:
        A, B, V_next, K, root, free, r, gap = step
        V_moved = V_x + V_next @ gap
        Q_u = jnp.where(free, r[ndx:] + B.T @ V_moved, 0.0)
        k = cholesky_solve(root, Q_u)
        return r[:ndx] + A.T @ V_moved - K.T @ Q_u, k

    steps = factor.A, factor.B, factor.V_xx[1:], factor.K, factor.root, factor.free, r, gaps
    _, k = jax.lax.scan(backward, r_at_end, steps, reverse=True)

    def forward(dx: Array, step: tuple) -> tuple:
        A, B, K, k, gap = step
        du = -k - K @ dx
        after = A @ dx + B @ du + gap
        return after, (after, du)

    _, (after, du) = jax.lax.scan(forward, gap_at_start, (factor.A, factor.B, factor.K, k, gaps))
    return jnp.concatenate([gap_at_start[None], after]), du


def move_of_optimum(problem: Problem, change: Any, found: Found) -> tuple[Array, Array]:
    """Changes of states, in tangents, and of efforts along a change of the problem's numbers."""
    model, (_, before, after, last) = problem.model, split_states(found.states)
    ndx, dtype = found.costates.shape[-1], found.efforts.dtype
    sides = jax.lax.stop_gradient(sides_of_limits(problem, found))
    _, c = eqx.filter_jvp(lambda problem: conditions(problem, found, sides), (problem,), (change,))
    c = jax.tree.map(
        lambda shape, t: jnp.zeros(shape.shape, shape.dtype) if t is None else t,
        jax.eval_shape(lambda: conditions(problem, found, sides)),
        c,
        is_leaf=lambda t: t is None,
    )
    steps = jnp.arange(problem.num_steps)

    def second(k: Any, x: Any, u: Array, x_after: Any) -> tuple[Array, Array]:
        zero, stage = jnp.zeros(ndx + u.shape[0], dtype), problem.stage(k)

        def rows(z: Array) -> Array:
            moved = move_state(model, x, z[:ndx])
            return active_rows(problem, found, moved, u + z[ndx:], stage, k, False)[0]

        return jax.hessian(lambda z: lagrangian(problem, found, z, k, x, u, x_after))(zero), jax.jacrev(rows)(zero)

    H, G = jax.vmap(second)(steps, before, found.efforts, after)
    end = jnp.zeros(ndx, dtype)
    H_at_end = jax.hessian(lambda dx: lagrangian_at_end(problem, found, dx, last))(end)
    G_at_end = jax.jacrev(
        lambda dx: active_rows(
            problem, found, move_state(model, last, dx), None, problem.stage(-1), problem.num_steps, True
        )[0]
    )(end)
    A, B, free = found.A, found.B, sides == 0.0
    held = jnp.where(free, 0.0, c.bounds)  # efforts at a limit move with it
    gaps = c.gaps + jnp.einsum("kij,kj->ki", B, held)
    r = c.gradient + jnp.einsum("kij,kj->ki", H[..., ndx:], held)
    rows, rows_at_end = c.active + jnp.einsum("kij,kj->ki", G[..., ndx:], held), c.active_at_end
    if not problem.constraints:
        factor = factor_second_derivatives(A, B, H, H_at_end, free)
        dx, du = solve_factored(factor, r, c.gradient_at_end, gaps, c.gap_at_start)
        return dx, du + held
    weight = WEIGHT * jnp.maximum(jnp.max(jnp.abs(H)), jnp.max(jnp.abs(H_at_end)))
    squares = jnp.maximum(jnp.max(G * G, initial=0.0), jnp.max(G_at_end * G_at_end, initial=0.0))
    weight = weight / jnp.where(squares > 0.0, squares, 1.0)
    factor = factor_second_derivatives(
        A,
        B,
        H + weight * jnp.einsum("kri,krj->kij", G, G),
        H_at_end + weight * G_at_end.T @ G_at_end,
        free,
    )

    def refine(y: tuple, _: None) -> tuple:
        pull = y[0] + weight * rows, y[1] + weight * rows_at_end
        dx, du = solve_factored(
            factor,
            r + jnp.einsum("kri,kr->ki", G, pull[0]),
            c.gradient_at_end + G_at_end.T @ pull[1],
            gaps,
            c.gap_at_start,
        )
        z = jnp.concatenate([dx[:-1], du], axis=1)
        along = weight * (jnp.einsum("kri,ki->kr", G, z) + rows), weight * (G_at_end @ dx[-1] + rows_at_end)
        return (y[0] + along[0], y[1] + along[1]), (dx, du)

    start = jnp.zeros_like(rows), jnp.zeros_like(rows_at_end)
    _, (dx, du) = jax.lax.scan(refine, start, None, length=REFINEMENTS)
    return dx[-1], du[-1] + held
