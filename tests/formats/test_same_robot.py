"""The same robot in three formats is the same model: every name and every leaf."""

import xml.etree.ElementTree as ElementTree

import equinox as eqx
import jax
import numpy as np
import pytest

from mbjax.formats import load
from mbjax.reference_models import path
from tests.formats.numpy_dynamics import dynamics

DRAKE = "http://drake.mit.edu"


def pose(origin, relative_to: str = "") -> str:
    numbers = "0 0 0 0 0 0" if origin is None else f"{origin.get('xyz', '0 0 0')} {origin.get('rpy', '0 0 0')}"
    return f'<pose relative_to="{relative_to}">{numbers}</pose>' if relative_to else f"<pose>{numbers}</pose>"


def as_text(element, names: dict[str, str]) -> str:
    """The attributes as elements."""
    return "".join(f"<{name}>{element.get(key)}</{name}>" for key, name in names.items() if element.get(key))


def shape(element, colors: dict[str, str]) -> str:
    (form,) = element.find("geometry")
    inner = as_text(form, {"radius": "radius", "length": "length", "size": "size"})
    material = element.find("material")
    color = "" if material is None else f"<material><diffuse>{colors[material.get('name')]}</diffuse></material>"
    return f"{pose(element.find('origin'))}<geometry><{form.tag}>{inner}</{form.tag}></geometry>{color}"


def link(element, joint, colors: dict[str, str]) -> str:
    """Placed at the joint that it hangs on; shapes get the names that URDF gives them."""
    name, parts = element.get("name"), [pose(None, joint.get("name"))]
    inertial = element.find("inertial")
    moments = as_text(inertial.find("inertia"), {k: k for k in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")})
    mass = as_text(inertial.find("mass"), {"value": "mass"})
    parts.append(f"<inertial>{pose(inertial.find('origin'))}{mass}<inertia>{moments}</inertia></inertial>")
    for tag in ("visual", "collision"):
        for k, part in enumerate(element.findall(tag)):
            called = part.get("name", f"{name}_{tag}" + (f"_{k}" if k else ""))
            parts.append(f'<{tag} name="{called}">{shape(part, colors)}</{tag}>')
    return f'<link name="{name}">{"".join(parts)}</link>'


def joint(element, motor) -> str:
    """Placed in its parent, as URDF has it; the numbers of a motor stand in the joint."""
    parent, child = element.find("parent").get("link"), element.find("child").get("link")
    where = pose(element.find("origin"), "__model__" if parent == "world" else parent)
    inner = f"<parent>{parent}</parent><child>{child}</child>"
    axis = element.find("axis")
    if axis is not None:
        limit = as_text(element.find("limit"), {k: k for k in ("lower", "upper", "effort", "velocity")})
        dynamics = element.find("dynamics")
        dissipation = "" if dynamics is None else as_text(dynamics, {k: k for k in ("damping", "friction")})
        inner += f"<axis><xyz>{axis.get('xyz')}</xyz><limit>{limit}</limit><dynamics>{dissipation}</dynamics></axis>"
    for tag in ("rotor_inertia", "gear_ratio"):
        number = None if motor is None else motor.find(f"{{{DRAKE}}}{tag}")
        inner += "" if number is None else f"<drake:{tag}>{number.get('value')}</drake:{tag}>"
    return f'<joint name="{element.get("name")}" type="{element.get("type")}">{where}{inner}</joint>'


def halves(element, key: str) -> str:
    return " ".join(repr(0.5 * float(word)) for word in element.get(key).split())


def place(origin) -> str:
    return "" if origin is None else f'pos="{origin.get("xyz", "0 0 0")}" euler="{origin.get("rpy", "0 0 0")}"'


def geom(element, name: str, tag: str, colors: dict[str, str]) -> str:
    """Drawn alone, or touched alone; MuJoCo's sizes are halves."""
    (form,) = element.find("geometry")
    is_box = form.tag == "box"
    size = halves(form, "size") if is_box else f"{form.get('radius')} {halves(form, 'length')}"
    rest = 'group="3" friction="1"'
    if tag == "visual":
        rest = f'group="1" contype="0" conaffinity="0" rgba="{colors[element.find("material").get("name")]}"'
    return f'<geom name="{name}" type="{form.tag}" size="{size}" {place(element.find("origin"))} {rest}/>'


def hinge(element, motor) -> str:
    """The rotor, turned by the gear, is the armature."""
    limit, axis = element.find("limit"), element.find("axis").get("xyz")
    numbers = [float(motor.find(f"{{{DRAKE}}}{tag}").get("value")) for tag in ("rotor_inertia", "gear_ratio")]
    return (
        f'<joint name="{element.get("name")}" axis="{axis}" damping="{element.find("dynamics").get("damping")}" '
        f'range="{limit.get("lower")} {limit.get("upper")}" armature="{numbers[0] * numbers[1] ** 2!r}"/>'
    )


def body(element, robot, motors, colors: dict[str, str]) -> str:
    """The link that a joint holds, and in it those that it bears."""
    name = element.find("child").get("link")
    (link,) = (e for e in robot.findall("link") if e.get("name") == name)
    inertial = link.find("inertial")
    moments = " ".join(inertial.find("inertia").get(k) for k in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
    inner = hinge(element, motors[element.get("name")]) if element.get("type") == "revolute" else ""
    mass = inertial.find("mass").get("value")
    origin = inertial.find("origin")
    assert origin.get("rpy") is None, "MuJoCo takes no turned frame beside products of inertia"
    inner += f'<inertial pos="{origin.get("xyz")}" mass="{mass}" fullinertia="{moments}"/>'
    for tag in ("visual", "collision"):
        for k, part in enumerate(link.findall(tag)):
            inner += geom(part, part.get("name", f"{name}_{tag}" + (f"_{k}" if k else "")), tag, colors)
    held = (e for e in robot.findall("joint") if e.find("parent").get("link") == name)
    inner += "".join(body(e, robot, motors, colors) for e in held)
    return f'<body name="{name}" {place(element.find("origin"))}>{inner}</body>'


@pytest.fixture(scope="module")
def mjcf():
    """The bundled arm from MJCF written from the XML of its URDF."""
    robot = ElementTree.parse(path("arm")).getroot()
    colors = {m.get("name"): m.find("color").get("rgba") for m in robot.findall("material")}
    motors = {e.find("joint").get("name"): e.find("actuator") for e in robot.findall("transmission")}
    (first,) = (e for e in robot.findall("joint") if e.find("parent").get("link") == "world")
    joints = {e.get("name"): e for e in robot.findall("joint")}
    driving = "".join(
        f'<motor name="{motor.get("name")}" joint="{name}" forcerange="-{effort} {effort}"/>'
        for name, motor in motors.items()
        for effort in [joints[name].find("limit").get("effort")]
    )
    text = (
        '<mujoco model="arm"><compiler angle="radian" eulerseq="XYZ"/><option gravity="0 0 -9.81"/>'
        f"<worldbody>{body(first, robot, motors, colors)}</worldbody><actuator>{driving}</actuator></mujoco>"
    )
    return load(text, contact_model="point")


# What MJCF says in other words, or not at all: frames, limits of velocity, and the rotor, which is in the armature.
NOT_IN_MJCF = (".frame_", ".velocity_lower", ".velocity_upper", ".gear_ratio", ".rotor_inertia", ".joint_armature")


def test_mjcf_of_the_same_arm(two, mjcf):
    """Every leaf that the formats share, the inertia of rotors, and where all bodies are at a random state."""
    urdf = two[0]
    assert [e.scoped_name for e in mjcf.layout.bodies] == [e.scoped_name for e in urdf.layout.bodies]
    assert [j.name for j in moving(mjcf)] == [j.name for j in moving(urdf)]
    assert [(mjcf.layout.joints[a.joint].name, a.name) for a in mjcf.layout.actuators] == [
        (urdf.layout.joints[a.joint].name, a.name) for a in urdf.layout.actuators
    ]
    leaves = [dict(jax.tree_util.tree_leaves_with_path(eqx.filter(model, eqx.is_array))) for model in (urdf, mjcf)]
    assert leaves[0].keys() == leaves[1].keys()
    for key, value in leaves[0].items():
        name = jax.tree_util.keystr(key)
        if not any(part in name for part in NOT_IN_MJCF):
            np.testing.assert_allclose(leaves[1][key], value, rtol=1e-12, atol=1e-15, err_msg=name)
    q, v = np.random.default_rng(0).normal(size=(2, 7))
    ours, theirs = dynamics(urdf, q, v), dynamics(mjcf, q, v)
    assert ours.poses.keys() == theirs.poses.keys()
    for name, pose in ours.poses.items():
        np.testing.assert_allclose(theirs.poses[name], pose, rtol=1e-12, atol=1e-14, err_msg=name)
    np.testing.assert_allclose(theirs.M, ours.M, rtol=1e-12, atol=1e-14)  # with the rotors


def moving(model) -> list:
    return [joint for joint in model.layout.joints if joint.num_velocities]


@pytest.fixture(scope="module")
def two():
    """The bundled arm from its URDF, and from SDFormat written from the same XML."""
    robot = ElementTree.parse(path("arm")).getroot()
    joints = robot.findall("joint")
    holds = {element.find("child").get("link"): element for element in joints}
    colors = {m.get("name"): m.find("color").get("rgba") for m in robot.findall("material")}
    content = "".join(link(e, holds[e.get("name")], colors) for e in robot.findall("link") if e.get("name") != "world")
    motors = {e.find("joint").get("name"): e.find("actuator") for e in robot.findall("transmission")}
    content += "".join(joint(element, motors.get(element.get("name"))) for element in joints)
    text = f'<sdf version="1.9"><model name="arm">{content}</model></sdf>'
    return load(path("arm"), contact_model="point"), load(text, contact_model="point")


def test_names_are_the_same(two):
    urdf, sdf = two
    for what in ("bodies", "joints"):
        assert [e.scoped_name for e in getattr(urdf.layout, what)] == [e.scoped_name for e in getattr(sdf.layout, what)]
    assert [a.joint for a in urdf.layout.actuators] == [a.joint for a in sdf.layout.actuators]
    assert set(frames_of(urdf)) == set(frames_of(sdf)) - {"arm::__model__"}
    assert urdf.layout.visual == sdf.layout.visual
    assert urdf.layout.collision == sdf.layout.collision


def test_leaves_are_the_same(two):
    """All numbers; those of frames by name, since SDFormat has one more."""
    leaves = [dict(jax.tree_util.tree_leaves_with_path(eqx.filter(model, eqx.is_array))) for model in two]
    assert leaves[0].keys() == leaves[1].keys()
    for key, value in leaves[0].items():
        name, other = jax.tree_util.keystr(key), np.asarray(leaves[1][key])
        if ".frame_" in name:
            rows = [frames_of(two[1])[frame] for frame in frames_of(two[0])]
            value, other = np.asarray(value)[list(frames_of(two[0]).values())], other[rows]
        np.testing.assert_allclose(value, other, rtol=1e-12, atol=1e-15, err_msg=name)


def frames_of(model) -> dict[str, int]:
    """The rows of frames that are not at a body's origin, by name."""
    return {model.layout.frames[frame].scoped_name: row for row, frame in enumerate(model.layout.offset_frames)}
