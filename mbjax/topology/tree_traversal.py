"""The one place that walks the tree.

Three kinds of walk are all the algorithms need:

- Sums along paths and over subtrees are linear: a product with a constant 0/1 matrix, one kernel whatever
  the tree, and its own transpose in reverse mode; of one world and in large trees, on a CPU, a rolled loop (`roll`),
  likewise.
- Products of rotations along paths (`compose_outward`) are a recursion outward, rolled into one loop body; of many
  worlds on an accelerator, log2(depth) products of all mobods at once. The derivative of poses does not go through it.
- The articulated inertias are a recursion inward, `scan_inward`, and their solution one outward,
  `scan_outward`. Neither is ever differentiated: the derivative of forward dynamics needs only its solution.

Arrays keep components first, then mobods (or velocities), then worlds if there are several.
"""

import functools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import ShapedArray
from jax.extend.core import Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Bool, Float

from mbjax.chunks import compiled_apart
from mbjax.manual_axes import keeping_axes, varying_alike, varying_axes
from mbjax.spatial import written_out as wo
from mbjax.spatial.component_algebra import matmul
from mbjax.stages import Row, are_few

from .columns import take
from .mask_products import dot_with_mask
from .tree_topology import TreeTopology

LARGEST_IN_PRODUCTS = 48  # mobods


def sum_over_path(topology: TreeTopology, x: Float[Array, "k nm"]) -> Float[Array, "k nm"]:
    """Per mobod, the sum over itself and its ancestors."""
    if is_rolled(topology, x):
        return roll_p.bind(x, parents=mobod_parents(topology), inward=False)
    return dot_with_mask(x, topology.is_ancestor.T, 1)


def sum_over_subtree(topology: TreeTopology, x: Float[Array, "k nm"]) -> Float[Array, "k nm"]:
    """Per mobod, the sum over itself and everything outboard."""
    if is_rolled(topology, x):
        return roll_p.bind(x, parents=mobod_parents(topology), inward=True)
    return dot_with_mask(x, topology.is_ancestor, 1)


def sum_velocities_over_path(topology: TreeTopology, x: Float[Array, "k nd"]) -> Float[Array, "k nm"]:
    """Per mobod, the sum over the directions that move it."""
    if is_rolled(topology, x):
        sums = roll_p.bind(x, parents=direction_parents(topology), inward=False)
        of_world = jnp.zeros_like(x, shape=(x.shape[0], 1, *x.shape[2:]))
        return take(jnp.concatenate([of_world, sums], 1), last_velocities(topology), 1)
    return dot_with_mask(x, topology.moves, 1)


def sum_moved_mobods(topology: TreeTopology, x: Float[Array, "k nm"]) -> Float[Array, "k nd"]:
    """Per direction, the sum over the mobods it moves."""
    if is_rolled(topology, x):
        return take(roll_p.bind(x, parents=mobod_parents(topology), inward=True), topology.velocity_mobods, 1)
    return dot_with_mask(x, topology.moves.T, 1)


def is_rolled(topology: TreeTopology, x: Float[Array, "k n *w"]) -> bool:
    """Whether sums are rolled loops over nodes: of one world, and in large trees. O(n), and no products of matrices."""
    return x.ndim == 2 or len(topology.parents) > LARGEST_IN_PRODUCTS


def roll(x: Float[Array, "k n *w"], *, parents: tuple[int, ...], inward: bool) -> Float[Array, "k n *w"]:
    """Per node, the sum over itself and all outboard or all inboard of it."""

    def step(neighbours: Array, own: Array) -> tuple[Array, Array]:
        total = neighbours + own
        return total, total

    plan, rows, several_worlds = walk_plan(parents), jnp.moveaxis(x, 1, 0), x.ndim > 2
    zero = jnp.zeros_like(x, shape=(x.shape[0], *x.shape[2:]))
    if inward:
        return jnp.moveaxis(scan_inward(plan, step, rows, zero, several_worlds)[0], 0, 1)
    return jnp.moveaxis(scan_outward(plan, step, rows, zero, several_worlds), 0, 1)


def batch_roll(args: tuple, dims: tuple, **params: Any) -> tuple[Array, int]:
    """The rule of `vmap`: more rows."""
    x = jnp.moveaxis(args[0], dims[0], 0)
    worlds, k, *rest = x.shape
    return roll_p.bind(x.reshape(worlds * k, *rest), **params).reshape(x.shape), 0


def transpose_roll(cotangent: Array, _: Any, *, parents: tuple[int, ...], inward: bool) -> list[Array]:
    """The sums the other way; JAX would keep a stack of what the loop never reads."""
    return [roll_p.bind(cotangent, parents=parents, inward=not inward)]


def sum_by_product(x: Float[Array, "k n *w"], *, parents: tuple[int, ...], inward: bool) -> Float[Array, "k n *w"]:
    """The same as a product of matrices: one kernel where starting one takes long."""
    is_ancestor = ancestors(parents)
    return dot_with_mask(x, is_ancestor if inward else is_ancestor.T, 1)


@functools.cache
def ancestors(parents: tuple[int, ...]) -> Bool[np.ndarray, "n n"]:
    """Whether b is a or inboard of a, of nodes 1..n with these parents."""
    is_ancestor = np.eye(len(parents) + 1, dtype=bool)
    for node, parent in enumerate(parents, start=1):
        is_ancestor[node] |= is_ancestor[parent]
    return is_ancestor[1:, 1:]


roll_p = Primitive("roll")
roll_p.def_impl(jax.jit(roll, static_argnames=("parents", "inward")))
roll_p.def_abstract_eval(keeping_axes(lambda x, **_: ShapedArray(x.shape, x.dtype)))
ad.deflinear2(roll_p, transpose_roll)
batching.primitive_batchers[roll_p] = batch_roll
mlir.register_lowering(roll_p, mlir.lower_fun(sum_by_product, multiple_results=False))
mlir.register_lowering(roll_p, mlir.lower_fun(roll, multiple_results=False), platform="cpu")


def compose_outward(topology: TreeTopology, R_PM: Float[Array, "3 3 nm *w"]) -> Float[Array, "3 3 nm *w"]:
    """R_WM of every mobod from the rotations R_PM in their parents; the world's own is the identity."""
    roll = partial(roll_rotations_outward, topology.mobod_parents[1:])
    if R_PM.ndim == 3:
        return roll(R_PM)
    return lax.platform_dependent(R_PM, cpu=roll, default=partial(jump_rotations_outward, topology.mobod_parents))


@partial(jax.jit, static_argnums=0, inline=True)  # called outside `jit`, JAX would compile the loop anew at every call
def roll_rotations_outward(parents: tuple[int, ...], R_PM: Float[Array, "3 3 nm *w"]) -> Float[Array, "3 3 nm *w"]:
    """Products along paths, mobod by mobod; `parents` are those of all mobods but the world."""
    worlds = R_PM.shape[3:]
    identity = jnp.eye(3, dtype=R_PM.dtype).reshape(3, 3, *(1 for _ in worlds))
    identity = jnp.broadcast_to(identity, (3, 3, *worlds))

    def step(R_WP: Array, R_PM: Array) -> tuple[Array, Array]:
        R_WM = matmul(R_WP, R_PM)
        return R_WM, R_WM

    plan, several_worlds = walk_plan(parents), bool(worlds)
    R_WM = scan_outward(plan, step, jnp.moveaxis(R_PM[:, :, 1:], 2, 0), identity, several_worlds)
    return jnp.moveaxis(jnp.concatenate([identity[None], R_WM]), 0, 2)


def jump_rotations_outward(parents: tuple[int, ...], R_PM: Float[Array, "3 3 nm w"]) -> Float[Array, "3 3 nm w"]:
    """The same in log2(depth) products of all mobods: each with that of the mobod 1, 2, 4, … steps inboard."""
    inboard, R = np.maximum(np.array(parents), 0), R_PM
    while inboard.any():
        R = matmul(take(R, inboard, 2), R)
        inboard = inboard[inboard]
    return R


def direction_parents(topology: TreeTopology) -> tuple[int, ...]:
    """The tree seen one direction at a time, 1-based with 0 the world: the direction inboard of each.

    Several directions of one joint follow one another at the same point.
    """
    starts, counts = topology.mobod_v_starts, topology.mobod_num_velocities
    inboard = []
    for j, mobod in enumerate(topology.velocity_mobods):
        parent = topology.mobod_parents[mobod]
        first = j == starts[mobod]
        inboard.append(j if not first else (starts[parent] + counts[parent] if parent > 0 else 0))
    return tuple(inboard)


def free_base(topology: TreeTopology) -> list[int]:
    """The six directions of a body that moves freely, of several the one that carries most; none: []."""
    starts, counts = topology.mobod_v_starts, topology.mobod_num_velocities
    carried = topology.is_ancestor.sum(0)
    free = [k for k, parent in enumerate(topology.mobod_parents) if parent == 0 and counts[k] == 6]
    start = starts[max(free, key=lambda k: carried[k])] if free else 0
    return list(range(start, start + 6)) if free else []


def parents_beyond(topology: TreeTopology, base: Sequence[int]) -> tuple[int, ...]:
    """`direction_parents` of the directions that are not those of a base; ON_BASE where it is one of those."""
    parents = direction_parents(topology)
    number = np.cumsum([0, *(j not in base for j in range(len(parents)))])
    return tuple(
        ON_BASE if parent - 1 in base else int(number[parent]) for j, parent in enumerate(parents) if j not in base
    )


def mobod_parents(topology: TreeTopology) -> tuple[int, ...]:
    """The tree of mobods, the world the first of its nodes, 1-based."""
    return tuple(parent + 1 for parent in topology.mobod_parents)


def last_velocities(topology: TreeTopology) -> list[int]:
    """Per mobod, the outermost direction that moves it, 1-based; 0 for none."""
    last = [0]
    for parent, start, count in zip(
        topology.mobod_parents[1:], topology.mobod_v_starts[1:], topology.mobod_num_velocities[1:], strict=True
    ):
        last.append(start + count if count else last[parent])
    return last


ON_BASE = -1  # the parent of nodes that are on a body which is not among the nodes


class WalkPlan(NamedTuple):
    """How a scan meets the nodes 1..n of a tree in depth-first order.

    What a node has for its children waits in one of `num_places` places until the last of them was met: in the first
    what the world has, in the second what a base has that is not met. The nodes are met as numbered where few places
    are enough, else with the largest subtree of each node last: then at most log2(n) wait at a time, whatever the tree.
    """

    order: np.ndarray | None  # (n,) the node met at each step, from 0; None: as numbered
    place: np.ndarray  # (n,) by step: where the node's own waits
    inboard: np.ndarray  # (n,) by step: where its parent's waits
    has_children: np.ndarray  # (n,) by step
    is_last: np.ndarray  # (n,) by step: whether it is the last child of its parent
    num_places: int


WORLD, BASE = 0, 1  # places
FEW_PLACES = 3  # besides those two: another order of the nodes costs a copy of all rows


@functools.cache
def walk_plan(parents: tuple[int, ...]) -> WalkPlan:
    """The plan for nodes 1..n with these parents, each numbered after its parent."""
    plan = plan_as_numbered(parents)
    if plan.num_places <= 2 + FEW_PLACES:
        return plan
    order = largest_subtree_last(parents)
    step_of = {node: step for step, node in enumerate(order, start=1)} | {0: 0, ON_BASE: ON_BASE}
    plan = plan_as_numbered(tuple(step_of[parents[node - 1]] for node in order))
    return plan._replace(order=np.array(order) - 1)


def plan_as_numbered(parents: tuple[int, ...]) -> WalkPlan:
    """The plan for nodes that are numbered depth first."""
    last_child = {parent: node for node, parent in enumerate(parents, start=1)}
    places, free = {0: WORLD, ON_BASE: BASE}, []
    num_places = 2
    for node, parent in enumerate(parents, start=1):
        if parent > 0 and last_child[parent] == node:
            free.append(places[parent])
        if not free:
            free.append(num_places)
            num_places += 1
        places[node] = free[-1]
        if node in last_child:
            free.pop()
    nodes = range(1, len(parents) + 1)
    return WalkPlan(
        order=None,
        place=np.array([places[node] for node in nodes], np.int32),
        inboard=np.array([places[parent] for parent in parents], np.int32),
        has_children=np.array([node in last_child for node in nodes], bool),
        is_last=np.array([last_child[parent] == node for node, parent in enumerate(parents, start=1)], bool),
        num_places=num_places,
    )


def largest_subtree_last(parents: tuple[int, ...]) -> list[int]:
    """The nodes depth first, the children of each by the size of their subtrees."""
    n = len(parents)
    sizes = [1] * (n + 1)
    children: list[list[int]] = [[] for _ in range(n + 1)]
    for node in range(n, 0, -1):
        parent = max(parents[node - 1], 0)
        sizes[parent] += sizes[node]
        children[parent].append(node)
    order, to_visit = [], [0]
    while to_visit:
        node = to_visit.pop()
        order.append(node)
        to_visit += sorted(children[node], key=lambda child: -sizes[child])
    return order[1:]


def in_order_of_walk(plan: WalkPlan, tree: Any) -> Any:
    """Arrays over nodes, as the scan meets them."""
    return tree if plan.order is None else jax.tree.map(lambda x: take(x, plan.order, 0), tree)


def as_numbered(plan: WalkPlan, tree: Any) -> Any:
    """The inverse of `in_order_of_walk`."""
    if plan.order is None:
        return tree
    step_of = np.argsort(plan.order)
    return jax.tree.map(lambda x: take(x, step_of, 0), tree)


def call_step(index: Array, step: Callable, value: Any, x: Any, several_worlds: bool) -> Any:
    """`step(value, x)`, of several worlds apart from the loop around it."""
    return compiled_apart(index, step, value, x) if several_worlds else step(value, x)


def read_row(rows: Any, index: Array) -> Any:
    """The row of that index of each array."""
    return jax.tree.map(lambda x: lax.dynamic_index_in_dim(x, index, 0, False, allow_negative_indices=False), rows)


def write_row(rows: Any, index: Array, values: Any) -> Any:
    """With the values in the rows of that index; parts one by one, which is one copy less than to put them together."""

    def write_one(x: Array, value: Array | wo.Parts) -> Array:
        if not isinstance(value, wo.Parts):
            return lax.dynamic_update_index_in_dim(x, value, index, 0, allow_negative_indices=False)
        for k, part in enumerate(value):
            part = jnp.broadcast_to(part, x.shape[2:])[None, None]
            at = (index, jnp.full_like(index, k), *[jnp.zeros_like(index)] * (x.ndim - 2))
            x = lax.dynamic_update_slice(x, part, at, allow_negative_indices=False)
        return x

    return jax.tree.map(write_one, rows, values)


def add_to(rows: Any, index: Array, values: Any, is_only: Array) -> Any:
    """With the values added to the rows of that index, or in their place if they are the only ones."""

    def total(before: Array, value: Array) -> Array:
        return jnp.where(is_only, value, value + before)

    return write_row(rows, index, jax.tree.map(total, read_row(rows, index), values))


def traced_step(step: Callable, num_nodes: int, *args: Any) -> tuple[Callable, Any]:
    """The step, which is traced here and not again, and zeros for what all its calls keep.

    Inside `jax.shard_map` it is traced again: of what differs between devices nothing is known here.
    """
    jaxpr, results = jax.make_jaxpr(step, return_shape=True)(*args)
    treedef = jax.tree.structure(results)

    def zeros(x: Any) -> Array:
        shapes = [part.shape for part in x] if isinstance(x, wo.Parts) else [x.shape]
        count, dtype = ((len(x),), x[0].dtype) if isinstance(x, wo.Parts) else ((), x.dtype)
        return jnp.zeros((num_nodes, *count, *jnp.broadcast_shapes(*shapes)), dtype)

    def again(*args: Any) -> Any:
        if any(map(varying_axes, jax.tree.leaves(args))):
            return step(*args)
        return jax.tree.unflatten(treedef, jaxpr_as_fun(jaxpr)(*jax.tree.leaves(args)))

    return again, jax.tree.map(zeros, results[1], is_leaf=lambda x: isinstance(x, wo.Parts))


def rows_at(tree: Any, index: Array, is_there: Array | None = None) -> Any:
    """The row of that index of each array, which the stages of a step read."""
    return jax.tree.map(lambda x: Row(x, index, is_there), tree)


def first_rows(tree: Any) -> Any:
    """What the first row of each array is like."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), tree)


INDEX, FLAG = jax.ShapeDtypeStruct((), jnp.int32), jax.ShapeDtypeStruct((), bool)


def scan_inward(
    plan: WalkPlan,
    step: Callable[[Any, Any], tuple[Any, Any]],
    xs: Any,
    zero: Any,
    several_worlds: bool = False,
    staged: bool = False,
) -> tuple[Any, Any]:
    """From the tips to the world, adding up in each node what comes from outboard.

    `step(collected, x)` gets the sum of what the outboard nodes handed on, and returns what this one hands on,
    with an output to keep. Returns the outputs stacked over nodes, and what was handed on to the base. A step that is
    `staged` may get `Row`s.
    """
    num_nodes, xs = len(plan.place), in_order_of_walk(plan, xs)
    places = jax.tree.map(lambda x: jnp.zeros((plan.num_places, *x.shape), x.dtype), zero)
    scalars = np.arange(num_nodes, dtype=np.int32), plan.place, plan.inboard, plan.has_children, plan.is_last

    def in_rows(places: Any, place: Array, has_children: Array, xs: Any, index: Array) -> tuple[Any, Any]:
        return step(rows_at(places, place, has_children), rows_at(xs, index))

    staged = staged and are_few(jax.tree.leaves(zero)[0].shape[1:])
    if staged:
        traced, kept = traced_step(in_rows, num_nodes, places, INDEX, FLAG, xs, INDEX)
    else:
        traced, kept = traced_step(step, num_nodes, zero, first_rows(xs))

    def body(carry: tuple[Any, Any], element: Any) -> tuple[Any, None]:
        (places, kept), ((index, place, inboard, has_children, is_only), x) = carry, element
        if staged:
            handed_on, own = traced(places, place, has_children, xs, index)
        else:
            collected = jax.tree.map(lambda y: jnp.where(has_children, y, 0.0), read_row(places, place))
            handed_on, own = call_step(index, traced, collected, x, several_worlds)
        return (add_to(places, inboard, handed_on, is_only), write_row(kept, index, own)), None

    places, kept, xs = varying_alike((places, kept, xs))
    if num_nodes:
        elements = jax.tree.map(jnp.asarray, scalars), None if staged else xs
        (places, kept), _ = lax.scan(body, (places, kept), elements, reverse=True)
    return as_numbered(plan, kept), jax.tree.map(lambda x: x[BASE], places)


def scan_outward(
    plan: WalkPlan,
    step: Callable[[Any, Any], tuple[Any, Any]],
    xs: Any,
    world: Array,
    several_worlds: bool = False,
    base: Array | float = 0.0,
    staged: bool = False,
) -> Any:
    """From the world to the tips: `step(inboard_value, x)` returns its own value and an output to keep.

    `base` is the value of the base, where some are on one. A step that is `staged` may get `Row`s.
    """
    num_nodes, xs = len(plan.place), in_order_of_walk(plan, xs)
    places = jnp.stack([world, jnp.broadcast_to(base, world.shape), *[jnp.zeros_like(world)] * (plan.num_places - 2)])
    scalars = np.arange(num_nodes, dtype=np.int32), plan.place, plan.inboard

    def in_rows(places: Array, inboard: Array, xs: Any, index: Array) -> tuple[Any, Any]:
        return step(Row(places, inboard), rows_at(xs, index))

    staged = staged and are_few(world.shape[1:])
    if staged:
        traced, kept = traced_step(in_rows, num_nodes, places, INDEX, xs, INDEX)
    else:
        traced, kept = traced_step(step, num_nodes, world, first_rows(xs))

    def body(carry: tuple[Array, Any], element: Any) -> tuple[Any, None]:
        (places, kept), ((index, place, inboard), x) = carry, element
        if staged:
            value, own = traced(places, inboard, xs, index)
        else:
            value, own = call_step(index, traced, read_row(places, inboard), x, several_worlds)
        return (write_row(places, place, value), write_row(kept, index, own)), None

    places, kept, xs = varying_alike((places, kept, xs))
    if num_nodes:
        elements = jax.tree.map(jnp.asarray, scalars), None if staged else xs
        (_, kept), _ = lax.scan(body, (places, kept), elements)
    return as_numbered(plan, kept)
