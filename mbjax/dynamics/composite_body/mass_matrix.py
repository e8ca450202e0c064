"""Mass matrix M(q) by composite bodies (Featherstone 2008, ch. 6; Jain 2010, ch. 4), as sums over the tree."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution.arrays import take
from mbjax.kinematics import MobodInertia, PositionKinematics
from mbjax.linear_algebra import sum_of_outer
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology, sum_directions, sum_over_subtree


def calc_mass_matrix(
    topology: TreeTopology,
    position: PositionKinematics,
    inertia_T: MobodInertia,
    diagonal: Float[Array, " nv"],
) -> Float[Array, "nv nv"]:
    """Mass matrix M_ij = S_i · (composite inertia outboard of j) S_j, i at or inboard of j, plus the diagonal.

    Inertias are about T (`calc_inertia_about_T`).
    """
    products = sum_of_outer(position.S_T, calc_composite_forces(topology, position, inertia_T))
    # Column j counts only rows i whose joint carries j's mobod; the other triangle follows by symmetry.
    inboard = topology.moves[:, topology.velocity_mobods]
    own = np.eye(topology.num_velocities, dtype=bool)
    inboard, outboard, own = (
        x.reshape(*x.shape, *(1 for _ in diagonal.shape[1:])) for x in (inboard, inboard.T & ~inboard, own)
    )
    M = jnp.where(inboard, products, 0.0) + jnp.where(outboard, ca.transpose(products), 0.0)
    M = sum_directions(topology, sum_directions(topology, M, 0), 1)
    return M + jnp.where(own, diagonal[None], 0.0)


def calc_composite_forces(
    topology: TreeTopology, position: PositionKinematics, inertia_T: MobodInertia
) -> Float[Array, "6 nd"]:
    """Force I_j S_j that accelerates everything outboard of direction j by S_j, about T, the tree's origin."""
    return forces_along(topology, calc_composite_inertia(topology, inertia_T), position.S_T)


def calc_composite_inertia(topology: TreeTopology, inertia_T: MobodInertia) -> Float[Array, "10 nm"]:
    """Inertia about T of each mobod and everything outboard of it, as rows: mass, moment, rotational."""
    return sum_over_subtree(topology, inertia_rows(inertia_T))


def inertia_rows(inertia: MobodInertia) -> Float[Array, "10 nm"]:
    """Rows of an inertia by mobod: mass, the three of the moment, the six of the rotational inertia."""
    return ca.concatenate([inertia.mass[None], inertia.moment, ca.symmetric_components(inertia.rotational)], 0)


def forces_along(
    topology: TreeTopology, inertia: Float[Array, "10 nm"], S_T: Float[Array, "6 nd"]
) -> Float[Array, "6 nd"]:
    """Force I S of each direction, from rows of inertias about T by mobod: mass, moment, rotational."""
    of_directions = take(inertia, topology.velocity_mobods, 1)
    mass, moment, rotational = of_directions[0], of_directions[1:4], ca.symmetric_matrix(of_directions[4:])
    w, v = S_T[:3], S_T[3:]
    t = ca.matvec(rotational, w) + ca.cross(moment, v)
    f = ca.scale(v, mass) + ca.cross(w, moment)
    return ca.concatenate([t, f], 0)
