"""Bodies and joints of the compiled model → links and joints of the record."""

from typing import Any

import numpy as np

from mbjax.forces import PrismaticSpring, RevoluteSpring
from mbjax.joints import BallRpyJoint, PrismaticJoint, QuaternionFloatingJoint, RevoluteJoint, WeldJoint
from mbjax.model import IGNORED, KEPT, USED
from mbjax.spatial import RigidTransform, SpatialInertia, UnitInertia

from ..notes.load_notes import LoadNotes
from ..records.open_ends import NONE_IN_MUJOCO, with_open_ends
from ..records.poses import matrix, pose, roll_pitch_yaw, shift, turn
from ..records.robot_records import WORLD, ForceElementRecord, FrameRecord, JointRecord, LinkRecord, RobotRecord
from .compiled import Compiled

FREE, BALL, SLIDE, HINGE = range(4)  # mjtJoint
THROWN = "a discrete step brings it back at once, where MuJoCo takes solreflimit; set other positions"


def read_bodies(compiled: Compiled, robot: RobotRecord, notes: LoadNotes) -> None:
    """All links and joints, in MuJoCo's order."""
    m = compiled.m
    element = compiled.element("body", 0)
    robot.links.append(LinkRecord(WORLD, element.line, element.place))
    for body in range(1, m.nbody):
        read_body(compiled, body, robot, notes)


def read_body(compiled: Compiled, body: int, robot: RobotRecord, notes: LoadNotes) -> None:
    """One body, its joints, and the massless bodies between these."""
    m, names = compiled.m, compiled.names["body"]
    name, element = names[body], compiled.element("body", body)
    parent = names[m.body_parentid[body]]
    X_PB = pose(m.body_quat[body], m.body_pos[body])
    first, count = m.body_jntadr[body], m.body_jntnum[body]
    if m.body_gravcomp[body] != 0.0:
        notes.unsupported(element, f"body '{name}': gravcomp is not simulated; apply the force in your controller")
    if m.body_mocapid[body] >= 0:
        message = "a mocap body: fixed where the file has it, since nothing moves it"
        notes.add(IGNORED, f"body '{name}'", message, element.place)
        notes.warn("mocap bodies stay where they are", f"'{name}' (line {element.line})")
    if count == 0:
        robot.links.append(LinkRecord(name, element.line, element.place, read_inertia(m, body)))
        weld = f"{parent}_welds_to_{name}"
        robot.joints.append(JointRecord(weld, element.line, element.place, WeldJoint, parent, name, {"X_PF": X_PB}))
        return
    for k, joint in enumerate(range(first, first + count)):
        is_last = k == count - 1
        child = name if is_last else f"{name}@{compiled.names['joint'][joint]}"
        inertia = read_inertia(m, body) if is_last else None
        robot.links.append(LinkRecord(child, element.line, element.place, inertia))
        robot.joints.append(read_joint(compiled, joint, parent, child, X_PB, notes))
        read_spring(compiled, joint, robot, notes)
        parent, X_PB = child, np.eye(4)
    if count > 1:
        message = f"{count} joints on one body: massless bodies '{name}@…' stand between them"
        notes.add(USED, f"body '{name}'", message, element.place)


SAME_FRAME, SAME_ROTATION = 1, 3  # mjtSameFrame: the inertial frame is the body's, or turned like it


def read_inertia(m: Any, body: int) -> SpatialInertia | None:
    """M_BBo_B; None for a massless body."""
    mass = float(m.body_mass[body])
    if mass == 0.0:
        return None
    R, com = matrix(m.body_iquat[body]), np.asarray(m.body_ipos[body], float)
    same = m.body_sameframe[body]  # where the two differ by less than its tolerance, MuJoCo takes them for one
    if same in (SAME_FRAME, SAME_ROTATION):
        R = np.eye(3)
    if same == SAME_FRAME:
        com = np.zeros(3)
    G = R @ np.diag(m.body_inertia[body]) @ R.T / mass + np.dot(com, com) * np.eye(3) - np.outer(com, com)
    six = [float(G[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    return SpatialInertia(mass, com.copy(), UnitInertia(*six), skip_validity_check=True)


def read_joint(
    compiled: Compiled, joint: int, parent: str, child: str, X_PB: np.ndarray, notes: LoadNotes
) -> JointRecord:
    """One joint: at its reference position the child is where the file places it."""
    m, name, element = compiled.m, compiled.names["joint"][joint], compiled.element("joint", joint)
    kind, dof, qpos = int(m.jnt_type[joint]), m.jnt_dofadr[joint], m.jnt_qposadr[joint]
    options: dict[str, Any] = {
        "damping": 0.0 if compiled.disabled("DAMPER") else float(m.dof_damping[dof]),
        "friction": 0.0 if compiled.disabled("FRICTIONLOSS") else float(m.dof_frictionloss[dof]),
        "armature": float(m.dof_armature[dof]),
    }
    if any_of(m, "dof_dampingpoly", dof):
        notes.unsupported(element, f"joint '{name}': damping that is not linear in velocity")
    if any_of(m, "jnt_actgravcomp", joint):
        notes.unsupported(element, f"joint '{name}': gravity compensation by actuators")
    limited = bool(m.jnt_limited[joint]) and not compiled.disabled("LIMIT")
    if kind == FREE:
        q = np.asarray(m.qpos0[qpos : qpos + 7], float)
        options["default_positions"] = [*q[3:], *q[:3]]
        return JointRecord(name, element.line, element.place, QuaternionFloatingJoint, parent, child, options)
    position = np.asarray(m.jnt_pos[joint], float)
    options["X_PF"], X_BM = X_PB @ shift(position), shift(position)
    if kind == BALL:
        if limited:
            notes.unsupported(element, f"joint '{name}': the range of a ball joint is not enforced")
        options["X_BM"] = X_BM
        return JointRecord(name, element.line, element.place, BallRpyJoint, parent, child, options)
    reference, axis = float(m.qpos0[qpos]), np.array(m.jnt_axis[joint], float)
    back = turn(axis, reference) if kind == HINGE else shift(reference * axis)
    options |= {"axis": axis, "default_positions": reference, "X_BM": X_BM @ back}
    if limited:
        ends = float(m.jnt_range[joint, 0]), float(m.jnt_range[joint, 1])
        lower, upper = with_open_ends(ends, NONE_IN_MUJOCO, f"joint '{name}'", element.place, notes)
        options["position_limits"] = lower, upper
        if not lower <= reference <= upper and m.nkey == 0:
            message = f"starts at {reference:g}, outside its range {lower:g} to {upper:g}"
            notes.add(KEPT, f"joint '{name}'", f"{message}; {THROWN}", element.place)
            notes.warn(f"joints start outside their ranges ({THROWN})", f"'{name}' (line {element.line})")
    joint_class = RevoluteJoint if kind == HINGE else PrismaticJoint
    return JointRecord(name, element.line, element.place, joint_class, parent, child, options)


def read_spring(compiled: Compiled, joint: int, robot: RobotRecord, notes: LoadNotes) -> None:
    """The spring of a hinge or slide joint."""
    m, name, element = compiled.m, compiled.names["joint"][joint], compiled.element("joint", joint)
    if any_of(m, "jnt_stiffnesspoly", joint) or any_of(m, "jnt_springyield", joint):
        notes.unsupported(element, f"joint '{name}': a spring that is not linear")
    stiffness, kind = float(m.jnt_stiffness[joint]), m.jnt_type[joint]
    if stiffness == 0.0 or compiled.disabled("SPRING"):
        return
    if kind in (FREE, BALL):
        notes.unsupported(element, f"joint '{name}': springs of ball and free joints are not simulated")
        return
    nominal = float(m.qpos_spring[m.jnt_qposadr[joint]])
    what = "nominal_angle" if kind == HINGE else "nominal_position"
    robot.force_elements.append(
        ForceElementRecord(
            f"{name}_spring",
            element.line,
            element.place,
            RevoluteSpring if kind == HINGE else PrismaticSpring,
            {"joint": name, what: nominal, "stiffness": stiffness},
        )
    )


def any_of(m: Any, field: str, index: int) -> bool:
    """Whether numbers that only newer versions of MuJoCo have are not zero."""
    values = getattr(m, field, None)
    return values is not None and bool(np.any(np.asarray(values[index]) != 0.0))


def read_sites(compiled: Compiled, robot: RobotRecord, notes: LoadNotes) -> None:
    """Sites → frames."""
    m = compiled.m
    taken = {link.name for link in robot.links} | {f"{j.name}_{side}" for j in robot.joints for side in SIDES}
    for site in range(m.nsite):
        element, name = compiled.element("site", site), compiled.names["site"][site]
        free = name
        while free in taken:
            free = f"{free}_site"
        if free != name:
            notes.add(USED, f"site '{name}'", f"frame '{free}': a body or joint has that name", element.place)
        taken.add(free)
        link = compiled.names["body"][m.site_bodyid[site]]
        X_BS = pose(m.site_quat[site], m.site_pos[site])
        robot.frames.append(
            FrameRecord(free, element.line, element.place, link, RigidTransform(X_BS[:3, :3], X_BS[:3, 3]))
        )


SIDES = ("parent", "child")


def mujoco_positions(compiled: Compiled, qpos: Any) -> dict[str, tuple[float, ...]]:
    """Positions by joint, as our joints have them."""
    m, result = compiled.m, {}
    for joint in range(m.njnt):
        at, kind = m.jnt_qposadr[joint], m.jnt_type[joint]
        if kind == FREE:
            q = [*qpos[at + 3 : at + 7], *qpos[at : at + 3]]
        elif kind == BALL:
            q = roll_pitch_yaw(qpos[at : at + 4])
        else:
            q = [qpos[at]]
        result[compiled.names["joint"][joint]] = tuple(map(float, q))
    return result


def mujoco_velocities(compiled: Compiled, qpos: Any, qvel: Any) -> dict[str, tuple[float, ...]]:
    """Velocities by joint: MuJoCo has those of rotations in the body, we in the parent."""
    m, result = compiled.m, {}
    for joint in range(m.njnt):
        q, v, kind = m.jnt_qposadr[joint], m.jnt_dofadr[joint], m.jnt_type[joint]
        if kind == FREE:
            values = [*matrix(qpos[q + 3 : q + 7]) @ qvel[v + 3 : v + 6], *qvel[v : v + 3]]
        elif kind == BALL:
            values = matrix(qpos[q : q + 4]) @ qvel[v : v + 3]
        else:
            values = [qvel[v]]
        result[compiled.names["joint"][joint]] = tuple(map(float, values))
    return result
