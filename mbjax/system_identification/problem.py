"""Least-squares problems: residuals, their Jacobian by the cheaper mode, and both in few rows for the solver."""

import abc
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.linear_algebra import singular_value_factors, triangular_factor
from mbjax.spatial import safe_sqrt


class Channels(NamedTuple):
    """Mean squared errors of channels, and squares of their noise: the same, or robust against outliers.

    `correlation` is that of errors with those of the sample before, where a problem tells it.
    """

    squares: Float[Array, " channels"]
    noise: Float[Array, " channels"]
    correlation: Float[Array, " channels"] | None = None


Rows = tuple[Float[Array, " rows"], Float[Array, "rows unknowns"]]  # residuals and their Jacobian
Evaluated = tuple[Float[Array, " rows"], Float[Array, "rows unknowns"], Channels]


class AbstractProblem(eqx.Module):
    """Residuals of unknowns y, in standard deviations: theta first, then what a method fits beside it."""

    initial: eqx.AbstractVar[Float[Array, " unknowns"]]
    num_parameters: eqx.AbstractVar[int]

    @abc.abstractmethod
    def residuals(self, y: Float[Array, " unknowns"], weights: Float[Array, " channels"]) -> Float[Array, " rows"]:
        """Residuals of all data; `weights` are one over the standard deviation of each channel."""

    @abc.abstractmethod
    def rows(self, y: Float[Array, " unknowns"], weights: Float[Array, " channels"]) -> Rows:
        """Residuals and Jacobian of all data, or fewer rows with the same JᵀJ, Jᵀr and rᵀr."""

    @abc.abstractmethod
    def channel_squares(self, y: Float[Array, " unknowns"]) -> Float[Array, " channels"]:
        """Mean squared error of each channel, in its unit squared."""

    def evaluate(self, y: Float[Array, " unknowns"], weights: Float[Array, " channels"]) -> Evaluated:
        """Canonical rows, and the errors of channels: all that a solver asks for, in one program."""
        squares = self.channel_squares(y)
        return *canonical_rows(*self.rows(y, weights)), Channels(squares, squares)

    @property
    @abc.abstractmethod
    def channel_names(self) -> tuple[str, ...]:
        """Names of the channels."""

    @property
    @abc.abstractmethod
    def num_data(self) -> int:
        """Number of measured numbers."""

    @property
    def has_common_noise(self) -> bool:
        """Whether channels hold one noise together, so that none tells its own."""
        return False

    @property
    def samples_of_channels(self) -> Float[np.ndarray, " channels"]:
        """How many of the measured numbers are of each channel."""
        return np.full(len(self.channel_names), self.num_data / len(self.channel_names))


def fewer_rows(r: Float[Array, " rows"], J: Float[Array, "rows n"]) -> Rows:
    """At most n + 1 rows with the same JᵀJ, Jᵀr and rᵀr, by QR: [J r] = Q R."""
    if r.shape[0] <= J.shape[1] + 1:
        return r, J
    R = triangular_factor(jnp.concatenate([J, r[:, None]], -1))
    return R[:, -1], R[:, :-1]


def canonical_rows(r: Float[Array, " rows"], J: Float[Array, "rows n"]) -> Rows:
    """n + 1 rows with the same JᵀJ, Jᵀr and rᵀr, which change little where J does: (JᵀJ)^½ and a remainder.

    With J = U S Vᵀ they are V S Vᵀ and V Uᵀ r; what of r no unknown can change is the last row.
    """
    r, J = fewer_rows(r, J)
    U, S, Vt = singular_value_factors(J)
    seen = 1e2 * jnp.finfo(S.dtype).eps * jnp.max(S, initial=0.0) < S
    along = jnp.where(seen, U.T @ r, 0.0)
    rest = jnp.maximum(r @ r - along @ along, 0.0)
    r_few = jnp.concatenate([Vt.T @ along, safe_sqrt(rest)[None]])
    return r_few, jnp.concatenate([Vt.T @ (S[:, None] * Vt), jnp.zeros((1, J.shape[1]), J.dtype)])


def linear(r: Array, J: Array) -> Callable[[Array], Array]:
    """A function whose value is r and whose derivative is J, wherever it is taken."""

    @jax.custom_jvp
    def known(y: Array) -> Array:
        del y
        return r

    @known.defjvp
    def _known_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
        del primals
        return r, J @ tangents[0]

    return known


def for_solver(rows: Callable[[Array], Rows]) -> Callable[[Array], Array]:
    """A function of the unknowns whose value and linearization are the canonical rows: one Jacobian for each call.

    A least-squares solver that sees it takes the same steps as with all rows.
    """

    @jax.custom_jvp
    def few(y: Array) -> Array:
        return canonical_rows(*rows(y))[0]

    @few.defjvp
    def _few_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
        r, J = canonical_rows(*rows(primals[0]))
        return r, J @ tangents[0]

    return few


def jacobian_of_samples(function: Callable, num_unknowns: int, num_outputs: int) -> Callable:
    """`function(y, *sample)` and its Jacobian by y, forward or reverse by what is cheaper; takes batched samples.

    Forward mode passes once for each unknown, reverse mode once for each output at about twice the price.
    """
    mode = jax.jacfwd if num_unknowns <= 2 * num_outputs else jax.jacrev

    def both(y: Array, *sample: Array) -> Rows:
        return function(y, *sample), mode(function)(y, *sample)

    return vmapped(both)


def vmapped(function: Callable) -> Callable:
    """Maps over all arguments but the first."""

    def over_samples(y: Array, *samples: Array) -> Rows:
        return jax.vmap(lambda sample: function(y, *sample))(samples)

    return over_samples
