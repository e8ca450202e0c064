"""Keyframes → named states."""

import numpy as np

from ..records.robot_records import KeyframeRecord, RobotRecord
from .compiled import Compiled
from .read_bodies import mujoco_positions, mujoco_velocities


def read_keyframes(compiled: Compiled, robot: RobotRecord) -> None:
    """Time, positions and velocities; controls and activations are not part of a state here, and listed."""
    m = compiled.m
    for key in range(m.nkey):
        name, element = compiled.names["keyframe"][key], compiled.element("keyframe", key)
        if element is compiled.source.root and name.startswith("keyframe_"):
            continue  # room that <size nkey> makes, without a <key>
        qpos, qvel = np.asarray(m.key_qpos[key]), np.asarray(m.key_qvel[key])
        positions = mujoco_positions(compiled, qpos)
        velocities = mujoco_velocities(compiled, qpos, qvel)
        time = float(m.key_time[key])
        robot.keyframes.append(KeyframeRecord(name, element.line, element.place, positions, velocities, time))
