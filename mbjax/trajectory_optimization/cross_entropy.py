"""Cross-entropy method (CEM): a plan moves to the mean of the cheapest samples, and samples draw closer to it."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.spatial import safe_sqrt

from .abstract_sampler import AbstractSampler
from .sampling import SampledPlan, Samples, require_samples


class CrossEntropy(AbstractSampler):
    """CEM as a solver: it asks for costs alone, so they may jump, and contact may be sharp.

    Each turn draws samples within `deviation` of the plan; the mean and the standard deviation of the `elites` cheapest
    are the next plan's, the latter not below `least_deviation` (Kobilarov 2012, "Cross-entropy motion planning",
    algorithm 1). What the plan is, when the search ends, and the other fields are as in `PathIntegral`.
    """

    deviation: Any = 1.0
    least_deviation: Any = 0.0
    max_iterations: int = 200
    tolerance: float = 1e-4
    patience: int = 20
    seed: int = 0
    samples: int = eqx.field(static=True, default=256)
    elites: int = eqx.field(static=True, default=32)
    knots: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        require_samples("CrossEntropy", self.samples, self.knots)
        require_elites("CrossEntropy", self.elites, self.samples)

    def turn(self, plan: SampledPlan, drawn: Samples) -> SampledPlan:
        """The plan at the mean of the elites."""
        return mean_of_elites(drawn, self.elites, jnp.asarray(self.least_deviation, plan.efforts.dtype))


def require_elites(call: str, elites: Any, samples: int) -> None:
    """Raises `ModelError` unless from two to all samples are elites."""
    if isinstance(elites, bool) or not isinstance(elites, int | np.integer) or not 2 <= elites <= samples:
        raise ModelError(f"{call}: elites must be a whole number from 2 to samples = {samples}, got {elites!r}.")


def mean_of_elites(drawn: Samples, elites: int, least_deviation: Float[Array, "..."]) -> SampledPlan:
    """Mean and deviation of the cheapest samples, which derivatives hold as chosen."""
    _, best = jax.lax.top_k(-jax.lax.stop_gradient(drawn.costs), elites)
    chosen = drawn.efforts[best]
    mean = jnp.mean(chosen, axis=0)
    deviation = jnp.maximum(safe_sqrt(jnp.mean((chosen - mean) ** 2, axis=0)), least_deviation)
    return SampledPlan(mean, deviation, jnp.min(drawn.costs))
