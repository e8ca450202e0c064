"""Arrows for contact forces, recomputed from the states, and for applied forces and torques."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mbjax.contact import ContactResults
from mbjax.errors import ModelError
from mbjax.kinematics import body_poses_in_world
from mbjax.model import MultibodyModel
from mbjax.simulation import Inputs, Outputs, State, outputs

from .packed_arrays import PackedArrays, steps_of
from .tracks import Track, inputs_at, of_states

VECTOR_STEPS = 32767
POINT_STEPS = 2**21


@dataclasses.dataclass(frozen=True)
class Arrows:
    """Arrows: vectors (F, m, 3) at world points (F, m, 3), over F frames and m slots; zero vectors are not drawn."""

    points: np.ndarray
    vectors: np.ndarray
    names: tuple[str, ...]


def contact_results_of(
    call: str, model: MultibodyModel, track: Track, inputs: Any, frames: np.ndarray
) -> ContactResults | None:
    """Contact results at these frames under these inputs, stacked; None in a model without contact."""
    if not model.layout.contact.pairs:
        return None
    acting = inputs_at(call, track, inputs, frames)
    return of_states(_contact_results, model, track.at(frames), acting)


def given_contact_results(call: str, given: Any, track: Track, frames: np.ndarray) -> ContactResults | None:
    """Selects the contact results at these frames from given `Outputs` or `ContactResults` of the whole trajectory."""
    results = given.contact_results if isinstance(given, Outputs) else given
    if results is None:
        return None
    chosen = frames_of_given(call, given, results if isinstance(results, ContactResults) else None, track, frames)
    force, point, surfaces = jax.tree.map(
        lambda x: np.asarray(x)[chosen], (results.force, results.point, results.surfaces)
    )
    return dataclasses.replace(results, force=force, point=point, surfaces=surfaces)


def frames_of_given(call: str, given: Any, results: Any, track: Track, frames: np.ndarray) -> np.ndarray:
    """Places of the frames in given results; raises `ModelError` unless these are of all times, or of all steps."""
    shape = () if results is None else np.shape(results.force)
    if len(shape) != 3 or shape[0] not in (track.num_frames, track.num_frames - 1):
        raise ModelError(
            f"{call}: outputs must be Outputs with a leading axis of {track.num_frames} times, or of the "
            f"{track.num_frames - 1} steps between them, as jax.vmap stacks them; got {type(given).__name__} with "
            f"contact forces of shape {shape}."
        )
    return np.minimum(frames, shape[0] - 1)


def contact_arrows(model: MultibodyModel, results: ContactResults) -> Arrows:
    """Arrows of each contact's force on body B, or on body A where B is fixed to the world; one for each surface."""
    of_surfaces = [contact.pair_index for contact in results.surfaces]
    slots = [slot for slot, pair in enumerate(results.pair_indices) if pair not in of_surfaces]
    points = [np.asarray(results.point, np.float64)[:, slots]]
    forces = [np.asarray(results.force, np.float64)[:, slots]]
    pairs = [results.pair_indices[slot] for slot in slots]
    for contact in results.surfaces:
        points.append(np.asarray(contact.centroid, np.float64)[:, None])
        forces.append(-np.asarray(contact.spatial_force, np.float64)[:, None, 3:])
        pairs.append(contact.pair_index)
    force, names = np.concatenate(forces, axis=1), []
    for slot, pair in enumerate(pairs):
        A, B = (model.layout.contact.geometries[g] for g in model.layout.contact.pairs[pair])
        by, on = (f"{model.body_names[side.body]}::{side.name}" for side in (A, B))
        if model.is_anchored(B.body):
            force[:, slot] *= -1.0
            on, by = by, on
        names.append(f"{by} on {on}")
    return Arrows(np.concatenate(points, axis=1), force, tuple(names))


def applied_arrows(
    call: str, model: MultibodyModel, track: Track, inputs: Any, frames: np.ndarray
) -> tuple[Arrows, Arrows]:
    """Arrows of the forces and of the torques of `applied_spatial_forces`, at their points."""
    acting = inputs_at(call, track, inputs, frames)
    applied = acting.applied_spatial_forces
    if applied is None:
        nothing = Arrows(np.zeros((len(frames), 0, 3)), np.zeros((len(frames), 0, 3)), ())
        return nothing, nothing
    points = np.asarray(of_states(_applied_points, model, track.at(frames), acting), dtype=np.float64)
    F_Bq_W = np.asarray(applied.F_Bq_W, dtype=np.float64)
    bodies = [model.body_names[model.body_index(body)] for body in applied.bodies]
    forces = Arrows(points, F_Bq_W[..., 3:], tuple(f"applied to {body}" for body in bodies))
    torques = Arrows(points, F_Bq_W[..., :3], tuple(f"torque applied to {body}" for body in bodies))
    return forces, torques


def arrow_record(arrows: Arrows, packed: PackedArrays) -> dict[str, Any]:
    """The record of all nonzero arrows, ordered by slot, with their frames."""
    sizes = np.linalg.norm(arrows.vectors, axis=-1)
    slots, frames = np.nonzero(np.isfinite(sizes.T) & (sizes.T > 0.0))
    points, vectors = arrows.points[frames, slots], arrows.vectors[frames, slots]
    drawn = sizes[frames, slots]
    point_step = max(float(np.abs(points).max(initial=0.0)), 1e-3) / POINT_STEPS
    vector_step = max(float(np.abs(vectors).max(initial=0.0)), 1e-30) / VECTOR_STEPS
    return {
        "names": list(arrows.names),
        "typical": float(np.percentile(drawn, 90)) if len(drawn) else 0.0,
        "largest": float(drawn.max(initial=0.0)),
        "slots": packed.add(slots, "u4", differences=1),
        "frames": packed.add(frames, "u4", differences=1),
        "points": packed.add(steps_of(points, point_step), "i4", differences=1),
        "point_step": point_step,
        "vectors": packed.add(steps_of(vectors, vector_step), "i2", differences=1),
        "vector_step": vector_step,
    }


def _contact_results(model: MultibodyModel, state: State, inputs: Inputs) -> ContactResults | None:
    return outputs(model, state, inputs).contact_results


def _applied_points(model: MultibodyModel, state: State, inputs: Inputs) -> Any:
    """Points p_WBq (k, 3) where spatial forces are applied."""
    applied = inputs.applied_spatial_forces
    assert applied is not None
    bodies = np.array([model.body_index(body) for body in applied.bodies], int)
    X_WB = body_poses_in_world(model, state.q)
    p_BoBq_W = jnp.einsum("kij,kj->ki", X_WB.rotation[bodies], jnp.asarray(applied.p_BoBq_B, model.dtype))
    return X_WB.translation[bodies] + p_BoBq_W
