"""Input and output ports: what drives a model from outside, and what it reports."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.forces import MultibodyForces
from mbjax.kinematics import PositionKinematics, as_coordinates
from mbjax.kinematics.frames import calc_frame_pose
from mbjax.model import MultibodyModel
from mbjax.spatial import RigidTransform
from mbjax.spatial import component_algebra as ca


class AppliedSpatialForces(eqx.Module):
    """Spatial forces F_Bq_W (k, 6), torque first, at points p_BoBq_B (k, 3) of k bodies, given by name or index."""

    p_BoBq_B: Float[Array, "*batch k 3"]
    F_Bq_W: Float[Array, "*batch k 6"]
    bodies: tuple[str | int, ...] = eqx.field(static=True)

    def __init__(self, bodies, F_Bq_W, p_BoBq_B=None):
        self.bodies = tuple(bodies)
        self.F_Bq_W = jnp.asarray(F_Bq_W, float)
        shape = (*self.F_Bq_W.shape[:-1], 3)
        self.p_BoBq_B = jnp.zeros(shape) if p_BoBq_B is None else jnp.asarray(p_BoBq_B, float)


class Inputs(eqx.Module):
    """What acts from outside; every field may be left out.

    `actuation` (nu,) in N m or N. `desired_state` (2 nu,): positions, then velocities, of the actuated joints,
    tracked with the model's gains. `applied_generalized_force` (nv,). `applied_spatial_forces` on bodies.
    """

    actuation: Float[Array, "*batch nu"] | None = None
    desired_state: Float[Array, "*batch two_nu"] | None = None
    applied_generalized_force: Float[Array, "*batch nv"] | None = None
    applied_spatial_forces: AppliedSpatialForces | None = None


class Outputs(eqx.Module):
    """What happened in a step, sampled at its start; or, from `outputs`, what happens now.

    `generalized_acceleration` (nv,), `net_actuation` (nu,) after effort limits. `outputs` adds the body ports,
    (nb, …) with the world first.
    """

    generalized_acceleration: Float[Array, "*batch nv"]
    net_actuation: Float[Array, "*batch nu"]
    body_poses: RigidTransform | None = None
    body_spatial_velocities: Float[Array, "*batch nb 6"] | None = None
    body_spatial_accelerations: Float[Array, "*batch nb 6"] | None = None


def as_inputs(model: MultibodyModel, inputs: Any) -> Inputs:
    """`Inputs` of one world with sizes checked; a bare array means actuation, None nothing."""
    if inputs is None:
        return Inputs()
    if not isinstance(inputs, Inputs):
        inputs = Inputs(actuation=inputs)

    def checked(what: str, value: Any, size: int) -> Array | None:
        return None if value is None else as_coordinates(f"inputs.{what}", value, size, model.dtype)

    return Inputs(
        checked("actuation", inputs.actuation, model.num_actuators),
        checked("desired_state", inputs.desired_state, 2 * model.num_actuators),
        checked("applied_generalized_force", inputs.applied_generalized_force, model.num_velocities),
        inputs.applied_spatial_forces,
    )


def calc_input_forces(model: MultibodyModel, position: PositionKinematics, inputs: Inputs) -> MultibodyForces | None:
    """The applied generalized and spatial forces, these moved to the bodies' origins."""
    tau, applied = inputs.applied_generalized_force, inputs.applied_spatial_forces
    if tau is None and applied is None:
        return None
    forces = MultibodyForces.zero(model)
    if tau is not None:
        forces = MultibodyForces(forces.generalized + tau, forces.body)
    if applied is None:
        return forces
    body = forces.body
    for k, name in enumerate(applied.bodies):
        index = model.body_index(name)
        F = jnp.asarray(applied.F_Bq_W[k], model.dtype)
        pose = calc_frame_pose(model, position, model.body_frame_index(index))
        p_BoBq_W = ca.matvec(pose.R_WF, jnp.asarray(applied.p_BoBq_B[k], model.dtype))
        body = body.at[index].add(jnp.concatenate([F[:3] + ca.cross(p_BoBq_W, F[3:]), F[3:]]))
    return MultibodyForces(forces.generalized, body)
