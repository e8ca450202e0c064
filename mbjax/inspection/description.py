"""Tables of a record's numbers, by name and with units: `print(mbjax.describe(model, state))`."""

import io
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jaxtyping import Array
from rich import box
from rich.console import Console, JustifyMethod
from rich.table import Table

from mbjax.contact import ContactResults
from mbjax.errors import ModelError
from mbjax.joints import JOINT_KINDS
from mbjax.model import JointInfo, MultibodyModel, number_text, range_text
from mbjax.simulation.constraint_rows import constraint_rows
from mbjax.simulation.ports import Outputs
from mbjax.simulation.rollout import Trajectory
from mbjax.simulation.state import NodeState, State

from .deformable_description import (
    STATE_HEADINGS,
    TRAJECTORY_HEADINGS,
    are_known,
    centers_of_mass,
    displacements,
    largest_sizes,
    name_of_deformable,
    require_nodes,
)

WIDTH = 1000  # wide enough that no number is cut; a table is only as wide as it needs to be
Block = Table | str


class Description:
    """Tables of a record's numbers by name: `print` it, or let a notebook show it."""

    def __init__(self, blocks: Iterable[Block]):
        console = Console(file=io.StringIO(), width=WIDTH, color_system=None, force_terminal=False)
        for block in blocks:
            console.print(block, highlight=False, markup=False)
        file = console.file
        assert isinstance(file, io.StringIO)
        self.text = "\n".join(line.rstrip() for line in file.getvalue().splitlines()).rstrip()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


def describe(model: MultibodyModel, numbers: State | Outputs | ContactResults | Trajectory) -> Description:
    """Describes the numbers of a state, outputs, contacts or a trajectory in SI units, by the model's names for them.

    For several worlds it shows the least and the most. Inside jit, grad and vmap, where numbers are not known, it says
    so and shows names alone. Contacts are those with a force; see `ContactResults` for frames and signs. Gradients with
    respect to a state are states too, so they are shown alike, with the units of the state.
    """
    blocks: list[Block]
    if isinstance(numbers, State):
        blocks = describe_state(model, numbers)
    elif isinstance(numbers, Outputs):
        blocks = describe_outputs(model, numbers)
    elif isinstance(numbers, ContactResults):
        blocks = describe_contacts(model, numbers)
    elif isinstance(numbers, Trajectory):
        blocks = describe_trajectory(model, numbers)
    else:
        raise ModelError(
            "describe: takes a State, Outputs, ContactResults or Trajectory of the model, got "
            f"{type(numbers).__name__}. {way_out(numbers)}"
        )
    return Description(blocks)


def way_out(numbers: Any) -> str:
    """How to look at what `describe` does not take."""
    if hasattr(numbers, "states"):
        return f"Describe its states: describe(model, x.states); print(x) shows the {type(numbers).__name__} x itself."
    return "Make arrays q and v a State(q, v); print(model) shows the model itself."


def describe_state(model: MultibodyModel, state: State, vdot: Array | None = None) -> list[Block]:
    """Tabulates a state, one line for each coordinate: positions left, velocities right, joint by joint."""
    headings = ["position", "", "", "velocity", "", ""] + ([] if vdot is None else ["acceleration", ""])
    table = new_table(headings, right=(1, 4, 6))
    q = named_cells("state.q", state.q, position_names(model), position_units(model))
    v = named_cells("state.v", state.v, velocity_names(model), velocity_units(model, "s"))
    if vdot is not None:
        rates = named_cells("vdot", vdot, velocity_names(model), velocity_units(model, "s²"))
        v = [(*row, *rate[1:]) for row, rate in zip(v, rates, strict=True)]
    nothing = ("",) * (3 if vdot is None else 5)
    for joint in moving_joints(model):
        of_q, of_v = q[joint.q], v[joint.v]
        for i in range(max(len(of_q), len(of_v))):
            table.add_row(*(of_q[i] if i < len(of_q) else ("",) * 3), *(of_v[i] if i < len(of_v) else nothing))
    blocks: list[Block] = [f"time {cell(state.time)} s{worlds_text(state.q, 1)}", table]
    return blocks + describe_nodes(model, state.nodes)


def describe_nodes(model: MultibodyModel, nodes: NodeState | None) -> list[Block]:
    """Tabulates the deformable bodies of a state, one line for each; nothing in a model without any."""
    deformables = model.deformables
    if deformables is None:
        return []
    if nodes is None:
        return ["", "the state has no nodes: deformable bodies are at rest"]
    require_nodes(deformables, "state", nodes)
    table = new_table(STATE_HEADINGS, right=range(1, 4))
    names = [name_of_deformable(deformables, i) for i in range(deformables.num_bodies)]
    if not are_known(deformables, nodes):
        return ["", filled(table, ((name, *["traced"] * 3) for name in names))]
    rows = zip(
        names,
        map(vector_text, centers_of_mass(deformables, nodes.position)),
        map(cell, displacements(deformables, nodes.position)),
        map(cell, largest_sizes(deformables, np.asarray(nodes.velocity, float))),
        strict=True,
    )
    return ["", filled(table, rows)]


def describe_nodes_over_time(model: MultibodyModel, nodes: NodeState | None) -> list[Block]:
    """Tabulates the deformable bodies of a trajectory, one line for each, with the most over all times."""
    deformables = model.deformables
    if deformables is None:
        return []
    if nodes is None:
        return ["", "the trajectory has no nodes: deformable bodies are at rest"]
    require_nodes(deformables, "trajectory", nodes)
    table = new_table(TRAJECTORY_HEADINGS, right=range(1, 5))
    names = [name_of_deformable(deformables, i) for i in range(deformables.num_bodies)]
    if not are_known(deformables, nodes):
        return ["", filled(table, ((name, *["traced"] * 4) for name in names))]
    start, end = (centers_of_mass(deformables, nodes.position[..., k, :, :]) for k in (0, -1))
    farthest = displacements(deformables, nodes.position, times=1)
    fastest = largest_sizes(deformables, np.asarray(nodes.velocity, float))
    most = [[cell(x.max(axis=-1)) for x in sizes] for sizes in (farthest, fastest)]
    return ["", filled(table, zip(names, map(vector_text, start), map(vector_text, end), *most, strict=True))]


def describe_outputs(model: MultibodyModel, outputs: Outputs) -> list[Block]:
    """Tabulates the state with accelerations, and efforts, reaction forces, constraint forces and contacts if any."""
    blocks = describe_state(model, outputs.state, outputs.generalized_acceleration)
    actuators = sorted(model.layout.actuators, key=lambda a: a.index)
    if actuators:
        units = ["N m" if is_angular(model.layout.joints[a.joint])[0] else "N" for a in actuators]
        rows = named_cells(
            "net_actuation",
            outputs.net_actuation,
            model.actuation_names(add_model_instance_prefix=has_several_instances(model)),
            units,
        )
        blocks += ["", filled(new_table(["actuator", "effort", ""], right=(1,)), rows)]
    if model.joint_names:
        axes = ("torque x", "y", "z", "force x", "y", "z")
        table = new_table(["reaction on the child", *axes], right=range(1, 7))
        values = [cells(outputs.reaction_forces[..., i]) for i in range(6)]
        check_size("reaction_forces", values[0], model.joint_names)
        blocks += [
            "",
            filled(table, zip(model.joint_names, *values, strict=True)),
            "in N m and N, in the joint's frame",
        ]
    rows_of = constraint_rows(model).row_names
    if rows_of:
        rows = zip(rows_of, cells(outputs.constraint_forces), strict=True)
        blocks += ["", filled(new_table(["constraint", "force (N or N m)"], right=(1,)), rows)]
    if outputs.contact_results is not None:
        blocks += ["", *describe_contacts(model, outputs.contact_results)]
    return blocks


def describe_contacts(model: MultibodyModel, results: ContactResults) -> list[Block]:
    """Tabulates contacts, one line for each slot that has a force in any world, and one for each surface."""
    names = results.names(model)
    pairs = [f"{A}/{shape_A} – {B}/{shape_B}" for A, shape_A, B, shape_B in names]
    headings = ["contact (A – B)", "force on B (N)", "|f|", "depth (m)", "slip (m/s)", "point (m)"]
    table = new_table(headings, right=range(1, 6))
    if holds_tracers(results):
        filled(table, ((pair, *["traced"] * 5) for pair in pairs))
        return [f"{len(pairs)} places for contacts, traced", table]
    force, point, depth, slip = (
        np.asarray(x) for x in (results.force, results.point, results.depth, results.slip_speed)
    )
    active = np.asarray(results.is_active).reshape(-1, len(pairs))
    wholes = {contact.pair_index for contact in results.surfaces}
    for i in np.flatnonzero(active.any(axis=0)):
        if results.pair_indices[i] in wholes:
            continue
        on = np.asarray(results.is_active)[..., i]
        f, p = force[..., i, :][on], point[..., i, :][on]
        size = np.linalg.norm(f, axis=-1)
        table.add_row(
            pairs[i] + ("" if on.ndim == 0 else f" in {on.sum()}"),
            vector_text(f),
            range_text(size),
            range_text(depth[..., i][on]),
            range_text(slip[..., i][on]),
            vector_text(p),
        )
    left_out = int(np.sum(results.num_left_out)), int(np.sum(results.num_pairs_left_out))
    line = f"{active.any(axis=0).sum()} of {len(pairs)} places for contacts are taken"
    line += worlds_text(results.depth, 1)
    line += "" if np.all(results.converged) else "; the equation of the step was not solved"
    line += "".join(f"; {n} {what} left out" for n, what in zip(left_out, ("points", "pairs"), strict=True) if n)
    return [line, *(x for x in (table, describe_surfaces(model, results)) if x.row_count)]


def describe_surfaces(model: MultibodyModel, results: ContactResults) -> Table:
    """Tabulates hydroelastic pairs that touch in any world, one line for each."""
    headings = ["surface (A – B)", "faces", "left out", "area (m²)", "force on A (N)", "torque (N m)", "at (m)"]
    table = new_table(headings, right=range(1, 7))
    for contact in results.surfaces:
        area, force, centroid = (np.asarray(x) for x in (contact.area, contact.spatial_force, contact.centroid))
        on = area > 0.0
        if not on.any():
            continue
        A, shape_A, B, shape_B = contact.names(model)
        surface = contact.surface
        table.add_row(
            f"{A}/{shape_A} – {B}/{shape_B}" + ("" if on.ndim == 0 else f" in {on.sum()}"),
            range_text(np.asarray(surface.active).sum(axis=-1)[on]),
            str(int(np.sum(surface.left_out))),
            range_text(area[on]),
            vector_text(force[on][..., 3:]),
            vector_text(force[on][..., :3]),
            vector_text(centroid[on]),
        )
    return table


def describe_trajectory(model: MultibodyModel, trajectory: Trajectory) -> list[Block]:
    """Tabulates each coordinate of a trajectory: its start, its end and its range."""
    table = new_table(["coordinate", "start", "end", "least … most", ""], right=(1, 2, 3))
    names = position_names(model) + velocity_names(model)
    units = [*position_units(model), *velocity_units(model, "s")]
    columns: list[list[str]] = [[], [], []]
    for x in (trajectory.q, trajectory.v):
        for column, part in zip(columns, (x[..., 0, :], x[..., -1, :], x), strict=True):
            column += cells(part)
    check_size("trajectory.q and v", columns[0], names)
    filled(table, zip(names, *columns, units, strict=True))
    times = cell(trajectory.time) if isinstance(trajectory.time, Tracer) else range_text(np.asarray(trajectory.time))
    steps = trajectory.time.shape[-1] - 1
    blocks: list[Block] = [f"{steps} steps, time {times} s{worlds_text(trajectory.q, 2)}", table]
    return blocks + describe_nodes_over_time(model, trajectory.nodes)


def new_table(headings: Iterable[str], right: Iterable[int]) -> Table:
    """An empty table, ruled only under its head."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    right = set(right)
    for i, heading in enumerate(headings):
        justify: JustifyMethod = "right" if i in right else "left"
        table.add_column(heading, justify=justify, no_wrap=True, overflow="ellipsis")
    return table


def filled(table: Table, rows: Iterable[Iterable[str]]) -> Table:
    """Adds rows to the table and returns it."""
    for row in rows:
        table.add_row(*row)
    return table


def named_cells(what: str, values: Any, names: Iterable[str], units: Iterable[str]) -> list[tuple[str, str, str]]:
    """Name, value and unit of each number."""
    names, texts = tuple(names), cells(values)
    check_size(what, texts, names)
    return list(zip(names, texts, units, strict=True))


def check_size(what: str, texts: list[str], names: Iterable[str]) -> None:
    """Raises `ModelError` unless there are as many numbers as the model has names."""
    number = len(tuple(names))
    if len(texts) != number:
        raise ModelError(f"describe: {what} has {len(texts)} number(s), the model needs {number}: is it of this model?")


def cells(values: Any) -> list[str]:
    """A text for each entry along the last axis; its range if there are several worlds."""
    return [cell(values[..., i]) for i in range(values.shape[-1])]


def cell(value: Any) -> str:
    """Text of one number, of the range of several, or "traced" if they are not known."""
    if isinstance(value, Tracer):
        return "traced"
    numbers = np.asarray(value)
    return number_text(numbers[()]) if numbers.ndim == 0 else range_text(numbers)


def vector_text(vectors: np.ndarray) -> str:
    """Text of a vector, like `0.1  0.2  3`; each number is a range if there are several vectors."""
    return "  ".join(cell(vectors[..., i]) for i in range(vectors.shape[-1]))


def holds_tracers(record: Any) -> bool:
    """Whether any number of the record is traced."""
    return any(isinstance(x, Tracer) for x in jax.tree.leaves(record))


def worlds_text(array: Any, axes: int) -> str:
    """Text of the number of worlds if there are several; `axes` is the number of axes of one world's array."""
    number = int(np.prod(array.shape[: len(array.shape) - axes]))
    return f"; {number} worlds, least … most" if len(array.shape) > axes else ""


def is_angular(joint: JointInfo) -> tuple[bool, ...]:
    """Flags of the joint's velocities in rad/s; the others are in m/s."""
    return JOINT_KINDS[joint.kind].angular_velocities


def velocity_units(model: MultibodyModel, per: str) -> list[str]:
    """Units of v (`per` is "s") or of vdot ("s²")."""
    return [f"rad/{per}" if angular else f"m/{per}" for j in moving_joints(model) for angular in is_angular(j)]


def position_units(model: MultibodyModel) -> list[str]:
    """Units of q; quaternions have none."""

    def unit(joint: JointInfo, suffix: str) -> str:
        is_angle = suffix.startswith("q")
        return "m" if not is_angle else "" if "qw" in joint.position_suffixes else "rad"

    return [unit(joint, suffix) for joint in moving_joints(model) for suffix in joint.position_suffixes]


def has_several_instances(model: MultibodyModel) -> bool:
    """Whether moving joints belong to several model instances, so that names need the instance as a prefix."""
    return len({joint.model_instance for joint in moving_joints(model)}) > 1


def position_names(model: MultibodyModel) -> tuple[str, ...]:
    """Names of q, with the instance only where the model has several."""
    return model.position_names(add_model_instance_prefix=has_several_instances(model))


def velocity_names(model: MultibodyModel) -> tuple[str, ...]:
    """Names of v, with the instance only where the model has several."""
    return model.velocity_names(add_model_instance_prefix=has_several_instances(model))


def moving_joints(model: MultibodyModel) -> list[JointInfo]:
    """Joints that have coordinates, in the order of their velocities."""
    return sorted((j for j in model.layout.joints if j.num_velocities), key=lambda j: j.v_start)
