"""Meshes that `add_deformable_body` takes, and numbers of a body that are refused before a model is made."""

import pathlib

import numpy as np
import pytest

from mbjax import Box, DeformableMaterial, Mesh, ModelError, MultibodyPlant, Sphere, TetrahedralMesh, write_tetrahedra
from mbjax.plant.number_checks import find_overflow
from tests.geometry.vtk_texts import POINTS, TETRAHEDRA


def test_a_mesh_comes_from_arrays_a_record_a_file_or_a_shape(tmp_path: pathlib.Path) -> None:
    mesh = TetrahedralMesh(POINTS, TETRAHEDRA)
    path = write_tetrahedra(tmp_path / "pad.vtk", mesh)
    plant = MultibodyPlant(time_step=0.01)
    for k, given in enumerate((mesh, (POINTS, TETRAHEDRA), path, str(path), Mesh("pad.vtk", str(path)))):
        declared = plant.add_deformable_body(f"pad {k}", given)
        np.testing.assert_array_equal(declared.points, POINTS)
        np.testing.assert_array_equal(declared.tetrahedra, TETRAHEDRA)
    assert len(plant.add_deformable_body("ball", Sphere(0.1), resolution_hint=0.1).tetrahedra) == 64


@pytest.mark.parametrize(
    ("mesh", "hint", "words"),
    [
        ((POINTS, TETRAHEDRA[:, [1, 0, 2, 3]]), None, r"body\('pad'\): the mesh has only tetrahedra inside"),
        ((POINTS, [[0, 1, 2]]), None, "the mesh has triangles, thus a surface"),
        ("nowhere.vtk", None, "nowhere.vtk: the mesh cannot be read: No such file"),
        (Sphere(0.1), None, r"add_deformable_body\('pad'\): the Sphere: resolution_hint must be one number in m"),
        (7, None, "the mesh is of type int; give a TetrahedralMesh, a pair"),
        ((POINTS, TETRAHEDRA), 0.1, "resolution_hint is 0.1, but only a shape is cut into tetrahedra"),
    ],
)  # fmt: skip
def test_what_is_no_mesh_is_refused(mesh: object, hint: float | None, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        MultibodyPlant(time_step=0.01).add_deformable_body("pad", mesh, resolution_hint=hint)


def test_numbers_that_overflow_are_found() -> None:
    plant = MultibodyPlant(time_step=0.01)
    plant.add_deformable_body("pad", Box((0.1, 0.1, 0.1)), DeformableMaterial(1e30), resolution_hint=0.1)
    found = find_overflow(plant, "float32")
    assert found is not None
    assert "material's youngs_modulus of deformable body 'pad' of 1e+30" in found.message
    assert find_overflow(plant, "float64") is None
    with pytest.raises(ModelError):
        plant.finalize(dtype="float32")
