"""The walk of a tree on trees of every shape: sums over paths and subtrees, with few places to wait."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.execution.recursion.walk_plan import FEW_PLACES
from mbjax.execution.recursions import parts, scan_inward, scan_outward, walk_plan
from mbjax.topology import sum_moved_mobods, sum_over_path, sum_over_subtree, sum_velocities_over_path
from mbjax.topology.tree_traversal import jump_rotations_outward, roll, roll_p, roll_rotations_outward, sum_by_product
from tests.models import random_tree


def caterpillar(length: int) -> tuple[int, ...]:
    """A spine whose every node has a leg declared after the rest of the spine."""
    return (*range(length), *range(length, 0, -1))


def random_depth_first(seed: int, n: int) -> tuple[int, ...]:
    """Nodes numbered depth first: each hangs on the one before or on an ancestor of it."""
    rng = np.random.default_rng(seed)
    parents: list[int] = []
    for node in range(1, n + 1):
        path = [node - 1]
        while path[-1] > 0:
            path.append(parents[path[-1] - 1])
        parents.append(int(rng.choice(path)))
    return tuple(parents)


TREES = {
    "chain": tuple(range(12)),
    "star": (0,) * 9,
    "caterpillar": caterpillar(40),
    **{f"random {seed}": random_depth_first(seed, 60) for seed in range(4)},
}


MORE = pytest.mark.whole_run("random 0")
NAMES = [pytest.param(name, marks=[MORE] * (name in ("random 1", "random 2", "random 3"))) for name in TREES]


@pytest.mark.parametrize("name", TREES)
def test_walks_sum_over_paths_and_subtrees(name: str) -> None:
    parents = TREES[name]
    n = len(parents)
    plan = walk_plan(parents)
    values = np.random.default_rng(0).integers(1, 100, n).astype(float)
    over_path, over_subtree = np.zeros(n + 1), np.append(0.0, values)
    for node, parent in enumerate(parents, start=1):
        over_path[node] = over_path[parent] + values[node - 1]
    for node in range(n, 0, -1):
        over_subtree[parents[node - 1]] += over_subtree[node]

    outward = scan_outward(plan, lambda inboard, x: (inboard + x, inboard + x), jnp.asarray(values), jnp.zeros(()))
    inward, _ = scan_inward(plan, lambda outboard, x: (outboard + x, outboard + x), jnp.asarray(values), jnp.zeros(()))
    np.testing.assert_array_equal(outward, over_path[1:])
    np.testing.assert_array_equal(inward, over_subtree[1:])
    assert plan.num_places <= 2 + max(FEW_PLACES, 1 + np.log2(n))


@pytest.mark.parametrize("name", NAMES)
def test_walks_meet_a_base(name: str) -> None:
    """Every other root of a tree is on a base of value 100, the others on the world."""
    roots = np.cumsum([parent == 0 for parent in TREES[name]])
    is_root = [parent == 0 for parent in TREES[name]]
    parents = tuple(-1 if root and k % 2 else p for p, root, k in zip(TREES[name], is_root, roots, strict=True))
    plan, values = walk_plan(parents), jnp.arange(1.0, 1.0 + len(parents))
    on_base = roots % 2 == 1
    outward = scan_outward(
        plan, lambda inboard, x: (inboard + x, inboard + x), values, jnp.zeros(()), base=jnp.asarray(100.0)
    )
    without = scan_outward(walk_plan(TREES[name]), lambda inboard, x: (inboard + x, inboard + x), values, jnp.zeros(()))
    np.testing.assert_array_equal(outward, without + 100.0 * on_base)
    _, at_base = scan_inward(plan, lambda outboard, x: (outboard + x, outboard + x), values, jnp.zeros(()))
    assert at_base == values[on_base].sum() > 0.0


@pytest.mark.parametrize("worlds", [1, 2, 128])
def test_parts_are_added_like_arrays_and_no_number_waits(worlds: int) -> None:
    """Part by part as well: places are used again, and what is no number in one tree stays out of the next."""
    plan = walk_plan((0, 1, 1, 0, 4, 4))  # two forks, of which the second is met first
    values = np.random.default_rng(3).normal(size=(6, 2, worlds))
    values[4, :, 0] = np.nan, np.inf

    def step(outboard, x):
        total = outboard + x
        return parts(total[0], total[1]), total

    def array_step(outboard, x):
        return outboard + x, outboard + x

    xs, zero = jnp.asarray(values), jnp.zeros((2, worlds))
    for handed_on in (step, array_step):
        found, _ = jax.jit(lambda xs, f=handed_on: scan_inward(plan, f, xs, zero, staged=False))(xs)
        expected = values.copy()
        expected[0] += values[1] + values[2]
        expected[3] += values[4] + values[5]
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_rotations_are_composed_alike_by_rolling_and_by_jumping(name: str) -> None:
    """Of many worlds a CPU rolls and an accelerator jumps; one world at a time is the reference."""
    parents = TREES[name]
    n, worlds = len(parents), 3
    R_PM, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(worlds, n, 3, 3)))
    R_PM = np.concatenate([np.broadcast_to(np.eye(3), (worlds, 1, 3, 3)), R_PM], axis=1)
    R_WM = R_PM.copy()
    for node, parent in enumerate(parents, start=1):
        R_WM[:, node] = R_WM[:, parent] @ R_PM[:, node]

    components_first = jnp.asarray(R_PM.transpose(2, 3, 1, 0))
    rolled = roll_rotations_outward(parents, components_first)
    jumped = jump_rotations_outward((-1, *parents), components_first)
    of_one_world = roll_rotations_outward(parents, components_first[..., 1])
    for R, expected in ((rolled, R_WM), (jumped, R_WM), (of_one_world[..., None], R_WM[1:2])):
        np.testing.assert_allclose(np.asarray(R).transpose(3, 2, 0, 1), expected, rtol=0, atol=1e-14 * n)


@pytest.mark.parametrize("name", NAMES)
def test_rolled_sums_equal_products(name: str) -> None:
    """On every platform and in large trees: of one world and several, under `vmap`, and transposed."""
    parents = TREES[name]
    rng = np.random.default_rng(0)
    x, ct = (jnp.asarray(rng.integers(-9, 9, (2, len(parents), 3)), float) for _ in range(2))
    for inward in (True, False):
        bound, rolled, product, back = (
            functools.partial(f, parents=parents, inward=way)
            for f, way in (
                (roll_p.bind, inward),
                (roll, inward),
                (sum_by_product, inward),
                (sum_by_product, not inward),
            )
        )
        expected = product(x)
        for function in (bound, jax.jit(bound), jax.jit(rolled), jax.vmap(bound, in_axes=-1, out_axes=-1)):
            np.testing.assert_array_equal(function(x), expected)
        np.testing.assert_array_equal(jax.vmap(bound)(jnp.stack([x, ct]))[0], expected)
        np.testing.assert_array_equal(jax.linear_transpose(bound, x)(ct)[0], back(ct))


def test_sums_of_one_world_are_each_others_transpose() -> None:
    """As of many worlds, where they are products with masks; and reverse mode is the loop the other way, no longer."""
    topology = random_tree(3, ("revolute", "universal", "prismatic", "revolute", "quaternion_floating")).model.topology
    rng = np.random.default_rng(1)
    for total in (sum_over_path, sum_over_subtree, sum_moved_mobods, sum_velocities_over_path):
        n = topology.num_directions if total is sum_velocities_over_path else topology.num_mobods
        x, dx = (jnp.asarray(rng.normal(size=(8, n))) for _ in range(2))  # more rows than one loop takes
        of_one = functools.partial(total, topology)
        expected = of_one(jnp.stack([x, dx], -1))
        got, tangent = jax.jvp(of_one, (x,), (dx,))
        np.testing.assert_allclose(jnp.stack([got, tangent], -1), expected, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(jax.vmap(of_one)(jnp.stack([x, dx])), jnp.stack([got, tangent]), rtol=0, atol=0)
        ct = jnp.asarray(rng.normal(size=got.shape))
        (back,) = jax.vjp(of_one, x)[1](ct)
        assert float(jnp.sum(back * dx)) == pytest.approx(float(jnp.sum(ct * tangent)), rel=1e-12)

    def count_operations(function) -> int:
        return jax.jit(function).lower(x[:6]).as_text().count(" = stablehlo.")

    x = jnp.ones((8, topology.num_mobods))
    inward, outward = (functools.partial(total, topology) for total in (sum_over_subtree, sum_over_path))
    for there, back in ((inward, outward), (outward, inward)):
        transpose = jax.linear_transpose(there, x[:6])
        assert count_operations(lambda ct, transpose=transpose: transpose(ct)[0]) == count_operations(back)
