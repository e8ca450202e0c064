"""The contact part Σ Jᵀ G J of the discrete step's Hessian, from the stiffness G of the points."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mbjax.execution.arrays import dot_with_mask, take
from mbjax.linear_algebra import Parents, paths, sum_of_outer, trunk_of
from mbjax.spatial import component_algebra as ca

from ..movers.contact_jacobian import ContactJacobian
from ..movers.moved_bodies import MovedBodies, over_slots, summed_kinds


def contact_hessian_of_jacobian(contacts: ContactJacobian) -> Callable[[Float[Array, "6 m"]], Float[Array, "nv nv"]]:
    """G → Σ Jᵀ G J from a Jacobian, for points that differ from world to world."""

    def hessian(G: Array) -> Array:
        g = [jnp.unstack(row[:, :, None]) for row in jnp.unstack(ca.symmetric_matrix(G))]
        GJ = jnp.stack([ca.sum_products(row, jnp.unstack(contacts.J)) for row in g])
        return sum_of_outer(GJ.reshape(3 * GJ.shape[1], *GJ.shape[2:]), contacts.rows)

    return hessian


def contact_hessian_of_pairs(moved: MovedBodies) -> Callable[[Float[Array, "6 m"]], Float[Array, "nv nv"]]:
    """G → the lower triangle of Σ Jᵀ G J, where moving bodies touch each other and no joint mimics another.

    Entry (j, i) is S_i · C S_j. C is the inertia of the points' stiffness, as in `contact_hessian_in_tree`, summed over
    the paths that both velocities are on, and negated if one goes forth and the other back. Velocities that are on the
    same paths form a group and share one C. Nothing cancels by subtraction: a velocity that moves two bodies together
    sees no trace of a stiff contact between them, not even its rounding.
    """
    groups, group_of = np.unique(signs_of_paths(moved), axis=0, return_inverse=True)
    kinds = [blocks_within_trees(moved, groups), blocks_across_trees(moved, groups)]
    n, count = len(group_of), 0
    entries, places = [], np.full((n, n), -1)
    for blocks in kinds:
        where = []
        for block, (a, b) in enumerate(blocks.groups):
            for j in np.flatnonzero(group_of == b):
                columns = np.flatnonzero((group_of == a) & (np.arange(n) <= j))
                if columns.size:
                    places[j, columns] = count + len(where)
                    where.append((block, j))
        count += len(where)
        entries.append(np.array(where, int).reshape(-1, 2).T)
    places = np.where(places < 0, count, places).ravel()  # the last column is zero

    def hessian(G: Array) -> Array:
        F = [
            blocks.product(take(blocks.calc(G), block, 1), take(moved.S_T, j, 1))
            for blocks, (block, j) in zip(kinds, entries, strict=True)
            if j.size
        ]
        F = ca.concatenate([*F, jnp.zeros_like(F[0][:, :1])], 1)
        F = take(F, places, 1).reshape(6, n, n, *F.shape[2:])
        return ca.sum_products(jnp.unstack(F), jnp.unstack(moved.S_T[:, None]))

    return hessian


class Blocks(NamedTuple):
    """Matrices C(G) for pairs of groups of velocities, and their products C S with directions S of the second group."""

    groups: list[tuple[int, int]]
    calc: Callable[[Float[Array, "6 m"]], Float[Array, "k blocks"]]
    product: Callable[[Float[Array, "k n"], Float[Array, "6 n"]], Float[Array, "6 n"]]


def signs_of_paths(moved: MovedBodies) -> Int[np.ndarray, "nv paths"]:
    """Sign of each velocity on each path: 1 forth, -1 back, 0 off the path."""
    return moved.paths.forth.astype(int) - moved.paths.back


def blocks_within_trees(moved: MovedBodies, groups: Int[np.ndarray, "ng paths"]) -> Blocks:
    """Blocks of velocities that are on the same path."""
    signs = groups[:, summed_kinds(moved.paths.of_sides)]
    pairs = [(a, b) for a in range(len(groups)) for b in range(len(groups)) if np.any(signs[a] * signs[b])]
    once = [(a, b) for a, b in pairs if a <= b]
    together = np.array([signs[a] * signs[b] for a, b in once]).T  # the entries of a column have one sign
    place = [once.index((min(pair), max(pair))) for pair in pairs]

    def calc(G: Array) -> Array:
        of_sides = inertia_of_points(moved.p_TC_W, take(G, moved.paths.points, 1))
        sums = sums_of_pairs(over_slots(of_sides, moved.paths.of_sides), together != 0)
        is_negative = np.any(together < 0, axis=0).reshape(-1, *(1,) * (sums.ndim - 2))
        return take(jnp.where(is_negative, -sums, sums) if is_negative.any() else sums, place, 1)

    return Blocks(pairs, calc, times_composite)


def blocks_across_trees(moved: MovedBodies, groups: Int[np.ndarray, "ng paths"]) -> Blocks:
    """Blocks between two trees, the later tree second: -[p]G[q]ᵀ and its neighbors, from points with two sides."""
    paths, roots = moved.paths, moved.topology.mobod_roots[moved.mobods]
    points = paths.points[paths.num_points :]
    sides = np.stack([points, np.arange(paths.num_points, len(paths.points))])
    low, high = np.where(roots[sides[0]] < roots[sides[1]], sides, sides[::-1])
    of_low, of_high = paths.of_sides[low], paths.of_sides[high]
    kinds = of_low * groups.shape[1] + of_high  # points of one kind have the same two paths
    on_low, on_high = (groups[:, path] != 0 for path in np.divmod(summed_kinds(kinds), groups.shape[1]))
    pairs = [(a, b) for a in range(len(groups)) for b in range(len(groups)) if np.any(on_low[a] & on_high[b])]
    masks = np.array([on_low[a] & on_high[b] for a, b in pairs]).T

    def calc(G: Array) -> Array:
        p, q = take(moved.p_TC_W, low, 1), take(moved.p_TC_W, high, 1)
        sums = over_slots(inertia_between_points(p, q, take(G, points, 1)), kinds)
        return -sums_of_pairs(sums, masks)

    return Blocks(pairs, calc, times_inertia_between)


def contact_hessian_in_tree(moved: MovedBodies, parents: Parents) -> Callable[[Array], Float[Array, "nv depth"]]:
    """G (6, m) → the branch rows of Σ Jᵀ G J, where a single body moves at each point.

    G then adds to the inertia of all bodies outboard of a velocity. The entries are those of composite bodies, as in
    `calc_mass_matrix`: S_i · I S_j about T, with I = [[p]G[p]ᵀ [p]G; ([p]G)ᵀ G] of the stiffness at point p.
    """
    topology, S_T = moved.topology, moved.S_T
    ancestors, trunk = paths(parents).ancestors, trunk_of(parents)
    S_beyond = take(S_T, ancestors[:, trunk:].ravel(), 1).reshape(6, *ancestors[:, trunk:].shape, *S_T.shape[2:])
    movers = sorted(set(topology.velocity_mobods.tolist()))
    is_beyond = topology.is_ancestor[np.ix_(summed_kinds(moved.mobods), movers)]
    own = [movers.index(mobod) for mobod in topology.velocity_mobods]

    def rows(G: Array) -> Array:
        inertia = over_slots(inertia_of_points(moved.p_TC_W, G), moved.mobods)
        composite = take(dot_with_mask(inertia, is_beyond, 1), own, 1)
        F = jnp.unstack(times_composite(composite, S_T)[:, :, None])
        parts = (S_T[:, None, :trunk], S_beyond)
        return ca.concatenate([ca.sum_products(F, jnp.unstack(S)) for S in parts if S.shape[2]], 1)

    return rows


def sums_of_pairs(x: Float[Array, "k n"], masks: Bool[np.ndarray, "n blocks"]) -> Float[Array, "k blocks"]:
    """Sums over the columns of each block. Takes the column where every block has one, as between free bodies."""
    if masks.size and np.all(masks.sum(axis=0) == 1):
        return take(x, np.argmax(masks, axis=0), 1)
    return dot_with_mask(x, masks, 1)


def inertia_of_points(p: Float[Array, "3 m"], G: Float[Array, "6 m"]) -> Float[Array, "21 m"]:
    """Inertia of stiffness G at p about the origin: [p]G[p]ᵀ, [p]G and G, with six, nine and six entries."""
    H = [ca.cross_components(jnp.unstack(p), column) for column in ca.symmetric_rows(jnp.unstack(G))]  # H[j][i]
    J = [ca.cross_components(jnp.unstack(p), [H[j][i] for j in range(3)]) for i in range(3)]
    of_H = [H[j][i] for i in range(3) for j in range(3)]
    return ca.stack_many([*(J[i][j] for i, j in ca.SYMMETRIC_PAIRS), *of_H, *jnp.unstack(G)])


def times_composite(inertia: Float[Array, "21 n"], S: Float[Array, "6 n"]) -> Float[Array, "6 n"]:
    """Products [J H; Hᵀ G] S."""
    x, (w, v) = ca.unstack_many(inertia), (jnp.unstack(S[:3]), jnp.unstack(S[3:]))
    J, H, G = ca.symmetric_rows(x[:6]), (x[6:9], x[9:12], x[12:15]), ca.symmetric_rows(x[15:])
    t = [ca.sum_products(J[i], w) + ca.sum_products(H[i], v) for i in range(3)]
    f = [ca.sum_products([H[k][i] for k in range(3)], w) + ca.sum_products(G[i], v) for i in range(3)]
    return jnp.stack([*t, *f])


def inertia_between_points(
    p: Float[Array, "3 m"], q: Float[Array, "3 m"], G: Float[Array, "6 m"]
) -> Float[Array, "33 m"]:
    """Coupling of p and q by stiffness G: [p]G[q]ᵀ, [p]G, G[q]ᵀ and G, with nine, nine, nine and six entries."""
    G_rows = ca.symmetric_rows(jnp.unstack(G))
    pG, qG = ([ca.cross_components(jnp.unstack(x), row) for row in G_rows] for x in (p, q))  # [j][i]: entry (i, j)
    pGq = [ca.cross_components(jnp.unstack(p), [qG[i][k] for i in range(3)]) for k in range(3)]
    of_p = [columns[j][i] for columns in (pGq, pG) for i in range(3) for j in range(3)]
    return ca.stack_many([*of_p, *(qG[i][k] for i in range(3) for k in range(3)), *jnp.unstack(G)])


def times_inertia_between(inertia: Float[Array, "33 n"], S: Float[Array, "6 n"]) -> Float[Array, "6 n"]:
    """Products [[p]G[q]ᵀ [p]G; G[q]ᵀ G] S."""
    x, (w, v) = ca.unstack_many(inertia), (jnp.unstack(S[:3]), jnp.unstack(S[3:]))
    G = ca.symmetric_rows(x[27:])
    t = [ca.sum_products(x[3 * i : 3 * i + 3], w) + ca.sum_products(x[9 + 3 * i : 12 + 3 * i], v) for i in range(3)]
    f = [ca.sum_products(x[18 + 3 * i : 21 + 3 * i], w) + ca.sum_products(G[i], v) for i in range(3)]
    return jnp.stack([*t, *f])
