"""What a search works on: goals, hard constraints and closed loops of a model, as rows with Jacobians."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.constraints import BoundConstraintSet
from mbjax.constraints.assembly_problem import calc_position_rows, rows_with_position
from mbjax.errors import ModelError
from mbjax.kinematics import PositionKinematics, calc_position_kinematics
from mbjax.model import MultibodyModel
from mbjax.trajectory_optimization import Constraint

from .residual_rows import Rows, require_shapes, rows_of, weight_of
from .tangent import columns_in_tangent


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Task:
    """Goals with names, constraints with names, and the model with its closed loops; numbers are leaves."""

    model: MultibodyModel
    loops: BoundConstraintSet
    goals: tuple[Any, ...]
    constraints: tuple[Constraint, ...]
    limits: tuple[Float[Array, " nq"], Float[Array, " nq"]]
    goal_names: tuple[str, ...] = dataclasses.field(metadata={"static": True})
    constraint_names: tuple[str, ...] = dataclasses.field(metadata={"static": True})  # then that of closed loops

    @property
    def has_hard_rows(self) -> bool:
        """Whether anything must hold exactly besides limits."""
        return bool(self.constraints) or self.has_loops

    @property
    def has_loops(self) -> bool:
        return bool(np.any(rows_with_position(self.loops)))

    @property
    def num_loop_rows(self) -> int:
        """Rows of closed loops and other constraints of the model, zero where none constrains positions."""
        return len(rows_with_position(self.loops)) if self.has_loops else 0


class Evaluation(NamedTuple):
    """Residuals of goals without weights, their weights, and hard values with bounds, with Jacobians."""

    value: Float[Array, " m"]
    J: Float[Array, "m nv"]
    weight: Float[Array, " m"]
    hard: Float[Array, " h"]
    G: Float[Array, "h nv"]
    lower: Float[Array, " h"]
    upper: Float[Array, " h"]


def evaluate(task: Task, q: Float[Array, " nq"]) -> Evaluation:
    """All rows at q."""
    model = task.model
    position = calc_position_kinematics(model, q)
    nv = model.num_velocities
    value, J, weight = [jnp.zeros(0, q.dtype)], [jnp.zeros((0, nv), q.dtype)], [jnp.zeros(0, q.dtype)]
    for name, goal in zip(task.goal_names, task.goals, strict=True):
        rows = named_rows(name, goal, model, q, position)
        value.append(rows.value)
        J.append(rows.J)
        weight.append(weight_of(goal, rows.value.shape[0], q.dtype))
    hard, G, lower, upper = [jnp.zeros(0, q.dtype)], [jnp.zeros((0, nv), q.dtype)], [], []
    for name, constraint in zip(task.constraint_names, task.constraints, strict=False):  # loops have a name only
        rows = named_rows(name, constraint.function, model, q, position)
        hard.append(rows.value)
        G.append(rows.J)
        weights = weight_of(constraint.function, rows.value.shape[0], q.dtype)
        least, most = held_bounds(constraint, weights)
        lower.append(least)
        upper.append(most)
    if task.has_loops:
        error, G_loops = calc_position_rows(model, task.loops, q)
        T = columns_in_tangent(model, q)
        hard.append(error)
        G.append(G_loops if T is None else G_loops @ T)
        lower.append(jnp.zeros_like(error))
        upper.append(jnp.zeros_like(error))
    none = jnp.zeros(0, q.dtype)
    return Evaluation(
        jnp.concatenate(value),
        jnp.concatenate(J),
        jnp.concatenate(weight),
        jnp.concatenate(hard),
        jnp.concatenate(G),
        jnp.concatenate([none, *lower]),
        jnp.concatenate([none, *upper]),
    )


def held_bounds(constraint: Constraint, weights: Float[Array, " h"]) -> tuple[Float[Array, " h"], Float[Array, " h"]]:
    """Bounds of each row: none where the weight is zero, NaN where it is not finite."""
    bounds = constraint.lower.astype(weights.dtype), constraint.upper.astype(weights.dtype)
    held = [jnp.where(jnp.isfinite(weights), bound, jnp.nan) for bound in bounds]
    return jnp.where(weights != 0.0, held[0], -jnp.inf), jnp.where(weights != 0.0, held[1], jnp.inf)


def named_rows(
    name: str, function: Any, model: MultibodyModel, q: Float[Array, " nq"], position: PositionKinematics
) -> Rows:
    """Rows of a goal; what is wrong with it is said with its name."""
    require_shapes(name, function, model)
    try:
        return rows_of(function, model, q, position)
    except ModelError as error:
        raise ModelError(f"goal '{name}': {error}") from error
