"""Applied forces: generalized forces on the joints and spatial forces on the bodies."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.kinematics import PositionKinematics, calc_body_offsets
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.topology import dot_with_mask, take


class MultibodyForces(eqx.Module):
    """`generalized` in N m or N per velocity; `body` F_Bo_W: torque and force on each body at its origin."""

    generalized: Float[Array, " nv"]
    body: Float[Array, "nb 6"]

    @staticmethod
    def zero(model: MultibodyModel) -> "MultibodyForces":
        return MultibodyForces(
            jnp.zeros(model.num_velocities, model.dtype), jnp.zeros((model.num_bodies, 6), model.dtype)
        )

    def __add__(self, other: "MultibodyForces") -> "MultibodyForces":
        return MultibodyForces(self.generalized + other.generalized, self.body + other.body)

    def __check_init__(self):
        if jnp.ndim(self.generalized) == 1 and jnp.ndim(self.body) == 2 and jnp.shape(self.body)[1] != 6:
            raise ValueError(f"body forces must be (nb, 6), torque first, got {jnp.shape(self.body)}.")


def calc_mobod_forces(
    model: MultibodyModel, position: PositionKinematics, F_Bo_W: Float[Array, "nb 6"]
) -> Float[Array, "6 nm"]:
    """Sum of the spatial forces on each mobod's bodies, about its tree's origin T."""
    F_Bo_W = jnp.asarray(F_Bo_W, model.dtype)
    if F_Bo_W.shape != (model.num_bodies, 6):
        raise ValueError(
            f"body forces have shape {F_Bo_W.shape}, the model needs ({model.num_bodies}, 6): one row per body, "
            "the world first."
        )
    t, f = F_Bo_W.T[:3], F_Bo_W.T[3:]
    p_TBo_W = take(position.p_TM_W, model.topology.body_mobods) + calc_body_offsets(model, position)
    return dot_with_mask(jnp.concatenate([t + ca.cross(p_TBo_W, f), f]), model.topology.body_membership)
