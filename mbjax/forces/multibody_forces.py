"""Applied forces: generalized forces on the joints and spatial forces on the bodies."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.array_types import GeneralizedForces, Positions, SpatialVector
from mbjax.errors import ModelError
from mbjax.execution import compiled_outside_jit, takes_model_first
from mbjax.execution.arrays import dot_with_mask, take
from mbjax.kinematics import PositionKinematics, calc_body_offsets, calc_frame_pose, calc_position_kinematics
from mbjax.kinematics.frames import FrameLike
from mbjax.model import MultibodyModel, as_coordinates, direction_ratios
from mbjax.spatial import component_algebra as ca
from mbjax.topology import sum_directions, sum_moved_mobods


def array_for_list(x: Any) -> Array:
    """Converts a list of numbers to an array, because each number of a list would be a leaf of the tree."""
    return jnp.asarray(x) if isinstance(x, (list, tuple)) else x


class MultibodyForces(eqx.Module):
    """Forces: `generalized` in N m or N per velocity; `body` F_Bo_W, torque and force on each body at its origin."""

    generalized: Float[Array, " nv"] = eqx.field(converter=array_for_list)
    body: Float[Array, "nb 6"] = eqx.field(converter=array_for_list)

    @staticmethod
    def zero(model: MultibodyModel) -> "MultibodyForces":
        return MultibodyForces(model.zeros(model.num_velocities), model.zeros(model.num_bodies, 6))

    def __add__(self, other: "MultibodyForces") -> "MultibodyForces":
        """The sum of both; one of them may be of one world and the other of several, on leading axes or the last."""
        if not isinstance(other, MultibodyForces):
            return NotImplemented
        for what, size in (("generalized", 1), ("body", 2)):
            one, two = jnp.shape(getattr(self, what)), jnp.shape(getattr(other, what))
            if not are_of_one_size(one, two, size):
                raise ModelError(
                    f"MultibodyForces: {what} of shapes {one} and {two} can't be added: add forces on one model."
                )
        return MultibodyForces(self.generalized + other.generalized, self.body + other.body)

    def __check_init__(self):
        if jnp.ndim(self.generalized) == 1 and jnp.ndim(self.body) == 2 and jnp.shape(self.body)[1] != 6:
            raise ModelError(
                f"MultibodyForces: body must be (nb, 6), torque first, one row per body, got {jnp.shape(self.body)}."
            )


def are_of_one_size(one: tuple[int, ...], two: tuple[int, ...], num_axes: int) -> bool:
    """Whether shapes of so many axes, and axes of worlds before or after them, are those of one model."""
    common = min(len(one), len(two))
    if common < num_axes:
        return False
    if len(one) == len(two) > num_axes:
        return all(a == b or 1 in (a, b) for a, b in zip(one, two, strict=True))
    return one[-common:] == two[-common:]


def in_place_of_forces(x: Any) -> str:
    """What was given in the place of forces, in words."""
    return f"an array of shape {x.shape}" if isinstance(x, jax.Array | np.ndarray) else type(x).__name__


def require_forces(call: str, model: MultibodyModel, forces: Any) -> None:
    """Raises `ModelError` unless `forces` are `MultibodyForces` of the model's sizes."""
    if not isinstance(forces, MultibodyForces):
        raise ModelError(
            f"{call}: forces must be mbjax.MultibodyForces(generalized, body), got {in_place_of_forces(forces)}. "
            "Start from mbjax.MultibodyForces.zero(model)."
        )
    nv, nb = model.num_velocities, model.num_bodies
    for what, size in (("generalized", (nv,)), ("body", (nb, 6))):
        shape = jnp.shape(getattr(forces, what))
        if shape[: len(size)] != size or len(shape) not in (len(size), len(size) + model.num_world_axes):
            raise ModelError(
                f"{call}: forces.{what} has shape {shape}, the model needs {size}. Functions take one world: use "
                "jax.vmap for a batch."
            )


@takes_model_first
def force_in_world(model: MultibodyModel, forces: MultibodyForces, body: str | int) -> SpatialVector:
    """Spatial force F_Bo_W on one body: torque about its origin Bo (N m) and force (N), in W."""
    require_forces("force_in_world", model, forces)
    return forces.body[model.body_index(body)]


@takes_model_first
def add_in_force_in_world(
    model: MultibodyModel, forces: MultibodyForces, body: str | int, F_Bo_W: SpatialVector
) -> MultibodyForces:
    """Adds a torque (N m) and force (N) on a body at its origin Bo, expressed in W."""
    require_forces("add_in_force_in_world", model, forces)
    added = forces.body.at[model.body_index(body)].add(as_coordinates("F_Bo_W", F_Bo_W, 6, model.dtype))
    return MultibodyForces(forces.generalized, added)


@compiled_outside_jit
def add_in_force(
    model: MultibodyModel,
    q: Positions,
    forces: MultibodyForces,
    body: str | int,
    p_BP_E: Float[Array, "3"],
    F_Bp_E: SpatialVector,
    frame_E: FrameLike,
) -> MultibodyForces:
    """Adds a torque (N m) and force (N) on a body B at its point P, given from Bo; all expressed in a frame E."""
    p_E, F_E = as_coordinates("p_BP_E", p_BP_E, 3, model.dtype), as_coordinates("F_Bp_E", F_Bp_E, 6, model.dtype)
    R_WE = calc_frame_pose(model, calc_position_kinematics(model, q), frame_E).R_WF
    p_BP_W = ca.matvec(R_WE, p_E)
    t_W, f_W = ca.matvec(R_WE, F_E[:3]), ca.matvec(R_WE, F_E[3:])
    return add_in_force_in_world(model, forces, body, jnp.concatenate([t_W + ca.cross(p_BP_W, f_W), f_W]))


@takes_model_first
def add_in_one_force(
    model: MultibodyModel, forces: MultibodyForces, joint: str | int, joint_dof: int, joint_tau: ArrayLike
) -> MultibodyForces:
    """Adds a torque (N m) or force (N) along one of a joint's velocities, counted from 0."""
    require_forces("add_in_one_force", model, forces)
    where = model.joint(joint)
    size = where.all_v.stop - where.all_v.start
    if not 0 <= joint_dof < size:
        raise ModelError(
            f"add_in_one_force: joint '{where.name}' ({where.kind}) has {size} degrees of freedom; there is no "
            f"{joint_dof}."
        )
    tau = jnp.asarray(joint_tau, model.dtype)
    if where.mimics is not None:
        tau = direction_ratios(model)[where.all_v_start] * tau
    return MultibodyForces(forces.generalized.at[where.v_start + joint_dof].add(tau), forces.body)


@compiled_outside_jit
def generalized_forces(model: MultibodyModel, q: Positions, forces: MultibodyForces) -> GeneralizedForces:
    """Generalized forces tau + sum J^T F_Bo_W that do the work of all `forces`, in N m or N."""
    require_forces("generalized_forces", model, forces)
    position = calc_position_kinematics(model, q)
    F_T = calc_mobod_forces(model, position, forces.body)
    tau = as_coordinates("forces.generalized", forces.generalized, model.num_velocities, model.dtype)
    return tau + sum_directions(model.topology, ca.dot(position.S_T, sum_moved_mobods(model.topology, F_T)))


def calc_mobod_forces(
    model: MultibodyModel, position: PositionKinematics, F_Bo_W: Float[Array, "nb 6"]
) -> Float[Array, "6 nm"]:
    """Sums the spatial forces on each mobod's bodies, about its tree's origin T; raises for a wrong shape."""
    F_Bo_W = jnp.asarray(F_Bo_W, model.dtype)
    if F_Bo_W.shape[:2] != (model.num_bodies, 6) or F_Bo_W.ndim != 2 + model.num_world_axes:
        raise ModelError(
            f"MultibodyForces: body has shape {F_Bo_W.shape}, the model needs ({model.num_bodies}, 6): one row per "
            "body, the world first."
        )
    t, f = jnp.split(ca.transpose(F_Bo_W), 2)
    p_TBo_W = take(position.p_TM_W, model.topology.body_mobods, 1) + calc_body_offsets(model, position)
    F_T = ca.concatenate([t + ca.cross(p_TBo_W, f), f], 0)
    return dot_with_mask(F_T, model.topology.body_membership, 1)
