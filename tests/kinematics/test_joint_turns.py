"""The rotation across a joint's frame and axis, by its three parts, beside SciPy's rotations."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mbjax.kinematics.joint_turns import calc_joint_turns

EPS = np.finfo(np.float64).eps


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.7, np.pi, -4.0])
def test_parts_add_up_to_the_rotation(angle: float) -> None:
    rng = np.random.default_rng(0)
    R_PF, axis = Rotation.random(5, rng=0).as_matrix(), rng.normal(size=(5, 3))
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    turns = np.asarray(calc_joint_turns(np.moveaxis(R_PF, 0, -1), axis.T))
    along, across, turned = turns[:27].reshape(3, 3, 3, 5)
    R_PM = np.moveaxis(along + np.cos(angle) * across + np.sin(angle) * turned, -1, 0)
    expected = R_PF @ Rotation.from_rotvec(angle * axis).as_matrix()
    np.testing.assert_allclose(R_PM, expected, rtol=0.0, atol=16 * EPS)
    np.testing.assert_allclose(turns[27:].T, np.einsum("nij,nj->ni", R_PF, axis), rtol=0.0, atol=8 * EPS)


def test_without_an_axis_the_cosine_has_the_frame() -> None:
    R_PF = Rotation.random(rng=1).as_matrix()[..., None]
    turns = np.asarray(calc_joint_turns(R_PF, np.zeros((3, 1))))
    np.testing.assert_array_equal(turns[9:18], R_PF.reshape(9, 1))
    np.testing.assert_array_equal(np.delete(turns, np.s_[9:18], 0), 0.0)
