"""The contacts that act in some world of a batch, as rows of the search: its work follows what touches.

Which pairs touch is known when the program runs, not when it is made. So the pairs that have an active point in any of
the worlds come first in a list, and loops of as many turns go through them. A pair that acts in other worlds alone adds
zeros: a world's numbers do not depend on the others.

A tree has at most `LARGEST` velocities here, as a free body does. Vectors are kept tree by tree, with zeros where a
tree has fewer, and one more tree for what never moves.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from mbjax.execution import compiled_apart, repeat_turns, take
from mbjax.linear_algebra import LARGEST
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology

from .abstract_law import AbstractContactLaw
from .contact_rows import ContactRows
from .moved_bodies import MovedBodies


class ActingPlan(NamedTuple):
    """What is known of n pairs of at most k points, and of the trees, whatever the state."""

    points: Int[np.ndarray, "n k"]  # the points of each pair; its first again where it has fewer
    sides: Int[np.ndarray, "n 2 k"]  # their sides in `MovedBodies`; a pair of one tree has its first side twice
    is_point: Bool[np.ndarray, "n k"]
    places: Int[np.ndarray, " m"]  # of each point among the n k
    trees: Int[np.ndarray, "n 2"]  # of B or the only tree that moves, and of A; the number of trees if none
    signs: Float[np.ndarray, "n 2 s"]  # of the tree's velocities on the pair's path
    velocities: Int[np.ndarray, "t s"]  # of each tree; the number of velocities where there is none
    within: Int[np.ndarray, " nv"]  # the place of each velocity among the t s


@functools.lru_cache(maxsize=256)
def acting_plan(topology: TreeTopology, pairs: tuple[int, ...], A: tuple[int, ...], B: tuple[int, ...]) -> ActingPlan:
    """The plan of points of these pairs, between these mobods."""
    roots, moves = topology.mobod_roots, topology.moves
    of_velocities = roots[topology.velocity_mobods]
    names = list(dict.fromkeys(of_velocities.tolist()))
    groups = [np.flatnonzero(of_velocities == root) for root in names]
    size, nv = max(map(len, groups)), len(of_velocities)
    velocities = np.array([[*group, *[nv] * (size - len(group))] for group in groups])
    within = np.argsort(np.where(velocities < nv, velocities, nv).ravel(), kind="stable")[:nv]

    points: dict[int, list[int]] = {}
    for point, pair in enumerate(pairs):
        points.setdefault(pair, []).append(point)
    most, m, second = max(map(len, points.values())), len(pairs), {}
    for point, (a, b) in enumerate(zip(A, B, strict=True)):
        if a and b and roots[a] != roots[b]:
            second[point] = m + len(second)
    rows = [(of_pair + of_pair[:1] * (most - len(of_pair)), len(of_pair)) for of_pair in points.values()]
    places = np.zeros(m, int)
    trees, signs = np.full((len(rows), 2), len(names)), np.zeros((len(rows), 2, size))
    sides = np.zeros((len(rows), 2, most), int)
    for row, (of_pair, count) in enumerate(rows):
        a, b = A[of_pair[0]], B[of_pair[0]]
        places[of_pair[:count]] = row * most + np.arange(count)
        sides[row] = [of_pair, [second.get(point, point) for point in of_pair]]
        sign = moves[:, b].astype(float) - moves[:, a]  # zero where a velocity moves both
        for side, mobod in enumerate((b or a, a)):
            if mobod and (side == 0 or of_pair[0] in second):
                tree = names.index(roots[mobod])
                trees[row, side] = tree
                signs[row, side] = np.append(sign, 0.0)[velocities[tree]]
    is_point = np.arange(most) < np.array([count for _, count in rows])[:, None]
    return ActingPlan(
        np.array([of_pair for of_pair, _ in rows]), sides, is_point, places, trees, signs, velocities, within
    )


def can_act(topology: TreeTopology, contacts: Any) -> bool:
    """Whether contacts can be searched by those that act: of small trees, some of which may touch each other."""
    if not isinstance(contacts, ContactRows) or contacts.slots is not None or topology.followers:
        return False
    moved = contacts.moved
    if not isinstance(moved, MovedBodies) or len(moved.paths.points) == moved.paths.num_points:
        return False
    of_trees = topology.mobod_roots[topology.velocity_mobods]
    return int(np.unique(of_trees, return_counts=True)[1].max()) <= LARGEST


class Acting(eqx.Module):
    """Pairs that act, first in a list, with all that an iteration reads of them. Arrays have the n pairs first."""

    pair: Int[Array, " n"]
    count: Int[Array, ""]
    trees: Int[Array, "n 2"]
    signs: Float[Array, "n 2 s"]
    p_TC_W: Float[Array, "n 2 3 k"]
    v_AcBc_W: Float[Array, "n 3 k"]
    law: Any  # leaves with the pairs first; None where all points share a number
    S_T: Float[Array, "t+1 6 s"]
    shared_law: Any
    plan_of: tuple = eqx.field(static=True)  # arguments of `acting_plan`

    @property
    def plan(self) -> ActingPlan:
        return acting_plan(*self.plan_of)


class ActingRows(eqx.Module):
    """`ContactRows` of the contacts that act; motion, impulse and stiffness have all pairs first, in their own order."""

    acting: Acting
    num_world_axes: int = eqx.field(static=True)

    def each(self, turn: Callable, start: Any, *of_pairs: Array) -> Any:
        """Loops over the pairs that act: `turn(carry, index, pair, *rows)` with the rows at `pair` of `of_pairs`."""

        def body(index: Array, carry: Any) -> Any:
            pair = row_at(self.acting.pair, index)
            return turn(carry, index, pair, *(row_at(x, pair) for x in of_pairs))

        return repeat_turns(self.acting.count, body, start)

    def apart(self, index: Array, function: Callable, *args: Any) -> Any:
        """Calls `function(*args)` in a loop with this index; of several worlds it is compiled apart from the loop."""
        return compiled_apart(index, function, *args) if self.num_world_axes else function(*args)

    def empty(self, components: int, like: Array) -> Float[Array, "n c k *w"]:
        """Zeros for some components of each point."""
        n, k = self.acting.plan.points.shape
        return jnp.zeros((n, components, k, *self.worlds(like)), like.dtype)

    def worlds(self, like: Array) -> tuple[int, ...]:
        """Shape of the worlds of `like`."""
        return like.shape[like.ndim - self.num_world_axes :]

    def law_at(self, index: Array) -> Any:
        """The arrays of the law of a pair's points."""
        return row_at(self.acting.law, index)

    def law(self, of_points: Any) -> AbstractContactLaw:
        """The law of a pair's points from its arrays."""
        return eqx.combine(of_points, self.acting.shared_law)

    def motion(self, dv: Float[Array, " nv"]) -> Float[Array, "n 3 k"]:
        """Change J dv of the points' relative velocities."""
        acting = self.acting
        rates = ca.scale(jnp.moveaxis(acting.S_T, 1, 0), with_still(in_blocks(acting.plan, dv)))  # (6, t + 1, s)
        rates = jnp.moveaxis(rates, 0, 1)

        def turn(found: Array, index: Array, pair: Array) -> Array:
            trees, signs, p = (row_at(x, index) for x in (acting.trees, acting.signs, acting.p_TC_W))
            V = self.apart(index, velocities, signs, p, *(row_at(rates, trees[side]) for side in (0, 1)))
            return with_row(found, V, pair)

        return self.each(turn, self.empty(3, dv))

    def impulse(self, motion: Float[Array, "n 3 k"]) -> Float[Array, "n 3 k"]:
        """Impulses on B at C once the velocities have changed by `motion`."""
        return self.of_law(lambda law, v: law.impulse(v), 3, motion)

    def stiffness(self, motion: Float[Array, "n 3 k"]) -> Float[Array, "n 6 k"]:
        """Stiffness -d impulse / d motion, as the entries of a symmetric matrix."""
        return self.of_law(lambda law, v: law.stiffness(v), 6, motion)

    def sticking_law(self, motion: Float[Array, "n 3 k"]) -> tuple[Float[Array, "n 3 k"], Float[Array, "n 6 k"]]:
        """Impulse and stiffness of the linear law of points that stick."""
        impulse = self.of_law(lambda law, v: law.sticking_law(v)[0], 3, motion)
        return impulse, self.of_law(lambda law, v: law.sticking_law(v)[1], 6, motion)

    def of_law(self, function: Callable, components: int, motion: Float[Array, "n 3 k"]) -> Float[Array, "n c k"]:
        """A function of the law and the velocity, for each pair that acts."""

        def of_pair(law: Any, v: Array, motion: Array) -> Array:
            return function(self.law(law), v + motion)

        def turn(found: Array, index: Array, pair: Array, motion: Array) -> Array:
            v = row_at(self.acting.v_AcBc_W, index)
            return with_row(found, self.apart(index, of_pair, self.law_at(index), v, motion), pair)

        return self.each(turn, self.empty(components, motion), motion)

    def power_along(self, motion: Float[Array, "n 3 k"], d: Float[Array, "n 3 k"]) -> Callable[[Array], Array]:
        """s → d · impulse(motion + s d) and its derivative, (2, 1), summed over all points."""

        def of_pair(s: Array, law: Any, v: Array, motion: Array, d: Array) -> Array:
            return sum_in_order(self.law(law).power_along(v + motion, d)(s), 1)

        def power(s: Array) -> Float[Array, "2 1"]:
            def turn(total: Array, index: Array, _: Array, motion: Array, d: Array) -> Array:
                v = row_at(self.acting.v_AcBc_W, index)
                return total + self.apart(index, of_pair, s, self.law_at(index), v, motion, d)

            start = jnp.zeros((2, *self.worlds(motion)), motion.dtype)
            return self.each(turn, start, motion, d)[:, None]

        return power

    def generalized(self, gamma: Float[Array, "n 3 k"]) -> Float[Array, " nv"]:
        """Generalized impulses Jᵀ gamma."""
        acting = self.acting

        def turn(total: Array, index: Array, _: Array, f: Array) -> Array:
            trees, signs, p = (row_at(x, index) for x in (acting.trees, acting.signs, acting.p_TC_W))
            for side in (0, 1):
                S_T = row_at(acting.S_T, trees[side])
                total = add_row(total, self.apart(index, efforts, S_T, signs[side], p[side], f), trees[side])
            return total

        t, s = acting.plan.velocities.shape
        start = jnp.zeros((t + 1, s, *self.worlds(gamma)), gamma.dtype)
        return from_blocks(acting.plan, self.each(turn, start, gamma)[:t])


def velocities(signs: Array, p: Array, *rates: Array) -> Float[Array, "3 k *w"]:
    """Relative velocities of a pair's points from the rates (6, s) of its two trees."""
    total = None
    for sign, p_TC_W, rate in zip(signs, p, rates, strict=True):
        V = sum_in_order(spread_signs(sign, rate) * rate, 1)
        v = V[3:, None] + ca.cross(V[:3, None], p_TC_W)
        total = v if total is None else total + v
    assert total is not None
    return total


def efforts(S_T: Array, signs: Array, p_TC_W: Array, f_Bc_W: Array) -> Float[Array, "s *w"]:
    """Generalized forces on a tree of forces on B at a pair's points."""
    F_T = sum_in_order(ca.concatenate([ca.cross(p_TC_W, f_Bc_W), f_Bc_W], 0), 1)
    products = spread_signs(signs, S_T) * S_T * F_T[:, None]
    return sum_in_order(products, 0)


def spread_signs(signs: Float[Array, " s"], like: Array) -> Array:
    """Signs of a tree's velocities, to multiply its directions (6, s *w) by."""
    return signs.reshape(1, -1, *(1 for _ in like.shape[2:]))


def sum_in_order(x: Array, axis: int) -> Array:
    """Sum over a short axis, first to last."""
    first, *others = (lax.index_in_dim(x, k, axis, keepdims=False) for k in range(x.shape[axis]))
    for other in others:
        first = first + other
    return first


def row_at(rows: Any, index: Array) -> Any:
    """Reads row `index` of each array."""
    return jax.tree.map(lambda x: lax.dynamic_index_in_dim(x, index, 0, False, allow_negative_indices=False), rows)


def with_row(x: Array, row: Array, index: Array) -> Array:
    """Writes a row."""
    return lax.dynamic_update_index_in_dim(x, row, index, 0, allow_negative_indices=False)


def add_row(x: Array, row: Array, index: Array) -> Array:
    """Adds to a row."""
    return with_row(x, row_at(x, index) + row, index)


def in_blocks(plan: ActingPlan, x: Float[Array, " nv"]) -> Float[Array, "t s"]:
    """Numbers of velocities, tree by tree, zero where a tree has fewer."""
    padded = jnp.concatenate([x, jnp.zeros_like(x[:1])])
    return take(padded, plan.velocities.ravel(), 0).reshape(*plan.velocities.shape, *x.shape[1:])


def from_blocks(plan: ActingPlan, x: Float[Array, "t s"]) -> Float[Array, " nv"]:
    """Numbers of velocities in their own order."""
    return take(x.reshape(-1, *x.shape[2:]), plan.within, 0)


def with_still(x: Float[Array, "t s"]) -> Float[Array, "t+1 s"]:
    """Adds the zeros of what never moves."""
    return jnp.concatenate([x, jnp.zeros_like(x[:1])])


def list_of(wanted: Bool[Array, " n"], is_one_world: bool) -> tuple[Int[Array, " n"], Int[Array, ""]]:
    """Indices of the entries that are wanted first, in their order, and how many they are.

    Of one world they are found one by one, as a kernel cannot sort.
    """
    count = jnp.sum(wanted, dtype=jnp.int32)
    if not is_one_world:
        return jnp.argsort(~wanted).astype(jnp.int32), count

    def note(k: Array, carry: tuple) -> tuple:
        found, place = carry
        found = lax.dynamic_update_index_in_dim(found, k, place, 0, allow_negative_indices=False)
        return found, place + row_at(wanted, k).astype(jnp.int32)

    n = wanted.shape[0]
    start = jnp.zeros(n + 1, jnp.int32), jnp.zeros((), jnp.int32)
    found, count = repeat_turns(np.int32(n), note, start)
    return found[:n], count


def acting_rows(contacts: ContactRows) -> ActingRows:
    """The rows of the pairs that have an active point in some world."""
    moved, law = contacts.moved, contacts.law
    assert isinstance(moved, MovedBodies)
    plan_of = moved.topology, moved.pairs, moved.mobods_A, moved.mobods_B
    plan = acting_plan(*plan_of)
    num_world_axes = moved.S_T.ndim - 2
    active = law.active if num_world_axes == 0 else jnp.any(law.active, axis=-1)
    n, k = plan.points.shape
    is_acting = jnp.any(take(active, plan.points.ravel(), 0).reshape(n, k) & plan.is_point, axis=1)
    pair, count = list_of(is_acting, num_world_axes == 0)

    def of_points(x: Any) -> bool:
        return eqx.is_array(x) and x.ndim > num_world_axes

    by_point, shared = eqx.partition(law, of_points)
    tables = jnp.asarray(plan.points, jnp.int32), jnp.asarray(plan.sides, jnp.int32), jnp.asarray(plan.is_point)

    def gathered(x: Array, index: Array) -> Array:
        axis = x.ndim - num_world_axes - 1
        return x.at[(slice(None),) * axis + (index,)].get(mode="promise_in_bounds")

    def of_pair(index: Array) -> tuple:
        points, sides, is_point = (row_at(x, index) for x in tables)
        law = jax.tree.map(lambda x: gathered(x, points), by_point)
        is_point = is_point.reshape(k, *(1,) * num_world_axes)
        law = eqx.tree_at(lambda law: law.active, law, law.active & is_point)
        p = jnp.stack([gathered(moved.p_TC_W, sides[side]) for side in (0, 1)])
        return p, gathered(contacts.v_AcBc_W, points), law

    def turn(index: Array, found: tuple) -> tuple:
        return jax.tree.map(lambda x, row: with_row(x, row, index), found, of_pair(row_at(pair, index)))

    shapes = jax.eval_shape(of_pair, jax.ShapeDtypeStruct((), jnp.int32))
    start = jax.tree.map(lambda x: jnp.zeros((n, *x.shape), x.dtype), shapes)
    p, v, of_law = repeat_turns(count, turn, start)
    trees = jnp.asarray(plan.trees, jnp.int32)[pair]
    signs = jnp.asarray(plan.signs, p.dtype)[pair]
    S_T = jnp.moveaxis(jnp.stack([with_still(in_blocks(plan, x)) for x in jnp.unstack(moved.S_T)]), 0, 1)
    return ActingRows(Acting(pair, count, trees, signs, p, v, of_law, S_T, shared, plan_of), num_world_axes)


def points_of_pairs(plan: ActingPlan, x: Float[Array, "n c k"]) -> Float[Array, "c m"]:
    """Numbers of all points in their own order, from those of pairs."""
    by_component = jnp.moveaxis(x, 1, 0).reshape(x.shape[1], -1, *x.shape[3:])
    return take(by_component, plan.places, 1)


def pairs_of_points(plan: ActingPlan, x: Float[Array, "c m"]) -> Float[Array, "n c k"]:
    """Numbers of pairs from those of points."""
    n, k = plan.points.shape
    return jnp.moveaxis(take(x, plan.points.ravel(), 1).reshape(x.shape[0], n, k, *x.shape[2:]), 0, 1)
