"""Contact of deformable bodies with each other: Drake's steps, closed forms, momentum, derivatives, who may touch."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.contact.nodes.points_between_bodies import calc_deep_bodies, points_between_bodies
from mbjax.contact.nodes.surfaces_of_deformables import surface_between_bodies
from mbjax.geometry import TetrahedralMesh, write_tetrahedra
from mbjax.model.deformable_bodies import depth_mesh_of
from mbjax.visualization.soft_contact_arrows import soft_contact_arrows
from tests.gradients.checks import WHOLE_RUN

from ..deformable_meshes import box_mesh
from .deformable_plants import DT, foam
from .test_deformable_contact import PLACE, TILT, at, ground_plant, middle, rubber
from .test_deformable_contact_against_drake import DrakeContact
from .test_deformable_derivatives import check

SIDES = 0.06, 0.05
PLACE_OF_UPPER = PLACE + np.array([0.002, 0.001, 0.0705])


def block(side: float, cells: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """A cube with its middle at the origin."""
    return middle(box_mesh((cells,) * 3, (side,) * 3))


def with_inner_nodes(mesh: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The mesh with nodes where ours has vertices for depths alone: Drake's field has none there."""
    points, tetrahedra = mesh
    found = depth_mesh_of(tetrahedra)
    added = np.einsum("kc,kci->ki", found.weights, points[found.parents])
    return np.concatenate([points, added]), found.tetrahedra


def two_blocks(
    plant: mbjax.MultibodyPlant, meshes: Any, places: Any, friction: float = 0.5, law: str = "linear_corotated"
) -> mbjax.MultibodyModel:
    """A plant's model with a tilted block, and another one above it."""
    rotations = jnp.asarray(TILT), jnp.eye(3)
    for name, mesh, R, place in zip(("lower", "upper"), meshes, rotations, places, strict=True):
        pose = mbjax.RigidTransform(R, jnp.asarray(place))
        plant.add_deformable_body(name, mesh, foam(law), pose=pose, properties=rubber(friction))
    return plant.finalize()


@pytest.mark.parametrize(
    ("approximation", "friction", "tolerance"),
    [
        ("lagged", 0.0, 2e-8),
        pytest.param("similar", 0.5, 1e-5, marks=pytest.mark.whole_run("lagged stands for it")),
        pytest.param("sap", 0.5, 1e-4, marks=pytest.mark.whole_run("lagged stands for it")),
    ],
)
def test_two_blocks_fall_as_in_drake(approximation: str, friction: float, tolerance: float, tmp_path: Any) -> None:
    """One falls on the ground, the other on it. In two approximations the softening of hard contact is estimated."""
    pydrake_plant = pytest.importorskip("pydrake.multibody.plant")
    fem = pytest.importorskip("pydrake.multibody.fem")
    from pydrake.geometry import AddContactMaterial, Box, GeometryInstance, ProximityProperties
    from pydrake.geometry import Mesh as DrakeMesh
    from pydrake.math import RigidTransform, RotationMatrix

    meshes = [with_inner_nodes(block(side)) for side in SIDES]
    place = RigidTransform(RotationMatrix(TILT), PLACE)
    theirs = DrakeContact(pydrake_plant, fem, meshes[0], tmp_path, approximation, friction, place)
    file, config = tmp_path / "upper.vtk", fem.DeformableBodyConfig()
    write_tetrahedra(file, TetrahedralMesh(*meshes[1]))
    material = foam("linear_corotated")
    config.set_youngs_modulus(material.youngs_modulus)
    config.set_poissons_ratio(material.poissons_ratio)
    config.set_mass_density(material.mass_density)
    config.set_mass_damping_coefficient(material.mass_damping)
    config.set_stiffness_damping_coefficient(material.stiffness_damping)
    config.set_material_model(fem.MaterialModel.kLinearCorotated)
    properties = ProximityProperties()
    AddContactMaterial(1.0, None, pydrake_plant.CoulombFriction(friction, friction), properties)
    upper = GeometryInstance(RigidTransform(PLACE_OF_UPPER), DrakeMesh(str(file), 1.0), "upper")
    upper.set_proximity_properties(properties)
    theirs.bodies.append(theirs.deformable_model.RegisterDeformableBody(upper, config, 1.0))
    theirs.add(theirs.plant.world_body(), RigidTransform([0, 0, -0.5]), Box(2, 2, 1), "ground")
    expected = theirs.run(30)
    model = two_blocks(ground_plant(approximation, friction), meshes, (PLACE, PLACE_OF_UPPER), friction)
    state = mbjax.default_state(model)
    step = jax.jit(lambda state: mbjax.step(model, state))
    touched = 0
    for k, positions in enumerate(expected):
        state, outputs = step(state)
        contacts = outputs.deformable_contacts
        touched += bool(contacts.of(model, "lower", "upper").area > 0.0)
        np.testing.assert_allclose(state.nodes.position, positions, rtol=0, atol=tolerance, err_msg=str(k))
        assert bool(outputs.deformables_converged.all())
        assert not contacts.num_left_out.any()
    assert touched > 4


def touching(upper: Any = (0.002, 0.003, 0.042), cells: int = 1, **more: Any) -> mbjax.MultibodyModel:
    """Two cubes of 4 and 5 cm, each free, the upper one at the place given above the lower one's middle."""
    plant = mbjax.MultibodyPlant(DT, **more)
    for name, side, place in (("lower", 0.04, (0.0, 0.0, 0.0)), ("upper", 0.05, upper)):
        plant.add_deformable_body(
            name, block(side, cells), foam("linear_corotated"), pose=at(place), properties=rubber()
        )
    return plant.finalize()


@pytest.mark.parametrize("cells", [1, pytest.param(2, marks=pytest.mark.whole_run("one cell"))])
def test_cubes_that_overlap_touch_half_way_between_their_sides(cells: int) -> None:
    """With depths up to half of the width, the surface is parallel to the sides, the smaller cube's whole but a rim."""
    overlap = 0.003
    model = touching((0.0, 0.0, 0.045 - overlap), cells)
    assert model.deformables is not None
    x = mbjax.default_state(model).nodes.position
    pair = model.deformables.layout.body_contacts[0]

    @jax.jit
    def find(x: jax.Array) -> Any:
        deep = calc_deep_bodies(model.deformables, x)
        points = points_between_bodies(model, model.deformables, deep, x, pair)
        return deep, points, surface_between_bodies(model.deformables, deep, x, pair)

    deep, points, surface = find(x)
    for side, of_body in zip((0.04, 0.05), deep.values(), strict=True):
        assert float(of_body.depth.max()) == pytest.approx(0.5 * side)
        assert bool((of_body.depth.max(axis=0) > 0.0).all())
    flat = points.active & (points.normal_W[2] > 0.999)
    half_way = 0.02 - 0.5 * overlap
    np.testing.assert_allclose(points.p_WC[2][flat], half_way, atol=1e-12)
    np.testing.assert_allclose(points.distance[flat], -0.5 * overlap, atol=1e-12)
    np.testing.assert_allclose(points.area[flat].sum(), (0.04 - overlap) ** 2, rtol=1e-9)
    assert int(points.left_out[0]) == 0
    corners = np.arange(surface.vertices_W.shape[1]) < np.asarray(surface.num_vertices)[:, None]
    heights = np.asarray(surface.vertices_W)[corners & np.asarray(flat)[:, None], 2]
    np.testing.assert_allclose(heights, half_way, atol=1e-12)
    for of_surface, of_points in ((surface.area, points.area), (surface.normal_W, -points.normal_W.T)):
        np.testing.assert_allclose(of_surface, of_points, atol=1e-12)
    np.testing.assert_allclose(surface.pressure, points.pressure, rtol=1e-12)
    of_A, of_B = points.weights[:4], -points.weights[4:]
    for weights, nodes in ((of_A, points.nodes[:4]), (of_B, points.nodes[4:])):
        where = jnp.einsum("km,kmi->im", weights, x[nodes])
        np.testing.assert_allclose(jnp.where(points.active, where - points.p_WC, 0.0), 0.0, atol=1e-12)


@pytest.mark.whole_run("two blocks fall as in Drake")
def test_bodies_that_collide_keep_their_momentum() -> None:
    """Without gravity; the force on one is the opposite of that on the other, and both are named."""
    model = touching(cells=2)
    model = mbjax.set_gravity(model, jnp.zeros(3))
    state = mbjax.default_state(model)
    assert model.deformables is not None
    v = jnp.zeros_like(state.nodes.velocity).at[model.deformables.nodes("upper")].set(jnp.array([0.2, 0.0, -0.5]))
    state = dataclasses.replace(state, nodes=mbjax.NodeState(state.nodes.position, v))
    after, outputs = jax.jit(lambda s: mbjax.step(model, s))(state)
    momenta = [mbjax.deformable_momentum(model, s) for s in (state, after)]
    change = momenta[1].mass[:, None] * (momenta[1].velocity * (1.0 + 0.1 * DT) - momenta[0].velocity)  # mass damping
    np.testing.assert_allclose(change.sum(axis=0), 0.0, atol=1e-13)
    contacts = outputs.deformable_contacts
    on_upper = contacts.of(model, "lower", "upper")
    np.testing.assert_allclose(DT * on_upper.spatial_force[3:], change[1], atol=1e-12)
    np.testing.assert_allclose(contacts.of(model, "upper", "lower").spatial_force, -on_upper.spatial_force)
    assert float(on_upper.spatial_force[5]) > 0.1
    assert contacts.names(model) == (("DefaultModelInstance::lower", "DefaultModelInstance::upper"),)
    arrows = soft_contact_arrows(model, jax.tree.map(lambda x: np.asarray(x)[None], contacts))  # of one frame
    assert arrows.names == ("lower on upper",)
    np.testing.assert_allclose(arrows.vectors[0, 0], on_upper.spatial_force[3:])
    with pytest.raises(mbjax.ModelError, match="may not touch"):
        contacts.of(model, "upper", "upper")


def test_batches_single_precision_and_a_bad_world() -> None:
    """A NaN harms no other world; whole run: a batch equals single worlds, and single precision comes near."""
    model = touching()
    state = mbjax.default_state(model)
    assert state.nodes is not None
    places = [state.nodes.position + shift for shift in (0.0, 1e-4)]
    broken = state.nodes.position.at[0].set(jnp.nan)

    def step(model: mbjax.MultibodyModel, x: jax.Array) -> jax.Array:
        nodes = mbjax.NodeState(x, jnp.zeros_like(x))
        return mbjax.step(model, dataclasses.replace(mbjax.default_state(model), nodes=nodes))[0].nodes.velocity

    many = jax.jit(jax.vmap(lambda x: step(model, x)))
    found, beside = many(jnp.stack([places[0], places[1]])), many(jnp.stack([broken, places[1]]))
    np.testing.assert_array_equal(found[1], beside[1])
    assert np.isfinite(found).all()
    if not WHOLE_RUN:
        return
    one = jax.jit(lambda x: step(model, x))
    for k, x in enumerate(places):
        np.testing.assert_allclose(found[k], one(x), atol=1e-11)
    single = jax.tree.map(lambda x: x.astype(jnp.float32) if jnp.issubdtype(x.dtype, jnp.floating) else x, model)
    in_single = step(single, places[0].astype(jnp.float32))
    assert in_single.dtype == jnp.float32
    np.testing.assert_allclose(in_single, found[0], atol=1e-3 * float(jnp.abs(found[0]).max()))


def test_derivatives_of_a_step_of_two_bodies_that_touch() -> None:
    """By the state, rest shape, friction, dissipation and material, beside differences."""
    rng = np.random.default_rng(3)
    points, tetrahedra = with_inner_nodes(block(0.03))
    uneven = [(points + 1e-3 * rng.normal(size=points.shape), tetrahedra) for _ in range(2)]  # one side is the nearest
    model = two_blocks(mbjax.MultibodyPlant(DT), uneven, (np.zeros(3), np.array([0.011, 0.007, 0.029])))
    state = mbjax.default_state(model)
    assert model.deformables is not None
    v = 0.05 * rng.normal(size=state.nodes.velocity.shape)
    v[model.deformables.nodes("upper")] += [0.3, 0.1, -0.4]
    weights = jnp.array(rng.normal(size=v.shape))

    def loss(given: Any) -> jax.Array:
        (rest, E, rho, mu, d), x, v = given
        changed = dataclasses.replace(
            model.deformables,
            reference_positions=rest,
            youngs_modulus=E,
            mass_density=rho,
            dynamic_friction=mu,
            hunt_crossley_dissipation=d,
        )
        nodes = mbjax.NodeState(x, v)
        of_changed = dataclasses.replace(model, deformables=changed)
        after, outputs = mbjax.step(of_changed, dataclasses.replace(state, nodes=nodes))
        return jnp.sum(weights * (after.nodes.velocity + after.nodes.position)) + 1e-2 * jnp.sum(
            outputs.deformable_contacts.force[:, 0]
        )

    x = state.nodes.position + 2e-4 * rng.normal(size=v.shape)
    D = model.deformables
    numbers = D.reference_positions, D.youngs_modulus, D.mass_density, D.dynamic_friction, D.hunt_crossley_dissipation
    (*_, by_friction, _), *_ = check(loss, (numbers, x, jnp.asarray(v)), 1e-6, h=2e-6)
    assert by_friction.any()  # they touch, and slide


def test_which_bodies_may_touch_each_other(tmp_path: Any) -> None:
    """All, but for those that filters exclude; a bound on polygons counts what it leaves out; files keep the pairs."""

    def pairs(change: Any, **more: Any) -> list[tuple[str, str]]:
        plant = mbjax.MultibodyPlant(DT, **more)
        for k, name in enumerate("abc"):
            plant.add_deformable_body(name, block(0.02), pose=at([0.0, 0.0, 0.1 * k]))
        change(plant)
        model = plant.finalize()
        assert model.deformables is not None
        names = model.deformables.names
        return [(names[x.deformable_A], names[x.deformable_B]) for x in model.deformables.layout.body_contacts]

    assert pairs(lambda plant: None) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert pairs(lambda plant: plant.exclude_collisions_between("c", "a")) == [("a", "b"), ("b", "c")]
    assert pairs(lambda plant: plant.keep_contact_only([("c", "b")])) == [("b", "c")]
    assert pairs(lambda plant: None, contact_model="none") == []
    model = touching(max_faces=2)
    state = mbjax.default_state(model)
    outputs = jax.jit(mbjax.outputs)
    contacts = outputs(model, state).deformable_contacts
    assert int(contacts.num_left_out[0]) > 0
    assert int(contacts.is_active.sum()) == 2
    off = mbjax.set_deformable_enabled(model, "upper", False)
    assert not outputs(off, state).deformable_contacts.is_active.any()
    mbjax.save(model, tmp_path / "model.mbjax")
    assert mbjax.load_model(tmp_path / "model.mbjax").deformables.layout == model.deformables.layout
