"""The exponential of SE(3) and its logarithm: SciPy's matrix exponential and Pinocchio, derivatives at every angle."""

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio
import pytest
import scipy.linalg

from mbjax.spatial import RigidTransform, pose_exp, pose_log

DRAWN = np.random.default_rng(7).normal(size=(8, 6))
AXIS = np.array([0.36, -0.48, 0.8])
ANGLES = [0.0, 1e-9, 1e-4, 0.3, 2.0, np.pi - 1e-3]
TWISTS = np.concatenate([DRAWN, [np.concatenate([angle * AXIS, [0.3, -0.2, 0.5]]) for angle in ANGLES]])


def both_ways(twist):
    """The pose's matrix, and the twist again."""
    X = pose_exp(twist)
    return X.as_matrix4(), pose_log(X)


def with_derivatives(twist):
    return both_ways(twist), jax.jacfwd(both_ways)(twist), jax.jacrev(both_ways)(twist)


PROGRAM = jax.jit(jax.vmap(with_derivatives))


@pytest.mark.parametrize("k", range(len(TWISTS)))
def test_matrix_exponential_and_pinocchio(k: int):
    twist = TWISTS[k]
    (matrix, again), _, _ = jax.tree.map(lambda x: np.asarray(x[k]), PROGRAM(TWISTS))
    w, v = twist[:3], twist[3:]
    generator = np.zeros((4, 4))
    generator[:3, 3] = v
    generator[:3, :3] = [[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]]
    np.testing.assert_allclose(matrix, scipy.linalg.expm(generator), atol=1e-14)
    np.testing.assert_allclose(matrix, pinocchio.exp6(np.concatenate([v, w])).homogeneous, atol=1e-14)
    np.testing.assert_allclose(again, twist, atol=2e-12)


def test_derivatives_at_every_angle():
    (_, _), forward, reverse = PROGRAM(TWISTS)
    h = 1e-6
    for j, step in enumerate(h * np.eye(6)):
        above, below = PROGRAM(TWISTS + step)[0], PROGRAM(TWISTS - step)[0]
        for f, r, a, b in zip(forward, reverse, above, below, strict=True):
            np.testing.assert_allclose(f[..., j], r[..., j], atol=1e-11)
            np.testing.assert_allclose(r[..., j], (np.asarray(a) - np.asarray(b)) / (2 * h), atol=3e-9)


def test_poses_of_the_inverse_and_of_a_sum():
    twist = jnp.asarray(DRAWN[0])
    there, back = pose_exp(twist), pose_exp(-twist)
    whole, half = pose_exp(twist).as_matrix4(), pose_exp(0.5 * twist)
    np.testing.assert_allclose((there @ back).as_matrix4(), np.eye(4), atol=1e-15)
    np.testing.assert_allclose((half @ half).as_matrix4(), whole, atol=1e-15)
    np.testing.assert_array_equal(pose_log(RigidTransform.identity(float)), np.zeros(6))
