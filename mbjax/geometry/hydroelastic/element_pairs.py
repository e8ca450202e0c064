"""Broad phase: the pairs of elements of two meshes that may share a polygon, in a fixed number of slots.

First each mesh keeps the elements that reach into the box around the other mesh. Then all pairs of those are tried
against the planes of both elements, by products of matrices. What remains is tried in the plane of the face that the
pair would share. Nothing here has a derivative: it only chooses indices.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .linear_functions import values_at, values_of_all
from .selection import Selection, select, take_columns

FEWEST_ELEMENTS = 64  # of a mesh that pass on to the pairs, however small the bound on pairs is
CANDIDATES = 3  # pairs that are tried in the plane of their face, for each slot of a face
LEAST_COSINE = math.cos(5.0 * math.pi / 8.0)  # between a face's normal and the gradient of pressure, as in Drake


class ElementPairs(NamedTuple):
    """Elements of C and of D in each slot, which slots are filled, and how many pairs or elements had none."""

    elements_C: Int[Array, " slots"]
    elements_D: Int[Array, " slots"]
    filled: Bool[Array, " slots"]
    left_out: Int[Array, ""]


def elements_near(
    corners_G: Float[Array, "4 corners n"], others_G: Float[Array, "4 other_corners m"], bound: int
) -> Selection:
    """The elements whose box overlaps the box around all elements of another mesh, in the frame G of that mesh.

    All elements are taken where there are slots for them.
    """
    num_elements, num_slots = corners_G.shape[2], max(bound, FEWEST_ELEMENTS)
    if num_elements <= num_slots:
        every = jnp.arange(num_elements)
        return Selection(every, jnp.ones(num_elements, bool), jnp.zeros((), every.dtype))
    lowest, highest = others_G.min(axis=(1, 2))[:, None], others_G.max(axis=(1, 2))[:, None]
    overlaps = (corners_G.min(axis=1) <= highest) & (corners_G.max(axis=1) >= lowest)
    return select(overlaps.all(axis=0), num_slots)


def pairs_that_passed(
    passed: Bool[Array, "elements_C elements_D"], chosen_C: Selection, chosen_D: Selection, num_slots: int
) -> ElementPairs:
    """The first pairs of chosen elements that passed all tests."""
    passed = passed & chosen_C.filled[:, None] & chosen_D.filled
    chosen = select(passed.reshape(-1), num_slots)
    row, column = jnp.divmod(chosen.indices, passed.shape[1])
    left_out = chosen.left_out + chosen_C.left_out + chosen_D.left_out
    return ElementPairs(
        take_columns(chosen_C.indices, row), take_columns(chosen_D.indices, column), chosen.filled, left_out
    )


def pairs_that_overlap(pairs: ElementPairs, overlap: Bool[Array, " slots"], bound: int) -> ElementPairs:
    """The first pairs whose polygons overlap."""
    chosen = select(pairs.filled & overlap, bound)
    of_C, of_D = (take_columns(elements, chosen.indices) for elements in (pairs.elements_C, pairs.elements_D))
    return ElementPairs(of_C, of_D, chosen.filled, pairs.left_out + chosen.left_out)


def boxes_overlap(corners: Float[Array, "4 corners n"], others: Float[Array, "4 corners m"]) -> Bool[Array, "n m"]:
    """Whether the boxes around elements along the axes overlap, for all pairs."""
    low, high, other_low, other_high = (x[:3] for y in (corners, others) for x in (y.min(axis=1), y.max(axis=1)))
    below, above = low[:, :, None] <= other_high[:, None], high[:, :, None] >= other_low[:, None]
    return (below & above).all(axis=0)


def is_any_inside(sides: Float[Array, "4 sides n"], corners: Float[Array, "3 corners n"]) -> Bool[Array, " n"]:
    """Whether each side of a polygon has a corner of another polygon, in the same plane, on its inner side.

    Two convex polygons in a plane overlap where this holds for the sides of both.
    """
    rounding = 16.0 * float(jnp.finfo(corners.dtype).eps)
    return (values_at(sides[:, :, None], corners[:, None]).max(axis=1) > rounding).all(axis=0)


def reach_inside(faces: Float[Array, "4 4 n"], corners: Float[Array, "4 corners m"]) -> Bool[Array, "n m"]:
    """Whether no face of a tetrahedron has all corners of the other element on its outer side, for all pairs."""
    rounding = 16.0 * float(jnp.finfo(corners.dtype).eps)
    return (values_of_all(faces, corners).max(axis=2) > rounding).all(axis=0)


def both_signs(values: Float[Array, "n corners m"]) -> Bool[Array, "n m"]:
    """Whether the values at an element's corners are positive at one of them, and zero or negative at another."""
    return (values.max(axis=1) > 0.0) & (values.min(axis=1) <= 0.0)


def is_along(along: Array, squared_normal: Array, squared_gradient: Array) -> Array:
    """Whether vectors with a scalar product and squared lengths enclose less than 5/8 pi.

    Drake leaves out faces whose normal is farther from the gradient of pressure: they are behind the body that presses.
    """
    return along * jnp.abs(along) > LEAST_COSINE * abs(LEAST_COSINE) * squared_normal * squared_gradient
