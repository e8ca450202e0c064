"""<option> and its flags: gravity is used, the rest belongs to MuJoCo's solver or is refused."""

import numpy as np

from mbjax.model import IGNORED

from ..notes.load_notes import LoadNotes
from ..records.robot_records import RobotRecord
from .compiled import Compiled
from .expansion import with_all_below

PHYSICS_OFF = {
    "CONSTRAINT": "constraints: limits, friction, equality and contact",
    "EQUALITY": "equality constraints",
    "FRICTIONLOSS": "joint friction",
    "LIMIT": "joint limits",
    "CONTACT": "contact",
    "PASSIVE": "springs and dampers",
    "SPRING": "springs",
    "DAMPER": "dampers",
    "GRAVITY": "gravity",
    "ACTUATION": "actuators",
    "CLAMPCTRL": "limits of controls",
    "FILTERPARENT": "the filter between a body and its parent",
}


def read_options(compiled: Compiled, robot: RobotRecord, notes: LoadNotes) -> None:
    """Gravity into the record, the rest into the notes."""
    m = compiled.m
    element = next((e for e in compiled.source.elements if e.tag == "option"), compiled.source.root)
    if compiled.disabled("GRAVITY"):
        robot.gravity = (0.0, 0.0, 0.0)
    elif any("gravity" in e.attributes for e in compiled.source.elements if e.tag == "option"):
        x, y, z = map(float, m.opt.gravity)
        robot.gravity = (x, y, z)
    message = f"{m.opt.timestep:g} s in the file; a model steps by load(…, time_step={m.opt.timestep:g})"
    notes.add(IGNORED, "<option timestep>", message, element.place)
    if m.opt.density > 0.0 or m.opt.viscosity > 0.0:
        what = f"a fluid (density {m.opt.density:g}, viscosity {m.opt.viscosity:g}) whose drag is not simulated"
        notes.unsupported(element, what)
    elif np.any(np.asarray(m.opt.wind) != 0.0):
        notes.add(IGNORED, "<option wind>", "without density or viscosity it does nothing", element.place)
    for flag, what in PHYSICS_OFF.items():
        if compiled.disabled(flag):
            notes.add("used", f"<flag {flag.lower()}>", f"{what} off, as the file says", element.place)
    if m.nflex:
        refuse_flexible_bodies(compiled, notes)
    if getattr(m, "nplugin", 0):
        notes.unsupported(element, "plugins are not simulated")


def refuse_flexible_bodies(compiled: Compiled, notes: LoadNotes) -> None:
    """Refuses flexes, those of tetrahedra with the way to a deformable body."""
    m, source = compiled.m, compiled.source
    element = next((e for e in with_all_below(source.elements) if e.tag in ("flexcomp", "flex")), source.root)
    if 3 in np.asarray(m.flex_dim):
        what = (
            "solids of tetrahedra (flex of three dimensions) are not read, since MuJoCo's elasticity and contact have "
            "other laws. Add the body to the plant by add_deformable_body, with its tetrahedra of a file "
            "(mbjax.read_tetrahedra) or of a shape (mbjax.tetrahedra_of)"
        )
    else:
        what = "flexible bodies (flex) of one and two dimensions, which are cables and cloth, are not simulated"
    notes.unsupported(element, what)
