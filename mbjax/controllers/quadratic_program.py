"""Convex quadratic programs: solved by qpax's interior point method, differentiated at the solution.

qpax has derivatives in reverse mode of a smoothed solution. Here the optimality conditions are differentiated as a
linear system, so that forward and reverse mode agree with each other and with differences.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.linear_algebra import solve
from mbjax.optional_packages import imported

MOST_ITERATIONS = 60
ACTIVE_SET_TURNS = 6
COARSE, FINE = 1e-4, 1e-6  # of the interior point method, in double precision
SINGLE = 1e-3  # the same in single precision


class QuadraticProgram(NamedTuple):
    """Minimize xᵀ Q x / 2 + q·x subject to A x = b and G x <= h, with Q positive definite and A of full rank."""

    Q: Float[Array, "n n"]
    q: Float[Array, " n"]
    A: Float[Array, "m n"]
    b: Float[Array, " m"]
    G: Float[Array, "p n"]
    h: Float[Array, " p"]


class Optimum(NamedTuple):
    """The minimum x, the multipliers of equalities and of inequalities, and whether it was found."""

    x: Float[Array, " n"]
    equality: Float[Array, " m"]
    inequality: Float[Array, " p"]
    converged: Bool[Array, ""]


def solve_quadratic_program(program: QuadraticProgram) -> Optimum:
    """The optimum; NaN where the program has no solution.

    Its derivatives hold which inequalities are active. Where one holds with equality and a multiplier of zero there
    are two slopes, and the derivative is that of the side on which it is idle.
    """
    x, y, z, converged = optimum(*program)
    return Optimum(x, y, z, converged > 0.5)


def search(*given: Array) -> tuple[Array, Array, Array, Array]:
    """The optimum by qpax, then exactly on the constraints that it found to be active; `converged` as a number.

    A coarse solution nearly always tells the active constraints, in a fifth of the iterations of a fine one, which
    is asked for where it does not.
    """
    program = QuadraticProgram(*given)
    dtype = program.Q.dtype
    is_double = dtype == jnp.float64
    fine = FINE if is_double else SINGLE

    def has_none(carry: tuple) -> Array:
        tolerance, _, converged = carry
        return ~converged & (tolerance >= fine)

    def sharpened(carry: tuple) -> tuple:
        tolerance = carry[0]
        found, converged = optimum_near(program, tolerance, jnp.asarray(fine, dtype))
        return tolerance * (FINE / COARSE), found, converged

    nothing = tuple(jnp.full(x.shape, jnp.nan, dtype) for x in (program.q, program.b, program.h))
    start = jnp.asarray(COARSE if is_double else SINGLE, dtype), nothing, jnp.asarray(False)
    _, found, converged = jax.lax.while_loop(has_none, sharpened, start)
    x, y, z = (jnp.where(converged, each, jnp.nan) for each in found)
    return x, y, z, converged.astype(dtype)


def optimum_near(program: QuadraticProgram, tolerance: Array, most: Array) -> tuple[tuple, Bool[Array, ""]]:
    """The better of an interior point to the tolerance and of the optimum on its active set; whether it is optimal."""
    qpax = imported("qpax", "controllers.whole_body needs qpax", "control")
    with jax.numpy_dtype_promotion("standard"):
        x, _, z, y, _, _ = qpax.solve_qp(*program, solver_tol=tolerance, max_iter=MOST_ITERATIONS)
    near = tuple(each.astype(program.Q.dtype) for each in (x, y, z))
    exact, left = on_active_set(program, near, most)
    return exact, left < most


def on_active_set(program: QuadraticProgram, near: tuple, enough: Array) -> tuple[tuple, Float[Array, ""]]:
    """The optimum with equality where a multiplier outweighs the room that is left, and how far it is from optimal.

    A few turns of the primal-dual active set method (Hintermüller, Ito and Kunisch 2002), the best of which counts;
    they end when the active constraints stay.
    """
    size, count = program.A.shape[1], program.A.shape[0]

    def active(point: tuple) -> Bool[Array, " p"]:
        x, _, z = point
        return z > program.h - program.G @ x

    def goes_on(carry: tuple) -> Array:
        turn, is_steady, *_ = carry
        return (turn < ACTIVE_SET_TURNS) & ~is_steady

    def advance(carry: tuple) -> tuple:
        turn, _, point, best, left = carry
        is_active = active(point)
        share = is_active.astype(program.Q.dtype)
        right = jnp.concatenate([-program.q, program.b, share * program.h])
        solved = solve(optimality_matrix(program, share, 1.0 - share), right)
        new = tuple(jnp.split(solved, [size, size + count]))
        new_left = residual(program, *new)
        best = tuple(jnp.where(new_left < left, a, b) for a, b in zip(new, best, strict=True))
        is_steady = jnp.all(active(new) == is_active) & (new_left < enough)
        return turn + 1, is_steady, new, best, jnp.minimum(new_left, left)

    start = jnp.int32(0), jnp.asarray(False), near, near, residual(program, *near)
    *_, best, left = jax.lax.while_loop(goes_on, advance, start)
    return best, left


def optimality_matrix(program: QuadraticProgram, active: Array, idle: Array) -> Float[Array, "all all"]:
    """Matrix of the optimality conditions in (x, y, z): active rows G x = h, and z = 0 for idle ones."""
    Q, _, A, b, G, h = program
    m, p = len(b), len(h)
    return jnp.block(
        [
            [Q, A.T, G.T],
            [A, jnp.zeros((m, m + p), Q.dtype)],
            [active[:, None] * G, jnp.zeros((p, m), Q.dtype), jnp.diag(idle)],
        ]
    )


def residual(program: QuadraticProgram, x: Array, y: Array, z: Array) -> Float[Array, ""]:
    """How far a point is from optimal; infinite where it is not finite."""
    Q, q, A, b, G, h = program
    room = h - G @ x
    slope = (Q @ x + q + A.T @ y + G.T @ z) / jnp.maximum(jnp.max(jnp.abs(q)), 1.0)
    parts = slope, A @ x - b, jnp.minimum(room, 0.0), jnp.minimum(z, 0.0), jnp.minimum(jnp.abs(room), jnp.abs(z))
    worst = jnp.max(jnp.abs(jnp.concatenate(parts)))
    return jnp.where(jnp.isfinite(worst), worst, jnp.inf)


@jax.custom_jvp
def optimum(Q: Array, q: Array, A: Array, b: Array, G: Array, h: Array) -> tuple[Array, Array, Array, Array]:
    """x, multipliers of equalities and inequalities, and whether they were found, as a number."""
    return search(Q, q, A, b, G, h)


@optimum.defjvp
def _optimum_jvp(primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    """Differentiates Q x + q + Aᵀ y + Gᵀ z = 0, A x = b, and z (h - G x) = 0 of each inequality (Amos, Kolter 2017)."""
    _, _, A, _, G, h = primals
    dQ, dq, dA, db, dG, dh = tangents
    x, y, z, found = optimum(*primals)
    z, room = jnp.maximum(z, 0.0), jnp.maximum(h - G @ x, 0.0)
    z_in = jnp.where(z > 0.0, z / jnp.where(z > 0.0, z + room, 1.0), 0.0)
    room_in = 1.0 - z_in  # an inequality that holds by nothing and presses with nothing counts as idle
    KKT = optimality_matrix(QuadraticProgram(*primals), z_in, -room_in)
    change = jnp.concatenate([-(dQ @ x + dq + dA.T @ y + dG.T @ z), db - dA @ x, z_in * (dh - dG @ x)])
    solved = solve(KKT, change)
    dx, dy, dz = jnp.split(solved, [len(x), len(x) + len(A)])
    return (x, y, z, found), (dx, dy, dz, jnp.zeros_like(found))
