"""Velocities that move frames, joints and the centre of mass as wanted, within limits: one convex problem.

    minimize 1/2 Σ (w (J v - V))² + 1/2 λ² v·v    subject to   G v = 0,   low <= v <= high

It is solved by projected Newton steps, whose set of coordinates at limits then gives v, and its derivatives, by one
linear system.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.array_types import Positions, Velocities
from mbjax.constraints import BoundConstraintSet, bound_constraints
from mbjax.constraints.assembly_problem import calc_active_jacobian
from mbjax.errors import ModelError
from mbjax.execution import call_compiled, is_traced, of_one_model
from mbjax.kinematics import is_velocity_equal_to_qdot, velocity_to_qdot
from mbjax.linear_algebra import solve
from mbjax.model import MultibodyModel, as_coordinates, locked_velocities
from mbjax.number_rules import is_known
from mbjax.simulation import State

from .inverse_kinematics import goals_by_name
from .tangent import coordinates_of, has_roll_pitch_yaw

ROUNDS = 60  # projected Newton steps, at most
LOOP_WEIGHT = 1e-9  # softness of constraints, relative to the largest entry of the matrix


@of_one_model
def differential_inverse_kinematics(
    model: MultibodyModel,
    q: Positions,
    goals: Any,
    *,
    gain: float = 0.0,
    damping: float = 1e-3,
    time_step: float | None = None,
    cset: BoundConstraintSet | None = None,
) -> Velocities:
    """The velocities v within limits that come nearest to what the goals want: min 1/2 Σ (w (J v - V))² + 1/2 λ² v·v.

    `goals` are residuals of `mbjax.trajectory_optimization`, one, several, or by name in a dict. Of velocities
    (`FrameVelocity`, `CenterOfMassVelocity`, `VelocityGoal`, `Momentum`) they are to be zero; of positions (`PoseGoal`,
    `PointGoal`, …) they are to decrease at the rate `gain`, in 1/s. `damping` is λ relative to the largest column of the
    weighted Jacobian: near singular configurations v stays bounded, and elsewhere it changes v by about its square.

    Velocity limits of the model hold, locked joints rest, and joints at a position limit do not move further; with
    `time_step` no joint would pass its limit within it (joints with roll, pitch and yaw: at the limit only). Closed
    loops and other constraints of the model, or of `cset`, keep their rates at zero. Differentiable, with coordinates
    at limits staying there.
    """
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    named = goals_by_name(goals)
    if not named:
        raise ModelError("differential_inverse_kinematics: there are no goals.")
    for what, value in (("gain", gain), ("damping", damping)):
        if is_known(value) and not 0.0 <= float(value) < np.inf:
            raise ModelError(f"differential_inverse_kinematics: {what} must be at least 0 and finite, got {value}.")
    if time_step is not None and is_known(time_step) and not float(time_step) > 0.0:
        raise ModelError(f"differential_inverse_kinematics: time_step must be above 0, got {time_step}.")
    if cset is not None:
        cset.require_model(model)
    step = None if time_step is None else as_number(time_step, model)
    args = (model, q, tuple(named.values()), as_number(gain, model), as_number(damping, model), step, cset)
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
    H = jnp.matmul(J.T, J, precision=lax.Precision.HIGHEST)
    size = jnp.max(jnp.diag(H), initial=0.0)
    least = float(jnp.finfo(q.dtype).eps) * jnp.where(size > 0.0, size, 1.0)
    H = H + jnp.eye(model.num_velocities, dtype=q.dtype) * (damping**2 * size + least)
    c = -J.T @ wanted
    G = calc_active_jacobian(model, loops, q) if loops.names else jnp.zeros((0, model.num_velocities), q.dtype)
    low, high = velocity_bounds(model, q, time_step)
    found = lax.stop_gradient((H, c, G, low, high))
    v, is_fixed = search_bounds(*found)
    bound = jnp.where(v <= low, low, high)
    return solved_with(H, c, G, jnp.where(is_fixed, bound, 0.0), is_fixed)


compiled = eqx.filter_jit(calc_velocities)


def linear_goals(
    model: MultibodyModel, q: Float[Array, " nq"], goals: tuple, gain: Float[Array, ""]
) -> tuple[Float[Array, "m nv"], Float[Array, " m"]]:
    """J and wanted with the goals J v = wanted: residuals of velocities are zero, those of positions decrease."""
    still = jnp.zeros(model.num_velocities, q.dtype)
    rows, wanted = [], []
    for goal in goals:

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
        least, most = jnp.minimum(below, 0.0) / time_step, jnp.maximum(above, 0.0) / time_step
    low = jnp.where(own, jnp.maximum(low, least), low)
    high = jnp.where(own, jnp.minimum(high, most), high)
    is_locked = locked_velocities(model)
    return jnp.where(is_locked, 0.0, jnp.minimum(low, high)), jnp.where(is_locked, 0.0, high)


def rotates_otherwise(model: MultibodyModel) -> Bool[np.ndarray, " nv"]:
    """Which velocities are no position rates although their joint has no quaternion."""
    mask = np.zeros(model.num_velocities, bool)
    if has_roll_pitch_yaw(model) and not is_velocity_equal_to_qdot(model):
        for joint in model.layout.joints:
            if joint.kind in ("ball_rpy", "rpy_floating"):
                mask[joint.v] = True
    return mask


def search_bounds(H: Array, c: Array, G: Array, low: Array, high: Array) -> tuple[Array, Bool[Array, " nv"]]:
    """Minimum of 1/2 v·H v + c·v within bounds on G v = 0, by projected Newton steps, and what is at a bound."""
    n = c.shape[0]
    H = H + jnp.matmul(G.T, G, precision=lax.Precision.HIGHEST) * (jnp.max(jnp.diag(H)) / jnp.sqrt(LOOP_WEIGHT))

    def fixed(v: Array) -> Array:
        g = H @ v + c
        return ((v <= low) & (g >= 0.0)) | ((v >= high) & (g <= 0.0)) | (low >= high)

    def cost(v: Array) -> Array:
        return 0.5 * v @ (H @ v) + c @ v

    def advance(carry: tuple) -> tuple:
        v, _, rounds = carry
        is_fixed = fixed(v)
        d = solved_with(H, H @ v + c, jnp.zeros((0, n), H.dtype), jnp.zeros(n, H.dtype), is_fixed)
        lengths = 0.5 ** jnp.arange(12, dtype=H.dtype)
        tries = jax.vmap(lambda t: jnp.clip(v + t * d, low, high))(lengths)
        costs = jax.vmap(cost)(tries)
        new = tries[jnp.argmin(costs)]
        goes_on = (jnp.min(costs) < cost(v)) & jnp.any(jnp.abs(new - v) > 0.0)
        return jnp.where(goes_on, new, v), goes_on, rounds + 1

    start = jnp.clip(jnp.zeros(n, H.dtype), low, high), jnp.array(True), jnp.zeros((), jnp.int32)
    v = lax.while_loop(lambda carry: carry[1] & (carry[2] < ROUNDS), advance, start)[0]
    return v, fixed(v)


def solved_with(H: Array, c: Array, G: Array, given: Array, is_fixed: Bool[Array, " nv"]) -> Float[Array, " nv"]:
    """Minimum of 1/2 v·H v + c·v on G v = 0 with some v given, by one linear system in v and multipliers."""
    eye = jnp.eye(c.shape[0], dtype=H.dtype)
    size = lax.stop_gradient(jnp.max(jnp.diag(H), initial=0.0))
    top = jnp.where(is_fixed[:, None], eye * size, H)
    if G.shape[0] == 0:
        return solve(top, jnp.where(is_fixed, size * given, -c))
    upper = jnp.where(is_fixed[:, None], 0.0, G.T)
    soft = -LOOP_WEIGHT * jnp.eye(G.shape[0], dtype=H.dtype) / size
    K = jnp.concatenate([jnp.concatenate([top, upper], 1), jnp.concatenate([G, soft], 1)])
    right = jnp.concatenate([jnp.where(is_fixed, size * given, -c), jnp.zeros(G.shape[0], H.dtype)])
    return solve(K, right)[: c.shape[0]]
