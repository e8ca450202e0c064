"""Deformable bodies in a plant: Drake's steps, an independent solution, derivatives, batches, rest, bad input."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import parameters
from mbjax.finite_elements import LAWS, lame_constants

from ..deformable_meshes import box_mesh, held_bar
from .deformable_plants import DT, FOAM, DrakePlant, Wind, at_height, foam, moving_state, swinging_plant


def residual_in_numpy(plant: Any, before: Any, after: Any, wind: float) -> np.ndarray:
    """The step's equation at its end, summed element by element; of a body held by a wall, under gravity and wind."""
    (body,) = plant.deformables
    law, material = LAWS[body.material.model], body.material
    lame = lame_constants(np.array([material.youngs_modulus]), np.array([material.poissons_ratio]))
    x, v0, v = (np.asarray(a) for a in (after.nodes.position, before.nodes.velocity, after.nodes.velocity))
    np.testing.assert_allclose(x, np.asarray(before.nodes.position) + 0.5 * DT * (v0 + v), atol=1e-15)
    total = np.zeros_like(x)
    for nodes in body.tetrahedra:
        X = body.points[nodes]
        inner = np.linalg.inv((X[1:] - X[0]).T)
        g = np.concatenate([-inner.sum(axis=0)[None], inner])
        volume = np.linalg.det(X[1:] - X[0]) / 6.0
        F, rate = x[nodes].T @ g, v[nodes].T @ g
        C = np.asarray(jax.jacfwd(lambda F: law.stress(F[None], F[None], lame)[0])(jnp.array(F))).reshape(9, 9)
        values, vectors = np.linalg.eigh(C)
        positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
        P = np.asarray(law.stress(jnp.array(F)[None], jnp.array(F)[None], lame)[0])
        P = P + material.stiffness_damping * (positive @ rate.reshape(9)).reshape(3, 3)
        mass = material.mass_density * volume
        acceleration = np.mean((v[nodes] - v0[nodes]) / DT + material.mass_damping * v[nodes], axis=0)
        ahead = np.asarray(before.nodes.position)[nodes] + DT * v0[nodes]
        blown = volume * np.linalg.det(ahead.T @ g) * wind * np.sin(20.0 * ahead.mean(axis=0))
        total[nodes] += volume * g @ P.T + 0.25 * mass * (acceleration - np.array([0.0, 0.0, -9.81])) - 0.25 * blown
    return np.where(body.held[:, None], 0.0, total)


@pytest.mark.parametrize(
    "law", [pytest.param("corotated", marks=pytest.mark.whole_run("neo_hookean stands for it")), "neo_hookean"]
)
def test_a_step_solves_the_equation_that_numpy_sums(law: str) -> None:
    plant = held_bar(foam(law))
    plant.add_force_density(Wind(jnp.array(2000.0)), per="current_volume")
    model = plant.finalize()
    before = moving_state(model)
    of_held = jnp.where(model.deformables.mesh.is_held[:, None], 1.0, before.nodes.velocity)  # which is left aside
    given = mbjax.State(before.q, before.v, before.time, mbjax.NodeState(before.nodes.position, of_held))
    after, _ = mbjax.step(model, given)
    residual = residual_in_numpy(plant, before, after, 2000.0)
    weight = 9.81 * FOAM["mass_density"] * 0.02**3
    assert np.abs(residual).max() < 1e-9 * weight


@pytest.mark.parametrize("law", ["linear", "linear_corotated"])
def test_bodies_held_by_a_wall_move_as_in_drake(law: str, tmp_path: Any) -> None:
    pydrake_plant = pytest.importorskip("pydrake.multibody.plant")
    fem = pytest.importorskip("pydrake.multibody.fem")
    points, tetrahedra = box_mesh((2, 1, 1), (0.04, 0.02, 0.02))
    theirs = DrakePlant(pydrake_plant, fem, points, tetrahedra, law, tmp_path)
    theirs.deformable_model.SetWallBoundaryCondition(theirs.body, np.array([1e-6, 0, 0]), np.array([1.0, 0, 0]))
    plant = held_bar(foam(law))
    model = plant.finalize()
    state = mbjax.default_state(model)
    step = jax.jit(lambda state: mbjax.step(model, state)[0])
    positions = theirs.run(20)
    for expected in positions:
        state = step(state)
        np.testing.assert_allclose(state.nodes.position, expected, rtol=0, atol=1e-12)
    assert np.abs(state.nodes.position - points).max() > 5e-4


@pytest.mark.parametrize(
    "approximation", ["sap", pytest.param("lagged", marks=pytest.mark.whole_run("sap stands for it"))]
)
def test_a_body_fixed_to_a_swinging_link_moves_as_in_drake(approximation: str, tmp_path: Any) -> None:
    pydrake_plant = pytest.importorskip("pydrake.multibody.plant")
    fem = pytest.importorskip("pydrake.multibody.fem")
    points, tetrahedra = box_mesh((2, 1, 1), (0.04, 0.02, 0.02))
    theirs = DrakePlant(pydrake_plant, fem, points, tetrahedra, "linear_corotated", tmp_path, approximation)
    theirs.add_swinging_link()
    plant = swinging_plant(approximation)
    model = plant.finalize()
    state = mbjax.default_state(model)
    step = jax.jit(lambda state: mbjax.step(model, state))
    for expected in theirs.run(40):
        state, _ = step(state)
        np.testing.assert_allclose(state.nodes.position, expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(jnp.abs(state.q), np.abs(theirs.q()), atol=1e-11)
    assert abs(float(state.q[0])) > 0.1


@pytest.mark.whole_run("momenta of motions that are known, below, and blocks that fall as in Drake")
def test_free_bodies_keep_their_momenta_and_fall() -> None:
    """Two bodies in one plant, of different laws, without damping by mass, one without gravity."""
    plant = mbjax.MultibodyPlant(DT)
    mesh = box_mesh((2, 1, 1), (0.04, 0.02, 0.02))
    floating = plant.add_model_instance("floating")
    plant.set_gravity_enabled(floating, False)
    plant.add_deformable_body("first", mesh, foam("linear_corotated", mass_damping=0.0), model_instance=floating)
    plant.add_deformable_body("second", mesh, foam("linear_corotated", mass_damping=0.0), pose=at_height(0.3))
    model = plant.finalize()
    state = moving_state(model, 1e-3)
    trajectory = mbjax.rollout(model, state, num_steps=20)
    before, after = (mbjax.deformable_momentum(model, s) for s in (state, trajectory.final_state))
    np.testing.assert_allclose(after.mass, FOAM["mass_density"] * 0.04 * 0.02 * 0.02, rtol=1e-12)
    np.testing.assert_allclose(after.velocity[0], before.velocity[0], atol=1e-12)
    np.testing.assert_allclose(after.velocity[1] - before.velocity[1], [0.0, 0.0, -9.81 * 20 * DT], atol=1e-12)
    fall = before.center_of_mass[1] + 20 * DT * before.velocity[1] - jnp.array([0, 0, 0.5 * 9.81 * (20 * DT) ** 2])
    np.testing.assert_allclose(after.center_of_mass[1], fall, atol=1e-12)  # the midpoint rule is exact here
    energies = mbjax.deformable_energies(model, trajectory.final_state)
    assert (energies.elastic > 0.0).all()


@pytest.mark.whole_run("single worlds as in Drake, above; broken ones in tests/contact/test_drops.py")
def test_batches_equal_single_worlds_and_a_bad_world_harms_no_other() -> None:
    model = held_bar(foam("neo_hookean"), (1, 1, 1)).finalize()
    states = [moving_state(model, seed=seed) for seed in range(3)]
    many = jax.tree.map(lambda *x: jnp.stack(x), *states)
    broken = eqx.tree_at(lambda s: s.nodes.position, many, many.nodes.position.at[1].set(jnp.nan))
    step = jax.jit(jax.vmap(lambda s: mbjax.step(model, s)[0]))
    after, after_broken = step(many), step(broken)
    for k, state in enumerate(states):
        alone, _ = mbjax.step(model, state)
        np.testing.assert_allclose(after.nodes.position[k], alone.nodes.position, atol=1e-14)
        if k != 1:
            np.testing.assert_array_equal(after_broken.nodes.position[k], after.nodes.position[k])
    assert np.isnan(after_broken.nodes.position[1]).any()
    per_world = jax.vmap(
        lambda E: mbjax.step(eqx.tree_at(lambda m: m.deformables.youngs_modulus, model, E), states[0])[0]
    )(jnp.array([[2e4], [4e4]]))
    np.testing.assert_allclose(per_world.nodes.position[0], after.nodes.position[0], atol=1e-14)
    assert jnp.abs(per_world.nodes.position[1] - after.nodes.position[0]).max() > 1e-6


def test_numbers_have_names_groups_and_can_be_drawn() -> None:
    points, tetrahedra = box_mesh((1, 1, 1), (0.02, 0.02, 0.02))
    plant = mbjax.MultibodyPlant(DT)
    plant.add_deformable_body("soft", (points, tetrahedra), foam("linear"))
    plant.add_deformable_body("hard", (points, tetrahedra), foam("linear", youngs_modulus=np.linspace(1e5, 2e5, 6)))
    model = plant.finalize()
    found = [number for number in parameters.named_numbers(model).values() if number.kind.name == "youngs_modulus"]
    assert len(found) == 7
    worlds, _ = mbjax.randomize(
        model, jax.random.key(0), 4, {"youngs_modulus:soft": mbjax.uniform(0.5, 2.0, relative=True)}
    )
    drawn = worlds.deformables.youngs_modulus
    assert drawn.shape == (4, 7)
    assert np.ptp(drawn[:, 0]) > 0
    assert (np.ptp(drawn[:, 1:], axis=0) == 0).all()
    chosen, _ = eqx.partition(model, parameters.materials(model))
    assert len(jax.tree.leaves(chosen)) == 5
    np.testing.assert_allclose(model.deformables.mass("soft"), 500.0 * 8e-6)


@pytest.mark.whole_run("one that is off touches nothing, in test_contact_between_deformables.py")
def test_a_disabled_body_stays_and_acts_on_nothing() -> None:
    model = swinging_plant().finalize()
    state = mbjax.default_state(model)
    off = mbjax.set_deformable_enabled(model, "bar", False)
    with pytest.raises(mbjax.ModelError, match="one truth value"):
        mbjax.set_deformable_enabled(model, "bar", 2)
    step = jax.jit(mbjax.step)
    (alone, outputs), (with_bar, _) = step(off, state), step(model, state)
    np.testing.assert_array_equal(alone.nodes.position, state.nodes.position)
    link = mbjax.SpatialInertia.solid_cube_with_mass(0.02, 0.02).shift(jnp.array([-0.03, 0.0, 0.0]))
    moment = link.unit_inertia.moments[1] * 0.02
    np.testing.assert_allclose(alone.v[0], DT * 0.02 * 9.81 * 0.03 / moment, rtol=1e-9)
    assert abs(float(with_bar.v[0] - alone.v[0])) > 1e-3
    a_com = jnp.cross(jnp.array([0.0, outputs.generalized_acceleration[0], 0.0]), jnp.array([0.03, 0.0, 0.0]))
    np.testing.assert_allclose(outputs.reaction_forces[0, 3:], 0.02 * (a_com + jnp.array([0, 0, 9.81])), atol=1e-12)


@pytest.mark.whole_run("a body fixed to a swinging link moves as in Drake")
def test_action_equals_reaction_and_constraints_beside_stay_apart() -> None:
    """What the bar's momentum needs is what the joint's reaction has beside the link's own."""
    plant = swinging_plant()
    plant.add_rigid_body("pendulum", mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.1))
    plant.add_joint(
        mbjax.RevoluteJoint("second", plant.world_frame, plant.frame("pendulum"), axis=[0.0, 1.0, 0.0],
                            X_BM=at_height(0.2))
    )  # fmt: skip
    plant.add_coupler_constraint("second", "swing", 0.5)
    model = plant.finalize()
    state = mbjax.set_velocities(model, moving_state(model, 1e-3), [0.4, 0.2])
    after, outputs = jax.jit(mbjax.step)(model, state)
    assert outputs.constraint_forces.shape == (1,)
    assert bool(outputs.deformables_converged.all())
    g = jnp.array([0.0, 0.0, -9.81])
    before_bar, after_bar = (mbjax.deformable_momentum(model, s) for s in (state, after))
    m, alpha = before_bar.mass[0], FOAM["mass_damping"]
    needed = m * ((after_bar.velocity[0] - before_bar.velocity[0]) / DT + alpha * after_bar.velocity[0] - g)
    link = model.body_index("link")
    X_WB, A = mbjax.body_poses_in_world(model, state.q)[link], outputs.body_spatial_accelerations[link]
    p = X_WB.rotation @ mbjax.center_of_mass_in_body_frame(model, "link")
    w = mbjax.body_spatial_velocities_in_world(model, state.q, state.v)[link, :3]
    a_com = A[3:] + jnp.cross(A[:3], p) + jnp.cross(w, jnp.cross(w, p))
    swing = outputs.reaction_forces[model.joint_names.index("swing"), 3:]
    of_link = mbjax.mass(model, "link") * (a_com - g)
    np.testing.assert_allclose(X_WB.rotation @ swing, needed + of_link, rtol=1e-12, atol=1e-12)


@pytest.mark.whole_run("bodies behind a wall, and one fixed to a swinging link, move as in Drake")
@pytest.mark.parametrize("has_joint", [False, True])
def test_nodes_fixed_to_the_world_stay_nearly_as_behind_a_wall(has_joint: bool) -> None:
    """Near-rigid: the bar sags as one behind a wall; with and without rigid bodies that move."""
    plant = mbjax.MultibodyPlant(DT)
    if has_joint:
        plant.add_rigid_body("beside", mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.1))
    plant.add_deformable_body("bar", box_mesh((2, 1, 1), (0.04, 0.02, 0.02)), foam("linear_corotated"))
    plant.add_fixed_constraint("bar", "world", shape=mbjax.Box((0.01, 0.1, 0.1)))
    behind = held_bar(foam("linear_corotated")).finalize()
    models = plant.finalize(), behind
    found, expected = (mbjax.rollout(m, mbjax.default_state(m), num_steps=60).nodes.position[-1] for m in models)
    moved = np.abs(expected - behind.deformables.reference_positions).max()
    assert moved > 5e-4
    np.testing.assert_allclose(found, expected, atol=2e-3 * moved)
    at_rest = [mbjax.deformable_equilibrium(m).state.nodes.position for m in models]
    np.testing.assert_allclose(at_rest[0], at_rest[1], atol=1e-12)


@pytest.mark.whole_run("equilibria under weight in test_bending_of_bars.py, and forces per volume in steps, above")
def test_an_equilibrium_says_where_forces_depend_on_the_place() -> None:
    """A wind that grows with height: the first call is not at rest, and says so; calls from the result come to it."""
    plant = held_bar(foam("linear"))
    plant.add_force_density(lambda p: jnp.array([0.0, 0.0, 2e5]) * p[2])
    model, state, count = plant.finalize(), None, 0
    while not bool((found := mbjax.deformable_equilibrium(model, state)).converged.all()):
        state, count = found.state, count + 1
        assert count < 20
    assert count >= 1
    again = mbjax.deformable_equilibrium(model, found.state).state.nodes.position
    moved = np.abs(found.state.nodes.position - model.deformables.reference_positions).max()
    np.testing.assert_allclose(again, found.state.nodes.position, atol=1e-5 * moved)


def test_momenta_and_energies_of_motions_that_are_known() -> None:
    """A rigid rotation, a uniform stretch: as formulas say, with each element's mass at its centroid."""
    plant = mbjax.MultibodyPlant(DT)
    points, tetrahedra = box_mesh((1, 2, 1), (0.1, 0.2, 0.1))
    plant.add_deformable_body("block", (points, tetrahedra), foam("corotated"), pose=at_height(0.5))
    few = (
        np.concatenate([0.1 * np.eye(3), np.zeros((1, 3)), [[0.08, 0.08, 0.08]]]),
        np.array([[0, 1, 3, 2], [0, 1, 2, 4]]),
    )
    for name, count in (("point", 1), ("line", 2)):  # whose masses are
        plant.add_deformable_body(name, (few[0][: 3 + count], few[1][:count]))
        plant.set_wall_boundary_condition(name, [0.04, 0.04, 0.0], [-1.0, -1.0, 0.0])
    model = plant.finalize()
    state = mbjax.default_state(model)
    rest = mbjax.deformable_momentum(model, state)
    w, u = jnp.array([0.3, -0.2, 0.7]), jnp.array([1.0, 2.0, 3.0])
    turning = u + jnp.cross(w, state.nodes.position - rest.center_of_mass[0])
    nodes = mbjax.NodeState(state.nodes.position, turning)
    moved = mbjax.deformable_momentum(model, dataclasses.replace(state, nodes=nodes))
    np.testing.assert_allclose(moved.velocity[0], u, atol=1e-12)
    np.testing.assert_allclose(moved.angular_velocity[0], w, atol=1e-12)
    along = np.ones(3) / np.sqrt(3.0)
    np.testing.assert_allclose(moved.angular_velocity[1:], [np.zeros(3), w - along * (along @ w)], atol=1e-12)
    centroids = points[tetrahedra].mean(axis=1) + np.array([0.0, 0.0, 0.5])
    r = centroids - np.asarray(rest.center_of_mass[0])
    each = FOAM["mass_density"] * 0.1 * 0.2 * 0.1 / len(tetrahedra)
    np.testing.assert_allclose(rest.center_of_mass[0], [0.05, 0.1, 0.55], atol=1e-14)
    np.testing.assert_allclose(moved.angular_momentum[0], each * np.cross(r, np.cross(w, r)).sum(axis=0), atol=1e-14)
    stretched = state.nodes.position * jnp.array([1.2, 1.0, 1.0])
    energies = mbjax.deformable_energies(model, dataclasses.replace(state, nodes=mbjax.NodeState(stretched, turning)))
    lame = lame_constants(FOAM["youngs_modulus"], FOAM["poissons_ratio"])
    np.testing.assert_allclose(energies.elastic[0], 0.1 * 0.2 * 0.1 * (lame.mu + 0.5 * lame.lam) * 0.2**2, rtol=1e-12)
    kinetic = 0.5 * each * np.sum((np.asarray(u) + np.cross(w, r)) ** 2)
    np.testing.assert_allclose(energies.kinetic[0], kinetic, rtol=1e-12)
