"""Base parameters of a fit: the combinations of a model's numbers that the log shows, each with its error bar."""

import dataclasses
from statistics import NormalDist
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.execution import call_compiled

from .base_parameters import BaseParameters, base_of_rows, random_rows
from .linear_torques import changing_columns, make_linear_torques
from .method import Method
from .parameter_table import text_table
from .parameters import Parameters
from .regressor import linear_parameter_names, linear_parameters
from .torques import Torques

UNSEEN = 1e-4  # part of a combination's change that the data do not see, from which its deviation is infinite


@dataclasses.dataclass(frozen=True, eq=False)
class BaseFit:
    """Base parameters at the fit, by the number that stands first in each, with standard deviations and covariance.

    They are linear in what inverse dynamics is linear in (`linear_parameters`): masses, first moments, inertias about
    bodies' origins, friction, damping. `parameters` says which combination each is.
    """

    parameters: BaseParameters
    values: dict[str, float]
    standard_deviation: dict[str, float]
    covariance: Float[np.ndarray, "rank rank"]

    def intervals(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Intervals that hold with this probability."""
        width = NormalDist().inv_cdf(0.5 + 0.5 * level)
        return {
            name: (value - width * self.standard_deviation[name], value + width * self.standard_deviation[name])
            for name, value in self.values.items()
        }

    def table(self) -> list[list[str]]:
        """Rows of name, value, standard deviation, and what it is a combination of, as text."""
        rows = []
        for name, terms in zip(self.values, self.parameters.terms(), strict=True):
            deviation = self.standard_deviation[name]
            told = "not seen" if np.isinf(deviation) else f"{deviation:.2g}"
            rows.append([name, f"{self.values[name]:.5g}", told, terms])
        return rows

    def __str__(self) -> str:
        rows = [[name, value, deviation] for name, value, deviation, _ in self.table()]
        text = text_table(BASE_COLUMNS[:3], rows).split("\n")
        ends = ["", "", *(terms and f"  {terms}" for *_, terms in self.table())]
        return "\n".join(line + end for line, end in zip(text, ends, strict=True))

    def __repr__(self) -> str:
        return str(self)


BASE_COLUMNS = ["base parameter", "estimate", "± deviation", "with"]


def fitted_base(
    unknown: Parameters,
    theta: Float[Array, " n"],
    covariance: Float[np.ndarray, "n n"],
    null_space: Float[np.ndarray, "n unseen"],
    logs: tuple[Any, ...],
    method: Method,
) -> BaseFit:
    """Base parameters of the linear numbers that depend on theta; `covariance` and `null_space` are of theta.

    They are those that the log's motion shows in the efforts, for fits of efforts, else those that any motion can show.
    """
    model = unknown.base.model
    columns = changing_columns(unknown)
    names = linear_parameter_names(model)
    if not columns:
        raise ModelError(
            "Fit.base: none of the unknowns is a number that inverse dynamics is linear in, so there are no base "
            "parameters; fit.values and fit.correlations say what was found."
        )
    if isinstance(method, Torques):
        measured, labels = method.measured(model)
        projections = method.projections(model, logs)
        R = np.asarray(make_linear_torques(unknown, logs, projections, measured, labels).R, float)
        rows = R[:, :, : len(columns)].reshape(-1, len(columns))
    else:
        rows = random_rows(model, 200, 0)[:, list(columns)]
    base = base_of_rows(tuple(names[i] for i in columns), rows, np.dtype(model.dtype))
    pi, by_theta = (np.asarray(x, float) for x in call_compiled(numbers_and_slopes, unknown, theta, columns))
    D = base.matrix @ by_theta
    variance = D @ covariance @ D.T
    size = np.linalg.norm(D, axis=1)
    hidden = np.linalg.norm(D @ null_space, axis=1) > UNSEEN * np.where(size > 0.0, size, 1.0)
    deviation = np.where(hidden, np.inf, np.sqrt(np.maximum(np.diag(variance), 0.0)))
    shown = [base.names[i] for i in base.independent]
    values = dict(zip(shown, map(float, base.matrix @ pi), strict=True))
    return BaseFit(base, values, dict(zip(shown, map(float, deviation), strict=True)), variance)


def numbers_and_slopes(unknown: Parameters, theta: Array, columns: tuple[int, ...]) -> tuple[Array, Array]:
    """Linear parameters in these columns, and their derivatives by theta."""

    def numbers(theta: Array) -> Array:
        return linear_parameters(unknown.system(theta).model)[np.array(columns, int)]

    return numbers(theta), jnp.asarray(jax.jacfwd(numbers)(theta))
