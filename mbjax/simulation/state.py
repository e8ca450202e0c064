"""The state of a model: positions, velocities and time, and nothing else."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mbjax.joints import JOINT_KINDS
from mbjax.kinematics import as_coordinates
from mbjax.model import MultibodyModel
from mbjax.spatial import normalize_quaternion

POSITION_RANGE = {True: jnp.pi, False: 1.0}  # of random positions without limits: rad, m


class State(eqx.Module):
    """q (nq,), v (nv,) and time in s."""

    q: Float[Array, "*batch nq"]
    v: Float[Array, "*batch nv"]
    time: Float[Array, "*batch"]


def default_state(model: MultibodyModel) -> State:
    """The default positions, at rest, at time zero."""
    return State(
        model.parameters.default_positions,
        jnp.zeros(model.num_velocities, model.dtype),
        jnp.zeros((), model.dtype),
    )


def random_state(model: MultibodyModel, key: PRNGKeyArray) -> State:
    """Positions uniform within their limits, orientations uniform, velocities standard normal.

    Without limits angles run over a turn and displacements over +-1 m about the default.
    """
    key_q, key_rotation, key_v = jax.random.split(key, 3)
    parameters, dtype = model.parameters, model.dtype
    default = parameters.default_positions
    width = jnp.array(position_ranges(model), dtype)
    lower, upper = parameters.position_lower_limits, parameters.position_upper_limits
    lower = jnp.where(jnp.isfinite(lower), lower, jnp.minimum(default, upper) - width)
    upper = jnp.where(jnp.isfinite(upper), upper, jnp.maximum(default, lower) + width)
    q = lower + (upper - lower) * jax.random.uniform(key_q, default.shape, dtype)
    for mobod, kind in enumerate(model.topology.mobod_kinds):
        if mobod and JOINT_KINDS[kind].has_quaternion:
            start = model.topology.mobod_q_starts[mobod]
            quaternion = jax.random.normal(jax.random.fold_in(key_rotation, mobod), (4,), dtype)
            q = q.at[start : start + 4].set(normalize_quaternion(quaternion))
    v = jax.random.normal(key_v, (model.num_velocities,), dtype)
    return State(q, v, jnp.zeros((), dtype))


def position_ranges(model: MultibodyModel) -> list[float]:
    """Half the range of each unlimited position: half a turn for angles, 1 m for displacements."""
    ranges: list[float] = []
    for kind in model.topology.mobod_kinds[1:]:
        suffixes = JOINT_KINDS[kind].position_suffixes
        prismatic = kind == "prismatic"
        ranges += [POSITION_RANGE[s.startswith("q") and not prismatic] for s in suffixes]
    return ranges


def as_state(model: MultibodyModel, state: State) -> State:
    """The state in the model's dtype, with its sizes checked: a program's carry must not change type."""
    return State(
        as_coordinates("state.q", state.q, model.num_positions, model.dtype),
        as_coordinates("state.v", state.v, model.num_velocities, model.dtype),
        jnp.asarray(state.time, model.dtype),
    )
