"""The Newton matrix of a discrete step, H = M + diag + Gᵀ S G with S = -dγ/d(G v), as functions that solve with it.

Rows on single velocities keep the tree's sparsity, and so do contacts with bodies that do not move, as such a contact
adds to the inertia of one body. Other rows, and joints that mimic, fill H.
"""

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Array, Float

from ..rows.rows_of_step import OfRows

Product = Callable[[Float[Array, " nv"]], Float[Array, " nv"]]


class NewtonMatrix(NamedTuple):
    """Product (M + diag) x; from the rows' stiffness, a reusable solver b → H⁻¹ b, and H⁻¹ b in one pass."""

    inertia_product: Product
    solver: Callable[[OfRows], Product]
    solve: Callable[[OfRows, Float[Array, " nv"]], Float[Array, " nv"]]
