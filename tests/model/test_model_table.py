"""`print(model)` says what there is, in words that find it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import trajectory_optimization
from mbjax.model.load_report import ReportEntry
from mbjax.model.model_table import model_table
from tests.model.plants import hinge, inertia


def two_arms() -> mbjax.MultibodyModel:
    """Two instances with equal names, a motor with and one without limit, a spring, gravity off for one."""
    plant = mbjax.MultibodyPlant()
    for side in ("left", "right"):
        body = plant.add_rigid_body("arm", inertia(), plant.add_model_instance(side))
        plant.add_joint(hinge("shoulder", "world", body))
    plant.add_rigid_body("tool", inertia(), "right")
    plant.add_joint(hinge("wrist", "right::arm", "tool"))
    plant.add_joint_actuator("strong", "left::shoulder")
    plant.add_joint_actuator("weak", "wrist", 2.5)
    plant.add_force_element(mbjax.RevoluteSpring("wrist", 0.0, 1.0))
    plant.set_gravity_enabled("right", False)
    plant.set_gravity([0.0, 1.0, -9.0])
    return plant.finalize()


def test_joints_are_named_by_what_finds_them():
    model = two_arms()
    first_words = [line.split(maxsplit=1)[0] for line in str(model).splitlines() if line.strip()]
    keys = ["left::shoulder", "right::shoulder", "wrist"]
    assert [word for word in first_words if word in keys] == keys
    assert [model.joint(key).index for key in keys] == [0, 1, 2]


def test_what_is_unusual_is_said():
    model = two_arms()
    rows = {line.split(maxsplit=1)[0]: line for line in str(mbjax.lock_joint(model, "wrist")).splitlines() if line}
    assert rows["left::shoulder"].rstrip().endswith("no limit")
    assert rows["wrist"].rstrip().endswith("±2.5")
    assert "revolute, locked" in rows["wrist"]
    assert "locked" not in str(model)
    text = " ".join(str(model).split())
    assert "1 force element;" in text
    assert "gravity [0.0, 1.0, -9.0] m/s²; no gravity on right" in text


def test_traced_and_batched_models_print():
    model = two_arms()
    batch = jax.vmap(lambda mass: mbjax.set_mass(model, "tool", mass))(jnp.ones(3))
    seen = []
    jax.jit(lambda m: seen.append(str(m)) or m.parameters.gravity)(model)
    for text in (str(batch), *seen):
        assert "wrist" in text
        assert "–" in text


def arm_with_a_drive(**options) -> mbjax.MultibodyModel:
    """One hinge with one actuator."""
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("arm", inertia())
    damping = {name: options.pop(name) for name in ("damping", "friction", "armature") if name in options}
    plant.add_joint(hinge("shoulder", "world", "arm", **damping))
    plant.add_joint_actuator("motor", "shoulder", 40.0, **options)
    return plant.finalize()


@pytest.mark.parametrize(
    ("options", "heading", "cell"),
    [
        ({"rotor_inertia": 6e-5, "gear_ratio": 100.0}, "armature", "0.6"),
        ({"rotor_inertia": 0.25}, "armature", "0.25"),
        ({"armature": 0.5}, "armature", "0.5"),
        ({"armature": 0.5, "rotor_inertia": 0.25}, "armature", "0.75"),
        ({"gear_ratio": -3.0}, "gear ratio", "-3"),
        ({"damping": 0.75}, "damping", "0.75"),
        ({"friction": 1.5}, "friction", "1.5"),
    ],
)
def test_what_acts_on_a_joint_has_a_column_where_there_is_any(options, heading, cell):
    optional = {"armature", "gear ratio", "damping", "friction"}
    header, _, row = str(arm_with_a_drive(**options)).splitlines()[1:4]
    shown = {name for name in optional if name in header}
    expected = {heading, "gear ratio"} if options.get("gear_ratio", 1.0) != 1.0 else {heading}
    assert shown == expected
    assert row[: header.index(heading) + len(heading)].split()[-1] == cell
    assert not any(name in str(arm_with_a_drive()) for name in optional)


def test_armature_in_the_table_is_what_the_mass_matrix_has():
    bare, geared = arm_with_a_drive(), arm_with_a_drive(rotor_inertia=6e-5, gear_ratio=100.0)
    zero = jnp.zeros(1)
    added = mbjax.mass_matrix(geared, zero) - mbjax.mass_matrix(bare, zero)
    np.testing.assert_allclose(added, [[0.6]], rtol=1e-12)
    assert "armature: inertia of the rotors" in str(geared)
    assert "armature" not in str(bare)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_tables_cut_nothing(width):
    model = arm_with_a_drive(rotor_inertia=6e-5, gear_ratio=100.0, damping=0.0625)
    text = model_table(model, width=width)
    for whole in ("shoulder", "revolute", "1.3", "0.0625", "0.6", "100", "±40"):
        assert whole in text.split() or f"{whole};" in text.split()
    assert max(map(len, text.splitlines())) <= width


def test_what_a_file_leaves_free_is_said_first():
    link = '<link name="{}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>'
    robot = f'<robot name="r">{link.format("base")}{link.format("other")}</robot>'
    with pytest.warns(mbjax.ModelWarning, match="several links"):
        free = mbjax.load(robot)
    first = "free bases: 'base', 'other' are not attached to the world; pass base='fixed' to weld them"
    assert str(free).splitlines()[0] == first
    one = f'<robot name="r">{link.format("base")}</robot>'
    only = "free base: 'base' is not attached to the world; pass base='fixed' to weld it"
    assert str(mbjax.load(one)).splitlines()[0] == only
    for base in ("fixed", "floating"):  # as asked for
        assert "free base" not in str(mbjax.load(one, base=base))
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("ball", inertia())
    assert "free base" not in str(plant.finalize())  # no file, and no option that would weld it


def test_limits_that_nothing_enforces_are_said_once():
    """A joint under a constant torque runs past its velocity limit; the report and the table say so, in one line."""
    plant = mbjax.MultibodyPlant(1e-2)
    parent = "world"
    for name in ("one", "two", "three"):
        plant.add_rigid_body(name, inertia())
        limits = {} if name == "three" else {"velocity_limits": (-0.5, 0.5)}
        plant.add_joint(hinge(f"{name} hinge", parent, name, **limits))
        parent = name
    model = plant.finalize()
    (entry,) = model.report()
    assert (entry.status, entry.element) == ("recorded", "velocity limits")
    assert "recorded, not enforced: no force keeps the 2 joints within them" in entry.message
    assert str(model).count("not enforced") == 1
    state = mbjax.default_state(model)
    after, _ = jax.jit(mbjax.step)(model, state, mbjax.Inputs(applied_generalized_force=jnp.array([500.0, 0.0, 0.0])))
    assert abs(after.v[0]) > model.velocity_upper_limits[0]
    assert not arm_with_a_drive().report()


def test_position_limits_that_no_step_enforces_are_said_once():
    def reported(time_step):
        plant = mbjax.MultibodyPlant(time_step)
        for name in ("one", "two"):
            plant.add_rigid_body(name, inertia())
        plant.add_joint(mbjax.BallRpyJoint("socket", "world", "one", position_limits=([-0.1] * 3, [0.1] * 3)))
        plant.add_joint(hinge("elbow", "one", "two", position_limits=(-1.0, 1.0)))
        (entry,) = plant.finalize().report()
        assert (entry.status, entry.element) == ("recorded", "position limits")
        return entry.message

    discrete, continuous = reported(1e-2), reported(0.0)
    assert "kept for random states and inverse kinematics, not enforced in a step" in discrete
    assert discrete.endswith(": 'socket' (ball_rpy)")
    assert "inverse kinematics, not enforced, as the plant is continuous; a time_step above 0" in continuous
    assert continuous.endswith(": 'socket' (ball_rpy), 'elbow' (revolute)")


def test_one_line_for_both_kinds_of_limits_of_a_file():
    link = '<link name="{}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>'
    joint = '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><limit {}/></joint>'
    links = link.format("a") + link.format("b")
    for limit, said in (
        ('velocity="2" acceleration="3"', ["velocity and acceleration limits"]),
        ('velocity="2"', ["velocity limits"]),
        ('effort="7" lower="-1" upper="1"', []),
    ):
        model = mbjax.load(f'<robot name="r">{links}{joint.format(limit)}</robot>', base="fixed", time_step=0.01)
        assert [e.element for e in model.report() if e.status == "recorded"] == said


def test_a_model_shows_itself_in_one_line_and_as_html():
    """A notebook cell that ends in `model` shows the table; within records, and without HTML, it is one line."""
    model = two_arms()
    (line,) = repr(model).splitlines()
    assert line == (
        "<MultibodyModel left, right: 3 bodies, 3 positions, 3 velocities, 2 actuators; print(model) shows the table>"
    )
    discrete = mbjax.load("pendulum", time_step=0.01)
    problem = trajectory_optimization.Problem(
        discrete, mbjax.default_state(discrete), 2, running=lambda state, efforts: 0.0
    )
    assert repr(discrete) in repr(problem)
    html = model._repr_html_()
    assert html.count("<tr>") == 1 + len(model.joint_names)
    assert "left::shoulder" in html
    assert "gravity [0.0, 1.0, -9.0] m/s²; no gravity on right" in html
    assert model._repr_html_() == jax.tree.map(jnp.asarray, model)._repr_html_()
    seen = []
    jax.jit(lambda m: seen.append(m._repr_html_() + repr(m)) or m.parameters.gravity)(model)
    assert "–" in seen[0]


def test_a_report_prints_by_status_what_needs_attention_first():
    text = """<robot name="r"><link name="a"/><link name="b &lt;&amp;>"><inertial><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="9"/></inertial></link><gazebo/>
      <joint name="j" type="revolute"><parent link="a"/><child link="b &lt;&amp;>"/><limit velocity="2"/></joint>
    </robot>"""
    with pytest.warns(mbjax.ModelWarning):
        report = mbjax.load(text, base="fixed").report()
    assert isinstance(report, tuple)
    assert report == tuple(report)
    lines = str(report).splitlines()
    assert lines[0].startswith("load report: ")
    assert [line for line in lines if not line.startswith(" ")][1:] == report.statuses
    assert report.statuses[-1] == "used"
    assert repr(report) == str(report)
    assert len(lines) == 1 + len(report.statuses) + len(report)
    html = report._repr_html_()
    assert html.count("<tr>") == 1 + len(report)
    assert "<&>" not in html, "names are escaped"
    assert str(mbjax.MultibodyPlant().finalize().report()) == "load report: empty"


def test_a_long_entry_is_cut_in_the_table_and_whole_in_the_report():
    model = mbjax.load("pendulum")
    entry = ReportEntry("ignored", "<gazebo>", "settings of another simulator, " * 20)
    model = dataclasses.replace(model, layout=dataclasses.replace(model.layout, report=(entry,)))
    assert max(map(len, str(model).splitlines())) <= 242
    assert "model.report() has these lines in full" in str(model)
    assert entry.message in str(model.report())
