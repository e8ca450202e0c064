"""Actuators as MuJoCo has them: effort limits as ranges of force, gains as the bias that goes with a control.

With the gear g, the force at the joint is g (gain ctrl + bias_0 + bias_1 g q + bias_2 g v), as `read_actuators` has it.
"""

import dataclasses
from collections.abc import Collection
from typing import Any

import numpy as np

from mbjax.model import USED, Control

from ..notes.write_notes import WriteNotes
from ..records.robot_records import ActuatorRecord, RobotRecord
from ..xml.text import Element, add

MOTOR = "ctrl is its actuation"
ALWAYS_ON = "MuJoCo tracks it whatever ctrl is, mbjax where inputs give a desired state"
ROUNDING = 1e-6  # of a model in single precision
OF_ITS_FILE = "as in the MJCF file that it comes from; inputs_from_mujoco makes inputs of it"


@dataclasses.dataclass
class Law:
    """Numbers of an actuator of MuJoCo, and in words what ctrl is to it."""

    gear: float
    gain: float
    bias: tuple[float, float, float]
    meaning: str

    def element(self) -> tuple[str, dict[str, Any]]:
        """Tag and attributes: a motor, position or velocity actuator where the law is theirs."""
        (constant, p, d), gear = self.bias, None if self.gear == 1.0 else self.gear
        if not any(self.bias) and self.gain == 1.0:
            return "motor", {"gear": gear}
        if not constant and p and self.gain == -p:
            return "position", {"gear": gear, "kp": self.gain, "kv": -d or None}
        if not constant and not p and d and self.gain == -d:
            return "velocity", {"gear": gear, "kv": self.gain}
        has_bias = any(self.bias)
        bias = {"biastype": "affine", "biasprm": self.bias} if has_bias else {}
        return "general", {"gear": gear, "gainprm": self.gain, **bias}


def add_actuators(root: Element, robot: RobotRecord, joints: Collection[str], notes: WriteNotes) -> None:
    """All actuators of a robot; `joints` are the hinges and slides of the file."""
    if not robot.actuators:
        return
    actuators, numbers = add(root, "actuator"), []
    for actuator in robot.actuators:
        label, limit = f"actuator '{actuator.name}'", actuator.options["effort_limit"]
        if limit == 0.0 or actuator.joint not in joints:
            what = "MuJoCo takes no effort limit of 0" if limit == 0.0 else "its joint is not in the file"
            notes.unsupported(label, what)
            continue
        control = usable_control(actuator)
        law = law_of(actuator) if control is None else law_of_control(actuator, control)
        if control is None and actuator.control is not None:
            notes.repaired(label, "its gains are others than in the MJCF file that it comes from, and so is its ctrl")
        tag, attributes = law.element()
        if np.isfinite(limit):
            attributes["forcerange"] = (-limit / abs(law.gear), limit / abs(law.gear))
        bounds = range_of_control(law, limit, control)
        if np.all(np.isfinite(bounds)):
            attributes["ctrlrange"] = bounds
        add(actuators, tag, name=actuator.name, joint=actuator.joint, **attributes)
        notes.add(USED, label, law.meaning)
        numbers.append(None if actuator.control is None else (actuator.control.index, actuator.control.count))
    note_other_order(numbers, notes)


def range_of_control(law: Law, limit: float, control: Control | None) -> tuple[float, float]:
    """Bounds of ctrl: those of its file, and where ctrl alone makes the effort, those that let through the limit."""
    given = (-np.inf, np.inf) if control is None else (control.lower, control.upper)
    factor = abs(law.gear * law.gain)
    if any(law.bias) or not factor:
        return given
    if control is None or factor * max(map(abs, given)) < (1.0 - ROUNDING) * limit:  # a larger one has been set since
        return -limit / factor, limit / factor
    return given


def note_other_order(numbers: list[tuple[int, int] | None], notes: WriteNotes) -> None:
    """Says so where ctrl has other numbers than in the file that actuators come from: their places and count there."""
    of_file = [number for number in numbers if number is not None]
    if of_file and numbers != [(k, len(numbers)) for k in range(len(numbers))]:
        message = (
            f"ctrl has {len(numbers)} numbers, in the order of the model's actuators, not as in the MJCF file read"
        )
        notes.repaired("controls", message)


def usable_control(actuator: ActuatorRecord) -> Control | None:
    """What ctrl was in the file that an actuator comes from, unless gains have been set for which it means nothing."""
    control, (kp, kd) = actuator.control, gains(actuator)
    if control is None or control.is_tracking != bool(kp or kd):
        return None
    if (control.position and not kp) or (control.velocity and (kp or not kd)):
        return None
    return control


def law_of(actuator: ActuatorRecord) -> Law:
    """The law with a control in the units of the model's inputs, by which all of these can be given."""
    kp, kd = gains(actuator)
    if kp:
        rest = "(kd desired velocity + actuation) / kp" if kd else "actuation / kp"
        return Law(1.0, kp, (0.0, -kp, -kd), f"ctrl is desired position + {rest}; {ALWAYS_ON}")
    if kd:
        return Law(1.0, kd, (0.0, 0.0, -kd), f"ctrl is desired velocity + actuation / kd; {ALWAYS_ON}")
    return Law(1.0, 1.0, (0.0, 0.0, 0.0), MOTOR)


def law_of_control(actuator: ActuatorRecord, control: Control) -> Law:
    """The law by which ctrl does what it does in the file that the actuator comes from."""
    kp, kd = gains(actuator)
    plus = f" {control.constant:+g}" if control.constant else ""
    constant = f", and actuation{plus}" if plus else ""
    for scale, gain, what in ((control.position, kp, "position"), (control.velocity, kd, "velocity")):
        if scale:
            gear = 1.0 / scale
            p, d = kp / gear**2, kd / gear**2
            meaning = f"desired {what} is {scale:g} ctrl{constant}, {OF_ITS_FILE}; {ALWAYS_ON}"
            return Law(gear, gain / gear**2, (control.constant / gear, -p, -d), meaning)
    rest = f", beside desired positions and velocities of 0; {ALWAYS_ON}" if kp or kd else ""
    meaning = f"actuation is {control.effort:g} ctrl{plus}, {OF_ITS_FILE}{rest}"
    if control.effort == 1.0 and not plus and not rest:
        meaning = MOTOR
    return Law(1.0, control.effort, (control.constant, -kp, -kd), meaning)


def gains(actuator: ActuatorRecord) -> tuple[float, float]:
    """kp and kd at the joint."""
    kp, kd = (float(actuator.options.get(key) or 0.0) for key in ("kp", "kd"))
    return kp, kd
