"""What a method of identification answers: how logs become a least-squares problem, and what a fit of them predicts."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Array, Float

from .log import Log
from .parameters import Parameters
from .problem import AbstractProblem


@runtime_checkable
class Method(Protocol):
    """How logs are compared with the model: `Torques` or `Trajectories`, or one of your own."""

    def problem(self, unknown: Parameters, logs: Sequence[Log]) -> AbstractProblem:
        """The least-squares problem of fitting the unknown parameters to logs."""
        ...

    def known_weights(self, problem: Any) -> Float[np.ndarray, " channels"] | None:
        """One over the standard deviations that were given, by channel; None if they are to be estimated."""
        ...

    def prediction(self, unknown: Parameters, theta: Array, log: Log) -> tuple[tuple[str, ...], Array, Array]:
        """Names of channels, and measured and predicted signals of one log, for plots."""
        ...
