"""The problem that solvers take: a model, a start, costs, limits and constraints, all of them leaves or functions."""

import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel, missing_actuators
from mbjax.number_rules import is_known
from mbjax.simulation import State, step
from mbjax.simulation.state import as_state, require_rigid_bodies_alone, require_state
from mbjax.simulation.step import require_discrete

from .closed_functions import with_traced_as_leaves
from .constraints import Constraint
from .weights import require_schedules

Term = Callable[..., Any]


class Problem(eqx.Module):
    """Minimize the sum of running costs over `num_steps` steps plus the terminal cost, from the state `start`.

    Costs are functions `cost(model, state, effort)` and `final(model, state)`, one or several. One that returns a
    number is taken as it is, with its exact Hessian. One that returns an array of residuals r costs r·r/2, with the
    Hessian JᵀJ of Gauss and Newton: prefer it where you can. Running costs are sums over steps; with `per="second"`
    each is multiplied by its step's length, so that another time step leaves the total nearly the same. Weights that
    change from step to step: `Scheduled(cost, weights)`. `state.time` tells when; for other data of each step give
    `stages`, a pytree with a leading axis of num_steps + 1, of which every function receives its step's entry as one
    more argument.

    The steps are those of the discrete `model`, whose actuators' effort limits hold, or of `dynamics(model, state,
    effort) -> state` with any pytree as its state. Dynamics with a method `linearize(model, states, efforts, stages)
    -> Linearization` are linearized by it, all steps at once; those with `effort_limits(model) -> (low, high)`, or
    None, and `effort_names(model)` have limits, others have none. `efforts` are further limits (low, high), each a
    number, (nu,) or (num_steps, nu), in the units of the effort. Functions with leaves, such as equinox modules, are
    differentiated by them.
    """

    model: MultibodyModel | None
    start: Any
    running: tuple[Term, ...]
    terminal: tuple[Term, ...]
    low: Float[Array, "..."] | None
    high: Float[Array, "..."] | None
    constraints: tuple[Constraint, ...]
    stages: Any
    dynamics: Callable | None
    num_steps: int = eqx.field(static=True)
    num_limits: int | None = eqx.field(static=True)  # that are given for efforts one by one
    per: Literal["step", "second"] = eqx.field(static=True)

    def __init__(
        self,
        model: MultibodyModel | None,
        start: Any,
        num_steps: int,
        running: Term | Sequence[Term] = (),
        terminal: Term | Sequence[Term] = (),
        efforts: tuple[Any, Any] | None = None,
        constraints: Constraint | Sequence[Constraint] = (),
        *,
        stages: Any = None,
        dynamics: Callable | None = None,
        per: Literal["step", "second"] = "step",
    ):
        if per not in ("step", "second"):
            raise ModelError(f"Problem: per must be 'step' or 'second', got {per!r}.")
        if dynamics is None:
            if model is None:
                raise ModelError("Problem: give a discrete model, or dynamics(model, state, effort) -> state.")
            require_discrete(model)
            require_rigid_bodies_alone(model, "Problem")
        if isinstance(num_steps, bool) or not isinstance(num_steps, int | np.integer) or num_steps < 1:
            raise ModelError(f"Problem: num_steps must be a whole number of at least 1, got {num_steps!r}.")
        if dynamics is None:
            require_state(start, "Problem")
        self.model, self.start, self.num_steps = model, start, int(num_steps)
        self.running, self.terminal = terms_of("running", running), terms_of("terminal", terminal)
        require_schedules(self.running + self.terminal, self.num_steps)
        if not self.running and not self.terminal:
            raise ModelError("Problem: give a running cost, a terminal cost, or both.")
        self.constraints = (constraints,) if isinstance(constraints, Constraint) else tuple(constraints)
        require_constraints(self.constraints, self.num_steps)
        require_stages_of_parts((self.running, self.terminal, self.constraints, dynamics), stages)
        require_efforts_of_parts(self.terminal, self.constraints)
        require_dynamics_of_parts((self.running, self.terminal, self.constraints), dynamics)
        self.stages, self.dynamics, self.per = stages, dynamics, per
        require_stages(stages, self.num_steps)
        self.low, self.high = effort_bounds(model, dynamics, efforts, self.num_steps)
        self.num_limits = jnp.shape(self.low)[-1] if self.low is not None and jnp.ndim(self.low) else None
        if model is not None and num_efforts(self) == 0:
            own = "" if dynamics is None else " Or give efforts=(low, high) as arrays, a number for each effort."
            raise ModelError(f"Problem: there are no efforts to choose.{missing_actuators(model)}{own}")
        if per == "second":
            self.step_length(jnp.zeros(num_efforts(self)))

    def next_state(self, state: Any, effort: Array, stage: Any = None) -> Any:
        """The state after one step."""
        if self.dynamics is not None:
            return self.dynamics(self.model, state, effort, *(() if stage is None else (stage,)))
        assert self.model is not None
        return step(self.model, state, effort)[0]

    def motion_and_next_state(self, state: Any, effort: Array, stage: Any = None) -> tuple[Any, Any]:
        """What costs share with the step, where the dynamics say it, else None, and the state after the step."""
        if not hasattr(self.dynamics, "motion"):
            return None, self.next_state(state, effort, stage)
        dynamics: Any = self.dynamics
        motion = dynamics.motion(self.model, state, effort, *(() if stage is None else (stage,)))
        return motion, dynamics.moved(self.model, state, motion)

    def step_length(self, effort: Array) -> Any:
        """Length of a step, in s: that of the model, or what `step_length(model, effort)` of the dynamics says."""
        own = getattr(self.dynamics, "step_length", None)
        if own is not None:
            return own(self.model, effort)
        if self.model is None or not self.model.is_discrete:
            raise ModelError(
                "Problem: per='second' needs the length of a step: give a model with a time step, or dynamics with a "
                "method step_length(model, effort)."
            )
        return self.model.time_step

    def stage(self, k: Any) -> Any:
        """The data of step k; None if there are none."""
        return jax.tree.map(lambda x: x[k], self.stages)


def call_term(term: Term, model: Any, state: Any, effort: Any, stage: Any, motion: Any = None) -> Any:
    """Calls a cost or constraint function with the arguments that there are, and with the motion if it reads it."""
    names = ["model", "state", *([] if effort is None else ["effort"]), *([] if stage is None else ["stage"])]
    arguments = (model, state, *(() if effort is None else (effort,)), *(() if stage is None else (stage,)))
    require_parameters(term, names)
    return call_with_motion(term, arguments, motion)


def call_with_motion(term: Term, arguments: tuple, motion: Any) -> Any:
    """Calls a function, with the motion of the step where that is known and the function takes it."""
    return term(*arguments) if motion is None or not takes_motion(term) else term(*arguments, motion=motion)


def takes_motion(owner: Any, method: str = "__call__") -> bool:
    """Whether a method of a cost or constraint has the keyword `motion`: what the dynamics computed of the step."""
    return isinstance(owner, eqx.Module) and "motion" in inspect.signature(getattr(type(owner), method)).parameters


def require_parameters(term: Term, names: Sequence[str]) -> None:
    """Raises `ModelError` for a plain function that cannot be called with so many arguments."""
    if not isinstance(term, types.FunctionType | types.MethodType):
        return
    signature = inspect.signature(term)
    try:
        signature.bind(*names)
    except TypeError:
        raise ModelError(
            f"Problem: the cost or constraint {term.__name__}{signature} is called with {len(names)} arguments, "
            f"({', '.join(names)}): running ones have the effort, those at the end have not, and with stages= each has "
            "its stage."
        ) from None


def terms_of(what: str, terms: Term | Sequence[Term]) -> tuple[Term, ...]:
    """The cost functions as a tuple, checked to be functions."""
    if not callable(terms) and not isinstance(terms, Sequence):
        raise ModelError(f"Problem: the {what} cost must be a function, or several, got {terms!r}.")
    terms = (terms,) if callable(terms) else tuple(terms)
    for term in terms:
        if not callable(term):
            raise ModelError(f"Problem: each {what} cost must be a function, got {type(term).__name__}.")
    return terms


def require_constraints(constraints: tuple[Constraint, ...], num_steps: int) -> None:
    """Raises for anything but constraints with different names, each with a truth value for every state in `when`."""
    for constraint in constraints:
        if not isinstance(constraint, Constraint):
            raise ModelError(
                f"Problem: each constraint must be a trajectory_optimization.Constraint, got {constraint!r}."
            )
    names = [constraint.name for constraint in constraints]
    for name in names:
        if names.count(name) > 1:
            raise ModelError(f"Problem: two constraints are named '{name}'; names must differ, give one a name=.")
    for constraint in constraints:
        if constraint.when is not None and constraint.when.shape != (num_steps + 1,):
            raise ModelError(
                f"Problem: constraint '{constraint.name}' has when= of shape {constraint.when.shape}; give a truth "
                f"value for each of the num_steps + 1 = {num_steps + 1} states."
            )


def parts_that_need(name: str, tree: Any) -> list[Any]:
    """The parts of costs, constraints or dynamics whose class says that they need something: a stage, an effort, …"""

    def needs(part: Any) -> bool:
        return bool(getattr(type(part), name, None))

    return [part for part in jax.tree.leaves(tree, is_leaf=needs) if needs(part)]


def require_stages_of_parts(parts: Any, stages: Any) -> None:
    """Raises where a cost, a constraint or the dynamics need the data of a step and there are none."""
    if stages is None:
        for part in parts_that_need("needs_stage", parts):
            raise ModelError(f"Problem: {type(part).__name__} needs the data of each step; give stages=.")


def require_efforts_of_parts(terminal: tuple[Term, ...], constraints: tuple[Constraint, ...]) -> None:
    """Raises where a cost or constraint that reads the effort stands where there is none."""
    for part in parts_that_need("needs_effort", terminal):
        raise ModelError(
            f"Problem: {type(part).__name__} reads the effort, so it is no terminal cost but a running one."
        )
    for constraint in constraints:
        for part in parts_that_need("needs_effort", constraint.function) if constraint.at != "running" else ():
            raise ModelError(
                f"Problem: constraint '{constraint.name}' is at='{constraint.at}', where there is no effort, which "
                f"{type(part).__name__} reads; give it at='running'."
            )


def require_dynamics_of_parts(terms: Any, dynamics: Any) -> None:
    """Raises where a cost or constraint is for other dynamics of this library; what a user's dynamics do is unknown."""
    if dynamics is None or type(dynamics).__module__.startswith("mbjax."):
        for part in parts_that_need("needs_dynamics", terms):
            if not isinstance(dynamics, type(part).needs_dynamics):
                given = "the model's own" if dynamics is None else type(dynamics).__name__
                raise ModelError(
                    f"Problem: {type(part).__name__} is for dynamics={type(part).needs_dynamics.__name__}(…), and the "
                    f"steps are {given}."
                )


def require_stages(stages: Any, num_steps: int) -> None:
    """Raises unless all arrays of `stages` have a leading axis of num_steps + 1."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(stages):
        if jnp.ndim(leaf) == 0 or jnp.shape(leaf)[0] != num_steps + 1:
            raise ModelError(
                f"Problem: stages{jax.tree_util.keystr(path)} has shape {jnp.shape(leaf)}; it needs a leading axis of "
                f"num_steps + 1 = {num_steps + 1}."
            )


class OwnLimits(NamedTuple):
    """Names and limits of efforts that a model has, or dynamics of their own."""

    names: tuple[str, ...]
    low: Any
    high: Any


def own_limits(model: MultibodyModel | None, dynamics: Any) -> OwnLimits | None:
    """Limits of the efforts of a model, or of dynamics that say them; None where nothing is known of them."""
    if dynamics is None:
        assert model is not None
        limit = model.parameters.effort_limit
        return OwnLimits(model.actuator_names, -limit, limit)
    limits = dynamics.effort_limits(model) if hasattr(dynamics, "effort_limits") else None
    return None if limits is None else OwnLimits(dynamics.effort_names(model), *limits)


def actuator_limits(model: MultibodyModel) -> tuple[Float[Array, " nu"], Float[Array, " nu"]] | None:
    """Lowest and highest efforts of the model's actuators; None where they are known to be without limits."""
    limit = model.parameters.effort_limit
    return None if is_known(limit) and not np.any(np.isfinite(limit)) else (-limit, limit)


def effort_bounds(
    model: MultibodyModel | None, dynamics: Callable | None, efforts: Any, num_steps: int
) -> tuple[Any, Any]:
    """Limits of the efforts, (nu,) or (num_steps, nu) each, or a pair of None where nothing limits them.

    A model's own limits hold with those that are given: beyond them an effort would change nothing.
    """
    own = own_limits(model, dynamics)
    is_free = own is not None and dynamics is None and is_known(own.high) and not np.any(np.isfinite(own.high))
    if own is not None:
        none = missing_actuators(model) if dynamics is None and model is not None else ""
        for side, bound in (("low", own.low), ("high", own.high)):
            checked_bound(side, jnp.asarray(bound), own.names, num_steps, none, "the dynamics' limits")
    if efforts is None:
        return (None, None) if own is None or is_free else (own.low, own.high)
    if not isinstance(efforts, tuple | list) or len(efforts) != 2:
        raise ModelError(f"Problem: efforts must be a pair (low, high), got {efforts!r}.")
    names = () if own is None else own.names
    low, high = (jnp.asarray(bound, None if own is None or model is None else model.dtype) for bound in efforts)
    if own is None:
        try:
            shape = jnp.broadcast_shapes(low.shape, high.shape)
        except ValueError:
            shape = (0, 0)
        if len(shape) > 2 or (len(shape) == 2 and shape[0] != num_steps):
            raise ModelError(
                f"Problem: efforts have limits of shapes {low.shape} and {high.shape}; give numbers, (nu,) or "
                f"(num_steps, nu), with num_steps = {num_steps}."
            )
        low, high = (jnp.broadcast_to(bound, shape) for bound in (low, high))
    else:
        low, high = (checked_bound(*pair, names, num_steps, none) for pair in (("low", low), ("high", high)))
        if not is_free:
            low, high = jnp.maximum(low, own.low), jnp.minimum(high, own.high)
    if is_known(low) and is_known(high):
        wrong = np.argwhere(~(np.asarray(low) <= np.asarray(high)))
        if len(wrong):
            where, lower, upper = tuple(int(i) for i in wrong[0]), np.asarray(low), np.asarray(high)
            name = f"'{names[where[-1]]}'" if names else str(where)
            raise ModelError(
                f"Problem: the effort of actuator {name} must be at least {lower[where]} and at most {upper[where]}: "
                "no effort is both."
            )
    return low, high


def checked_bound(
    name: str, bound: Array, names: tuple[str, ...], num_steps: int, none: str, whose: str = "efforts'"
) -> Array:
    """A bound for every actuator, or for every step and actuator."""
    count = len(names)
    if bound.ndim and bound.shape not in ((count,), (num_steps, count)):
        raise ModelError(
            f"Problem: {whose} {name} has shape {bound.shape}; the model has {count} actuators: give a number, "
            f"({count},) or ({num_steps}, {count}).{none}"
        )
    return jnp.broadcast_to(bound, (count,)) if bound.ndim == 0 else bound


def with_start(problem: Problem, start: Any) -> Problem:
    """The problem from another start: no new program."""
    return eqx.tree_at(lambda p: p.start, problem, start)


def without_infinite_limits(problem: Problem) -> Problem:
    """The problem without limits that are known to limit no effort: solvers then need no search within a box."""
    low, high = problem.low, problem.high
    if low is None or not is_known(low, high):
        return problem
    if np.all(np.asarray(low) == -np.inf) and np.all(np.asarray(high) == np.inf):
        return eqx.tree_at(lambda p: (p.low, p.high), problem, (None, None))
    return problem


def prepared(problem: Problem) -> Problem:
    """The problem with a checked start, and with traced arrays that plain functions close over as leaves.

    So it can be differentiated by them. Its numbers become those of the start's precision.
    """
    problem = without_infinite_limits(problem)
    if isinstance(problem.start, State) and problem.model is not None:
        problem = with_start(problem, as_state(problem.model, problem.start))
    problem = in_precision(problem, dtype_of(problem))
    return with_traced_as_leaves(problem)


def in_precision(problem: Problem, dtype: Any) -> Problem:
    """The problem with all of its floating-point numbers in one precision."""

    def cast(x: Any) -> Any:
        is_other = isinstance(x, Array | np.ndarray) and jnp.issubdtype(x.dtype, jnp.floating) and x.dtype != dtype
        return x.astype(dtype) if is_other else x

    return jax.tree.map(cast, problem)


def num_efforts(problem: Problem) -> int:
    """Number of efforts: the model's actuators, or the size of the limits of other dynamics."""
    if problem.dynamics is None:
        assert problem.model is not None
        return problem.model.num_actuators
    if problem.num_limits is not None:
        return problem.num_limits
    if problem.model is None:
        raise ModelError("Problem: give efforts=(low, high) as arrays, so that the number of efforts is known.")
    return problem.model.num_actuators


def require_like_start(call: str, problem: Problem, state: Any) -> None:
    """Raises `ModelError` unless a state has the parts and shapes of the problem's start."""
    shapes = [[jnp.shape(x) for x in jax.tree.leaves(tree)] for tree in (problem.start, state)]
    if jax.tree.structure(problem.start) != jax.tree.structure(state) or shapes[0] != shapes[1]:
        raise ModelError(
            f"{call}: the state must be like the start of the problem, {described(problem.start)} with arrays of "
            f"shapes {shapes[0]}, got {described(state)} with {shapes[1]}."
        )


def require_states(call: str, problem: Problem, states: Any) -> None:
    """Raises `ModelError` unless `states` are num_steps + 1 states like the start, stacked along a leading axis."""
    count = problem.num_steps + 1
    wanted, given = (jax.tree_util.tree_leaves_with_path(tree) for tree in (problem.start, states))
    if jax.tree.structure(problem.start) != jax.tree.structure(states):
        raise ModelError(
            f"{call}: states must be like the start, {described(problem.start)}, each array with a leading axis of "
            f"num_steps + 1 = {count}, got {described(states)}."
        )
    for (path, one), (_, many) in zip(wanted, given, strict=True):
        if jnp.shape(many) != (count, *jnp.shape(one)):
            raise ModelError(
                f"{call}: states{jax.tree_util.keystr(path)} has shape {jnp.shape(many)}; the problem needs "
                f"{(count, *jnp.shape(one))}, with a leading axis of num_steps + 1 = {count}."
            )


def described(tree: Any) -> str:
    """A pytree in words: the types and shapes of its parts."""
    if isinstance(tree, State) or not isinstance(tree, tuple | list | dict):
        shape = "" if isinstance(tree, State) or not hasattr(tree, "shape") else f" of shape {tree.shape}"
        return f"{'an array' if shape else type(tree).__name__}{shape}"
    parts = [f"{key}: {described(x)}" for key, x in tree.items()] if isinstance(tree, dict) else map(described, tree)
    return f"{type(tree).__name__} ({', '.join(parts)})"


def dtype_of(problem: Problem) -> Any:
    """Floating-point type of the problem's states."""
    return jnp.result_type(*(leaf for leaf in jax.tree.leaves(problem.start)))


def times_of(problem: Problem, states: Any, efforts: Float[Array, "steps nu"]) -> Any:
    """States (num_steps + 1) with the times at which they are, counted from the start."""
    is_timed = hasattr(problem.dynamics, "step_length")

    def timed(part: Any, first: Any) -> Any:
        if not isinstance(part, State):
            return part
        if is_timed:
            lengths = jax.vmap(problem.step_length)(efforts)
            passed = jnp.concatenate([jnp.zeros(1, lengths.dtype), jnp.cumsum(lengths)])
        else:
            assert problem.model is not None
            passed = problem.model.time_step * jnp.arange(problem.num_steps + 1, dtype=part.q.dtype)
        return State(part.q, part.v, (first.time + passed).astype(part.q.dtype))

    return jax.tree.map(timed, states, problem.start, is_leaf=lambda part: isinstance(part, State))
