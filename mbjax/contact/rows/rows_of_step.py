"""Rows of a step's equation: those beside its contacts, and one number or vector for each row of every kind."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .box_rows import BoxRows
from .coupled_rows import CoupledRows


class OtherRows(eqx.Module):
    """The rows of a step beside its contacts; kinds of rows that are absent are None."""

    box: BoxRows | None = None
    coupled: CoupledRows | None = None

    @property
    def exist(self) -> bool:
        """Whether there are any."""
        return self.box is not None or self.coupled is not None


class OfNodes(NamedTuple):
    """A vector of each contact of deformable bodies, and a number of each row of nodes fixed to bodies, if any."""

    contacts: Float[Array, "c m"]  # c: 3, or 6 of a stiffness
    fixed: Float[Array, " r"] | None


class OfRows(eqx.Module):
    """One number or vector for each row, by kind of row: the change of its velocity, its impulse, or its stiffness."""

    box: Float[Array, " k"] | None
    coupled: Float[Array, " nc"] | None
    contacts: Float[Array, "c m"] | None  # c: 3, or 6 of a stiffness
    nodes: OfNodes | None = None


def calc_box_diagonal(rows: OtherRows, stiffness: OfRows, like: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """The diagonal that box rows, each on a single velocity, add to the Newton matrix; `like` has its shape."""
    if rows.box is None or stiffness.box is None:
        return jnp.zeros_like(like)
    return rows.box.generalized(rows.box.times_gains(stiffness.box), like.shape[0])
