"""Two boxes: distance, normal and points against Drake and a search over directions; derivatives; boxes at rest."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydrake.geometry import Box
from scipy.spatial.transform import Rotation

from mbjax.geometry.signed_distance.box_box import box_box, nearest_points
from mbjax.geometry.signed_distance.pair_table import pair_function
from mbjax.geometry.signed_distance.witnesses import Witnesses
from mbjax.spatial.rotation import rotation_exp

from ..gradients.checks import compiled
from .polyhedra import check_pair_gradients, drake_distance, each_pair, random_rotations, searched_distance

POSES = 200


@functools.cache
def poses() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sizes, rotations and positions, half of them apart."""
    rng = np.random.default_rng(0)
    sizes = rng.uniform(0.2, 1.5, (2, POSES, 3))
    return sizes[0], sizes[1], random_rotations(POSES, 1), 0.75 * rng.normal(size=(POSES, 3))


@functools.cache
def answers() -> Witnesses:
    return each_pair(box_box, *poses())


def box_distance(points: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Signed distance of points from a box, in its frame."""
    outside = np.abs(points) - size / 2
    return np.linalg.norm(np.maximum(outside, 0.0), axis=-1) + np.minimum(outside.max(-1), 0.0)


@pytest.mark.whole_run("a box lying on another")
def test_distance_is_the_largest_separation_over_directions() -> None:
    """Exactly where apart or face on; up to 1 % deeper where two edges touch within 8 degrees of a face's normal."""
    size_A, size_B, R_AB, p_AB = poses()
    num_exact = 0
    for k in range(0, POSES, 5):
        supports = (lambda n, s=s[k]: np.abs(n) @ s / 2 for s in (size_A, size_B))
        expected = searched_distance(*supports, R_AB[k], p_AB[k])
        distance = answers().distance[k, 0]
        assert expected - max(0.01 * -expected, 0.0) - 1e-7 < distance < expected + 1e-7
        num_exact += abs(distance - expected) < 1e-7
    assert num_exact > 35


def test_distance_and_normal_are_drakes() -> None:
    size_A, size_B, R_AB, p_AB = poses()
    num_normals = 0
    for k in range(100):
        distance, normal = drake_distance(Box(*size_A[k]), Box(*size_B[k]), R_AB[k], p_AB[k])
        ours = answers().distance[k, 0]
        assert abs(ours - distance) < 1e-5 + max(0.0, -0.01 * distance)
        num_normals += np.abs(answers().normal[k, :, 0] - normal).max() < 1e-4
    assert num_normals > 90


def test_points_lie_on_both_boxes() -> None:
    size_A, size_B, R_AB, p_AB = poses()
    w = answers()
    Ca = np.moveaxis(w.point, 1, -1)
    Cb = np.moveaxis(w.point - w.distance[:, None] * w.normal, 1, -1)
    Cb_B = np.einsum("kji,kcj->kci", R_AB, Cb - p_AB[:, None])
    for points, size in ((Ca, size_A), (Cb_B, size_B)):
        assert np.abs(box_distance(points, size[:, None]))[w.valid].max() < 1e-12
    assert np.abs(np.linalg.norm(w.normal, axis=1) - 1.0).max() < 1e-12
    np.testing.assert_allclose(w.distance[:, 0], np.where(w.valid, w.distance, np.inf).min(1), atol=1e-12)
    assert w.valid[:, 0].all()
    assert not w.degenerate.any()
    assert (w.valid.sum(1) == 1).sum() > 20
    assert (w.valid.sum(1) == 4).sum() > 50


def least_depth(size_A: np.ndarray, size_B: np.ndarray, R_AB: np.ndarray, p_AB: np.ndarray) -> float:
    """Of boxes that overlap, over faces and products of edges; separation, so below zero."""
    axes = [*np.eye(3), *R_AB.T, *(np.cross(e, b) for e in np.eye(3) for b in R_AB.T)]
    n = np.stack([x / np.linalg.norm(x) for x in axes if np.linalg.norm(x) > 1e-6])
    return (np.abs(n @ p_AB) - np.abs(n) @ size_A / 2 - np.abs(n @ R_AB) @ size_B / 2).max()


def test_the_nearest_points_are_those_of_the_least_depth() -> None:
    """What queries return: an exact distance, points on both boxes that carry its derivative, and a way apart."""
    size_A, size_B, R_AB, p_AB = (x.copy() for x in poses())
    p_AB[100:] *= 0.5  # more of them overlap
    turns = np.random.default_rng(4).normal(size=(80, 3)) * np.repeat([0.1, 1e-3, 1e-6, 1e-9], 20)[:, None]
    R_AB[120:] = Rotation.from_rotvec(turns).as_matrix()  # nearly as A is turned
    size_A[:2], size_B[:2], R_AB[:2] = 1.0, 1.0, [Rotation.from_rotvec([x, 0.0, 0.0]).as_matrix() for x in (0.3, -0.3)]
    p_AB[:2] = [0.0, 0.5, 0.5 - 1e-3] + R_AB[:2] @ [0.0, -0.5, 0.5]  # its lower edge above the rim

    @compiled
    def nearest(turn, size_A, size_B, R_AB, p_AB):
        def distance(turn, p):
            w = nearest_points(size_A, size_B, jnp.moveaxis(rotation_exp(turn.T) @ R_AB, 0, -1), p)
            return w.distance[0].sum(), w

        return jax.grad(distance, (0, 1), has_aux=True)(turn, p_AB)

    def at(p: np.ndarray):
        return nearest(jnp.zeros((3, POSES)), size_A.T, size_B.T, R_AB, p.T)

    (by_turn, by_p), w = at(p_AB)
    distance, normal, Ca = (np.asarray(x) for x in (w.distance[0], w.normal[:, 0].T, w.point[:, 0].T))
    overlap = np.nonzero(distance < 0.0)[0]
    assert 60 < len(overlap) < POSES - 40
    expected = [least_depth(size_A[k], size_B[k], R_AB[k], p_AB[k]) for k in overlap]
    np.testing.assert_allclose(distance[overlap], expected, rtol=0, atol=1e-12)
    Cb = Ca - distance[:, None] * normal
    for points, size in ((Ca, size_A), (np.einsum("kji,kj->ki", R_AB, Cb - p_AB), size_B)):
        assert np.abs(box_distance(points, size)).max() < 1e-12
    np.testing.assert_allclose(by_p.T, -normal, rtol=0, atol=1e-12)
    np.testing.assert_allclose(by_turn.T, -np.cross(Cb - p_AB, normal), rtol=0, atol=1e-9)
    moved = at(p_AB + np.minimum(distance, 0.0)[:, None] * normal)[1].distance[0]  # B, against the normal
    assert np.asarray(moved).min() > -1e-12


@pytest.mark.whole_run("gradients of simple shapes, and of signed distances in tests/contact")
@pytest.mark.parametrize("function", [box_box, nearest_points])
def test_gradients(function: Callable) -> None:
    check_pair_gradients(function, *(x[:60] for x in poses()), tolerance=1e-6)


def rest(tilt: float, yaw: float = 0.3, size_A=(1.0, 1.0, 0.4), size_B=(0.6, 0.4, 0.2), depth: float = 1e-3):
    """B on A, tilted about its x axis, with its lowest corners at `depth`."""
    c, s, cy, sy = np.cos(tilt), np.sin(tilt), np.cos(yaw), np.sin(yaw)
    R = np.array([[cy, -sy, 0.0], [sy, cy, 0.0], [0.0, 0.0, 1.0]]) @ np.array([[1.0, 0, 0], [0, c, -s], [0, s, c]])
    height = size_A[2] / 2 + size_B[2] / 2 * c + size_B[1] / 2 * abs(s) - depth
    arrays = (np.asarray(x)[None] for x in (size_A, size_B, R, [0.05, 0.02, height]))
    return each_pair(box_box, *arrays)


def test_a_box_lying_on_another_has_its_four_corners() -> None:
    w = rest(0.0)
    assert w.valid.all()
    np.testing.assert_allclose(w.distance[0], -1e-3, atol=1e-12)
    np.testing.assert_allclose(w.normal[0], np.array([[0.0], [0.0], [-1.0]]) * np.ones(4), atol=1e-12)
    corners = w.point[0, :2].T - [0.05, 0.02]
    np.testing.assert_allclose(np.linalg.norm(corners, axis=1), np.hypot(0.3, 0.2), rtol=1e-12)
    np.testing.assert_allclose(corners.sum(0), 0.0, atol=1e-12)


def test_equal_boxes_stand_on_one_another() -> None:
    """G22, G25: faces and edges coincide, turned by rounding or not."""
    for yaw, tilt in ((0.0, 0.0), (1e-9, 0.0), (0.0, 1e-10), (np.pi / 2, 0.0), (1e-5, 1e-7)):
        size = (0.5, 0.5, 0.5)
        R = np.array([[np.cos(yaw), -np.sin(yaw), 0], [np.sin(yaw), np.cos(yaw), 0], [0, 0, 1.0]])
        R = R @ np.array([[1, 0, 0], [0, 1, -tilt], [0, tilt, 1.0]])
        w = each_pair(box_box, *(np.asarray(x)[None] for x in (size, size, R, [0.0, 0.0, 0.499])))
        assert w.valid.all()
        np.testing.assert_allclose(w.distance[0], -1e-3, atol=1e-6)
        np.testing.assert_allclose(w.point[0, :2].sum(1), 0.0, atol=1e-4)
        np.testing.assert_allclose(np.abs(w.point[0, :2]), 0.25, atol=1e-4)


def test_a_small_box_has_its_four_corners_on_a_floor_of_any_length() -> None:
    for length in (1.0, 10.0, 100.0, 1000.0):
        w = rest(0.0, size_A=(length, length, 0.4), size_B=(0.02, 0.02, 0.02))
        assert w.valid.all()
        np.testing.assert_allclose(w.distance[0], -1e-3, atol=1e-9)
        np.testing.assert_allclose(np.ptp(w.point[0, :2], axis=1), 0.02 * (np.cos(0.3) + np.sin(0.3)), atol=1e-9)


def test_a_tilting_box_keeps_its_lower_edge() -> None:
    for tilt in (1e-4, -1e-3, 0.01, 0.2):
        w = rest(tilt)
        distance = np.sort(w.distance[0][w.valid[0]])
        np.testing.assert_allclose(distance[:2], -1e-3, atol=1e-9)


@pytest.mark.parametrize("tilt", [0.0, 1e-4, 3e-3, 0.05, -0.1])
def test_an_edge_across_a_narrower_box_keeps_both_ends(tilt: float) -> None:
    """A beam on its edge, longer than the box below: tilted, its edge meets the rim, yet both ends stay."""
    half_turn = np.pi / 4
    beam = np.array([2.0, 0.2, 0.2])
    R = np.array([[np.cos(tilt), 0, np.sin(tilt)], [0, 1.0, 0], [-np.sin(tilt), 0, np.cos(tilt)]])
    R = R @ np.array(
        [[1.0, 0, 0], [0, np.cos(half_turn), -np.sin(half_turn)], [0, np.sin(half_turn), np.cos(half_turn)]]
    )
    lowest = 0.1 * np.sqrt(2.0) * np.cos(tilt) + 0.25 * abs(np.tan(tilt))
    arrays = (x[None] for x in (np.full(3, 0.5), beam, R, np.array([0.0, 0.0, 0.25 + lowest - 1e-3])))
    w = each_pair(box_box, *arrays)
    on_edge = w.valid[0] & (np.abs(w.point[0, 1]) < 1e-3)
    assert on_edge.sum() == 2
    np.testing.assert_allclose(np.sort(w.point[0, 0, on_edge]), [-0.25, 0.25], atol=0.02)


@pytest.mark.whole_run("boxes that lie on one another")
def test_centred_boxes_are_degenerate_and_finite() -> None:
    """G22: every face is as near; the first is taken."""
    arrays = [np.ones((1, 3)), np.ones((1, 3)), np.eye(3)[None], np.zeros((1, 3))]
    w = each_pair(box_box, *arrays)
    assert w.degenerate.all()
    np.testing.assert_allclose(w.distance[0], -1.0)
    for x in w:
        assert np.isfinite(x).all()
    single = each_pair(box_box, *(x.astype(np.float32) for x in arrays))
    assert single.distance.dtype == np.float32
    np.testing.assert_allclose(single.distance[0], -1.0)


@pytest.mark.whole_run("worlds of simple shapes")
def test_a_worlds_axis_and_shared_sizes() -> None:
    size_A, size_B, R_AB, p_AB = (jnp.moveaxis(jnp.asarray(x[:6]), 0, -1) for x in poses())
    w = compiled(box_box)(size_A[:, :2, None], size_B[:, :2, None], R_AB[:, :, :2, None], p_AB[:, :6].reshape(3, 2, 3))
    assert w.distance.shape == (4, 2, 3)
    assert w.normal.shape == w.point.shape == (3, 4, 2, 3)
    assert w.degenerate.shape == (2, 3)
    assert pair_function("Box", "Box")[0].num_points == 4
