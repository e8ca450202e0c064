"""Tendons: fixed ones are sums of joints; whatever of them would act by itself is refused."""

import numpy as np

from mbjax.model import IGNORED

from ..notes.load_notes import LoadNotes
from .compiled import Compiled


def joints_of_tendon(compiled: Compiled, tendon: int) -> dict[int, float] | None:
    """Coefficients by joint of a fixed tendon; None for a spatial one."""
    m = compiled.m
    start, count = m.tendon_adr[tendon], m.tendon_num[tendon]
    joint_type = int(compiled.mujoco.mjtWrap.mjWRAP_JOINT)
    result: dict[int, float] = {}
    for k in range(start, start + count):
        if int(m.wrap_type[k]) != joint_type:
            return None
        joint = int(m.wrap_objid[k])
        result[joint] = result.get(joint, 0.0) + float(m.wrap_prm[k])
    return result


def check_tendons(compiled: Compiled, notes: LoadNotes) -> None:
    """Springs, dampers, limits, friction and armature of tendons."""
    m = compiled.m
    for tendon in range(m.ntendon):
        name, element = compiled.names["tendon"][tendon], compiled.element("tendon", tendon)
        acting = [
            what
            for what in (
                "stiffness",
                "damping",
                "frictionloss",
                "armature",
                "stiffnesspoly",
                "dampingpoly",
                "springyield",
            )
            if np.any(np.asarray(getattr(m, f"tendon_{what}", np.zeros(m.ntendon))[tendon]) != 0.0)
        ]
        if m.tendon_limited[tendon] and not compiled.disabled("LIMIT"):
            acting.append("range")
        if getattr(m, "tendon_actfrclimited", np.zeros(m.ntendon))[tendon]:
            acting.append("actuatorfrcrange")
        if acting:
            notes.unsupported(element, f"tendon '{name}': its {', '.join(acting)} would act on the joints")
        else:
            message = "acts only through what is attached to it: actuators and equality constraints"
            notes.add(IGNORED, f"tendon '{name}'", message, element.place)
