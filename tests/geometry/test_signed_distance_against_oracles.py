"""Depths, normals and points against Drake where its answer is exact, and against minimisation where it is not."""

import jax
import mujoco
import numpy as np
import pytest
from scipy.optimize import minimize

from mbjax.geometry.signed_distance.pair_table import PAIRS
from tests.geometry.drake_pairs import DrakePair
from tests.geometry.pairs import SIZES, pose, random_rows, witnesses_of_rows

COUNT = 60
EXACT_IN_DRAKE = [
    ("HalfSpace", "Sphere"),
    ("Sphere", "Sphere"),
    ("Capsule", "Sphere"),
    ("Box", "Sphere"),
    ("Cylinder", "Sphere"),
]
HALF_SPACE = [("HalfSpace", kind) for kind in ("Sphere", "Capsule", "Box", "Cylinder", "Ellipsoid")]
MINE = [*EXACT_IN_DRAKE, *HALF_SPACE[1:], ("Ellipsoid", "Sphere"), ("Capsule", "Capsule"), ("Box", "Capsule")]


def evaluate(kinds, spread: float = 0.4):
    rows = random_rows(*kinds, COUNT, spread=spread)
    witnesses = jax.tree.map(np.asarray, witnesses_of_rows(*kinds)(rows))
    return rows, witnesses


def deepest(witnesses, i: int):
    """Distance, nhat_BA, Ca and Cb of the valid point with the smallest distance."""
    k = np.argmin(np.where(witnesses.valid[i], witnesses.distance[i], np.inf))
    distance, normal, point = witnesses.distance[i, k], witnesses.normal[i, :, k], witnesses.point[i, :, k]
    return distance, normal, point, point - distance * normal


def is_inside(kind: str, size, x, margin: float):
    """Whether points (..., 3) are in the shape grown by about `margin`, which is of either sign."""
    if kind == "HalfSpace":
        return x[..., 2] <= margin
    if kind == "Sphere":
        return np.linalg.norm(x, axis=-1) <= size[0] + margin
    if kind == "Box":
        return np.all(np.abs(x) <= np.array(size) / 2 + margin, axis=-1)
    if kind == "Cylinder":
        return (np.hypot(x[..., 0], x[..., 1]) <= size[0] + margin) & (np.abs(x[..., 2]) <= size[1] / 2 + margin)
    if kind == "Ellipsoid":
        return np.linalg.norm(x / np.array(size), axis=-1) <= 1.0 + margin / min(size)
    nearest = np.zeros_like(x)
    nearest[..., 2] = np.clip(x[..., 2], -size[1] / 2, size[1] / 2)
    return np.linalg.norm(x - nearest, axis=-1) <= size[0] + margin


@pytest.mark.parametrize("kinds", EXACT_IN_DRAKE, ids="-".join)
def test_distances_apart_and_overlapping_are_drakes(kinds) -> None:
    rows, witnesses = evaluate(kinds)
    drake = DrakePair(kinds[0], SIZES[kinds[0]], kinds[1], SIZES[kinds[1]])
    signs = set()
    for i, row in enumerate(rows):
        expected = drake.signed_distance(*pose(row))
        computed = deepest(witnesses, i)
        signs.add(expected[0] < 0.0)
        for got, wanted in zip(computed, expected, strict=False):
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-14)
    assert signs == {True, False}


@pytest.mark.parametrize("kinds", [*EXACT_IN_DRAKE, *HALF_SPACE[1:]], ids="-".join)
def test_penetrations_are_drakes(kinds) -> None:
    """Of a half-space and an ellipsoid depth and normal only: Drake 1.51 gives points that are not below the lowest."""
    rows, witnesses = evaluate(kinds)
    drake = DrakePair(kinds[0], SIZES[kinds[0]], kinds[1], SIZES[kinds[1]])
    num_compared = 2 if kinds[1] == "Ellipsoid" else 4
    num_overlapping = 0
    for i, row in enumerate(rows):
        expected = drake.penetration(*pose(row))
        computed = deepest(witnesses, i)
        assert (expected is not None) == (computed[0] < 0.0)
        if expected is not None:
            num_overlapping += 1
            for got, wanted in zip(computed[:num_compared], expected, strict=False):
                np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-14)
    assert num_overlapping > 5


@pytest.mark.whole_run("distances are Drake's")
@pytest.mark.parametrize("kinds", MINE, ids="-".join)
def test_points_are_on_both_surfaces(kinds) -> None:
    """Ca on A and Cb on B, of the deepest point; of the others they may be within. Normals are unit vectors."""
    rows, w = evaluate(kinds)
    assert w.distance.shape == (COUNT, PAIRS[kinds].num_points)
    np.testing.assert_allclose(np.linalg.norm(w.normal, axis=1), 1.0, atol=1e-14)
    for i, row in enumerate(rows):
        R_AB, p_AB = pose(row)
        Ca, Cb = w.point[i].T, (w.point[i] - w.distance[i] * w.normal[i]).T
        k = np.argmin(np.where(w.valid[i], w.distance[i], np.inf))
        for kind, points in ((kinds[0], Ca), (kinds[1], (Cb - p_AB) @ R_AB)):
            assert np.all(is_inside(kind, SIZES[kind], points[w.valid[i]], 1e-12)), (kind, row)
            assert not is_inside(kind, SIZES[kind], points[k], -1e-12), (kind, row)


def directional_depth(kinds, row):
    """n -> h_A(-n) + h_B(n) - n·p, the overlap along n; its negative maximum over n is the signed distance."""
    R_AB, p_AB = pose(row)
    supports = {
        "Sphere": lambda size, n: size[0] * np.linalg.norm(n),
        "Ellipsoid": lambda size, n: np.linalg.norm(np.array(size) * n),
        "Capsule": lambda size, n: size[0] * np.linalg.norm(n) + abs(n[2]) * size[1] / 2,
        "Box": lambda size, n: np.abs(n) @ np.array(size) / 2,
    }

    def depth(n):
        n = n / np.linalg.norm(n)
        return sum(supports[k](SIZES[k], m) for k, m in zip(kinds, (n, R_AB.T @ n), strict=True)) - n @ p_AB

    return depth


@pytest.mark.parametrize("kinds", [("Ellipsoid", "Sphere"), ("Capsule", "Capsule"), ("Box", "Capsule")], ids="-".join)
def test_distance_is_the_largest_separation_over_all_directions(kinds) -> None:
    """Reached along the normal, and no direction separates more; Drake's iterations are not as exact here."""
    rows, w = evaluate(kinds)
    directions = np.random.default_rng(1).normal(size=(200, 3))
    for i, row in enumerate(rows[:20]):
        depth = directional_depth(kinds, row)
        distance, normal = w.distance[i, 0], w.normal[i, :, 0]
        np.testing.assert_allclose(depth(-normal), -distance, rtol=0, atol=1e-13)
        starts = sorted(directions, key=depth)[:2]
        best = min(minimize(depth, start, method="Nelder-Mead", options={"xatol": 1e-9}).fun for start in starts)
        assert best >= -distance - 1e-12
        assert np.all(w.distance[i][w.valid[i]] >= distance - 1e-12)


def test_capsules_are_as_far_apart_as_in_mujoco() -> None:
    rows, w = evaluate(("Capsule", "Capsule"))
    radius, length = SIZES["Capsule"]
    capsule = f'<geom type="capsule" size="{radius} {length / 2}"/>'
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><worldbody>{capsule}<body mocap="true">{capsule}</body></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    for i, row in enumerate(np.asarray(rows)):
        data.mocap_quat[0], data.mocap_pos[0] = row[-7:-3], row[-3:]
        mujoco.mj_forward(model, data)
        expected = mujoco.mj_geomDistance(model, data, 0, 1, 10.0, np.zeros(6))
        np.testing.assert_allclose(w.distance[i, 0], expected, rtol=0, atol=1e-12)


def test_lowest_vertices_of_a_polyhedron() -> None:
    """The lowest of all is among the four."""
    rows, w = evaluate(("HalfSpace", "Convex"))
    for i, row in enumerate(rows):
        R_AB, p_AB = pose(row)
        heights = np.array(SIZES["Convex"]).reshape(3, -1).T @ R_AB.T[:, 2] + p_AB[2]
        np.testing.assert_allclose(deepest(w, i)[0], heights.min(), rtol=0, atol=1e-14)
        for k in np.flatnonzero(w.valid[i]):
            assert np.abs(heights - w.distance[i, k]).min() < 1e-14
