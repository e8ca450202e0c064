"""`inverse_kinematics`: from goals of frames, centre of mass and joints to a configuration."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mbjax.array_types import Positions
from mbjax.constraints import BoundConstraintSet, bound_constraints
from mbjax.constraints.assembly_problem import rows_with_position
from mbjax.constraints.bound_constraint_set import require_bound_set
from mbjax.errors import ModelError
from mbjax.execution import call_compiled, is_traced, of_one_model
from mbjax.model import MultibodyModel, as_coordinates
from mbjax.number_rules import POSITIVE, checked_numbers, is_known, is_whole
from mbjax.randomization.keys import require_one_key
from mbjax.trajectory_optimization import Barrier, Clearance, Constraint

from .goal_numbers import require_goal_numbers
from .outcome import InverseKinematicsResult, result_of
from .search import Settings
from .solution_derivative import solution_of
from .tangent import locked_positions
from .task import Task

LOOPS = "closed loops"
ESCAPES = 2  # of one start, from a minimum that does not reach the goals


@of_one_model
def inverse_kinematics(
    model: MultibodyModel,
    goals: Any,
    guess: Positions | None = None,
    *,
    constraints: Any = (),
    cset: BoundConstraintSet | None = None,
    restarts: int = 10,
    key: PRNGKeyArray | None = None,
    tolerance: float | None = None,
    max_iterations: int = 60,
    local: bool = False,
) -> InverseKinematicsResult:
    """The configuration within joint limits that reaches the goals, or comes nearest: min 1/2 Σ (w r(q))².

    `goals` are residuals of `mbjax.trajectory_optimization`, one, several, or by name in a dict: `PoseGoal`,
    `PointGoal`, `RelativePose`, `LookAt`, `CenterOfMass`, `JointGoal`, `Barrier`, or any function of (model, state);
    their weights w say what gives way to what. `constraints` are held exactly: residuals, which are then zero, or
    `Constraint`s with bounds, such as at_least(Clearance(), 0.01); of their weights only zeros count, which drop rows.
    Joint limits hold exactly as well, as do the model's own constraints (closed loops, couplers) or those of `cset`;
    locked joints stay where the guess has them, even beyond their limits.

    The search starts at `guess`, the default positions if None. Where it ends with a goal missed, it goes on twice with
    the coordinates at limits in the middle of their range, and then from up to `restarts` configurations drawn within
    limits; coordinates without limits are drawn about the guess. Of the minima found the least is returned. With
    `local` it is the one next to the guess, as for a target that moves little by little. `key` draws other starts than
    the usual ones. `tolerance` is of residuals without weights, in m and rad (1e-8; 1e-5 in float32), `max_iterations`
    of each start, each time that it goes on, and the last steps from the best start.

    `jit` and `vmap` go through it; a batch runs in lanes, of which each takes the next task when it is done.
    Derivatives of `q` and the residuals are those of the solution by the goals' numbers, the limits and all leaves of
    the model (implicit function theorem), in forward and reverse mode: coordinates at a limit stay there, constraints
    that touch a bound stay at it. Where solutions are not isolated they are those of the nearest one. They are zero by
    the guess, which only chooses among solutions, and say nothing where `converged` is false.
    """
    goals = () if goals is None else goals
    if isinstance(goals, Sequence | Mapping) and not goals and not constraints:
        raise ModelError("inverse_kinematics: there are no goals; give one like to.PoseGoal('hand', X_WH).")
    named, held = goals_by_name(goals), constraints_by_name(constraints)
    require_goal_numbers("inverse_kinematics", named)
    require_goal_numbers("inverse_kinematics", held, "constraint")
    if cset is not None:
        require_bound_set("inverse_kinematics", cset, model)
    q = default_guess(model, guess)
    settings = settings_of(model, tolerance, max_iterations, restarts, key, local)
    args = (model, tuple(named.items()), tuple(held.items()), cset, settings, q)
    return compiled(*args) if is_traced(jax.tree.leaves(args)) else call_compiled(solved, *args)


def solved(
    model: MultibodyModel,
    goals: tuple[tuple[str, Any], ...],
    constraints: tuple[tuple[str, Constraint], ...],
    cset: BoundConstraintSet | None,
    settings: Settings,
    guess: Float[Array, " nq"],
) -> InverseKinematicsResult:
    """The result of one task, compiled as a whole."""
    task = task_of(model, dict(goals), dict(constraints), cset, guess)
    return result_of(task, settings, guess, solution_of(task, settings, guess))


compiled = eqx.filter_jit(solved)  # derivatives outside of `jit` are then compiled as a whole, too


def task_of(
    model: MultibodyModel,
    goals: dict[str, Any],
    constraints: dict[str, Constraint],
    cset: BoundConstraintSet | None,
    guess: Float[Array, " nq"],
) -> Task:
    """The task, with the model's own constraints unless others are given; locked joints may be beyond their limits."""
    loops = bound_constraints(model) if cset is None else cset
    has_loops = bool(np.any(rows_with_position(loops)))
    names = (*constraints, LOOPS) if has_loops else tuple(constraints)
    is_locked, held = locked_positions(model), jax.lax.stop_gradient(guess)
    low, high = model.position_lower_limits, model.position_upper_limits
    limits = jnp.where(is_locked & (held < low), held, low), jnp.where(is_locked & (held > high), held, high)
    return Task(model, loops, tuple(goals.values()), tuple(constraints.values()), limits, tuple(goals), names)


def goals_by_name(goals: Any, has_constraints: bool = True) -> dict[str, Any]:
    """Goals by name; without names, by class and frame. `has_constraints`: the caller takes constraints too."""
    barrier = "the goal to.Barrier(to.Clearance(), 0.01, inf)"
    if isinstance(goals, Mapping):
        named = {str(name): goal for name, goal in goals.items()}
    else:
        several = list(goals) if isinstance(goals, list | tuple) else [goals]
        named = with_names(several)
    for name, goal in named.items():
        if isinstance(goal, Constraint):
            instead = "give it in constraints=" if has_constraints else f"here are goals alone, such as {barrier}"
            raise ModelError(f"goal '{name}': a Constraint is held exactly; {instead}.")
        if isinstance(goal, Clearance):
            constraint = "constraints=[to.at_least(to.Clearance(), 0.01)], or " if has_constraints else ""
            raise ModelError(f"goal '{name}': Clearance is a distance, not a residual; give {constraint}{barrier}.")
        if not callable(goal):
            raise ModelError(
                f"goal '{name}': it must be a goal like to.PoseGoal('hand', X_WH), or a function of (model, state), "
                f"got {type(goal).__name__}."
            )
    return named


def constraints_by_name(constraints: Any) -> dict[str, Constraint]:
    """Constraints by name; a bare residual must be zero."""
    if isinstance(constraints, Mapping):
        named = {str(name): each for name, each in constraints.items()}
    else:
        several = list(constraints) if isinstance(constraints, list | tuple) else [constraints]
        named = with_names(several)
    for name, each in named.items():
        if isinstance(each, Constraint):
            continue
        if isinstance(each, Clearance | Barrier) or not callable(each):
            raise ModelError(
                f"constraint '{name}': it must be a residual that is to be zero, or a Constraint with bounds like "
                f"to.at_least(to.Clearance(), 0.01), got {type(each).__name__}."
            )
        named[name] = Constraint(each, 0.0, 0.0, name=name)
    return named


def with_names(several: list) -> dict[str, Any]:
    """Goals by class and frame, numbered where two are alike."""
    named: dict[str, Any] = {}
    for goal in several:
        inner = goal.function if isinstance(goal, Constraint) else goal
        name = goal.name if isinstance(goal, Constraint) and goal.name != "constraint" else name_of(inner)
        count = sum(1 for known in named if known == name or known.startswith(f"{name} #"))
        named[f"{name} #{count + 1}" if count else name] = goal
    return named


def name_of(goal: Any) -> str:
    """What reports call a goal without a name."""
    kind = getattr(goal, "__name__", None) or type(goal).__name__
    frame = getattr(goal, "frame", None)
    return f"{kind} of {frame}" if frame is not None else kind


def default_guess(model: MultibodyModel, guess: Any) -> Float[Array, " nq"]:
    """The configuration to start from."""
    if guess is None:
        return jnp.asarray(model.parameters.default_positions, model.dtype)
    q = as_coordinates("guess", guess, model.num_positions, model.dtype)
    if is_known(q) and not np.all(np.isfinite(np.asarray(q))):
        raise ModelError(f"inverse_kinematics: the guess must be finite, got {np.asarray(q)}.")
    return q


def settings_of(
    model: MultibodyModel,
    tolerance: Any,
    max_iterations: Any,
    restarts: Any,
    key: PRNGKeyArray | None,
    local: bool,
) -> Settings:
    """Checked numbers of the search."""
    is_double = model.dtype == jnp.float64
    for what, number, least in (("max_iterations", max_iterations, 1), ("restarts", restarts, 0)):
        if is_known(number) and not (is_whole(number) and int(number) >= least):
            raise ModelError(f"inverse_kinematics: {what} must be a whole number of at least {least}, got {number!r}.")
    if key is not None:
        require_one_key("inverse_kinematics", key)
    if tolerance is None:
        tolerance = 1e-8 if is_double else 1e-5
    else:
        tolerance = checked_numbers("inverse_kinematics", "tolerance", tolerance, POSITIVE)
    size = model.num_velocities
    draw = np.full(size, 0.5, model.dtype) if key is None else jax.random.uniform(key, (size,), model.dtype)
    step = np.asarray(1e-10 if is_double else 1e-6, model.dtype)
    as_count = np.int32 if is_known(max_iterations, restarts) else jnp.asarray
    return Settings(
        as_number(tolerance, model.dtype),
        step,  # pyright: ignore[reportArgumentType]
        as_count(max_iterations),  # pyright: ignore[reportArgumentType]
        as_count(1 if local else restarts + 1),  # pyright: ignore[reportArgumentType]
        np.int32(0 if local else ESCAPES),  # pyright: ignore[reportArgumentType]
        draw,  # pyright: ignore[reportArgumentType]
    )


def as_number(x: Any, dtype: Any) -> Any:
    """A number as an array, without a call of JAX where it is known."""
    return np.asarray(x, dtype) if is_known(x) else jnp.asarray(x, dtype)
