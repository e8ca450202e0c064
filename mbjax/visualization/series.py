"""The curves of a trajectory that can be plotted, by name and unit; costly ones are computed on request."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from mbjax.dynamics import kinetic_energy, potential_energy
from mbjax.errors import ModelError
from mbjax.joints import JOINT_KINDS
from mbjax.model import JointInfo, MultibodyModel, matching_places, near_matches
from mbjax.simulation import State, deformable_energies, deformable_momentum

from .force_arrows import contact_results_of, given_contact_results
from .tracks import Track, of_states

GROUPS = ("positions", "velocities", "efforts", "energies", "contact_forces")
ENERGIES = ("kinetic", "potential", "total")


@dataclasses.dataclass(frozen=True)
class Series:
    """One curve: `column` is its column in the array of its group, and any of the `keys` names it."""

    group: str
    name: str
    unit: str
    column: int
    keys: tuple[str, ...]


def all_series(model: MultibodyModel) -> list[Series]:
    """All curves of a trajectory of the model, group by group in the order of `GROUPS`."""
    return [*_coordinates(model), *_efforts(model), *_energies(), *_contact_forces(model)]


def chosen_series(call: str, model: MultibodyModel, names: str | Sequence[str] | None) -> list[Series]:
    """The curves that the names and patterns match, each once, in the model's order; None selects all."""
    known = all_series(model)
    if names is None:
        return known
    if not isinstance(names, str | Iterable):
        raise ModelError(f"{call}: names must be text or a list of texts, got {names!r}.")
    patterns = [names] if isinstance(names, str) else list(names)
    if not patterns:
        raise ModelError(f"{call}: the list of names is empty. Name a curve, or leave names out to plot everything.")
    chosen: set[int] = set()
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise ModelError(f"{call}: names must be text, got {pattern!r}.")
        places = matching_series(pattern, known)
        if not places:
            present = [group for group in GROUPS if any(series.group == group for series in known)]
            keys = [*present, *(key for series in known for key in series.keys)]
            raise ModelError(
                f"{call}: nothing of this model is named '{pattern}'. {near_matches(pattern, keys)} Names are those of "
                "joints, coordinates, actuators and contacts, with * for any letters, or a group: "
                f"{', '.join(present)}."
            )
        chosen |= places
    return [series for place, series in enumerate(known) if place in chosen]


def matching_series(pattern: str, known: Sequence[Series]) -> set[int]:
    """Places of the curves that a name or pattern matches: `positions`, `elbow`, `*knee*`, `velocities:*knee*`."""
    group, colon, rest = pattern.partition(":")
    if colon and group in GROUPS and not rest.startswith(":"):
        return set(matching_places([rest], [series.keys if series.group == group else () for series in known]))
    of_group = {place for place, series in enumerate(known) if series.group == pattern}
    return of_group | set(matching_places([pattern], [series.keys for series in known]))


def values_of(
    call: str, model: MultibodyModel, track: Track, group: str, inputs: Any, outputs: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Times (T,) and an array (T, n) with a column for each series of the group."""
    if group == "positions":
        return track.time, track.q
    if group == "velocities":
        return track.time, track.v
    if group == "efforts":
        if track.u is None:
            raise ModelError(f"{call}: the trajectory holds no net_actuation; leave the efforts out.")
        return track.time[: len(track.u)], track.u
    frames = np.arange(track.num_frames)
    if group == "energies":
        energies = of_states(_kinetic_and_potential, model, track.at(frames))
        kinetic, potential = (np.asarray(x, dtype=np.float64) for x in energies)
        return track.time, np.stack([kinetic, potential, kinetic + potential], axis=1)
    return track.time, _contact_force_sizes(call, model, track, inputs, outputs, frames)


def _coordinates(model: MultibodyModel) -> list[Series]:
    joints = sorted((j for j in model.layout.joints if j.mobod > 0 and j.mimics is None), key=lambda j: j.mobod)
    found = []
    for group, of_joint, unit in (("positions", "position", position_unit), ("velocities", "velocity", velocity_unit)):
        owners = [(joint, s) for joint in joints for s in getattr(joint, f"{of_joint}_suffixes")]
        full, short = (
            getattr(model, f"{of_joint}_names")(add_model_instance_prefix=prefix) for prefix in (True, False)
        )
        for column, (joint, suffix) in enumerate(owners):
            keys = (full[column], short[column], joint.name, joint.scoped_name)
            found.append(Series(group, full[column], unit(joint, suffix), column, keys))
    return found


def position_unit(joint: JointInfo, suffix: str) -> str:
    """Unit of a position, from Drake's suffix for it: `q…` are angles or a quaternion, the others lengths."""
    if not suffix.startswith("q"):
        return "m"
    return "1" if JOINT_KINDS[joint.kind].has_quaternion else "rad"


def velocity_unit(joint: JointInfo, suffix: str) -> str:
    """Unit of a velocity, from Drake's suffix for it: `w…` are angular."""
    return "rad/s" if suffix.startswith("w") else "m/s"


def _efforts(model: MultibodyModel) -> list[Series]:
    full, found = model.actuation_names(), []
    for actuator in sorted(model.layout.actuators, key=lambda a: a.index):
        joint = model.layout.joints[actuator.joint]
        unit = "N m" if joint.velocity_suffixes[0].startswith("w") else "N"
        keys = (full[actuator.index], actuator.name, actuator.scoped_name, joint.name, joint.scoped_name)
        found.append(Series("efforts", full[actuator.index], unit, actuator.index, keys))
    return found


def _energies() -> list[Series]:
    return [Series("energies", name, "J", column, (name, f"{name}_energy")) for column, name in enumerate(ENERGIES)]


def _contact_forces(model: MultibodyModel) -> list[Series]:
    """Series of contact forces: the size of the total force between two geometries."""
    found = []
    for column, (name_A, name_B) in enumerate(model.collision_pairs):
        name = f"{name_A} on {name_B}"
        bodies = [name.rpartition("::")[0].rpartition("::")[2] for name in (name_A, name_B)]
        keys = (name, name_A, name_B, *(name.rpartition("::")[2] for name in (name_A, name_B)), *bodies)
        found.append(Series("contact_forces", name, "N", column, keys))
    return found


def _contact_force_sizes(
    call: str, model: MultibodyModel, track: Track, inputs: Any, outputs: Any, frames: np.ndarray
) -> np.ndarray:
    """Sizes (T, pairs) in N of the total contact force of each pair."""
    if outputs is not None:
        results = given_contact_results(call, outputs, track, frames)
    else:
        results = contact_results_of(call, model, track, inputs, frames)
    sums = np.zeros((len(frames), len(model.collision_pairs), 3))
    if results is not None:
        force = np.asarray(results.force, dtype=np.float64)
        for slot, pair in enumerate(results.pair_indices):
            sums[:, pair] += force[:, slot]
    return np.linalg.norm(sums, axis=-1)


def _kinetic_and_potential(model: MultibodyModel, state: State) -> tuple[Any, Any]:
    """Energies of rigid and deformable bodies, in J; elastic energy is potential."""
    kinetic, potential = kinetic_energy(model, state.q, state.v), potential_energy(model, state.q)
    if model.deformables is None:
        return kinetic, potential
    energies, momentum = deformable_energies(model, state), deformable_momentum(model, state)
    falls = np.array([body.has_gravity for body in model.deformables.layout.bodies])
    work = jnp.where(falls, momentum.mass * (momentum.center_of_mass @ model.parameters.gravity), 0.0)
    return kinetic + jnp.sum(energies.kinetic), potential + jnp.sum(energies.elastic) - jnp.sum(work)
