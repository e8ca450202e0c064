"""Constants that follow from the model alone, computed once: poses and inertias in mobods, and rows of recursions."""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from mbjax.execution.arrays import take
from mbjax.joints import JOINT_KINDS, AbstractJoint
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology, ends_of_joints

from .body_placement import (
    all_feel_gravity,
    bodies_with_gravity,
    calc_body_placement,
    calc_inertia_in_mobod,
)
from .joint_rows import calc_joint_steps
from .placement_records import BodyPlacement, DirectionSteps, MobodInertia, ModelPlacement
from .tree_poses import calc_hinge_maps


def calc_model_placement(model: MultibodyModel) -> ModelPlacement:
    """Computes the `ModelPlacement` from the leaves of the model."""
    bodies = calc_body_placement(model)
    inertia = calc_inertia_in_mobod(model, bodies)
    weight = inertia if all_feel_gravity(model) else calc_inertia_in_mobod(model, bodies, bodies_with_gravity(model))
    rows = lax.stop_gradient((bodies, inertia, weight))
    mobods = np.arange(1, model.topology.num_mobods)
    steps = calc_joint_steps(model, rows[0], mobods, np.ones(mobods.size, bool))
    directions = None if model.topology.followers else calc_direction_steps(model, *rows)
    return ModelPlacement(bodies, inertia, weight, steps, directions)


def calc_direction_steps(
    model: MultibodyModel, bodies: BodyPlacement, inertia: MobodInertia, weight: MobodInertia
) -> DirectionSteps:
    """Computes the constant rows of all directions."""
    topology = model.topology
    first, last = ends_of_joints(topology)

    def of_last(x: Array) -> Array:
        return only_if(last, jnp.swapaxes(take(x, topology.velocity_mobods, 1), 0, 1))

    kinds = [JOINT_KINDS[kind] for kind, _ in topology.mobods_by_kind]
    hinge_map = None
    if kinds and all(kind.hinge_map_rate is AbstractJoint.hinge_map_rate for kind in kinds):
        any_q = jnp.zeros((sum(topology.mobod_num_positions), *(1,) * model.num_world_axes), model.dtype)
        hinge_map = calc_hinge_maps_in_P(topology, bodies, calc_hinge_maps(model, bodies, any_q))
    return DirectionSteps(
        joint=calc_joint_steps(model, bodies, topology.velocity_mobods, first),
        hinge_map=hinge_map,
        inertia=of_last(inertia_rows_of_mobods(inertia)),
        weight=None if all_feel_gravity(model) else of_last(inertia_rows_of_mobods(weight)[6:]),
    )


def calc_hinge_maps_in_P(
    topology: TreeTopology, bodies: BodyPlacement, H_F: Float[Array, "6 nd"]
) -> Float[Array, "nd 6"]:
    """Re-expresses hinge maps, or their rates, from F in P: the parent's frame at a joint's first direction, else F."""
    R_PF = take(bodies.R_PF, topology.velocity_mobods, 2)
    H_P = ca.concatenate([ca.matvec(R_PF, x) for x in jnp.split(H_F, 2)], 0)
    return only_if(ends_of_joints(topology)[0], *(jnp.swapaxes(x, 0, 1) for x in (H_P, H_F)))


def inertia_rows_of_mobods(inertia: MobodInertia) -> Float[Array, "10 nm"]:
    """Inertias of mobods as ten rows: six moments, m p_MoMcm and m."""
    return ca.concatenate([ca.symmetric_components(inertia.rotational), inertia.moment, inertia.mass[None]], 0)


def only_if(chosen: np.ndarray, x: Float[Array, "n ..."], else_: Array | float = 0.0) -> Float[Array, "n ..."]:
    """Rows of x where `chosen`, rows of `else_` elsewhere."""
    return x if chosen.all() else jnp.where(chosen.reshape(-1, *(1,) * (x.ndim - 1)), x, else_)
