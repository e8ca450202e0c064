"""3-D algebra on vectors and matrices whose entries are separate arrays: a vector is [x, y, z], a matrix its rows.

Steps of recursions use it: an entry is a number of one world, or a row of numbers of many worlds. A symmetric matrix is
given by its six entries xx, yy, zz, xy, xz, yz, as in `component_algebra`.
"""

import functools
import operator
from collections.abc import Sequence

from jaxtyping import Array

from mbjax.execution.recursions import Matrix as Matrix
from mbjax.execution.recursions import Vector as Vector

from .component_algebra import SYMMETRIC_PAIRS as SYMMETRIC_PAIRS
from .component_algebra import cross_components as cross
from .component_algebra import sum_products, symmetric_rows


def add(*vectors: Sequence[Array]) -> Vector:
    """Sum of vectors."""
    return [functools.reduce(operator.add, x) for x in zip(*vectors, strict=True)]


def subtract(a: Sequence[Array], b: Sequence[Array]) -> Vector:
    """Difference a - b."""
    return [x - y for x, y in zip(a, b, strict=True)]


def scale(a: Sequence[Array], factor: Array | float) -> Vector:
    """Vector times a number."""
    return [x * factor for x in a]


def dot(a: Sequence[Array], b: Sequence[Array]) -> Array:
    """Scalar product."""
    return sum_products(a, b)


def matvec(A: Matrix, x: Vector) -> Vector:
    """Product A x."""
    return [dot(row, x) for row in A]


def transpose(A: Matrix) -> Matrix:
    """Transpose Aᵀ."""
    return [list(column) for column in zip(*A, strict=True)]


def matmul(A: Matrix, B: Matrix) -> Matrix:
    """Product A B."""
    columns = transpose(B)
    return [[dot(row, column) for column in columns] for row in A]


def cross_columns(a: Vector, B: Matrix) -> Matrix:
    """Product [a]x B, column by column."""
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
    """Product I X with a motion X at the point O; the inertia is its six moments about O, m p_Ocm and m."""
    (J, c, m), (w, v) = inertia, (X[:3], X[3:])
    return [*add(matvec(symmetric(J), w), cross(c, v)), *add(scale(v, m), cross(w, c))]


def symmetric(S: Vector) -> Matrix:
    """Symmetric matrix of six entries."""
    return symmetric_rows(S)


def symmetric_product(A: Matrix, B: Matrix) -> Vector:
    """Six entries of A Bᵀ, where the product is known to be symmetric."""
    return [dot(A[i], B[j]) for i, j in SYMMETRIC_PAIRS]


def symmetric_outer(a: Vector, b: Vector) -> Vector:
    """Six entries of a bᵀ, where the product is known to be symmetric."""
    return [a[i] * b[j] for i, j in SYMMETRIC_PAIRS]
