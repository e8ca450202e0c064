"""What a robot file may read and make, whatever its format: no other files of the reader's machine, nothing huge."""

import pathlib

import pytest

import mbjax

SECRET = "root:x:0:0:root:/root:/bin/bash\n"
BODY = '<body name="b"><joint/><geom size=".1"/></body>'
MODEL = f'<mujoco model="inner"><worldbody>{BODY}</worldbody></mujoco>'
SDF = (
    '<sdf version="1.10"><model name="m"><link name="l"><inertial><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy>'
    "<izz>1</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial></link></model></sdf>"
)


def mjcf(before: str = "", world: str = BODY, after: str = "") -> str:
    return f"<mujoco>{before}<worldbody>{world}</worldbody>{after}</mujoco>"


def attached(file: str) -> str:
    """A model that holds the one of a file twice."""
    copies = "".join(f'<attach model="inner" prefix="{k}"/>' for k in "ab")
    return mjcf(f'<asset><model name="inner" file="{file}"/></asset>', f'<body name="base">{copies}</body>')


def included(uri: str) -> str:
    return f'<sdf version="1.10"><world name="w"><include><uri>{uri}</uri></include></world></sdf>'


def added(uri: str) -> str:
    return f"directives:\n- add_model:\n    name: arm\n    file: {uri}\n"


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A robot's folder, beside which lie a secret, and models that are no part of the robot."""
    robot = tmp_path / "robot"
    robot.mkdir()
    (tmp_path / "secret.txt").write_text(SECRET)
    (tmp_path / "model.xml").write_text(MODEL)
    (tmp_path / "model.sdf").write_text(SDF)
    (robot / "notes.txt").write_text(SECRET)
    return robot


def refusal(folder: pathlib.Path, name: str, text: str, **options) -> str:
    path = folder / name
    path.write_text(text)
    with pytest.raises(mbjax.ParseError) as caught:
        mbjax.load(path, **options)
    assert "root:x" not in str(caught.value), "the message quotes a file of the reader's machine"
    return str(caught.value)


FORMATS = {
    "robot.xml": lambda uri: mjcf(f'<include file="{uri}"/>'),
    "attach.xml": attached,
    "robot.sdf": included,
    "robot.dmd.yaml": added,
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "uri", ["/etc/passwd", "{folder}/../secret.txt", "../secret.txt", "../model.xml", "../model.sdf"]
)
def test_files_outside_of_the_folder_are_not_read(folder: pathlib.Path, name: str, uri: str) -> None:
    message = refusal(folder, name, FORMATS[name](uri.format(folder=folder)))
    assert "lies outside of" in message
    assert "package_map" in message


@pytest.mark.parametrize("name", FORMATS)
def test_what_lies_in_the_folder_but_is_no_robot_is_not_quoted(folder: pathlib.Path, name: str) -> None:
    assert "not XML" in refusal(folder, name, FORMATS[name]("notes.txt"))


@pytest.mark.parametrize("name", ["robot.sdf", "robot.dmd.yaml", "attach.xml"])
def test_a_link_out_of_the_folder_is_not_followed(folder: pathlib.Path, name: str) -> None:
    (folder / "inside").symlink_to(folder.parent / "secret.txt")
    assert "lies outside of" in refusal(folder, name, FORMATS[name]("inside"))


def test_files_of_packages_are_read(folder: pathlib.Path) -> None:
    """The package around the file, one with a manifest beside it, and a folder that the user names, with its links."""
    root = folder.parent
    (folder / "robot.sdf").write_text(included("../model.sdf"))
    with pytest.raises(mbjax.ParseError, match="lies outside of"):
        mbjax.load(folder / "robot.sdf")
    assert mbjax.load(folder / "robot.sdf", package_map={"any": root}).num_bodies == 2
    (root / "package.xml").write_text("<package><name>robots</name></package>")
    assert mbjax.load(folder / "robot.sdf").num_bodies == 2
    (folder / "attach.xml").write_text(attached("../model.xml"))
    assert mbjax.load(folder / "attach.xml").num_bodies == 4
    (root / "package.xml").unlink()
    beside = root / "beside"
    beside.mkdir()
    (beside / "model.sdf").write_text(SDF)
    (folder / "other.sdf").write_text(included("model://beside/model.sdf"))
    with pytest.raises(mbjax.ParseError, match="lies outside of"):
        mbjax.load(folder / "other.sdf")
    (beside / "model.config").write_text('<model><sdf version="1.10">../../../../../etc/passwd</sdf></model>')
    assert mbjax.load(folder / "other.sdf").num_bodies == 2
    assert "lies outside of" in refusal(folder, "whole.sdf", included("model://beside"))
    named = root / "named"
    named.mkdir()
    (named / "link.sdf").symlink_to(root / "model.sdf")
    (folder / "linked.sdf").write_text(included("package://named/link.sdf"))
    assert mbjax.load(folder / "linked.sdf", package_map={"named": named}).num_bodies == 2


def replicated(times: int, depth: int) -> str:
    inner = BODY
    for _ in range(depth):
        inner = f'<replicate count="{times}" offset="0 0 1">{inner}</replicate>'
    return inner


HUGE = {
    "copies of copies": mjcf(world=replicated(60, 3)),
    "flexible bodies": mjcf(world='<flexcomp name="f" type="grid" count="100 100 100" spacing=".1 .1 .1"/>'),
    "keyframes": mjcf('<size nkey="1000000"/>'),
    "written keyframes": mjcf(after=f"<keyframe>{'<key/>' * 4000}</keyframe>"),
    "user numbers": mjcf('<size nuser_geom="50000000"/>'),
    "a sensor's numbers": mjcf(after='<sensor><user dim="100000000"/></sensor>'),
    "a mesh": mjcf('<asset><mesh name="m" builtin="supersphere" params="2000 1 1"/></asset>'),
    "six faces": mjcf('<asset><texture name="t" builtin="flat" width="5000" height="1"/></asset>'),
    "cells": mjcf('<asset><hfield name="h" nrow="1000000" ncol="1000000" size="1 1 1 1"/></asset>'),
    "not a number": mjcf(world='<replicate count="nan"/>'),
}


@pytest.mark.parametrize("what", HUGE)
def test_a_few_bytes_make_nothing_huge(what: str) -> None:
    with pytest.raises(mbjax.ParseError, match=r"<XML text>:1: <.*(more than|at most) \d+"):
        mbjax.load(HUGE[what])


def test_a_few_files_make_nothing_huge(folder: pathlib.Path) -> None:
    """Models that hold models, each twice; one whose expansion is in what the file that it attaches includes."""
    (folder / "0.xml").write_text(MODEL)
    for k in range(20):
        (folder / f"{k + 1}.xml").write_text(attached(f"{k}.xml"))
    assert mbjax.load(folder / "2.xml").num_bodies > 4
    assert "by copies" in refusal(folder, "robot.xml", attached("20.xml"))
    (folder / "part.xml").write_text(f"<mujoco><worldbody>{replicated(60, 3)}</worldbody></mujoco>")
    (folder / "whole.xml").write_text(mjcf('<include file="part.xml"/>'))
    assert "by copies" in refusal(folder, "robot.xml", attached("whole.xml"))
    (folder / "open.xml").write_text(mjcf('<include file="/etc/passwd"/>'))
    assert "lies outside of" in refusal(folder, "robot.xml", attached("open.xml"))
    assert "names itself" in refusal(folder, "robot.xml", attached("robot.xml"))


REACHING = (
    "('{0._' + '_class__}').format(1)",
    "'{0.real}'.format(1)",
    "'{0[0]}'.format([1])",
    "'{:{0.real}}'.format(1)",
    "str.format('{0.real}', 1)",
    "''.format_map(dict(a=1))",
    "list(map('{0.real}'.format, [1]))",
)


def xacro(expression: str) -> str:
    """A robot whose link is named by an expression; xacro ends it at the first brace, so these are escaped."""
    expression = expression.replace("{", "\\x7b").replace("}", "\\x7d")
    return f'<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro"><link name="${{{expression}}}"/></robot>'


@pytest.mark.parametrize("expression", REACHING)
def test_formats_do_not_reach_into_objects(expression: str) -> None:
    pytest.importorskip("xacro")
    with pytest.raises(mbjax.ParseError, match=r"is allowed only of a text|is not allowed in an expression"):
        mbjax.load(xacro(expression), xacro_arguments={})


def test_plain_formats_are_evaluated() -> None:
    pytest.importorskip("xacro")
    assert "arm_03" in mbjax.load(xacro("'{}_{n:02d}'.format('arm', n=3)"), xacro_arguments={}, base="fixed").body_names
