"""3-D algebra on vectors and matrices whose entries are arrays of their own: a vector is [x, y, z], a matrix its rows.

For the steps of recursions (`mbjax/one_kernel.py`): an entry is a number of one world, or of many worlds in a row. A
symmetric matrix is its six entries xx, yy, zz, xy, xz, yz, as in `component_algebra`.
"""

import functools
import operator
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.gpu_kernels import is_for_gpu
from mbjax.stages import read

from .component_algebra import SYMMETRIC_PAIRS as SYMMETRIC_PAIRS
from .component_algebra import cross_components as cross
from .component_algebra import sum_products, symmetric_rows

Vector = list[Array]
Matrix = list[Vector]


class Parts(list):
    """The entries of an array that is not put together yet: a scan over a tree writes each into its place."""


def take_apart(x: Float[Array, "k *w"], *shapes: int | tuple[int, int]) -> list:
    """The vectors and (rows, columns) matrices that follow one another in x; 1 stands for a number."""
    entries, start, parts = list(x) if isinstance(x, list) else list(jnp.unstack(x)), 0, []
    for shape in shapes:
        rows, columns = shape if isinstance(shape, tuple) else (1, shape)
        found = entries[start : start + rows * columns]
        start += rows * columns
        if isinstance(shape, tuple):
            parts.append([found[i * columns : (i + 1) * columns] for i in range(rows)])
        else:
            parts.append(found[0] if shape == 1 else found)
    assert start == len(entries), (start, len(entries))
    return parts


def put_together(*parts: Array | Vector | Matrix) -> Any:
    """The inverse of `take_apart`, an array (k, ...); in a kernel of a GPU the entries stay apart."""
    entries = [read(x) for x in entries_of(parts)]
    return Parts(entries) if is_for_gpu() else jnp.stack(jnp.broadcast_arrays(*entries))


jax.tree_util.register_pytree_node(Parts, lambda x: (tuple(x), None), lambda _, x: Parts(x))


def parts(*arrays: Array | Vector | Matrix) -> Any:
    """`Parts`, which stand for the array that `put_together` makes."""
    return Parts(entries_of(arrays))


def entries_of(parts: Sequence) -> list[Array]:
    """All entries, in order."""
    return [y for x in parts for y in (entries_of(x) if isinstance(x, list | tuple) else [x])]


def add(*vectors: Sequence[Array]) -> Vector:
    """The sum."""
    return [functools.reduce(operator.add, x) for x in zip(*vectors, strict=True)]


def total(a: Any, b: Any) -> Any:
    """a + b of arrays that are not taken apart, or are the entries in a kernel of a GPU."""
    return add(a, b) if isinstance(a, list) else a + b


def subtract(a: Sequence[Array], b: Sequence[Array]) -> Vector:
    """a - b."""
    return [x - y for x, y in zip(a, b, strict=True)]


def scale(a: Sequence[Array], factor: Array | float) -> Vector:
    """A vector times a number."""
    return [x * factor for x in a]


def dot(a: Sequence[Array], b: Sequence[Array]) -> Array:
    """Scalar product."""
    return sum_products(a, b)


def matvec(A: Matrix, x: Vector) -> Vector:
    """A x."""
    return [dot(row, x) for row in A]


def transpose(A: Matrix) -> Matrix:
    """Aᵀ."""
    return [list(column) for column in zip(*A, strict=True)]


def matmul(A: Matrix, B: Matrix) -> Matrix:
    """A B."""
    columns = transpose(B)
    return [[dot(row, column) for column in columns] for row in A]


def cross_columns(a: Vector, B: Matrix) -> Matrix:
    """[a]x B."""
    return transpose([cross(a, column) for column in transpose(B)])


def motion_cross(V: Sequence[Array], X: Sequence[Array]) -> Vector:
    """V x X of spatial vectors: the rate of a motion X that moves along with V, about one point fixed in the world."""
    (w, v), (x, y) = (V[:3], V[3:]), (X[:3], X[3:])
    return [*cross(w, x), *add(cross(w, y), cross(v, x))]


def force_cross(V: Sequence[Array], F: Sequence[Array]) -> Vector:
    """V x* F: the rate of a force F that moves along with V."""
    (w, v), (t, f) = (V[:3], V[3:]), (F[:3], F[3:])
    return [*add(cross(w, t), cross(v, f)), *cross(w, f)]


def times_inertia(inertia: tuple[Vector, Vector, Array], X: Vector) -> Vector:
    """I X of a motion X about the point O of the inertia, which is its six moments about O, m p_Ocm and m."""
    (J, c, m), (w, v) = inertia, (X[:3], X[3:])
    return [*add(matvec(symmetric(J), w), cross(c, v)), *add(scale(v, m), cross(w, c))]


def symmetric(S: Vector) -> Matrix:
    """The matrix of six entries."""
    return symmetric_rows(S)


def symmetric_product(A: Matrix, B: Matrix) -> Vector:
    """The six entries of A Bᵀ, which is known to be symmetric."""
    return [dot(A[i], B[j]) for i, j in SYMMETRIC_PAIRS]


def symmetric_outer(a: Vector, b: Vector) -> Vector:
    """The six entries of a bᵀ, likewise."""
    return [a[i] * b[j] for i, j in SYMMETRIC_PAIRS]
