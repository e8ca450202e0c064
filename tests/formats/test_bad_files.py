"""Files, paths and options that cannot work: a clear error each, none from below."""

import gzip

import pytest

from mbjax.errors import ModelError, ParseError
from mbjax.formats import Parser, load
from mbjax.plant import MultibodyPlant

ROBOT = '<robot name="r"><link name="a"/></robot>'

FILES: dict[str, tuple[bytes, list[str]]] = {
    "empty": (b"", ["empty"]),
    "blank": (b"\n  \n", ["empty"]),
    "binary": (b"solid\0\1\2\3" * 100, ["binary", "NUL"]),
    "executable": (b"\x7fELF\x02\x01\x01" + bytes(50), ["binary"]),
    "gzip": (gzip.compress(b'<robot name="r"/>'), ["gzip", "unpack"]),
    "zip": (b"PK\x03\x04" + bytes(20), ["zip", "unpack"]),
    "yaml": (b"scene:\n- add_model:\n", ["not XML", "scene"]),
    "latin-1 bytes": (
        '<robot name="r">\n<link name="é"/></robot>'.encode("latin-1"),
        [":2:", "0xe9", "UTF-8"],
    ),
    "unknown encoding": (
        b'<?xml version="1.0" encoding="klingon"?><robot name="r"/>',
        ["'klingon'", "UTF-8"],
    ),
    "bytes codec": (b'<?xml version="1.0" encoding="zlib"?><robot name="r"/>', ["'zlib'"]),
    "false UTF-16": (b'<?xml version="1.0" encoding="utf-16"?>\n<robot name="\xff"/>', ["0xff"]),
    "truncated": (b'<robot name="r">\n<li', [":2:", "truncated"]),
    "random": (bytes(range(1, 256)) * 10, []),
}


@pytest.mark.parametrize("name", FILES)
def test_bad_files(name, tmp_path):
    content, fragments = FILES[name]
    path = tmp_path / "robot.urdf"
    path.write_bytes(content)
    with pytest.raises(ParseError) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_missing_file_names_near_ones(tmp_path):
    (tmp_path / "panda.urdf").write_text(ROBOT)
    with pytest.raises(ParseError, match=r"no such file.*Did you mean.*panda\.urdf"):
        load(tmp_path / "pandda.urdf")
    with pytest.raises(ParseError, match=r"folder .* does not exist"):
        load(tmp_path / "nowhere" / "panda.urdf")
    with pytest.raises(ParseError, match="must start with '<'"):
        load("robot name='r'")


def test_a_link_to_nothing_is_said_to_be_one(tmp_path):
    (tmp_path / "panda.urdf").symlink_to("nowhere.urdf")
    with pytest.raises(ParseError, match=r"panda\.urdf: this is a link to 'nowhere\.urdf', where there is no file\.$"):
        load(tmp_path / "panda.urdf")


def test_directory_lists_its_robots(tmp_path):
    (tmp_path / "panda.urdf").write_text(ROBOT)
    with pytest.raises(ParseError, match=r"directory.*panda\.urdf"):
        load(str(tmp_path))


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, ""])
def test_impossible_paths(path):
    with pytest.raises(ParseError):
        load(path)


@pytest.mark.parametrize("value", [None, 3, b"<robot/>", ["a"]])
def test_neither_path_nor_text(value):
    with pytest.raises(ModelError, match="expected the path"):
        load(value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"base": "free"}, "base='free': choose one of 'file', 'fixed', 'floating'"),
        ({"on_unsupported": "ignore"}, "on_unsupported='ignore'.*'warn'"),
        ({"inertia": "fix"}, "inertia='fix'.*'error'"),
        ({"package_map": ["a"]}, "package_map: expected a dict"),
        ({"package_map": {"a": "/no/such/folder"}}, "package_map\\['a'\\].*no such folder"),
        ({"package_map": {"a": 3}}, "package_map\\['a'\\]"),
        ({"time_step": -1.0}, "time_step"),
        ({"dtype": "int8"}, "load: dtype must be a float type, like jnp.float32, got int8"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ModelError, match=message):
        load(ROBOT, **options)


def test_finalized_plant_and_wrong_plant():
    plant = MultibodyPlant()
    plant.finalize()
    with pytest.raises(ModelError, match="finalized"):
        Parser(plant).add_models(ROBOT)
    with pytest.raises(ModelError, match="expected a MultibodyPlant"):
        Parser("plant")
