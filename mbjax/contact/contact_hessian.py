"""What the stiffness G of the contacts adds to the matrix of the step's equation: Σ Jᵀ G J over the points."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mbjax.linear_algebra import Parents, paths, sum_of_outer, trunk_of
from mbjax.spatial import component_algebra as ca
from mbjax.topology import dot_with_mask, take

from .contact_rows import ContactRows
from .moved_bodies import MovedBodies


def calc_contact_hessian(
    contacts: ContactRows, G: Float[Array, "6 m"], locked: Bool[Array, " nv"]
) -> Float[Array, "nv nv"]:
    """The matrix; zero where locked."""
    J = jnp.where(locked, 0.0, contacts.J)
    g = [jnp.unstack(row[:, :, None]) for row in jnp.unstack(ca.symmetric_matrix(G))]
    GJ = jnp.stack([ca.sum_products(row, jnp.unstack(J)) for row in g])
    GJ, J = (rows.reshape(3 * rows.shape[1], *rows.shape[2:]) for rows in (GJ, J))
    return sum_of_outer(GJ, J)


def contact_hessian_in_tree(moved: MovedBodies, parents: Parents) -> Callable[[Array], Float[Array, "nv depth"]]:
    """Its branch rows, by G (6, m), where the one body of each point is moved by the velocities on its path.

    There G adds to the inertia of all that is outboard of a velocity, and the entries are those of composite bodies,
    as in `calc_mass_matrix`: S_i · I S_j about T, with I = [[p]G[p]ᵀ [p]G; ([p]G)ᵀ G] of stiffness at the point p.
    """
    topology, S_T = moved.topology, moved.S_T
    ancestors, trunk = paths(parents).ancestors, trunk_of(parents)
    S_beyond = take(S_T, ancestors[:, trunk:].ravel(), 1).reshape(6, *ancestors[:, trunk:].shape, *S_T.shape[2:])
    movers = sorted(set(topology.velocity_mobods.tolist()))
    own = [movers.index(mobod) for mobod in topology.velocity_mobods]

    def rows(G: Array) -> Array:
        inertia, mobods = moved.over_slots(inertia_of_points(moved.p_TC_W, G))
        composite = take(dot_with_mask(inertia, topology.is_ancestor[np.ix_(mobods, movers)], 1), own, 1)
        F = jnp.unstack(times_composite(composite, S_T)[:, :, None])
        parts = (S_T[:, None, :trunk], S_beyond)
        return ca.concatenate([ca.sum_products(F, jnp.unstack(S)) for S in parts if S.shape[2]], 1)

    return rows


def inertia_of_points(p: Float[Array, "3 m"], G: Float[Array, "6 m"]) -> Float[Array, "21 m"]:
    """[p]G[p]ᵀ, [p]G and G: six, nine and six entries."""
    H = [ca.cross_components(jnp.unstack(p), column) for column in ca.symmetric_rows(jnp.unstack(G))]  # H[j][i]
    J = [ca.cross_components(jnp.unstack(p), [H[j][i] for j in range(3)]) for i in range(3)]
    of_H = [H[j][i] for i in range(3) for j in range(3)]
    return ca.stack_many([*(J[i][j] for i, j in ca.SYMMETRIC_PAIRS), *of_H, *jnp.unstack(G)])


def times_composite(inertia: Float[Array, "21 n"], S: Float[Array, "6 n"]) -> Float[Array, "6 n"]:
    """[J H; Hᵀ G] S."""
    x, (w, v) = ca.unstack_many(inertia), (jnp.unstack(S[:3]), jnp.unstack(S[3:]))
    J, H, G = ca.symmetric_rows(x[:6]), (x[6:9], x[9:12], x[12:15]), ca.symmetric_rows(x[15:])
    t = [ca.sum_products(J[i], w) + ca.sum_products(H[i], v) for i in range(3)]
    f = [ca.sum_products([H[k][i] for k in range(3)], w) + ca.sum_products(G[i], v) for i in range(3)]
    return jnp.stack([*t, *f])
