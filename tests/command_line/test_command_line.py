"""The `mbjax` command: what it prints, writes, and answers when something is wrong."""

import argparse
import pathlib
import re

import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.command_line import main
from mbjax.command_line.simulate import load_with_actuators, make_targets, tune_controller
from mbjax.reference_models import path

LOOP_JOINT = """<robot name="r"><link name="a"/><link name="b"/>
<loop_joint name="l" type="fixed"><link1 link="a"/><link2 link="b"/></loop_joint></robot>"""


LINK = """<link name="{}"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
GRIPPER = f"""<robot name="gripper">{LINK.format("hand")}{LINK.format("left")}{LINK.format("right")}
<joint name="arm" type="continuous"><parent link="world"/><child link="hand"/></joint>
<joint name="slide" type="prismatic"><parent link="hand"/><child link="left"/><limit effort="6"/></joint>
<joint name="follow" type="prismatic"><parent link="hand"/><child link="right"/><mimic joint="slide"/></joint>
</robot>"""


def write(folder: pathlib.Path, text: str | bytes) -> str:
    file = folder / "robot.urdf"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(file)


@pytest.mark.parametrize("arguments", [[], ["simulate"], ["inspect"]], ids=str)
def test_help(arguments, capsys) -> None:
    with pytest.raises(SystemExit) as done:
        main([*arguments, "--help"])
    assert done.value.code == 0
    text = capsys.readouterr().out
    assert "exit codes" in text
    assert "arm" in text


@pytest.mark.parametrize(
    "arguments", [[], ["simulate", "--duration", "-1"], ["simulate", "--duration", "nan"], ["fly"]], ids=str
)
def test_wrong_arguments_exit_with_2(arguments, capsys) -> None:
    with pytest.raises(SystemExit) as done:
        main(arguments)
    assert done.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_missing_file_exits_with_2_and_suggests(capsys) -> None:
    assert main(["inspect", "quadrupedd"]) == 2
    message = capsys.readouterr().err
    assert "quadrupedd" in message
    assert "Did you mean 'quadruped'?" in message


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("<robot name='r'><link name='a'>", "robot.urdf:1"),
        (b"\x00\x01\x02", "robot.urdf"),
        ("<robot name='r'><link name='a'/><link name='a'/></robot>", "'a'"),
    ],
)
def test_bad_file_exits_with_3(content, says, tmp_path, capsys) -> None:
    assert main(["inspect", write(tmp_path, content)]) == 3
    message = capsys.readouterr().err
    assert message.startswith("mbjax: error: ")
    assert says in message


def test_folder_exits_with_3(tmp_path, capsys) -> None:
    assert main(["simulate", str(tmp_path)]) == 3
    assert "mbjax: error: " in capsys.readouterr().err


def test_unsupported_content_exits_with_4_unless_asked_to_go_on(tmp_path, capsys) -> None:
    file = write(tmp_path, LOOP_JOINT)
    assert main(["inspect", file]) == 4
    message = capsys.readouterr().err
    assert "loop_joint" in message
    assert "robot.urdf:2" in message


def test_bad_package_exits_with_2(capsys) -> None:
    assert main(["inspect", "arm", "--package", "here"]) == 2
    assert "NAME=DIR" in capsys.readouterr().err


def test_inspect_prints_table_and_report(capsys) -> None:
    assert main(["inspect", str(path("quadruped"))]) == 0
    text = capsys.readouterr().out
    assert "front_left_knee" in text
    assert "18 velocities" in text
    assert "load report" in text


def test_inspect_eliminates_mimics_where_asked(tmp_path, capsys) -> None:
    file = write(tmp_path, GRIPPER)
    for option, count in (("eliminate", "2 positions"), ("couple", "3 positions")):
        assert main(["inspect", file, "--mimic", option]) == 0
        assert count in capsys.readouterr().out
    model, num_added = load_with_actuators(loading_options(file))
    assert num_added == 2
    assert model.actuator_names == ("arm", "slide")
    targets = make_targets(model, 5)
    assert targets.shape == (5, 4)
    assert np.isfinite(targets).all()


def loading_options(file: str, **changed: str) -> argparse.Namespace:
    options = {
        "file": file, "base": "file", "package_map": {}, "on_unsupported": "error", "mimic": "eliminate",
        "time_step": 1e-3, "xacro_arguments": None, "actuators": "file",
    }  # fmt: skip
    return argparse.Namespace(**options | changed)


@pytest.mark.parametrize("mimic", ["couple", "eliminate", "free"])
def test_actuators_that_simulate_adds_keep_effort_limits_and_leave_followers_out(mimic, tmp_path) -> None:
    idle = '<joint name="idle" type="revolute"><parent link="hand"/><child link="flap"/><limit effort="0"/></joint>'
    file = write(tmp_path, GRIPPER.replace("</robot>", LINK.format("flap") + idle + "</robot>"))
    model, num_added = load_with_actuators(loading_options(file, mimic=mimic))
    limits = dict(zip(model.actuator_names, model.parameters.effort_limit.tolist(), strict=True))
    assert limits == {"arm": np.inf, "slide": 6.0} | ({"follow": np.inf} if mimic == "free" else {})
    assert num_added == len(limits)


FOLLOWED = """<mujoco model="two"><compiler angle="radian"/><worldbody>
<body name="arm"><inertial pos="0 0 -1" mass="2" diaginertia=".1 .1 .1"/><joint name="lead" axis="0 1 0"/>
<body name="hand" pos="0 0 -1"><inertial pos="0 0 -.5" mass="2" diaginertia=".1 .1 .1"/>
<joint name="follow" axis="0 1 0" range="-0.5 0.5" limited="true"/></body></body></worldbody>
<equality><joint joint1="follow" joint2="lead" polycoef="0.1 2 0 0 0"/></equality>
<actuator><motor name="first" joint="lead"/><motor name="second" joint="follow"/></actuator></mujoco>"""


def test_targets_and_gains_of_a_driven_joint_that_mimics_are_those_of_its_leader(tmp_path) -> None:
    """Both actuators aim at the same place, within both limits, and together hold the one coordinate, if it is one."""
    file = tmp_path / "two.xml"
    file.write_text(FOLLOWED)
    for mimic, coordinates in (("couple", 2), ("eliminate", 1)):
        model, num_added = load_with_actuators(loading_options(str(file), mimic=mimic))
        assert (num_added, model.num_positions, model.num_actuators) == (0, coordinates, 2)
        lead, follow, lead_rate, follow_rate = np.asarray(make_targets(model, 2000)).T
        np.testing.assert_allclose(follow, 2.0 * lead + 0.1, atol=1e-12)
        np.testing.assert_allclose(follow_rate, 2.0 * lead_rate, atol=1e-12)
        assert np.abs(follow).max() < 0.5
        assert np.ptp(lead) > 0.05
    tuned = tune_controller(model, 3.0)
    kp, kd = tuned.parameters.proportional_gain, tuned.parameters.derivative_gain
    inertia, w = float(mbjax.mass_matrix(model, jnp.zeros(1))[0, 0]), 6.0 * np.pi
    np.testing.assert_allclose(kp[0] + 4.0 * kp[1], w**2 * inertia, rtol=1e-12)
    np.testing.assert_allclose(kd[0] + 4.0 * kd[1], 2.0 * w * inertia, rtol=1e-12)


@pytest.mark.whole_run("the command that README begins with, which CI runs")
def test_simulate_prints_gradients_and_writes_pictures(tmp_path, capsys) -> None:
    options = ["--duration", "0.3", "--time-step", "0.005", "--gradient-duration", "0.1", "--output", str(tmp_path)]
    assert main(["simulate", "pendulum", *options]) == 0
    text = capsys.readouterr().out
    assert "finite differences" in text
    rows = [line.split() for line in text.splitlines() if re.search(r"[+-]\d\.\d{6}e", line)]
    errors = [float(row[-1]) for row in rows]
    assert len(errors) >= 2
    assert all(error < 1e-6 for error in errors)
    page = (tmp_path / "animation.html").read_text()
    assert "<html" in page
    assert (tmp_path / "plots.png").read_bytes().startswith(b"\x89PNG")


SWING = {
    "sdf": """<sdf version="1.9"><model name="swing"><link name="bob"><pose>0 0 -1 0 0 0</pose><inertial><mass>2</mass>
<inertia><ixx>.1</ixx><iyy>.1</iyy><izz>.1</izz></inertia></inertial></link><joint name="hinge" type="revolute">
<pose relative_to="__model__"/><parent>world</parent><child>bob</child><axis><xyz>0 1 0</xyz></axis></joint></model>
</sdf>""",
    "xml": """<mujoco model="swing"><worldbody><body name="bob"><inertial pos="0 0 -1" mass="2" diaginertia=".1 .1 .1"/>
<joint name="hinge" axis="0 1 0"/></body></worldbody>
<actuator><motor name="motor" joint="hinge"/></actuator></mujoco>""",
}


@pytest.mark.parametrize("kind", SWING)
def test_sdformat_and_mjcf_are_inspected_and_simulated(kind, tmp_path, capsys, monkeypatch, request) -> None:
    """All of both commands but the pictures, which do not depend on the format; trimmed: inspected only."""
    monkeypatch.setattr("mbjax.command_line.simulate.draw", lambda *_: [])
    file = tmp_path / f"swing.{kind}"
    file.write_text(SWING[kind])
    assert main(["inspect", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "bob" in shown
    assert "1 velocity" in shown or "1 velocities" in shown
    if request.config.getoption("--trimmed"):
        return
    options = ["--duration", "0.002", "--gradient-duration", "0.002", "--time-step", "0.002", "--output", str(tmp_path)]
    assert main(["simulate", str(file), *options]) == 0
    text = capsys.readouterr().out
    assert "the file has no actuators" not in text
    errors = [float(line.split()[-1]) for line in text.splitlines() if re.search(r"[+-]\d\.\d{6}e", line)]
    assert errors
    assert all(error < 1e-6 for error in errors)


NUMBER = re.compile(r"[±+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
PANDA_LIKE = f"""<robot name="hand">{LINK.format("panda_link0")}{LINK.format("finger")}
<joint name="slide" type="prismatic"><parent link="panda_link0"/><child link="finger"/></joint></robot>"""


def numbers_in(text: str) -> list[str]:
    return sorted(NUMBER.findall(text))


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_inspect_cuts_no_number_at_any_width(columns, capsys, monkeypatch) -> None:
    """Each number of a wide pipe is there in a narrow one, and no line is longer than asked for."""
    assert main(["inspect", "quadruped"]) == 0
    wide = capsys.readouterr().out
    assert wide.count("±24") == 8
    assert wide.count("0-6") == 1
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["inspect", "quadruped"]) == 0
    narrow = capsys.readouterr().out
    assert numbers_in(narrow) == numbers_in(wide)
    table = narrow[narrow.index("\nquadruped") : narrow.index("load report")]
    assert max(map(len, table.splitlines())) <= columns


@pytest.mark.parametrize("command", ["inspect", "simulate"])
def test_a_free_base_is_the_first_thing_said(command, tmp_path, capsys, monkeypatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt  # all that is asked for here is printed by now

    monkeypatch.setattr("mbjax.command_line.simulate.tune_controller", stop)
    file = write(tmp_path, PANDA_LIKE)
    assert main([command, file]) == (130 if command == "simulate" else 0)
    said = "free base: 'panda_link0' is not attached to the world; pass --base fixed to weld it"
    first, *others = capsys.readouterr().out.splitlines()
    assert first == said
    assert said not in others
    assert main(["inspect", file, "--base", "fixed"]) == 0
    assert "free base" not in capsys.readouterr().out
