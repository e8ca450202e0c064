"""Model predictive path integrals (MPPI): a plan moves to the mean of samples, the cheap ones counting most."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.number_rules import is_known

from .abstract_sampler import AbstractSampler
from .sampling import SampledPlan, Samples, require_samples


class PathIntegral(AbstractSampler):
    """MPPI as a solver: it asks for costs alone, so they may jump, and contact may be sharp.

    u' = Σ w_i u_i, with w_i in proportion to exp(-S_i / temperature), of samples u_i within `deviation` of the plan and
    the costs S_i of their motions (Williams et al. 2018, algorithm 2). The cheapest sample of the whole search is the
    plan; it ends where `patience` turns do not lower the cost by `tolerance` (1 + |cost|). `deviation` is a number,
    (nu,) or (steps, nu); with `knots` the noise is linear between so many times. The `seed` decides what is drawn.
    A search by derivatives from its plan, `solve(problem, plan)`, makes it exact.
    """

    deviation: Any = 1.0
    temperature: Any = 1.0
    max_iterations: int = 200
    tolerance: float = 1e-4
    patience: int = 20
    seed: int = 0
    samples: int = eqx.field(static=True, default=256)
    knots: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        require_samples("PathIntegral", self.samples, self.knots)
        require_temperature("PathIntegral", self.temperature)

    def turn(self, plan: SampledPlan, drawn: Samples) -> SampledPlan:
        """The plan at the weighted mean."""
        return weighted_mean(plan, drawn, jnp.asarray(self.temperature, plan.efforts.dtype))


def require_temperature(call: str, temperature: Any) -> None:
    """Raises `ModelError` unless the temperature is a number above 0."""
    if is_known(temperature) and not (np.shape(temperature) == () and float(temperature) > 0.0):
        raise ModelError(f"{call}: temperature must be a number above 0, got {temperature}.")


def weighted_mean(plan: SampledPlan, drawn: Samples, temperature: Float[Array, ""]) -> SampledPlan:
    """The plan at the mean of samples, weighted by their costs; the plan as it was where no sample has a cost."""
    least = jnp.min(drawn.costs)
    excess = drawn.costs - jnp.where(jnp.isfinite(least), least, 0.0)
    finite = jnp.isfinite(excess)
    weights = jnp.where(finite, jnp.exp(-jnp.where(finite, excess, 0.0) / temperature), 0.0)
    total = jnp.sum(weights)
    mean = jnp.tensordot(weights, drawn.efforts, 1) / jnp.where(total > 0.0, total, 1.0)
    return SampledPlan(jnp.where(total > 0.0, mean, plan.efforts), plan.deviation, least)
