"""What the sliders of a page move: each joint of one degree of freedom, with its axis in the body that it carries."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mbjax.model import MultibodyModel, all_joint_positions

from .packed_arrays import PackedArrays, steps_of

UNITS = {"revolute": "rad", "screw": "rad", "prismatic": "m"}
WITHOUT_LIMITS = {"rad": np.pi, "m": 1.5}  # how far a slider reaches from zero, and from where the joint has been
STEP = 1e-6  # rad or m, of the positions in the page


@dataclasses.dataclass(frozen=True)
class JointSliders:
    """The joints that sliders move, and their positions (T, joints) along the first trajectory."""

    joints: list[dict[str, Any]]
    positions: np.ndarray

    def record(self, packed: PackedArrays) -> dict[str, Any]:
        """What the page reads."""
        stored = packed.add(steps_of(self.positions, STEP), "i4", differences=2) if self.joints else None
        return {"joints": self.joints, "positions": stored, "step": STEP}


def joint_sliders(model: MultibodyModel, q: np.ndarray) -> JointSliders:
    """The model's joints of one degree of freedom, with positions of a trajectory q (T, nq).

    A body that a joint carries moves along `axis` through `point`, both in the body's frame: by `turn` rad about it and
    by `advance` m along it as the joint's position grows by one. A joint that mimics another follows it by `ratio`.
    """
    layout, parameters = model.layout, model.parameters
    chosen = [joint for joint in layout.joints if joint.kind in UNITS and joint.mobod > 0]
    if not chosen:
        return JointSliders([], np.zeros((len(q), 0)))
    all_q = np.asarray(jax.vmap(lambda q: all_joint_positions(model, q))(jnp.asarray(q, model.dtype)))
    axes, pitches = np.asarray(parameters.joint_axis, float), np.asarray(parameters.screw_pitch, float)
    own = {joint.index: place for place, joint in enumerate(chosen)}
    found = []
    for joint in chosen:
        positions = all_q[:, joint.all_q.start]
        rotation, point = pose_in_body(model, joint.child_frame)
        axis = rotation @ axes[layout.axis_joints.index(joint.index)]
        pitch = pitches[layout.screw_joints.index(joint.index)] / (2.0 * np.pi) if joint.kind == "screw" else 0.0
        leader, ratio = last_leader(model, joint.index)
        unit = UNITS[joint.kind]
        found.append(
            {
                "name": joint.name, "unit": unit, "body": joint.child_body,
                "axis": (axis / np.linalg.norm(axis)).tolist(), "point": point.tolist(),
                "turn": float(unit == "rad"), "advance": 1.0 if unit == "m" else pitch,
                "lower": end(model.position_lower_limits, joint, positions.min(initial=0.0) - WITHOUT_LIMITS[unit]),
                "upper": end(model.position_upper_limits, joint, positions.max(initial=0.0) + WITHOUT_LIMITS[unit]),
                "leader": None if leader is None else own.get(leader), "ratio": ratio,
            }
        )  # fmt: skip
    return JointSliders(found, all_q[:, [joint.all_q.start for joint in chosen]])


def end(limits: Any, joint: Any, otherwise: float) -> float:
    """A slider's end: the joint's limit if it has one, where it has coordinates of its own."""
    limit = float(np.asarray(limits)[joint.q_start]) if joint.mimics is None else np.inf
    return limit if np.isfinite(limit) else float(otherwise)


def last_leader(model: MultibodyModel, joint: int) -> tuple[int | None, float]:
    """The joint that is followed through a chain of mimics, and this one's rate per rate of that one."""
    ratio, at = 1.0, joint
    while (followed := model.layout.joints[at].mimics) is not None:
        rows = [mobod for mobod, _ in model.topology.followers]
        multipliers = np.asarray(model.parameters.mimic_multiplier, float)
        ratio *= float(multipliers[rows.index(model.layout.joints[at].mobod)])
        at = followed
    return (None if at == joint else at), ratio


def pose_in_body(model: MultibodyModel, frame: int) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and origin of a frame in its body."""
    from scipy.spatial.transform import Rotation

    rotation, origin = np.eye(3), np.zeros(3)
    info = model.layout.frames[frame]
    while info.parent is not None:
        row = model.layout.offset_frames.index(info.index)
        w, x, y, z = np.asarray(model.parameters.frame_quaternion, float)[row]
        R = Rotation.from_quat([x, y, z, w]).as_matrix()
        rotation, origin = R @ rotation, R @ origin + np.asarray(model.parameters.frame_translation, float)[row]
        info = model.layout.frames[info.parent]
    return rotation, origin
