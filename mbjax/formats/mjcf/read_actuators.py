"""Actuators whose force is affine in control, position and velocity → actuators of the plant."""

import dataclasses
from typing import Any

import numpy as np

from mbjax.model import IGNORED, KEPT, USED, Control

from ..notes.load_notes import LoadNotes
from ..records.robot_records import ActuatorRecord, RobotRecord
from ..xml.tree import XmlElement
from .compiled import Compiled
from .read_bodies import HINGE, SLIDE, any_of
from .read_tendons import joints_of_tendon

ROUNDING = 1e-12


@dataclasses.dataclass
class Law:
    """tau = gear (gain ctrl + bias[0] + bias[1] gear q + bias[2] gear v) at one joint."""

    joint: int
    gear: float
    gain: float
    bias: np.ndarray


def read_actuators(compiled: Compiled, robot: RobotRecord, notes: LoadNotes) -> None:
    """All that drive one degree of freedom by an affine law; the others are refused."""
    if compiled.disabled("ACTUATION"):
        return
    for index in range(len(compiled.m.actuator_trntype)):
        element = compiled.element("actuator", index)
        group = int(compiled.m.actuator_group[index])
        if 0 <= group < 31 and int(compiled.m.opt.disableactuator) >> group & 1:
            name = compiled.names["actuator"][index]
            notes.add(IGNORED, f"actuator '{name}'", "disabled by actuatorgroupdisable", element.place)
            continue
        law = read_law(compiled, index, element, notes)
        if law is not None:
            add_damping(compiled, index, law, robot)
            robot.actuators.append(read_actuator(compiled, index, law, element, notes))
    refuse_bounds_of_sums(compiled, robot, notes)


def refuse_bounds_of_sums(compiled: Compiled, robot: RobotRecord, notes: LoadNotes) -> None:
    """Refuses an `actuatorfrcrange` that several actuators together can exceed: MuJoCo clamps their sum."""
    m = compiled.m
    for index in np.flatnonzero(m.jnt_actfrclimited).tolist():
        name, bound = compiled.names["joint"][index], float(np.abs(m.jnt_actfrcrange[index]).max())
        actuators = [actuator for actuator in robot.actuators if actuator.joint == name]
        largest = sum(actuator.options["effort_limit"] for actuator in actuators)
        if len(actuators) > 1 and largest > bound * (1.0 + ROUNDING):
            names = " and ".join(f"'{actuator.name}'" for actuator in actuators)
            notes.unsupported(
                compiled.element("joint", index),
                f"joint '{name}': actuatorfrcrange bounds the sum of actuators {names} by {bound:g}, which is not "
                "simulated; each of them alone is kept within it",
            )


def add_damping(compiled: Compiled, index: int, law: Law, robot: RobotRecord) -> None:
    """The damping of an actuator acts whatever its control is: it is the joint's."""
    damping = float(getattr(compiled.m, "actuator_damping", np.zeros(index + 1))[index])
    if damping and not compiled.disabled("DAMPER"):
        joint = next(j for j in robot.joints if j.name == compiled.names["joint"][law.joint])
        joint.options["damping"] += float(times(times(law.gear, law.gear), damping))


def read_law(compiled: Compiled, index: int, element: XmlElement, notes: LoadNotes) -> Law | None:
    """The force law; None where it is refused."""
    m, mj = compiled.m, compiled.mujoco
    name = compiled.names["actuator"][index]
    joint, gear = transmission(compiled, index)
    gain_type, bias_type = mj.mjtGain(m.actuator_gaintype[index]), mj.mjtBias(m.actuator_biastype[index])
    gain = np.array(m.actuator_gainprm[index][:3], float)
    bias = np.array(m.actuator_biasprm[index][:3], float)
    bias = np.zeros(3) if bias_type == mj.mjtBias.mjBIAS_NONE else bias
    is_fixed = gain_type == mj.mjtGain.mjGAIN_FIXED or (gain_type == mj.mjtGain.mjGAIN_AFFINE and not gain[1:].any())
    problem = None
    if joint < 0:
        problem = "it does not act on one hinge or slide joint"
    elif m.actuator_dyntype[index] != mj.mjtDyn.mjDYN_NONE:
        problem = "it has activation dynamics"
    elif not is_fixed:
        problem = "its gain changes with position or velocity"
    elif bias_type not in (mj.mjtBias.mjBIAS_NONE, mj.mjtBias.mjBIAS_AFFINE):
        problem = "its force is not affine in position and velocity"
    elif bias[1] > 0.0 or bias[2] > 0.0:
        problem = "its force grows with position or velocity (a negative gain)"
    elif any_of(m, "actuator_dampingpoly", index):
        problem = "its damping is not linear"
    elif getattr(m, "actuator_ctrlnum", np.ones(index + 1))[index] != 1:
        problem = "it has several controls"
    elif any_of(m, "actuator_delay", index):
        problem = "its control is delayed"
    if problem is not None:
        notes.unsupported(element, f"actuator '{name}': {problem}")
        return None
    return Law(joint, gear, float(gain[0]), bias)


def transmission(compiled: Compiled, index: int) -> tuple[int, float]:
    """Joint and gear; -1 where it is no single hinge or slide."""
    m, T = compiled.m, compiled.mujoco.mjtTrn
    kind, target, gear = T(m.actuator_trntype[index]), int(m.actuator_trnid[index, 0]), float(m.actuator_gear[index, 0])
    if kind == T.mjTRN_TENDON:
        joints = joints_of_tendon(compiled, target)
        if joints is None or len(joints) != 1:
            return -1, 0.0
        ((target, coefficient),) = joints.items()
        return target, gear * coefficient
    if kind not in (T.mjTRN_JOINT, T.mjTRN_JOINTINPARENT) or m.jnt_type[target] not in (HINGE, SLIDE):
        return -1, 0.0
    return target, gear


def read_actuator(compiled: Compiled, index: int, law: Law, element: XmlElement, notes: LoadNotes) -> ActuatorRecord:
    """Gains and limits at the joint, and in the notes what a control of MuJoCo is here."""
    m, name = compiled.m, compiled.names["actuator"][index]
    kp, kd = (float(times(times(law.gear, law.gear), -bias)) for bias in law.bias[1:])
    options: dict[str, Any] = {"effort_limit": effort_limit(compiled, index, law, element, notes)}
    if kp or kd:
        options |= {"kp": float(kp), "kd": float(kd)}
    armature = float(getattr(m, "actuator_armature", np.zeros(index + 1))[index])
    if armature:
        options |= {"rotor_inertia": armature, "gear_ratio": law.gear}
    joint = compiled.names["joint"][law.joint]
    notes.add(USED, f"actuator '{name}'", meaning(law, kp, kd), element.place)
    return ActuatorRecord(name, element.line, element.place, joint, options, control_of(compiled, index, law, kp, kd))


def control_of(compiled: Compiled, index: int, law: Law, kp: float, kd: float) -> Control:
    """What ctrl says to the actuator, in numbers."""
    m = compiled.m
    bounds = (-float("inf"), float("inf"))
    if m.actuator_ctrllimited[index] and not compiled.disabled("CLAMPCTRL"):
        bounds = (float(m.actuator_ctrlrange[index, 0]), float(m.actuator_ctrlrange[index, 1]))
    constant, is_tracking = float(times(law.gear, law.bias[0])), bool(kp or kd)
    common = Control(index, len(m.actuator_trntype), *bounds, constant=constant, is_tracking=is_tracking)
    if kp and np.isclose(law.gain, -law.bias[1]):
        return dataclasses.replace(common, position=float(law.gain / (-law.bias[1] * law.gear)))
    if kd and not kp and np.isclose(law.gain, -law.bias[2]):
        return dataclasses.replace(common, velocity=float(law.gain / (-law.bias[2] * law.gear)))
    return dataclasses.replace(common, effort=float(times(law.gear, law.gain)))


def meaning(law: Law, kp: float, kd: float) -> str:
    """What MuJoCo's ctrl is in our inputs."""
    constant = f" {times(law.gear, law.bias[0]):+g}" if law.bias[0] else ""
    feedforward = f"actuation {times(law.gear, law.gain):g} ctrl{constant}"
    if not kp and not kd:
        return feedforward
    gains = f"kp = {kp:g} and kd = {kd:g} at the joint"
    if kp and np.isclose(law.gain, -law.bias[1]):
        extra = f" with {feedforward.split(' ctrl')[1].strip()} as actuation" if constant else ""
        return f"{gains}; desired position ctrl / {law.gear:g}, desired velocity 0{extra}"
    if not kp and np.isclose(law.gain, -law.bias[2]):
        return f"{gains}; desired velocity ctrl / {law.gear:g}"
    return f"{gains}; desired position and velocity 0, {feedforward}"


def effort_limit(compiled: Compiled, index: int, law: Law, element: XmlElement, notes: LoadNotes) -> float:
    """The largest effort at the joint that the ranges of force, of control and of the joint let through."""
    m, name = compiled.m, compiled.names["actuator"][index]
    ranges = []
    if m.actuator_forcelimited[index]:
        ranges.append(("forcerange", times(law.gear, m.actuator_forcerange[index])))
    has_limit = m.actuator_ctrllimited[index] and not compiled.disabled("CLAMPCTRL")
    if has_limit and not law.bias.any():
        ranges.append(("ctrlrange", times(times(law.gear, law.gain), m.actuator_ctrlrange[index])))
    if m.jnt_actfrclimited[law.joint]:
        ranges.append(("actuatorfrcrange", np.array(m.jnt_actfrcrange[law.joint], float)))
    limit = float("inf")
    for what, bounds in ranges:
        if not np.isclose(bounds[0], -bounds[1]):
            message = f"{what} gives {min(bounds):g} to {max(bounds):g}: the larger bounds the effort both ways"
            notes.add(KEPT, f"actuator '{name}'", message, element.place)
        limit = min(limit, float(np.abs(bounds).max()))
    if has_limit and law.bias.any():
        bounds = m.actuator_ctrlrange[index].tolist()
        message = f"ctrlrange {bounds} bounds what is desired: inputs_from_mujoco keeps it, other inputs need not"
        notes.add(KEPT, f"actuator '{name}'", message, element.place)
    return limit


def times(factor: Any, numbers: Any) -> Any:
    """The product in double precision; the plant refuses one that is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.multiply(np.float64(factor), np.asarray(numbers, float))
