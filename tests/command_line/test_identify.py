"""`mbjax identify`: from a log to a table and a report."""

import argparse
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.command_line import main
from mbjax.command_line.identify import columns_of


def write_log(path: pathlib.Path, model: mbjax.MultibodyModel) -> None:
    """A swinging pendulum's efforts."""
    time = 0.01 * np.arange(150)
    q, v, vdot = np.sin(3.0 * time), 3.0 * np.cos(3.0 * time), -9.0 * np.sin(3.0 * time)
    one = jax.jit(jax.vmap(lambda *x: mbjax.inverse_dynamics(model, *x, force_elements=True)))
    tau = np.asarray(one(*(jnp.asarray(x)[:, None] for x in (q, v, vdot))))[:, 0]
    rows = zip(time, q, v, vdot, tau, strict=True)
    path.write_text("time,q0,v0,vdot0,tau0\n" + "".join(",".join(map(repr, map(float, row))) + "\n" for row in rows))


def test_identify_prints_a_table_and_writes_a_report_and_the_robot(tmp_path: pathlib.Path, capsys) -> None:
    model = mbjax.load("pendulum")
    joint = next(j.name for j in model.layout.joints if j.num_velocities)
    write_log(tmp_path / "log.csv", mbjax.set_joint_damping(model, joint, 0.77))
    report = tmp_path / "report.html"
    arguments = ["identify", "pendulum", str(tmp_path / "log.csv"), "--parameters", f"joint_damping:{joint}=positive"]
    robot = tmp_path / "fitted.urdf"
    assert main([*arguments, "--output", str(report), "--write", str(robot)]) == 0
    printed = capsys.readouterr().out
    assert "0.77" in printed
    assert "Converged" in printed
    assert report.stat().st_size > 1000
    fitted = mbjax.load(robot)
    place = fitted.joint(joint).all_v_start
    np.testing.assert_allclose(fitted.parameters.joint_damping[place], 0.77, rtol=1e-6)
    assert f"wrote {robot}" in printed


def test_wrong_parameters_are_one_clear_line(tmp_path: pathlib.Path, capsys) -> None:
    write_log(tmp_path / "log.csv", mbjax.load("pendulum"))
    assert main(["identify", "pendulum", str(tmp_path / "log.csv"), "--parameters", "mass:*=scaled(1)"]) == 3
    assert "scaled(LOW,HIGH)" in capsys.readouterr().err
    arguments = ["identify", "pendulum", str(tmp_path / "log.csv"), "--parameters", "mass:*", "--write", "fitted.obj"]
    assert main(arguments) == 3
    assert "must end in .urdf, .sdf" in capsys.readouterr().err
    for more, message in (
        (
            ["--method", "trajectories", "--row", "hinge"],
            "--row and --contact say which efforts a fit of torques compares",
        ),
        (["--horizon", "20"], "--horizon is of --method trajectories"),
    ):
        assert main(["identify", "pendulum", str(tmp_path / "log.csv"), "--parameters", "mass:*", *more]) == 3
        assert message in capsys.readouterr().err.replace("\n", " ")


def test_efforts_that_were_not_measured_need_no_column() -> None:
    options = argparse.Namespace(row=["elbow"], column=["time=ms"])
    assert columns_of(options, mbjax.load("acrobot")) == {"effort.shoulder": None, "time": "ms"}
    options.row = []
    assert columns_of(options, mbjax.load("acrobot")) == {"time": "ms"}


XACRO = """<robot name="swing" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arg name="mass" default="1.0"/>
<link name="base"/><link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="$(arg mass)"/>
<inertia ixx="0.1" iyy="0.1" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint></robot>"""


@pytest.mark.whole_run("identify writes a report and the robot")
def test_xacro_with_arguments_is_fitted_and_written_as_sdf(tmp_path: pathlib.Path, capsys) -> None:
    (tmp_path / "swing.urdf.xacro").write_text(XACRO)
    model = mbjax.load(tmp_path / "swing.urdf.xacro", base="fixed", xacro_arguments={"mass": "2.5"})
    write_log(tmp_path / "log.csv", mbjax.set_joint_damping(model, "hinge", 0.3))
    robot = tmp_path / "fitted.sdf"
    arguments = ["identify", str(tmp_path / "swing.urdf.xacro"), str(tmp_path / "log.csv"), "--base", "fixed"]
    arguments += ["--xacro-arg", "mass:=2.5", "--parameters", "joint_damping:hinge=between(0,2)", "--write", str(robot)]
    assert main([*arguments, "--start", "0.1", "--row", "hinge"]) == 3
    assert "0 in the model" in capsys.readouterr().err
    arguments[arguments.index("joint_damping:hinge=between(0,2)")] = "joint_damping:hinge=positive"
    assert main([*arguments, "--start", "0.1", "--row", "hinge"]) == 0
    fitted = mbjax.load(robot)
    np.testing.assert_allclose(mbjax.mass(fitted, "rod"), 2.5)
    np.testing.assert_allclose(fitted.parameters.joint_damping[fitted.joint("hinge").all_v_start], 0.3, rtol=1e-6)


def test_warnings_of_a_log_are_printed(tmp_path: pathlib.Path, capsys) -> None:
    """A log in degrees is fitted as if in radians, so a user must hear of it."""
    write_log(tmp_path / "log.csv", mbjax.load("pendulum"))
    rows = [line.split(",") for line in (tmp_path / "log.csv").read_text().split()]
    rows = [rows[0], *([row[0], *(str(57.3 * float(x)) for x in row[1:4]), row[4]] for row in rows[1:])]
    (tmp_path / "log.csv").write_text("\n".join(map(",".join, rows)) + "\n")
    main(["identify", "pendulum", str(tmp_path / "log.csv"), "--parameters", "mass:pendulum=positive"])
    printed = capsys.readouterr().err
    assert "mbjax: warning: " in printed
    assert "If it is in degrees, say --unit position=deg" in printed


def test_advice_is_in_words_of_the_command_line(tmp_path: pathlib.Path, capsys) -> None:
    log = tmp_path / "log.csv"
    log.write_text("time,q1,q2,tau1\n" + "".join(f"{0.1 * k},1,2,3\n" for k in range(9)))
    assert main(["identify", "acrobot", str(log), "--actuators", "joints", "--parameters", "mass:*"]) == 3
    printed = capsys.readouterr().err
    assert "--column effort." in printed
    assert "columns=" not in printed
