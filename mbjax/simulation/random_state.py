"""Random states, drawn from the distributions set on a model, or within its limits."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from mbjax.errors import ModelError
from mbjax.execution import compiled_outside_jit
from mbjax.joints import JOINT_KINDS
from mbjax.model import MultibodyModel
from mbjax.spatial import normalize_quaternion

from .state import State, default_state

POSITION_RANGE = {True: jnp.pi, False: 1.0}  # half-range of positions without limits: angles in rad, others in m


@compiled_outside_jit
def random_state(model: MultibodyModel, key: PRNGKeyArray) -> State:
    """Draws a state from the model's distributions; coordinates without one take their default, as in Drake.

    Without any distribution set, it draws every coordinate by `random_state_within_limits`.
    """
    require_key("random_state", key)
    if not model.random_distributions:
        return random_state_within_limits(model, key)
    state = default_state(model)
    x = {"q": state.q, "v": state.v}
    for d in model.random_distributions:
        x[d.space] = x[d.space].at[d.coordinates].set(d.sample(key).astype(model.dtype))
    return State(x["q"], x["v"], state.time)


@compiled_outside_jit
def random_state_within_limits(model: MultibodyModel, key: PRNGKeyArray) -> State:
    """Draws a state: positions uniform within limits, orientations uniform, velocities standard normal.

    Without limits, angles range over a turn and displacements over +-1 m about the default.
    """
    require_key("random_state_within_limits", key)
    key_q, key_rotation, key_v = jax.random.split(key, 3)
    default, dtype = model.parameters.default_positions, model.dtype
    width = jnp.array(position_ranges(model), dtype)
    lower, upper = model.position_lower_limits, model.position_upper_limits
    lower = jnp.where(jnp.isfinite(lower), lower, jnp.minimum(default, upper) - width)
    upper = jnp.where(jnp.isfinite(upper), upper, jnp.maximum(default, lower) + width)
    q = lower + (upper - lower) * jax.random.uniform(key_q, default.shape, dtype)
    for mobod, kind in enumerate(model.topology.mobod_kinds):
        if mobod and JOINT_KINDS[kind].has_quaternion:
            start = model.mobilizer(mobod).q_start
            quaternion = jax.random.normal(jax.random.fold_in(key_rotation, mobod), (4,), dtype)
            q = q.at[start : start + 4].set(normalize_quaternion(quaternion))
    v = jax.random.normal(key_v, (model.num_velocities,), dtype)
    return State(q, v, jnp.zeros((), dtype))


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
