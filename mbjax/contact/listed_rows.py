"""The contacts on a list as rows of the search: loops of as many turns as points act."""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from mbjax.execution import repeat_turns, take
from mbjax.kinematics import PositionKinematics
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology

from .abstract_law import AbstractContactLaw
from .body_blocks import BodyBlocks, are_free_bodies, body_blocks, from_blocks, in_blocks, with_still
from .contact_jacobian import velocities_at
from .contact_rows import LawInputs, calc_contact_law, size_of_response
from .listed_contacts import GROUP, ContactList, column_at, list_contacts, with_ordered_pairs, within_a_tree
from .runtime_lists import add_row, row_at, with_row


class ListedRows(eqx.Module):
    """`ContactRows` of a list: motion, impulse and stiffness have columns for m points, of which the first act.

    Laws take `GROUP` points in a turn, as vector instructions do; the last of them may be inactive.
    """

    v_AcBc_W: Float[Array, "3 m"]
    law: AbstractContactLaw
    moved: "ListedPaths | ListedBodies"

    def motion(self, dv: Float[Array, " nv"]) -> Float[Array, "3 m"]:
        """Change J dv of the points' relative velocities."""
        return self.moved.velocities(dv)

    def impulse(self, motion: Float[Array, "3 m"]) -> Float[Array, "3 m"]:
        """Impulses on B at C once the velocities have changed by `motion`."""
        return self.by_groups(lambda law, v, motion: law.impulse(v + motion), motion)

    def stiffness(self, motion: Float[Array, "3 m"]) -> Float[Array, "6 m"]:
        """Stiffness -d impulse / d motion, as the entries of a symmetric matrix."""
        return self.by_groups(lambda law, v, motion: law.stiffness(v + motion), motion)

    def sticking_law(self, motion: Float[Array, "3 m"]) -> tuple[Float[Array, "3 m"], Float[Array, "6 m"]]:
        """Impulse and stiffness of the linear law of points that stick."""
        return self.by_groups(lambda law, v, motion: law.sticking_law(v + motion), motion)

    def power_along(self, motion: Float[Array, "3 m"], d: Float[Array, "3 m"]) -> Callable[[Array], Array]:
        """s → d · impulse(motion + s d) and its derivative, (2, 1), summed over all points."""
        line = self.by_groups(lambda law, v, motion, d: law.line(v + motion, d), motion, d)

        def power(s: Array) -> Float[Array, "2 1"]:
            def turn(k: Array, total: Array) -> Array:
                law, of_group = group_at((self.law, line), k)
                return total + jnp.sum(law.power_on(of_group, s), axis=1, keepdims=True)

            return repeat_turns(num_groups(self.moved.count), turn, jnp.zeros((2, 1), motion.dtype))

        return power

    def generalized(self, gamma: Float[Array, "3 m"]) -> Float[Array, " nv"]:
        """Generalized impulses Jᵀ gamma."""
        return self.moved.generalized(gamma)

    def by_groups(self, function: Callable, *args: Float[Array, "c m"]) -> Any:
        """`function(law, v, *args)` of the points that act; zero elsewhere."""
        given = self.law, self.v_AcBc_W, *args
        return in_groups(lambda k: function(*group_at(given, k)), self.moved.count, self.v_AcBc_W.shape[1])


def num_groups(count: Array) -> Array:
    """How many groups have one of the first `count` points."""
    return (count + np.int32(GROUP - 1)) // np.int32(GROUP)


def in_groups(function: Callable, count: Array, m: int) -> Any:
    """Arrays for m points from those of each group, `function(k)`; zero beyond. Numbers that all share stay."""
    shared = function(jnp.int32(0))
    start = jax.tree.map(lambda x: jnp.zeros((*x.shape[:-1], m), x.dtype) if x.ndim else x, shared)

    def turn(k: Array, found: Any) -> Any:
        return jax.tree.map(lambda x, y: with_group(x, y, k) if y.ndim else x, found, function(k))

    return repeat_turns(num_groups(count), turn, start)


def group_at(x: Any, k: Array, axis: int = -1) -> Any:
    """The entries of a group of points along an axis of each array; numbers that all points share stay."""

    def entries(x: Array) -> Array:
        return lax.dynamic_slice_in_dim(x, k * np.int32(GROUP), GROUP, axis % x.ndim, allow_negative_indices=False)

    return jax.tree.map(lambda x: entries(x) if x.ndim else x, x)


def with_group(x: Float[Array, "*c m"], columns: Float[Array, "*c g"], k: Array) -> Float[Array, "*c m"]:
    """Writes the columns of a group."""
    start = k * np.int32(GROUP)
    return lax.dynamic_update_slice_in_dim(x, columns, start, x.ndim - 1, allow_negative_indices=False)


def with_column(x: Float[Array, "*c m"], column: Float[Array, "*c"], index: Array) -> Float[Array, "*c m"]:
    """Writes a column."""
    return lax.dynamic_update_index_in_dim(x, column, index, x.ndim - 1, allow_negative_indices=False)


class ListedPaths(eqx.Module):
    """What moves the points of a list in trees: a row of the Jacobian for each velocity."""

    count: Int[Array, ""]
    pair: Int[Array, " m"]
    p_TaC_W: Float[Array, "m 3"]
    p_TbC_W: Float[Array, "m 3"]
    S_T: Float[Array, "6 nv"]  # zero where locked
    topology: TreeTopology = eqx.field(static=True)
    mobods: tuple[tuple[int, int], ...] = eqx.field(static=True)  # of A and B, for each pair of shapes

    def each(self, turn: Callable, start: Any) -> Any:
        """Loops over the points that act: `turn(index, carry)`."""
        return repeat_turns(self.count, turn, start)

    def couples_branches(self) -> Int[Array, ""]:
        """1 if a point acts between bodies of which neither is on the other's path from the root, else 0."""
        is_ancestor, (A, B) = self.topology.is_ancestor, np.array(self.mobods, int).T
        couples = jnp.asarray(~(is_ancestor[A, B] | is_ancestor[B, A]), jnp.int32)
        return self.each(lambda index, found: found | row_at(couples, row_at(self.pair, index)), jnp.int32(0))

    def jacobian(self, index: Array) -> Float[Array, "3 nv"]:
        """J of a point, with v_AcBc_W = J v. Velocities that move both bodies have no part."""
        forth, back = (jnp.asarray(x, self.S_T.dtype) for x in moved_by_pairs(self.topology, self.mobods))
        pair = row_at(self.pair, index)
        of_B, of_A = (velocities_at(self.S_T, row_at(p, index)[:, None])[:, 0] for p in (self.p_TbC_W, self.p_TaC_W))
        return row_at(forth, pair) * of_B - row_at(back, pair) * of_A

    def velocities(self, v: Float[Array, " nv"]) -> Float[Array, "3 m"]:
        """Relative velocities J v of the points."""

        def turn(index: Array, found: Array) -> Array:
            return with_column(found, jnp.sum(self.jacobian(index) * v, axis=1), index)

        return self.each(turn, jnp.zeros((3, len(self.pair)), v.dtype))

    def responses(self, inverse: Float[Array, " nv"]) -> Float[Array, "6 m"]:
        """J diag(inverse) Jᵀ of each point, as symmetric entries."""

        def turn(index: Array, found: Array) -> Array:
            J = self.jacobian(index)
            return with_column(found, entries_of_product(J, J * inverse), index)

        return self.each(turn, jnp.zeros((6, len(self.pair)), inverse.dtype))

    def generalized(self, gamma: Float[Array, "3 m"]) -> Float[Array, " nv"]:
        """Generalized forces Jᵀ gamma of forces on B at C."""

        def turn(index: Array, total: Array) -> Array:
            return total + ca.sum_products(jnp.unstack(self.jacobian(index)), jnp.unstack(column_at(gamma, index)))

        return self.each(turn, jnp.zeros(self.S_T.shape[1], self.S_T.dtype))

    def hessian(self, G: Float[Array, "6 m"]) -> Float[Array, "nv nv"]:
        """Σ Jᵀ G J of the points' stiffness."""
        nv = self.S_T.shape[1]

        def turn(index: Array, total: Array) -> Array:
            J = self.jacobian(index)
            entries = ca.symmetric_rows(jnp.unstack(column_at(G, index)))
            GJ = jnp.stack([ca.sum_products(row, jnp.unstack(J)) for row in entries])
            return total + ca.sum_products(jnp.unstack(J[:, :, None]), jnp.unstack(GJ[:, None]))

        return self.each(turn, jnp.zeros((nv, nv), self.S_T.dtype))


class ListedBodies(eqx.Module):
    """What moves the points of a list among free bodies: two bodies each, the later one first, t where none moves."""

    count: Int[Array, ""]
    bodies: Int[Array, "m 2"]
    J: Float[Array, "m 2 3 s"]  # v_AcBc_W is the sum over both bodies of J v; zero where locked, and where none moves
    topology: TreeTopology = eqx.field(static=True)

    num_world_axes = 0

    @property
    def blocks(self) -> BodyBlocks:
        """The bodies' velocities."""
        return body_blocks(self.topology)

    def each(self, turn: Callable, start: Any) -> Any:
        """Loops over the points that act: `turn(index, carry)`."""
        return repeat_turns(self.count, turn, start)

    def apart(self, index: Array, function: Callable, *args: Any) -> Any:
        """Calls `function(*args)`."""
        return function(*args)

    def worlds(self, like: Array) -> tuple[int, ...]:
        """Shape of the worlds: there is one."""
        return ()

    def if_both_move(self, low: Array, turn: Callable, carry: Any) -> Any:
        """`turn(carry)` where the earlier body of a point moves, else the carry."""
        return repeat_turns((low < self.blocks.count).astype(jnp.int32), lambda _, carry: turn(carry), carry)

    def each_couple(self, turn: Callable, start: Any) -> Any:
        """Loops over the points between bodies that move, the later one first: `turn(high, low, carry)`."""

        def of_point(index: Array, carry: Any) -> Any:
            high, low = jnp.unstack(row_at(self.bodies, index))
            return self.if_both_move(low, lambda carry: turn(high, low, carry), carry)

        return self.each(of_point, start)

    def velocities(self, v: Float[Array, " nv"]) -> Float[Array, "3 m"]:
        """Relative velocities J v of the points."""
        in_order = with_still(in_blocks(self.blocks, v))

        def turn(index: Array, found: Array) -> Array:
            bodies, J = row_at((self.bodies, self.J), index)
            of_bodies = [jnp.sum(J[side] * row_at(in_order, bodies[side]), axis=1) for side in (0, 1)]
            return with_column(found, of_bodies[0] + of_bodies[1], index)

        return self.each(turn, jnp.zeros((3, len(self.bodies)), v.dtype))

    def responses(self, inverse: Float[Array, " nv"]) -> Float[Array, "6 m"]:
        """J diag(inverse) Jᵀ of each point, as symmetric entries."""
        in_order = with_still(in_blocks(self.blocks, inverse))

        def turn(index: Array, found: Array) -> Array:
            bodies, J = row_at((self.bodies, self.J), index)
            each = [entries_of_product(J[side], J[side] * row_at(in_order, bodies[side])) for side in (0, 1)]
            return with_column(found, each[0] + each[1], index)

        return self.each(turn, jnp.zeros((6, len(self.bodies)), inverse.dtype))

    def generalized(self, gamma: Float[Array, "3 m"]) -> Float[Array, " nv"]:
        """Generalized forces Jᵀ gamma of forces on B at C."""

        def turn(index: Array, total: Array) -> Array:
            (bodies, J), f = row_at((self.bodies, self.J), index), column_at(gamma, index)
            for side in (0, 1):
                total = add_row(total, ca.sum_products(jnp.unstack(J[side]), jnp.unstack(f)), bodies[side])
            return total

        t, size = self.blocks.velocities.shape
        return from_blocks(self.blocks, self.each(turn, jnp.zeros((t + 1, size), gamma.dtype))[:-1])


def entries_of_product(A: Float[Array, "3 n"], B: Float[Array, "3 n"]) -> Float[Array, " 6"]:
    """Symmetric entries of A Bᵀ."""
    i, k = (np.array(side) for side in zip(*ca.SYMMETRIC_PAIRS, strict=True))
    return jnp.sum(take(A, i, 0) * take(B, k, 0), axis=1)


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
    is_coupled: bool,
) -> ListedRows:
    """The rows of the points that overlap; `diagonal` is that of M with implicit dissipation.

    Free bodies have blocks unless constraints, too, couple them.
    """
    model = with_ordered_pairs(model)
    points = list_contacts(model, position)
    moved_by = bodies_of_list if are_free_bodies(model.topology) and not is_coupled else paths_of_list
    moved = moved_by(model, points, jnp.where(locked, 0.0, position.S_T))

    v_AcBc_W, W = moved.velocities(v), moved.responses(1.0 / diagonal)
    of_points = points.distance, points.normal_W, points.parameters

    def law_of(k: Array) -> AbstractContactLaw:
        (distance, normal_W, parameters), (v, of_group) = group_at(of_points, k, 0), group_at((v_AcBc_W, W), k)
        acts = k * np.int32(GROUP) + jnp.arange(GROUP, dtype=jnp.int32) < points.count
        inputs = LawInputs(distance, normal_W.T, acts, parameters)
        return calc_contact_law(model, inputs, v, size_of_response(of_group))

    law = in_groups(law_of, points.count, len(points.pair))
    return ListedRows(v_AcBc_W, law, moved)


def mobods_of_pairs(model: MultibodyModel) -> tuple[tuple[int, int], ...]:
    """The mobods of A and B of each pair of shapes."""
    contact, body_mobods = model.layout.contact, model.topology.body_mobods
    mobods = [body_mobods[record.body] for record in contact.geometries]
    return tuple((mobods[a], mobods[b]) for a, b in contact.pairs)


def paths_of_list(model: MultibodyModel, points: ContactList, S_T: Float[Array, "6 nv"]) -> ListedPaths:
    """What moves the points in trees."""
    of_pair = jnp.asarray(within_a_tree(model))
    # of one tree both positions are from one origin: they differ by rounding alone
    p_TaC_W = jnp.where(of_pair[points.pair][:, None], points.p_TbC_W, points.p_TaC_W)
    return ListedPaths(points.count, points.pair, p_TaC_W, points.p_TbC_W, S_T, model.topology, mobods_of_pairs(model))


def bodies_of_list(model: MultibodyModel, points: ContactList, S_T: Float[Array, "6 nv"]) -> ListedBodies:
    """What moves the points among free bodies."""
    blocks = body_blocks(model.topology)
    of_mobods, t, m = blocks.of_mobods, blocks.count, len(points.pair)
    sides = [(of_mobods[a], of_mobods[b]) for a, b in mobods_of_pairs(model)]
    is_b_first = [a == t or t > b > a for a, b in sides]
    in_order = [(b, a) if first else (a, b) for (a, b), first in zip(sides, is_b_first, strict=True)]
    table, first_is_b = jnp.asarray(in_order, jnp.int32), jnp.asarray(is_b_first)
    of_bodies = jnp.stack([with_still(in_blocks(blocks, x)) for x in jnp.unstack(S_T)])

    def turn(index: Array, carry: tuple) -> tuple:
        bodies, J = carry
        pair, *p = row_at((points.pair, points.p_TbC_W, points.p_TaC_W), index)
        own, is_b = row_at((table, first_is_b), pair)
        each = []
        for side in (0, 1):
            is_of_b = is_b if side == 0 else ~is_b
            S = lax.dynamic_index_in_dim(of_bodies, own[side], 1, False, allow_negative_indices=False)
            velocities = velocities_at(S, jnp.where(is_of_b, *p)[:, None])[:, 0]
            each.append(jnp.where(is_of_b, velocities, -velocities))
        return with_row(bodies, own, index), with_row(J, jnp.stack(each), index)

    start = jnp.zeros((m, 2), jnp.int32), jnp.zeros((m, 2, 3, of_bodies.shape[2]), S_T.dtype)
    bodies, J = repeat_turns(points.count, turn, start)
    return ListedBodies(points.count, bodies, J, model.topology)
