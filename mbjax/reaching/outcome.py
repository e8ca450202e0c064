"""What a search ended with, in numbers and in a sentence."""

import enum

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

from mbjax.errors import ModelError
from mbjax.model import locked_velocities
from mbjax.spatial import safe_norm

from .residual_rows import size_of
from .search import Found, Settings
from .solution_derivative import coordinates_at_limits
from .task import Task

STILL = 1e-3  # cosine between a residual and what motion can change of it, below which no motion lowers it


class ReachOutcome(enum.IntEnum):
    """Why a search ended; `InverseKinematicsResult.message` says it in a sentence."""

    REACHED = 0
    AT_LIMITS = 1
    CONTRADICTORY = 2
    UNREACHABLE = 3
    ITERATION_LIMIT = 4
    NOT_FINITE = 5


class InverseKinematicsResult(eqx.Module):
    """Result of `inverse_kinematics`: q, residuals and violations by name, and why the search ended.

    `residuals` are goals' without weights. `violations` are distances of constraints from their bounds. `reachable`
    says that all goals are reached and all constraints held, to the tolerance; `converged` that q is a minimum at
    least, with the constraints held. `missed` and `at_limit` say which names and coordinates (nv,) are to blame;
    `names` has goals first, then constraints, which may have the same names. `print` shows a table.
    """

    q: Float[Array, "*batch nq"]
    residuals: dict[str, Float[Array, "*batch m"]]
    violations: dict[str, Float[Array, "*batch h"]]
    converged: Bool[Array, "*batch"]
    reachable: Bool[Array, "*batch"]
    outcome: Int[Array, "*batch"]
    missed: Bool[Array, "*batch names"]
    at_limit: Bool[Array, "*batch nv"]
    iterations: Int[Array, "*batch"]
    starts: Int[Array, "*batch"]
    tolerance: Float[Array, "*batch"]
    names: tuple[str, ...] = eqx.field(static=True)
    coordinate_names: tuple[str, ...] = eqx.field(static=True)

    @property
    def message(self) -> str:
        """The reason in a sentence; for a batch take one with `jax.tree.map(lambda x: x[i], result)`."""
        if np.ndim(self.outcome):
            raise ModelError(
                "message: this is a batch of results; take one of them first, jax.tree.map(lambda x: x[i], result)."
            )
        number = len(self.residuals)
        shown = [f"'{name}'" if i < number else f"constraint '{name}'" for i, name in enumerate(self.names)]
        missed = ", ".join(name for name, is_missed in zip(shown, self.missed, strict=True) if is_missed)
        held = [name for name, is_held in zip(self.coordinate_names, np.asarray(self.at_limit), strict=True) if is_held]
        starts = int(self.starts)
        tried = "from the guess" if starts == 1 else f"from {starts} starts"
        return {
            ReachOutcome.REACHED: "all goals are reached and all constraints hold.",
            ReachOutcome.AT_LIMITS: f"limits of joints keep {missed} from being met, {tried}: {', '.join(held)} "
            f"{'is' if len(held) == 1 else 'are'} at a limit.",
            ReachOutcome.CONTRADICTORY: f"{missed} contradict each other, {tried}: each could be met alone, but not "
            "together; give what matters less a smaller weight, or what matters more as a constraint.",
            ReachOutcome.UNREACHABLE: f"{missed} cannot come nearer, {tried}: out of reach, as no motion lowers what "
            "is left.",
            ReachOutcome.ITERATION_LIMIT: f"max_iterations came before a minimum, {tried}, with {missed or 'nothing'} "
            "missed: allow more, or start nearer.",
            ReachOutcome.NOT_FINITE: "a goal, a constraint, the tolerance, the guess or the model has a number that is "
            "not finite; q is the guess.",
        }[ReachOutcome(int(self.outcome))]

    def __str__(self) -> str:
        """A table of goals and constraints, under the sentence."""
        if np.ndim(self.outcome) or not all(eqx.is_array(x) for x in jax.tree.leaves(self)):
            return f"InverseKinematicsResult of shape {jnp.shape(self.outcome)}"
        if any(isinstance(x, Tracer) for x in jax.tree.leaves(self)):
            return "InverseKinematicsResult of traced numbers"
        goals, constraints = self.residuals.items(), self.violations.items()
        parts = [*goals, *((f"{name} (constraint)", value) for name, value in constraints)]
        width = max(len(name) for name in (*(name for name, _ in parts), "goal"))
        lines = [f"{ReachOutcome(int(self.outcome)).name}: {self.message}", f"{'':{width}}  largest residual"]
        for name, value in parts:
            largest = np.max(np.abs(np.asarray(value)), initial=0.0)
            mark = "" if largest <= float(self.tolerance) else "  missed"
            lines.append(f"{name:{width}}  {largest:.3g}{mark}")
        return "\n".join([*lines, f"{int(self.iterations)} iterations, {int(self.starts)} starts"])


def result_of(task: Task, settings: Settings, guess: Float[Array, " nq"], found: Found) -> InverseKinematicsResult:
    """Names what is missed, and why."""
    rows = found.rows
    names = (*task.goal_names, *task.constraint_names)
    values, distances = parts_by_name(task, guess, found)
    at_limit = pushed_into_limits(task, found)
    weighty = found._replace(rows=rows._replace(value=jnp.where(rows.weight != 0.0, rows.value, 0.0)))
    left = [jnp.max(jnp.abs(x), initial=0.0) for part in parts_by_name(task, guess, weighty) for x in part]
    missed = ~(jax.lax.stop_gradient(jnp.stack(left)) <= settings.tolerance)  # NaN is missed
    blamed = missed | (jnp.any(missed) & acting_constraints(task, found))
    pulls = blamed & jnp.stack([is_pulling(task, found, part) for part in range(len(names))])
    numbers = (rows.value, rows.weight, rows.hard, *distances, found.q, settings.tolerance)  # bounds may be infinite
    is_finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(x)) for x in numbers]))
    is_hard = jnp.arange(len(names)) >= len(task.goal_names)
    is_held = ~jnp.any(missed & is_hard)
    is_reached = is_finite & ~jnp.any(missed)
    outcome = jnp.where(jnp.any(at_limit), ReachOutcome.AT_LIMITS, ReachOutcome.UNREACHABLE)
    outcome = jnp.where(jnp.sum(pulls) > 1, ReachOutcome.CONTRADICTORY, outcome)
    outcome = jnp.where(found.is_settled, outcome, ReachOutcome.ITERATION_LIMIT)
    outcome = jnp.where(is_reached, ReachOutcome.REACHED, outcome)
    outcome = jnp.where(is_finite, outcome, ReachOutcome.NOT_FINITE).astype(jnp.int32)
    missed = jnp.where(outcome == ReachOutcome.CONTRADICTORY, pulls, missed)
    limits = task.limits
    safe = jnp.clip(jnp.where(jnp.isfinite(guess), guess, task.model.parameters.default_positions), *limits)
    return InverseKinematicsResult(
        q=jnp.where(is_finite, found.q, safe),
        residuals=dict(zip(task.goal_names, values, strict=True)),
        violations=dict(zip(task.constraint_names, distances, strict=True)),
        converged=is_finite & is_held & (found.is_settled | is_reached),
        reachable=is_reached,
        outcome=outcome,
        missed=missed,
        at_limit=at_limit,
        iterations=found.iterations,
        starts=found.start + 1,
        tolerance=settings.tolerance,
        names=names,
        coordinate_names=tuple(task.model.velocity_names()),
    )


def slices_of(task: Task, q: Float[Array, " nq"]) -> list[tuple[bool, slice]]:
    """For each name, whether it is a goal, and its rows."""
    sizes = task_sizes(task, q)
    split, total = [], 0
    for k, size in enumerate(sizes):
        if k == len(task.goal_names):
            total = 0
        split.append((k < len(task.goal_names), slice(total, total + size)))
        total += size
    return split


def task_sizes(task: Task, q: Float[Array, " nq"]) -> list[int]:
    """Number of rows of each name."""
    functions = (*task.goals, *(constraint.function for constraint in task.constraints))
    sizes = [size_of(function, task.model, q) for function in functions]
    return [*sizes, task.num_loop_rows] if task.has_loops else sizes


def parts_by_name(task: Task, q: Array, found: Found) -> tuple[list, list]:
    """Residuals of goals, and distances of constraints from their bounds."""
    rows = found.rows
    excess = rows.hard - jnp.clip(rows.hard, rows.lower, rows.upper)
    parts = slices_of(task, q)
    return [rows.value[s] for is_goal, s in parts if is_goal], [excess[s] for is_goal, s in parts if not is_goal]


def pushed_into_limits(task: Task, found: Found) -> Bool[Array, " nv"]:
    """Coordinates that a limit keeps from lowering what is left."""
    rows = jax.lax.stop_gradient(found.rows)
    pull = jnp.sum(rows.J * (rows.weight * rows.weight * rows.value)[:, None], 0)
    pull = pull + jnp.sum(rows.G * jax.lax.stop_gradient(found.multipliers)[:, None], 0)
    size = safe_norm(rows.weight * rows.value) * safe_norm((rows.weight[:, None] * rows.J).reshape(-1))
    is_open = ~locked_velocities(task.model)
    return coordinates_at_limits(task, jax.lax.stop_gradient(found.q)) & is_open & (jnp.abs(pull) > STILL * size)


def acting_constraints(task: Task, found: Found) -> Bool[Array, " names"]:
    """Constraints that push against what the goals would do."""
    multipliers = jax.lax.stop_gradient(found.multipliers)
    acts = [jnp.array(False) if is_goal else jnp.any(multipliers[s] != 0.0) for is_goal, s in slices_of(task, found.q)]
    return jnp.stack(acts)


def is_pulling(task: Task, found: Found, part: int) -> Bool[Array, ""]:
    """Whether motion of coordinates that are free would lower what is left of one name; constraints always count."""
    rows = jax.lax.stop_gradient(found.rows)
    is_goal, s = slices_of(task, found.q)[part]
    if not is_goal:
        return jnp.array(True)
    value, J = (rows.weight * rows.value)[s], rows.weight[s, None] * rows.J[s]
    is_free = ~coordinates_at_limits(task, jax.lax.stop_gradient(found.q))
    slope = jnp.sum(jnp.where(is_free[None], J, 0.0) * value[:, None], 0)
    return safe_norm(slope) > STILL * safe_norm(value) * safe_norm(J.reshape(-1))
