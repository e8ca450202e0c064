"""Documented values where normals are not unique, flat contacts, and continuity where the features change."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.geometry.signed_distance.pair_table import PAIRS, pair_function, supported_pairs
from mbjax.geometry.signed_distance.witnesses import swap
from mbjax.spatial import quaternion_to_matrix
from tests.geometry.drake_pairs import DrakePair
from tests.geometry.pairs import IDENTITY, SIZES, pose, random_rows, rows, turned, witnesses_of_rows


def at(kinds, positions, quaternions=IDENTITY):
    """NumPy witnesses, one row a pose."""
    positions = np.atleast_2d(positions)
    quaternions = np.broadcast_to(quaternions, (len(positions), 4))
    witnesses = witnesses_of_rows(*kinds)(rows(*kinds, quaternions, positions))
    return jax.tree.map(np.asarray, witnesses)


def test_coincident_centers_have_the_normal_x() -> None:
    """G21: fixed, flagged, and the distance still minus the sum of the radii; at 1e-12 the true normal."""
    w = at(("Sphere", "Sphere"), [[0, 0, 0], [0, 0, 1e-12], [0, -1e-6, 0]])
    np.testing.assert_allclose(w.distance[:, 0], [-0.6, -0.6, -0.6 + 1e-6], atol=1e-12)
    np.testing.assert_allclose(w.normal[:, :, 0], [[-1, 0, 0], [0, 0, -1], [0, 1, 0]], atol=1e-14)
    np.testing.assert_array_equal(w.degenerate, [True, False, False])


def test_centers_inside_a_box() -> None:
    """G22: by the nearest face, x before y before z and plus before minus; flagged where several are as near."""
    centers = [[0, 0, 0], [0.19, 0.1, 0], [0.05, 0.3, 0.0], [0.2, 0.35, 0.25], [0.2, 0.0, 0.0], [0.25, 0.0, 0.0]]
    w = at(("Box", "Sphere"), centers)
    np.testing.assert_allclose(w.distance[:, 0] + 0.3, [-0.2, -0.01, -0.05, 0.0, 0.0, 0.05], atol=1e-15)
    normals = [[1, 0, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0]]
    np.testing.assert_array_equal(w.normal[:, :, 0], -np.array(normals, float))
    np.testing.assert_array_equal(w.degenerate, [True, False, False, True, False, False])


def test_centers_on_axes() -> None:
    """G23: on the axis of a capsule the normal is x, on that of a cylinder too unless an end is nearer."""
    w = at(("Capsule", "Sphere"), [[0, 0, 0.1], [0, 0, 0.3], [0, 0, 0.31]])
    np.testing.assert_array_equal(w.normal[:, :, 0], [[-1, 0, 0], [-1, 0, 0], [0, 0, -1]])
    np.testing.assert_array_equal(w.degenerate, [True, True, False])
    w = at(("Cylinder", "Sphere"), [[0, 0, 0], [0, 0, 0.2], [0, 0, -0.7]])
    np.testing.assert_array_equal(w.normal[:, :, 0], [[0, 0, -1], [0, 0, -1], [0, 0, 1]])
    np.testing.assert_array_equal(w.degenerate, [True, False, False])


def test_center_of_an_ellipsoid() -> None:
    """The shortest semi-axis, on the positive side; beyond the focal plane the nearest point is unique."""
    w = at(("Ellipsoid", "Sphere"), [[0, 0, 0], [0.1, 0.2, 0], [0.29, 0, 0], [0, 0, 0.05]])
    np.testing.assert_array_equal(w.degenerate, [True, True, False, False])
    np.testing.assert_allclose(w.distance[:, 0][[0, 2, 3]] + 0.3, [-0.2, -0.01, -0.15], atol=1e-12)
    np.testing.assert_allclose(w.normal[0, :, 0], [0, 0, -1], atol=1e-12)
    assert w.normal[1, 2, 0] < -0.5


@pytest.mark.parametrize("offset", [0.0, 1e-12, 1e-9])
@pytest.mark.parametrize("quaternion", [IDENTITY, turned(np.pi, [1, 0, 0])], ids=["same", "opposite"])
def test_parallel_capsules_lie_on_one_another(quaternion, offset) -> None:
    """The ends of where they run side by side, at the same depth, and a point between that the angle may move."""
    quaternion = np.add(quaternion, [0.0, offset, 0.0, 0.0])
    w = at(("Capsule", "Capsule"), [[0.35, 0.0, 0.2]], quaternion)
    valid = w.valid[0]
    assert valid[1:].sum() + (np.abs(w.point[0, 2, 0] - [0.3, -0.1]) < 0.04).any() == 2 + (valid.sum() == 2)
    np.testing.assert_allclose(w.distance[0], -0.05, atol=1e-8)
    np.testing.assert_allclose(np.sort(w.point[0, 2, 1:]), [-0.1, 0.3], atol=1e-8)
    np.testing.assert_allclose(w.normal[0, 0], -1.0, atol=1e-8)


def test_short_and_crossing_capsules_have_one_point() -> None:
    """Also where the axes meet: the normal is across both."""
    w = at(("Capsule", "Capsule"), [[0, 0, 0.1], [0, 0.3, 0]], turned(np.pi / 3, [1, 0, 0]))
    assert w.valid.sum() == 2
    assert w.degenerate[0]
    np.testing.assert_allclose(np.abs(w.normal[0, :, 0]), [1, 0, 0], atol=1e-14)
    np.testing.assert_allclose(w.distance[0, 0], -0.4, atol=1e-14)
    short = jnp.array([0.2, 1e-9, 0.2, 0.0, *IDENTITY, 0.3, 0.0, 0.0])
    w = witnesses_of_rows("Capsule", "Capsule")(short[None])
    assert w.valid.sum() == 1
    np.testing.assert_allclose(w.distance[0, 0], -0.1, atol=1e-8)


def test_boxes_rest_on_four_equal_corners() -> None:
    """G25: a flat box has its four lower corners at one height, whichever face is below."""
    for quaternion, height, corner in (
        (IDENTITY, 0.25, [0.2, 0.35]),
        (turned(np.pi, [1, 0, 0]), 0.25, [0.2, 0.35]),
        (turned(np.pi / 2, [1, 0, 0]), 0.35, [0.2, 0.25]),
        (turned(np.pi / 2, [0, 1, 0]), 0.2, [0.25, 0.35]),
    ):
        w = at(("HalfSpace", "Box"), [[0, 0, height]], quaternion)
        np.testing.assert_allclose(w.distance, 0.0, atol=1e-15)
        corners = {tuple(np.round(p[:2], 12)) for p in w.point[0].T}
        assert corners == {(sx * corner[0], sy * corner[1]) for sx in (1, -1) for sy in (1, -1)}


def test_cylinders_stand_and_lie() -> None:
    """Upright: three points of the rim and the middle, at one height. Lying: the ends of the lowest line."""
    w = at(("HalfSpace", "Cylinder"), [[0, 0, 0.25]])
    low = np.isclose(w.distance[0], 0.0, atol=1e-15)
    assert low.sum() == 4
    feet = w.point[0, :2, low]
    np.testing.assert_allclose(np.sort(np.linalg.norm(feet, axis=1)), [0, 0.35, 0.35, 0.35], atol=1e-15)
    np.testing.assert_allclose(feet.sum(axis=0), 0.0, atol=1e-15)
    w = at(("HalfSpace", "Cylinder"), [[0, 0, 0.35]], turned(np.pi / 2, [1, 0, 0]))
    low = np.isclose(w.distance[0], 0.0, atol=1e-15)
    np.testing.assert_allclose(np.sort(w.point[0, 1, low]), [-0.25, 0.25], atol=1e-15)
    assert w.distance[0, ~low].min() > 0.3


@pytest.mark.whole_run("distances beside Drake's, and special poses")
@pytest.mark.parametrize(
    ("kinds", "position"),
    [
        (("HalfSpace", "Cylinder"), [0.0, 0.0, 0.2]),
        (("HalfSpace", "Box"), [0.0, 0.0, 0.2]),
        (("Box", "Capsule"), [0.1, 0.05, 0.4]),
        (("Capsule", "Capsule"), [0.35, 0.0, 0.1]),
    ],
    ids=lambda x: "-".join(x) if isinstance(x[0], str) else "",
)
def test_smallest_distance_is_continuous_while_turning(kinds, position) -> None:
    """Through upright, flat, lying and parallel: it changes by no more than a point of the body moves."""
    angles = np.concatenate([np.linspace(-0.2, 3.3, 400), np.linspace(-2e-3, 2e-3, 81), np.linspace(-1e-9, 1e-9, 21)])
    angles = np.sort(angles)
    w = at(kinds, np.tile(position, (len(angles), 1)), [turned(a, [0.6, 0.8, 0.0]) for a in angles])
    smallest = np.where(w.valid, w.distance, np.inf).min(axis=1)
    assert np.all(np.abs(np.diff(smallest)) <= 1.0 * np.diff(angles) + 1e-15)


def test_a_capsule_lies_on_a_box() -> None:
    """Three points at one height: both ends of the part over the face and the middle of it."""
    w = at(("Box", "Capsule"), [[0.0, 0.1, 0.44]], turned(np.pi / 2, [1, 0, 0]))
    assert w.valid.all()
    np.testing.assert_allclose(w.distance, -0.01, atol=1e-14)
    np.testing.assert_allclose(np.sort(w.point[0, 1]), [-0.2, 0.075, 0.35], atol=1e-14)
    np.testing.assert_allclose(w.normal[0, 2], -1.0, atol=1e-14)
    w = at(("Box", "Capsule"), [[0.0, 0.0, 0.74]])
    np.testing.assert_array_equal(w.valid, [[True, False, False]])


@pytest.mark.parametrize("tilt", [0.0, 1e-9])
def test_a_polyhedron_rests_on_a_wide_area(tilt) -> None:
    """The eight corners of a box rest on the four lower ones, whatever the heading; on a corner on that alone."""
    corners = 0.5 * np.array([[x, y, z] for x in (-0.4, 0.4) for y in (-0.7, 0.7) for z in (-0.5, 0.5)])
    vertices = jnp.asarray(np.random.default_rng(0).permutation(corners).T)
    headings = np.linspace(0.0, 3.0, 13)
    quaternions = jnp.asarray([np.add(turned(a, [0, 0, 1]), [0, 0.7 * tilt, tilt, 0]) for a in headings])
    quaternions = jnp.concatenate([quaternions, jnp.asarray([turned(1.0, [3, 4, 0])])])
    R_AB = jnp.moveaxis(jax.vmap(quaternion_to_matrix)(quaternions), 0, -1)
    n = len(quaternions)
    sizes = jnp.zeros((0, n)), jnp.broadcast_to(vertices[..., None], (3, 8, n))
    w = jax.jit(PAIRS["HalfSpace", "Convex"].function)(*sizes, R_AB, jnp.zeros((3, n)).at[2].set(0.25))
    assert np.all(w.valid[:, :-1])
    np.testing.assert_array_equal(w.valid[:, -1], [True, False, False, False])
    np.testing.assert_allclose(w.distance[:, :-1], 0.0, atol=1e-8)
    for i in range(n - 1):
        in_body = np.asarray(R_AB[..., i]).T @ np.asarray(w.point[:, :, i])
        assert {tuple(np.sign(p)) for p in in_body[:2].T} == {(1, 1), (1, -1), (-1, 1), (-1, -1)}


def test_swapped_pairs_are_those_of_the_other_frame() -> None:
    """The same depth; normal and points exchanged, as Drake gives them for (B, A)."""
    kinds = ("Box", "Sphere")
    several = random_rows(*kinds, 5)
    function, is_swapped = pair_function("Sphere", "Box")
    assert is_swapped
    drake = DrakePair("Sphere", SIZES["Sphere"], "Box", SIZES["Box"])
    for row in several:
        R_AB, p_AB = pose(row)
        R_BA, p_BA = R_AB.T, -R_AB.T @ p_AB
        sizes = [jnp.asarray(SIZES[k])[:, None] for k in kinds]
        w = function.function(*sizes, jnp.asarray(R_AB)[..., None], jnp.asarray(p_AB)[:, None])
        turned_round = swap(w, jnp.asarray(R_BA)[..., None], jnp.asarray(p_BA)[:, None])
        expected = drake.signed_distance(R_BA, p_BA)
        for got, wanted in zip((turned_round.distance, turned_round.normal, turned_round.point), expected, strict=True):
            np.testing.assert_allclose(np.squeeze(got), wanted, atol=1e-14)


def test_the_table_has_both_orders_and_names_what_is_missing() -> None:
    pairs = supported_pairs()
    assert all((b, a) in pairs for a, b in pairs)
    assert set(PAIRS) <= pairs
    assert pair_function("HalfSpace", "Box") == (PAIRS["HalfSpace", "Box"], False)
    with pytest.raises(KeyError, match="HalfSpace and HalfSpace"):
        pair_function("HalfSpace", "HalfSpace")


def test_orientation_of_a_sphere_is_free() -> None:
    """Turning a sphere changes nothing (G26)."""
    several = np.asarray(random_rows("Cylinder", "Sphere", 4))
    turned_rows = several.copy()
    turned_rows[:, -7:-3] = turned(1.0, [1, 2, 3])
    assert not np.allclose(quaternion_to_matrix(several[0, -7:-3]), quaternion_to_matrix(turned_rows[0, -7:-3]))
    f = witnesses_of_rows("Cylinder", "Sphere")
    for x, y in zip(f(jnp.asarray(several)), f(jnp.asarray(turned_rows)), strict=True):
        np.testing.assert_array_equal(x, y)
