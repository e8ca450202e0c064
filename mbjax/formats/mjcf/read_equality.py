"""<equality> → ball, weld and coupler constraints."""

from typing import Any

import numpy as np

from mbjax.model import IGNORED, USED

from ..notes.load_notes import LoadNotes
from ..records.poses import pose
from ..records.robot_records import ConstraintRecord, MimicRecord, RobotRecord
from ..xml.tree import XmlElement
from .compiled import Compiled
from .read_bodies import HINGE, SLIDE
from .read_tendons import joints_of_tendon

SOFT = "kept exactly, where MuJoCo's is soft (solref, solimp)"


def read_equality(compiled: Compiled, robot: RobotRecord, notes: LoadNotes, mimic: str) -> None:
    """All that are active at the start; `mimic` says what becomes of those between joints."""
    m = compiled.m
    if compiled.disabled("EQUALITY"):
        return
    for index in range(m.neq):
        name, element = compiled.names["equality"][index], compiled.element("equality", index)
        if not m.eq_active0[index]:
            notes.add(IGNORED, f"equality '{name}'", "not active at the start; left out", element.place)
            continue
        found = read_one(compiled, index, element, notes)
        if found is not None and found[0] == "coupler" and mimic != "couple":
            eliminate(found[1], element, robot, notes, mimic)
        elif found is not None:
            robot.constraints.append(ConstraintRecord(name, element.line, element.place, *found))
            notes.add(USED, f"equality '{name}'", f"a {found[0]} constraint, {SOFT}", element.place)


def eliminate(options: dict[str, Any], element: XmlElement, robot: RobotRecord, notes: LoadNotes, mimic: str) -> None:
    """A coupled joint without a coordinate of its own, or one that moves freely, as the option `mimic` says."""
    joint, leader = options["joint0"], options["joint1"]
    if mimic == "free":
        message = f"does not follow '{leader}', since mimic='free'"
        notes.add(IGNORED, f"joint '{joint}'", message, element.place)
        return
    robot.mimics.append(
        MimicRecord(
            line=element.line,
            joint=joint,
            leader=leader,
            multiplier=options["gear_ratio"],
            offset=options["offset"],
            is_coupled=False,
            place=element.place,
        )
    )
    notes.add(USED, f"joint '{joint}'", f"mimics '{leader}' and has no coordinate of its own", element.place)


def read_one(
    compiled: Compiled, index: int, element: XmlElement, notes: LoadNotes
) -> tuple[str, dict[str, Any]] | None:
    """Kind and options; None, refused or noted, where there is no such constraint."""
    m, E = compiled.m, compiled.mujoco.mjtEq
    name = compiled.names["equality"][index]
    match E(m.eq_type[index]):
        case E.mjEQ_CONNECT:
            return connect(compiled, index)
        case E.mjEQ_WELD:
            return weld(compiled, index)
        case E.mjEQ_JOINT:
            return couple_joints(compiled, index, element, notes)
        case E.mjEQ_TENDON:
            return couple_tendons(compiled, index, element, notes)
    kind = str(E(m.eq_type[index]).name).removeprefix("mjEQ_").lower()
    notes.unsupported(element, f"equality '{name}': constraints of kind {kind}")
    return None


def holders(compiled: Compiled, index: int) -> tuple[bool, int, int]:
    """Whether sites are named, and the two objects."""
    m = compiled.m
    is_site = int(m.eq_objtype[index]) == int(compiled.mujoco.mjtObj.mjOBJ_SITE)
    return is_site, int(m.eq_obj1id[index]), int(m.eq_obj2id[index])


def site_frame(compiled: Compiled, site: int) -> tuple[str, np.ndarray]:
    """The body of a site, and X_BS."""
    m = compiled.m
    return compiled.names["body"][m.site_bodyid[site]], pose(m.site_quat[site], m.site_pos[site])


def connect(compiled: Compiled, index: int) -> tuple[str, dict[str, Any]]:
    """Two points that coincide."""
    is_site, A, B = holders(compiled, index)
    if is_site:
        (body_A, X_A), (body_B, X_B) = site_frame(compiled, A), site_frame(compiled, B)
        return "ball", {"body_A": body_A, "p_AP": X_A[:3, 3], "body_B": body_B, "p_BQ": X_B[:3, 3]}
    data, bodies = np.array(compiled.m.eq_data[index], float), compiled.names["body"]
    return "ball", {"body_A": bodies[A], "p_AP": data[:3], "body_B": bodies[B], "p_BQ": data[3:6]}


def weld(compiled: Compiled, index: int) -> tuple[str, dict[str, Any]]:
    """Two frames that coincide."""
    is_site, A, B = holders(compiled, index)
    if is_site:
        (body_A, X_A), (body_B, X_B) = site_frame(compiled, A), site_frame(compiled, B)
        return "weld", {"body_A": body_A, "X_AP": X_A, "body_B": body_B, "X_BQ": X_B}
    data, bodies = np.array(compiled.m.eq_data[index], float), compiled.names["body"]
    X_AP, X_BQ = pose(data[6:10], data[3:6]), pose((1.0, 0.0, 0.0, 0.0), data[:3])
    return "weld", {"body_A": bodies[A], "X_AP": X_AP, "body_B": bodies[B], "X_BQ": X_BQ}


def couple_joints(
    compiled: Compiled, index: int, element: XmlElement, notes: LoadNotes
) -> tuple[str, dict[str, Any]] | None:
    """q0 - ref0 = a0 + a1 (q1 - ref1)."""
    m, name = compiled.m, compiled.names["equality"][index]
    _, first, second = holders(compiled, index)
    a = np.asarray(m.eq_data[index], float)
    if second < 0:
        notes.unsupported(element, f"equality '{name}': a joint held at a position; use mbjax.lock_joint")
        return None
    if np.any(a[2:5] != 0.0):
        notes.unsupported(element, f"equality '{name}': a polynomial of degree 2 or more between joints")
        return None
    if any(m.jnt_type[joint] not in (HINGE, SLIDE) for joint in (first, second)):
        notes.unsupported(element, f"equality '{name}': joints with more than one degree of freedom")
        return None
    ref = [float(m.qpos0[m.jnt_qposadr[joint]]) for joint in (first, second)]
    names = [compiled.names["joint"][joint] for joint in (first, second)]
    offset = ref[0] + float(a[0]) - float(a[1]) * ref[1]
    return "coupler", {"joint0": names[0], "joint1": names[1], "gear_ratio": float(a[1]), "offset": offset}


def couple_tendons(
    compiled: Compiled, index: int, element: XmlElement, notes: LoadNotes
) -> tuple[str, dict[str, Any]] | None:
    """A fixed tendon over two joints, of constant length: a coupler; or two over one joint each."""
    m, name = compiled.m, compiled.names["equality"][index]
    _, first, second = holders(compiled, index)
    a = np.asarray(m.eq_data[index], float)
    lengths = [joints_of_tendon(compiled, tendon) for tendon in (first, second) if tendon >= 0]
    sums: dict[int, float] = {}
    fixed = [found for found in lengths if found is not None]
    if len(fixed) == len(lengths) and not np.any(a[2:5] != 0.0):
        for sign, found in zip((1.0, -float(a[1])), fixed, strict=False):
            for joint, coefficient in found.items():
                sums[joint] = sums.get(joint, 0.0) + sign * coefficient
    if len(sums) != 2 or any(c == 0.0 for c in sums.values()):
        notes.unsupported(element, f"equality '{name}': tendons that do not couple just two joints linearly")
        return None
    length0 = [float(m.tendon_length0[t]) for t in (first, second) if t >= 0]
    constant = length0[0] + float(a[0]) - (float(a[1]) * length0[1] if second >= 0 else 0.0)
    (j0, c0), (j1, c1) = sums.items()
    names = [compiled.names["joint"][joint] for joint in (j0, j1)]
    return "coupler", {"joint0": names[0], "joint1": names[1], "gear_ratio": -c1 / c0, "offset": constant / c0}
