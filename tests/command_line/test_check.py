"""`mbjax check`: severity, file, line and message of what is wrong; the exit code says whether files pass."""

import json

import pytest

from mbjax.command_line import main

GOOD = '<link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>'
BALL = '<collision><origin xyz="{} 0 0"/><geometry><sphere radius="0.1"/></geometry></collision></link>'


@pytest.fixture
def write(tmp_path):
    def file(text: str, name: str = "robot.urdf") -> str:
        (tmp_path / name).write_text(f'<robot name="r">\n{text}\n</robot>')
        return str(tmp_path / name)

    return file


def test_a_good_file_passes(write, capsys):
    assert main(["check", write(GOOD)]) == 0
    assert capsys.readouterr().out == "1 file: 0 errors, 0 warnings\n"


def test_an_error_has_its_line(write, capsys):
    file = write('<link name="a"/>\n<link name="a"/>')
    assert main(["check", file]) == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{file}:3: error: two links are named 'a'")
    assert last == "1 file: 1 error, 0 warnings"


def test_a_missing_file_is_one_error_of_several_files(write, capsys):
    assert main(["check", "quadrupe", write(GOOD), write('<link name="a"/>\n<link name="a"/>', "twice.urdf")]) == 1
    missing, twice, last = capsys.readouterr().out.splitlines()
    assert missing.startswith("quadrupe: error: there is no such file")
    assert "Did you mean 'quadruped'?" in missing
    assert "two links are named 'a'" in twice
    assert last == "3 files: 2 errors, 0 warnings"


def test_warnings_pass_unless_strict(write, capsys):
    mesh = '<visual><geometry>\n<mesh filename="no.obj"/></geometry></visual></link>'
    file = write(GOOD.replace('izz="1"', 'izz="10"').replace("</link>", mesh))
    assert main(["check", file]) == 0
    out = capsys.readouterr().out
    assert "2 warnings" in out
    assert f"{file}:2: warning: body 'a': non-physical inertia kept: " in out
    assert "mesh 'no.obj': ignored: file not found" in out
    assert "give --package package=folder if" in out
    assert main(["check", file, "--strict"]) == 1


def test_what_is_not_used_is_shown_if_asked(write, capsys):
    file = write(GOOD + "\n<gazebo/>")
    assert main(["check", file]) == 0
    assert "0 warnings, 1 on what is not used (--all)" in capsys.readouterr().out
    assert main(["check", file, "--all"]) == 0
    assert f"{file}:3: info: <gazebo>: ignored: settings of the Gazebo simulator" in capsys.readouterr().out


def test_json_of_several_files(write, tmp_path, capsys):
    (tmp_path / "bad.sdf").write_text('<sdf version="1.9">\n<model name="m"><link name="a"/>\n<joint/></model></sdf>')
    unsupported = write(GOOD + "\n<loop_joint/>", "loop.urdf")
    assert main(["check", write(GOOD), str(tmp_path / "bad.sdf"), unsupported, "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["files"], answer["errors"], answer["warnings"]) == (3, 2, 0)
    assert [(f["severity"], f["line"]) for f in answer["findings"]] == [("error", 3), ("error", 3)]
    assert answer["findings"][0]["file"].endswith("bad.sdf")


def test_a_start_outside_limits(write, capsys):
    ends = '<parent link="world"/><child link="a"/>'
    slide = f'<joint name="j" type="prismatic">{ends}<limit lower="1" upper="2"/></joint>'
    assert main(["check", write(GOOD + slide), "--strict"]) == 1
    assert "warning: position 'r_j_x': starts at 0, outside its limits 1 to 2" in capsys.readouterr().out


def test_shapes_that_overlap(write, capsys):
    links = GOOD.replace("</link>", BALL.format(0)) + GOOD.replace('"a"', '"b"').replace("</link>", BALL.format(0.15))
    assert main(["check", write(links), "--collisions", "--strict"]) == 1
    assert "it overlaps 'b::b_collision' by 50 mm" in capsys.readouterr().out


def test_limits_in_degrees_are_a_warning(write, capsys):
    joint = '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><limit lower="-90" upper="90" '
    file = write(GOOD + GOOD.replace('"a"', '"b"') + f'\n{joint} effort="1" velocity="1"/></joint>')
    assert main(["check", file]) == 0
    assert f"{file}:3: warning: joint 'j': kept: limits -90 to 90 rad are 14 turns" in capsys.readouterr().out
