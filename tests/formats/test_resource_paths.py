"""Meshes are found where ROS, Gazebo and the file itself say; a missing one is a warning, not an error."""

import pytest

from mbjax.errors import ModelWarning
from mbjax.formats import Parser
from mbjax.geometry import Mesh
from mbjax.plant import MultibodyPlant


def test_mesh_paths(tmp_path, monkeypatch):
    for name in ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "GZ_SIM_RESOURCE_PATH"):
        monkeypatch.delenv(name, raising=False)
    places = [
        "robots/arm/meshes",
        "robots/by_manifest/meshes",
        "elsewhere/meshes",
        "ament/share/amented",
        "gz/gazed",
    ]
    for place in places:
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "m.stl").touch()
    (tmp_path / "robots/by_manifest/package.xml").write_text("<package><name>other_name</name></package>")
    here = tmp_path / "robots/by_manifest/urdf"
    here.mkdir()
    names = [
        "../meshes/m.stl",
        str(tmp_path / "elsewhere/meshes/m.stl"),
        f"file://{tmp_path}/elsewhere/meshes/m.stl",
        "package://arm/meshes/m.stl",
        "package://other_name/meshes/m.stl",
        "model://by_manifest/meshes/m.stl",
        "package://mapped/meshes/m.stl",
        "package://amented/m.stl",
        "model://gazed/m.stl",
        "missing.stl",
        "package://nowhere/m.stl",
        "http://example.com/m.stl",
    ]
    visuals = "".join(
        f'<visual><geometry><mesh filename="{name}" scale="1 2 -3"/></geometry></visual>' for name in names
    )
    path = here / "arm.urdf"
    path.write_text(f'<robot name="r"><link name="a">{visuals}</link></robot>')
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "ament"))
    monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", f"/nowhere:{tmp_path}/gz")
    plant = MultibodyPlant()
    with pytest.warns(ModelWarning, match="mesh files not found") as caught:
        Parser(plant, package_map={"mapped": tmp_path / "elsewhere"}).add_models(path)
    assert len(caught) == 1
    meshes = [geometry.shape for geometry in plant.bodies[1].visual]
    assert all(isinstance(mesh, Mesh) and mesh.scale == (1, 2, -3) for mesh in meshes)
    assert all(mesh.path is not None and mesh.path.endswith("m.stl") for mesh in meshes[:9])
    assert [mesh.path for mesh in meshes[9:]] == [None] * 3
    for name in names[9:]:
        assert any(e.status == "ignored" and e.element == f"mesh '{name}'" for e in plant.report.entries)
        assert name in str(caught[0].message)
    assert str(here / "missing.stl") in str(caught[0].message)


def test_mesh_in_text_is_not_looked_for_in_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "m.stl").touch()
    monkeypatch.chdir(tmp_path)
    visual = '<visual><geometry><mesh filename="m.stl" scale="2"/></geometry></visual>'
    plant = MultibodyPlant()
    with pytest.warns(ModelWarning, match="m.stl.*no folder to look in"):
        Parser(plant).add_models(f'<robot name="r"><link name="a">{visual}</link></robot>')
    assert plant.bodies[1].visual[0].shape == Mesh("m.stl", None, (2.0, 2.0, 2.0))
