"""The broad phase of hydroelastic pairs: what is left out has no faces, and nothing else changes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mbjax.contact.points.near_surfaces import REACH, gap_between_boxes
from mbjax.contact.points.surface_points import calc_surface
from mbjax.geometry import Box, Capsule, Convex, Cylinder, Ellipsoid, HalfSpace, Shape, Sphere, shape_lengths
from mbjax.geometry.hydroelastic import calc_near_surfaces, field, hydroelastic_geometry
from mbjax.model import ContactLayout
from tests.gradients.checks import compiled

BALL = hydroelastic_geometry(Sphere(0.1), resolution_hint=0.2)
GROUND = hydroelastic_geometry(HalfSpace(), compliance="rigid")
LAYOUT = ContactLayout((), (), "hydroelastic", "sap", None, None, False, (), (), ())
HEIGHTS = np.array([[0.09, 0.3, 0.095, 0.4], [0.08, 0.2, 0.5, 0.3], [0.2, 0.3, 0.4, 0.5]])  # by pair and world
SHAPES = Sphere(0.1), Box((0.3, 0.2, 0.1)), Cylinder(0.1, 0.3), Capsule(0.07, 0.1), Ellipsoid(0.1, 0.15, 0.07)


def balls_above_ground(heights: jax.Array, is_near: jax.Array | None = None) -> jax.Array:
    """Surfaces of balls and the ground by pair, and by world if heights have a second axis; all without `is_near`."""
    worlds = heights.ndim - 1

    def repeated(x: jax.Array) -> jax.Array:
        return jnp.broadcast_to(x.reshape(*x.shape, *[1] * heights.ndim), (*x.shape, *heights.shape))

    numbers = repeated(jnp.array([0.1])), repeated(jnp.zeros(0)), repeated(jnp.array(1e5)), repeated(jnp.array(0.0))
    position = jnp.concatenate([repeated(jnp.array([0.01, 0.02])), heights[None]])
    args = (*numbers, repeated(jnp.eye(3)), repeated(jnp.eye(3)), -position)
    of_pair = functools.partial(calc_surface, LAYOUT, BALL, GROUND)
    if is_near is None:
        for _ in range(heights.ndim):
            of_pair = jax.vmap(of_pair, in_axes=-1, out_axes=-1)
        found = of_pair(*args)
    else:
        found = calc_near_surfaces(of_pair, worlds, is_near, *args)
    return jnp.concatenate([found.area[None], 1e-5 * found.pressure[None], 1e-6 * found.gradient_M[None]])


@pytest.mark.whole_run(
    "boxes hold the meshes, below, and a box that slides as Drake's, in test_hydroelastic_against_drake"
)
@pytest.mark.parametrize(
    "heights",
    [HEIGHTS, HEIGHTS[:, 0], HEIGHTS[:1, 1]],
    ids=["worlds", "pairs", "one, apart"],
)
def test_pairs_apart_are_left_out(heights: np.ndarray) -> None:
    """Values and derivatives are those of all pairs side by side."""
    gap = gap_between_boxes(
        "Sphere", "HalfSpace", jnp.full((1, *heights.shape), 0.1), jnp.zeros((0, *heights.shape)), *poses_of(heights)
    )
    is_near = gap < 0.0
    np.testing.assert_array_equal(is_near, heights < 0.1)

    def value_and_slope(is_near: jax.Array | None, heights: jax.Array) -> tuple[jax.Array, jax.Array]:
        found = balls_above_ground(heights, is_near)
        return found, jax.grad(lambda x: jnp.sum(jnp.sin(balls_above_ground(x, is_near))))(heights)

    ours = compiled(value_and_slope)(is_near, jnp.asarray(heights))
    everything = compiled(functools.partial(value_and_slope, None))(jnp.asarray(heights))
    assert (np.abs(ours[0][1]).max() > 0.0) == bool(is_near.any())
    for found, expected in zip(ours, everything, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


def poses_of(heights: np.ndarray) -> tuple[jax.Array, jax.Array]:
    """R_AB and p_AB of balls A above the ground B."""
    eye = jnp.broadcast_to(jnp.eye(3).reshape(3, 3, *[1] * heights.ndim), (3, 3, *heights.shape))
    return eye, jnp.stack([jnp.zeros(heights.shape), jnp.zeros(heights.shape), -jnp.asarray(heights)])


OTHERS = pytest.mark.whole_run("a box and a hull")
HULL = Convex(((0.1, 0.1, 0.1), (-0.1, 0.1, 0.1), (0, -0.1, 0.1), (0, 0, -0.1)))


@pytest.mark.parametrize("shape", [*(pytest.param(x, marks=[OTHERS] * (not isinstance(x, Box))) for x in SHAPES), HULL])
def test_boxes_hold_the_meshes(shape: Shape) -> None:
    """No vertex of a mesh, grown by a margin, is below what the gap to a half-space says."""
    margin = 0.0 if isinstance(shape, Convex) else 0.02  # hulls with margins are never left out
    topology = hydroelastic_geometry(shape, resolution_hint=0.05, margin=margin)
    vertices = np.asarray(field(topology, None, 1e5).vertices_G)
    R_WG = Rotation.random(20, random_state=0).as_matrix()
    lowest = (vertices @ R_WG[:, 2].T).min(axis=0)
    R_GW, p_GW = jnp.asarray(R_WG.transpose(2, 1, 0)), jnp.zeros((3, 20))
    numbers = jnp.asarray(shape.vertices).T if isinstance(shape, Convex) else jnp.array(shape_lengths(shape))
    size = jnp.broadcast_to(numbers[..., None], (*numbers.shape, 20))
    kind, none = type(shape).__name__, jnp.zeros((0, 20))
    gap = gap_between_boxes(kind, "HalfSpace", size, none, R_GW, p_GW)
    assert np.all(lowest >= np.asarray(gap) - REACH * margin - 1e-15)
    R_WG = jnp.swapaxes(R_GW, 0, 1)
    np.testing.assert_allclose(gap_between_boxes("HalfSpace", kind, none, size, R_WG, p_GW), gap, atol=1e-15)
