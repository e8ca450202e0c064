"""The contacts that act in some world of a batch, as rows of the search: its work follows what touches.

Which pairs touch is known when the program runs, not when it is made. So the pairs that have an active point in any of
the worlds come first in a list, and loops of as many turns go through them. A pair that acts in other worlds alone adds
zeros: a world's numbers do not depend on the others.

Every tree is one body here, with at most `LARGEST` velocities. Vectors are kept body by body, with zeros where one has
fewer, and one more body for what never moves. Of several worlds some pairs share a turn, as starting kernels takes
longer than what they compute.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from mbjax.execution import compiled_apart, repeat_turns, take
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology

from .body_blocks import BodyBlocks, are_free_bodies, body_blocks, from_blocks, in_blocks, with_still
from .contact_rows import ContactRows
from .moved_bodies import MovedBodies
from .runtime_lists import add_row, list_of, row_at, sum_in_order, with_row

POINTS = 32  # of several worlds in a turn


class ActingPlan(NamedTuple):
    """What is known of n pairs of at most k points, and of t bodies, whatever the state. Pairs that couple come first.

    The first side of a pair is its later body, or the only one that moves.
    """

    points: Int[np.ndarray, "n k"]  # the points of each pair; its first again where it has fewer
    sides: Int[np.ndarray, "n 2 k"]  # their sides in `MovedBodies`
    is_point: Bool[np.ndarray, "n k"]
    places: Int[np.ndarray, " m"]  # of each point among the n k
    bodies: Int[np.ndarray, "n 2"]  # of each side; t where nothing moves
    signs: Float[np.ndarray, "n 2"]  # of each side's velocity: 1 of B, -1 of A
    num_coupled: int  # pairs of two bodies that move
    blocks: BodyBlocks


@functools.lru_cache(maxsize=256)
def acting_plan(topology: TreeTopology, pairs: tuple[int, ...], A: tuple[int, ...], B: tuple[int, ...]) -> ActingPlan:
    """The plan of points of these pairs, between these mobods."""
    blocks = body_blocks(topology)
    t = blocks.count
    points: dict[int, list[int]] = {}
    for point, pair in enumerate(pairs):
        points.setdefault(pair, []).append(point)
    second: dict[int, int] = {}  # the side that is A's of a point with two
    for point, (a, b) in enumerate(zip(A, B, strict=True)):
        if blocks.of_mobods[a] < t and blocks.of_mobods[b] < t:
            second[point] = len(pairs) + len(second)
    most = max(map(len, points.values()))
    in_order = sorted(points.values(), key=lambda of_pair: of_pair[0] not in second)
    n = len(in_order)
    table, sides, places = np.zeros((n, most), int), np.zeros((n, 2, most), int), np.zeros(len(pairs), int)
    bodies, signs = np.full((n, 2), t), np.zeros((n, 2))
    for row, of_pair in enumerate(in_order):
        table[row] = of_pair + of_pair[:1] * (most - len(of_pair))
        places[of_pair] = row * most + np.arange(len(of_pair))
        a, b = (blocks.of_mobods[side[of_pair[0]]] for side in (A, B))
        of_b, of_a = (b, 1.0, table[row]), (a, -1.0, [second.get(point, point) for point in table[row]])
        is_b_first = a == t or (b != t and b > a)
        for side, (body, sign, at) in enumerate((of_b, of_a) if is_b_first else (of_a, of_b)):
            sides[row, side], bodies[row, side], signs[row, side] = at, body, sign
    is_point = np.arange(most) < np.array([len(of_pair) for of_pair in in_order])[:, None]
    num_coupled = sum(of_pair[0] in second for of_pair in in_order)
    return ActingPlan(table, sides, is_point, places, bodies, signs, num_coupled, blocks)


def can_act(topology: TreeTopology, contacts: Any) -> bool:
    """Whether contacts can be searched by those that act: of free bodies, some of which may touch each other."""
    if not isinstance(contacts, ContactRows) or contacts.slots is not None or topology.followers:
        return False
    moved = contacts.moved
    if not isinstance(moved, MovedBodies) or len(moved.paths.points) == moved.paths.num_points:
        return False
    return are_free_bodies(topology)


class ActingRows(eqx.Module):
    """`ContactRows` of the contacts that act. Motion, impulse and stiffness have components, pairs and points.

    Pairs are in the order of the list, n of them and some more, so that turns of several pairs fill them.
    """

    pair: Int[Array, " n"]  # the list: pairs that act come first, and those that couple first of these
    count: Int[Array, ""]
    num_coupled: Int[Array, ""]
    is_acting: Bool[Array, " n"]  # of all pairs in their own order
    bodies: Int[Array, "n 2"]
    signs: Float[Array, "n 2"]
    p_TC_W: Float[Array, "n 2 3 k"]
    v_AcBc_W: Float[Array, "3 n k"]
    law_of_points: Any
    shared_law: Any
    S_T: Float[Array, "6 t+1 s"]
    plan_of: tuple = eqx.field(static=True)  # arguments of `acting_plan`
    num_world_axes: int = eqx.field(static=True)

    @property
    def plan(self) -> ActingPlan:
        """What is known whatever the state."""
        return acting_plan(*self.plan_of)

    @property
    def blocks(self) -> BodyBlocks:
        """The bodies' velocities."""
        return self.plan.blocks

    @property
    def num_together(self) -> int:
        """Pairs in a turn."""
        return pairs_together(self.plan, self.num_world_axes)

    def each(self, turn: Callable, start: Any, count: Array | None = None) -> Any:
        """Loops over the pairs that act, or the first `count`: `turn(index, carry)`."""
        return repeat_turns(self.count if count is None else count, turn, start)

    def each_couple(self, turn: Callable, start: Any) -> Any:
        """Loops over the pairs of bodies that move and touch, the later one first: `turn(high, low, carry)`."""

        def of_pair(index: Array, carry: Any) -> Any:
            return turn(*jnp.unstack(row_at(self.bodies, index)), carry)

        return self.each(of_pair, start, self.num_coupled)

    def several(self, turn: Callable, start: Any) -> Any:
        """Loops over the pairs that act, some at a time: `turn(first, carry)` with the index of the first."""
        size = np.int32(self.num_together)
        return repeat_turns((self.count + (size - 1)) // size, lambda k, carry: turn(k * size, carry), start)

    def apart(self, index: Array, function: Callable, *args: Any) -> Any:
        """Calls `function(*args)` in a loop with this index; of several worlds it is compiled apart from the loop."""
        return compiled_apart(index, function, *args) if self.num_world_axes else function(*args)

    def pairs_from(self, first: Array, x: Any) -> Any:
        """The pairs of a turn, from arrays with components, pairs and points; without components too."""
        size = self.num_together

        def of_array(x: Array) -> Array:
            axis = x.ndim - self.num_world_axes - 2
            return lax.dynamic_slice_in_dim(x, first, size, axis, allow_negative_indices=False)

        return jax.tree.map(of_array, x)

    def empty(self, components: int, like: Array) -> Float[Array, "c n k *w"]:
        """Zeros for some components of each point."""
        return jnp.zeros((components, *self.v_AcBc_W.shape[1:3], *self.worlds(like)), like.dtype)

    def worlds(self, like: Array) -> tuple[int, ...]:
        """Shape of the worlds of `like`."""
        return like.shape[like.ndim - self.num_world_axes :]

    def motion(self, dv: Float[Array, " nv"]) -> Float[Array, "3 n k"]:
        """Change J dv of the points' relative velocities."""
        x = with_still(in_blocks(self.blocks, dv))
        V = jnp.moveaxis(sum_in_order(self.S_T * x[None], 2), 0, 1)  # of each body

        def turn(index: Array, found: Array) -> Array:
            bodies = row_at(self.bodies, index)
            signs, p = row_at(self.signs, index), row_at(self.p_TC_W, index)
            v = self.apart(index, relative_velocities, signs, p, *(row_at(V, bodies[side]) for side in (0, 1)))
            return lax.dynamic_update_index_in_dim(found, v, index, 1, allow_negative_indices=False)

        return self.each(turn, self.empty(3, dv))

    def impulse(self, motion: Float[Array, "3 n k"]) -> Float[Array, "3 n k"]:
        """Impulses on B at C once the velocities have changed by `motion`."""
        return self.of_law(lambda law, v: law.impulse(v), 3, motion)

    def stiffness(self, motion: Float[Array, "3 n k"]) -> Float[Array, "6 n k"]:
        """Stiffness -d impulse / d motion, as the entries of a symmetric matrix."""
        return self.of_law(lambda law, v: law.stiffness(v), 6, motion)

    def sticking_law(self, motion: Float[Array, "3 n k"]) -> tuple[Float[Array, "3 n k"], Float[Array, "6 n k"]]:
        """Impulse and stiffness of the linear law of points that stick."""
        both = self.of_law(lambda law, v: jnp.concatenate(law.sticking_law(v)), 9, motion)
        return both[:3], both[3:]

    def of_law(self, function: Callable, components: int, motion: Float[Array, "3 n k"]) -> Float[Array, "c n k"]:
        """A function of the law and the velocity, for each pair that acts."""

        def of_pairs(law: Any, v: Array, motion: Array) -> Array:
            return function(eqx.combine(law, self.shared_law), v + motion)

        def turn(first: Array, found: Array) -> Array:
            given = self.pairs_from(first, (self.law_of_points, self.v_AcBc_W, motion))
            value = self.apart(first, of_pairs, *given)
            return lax.dynamic_update_slice_in_dim(found, value, first, 1, allow_negative_indices=False)

        return self.several(turn, self.empty(components, motion))

    def power_along(self, motion: Float[Array, "3 n k"], d: Float[Array, "3 n k"]) -> Callable[[Array], Array]:
        """s → d · impulse(motion + s d) and its derivative, (2, 1), summed over all points."""

        def of_pairs(total: Array, s: Array, law: Any, v: Array, motion: Array, d: Array) -> Array:
            law = eqx.combine(law, self.shared_law)
            of_pairs = sum_in_order(law.power_along(v + motion, d)(s), 2)
            return functools.reduce(operator.add, jnp.unstack(of_pairs, axis=1), total)  # zeros change nothing

        def power(s: Array) -> Float[Array, "2 1"]:
            def turn(first: Array, total: Array) -> Array:
                given = self.pairs_from(first, (self.law_of_points, self.v_AcBc_W, motion, d))
                return self.apart(first, of_pairs, total, s, *given)

            return self.several(turn, jnp.zeros((2, *self.worlds(motion)), motion.dtype))[:, None]

        return power

    def generalized(self, gamma: Float[Array, "3 n k"]) -> Float[Array, " nv"]:
        """Generalized impulses Jᵀ gamma."""

        def turn(index: Array, total: Array) -> Array:
            bodies, f = row_at(self.bodies, index), at_pair(gamma, index)
            signs, p = row_at(self.signs, index), row_at(self.p_TC_W, index)
            for side, F_T in enumerate(self.apart(index, forces_on_bodies, signs, p, f)):
                total = add_row(total, F_T, bodies[side])
            return total

        t = self.blocks.count
        F_T = self.each(turn, jnp.zeros((t + 1, 6, *self.worlds(gamma)), gamma.dtype))[:t]
        return from_blocks(self.blocks, sum_in_order(self.S_T[:, :t] * jnp.moveaxis(F_T, 1, 0)[:, :, None], 0))


def pairs_together(plan: ActingPlan, num_world_axes: int) -> int:
    """How many pairs share a turn: one of one world, else some `POINTS` points."""
    return max(1, min(POINTS // plan.points.shape[1], len(plan.points))) if num_world_axes else 1


def relative_velocities(signs: Array, p: Array, *V_T: Array) -> Float[Array, "3 k *w"]:
    """Velocities of B's material relative to A's at a pair's points, from those of the two bodies (6, *w)."""
    each = [sign * (V[3:, None] + ca.cross(V[:3, None], x)) for sign, x, V in zip(signs, p, V_T, strict=True)]
    return each[0] + each[1]


def forces_on_bodies(signs: Array, p: Array, f_Bc_W: Array) -> tuple[Float[Array, "6 *w"], ...]:
    """Spatial forces about T on a pair's two bodies, of forces on B at its points."""
    return tuple(
        sign * sum_in_order(ca.concatenate([ca.cross(x, f_Bc_W), f_Bc_W], 0), 1)
        for sign, x in zip(signs, p, strict=True)
    )


def at_pair(x: Float[Array, "c n k *w"], index: Array) -> Float[Array, "c k *w"]:
    """Reads one pair."""
    return lax.dynamic_index_in_dim(x, index, 1, False, allow_negative_indices=False)


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
    num_coupled = jnp.sum(is_acting[: plan.num_coupled], dtype=jnp.int32)
    size = pairs_together(plan, num_world_axes)
    places = -(-n // size) * size  # in whole turns

    def of_points(x: Any) -> bool:
        return eqx.is_array(x) and x.ndim > num_world_axes

    by_point, shared = eqx.partition(law, of_points)
    tables = tuple(jnp.asarray(x, jnp.int32) for x in (plan.points, plan.sides)), jnp.asarray(plan.is_point)

    def chosen(x: Array, index: Array) -> Array:
        axis = x.ndim - num_world_axes - 1
        return x.at[(slice(None),) * axis + (index,)].get(mode="promise_in_bounds")

    def of_pair(index: Array) -> tuple:
        (points, sides), is_point = row_at(tables, index)
        law = jax.tree.map(lambda x: chosen(x, points), by_point)
        is_point = is_point.reshape(k, *(1,) * num_world_axes)
        law = eqx.tree_at(lambda law: law.active, law, law.active & is_point)
        p = jnp.stack([chosen(moved.p_TC_W, sides[side]) for side in (0, 1)])
        return p, (chosen(contacts.v_AcBc_W, points), law)

    def write(x: Array, row: Array, index: Array) -> Array:
        axis = row.ndim - num_world_axes - 1
        return lax.dynamic_update_index_in_dim(x, row, index, axis, allow_negative_indices=False)

    def turn(index: Array, found: tuple) -> tuple:
        p, others = of_pair(row_at(pair, index))
        return with_row(found[0], p, index), jax.tree.map(lambda x, row: write(x, row, index), found[1], others)

    def nothing(x: Any) -> Array:
        axis = len(x.shape) - num_world_axes - 1
        return jnp.zeros((*x.shape[:axis], places, *x.shape[axis:]), x.dtype)

    of_p, others = jax.eval_shape(of_pair, jax.ShapeDtypeStruct((), jnp.int32))
    start = jnp.zeros((places, *of_p.shape), of_p.dtype), jax.tree.map(nothing, others)
    p, (v, of_law) = repeat_turns(count, turn, start)
    bodies, signs = jnp.asarray(plan.bodies, jnp.int32)[pair], jnp.asarray(plan.signs, p.dtype)[pair]
    S_T = jnp.stack([with_still(in_blocks(plan.blocks, x)) for x in jnp.unstack(moved.S_T)])
    of_list = pair, count, num_coupled, is_acting, bodies, signs
    return ActingRows(*of_list, p, v, of_law, shared, S_T, plan_of, num_world_axes)


def to_points(rows: ActingRows, x: Float[Array, "c n k"] | None) -> Float[Array, "c m"]:
    """Numbers of all points in their own order, from those of the list; zero where a pair does not act."""
    assert x is not None
    n, is_one_world = len(rows.pair), rows.num_world_axes == 0

    def note(index: Array, places: Array) -> Array:
        return with_row(places, index, row_at(rows.pair, index))

    place = rows.each(note, jnp.zeros(n, jnp.int32)) if is_one_world else jnp.argsort(rows.pair)
    by_pair = x.at[:, place].get(mode="promise_in_bounds")
    is_acting = rows.is_acting.reshape(n, *(1,) * (x.ndim - 2))
    return take(jnp.where(is_acting, by_pair, 0.0).reshape(x.shape[0], -1, *x.shape[3:]), rows.plan.places, 1)
