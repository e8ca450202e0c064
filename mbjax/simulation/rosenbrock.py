"""One step of a Rosenbrock method: implicit, but with linear systems only, one matrix for all stages.

Rodas4 of Hairer and Wanner (Solving Ordinary Differential Equations II, sec. VII.4): order 4 with an embedded
solution of order 3, L-stable, and exact where the state is stiff. Its stages are U_i with

    (1 / (h γ) - J) U_i = f(y + Σ a_ij U_j) + Σ c_ij U_j / h,    y⁺ = y + Σ m_i U_i,    J = f'(y).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from mbjax.linear_algebra import factor_general, solve_with_factors

GAMMA = 0.25
ORDER_OF_ERROR = 4  # the estimated error falls with this power of the step
A = np.zeros((7, 6))
A[1, :1] = 1.544
A[2, :2] = 0.9466785280815826, 0.2557011698983284
A[3, :3] = 3.314825187068521, 2.896124015972201, 0.9986419139977817
A[4, :4] = 1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950
A[5, :5] = *A[4, :4], 1.0
A[6] = *A[5, :5], 1.0  # the step's end
C = np.zeros((7, 6))
C[1, :1] = -5.6688
C[2, :2] = -2.430093356833875, -0.2063599157091915
C[3, :3] = -0.1073529058151375, -9.594562251023355, -20.47028614809616
C[4, :4] = 7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160
C[5, :5] = 8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054


class RosenbrockStep(NamedTuple):
    """The state after a step, the estimate of its error, and what the slope returns beside the slope at its end."""

    y: Float[Array, " n"]
    error: Float[Array, " n"]
    at_end: Any


def rosenbrock_step(
    slope: Callable[[Array], tuple[Array, Any]], y: Float[Array, " n"], h: Float[Array, ""], *, needs_end: bool
) -> RosenbrockStep:
    """A step of length h of the autonomous system dy / dt = slope(y)[0]; `at_end` is None unless it is needed.

    The derivative is that of these formulas, with one more solve by the same matrix for each stage.
    """
    n, count = y.shape[0], len(C) - 1
    J = jax.jacfwd(lambda y: slope(y)[0])(y)
    W = jnp.eye(n, dtype=y.dtype) / (h * GAMMA) - J
    factors = factor_general(W)

    def stage(U: Array, of_stage: tuple[Array, Array, Array]) -> tuple[Array, Any]:
        i, a, c = of_stage
        at_stage, beside = slope(y + a @ U)
        return U.at[i].set(
            solve_with_factors(W, factors, at_stage + (c @ U) / h), mode="drop"
        ), beside if needs_end else None

    rows = slice(0, count + needs_end)  # one row more evaluates the slope at the end
    table = jnp.arange(count + needs_end), jnp.asarray(A[rows], y.dtype), jnp.asarray(C[rows], y.dtype)
    U, beside = lax.scan(stage, jnp.zeros((count, n), y.dtype), table)
    at_end = jax.tree.map(lambda x: x[-1], beside) if needs_end else None
    return RosenbrockStep(y + jnp.asarray(A[count], y.dtype) @ U, U[-1], at_end)
