"""Pairs of convex shapes by the general method: against a search over directions and Drake; derivatives."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pydrake.geometry as drake
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from mbjax.geometry.signed_distance.convex_convex import convex_convex
from mbjax.geometry.signed_distance.pair_table import pair_function
from mbjax.geometry.signed_distance.polyhedron_pairs import CONVEX_PAIRS
from mbjax.geometry.signed_distance.witnesses import Witnesses
from mbjax.spatial import rotation_exp

from ..gradients.checks import central_differences, compiled
from .polyhedra import check_pair_gradients, drake_distance, each_pair, random_rotations, searched_distance

POSES = 40
NUM_DERIVATIVES = 12
CLEAR, TOUCHING = 1e-3, 1e-9  # m
NUM_SIZES = {"Sphere": 1, "Box": 3, "Capsule": 2, "Cylinder": 2, "Ellipsoid": 3}
SUPPORTS: dict[str, Callable] = {  # of sizes and directions (..., 3)
    "Sphere": lambda s, n: s[0] + 0.0 * n[..., 0],
    "Box": lambda s, n: np.abs(n) @ s / 2,
    "Capsule": lambda s, n: s[0] + np.abs(n[..., 2]) * s[1] / 2,
    "Cylinder": lambda s, n: s[0] * np.hypot(n[..., 0], n[..., 1]) + np.abs(n[..., 2]) * s[1] / 2,
    "Ellipsoid": lambda s, n: np.linalg.norm(n * s, axis=-1),
    "Convex": lambda s, n: (n @ s).max(-1),
}
DRAKE = {"Box": drake.Box, "Capsule": drake.Capsule, "Cylinder": drake.Cylinder, "Ellipsoid": drake.Ellipsoid}
TRIMMED = (("Cylinder", "Box"),)


@pytest.fixture(params=CONVEX_PAIRS, ids="-".join)
def kinds(request: pytest.FixtureRequest) -> tuple[str, str]:
    if request.config.getoption("--trimmed") and request.param not in TRIMMED:
        pytest.skip("the trimmed run takes one pair of kinds")
    return request.param


def random_sizes(kind: str, rng: np.random.Generator) -> np.ndarray:
    """Sizes (POSES, s), or vertices (POSES, 3, 12)."""
    if kind == "Convex":
        vertices = rng.normal(size=(POSES, 3, 12))
        return 0.6 * vertices / np.linalg.norm(vertices, axis=1, keepdims=True)
    return rng.uniform(0.2, 1.0, (POSES, NUM_SIZES[kind])) * (2.0 if kind == "Box" else 1.0)


@functools.cache
def poses(kind_A: str, kind_B: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sizes, rotations and positions: some apart, the others overlapping by at most a third of the shapes."""
    rng = np.random.default_rng(0)
    size_A, size_B, R_AB = random_sizes(kind_A, rng), random_sizes(kind_B, rng), random_rotations(POSES, 1)
    direction = rng.normal(size=(POSES, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    p_AB = np.zeros((POSES, 3))
    for k in range(POSES):
        reach = SUPPORTS[kind_A](size_A[k], direction[k]) + SUPPORTS[kind_B](size_B[k], -direction[k] @ R_AB[k])
        p_AB[k] = direction[k] * reach * rng.uniform(0.75, 1.05)
    if {kind_A, kind_B} <= {"Box", "Cylinder"}:
        up = np.array([0.0, 0.0, 1.0])
        for k, turn in ((4, [0.02, 0.03, 0.0]), (5, [0.5 * np.pi + 0.01, 0.02, 0.01])):  # nearly flat on A's upper end
            R_AB[k] = Rotation.from_rotvec(turn).as_matrix()
            reach = SUPPORTS[kind_A](size_A[k], up) + SUPPORTS[kind_B](size_B[k], -up @ R_AB[k])
            p_AB[k] = [0.03, 0.02, reach - 0.01]
    return size_A, size_B, R_AB, p_AB


@functools.cache
def answers(kind_A: str, kind_B: str) -> Witnesses:
    return each_pair(pair_function(kind_A, kind_B)[0].function, *poses(kind_A, kind_B))


@pytest.mark.whole_run("distances beside Drake's, below")
def test_distance_is_the_largest_separation_over_directions(kinds: tuple[str, str]) -> None:
    """To 1e-6 m in all but a few: a wrong basin of a deep overlap, or a rim beside a face."""
    w = answers(*kinds)
    size_A, size_B, R_AB, p_AB = poses(*kinds)
    errors = []
    for k in range(0, POSES, 3):
        supports = (
            functools.partial(SUPPORTS[kind], size[k]) for kind, size in zip(kinds, (size_A, size_B), strict=True)
        )
        errors.append(abs(w.distance[k, 0] - searched_distance(*supports, R_AB[k], p_AB[k])))
    assert np.median(errors) < 1e-9
    assert np.sort(errors)[-3] < 1e-6
    assert max(errors) < 0.02
    assert (w.distance[:, 0] < 0.0).sum() > 10
    assert (w.distance[:, 0] > 0.0).sum() > 3
    for numbers in w:
        assert np.isfinite(numbers).all()


@pytest.mark.whole_run("distances beside Drake's, and points of simple shapes")
def test_points_lie_on_both_shapes(kinds: tuple[str, str]) -> None:
    """Farthest along the normal, in A and against it in B: what makes the distance the separation."""
    w = answers(*kinds)
    size_A, size_B, R_AB, p_AB = poses(*kinds)
    n_AB = -w.normal[:, :, 0]
    Ca = w.point[:, :, 0]
    rounded = {4, 5} if set(kinds) <= {"Box", "Cylinder"} else set()  # points of a rim may be 1 % less deep
    Cb_B = np.einsum("kji,kj->ki", R_AB, Ca + w.distance[:, :1] * n_AB - p_AB)
    n_B = -np.einsum("kji,kj->ki", R_AB, n_AB)
    for kind, size, n, point in ((kinds[0], size_A, n_AB, Ca), (kinds[1], size_B, n_B, Cb_B)):
        reach = np.array([SUPPORTS[kind](s, direction) for s, direction in zip(size, n, strict=True)])
        errors = np.delete(np.abs(np.sum(point * n, axis=1) - reach), list(rounded))
        assert np.median(errors) < 1e-9
        assert np.sort(errors)[-3] < 1e-6
    np.testing.assert_allclose(np.linalg.norm(n_AB, axis=1), 1.0, atol=1e-12)


def test_distance_is_drakes(kinds: tuple[str, str]) -> None:
    if not set(kinds) <= set(DRAKE):
        pytest.skip("Drake takes hulls from files only")
    w = answers(*kinds)
    errors = []
    for k in range(0, POSES, 2):
        size_A, size_B, R_AB, p_AB = (x[k] for x in poses(*kinds))
        distance, _ = drake_distance(DRAKE[kinds[0]](*size_A), DRAKE[kinds[1]](*size_B), R_AB, p_AB)
        errors.append(abs(distance - w.distance[k, 0]))
    assert np.sort(errors)[-3] < 1e-4


FLOORS = (0.5, 1.0, 10.0, 100.0)  # m
CAN, CUBOID = np.array([0.05, 0.2]), 0.1 * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]).T
IN_WHOLE_RUN = pytest.mark.whole_run("a cylinder on floors of any size")


@pytest.mark.parametrize(
    "kinds",
    [
        ("Cylinder", "Box"),
        *(pytest.param(x, marks=IN_WHOLE_RUN) for x in (("Box", "Cylinder"), ("Convex", "Box"), ("Box", "Convex"))),
    ],
    ids="-".join,
)
def test_feet_do_not_depend_on_the_length_of_the_floor(kinds: tuple[str, str]) -> None:
    """A can or a hull of 10 cm stands on a floor with four feet, at its middle and away from it, turned about z."""
    rng, per_floor = np.random.default_rng(7), POSES // len(FLOORS)
    lengths = np.repeat(FLOORS, per_floor)
    floor = np.stack([lengths, lengths, np.ones(POSES)], axis=1)
    p_FS = np.concatenate([rng.uniform(-0.2, 0.2, (POSES, 2)) * lengths[:, None], np.full((POSES, 1), 0.6 - 1e-4)], 1)
    p_FS[::per_floor, :2] = 0.0
    angles = np.where(np.arange(POSES) % per_floor < 2, 0.0, rng.uniform(-3.0, 3.0, POSES))
    R_FS = Rotation.from_rotvec(angles[:, None] * [[0.0, 0.0, 1.0]]).as_matrix()
    standing = np.tile(CUBOID if "Convex" in kinds else CAN, (POSES, *[1] * (2 if "Convex" in kinds else 1)))
    if kinds[0] == "Box":
        w = each_pair(functools.partial(convex_convex, *kinds), floor, standing, R_FS, p_FS)
        feet = w.point - p_FS[:, :, None]
    else:
        p_SF = -np.einsum("kji,kj->ki", R_FS, p_FS)
        w = each_pair(pair_function(*kinds)[0].function, standing, floor, R_FS.transpose(0, 2, 1), p_SF)
        feet = np.einsum("kij,kjc->kic", R_FS, w.point)
    np.testing.assert_allclose(w.distance[w.valid], -1e-4, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(w.valid.sum(1), 4)
    width = np.where(w.valid, np.linalg.norm(feet[:, :2], axis=1), np.nan)
    np.testing.assert_allclose(width[w.valid], 0.05 if "Cylinder" in kinds else 0.1 * np.sqrt(2.0), rtol=0, atol=1e-9)
    assert np.abs(np.where(w.valid, feet[:, 0], 0.0).sum(1)).max() < 1e-9  # all around


def clear_of_kinks(kinds: tuple[str, str]) -> np.ndarray:
    """Indices of the first poses where no vertex but those that touch is within `CLEAR` of the plane that touches.

    Derivatives are those of the vertices that touch. Differences step to 2e-5 either side, so they would be those of
    other vertices for less.
    """
    size_A, size_B, R_AB, _ = poses(*kinds)
    normal = answers(*kinds).normal[:, :, 0]
    clear = np.full(POSES, np.inf)
    for kind, size, n in ((kinds[0], size_A, -normal), (kinds[1], size_B, np.einsum("kji,kj->ki", R_AB, normal))):
        if kind == "Convex":
            below = (SUPPORTS[kind](size[k], n[k]) - n[k] @ size[k] for k in range(POSES))
            clear = np.minimum(clear, [np.min(x[x > TOUCHING], initial=np.inf) for x in below])
    return np.nonzero(clear > CLEAR)[0][:NUM_DERIVATIVES]


@pytest.mark.whole_run("gradients of simple shapes, and of signed distances in tests/contact")
def test_gradients(kinds: tuple[str, str]) -> None:
    """Of distance, normal and points: poses apart and overlapping, some where they just touch, some nearly flat."""
    function = pair_function(*kinds)[0].function
    kept = clear_of_kinks(kinds)
    assert kept[-1] < NUM_DERIVATIVES + 4
    size_A, size_B, R_AB, p_AB = (x[kept] for x in poses(*kinds))
    w = Witnesses(*(x[kept] for x in answers(*kinds)))
    p_AB[:4] += (w.distance[:, :1] * w.normal[:, :, 0])[:4]
    if set(kinds) <= {"Box", "Cylinder"}:
        assert (w.valid[4:6].sum(1) > 1).all()
    check_pair_gradients(function, size_A, size_B, R_AB, p_AB, tolerance=1e-6)


@pytest.mark.whole_run("which vertices are tried, in test_nearest_corners.py")
def test_distance_does_not_depend_on_which_is_first(kinds: tuple[str, str]) -> None:
    """Of pairs apart, where only one direction separates most. 0.2 % of searches ended beside an edge or an end."""
    rng, count = np.random.default_rng(11), 1000
    size_A, size_B = ([random_sizes(kind, rng) for _ in range(count // POSES)] for kind in kinds)
    A, B, R_AB = np.concatenate(size_A), np.concatenate(size_B), random_rotations(count, 5)
    p_AB = rng.normal(size=(count, 3))
    for k in range(count):
        n = p_AB[k] / np.linalg.norm(p_AB[k])
        p_AB[k] = n * (SUPPORTS[kinds[0]](A[k], n) + SUPPORTS[kinds[1]](B[k], -n @ R_AB[k])) * rng.uniform(1.0, 1.6)
    R_BA = R_AB.transpose(0, 2, 1)
    w = each_pair(functools.partial(convex_convex, *kinds), A, B, R_AB, p_AB)
    swapped = each_pair(
        functools.partial(convex_convex, *kinds[::-1]), B, A, R_BA, -np.einsum("kij,kj->ki", R_BA, p_AB)
    )
    apart = w.distance[:, 0] > 0.0
    assert apart.sum() > 800
    np.testing.assert_allclose(w.distance[apart, 0], swapped.distance[apart, 0], rtol=0, atol=1e-9)


@pytest.mark.whole_run("distances beside Drake's")
def test_depth_of_hulls_is_that_of_their_minkowski_difference() -> None:
    """The plane of the hull of all b - a that is nearest to the origin; deep ones may miss it by a little.

    A face that touches has three vertices that are equally low: a nudge must not choose others.
    """
    rng, count = np.random.default_rng(3), 200
    A, B = (0.6 * v / np.linalg.norm(v, axis=1, keepdims=True) for v in rng.normal(size=(2, count, 3, 12)))
    R_AB, p_AB, exact = random_rotations(count, 2), rng.normal(size=(count, 3)), np.zeros(count)
    p_AB *= rng.uniform(0.7, 1.2, (count, 1)) / np.linalg.norm(p_AB, axis=1, keepdims=True)
    for k in range(count):
        differences = (p_AB[k][:, None] + R_AB[k] @ B[k])[:, :, None] - A[k][:, None]
        exact[k] = ConvexHull(differences.reshape(3, -1).T).equations[:, 3].max()
    function = pair_function("Convex", "Convex")[0].function
    w, nudged = (each_pair(function, A, B, R_AB, p) for p in (p_AB, p_AB + 1e-9 * rng.normal(size=p_AB.shape)))
    too_deep = (exact - w.distance[:, 0])[exact < 0.0]
    depth = -exact[exact < 0.0]
    print(f"{np.mean(too_deep > 1e-9):.3f} of {len(depth)} overlaps miss it, by {np.max(too_deep / depth):.3f} at most")
    assert len(depth) > 80
    assert too_deep.min() > -1e-9
    assert np.mean(too_deep > 1e-9) < 0.03
    assert (too_deep < 0.1 * depth).all()
    moves = np.abs(w.distance - nudged.distance).max(axis=1) > 1e-7
    assert (moves | (w.valid != nudged.valid).any(axis=1)).sum() <= 1


@pytest.mark.whole_run("second derivatives of an ellipsoid's distance in test_signed_distance_gradients.py")
def test_second_derivatives_of_the_distance(kinds: tuple[str, str]) -> None:
    """With respect to the pose: the differences of the gradient."""
    function = pair_function(*kinds)[0].function

    def distance(x: jax.Array, size_A: jax.Array, size_B: jax.Array, R_AB: jax.Array) -> jax.Array:
        R = rotation_exp(x[:3]) @ R_AB
        return function(*(y[..., None] for y in (size_A, size_B, R, x[3:]))).distance[0, 0]

    def both(x: jax.Array, *rest: jax.Array) -> tuple[jax.Array, jax.Array]:
        gradient = jax.grad(distance)
        return jax.jacfwd(gradient)(x, *rest), central_differences(lambda x: gradient(x, *rest), x)

    kept = clear_of_kinks(kinds)
    size_A, size_B, R_AB, p_AB = (jnp.asarray(x[kept]) for x in poses(*kinds))
    hessian, differences = compiled(jax.vmap(both))(jnp.pad(p_AB, ((0, 0), (3, 0))), size_A, size_B, R_AB)
    for k in range(NUM_DERIVATIVES):
        scale = np.abs(differences[k]).max() + 1.0
        np.testing.assert_allclose(hessian[k], differences[k], rtol=0, atol=1e-6 * scale)
        np.testing.assert_allclose(hessian[k], hessian[k].T, rtol=0, atol=1e-9 * scale)


@pytest.mark.whole_run("simple shapes are checked in single precision")
def test_single_precision(kinds: tuple[str, str]) -> None:
    """As near as rounding allows, and finite derivatives."""
    function = pair_function(*kinds)[0].function
    arrays = [jnp.asarray(np.moveaxis(x, 0, -1), jnp.float32) for x in poses(*kinds)]

    def total(*arrays: jax.Array) -> tuple[jax.Array, Witnesses]:
        w = function(*arrays)
        return jnp.sum(w.distance) + jnp.sum(w.point) + jnp.sum(w.normal), w

    gradients, w = compiled(jax.grad(total, argnums=(0, 1, 2, 3), has_aux=True))(*arrays)
    for x in gradients:
        assert x.dtype == jnp.float32
        assert np.isfinite(x).all()
    errors = np.abs(np.asarray(w.distance[0], float) - answers(*kinds).distance[:, 0])
    assert np.sort(errors)[-2] < 1e-5
    assert w.valid[0].all()
