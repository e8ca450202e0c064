"""What solvers that know efforts alone end with: the trajectory, its feedback, costates and slopes."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .abstract_solver import Found
from .expansion import effort_slopes_of, expand
from .feasibility_ddp import room_of
from .multipliers import Penalties
from .problem import Problem
from .riccati import solve_riccati
from .rolled_out import rolled_out
from .solution import History


def found_at_efforts(
    problem: Problem, efforts: Float[Array, "steps nu"], penalties: Penalties | None, outcome: Array, history: History
) -> Found:
    """The rollout under efforts, with the linear-quadratic feedback about it."""
    states = rolled_out(problem, efforts)
    e = expand(problem, states, efforts, jax.tree.map(lambda x: x[1:], states), penalties)
    feedback = solve_riccati(e, jnp.asarray(1e-9, efforts.dtype), room_of(problem, efforts))
    slopes = effort_slopes_of(e)
    return Found(states, efforts, feedback.K, feedback.V_x, slopes, e.A, e.B, penalties, outcome, history)
