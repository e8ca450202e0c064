"""Cross-entropy method (CEM): a plan moves to the mean of the cheapest samples, and samples draw closer to it."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.number_rules import NOT_NEGATIVE, is_known, shown
from mbjax.spatial import safe_sqrt

from .abstract_sampler import AbstractSampler
from .sampling import SampledPlan, Samples, require_samples


class CrossEntropy(AbstractSampler):
    """CEM as a solver: it asks for costs alone, so they may jump, and contact may be sharp.

    Each turn draws samples within `deviation` of the plan; the mean and the standard deviation of the `elites` cheapest
    are the next plan's, the latter not below `least_deviation` (Kobilarov 2012, "Cross-entropy motion planning",
    algorithm 1). Samples whose cost is not finite do not count. What the plan is, when the search ends, and the other
    fields are as in `PathIntegral`.
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
        require_least_deviation("CrossEntropy", self.least_deviation, plan.efforts.shape)
        return mean_of_elites(plan, drawn, self.elites, jnp.asarray(self.least_deviation, plan.efforts.dtype))


def require_elites(call: str, elites: Any, samples: int) -> None:
    """Raises `ModelError` unless from two to all samples are elites."""
    if isinstance(elites, bool) or not isinstance(elites, int | np.integer) or not 2 <= elites <= samples:
        raise ModelError(f"{call}: elites must be a whole number from 2 to samples = {samples}, got {elites!r}.")


def mean_of_elites(plan: SampledPlan, drawn: Samples, elites: int, least_deviation: Float[Array, "..."]) -> SampledPlan:
    """Mean and deviation of the cheapest samples, which derivatives hold as chosen.

    Samples of infinite cost are no elites, however few are left. Where all are, the plan and its deviation stay; where
    one is left, which tells no deviation, the deviation stays.
    """
    _, best = jax.lax.top_k(-jax.lax.stop_gradient(drawn.costs), elites)
    chosen, counts = drawn.efforts[best], jnp.isfinite(drawn.costs[best]).astype(drawn.efforts.dtype)
    number = jnp.sum(counts)
    weights = counts / jnp.maximum(number, 1.0)
    mean = jnp.tensordot(weights, chosen, 1)
    spread = safe_sqrt(jnp.tensordot(weights, (chosen - mean) ** 2, 1))
    deviation = jnp.maximum(jnp.where(number > 1.0, spread, plan.deviation), least_deviation)
    return SampledPlan(jnp.where(number > 0.0, mean, plan.efforts), deviation, jnp.min(drawn.costs))


def require_least_deviation(call: str, least_deviation: Any, shape: tuple[int, ...]) -> None:
    """Raises `ModelError` unless `least_deviation` is a number, (nu,) or (steps, nu), of numbers of at least 0."""
    if np.shape(least_deviation) not in ((), shape[1:], shape):
        raise ModelError(
            f"{call}: least_deviation has shape {np.shape(least_deviation)}; give a number, {shape[1:]} or {shape}."
        )
    if is_known(least_deviation) and not np.all(NOT_NEGATIVE.holds(np.asarray(least_deviation))):
        raise ModelError(f"{call}: least_deviation must be {NOT_NEGATIVE.words}, got {shown(least_deviation)}.")
