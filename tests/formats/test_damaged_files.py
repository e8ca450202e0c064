"""Files of every format, damaged at random: they load, or are refused in words; nothing outside is read."""

import os
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import mbjax
from tests.formats.test_directives import ARM, BOX, SCENE, SUB
from tests.formats.test_mjcf_against_mujoco import EVERYTHING
from tests.formats.test_urdf_numbers import ALL_KINDS

SDF = """<sdf version="1.9"><model name="m"><link name="a"><inertial><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy>
<izz>1</izz></inertia></inertial>
<collision name="c"><geometry><box><size>1 1 1</size></box></geometry></collision></link>
<link name="b"><pose relative_to="j">0.1 0 0 0 0 0</pose></link><frame name="f" attached_to="b"><pose>1 0 0 0 0 0</pose>
</frame><joint name="j" type="revolute"><pose relative_to="a">0 0 1 0 0 0</pose><parent>a</parent><child>b</child><axis>
<xyz>0 1 0</xyz><limit><lower>-1</lower><upper>1</upper><effort>5</effort></limit><dynamics><damping>0.1</damping>
</dynamics><mimic joint="k"><multiplier>2</multiplier><offset>0</offset><reference>0</reference></mimic></axis></joint>
<link name="d"/><joint name="k" type="prismatic"><parent>b</parent><child>d</child><axis><xyz>1 0 0</xyz></axis></joint>
<drake:ball_constraint><drake:ball_constraint_body_A>a</drake:ball_constraint_body_A><drake:ball_constraint_body_B>b
</drake:ball_constraint_body_B><drake:ball_constraint_p_AP>0 0 1</drake:ball_constraint_p_AP>
<drake:ball_constraint_p_BQ>0 0 0</drake:ball_constraint_p_BQ></drake:ball_constraint>
<include><uri>box.sdf</uri><name>box2</name><pose>1 0 0 0 0 0
</pose></include></model></sdf>""".replace("<sdf ", '<sdf xmlns:drake="x" ')
MJCF = EVERYTHING.replace("<worldbody>", '<include file="part.xml"/><worldbody>', 1)
PART = '<mujocoinclude><asset><material name="paint" rgba="1 0 0 1"/></asset></mujocoinclude>'
XACRO = """<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arg name="n" default="2"/>
<xacro:macro name="rod" params="name mass:=1"><link name="${name}"><inertial><mass value="${mass*2}"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></xacro:macro>
<xacro:include filename="macros.xacro"/><xacro:rod name="a" mass="${sin(pi/3)}"/><xacro:if value="$(arg n)">
<xacro:rod name="b"/><joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint></xacro:if></robot>"""
FILES = {
    "urdf": ("robot.urdf", ALL_KINDS),
    "sdf": ("robot.sdf", SDF),
    "mjcf": ("robot.xml", MJCF),
    "directives": ("scene.dmd.yaml", SCENE),
    "xacro": ("robot.xacro", XACRO),
}
ASIDE = {
    "arm.urdf": ARM, "box.sdf": BOX, "sub.dmd.yaml": SUB, "part.xml": PART,
    "macros.xacro": '<robot xmlns:xacro="x"><xacro:property name="a1" value="3"/></robot>',
}  # fmt: skip
WORDS = (
    "", " ", "nan", "-inf", "1e999", "-1e308", "1e-320", "0", "-1", "99999999999", "0x1", "1 2 3 4 5 6 7 8 9",
    "١", "\x00", "\ufffe", "&amp;", "&xxe;", "]]>", "<!--", "<a/>", "../../../../etc/passwd", "/etc/passwd",
    "file:///etc/passwd", "package://../etc/passwd", "model://..", "world", "__model__", "a::b::c", "true",
    "a" * 5000, "*x", "&x [*x, *x]", "{}", "!!python/object/apply:os.system [ls]", "- - - -", "${1/0}",
    "$(find x)", "${[0]*10**9}", "$(arg", "%s%n", "-0",
)  # fmt: skip
HOSTILE = (
    '<!DOCTYPE a [<!ENTITY xxe SYSTEM "file:///etc/passwd">]>',
    '<!DOCTYPE l [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>',
    "<?xml-stylesheet href='/etc/passwd'?>",
)
ENTITIES = {"urdf", "sdf", "mjcf", "xacro"}
# Seeds whose file was once read wrongly, by format, each tried again for good: none so far since the list is kept.
SEEDS: dict[str, tuple[int, ...]] = {}
SECONDS = 20.0
WHOLE_TEST = 240  # s, of all damaged files of a format, after which it hangs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in ASIDE.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "package.xml").write_text("<package><name>scene</name></package>")
    return tmp_path


def damaged(text: str, random: np.random.Generator) -> str:
    """One to three changes: a word replaced, a part cut, doubled or moved, characters flipped, a hostile head."""
    for _ in range(int(random.integers(1, 4))):
        kind = random.integers(8)
        i, j = np.sort(random.integers(0, len(text) + 1, 2))
        if kind in (0, 1, 2):  # what stands between quotes, brackets or spaces
            marks = [k for k, c in enumerate(text) if c in "\"'<>= \n:{}[],"]
            if len(marks) > 2:
                k = int(random.integers(len(marks) - 1))
                text = text[: marks[k] + 1] + str(random.choice(WORDS)) + text[marks[k + 1] :]
        elif kind == 3:
            j = min(j, i + int(random.integers(1, 200)))
            text = text[:i] + text[j:]
        elif kind == 4:
            j = min(j, i + int(random.integers(1, 400)))
            text = text[:j] + text[i:j] * int(random.integers(1, 4)) + text[j:]
        elif kind == 5:
            j = min(j, i + int(random.integers(1, 300)))
            part, rest = text[i:j], text[:i] + text[j:]
            k = int(random.integers(0, len(rest) + 1))
            text = rest[:k] + part + rest[k:]
        elif kind == 6 and text:
            k = int(random.integers(len(text)))
            text = text[:k] + chr(int(random.integers(1, 0x250))) + text[k + 1 :]
        elif kind == 7 and random.random() < 0.2:
            text = str(random.choice(HOSTILE)) + text
    return text


class Watch:
    """The files that Python opens meanwhile, in whatever way; what MuJoCo's own C code opens is not seen."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.is_on = False
        sys.addaudithook(self._see)  # for good: a hook cannot be taken out again

    def _see(self, event: str, arguments: tuple) -> None:
        if self.is_on and event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
            self.opened.append(os.fsdecode(arguments[0]))

    def outside(self) -> list[str]:
        return [path for path in self.opened if "passwd" in path or os.path.abspath(path).startswith("/etc")]


WATCH = Watch()


@pytest.fixture
def watch() -> Iterator[Watch]:
    WATCH.opened, WATCH.is_on = [], True
    yield WATCH
    WATCH.is_on = False


@pytest.fixture
def time_limit(request: pytest.FixtureRequest) -> Iterator[None]:
    """Ends a test that hangs, with the stack of where it did; readers run in this thread."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"{request.node.name} took more than {WHOLE_TEST} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(WHOLE_TEST)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def attempt(name: str, seed: int, folder: Path) -> str:
    """Loads one damaged file: "loads", or how it is refused. Whatever else is raised is the test's failure."""
    random = np.random.default_rng([seed, list(FILES).index(name)])
    file_name, text = FILES[name]
    file = folder / file_name
    file.write_bytes(damaged(text, random).encode("utf-8", "surrogatepass"))
    options = {
        "on_unsupported": str(random.choice(["warn", "error"])),
        "mimic": str(random.choice(["couple", "eliminate"])),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbjax.ModelWarning)
        try:
            mbjax.load(file, package_map={"scene": folder}, **options)
        except mbjax.ModelError as error:
            return type(error).__name__ if 0 < len(str(error).strip()) < 20_000 else "without words"
    return "loads"


@pytest.mark.usefixtures("time_limit")
@pytest.mark.parametrize("name", FILES)
def test_damaged_files_load_or_are_refused(name, folder, monkeypatch, watch):
    monkeypatch.chdir(folder)
    count = 8 if name == "xacro" else 40
    seen = set()
    for seed in (*SEEDS.get(name, ()), *range(count)):
        start = time.monotonic()
        seen.add(attempt(name, seed, folder))
        assert time.monotonic() - start < SECONDS, seed
        assert watch.outside() == [], seed
    assert "ParseError" in seen
    assert "without words" not in seen
    assert {path.name for path in folder.iterdir()} == {*ASIDE, "package.xml", FILES[name][0]}  # nothing is written


@pytest.mark.parametrize(
    "read",
    [
        lambda path: open(path).close(),
        lambda path: Path(path).read_bytes(),
        lambda path: os.close(os.open(path, os.O_RDONLY)),
        lambda path: np.fromfile(path, np.uint8),
    ],
    ids=["open", "pathlib", "os", "numpy"],
)
def test_the_watch_sees_a_read_outside(read, watch, folder):
    """Without this, a watch that sees nothing would pass every damaged file."""
    read(str(folder / "arm.urdf"))
    assert watch.outside() == []
    read("/etc/hosts")
    assert watch.outside() == ["/etc/hosts"]


def test_a_reader_that_hangs_is_stopped(time_limit):
    signal.alarm(1)
    with pytest.raises(TimeoutError, match="took more than"):
        time.sleep(60.0)
