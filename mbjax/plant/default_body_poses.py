"""Poses of a plant's bodies in its default configuration, which ball constraints are completed from at finalize."""

import jax.numpy as jnp
import numpy as np

from mbjax.joints import AbstractJoint
from mbjax.model import Frame
from mbjax.topology import TreeNode

from .mimics import default_positions_of
from .queries import PlantQueries


def default_body_poses(plant: PlantQueries, nodes: list[TreeNode]) -> dict[int, np.ndarray]:
    """Poses X_WB (4, 4) of bodies by index: X_WP X_PF X_FM(q_default) X_MB, outward."""
    X_WB, of_mimics = {0: np.eye(4)}, default_positions_of(plant.mimics)
    for node in nodes:
        assert node.edge is not None
        joint = plant.joints[node.edge.joint]
        X_FM = joint_pose(joint, of_mimics.get(joint, joint.default_positions))
        X_WB[node.body] = (
            X_WB[node.parent_body] @ pose_in_body(joint.parent) @ X_FM @ np.linalg.inv(pose_in_body(joint.child))
        )
    return X_WB


def pose_in_body(frame: Frame) -> np.ndarray:
    """Pose X_BF (4, 4) of a frame on body B, through the frames it is fixed in."""
    X_BF = np.eye(4)
    while frame.parent is not None:
        assert frame.X_PF is not None
        X_BF = as_matrix(frame.X_PF.rotation, frame.X_PF.translation) @ X_BF
        frame = frame.parent
    return X_BF


def joint_pose(joint: AbstractJoint, positions: np.ndarray) -> np.ndarray:
    """Pose X_FM (4, 4) of a joint at the given positions."""
    axis = np.zeros(3) if joint.axis is None else joint.axis
    pitch = 0.0 if joint.screw_pitch is None else joint.screw_pitch
    q = jnp.asarray(positions, float)[:, None]
    R_FM, p_FM = joint.pose(q, jnp.asarray(axis, float)[:, None], jnp.asarray([pitch], float))
    return as_matrix(R_FM[..., 0], p_FM[:, 0])


def as_matrix(rotation, translation) -> np.ndarray:
    """A pose as a 4x4 matrix."""
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = np.asarray(rotation), np.asarray(translation)
    return X
