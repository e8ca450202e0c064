"""Text of `print(model)`: joints and bodies as a table, and the parts of its files that need attention."""

import io
from collections import Counter
from typing import Any

import numpy as np
from jax.core import Tracer
from rich.console import Console

from .deformable_table import deformable_table
from .html_text import html_table
from .known_leaves import UNKNOWN, concrete
from .load_report import ReportEntry
from .model_layout import JointInfo
from .multibody_model import MultibodyModel
from .whole_table import Column, WholeTable

WIDTH = 118  # columns of text; a table is wider where it must be
LONGEST_ENTRY = 240  # characters of a line on the report; the report itself has all
MAX_BASES_NAMED = 6
MAX_INSTANCES_NAMED = 3
ARMATURE = (
    "armature: inertia of the rotors as the joint feels it, with rotor inertia × gear ratio², kg m² or kg; it is part "
    "of M"
)


def model_table(model: MultibodyModel, *, width: int | None = None, color: bool = False) -> str:
    """Table with a row per moving joint: coordinates, limits, damping, actuator, and the bodies it carries.

    Without a width the table is as wide as it must be.
    """
    tables = [table for table in (joint_table(model), deformable_table(model)) if table is not None]
    width = max(WIDTH, *(table.width for table in tables)) if width is None else width
    console = Console(file=io.StringIO(), width=width, force_terminal=color, color_system="auto" if color else None)
    print_model(console, model)
    for line in report_lines(model):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue().rstrip("\n")


def model_line(model: MultibodyModel) -> str:
    """Name and sizes of the model in one line, its `repr`."""
    names = title(model).split(", ")
    more = len(names) - MAX_INSTANCES_NAMED
    name = ", ".join(names[:MAX_INSTANCES_NAMED]) + (f" and {more} more" if more > 0 else "")
    return (
        f"<MultibodyModel {name}: {model.num_bodies - 1} bodies, {model.num_positions} positions, "
        f"{model.num_velocities} velocities, {model.num_actuators} actuators; "
        f"{deformables_text(model)}print(model) shows the table>"
    )


def model_html(model: MultibodyModel) -> str:
    """The table as HTML, for notebooks, with the same lines around it."""
    table = joint_table(model)
    has_armature = any(column.heading == "armature" for column in table.columns)
    notes = [ARMATURE if has_armature else "", summary(model), "\n".join(report_lines(model))]
    soft = deformable_table(model)
    below = "" if soft is None else html_table(soft.title, soft.columns)
    return html_table(table.title, table.columns, [free_base_text(model, "base='fixed'"), *notes]) + below


def print_model(console: Console, model: MultibodyModel, weld: str = "base='fixed'") -> None:
    """Prints free bases, the table and the counts; `weld` is the option that welds free bases."""
    bases = free_base_text(model, weld)
    if bases:
        console.print(bases, highlight=False, markup=False, soft_wrap=True)
    table = joint_table(model)
    console.print(table)
    console.print()
    if any(column.heading == "armature" for column in table.columns):
        console.print(ARMATURE, style="dim", highlight=False, markup=False)
        console.print("\n" if model.deformables is not None else "", end="")
    soft = deformable_table(model)
    if soft is not None:
        console.print(soft)
        console.print()
    console.print(summary(model), style="dim", highlight=False, markup=False)


def free_base_text(model: MultibodyModel, weld: str) -> str:
    """Says which bodies float because their file attaches them to nothing; empty if none does."""
    joints = [(body, body.inboard_joint) for body in model.layout.bodies if body.source and body.is_floating]
    free = [body.name for body, joint in joints if joint is not None and joint.source is None]
    if not free:
        return ""
    more = len(free) - MAX_BASES_NAMED
    names = ", ".join(f"'{name}'" for name in free[:MAX_BASES_NAMED]) + (f" and {more} more" if more > 0 else "")
    if len(free) == 1:
        return f"free base: {names} is not attached to the world; pass {weld} to weld it"
    return f"free bases: {names} are not attached to the world; pass {weld} to weld them"


def joint_table(model: MultibodyModel) -> WholeTable:
    """The table of joints; columns of damping, friction, armature and gears only where one has a number."""
    joints = sorted((j for j in model.layout.joints if j.mobod > 0), key=lambda j: j.mobod)

    def column(heading: str, cell: Any, is_text: bool = False) -> Column:
        return Column(heading, [cell(model, joint) for joint in joints], is_text)

    columns = [
        Column("joint", [key_of(model, joint) for joint in joints] or ["(none)"], is_text=True),
        column("kind", kind_text, is_text=True),
        column("carries", carried_text, is_text=True),
        column("kg", mass_text),
        column("q", lambda _, joint: range_text(joint.q) if joint.mimics is None else ""),
        column("v", lambda _, joint: range_text(joint.v) if joint.mimics is None else ""),
        column("limits", limits_of),
    ]
    optional = [
        column("damping", lambda m, joint: numbers_text(m.parameters.joint_damping, joint)),
        column("friction", lambda m, joint: numbers_text(m.parameters.joint_friction, joint)),
        column("armature", armature_text),
        column("gear ratio", gear_text),
        column("effort", effort_of),
    ]
    columns += [c for c in optional if c.heading == "effort" or any(c.cells)]
    if not joints:
        columns = [columns[0], *(Column(c.heading, [""], c.is_text) for c in columns[1:])]
    return WholeTable(title(model), columns)


def kind_text(model: MultibodyModel, joint: JointInfo) -> str:
    """Kind of a joint, and whether it is locked or what it mimics."""
    locked = concrete(model.parameters.velocity_locked)
    if locked is not None and locked[joint.v].any():
        return f"{joint.kind}, locked"
    return joint.kind if joint.mimics is None else f"{joint.kind}, {mimic_text(model, joint)}"


def carried_bodies(model: MultibodyModel, joint: JointInfo) -> list[int]:
    """Indices of the bodies that move with the joint, welded to each other."""
    return [b for b, mobod in enumerate(model.topology.body_mobods) if mobod == joint.mobod]


def carried_text(model: MultibodyModel, joint: JointInfo) -> str:
    """Name of the body that the joint holds, and how many bodies are welded to it."""
    others = len(carried_bodies(model, joint)) - 1
    name = model.body_names[model.topology.frame_bodies[joint.child_frame]]
    return f"{name} +{others}" if others else name


def mass_text(model: MultibodyModel, joint: JointInfo) -> str:
    """Mass of all bodies that the joint carries, in kg."""
    mass = concrete(model.parameters.body_mass)
    return UNKNOWN if mass is None else f"{sum(mass[b - 1] for b in carried_bodies(model, joint)):.4g}"


def limits_of(model: MultibodyModel, joint: JointInfo) -> str:
    """Limits of the joint's positions."""
    lower, upper = concrete(model.parameters.position_lower_limits), concrete(model.parameters.position_upper_limits)
    return UNKNOWN if lower is None or upper is None else limit_text(lower[joint.all_q], upper[joint.all_q])


def numbers_text(leaf: Any, joint: JointInfo) -> str:
    """Distinct numbers of a leaf over the joint's velocities; empty where all are zero."""
    numbers = concrete(leaf)
    return UNKNOWN if numbers is None else " ".join(unique_numbers(numbers[joint.all_v]))


def actuators_of(model: MultibodyModel, joint: JointInfo) -> list[int]:
    """Rows of the actuators that drive the joint."""
    return [a.index for a in model.layout.actuators if a.joint == joint.index]


def armature_text(model: MultibodyModel, joint: JointInfo) -> str:
    """The joint's armature plus the reflected inertia of its rotors; empty if it is zero."""
    drive, parameters = actuators_of(model, joint), model.parameters
    own, reflected = concrete(parameters.joint_armature), 0.0
    if own is None:
        return UNKNOWN
    if drive:
        rotor, gear = concrete(parameters.rotor_inertia), concrete(parameters.gear_ratio)
        if rotor is None or gear is None:
            return UNKNOWN
        reflected = float(np.sum(rotor[drive] * gear[drive] ** 2))
    return " ".join(dict.fromkeys(f"{a:.4g}" for a in own[joint.all_v] + reflected if a))


def gear_text(model: MultibodyModel, joint: JointInfo) -> str:
    """Gear ratios of the joint's actuators; empty where all are 1."""
    drive, gear = actuators_of(model, joint), concrete(model.parameters.gear_ratio)
    if not drive or gear is None:
        return UNKNOWN if drive else ""
    return " ".join(f"{g:.4g}" for g in gear[drive]) if np.any(gear[drive] != 1.0) else ""


def effort_of(model: MultibodyModel, joint: JointInfo) -> str:
    """Effort limits of the joint's actuators; empty where it has none."""
    drive, effort = actuators_of(model, joint), concrete(model.parameters.effort_limit)
    if not drive or effort is None:
        return UNKNOWN if drive else ""
    return " ".join(effort_text(effort[a]) for a in drive)


def mimic_text(model: MultibodyModel, joint: JointInfo) -> str:
    """Mimic relation of a joint, as in `1.5 slide + 0.02`."""
    assert joint.mimics is not None
    row = [mobod for mobod, _ in model.topology.followers].index(joint.mobod)
    leader = key_of(model, model.layout.joints[joint.mimics])
    multipliers, offsets = (
        concrete(leaf) for leaf in (model.parameters.mimic_multiplier, model.parameters.mimic_offset)
    )
    if multipliers is None or offsets is None:
        return f"mimics {leader}"
    offset = f" {'-' if offsets[row] < 0.0 else '+'} {abs(offsets[row]):.4g}" if offsets[row] else ""
    return f"{multipliers[row]:.4g} {leader}{offset}"


def key_of(model: MultibodyModel, joint: JointInfo) -> str:
    """Name that finds the joint: prefixed by its instance where other joints share it."""
    return joint.name if model.joint_names.count(joint.name) == 1 else joint.scoped_name


def effort_text(limit: float) -> str:
    """Effort limit as `±80`, or "no limit"."""
    return f"±{limit:.4g}" if np.isfinite(limit) else "no limit"


def limit_text(lower: np.ndarray, upper: np.ndarray) -> str:
    """Limits of one coordinate as `lower … upper`; "yes" for several, empty for none."""
    if not (np.isfinite(lower).any() or np.isfinite(upper).any()):
        return ""
    if lower.size == 1:
        return f"{lower[0]:.4g} … {upper[0]:.4g}"
    return "yes"


def unique_numbers(values: np.ndarray) -> list[str]:
    """Distinct values as text, in order; none where all are zero."""
    return list(dict.fromkeys(f"{v:.3g}" for v in values)) if np.any(values) else []


def range_text(where: slice) -> str:
    """Indices of a slice as `3` or `0-6`."""
    return f"{where.start}" if where.stop - where.start == 1 else f"{where.start}-{where.stop - 1}"


def title(model: MultibodyModel) -> str:
    """Names of the instances that hold bodies, as the table's title."""
    soft = () if model.deformables is None else model.deformables.layout.bodies
    used = sorted({*model.layout.body_instances[1:], *(body.model_instance for body in soft)})
    names = [model.layout.instance_names[i] for i in used]
    return ", ".join(names) if names else "empty model"


def summary(model: MultibodyModel) -> str:
    """Counts, mass, time step and dtype in one line."""
    mass, step = concrete(model.parameters.body_mass), model.parameters.time_step
    batched = isinstance(step, Tracer) or step.ndim > 0
    plant = "continuous" if not model.is_discrete else "discrete" if batched else f"discrete, {float(step):g} s"
    geometry = sum(map(len, model.layout.visual)), sum(map(len, model.layout.collision))
    return (
        f"{model.num_bodies - 1} bodies in {model.topology.num_mobods - 1} that move apart"
        f"{'' if mass is None else f', {mass.sum():.4g} kg'}; {model.num_positions} positions, "
        f"{model.num_velocities} velocities, {model.num_actuators} actuators; "
        f"{deformables_text(model)}"
        f"{count_text(model.num_force_elements, 'force element')}{count_text(model.num_constraints, 'constraint')}"
        f"{geometry[0]} visual and {geometry[1]} collision shapes; {contact_text(model)}{gravity_text(model)}{plant}; "
        f"{np.dtype(model.dtype).name}"
    )


def deformables_text(model: MultibodyModel) -> str:
    """Counts of deformable bodies and their nodes, followed by "; "; empty without any."""
    if model.deformables is None:
        return ""
    count = model.deformables.num_bodies
    bodies = "1 deformable body" if count == 1 else f"{count} deformable bodies"
    return f"{bodies} of {model.deformables.mesh.num_nodes} nodes; "


def count_text(count: int, what: str) -> str:
    """A count with its noun, followed by "; "; empty for zero."""
    return f"{count} {what}{'s' if count > 1 else ''}; " if count else ""


def contact_text(model: MultibodyModel) -> str:
    """Number of pairs of shapes that may touch, and the approximation used; empty without collision shapes."""
    contact = model.layout.contact
    if not model.num_collision_geometries:
        return ""
    if contact.contact_model == "none":
        return "no contact; "
    number = len(contact.pairs)
    return f"{number} pair{'' if number == 1 else 's'} may touch ({contact.approximation}); "


def gravity_text(model: MultibodyModel) -> str:
    """Unusual gravity: not along -z, or off for some instances; else empty."""
    gravity = concrete(model.gravity_vector)
    if gravity is None:
        return ""
    off = [name for name, on in zip(model.layout.instance_names, model.layout.gravity_enabled, strict=True) if not on]
    direction = "" if not gravity[:2].any() and gravity[2] < 0.0 else f"gravity {gravity.tolist()} m/s²; "
    return direction + (f"no gravity on {', '.join(off)}; " if off else "")


def short_place(entry: ReportEntry) -> str:
    """Place of an entry as `file.urdf:12: `, without the folders."""
    return f"{entry.place.replace(chr(92), '/').rsplit('/', 1)[-1]}: " if entry.place else ""


def report_lines(model: MultibodyModel, limit: int = 6) -> list[str]:
    """The report's entries that need attention, in the report's order; `model.report()` returns all entries."""
    entries = [e for e in model.layout.report if e.status != "used"]
    if not entries:
        return []
    counts = Counter(e.status for e in entries)
    lines = ["load report: " + ", ".join(f"{n} {status}" for status, n in counts.items())]
    shown = [f"  {e.status}: {short_place(e)}{e.element}: {e.message}" for e in entries[:limit]]
    cut = [line if len(line) <= LONGEST_ENTRY else f"{line[:LONGEST_ENTRY].rstrip()} …" for line in shown]
    if len(entries) > limit:
        return [*lines, *cut, f"  … and {len(entries) - limit} more: model.report()"]
    return [*lines, *cut, *(["  model.report() has these lines in full"] if cut != shown else [])]
