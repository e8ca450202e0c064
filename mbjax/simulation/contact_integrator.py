"""Integrates a continuous plant through contact so that derivatives are near those of the motion itself."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Float, Int

from mbjax.errors import ModelError
from mbjax.execution.derivative_rules import linear_by_hand
from mbjax.kinematics import velocity_to_qdot
from mbjax.model import MultibodyModel
from mbjax.number_rules import POSITIVE, checked_numbers
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_sqrt

from .ports import as_inputs
from .rosenbrock import ORDER_OF_ERROR, rosenbrock_step
from .state import State
from .time_derivatives import calc_acceleration_now

TOLERANCE = {4: 1e-5, 8: 1e-8}  # by bytes of a float
FIRST_STEP = 1e-4  # s, to begin with; the next is up to five times as long
MAX_LANDINGS = 8  # attempts to end a step where surfaces touch
SHORTEST = 1e-3  # s for each unit of tolerance: steps this short need not end there, where a point jumps, so all go on
NO_TIME = 1e-20  # s, the step to a time that is reached already, as a repeated one is: rounding leaves no move
TOUCHING = 1e-2  # tolerances within which surfaces count as just touching
LANDINGS = 1e2, 1e-1, -5e-3  # tolerances before the place where surfaces touch at which steps end, the last beyond it
ATTEMPTS = 4  # for each step allowed, as some are rejected


class ContactIntegrator(eqx.Module):
    """Integrator for `simulate` whose derivatives through impacts, sliding and rest are near those of the motion.

    Its steps are implicit, so friction does not bound them; they end where surfaces touch and part, and elsewhere are
    as long as an estimate of the error in q and v allows: `tolerance` in m, rad and m/s (None: 1e-8, in single
    precision 1e-5). Forward and reverse mode both differentiate the steps as they ran. Reverse and forward mode keep
    the state of each step, of `max_steps` at most; a simulation that needs more is an error.
    """

    tolerance: Float[Array, ""] | float | None = None
    max_steps: int = eqx.field(static=True, default=4096)

    def __check_init__(self) -> None:
        if isinstance(self.max_steps, bool) or not isinstance(self.max_steps, int) or self.max_steps < 1:
            raise ModelError(
                f"ContactIntegrator: max_steps must be a whole number of at least 1, got {self.max_steps!r}."
            )
        if self.tolerance is not None:
            checked_numbers("ContactIntegrator", "tolerance", self.tolerance, POSITIVE)


ContactSolver = ContactIntegrator  # deprecated name, which goes after one version: it integrates


class Plant(eqx.Module):
    """What is integrated: a continuous model under constant inputs, or under a function of the state."""

    model: MultibodyModel
    inputs: Any

    def slope(self, y: Float[Array, " n"]) -> tuple[Array, tuple[Array, Array]]:
        """The time derivative of (q, v, time); beside it the distances of all contact points, and their rates."""
        model, nq = self.model, self.model.num_positions
        state = State(y[:nq], y[nq:-1], y[-1])
        inputs = as_inputs(model, self.inputs(state) if callable(self.inputs) else self.inputs)
        acceleration = calc_acceleration_now(model, state, inputs)
        qdot, one = velocity_to_qdot(model, state.q, state.v), jnp.ones(1, y.dtype)
        contacts, none = acceleration.contacts, jnp.zeros(0, y.dtype)
        if contacts is None or model.collision.smoothing_length is not None:
            distances = none, none  # no force begins at a distance of zero
        else:
            points = contacts.points
            rate = ca.dot(points.normal_W, contacts.v_AcBc_W)
            lands = points.exists  # faces begin without area, and so without force
            if points.surfaces:
                lands = lands & ~points.are_faces.reshape(-1, *(1,) * (lands.ndim - 1))
            distances = jnp.where(lands, points.distance, 1.0), jnp.where(lands, rate, 0.0)
        return jnp.concatenate([qdot, acceleration.vdot, one]), distances


class Steps(NamedTuple):
    """The steps taken: states at their starts, lengths, and which time to save at each one reached (else `times`)."""

    count: Int[Array, ""]
    y: Float[Array, "max_steps n"]
    h: Float[Array, " max_steps"]
    slot: Int[Array, " max_steps"]


class Now(NamedTuple):
    """Where one world is: its state, distances and rates, the times, the step to try, and counts."""

    y: Float[Array, " n"]
    distances: tuple[Float[Array, " m"], Float[Array, " m"]]
    time: Float[Array, ""]
    h: Float[Array, ""]
    target: Int[Array, ""]  # index of the next time to save at
    steps: Int[Array, ""]
    attempts: Int[Array, ""]
    landings: Int[Array, ""]


class Taken(NamedTuple):
    """The step that an attempt took, if it was accepted, and the index of the time to save at that it reached."""

    accepted: Bool[Array, ""]
    y: Float[Array, " n"]
    h: Float[Array, ""]
    slot: Int[Array, ""]


def integrate_through_contact(
    plant: Plant, y: Float[Array, " n"], times: Float[Array, " times"], solver: ContactIntegrator
) -> Float[Array, "times n"]:
    """States (q, v, time) at each of the times, from y at the first of them."""
    default = TOLERANCE[y.dtype.itemsize]
    tolerance = jnp.asarray(default if solver.tolerance is None else solver.tolerance, y.dtype)
    return solution(plant, y, times, lax.stop_gradient(tolerance), max_steps=solver.max_steps)


@eqx.filter_custom_jvp
def solution(plant: Plant, y: Array, times: Array, tolerance: Array, *, max_steps: int) -> Array:
    """States at the times, without derivatives."""
    return take_steps(plant, y, times, tolerance, max_steps, False)[0]


@solution.def_jvp
def _solution_jvp(primals: tuple, tangents: tuple, *, max_steps: int) -> tuple[Array, Array]:
    plant, y, times, tolerance = primals
    of_plant, of_y, of_times, _ = tangents
    ys, steps = take_steps(plant, y, times, tolerance, max_steps, True)
    moving, still = eqx.partition(plant, jax.tree.map(lambda t: t is not None, of_plant, is_leaf=lambda t: t is None))
    fixed, static = eqx.partition((still, moving, steps), eqx.is_array)
    moved = of_plant, jnp.zeros_like(y) if of_y is None else of_y

    def step_from(fixed: Any, k: Array) -> tuple[Callable, Any, Array]:
        still, moving, steps = eqx.combine(fixed, static)

        def step(moving: Any, y: Array) -> Array:
            return rosenbrock_step(eqx.combine(moving, still).slope, y, steps.h[k], needs_end=False).y

        return step, moving, steps.y[k]

    def push_forward(fixed: Any, moved: Any) -> Array:
        of_plant, of_y = moved
        steps = fixed[2]

        def turn(now: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            k, of_y, found = now
            step, moving, y = step_from(fixed, k)
            _, of_y = jax.jvp(step, (moving, y), (of_plant, of_y))
            return k + 1, of_y, found.at[steps.slot[k]].set(of_y, mode="drop")

        found = jnp.zeros_like(ys).at[0].set(of_y)
        return lax.while_loop(lambda now: now[0] < steps.count, turn, (jnp.zeros_like(steps.count), of_y, found))[2]

    def pull_back(fixed: Any, cotangent: Array) -> Any:
        steps, nothing = fixed[2], jax.tree.map(jnp.zeros_like, moved[0])

        def turn(now: tuple[Array, Any, Array]) -> tuple[Array, Any, Array]:
            k, of_plant, of_y = now
            step, moving, y = step_from(fixed, k)
            reached = steps.slot[k] < cotangent.shape[0]
            of_y = of_y + jnp.where(reached, cotangent[jnp.where(reached, steps.slot[k], 0)], 0.0)
            more, of_y = jax.vjp(step, moving, y)[1](of_y)
            return k - 1, jax.tree.map(jnp.add, of_plant, more), of_y

        start = steps.count - 1, nothing, jnp.zeros_like(cotangent[0])
        _, of_plant, of_y = lax.while_loop(lambda now: now[0] >= 0, turn, start)
        return of_plant, of_y + cotangent[0]

    of_ys = linear_by_hand(push_forward, pull_back, fixed, moved, ys.shape, ys.dtype)
    if of_times is not None:
        rates = jax.vmap(lambda y: plant.slope(y)[0])(ys)
        of_ys = of_ys + rates * (of_times - of_times[0])[:, None]
    return ys, of_ys


@eqx.filter_custom_jvp
def differentiated_once(arrays: Any) -> Any:
    """Returns its arguments, and refuses derivatives: those of derivatives would leave out how the steps move."""
    return arrays


@differentiated_once.def_jvp
def _differentiated_once_jvp(primals: tuple, tangents: tuple) -> Any:
    raise ModelError(
        "simulate: ContactIntegrator has first derivatives only. For second ones, differentiate a smooth discrete "
        "plant (rollout), or take differences of first derivatives."
    )


def take_steps(
    plant: Plant, y: Array, times: Array, tolerance: Array, max_steps: int, keeps: bool
) -> tuple[Array, Steps | None]:
    """States at the times and, where they are kept, the steps that led there. Worlds under `vmap` share a loop."""
    arrays, static = eqx.partition(plant, eqx.is_array)
    arrays = lax.stop_gradient(differentiated_once((arrays, y, times, tolerance)))

    @custom_vmap
    def of_one(arrays: Any) -> tuple[Array, Bool[Array, ""], Steps | None]:
        return run(lambda *of_world: attempt(static, *of_world), arrays, max_steps, keeps)

    @of_one.def_vmap
    def of_many(size: int, is_batched: Any, arrays: Any) -> tuple[Any, Any]:
        is_batched = is_batched[0]
        (of_plant, y, times, tolerance), axes = arrays, jax.tree.map(lambda b: 0 if b else None, is_batched)
        y, times = (
            x if b else jnp.broadcast_to(x, (size, *x.shape)) for x, b in ((y, is_batched[1]), (times, is_batched[2]))
        )
        every = jax.vmap(lambda *of_world: attempt(static, *of_world), in_axes=((axes[0], 0, 0, axes[3]), 0))
        found = run(every, (of_plant, y, times, tolerance), max_steps, keeps, size)
        return found, jax.tree.map(lambda _: True, found)

    ys, is_finished, steps = of_one(arrays)
    message = (
        f"simulate: ContactIntegrator took max_steps={max_steps} steps, or {ATTEMPTS} attempts for each, and did not "
        "reach the end. Give it more max_steps or a larger tolerance, or look for a state that is not finite."
    )
    return eqx.error_if(ys, ~is_finished, message), steps


def run(
    attempt: Callable, arrays: Any, max_steps: int, keeps: bool, worlds: int | None = None
) -> tuple[Array, Bool[Array, ""], Steps | None]:
    """Attempts steps until all worlds have reached the last time; what each world kept, and whether it is there."""
    _, y, times, _ = arrays
    shape, last = () if worlds is None else (worlds,), times.shape[-1]
    which = () if worlds is None else (jnp.arange(worlds),)
    kept = Steps(
        jnp.zeros(shape, jnp.int32),
        jnp.zeros((*shape, max_steps, y.shape[-1]), y.dtype),
        jnp.zeros((*shape, max_steps), y.dtype),
        jnp.zeros((*shape, max_steps), jnp.int32),
    )
    points = jax.eval_shape(attempt, arrays, None)
    zero = jnp.zeros(shape, jnp.int32)
    unknown = jax.tree.map(lambda x: jnp.full((*shape, *x.shape[len(shape) :]), jnp.nan, y.dtype), points)
    start = Now(y, unknown, times[..., 0], jnp.full(shape, FIRST_STEP, y.dtype), zero + 1, zero, zero, zero)
    found = jnp.zeros((*shape, last, y.shape[-1]), y.dtype).at[..., 0, :].set(y)

    def goes_on(now: Now) -> Bool[Array, "*w"]:
        return (now.target < last) & (now.steps < max_steps) & (now.attempts < ATTEMPTS * max_steps)

    def turn(loop: tuple[Now, Array, Steps | None]) -> tuple[Now, Array, Steps | None]:
        now, found, kept = loop
        going = goes_on(now)
        after, taken = attempt(arrays, now)
        if worlds is not None:
            after = jax.tree.map(lambda a, b: jnp.where(going.reshape(-1, *[1] * (a.ndim - 1)), a, b), after, now)
        accepted = taken.accepted & going
        found = found.at[(*which, jnp.where(accepted, taken.slot, last))].set(after.y, mode="drop")
        if kept is not None:
            at = (*which, jnp.where(accepted, now.steps, max_steps))
            kept = Steps(
                after.steps,
                kept.y.at[at].set(taken.y, mode="drop"),
                kept.h.at[at].set(taken.h, mode="drop"),
                kept.slot.at[at].set(taken.slot, mode="drop"),
            )
        return after, found, kept

    now, found, kept_after = lax.while_loop(
        lambda loop: jnp.any(goes_on(loop[0])), turn, (start, found, kept if keeps else None)
    )
    return found, now.target >= last, kept_after


def attempt(static: Any, arrays: Any, now: Now | None) -> Any:
    """Tries a step of one world; without `now`, returns the distances of contact points and their rates."""
    of_plant, y, times, tolerance = arrays
    slope = eqx.combine(of_plant, static).slope
    if now is None:
        return slope(y)[1]
    last = times.shape[0]
    remaining = times[jnp.minimum(now.target, last - 1)] - now.time
    reaches = now.h >= remaining
    h = jnp.where(reaches, remaining, now.h)
    h = jnp.where(h > 0.0, h, NO_TIME)
    step = rosenbrock_step(slope, now.y, h, needs_end=True)
    nq = slope.__self__.model.num_positions
    allowed = tolerance * jnp.ones_like(y).at[nq:].add(jnp.maximum(jnp.abs(now.y), jnp.abs(step.y))[nq:])
    error = safe_sqrt(jnp.mean(jnp.square(step.error / allowed)))
    error = jnp.where(jnp.isfinite(error), error, 1e10)
    is_accurate = error <= 1.0
    growth = jnp.clip(0.9 * jnp.maximum(error, 1e-10) ** (-1.0 / ORDER_OF_ERROR), 0.2, 5.0)

    touch = fraction_until_landing(now.distances, step.at_end, h, tolerance)
    lands = is_accurate & (touch < 1.0) & (now.landings < MAX_LANDINGS) & (h > SHORTEST * tolerance)
    accepted = is_accurate & ~lands & (remaining >= 0.0)  # times that fall are not reached
    slot = jnp.where(accepted & reaches, now.target, last)
    kept = jnp.where(reaches, jnp.maximum(now.h, h * growth), h * growth)  # a time to save at shortened this step
    after = Now(
        jnp.where(accepted, step.y, now.y),
        jax.tree.map(lambda new, old: jnp.where(accepted, new, old), step.at_end, now.distances),
        jnp.where(accepted, jnp.where(reaches, times[jnp.minimum(now.target, last - 1)], now.time + h), now.time),
        jnp.where(lands, touch * h, jnp.where(accepted, kept, h * jnp.minimum(growth, 0.9))),
        now.target + jnp.where(accepted & reaches, 1, 0),
        now.steps + jnp.where(accepted, 1, 0),
        now.attempts + 1,
        jnp.where(lands, now.landings + 1, 0),
    )
    return after, Taken(accepted, now.y, h, slot)


def fraction_until_landing(
    before: tuple[Array, Array], after: tuple[Array, Array], h: Float[Array, ""], tolerance: Float[Array, ""]
) -> Float[Array, ""]:
    """The fraction of a step in which surfaces touch or part after which it must end; 1 if none do within it.

    Distances are cubic in time, with the rates known at both ends. Stages near a step's end are less accurate than the
    end, so some may be on the other side, where the force has another slope. The value hardly changes, as the force is
    small there, but the derivative does, in proportion to the length of the step. So steps end before the place first,
    at `LANDINGS`, and only a very short one crosses it.
    """
    (a, a_rate), (b, b_rate) = before, after
    if a.shape[0] == 0:
        return jnp.ones((), a.dtype)
    touching, (far, near, beyond) = TOUCHING * tolerance, (landing * tolerance for landing in LANDINGS)
    size = jnp.abs(a)  # a step from afar must not end just beyond the place either, as at a time to save at
    crosses = ((a < 0.0) != (b < 0.0)) & ((jnp.abs(b) > touching) | (size > 2.0 * near))
    aim = jnp.where(a < 0.0, -1.0, 1.0) * jnp.where(size > 2.0 * far, far, jnp.where(size > 2.0 * near, near, beyond))
    a, b = jnp.where(crosses, a - aim, 1.0), jnp.where(crosses, b - aim, -1.0)
    a_rate, b_rate = h * a_rate, h * b_rate
    c2, c3 = 3.0 * (b - a) - 2.0 * a_rate - b_rate, 2.0 * (a - b) + a_rate + b_rate

    def halve(_: Any, between: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = between
        s = 0.5 * (low + high)
        is_before = (a + s * (a_rate + s * (c2 + s * c3))) * a > 0.0
        return jnp.where(is_before, s, low), jnp.where(is_before, high, s)

    low, high = lax.fori_loop(0, 40, halve, (jnp.zeros_like(a), jnp.ones_like(a)))
    return jnp.min(jnp.where(crosses, jnp.maximum(0.5 * (low + high), 1e-6), 1.0))
