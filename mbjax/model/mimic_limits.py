"""Mimic relations through chains of joints, and the limits that they put on the joints that are followed."""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.topology import TreeTopology

from .parameters import MultibodyParameters


def calc_relations(topology: TreeTopology, parameters: MultibodyParameters) -> dict[int, tuple[Array, Array]]:
    """Multiplier and offset by mobod, relative to the joint that has the coordinate, through chains of mimics."""
    multipliers, offsets = parameters.mimic_multiplier, parameters.mimic_offset
    assert multipliers is not None
    assert offsets is not None
    relations: dict[int, tuple[Array, Array]] = {}
    for row, (mobod, followed) in enumerate(topology.followers):
        multiplier, offset = multipliers[row], offsets[row]
        if followed in relations:
            offset = multiplier * relations[followed][1] + offset
            multiplier = multiplier * relations[followed][0]
        relations[mobod] = multiplier, offset
    return relations


def stack_shared(rows: Sequence[Array]) -> Float[Array, "n *w"]:
    """Stacks numbers, some of which all worlds may share."""
    return jnp.stack(jnp.broadcast_arrays(*rows))


def tightest_limits(
    topology: TreeTopology,
    parameters: MultibodyParameters,
    lower: Float[Array, "..."],
    upper: Float[Array, "..."],
    *,
    of_positions: bool,
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Limits of q (or of v, vdot) from those of all joints' positions (or rates): mimics tighten their leader's."""
    if not topology.followers:
        return lower, upper
    places = topology.positions_of_joints if of_positions else topology.velocities_of_directions
    starts = topology.mobod_q_starts if of_positions else topology.mobod_v_starts
    if lower.shape[0] != places.size:
        raise ModelError("limits of a batch of models whose joints mimic others: ask for those of one, under jax.vmap.")
    relations = calc_relations(topology, parameters)
    rows = {starts[mobod]: mobod for mobod in relations}
    own = [row for row in range(places.size) if row not in rows]
    lowest, highest = [lower[row] for row in own], [upper[row] for row in own]
    for row, mobod in rows.items():
        multiplier, offset = relations[mobod]
        offset = offset if of_positions else jnp.zeros_like(offset)
        low, high = implied_limits(multiplier, offset, lower[row], upper[row])
        place = int(places[row])
        lowest[place], highest[place] = jnp.maximum(lowest[place], low), jnp.minimum(highest[place], high)
    return stack_shared(lowest), stack_shared(highest)


def implied_limits(multiplier: Array, offset: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Limits of x for lower <= multiplier x + offset <= upper; infinite where the multiplier is zero."""
    is_still, is_turned = multiplier == 0.0, multiplier < 0.0
    divisor = jnp.where(is_still, 1.0, multiplier)

    def bound(limit: Array, infinite: float) -> Array:
        is_finite = jnp.isfinite(limit)  # an infinite limit must not meet a zero in derivatives
        x = (jnp.where(is_finite, limit, 0.0) - offset) / divisor
        return jnp.where(is_finite & ~is_still, x, infinite)

    low = jnp.where(is_turned, bound(upper, -jnp.inf), bound(lower, -jnp.inf))
    high = jnp.where(is_turned, bound(lower, jnp.inf), bound(upper, jnp.inf))
    return low, high
