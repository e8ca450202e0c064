"""xacro files are expanded as the package xacro does it, with places of their own files, and without leaving them."""

import importlib.util
import subprocess
import sys
import sysconfig
import warnings
from pathlib import Path

import numpy as np
import pytest

import mbjax
from mbjax.command_line import main
from mbjax.formats.xacro import expansion

ROBOTS = Path(sysconfig.get_path("purelib")) / "cmeel.prefix/share/example-robot-data/robots"
MASS = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
LEG = f"""<robot xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:macro name="leg" params="prefix mass:=1 *origin">
  <link name="${{prefix}}_leg"><inertial><mass value="${{mass}}"/>{MASS}</inertial></link>
  <joint name="${{prefix}}_hip" type="revolute">
    <parent link="base"/><child link="${{prefix}}_leg"/><xacro:insert_block name="origin"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="${{pi/2}}" effort="$(arg effort)" velocity="1"/>
  </joint>
</xacro:macro>
</robot>"""
ROBOT = f"""<?xml version="1.0"?>
<robot name="bot" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="effort" default="5"/>
  <xacro:property name="numbers" value="${{xacro.load_yaml('$(find bot)/numbers.yaml')}}"/>
  <xacro:include filename="$(find bot)/urdf/leg.xacro"/>
  <link name="base"><inertial><mass value="${{numbers['mass']}}"/>{MASS}</inertial></link>
  <xacro:leg prefix="l" mass="${{numbers.mass * 2}}"><origin xyz="${{numbers.hip.x}} 0 0"/></xacro:leg>
  <xacro:leg prefix="r"><origin xyz="0 0.1 0" rpy="0 0 ${{radians(90)}}"/></xacro:leg>
BODY
</robot>"""
LINE_OF_BODY = 9


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "urdf").mkdir()
    (tmp_path / "package.xml").write_text("<package><name>bot</name></package>")
    (tmp_path / "numbers.yaml").write_text("mass: 3.5\nhip: {x: 0.2}\n")
    (tmp_path / "urdf" / "leg.xacro").write_text(LEG)
    write(tmp_path, "")
    return tmp_path


def write(package: Path, body: str) -> Path:
    file = package / "urdf" / "bot.urdf.xacro"
    file.write_text(ROBOT.replace("BODY", body))
    return file


def test_equals_what_xacro_writes(package):
    file = write(package, "")
    flags = {"actuators": "joints", "base": "fixed"}
    model = mbjax.load(file, xacro_arguments={"effort": 7.5}, **flags)
    text = file.read_text().replace("$(find bot)", str(package))  # which needs ROS there
    (package / "alone.xacro").write_text(text)
    expanded = package / "alone.urdf"
    command = [sys.executable, "-c", "import xacro; xacro.main()", str(package / "alone.xacro"), "effort:=7.5"]
    expanded.write_text(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    theirs = mbjax.load(expanded, **flags)
    assert model.joint_names == theirs.joint_names
    for ours, other in zip(*(vars(m.parameters).values() for m in (model, theirs)), strict=True):
        np.testing.assert_array_equal(ours, other)
    np.testing.assert_array_equal(model.parameters.effort_limit, [7.5, 7.5])


def test_a_package_of_others(tmp_path):
    """The macro of Hector's quadrotor, found by the name of its package."""
    file = tmp_path / "quadrotor.xacro"
    file.write_text(
        '<robot name="quadrotor" xmlns:xacro="http://www.ros.org/wiki/xacro">'
        '<xacro:include filename="$(find hector)/robots/quadrotor_base.urdf.xacro"/>'
        "<xacro:quadrotor_base_macro/></robot>"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbjax.ModelWarning)
        model = mbjax.load(file, package_map={"hector": ROBOTS / "hector_description"})
    np.testing.assert_allclose(mbjax.total_mass(model), 1.477)


def test_text_and_other_names_are_expanded_on_request_only(package):
    inertial = f'<inertial><mass value="${{1+1}}"/>{MASS}</inertial>'
    text = f'<robot name="r"><link name="$(arg a)b">{inertial}</link></robot>'
    assert mbjax.load(text, xacro_arguments={"a": "a"}).body_names == ("world", "ab")
    with pytest.raises(mbjax.ParseError, match=r"xacro_arguments=\{\}"):
        mbjax.load(text)
    macro = '<robot name="r" xmlns:xacro="x"><xacro:property name="a" value="1"/></robot>'
    with pytest.raises(mbjax.ParseError, match=r"is a xacro instruction: load it with xacro_arguments=\{\}"):
        mbjax.load(macro)
    (package / "urdf" / "plain.urdf").write_text((package / "urdf" / "bot.urdf.xacro").read_text())
    with pytest.raises(mbjax.ParseError, match="xacro instruction"):
        mbjax.load(package / "urdf" / "plain.urdf")
    with pytest.raises(mbjax.ParseError, match="lies outside of"):
        mbjax.load('<robot name="r" xmlns:xacro="x"><xacro:include filename="a.xacro"/></robot>', xacro_arguments={})


def test_in_directives(package):
    (package / "scene.dmd.yaml").write_text(
        "directives:\n- add_model: {file: urdf/bot.urdf.xacro, name: a}\n"
        "- add_weld: {parent: world, child: 'a::base'}\n"
    )
    model = mbjax.load(package / "scene.dmd.yaml", xacro_arguments={"effort": 3}, actuators="joints")
    np.testing.assert_array_equal(model.parameters.effort_limit, [3.0, 3.0])


def test_command_line(package, capsys):
    file = str(package / "urdf" / "bot.urdf.xacro")
    assert main(["inspect", file, "--xacro-arg", "effort:=4"]) == 0
    assert main(["check", file, "--xacro-arg", "efort:=4"]) == 1
    assert "Did you mean 'effort'?" in capsys.readouterr().out
    assert main(["inspect", file, "--xacro-arg", "effort=4"]) == 2


# what stands at LINE_OF_BODY: a part of the message
REFUSED = {
    '<link name="${foo}"/>': "name 'foo' is not defined when evaluating expression 'foo'",
    "<xacro:nothing/>": "unknown macro name: xacro:nothing",
    '<xacro:if value="${1/0}"><a/></xacro:if>': "division by zero",
    '<xacro:leg prefix="x" bad="1"/>': "Invalid parameter \"bad\" (in macro 'leg')",
    '<link name="$(arg nope)"/>': "Undefined substitution argument nope",
    '<xacro:include filename="none.xacro"/>': "none.xacro' was not found",
    '<xacro:include filename="$(find nope)/a.xacro"/>': "package 'nope' was not found; give package_map={'nope':",
    '<xacro:include filename="/etc/passwd"/>': "'/etc/passwd' lies outside",
    '<xacro:include filename="../../../../../../../../../../etc/passwd"/>': "'/etc/passwd' lies outside",
    """<link name="${xacro.load_yaml('/etc/passwd')}"/>""": "'/etc/passwd' lies outside",
    """<link name="${xacro.load_yaml('$(find ../../../../../etc)/passwd')}"/>""": "' was not found; give package_map",
    """<link name="${xacro.load_yaml('$(find private)/key')}"/>""": "private/key' lies outside",
    '<link name="${(lambda: ().__class__.__base__.__subclasses__())()}"/>': "is not allowed in an expression",
    "<link name=\"${python.vars(python.type)['mro']}\"/>": "'vars' is not allowed",
    '<link name="${(x for x in [1]).gi_frame.f_back}"/>': "is not allowed in an expression",
    '<xacro:macro name="m"><xacro:m/></xacro:macro><xacro:m/>': "nested too deeply",
    '<xacro:include filename="leg2.xacro"/>': "nested too deeply",
    '<link name="${[0] * 10**10}"/>': "too much memory",
    '<link name="l_leg"/>': "two links are named 'l_leg' (lines 3 and 9)",
    "<link>": "mismatched tag",
}


@pytest.mark.parametrize("body", REFUSED)
def test_refused_with_file_and_line(package, body):
    (package.parent / "private").mkdir(exist_ok=True)  # beside the package, but none
    (package.parent / "private" / "key").write_text("secret")
    (package / "urdf" / "leg2.xacro").write_text(
        '<robot xmlns:xacro="x"><xacro:include filename="leg2.xacro"/></robot>'
    )
    file = write(package, body)
    with pytest.raises(mbjax.ParseError) as caught:
        mbjax.load(file)
    assert REFUSED[body] in str(caught.value)
    inside = package / "urdf" / "leg2.xacro", 1
    expected = inside if "leg2" in body else (file, LINE_OF_BODY + (body == "<link>"))
    assert (caught.value.file, caught.value.line) == (str(expected[0]), expected[1])


def test_errors_in_a_macro_name_its_own_file(package):
    (package / "urdf" / "leg.xacro").write_text(LEG.replace("${mass}", "heavy"))
    with pytest.raises(mbjax.ParseError, match=r"'heavy' is not a number") as caught:
        mbjax.load(package / "urdf" / "bot.urdf.xacro")
    assert (caught.value.file, caught.value.line) == (str(package / "urdf" / "leg.xacro"), 3)


def test_an_expression_without_end_is_stopped(package, monkeypatch):
    monkeypatch.setattr(expansion, "SECONDS", 1.5)
    with pytest.raises(mbjax.ParseError, match=r"not expanded after 1\.5 s"):
        mbjax.load(write(package, '<link name="${10**10**9}"/>'))


def test_nothing_is_written_or_run(package, monkeypatch):
    """Whatever a hole in the checks of expressions let through meets the audit hook."""
    check = "xacro.safe_eval = checked_eval"
    worker = expansion.WORKER.read_text()
    assert check in worker
    hole = "xacro.safe_eval = lambda text, *_: eval(text, {'os': os, 'open': open})"
    (package / "worker.py").write_text(worker.replace(check, hole))
    monkeypatch.setattr(expansion, "WORKER", package / "worker.py")
    for expression in (
        f"open('{package}/made', 'w')",
        f"os.remove('{package}/package.xml')",
        "os.system('true')",
        "__import__('antigravity')",
        "os.fork()",
    ):
        with pytest.raises(mbjax.ParseError, match="is not allowed"):
            mbjax.load(f'<robot name="r"><link name="${{{expression}}}"/></robot>', xacro_arguments={})
    assert not (package / "made").exists()
    assert (package / "package.xml").exists()


def test_arguments_are_checked(package):
    file = package / "urdf" / "bot.urdf.xacro"
    with pytest.raises(mbjax.ModelError, match=r"no xacro argument 'efort'.*it has effort\. Did you mean 'effort'"):
        mbjax.load(file, xacro_arguments={"efort": 1})
    with pytest.raises(mbjax.ModelError, match=r"xacro_arguments\['effort'\] = \[1\]"):
        mbjax.load(file, xacro_arguments={"effort": [1]})  # pyright: ignore[reportArgumentType]


def test_what_xacro_warns_of_is_reported(package):
    with pytest.warns(mbjax.ModelWarning, match="xacro warns: redefining global symbol: pi"):
        model = mbjax.load(write(package, '<xacro:property name="pi" value="3"/>'))
    assert any(e.element == "xacro" and e.status == "kept" for e in model.report())


def test_a_missing_package_names_the_extra(package, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "xacro" else found(name))
    with pytest.raises(mbjax.ParseError, match=r'pip install "mbjax\[xacro\]"'):
        mbjax.load(package / "urdf" / "bot.urdf.xacro")
