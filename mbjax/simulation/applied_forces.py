"""Applied forces from the inputs: generalized forces, and spatial forces at points of bodies."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution.arrays import dot_with_mask, take
from mbjax.forces import MultibodyForces
from mbjax.kinematics import PositionKinematics
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca

from .ports import AppliedSpatialForces, Inputs


def calc_input_forces(model: MultibodyModel, position: PositionKinematics, inputs: Inputs) -> MultibodyForces | None:
    """Applied generalized forces, and applied spatial forces moved to the bodies' origins; None without any."""
    tau, applied = inputs.applied_generalized_force, inputs.applied_spatial_forces
    if tau is None and applied is None:
        return None
    forces = MultibodyForces.zero(model)
    return MultibodyForces(
        forces.generalized if tau is None else tau,
        forces.body if applied is None else calc_applied_on_bodies(model, position, applied),
    )


def calc_applied_on_bodies(
    model: MultibodyModel, position: PositionKinematics, applied: AppliedSpatialForces
) -> Float[Array, "nb 6"]:
    """Applied spatial forces F_Bo_W summed per body, with t_Bo = t_Bq + p_BoBq x f."""
    bodies = np.array([model.body_index(body) for body in applied.bodies], int)
    F = jnp.asarray(applied.F_Bq_W, model.dtype).T
    R_MB = take(position.placement.R_MB, bodies, 2)
    R_WM = take(position.R_WM, np.array(model.topology.body_mobods)[bodies], 2)
    p_BoBq_W = ca.matvec(R_WM, ca.matvec(R_MB, jnp.asarray(applied.p_BoBq_B, model.dtype).T))
    F_Bo_W = jnp.concatenate([F[:3] + ca.cross(p_BoBq_W, F[3:]), F[3:]])
    return dot_with_mask(F_Bo_W, bodies[:, None] == np.arange(model.num_bodies), 1).T
