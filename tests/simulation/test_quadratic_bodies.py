"""Deformable bodies of ten-node tetrahedra in a plant: momenta, derivatives, beside linear ones, contact, bad input."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.errors import UnsupportedError
from mbjax.finite_elements import at_mass_points, calc_mass_averages
from mbjax.visualization.deformable_surfaces import deformable_surfaces, surface_motion

from ..deformable_meshes import box_mesh, held_bar
from ..saving.test_save import assert_same_model, saved_and_loaded
from .deformable_plants import DT, FOAM, at_height, cube_plant, foam, moving_state
from .test_deformable_contact import (
    TILT,
    compliant,
    ground_plant,
    numbers_in_contact,
    rubber,
    with_numbers_in_contact,
)
from .test_deformable_derivatives import CASES, check, check_step, held_bar_in_wind

rng = np.random.default_rng(0)
CUBE = box_mesh((1, 1, 1), (0.02, 0.02, 0.02))


def angular_momentum(model: Any, x: Any, v: Any) -> np.ndarray:
    """Σ m x × v about the origin, with the mass matrix of a step."""
    mesh = model.deformables.mesh
    turning = map(jnp.cross, at_mass_points(mesh, x), at_mass_points(mesh, v))
    return np.asarray(
        jnp.sum(model.deformables.element_masses()[:, None] * calc_mass_averages(mesh, tuple(turning)), 0)
    )


@pytest.mark.whole_run("sags and the first frequency of such bars, in test_bending_of_bars.py")
def test_a_free_body_keeps_its_momentum_falls_and_turns_as_the_scheme_says() -> None:
    """The forces at a step's end have no moment there; the midpoint rule of positions leaves dt/2 Σ m v × v0."""
    plant = mbjax.MultibodyPlant(DT)
    plant.add_deformable_body("cube", CUBE, foam("stable_neo_hookean", mass_damping=0.0, stiffness_damping=0.0),
                              elements="quadratic")  # fmt: skip
    model = plant.finalize()
    before = moving_state(model, 5e-4)
    after, outputs = jax.jit(lambda s: mbjax.step(model, s))(before)
    assert bool(outputs.deformables_converged.all())
    first, last = (mbjax.deformable_momentum(model, s) for s in (before, after))
    np.testing.assert_allclose(first.mass, FOAM["mass_density"] * 8e-6, rtol=1e-12)
    fall = jnp.array([0.0, 0.0, -9.81 * DT])
    np.testing.assert_allclose(last.velocity, first.velocity + fall, atol=1e-12)
    np.testing.assert_allclose(
        last.center_of_mass, first.center_of_mass + DT * (first.velocity + 0.5 * fall), atol=1e-12
    )
    x0, v0, x, v = (np.asarray(a) for s in (before, after) for a in (s.nodes.position, s.nodes.velocity))
    moment = np.cross(last.center_of_mass[0], first.mass[0] * fall)
    gained = angular_momentum(model, x, v) - angular_momentum(model, x0, v0)
    np.testing.assert_allclose(gained, 0.5 * DT * angular_momentum(model, v, v0) + moment, atol=1e-15)
    assert np.abs(gained).max() > 1e-9
    r, u = x0 - np.asarray(first.center_of_mass), v0 - np.asarray(first.velocity)
    np.testing.assert_allclose(first.angular_momentum[0], angular_momentum(model, r, u), atol=1e-17)
    spun = dataclasses.replace(
        before, nodes=mbjax.NodeState(before.nodes.position, jnp.cross(jnp.array([1.0, 2, 3]), x0))
    )
    found = mbjax.deformable_momentum(model, spun)
    np.testing.assert_allclose(found.angular_velocity, [[1.0, 2.0, 3.0]], rtol=1e-10)
    kinetic = mbjax.deformable_energies(model, spun).kinetic
    expected = 0.5 * jnp.vdot(jnp.array([1.0, 2, 3]), angular_momentum(model, x0, spun.nodes.velocity))
    np.testing.assert_allclose(kinetic, expected, rtol=1e-12)


@pytest.mark.whole_run("derivatives of a step of two bodies that touch, of linear elements")
@pytest.mark.parametrize("law", CASES)
def test_derivatives_of_a_step_by_every_number_and_the_state(law: str) -> None:
    """Stretched, so that no eigenvalue of the stiffness changes its sign over the differences."""
    model = held_bar_in_wind(law, "quadratic", 1e-3)
    assert model.deformables.reference_positions.shape == (8, 3)
    state = moving_state(model, 1e-5)
    position, velocity = state.nodes.position * jnp.array([1.05, 1.0, 1.0]), 0.05 * state.nodes.velocity
    check_step(model, dataclasses.replace(state, nodes=mbjax.NodeState(position, velocity)))


@pytest.mark.whole_run("sags in test_bending_of_bars.py, and derivatives of a step of two bodies that touch")
def test_a_rest_state_and_its_derivatives() -> None:
    model = held_bar(foam("stable_neo_hookean"), (2, 1, 1), elements="quadratic").finalize()

    def sag(at: Any) -> jax.Array:
        E, X = at
        changed = dataclasses.replace(model.deformables, youngs_modulus=E, reference_positions=X)
        found = mbjax.deformable_equilibrium(dataclasses.replace(model, deformables=changed))
        return jnp.sum(found.state.nodes.position[:, 2] ** 2) * 1e3

    check(sag, (model.deformables.youngs_modulus, model.deformables.reference_positions), 1e-6)


def fixed_and_held(whole: bool) -> Any:
    """A quadratic bar on a swinging link and, in the whole plant, a linear one of another law behind a wall."""
    plant = mbjax.MultibodyPlant(DT)
    mesh = box_mesh((2, 1, 1), (0.04, 0.02, 0.02))
    if whole:
        plant.add_deformable_body("held", mesh, foam("corotated"), pose=at_height(0.3))
        plant.set_wall_boundary_condition("held", [1e-6, 0.0, 0.0], [1.0, 0.0, 0.0])
    link = plant.add_rigid_body("link", mbjax.SpatialInertia.solid_cube_with_mass(0.02, 0.02))
    plant.add_joint(mbjax.RevoluteJoint("swing", plant.world_frame, plant.frame(link), axis=[0.0, 1.0, 0.0]))
    plant.add_deformable_body("bar", mesh, foam("linear_corotated"), elements="quadratic")
    fixed = plant.add_fixed_constraint("bar", "link", shape=mbjax.Box((0.01, 0.1, 0.1)))
    assert len(fixed.nodes) == 9  # the corners of a cell's side, and the middles of its edges and of its diagonal
    return plant.finalize()


@pytest.mark.whole_run("sags of each kind in test_bending_of_bars.py, and bodies that move as in Drake")
def test_bodies_of_both_kinds_move_as_each_alone_also_in_batches_and_single_precision() -> None:
    both, alone = fixed_and_held(True), fixed_and_held(False)
    state, plain = mbjax.default_state(both), mbjax.default_state(alone)
    after = mbjax.rollout(both, state, num_steps=10).final_state
    of_alone = mbjax.rollout(alone, plain, num_steps=10).final_state
    np.testing.assert_allclose(both.deformables.positions(after, "bar"), of_alone.nodes.position, atol=1e-12)
    np.testing.assert_allclose(after.q, of_alone.q, atol=1e-11)
    moved = np.abs(of_alone.nodes.position - plain.nodes.position)
    assert moved.max() > 1e-3
    many = jax.tree.map(lambda x: jnp.stack([x, x]), plain)
    in_batch = jax.jit(jax.vmap(lambda s: mbjax.step(alone, s)[0]))(many)
    one = mbjax.step(alone, plain)[0]
    np.testing.assert_allclose(in_batch.nodes.position[1], one.nodes.position, atol=1e-14)
    single = jax.tree.map(lambda x: x.astype(jnp.float32) if jnp.issubdtype(x.dtype, jnp.floating) else x, alone)
    found, outputs = mbjax.step(single, mbjax.default_state(single))
    assert found.nodes.position.dtype == jnp.float32
    assert bool(outputs.deformables_converged.all())
    np.testing.assert_allclose(found.nodes.position, one.nodes.position, atol=1e-7)


@pytest.mark.whole_run("sags of such elements in test_bending_of_bars.py; linear blocks that fall as in Drake")
def test_a_block_comes_to_rest_on_the_ground_with_its_weight() -> None:
    plant = mbjax.MultibodyPlant(DT)
    plant.register_collision_geometry(
        plant.world_body, mbjax.RigidTransform.identity(), mbjax.HalfSpace(), "ground",
        compliant().add_compliant_hydroelastic_properties_for_half_space(0.1, 1e6),
    )  # fmt: skip
    material = foam("linear_corotated", stiffness_damping=0.05)
    plant.add_deformable_body("cube", CUBE, material, elements="quadratic", pose=at_height(1e-5))
    model = plant.finalize()
    assert model.deformables.triangles("cube").shape == (48, 3)
    step, state = jax.jit(lambda state: mbjax.step(model, state)), mbjax.default_state(model)
    for _ in range(61):
        state, outputs = step(state)
        assert bool(outputs.deformables_converged.all())
    contact = outputs.deformable_contacts.of(model, "cube", "world::ground")
    np.testing.assert_allclose(contact.area, 4e-4, rtol=0.02)
    weight = 9.81 * FOAM["mass_density"] * 8e-6
    np.testing.assert_allclose(contact.spatial_force[3:], [0.0, 0.0, -weight], atol=1e-3 * weight)
    assert np.abs(state.nodes.velocity).max() < 1e-3


@pytest.mark.whole_run("derivatives of two bodies of linear elements that touch")
def test_derivatives_of_a_step_with_contact() -> None:
    """Of a cube that slides over the ground, at a tilt so that no face stands upright."""
    plant = ground_plant()
    pose = mbjax.RigidTransform(jnp.asarray(TILT), jnp.array([0.31, 0.12, 0.005]))
    material = foam("linear_corotated")
    plant.add_deformable_body("cube", CUBE, material, pose=pose, properties=rubber(), elements="quadratic")
    model = plant.finalize()
    state = mbjax.default_state(model)
    v = jnp.asarray(0.05 * rng.normal(size=state.nodes.velocity.shape) + [0.4, 0.1, -0.3])
    state = dataclasses.replace(state, nodes=mbjax.NodeState(state.nodes.position, v))
    contacts = mbjax.step(model, state)[1].deformable_contacts
    assert contacts.of(model, "cube", "world::ground").area > 1e-6
    weights = jnp.array(rng.normal(size=v.shape))

    def loss(at: Any) -> jax.Array:
        numbers, nodes = at
        before = dataclasses.replace(state, nodes=nodes)
        after, outputs = mbjax.step(with_numbers_in_contact(model, numbers), before)
        read = jnp.sum(weights * (after.nodes.position + 0.1 * after.nodes.velocity))
        return read + 1e-2 * jnp.sum(outputs.deformable_contacts.force[:, 0])

    check(loss, (numbers_in_contact(model), state.nodes), 3e-6, h=2e-6)


def test_what_is_shown_and_refused() -> None:
    with pytest.raises(mbjax.ModelError, match=r"elements must be one of 'linear', 'quadratic', got 'cubic'"):
        mbjax.MultibodyPlant(DT).add_deformable_body("cube", CUBE, elements="cubic")
    plant = cube_plant()
    plant.add_deformable_body("fine", CUBE, foam("linear"), elements="quadratic", pose=at_height(0.1))
    with pytest.raises(mbjax.ModelError, match="all nodes of 'fine'"):
        plant.set_wall_boundary_condition("fine", [0.0, 0.0, 1.0], [0.0, 0.0, 1.0])
    model = plant.finalize()
    assert "6 quadratic" in str(model)
    deformables = model.deformables
    assert deformables.nodes("fine") == slice(8, 35)
    assert deformables.corners("fine") == slice(8, 16)
    np.testing.assert_allclose(deformables.reference_positions[deformables.corners("fine")], CUBE[0] + [0, 0, 0.1])
    np.testing.assert_allclose(deformables.mass("fine"), 500.0 * 8e-6)
    assert "0.01  0.01  0.11" in str(mbjax.describe(model, mbjax.default_state(model)))
    assert_same_model(model, saved_and_loaded(model))
    with pytest.raises(UnsupportedError, match="its elements are quadratic"):
        mbjax.to_sdf(model)


@pytest.mark.parametrize("color_by", ["strain", "stress"])
def test_a_bent_bar_is_drawn_with_four_triangles_a_face_in_colors_of_its_bending(color_by: str) -> None:
    """One cell across sees what linear elements of one cell cannot: strain at both sides, and none between."""
    model = held_bar(foam("linear"), (4, 1, 1), elements="quadratic").finalize()
    surfaces = deformable_surfaces(model)
    (body,) = surfaces.bodies
    assert body.triangles.shape == (4 * 36, 3)
    rest = np.asarray(model.deformables.rest_positions())
    bent = rest + 0.05 * np.stack([-(rest[:, 2] - 0.01) * rest[:, 0], 0.0 * rest[:, 0], 0.5 * rest[:, 0] ** 2], axis=1)
    motion = surface_motion("show", model, surfaces, bent[None], [0.0], color_by)
    sides = np.isclose(np.abs(rest[surfaces.nodes, 2] - 0.01), 0.01)
    assert motion.values is not None
    values = motion.values[0]
    assert values[sides].min() > 3.0 * values[~sides].max()
