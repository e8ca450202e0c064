"""Spheres and boxes hold their shapes; the gap between two is never more than how far the shapes are apart."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.geometry.signed_distance.bounding_boxes import bounding_box, gap_along_axes
from mbjax.geometry.signed_distance.bounding_spheres import bounding_sphere, gap_between

from .polyhedra import random_rotations
from .test_polyhedra_convex import SUPPORTS, random_sizes

COUNT = 20


def random_shapes(kind: str, seed: int) -> np.ndarray:
    """(s, COUNT) sizes or (3, m, COUNT) vertices, these not about the origin."""
    sizes = random_sizes(kind, np.random.default_rng(seed))[:COUNT]
    return np.moveaxis(sizes + 0.3 * (kind == "Convex"), 0, -1)


def directions(count: int) -> np.ndarray:
    n = np.random.default_rng(3).normal(size=(count, 3))
    return n / np.linalg.norm(n, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", SUPPORTS)
def test_no_direction_leaves_the_sphere(kind: str) -> None:
    sizes, n = random_shapes(kind, 0), directions(2000)
    centre, radius = bounding_sphere(kind, jnp.asarray(sizes))
    reach = np.stack([SUPPORTS[kind](sizes[..., i], n) for i in range(COUNT)])
    slack = np.asarray(radius)[:, None] + np.asarray(centre).T @ n.T - reach
    assert slack.min() > -1e-12
    assert slack.min(axis=1).max() < 0.4 * float(radius.max())  # nor is it much too large


@pytest.mark.parametrize("kind", SUPPORTS)
def test_boxes_fit_their_shapes(kind: str) -> None:
    """Along the axes of its frame a shape reaches as far as its box, and no farther."""
    sizes = random_shapes(kind, 0)
    centre, half = (np.asarray(x) for x in bounding_box(kind, jnp.asarray(sizes)))
    for sign in (1.0, -1.0):
        reach = np.stack([SUPPORTS[kind](sizes[..., i], sign * np.eye(3)) for i in range(COUNT)])
        np.testing.assert_allclose(reach, (sign * centre + half).T, atol=1e-12)


@pytest.mark.parametrize("kinds", [("Box", "Cylinder"), ("Convex", "Box"), ("Ellipsoid", "Capsule")], ids="-".join)
def test_gap_of_boxes_is_that_along_their_axes(kinds: tuple[str, str]) -> None:
    """The largest separation of the two boxes along the six axes, by their corners."""
    R, p = random_rotations(COUNT, 1), np.random.default_rng(2).normal(size=(COUNT, 3))
    sizes = [random_shapes(kind, side) for side, kind in enumerate(kinds)]
    gap = gap_along_axes(*kinds, *map(jnp.asarray, sizes), jnp.asarray(np.moveaxis(R, 0, -1)), jnp.asarray(p.T))
    boxes = [bounding_box(kind, jnp.asarray(size)) for kind, size in zip(kinds, sizes, strict=True)]
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    for i in range(COUNT):
        A, B = (np.asarray(centre)[:, i] + signs * np.asarray(half)[:, i] for centre, half in boxes)
        B = p[i] + B @ R[i].T
        gaps = [max((B @ n).min() - (A @ n).max(), (A @ n).min() - (B @ n).max()) for n in (*np.eye(3), *R[i].T)]
        np.testing.assert_allclose(gap[i], max(gaps), atol=1e-12)


@pytest.mark.parametrize(
    "kinds", [("Capsule", "Convex"), ("Convex", "Cylinder"), ("Ellipsoid", "HalfSpace")], ids="-".join
)
def test_gap_is_at_most_the_distance(kinds: tuple[str, str]) -> None:
    """Along every direction the shapes are no farther apart than they are; a half-space has one direction."""
    kind_A, kind_B = kinds
    R = random_rotations(COUNT, 1)
    p = 2.0 * np.random.default_rng(2).normal(size=(COUNT, 3))
    size_A = random_shapes(kind_A, 0)
    size_B = np.zeros((0, COUNT)) if kind_B == "HalfSpace" else random_shapes(kind_B, 1)
    gap = gap_between(kind_A, kind_B, *(jnp.asarray(x) for x in (size_A, size_B, np.moveaxis(R, 0, -1), p.T)))
    for i in range(COUNT):
        if kind_B == "HalfSpace":
            n = -R[i][:, 2:].T  # from A into B
            distance = (n @ p[i] - SUPPORTS[kind_A](size_A[..., i], n)).item()
        else:
            n = directions(20000)
            separations = n @ p[i] - SUPPORTS[kind_A](size_A[..., i], n) - SUPPORTS[kind_B](size_B[..., i], -n @ R[i])
            distance = separations.max()  # from below
        if distance > 0.0:
            assert gap[i] <= distance + 1e-2
        other = gap_between(
            kind_B,
            kind_A,
            *(jnp.asarray(x)[..., None] for x in (size_B[..., i], size_A[..., i], R[i].T, -R[i].T @ p[i])),
        )
        np.testing.assert_allclose(other[0], gap[i], rtol=1e-12, atol=1e-12)
