"""Signed distances between collision geometries of a model, also for pairs that contact ignores."""

import dataclasses
import warnings
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.array_types import Positions
from mbjax.errors import ModelWarning
from mbjax.execution import takes_model_first
from mbjax.execution.arrays import take
from mbjax.geometry.signed_distance.choices import chosen_columns, direction_rounding, index_of_largest
from mbjax.geometry.signed_distance.witnesses import Witnesses
from mbjax.kinematics import calc_position_kinematics, for_worlds_of
from mbjax.model import CollisionGeometryRecord, GeometryParameters, MultibodyModel, as_coordinates
from mbjax.spatial import component_algebra as ca

from .contact_points import calc_witnesses, pairs_by_kind
from .distance_pairs import find_distance_pairs, names_of_pairs
from .geometry_poses import GeometryPoses, calc_geometry_poses, calc_relative_poses, shape_sizes


class SignedDistances(eqx.Module):
    """Signed distances of n pairs of collision geometries A and B: Drake's SignedDistancePair, both points in world.

    `distance` is negative where A and B overlap. `point_A` p_WCa on A and `point_B` p_WCb on B are the nearest points.
    Where A and B overlap they are the witness points of the penetration. `normal` nhat_BA_W is the unit vector out of
    B into A, and `point_A - point_B = distance * normal`. `is_degenerate` says that the normal is not unique and one
    was chosen. `pairs` are the names `("body::geometry", "body::geometry")` of A and B.
    """

    distance: Float[Array, "*batch n"]
    point_A: Float[Array, "*batch n 3"]
    point_B: Float[Array, "*batch n 3"]
    normal: Float[Array, "*batch n 3"]
    is_degenerate: Bool[Array, "*batch n"]
    pairs: tuple[tuple[str, str], ...] = eqx.field(static=True)


@takes_model_first
def signed_distances(
    model: MultibodyModel, q: Positions, pairs: Sequence[tuple[str, str]] | None = None
) -> SignedDistances:
    """Signed distances of pairs of collision geometries in m, with the nearest points and normals, in the world.

    `pairs` are pairs of names. A name is that of a body (all its shapes), of a collision geometry (`"sole"`,
    `"foot::sole"`), or a pattern of such names, `[("*finger*", "table")]`. Pairs that collision filters exclude are
    allowed, and so are models without contact. A pair of shapes that several pairs of names mean comes once, where it
    is named first, so read the order from `pairs` of the result; no names give empty arrays. None selects the pairs
    that contact considers, or would if it were on; a `ModelWarning` counts those without a signed distance, such as
    pairs with meshes. Raises `ModelError` for a name that matches nothing, and for a named pair without a signed
    distance.

    Derivatives hold fixed which features of two shapes are nearest, while the features move: d distance = normal .
    d(p_WCa - p_WCb), with Ca and Cb fixed to their bodies. Derivatives are with respect to q, the poses and sizes of
    shapes, and everything else that places bodies.
    """
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    found = find_distance_pairs(model, "signed_distances", pairs)
    lacking = model.layout.contact.without_distance
    if pairs is None and lacking:
        kinds = ", ".join(f"{count} of {A} and {B}" for A, B, count in lacking)
        warnings.warn(
            f"signed_distances: pairs of shapes without a signed distance are left out: {kinds}. Load meshes with "
            "meshes='hull', or name the pairs.",
            ModelWarning,
            stacklevel=2,
        )
    if not found:
        vectors = jnp.zeros((0, 3), model.dtype)
        return SignedDistances(jnp.zeros(0, model.dtype), vectors, vectors, vectors, jnp.zeros(0, bool), ())
    return for_worlds_of(DistancesOf(found), model, q)


@dataclasses.dataclass(frozen=True)
class DistancesOf:
    """Signed distances of given pairs as a function of the model and q; `pairs` holds indices of geometries."""

    pairs: tuple[tuple[int, int], ...]

    def __call__(self, model: MultibodyModel, q: Positions) -> SignedDistances:
        position = calc_position_kinematics(model, q)
        seen = seeing_only(model, self.pairs)
        poses = calc_geometry_poses(seen, position)
        order, groups = [], []
        for pairs in pairs_by_kind(seen):
            order += pairs
            groups.append(calc_distances_of_kind(seen, poses, pairs))
        back = sorted(range(len(order)), key=order.__getitem__)
        numbers, vectors = (
            [
                take(ca.concatenate(parts, axis), back, axis)
                for parts in zip(*(group[axis] for group in groups), strict=True)
            ]
            for axis in (0, 1)
        )
        distance, is_degenerate = numbers
        point_A, point_B, normal = (jnp.swapaxes(x, 0, 1) for x in vectors)
        return SignedDistances(distance, point_A, point_B, normal, is_degenerate, names_of_pairs(model, self.pairs))


def calc_distances_of_kind(
    model: MultibodyModel, poses: GeometryPoses, pairs: Sequence[int]
) -> tuple[tuple[Array, Array], tuple[Array, Array, Array]]:
    """Distance and degeneracy, then p_WCa, p_WCb and nhat_BA_W, for pairs between one kind of shape and another."""
    contact = model.layout.contact
    A, B = ([contact.pairs[i][side] for i in pairs] for side in (0, 1))
    kind_A, kind_B = (contact.geometries[g].kind for g in (A[0], B[0]))
    sizes = shape_sizes(model, A), shape_sizes(model, B)
    R_WA, _, R_AB, p_AB = calc_relative_poses(model, poses, A, B)
    witnesses = calc_witnesses(kind_A, kind_B, *sizes, R_AB, p_AB, nearest=True)
    distance, normal_A, p_ACa = nearest(witnesses)
    normal = ca.matvec(R_WA, normal_A)
    p_WCa = take(poses.p_WG, A, 1) + ca.matvec(R_WA, p_ACa)
    return (distance, witnesses.degenerate), (p_WCa, p_WCa - ca.scale(normal, distance), normal)


def nearest(witnesses: Witnesses) -> tuple[Float[Array, "n *w"], Float[Array, "3 n *w"], Float[Array, "3 n *w"]]:
    """Distance, normal and point of the witness with the smallest distance; derivatives hold that choice fixed."""
    if witnesses.distance.shape[0] == 1:
        return witnesses.distance[0], witnesses.normal[:, 0], witnesses.point[:, 0]
    held = lax.stop_gradient(witnesses.distance)
    size = jnp.max(jnp.abs(lax.stop_gradient(witnesses.point)), axis=(0, 1)) + jnp.max(jnp.abs(held), axis=0)
    index, _ = index_of_largest(jnp.where(witnesses.valid, -held, -jnp.inf), direction_rounding(held.dtype) * size)
    distance = chosen_columns(index, witnesses.distance)
    return distance, chosen_columns(index, witnesses.normal, axis=1), chosen_columns(index, witnesses.point, axis=1)


def seeing_only(model: MultibodyModel, pairs: Sequence[tuple[int, int]]) -> MultibodyModel:
    """The model reduced to these pairs and their geometries, for distance computations only."""
    contact, collision = model.layout.contact, model.collision
    used = sorted({g for pair in pairs for g in pair})
    place = {g: k for k, g in enumerate(used)}
    parts = [collision] if collision.others is None else [collision, collision.others]
    quaternion, translation, size, vertices = (
        ca.concatenate([getattr(part, field.name) for part in parts], 0)
        for field in dataclasses.fields(GeometryParameters)
    )
    shifted = contact.geometries + tuple(
        after_those_of_contact(record, collision.size.shape[0], collision.vertices.shape[0])
        for record in contact.others
    )
    seen = dataclasses.replace(
        contact,
        geometries=tuple(shifted[g] for g in used),
        pairs=tuple((place[a], place[b]) for a, b in pairs),
        surface_pairs=(),
    )
    return dataclasses.replace(
        model,
        layout=dataclasses.replace(model.layout, contact=seen),
        collision=dataclasses.replace(
            collision,
            quaternion=take(quaternion, used, 0),
            translation=take(translation, used, 0),
            size=size,
            vertices=vertices,
        ),
    )


def after_those_of_contact(record: CollisionGeometryRecord, sizes: int, vertices: int) -> CollisionGeometryRecord:
    """The geometry's record with its start indices shifted past `sizes` sizes and `vertices` vertices."""
    starts = {"size_start": record.size_start + sizes, "vertex_start": record.vertex_start + vertices}
    return dataclasses.replace(record, **starts)
