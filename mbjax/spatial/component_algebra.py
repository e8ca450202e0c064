"""3-D and 6-D algebra on arrays with components first: a vector is (3, ...), a matrix (3, 3, ...).

The axes after the components, those of bodies and worlds, are carried along. Small products are written out over the
components, so XLA fuses them with what surrounds them. Arrays are taken apart by `unstack` and put together by `stack`,
which are each other's transpose: reverse mode then needs no padding.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def concatenate(parts: Sequence[Array], axis: int) -> Array:
    """`jnp.concatenate` of arrays that may differ by broadcasting on the other axes."""
    if len(parts) == 1:
        return parts[0]
    others = [(*x.shape[:axis], *x.shape[axis + 1 :]) for x in parts]
    if len(set(others)) > 1:
        common = jnp.broadcast_shapes(*others)
        parts = [jnp.broadcast_to(x, (*common[:axis], x.shape[axis], *common[axis:])) for x in parts]
    return jnp.concatenate(parts, axis=axis)


def stack_many(parts: Sequence[Array]) -> Float[Array, "k *n"]:
    """`jnp.stack` of up to 64 parts, in groups where there are more than eight.

    XLA's CPU backend makes one kernel of a stack of up to eight parts, but for more a kernel of each.
    """
    groups = next(k for k in range(1, len(parts) + 1) if len(parts) % k == 0 and len(parts) // k <= 8)
    size = len(parts) // groups
    stacked = jnp.stack([jnp.stack(parts[i : i + size]) for i in range(0, len(parts), size)])
    return stacked.reshape(len(parts), *stacked.shape[2:])


def unstack_many(x: Float[Array, "k *n"]) -> list[Array]:
    """Splits x into its parts: the inverse of `stack_many`, and its transpose."""
    groups = next(k for k in range(1, x.shape[0] + 1) if x.shape[0] % k == 0 and x.shape[0] // k <= 8)
    return [part for group in x.reshape(groups, -1, *x.shape[1:]) for part in jnp.unstack(group)]


def with_equal_columns(*arrays: Array) -> list[Array]:
    """Broadcasts (k, *n) arrays to one common n; k may differ."""
    n = jnp.broadcast_shapes(*(x.shape[1:] for x in arrays))
    return [jnp.broadcast_to(x, (x.shape[0], *n)) for x in arrays]


def over_columns(function: Any, *arrays: Array) -> Any:
    """Applies a function of vectors to each column of (k, *n) arrays that may differ by broadcasting on n."""
    arrays = tuple(with_equal_columns(*arrays))
    n = arrays[0].shape[1:]
    results = jax.vmap(function, in_axes=-1, out_axes=-1)(*(x.reshape(x.shape[0], math.prod(n)) for x in arrays))
    return jax.tree.map(lambda y: y.reshape(*y.shape[:-1], *n), results)


def cross(a: Float[Array, "3 *n"], b: Float[Array, "3 *n"]) -> Float[Array, "3 *n"]:
    """Vector product a x b."""
    return jnp.stack(cross_components(jnp.unstack(a), jnp.unstack(b)))


def cross_components(a: Sequence[Array], b: Sequence[Array]) -> list[Array]:
    """Vector product a x b from separate components."""
    (ax, ay, az), (bx, by, bz) = a, b
    return [ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx]


def motion_cross(V: Float[Array, "6 *n"], X: Float[Array, "6 *n"]) -> Float[Array, "6 *n"]:
    """V x X: the rate of a motion X that moves along with V, about a point fixed in the world (Featherstone, 2.9).

    It is written out, so that the result is one stack: from sums of stacks XLA's CPU backend makes a loop with a branch
    for every number.
    """
    (w, v), (x, y) = _halves(V), _halves(X)
    return jnp.stack([*cross_components(w, x), *_sum(cross_components(w, y), cross_components(v, x))])


def force_cross(V: Float[Array, "6 *n"], F: Float[Array, "6 *n"]) -> Float[Array, "6 *n"]:
    """V x* F: the rate of a force F that moves along with V (Featherstone, 2.9)."""
    (w, v), (t, f) = _halves(V), _halves(F)
    return jnp.stack([*_sum(cross_components(w, t), cross_components(v, f)), *cross_components(w, f)])


def _halves(X: Float[Array, "6 *n"]) -> tuple[list[Array], list[Array]]:
    components = list(jnp.unstack(X))
    return components[:3], components[3:]


def _sum(a: Sequence[Array], b: Sequence[Array]) -> list[Array]:
    return [x + y for x, y in zip(a, b, strict=True)]


def dot(a: Float[Array, "k *n"], b: Float[Array, "k *n"]) -> Float[Array, "*n"]:
    """Scalar product over the components."""
    return sum_products(jnp.unstack(a), jnp.unstack(b))


def outer(a: Float[Array, "i *n"], b: Float[Array, "j *n"]) -> Float[Array, "i j *n"]:
    """Outer product a bᵀ."""
    return spread(a, b.shape[0], 1) * spread(b, a.shape[0])


def transpose(A: Float[Array, "i j *n"]) -> Float[Array, "j i *n"]:
    """Transpose Aᵀ."""
    return jnp.swapaxes(A, 0, 1)


def skew(a: Float[Array, "3 *n"]) -> Float[Array, "3 3 *n"]:
    """Skew matrix [a]x, with [a]x b = a x b."""
    x, y, z = jnp.unstack(a)
    zero = jnp.zeros_like(x)
    return jnp.stack([jnp.stack([zero, -z, y]), jnp.stack([z, zero, -x]), jnp.stack([-y, x, zero])])


def sum_products(a: Sequence[Array], b: Sequence[Array]) -> Array:
    """Sum a[0] b[0] + a[1] b[1] + … of separate components, written out."""
    total = a[0] * b[0]
    for k in range(1, len(a)):
        total = total + a[k] * b[k]
    return total


def spread(x: Float[Array, "*n"], size: int, axis: int = 0) -> Float[Array, "..."]:
    """Repeats x along a new axis of few components.

    Broadcasting would do the same, but its transpose is a reduction over that short axis, which XLA's CPU backend runs
    ten times slower than the transpose of `stack`, a written-out sum.
    """
    return jnp.stack([x] * size, axis)


def scale(x: Float[Array, "k *n"], factor: Float[Array, "*n"]) -> Float[Array, "k *n"]:
    """Vector times a number."""
    return x * spread(factor, x.shape[0])


def matvec(R: Float[Array, "i 3 *n"], x: Float[Array, "3 *n"]) -> Float[Array, "i *n"]:
    """Product R x."""
    return sum_products(jnp.unstack(R, axis=1), [spread(y, R.shape[0]) for y in jnp.unstack(x)])


def transposed_matvec(R: Float[Array, "3 i *n"], x: Float[Array, "3 *n"]) -> Float[Array, "i *n"]:
    """Product Rᵀ x."""
    return sum_products(jnp.unstack(R), [spread(y, R.shape[1]) for y in jnp.unstack(x)])


def matmul(A: Float[Array, "i 3 *n"], B: Float[Array, "3 j *n"]) -> Float[Array, "i j *n"]:
    """Product A B."""
    columns = [spread(column, B.shape[1], 1) for column in jnp.unstack(A, axis=1)]
    return sum_products(columns, [spread(row, A.shape[0]) for row in jnp.unstack(B)])


# Symmetric 3x3 matrices as six components: xx, yy, zz, xy, xz, yz.

SYMMETRIC_INDEX = ((0, 3, 4), (3, 1, 5), (4, 5, 2))
SYMMETRIC_PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


def symmetric_matrix(S: Float[Array, "6 *n"]) -> Float[Array, "3 3 *n"]:
    """Symmetric matrix of six components."""
    return jnp.stack([jnp.stack(row) for row in symmetric_rows(jnp.unstack(S))])


def symmetric_rows(entries: Sequence[Array]) -> list[list[Array]]:
    """Rows of the symmetric matrix of six separate components."""
    return [[entries[k] for k in row] for row in SYMMETRIC_INDEX]


def symmetric_components(A: Float[Array, "3 3 *n"]) -> Float[Array, "6 *n"]:
    """Six components xx, yy, zz, xy, xz, yz of a symmetric matrix."""
    entries = [jnp.unstack(row) for row in jnp.unstack(A)]
    return jnp.stack([entries[i][j] for i, j in SYMMETRIC_PAIRS])


def re_express_symmetric(R_AE: Float[Array, "3 3 *n"], S_E: Float[Array, "3 3 *n"]) -> Float[Array, "3 3 *n"]:
    """Re-expresses a symmetric matrix from E in A: R S Rᵀ."""
    R, S = [jnp.unstack(row) for row in jnp.unstack(R_AE)], [jnp.unstack(row) for row in jnp.unstack(S_E)]
    RS = [[sum_products(R[i], S[j]) for j in range(3)] for i in range(3)]
    return symmetric_matrix(jnp.stack([sum_products(RS[i], R[j]) for i, j in SYMMETRIC_PAIRS]))


def point_mass_inertia(p: Float[Array, "3 *n"]) -> Float[Array, "6 *n"]:
    """Unit inertia p² 1 - p pᵀ of a particle at p, about the origin."""
    x, y, z = jnp.unstack(p)
    xx, yy, zz = x * x, y * y, z * z
    return jnp.stack([yy + zz, xx + zz, xx + yy, -x * y, -x * z, -y * z])


def symmetric_product_inertia(a: Float[Array, "3 *n"], b: Float[Array, "3 *n"]) -> Float[Array, "6 *n"]:
    """(a·b) 1 - (a bᵀ + b aᵀ) / 2, which is `point_mass_inertia` where a = b."""
    (ax, ay, az), (bx, by, bz) = jnp.unstack(a), jnp.unstack(b)
    xx, yy, zz = ax * bx, ay * by, az * bz
    xy, xz, yz = -0.5 * (ax * by + ay * bx), -0.5 * (ax * bz + az * bx), -0.5 * (ay * bz + az * by)
    return jnp.stack([yy + zz, xx + zz, xx + yy, xy, xz, yz])
