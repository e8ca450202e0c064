"""`print(model)`: the joints and bodies of a model as a table, and what its files left unused."""

import io
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from jax.core import Tracer
from rich import box
from rich.console import Console, JustifyMethod
from rich.table import Table

if TYPE_CHECKING:
    from .load_report import ReportEntry
    from .model_layout import JointInfo
    from .multibody_model import MultibodyModel

WIDTH = 118


def model_table(model: "MultibodyModel", *, width: int = WIDTH, color: bool = False) -> str:
    """One row per moving joint: coordinates, limits, damping, actuator, and the bodies it carries."""
    console = Console(file=io.StringIO(), width=width, force_terminal=color, color_system="auto" if color else None)
    console.print(joint_table(model))
    console.print()
    console.print(summary(model), style="dim" if color else None, highlight=False, markup=False)
    for line in report_lines(model):
        console.print(line, highlight=False, markup=False, no_wrap=True, overflow="ellipsis")
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue().rstrip("\n")


def joint_table(model: "MultibodyModel") -> Table:
    """The table itself."""
    table = Table(
        title=title(model),
        title_style="bold",
        title_justify="left",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
    )
    headings: tuple[tuple[str, JustifyMethod], ...] = (
        ("joint", "left"), ("kind", "left"), ("carries", "left"), ("kg", "right"), ("q", "right"), ("v", "right"),
        ("limits", "right"), ("damping", "right"), ("effort", "right"),
    )  # fmt: skip
    for heading, justify in headings:
        least = 14 if justify == "left" and heading != "kind" else len(heading) + 1
        table.add_column(heading, justify=justify, no_wrap=True, overflow="ellipsis", min_width=least)
    moving = sorted((j for j in model.layout.joints if j.mobod > 0), key=lambda j: j.mobod)
    for joint in moving:
        table.add_row(*joint_row(model, joint))
    if not moving:
        table.add_row("(none)", *[""] * 8)
    return table


def joint_row(model: "MultibodyModel", joint: "JointInfo") -> list[str]:
    """Cells of one joint; numbers that are traced or batched show as dashes."""
    parameters = model.parameters
    bodies = [b for b, mobod in enumerate(model.topology.body_mobods) if mobod == joint.mobod]
    inboard = model.topology.frame_bodies[joint.child_frame]
    names = model.body_names[inboard] + (f" +{len(bodies) - 1}" if len(bodies) > 1 else "")
    mass = concrete(parameters.body_mass)
    total = "–" if mass is None else f"{sum(mass[b - 1] for b in bodies):.4g}"
    lower, upper = concrete(parameters.position_lower_limits), concrete(parameters.position_upper_limits)
    damping, effort = concrete(parameters.joint_damping), concrete(parameters.effort_limit)
    limits = "–" if lower is None or upper is None else limit_text(lower[joint.all_q], upper[joint.all_q])
    drive = [a.index for a in model.layout.actuators if a.joint == joint.index]
    locked, own = concrete(parameters.velocity_locked), joint.mimics is None
    is_locked = locked is not None and locked[joint.v].any()
    return [
        key_of(model, joint),
        f"{joint.kind}, locked" if is_locked else joint.kind if own else f"{joint.kind}, {mimic_text(model, joint)}",
        names,
        total,
        range_text(joint.q) if own else "",
        range_text(joint.v) if own else "",
        limits,
        "–" if damping is None else " ".join(unique_numbers(damping[joint.all_v])),
        "" if not drive else "–" if effort is None else " ".join(effort_text(effort[a]) for a in drive),
    ]


def mimic_text(model: "MultibodyModel", joint: "JointInfo") -> str:
    """What a joint's position is: `1.5 slide + 0.02`."""
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


def key_of(model: "MultibodyModel", joint: "JointInfo") -> str:
    """What finds the joint: its name, with its instance's where others have that name too."""
    return joint.name if model.joint_names.count(joint.name) == 1 else joint.scoped_name


def effort_text(limit: float) -> str:
    """`±80`, or that there is no limit."""
    return f"±{limit:.4g}" if np.isfinite(limit) else "no limit"


def concrete(leaf: Any) -> np.ndarray | None:
    """A leaf as numbers, or None while it is traced or has a batch."""
    if isinstance(leaf, Tracer) or not hasattr(leaf, "ndim") or leaf.ndim != 1:
        return None
    return np.asarray(leaf, dtype=float)


def limit_text(lower: np.ndarray, upper: np.ndarray) -> str:
    """Limits of one coordinate; a dot-dot where a joint has several."""
    if not (np.isfinite(lower).any() or np.isfinite(upper).any()):
        return ""
    if lower.size == 1:
        return f"{lower[0]:.4g} … {upper[0]:.4g}"
    return "yes"


def unique_numbers(values: np.ndarray) -> list[str]:
    """The different values, in order; none where all are zero."""
    return list(dict.fromkeys(f"{v:.3g}" for v in values)) if np.any(values) else []


def range_text(where: slice) -> str:
    """`3` or `0-6`."""
    return f"{where.start}" if where.stop - where.start == 1 else f"{where.start}-{where.stop - 1}"


def title(model: "MultibodyModel") -> str:
    """Names of the instances that hold bodies."""
    used = sorted(set(model.layout.body_instances[1:]))
    names = [model.layout.instance_names[i] for i in used]
    return ", ".join(names) if names else "empty model"


def summary(model: "MultibodyModel") -> str:
    """Counts, mass, time step and dtype in one line."""
    mass, step = concrete(model.parameters.body_mass), model.parameters.time_step
    batched = isinstance(step, Tracer) or step.ndim > 0
    plant = "continuous" if not model.is_discrete else "discrete" if batched else f"discrete, {float(step):g} s"
    geometry = sum(map(len, model.layout.visual)), sum(map(len, model.layout.collision))
    return (
        f"{model.num_bodies - 1} bodies in {model.topology.num_mobods - 1} that move apart"
        f"{'' if mass is None else f', {mass.sum():.4g} kg'}; {model.num_positions} positions, "
        f"{model.num_velocities} velocities, {model.num_actuators} actuators; "
        f"{count_text(model.num_force_elements, 'force element')}{count_text(model.num_constraints, 'constraint')}"
        f"{geometry[0]} visual and {geometry[1]} collision shapes; {contact_text(model)}{gravity_text(model)}{plant}; "
        f"{np.dtype(model.dtype).name}"
    )


def count_text(count: int, what: str) -> str:
    """How many there are, if any."""
    return f"{count} {what}{'s' if count > 1 else ''}; " if count else ""


def contact_text(model: "MultibodyModel") -> str:
    """How many pairs of shapes may touch, and how that is computed; nothing without collision shapes."""
    contact = model.layout.contact
    if not model.num_collision_geometries:
        return ""
    if contact.contact_model == "none":
        return "no contact; "
    number = len(contact.pairs)
    return f"{number} pair{'' if number == 1 else 's'} may touch ({contact.approximation}); "


def gravity_text(model: "MultibodyModel") -> str:
    """What is unusual about gravity: off, not along -z, or off for some instances."""
    gravity = concrete(model.gravity_vector)
    if gravity is None:
        return ""
    off = [name for name, on in zip(model.layout.instance_names, model.layout.gravity_enabled, strict=True) if not on]
    direction = "" if not gravity[:2].any() and gravity[2] < 0.0 else f"gravity {gravity.tolist()} m/s²; "
    return direction + (f"no gravity on {', '.join(off)}; " if off else "")


def short_place(entry: "ReportEntry") -> str:
    """`file.urdf:12: `, without the folders."""
    return f"{entry.place.replace(chr(92), '/').rsplit('/', 1)[-1]}: " if entry.place else ""


def report_lines(model: "MultibodyModel", limit: int = 6) -> list[str]:
    """What was not simply used, most important first; `model.report()` has it all."""
    entries = [e for e in model.layout.report if e.status != "used"]
    if not entries:
        return []
    counts = Counter(e.status for e in entries)
    lines = ["load report: " + ", ".join(f"{n} {status}" for status, n in counts.items())]
    lines += [f"  {e.status}: {short_place(e)}{e.element}: {e.message}" for e in entries[:limit]]
    if len(entries) > limit:
        lines.append(f"  … and {len(entries) - limit} more: model.report()")
    return lines
