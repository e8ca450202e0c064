"""`solve`: from a problem and a guess to a plan, compiled as a whole, differentiable at the optimum."""

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError, ModelWarning
from mbjax.execution import is_traced
from mbjax.number_rules import as_traced_numbers, is_known, shown
from mbjax.progress import telling

from .abstract_solver import AbstractSolver, Found, with_numbers_as_leaves
from .augmented_lagrangian import AugmentedLagrangian
from .costs import term_at_step
from .expansion import total_cost
from .feasibility_ddp import FeasibilityDDP, clipped
from .multipliers import Penalties, evaluate, is_evaluated, values_along, violations_along
from .optimum_derivative import at_optimum, sides_of_limits
from .problem import Problem, dtype_of, num_efforts, prepared, require_states, times_of
from .rolled_out import rolled_out
from .solution import Outcome, Report, Solution, empty_history


def solve(
    problem: Problem,
    guess: Any = None,
    solver: AbstractSolver | None = None,
    *,
    callback: Callable | None = None,
    progress: bool | None = None,
) -> Solution:
    """Solves the problem from a guess; `jit`, `vmap` and `grad` go through it.

    The guess is None (no effort, all states at the start), efforts (num_steps, nu), a pair (states, efforts) whose
    states need not follow from the efforts, or an earlier plan, whose multipliers are kept too. The default solver is
    `FeasibilityDDP()`; constraints put `AugmentedLagrangian` around it. `callback(iteration, entry)` is called once an
    iteration, with a dict of numbers; `print_iteration` prints them as a table. `progress` shows a line that says
    whether it compiles or runs, and for how long; None shows it on a terminal and in a notebook.

    Derivatives are those of the optimality conditions at the optimum (implicit function theorem), by the start, by all
    leaves of the model and by those of costs, limits and constraints; limits and constraints keep their side. Where the
    search did not converge, `report` says so, and outside of transformations a `ModelWarning`. A search through contact
    ends in a local minimum, as derivatives see no contact that is not made yet: see `solve_through_contact`.
    """
    if not isinstance(problem, Problem):
        raise ModelError(f"solve: the first argument must be a Problem, got {type(problem).__name__}.")
    solver = FeasibilityDDP() if solver is None else solver
    if not isinstance(solver, AbstractSolver):
        raise ModelError(f"solve: the solver must be one like FeasibilityDDP(), got {solver!r}.")
    if callback is not None and not callable(callback):
        raise ModelError(f"solve: callback must be a function of an iteration and its numbers, got {callback!r}.")
    if problem.constraints and not solver.takes_constraints:
        solver = AugmentedLagrangian(inner=solver)
    problem = prepared(problem)
    with telling("solve", progress):
        states, efforts, warm = starting_trajectory(problem, guess)
        plan = improved(problem, states, efforts, warm, solver, solver.max_iterations, callback)
        is_concrete = not is_traced(jax.tree.leaves((plan.report, plan.cost)))
        converged = not is_concrete or bool(np.all(np.asarray(plan.report.converged)))
    if not converged:
        place = first_bad_place(problem, states, efforts) if plan.report.outcome == Outcome.NOT_FINITE else ""
        warnings.warn(f"solve: {plan.report}{place}", ModelWarning, stacklevel=2)
    return plan


def improved(
    problem: Problem,
    states: Any,
    efforts: Float[Array, "steps nu"],
    warm: Penalties | None,
    solver: AbstractSolver,
    length_of_history: int,
    callback: Callable | None,
) -> Solution:
    """The plan that a search from a trajectory ends with: one program, whatever numbers the solver has."""
    if solver.runs_on_host:
        plan = searched(problem, states, efforts, warm, solver, length_of_history, callback)
    else:
        solver = with_numbers_as_leaves(solver, efforts.dtype)
        plan = compiled_solve(problem, states, efforts, warm, solver, length_of_history, callback)
    report = dataclasses.replace(plan.report, is_through_sharp_contact=is_through_sharp_contact(problem))
    return dataclasses.replace(plan, report=report)


def is_through_sharp_contact(problem: Problem) -> bool:
    """Whether steps are those of a model whose bodies may touch, with no known smoothing length above zero."""
    if problem.dynamics is not None or problem.model is None or not problem.model.layout.contact.pairs:
        return False
    length = problem.model.collision.smoothing_length
    return length is None or not is_known(length) or not np.any(np.asarray(length) > 0.0)


def searched(
    problem: Problem,
    states: Any,
    efforts: Float[Array, "steps nu"],
    warm: Penalties | None,
    solver: AbstractSolver,
    length_of_history: int,
    callback: Callable | None,
) -> Solution:
    """The search, whose results are then attached to the problem for derivatives."""
    numbers, rest = eqx.partition((problem, states, efforts, warm), eqx.is_array)
    fixed_problem, states, efforts, warm = eqx.combine(jax.lax.stop_gradient(numbers), rest)
    history = empty_history(length_of_history, efforts.dtype)
    found = solver.search(fixed_problem, states, efforts, warm, history, callback)
    return solution_of(problem, fixed_problem, found)


compiled_solve = eqx.filter_jit(searched)


@eqx.filter_jit
def solution_of(problem: Problem, fixed_problem: Problem, found: Found) -> Solution:
    """The plan that was found; `fixed_problem` has no derivatives."""
    states, efforts = at_optimum(problem, found)
    multipliers = () if found.penalties is None else found.penalties.multipliers
    names = tuple(constraint.name for constraint in problem.constraints)
    weight = jnp.zeros((), efforts.dtype) if found.penalties is None else found.penalties.weight
    if found.cost is None:
        cost = total_cost(problem, states, efforts)
    else:
        cost = cost_of(problem, states, efforts, jax.lax.stop_gradient(found.cost))
    return Solution(
        states,
        efforts,
        found.gains,
        found.costates,
        dict(zip(names, multipliers, strict=False)),
        cost,
        report_of(fixed_problem, found, jax.lax.stop_gradient(cost), names),
        weight,
    )


@eqx.filter_custom_jvp
def cost_of(
    problem: Problem, states: Any, efforts: Float[Array, "steps nu"], known: Float[Array, ""]
) -> Float[Array, ""]:
    """`total_cost`, whose value is known already; only its derivatives evaluate the costs."""
    return known


@cost_of.def_jvp
def _cost_of_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    value, change = eqx.filter_jvp(total_cost, primals[:3], tangents[:3])
    return primals[3], jnp.zeros_like(value) if change is None else change


def report_of(problem: Problem, found: Found, cost: Float[Array, ""], names: tuple[str, ...]) -> Report:
    """The numbers at the end of a search."""
    distances = violations_along(problem, values_along(problem, found.states, found.efforts))
    dtype, worst = found.efforts.dtype, jnp.zeros((), jnp.int32)
    violation, constraint, step = jnp.zeros((), dtype), worst, worst
    if distances:
        each = jnp.stack([jnp.max(d, initial=0.0) for d in distances])
        steps = jnp.stack([jnp.argmax(jnp.max(d, axis=1, initial=0.0)) for d in distances])
        constraint = jnp.argmax(each)
        violation, step = each[constraint], steps[constraint]
    last = jnp.maximum(found.history.count - 1, 0)
    held = sides_of_limits(problem, found) != 0.0
    slope = jnp.max(jnp.where(held, 0.0, jnp.abs(found.effort_slopes)))
    gap = found.history.gap[last]
    return Report(found.outcome, cost, gap, violation, constraint, step, found.history, slope, names)


def starting_trajectory(problem: Problem, guess: Any) -> tuple[Any, Float[Array, "steps nu"], Penalties | None]:
    """States, efforts and, from an earlier plan, multipliers to start from."""
    steps, nu = problem.num_steps, num_efforts(problem)
    states, efforts, warm = None, guess, None
    if isinstance(guess, Solution):
        states, efforts = guess.states, guess.efforts
    elif isinstance(guess, tuple | list) and len(guess) == 2:
        states, efforts = guess
    dtype = dtype_of(problem)
    numbers = jnp.zeros((steps, nu)) if efforts is None else as_traced_numbers(efforts)
    if numbers is None or numbers.shape != (steps, nu):
        came = f"efforts of shape {numbers.shape}" if numbers is not None else shown(efforts)
        raise ModelError(
            f"solve: the guess must be None, efforts of shape ({steps}, {nu}), a pair (states, efforts) or an earlier "
            f"plan, got {came}."
        )
    efforts = jnp.asarray(numbers, dtype)
    if is_known(efforts) and not np.all(np.isfinite(np.asarray(efforts))):
        step, actuator = (int(i) for i in np.argwhere(~np.isfinite(np.asarray(efforts)))[0])
        raise ModelError(
            f"solve: the guess has the effort {float(efforts[step, actuator])} at step {step}, place {actuator}; "
            "efforts to start from must be finite."
        )
    if guess is None:
        states = jax.tree.map(lambda x: jnp.repeat(jnp.asarray(x)[None], steps + 1, axis=0), problem.start)
    elif states is None:
        states = rolled_out(problem, clipped(problem, efforts))
    require_states("solve: the guess", problem, states)
    states = times_of(problem, states, clipped(problem, efforts))
    if isinstance(guess, Solution) and problem.constraints:
        names = [constraint.name for constraint in problem.constraints]
        if set(names) == set(guess.multipliers):
            warm = Penalties(tuple(guess.multipliers[name] for name in names), guess.weight)
    return states, efforts, warm


def first_bad_place(problem: Problem, states: Any, efforts: Array) -> str:
    """Names the first state, cost or constraint of a trajectory that is not finite."""
    for k in range(problem.num_steps + 1):
        x, stage = jax.tree.map(lambda a, k=k: a[k], states), problem.stage(k)
        for path, leaf in jax.tree_util.tree_leaves_with_path(x):
            if not np.all(np.isfinite(np.asarray(leaf))):
                return f"\n  state{jax.tree_util.keystr(path)} of step {k} is not finite: {np.asarray(leaf)}"
        at_end = k == problem.num_steps
        for i, term in enumerate(problem.terminal if at_end else problem.running):
            value = np.asarray(term_at_step(problem, term, x, None if at_end else efforts[k], stage, k))
            if not np.all(np.isfinite(value)):
                kind, name = "terminal" if at_end else "running", getattr(term, "__name__", type(term).__name__)
                return f"\n  {kind} cost {i} ({name}) of step {k} is not finite: {value}"
        for constraint in problem.constraints:
            if is_evaluated(constraint, at_end) and (constraint.when is None or constraint.when[k]):
                value = np.asarray(evaluate(constraint, problem, x, None if at_end else efforts[k], stage))
                if not np.all(np.isfinite(value)):
                    return f"\n  constraint '{constraint.name}' of step {k} is not finite: {value}"
    return ""
