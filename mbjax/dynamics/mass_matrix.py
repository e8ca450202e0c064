"""M(q), by composite bodies (Featherstone 2008, ch. 6; Jain 2010, ch. 4)."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from mbjax.kinematics import MobodInertia, PositionKinematics
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology, sum_over_subtree, take


def calc_mass_matrix(
    topology: TreeTopology,
    position: PositionKinematics,
    inertia_W: MobodInertia,
    diagonal: Float[Array, " nv"],
) -> Float[Array, "nv nv"]:
    """M_ij = S_i · (inertia of everything outboard of j) S_j where i is at or inboard of j; plus the diagonal.

    The inertias are summed about T, the tree's origin.
    """
    r, s, m = position.p_TM_W, inertia_W.moment, inertia_W.mass
    moment_T = s + m * r
    rotational_T = inertia_W.rotational + m * ca.point_mass_inertia(r) + 2.0 * ca.symmetric_product_inertia(r, s)
    composite = sum_over_subtree(topology, jnp.concatenate([m[None], moment_T, rotational_T]))
    mass, moment, rotational = (lambda c: (c[0], c[1:4], c[4:]))(take(composite, topology.velocity_mobods))
    w, v = position.S_T[:3], position.S_T[3:]
    t = ca.symmetric_matvec(rotational, w) + ca.cross(moment, v)
    f = mass * v + ca.cross(w, moment)
    products = jnp.matmul(position.S_T.T, jnp.concatenate([t, f]), precision=lax.Precision.HIGHEST)
    # Column j counts only rows i whose joint carries j's mobod; the other triangle follows by symmetry.
    owner = topology.velocity_mobods
    inboard = topology.moves[:, owner]
    same = inboard & inboard.T
    M = jnp.where(inboard, products, 0.0)
    return M + jnp.where(inboard & ~same, products, 0.0).T + jnp.diag(diagonal)
