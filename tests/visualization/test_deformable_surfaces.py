"""Surfaces of deformable bodies in an animation: nodes are those of the trajectory, colors are strain and stress."""

import dataclasses

import jax
import numpy as np
import pytest

import mbjax
from mbjax.visualization import animate
from mbjax.visualization.animation_data import BYTES_PER_NODE, BYTES_PER_POSE, POSE_BUDGET_BYTES, frames_that_fit
from mbjax.visualization.deformable_surfaces import split_at_creases
from mbjax.visualization.series import values_of
from mbjax.visualization.tracks import as_tracks
from tests.deformable_cube import FOAM, SIDE, cube_mesh, cube_plant, stretched_states
from tests.visualization.pages import read_record, report_of

REPORTER = """const reporter = setInterval(() => {
  const hooks = window.mbjax;
  if (!hooks.ready && !hooks.error) return;
  clearInterval(reporter);
  const report = { error: hooks.error };
  if (!hooks.error) {
    const { view } = hooks;
    hooks.pause();
    const [mesh] = view.deformables.meshes[0], { position, normal, color } = mesh.geometry.attributes;
    report.vertices = position.count;
    const corners = ({ min, max }) => [...min.toArray(), ...max.toArray()];
    hooks.seek(0); report.atRest = corners(mesh.geometry.boundingBox);
    report.normals = Array.from(normal.array);
    report.colorAtRest = Array.from(color.array.slice(0, 3));
    hooks.seek(0.15); report.between = corners(mesh.geometry.boundingBox);
    report.scene = corners(view.box);
    report.shadow = mesh.castShadow;
    report.opacities = view.deformables.meshes.map(([each]) => each.material.opacity);
    report.bodies = document.getElementById("bodies").textContent;
    report.legend = document.getElementById("legend").textContent;
    report.subtitle = document.getElementById("subtitle").textContent;
    document.getElementById("frames").click();
    document.getElementById("follow").click(); hooks.seek(0.2);
  }
  document.body.dataset.report = JSON.stringify(report);
}, 200);"""


@pytest.fixture(scope="module")
def model() -> mbjax.MultibodyModel:
    return cube_plant(dataclasses.replace(FOAM, model="linear")).finalize()


@pytest.fixture(scope="module")
def states(model) -> mbjax.State:
    return stretched_states(model)


@pytest.fixture(scope="module")
def page(model, states) -> str:
    return animate(model, {"moved": states, "other": states}, color_by="strain").html


def test_points_are_the_nodes_of_the_trajectory(states, page) -> None:
    surfaces = read_record(page)["deformables"]
    assert [body["name"] for body in surfaces["bodies"]] == ["foam"]
    world = surfaces["worlds"][0]
    points = world["lower"] + world["step"] * world["points"].reshape(3, surfaces["num_nodes"], 3)
    np.testing.assert_allclose(points, states.nodes.position, atol=1e-5)
    (body,) = surfaces["bodies"]
    corners = points[0][body["vertices"][body["triangles"]]]
    assert len(corners) == 12
    assert len(body["vertices"]) == 24, "every face of a cube has corners of its own"
    volume = np.sum(np.cross(corners[:, 0], corners[:, 1]) * corners[:, 2]) / 6.0
    np.testing.assert_allclose(volume, SIDE**3, rtol=1e-4)  # outward


def test_colors_are_strain_and_stress(model, states, page) -> None:
    """A stretch by a tenth has one principal strain; stress of the linear law is a formula."""
    colored = read_record(page)["deformables"]
    values = colored["worlds"][0]["values"] / 65535.0 * colored["colors"]["largest"]
    np.testing.assert_allclose(values, np.array([[0.0], [10.0], [10.0]]) + np.zeros((3, 8)), atol=1e-3)  # %
    assert colored["colors"]["unit"] == "%"
    E, nu, e = 5e4, 0.3, 0.1
    lam, mu = E * nu / ((1 + nu) * (1 - 2 * nu)), E / (2 * (1 + nu))
    along, across = (lam + 2 * mu) * e, lam * e / 1.1
    stressed = read_record(animate(model, states, color_by="stress").html)["deformables"]
    values = stressed["worlds"][0]["values"] / 65535.0 * stressed["colors"]["largest"]
    np.testing.assert_allclose(values[1:], (along - across) / 1e3, rtol=1e-3)  # kPa
    np.testing.assert_allclose(values[0], 0.0, atol=1e-9)


def test_a_page_without_colors_or_with_one_state(model, states) -> None:
    plain = read_record(animate(model, jax.tree.map(lambda x: x[1], states)).html)["deformables"]
    assert plain["colors"] is None
    assert plain["worlds"][0]["values"] is None
    world = plain["worlds"][0]
    points = world["lower"] + world["step"] * world["points"].reshape(-1, 3)
    np.testing.assert_allclose(points, states.nodes.position[1], atol=1e-6)
    default = read_record(animate(model).html)["deformables"]["worlds"][0]
    points = default["lower"] + default["step"] * default["points"].reshape(-1, 3)
    np.testing.assert_allclose(points, cube_mesh()[0], atol=1e-6)


def test_a_model_without_deformable_bodies_has_no_such_record() -> None:
    pendulum = mbjax.load("pendulum")
    assert read_record(animate(pendulum).html)["deformables"] is None
    with pytest.raises(mbjax.ModelError, match="colors deformable bodies, and the model has none"):
        animate(pendulum, color_by="strain")


def test_bad_input_is_refused(model, states) -> None:
    with pytest.raises(mbjax.ModelError, match="color_by must be 'strain' or 'stress', got 'heat'"):
        animate(model, states, color_by="heat")
    short = dataclasses.replace(states, nodes=jax.tree.map(lambda x: x[:, :7], states.nodes))
    with pytest.raises(mbjax.ModelError, match=r"nodes.position has shape \(3, 7, 3\); this model has 8 nodes"):
        animate(model, short)
    bad = np.array(states.nodes.position)
    bad[1, 3] = np.nan
    diverged = dataclasses.replace(states, nodes=mbjax.NodeState(bad, states.nodes.velocity))
    with pytest.raises(ValueError, match=r"deformable body 'foam' are not finite at t = 0\.1 s"):
        animate(model, diverged)
    plant = mbjax.MultibodyPlant(0.01)
    plant.add_rigid_body("ball", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.03))
    plant.add_joint(mbjax.PrismaticJoint("slide", "world", "ball"))
    rigid = plant.finalize()
    with pytest.raises(mbjax.ModelError, match="this model has none"):
        animate(rigid, states)


def test_surfaces_take_part_in_the_budget_of_a_page() -> None:
    frames = frames_that_fit(1, 10_000, 2, 1000)
    size = len(frames) * (2 * BYTES_PER_POSE + 1000 * BYTES_PER_NODE)
    assert 0.9 * POSE_BUDGET_BYTES < size <= POSE_BUDGET_BYTES


def test_smooth_surfaces_keep_one_vertex_a_node() -> None:
    """A flat sheet, and one bent by less and by more than the angle of a crease."""
    triangles = np.array([[0, 1, 2], [1, 3, 2]])
    points = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    for height, expected in ((0.0, 4), (0.3, 4), (2.0, 6)):
        points[3, 2] = height
        nodes, corners = split_at_creases(points, triangles)
        assert len(nodes) == expected
        np.testing.assert_array_equal(nodes[corners], triangles)


@pytest.mark.whole_run("points and colours that it holds, above; a page in a browser, in test_contact_patches.py")
def test_the_page_draws_them(page) -> None:
    report, _ = report_of(page, REPORTER)
    assert report["error"] is None
    assert report["vertices"] == 24
    np.testing.assert_allclose(report["atRest"], [0, 0, 0, SIDE, SIDE, SIDE], atol=1e-5)
    np.testing.assert_allclose(report["between"], [0, 0, 0.5, 1.1 * SIDE, SIDE, SIDE + 0.5], atol=1e-5)
    normals = np.abs(np.reshape(report["normals"], (-1, 3)))
    np.testing.assert_allclose(np.sort(normals, axis=1), np.tile([0.0, 0.0, 1.0], (24, 1)), atol=1e-3)
    assert report["colorAtRest"][2] > report["colorAtRest"][1]  # purple
    assert report["scene"][5] >= 1.0 + SIDE - 1e-4
    assert report["shadow"] is True
    assert report["opacities"][0] == 1.0
    assert report["opacities"][1] < 1.0
    assert "foam" in report["bodies"]
    assert report["subtitle"].startswith("2 worlds  ·  2 bodies")
    assert "Largest principal strain, yellow 10.0 %" in report["legend"]


def test_energies_of_plots_have_those_of_deformable_bodies(model, states) -> None:
    """A stretch stores energy, a lift by 1 m takes the weight's work, and 2 m/s is kinetic energy."""
    (track,) = as_tracks("plot", model, states)
    _, energies = values_of("plot", model, track, "energies", None, None)
    volume, mass = SIDE**3, 300.0 * SIDE**3
    E, nu, e = 5e4, 0.3, 0.1
    lam, mu = E * nu / ((1 + nu) * (1 - 2 * nu)), E / (2 * (1 + nu))
    np.testing.assert_allclose(energies[:, 0], [0.0, 0.0, 0.5 * mass * 2.0**2], atol=1e-12)
    g = -np.asarray(model.parameters.gravity)[2]
    np.testing.assert_allclose(np.diff(energies[:, 1]), [volume * (0.5 * lam + mu) * e**2, mass * g], rtol=1e-9)
    np.testing.assert_allclose(energies[:, 2], energies[:, 0] + energies[:, 1], rtol=1e-12)
