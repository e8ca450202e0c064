"""Products with the masks of large trees, taken apart, equal the plain ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.execution.arrays import dot_with_mask
from mbjax.execution.linear.mask_products import BLOCK, LARGEST_WHOLE, mask_parts
from tests.topology.test_tree_traversal import caterpillar, random_depth_first

TREES = {
    "chain": tuple(range(300)),
    "caterpillar": caterpillar(150),
    "random": random_depth_first(7, 400),
    "star": (0,) * 150,
}


def masks(parents: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Of mobods, of one to three velocities each, and within the trees of the world's children."""
    n = len(parents)
    is_ancestor = np.eye(n + 1, dtype=bool)
    for node, parent in enumerate(parents, start=1):
        is_ancestor[node] |= is_ancestor[parent]
    owner = np.repeat(np.arange(1, n + 1), np.random.default_rng(1).integers(1, 4, n))
    within = is_ancestor & ~np.isin(np.arange(n + 1), [0, *np.flatnonzero(np.array(parents) == 0) + 1])
    shuffled = np.random.default_rng(3).permutation(n + 1)
    return {
        "path": is_ancestor.T,
        "velocities": is_ancestor[:, owner].T,
        "within trees": within.T,
        "in no order": is_ancestor[shuffled],
    }


@pytest.mark.parametrize("name", TREES)
def test_parts_equal_the_whole(name: str) -> None:
    for what, mask in masks(TREES[name]).items():
        assert mask.size > LARGEST_WHOLE
        for matrix in (mask, mask.T):
            for shape, axis in (((3, matrix.shape[0]), 1), ((2, matrix.shape[0], 5), 1), ((matrix.shape[0],), 0)):
                x = np.random.default_rng(2).integers(-50, 50, shape).astype(float)
                y = jax.jit(lambda x, axis=axis, matrix=matrix: dot_with_mask(x, matrix, axis))(jnp.asarray(x))
                np.testing.assert_array_equal(y, np.moveaxis(np.tensordot(x, matrix, (axis, 0)), -1, axis), what)


def test_a_chain_has_one_shared_column_per_block() -> None:
    mask = masks(tuple(range(1000)))["path"]
    parts = mask_parts(np.packbits(mask).tobytes(), mask.shape)
    assert parts.shared.shape[1] == parts.blocks.shape[0] == -(-1001 // BLOCK)
