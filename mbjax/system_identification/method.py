"""What a method of identification answers: how logs become a least-squares problem, and what a fit of them predicts."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Array, Float

from .log import Log
from .losses import Loss
from .parameters import Parameters
from .problem import AbstractProblem


@runtime_checkable
class Method(Protocol):
    """How logs are compared with the model: `Torques`, `Trajectories` or `Predictions`, or one of your own."""

    def problem(self, unknown: Parameters, logs: Sequence[Any]) -> AbstractProblem:
        """The least-squares problem of fitting the unknown parameters to logs or recordings, as the method takes."""
        ...

    def known_weights(self, problem: Any) -> Float[np.ndarray, " channels"] | None:
        """One over the standard deviations that were given, by channel; None if they are to be estimated."""
        ...

    def prediction(self, unknown: Parameters, theta: Array, log: Any) -> tuple[tuple[str, ...], Array, Array]:
        """Names of channels, and measured and predicted signals of one log, for plots."""
        ...


@runtime_checkable
class MethodWithSteps(Protocol):
    """A method that simulates by steps, and can tell what shorter ones would change."""

    continuous: bool

    def corrected(self, problem: Any, y: Array) -> Any:
        """The problem whose errors near y are those of the continuous motion, if that is what is fitted."""
        ...

    def refined(self, problem: Any, y: Array) -> Any:
        """The problem whose errors near y are those of half the step; None where steps do not matter."""
        ...

    def growth(self, problem: Any, y: Array, weights: Float[np.ndarray, " channels"]) -> float:
        """How much larger errors are at the ends of windows than at their starts; 1 where starts are fitted."""
        ...


@runtime_checkable
class MethodWithRows(Protocol):
    """A method that tells the rows behind its sums, for error bars where errors are not white or far from normal."""

    @property
    def plain(self) -> Any:
        """The same method by least squares."""
        ...

    @property
    def loss_of(self) -> Loss:
        """Its loss."""
        ...

    def can_clean(self, unknown: Parameters) -> bool:
        """Whether its robust loss may be least squares of cleaned logs."""
        ...

    def cleaned(self, unknown: Parameters, theta: Array, logs: Sequence[Log]) -> tuple[tuple[Log, ...], np.ndarray]:
        """Logs without outliers, as seen from theta, and the mean slope of the loss's score by channel."""
        ...

    def rows_of(
        self, unknown: Parameters, theta: Array, log: Log, *, with_slopes: bool = True
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Errors of one log's rows by channel, their slopes by theta if wanted, and ones where they are data."""
        ...
