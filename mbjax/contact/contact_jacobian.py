"""What each velocity moves at a point of contact, and what a force there does to the bodies."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.kinematics import PositionKinematics
from mbjax.linear_algebra import matrix_vector, transposed_matrix_vector
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.topology import dot_with_mask, sum_directions, take

from .contact_points import ContactPoints


def calc_contact_jacobian(
    model: MultibodyModel, position: PositionKinematics, points: ContactPoints
) -> Float[Array, "3 m nv"]:
    """J with v_AcBc_W = J v: the velocity of B's material at C, less that of A's.

    A velocity that moves both bodies together changes nothing: exactly zero.
    """
    moves_A, moves_B = (model.topology.moves[:, list(mobods)].T for mobods in (points.mobods_A, points.mobods_B))
    only_A, only_B = moves_A & ~moves_B, moves_B & ~moves_A
    p_TC_W = take(position.p_TM_W, points.mobods_B, 1) + points.p_MbC_W
    J = only_where(only_B, velocities_at(position.S_T, p_TC_W))
    if np.any(only_A):
        p_TC_W = take(position.p_TM_W, points.mobods_A, 1) + points.p_MaC_W
        J = J - only_where(only_A, velocities_at(position.S_T, p_TC_W))
    return sum_directions(model.topology, J, 2)


def velocities_at(S_T: Float[Array, "6 nd"], p_TC_W: Float[Array, "3 m"]) -> Float[Array, "3 m nd"]:
    """v + w x p of all directions at all points."""
    w, v, p = S_T[:3, None], S_T[3:, None], p_TC_W[:, :, None]
    return v + ca.cross(w, p)


def velocities_at_contacts(J: Float[Array, "3 m nv"], v: Float[Array, " nv"]) -> Float[Array, "3 m"]:
    """J v."""
    rows = J.reshape(3 * J.shape[1], *J.shape[2:])
    y = matrix_vector(rows, v)
    return y.reshape(*J.shape[:2], *y.shape[1:])


def generalized_contact_force(J: Float[Array, "3 m nv"], f_Bc_W: Float[Array, "3 m"]) -> Float[Array, " nv"]:
    """Jᵀ f."""
    rows, f = J.reshape(3 * J.shape[1], *J.shape[2:]), f_Bc_W.reshape(3 * J.shape[1], *f_Bc_W.shape[2:])
    return transposed_matrix_vector(rows, f)


def only_where(mask: np.ndarray, J: Float[Array, "3 m nd"]) -> Float[Array, "3 m nd"]:
    """J where a constant mask is true, else 0."""
    return jnp.where(mask.reshape(1, *mask.shape, *(1,) * (J.ndim - 3)), J, 0.0)


def calc_contact_forces_on_bodies(
    model: MultibodyModel, position: PositionKinematics, points: ContactPoints, f_Bc_W: Float[Array, "3 m"]
) -> Float[Array, "6 nb"]:
    """Spatial forces of all contacts on all bodies at their origins, expressed in W; on A the opposite of that on B."""
    contact = model.layout.contact
    total = None
    for side, p_MC_W, sign in ((0, points.p_MaC_W, -1.0), (1, points.p_MbC_W, 1.0)):
        bodies = [contact.geometries[contact.pairs[pair][side]].body for pair in points.pairs]
        mobods = [model.topology.body_mobods[b] for b in bodies]
        p_MB_W = ca.matvec(take(position.R_WM, mobods, 2), take(position.placement.p_MB, bodies, 1))
        f = sign * f_Bc_W
        F = ca.concatenate([ca.cross(p_MC_W - p_MB_W, f), f], 0)
        F = dot_with_mask(F, np.array(bodies)[:, None] == np.arange(model.num_bodies), 1)
        total = F if total is None else total + F
    return total
