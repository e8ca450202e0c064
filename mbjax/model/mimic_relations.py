"""Joints that mimic others, q = multiplier q_leader + offset: from the model's coordinates to those of all joints.

A joint that mimics is in the tree like any other, with limits, damping and actuators of its own, but has no place in q
and v. With q_all = E q + c and v_all = E v, forces of all joints act along v as Eᵀ tau_all. Where no joint mimics, each
map here returns its argument.
"""

from jaxtyping import Array, Float

from mbjax.execution.arrays import take
from mbjax.topology import over_directions, sum_directions

from .mimic_limits import calc_relations, stack_shared
from .multibody_model import MultibodyModel


def direction_ratios(model: MultibodyModel) -> Float[Array, " nd"]:
    """Rate of each joint's coordinate per rate of the coordinate that drives it: its multiplier, else 1.

    The model must have mimics.
    """
    ratios = [1.0 + model.zeros()] * model.topology.num_directions
    for mobod, (multiplier, _) in calc_relations(model.topology, model.parameters).items():
        ratios[model.topology.mobod_v_starts[mobod]] = multiplier
    return stack_shared(ratios)


def all_joint_positions(model: MultibodyModel, q: Float[Array, " nq"]) -> Float[Array, "..."]:
    """Positions of all joints, E q + c."""
    topology = model.topology
    if not topology.followers:
        return q
    zero, size = model.zeros(), topology.positions_of_joints.size
    multipliers, offsets = [1.0 + zero] * size, [zero] * size
    for mobod, relation in calc_relations(model.topology, model.parameters).items():
        place = topology.mobod_q_starts[mobod]
        multipliers[place], offsets[place] = relation
    return stack_shared(multipliers) * take(q, topology.positions_of_joints, 0) + stack_shared(offsets)


def all_joint_velocities(model: MultibodyModel, v: Float[Array, " nv"]) -> Float[Array, " nd"]:
    """Velocities of all joints, E v."""
    return direction_ratios(model) * over_directions(model.topology, v) if model.topology.followers else v


def sum_joint_forces(model: MultibodyModel, tau: Float[Array, " nd"]) -> Float[Array, " nv"]:
    """Forces in all joints as forces along v: Eᵀ tau."""
    return sum_directions(model.topology, direction_ratios(model) * tau) if model.topology.followers else tau


def sum_joint_coefficients(model: MultibodyModel, c: Float[Array, " nd"]) -> Float[Array, " nv"]:
    """Diagonal of Eᵀ diag(c) E: coefficients of dampers or inertias in all joints as coefficients along v."""
    return sum_joint_forces(model, direction_ratios(model) * c) if model.topology.followers else c


def actuator_ratios(model: MultibodyModel) -> Float[Array, " nu"] | None:
    """Rate of each actuator's joint per rate of the velocity it drives; None, for ones, where no joint mimics."""
    if not model.topology.followers:
        return None
    joints = [model.layout.joints[actuator.joint] for actuator in model.layout.actuators]
    return take(direction_ratios(model), [joint.all_v_start for joint in joints], 0)
