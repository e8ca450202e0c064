"""One state in the conventions of every peer.

The common coordinates are mbjax's: for a floating base q = [quaternion (w, x, y, z), p_WB], v = [w_WB, v_WB]
in the world, tau = [moment, force] in the world; then one number per joint, by name.
"""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Convention:
    """How a peer writes a floating base. `joint_order[i]` is the common index of the peer's i-th joint."""

    is_floating: bool
    joint_order: tuple[int, ...]
    rotation_first: bool
    scalar_first: bool
    angular_in_body: bool
    linear_in_body: bool

    def from_common(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, ...]:
        """(q, v, tau) of the peer, for arrays with a leading axis of states."""
        order = list(self.joint_order)
        if not self.is_floating:
            return q[:, order], v[:, order], tau[:, order]
        quaternion, p = q[:, :4], q[:, 4:7]
        R_WB = rotation_matrix(quaternion)
        quaternion = quaternion if self.scalar_first else np.roll(quaternion, -1, axis=1)
        base_q = [quaternion, p] if self.rotation_first else [p, quaternion]
        return (
            np.concatenate([*base_q, q[:, 7:][:, order]], axis=1),
            np.concatenate([*self._base_from_world(R_WB, v), v[:, 6:][:, order]], axis=1),
            np.concatenate([*self._base_from_world(R_WB, tau), tau[:, 6:][:, order]], axis=1),
        )

    def acceleration_to_common(self, q: np.ndarray, v: np.ndarray, vdot: np.ndarray) -> np.ndarray:
        """The common vdot; q and v are common too."""
        joints = np.empty((len(vdot), len(self.joint_order)))
        joints[:, list(self.joint_order)] = vdot[:, 6:] if self.is_floating else vdot
        if not self.is_floating:
            return joints
        R_WB = rotation_matrix(q[:, :4])
        angular, linear = vdot[:, :3], vdot[:, 3:6]
        if not self.rotation_first:
            angular, linear = linear, angular
        if self.angular_in_body:
            angular = in_world(R_WB, angular)
        if self.linear_in_body:  # d/dt of v_B is R_BW (a - w x v)
            linear = in_world(R_WB, linear) + np.cross(v[:, :3], v[:, 3:6])
        return np.concatenate([angular, linear, joints], axis=1)

    def acceleration_from_common(self, q: np.ndarray, v: np.ndarray, vdot: np.ndarray) -> np.ndarray:
        """The inverse of `acceleration_to_common`."""
        joints = vdot[:, 6:] if self.is_floating else vdot
        joints = joints[:, list(self.joint_order)]
        if not self.is_floating:
            return joints
        R_WB = rotation_matrix(q[:, :4])
        angular, linear = vdot[:, :3], vdot[:, 3:6]
        if self.linear_in_body:
            linear = in_body(R_WB, linear - np.cross(v[:, :3], v[:, 3:6]))
        if self.angular_in_body:
            angular = in_body(R_WB, angular)
        base = [angular, linear] if self.rotation_first else [linear, angular]
        return np.concatenate([*base, joints], axis=1)

    def _base_from_world(self, R_WB: np.ndarray, x: np.ndarray) -> list[np.ndarray]:
        angular, linear = x[:, :3], x[:, 3:6]
        angular = in_body(R_WB, angular) if self.angular_in_body else angular
        linear = in_body(R_WB, linear) if self.linear_in_body else linear
        return [angular, linear] if self.rotation_first else [linear, angular]


def mbjax_convention(is_floating: bool, joint_order: tuple[int, ...]) -> Convention:
    return Convention(is_floating, joint_order, True, True, False, False)


def mujoco_convention(is_floating: bool, joint_order: tuple[int, ...]) -> Convention:
    """Also frax's, with a quaternion base."""
    return Convention(is_floating, joint_order, False, True, True, False)


def pinocchio_convention(is_floating: bool, joint_order: tuple[int, ...]) -> Convention:
    return Convention(is_floating, joint_order, False, False, True, True)


def rotation_matrix(quaternion: np.ndarray) -> np.ndarray:
    w, x, y, z = quaternion.T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


def in_body(R_WB: np.ndarray, x_W: np.ndarray) -> np.ndarray:
    return np.einsum("nij,ni->nj", R_WB, x_W)


def in_world(R_WB: np.ndarray, x_B: np.ndarray) -> np.ndarray:
    return np.einsum("nij,nj->ni", R_WB, x_B)


def relative_difference(ours: np.ndarray, reference: np.ndarray) -> float:
    """Largest difference over the largest entry, the worst of all states."""
    scale = np.abs(reference).max(axis=1)
    return float((np.abs(ours - reference).max(axis=1) / scale).max())
