"""A box beside a cylinder, an edge along its end but for rounding, as a robot's hip stands beside its trunk."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.geometry.signed_distance.bounding_boxes import gap_along_axes
from mbjax.geometry.signed_distance.convex_convex import convex_convex
from tests.gradients.checks import compiled

COUNT = 400
CYLINDER, BOX = np.array([0.04, 0.04]), np.array([0.4, 0.17, 0.11])


def turn(axis: int, angle: np.ndarray) -> np.ndarray:
    """Rotations (n, 3, 3) about an axis of the frame."""
    R, (i, j) = np.tile(np.eye(3), (len(angle), 1, 1)), [(1, 2), (2, 0), (0, 1)][axis]
    R[:, i, i] = R[:, j, j] = np.cos(angle)
    R[:, j, i] = np.sin(angle)
    R[:, i, j] = -R[:, j, i]
    return R


def placed() -> tuple[np.ndarray, np.ndarray]:
    """R_AB and p_AB, (3, 3, n) and (3, n): an edge of B is perpendicular to A's axis to within 1e-12 to 1e-7 rad."""
    rng = np.random.default_rng(0)
    tilt = 10.0 ** rng.uniform(-12.0, -7.0, COUNT) * rng.choice((-1.0, 1.0), COUNT)
    R = turn(2, rng.uniform(-3.0, 3.0, COUNT)) @ turn(1, tilt) @ turn(0, rng.uniform(-3.0, 3.0, COUNT))
    return np.moveaxis(R, 0, -1), rng.uniform(-0.25, 0.25, (3, COUNT))


def apart(R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Distances of points of both, which alternating projections bring together: never less than the distance."""
    x = np.zeros((3, COUNT))
    for _ in range(4000):
        r = x / np.maximum(np.hypot(x[0], x[1]) / CYLINDER[0], 1.0)
        a = np.stack([r[0], r[1], np.clip(x[2], -0.5 * CYLINDER[1], 0.5 * CYLINDER[1])])
        in_B = np.einsum("jin,jn->in", R, a - p)
        x = p + np.einsum("ijn,jn->in", R, np.clip(in_B, -0.5 * BOX[:, None], 0.5 * BOX[:, None]))
    return np.linalg.norm(x - a, axis=0)


@pytest.mark.whole_run(
    "cylinders and boxes, some of them nearly flat on one another, as Drake's in test_polyhedra_convex.py"
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["f64", "f32"])
def test_an_edge_along_the_end_of_a_cylinder(dtype: type) -> None:
    """No less than the gap of their boxes, no more than that of two points; forward = reverse = differences."""
    R, p = placed()
    sizes = [jnp.asarray(np.tile(size[:, None], (1, COUNT)), dtype) for size in (CYLINDER, BOX)]
    R, p = jnp.asarray(R, dtype), jnp.asarray(p, dtype)
    directions = jnp.asarray(np.random.default_rng(1).normal(size=(3, COUNT)), dtype)

    def deepest(p: jax.Array) -> jax.Array:
        return convex_convex("Cylinder", "Box", *sizes, R, p).distance[0]

    @compiled
    def everything(p: jax.Array) -> tuple:
        distance, push = jax.linearize(deepest, p)
        return distance, push(directions), jax.linear_transpose(push, p)(jnp.ones_like(distance))[0]

    rounding = 100.0 * float(jnp.finfo(dtype).eps)
    distance, forward, reverse = (np.asarray(x, np.float64) for x in everything(p))
    gap = np.asarray(gap_along_axes("Cylinder", "Box", *sizes, R, p), np.float64)
    assert (distance - gap).min() > -rounding
    points = apart(np.asarray(R, np.float64), np.asarray(p, np.float64))
    assert (points > 1e-3).sum() > 100
    assert (distance - points)[points > 1e-3].max() < rounding
    np.testing.assert_allclose(np.sum(reverse * np.asarray(directions), axis=0), forward, atol=20.0 * rounding)
    if dtype == np.float64:
        h = 1e-7
        (after, *_), (before, *_) = everything(p + h * directions), everything(p - h * directions)
        differences = np.abs((np.asarray(after) - np.asarray(before)) / (2.0 * h) - forward)
        assert np.median(differences) < 1e-7
        assert (differences > 1e-4).mean() < 0.02  # kinks between two features
