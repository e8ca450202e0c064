"""The Riccati recursion as an associative scan: O(log steps) sweeps where a device runs all steps at once.

Each step is an element (A, b, C, η, J): the value of leaving x for y, at best, is the minimum over their saddle point
    V(x, y) = max over λ of  x·J x / 2 - η·x - λ·C λ / 2 - λ·(y - A x - b)
and elements of neighbouring stretches combine (Särkkä and García-Fernández 2023, "Temporal parallelization of dynamic
programming and linear quadratic control", eq. 26). All efforts are free here: limits need the recursion.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.linear_algebra import solve

from .expansion import Expansion
from .riccati import Feedback, feedback_of


class Stretch(NamedTuple):
    """The value function between the ends of a stretch of steps."""

    A: Float[Array, "*steps ndx ndx"]
    b: Float[Array, "*steps ndx"]
    C: Float[Array, "*steps ndx ndx"]
    eta: Float[Array, "*steps ndx"]
    J: Float[Array, "*steps ndx ndx"]


def joined(later: Stretch, earlier: Stretch) -> Stretch:
    """The stretch of two neighbouring ones. Reversed scans give the later one first."""
    one = jnp.eye(earlier.A.shape[-1], dtype=earlier.A.dtype)
    M = one + earlier.C @ later.J
    n, moved = M.shape[-1], earlier.b + times(earlier.C, later.eta)
    left = solve_all(M, jnp.concatenate([earlier.A, earlier.C @ transposed(later.A), column(moved)], axis=-1))
    A_part, C_part, b_part = left[..., :n], left[..., n:-1], left[..., -1]
    right = solve_all(
        transposed(M), jnp.concatenate([later.J @ earlier.A, column(later.eta - times(later.J, earlier.b))], axis=-1)
    )
    return Stretch(
        later.A @ A_part,
        times(later.A, b_part) + later.b,
        symmetric(later.A @ C_part + later.C),
        times(transposed(earlier.A), right[..., -1]) + earlier.eta,
        symmetric(transposed(earlier.A) @ right[..., :-1] + earlier.J),
    )


def solve_all(M: Float[Array, "steps n n"], b: Float[Array, "steps n k"]) -> Float[Array, "steps n k"]:
    """Solves M x = b at every step."""
    return jax.vmap(solve)(M, b)


def transposed(M: Array) -> Array:
    return jnp.swapaxes(M, -1, -2)


def times(M: Array, x: Array) -> Array:
    """Products of matrices and vectors."""
    return jnp.einsum("...ij,...j->...i", M, x)


def column(x: Array) -> Array:
    """Vectors as matrices of one column."""
    return x[..., None]


def symmetric(M: Array) -> Array:
    """The symmetric part."""
    return 0.5 * (M + transposed(M))


def solve_riccati_in_parallel(expansion: Expansion, regularization: Float[Array, ""]) -> Feedback:
    """The feedback that `solve_riccati` gives without limits, by an associative scan from the last step backward."""
    e, nu, ndx = expansion, expansion.B.shape[-1], expansion.A.shape[-1]
    R = e.l_uu + regularization * jnp.eye(nu, dtype=e.A.dtype)  # V_xx is not regularized: each step knows l_uu alone
    R_inverse = jax.vmap(lambda R: solve(R, jnp.eye(nu, dtype=R.dtype)))(R)
    S = R_inverse @ e.l_ux  # efforts u = w - S x - R⁻¹ l_u leave no mixed terms
    s = times(R_inverse, e.l_u)
    V_xx_end = e.l_xx[-1]
    steps = Stretch(
        e.A - e.B @ S,
        e.gaps - times(e.B, s),
        symmetric(e.B @ R_inverse @ transposed(e.B)),
        -(e.l_x[:-1] - times(transposed(S), e.l_u)),
        symmetric(e.l_xx[:-1] - transposed(e.l_ux) @ S),
    )
    zero = jnp.zeros_like(V_xx_end)
    end = Stretch(zero, jnp.zeros(ndx, zero.dtype), zero, -e.l_x[-1], V_xx_end)
    elements = jax.tree.map(lambda x, last: jnp.concatenate([x, last[None]]), steps, end)
    value = jax.lax.associative_scan(joined, elements, reverse=True)
    V_x, V_xx = -value.eta, value.J

    def feedback(A: Array, B: Array, gap: Array, l_u: Array, l_ux: Array, R: Array, V_x: Array, V_xx: Array) -> tuple:
        Q_u = l_u + B.T @ (V_x + V_xx @ gap)
        Q_uu = R + B.T @ V_xx @ B
        k, K, is_convex = feedback_of(Q_u, l_ux + B.T @ V_xx @ A, Q_uu, None)
        return k, K, Q_u @ k, k @ Q_uu @ k, is_convex

    k, K, first, second, is_convex = jax.vmap(feedback)(e.A, e.B, e.gaps, e.l_u, e.l_ux, R, V_x[1:], V_xx[1:])
    return Feedback(k, K, V_x, V_xx, jnp.sum(first), jnp.sum(second), jnp.all(is_convex))
