"""A state of the tree, with the kinematics and inertias that Newton–Euler reads."""

import equinox as eqx
from jaxtyping import Array, Float

from mbjax.kinematics import (
    MobodInertia,
    PositionKinematics,
    VelocityKinematics,
    calc_inertia_in_mobod,
    calc_velocity_kinematics,
    placement_of,
)
from mbjax.model import MultibodyModel, as_coordinates
from mbjax.spatial import component_algebra as ca


class TreeMotion(eqx.Module):
    """q and v of a model, and what follows from them: kinematics, and the inertia of each mobod about Mo in W."""

    model: MultibodyModel
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    position: PositionKinematics
    velocity: VelocityKinematics
    inertia_W: MobodInertia


def calc_tree_motion(
    model: MultibodyModel, position: PositionKinematics, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> TreeMotion:
    """Velocity kinematics and inertias at (q, v), added to the position kinematics at q."""
    q = as_coordinates("q", q, model.num_positions, model.dtype, model.num_world_axes)
    v = as_coordinates("v", v, model.num_velocities, model.dtype, model.num_world_axes)
    velocity = calc_velocity_kinematics(model, position, q, v)
    return TreeMotion(model, q, v, position, velocity, calc_inertia_in_world(model, position))


def calc_inertia_in_world(model: MultibodyModel, position: PositionKinematics) -> MobodInertia:
    """Inertia of each mobod about Mo, expressed in W."""
    placement = placement_of(model)
    if placement is not None:
        inertia = placement.inertia
    else:
        inertia = calc_inertia_in_mobod(model, position.placement)
    R = position.R_WM
    rotational = ca.re_express_symmetric(R, inertia.rotational)
    return MobodInertia(inertia.mass, ca.matvec(R, inertia.moment), rotational)
