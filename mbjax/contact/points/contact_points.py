"""Contact points of all pairs of collision geometries that may touch, with their depths and normals."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mbjax.execution import take
from mbjax.geometry.mesh_hull import MAX_VERTICES
from mbjax.geometry.signed_distance.bounding_spheres import gap_between
from mbjax.geometry.signed_distance.pair_table import pair_function
from mbjax.geometry.signed_distance.witnesses import Witnesses, swap
from mbjax.kinematics import PositionKinematics
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import quaternion_to_matrix

from .contact_parameters import PairParameters, calc_pair_parameters
from .near_pairs import find_near_pairs


class ContactPoints(eqx.Module):
    """m possible contact points C; geometry A and its body come first in the pair.

    C lies between the points Ca and Cb of the two surfaces, nearer to the stiffer surface.
    """

    distance: Float[Array, " m"]  # negative where the geometries overlap
    normal_W: Float[Array, "3 m"]  # nhat_AB_W: unit, out of A into B
    p_MaC_W: Float[Array, "3 m"]  # from the origin Mo of A's mobod
    p_MbC_W: Float[Array, "3 m"]
    exists: Bool[Array, " m"]  # a slot may hold no point
    active: Bool[Array, " m"]  # may have a force: the geometries overlap, or the plant predicts or smooths contact
    degenerate: Bool[Array, " m"]  # the normal is not unique and one was chosen
    parameters: PairParameters
    num_pairs_left_out: Int[Array, ""]  # not looked at, although their bounding spheres overlap
    pairs: tuple[int, ...] = eqx.field(static=True)  # pair of each point, indexes `model.layout.contact.pairs`
    mobods_A: tuple[int, ...] = eqx.field(static=True)
    mobods_B: tuple[int, ...] = eqx.field(static=True)


class GeometryPoses(eqx.Module):
    """Poses X_WG of all collision geometries, with positions from the world's, mobods' and trees' origins."""

    R_WG: Float[Array, "3 3 ng"]
    p_MG_W: Float[Array, "3 ng"]
    p_TG_W: Float[Array, "3 ng"]
    p_WG: Float[Array, "3 ng"]


def calc_geometry_poses(model: MultibodyModel, position: PositionKinematics) -> GeometryPoses:
    """Poses X_WG = X_WM X_MB X_BG of all collision geometries."""
    bodies = [geometry.body for geometry in model.layout.contact.geometries]
    mobods = [model.topology.body_mobods[body] for body in bodies]
    R_BG = ca.over_columns(quaternion_to_matrix, jnp.swapaxes(model.collision.quaternion, 0, 1))
    p_BG = jnp.swapaxes(model.collision.translation, 0, 1)
    R_MB, p_MB = take(position.placement.R_MB, bodies, 2), take(position.placement.p_MB, bodies, 1)
    R_WM = take(position.R_WM, mobods, 2)
    p_MG_W = ca.matvec(R_WM, p_MB + ca.matvec(R_MB, p_BG))
    p_TG_W, p_WG = (take(p, mobods, 1) + p_MG_W for p in (position.p_TM_W, position.p_WM))
    return GeometryPoses(ca.matmul(R_WM, ca.matmul(R_MB, R_BG)), p_MG_W, p_TG_W, p_WG)


def calc_contact_points(model: MultibodyModel, position: PositionKinematics) -> ContactPoints:
    """Contact points of every pair, touching or not; pairs with the same kinds of shapes are computed together."""
    poses = calc_geometry_poses(model, position)
    parameters = calc_pair_parameters(model)
    groups = [calc_points_of_kind(model, poses, parameters, pairs) for pairs in pairs_by_kind(model)]
    return join(groups)


def join(groups: Sequence[ContactPoints]) -> ContactPoints:
    """Concatenates the points of all groups."""
    if len(groups) == 1:
        return groups[0]
    vectors, indices = ("normal_W", "p_MaC_W", "p_MbC_W"), ("pairs", "mobods_A", "mobods_B")

    def joined(name: str) -> Any:
        parts = [getattr(group, name) for group in groups]
        if name in indices:
            return sum(parts, ())
        if name == "num_pairs_left_out":
            return sum(parts[1:], parts[0])
        return jax.tree.map(lambda *x: ca.concatenate(x, 1 if name in vectors else 0), *parts)

    return ContactPoints(*(joined(field.name) for field in dataclasses.fields(ContactPoints)))


def pairs_by_kind(model: MultibodyModel) -> list[list[int]]:
    """Indices of the pairs, grouped by the two kinds of shapes; each group compiles to a program of its own.

    Hulls of up to 32 vertices are one kind, hulls of up to 64 another, and so on.
    """
    contact = model.layout.contact
    groups: dict[tuple[str, str, int], list[int]] = {}
    for i, (a, b) in enumerate(contact.pairs):
        A, B = contact.geometries[a], contact.geometries[b]
        most = max(A.num_vertices, B.num_vertices, MAX_VERTICES)
        groups.setdefault((A.kind, B.kind, (most - 1).bit_length()), []).append(i)
    return list(groups.values())


def calc_points_of_kind(
    model: MultibodyModel, poses: GeometryPoses, parameters: PairParameters, pairs: Sequence[int]
) -> ContactPoints:
    """Contact points of pairs between one kind of shape and another."""
    contact, topology = model.layout.contact, model.topology
    chosen = [contact.pairs[i] for i in pairs]
    A, B = [a for a, _ in chosen], [b for _, b in chosen]
    bodies_A, bodies_B = ([contact.geometries[g].body for g in side] for side in (A, B))
    mobods_A, mobods_B = ([topology.body_mobods[b] for b in bodies] for bodies in (bodies_A, bodies_B))
    R_WA, p_AB_W, R_AB, p_AB = calc_relative_poses(model, poses, A, B)
    reach = model.collision.smoothing_length
    witnesses, num_left_out = calc_near_witnesses(model, A, B, R_AB, p_AB, reach)

    k = witnesses.distance.shape[0]
    of_points = jax.tree.map(lambda x: in_slots(take(x, pairs, 0), k, 0), parameters)
    R_WA, p_AB_W = in_slots(R_WA, k, 2), in_slots(p_AB_W, k, 1)
    p_MaA_W, p_MbB_W = (in_slots(take(poses.p_MG_W, side, 1), k, 1) for side in (A, B))
    reaches = contact.prediction or reach is not None
    distance, normal_A, p_ACa = flat(witnesses.distance, 0), -flat(witnesses.normal, 1), flat(witnesses.point, 1)
    p_AC_W = ca.matvec(R_WA, p_ACa + ca.scale(normal_A, (1.0 - of_points.weight_A) * distance))
    exists = flat(witnesses.valid, 0)
    return ContactPoints(
        distance,
        ca.matvec(R_WA, normal_A),
        p_MaA_W + p_AC_W,
        p_MbB_W + p_AC_W - p_AB_W,
        exists,
        exists if reaches else exists & (distance < 0.0),
        in_slots(witnesses.degenerate, k, 0),
        of_points,
        num_left_out,
        tuple(pairs) * k,
        tuple(mobods_A) * k,
        tuple(mobods_B) * k,
    )


def calc_relative_poses(
    model: MultibodyModel, poses: GeometryPoses, A: Sequence[int], B: Sequence[int]
) -> tuple[Float[Array, "3 3 n"], Float[Array, "3 n"], Float[Array, "3 3 n"], Float[Array, "3 n"]]:
    """R_WA, p_AB_W, R_AB and p_AB of pairs of geometries. Within a tree no large coordinates are subtracted."""
    R_WA, R_WB = take(poses.R_WG, A, 2), take(poses.R_WG, B, 2)
    geometries, topology = model.layout.contact.geometries, model.topology
    roots_A, roots_B = (
        topology.mobod_roots[np.asarray([topology.body_mobods[geometries[g].body] for g in side])] for side in (A, B)
    )
    same_tree = (roots_A == roots_B).reshape(-1, *(1 for _ in range(model.num_world_axes)))
    within, across = (take(p, B, 1) - take(p, A, 1) for p in (poses.p_TG_W, poses.p_WG))
    p_AB_W = jnp.where(same_tree, within, across)
    return R_WA, p_AB_W, ca.matmul(ca.transpose(R_WA), R_WB), ca.transposed_matvec(R_WA, p_AB_W)


def in_slots(x: Float[Array, "..."], k: int, axis: int) -> Float[Array, "..."]:
    """Repeats values of n pairs k times along an axis: one value for each of the k n points."""
    return jnp.concatenate([x] * k, axis)


def flat(x: Float[Array, "..."], axis: int) -> Float[Array, "..."]:
    """Flattens axes (k, n) of points into one, slot after slot."""
    return x.reshape(*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2 :])


def calc_near_witnesses(
    model: MultibodyModel,
    A: Sequence[int],
    B: Sequence[int],
    R_AB: Float[Array, "3 3 n"],
    p_AB: Float[Array, "3 n"],
    reach: Float[Array, ""] | None,
) -> tuple[Witnesses, Int[Array, ""]]:
    """Witnesses of the pairs that the plant looks at, and how many other pairs may be within reach."""
    contact = model.layout.contact
    kinds = contact.geometries[A[0]].kind, contact.geometries[B[0]].kind
    sizes = shape_sizes(model, A), shape_sizes(model, B)
    if contact.max_pairs is None or contact.max_pairs >= len(A):
        return calc_witnesses(*kinds, *sizes, R_AB, p_AB), jnp.zeros(p_AB.shape[2:], jnp.int32)
    gap = gap_between(*kinds, *sizes, R_AB, p_AB)
    near = find_near_pairs(gap, contact.max_pairs)
    size_A, size_B = (near.choose(x, x.ndim - gap.ndim) for x in sizes)
    witnesses = calc_witnesses(*kinds, size_A, size_B, near.choose(R_AB, 2), near.choose(p_AB, 1))
    left_out = ~near.is_near() & (gap < (0.0 if reach is None else reach))
    return near.put_back(witnesses, gap), jnp.sum(left_out, axis=0, dtype=jnp.int32)


def calc_witnesses(
    kind_A: str,
    kind_B: str,
    size_A: Array,
    size_B: Array,
    R_AB: Float[Array, "3 3 n"],
    p_AB: Float[Array, "3 n"],
    nearest: bool = False,
) -> Witnesses:
    """Witnesses of pairs, expressed in A; swaps A and B where the pair's function takes the kinds in the other order.

    With `nearest`, points that do not affect the distance may be missing.
    """
    pair, swapped = pair_function(kind_A, kind_B)
    function = pair.nearest if nearest and pair.nearest is not None else pair.function
    if not swapped:
        return function(size_A, size_B, R_AB, p_AB)
    found = function(size_B, size_A, ca.transpose(R_AB), -ca.transposed_matvec(R_AB, p_AB))
    return swap(found, R_AB, p_AB)


def shape_sizes(model: MultibodyModel, geometries: Sequence[int]) -> Array:
    """Lengths (s, n) of shapes of one kind, or vertices (3, m, n) of convex shapes.

    Shapes with fewer vertices than others repeat their last one.
    """
    records = [model.layout.contact.geometries[g] for g in geometries]
    if records[0].num_vertices:
        counts = np.array([r.num_vertices for r in records])
        starts = np.array([r.vertex_start for r in records])
        where = starts + np.minimum(np.arange(counts.max())[:, None], counts - 1)
        vertices = jnp.swapaxes(model.collision.vertices, 0, 1)
        return take(vertices, where.ravel(), 1).reshape(3, *where.shape, *vertices.shape[2:])
    where = np.array([np.arange(r.size_start, r.size_start + r.num_sizes) for r in records], int).T
    return take(model.collision.size, where.ravel(), 0).reshape(*where.shape, *model.collision.size.shape[1:])
