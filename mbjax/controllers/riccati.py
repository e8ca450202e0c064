"""The discrete algebraic Riccati equation, by doubling, with derivatives of its solution and not of its iterations."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.linear_algebra import solve
from mbjax.number_rules import is_known

MOST_DOUBLINGS = 60  # 2^60 steps of the recursion
SMALL_CHANGE = 4.0  # in units of rounding


def discrete_riccati(
    A: Float[Array, "n n"], B: Float[Array, "n m"], Q: Float[Array, "n n"], R: Float[Array, "m m"]
) -> Float[Array, "n n"]:
    """Stabilizing solution P of P = Q + Aᵀ P A - Aᵀ P B (R + Bᵀ P B)⁻¹ Bᵀ P A.

    It costs xᵀ P x from x to the end of time, with the costs xᵀ Q x + uᵀ R u of each step (Anderson and Moore 1990,
    "Optimal Control: Linear Quadratic Methods"). Structure-preserving doubling finds it (Chu, Fan, Lin and
    Wang 2004), squaring the error in each turn. NaN where (A, B) cannot be stabilized. R is positive definite, Q
    positive semidefinite, and sees what is unstable: else the solution found is the least one, and stabilizes nothing.
    Of Q and R the symmetric parts count.
    """
    A, B, Q, R = (jnp.asarray(x, jnp.result_type(A)) for x in (A, B, Q, R))
    n, m = B.shape if B.ndim == 2 else (0, 0)
    if A.shape != (n, n) or Q.shape != (n, n) or R.shape != (m, m) or m == 0:
        raise ModelError(
            f"discrete_riccati: A {A.shape}, B {B.shape}, Q {Q.shape} and R {R.shape} do not fit; they are (n, n), "
            "(n, m), (n, n) and (m, m)."
        )
    return riccati_solution(A, B, 0.5 * (Q + Q.T), 0.5 * (R + R.T))


@jax.custom_jvp
def riccati_solution(A: Array, B: Array, Q: Array, R: Array) -> Float[Array, "n n"]:
    """The solution, from checked matrices."""
    return compiled_doubling(A, B, Q, R)


@riccati_solution.defjvp
def _riccati_solution_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    """dP = Fᵀ dP F + dQ + Kᵀ dR K + Fᵀ P (dA - dB K) + its transpose, with F = A - B K."""
    (A, B, Q, R), (dA, dB, dQ, dR) = primals, tangents
    P = riccati_solution(A, B, Q, R)
    K = optimal_gain(A, B, R, P)
    F = A - B @ K
    half = F.T @ P @ (dA - dB @ K)
    return P, solve_stein(F, dQ + K.T @ dR @ K + half + half.T)


def optimal_gain(A: Array, B: Array, R: Array, P: Array) -> Float[Array, "m n"]:
    """K = (R + Bᵀ P B)⁻¹ Bᵀ P A of the optimal u = -K x."""
    return solve(R + B.T @ P @ B, B.T @ P @ A)


class Doubled(NamedTuple):
    """2^k steps at once: how states move A, what efforts reach G, and what is paid H."""

    A: Array
    G: Array
    H: Array
    change: Array
    turn: Array


@jax.jit
def compiled_doubling(A: Array, B: Array, Q: Array, R: Array) -> Float[Array, "n n"]:
    """H rises to P: A' = A W A, G' = G + A W G Aᵀ, H' = H + Aᵀ H W A, with W = (1 + G H)⁻¹."""
    one = jnp.eye(len(A), dtype=A.dtype)

    def changes(now: Doubled) -> Array:
        return now.change > SMALL_CHANGE * jnp.finfo(A.dtype).eps * jnp.max(jnp.abs(now.H))

    def goes_on(now: Doubled) -> Array:
        return (now.turn < MOST_DOUBLINGS) & changes(now)

    def doubled(now: Doubled) -> Doubled:
        both = solve(one + now.G @ now.H, jnp.concatenate([now.A, now.G], axis=1))
        W_A, W_G = both[:, : len(A)], both[:, len(A) :]
        more = now.A.T @ now.H @ W_A
        G = now.G + now.A @ W_G @ now.A.T
        H = now.H + 0.5 * (more + more.T)
        return Doubled(now.A @ W_A, 0.5 * (G + G.T), H, jnp.max(jnp.abs(more)), now.turn + 1)

    start = Doubled(A, B @ solve(R, B.T), Q, jnp.asarray(jnp.inf, A.dtype), jnp.zeros((), jnp.int32))
    end = lax.while_loop(goes_on, doubled, start)
    return jnp.where(changes(end) | ~jnp.isfinite(end.change), jnp.nan, end.H)


def solve_stein(F: Float[Array, "n n"], W: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """X with X - Fᵀ X F = W, of a stable F."""
    fixed = lax.stop_gradient(F)
    return lax.custom_linear_solve(
        lambda X: X - F.T @ X @ F,
        W,
        lambda _, W: sum_of_powers(fixed, W),
        lambda _, W: sum_of_powers(fixed.T, W),
    )


def sum_of_powers(F: Float[Array, "n n"], W: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Sum of (Fᵀ)^k W F^k over all k, by doubling (Smith 1968)."""

    def doubled(now: tuple) -> tuple:
        F, X, _, turn = now
        more = F.T @ X @ F
        return F @ F, X + more, jnp.max(jnp.abs(more)), turn + 1

    def goes_on(now: tuple) -> Array:
        _, X, change, turn = now
        return (turn < MOST_DOUBLINGS) & (change > jnp.finfo(W.dtype).eps * jnp.max(jnp.abs(X)))

    start = F, W, jnp.asarray(jnp.inf, W.dtype), jnp.zeros((), jnp.int32)
    return lax.while_loop(goes_on, doubled, start)[1]


def require_solution(call: str, P: Array) -> None:
    """Raises `ModelError` where the equation has no stabilizing solution, if the numbers are known."""
    if is_known(P) and not jnp.all(jnp.isfinite(P)):
        raise ModelError(
            f"{call}: no feedback stabilizes the model here, or Q does not see what is unstable: the Riccati equation "
            "has no solution. Give actuators that reach every motion, lock what nothing reaches, or give "
            "controllers.time_varying_lqr a number of steps."
        )
