"""Logs from files: names, units, formats, even times; bad ones are refused or warned of by file, column and row."""

import dataclasses
import json
import pathlib
import re
import struct
import warnings

import jax.numpy as jnp
import numpy as np
import pyarrow.parquet
import pytest
from scipy.spatial.transform import Rotation

import mbjax
from mbjax import system_identification as si
from mbjax.system_identification.signals import resample_positions

from .robots import hopper, motion, two_links

FIRST, SECOND = "first", "second"


@pytest.fixture(scope="module")
def columns() -> dict[str, np.ndarray]:
    time, q, v, _ = motion(2, steps=120)
    names = {"time": time}
    for k, joint in enumerate((FIRST, SECOND)):
        names |= {f"position.{joint}": q[:, k], f"velocity.{joint}": v[:, k], f"effort.{joint}": 0.1 * q[:, k]}
    return names


def write_csv(path: pathlib.Path, columns: dict[str, np.ndarray]) -> pathlib.Path:
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def joint_state(columns: dict[str, np.ndarray], k: int) -> dict[str, list]:
    message: dict[str, list] = {"name": [FIRST, SECOND]}
    for signal in ("position", "velocity", "effort"):
        message[signal] = [float(columns[f"{signal}.{joint}"][k]) for joint in (FIRST, SECOND)]
    return message


def in_cdr(message: dict[str, list]) -> bytes:
    """A `sensor_msgs/msg/JointState` in little-endian CDR, with its frame's name of four bytes."""
    data = struct.pack("<2I", 1, 2) + struct.pack("<I4s", 4, b"arm")
    data += struct.pack("<I", len(message["name"]))
    for name in message["name"]:
        data += b"\0" * (-len(data) % 4) + struct.pack("<I", len(name) + 1) + name.encode() + b"\0"
    for signal in ("position", "velocity", "effort"):
        data += b"\0" * (-len(data) % 4) + struct.pack("<I", 2)
        data += b"\0" * (-len(data) % 8) + struct.pack("<2d", *message[signal])
    return b"\0\1\0\0" + data


def write_mcap(path: pathlib.Path, columns: dict[str, np.ndarray], in_ros: bool = False) -> pathlib.Path:
    from mcap.writer import Writer

    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        kind = ("sensor_msgs/msg/JointState", "ros2msg", b"") if in_ros else ("joints", "jsonschema", b"{}")
        schema = writer.register_schema(name=kind[0], encoding=kind[1], data=kind[2])
        encoding = "cdr" if in_ros else "json"
        channel = writer.register_channel(schema_id=schema, topic="joint_states", message_encoding=encoding)
        for k, t in enumerate(columns["time"]):
            message = joint_state(columns, k)
            data = in_cdr(message) if in_ros else json.dumps(message).encode()
            stamp = round(1e9 * float(t))
            writer.add_message(channel_id=channel, log_time=stamp, publish_time=stamp, data=data)
        writer.finish()
    return path


@pytest.mark.parametrize("form", ["csv", "npz", "parquet", "mcap", "ros.mcap"])
def test_every_format_gives_the_same_log(form: str, columns: dict, tmp_path: pathlib.Path) -> None:
    path = tmp_path / f"log.{form}"
    if form == "csv":
        write_csv(path, columns)
    elif form == "npz":
        np.savez(path, **columns)
    elif form == "parquet":
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
    else:
        write_mcap(path, columns, in_ros=form == "ros.mcap")
    log = si.read_log(path, two_links())
    np.testing.assert_allclose(log.q[:, 1], columns["position.second"], atol=1e-6)
    np.testing.assert_allclose(log.effort[:, 0], columns["effort.first"], atol=1e-6)


def test_units_mapping_and_uneven_times(columns: dict, tmp_path: pathlib.Path) -> None:
    other = {
        "ms": 1e3 * columns["time"] + 0.3 * np.sin(np.arange(120)),
        "axis A": np.rad2deg(columns["position.first"]),
        "q1": np.rad2deg(columns["position.second"]),
    }
    mapping = {"time": "ms", "position.first": "axis A"}
    with pytest.warns(mbjax.ModelWarning, match="no efforts"):
        log = si.read_log(
            write_csv(tmp_path / "log.csv", other), two_links(), columns=mapping,
            units={"time": "ms", "position": "deg"}, period=0.01, cutoff=20.0,
        )  # fmt: skip
    assert abs(log.period - 0.01) < 1e-9
    np.testing.assert_allclose(np.ptp(log.q[:, 0]), np.ptp(columns["position.first"]), rtol=0.02)


def test_joints_that_stand_still_and_measured_contacts(columns: dict, tmp_path: pathlib.Path) -> None:
    some = {k: x for k, x in columns.items() if k in ("time", "position.first", "effort.first")}
    some["external.second"] = columns["effort.second"]
    for number in (0.3, "0.3"):
        given = {"position.second": number, "effort.second": None}
        log = si.read_log(write_csv(tmp_path / "log.csv", some), two_links(), columns=given)
        np.testing.assert_allclose(log.q[:, 1], 0.3)
        np.testing.assert_allclose(log.external[:, 1], columns["effort.second"], atol=1e-9)


def test_differentiation_and_filter() -> None:
    model = two_links()
    time, q, v, vdot = motion(2, steps=400, period=0.002)
    log = si.make_log(model, time, q)
    np.testing.assert_allclose(log.v[3:-3], v[3:-3], atol=1e-5)
    np.testing.assert_allclose(log.vdot[5:-5], vdot[5:-5], atol=1e-3)
    noise = 0.01 * np.random.default_rng(0).normal(size=q.shape)
    smooth = si.low_pass(q + noise, 0.002, 12.0)
    assert np.std((smooth - q)[50:-50]) < 0.4 * np.std(noise)
    np.testing.assert_allclose(si.resample(time, q, time[-1:] + 1e-12), q[-1:])  # by rounding
    with pytest.raises(mbjax.ModelError, match=r"resample: times must lie within 0 … 0\.798 s, got 0\.1 … 0\.9"):
        si.resample(time, q, np.array([0.1, 0.9]))


def test_velocities_of_a_floating_base() -> None:
    model = hopper()
    v = np.zeros((40, model.num_velocities))
    v[:, model.body("trunk").floating_velocities_start_in_v] = 0.7
    q, states = model.parameters.default_positions, []
    for row in v:
        states.append(q)
        q = mbjax.integrate_configuration(model, q, 0.01 * row)
    log = si.make_log(model, 0.01 * np.arange(40), np.array(states))
    np.testing.assert_allclose(log.v, v, atol=1e-9)
    mixed, time = np.array(states), 0.01 * np.arange(40)
    mixed[::3, :4] *= -1.0
    even = resample_positions(model, time, mixed, time[:-1] + 0.005)
    np.testing.assert_allclose(np.linalg.norm(even[:, :4], axis=1), 1.0)
    np.testing.assert_allclose(si.make_log(model, time[:-1], even).v[2:-2], v[2:-3], atol=1e-3)


@pytest.mark.parametrize("joint", ["quaternion", "rpy"])
def test_a_body_that_turns_on_and_on_is_filtered(joint: str) -> None:
    """Two turns about a skew axis: no jump of rotation vectors, signs or angles is there for a filter to smear."""
    plant = mbjax.MultibodyPlant(0.0)
    plant.add_rigid_body("body", mbjax.SpatialInertia(1.0, [0.0] * 3, mbjax.UnitInertia(0.1, 0.1, 0.1)))
    if joint == "rpy":
        plant.add_joint(mbjax.RpyFloatingJoint("float", "world", "body"))
    model = plant.finalize()
    time, axis = 0.01 * np.arange(501), np.array([0.6, 0.0, 0.8])
    turns = Rotation.from_rotvec(np.outer(0.8 * np.pi * time, axis))
    rotations = turns.as_euler("xyz") if joint == "rpy" else turns.as_quat(scalar_first=True)
    position = np.outer(0.3 * time, [1.0, 2.0, 0.0])
    q = np.concatenate([rotations, position], 1)
    log = si.make_log(model, time, q, effort=np.zeros((501, 6)), cutoff=4.0)
    kept = np.asarray(log.weights[:, 0]) > 0.0
    assert kept.sum() > 450
    np.testing.assert_allclose(np.asarray(log.v)[kept, :3], np.tile(0.8 * np.pi * axis, (kept.sum(), 1)), atol=1e-3)
    np.testing.assert_allclose(np.asarray(log.v)[kept, 3:], np.tile([0.3, 0.6, 0.0], (kept.sum(), 1)), atol=1e-3)


def slider_and_elbow() -> mbjax.MultibodyModel:
    plant = mbjax.MultibodyPlant(0.0)
    for name, parent in (("cart", "world"), ("arm", "cart")):
        plant.add_rigid_body(name, mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
        kind = mbjax.PrismaticJoint if name == "cart" else mbjax.RevoluteJoint
        plant.add_joint(kind({"cart": "slide", "arm": "elbow"}[name], parent, name, axis=[0.0, 1.0, 0.0]))
    return plant.finalize()


def test_units_of_a_signal_are_of_the_coordinates_that_have_them(tmp_path: pathlib.Path) -> None:
    """Degrees leave a slider's metres alone, unless its own column is said to be in them, which cannot be."""
    model, time = slider_and_elbow(), 0.01 * np.arange(40)
    x, angle = 0.1 + 0.05 * np.sin(time), 40.0 * np.sin(3.0 * time)
    path = write_csv(
        tmp_path / "log.csv",
        {"time": time, "q_slide": x, "q_elbow": angle, "tau_slide": 0.0 * x, "tau_elbow": 3.0 * angle},
    )
    units = {"position": "deg", "effort": "mN m"}
    log = si.read_log(path, model, units=units)
    np.testing.assert_allclose(log.q, np.stack([x, np.deg2rad(angle)], 1), atol=1e-9)
    np.testing.assert_allclose(log.effort[:, 1], 3e-3 * angle, atol=1e-9)
    log = si.read_log(path, model, units=units | {"q_slide": "mm"})
    np.testing.assert_allclose(log.q[:, 0], 1e-3 * x, atol=1e-12)
    with pytest.raises(mbjax.ModelError, match="'q_slide' is position of 'slide', a length, for which 'deg' is no"):
        si.read_log(path, model, units={"q_slide": "deg"})
    with pytest.raises(mbjax.ModelError, match="units has 'mm' for position, but none of the model's is a length"):
        si.read_log(
            path,
            two_links(),
            units={"position": "mm"},
            columns={"position.first": "q_slide"}
            | {"position.second": "q_elbow", "effort.first": None, "effort.second": None},
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("position.second"), "no column for position.second"),
        (lambda c: c.pop("velocity.second"), "no column for velocity.second"),
        (lambda c: c.pop("effort.second"), "no column for effort.second.*None if none acts there"),
        (lambda c: c.pop("time"), "no column of times"),
        (lambda c: c["effort.first"].__setitem__(7, np.nan), "column 'effort.first' has nan in row 7"),
        (lambda c: c["time"].__setitem__(9, 0.01), "column 'time' goes back to 0.01 s in row 9"),
        (lambda c: [c.update({k: x[:5]}) for k, x in list(c.items())], "5 rows are too few"),
    ],
)
def test_bad_logs_are_refused(change, message: str, columns: dict, tmp_path: pathlib.Path) -> None:
    spoilt = {name: column.copy() for name, column in columns.items()}
    change(spoilt)
    with pytest.raises(mbjax.ModelError, match=message) as error:
        si.read_log(write_csv(tmp_path / "bad.csv", spoilt), two_links())
    assert "bad.csv" in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"units": {"positon": "deg"}}, "units has 'positon', which is no signal. Did you mean 'position'"),
        ({"units": {"position": "rpm"}}, r"log\.csv: 'rpm' is no unit of position; give rad, deg, m or mm\."),
        ({"units": {"time": "h"}}, "'h' is no unit of time; give s, ms, us or ns"),
        ({"time_offsets": {"efort": 0.01}}, "time_offsets has 'efort'.*'effort'"),
        ({"start": 0.03}, "column 'effort.first' has nan in row 7"),
        ({"start": 50.0}, "only 0 samples, of those from 0 s to 1.19 s"),
    ],
)
def test_options_that_would_be_ignored_are_refused(options, message: str, columns: dict, tmp_path) -> None:
    spoilt = {name: column.copy() for name, column in columns.items()}
    spoilt["effort.first"][7] = np.nan
    path = write_csv(tmp_path / "log.csv", spoilt)
    with pytest.raises(mbjax.ModelError, match=message):
        si.read_log(path, two_links(), **options)
    assert len(si.read_log(path, two_links(), start=0.08)) == 112  # as the message of row 7 advises


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update({"position.first": 500.0 * c["position.first"]}), "is in degrees, say units"),
        (lambda c: c.update({"velocity.first": -c["velocity.first"]}), "times the rate of its position"),
        (lambda c: [c.update({k: 0.0 * x}) for k, x in list(c.items()) if k != "time"], "no position moves"),
        (lambda c: c["time"].__iadd__(np.where(np.arange(120) > 60, 0.2, 0.0)), "are missing between rows 60 and 61"),
        (lambda c: [c.pop(f"effort.{joint}") for joint in (FIRST, SECOND)], "odd.csv: no efforts or actuation were"),
    ],
)
def test_doubtful_logs_are_warned_of(change, message: str, columns: dict, tmp_path: pathlib.Path) -> None:
    spoilt = {name: column.copy() for name, column in columns.items()}
    change(spoilt)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        si.read_log(write_csv(tmp_path / "odd.csv", spoilt), two_links())
    assert sum(message in str(warning.message) for warning in caught) == 1
    assert not any("was given" in str(warning.message) for warning in caught)  # of `make_log`, for the same


def driven_twice(*, mimics: bool) -> mbjax.MultibodyModel:
    """Two motors on the first joint, or one on the second, which turns twice as fast as the first."""
    plant = mbjax.MultibodyPlant(0.01)
    for name, parent in (("first", "world"), ("second", "first")):
        plant.add_rigid_body(name, mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
        plant.add_joint(mbjax.RevoluteJoint(name, parent, name, axis=[0, 1, 0]))
    if mimics:
        plant.add_mimic("second", "first", 2.0)
        plant.add_joint_actuator("motor", "second")
    else:
        for motor in ("left", "right"):
            plant.add_joint_actuator(motor, "first")
    return plant.finalize()


@pytest.mark.parametrize(
    ("mimics", "effort", "actuation"), [(False, [6.0, 0.0], [3.0, 3.0]), (True, [6.0], [3.0])], ids=["shared", "mimic"]
)
def test_efforts_and_actuation_follow_from_each_other(mimics: bool, effort: list, actuation: list) -> None:
    model, time = driven_twice(mimics=mimics), 0.01 * np.arange(8)
    q = np.zeros((8, model.num_positions))
    for given in ({"effort": np.tile(effort, (8, 1))}, {"actuation": np.tile(actuation, (8, 1))}):
        log = si.make_log(model, time, q, q, q, **given)
        np.testing.assert_allclose(log.effort, np.tile(effort, (8, 1)), rtol=1e-15)
        np.testing.assert_allclose(log.actuation, np.tile(actuation, (8, 1)), rtol=1e-15)


def test_arrays_that_make_no_log() -> None:
    model, q = two_links(), np.zeros((5, 2))
    for time, message in (
        ([0.0, 0.1, np.nan, 0.3, 0.4], r"run: time must be finite numbers \(steps,\) in s; row 2 has nan"),
        (0.1 * np.ones((5, 1)), r"run: time must be finite numbers \(steps,\) in s, got shape \(5, 1\)"),
        ([0.0, 0.1, 0.1, 0.3, 0.4], "times must grow, but from row 1 to row 2"),
    ):
        with pytest.raises(mbjax.ModelError, match=message):
            si.make_log(model, time, q, effort=q, name="run")
    with pytest.warns(mbjax.ModelWarning, match="run: no effort or actuation was given; they count as zero"):
        si.make_log(model, 0.1 * np.arange(5), q, name="run")


def test_text_in_a_column_and_ragged_rows(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("time,q0,q1\n" + "".join(f"{0.1 * k},1,2\n" for k in range(9)) + "0.9,oops,2\n")
    with pytest.raises(mbjax.ModelError, match="'oops' in row 9, which is no number; rows are counted from 0 below"):
        si.read_log(path, two_links())
    with pytest.raises(mbjax.ModelError, match="the log's path and the model, got MultibodyModel and str"):
        si.read_log(two_links(), "log.csv")
    path.write_text("time,q0,q1\n0,1,2\n0.1,1\n")
    with pytest.raises(mbjax.ModelError, match=r"log\.csv:3: 2 values in a row of 3 columns"):
        si.read_log(path, two_links())


def test_tables_of_other_programs_are_read(tmp_path, columns) -> None:
    """UTF-16 and Latin-1, as spreadsheets write them, and names with line breaks in quotation marks."""
    model, plain = two_links(), (tmp_path / "log.csv")
    expected = si.read_log(write_csv(plain, columns), model)
    text = plain.read_text().replace("time,", "Gerät °C,time,", 1)
    text = "\n".join([line if not k else f"20.5,{line}" for k, line in enumerate(text.split("\n")) if line])
    wide, latin, quoted = (tmp_path / f"{name}.csv" for name in ("wide", "latin", "quoted"))
    wide.write_text(text, encoding="utf-16")
    latin.write_text(text, encoding="latin-1")
    quoted.write_text(text.replace("Gerät °C", '"temperature\nof the room"'), encoding="utf-8")
    np.testing.assert_array_equal(si.read_log(wide, model).q, expected.q)
    np.testing.assert_array_equal(si.read_log(quoted, model).q, expected.q)
    with pytest.warns(mbjax.ModelWarning, match=r"latin\.csv:1: byte 0xe4 is not UTF-8"):
        np.testing.assert_array_equal(si.read_log(latin, model).q, expected.q)
    quoted.write_text(quoted.read_text().replace("20.5", "20.5,1", 1))
    with pytest.raises(mbjax.ModelError, match=r"quoted\.csv:3: 9 values in a row of 8"):
        si.read_log(quoted, model)


DAMAGED = {
    "empty.npz": b"",
    "empty.parquet": b"",
    "text.npz": b"time,q\n1,2\n",
    "text.parquet": b"time,q\n1,2\n",
    "text.mcap": b"time,q\n1,2\n",
    "long.csv": b'time,q\n"' + b"1" * 200_000 + b'",2\n',
    "open.csv": b'time,q\n"1,2\n' + b"1,2\n" * 50_000,
    "zeros.csv": b"time,q\n1,\0\n",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_are_named(tmp_path, name) -> None:
    path = tmp_path / name
    path.write_bytes(DAMAGED[name])
    with pytest.raises(mbjax.ModelError, match=name.replace(".", r"\.")):
        si.read_log(path, two_links())


def test_arrays_that_are_no_log_are_named(tmp_path, columns) -> None:
    """Truncated, of Python objects, and a single array under a wrong name."""
    whole = tmp_path / "whole.npz"
    np.savez(whole, **columns)
    cut, objects, single = (tmp_path / f"{name}.npz" for name in ("cut", "objects", "single"))
    cut.write_bytes(whole.read_bytes()[:3000])
    np.savez(objects, time=np.array([1.0, "x", None], object))
    with single.open("wb") as file:
        np.save(file, np.zeros(9))
    for path, reason in ((cut, "damaged"), (objects, "array 'time' holds Python objects"), (single, "single array")):
        with pytest.raises(mbjax.ModelError, match=rf"{path.name}: .*{reason}"):
            si.read_log(path, two_links())


def names_by_place(columns: dict, names: dict[str, str]) -> dict[str, np.ndarray]:
    """The columns of the log of two joints, renamed; every effort and position differs from all others."""
    return {new: columns[old] for old, new in names.items()}


POSITIONS = {"time": "t", "position.first": "q{0}", "position.second": "q{1}"}


@pytest.mark.parametrize(
    "efforts",
    [
        {"effort.first": "tau{0}", "effort.second": "tau{1}"},
        {"effort.first": "tau_first", "effort.second": "torque{1}"},
        {"effort.first": "tau_0{0}", "effort.second": "tau_0{1}"},
    ],
)
@pytest.mark.parametrize("base", [0, 1])
def test_columns_count_from_0_or_from_1(efforts: dict, base: int, columns: dict, tmp_path: pathlib.Path) -> None:
    names = {old: new.format(base, base + 1) for old, new in (POSITIONS | efforts).items()}
    log = si.read_log(write_csv(tmp_path / "log.csv", names_by_place(columns, names)), two_links())
    np.testing.assert_allclose(log.effort[:, 0], columns["effort.first"], atol=1e-9)
    np.testing.assert_allclose(log.effort[:, 1], columns["effort.second"], atol=1e-9)
    np.testing.assert_allclose(log.q[:, 1], columns["position.second"], atol=1e-9)


def test_efforts_by_place_beside_positions_by_name(columns: dict, tmp_path: pathlib.Path) -> None:
    """Positions named after the joints say nothing of how efforts are counted."""
    named = {name: column for name, column in columns.items() if not name.startswith("effort")}
    named |= {"tau1": columns["effort.first"], "tau2": columns["effort.second"], "tau3": columns["time"]}
    log = si.read_log(write_csv(tmp_path / "log.csv", named), two_links())
    np.testing.assert_allclose(log.effort[:, 1], columns["effort.second"], atol=1e-9)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("q0", "q1", "tau1", "tau2"), r"position count from 0 \(q0, q1\), those of effort from 1 \(tau1, tau2\)"),
        (("q_first", "q_second", "tau3", "tau4"), "tell neither by a 0 nor by a 2"),
        (("q0", "q1", "tau_first", "extra"), "no column for effort.second"),
        (("q_first", "q_second", "second_pos", "extra"), "'q_second' and 'second_pos' could all be position.second"),
        (("q0", "q1", "tau1", "torque1"), "'tau1' and 'torque1' could all be effort.second"),
        (("q0", "q1", "tau0", "torque0"), "'tau0' and 'torque0' could all be effort.first"),
        (("q_first", "q_second", "q_second", "extra"), "two columns 'q_second'"),
    ],
)
def test_columns_that_could_mean_two_things(names: tuple, message: str, columns: dict, tmp_path: pathlib.Path) -> None:
    rows = zip(columns["time"], *(columns[f"position.{j}"] for j in (FIRST, SECOND, FIRST, SECOND)), strict=True)
    path = tmp_path / "log.csv"
    path.write_text("\n".join([",".join(("time", *names)), *(",".join(map(str, row)) for row in rows)]) + "\n")
    with pytest.raises(mbjax.ModelError, match=message):
        si.read_log(path, two_links())


def test_two_columns_of_one_name_in_every_format(columns: dict, tmp_path: pathlib.Path) -> None:
    np.savez(tmp_path / "log.npz", time=columns["time"], q=np.ones((120, 2)), q1=np.ones(120))
    twice = [pyarrow.array(columns["time"])] * 2
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays(twice, names=["time", "time"]), tmp_path / "log.parquet")
    for name in ("log.npz", "log.parquet"):
        with pytest.raises(mbjax.ModelError, match=f"{name}: there are two columns"):
            si.read_log(tmp_path / name, two_links())


def test_a_passive_joint_needs_no_effort(tmp_path: pathlib.Path) -> None:
    """Of the cart-pole only the cart is driven, so that its effort alone is expected, counted from 1."""
    model, time = mbjax.load("cart_pole", time_step=0.01), 0.01 * np.arange(20)
    q = np.sin(time)
    path = write_csv(tmp_path / "log.csv", {"time": time, "q1": q, "q2": 0.5 * q, "tau1": 3.0 * q})
    log = si.read_log(path, model)
    np.testing.assert_allclose(log.effort, np.stack([3.0 * q, 0.0 * q], 1), atol=1e-9)


def test_positions_in_degrees_are_one_warning_for_all_joints(columns, tmp_path) -> None:
    turned = {name: 57.0 * x if name.startswith("position") else x for name, x in columns.items()}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        si.read_log(write_csv(tmp_path / "degrees.csv", turned), two_links())
    said = [str(w.message) for w in caught if "in degrees" in str(w.message)]
    assert len(said) == 1
    assert "'first' reaches" in said[0]
    assert "units={'position': 'deg'}" in said[0]


def test_a_log_prints_its_numbers(columns, tmp_path) -> None:
    text = str(si.read_log(write_csv(tmp_path / "log.csv", columns), two_links()))
    assert text.startswith("Log 'log.csv', ")
    assert " samples in SI units\n  time " in text
    assert "…" in text


def test_advice_of_numpy_to_read_unsafely_is_not_passed_on(tmp_path) -> None:
    path = tmp_path / "log.npz"
    path.write_text("no archive")
    with pytest.raises(mbjax.ModelError, match=r"log\.npz: the file is damaged.*no archive of arrays") as caught:
        si.read_log(path, two_links())
    assert "pickle" not in str(caught.value)


def test_arguments_of_a_fit_in_another_order_are_refused(columns, tmp_path) -> None:
    model = two_links()
    log = si.read_log(write_csv(tmp_path / "log.csv", columns), model)
    unknown = si.Parameters(model, {"joint_damping:*": si.positive()})
    with pytest.raises(mbjax.ModelError, match=r"first argument must be si\.Parameters\(model, …\), got Log"):
        si.fit(log, unknown, si.Torques())  # pyright: ignore[reportArgumentType]
    with pytest.raises(mbjax.ModelError, match=r"method must be si\.Torques\(\).*got 'torques'"):
        si.fit(unknown, log, "torques")


def limited(q: float, v: float) -> mbjax.MultibodyModel:
    """Two links whose joints have these limits of position and speed."""
    model = two_links()
    p = model.parameters
    new = dataclasses.replace(
        p, position_lower_limits=jnp.full(2, -q, model.dtype), position_upper_limits=jnp.full(2, q, model.dtype),
        velocity_upper_limits=jnp.full(2, v, model.dtype),
    )  # fmt: skip
    return dataclasses.replace(model, parameters=new)


@pytest.mark.parametrize(
    ("degrees", "limits", "units", "said"),
    [
        (4.0, (2.9, 50.0), {}, "position of 'first' goes from .* past its limits -2.9 and 2.9 rad.* in degrees"),
        (2.0, (2.9, 3.0), {}, "position of 'first' changes by up to .* rad/s, where its limit is 3.* in degrees"),
        (2.0, (2.9, 3.0), {"position": "deg"}, "positions reach 2 degrees at most. If they are in radians"),
        (40.0, (2.9, 3.0), {"position": "deg"}, None),
    ],
)  # fmt: skip
def test_a_few_degrees_are_told_by_limits_and_speeds(
    degrees: float, limits: tuple, units: dict, said: str | None, tmp_path: pathlib.Path
) -> None:
    """Whatever the file has, degrees or radians, nothing in it says; what joints can do does."""
    time = 0.01 * np.arange(150)
    q = degrees * np.sin(np.outer(time, [4.0, 5.0]))
    np.savez(tmp_path / "log.npz", time=time, q=q, tau=0.0 * q)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        si.read_log(tmp_path / "log.npz", limited(*limits), units=units)
    found = [str(warning.message) for warning in caught]
    assert len(found) == (said is not None), found
    assert said is None or re.search(said, found[0]), found
