"""Joints that mimic others, q = multiplier q_leader + offset: from the model's coordinates to those of all joints.

A joint that mimics is in the tree like any other, with limits, damping and actuators of its own, but has no place in q
and v. With q_all = E q + c and v_all = E v, forces of all joints act along v as Eᵀ tau_all. Where no joint mimics, each
map here returns its argument.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.execution import take
from mbjax.topology import over_directions, sum_directions

if TYPE_CHECKING:
    from .multibody_model import MultibodyModel


def calc_relations(model: "MultibodyModel") -> dict[int, tuple[Array, Array]]:
    """Multiplier and offset by mobod, relative to the joint that has the coordinate, through chains of mimics."""
    multipliers, offsets = model.parameters.mimic_multiplier, model.parameters.mimic_offset
    assert multipliers is not None
    assert offsets is not None
    relations: dict[int, tuple[Array, Array]] = {}
    for row, (mobod, followed) in enumerate(model.topology.followers):
        multiplier, offset = multipliers[row], offsets[row]
        if followed in relations:
            offset = multiplier * relations[followed][1] + offset
            multiplier = multiplier * relations[followed][0]
        relations[mobod] = multiplier, offset
    return relations


def stack_shared(rows: Sequence[Array]) -> Float[Array, "n *w"]:
    """Stacks numbers, some of which all worlds may share."""
    return jnp.stack(jnp.broadcast_arrays(*rows))


def direction_ratios(model: "MultibodyModel") -> Float[Array, " nd"]:
    """Rate of each joint's coordinate per rate of the coordinate that drives it: its multiplier, else 1.

    The model must have mimics.
    """
    ratios = [1.0 + model.zeros()] * model.topology.num_directions
    for mobod, (multiplier, _) in calc_relations(model).items():
        ratios[model.topology.mobod_v_starts[mobod]] = multiplier
    return stack_shared(ratios)


def all_joint_positions(model: "MultibodyModel", q: Float[Array, " nq"]) -> Float[Array, "..."]:
    """Positions of all joints, E q + c."""
    topology = model.topology
    if not topology.followers:
        return q
    zero, size = model.zeros(), topology.positions_of_joints.size
    multipliers, offsets = [1.0 + zero] * size, [zero] * size
    for mobod, relation in calc_relations(model).items():
        place = topology.mobod_q_starts[mobod]
        multipliers[place], offsets[place] = relation
    return stack_shared(multipliers) * take(q, topology.positions_of_joints, 0) + stack_shared(offsets)


def all_joint_velocities(model: "MultibodyModel", v: Float[Array, " nv"]) -> Float[Array, " nd"]:
    """Velocities of all joints, E v."""
    return direction_ratios(model) * over_directions(model.topology, v) if model.topology.followers else v


def sum_joint_forces(model: "MultibodyModel", tau: Float[Array, " nd"]) -> Float[Array, " nv"]:
    """Forces in all joints as forces along v: Eᵀ tau."""
    return sum_directions(model.topology, direction_ratios(model) * tau) if model.topology.followers else tau


def sum_joint_coefficients(model: "MultibodyModel", c: Float[Array, " nd"]) -> Float[Array, " nv"]:
    """Diagonal of Eᵀ diag(c) E: coefficients of dampers or inertias in all joints as coefficients along v."""
    return sum_joint_forces(model, direction_ratios(model) * c) if model.topology.followers else c


def actuator_ratios(model: "MultibodyModel") -> Float[Array, " nu"] | None:
    """Rate of each actuator's joint per rate of the velocity it drives; None, for ones, where no joint mimics."""
    if not model.topology.followers:
        return None
    joints = [model.layout.joints[actuator.joint] for actuator in model.layout.actuators]
    return take(direction_ratios(model), [joint.all_v_start for joint in joints], 0)


def tightest_limits(
    model: "MultibodyModel", lower: Float[Array, "..."], upper: Float[Array, "..."], *, of_positions: bool
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Limits of q (or of v, vdot) from those of all joints' positions (or rates): mimics tighten their leader's."""
    topology = model.topology
    if not topology.followers:
        return lower, upper
    places = topology.positions_of_joints if of_positions else topology.velocities_of_directions
    starts = topology.mobod_q_starts if of_positions else topology.mobod_v_starts
    if lower.shape[0] != places.size:
        raise ModelError("limits of a batch of models whose joints mimic others: ask for those of one, under jax.vmap.")
    relations = calc_relations(model)
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
