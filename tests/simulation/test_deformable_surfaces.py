"""Surfaces where a deformable body touches, as polygons."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.deformable_cube import FOAM, SIDE, cube_mesh
from tests.gradients.checks import check_gradients

DEPTH, MODULUS, THICKNESS = 3e-4, 1e6, 0.1


@pytest.fixture(scope="module")
def sunk() -> mbjax.MultibodyModel:
    """A cube of 10 cm that is 0.3 mm deep in a soft half-space."""
    plant = mbjax.MultibodyPlant(0.005)
    soft = mbjax.ProximityProperties(0.5).add_compliant_hydroelastic_properties_for_half_space(THICKNESS, MODULUS)
    plant.register_collision_geometry("world", mbjax.Geometry("ground", mbjax.HalfSpace()), soft)
    place = mbjax.RigidTransform(jnp.eye(3), jnp.array([0.0, 0.0, -DEPTH]))
    plant.add_deformable_body("cube", cube_mesh(), FOAM, pose=place, properties=mbjax.ProximityProperties(0.5))
    return plant.finalize()


def test_a_cube_in_a_half_space_has_its_face_and_the_pressure_of_its_depth(sunk: mbjax.MultibodyModel) -> None:
    ((names, surface),) = mbjax.deformable_contact_surfaces(sunk, mbjax.default_state(sunk)).items()
    assert names == ("DefaultModelInstance::cube", "world::ground")
    faces = np.asarray(surface.active)
    bottom = np.asarray(surface.normal_W)[faces, 2] > 0.5  # sides are in the ground as well, without an upward normal
    np.testing.assert_allclose(np.asarray(surface.normal_W)[faces][bottom], [[0.0, 0.0, 1.0]] * 2, atol=1e-14)
    np.testing.assert_allclose(surface.area[faces][bottom].sum(), SIDE**2, rtol=1e-12)
    np.testing.assert_allclose(surface.pressure[faces][bottom], MODULUS * DEPTH / THICKNESS, rtol=1e-9)
    assert int(surface.left_out) == 0
    for face in np.flatnonzero(faces):
        vertices = np.asarray(surface.vertices_W)[face, : int(surface.num_vertices[face])]
        fan = [np.cross(p - vertices[0], r - vertices[0]) for p, r in itertools.pairwise(vertices[1:])]
        along = 0.5 * np.sum(fan, axis=0) @ np.asarray(surface.normal_W[face])
        np.testing.assert_allclose(along, surface.area[face], atol=1e-15)
    off = mbjax.set_deformable_enabled(sunk, "cube", False)
    (none,) = mbjax.deformable_contact_surfaces(off, mbjax.default_state(sunk)).values()
    assert not none.active.any()
    assert not none.area.any()


@pytest.mark.whole_run("derivatives of two bodies that touch, and a surface's numbers, above")
def test_the_push_of_a_surface_is_differentiated_by_nodes(sunk: mbjax.MultibodyModel) -> None:
    state = mbjax.default_state(sunk)
    x = state.nodes.position
    below = jnp.where(x[:, 2:] < 0.5 * SIDE, 0.95, 1.0) * jnp.array([1.0, 1.0, 0.0]) + jnp.array([0.0, 0.0, 1.0])
    bent = x * below + 1e-4 * jnp.asarray(np.random.default_rng(0).uniform(-1.0, 1.0, (8, 3)))  # sides lean outward

    def push(x: jax.Array) -> jax.Array:
        moved = dataclasses.replace(state, nodes=mbjax.NodeState(x, state.nodes.velocity))
        (surface,) = mbjax.deformable_contact_surfaces(sunk, moved).values()
        corners = jnp.sum(jnp.where(surface.active[:, None, None], surface.vertices_W, 0.0))
        return 1e-3 * jnp.sum(surface.area * surface.pressure) + corners

    check_gradients(push, bent)


def test_a_model_without_deformable_bodies_is_refused() -> None:
    model = mbjax.load("pendulum")
    with pytest.raises(mbjax.ModelError, match="deformable_contact_surfaces: the model has no deformable bodies"):
        mbjax.deformable_contact_surfaces(model, mbjax.default_state(model))
