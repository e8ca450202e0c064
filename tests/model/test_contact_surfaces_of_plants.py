"""Which pairs of a plant touch by hydroelastic surfaces, beside Drake's choice, and what is refused."""

import pathlib

import jax
import numpy as np
import pytest

import mbjax
from mbjax.geometry import Box, Convex, Cylinder, Geometry, HalfSpace, Mesh, ProximityProperties, Shape, Sphere
from mbjax.model import find_numbers, hydroelastic_topology, sentences

INERTIA = mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1)
RIGID = ProximityProperties(0.5).add_rigid_hydroelastic_properties(0.1)
SOFT = ProximityProperties(0.5).add_compliant_hydroelastic_properties(0.1, 1e5)
SLAB = ProximityProperties(0.5).add_compliant_hydroelastic_properties_for_half_space(0.5, 1e5)
PLAIN = ProximityProperties(0.5)


def plant_of(ground: ProximityProperties, ball: ProximityProperties, **settings) -> mbjax.MultibodyPlant:
    """A ball above the ground, and a plain box."""
    plant = mbjax.MultibodyPlant(**{"time_step": 0.01, **settings})
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), ground)
    plant.add_rigid_body("ball", INERTIA)
    plant.register_collision_geometry("ball", Geometry("skin", Sphere(0.1)), ball)
    plant.add_rigid_body("box", INERTIA)
    plant.register_collision_geometry("box", Geometry("skin", Box((0.1, 0.1, 0.1))), PLAIN)
    return plant


@pytest.mark.parametrize(
    ("ground", "ball", "why"),
    [
        (RIGID, SOFT, None),
        (SLAB, RIGID, None),
        (RIGID, RIGID, "both are rigid, and a surface needs one that is compliant"),
        (SLAB, SOFT, "a compliant half space has a surface with rigid shapes alone"),
        (PLAIN, SOFT, "'world::ground' has no hydroelastic properties"),
        (RIGID, PLAIN, "'ball::skin' has no hydroelastic properties"),
    ],
)
def test_pairs_without_a_surface_fall_back_to_points(ground, ball, why) -> None:
    """The choice is Drake's: kCalculated of its contact calculator, or one of its reasons to fall back."""
    model = plant_of(ground, ball).finalize()
    contact = model.layout.contact
    assert model.contact_model == "hydroelastic_with_fallback"
    assert contact.pairs == ((0, 1), (0, 2), (1, 2))
    assert contact.surface_pairs == (() if why else (0,))
    of_points = plant_of(ground, ball, contact_model="point").finalize()
    assert of_points.layout.contact.surface_pairs == ()
    strict = plant_of(ground, ball, contact_model="hydroelastic")
    strict.keep_contact_only([("ball", "ground")])
    if why is None:
        assert strict.finalize().layout.contact.surface_pairs == (0,)
        return
    with pytest.raises(mbjax.ModelError, match=f"'world::ground' and 'ball::skin' may touch, but {why}"):
        strict.finalize()


CORNERS = [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
DENTED = [*CORNERS[:-1], (0.2, 0.2, 0.2)]  # a cube with a corner pushed in
SQUARES = (0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)


def dented_cube(folder: pathlib.Path, num_squares: int = 6) -> str:
    """A file of a cube of 2 m whose surface is not convex; fewer than 6 squares leave a hole."""
    lines = [f"v {x} {y} {z}" for x, y, z in DENTED]
    lines += [f"f {a + 1} {b + 1} {c + 1}\nf {a + 1} {c + 1} {d + 1}" for a, b, c, d in SQUARES[:num_squares]]
    path = folder / f"dented_{num_squares}.obj"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def plant_with_mesh(path: str | None, stone: ProximityProperties, **settings) -> mbjax.MultibodyPlant:
    """A ball above a stone that is a mesh."""
    plant = mbjax.MultibodyPlant(0.01, **settings)
    plant.register_collision_geometry("world", Geometry("stone", Mesh("stone.obj", path, (0.1, 0.1, 0.1))), stone)
    plant.add_rigid_body("ball", INERTIA)
    plant.register_collision_geometry("ball", Geometry("skin", Sphere(0.1)), SOFT)
    return plant


@pytest.mark.parametrize(
    ("path", "stone", "why"),
    [
        ("stone.obj", SOFT, "'world::stone' is a compliant Mesh, which has no pressure field: make it rigid"),
        (None, RIGID, r"the Mesh 'world::stone' has no file on disk \(stone.obj\)"),
        ("stone.obj", RIGID, r"geometry 'world::stone': the rigid Mesh|mesh 'stone.obj' cannot be read"),
    ],
)
def test_meshes_without_a_surface_are_refused(path: str | None, stone: ProximityProperties, why: str) -> None:
    with pytest.raises(mbjax.ModelError, match=why):
        plant_with_mesh(path, stone, contact_model="hydroelastic").finalize()


def test_a_rigid_mesh_keeps_its_triangles_without_its_file(tmp_path) -> None:
    """Also one with a hole, which the report tells."""
    path = dented_cube(tmp_path)
    plant = plant_with_mesh(path, RIGID)
    plant.keep_contact_only([("ball", "stone")])
    model = plant.finalize()
    pathlib.Path(path).unlink()
    mbjax.save(model, tmp_path / "model.npz")
    for each in (model, mbjax.load_model(tmp_path / "model.npz")):
        topology = hydroelastic_topology(each, 0)
        assert (topology.compliance, topology.num_elements) == ("rigid", 12)
        np.testing.assert_allclose(np.abs(topology.mesh.vertices).max(axis=0), 0.1)
    assert "holes" not in str(model.report())
    assert "the mesh has holes, with 4 edges" in str(
        plant_with_mesh(dented_cube(tmp_path, 5), RIGID).finalize().report()
    )


def test_representations_are_drakes() -> None:
    assert mbjax.MultibodyPlant.default_contact_surface_representation(0.01) == "polygon"
    assert mbjax.MultibodyPlant.default_contact_surface_representation(0.0) == "triangle"
    for time_step, default in ((0.01, "polygon"), (0.0, "triangle")):
        assert plant_of(RIGID, SOFT, time_step=time_step).finalize().contact_surface_representation == default
    plant = plant_of(RIGID, SOFT)
    plant.set_contact_surface_representation("triangle")
    plant.set_max_faces(9)
    contact = plant.finalize().layout.contact
    assert (contact.surface_representation, contact.max_faces) == ("triangle", 9)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"max_faces": 0}, "max_faces must be a whole number > 0, or None, got 0"),
        ({"max_faces": 2.5}, r"max_faces must be a whole number > 0, or None, got 2\.5"),
        ({"contact_model": "soft"}, "contact_model='soft': choose one of 'point', 'hydroelastic'"),
        ({"contact_surface_representation": "quad"}, "choose one of 'polygon', 'triangle'"),
    ],
)
def test_bad_settings_are_refused(setting: dict, message: str) -> None:
    with pytest.raises(mbjax.ModelError, match=message):
        plant_of(RIGID, SOFT, **setting)


@pytest.mark.parametrize("shape", [lambda: Sphere(-0.1), lambda: Box((0.1, 0.0, 0.1)), lambda: Cylinder(0.1, -1.0)])
def test_sizes_that_are_not_positive_are_refused(shape) -> None:
    with pytest.raises(ValueError, match=r"is -?[01]\.[01]; give a positive, finite length in metres"):
        shape()


def test_settings_that_surfaces_would_ignore_are_refused() -> None:
    with pytest.raises(mbjax.ModelError, match=r"contact_smoothing_length=0\.001 m is of contact at points"):
        plant_of(RIGID, SOFT, time_step=0.0, contact_smoothing_length=0.001).finalize()


def test_a_saved_model_keeps_its_surfaces(tmp_path) -> None:
    model = plant_of(RIGID, SOFT, max_faces=7).finalize()
    mbjax.save(model, tmp_path / "model.npz")
    kept = mbjax.load_model(tmp_path / "model.npz")
    assert jax.tree.structure(kept) == jax.tree.structure(model)
    assert kept.layout.contact.surface_pairs == (0,)


def test_distances_are_between_all_shapes() -> None:
    model = plant_of(RIGID, SOFT).finalize()
    q = mbjax.default_state(model).q.at[np.array([6, 13])].set(np.array([0.3, 0.7]))
    distances = mbjax.signed_distances(model, q).distance
    np.testing.assert_allclose(distances, [0.2, 0.65, 0.25], atol=1e-12)


PYRAMID = np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]) / 10.0
OTHERS = pytest.mark.whole_run("boxes and hulls")
RESIZED = [  # a shape, numbers that its mesh fits, numbers that it does not
    (Box((0.1, 0.2, 0.3)), (0.15, 0.2, 0.18), (0.25, 0.2, 0.3)),
    pytest.param(Cylinder(0.1, 0.4), (0.1, 0.25), (0.1, 0.1), marks=OTHERS),
    pytest.param(Cylinder(0.1, 0.1), (0.2, 0.3), (0.1, 0.4), marks=OTHERS),
    (Convex(tuple(map(tuple, PYRAMID.tolist()))), 2.0 * PYRAMID, PYRAMID * np.array([1.0, 1.0, -1.0])),
]


@pytest.mark.parametrize(("shape", "fits", "does_not"), RESIZED)
@pytest.mark.parametrize("properties", [SOFT, RIGID], ids=["compliant", "rigid"])
def test_numbers_that_a_mesh_does_not_fit_are_refused(shape: Shape, fits, does_not, properties) -> None:
    """Elements of the mesh, made at finalize, would be inside out. A rigid surface has no inside, but for a hull's."""
    plant = mbjax.MultibodyPlant(0.01)
    other = SLAB if properties is RIGID else RIGID
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), other)
    plant.add_rigid_body("thing", INERTIA)
    plant.register_collision_geometry("thing", Geometry("skin", shape), properties)
    model = plant.finalize()
    name = "set_collision_geometry_vertices" if isinstance(shape, Convex) else "set_collision_geometry_size"
    setter = getattr(mbjax, name)
    setter(model, "skin", fits)
    if properties is RIGID and not isinstance(shape, Convex):
        setter(model, "skin", does_not)
        return
    with pytest.raises(mbjax.ModelError, match=f"does not fit the {type(shape).__name__}'s hydroelastic mesh"):
        setter(model, "skin", does_not)
    status = jax.jit(lambda x: mbjax.model_status(setter(model, "skin", x)).meshes_inside_out)
    assert [int(status(numbers)) for numbers in (fits, does_not)] == [0, 1]
    broken = jax.jit(lambda x: setter(model, "skin", x))(does_not)
    (sentence,) = [sentence for finding in find_numbers(broken) for sentence in sentences(broken, finding)]
    assert " of 'skin' is [" in sentence
    assert "must be as the mesh needs it" in sentence
