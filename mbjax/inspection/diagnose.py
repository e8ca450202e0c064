"""Diagnoses a model, a state or inputs in words: bad numbers, and the first quantity of a step that they spoil."""

import dataclasses
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from mbjax.dynamics import bias_term, mass_matrix
from mbjax.errors import ModelError, ModelWarning
from mbjax.execution import require_one_model
from mbjax.forces import force_elements_contribution
from mbjax.joints import JOINT_KINDS
from mbjax.kinematics import body_poses_in_world, body_spatial_velocities_in_world
from mbjax.model import MultibodyModel, find_numbers, sentences
from mbjax.number_rules import is_known
from mbjax.simulation.constraint_rows import constraint_rows
from mbjax.simulation.output_ports import outputs as live_outputs
from mbjax.simulation.ports import Inputs, as_inputs
from mbjax.simulation.state import State, as_state, default_state
from mbjax.simulation.step import step


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """Findings of `diagnose`, one sentence each; false if there are none. It prints one sentence per line."""

    findings: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.findings)

    def __str__(self) -> str:
        return "\n".join(self.findings) if self.findings else "nothing wrong was found"


class Stage(NamedTuple):
    """A quantity of a step with one row per owner, and the owners' names."""

    what: str
    values: Any
    owners: Sequence[str]


def diagnose(model: MultibodyModel, state: State | None = None, inputs: Any = None) -> Diagnosis:
    """Finds bad numbers of a model and, given a state or inputs, the first quantity of a step that is not finite.

    It needs known numbers of one world. For many worlds, find the bad ones by `jax.vmap(mbjax.model_status)` first.
    Given `inputs` without `state`, it uses the default state. It compiles several functions, so do not call it in a
    loop.
    """
    require_one_model(model, "diagnose")
    if not is_known(model, state, inputs):
        raise ModelError("diagnose: the numbers are traced; call it outside of jit, or count by mbjax.model_status.")
    found = [sentence for finding in find_numbers(model) for sentence in sentences(model, finding)]
    if state is None and inputs is None:
        return Diagnosis(tuple(found))
    state = as_state(model, default_state(model) if state is None else state)
    found += list(bad_coordinates(model, state))
    checked, said = checked_inputs(model, inputs)
    found += said
    first = next((words for stage in stages(model, state, checked) for words in first_bad(stage)), None)
    return Diagnosis(tuple(found if first is None else [*found, first]))


def bad_coordinates(model: MultibodyModel, state: State) -> Iterator[str]:
    """Sentences about numbers of the state that are not finite, and about zero quaternions."""
    for what, values, names in (("q", state.q, model.position_names()), ("v", state.v, model.velocity_names())):
        for k in np.flatnonzero(~np.isfinite(np.asarray(values))):
            yield f"state.{what} of '{names[k]}' is {values[k]}; must be finite."
    if state.nodes is not None and model.deformables is not None:
        mesh = model.deformables.mesh
        for what, values in (("position", state.nodes.position), ("velocity", state.nodes.velocity)):
            for k in np.flatnonzero(~np.isfinite(np.asarray(values)).all(-1)):
                body = model.deformables.names[int(mesh.body_of_node[k])]
                yield f"state.nodes.{what} of node {k}, of deformable body '{body}', is {values[k]}; must be finite."
    for joint in model.layout.joints:
        has_quaternion = joint.num_positions and JOINT_KINDS[joint.kind].has_quaternion
        if has_quaternion and not np.any(np.asarray(state.q[joint.q_start : joint.q_start + 4])):
            yield f"the quaternion of joint '{joint.name}' in state.q is zero, and taken as the identity."


def checked_inputs(model: MultibodyModel, inputs: Any) -> tuple[Inputs, list[str]]:
    """Checked inputs of one world, and sentences about their errors, warnings and non-finite numbers."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        try:
            checked = as_inputs(model, inputs)
        except ModelError as error:
            return Inputs(), [str(error)]
    said = [str(warning.message) for warning in caught]
    for path, values in jax.tree_util.tree_leaves_with_path(checked):
        if not np.isfinite(np.asarray(values)).all():
            said.append(f"inputs{jax.tree_util.keystr(path)} is not finite at {first_place(values)}.")
    return checked, said


def stages(model: MultibodyModel, state: State, inputs: Inputs) -> Iterator[Stage]:
    """The quantities of a step, in the order in which each follows from those before it."""
    q, v = state.q, state.v
    bodies, velocities = model.body_names, model.velocity_names()
    poses = body_poses_in_world(model, q)
    yield Stage("pose of body", np.concatenate([poses.rotation.reshape(-1, 9), poses.translation], 1), bodies)
    yield Stage("spatial velocity of body", body_spatial_velocities_in_world(model, q, v), bodies)
    yield from mass_matrix_stages(np.asarray(mass_matrix(model, q)), velocities)
    forces = force_elements_contribution(model, q, v)
    yield Stage("force of gravity and force elements on body", forces.body, bodies)
    yield Stage("force of joint damping, friction and springs along velocity", forces.generalized, velocities)
    yield Stage("Coriolis term of velocity", bias_term(model, q, v), velocities)
    after, ports = step(model, state, inputs) if model.is_discrete else (state, live_outputs(model, state, inputs))
    rows = [name for constraint in model.constraints for name in constraint.row_names]
    if len(rows) != ports.constraint_forces.shape[0]:
        rows = list(map(str, constraint_rows(model).names))
    yield Stage("effort of actuator", ports.net_actuation, model.actuator_names)
    yield Stage("contact force along velocity", ports.generalized_contact_forces, velocities)
    yield Stage("force of constraint", ports.constraint_forces, rows)
    yield Stage("acceleration of velocity", ports.generalized_acceleration, velocities)
    yield Stage("next position", after.q, model.position_names())
    if after.nodes is not None:
        yield Stage("next position of node", after.nodes.position, [str(k) for k in range(len(after.nodes.position))])


def mass_matrix_stages(M: Float[np.ndarray, "nv nv"], velocities: Sequence[str]) -> Iterator[Stage]:
    """Stages of the mass matrix: its entries and, if they are finite, whether it is positive definite.

    Entries in kg and kg m² do not compare: the eigenvalues are those with each velocity in the unit in which its own
    entry is 1.
    """
    yield Stage("mass matrix in the row of velocity", M, velocities)
    if not M.size or not np.isfinite(M).all():
        return
    diagonal = np.diag(M).astype(float)
    least = int(np.argmin(diagonal))
    if diagonal[least] <= 0.0:
        what = f"mass matrix, whose diagonal entry is {diagonal[least]:.3g}, along velocity"
        yield Stage(what, [np.nan], [velocities[least]])
        return
    scale = np.sqrt(diagonal)
    values, vectors = np.linalg.eigh(M.astype(float) / scale[:, None] / scale)
    if values[0] <= np.finfo(M.dtype).eps * len(M):
        worst = velocities[int(np.argmax(np.abs(vectors[:, 0])))]
        size = f"{values[0]:.3g}{' (0 but for rounding)' if values[0] > 0.0 else ''}"
        what = f"mass matrix, whose smallest eigenvalue is {size} once scaled to a diagonal of 1,"
        yield Stage(f"{what} along velocity", [np.nan], [worst])


def first_bad(stage: Stage) -> Iterator[str]:
    """A sentence about the stage's first row that is not finite, if any."""
    rows = np.asarray(stage.values)
    bad = np.flatnonzero(~np.isfinite(rows.reshape(rows.shape[0], -1)).all(-1)) if rows.size else []
    if len(bad):
        k = int(bad[0])
        owner = stage.owners[k] if k < len(stage.owners) else str(k)
        if stage.what.startswith("mass matrix, whose"):
            yield f"the {stage.what} '{owner}', is not positive definite: no acceleration follows from it."
        else:
            yield f"the first quantity of a step that is not finite is the {stage.what} '{owner}'."


def first_place(values: Any) -> str:
    """Index of the first number that is not finite, as text."""
    return str([int(k) for k in np.argwhere(~np.isfinite(np.asarray(values)))[0]])
