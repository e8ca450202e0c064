"""What the model of Gauss and Newton leaves out: second derivatives of the steps, and of residuals of the costs.

With costates λ of the trajectory, λ[k] = l_x + Aᵀ λ[k+1], the Hessian of a step's Lagrangian l + λ[k+1] · step is its
part in the Hessian of the total cost by all efforts (Pantoja 1988). With it a Riccati recursion takes Newton's step.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .expansion import Expansion, at, costates_of, running_terms, terminal_terms, value_of
from .multipliers import Penalties
from .problem import Problem
from .states import difference_states, move_state


class Curvature(eqx.Module):
    """The exact Hessians of all steps less those of an `Expansion`."""

    xx: Float[Array, "steps_and_end ndx ndx"]
    ux: Float[Array, "steps nu ndx"]
    uu: Float[Array, "steps nu nu"]

    def added_to(self, e: Expansion, part: Float[Array, ""]) -> Expansion:
        """The expansion with this part of the curvature."""
        added = e.l_xx + part * self.xx, e.l_ux + part * self.ux, e.l_uu + part * self.uu
        return eqx.tree_at(lambda e: (e.l_xx, e.l_ux, e.l_uu), e, added)


def calc_curvature(
    problem: Problem, states: Any, efforts: Float[Array, "steps nu"], e: Expansion, penalties: Penalties | None
) -> Curvature:
    """The curvature along a trajectory, about which `e` is the expansion of Gauss and Newton."""
    model, ndx = problem.model, e.A.shape[-1]
    before, after, last = (jax.tree.map(lambda x, p=p: x[p], states) for p in (slice(-1), slice(1, None), -1))
    stages = jax.tree.map(lambda x: x[:-1], problem.stages)

    def of_step(x: Any, u: Array, after: Any, stage: Any, k: Array, costate: Array) -> Array:
        def lagrangian(z: Array) -> Array:
            moved, effort = move_state(model, x, z[:ndx]), u + z[ndx:]
            terms = running_terms(problem, moved, effort, stage, k, at(penalties, k))
            return value_of(terms) + costate @ difference_states(model, after, problem.next_state(moved, effort, stage))

        return jax.hessian(lagrangian)(jnp.zeros(ndx + len(u), u.dtype))

    def at_end(dx: Array) -> Array:
        return value_of(terminal_terms(problem, move_state(model, last, dx), at(penalties, -1)))

    H = jax.vmap(of_step)(before, efforts, after, stages, jnp.arange(problem.num_steps), costates_of(e)[1:])
    H_at_end = jax.hessian(at_end)(jnp.zeros(ndx, efforts.dtype))
    xx = jnp.concatenate([H[:, :ndx, :ndx], H_at_end[None]]) - e.l_xx
    return Curvature(xx, H[:, ndx:, :ndx] - e.l_ux, H[:, ndx:, ndx:] - e.l_uu)
