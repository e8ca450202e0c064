"""Candidates that symmetry makes equal: the choice among them is not that of rounding."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.contact.points.contact_points import calc_witnesses, pairs_by_kind
from mbjax.contact.points.geometry_poses import calc_geometry_poses, calc_relative_poses, shape_sizes
from mbjax.geometry.signed_distance.choices import (
    direction_rounding,
    flags_of_largest,
    index_of_farthest,
    index_of_largest,
    sign_of,
)
from mbjax.kinematics import calc_position_kinematics
from tests.gradients.checks import compiled

from .pairs import IDENTITY, rows, turned, witnesses_of_rows

POSES, REPEATS = 1000, 3
QUARTER, EIGHTH = (turned(angle, (0, 0, 1)) for angle in (np.pi / 2, np.pi / 4))
LYING = turned(np.pi / 2, (0, 1, 0))


def test_of_equals_within_rounding_the_first_is_chosen() -> None:
    eps = direction_rounding(jnp.float64)
    scores = jnp.array([[0.5], [1.0 - 0.5 * eps], [1.0], [1.0]])
    assert index_of_largest(scores, eps)[0] == 1
    assert index_of_largest(scores, 0.0)[0] == 2
    assert index_of_largest(scores, 0.0, eps)[0] == 1
    assert index_of_farthest(scores, eps)[0] == index_of_farthest(scores, 0.0, eps)[0] == 1
    assert [bool(flag[0]) for flag in flags_of_largest(list(scores), eps)] == [False, True, False, False]
    assert [float(sign_of(jnp.array(x), eps)) for x in (-0.5 * eps, -2.0 * eps, 0.0)] == [1.0, -1.0, 1.0]


@pytest.mark.parametrize("scores", [[np.nan, 1.0, 2.0], [-np.inf] * 3])
def test_a_choice_without_numbers_stays_within(scores: list[float]) -> None:
    index, value = index_of_largest(jnp.array(scores), 1e-9)
    assert 0 <= int(index) < 3
    np.testing.assert_equal(float(value), max(scores) if np.isfinite(scores).any() is False else float(np.max(scores)))


def nudged(numbers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Numbers as another order of the same operations might have left them: off by a few roundings of 1."""
    return numbers + 4.0 * np.finfo(numbers.dtype).eps * rng.integers(-1, 2, numbers.shape)


SYMMETRIC = {
    ("Box", "Box"): [
        (IDENTITY, (0.0, 0.0, 0.499)),
        (IDENTITY, (0.4, 0.0, 0.499)),
        (QUARTER, (0.0, 0.0, 0.499)),
        (EIGHTH, (0.0, 0.0, 0.499)),
        (EIGHTH, (0.0, 0.0, 0.51)),
        (turned(np.pi / 4, (1, 0, 0)), (0.0, 0.0, 0.6)),
        (IDENTITY, (0.1, 0.2, 0.0)),
        (IDENTITY, (0.0, 0.0, 0.0)),
    ],
    ("Box", "Capsule"): [
        (IDENTITY, (0.0, 0.0, 0.74)),
        (LYING, (0.0, 0.0, 0.44)),
        (LYING, (0.0, 0.0, 0.0)),
        (turned(np.pi / 4, (1, 0, 0)), (0.0, 0.0, 0.5)),
        (IDENTITY, (0.0, 0.0, 0.1)),
    ],
    ("Box", "Sphere"): [(IDENTITY, (0.0, 0.0, 0.0)), (IDENTITY, (0.1, 0.25, 0.0)), (IDENTITY, (0.0, 0.35, 0.25))],
    ("Cylinder", "Sphere"): [(QUARTER, (0.0, 0.0, 0.25)), (IDENTITY, (0.0, 0.0, 0.0)), (IDENTITY, (0.35, 0.0, 0.25))],
    ("HalfSpace", "Box"): [
        (turned(np.arctan2(0.5, 0.7), (1, 0, 0)), (0.0, 0.0, 0.4)),
        (IDENTITY, (0.0, 0.0, 0.2)),
    ],
    ("HalfSpace", "Cylinder"): [(LYING, (0.0, 0.0, 0.3)), (IDENTITY, (0.0, 0.0, 0.2))],
}


@pytest.mark.parametrize("kinds", SYMMETRIC, ids="-".join)
def test_symmetric_poses_have_the_points_they_have_beside_them(kinds: tuple[str, str]) -> None:
    """The same points in the same order, at poses that differ in their last digits."""
    quaternions, positions = (np.array(x, float) for x in zip(*SYMMETRIC[kinds], strict=True))
    rng, function = np.random.default_rng(0), witnesses_of_rows(*kinds)
    exact = jax.tree.map(np.asarray, function(rows(*kinds, quaternions, positions)))
    for _ in range(40):
        beside = function(rows(*kinds, nudged(quaternions, rng), nudged(positions, rng)))
        np.testing.assert_array_equal(beside.valid, exact.valid)
        for ours, theirs in ((beside.distance, exact.distance), (beside.normal, exact.normal)):
            np.testing.assert_allclose(ours, theirs, atol=1e-12)
        np.testing.assert_allclose(beside.point, exact.point, atol=1e-11)


def robot() -> mbjax.MultibodyModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbjax.ModelWarning)
        return mbjax.load("quadruped", time_step=0.002, ground=0.8)


def poses_of(model: mbjax.MultibodyModel) -> jax.Array:
    """Random joint angles, all the way round: many shapes overlap deeply."""
    q = np.tile(np.asarray(mbjax.default_state(model).q), (POSES, 1))
    q[:, 7:] = np.random.default_rng(1).uniform(-np.pi, np.pi, (POSES, q.shape[1] - 7))
    return jnp.asarray(q)


KINDS = [
    ("Box", "Box"),
    ("Box", "Sphere"),
    ("Box", "Cylinder"),
    ("Cylinder", "Cylinder"),
]


@pytest.mark.whole_run("symmetric poses have the points they have beside them, above")
@pytest.mark.parametrize(("kind_A", "kind_B"), KINDS)
def test_random_poses_of_the_quadruped_have_the_points_they_have_beside_them(kind_A: str, kind_B: str) -> None:
    """Its shapes are parallel in many ways: by rounding alone, two boxes had others in two of a hundred poses."""
    model = robot()
    contact = model.layout.contact
    kinds = [record.kind for record in contact.geometries]
    groups = [x for x in pairs_by_kind(model) if tuple(kinds[g] for g in contact.pairs[x[0]]) == (kind_A, kind_B)]
    A, B = zip(*(contact.pairs[i] for i in groups[0]), strict=True)

    @compiled
    def relative(q: jax.Array) -> tuple:
        poses = calc_geometry_poses(model, calc_position_kinematics(model, q))
        return calc_relative_poses(model, poses, A, B)[2:]

    R_AB, p_AB = (
        np.moveaxis(np.asarray(x), 0, -1).reshape(*x.shape[1:-1], -1) for x in jax.vmap(relative)(poses_of(model))
    )
    sizes = [np.repeat(np.asarray(shape_sizes(model, side)), POSES, axis=-1) for side in (A, B)]
    near = np.linalg.norm(p_AB, axis=0) < sum(np.linalg.norm(x, axis=0) for x in sizes)
    sizes, R_AB, p_AB = [x[:, near] for x in sizes], R_AB[..., near], p_AB[:, near]
    function = compiled(lambda *x: calc_witnesses(kind_A, kind_B, *x))
    rng, expected = np.random.default_rng(2), function(*sizes, R_AB, p_AB)
    touches = np.asarray(expected.valid & (expected.distance < 0.0))
    assert touches.any(axis=0).sum() > 300
    for _ in range(REPEATS):
        found = function(*sizes, nudged(R_AB, rng), nudged(p_AB, rng))
        for axis, ours, theirs in (
            (0, found.distance, expected.distance),
            (1, found.normal, expected.normal),
            (1, found.point, expected.point),
        ):
            difference = np.abs(np.asarray(ours) - np.asarray(theirs))
            difference = difference if axis == 0 else difference.max(axis=0)
            assert np.where(touches, difference, 0.0).max() < 1e-7
