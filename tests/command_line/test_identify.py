"""`mbjax identify`: from a log to a table and a report."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import mbjax
from mbjax.command_line import main


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
