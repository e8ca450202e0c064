"""RigidTransform against Drake's, and its broadcasting."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydrake.math import RigidTransform as DrakeTransform
from pydrake.math import RollPitchYaw

from mbjax.spatial import RigidTransform, axis_angle_to_matrix, rotation_exp

RNG = np.random.default_rng(21)
RPY, XYZ = RNG.uniform(-1.5, 1.5, (2, 5, 3)), RNG.normal(size=(2, 5, 3))
POINTS = jnp.asarray(RNG.normal(size=(5, 3)))
X_AB = RigidTransform.from_rpy_xyz(jnp.asarray(RPY[0]), jnp.asarray(XYZ[0]))
X_BC = RigidTransform.from_rpy_xyz(jnp.asarray(RPY[1]), jnp.asarray(XYZ[1]))
DRAKE_AB = [DrakeTransform(RollPitchYaw(r), p) for r, p in zip(RPY[0], XYZ[0], strict=True)]
DRAKE_BC = [DrakeTransform(RollPitchYaw(r), p) for r, p in zip(RPY[1], XYZ[1], strict=True)]


def test_composition_inverse_and_points_match_drake():
    composed, inverse, mapped = X_AB @ X_BC, X_AB.inverse(), X_AB @ POINTS
    for i in range(5):
        expected = DRAKE_AB[i] @ DRAKE_BC[i]
        np.testing.assert_allclose(composed[i].as_matrix4(), expected.GetAsMatrix4(), rtol=0, atol=1e-14)
        expected = DRAKE_AB[i].inverse()
        np.testing.assert_allclose(inverse[i].as_matrix4(), expected.GetAsMatrix4(), atol=1e-14)
        np.testing.assert_allclose(mapped[i], DRAKE_AB[i] @ np.asarray(POINTS[i]), atol=1e-14)


def test_leading_axes_broadcast_on_either_side():
    one = X_AB[2]
    np.testing.assert_allclose((one @ POINTS)[3], one @ POINTS[3], atol=1e-15)
    np.testing.assert_allclose((X_AB @ POINTS[0])[4], X_AB[4] @ POINTS[0], atol=1e-15)
    assert (one @ [0.1, 0.2, 0.3]).shape == (3,)
    many_by_one, one_by_many = X_AB @ one, one @ X_AB
    np.testing.assert_allclose(many_by_one[1].as_matrix4(), (X_AB[1] @ one).as_matrix4(), 1e-15)
    np.testing.assert_allclose(one_by_many[1].as_matrix4(), (one @ X_AB[1]).as_matrix4(), 1e-15)
    assert X_AB.as_matrix4().shape == (5, 4, 4)
    grid = jnp.broadcast_to(POINTS, (2, 5, 3))
    assert (X_AB @ grid).shape == (2, 5, 3)


def test_indexing_reaches_leading_axes_only():
    assert X_AB[1:3].translation.shape == (2, 3)
    assert X_AB[jnp.array([0, 4])].rotation.shape == (2, 3, 3)
    assert X_AB[None].rotation.shape == (1, 5, 3, 3)
    assert X_AB[..., 0].rotation.shape == (3, 3)
    with pytest.raises(IndexError, match="leading axes"):
        X_AB[0][0]
    with pytest.raises(ValueError, match="shape"):
        X_AB @ jnp.zeros(4)


def test_constructors():
    identity = RigidTransform.identity(jnp.float32)
    assert identity.rotation.dtype == identity.translation.dtype == jnp.float32
    p = POINTS[0]
    np.testing.assert_array_equal(RigidTransform.from_translation(p) @ p, 2 * p)
    assert RigidTransform.from_translation(POINTS).rotation.shape == (5, 3, 3)
    turned = RigidTransform.from_rotation(X_AB.rotation)
    np.testing.assert_array_equal(turned.translation, 0.0)
    again = RigidTransform.from_matrix4(X_AB.as_matrix4())
    np.testing.assert_array_equal(again.rotation, X_AB.rotation)
    np.testing.assert_array_equal(again.translation, X_AB.translation)
    assert "translation" in str(X_AB[0])
    assert "RigidTransform" in repr(X_AB)


def test_float32_vmap_and_gradient():
    X32 = jax.tree.map(lambda x: x.astype(jnp.float32), X_AB)
    assert (X32 @ X32.inverse()).translation.dtype == jnp.float32
    assert (X32 @ POINTS.astype(jnp.float32)).dtype == jnp.float32
    mapped = jax.jit(jax.vmap(lambda X, p: X @ p))(X_AB, POINTS)
    np.testing.assert_allclose(mapped, X_AB @ POINTS, atol=1e-15)

    def moved(x):
        X = RigidTransform(rotation_exp(x[:3]), x[3:])
        return (X @ X_AB[0]).inverse() @ POINTS[0]

    x, h = jnp.asarray(RNG.normal(size=6)), 1e-6
    f = jax.jit(moved)
    forward, reverse = jax.jit(lambda y: (jax.jacfwd(moved)(y), jax.jacrev(moved)(y)))(x)
    expected = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(6)]
    np.testing.assert_allclose(forward, reverse, atol=1e-13)
    np.testing.assert_allclose(forward, np.stack(expected, -1), atol=1e-8)


def test_poses_are_made_of_lists_too():
    X = RigidTransform.from_rpy_xyz([0, 0, np.pi / 2], [1, 2, 3])
    np.testing.assert_allclose(X @ [1.0, 0.0, 0.0], [1.0, 3.0, 3.0], atol=1e-14)
    np.testing.assert_allclose(RigidTransform.from_matrix4(X.as_matrix4().tolist()).rotation, X.rotation)
    np.testing.assert_allclose(RigidTransform.from_translation([0.0, 0.0, 1.0]).translation, [0, 0, 1])
    np.testing.assert_allclose(axis_angle_to_matrix([0.0, 0.0, 2.0], np.pi / 2), X.rotation, atol=1e-14)


@pytest.mark.parametrize(
    ("make", "given", "message"),
    [
        (RigidTransform.from_rotation, ([1.0, 0.0, 0.0, 0.0],), r"R_AB must have shape .*A quaternion becomes"),
        (RigidTransform.from_rpy_xyz, ([1.0, 0.0, 0.0, 0.0], [0.0] * 3), r"rpy must have shape .*A quaternion becomes"),
        (RigidTransform.from_rpy_xyz, ([0.0] * 3, [1.0]), r"p_AoBo_A must have shape \(\.\.\., 3\), got \(1,\)"),
        (RigidTransform.from_translation, (1.0,), r"must have shape \(\.\.\., 3\), got \(\)"),
        (RigidTransform.from_matrix4, (np.eye(3),), r"must have shape \(\.\.\., 4, 4\)"),
        (axis_angle_to_matrix, ([1.0, 0.0], 0.3), "axis must have shape"),
    ],
)
def test_numbers_of_another_shape_are_refused(make, given, message):
    with pytest.raises(ValueError, match=message):
        make(*given)
