"""A lineax solver of linear least squares whose factorization is safe in batches (`linear_algebra.library`)."""

from typing import Any

import jax
import lineax as lx
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, PyTree

from mbjax.linear_algebra import orthogonal_factors, solve_upper_triangular

Factors = tuple[Array, Array]


class LeastSquares(lx.AbstractLinearSolver[Factors]):
    """Minimizes |A x - b| for an A of full rank with no fewer rows than columns, by A = Q R; x is one array."""

    def init(self, operator: lx.AbstractLinearOperator, options: dict[str, Any]) -> Factors:
        del options
        return orthogonal_factors(operator.as_matrix())

    def compute(self, state: Factors, vector: PyTree[Array], options: dict[str, Any]) -> tuple[Array, lx.RESULTS, dict]:
        del options
        Q, R = state
        return solve_upper_triangular(R, ravel_pytree(vector)[0] @ Q), lx.RESULTS.successful, {}

    def transpose(self, state: Factors, options: dict[str, Any]) -> tuple[Factors, dict[str, Any]]:
        raise NotImplementedError("LeastSquares solves overdetermined systems only, and is not differentiated.")

    def conj(self, state: Factors, options: dict[str, Any]) -> tuple[Factors, dict[str, Any]]:
        return jax.tree.map(lambda x: x.conj(), state), options

    def assume_full_rank(self) -> bool:
        return True

    def allow_dependent_columns(self, operator: lx.AbstractLinearOperator) -> bool:
        """Name of `assume_full_rank` in earlier versions of lineax."""
        return False

    def allow_dependent_rows(self, operator: lx.AbstractLinearOperator) -> bool:
        """Whether rows may depend on each other, in earlier versions of lineax."""
        return True
