"""The contacts of one world that act, one after another in loops: the work follows what touches, not what may touch.

Where bodies of a robot may touch each other there are hundreds of pairs of shapes, of which a few touch. A pair whose
bounding spheres are apart is not looked at. Of the others, the points that overlap are written to a list, and
everything later reads the list as far as it goes. The arrays have room for all points, up to a bound for each body, as
shapes are fixed when a program is made; where more points act than there is room for, the results are NaN.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from mbjax.execution.arrays import repeat_turns, take
from mbjax.execution.recursions import computed_once
from mbjax.geometry.signed_distance.bounding_boxes import gap_along_axes
from mbjax.geometry.signed_distance.bounding_spheres import bounding_sphere, length_from
from mbjax.geometry.signed_distance.pair_table import pair_function
from mbjax.kinematics import PositionKinematics
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca

from .contact_parameters import PairParameters, SurfaceParameters, calc_surface_parameters, combine_surfaces
from .contact_points import calc_contact_points, calc_witnesses, pairs_by_kind
from .geometry_poses import GeometryPoses, calc_geometry_poses, shape_sizes
from .point_records import ContactPoints
from .runtime_lists import list_of, row_at, with_row
from .surface_points import count_faces

LEAST_ROOM, POINTS_OF_A_BODY = 1024, 24  # room of the list: boxes in a stack have eight points each
GROUP = 8  # points that laws take in a turn; the list has room for whole groups


class ContactList(NamedTuple):
    """The points that act, first in arrays with room for m. Positions are from the origins T of the bodies' trees."""

    count: Int[Array, ""]
    pair: Int[Array, " m"]
    distance: Float[Array, " m"]
    normal_W: Float[Array, "m 3"]
    p_TaC_W: Float[Array, "m 3"]
    p_TbC_W: Float[Array, "m 3"]
    parameters: PairParameters


def calc_contact_list(
    model: MultibodyModel, position: PositionKinematics, points: ContactPoints | None
) -> tuple[ContactList, tuple[tuple[int, int], ...]]:
    """The points that act, and the mobods of A and B of each pair.

    They are found among all points where these are at hand, or where points act at a distance.
    """
    if points is None and not do_only_overlaps_act(model):
        points = calc_contact_points(model, position)
    if points is not None:
        return list_of_points(model, position, points), mobods_of_pairs(model)
    model = with_ordered_pairs(model)
    return list_contacts(model, position), mobods_of_pairs(model)


def do_only_overlaps_act(model: MultibodyModel) -> bool:
    """Whether shapes have forces at points, where they overlap and there alone: no prediction, smoothing or bound."""
    contact = model.layout.contact
    return (
        not contact.surface_pairs
        and not contact.prediction
        and contact.max_pairs is None
        and model.collision.smoothing_length is None
    )


def with_ordered_pairs(model: MultibodyModel) -> MultibodyModel:
    """The model with the two shapes of each pair in the order in which their pair function takes them.

    A box and a cylinder, and a cylinder and a box, are one kind then: they share the largest part of the program.
    """
    contact = model.layout.contact
    kinds = [record.kind for record in contact.geometries]
    pairs = tuple((b, a) if pair_function(kinds[a], kinds[b])[1] else (a, b) for a, b in contact.pairs)
    layout = dataclasses.replace(model.layout, contact=dataclasses.replace(contact, pairs=pairs))
    return dataclasses.replace(model, layout=layout)


def list_contacts(model: MultibodyModel, position: PositionKinematics) -> ContactList:
    """The points of all pairs that overlap."""
    poses, surfaces = calc_geometry_poses(model, position), calc_surface_parameters(model)
    gap = computed_once(functools.partial(calc_gaps, model), poses)
    kinds = pairs_by_kind(model)
    start = empty_list(model, poses.p_WG.dtype)
    for pairs in kinds:
        start = add_pairs(model, poses, surfaces, pairs, take(gap, pairs, 0), start)
    return with_room_kept(start)


def list_of_points(model: MultibodyModel, position: PositionKinematics, points: ContactPoints) -> ContactList:
    """Those of the points of all pairs that act; NaN counts as acting, so that it shows."""
    acts, p_TM_W = points.active | (points.exists & jnp.isnan(points.distance)), position.p_TM_W
    sides = (points.mobods_A, points.p_MaC_W), (points.mobods_B, points.p_MbC_W)
    p_TaC_W, p_TbC_W = (take(p_TM_W, mobods, 1) + p_MC_W for mobods, p_MC_W in sides)
    columns = (
        jnp.asarray(points.pairs, jnp.int32),
        points.distance,
        points.normal_W,
        p_TaC_W,
        p_TbC_W,
        points.parameters,
    )
    index, count = list_of(acts, is_one_world=True)

    def turn(k: Array, found: ContactList) -> ContactList:
        point = jax.tree.map(lambda x: column_at(x, row_at(index, k)), columns)
        kept = jax.tree.map(lambda x, row: with_row(x, row, k), found[1:], point)
        return ContactList(found.count + 1, *kept)

    return with_room_kept(repeat_turns(count, turn, empty_list(model, points.distance.dtype)))


def empty_list(model: MultibodyModel, dtype: np.dtype) -> ContactList:
    """A list without points, with room for all, up to a bound, in whole groups."""
    m = min(count_points(model), LEAST_ROOM + POINTS_OF_A_BODY * model.topology.num_mobods)
    m += -m % GROUP

    def room(*shape: int) -> Array:
        return jnp.zeros((m, *shape), dtype)

    none = PairParameters(*(room() for _ in range(6)))
    return ContactList(jnp.int32(0), jnp.zeros(m, jnp.int32), room(), room(3), room(3), room(3), none)


def with_room_kept(found: ContactList) -> ContactList:
    """The list with no more points than it has room for; if there were more, distances are NaN, so that it shows."""
    m = len(found.pair)
    is_full, count = found.count > m, jnp.minimum(found.count, np.int32(m))
    return found._replace(count=count, distance=jnp.where(is_full, jnp.nan, found.distance))


def count_points(model: MultibodyModel) -> int:
    """How many points all pairs may have, faces of surfaces included."""
    return sum(len(pairs) * num_points_of(model, pairs) for pairs in pairs_by_kind(model)) + count_faces(model)


def num_points_of(model: MultibodyModel, pairs: Sequence[int]) -> int:
    """How many points pairs of one kind may have each."""
    geometries = model.layout.contact.geometries
    a, b = model.layout.contact.pairs[pairs[0]]
    kinds = geometries[a].kind, geometries[b].kind
    last = -1 - model.num_world_axes
    sizes = [jax.ShapeDtypeStruct(s.shape[:last], s.dtype) for s in (shape_sizes(model, [g]) for g in (a, b))]
    R, p = (jax.ShapeDtypeStruct(shape, model.dtype) for shape in ((3, 3), (3,)))
    found = jax.eval_shape(functools.partial(calc_witnesses, *kinds), *sizes, R, p)
    return found.distance.shape[0]


def calc_gaps(model: MultibodyModel, poses: GeometryPoses) -> Float[Array, " n"]:
    """Gaps between the bounding spheres of all pairs, lower bounds on their distances, from positions alone."""
    contact = model.layout.contact
    kinds: dict[tuple[str, int], list[int]] = {}
    for g, record in enumerate(contact.geometries):
        kinds.setdefault((record.kind, record.num_vertices), []).append(g)
    order, offsets, radii = [], [], []
    for (kind, _), members in kinds.items():
        order += members
        if kind == "HalfSpace":
            centre, radius = jnp.zeros((3, len(members)), model.dtype), jnp.zeros(len(members), model.dtype)
        else:
            centre, radius = bounding_sphere(kind, shape_sizes(model, members))
        offsets.append(ca.matvec(take(poses.R_WG, members, 2), centre) if kind == "Convex" else centre)
        radii.append(radius)
    back = np.argsort(order)
    offset, radius = take(ca.concatenate(offsets, 1), back, 1), take(ca.concatenate(radii, 0), back, 0)
    A, B = (np.array(side) for side in zip(*contact.pairs, strict=True))
    is_within = within_a_tree(model)
    along = [take(p + offset, B, 1) - take(p + offset, A, 1) for p in (poses.p_TG_W, poses.p_WG)]
    between = jnp.where(is_within, *along)
    is_plane = np.array([record.kind == "HalfSpace" for record in contact.geometries])
    normals = poses.R_WG[:, 2]
    planes = jnp.where(is_plane[A], ca.dot(take(normals, A, 1), between), -ca.dot(take(normals, B, 1), between))
    apart = jnp.where(is_plane[A] | is_plane[B], planes, length_from(between))
    return apart - take(radius, A, 0) - take(radius, B, 0)


def within_a_tree(model: MultibodyModel) -> Bool[np.ndarray, " n"]:
    """Whether both bodies of each pair are of one tree, so that positions from its origin tell their distance."""
    contact, topology = model.layout.contact, model.topology
    roots = topology.mobod_roots[np.array([topology.body_mobods[g.body] for g in contact.geometries])]
    return np.array([roots[a] == roots[b] for a, b in contact.pairs])


def mobods_of_pairs(model: MultibodyModel) -> tuple[tuple[int, int], ...]:
    """The mobods of A and B of each pair of shapes."""
    contact, body_mobods = model.layout.contact, model.topology.body_mobods
    mobods = [body_mobods[record.body] for record in contact.geometries]
    return tuple((mobods[a], mobods[b]) for a, b in contact.pairs)


def add_pairs(
    model: MultibodyModel,
    poses: GeometryPoses,
    surfaces: SurfaceParameters,
    pairs: Sequence[int],
    gap: Float[Array, " n"],
    found: ContactList,
) -> ContactList:
    """Adds the points of those pairs of one kind that overlap; NaN counts as overlapping, so that it shows."""
    contact = model.layout.contact
    sides = np.array([contact.pairs[i] for i in pairs]).T
    kinds = [contact.geometries[side[0]].kind for side in sides]
    members = [np.unique(side) for side in sides]
    sizes = [shape_sizes(model, of_side.tolist()) for of_side in members]
    places = [np.searchsorted(of_side, side) for of_side, side in zip(members, sides, strict=True)]
    is_within = jnp.asarray(within_a_tree(model)[np.array(pairs)])
    columns = (np.array(pairs), *sides, *places)
    table = jnp.asarray(np.stack(columns, axis=1), jnp.int32)
    near, count = list_of(~(gap >= 0.0), is_one_world=True)

    def relative_pose(index: Array) -> tuple[Array, ...]:
        _, a, b, place_a, place_b = jnp.unstack(row_at(table, index))
        R_WA, R_WB = column_at(poses.R_WG, a), column_at(poses.R_WG, b)
        along_tree = column_at(poses.p_TG_W, b) - column_at(poses.p_TG_W, a)
        across = column_at(poses.p_WG, b) - column_at(poses.p_WG, a)
        p_AB_W = jnp.where(row_at(is_within, index), along_tree, across)
        of_sizes = column_at(sizes[0], place_a), column_at(sizes[1], place_b)
        R_AB, p_AB = ca.matmul(ca.transpose(R_WA), R_WB), ca.transposed_matvec(R_WA, p_AB_W)
        return R_WA, p_AB_W, *of_sizes, R_AB, p_AB

    def sift(k: Array, kept: tuple) -> tuple:
        index = row_at(near, k)
        gap = gap_along_axes(*kinds, *relative_pose(index)[2:])
        return with_row(kept[0], index, kept[1]), kept[1] + (~(gap >= 0.0)).astype(jnp.int32)

    if "HalfSpace" not in kinds:
        near, count = repeat_turns(count, sift, (jnp.zeros_like(near), jnp.int32(0)))

    def turn(k: Array, found: ContactList) -> ContactList:
        index = row_at(near, k)
        pair, a, b, *_ = jnp.unstack(row_at(table, index))
        R_WA, p_AB_W, *relative = relative_pose(index)
        witnesses = computed_once(functools.partial(calc_witnesses, *kinds), *relative)
        of_pair = combine_surfaces(*(jax.tree.map(lambda x, g=g: row_at(x, g), surfaces) for g in (a, b)))
        distance, normal_A = witnesses.distance, -witnesses.normal
        along_normal = ca.scale(normal_A, (1.0 - of_pair.weight_A) * distance)
        p_AC_W = ca.matvec(R_WA[:, :, None], witnesses.point + along_normal)
        p_TA, p_TB = column_at(poses.p_TG_W, a), column_at(poses.p_TG_W, b)
        points = ca.matvec(R_WA[:, :, None], normal_A), p_TA[:, None] + p_AC_W, (p_TB - p_AB_W)[:, None] + p_AC_W
        acts = witnesses.valid & ~(distance >= 0.0)
        rows = distance, *(jnp.swapaxes(x, 0, 1) for x in points), acts

        def add(k: Array, found: ContactList) -> ContactList:
            *point, acts = row_at(rows, k)
            values = pair, *point, of_pair
            kept = jax.tree.map(lambda x, row: with_row(x, row, found.count), found[1:], values)
            return ContactList(found.count + acts.astype(jnp.int32), *kept)

        return repeat_turns(np.int32(len(acts)), add, found)

    return repeat_turns(count, turn, found)


def column_at(x: Float[Array, "... n"], index: Int[Array, ""]) -> Float[Array, "..."]:
    """One column along the last axis."""
    return lax.dynamic_index_in_dim(x, index, x.ndim - 1, False, allow_negative_indices=False)
