"""Contact points of all pairs of collision geometries that may touch, with their depths and normals."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from mbjax.execution.arrays import take
from mbjax.geometry.mesh_hull import MAX_VERTICES
from mbjax.geometry.signed_distance.bounding_spheres import gap_between
from mbjax.geometry.signed_distance.pair_table import pair_function
from mbjax.geometry.signed_distance.witnesses import Witnesses, swap
from mbjax.kinematics import PositionKinematics
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca

from .contact_parameters import PairParameters, calc_pair_parameters
from .geometry_poses import GeometryPoses, calc_geometry_poses, calc_relative_poses, shape_sizes
from .near_pairs import find_near_pairs
from .point_records import ContactPoints, flat, in_slots, join
from .surface_points import calc_surface_points


def calc_contact_points(model: MultibodyModel, position: PositionKinematics) -> ContactPoints:
    """Contact points of every pair, touching or not; pairs with the same kinds of shapes are computed together.

    The points of pairs with a hydroelastic surface come last.
    """
    poses = calc_geometry_poses(model, position)
    parameters = calc_pair_parameters(model)
    groups = [calc_points_of_kind(model, poses, parameters, pairs) for pairs in pairs_by_kind(model)]
    return join([*groups, *calc_surface_points(model, poses)])


def pairs_by_kind(model: MultibodyModel) -> list[list[int]]:
    """Indices of the pairs that touch at points, by the two kinds of shapes; each group is a program of its own.

    Hulls of up to 32 vertices are one kind, hulls of up to 64 another, and so on.
    """
    contact = model.layout.contact
    groups: dict[tuple[str, str, int], list[int]] = {}
    for i, (a, b) in enumerate(contact.pairs):
        if i in contact.surface_pairs:
            continue
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
    weight_A = of_points.weight_A if model.is_discrete else jnp.full_like(distance, 0.5)  # as in Drake
    p_AC_W = ca.matvec(R_WA, p_ACa + ca.scale(normal_A, (1.0 - weight_A) * distance))
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
