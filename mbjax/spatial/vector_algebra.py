"""3-D algebra in one text for vectors that are arrays (3, ...) and vectors that are lists of their entries.

A step of a recursion runs with either: with lists within a kernel, with arrays elsewhere. Matrices are arrays
(3, 3, ...) or lists of rows. A symmetric matrix of lists is given by its six entries, one of arrays as a whole.
"""

import operator
from collections.abc import Callable
from typing import Any

from jaxtyping import Array, Float

from . import component_algebra as ca
from . import written_out as wo

# Arrays or lists: no checker of types follows that the operands of one call are of one kind.
Vector = Any  # Float[Array, "3 ..."], or a list of three entries
Matrix = Any  # Float[Array, "3 3 ..."], or a list of three rows
Symmetric = Any  # Float[Array, "3 3 ..."], or a list of the six entries xx, yy, zz, xy, xz, yz


def each(operation: Callable, *operands: Any) -> Any:
    """Applies an operation entry by entry."""
    if isinstance(operands[0], list):
        return [each(operation, *x) for x in zip(*operands, strict=True)]
    return operation(*operands)


def as_column(a: Any) -> Float[Array, "3 1 ..."]:
    """A vector, given as an array, as a matrix of one column."""
    return a[:, None]


def add(a: Any, b: Any) -> Any:
    """Sum a + b of vectors or of matrices."""
    return each(operator.add, a, b)


def subtract(a: Any, b: Any) -> Any:
    """Difference a - b of vectors or of matrices."""
    return each(operator.sub, a, b)


def scale(a: Any, factor: Array) -> Any:
    """Vector or matrix times a number."""
    return each(lambda x: x * factor, a)


def dot(a: Vector, b: Vector) -> Array:
    """Scalar product."""
    return wo.dot(a, b) if isinstance(a, list) else ca.dot(a, b)


def cross(a: Vector, b: Vector) -> Any:
    """Vector product a x b."""
    return wo.cross(a, b) if isinstance(a, list) else ca.cross(a, b)


def matvec(A: Matrix, x: Vector) -> Any:
    """Product A x."""
    return wo.matvec(A, x) if isinstance(A, list) else ca.matvec(A, x)


def transposed_matvec(A: Matrix, x: Vector) -> Any:
    """Product Aᵀ x."""
    return wo.matvec(wo.transpose(A), x) if isinstance(A, list) else ca.transposed_matvec(A, x)


def symmetric_matvec(S: Symmetric, x: Vector) -> Any:
    """Product S x."""
    return wo.matvec(wo.symmetric(S), x) if isinstance(S, list) else ca.matvec(S, x)


def outer(a: Vector, b: Vector) -> Any:
    """Outer product a bᵀ."""
    return [wo.scale(b, x) for x in a] if isinstance(a, list) else as_column(a) * b


def symmetric_outer(a: Vector, b: Vector) -> Any:
    """Outer product a bᵀ, which is known to be symmetric."""
    return wo.symmetric_outer(a, b) if isinstance(a, list) else as_column(a) * b


def shift_coupling(H: Matrix, M: Symmetric, p: Vector) -> Any:
    """H + [p]M: the coupling of torque and translation of an articulated inertia, p away (Featherstone 2008, 2.66)."""
    if isinstance(H, list):
        return add(H, wo.cross_columns(p, wo.symmetric(M)))
    return H + ca.cross(as_column(p), M)


def shift_moments(J: Symmetric, H: Matrix, H_shifted: Matrix, p: Vector) -> Any:
    """J + [p]Hᵀ + H_shifted [p]ᵀ: the moments of an articulated inertia, p away; symmetric as H_shifted = H + [p]M."""
    if isinstance(J, list):
        columns, rows = [wo.cross(p, row) for row in H], [wo.cross(p, row) for row in H_shifted]
        return wo.add(J, [columns[j][i] + rows[i][j] for i, j in wo.SYMMETRIC_PAIRS])
    return J + ca.cross(as_column(p), ca.transpose(H)) + ca.transpose(ca.cross(as_column(p), ca.transpose(H_shifted)))
