"""Configurations along a path: each search starts at the solution before."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mbjax.array_types import Positions
from mbjax.constraints import BoundConstraintSet
from mbjax.constraints.bound_constraint_set import require_bound_set
from mbjax.errors import ModelError
from mbjax.execution import call_compiled, is_traced, of_one_model
from mbjax.execution.arrays import scan
from mbjax.model import MultibodyModel
from mbjax.trajectory_optimization import Barrier, Clearance, Constraint, JointGoal

from .goal_numbers import require_goal_numbers
from .inverse_kinematics import constraints_by_name, default_guess, goals_by_name, settings_of, solved
from .outcome import InverseKinematicsResult
from .residual_rows import CLOSED_FORMS, VELOCITIES
from .search import Settings

GOALS = (*CLOSED_FORMS, *VELOCITIES, JointGoal, Barrier, Clearance)  # callable, but no functions of a path's point


@of_one_model
def follow(
    model: MultibodyModel,
    goals: Callable[[Any], Any],
    path: Any,
    guess: Positions | None = None,
    *,
    constraints: Any = (),
    cset: BoundConstraintSet | None = None,
    restarts: int = 10,
    key: PRNGKeyArray | None = None,
    tolerance: float | None = None,
    max_iterations: int = 60,
) -> InverseKinematicsResult:
    """Configurations that reach `goals(point)` for every point of `path`, each the next to the one before.

    `path` is an array, or a tree of arrays such as a `RigidTransform`, with the points on its first axis; `goals` says
    what is to be reached at one of them, `lambda X_WH: to.PoseGoal("hand", X_WH)`. Define it once: another function
    needs a program of its own. The first point is searched for as by `inverse_kinematics`, from other starts too; from
    there on no start is drawn, so that q moves as little as the path allows. Results have the points on their first
    axis. Derivatives are those of `inverse_kinematics` at each point.
    """
    if not callable(goals) or isinstance(goals, GOALS):
        raise ModelError(
            "follow: goals must be a function of a point of the path, like lambda X_WH: to.PoseGoal('hand', X_WH), got "
            f"{type(goals).__name__}."
        )
    path = jax.tree.map(jnp.asarray, path)
    sizes = {x.shape[0] if x.ndim else None for x in jax.tree.leaves(path)}
    if len(sizes) != 1 or None in sizes or 0 in sizes:
        raise ModelError(f"follow: path must have its points on the first axis of all its arrays, got sizes {sizes}.")
    q = default_guess(model, guess)
    if cset is not None:
        require_bound_set("follow", cset, model)
    first = settings_of(model, tolerance, max_iterations, restarts, key, False)
    later = settings_of(model, tolerance, max_iterations, 0, None, True)
    held = constraints_by_name(constraints)
    require_goal_numbers("follow", held, "constraint")
    args = (model, goals, path, q, held, cset, first, later)
    return compiled(*args) if is_traced(jax.tree.leaves(args)) else call_compiled(followed, *args)


def followed(
    model: MultibodyModel,
    goals: Callable,
    path: Any,
    guess: Float[Array, " nq"],
    constraints: dict[str, Constraint],
    cset: BoundConstraintSet | None,
    first: Settings,
    later: Settings,
) -> InverseKinematicsResult:
    """One search after another, as one rolled loop."""

    def advance(carry: tuple, point: Any) -> tuple[tuple, InverseKinematicsResult]:
        q, settings = carry
        named = tuple(goals_by_name(goals(point)).items())
        result = solved(model, named, tuple(constraints.items()), cset, settings, q)
        return (jax.lax.stop_gradient(result.q), jax.tree.map(jnp.asarray, later)), result

    return scan(advance, (guess, jax.tree.map(jnp.asarray, first)), path)[1]


compiled = eqx.filter_jit(followed)
