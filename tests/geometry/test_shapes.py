"""Shapes are plain hashable values; what no shape can be is refused by name."""

import math

import pytest

from mbjax.geometry import Box, Capsule, Convex, Cylinder, Ellipsoid, Geometry, HalfSpace, Mesh, Shape, Sphere

QUARTER_TURN = ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))


def test_numbers_become_floats_and_tuples():
    assert Sphere(2) == Sphere(2.0)
    assert Box([1, 2, 3]).size == (1.0, 2.0, 3.0)
    assert all(type(length) is float for length in Box([1, 2, 3]).size)
    assert Cylinder(1, 2).length == 2.0
    assert Capsule(1, 2).radius == 1.0
    assert (Ellipsoid(1, 2, 3).a, Ellipsoid(1, 2, 3).c) == (1.0, 3.0)
    assert Mesh("m.stl").scale == (1.0, 1.0, 1.0)
    assert Mesh("m.stl", scale=[-1, 2, 3]).scale == (-1.0, 2.0, 3.0)


@pytest.mark.parametrize(
    "shape", [Sphere(1), Box((1, 2, 3)), Cylinder(1, 2), Capsule(1, 2), Ellipsoid(1, 2, 3), HalfSpace(), Mesh("m.stl")]
)
def test_geometries_of_all_shapes_are_values(shape):
    assert isinstance(shape, Shape)
    one, other = (Geometry("g", shape, [list(row) for row in QUARTER_TURN], [1, 2, 3], [0, 0.5, 1, 1]) for _ in "ab")
    assert one == other
    assert hash(one) == hash(other)
    assert one.rotation == QUARTER_TURN
    assert one.translation == (1.0, 2.0, 3.0)
    assert one.rgba == (0.0, 0.5, 1.0, 1.0)


@pytest.mark.parametrize("length", [0.0, -1.0, math.inf, math.nan])
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda x: Sphere(x), "Sphere: radius"),
        (lambda x: Box((1, x, 1)), "Box: size"),
        (lambda x: Cylinder(x, 1), "Cylinder: radius"),
        (lambda x: Cylinder(1, x), "Cylinder: length"),
        (lambda x: Capsule(x, 1), "Capsule: radius"),
        (lambda x: Capsule(1, x), "Capsule: length"),
        (lambda x: Ellipsoid(1, 1, x), "Ellipsoid: c"),
    ],
)
def test_lengths_must_be_positive_and_finite(make, name, length):
    with pytest.raises(ValueError, match=name):
        make(length)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"translation": (1, 2)}, r"Geometry\('g'\): translation"),
        ({"translation": (1, 2, math.nan)}, "3 finite numbers"),
        ({"translation": 1.0}, "translation is 1.0; give 3 finite numbers"),
        ({"rotation": (1.0, 2.0, 3.0)}, "rotation row is 1.0; give 3 finite numbers"),
        ({"rotation": 1.0}, "rotation is 1.0; give a 3x3 matrix"),
        ({"rotation": QUARTER_TURN[:2]}, "2 rows"),
        ({"rotation": ((1, 0, 0), (0, 1, 0), (0, 0, 2))}, "not a rotation matrix"),
        ({"rotation": ((1, 0, 0), (0, 1, 0), (0, 0, -1))}, "determinant"),
        ({"rgba": (1, 1, 1)}, "4 finite numbers"),
        ({"rgba": (1, 1, 1, 1.5)}, "from 0 to 1"),
    ],
)
def test_pose_and_color_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        Geometry("g", Sphere(1), **options)


def test_what_is_no_shape_or_no_mesh_is_refused():
    with pytest.raises(TypeError, match=r"Geometry\('g'\): shape is 'ball'"):
        Geometry("g", "ball")
    for name in ("", 5, None):
        with pytest.raises(ValueError, match=f"Geometry: the name must be a non-empty string, got {name!r}"):
            Geometry(name, Sphere(1))
    with pytest.raises(ValueError, match="Convex: vertices is 5; give at least four points"):
        Convex(5)
    with pytest.raises(ValueError, match="filename is empty"):
        Mesh("")
    with pytest.raises(ValueError, match=r"Mesh\('m.stl'\): scale is .* flattens"):
        Mesh("m.stl", scale=(1, 0, 1))
    with pytest.raises(ValueError, match=r"Mesh\('m.stl'\): scale"):
        Mesh("m.stl", scale=(1, 1))
