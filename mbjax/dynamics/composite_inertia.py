"""Spatial inertia of a set of bodies, as if they were welded together in their current poses."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from mbjax.array_types import Positions
from mbjax.errors import ModelError
from mbjax.execution import compiled_outside_jit
from mbjax.execution.arrays import take
from mbjax.kinematics import (
    calc_body_offsets,
    calc_body_poses,
    calc_frame_pose,
    calc_inertia_in_mobod,
    calc_position_kinematics,
)
from mbjax.kinematics.frames import FrameLike
from mbjax.model import MultibodyModel
from mbjax.spatial import SpatialInertia, UnitInertia, safe_divide
from mbjax.spatial import component_algebra as ca


@compiled_outside_jit
def spatial_inertia(
    model: MultibodyModel, q: Positions, frame_F: FrameLike, bodies: Sequence[str | int]
) -> SpatialInertia:
    """Spatial inertia M_SFo_F of a set S of bodies about the origin Fo, expressed in F; the world adds none."""
    indices = [model.body_index(body) for body in bodies]
    if len(set(indices)) < len(indices):
        raise ModelError(f"spatial_inertia: a body is named twice in {list(bodies)!r}.")
    counted = np.isin(np.arange(model.num_bodies), indices)
    position = calc_position_kinematics(model, q)
    F, mobods = calc_frame_pose(model, position, frame_F), model.topology.body_mobods
    roots = model.topology.mobod_roots
    same_tree = roots[np.asarray(mobods)] == roots[F.mobod]
    p_FMoMo_W = jnp.where(  # from the Mo that carries F; within a tree no large coordinates are subtracted
        same_tree,
        take(position.p_TM_W, mobods, 1) - position.p_TM_W[:, F.mobod, None],
        take(position.p_WM, mobods, 1) - position.p_WM[:, F.mobod, None],
    )
    p_FoBo_W = p_FMoMo_W + calc_body_offsets(model, position) - F.p_MF_W[:, None]
    R_WB, _ = calc_body_poses(model, position)
    R_FW = F.R_WF.T[..., None]
    in_F = eqx.tree_at(
        lambda placement: (placement.R_MB, placement.p_MB),
        position.placement,
        (ca.matmul(R_FW, R_WB), ca.matvec(R_FW, p_FoBo_W)),
    )
    inertia = calc_inertia_in_mobod(model, in_F, counted)
    mass = jnp.sum(inertia.mass)
    com, G = (safe_divide(jnp.sum(x, axis=-1), mass) for x in (inertia.moment, inertia.rotational))
    return SpatialInertia(mass, com, UnitInertia.from_matrix(G), skip_validity_check=True)
