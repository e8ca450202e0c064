"""The result of a fit: values with standard deviations, what the data cannot see, errors, plots and a report."""

import dataclasses
import functools
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Array, Float

from mbjax.model import MultibodyModel

from .answers import NOISE_ALONE, correlations_of, is_seen
from .base_fit import BASE_COLUMNS, BaseFit, fitted_base
from .linear_torques import changing_columns
from .log import Log
from .method import Method
from .parameter_table import counted, ends_of_range, text_table
from .parameters import Parameters, typical_sizes
from .plots import plot_fit
from .recording import Recording
from .report import bullets, correlation_matrix, paragraph, picture, table, write_report
from .system import Drives, Sensors

SHOWN_SENTENCES = 12
CORRELATED = 0.8  # effective over all samples, below which it is said
BASE_WORDS = "The combinations of numbers that the data tell apart, as inverse dynamics is linear in them."
COLUMNS = ["parameter", "start", "estimate", "± deviation", "unit"]


@dataclasses.dataclass(frozen=True, eq=False)
class Fit:
    """What `fit` found. `print(fit)` shows it as a table; `fit.report("report.html")` writes it down.

    `covariance` is of the values where the data see them; `null_space` spans, in values, what they do not see, and
    `unseen` says it in words. `errors` are root mean squares by channel, `noise` the standard deviations that weighed
    them; `chi_squared` per degree of freedom is one where they were right. `samples` are the data of each channel, and
    `effective_samples` how many independent ones they count as in the deviations: of `Torques` fewer where errors are
    correlated in time; of `Trajectories` and `Predictions` all, as if errors were independent. `advice` are sentences
    on what the errors show. Deviations are what noise does: they leave out the bias of forces that the model does not
    have.
    """

    unknown: Parameters
    theta: Float[Array, " n"]
    extra: np.ndarray  # what else was fitted: the starts of windows
    covariance: Float[np.ndarray, "n n"]
    null_space: Float[np.ndarray, "n unseen"]
    covariance_of_theta: Float[np.ndarray, "n n"]
    null_space_of_theta: Float[np.ndarray, "n unseen"]
    unseen: tuple[str, ...]
    condition_number: float
    rank: int
    errors: dict[str, float]
    held_out_errors: dict[str, dict[str, float]]
    noise: dict[str, float]
    samples: dict[str, int]
    effective_samples: dict[str, float]
    advice: tuple[str, ...]
    chi_squared: float
    num_data: int
    converged: bool
    message: str
    costs: tuple[float, ...]
    iterates: tuple[np.ndarray, ...]
    logs: tuple[Log | Recording, ...]
    held_out: tuple[Log | Recording, ...]
    method: Method

    @property
    def model(self) -> MultibodyModel:
        """The fitted model."""
        return self.unknown.model(self.theta)

    @property
    def sensors(self) -> Sensors:
        """The fitted sensors."""
        return self.unknown.sensors(self.theta)

    @property
    def drives(self) -> Drives:
        """The fitted drives: Stribeck's and asymmetric friction, which `model` does not have."""
        return self.unknown.drives(self.theta)

    @property
    def values(self) -> dict[str, float]:
        """Estimates by name, in their units."""
        return named(self.unknown, np.asarray(self.unknown.values(self.theta), float))

    @property
    def start(self) -> dict[str, float]:
        """Values before the fit, by name."""
        return named(self.unknown, np.asarray(self.unknown.values(self.unknown.initial), float))

    @property
    def standard_deviation(self) -> dict[str, float]:
        """Standard deviations by name; infinite for what the data do not see by itself."""
        deviation = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        seen = is_seen(self.null_space, typical_sizes(self.unknown))
        return named(self.unknown, np.where(seen, deviation, np.inf))

    @functools.cached_property
    def base(self) -> BaseFit:
        """Base parameters, the combinations that the data see, with standard deviations and intervals."""
        return fitted_base(
            self.unknown, self.theta, self.covariance_of_theta, self.null_space_of_theta, self.logs, self.method
        )

    @property
    def not_white(self) -> tuple[str, ...]:
        """Sentences on channels whose errors are correlated in time, so that their samples count as fewer."""
        return tuple(
            f"Errors of '{name}' are not white: {self.samples[name]} samples count as {count:.0f} in the deviations."
            for name, count in self.effective_samples.items()
            if count < CORRELATED * self.samples[name]
        )

    @property
    def correlations(self) -> Float[np.ndarray, "n n"]:
        """Correlations of the values."""
        return correlations_of(self.covariance)

    def strongest_correlations(self, count: int = 5) -> list[tuple[str, str, float]]:
        """Pairs of parameters that the data can hardly tell apart."""
        C = np.triu(self.correlations, 1)
        order = np.argsort(-np.abs(C), axis=None)[:count]
        names = self.unknown.names
        pairs = [np.unravel_index(k, C.shape) for k in order]
        return [(names[i], names[j], float(C[i, j])) for i, j in pairs if C[i, j] != 0.0]

    @property
    def at_end_of_range(self) -> tuple[str, ...]:
        """Names of the parameters whose range ends within two standard deviations of their estimate."""
        values, deviation, found = self.values, self.standard_deviation, []
        for entry in self.unknown.unknowns:
            low, high = ends_of_range(entry)
            value, near = values[entry.name], 2.0 * deviation[entry.name]
            if np.isfinite(near) and (value - low <= near or high - value <= near):
                found.append(entry.name)
        return tuple(found)

    def table(self) -> list[list[str]]:
        """Rows of name, start, estimate, standard deviation and unit, as text."""
        values, start, deviation = self.values, self.start, self.standard_deviation
        return [
            [name, f"{start[name]:.5g}", *estimate(values[name], deviation[name]), unit]
            for name, unit in zip(self.unknown.names, self.unknown.units, strict=True)
        ]

    def __str__(self) -> str:
        lines = [self.message]
        ends = () if self.converged else self.at_end_of_range
        if ends:
            lines.append(
                f"At the end of their range within the error bars: {', '.join(ends)}. The search approaches it without "
                "end, so it may not converge; leave them out, or take another range."
            )
        lines.append(
            f"{self.num_data} measured numbers, {counted(len(self.unknown), 'parameter')}, "
            f"{counted(self.rank, 'combination')} seen, "
            f"condition number {self.condition_number:.3g}."
        )
        lines += ["", text_table(COLUMNS, self.table()), ""]
        lines.append(text_table(["channel", "error (rms)", *self.held_out_errors], self.error_rows()))
        lines += ["", *self.not_white, *self.advice, NOISE_ALONE]
        if self.unseen:
            lines += ["", f"What the data do not see ({len(self.unseen)}):"]
            lines += [f"- {words}" for words in self.unseen[:SHOWN_SENTENCES]]
            if len(self.unseen) > SHOWN_SENTENCES:
                lines.append(f"- and {len(self.unseen) - SHOWN_SENTENCES} more: fit.unseen, or the report")
        return "\n".join(lines)

    def error_rows(self) -> list[list[str]]:
        """Rows of channel, error, and errors of held-out logs, as text."""
        return [
            [name, f"{error:.4g}", *(f"{of[name]:.4g}" for of in self.held_out_errors.values())]
            for name, error in self.errors.items()
        ]

    def plot(self, path: str | Path | None = None) -> Any:
        """Measured and predicted signals, and what is left, as a figure of matplotlib; written to `path` if given."""
        log = (self.held_out or self.logs)[0]
        names, measured, predicted = self.method.prediction(self.unknown, self.theta, log)
        figure = plot_fit(log, names, measured, predicted, is_held_out=bool(self.held_out))
        if path is not None:
            figure.savefig(path, dpi=120)
        return figure

    def __repr__(self) -> str:
        return str(self)

    def base_section(self) -> list[tuple[str, str]]:
        """The part of the report on base parameters, where there are any."""
        if not changing_columns(self.unknown):
            return []
        return [("Base parameters", paragraph(BASE_WORDS) + table(BASE_COLUMNS, self.base.table()))]

    def report(self, path: str | Path) -> Path:
        """Writes one HTML file that needs nothing else: values, plots, correlations, what the data do not see."""
        known = (
            f"{self.num_data} measured numbers, {counted(len(self.unknown), 'parameter')}, "
            f"{counted(self.rank, 'combination')} seen, "
            f"condition number {self.condition_number:.3g}, chi squared per degree of freedom {self.chi_squared:.3g}."
        )
        errors = ["channel", "error (rms)", *(f"{name} (held out)" for name in self.held_out_errors)]
        strongest = [[a, b, f"{c:+.3f}"] for a, b, c in self.strongest_correlations(10)]
        unseen = bullets(self.unseen) if self.unseen else paragraph("Every parameter is seen by itself.")
        costs = f"Half the sum of squares, step by step: {', '.join(f'{cost:.4g}' for cost in self.costs)}."
        return write_report(
            Path(path),
            f"System identification of {', '.join(log.name for log in self.logs)}",
            [paragraph(self.message, "" if self.converged else "bad"), paragraph(known)],
            [
                ("Parameters", table(COLUMNS, self.table()) + paragraph(NOISE_ALONE)),
                *self.base_section(),
                ("Errors", table(errors, self.error_rows()) + bullets((*self.not_white, *self.advice))),
                ("What the data do not see", unseen),
                (
                    "Strongest correlations",
                    table(["parameter", "parameter", "correlation"], strongest)
                    + correlation_matrix(self.unknown.names, self.correlations),
                ),
                ("Measured and fitted", picture(self.plot)),
                ("Convergence", paragraph(costs)),
            ],
        )


def named(unknown: Parameters, values: np.ndarray) -> dict[str, float]:
    """Numbers by the parameters' names."""
    return dict(zip(unknown.names, map(float, values), strict=True))


def estimate(value: float, deviation: float) -> tuple[str, str]:
    """An estimate and its standard deviation, with as many digits as that allows."""
    if not np.isfinite(deviation):
        return f"{value:.5g}", "not seen"
    if deviation == 0.0 or value == 0.0:
        return f"{value:.6g}", f"{deviation:.2g}"
    digits = int(np.clip(np.ceil(np.log10(abs(value) / deviation)) + 2, 2, 12))
    return f"{value:.{digits}g}", f"{deviation:.2g}"
