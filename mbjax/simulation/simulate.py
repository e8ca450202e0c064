"""Simulates the continuous plant by diffrax."""

from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.constraints import bound_constraints, project_onto_constraints
from mbjax.errors import ModelError
from mbjax.joints import JOINT_KINDS
from mbjax.model import MultibodyModel, without_unread_geometry
from mbjax.number_rules import POSITIVE, checked_numbers, is_known, shown
from mbjax.progress import telling
from mbjax.spatial import normalize_quaternion

from .contact_integrator import ContactIntegrator, Plant, integrate_through_contact
from .idle_controllers import warn_of_idle_controllers
from .ports import as_inputs
from .projected_solver import ProjectedSolver
from .rollout import Trajectory, as_whole_number
from .state import State, as_state, require_rigid_bodies_alone
from .time_derivatives import calc_acceleration_now, require_compliant_pairs, time_derivatives


def simulate(
    model: MultibodyModel,
    state: State,
    inputs: Any = None,
    *,
    save_at: Float[Array, " times"],
    solver: diffrax.AbstractSolver | ContactIntegrator | None = None,
    stepsize_controller: diffrax.AbstractStepSizeController | None = None,
    project: bool = False,
    first_step: float | None = None,
    max_steps: int = 100_000,
    adjoint: diffrax.AbstractAdjoint | None = None,
    progress_meter: diffrax.AbstractProgressMeter | None = None,
    progress: bool | None = None,
) -> Trajectory:
    """Simulates the continuous plant; returns states at the times `save_at` (rising, in s; the first is the start).

    A discrete model moves as a continuous one with its numbers would. No force keeps joints within position limits.
    `inputs` are held constant, or are a function `inputs(state)`. `solver` is any of diffrax's (Dormand–Prince 5 when
    None). `stepsize_controller` is PID with rtol = atol = 1e-8 (1e-5 in float32) when None. Stabilization keeps the
    errors of the model's constraints small. With `project`, `project_onto_constraints` moves each step, and each state
    returned, onto the constraints. Reverse mode differentiates the steps as they ran. Forward mode needs
    `adjoint=diffrax.ForwardMode()`. Both are exact with `project` too.

    With contact, `solver=ContactIntegrator()` gives derivatives near those of the motion, in both modes and under
    `vmap`. It chooses its own steps, so it takes none of the options from `stepsize_controller` to `progress_meter`.

    `progress` shows a line while a program is compiled; None shows it on a terminal and in a notebook.
    """
    state = as_state(model, state)
    require_rigid_bodies_alone(model, "simulate", "take mbjax.rollout, which moves their nodes")
    require_compliant_pairs(model)
    warn_of_idle_controllers("simulate", model, inputs)
    times = jnp.asarray(save_at, model.dtype)
    if times.ndim != 1 or times.shape[0] < 1:
        raise ModelError(f"simulate: save_at must be a list of times, got shape {times.shape}.")
    if is_known(save_at):
        require_rising(np.asarray(save_at, float))
    if isinstance(solver, ContactIntegrator):
        options = stepsize_controller, first_step, adjoint, progress_meter, project or None
        if max_steps != 100_000 or any(option is not None for option in options):
            raise ModelError(
                "simulate: ContactIntegrator takes no stepsize_controller, project, first_step, max_steps, adjoint or "
                "progress_meter. Give it a tolerance or max_steps: ContactIntegrator(tolerance=1e-8, max_steps=10_000)."
            )
        if solver.tolerance is not None:  # as an array, so that another one compiles nothing
            solver = ContactIntegrator(jnp.asarray(solver.tolerance, model.dtype), solver.max_steps)
        through = through_contact if callable(inputs) else compiled_through_contact
        with telling("simulate", progress):
            return through(model, state, inputs if callable(inputs) else as_inputs(model, inputs), times, solver)
    require_options_of_diffrax(solver, stepsize_controller, adjoint, progress_meter, max_steps)
    if first_step is not None:
        first_step = checked_numbers("simulate", "first_step", first_step, POSITIVE, unit="s")
    tolerance = 1e-8 if model.dtype == jnp.float64 else 1e-5
    run = integrate if callable(inputs) else compiled_integrate  # a function may read values that change between calls
    with telling("simulate", progress):
        return run(
            model,
            state,
            inputs if callable(inputs) else as_inputs(model, inputs),
            times,
            diffrax.Dopri5() if solver is None else solver,
            diffrax.PIDController(rtol=tolerance, atol=tolerance)
            if stepsize_controller is None
            else stepsize_controller,
            project,
            None if first_step is None else jnp.asarray(first_step, model.dtype),
            max_steps,
            diffrax.RecursiveCheckpointAdjoint() if adjoint is None else adjoint,
            diffrax.NoProgressMeter() if progress_meter is None else progress_meter,
        )


def require_rising(times: Float[np.ndarray, " times"]) -> None:
    """Raises `ModelError` for a time to save at that is not finite, or before the last one; a time may repeat."""
    endless = np.flatnonzero(~np.isfinite(times))
    if endless.size:
        i = int(endless[0])
        raise ModelError(f"simulate: save_at must be finite times in s, but entry {i} is {times[i]:g}.")
    falling = np.flatnonzero(np.diff(times) < 0.0)
    if falling.size:
        i = int(falling[0])
        raise ModelError(
            f"simulate: save_at must rise, but entries {i} and {i + 1} are {times[i]:g} and {times[i + 1]:g} s. "
            "Sort the times."
        )


def require_options_of_diffrax(
    solver: Any, stepsize_controller: Any, adjoint: Any, progress_meter: Any, max_steps: Any
) -> None:
    """Raises `ModelError` for an option of the wrong kind, a class in place of an instance among them."""
    for name, option, kind, example in (
        ("solver", solver, diffrax.AbstractSolver, "diffrax.Tsit5(), or mbjax.ContactIntegrator()"),
        ("stepsize_controller", stepsize_controller, diffrax.AbstractStepSizeController, "diffrax.PIDController(…)"),
        ("adjoint", adjoint, diffrax.AbstractAdjoint, "diffrax.ForwardMode()"),
        ("progress_meter", progress_meter, diffrax.AbstractProgressMeter, "diffrax.TextProgressMeter()"),
    ):
        if option is not None and not isinstance(option, kind):
            came = f"the class {option.__name__}" if isinstance(option, type) else shown(option)
            raise ModelError(f"simulate: {name} must be an object such as {example}, or None, got {came}.")
    count = as_whole_number(max_steps)
    if max_steps is not None and (count is None or count < 1):  # None is diffrax's word for no bound
        raise ModelError(f"simulate: max_steps must be a whole number of at least 1, got {shown(max_steps)}.")


def integrate(
    model: MultibodyModel,
    state: State,
    inputs: Any,
    times: Float[Array, " times"],
    solver: diffrax.AbstractSolver,
    stepsize_controller: diffrax.AbstractStepSizeController,
    project: bool,
    first_step: Float[Array, ""] | None,
    max_steps: int,
    adjoint: diffrax.AbstractAdjoint,
    progress_meter: diffrax.AbstractProgressMeter,
) -> Trajectory:
    """Integrates the trajectory under constant inputs, or a function of the state."""

    def inputs_at(state: State) -> Any:
        return inputs(state) if callable(inputs) else inputs

    def vector_field(time: Any, qv: Any, _: Any) -> tuple[Array, Array]:
        q, v = qv
        now = State(q, v, jnp.asarray(time, model.dtype))
        return time_derivatives(model, now, inputs_at(now))

    if project:
        solver = ProjectedSolver(solver, lambda qv: project_onto_constraints(model, bound_constraints(model), *qv))
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(vector_field),
        solver,
        t0=times[0],
        t1=times[-1],
        dt0=first_step,
        y0=(state.q, state.v),
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=stepsize_controller,
        max_steps=max_steps,
        adjoint=adjoint,
        progress_meter=progress_meter,
    )
    assert solution.ys is not None
    q, v = solution.ys
    return sampled_at(model, inputs_at, times, q, v, project)


def through_contact(
    model: MultibodyModel, state: State, inputs: Any, times: Float[Array, " times"], solver: ContactIntegrator
) -> Trajectory:
    """Integrates the trajectory by `ContactIntegrator`, under constant inputs or a function of the state."""
    held = eqx.filter_closure_convert(inputs, state) if callable(inputs) else inputs
    start = jnp.concatenate([state.q, state.v, times[:1]])
    plant = Plant(without_unread_geometry(model), held)
    nq, found = model.num_positions, integrate_through_contact(plant, start, times, solver)
    q, v = found[:, :nq], found[:, nq:-1]
    return sampled_at(model, lambda now: inputs(now) if callable(inputs) else inputs, times, q, v, False)


compiled_through_contact = eqx.filter_jit(through_contact)


def sampled_at(
    model: MultibodyModel,
    inputs_at: Callable[[State], Any],
    times: Float[Array, " times"],
    q: Float[Array, "times nq"],
    v: Float[Array, "times nv"],
    project: bool,
) -> Trajectory:
    """The trajectory through these states, with quaternions normalized, perhaps moved onto the constraints."""
    q = jax.vmap(lambda q: normalize_quaternions(model, q))(q)
    if project:
        q, v = jax.vmap(lambda q, v: project_onto_constraints(model, bound_constraints(model), q, v))(q, v)

    def sampled(q: Array, v: Array, time: Array) -> tuple[Array, Array, Array]:
        now = State(q, v, time)
        sampled = calc_acceleration_now(model, now, as_inputs(model, inputs_at(now)))
        return sampled.vdot, sampled.u, sampled.multipliers

    vdot, u, multipliers = jax.vmap(sampled)(q[:-1], v[:-1], times[:-1])
    return Trajectory(q, v, times, vdot, u, multipliers)


compiled_integrate = eqx.filter_jit(integrate)  # filter_jit reports in words what stopped an integration


def normalize_quaternions(model: MultibodyModel, q: Float[Array, " nq"]) -> Float[Array, " nq"]:
    """q with its quaternions normalized, as integration lets their lengths drift by its tolerance."""
    for mobod, kind in enumerate(model.topology.mobod_kinds):
        if mobod and JOINT_KINDS[kind].has_quaternion:
            start = model.mobilizer(mobod).q_start
            q = q.at[start : start + 4].set(normalize_quaternion(q[start : start + 4]))
    return q
