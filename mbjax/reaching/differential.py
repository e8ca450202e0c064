"""Velocities that move frames, joints and the centre of mass as wanted, within limits: one convex problem.

    minimize 1/2 Σ (w (J v - V))² + 1/2 λ² v·v    subject to   G v = 0,   low <= v <= high

The active set method (Nocedal & Wright, algorithm 16.3) finds which coordinates are at limits. These then give v, and
its derivatives, by one linear system.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.array_types import Positions, Velocities
from mbjax.constraints import BoundConstraintSet, bound_constraints
from mbjax.constraints.assembly_problem import calc_active_jacobian
from mbjax.constraints.bound_constraint_set import require_bound_set
from mbjax.errors import ModelError
from mbjax.execution import call_compiled, is_traced, of_one_model
from mbjax.kinematics import is_velocity_equal_to_qdot, velocity_to_qdot
from mbjax.linear_algebra import solve
from mbjax.model import MultibodyModel, as_coordinates, locked_velocities
from mbjax.number_rules import NOT_NEGATIVE, POSITIVE, checked_numbers, is_known, shown
from mbjax.simulation import State
from mbjax.spatial import safe_sqrt
from mbjax.trajectory_optimization import CenterOfMassVelocity, FrameVelocity, Momentum, VelocityGoal

from .goal_numbers import require_finite
from .inverse_kinematics import goals_by_name
from .residual_rows import require_shapes
from .tangent import coordinates_of, has_roll_pitch_yaw

SEARCH_WEIGHT = 1e4  # of constraints while coordinates at limits are found, relative to the same
VELOCITY_GOALS = FrameVelocity, CenterOfMassVelocity, VelocityGoal, Momentum  # residuals that are to be zero at once
LOOP_WEIGHT = 1e-10  # softness of constraints, relative to λ, for those that are redundant


class Problem(NamedTuple):
    """Minimize 1/2 |J v - wanted|² + 1/2 λ² v·v on G v = 0."""

    J: Float[Array, "m nv"]
    wanted: Float[Array, " m"]
    damping: Float[Array, ""]
    G: Float[Array, "h nv"]


@of_one_model
def differential_inverse_kinematics(
    model: MultibodyModel,
    q: Positions,
    goals: Any,
    *,
    gain: float | None = None,
    damping: float = 1e-3,
    time_step: float | None = None,
    cset: BoundConstraintSet | None = None,
) -> Velocities:
    """The velocities v within limits that come nearest to what the goals want: min 1/2 Σ (w (J v - V))² + 1/2 λ² v·v.

    `goals` are residuals of `mbjax.trajectory_optimization`, one, several, or by name in a dict. Of velocities
    (`FrameVelocity`, `CenterOfMassVelocity`, `VelocityGoal`, `Momentum`) they are to be zero; of positions (`PoseGoal`,
    `PointGoal`, …) they are to decrease at the rate `gain`, in 1/s, which any goal but those four needs. `damping` is λ
    relative to the largest column of the weighted Jacobian: near singular configurations v stays bounded, elsewhere it
    changes v by about its square.

    Velocity limits of the model hold, locked joints rest, and joints at a position limit do not move further; with
    `time_step` no joint would pass its limit within it (joints with roll, pitch and yaw: at the limit only). Closed
    loops and other constraints of the model, or of `cset`, keep their rates at zero. Differentiable, with coordinates
    at limits staying there. Raises `ModelError` without goals, or without the gain that they need, for a `gain` or
    `damping` below 0, a `time_step` that is not above 0, infinite ones, and where q or a goal is not finite. Where
    traced numbers are not, all of v is NaN: hand it to no robot.
    """
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    if is_known(q) and not np.all(np.isfinite(np.asarray(q))):
        raise ModelError(f"differential_inverse_kinematics: q must be finite, got {shown(q)}.")
    named = goals_by_name(goals, has_constraints=False)
    require_finite("differential_inverse_kinematics", named)
    if not named:
        raise ModelError("differential_inverse_kinematics: there are no goals.")
    for name, goal in named.items():
        if gain is None and not isinstance(goal, VELOCITY_GOALS):
            raise ModelError(
                f"differential_inverse_kinematics: goal '{name}' is of positions; give gain=, in 1/s, the rate at "
                "which its residual falls. A function of velocities alone takes gain=0.0."
            )
    gain = 0.0 if gain is None else gain
    for what, value in (("gain", gain), ("damping", damping)):
        checked_numbers("differential_inverse_kinematics", what, value, NOT_NEGATIVE)
    if time_step is not None:
        checked_numbers("differential_inverse_kinematics", "time_step", time_step, POSITIVE, unit="s")
    if cset is not None:
        require_bound_set("differential_inverse_kinematics", cset, model)
    step = None if time_step is None else as_number(time_step, model)
    args = (model, q, tuple(named.items()), as_number(gain, model), as_number(damping, model), step, cset)
    return compiled(*args) if is_traced(jax.tree.leaves(args)) else call_compiled(calc_velocities, *args)


def as_number(x: Any, model: MultibodyModel) -> Any:
    """A number in the model's type."""
    return np.asarray(x, model.dtype) if is_known(x) else jnp.asarray(x, model.dtype)


def calc_velocities(
    model: MultibodyModel,
    q: Float[Array, " nq"],
    goals: tuple,
    gain: Float[Array, ""],
    damping: Float[Array, ""],
    time_step: Float[Array, ""] | None,
    cset: BoundConstraintSet | None,
) -> Float[Array, " nv"]:
    """Sets up the convex problem, finds which coordinates are at limits, and solves for the others."""
    J, wanted = linear_goals(model, q, goals, gain)
    loops = bound_constraints(model) if cset is None else cset
    G = calc_active_jacobian(model, loops, q) if loops.names else jnp.zeros((0, model.num_velocities), q.dtype)
    size = safe_sqrt(jnp.max(jnp.sum(J * J, 0), initial=0.0))
    least = float(jnp.finfo(q.dtype).eps) ** 0.5 * jnp.where(size > 0.0, size, 1.0)
    problem = Problem(J, wanted, jnp.maximum(damping * size, least), G)
    low, high = velocity_bounds(model, q, time_step)
    v, is_fixed = search_bounds(*lax.stop_gradient((problem, low, high)))
    bound = jnp.where(v <= low, low, high)
    v = jnp.where(is_fixed, bound, solved_with(problem, jnp.where(is_fixed, bound, 0.0), is_fixed))
    are_finite = [jnp.all(jnp.isfinite(x)) for x in (q, *problem)] + [~jnp.any(jnp.isnan(x)) for x in (low, high)]
    return jnp.where(jnp.all(jnp.stack(are_finite)), v, jnp.nan)  # NaN compares as beyond a limit, which is no answer


compiled = eqx.filter_jit(calc_velocities)


def linear_goals(
    model: MultibodyModel, q: Float[Array, " nq"], goals: tuple, gain: Float[Array, ""]
) -> tuple[Float[Array, "m nv"], Float[Array, " m"]]:
    """J and wanted with the goals J v = wanted: residuals of velocities are zero, those of positions decrease."""
    still = jnp.zeros(model.num_velocities, q.dtype)
    rows, wanted = [], []
    for name, goal in goals:
        require_shapes(name, goal, model)

        def at(q: Array, v: Array, goal: Any = goal) -> Array:
            return jnp.ravel(goal(model, State(q, v)))

        value = at(q, still)
        by_velocity = jax.jacfwd(lambda v, at=at: at(q, v))(still)
        by_position = rate_matrix(model, q, lambda q, at=at: at(q, still))
        depends = jnp.any(lax.stop_gradient(by_velocity) != 0.0, 1)
        rows.append(jnp.where(depends[:, None], by_velocity, by_position))
        wanted.append(jnp.where(depends, -value, -gain * value))
    return jnp.concatenate(rows), jnp.concatenate(wanted)


def rate_matrix(model: MultibodyModel, q: Float[Array, " nq"], function: Any) -> Float[Array, "m nv"]:
    """Jacobian of a function of q along velocities."""
    from_v = jax.vmap(lambda v: jax.jvp(function, (q,), (velocity_to_qdot(model, q, v),))[1], out_axes=1)
    return from_v(jnp.eye(model.num_velocities, dtype=q.dtype))


def velocity_bounds(
    model: MultibodyModel, q: Float[Array, " nq"], time_step: Float[Array, ""] | None
) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
    """Velocity limits, and those that keep positions within their limits; locked joints rest."""
    low, high = model.velocity_lower_limits, model.velocity_upper_limits
    coordinates = coordinates_of(model)
    own = coordinates.are_positions & ~rotates_otherwise(model)
    places = np.where(own, coordinates.places, 0)
    below, above = (limit[places] - q[places] for limit in (model.position_lower_limits, model.position_upper_limits))
    if time_step is None:
        least, most = jnp.where(below >= 0.0, 0.0, -jnp.inf), jnp.where(above <= 0.0, 0.0, jnp.inf)
    else:
        least, most = (speed_within(room, time_step) for room in (jnp.minimum(below, 0.0), jnp.maximum(above, 0.0)))
    low = jnp.where(own, jnp.maximum(low, least), low)
    high = jnp.where(own, jnp.minimum(high, most), high)
    is_locked = locked_velocities(model)
    return jnp.where(is_locked, 0.0, jnp.minimum(low, high)), jnp.where(is_locked, 0.0, high)


def speed_within(room: Float[Array, " nv"], time_step: Float[Array, ""]) -> Float[Array, " nv"]:
    """The velocity that takes up the room in a step; infinite, with a derivative of zero, where the room is."""
    is_finite = jnp.isfinite(room)
    return jnp.where(is_finite, jnp.where(is_finite, room, 0.0) / time_step, room)


def rotates_otherwise(model: MultibodyModel) -> Bool[np.ndarray, " nv"]:
    """Which velocities are no position rates although their joint has no quaternion."""
    mask = np.zeros(model.num_velocities, bool)
    if has_roll_pitch_yaw(model) and not is_velocity_equal_to_qdot(model):
        for joint in model.layout.joints:
            if joint.kind in ("ball_rpy", "rpy_floating"):
                mask[joint.v] = True
    return mask


def search_bounds(
    problem: Problem, low: Float[Array, " nv"], high: Float[Array, " nv"]
) -> tuple[Float[Array, " nv"], Bool[Array, " nv"]]:
    """The minimum within bounds, constraints by their weight, and what is at a bound: the primal active set method.

    Each round moves to the minimum with some coordinates held at bounds. One that comes to a bound on the way is held
    there, and one whose bound lowers nothing is let go.
    """
    J, wanted, damping, G = problem
    scale = SEARCH_WEIGHT * safe_sqrt(jnp.max(jnp.sum(J * J, 0), initial=0.0)) + damping
    J, wanted = jnp.concatenate([J, scale * G]), jnp.concatenate([wanted, jnp.zeros(G.shape[0], J.dtype)])
    soft = Problem(J, wanted, damping, G[:0])

    rounds = 10 + 4 * low.shape[0]

    def gradient(v: Array) -> Array:
        return J.T @ (J @ v - wanted) + damping**2 * v

    def advance(carry: tuple) -> tuple:
        v, is_held, _, rounds = carry
        d = jnp.where(is_held, 0.0, solved_with(soft, v, is_held) - v)
        bound = jnp.where(d > 0.0, high, low)
        lengths = jnp.where(is_held | (d == 0.0), jnp.inf, (bound - v) / jnp.where(d == 0.0, 1.0, d))
        length = jnp.clip(jnp.min(lengths), 0.0, 1.0)
        is_first = jnp.arange(v.shape[0]) == jnp.argmin(lengths)
        comes_to_bound = jnp.min(lengths) < 1.0
        v = jnp.clip(jnp.where(comes_to_bound & is_first, bound, v + length * d), low, high)
        slope = gradient(v)
        wrong = jnp.where(is_held & (low < high), jnp.where(v <= low, -slope, slope), -jnp.inf)
        frees = ~comes_to_bound & (jnp.max(wrong) > 0.0)
        is_held = jnp.where(comes_to_bound, is_held | is_first, is_held)
        is_held = jnp.where(frees & (jnp.arange(v.shape[0]) == jnp.argmax(wrong)), False, is_held)
        return v, is_held, comes_to_bound | frees, rounds + 1

    still = jnp.clip(jnp.zeros_like(low), low, high)
    wished = solved_with(soft, still, low >= high)
    v = jnp.clip(wished, low, high)
    start = v, (v != wished) | (low >= high), jnp.array(True), jnp.zeros((), jnp.int32)
    return lax.while_loop(lambda carry: carry[2] & (carry[3] < rounds), advance, start)[:2]


def solved_with(problem: Problem, given: Float[Array, " nv"], is_fixed: Bool[Array, " nv"]) -> Float[Array, " nv"]:
    """The minimum with some v given, from v, s / λ and multipliers: λ² v + Jᵀ s + Gᵀ y = 0, J v - s = wanted, G v = 0.

    The matrix has the condition of J, not of its square.
    """
    J, wanted, damping, G = problem
    n, m, h = J.shape[1], J.shape[0], G.shape[0]
    eye = damping * jnp.eye(n, dtype=J.dtype)
    top = jnp.concatenate([eye, J.T, G.T], 1)
    top = jnp.where(is_fixed[:, None], jnp.concatenate([eye, jnp.zeros((n, m + h), J.dtype)], 1), top)
    middle = jnp.concatenate([J, -damping * jnp.eye(m, dtype=J.dtype), jnp.zeros((m, h), J.dtype)], 1)
    softness = LOOP_WEIGHT * lax.stop_gradient(damping)
    bottom = jnp.concatenate([G, jnp.zeros((h, m), J.dtype), -softness * jnp.eye(h, dtype=J.dtype)], 1)
    right = jnp.concatenate([jnp.where(is_fixed, damping * given, 0.0), wanted, jnp.zeros(h, J.dtype)])
    return solve(jnp.concatenate([top, middle, bottom]), right)[:n]
