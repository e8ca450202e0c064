"""The same robot in two formats is the same model: every name and every leaf."""

import xml.etree.ElementTree as ElementTree

import equinox as eqx
import jax
import numpy as np
import pytest

from mbjax.parsing import load
from mbjax.reference_models import path

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
