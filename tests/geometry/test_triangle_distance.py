"""Distances of points to triangles, beside those of trimesh, and their derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.geometry import distance_to_triangles

trimesh = pytest.importorskip("trimesh")

rng = np.random.default_rng(0)
POINTS, TRIANGLES = rng.normal(size=(40, 3)), rng.normal(size=(12, 3, 3))


def test_distances_are_those_to_the_nearest_points_that_trimesh_finds() -> None:
    expected = [
        np.linalg.norm(trimesh.triangles.closest_point(TRIANGLES, np.tile(p, (len(TRIANGLES), 1))) - p, axis=1).min()
        for p in POINTS
    ]
    found = jax.jit(distance_to_triangles)(jnp.array(POINTS), jnp.array(TRIANGLES))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_derivatives_follow_the_nearest_triangle_and_are_finite_in_the_middle_of_a_cube() -> None:
    weights = jnp.array(rng.normal(size=len(POINTS)))

    @jax.jit
    def loss(points: jax.Array, triangles: jax.Array) -> jax.Array:
        return jnp.vdot(weights, distance_to_triangles(points, triangles))

    at, along = (jnp.array(POINTS), jnp.array(TRIANGLES)), (jnp.array(POINTS[::-1]), jnp.array(TRIANGLES[::-1]))
    found = jax.jvp(loss, at, along)[1]
    gradients = jax.grad(loss, (0, 1))(*at)
    np.testing.assert_allclose(sum(jnp.vdot(g, d) for g, d in zip(gradients, along, strict=True)), found, rtol=1e-12)
    h = 1e-6
    ahead, behind = (loss(*(x + s * d for x, d in zip(at, along, strict=True))) for s in (h, -h))
    assert float(found) == pytest.approx(float(ahead - behind) / (2 * h), rel=1e-7)
    box = jnp.array(trimesh.creation.box((2.0, 2.0, 2.0)).triangles)
    value, gradient = jax.jit(jax.value_and_grad(lambda x: distance_to_triangles(x, box).sum()))(jnp.zeros((1, 3)))
    np.testing.assert_allclose(jnp.linalg.norm(gradient), 1.0)  # of the first of six sides that are as near
    assert float(value) == 1.0
