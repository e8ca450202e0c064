"""What `animate` draws of a model: its forces are physics, its shapes are those of its leaves, its page works."""

import dataclasses
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import mbjax
from mbjax.geometry import Box, Geometry, Sphere
from mbjax.visualization import animate
from mbjax.visualization.drawn_shapes import current_collision_geometries
from mbjax.visualization.tracks import as_tracks, frames_to_show, inputs_at, one_each
from tests.models import load_robot
from tests.visualization.pages import read_record, report_of
from tests.visualization.sledge import FRICTION, NORMAL_FORCE, NUM_STEPS, RADIUS, pull, sledge_model, sliding

CONTACT_FORCE = np.array([-FRICTION * NORMAL_FORCE, 0.0, NORMAL_FORCE])

# Put into the page: moves through time, presses the buttons, and reports what is then in the scene.
REPORTER = """const reporter = setInterval(() => {
  const hooks = window.mbjax;
  if (!hooks.ready && !hooks.error) return;
  clearInterval(reporter);
  const report = { error: hooks.error };
  if (!hooks.error) {
    const { view } = hooks;
    hooks.pause();
    const press = (id) => { document.getElementById(id).click(); hooks.seek(hooks.time); };
    const arrows = () => view.arrows.map((set) => (
      { label: set.look.label, shown: set.shown, drawn: set.pickable.length }));
    hooks.seek(0.1); report.early = arrows();
    hooks.seek(0.303); report.late = arrows();
    report.ground = { visible: view.ground.visible, solid: view.isGroundSolid, height: view.ground.position.z };
    report.places = view.groups.map((groups) => groups[2].position.x);
    report.opacities = view.groups.map((groups) => groups[2].children[0].material.opacity);
    report.legend = document.getElementById("legend").innerText;
    press("forces"); report.withoutForces = arrows();
    report.centers = [view.massCenters[0].group.visible];
    press("mass"); report.centers.push(view.massCenters[0].group.visible, view.massCenters[0].group.position.toArray());
    const triads = () => view.triads.filter(({ triad }) => triad.visible).length;
    report.triads = [triads()]; press("frames"); report.triads.push(triads());
    report.cameraBefore = view.camera.position.x;
    press("follow"); hooks.seek(0.1); report.cameraAfter = view.camera.position.x;
  }
  document.body.dataset.report = JSON.stringify(report);
}, 200);"""


@pytest.fixture(scope="module")
def model():
    return sledge_model()


@pytest.fixture(scope="module")
def animation(model):
    """Two worlds: one that is pulled, as a solid, and a slower one over it."""
    trajectories = {"pulled": sliding(model), "plan": sliding(model, speed=0.5)}
    return animate(model, trajectories, inputs={"pulled": pull()}, height=300)


@pytest.fixture(scope="module")
def record(animation):
    return read_record(animation.html)


def arrows_of(record, label, world):
    """Frames, points and vectors of the arrows of a kind in a world."""
    arrows = next(look for look in record["arrows"] if look["label"] == label)["worlds"][world]
    points, vectors = (arrows[name] * arrows[f"{name[:-1]}_step"] for name in ("points", "vectors"))
    return arrows["frames"], points.reshape(-1, 3), vectors.reshape(-1, 3), arrows["names"]


def test_contact_arrows_are_the_forces_that_act(record) -> None:
    """Weight and pressure of the motor from below, Coulomb's friction against the motion, on the body that moves."""
    frames, points, vectors, names = arrows_of(record, "Contact forces", 1)
    assert names == ["world::ground on ball::skin"]
    times = record["worlds"][1]["times"]
    np.testing.assert_array_equal(frames, np.arange(len(times)))
    np.testing.assert_allclose(vectors, np.tile(CONTACT_FORCE, (len(times), 1)), atol=2e-3 * NORMAL_FORCE)
    np.testing.assert_allclose(points[:, 0], 0.5 * times, atol=1e-5)
    np.testing.assert_allclose(points[:, 2], -0.2, atol=2e-3)


def test_applied_forces_are_drawn_where_and_when_they_act(record) -> None:
    times = record["worlds"][0]["times"]
    acts = (times > 0.01 * (NUM_STEPS // 3) - 1e-9) & (times < 0.01 * (2 * NUM_STEPS // 3) - 1e-9)
    for label, expected in (("Applied forces", [1.5, 0.0, 0.0]), ("Applied torques", [0.0, 0.0, 0.2])):
        frames, points, vectors, _ = arrows_of(record, label, 0)
        np.testing.assert_array_equal(frames, np.nonzero(acts)[0])
        np.testing.assert_allclose(vectors, np.tile(expected, (len(frames), 1)), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(points[:, 0], times[frames] + RADIUS, atol=1e-5)
    assert [look["worlds"][1] is None for look in record["arrows"]] == [False, True, True]


def test_given_outputs_are_drawn_as_they_are(model) -> None:
    trajectory = sliding(model)
    force = np.zeros((NUM_STEPS + 1, 1, 3))
    force[5:10, 0] = [0.0, 1.0, -2.0]
    none = np.zeros((NUM_STEPS + 1, 1))
    results = mbjax.ContactResults(
        none > 0, force, 0 * force, 0 * force, *[none] * 3, none > 0, *[none[:, 0]] * 4, (0,)
    )
    frames, _, vectors, _ = arrows_of(
        read_record(animate(model, trajectory, outputs=results, frames_per_second=1e3).html), "Contact forces", 0
    )
    np.testing.assert_array_equal(frames, np.arange(5, 10))
    np.testing.assert_allclose(vectors, np.tile([0.0, -1.0, 2.0], (5, 1)), atol=1e-4)  # on the ball, not the ground


def test_shapes_have_the_sizes_that_the_leaves_have_now(model) -> None:
    larger = mbjax.set_collision_geometry_size(model, "skin", [0.25])
    (ball,) = read_record(animate(larger, mbjax.default_state(model), contact_forces=False).html)["bodies"][2][
        "geometries"
    ]
    assert ball["kind"] == "sphere"
    np.testing.assert_allclose(ball["radius"], 0.25)


def test_shapes_that_touch_nothing_have_the_leaves_numbers_too() -> None:
    plant = mbjax.MultibodyPlant(contact_model="none")
    plant.add_rigid_body("ball", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
    plant.register_collision_geometry("ball", Geometry("skin", Sphere(0.1)), 0.5)
    plant.register_collision_geometry("ball", Geometry("box", Box((0.1, 0.1, 0.1))), 0.5)
    model = mbjax.set_collision_geometry_size(plant.finalize(), "skin", [0.25])
    model = mbjax.set_collision_geometry_size(model, "box", [0.1, 0.2, 0.3])
    model = mbjax.set_collision_geometry_pose(model, "skin", mbjax.RigidTransform(np.eye(3), np.array([0.0, 0.3, 0.0])))
    skin, box = current_collision_geometries(model, 1)
    np.testing.assert_allclose([skin.shape.radius, *skin.translation], [0.25, 0.0, 0.3, 0.0], atol=1e-6)
    np.testing.assert_allclose([*box.shape.size, *box.translation], [0.1, 0.2, 0.3, 0.0, 0.0, 0.0], atol=1e-6)
    without = dataclasses.replace(model, collision=dataclasses.replace(model.collision, others=None))
    assert current_collision_geometries(without, 1) == list(model.layout.collision[1])


@pytest.mark.whole_run("arrows of the record, above, and a page in a browser, in test_contact_patches.py")
def test_page_shows_forces_ground_and_both_trajectories(animation) -> None:
    report, document = report_of(animation.html, REPORTER)
    assert report["error"] is None
    early, late = ({each["label"]: each for each in report[when]} for when in ("early", "late"))
    for when, contacts in ((0.1, early["Contact forces"]), (0.303, late["Contact forces"])):
        assert len(contacts["shown"]) == 2
        assert contacts["drawn"] > 0
        places = sorted(arrow["point"][0] for arrow in contacts["shown"])
        np.testing.assert_allclose(places, [0.5 * when, when], atol=1e-3)  # they move with the balls
    assert (early["Applied forces"]["drawn"], late["Applied forces"]["drawn"] > 0) == (0, True)
    assert report["ground"]["visible"]
    assert report["ground"]["solid"]
    np.testing.assert_allclose(report["ground"]["height"], -0.2, atol=0.01)
    np.testing.assert_allclose(report["places"], [0.303, 0.1515], atol=1e-3)
    assert report["opacities"][0] == 1.0
    assert 0.1 < report["opacities"][1] < 0.6
    for text in ("pulled", "plan", "Contact forces", "Applied torques"):
        assert text in document
    assert all(arrows["drawn"] == 0 for arrows in report["withoutForces"])
    assert report["centers"][:2] == [False, True]
    np.testing.assert_allclose(report["centers"][2][0], 0.303, atol=1e-3)
    assert report["triads"] == [2, 6]  # of the carriage, which has no shape; of three bodies, in both worlds
    assert report["cameraAfter"] < report["cameraBefore"] - 0.1


def test_notebook_shows_the_page_in_place(animation, tmp_path) -> None:
    shown = animation._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert "300px" in shown
    assert shown.count("<") == 2, "everything of the page is escaped"
    page = animation.save(tmp_path / "page.html")
    assert page.read_text(encoding="utf-8") == animation.html
    assert "iframe" not in repr(animation)
    assert len(repr(animation)) < 100


def test_trajectories_come_in_many_forms(model) -> None:
    trajectory = sliding(model)
    batch = jax.tree.map(lambda x: jnp.stack([x, x, x]), trajectory)
    plan = types.SimpleNamespace(q=trajectory.q, v=trajectory.v, time=trajectory.time)
    states = mbjax.State(trajectory.q, trajectory.v, trajectory.time)
    solution = types.SimpleNamespace(states=states, efforts=trajectory.net_actuation)
    both = {"plan": solution, "rollout": trajectory}
    for given, worlds in (
        (trajectory, 1), (batch, 3), ([trajectory, plan], 2), (trajectory.final_state, 1), (states, 1), (solution, 1),
        (both, 2),
    ):  # fmt: skip
        assert len(read_record(animate(model, given, contact_forces=False).html)["worlds"]) == worlds


def test_inputs_go_to_the_frames_of_their_trajectory(model) -> None:
    """By labels of any kind; forces on nodes (n, 3) are those of one time, (steps, n, 3) of each."""
    trajectories = {0: sliding(model), 1: sliding(model)}
    tracks = as_tracks("show", model, trajectories)
    assert one_each("show", "inputs", {1: "b", 0: "a"}, trajectories, tracks) == ["a", "b"]
    forces, frames = jnp.arange(6.0).reshape(2, 3), np.array([0, NUM_STEPS])
    for given in (forces, jnp.broadcast_to(forces, (NUM_STEPS, 2, 3))):
        shown = inputs_at("show", tracks[0], mbjax.Inputs(node_forces=given), frames)
        np.testing.assert_array_equal(shown.node_forces, [forces, forces])


def test_a_list_of_numbers_is_held_for_a_single_trajectory(model) -> None:
    """As `rollout` takes it; for several trajectories a list has one each."""
    trajectory = sliding(model)
    tracks = as_tracks("show", model, trajectory)
    (given,) = one_each("show", "inputs", [1.5], trajectory, tracks)
    shown = inputs_at("show", tracks[0], given, np.array([0, NUM_STEPS]))
    np.testing.assert_array_equal(shown.actuation, [[1.5], [1.5]])
    with pytest.raises(mbjax.ModelError, match=r"show: 1 inputs for 2 trajectories"):
        one_each("show", "inputs", [1.5], [trajectory] * 2, tracks * 2)


@pytest.mark.whole_run("one state of a model, among the forms of trajectories, above")
def test_a_model_alone_is_shown_where_it_starts(model) -> None:
    (world,) = read_record(animate(model).html)["worlds"]
    (start,) = read_record(animate(model, mbjax.default_state(model)).html)["worlds"]
    np.testing.assert_array_equal(world["translations"], start["translations"])
    with pytest.raises(mbjax.ModelError, match="first argument must be the model, got Trajectory"):
        animate(sliding(model), model)  # pyright: ignore[reportArgumentType]


def test_frames_follow_the_display_and_keep_both_ends() -> None:
    time = np.linspace(0.0, 2.0, 2001)
    frames = frames_to_show(time, 60.0)
    assert (frames[0], frames[-1]) == (0, 2000)
    np.testing.assert_allclose(np.diff(time[frames]), 1 / 60, atol=1.1e-3)
    np.testing.assert_array_equal(frames_to_show(time[:20] * 100.0, 60.0), np.arange(20))
    np.testing.assert_array_equal(frames_to_show(time, np.inf), np.arange(2001))


def test_ground_can_be_chosen(model) -> None:
    still = mbjax.default_state(model)
    for ground in ("auto", True, False, -0.5):
        assert read_record(animate(model, still, ground=ground, contact_forces=False).html)["ground"] == ground


def test_bodies_without_looks_show_what_touches() -> None:
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("block", mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.1))
    plant.add_rigid_body("box", mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.1))
    for body in ("block", "box"):
        plant.register_collision_geometry(body, Geometry("hit", Box((0.1, 0.1, 0.1))), 0.5)
    plant.register_visual_geometry("box", Geometry("look", Box((0.2, 0.1, 0.1))))
    model = plant.finalize()
    _, block, box = read_record(animate(model, mbjax.default_state(model), contact_forces=False).html)["bodies"]
    assert ([g["name"] for g in block["geometries"]], block["touching"]) == (["hit"], [])
    assert [g["name"] for g in box["geometries"]] == ["look"]
    assert [g["name"] for g in box["touching"]] == ["hit"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trajectory": 3}, "needs q, v and time.*type int"),
        ({"trajectory": []}, "no trajectory"),
        ({"trajectory": mbjax.State(jnp.zeros(5), jnp.zeros(2), jnp.zeros(()))}, r"q of shape \(5,\).*needs \(T, 2\)"),
        ({"ground": "floor"}, "ground must be"),
        ({"frames_per_second": 0.0}, "^show: frames_per_second must be a number > 0, or inf"),
        ({"frames_per_second": "60"}, "^show: frames_per_second must be one number, got '60'"),
        ({"title": 5}, "^show: title must be text, got 5"),
        ({"inputs": 1.0}, rf"^show: inputs must .* {NUM_STEPS} steps.*number alone has no axis of actuators"),
        ({"inputs": "none"}, "^show: inputs must be mbjax.Inputs.*got 'none'"),
        ({"inputs": {"a": jnp.zeros(1)}}, "^show: inputs must not be a dict, for the trajectories have no labels"),
        ({"inputs": {"other": None}, "trajectory": {"a": None}}, "q, v and time"),
        ({"inputs": jnp.zeros((7, 1))}, rf"have {NUM_STEPS} steps.*\(7, 1\)"),
        ({"outputs": 1}, "outputs must be Outputs"),
    ],
)
def test_what_cannot_be_drawn_is_named(model, change, message) -> None:
    with pytest.raises(mbjax.ModelError, match=message):
        animate(model, **({"trajectory": sliding(model)} | change))


@pytest.mark.whole_run("meshes are embedded within the budget, in test_animation.py")
def test_an_arm_with_its_meshes_fits_a_megabyte() -> None:
    """500 frames of a Panda, 135 000 triangles in its files; poses to a micrometre."""
    model = load_robot("panda_description/urdf/panda.urdf", base="fixed", time_step=0.01)
    time = np.arange(500) / 60.0
    q = jnp.asarray(np.sin(np.outer(time, np.linspace(0.5, 1.5, model.num_positions))))
    motion = mbjax.State(q, jnp.zeros((500, model.num_velocities)), jnp.asarray(time))
    animation = animate(model, motion)
    assert animation.num_frames == 500
    assert len(animation.html) < 1_000_000
    record = read_record(animation.html)
    assert sum(len(mesh["back"]) // 3 for mesh in record["meshes"]) > 50_000
    expected = np.asarray(mbjax.body_poses_in_world(model, q[321]).translation)
    drawn = record["worlds"][0]["step"] * record["worlds"][0]["translations"][321].reshape(-1, 3)
    np.testing.assert_allclose(drawn, expected, atol=1e-6)


def test_models_without_contact_say_so() -> None:
    model = mbjax.load(mbjax.reference_models.path("pendulum"), time_step=0.01)
    with pytest.raises(mbjax.ModelError, match="no two collision geometries"):
        animate(model, mbjax.default_state(model), contact_forces=True)
    page = mbjax.show(model, mbjax.default_state(model))
    assert len(page.html) < 300_000


MOVE = """const reporter = setInterval(() => {
  const hooks = window.mbjax;
  if (!hooks.ready && !hooks.error) return;
  clearInterval(reporter);
  const report = { error: hooks.error, names: [], poses: [] };
  const places = () => hooks.view.groups[0].map(({ position: p, quaternion: r }) => [...p.toArray(), ...r.toArray()]);
  document.getElementById("move").click();
  hooks.seek(0.05);
  const sliders = [...document.querySelectorAll("#joints input")];
  for (const [k, input] of sliders.entries()) {
    report.names.push([input.title, Number(input.min), Number(input.max), Number(input.value)]);
    input.value = [0.4, -0.3, 0.9][k];
    input.dispatchEvent(new Event("input"));
  }
  report.poses.push(places());
  hooks.seek(0.05);
  report.poses.push(places());
  report.text = document.getElementById("joints").innerText;
  document.body.dataset.report = JSON.stringify(report);
}, 200);"""


@pytest.mark.whole_run("sliders in test_live_view.py, and a page in a browser, in test_contact_patches.py")
def test_sliders_of_a_page_move_joints() -> None:
    """Turning, sliding, screwing, in frames that are not the bodies', and a joint that follows another."""
    plant = mbjax.MultibodyPlant(0.01)
    box = mbjax.SpatialInertia.solid_box_with_mass(1.0, 0.3, 0.2, 0.1)
    X_PF = mbjax.RigidTransform(Rotation.from_euler("xyz", [0.3, -0.2, 0.5]).as_matrix(), np.array([0.1, 0.0, 0.2]))
    X_BM = mbjax.RigidTransform(Rotation.from_euler("xyz", [-0.1, 0.6, 0.2]).as_matrix(), np.array([0.0, -0.1, 0.1]))
    kinds = (
        (mbjax.RevoluteJoint, {"position_limits": (-1.0, 2.0)}),
        (mbjax.PrismaticJoint, {}),
        (mbjax.ScrewJoint, {"screw_pitch": 0.7}),
        (mbjax.RevoluteJoint, {}),
    )
    for i, (kind, more) in enumerate(kinds):
        plant.add_rigid_body(f"link{i}", box)
        parent = "world" if i == 0 else f"link{i - 1}"
        plant.add_joint(kind(f"joint{i}", parent, f"link{i}", axis=[0.2, 1.0, -0.5], X_PF=X_PF, X_BM=X_BM, **more))
    plant.add_mimic("joint3", "joint0", multiplier=-2.0, offset=0.1)
    model = plant.finalize()
    q = np.array([[0.1, 0.2, -0.3], [0.2, 0.3, -0.2], [0.3, 0.4, -0.1]])
    motion = mbjax.State(jnp.asarray(q), jnp.zeros((3, 3)), jnp.asarray([0.0, 0.05, 0.1]))
    report, _ = report_of(animate(model, motion).html, MOVE)
    assert report["error"] is None
    assert [name[0] for name in report["names"]] == ["joint0 [rad]", "joint1 [m]", "joint2 [rad]"]
    np.testing.assert_allclose([name[3] for name in report["names"]], q[1], atol=1e-5)
    assert report["names"][0][1:3] == [-1.0, 2.0]
    for found, at in zip(report["poses"], ([0.4, -0.3, 0.9], q[1]), strict=True):
        X_WB = mbjax.body_poses_in_world(model, jnp.asarray(at))
        found = np.asarray(found)
        np.testing.assert_allclose(found[:, :3], X_WB.translation, atol=1e-4)
        R_WB = np.stack([Rotation.from_quat(x).as_matrix() for x in found[:, 3:]])
        np.testing.assert_allclose(R_WB, X_WB.rotation, atol=1e-4)
    assert "0.200 rad" in report["text"]
