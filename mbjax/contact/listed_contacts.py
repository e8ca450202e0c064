"""The contacts of one world that act, one after another in loops: the work follows what touches, not what may touch.

Where bodies of a robot may touch each other there are hundreds of pairs of shapes, of which a few touch. A pair whose
bounding spheres are apart is not looked at. Of the others, the points that overlap are written to a list, and
everything later reads the list as far as it goes. The arrays have room for all points, as shapes are fixed when a
program is made.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from mbjax.execution import repeat_turns, take
from mbjax.execution.recursions import computed_once
from mbjax.geometry.signed_distance.bounding_boxes import gap_along_axes
from mbjax.geometry.signed_distance.bounding_spheres import bounding_sphere, length_from
from mbjax.geometry.signed_distance.pair_table import pair_function
from mbjax.kinematics import PositionKinematics
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology

from .acting_contacts import are_free_bodies, list_of, row_at, with_row
from .contact_jacobian import velocities_at
from .contact_parameters import PairParameters, SurfaceParameters, calc_surface_parameters, combine_surfaces
from .contact_points import GeometryPoses, calc_geometry_poses, calc_witnesses, pairs_by_kind, shape_sizes
from .contact_rows import LawInputs, calc_contact_law, size_of_response


class ContactList(NamedTuple):
    """The points that act, first in arrays with room for m. Positions are from the origins T of the bodies' trees."""

    count: Int[Array, ""]
    pair: Int[Array, " m"]
    distance: Float[Array, " m"]
    normal_W: Float[Array, "m 3"]
    p_TaC_W: Float[Array, "m 3"]
    p_TbC_W: Float[Array, "m 3"]
    parameters: PairParameters


def can_list(model: MultibodyModel) -> bool:
    """Whether the step of a model of one world can work on a list: bodies that move may touch each other.

    Surfaces that do not overlap must have no force: so there is no prediction and no smoothing of contact. Among free
    bodies `acting_contacts` is faster, as its matrix has blocks.
    """
    contact, topology = model.layout.contact, model.topology
    if model.num_world_axes or topology.followers or are_free_bodies(topology):
        return False
    if contact.max_pairs is not None or contact.max_contacts is not None:
        return False
    if contact.prediction or model.collision.smoothing_length is not None:
        return False
    mobods = [topology.body_mobods[geometry.body] for geometry in contact.geometries]
    return any(mobods[a] and mobods[b] for a, b in contact.pairs)


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
    m = sum(len(pairs) * num_points_of(model, pairs) for pairs in kinds)
    dtype = poses.p_WG.dtype

    def room(*shape: int) -> Array:
        return jnp.zeros((m, *shape), dtype)

    none = PairParameters(*(room() for _ in range(6)))
    start = ContactList(jnp.int32(0), jnp.zeros(m, jnp.int32), room(), room(3), room(3), room(3), none)
    for pairs in kinds:
        start = add_pairs(model, poses, surfaces, pairs, take(gap, pairs, 0), start)
    return start


def num_points_of(model: MultibodyModel, pairs: Sequence[int]) -> int:
    """How many points pairs of one kind may have each."""
    geometries = model.layout.contact.geometries
    a, b = model.layout.contact.pairs[pairs[0]]
    kinds = geometries[a].kind, geometries[b].kind
    sizes = [jax.ShapeDtypeStruct(s.shape, s.dtype) for s in (shape_sizes(model, [g])[..., 0] for g in (a, b))]
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


class ListedRows(eqx.Module):
    """`ContactRows` of a list: motion, impulse and stiffness have a row for each of m points, of which `count` act."""

    count: Int[Array, ""]
    pair: Int[Array, " m"]
    p_TaC_W: Float[Array, "m 3"]
    p_TbC_W: Float[Array, "m 3"]
    v_AcBc_W: Float[Array, "m 3"]
    law_of_points: Any
    shared_law: Any
    S_T: Float[Array, "6 nv"]  # zero where locked
    topology: TreeTopology = eqx.field(static=True)
    mobods: tuple[tuple[int, int], ...] = eqx.field(static=True)  # of A and B, for each pair of shapes

    def jacobian(self, index: Array) -> Float[Array, "3 nv"]:
        """J of a point, with v_AcBc_W = J v. Velocities that move both bodies have no part."""
        forth, back = (jnp.asarray(x, self.S_T.dtype) for x in moved_by_pairs(self.topology, self.mobods))
        pair = row_at(self.pair, index)
        of_B, of_A = (velocities_at(self.S_T, row_at(p, index)[:, None])[:, 0] for p in (self.p_TbC_W, self.p_TaC_W))
        return row_at(forth, pair) * of_B - row_at(back, pair) * of_A

    def law(self, index: Array) -> Any:
        """The law of a point, as that of an array of one point."""
        return eqx.combine(row_at(self.law_of_points, index), self.shared_law)

    def each(self, turn: Callable, start: Any) -> Any:
        """Loops over the points that act: `turn(index, carry)`."""
        return repeat_turns(self.count, turn, start)

    def empty(self, *shape: int) -> Float[Array, "m ..."]:
        """Zeros for each point."""
        return jnp.zeros((len(self.pair), *shape), self.S_T.dtype)

    def motion(self, dv: Float[Array, " nv"]) -> Float[Array, "m 3"]:
        """Change J dv of the points' relative velocities."""

        def turn(index: Array, found: Array) -> Array:
            return with_row(found, jnp.sum(self.jacobian(index) * dv, axis=1), index)

        return self.each(turn, self.empty(3))

    def impulse(self, motion: Float[Array, "m 3"]) -> Float[Array, "m 3"]:
        """Impulses on B at C once the velocities have changed by `motion`."""
        return self.of_law(lambda law, v: law.impulse(v), 3, motion)

    def stiffness(self, motion: Float[Array, "m 3"]) -> Float[Array, "m 6"]:
        """Stiffness -d impulse / d motion, as the entries of a symmetric matrix."""
        return self.of_law(lambda law, v: law.stiffness(v), 6, motion)

    def sticking_law(self, motion: Float[Array, "m 3"]) -> tuple[Float[Array, "m 3"], Float[Array, "m 6"]]:
        """Impulse and stiffness of the linear law of points that stick."""
        both = self.of_law(lambda law, v: jnp.concatenate(law.sticking_law(v)), 9, motion)
        return both[:, :3], both[:, 3:]

    def of_law(self, function: Callable, components: int, motion: Float[Array, "m 3"]) -> Float[Array, "m c"]:
        """A function of the law and the velocity, for each point."""

        def turn(index: Array, found: Array) -> Array:
            v = row_at(self.v_AcBc_W, index) + row_at(motion, index)
            return with_row(found, function(self.law(index), v[:, None])[:, 0], index)

        return self.each(turn, self.empty(components))

    def power_along(self, motion: Float[Array, "m 3"], d: Float[Array, "m 3"]) -> Callable[[Array], Array]:
        """s → d · impulse(motion + s d) and its derivative, (2, 1), summed over all points."""

        def power(s: Array) -> Float[Array, "2 1"]:
            def turn(index: Array, total: Array) -> Array:
                v = row_at(self.v_AcBc_W, index) + row_at(motion, index)
                return total + self.law(index).power_along(v[:, None], row_at(d, index)[:, None])(s)

            return self.each(turn, jnp.zeros((2, 1), self.S_T.dtype))

        return power

    def generalized(self, gamma: Float[Array, "m 3"]) -> Float[Array, " nv"]:
        """Generalized impulses Jᵀ gamma."""

        def turn(index: Array, total: Array) -> Array:
            return total + ca.sum_products(jnp.unstack(self.jacobian(index)), jnp.unstack(row_at(gamma, index)))

        return self.each(turn, jnp.zeros(self.S_T.shape[1], self.S_T.dtype))

    def hessian(self, G: Float[Array, "m 6"]) -> Float[Array, "nv nv"]:
        """Σ Jᵀ G J of the points' stiffness."""
        nv = self.S_T.shape[1]

        def turn(index: Array, total: Array) -> Array:
            J = self.jacobian(index)
            entries = ca.symmetric_rows(jnp.unstack(row_at(G, index)))
            GJ = jnp.stack([ca.sum_products(row, jnp.unstack(J)) for row in entries])
            return total + ca.sum_products(jnp.unstack(J[:, :, None]), jnp.unstack(GJ[:, None]))

        return self.each(turn, jnp.zeros((nv, nv), self.S_T.dtype))


@functools.lru_cache(maxsize=256)
def moved_by_pairs(topology: TreeTopology, mobods: tuple[tuple[int, int], ...]) -> tuple[np.ndarray, np.ndarray]:
    """Masks (pairs, nv) of the velocities that move B but not A, and A but not B."""
    A, B = np.array(mobods, int).T
    of_A, of_B = topology.moves[:, A].T, topology.moves[:, B].T
    return of_B & ~of_A, of_A & ~of_B


def calc_listed_rows(
    model: MultibodyModel,
    position: PositionKinematics,
    v: Float[Array, " nv"],
    diagonal: Float[Array, " nv"],
    locked: Bool[Array, " nv"],
) -> ListedRows:
    """The rows of the points that overlap; `diagonal` is that of M with implicit dissipation."""
    model = with_ordered_pairs(model)
    points = list_contacts(model, position)
    contact, body_mobods = model.layout.contact, model.topology.body_mobods
    of_geometries = [body_mobods[record.body] for record in contact.geometries]
    mobods = tuple((of_geometries[a], of_geometries[b]) for a, b in contact.pairs)
    S_T = jnp.where(locked, 0.0, position.S_T)
    of_pair = jnp.asarray(within_a_tree(model))

    def law_of(index: Array, rows: ListedRows) -> tuple[Array, Any]:
        J = rows.jacobian(index)
        v_AcBc_W = jnp.sum(J * v, axis=1)
        W = jnp.stack([jnp.sum(J[i] * J[k] / diagonal) for i, k in ca.SYMMETRIC_PAIRS])
        distance, normal_W, parameters = row_at((points.distance, points.normal_W, points.parameters), index)
        of_point = LawInputs(
            distance[None], normal_W[:, None], jnp.ones(1, bool), jax.tree.map(lambda x: x[None], parameters)
        )
        return v_AcBc_W, calc_contact_law(model, of_point, v_AcBc_W[:, None], size_of_response(W[:, None]))

    m = len(points.pair)
    # of one tree both positions are from one origin: they differ by rounding alone
    p_TaC_W = jnp.where(of_pair[points.pair][:, None], points.p_TbC_W, points.p_TaC_W)
    rows = ListedRows(
        points.count, points.pair, p_TaC_W, points.p_TbC_W, jnp.zeros((m, 3), v.dtype), None, None, S_T,
        model.topology, mobods,
    )  # fmt: skip
    of_first = law_of(jnp.int32(0), rows)
    by_point, shared = eqx.partition(of_first[1], lambda x: eqx.is_array(x) and x.ndim > 0)

    def turn(index: Array, found: tuple) -> tuple:
        v_AcBc_W, law = law_of(index, rows)
        by_point, _ = eqx.partition(law, lambda x: eqx.is_array(x) and x.ndim > 0)
        return jax.tree.map(lambda x, row: with_row(x, row, index), found, (v_AcBc_W, by_point))

    start = jax.tree.map(lambda x: jnp.zeros((m, *x.shape), x.dtype), (of_first[0], by_point))
    v_AcBc_W, law_of_points = repeat_turns(points.count, turn, start)
    return eqx.tree_at(
        lambda rows: (rows.v_AcBc_W, rows.law_of_points, rows.shared_law),
        rows,
        (v_AcBc_W, law_of_points, shared),
        is_leaf=lambda x: x is None,
    )
