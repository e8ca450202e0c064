"""Inverts a symmetric matrix with the sparsity of a tree, entry by entry, for many worlds in one kernel on a CPU.

With A = Lᵀ D L (`branch_factor`) and N = L⁻¹, whose row k has entries at the ancestors of k and at k itself, like L:

    N_k = e_k - the sum of L_ki N_i over the ancestors i of k
    (A⁻¹)_ab = the sum of N_ak N_bk / D_k over the nodes k that the paths of a and b share
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from mbjax.execution.recursions import Row, computed_once, read_row

from .branch_factor import Parents, paths
from .entries import Index, entry, with_entry


def invert_along_paths(parents: Parents, A: Float[Array, "n n w"]) -> Float[Array, "n n w"]:
    """A⁻¹, entry by entry along paths."""
    n, inboard = A.shape[0], jnp.asarray(np.array(parents, np.int32) - 1)

    def along_path(k: Index, carry: Array, body: Callable[[Array, Index], Array]) -> Array:
        """Runs `body` for k and its ancestors, inward."""

        def to_next(state: tuple[Array, Index]) -> tuple[Array, Index]:
            return body(*state), read_row(inboard, state[1])

        return lax.while_loop(lambda state: state[1] >= 0, to_next, (carry, k))[0]

    def beyond(k: Index, carry: Array, body: Callable[[Array, Index], Array]) -> Array:
        """Runs `body` for the ancestors of k, inward."""
        return along_path(read_row(inboard, k), carry, body)

    def subtract(M: Array, i: Index, j: Index, factor: Array | Row, other: Row) -> Array:
        return with_entry(M, computed_once(lambda x, a, y: x - a * y, entry(M, i, j), factor, other), i, j)

    def eliminate(m: Index, A: Array) -> Array:
        k = jnp.asarray(n - 1, m.dtype) - m

        def at(A: Array, i: Index) -> Array:
            L_ki = computed_once(jnp.divide, entry(A, k, i), entry(A, k, k))
            A = along_path(i, A, lambda A, j: subtract(A, i, j, L_ki, entry(A, k, j)))
            return with_entry(A, L_ki, k, i)

        return beyond(k, A, at)

    def invert_row(k: Index, N: Array) -> Array:
        def at(N: Array, i: Index) -> Array:
            return along_path(i, N, lambda N, j: subtract(N, k, j, entry(L, k, i), entry(N, i, j)))

        return beyond(k, N, at)

    def multiply_row(a: Index, inverse: Array) -> Array:
        def at(b: Index, inverse: Array) -> Array:
            def add(total: Array, k: Index) -> Array:
                return computed_once(add_product, total, entry(N, a, k), entry(N, b, k), Row(one_over_D, k))

            total = along_path(read_row(in_common, a * n + b), jnp.zeros(A.shape[2:], A.dtype), add)
            return with_entry(with_entry(inverse, total, b, a), total, a, b)

        return lax.fori_loop(jnp.int32(0), a + 1, at, inverse)

    L = lax.fori_loop(jnp.int32(0), jnp.int32(n), eliminate, A)
    one_over_D = lax.map(lambda k: 1.0 / read_row(read_row(L, k), k), jnp.arange(n, dtype=jnp.int32))
    identity = jnp.eye(n, dtype=A.dtype).reshape(n, n, *(1 for _ in A.shape[2:]))
    N = lax.fori_loop(jnp.int32(0), jnp.int32(n), invert_row, jnp.broadcast_to(identity, A.shape))
    in_common = jnp.asarray(last_in_common(parents).ravel())
    return lax.fori_loop(jnp.int32(0), jnp.int32(n), multiply_row, jnp.zeros_like(A))


def add_product(total: Array, x: Array, y: Array, factor: Array) -> Array:
    """Adds a product: total + x y factor."""
    return total + x * y * factor


def last_in_common(parents: Parents) -> np.ndarray:
    """(n, n) the outermost node that is on the paths of both nodes; -1 for none."""
    depth, ancestors, _ = paths(parents)
    on_path = np.arange(ancestors.shape[1]) <= depth[:, None]
    same = (ancestors[:, None] == ancestors[None]) & on_path[:, None] & on_path[None]
    count = same.sum(2)
    last = np.take_along_axis(ancestors[:, None].repeat(len(parents), 1), np.maximum(count - 1, 0)[..., None], 2)
    return np.where(count > 0, last[..., 0], -1).astype(np.int32)
