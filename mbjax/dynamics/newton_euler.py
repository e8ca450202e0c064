"""Newton–Euler over the tree: the one formula behind inverse dynamics, bias term and mass-matrix products."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.kinematics import (
    MobodInertia,
    PositionKinematics,
    VelocityKinematics,
    calc_inertia_in_mobod,
)
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.topology import (
    TreeTopology,
    over_directions,
    sum_directions,
    sum_moved_mobods,
    sum_velocities_over_path,
)


class TreeMotion(eqx.Module):
    """What Newton–Euler reads of the kinematics: directions, offsets and inertia in W, and the velocities.

    Without `velocity` the tree is at rest.
    """

    S_T: Float[Array, "6 nd"]
    p_TM_W: Float[Array, "3 nm"]
    inertia_W: MobodInertia
    velocity: VelocityKinematics | None
    v: Float[Array, " nv"] | None


def calc_inertia_in_world(model: MultibodyModel, position: PositionKinematics) -> MobodInertia:
    """Inertia of each mobod about Mo, expressed in W."""
    inertia = calc_inertia_in_mobod(model, position.placement)
    R = position.R_WM
    rotational = ca.re_express_symmetric(R, inertia.rotational)
    return MobodInertia(inertia.mass, ca.matvec(R, inertia.moment), rotational)


def calc_inverse_dynamics(
    topology: TreeTopology,
    motion: TreeMotion,
    vdot: Float[Array, " nv"] | None,
    F_applied_T: Float[Array, "6 nm"] | None,
) -> Float[Array, " nv"]:
    """tau = S · (sum over the mobods each velocity moves of M A + bias - F_applied); vdot None means zero.

    Per mobod about its origin Mo, with first moment s = m p_MoMcm:
        f = m a_Mo + alpha x s + w x (w x s)
        t = I alpha + w x I w + s x a_Mo                    (Featherstone 2008, eq. 2.72; Jain 2010, ch. 2)
    """
    F_T = calc_net_forces(topology, motion, vdot)
    if F_applied_T is not None:
        F_T = F_T - F_applied_T
    return sum_directions(topology, ca.dot(motion.S_T, sum_moved_mobods(topology, F_T)))


def calc_net_forces(
    topology: TreeTopology, motion: TreeMotion, vdot: Float[Array, " nv"] | None
) -> Float[Array, "6 nm"]:
    """The spatial force each mobod's motion takes, about T in W."""
    inertia, r, velocity = motion.inertia_W, motion.p_TM_W, motion.velocity
    driven = jnp.zeros_like(motion.S_T) if vdot is None else ca.scale(motion.S_T, over_directions(topology, vdot))
    if velocity is not None:
        assert motion.v is not None
        driven = driven + ca.scale(velocity.Sdot_T, over_directions(topology, motion.v))
    A_T = sum_velocities_over_path(topology, driven)
    alpha, s = A_T[:3], inertia.moment
    a_Mo = A_T[3:] + ca.cross(alpha, r)
    if velocity is not None:
        a_Mo = a_Mo + ca.cross(velocity.V_WM_T[:3], velocity.v_WMo)
    f = ca.scale(a_Mo, inertia.mass) + ca.cross(alpha, s)
    t = ca.matvec(inertia.rotational, alpha) + ca.cross(s, a_Mo)
    if velocity is not None:
        w = velocity.V_WM_T[:3]
        f = f + ca.cross(w, ca.cross(w, s))
        t = t + ca.cross(w, ca.matvec(inertia.rotational, w))
    return ca.concatenate([t + ca.cross(r, f), f], 0)


def calc_mass_matrix_product(topology: TreeTopology, motion: TreeMotion, x: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """M(q) x without reflected inertia: inverse dynamics of the tree at rest."""
    at_rest = TreeMotion(motion.S_T, motion.p_TM_W, motion.inertia_W, None, None)
    return calc_inverse_dynamics(topology, at_rest, x, None)
