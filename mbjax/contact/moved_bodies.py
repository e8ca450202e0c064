"""Contacts with what never moves: one body each, moved by the velocities on its path."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mbjax.kinematics import PositionKinematics
from mbjax.linear_algebra import sum_over_first
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology, dot_with_mask, take

from .contact_points import ContactPoints


class MovedBodies(eqx.Module):
    """The one mobod that moves at each of m points, and the directions of the velocities that move it.

    They say what the Jacobian of the contacts says, in fewer numbers.
    """

    p_MC_W: Float[Array, "3 m"]
    p_TC_W: Float[Array, "3 m"]
    S_T: Float[Array, "6 nv"]  # zero where locked
    mobods: tuple[int, ...] = eqx.field(static=True)
    is_A: tuple[bool, ...] = eqx.field(static=True)
    topology: TreeTopology = eqx.field(static=True)

    def velocities(self, v: Float[Array, " nv"]) -> Float[Array, "3 m"]:
        """v_AcBc_W."""
        movers = sorted(set(self.mobods))
        V_T = dot_with_mask(self.S_T * v[None], self.topology.moves[:, movers], 1)
        V_T = take(V_T, [movers.index(mobod) for mobod in self.mobods], 1)
        return self.of_B(V_T[3:] + ca.cross(V_T[:3], self.p_TC_W))

    def generalized(self, f_Bc_W: Float[Array, "3 m"]) -> Float[Array, " nv"]:
        """The generalized force of forces on B at C: that of each velocity takes those on all that it moves."""
        f = self.of_B(f_Bc_W)
        F_T = ca.concatenate([ca.cross(self.p_TC_W, f), f], 0)
        return sum_over_first(self.S_T * dot_with_mask(F_T, self.topology.moves[:, list(self.mobods)].T, 1))

    def of_B(self, x: Float[Array, "3 m"]) -> Float[Array, "3 m"]:
        """What is B's, by what is the moving body's: the opposite where that is A."""
        is_A = np.array(self.is_A).reshape(-1, *(1,) * (x.ndim - 2))
        return jnp.where(is_A, -x, x) if is_A.any() else x


def find_moved_bodies(
    topology: TreeTopology, position: PositionKinematics, points: ContactPoints, locked: Bool[Array, " nv"]
) -> MovedBodies | None:
    """None where two bodies that may move touch each other, or joints mimic others."""
    A, B = np.array(points.mobods_A), np.array(points.mobods_B)
    if topology.followers or np.any((A > 0) & (B > 0)):
        return None
    is_A = (A > 0).reshape(-1, *(1,) * (points.distance.ndim - 1))
    p_MC_W, mobods = jnp.where(is_A, points.p_MaC_W, points.p_MbC_W), (A + B).tolist()
    p_TC_W = take(position.p_TM_W, mobods, 1) + p_MC_W
    S_T = jnp.where(locked, 0.0, position.S_T)
    return MovedBodies(p_MC_W, p_TC_W, S_T, tuple(mobods), tuple((A > 0).tolist()), topology)
