"""Random states, drawn from the distributions set on a model, or within its limits."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mbjax.errors import ModelError
from mbjax.execution import compiled_outside_jit
from mbjax.joints import JOINT_KINDS
from mbjax.model import MultibodyModel
from mbjax.spatial import normalize_quaternion, safe_arctan2, safe_sqrt

from .state import State, default_state, nodes_at_rest

WITH_ROLL_PITCH_YAW = ("ball_rpy", "rpy_floating")
POSITION_RANGE = {True: jnp.pi, False: 1.0}  # half-range of positions without limits: angles in rad, others in m


@compiled_outside_jit
def random_state(model: MultibodyModel, key: PRNGKeyArray) -> State:
    """Draws a state from the model's distributions; coordinates without one take their default, as in Drake.

    Without any distribution set, it draws every coordinate by `random_state_within_limits`. Nodes of deformable bodies
    are at rest.
    """
    require_key("random_state", key)
    if not model.random_distributions:
        return random_state_within_limits(model, key)
    state = default_state(model)
    x = {"q": state.q, "v": state.v}
    for d in model.random_distributions:
        x[d.space] = x[d.space].at[d.coordinates].set(d.sample(key).astype(model.dtype))
    return State(x["q"], x["v"], state.time, state.nodes)


@compiled_outside_jit
def random_state_within_limits(model: MultibodyModel, key: PRNGKeyArray) -> State:
    """Draws a state: positions uniform within limits, orientations uniform, velocities standard normal.

    Without limits, angles range over a turn and displacements over +-1 m about the default. Orientations by roll, pitch
    and yaw are uniform too, where their angles have no limits; else uniform among those whose angles are within them.
    Limits of quaternions are left aside. In Drake, joints without a distribution of their own take their default.
    Nodes of deformable bodies are at rest.
    """
    require_key("random_state_within_limits", key)
    key_q, key_rotation, key_v = jax.random.split(key, 3)
    default, dtype = model.parameters.default_positions, model.dtype
    width = jnp.array(position_ranges(model), dtype)
    lower, upper = model.position_lower_limits, model.position_upper_limits
    lower = jnp.where(jnp.isfinite(lower), lower, jnp.minimum(default, upper) - width)
    upper = jnp.where(jnp.isfinite(upper), upper, jnp.maximum(default, lower) + width)
    share = jax.random.uniform(key_q, default.shape, dtype)
    q = lower + (upper - lower) * share
    for mobod, kind in enumerate(model.topology.mobod_kinds):
        start = model.mobilizer(mobod).q_start if mobod else 0
        if kind in WITH_ROLL_PITCH_YAW:
            at = start + 1
            limits = model.position_lower_limits[at], model.position_upper_limits[at]
            q = q.at[at].set(pitch_of_uniform_rotation(share[at], *limits))
        if mobod and JOINT_KINDS[kind].has_quaternion:
            quaternion = jax.random.normal(jax.random.fold_in(key_rotation, mobod), (4,), dtype)
            q = q.at[start : start + 4].set(normalize_quaternion(quaternion))
    v = jax.random.normal(key_v, (model.num_velocities,), dtype)
    return State(q, v, jnp.zeros((), dtype), nodes_at_rest(model))


def pitch_of_uniform_rotation(
    share: Float[Array, ""], lower: Float[Array, ""], upper: Float[Array, ""]
) -> Float[Array, ""]:
    """The pitch below which there is this share of all orientations whose pitch is within limits.

    Orientations have the density |cos pitch|. Without a limit the pitch ends a quarter turn from zero, or half a turn
    from a limit that lies beyond.
    """
    quarter = jnp.asarray(jnp.pi / 2.0, share.dtype)
    low = jnp.where(jnp.isfinite(lower), lower, jnp.where(upper > -quarter, -quarter, upper - 2.0 * quarter))
    high = jnp.where(jnp.isfinite(upper), upper, jnp.where(lower < quarter, quarter, lower + 2.0 * quarter))
    below, above = orientations_up_to(low), orientations_up_to(high)
    at = below + (above - below) * share
    half_turns = jax.lax.stop_gradient(jnp.round(at / 2.0))
    sine = at - 2.0 * half_turns
    cosine = safe_sqrt((1.0 - sine) * (1.0 + sine))
    return jnp.clip(half_turns * jnp.pi + safe_arctan2(sine, cosine), low, high)


def orientations_up_to(pitch: Float[Array, ""]) -> Float[Array, ""]:
    """The integral of |cos| from zero to the pitch."""
    half_turns = jax.lax.stop_gradient(jnp.round(pitch / jnp.pi))
    return 2.0 * half_turns + jnp.sin(pitch - jnp.pi * half_turns)


def require_key(call: str, key: Any) -> None:
    """Raises `ModelError` for a seed in place of a key."""
    dtype = getattr(key, "dtype", None)
    if dtype is None or (jnp.ndim(key) == 0 and not jnp.issubdtype(dtype, jax.dtypes.prng_key)):
        raise ModelError(f"{call}: the key must be one of JAX, like jax.random.key(0), got a number.")


def position_ranges(model: MultibodyModel) -> list[float]:
    """Half the range of each unlimited position: half a turn for angles, 1 m for displacements."""
    ranges: list[float] = []
    leaders = model.topology.leaders
    for kind in (kind for mobod, kind in enumerate(model.topology.mobod_kinds) if mobod and leaders[mobod] == mobod):
        suffixes = JOINT_KINDS[kind].position_suffixes
        prismatic = kind == "prismatic"
        ranges += [POSITION_RANGE[s.startswith("q") and not prismatic] for s in suffixes]
    return ranges
