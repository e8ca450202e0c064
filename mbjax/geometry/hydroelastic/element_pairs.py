"""Broad phase: the pairs of elements of two meshes that may share a polygon, in a fixed number of slots.

First each mesh keeps the elements that reach into the box around the other mesh. Then all pairs of those are tried
against the planes of both elements. Nothing here has a derivative: it only chooses indices.
"""

import functools
import math
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from mbjax.spatial import safe_norm

from .selection import Selection, select
from .tetrahedra import Tetrahedra, values_at

FEWEST_ELEMENTS = 64  # of a mesh that pass on to the pairs, however small the bound on pairs is
LEAST_COSINE = math.cos(5.0 * math.pi / 8.0)  # between a face's normal and the gradient of pressure, as in Drake


class ElementPairs(NamedTuple):
    """Elements of C and of D in each slot, which slots are filled, and how many pairs or elements had none."""

    elements_C: Int[Array, " slots"]
    elements_D: Int[Array, " slots"]
    filled: Bool[Array, " slots"]
    left_out: Int[Array, ""]


class PlacedMesh(NamedTuple):
    """Vertices of a mesh in its own frame and in that of another mesh, and its elements."""

    own: Float[Array, "3 vertices"]
    other: Float[Array, "3 vertices"]
    elements: Int[Array, "corners n"]


def elements_near(mesh: PlacedMesh, neighbour: PlacedMesh, bound: int) -> Selection:
    """The elements whose box overlaps the box around another mesh, in the frames of both meshes.

    All elements are taken where there are slots for them.
    """
    num_elements, num_slots = mesh.elements.shape[1], max(bound, FEWEST_ELEMENTS)
    if num_elements <= num_slots:
        every = jnp.arange(num_elements)
        return Selection(every, jnp.ones(num_elements, bool), jnp.zeros((), every.dtype))
    overlaps = jnp.ones(num_elements, bool)
    for vertices, others in ((mesh.own, neighbour.other), (mesh.other, neighbour.own)):
        corners = vertices[:, mesh.elements]
        lowest, highest = others.min(axis=1, keepdims=True), others.max(axis=1, keepdims=True)
        overlaps &= ((corners.min(axis=1) <= highest) & (corners.max(axis=1) >= lowest)).all(axis=0)
    return select(overlaps, num_slots)


def pairs_that_passed(
    passed: Bool[Array, "elements_C elements_D"], chosen_C: Selection, chosen_D: Selection, bound: int
) -> ElementPairs:
    """The first pairs of chosen elements that passed all tests."""
    passed = passed & chosen_C.filled[:, None] & chosen_D.filled
    chosen = select(passed.reshape(-1), bound)
    row, column = jnp.divmod(chosen.indices, passed.shape[1])
    left_out = chosen.left_out + chosen_C.left_out + chosen_D.left_out
    return ElementPairs(chosen_C.indices[row], chosen_D.indices[column], chosen.filled, left_out)


def reach_inside(of: Tetrahedra, corners: Float[Array, "3 corners m"], tolerance: float) -> Bool[Array, "n m"]:
    """Whether no plane of a tetrahedron has all corners of the other element on its outer side, for all pairs."""
    slopes, at_origin = of.barycentric_slopes[..., None], of.barycentric_at_origin[..., None]
    values = [values_at(corners[:, i], slopes, at_origin) for i in range(corners.shape[1])]
    return (functools.reduce(jnp.maximum, values) > tolerance).all(axis=0)


def both_signs(values: list[Float[Array, "n m"]]) -> Bool[Array, "n m"]:
    """Whether the values at an element's corners are positive at one of them, and zero or negative at another."""
    return (functools.reduce(jnp.maximum, values) > 0.0) & (functools.reduce(jnp.minimum, values) <= 0.0)


def is_along(normal: Float[Array, "3 *n"], gradient: Float[Array, "3 *n"]) -> Bool[Array, "*n"]:
    """Whether normals, of any length, are within 5/8 pi of gradients of pressure; axes broadcast.

    Drake leaves out faces beyond: they would be behind the body that presses.
    """
    along = normal[0] * gradient[0] + normal[1] * gradient[1] + normal[2] * gradient[2]
    return along > LEAST_COSINE * safe_norm(normal, axis=0) * safe_norm(gradient, axis=0)
