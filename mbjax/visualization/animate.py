"""Turns a model's trajectory into a page that plays it: bodies, ground, contact forces and applied forces."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from mbjax.array_types import Vector3
from mbjax.dynamics import center_of_mass_position_in_world, total_mass
from mbjax.errors import ModelError
from mbjax.geometry.hydroelastic import ContactSurface
from mbjax.kinematics import body_poses_in_world
from mbjax.model import MultibodyModel
from mbjax.number_rules import POSITIVE_OR_INFINITE, checked_numbers
from mbjax.simulation import State, default_state
from mbjax.spatial import RigidTransform

from .animation import Animation, page, require_finite_trajectory
from .animation_data import RecordedMotion, animation_record, frames_that_fit
from .contact_patches import contact_patches
from .deformable_surfaces import DeformableSurfaces, deformable_surfaces, require_color, surface_motion
from .drawn_shapes import drawn_shapes
from .force_arrows import (
    Arrows,
    applied_arrows,
    contact_arrows,
    contact_results_of,
    given_contact_results,
)
from .joint_sliders import joint_sliders
from .soft_contact_arrows import joined, soft_contact_arrows, soft_contact_surfaces, soft_contacts_of
from .tracks import Track, as_tracks, frames_to_show, of_states, one_each, require_model

FRAMES_PER_SECOND = 60.0
MOST_WORLDS_WITH_FORCES = 4


def animate(
    model: MultibodyModel,
    trajectory: Any = None,
    *,
    inputs: Any = None,
    outputs: Any = None,
    contact_forces: bool | None = None,
    ground: bool | float | str = "auto",
    collision_shapes: bool | None = None,
    color_by: str | None = None,
    frames_per_second: float = FRAMES_PER_SECOND,
    title: str | None = None,
    height: int = 520,
    path: str | os.PathLike[str] | None = None,
) -> Animation:
    """Makes an `Animation` of what `rollout` or `simulate` returned; `.save(path)` writes it as one HTML file.

    `trajectory` is a `Trajectory`, a `State` with a leading axis of times, or a plan with `states`; or several: a list,
    a dict by label, or a leading axis of worlds. Without one the default state is shown. The first is opaque, and the
    others are translucent over it; each starts at its own time.

    Contact forces are arrows, in N, on the body that moves; surfaces of hydroelastic contact have colors by pressure.
    They are recomputed from the states shown and the recorded actuation. Where other forces acted, give the `inputs` as
    `rollout` takes them (with several trajectories a list or dict, one each); their applied spatial forces are drawn
    too. Or give `outputs`, `Outputs` along the trajectory, whose contacts are drawn unchanged. `contact_forces=False`
    leaves contacts out, and True computes those of deformable bodies too, which takes a while to compile. With more
    than four worlds only the first has forces.

    `ground="auto"` draws the model's half-spaces, or a faint grid below everything if it has none. `True` draws a floor
    at z = 0, a number draws one at that height in m, and `False` draws nothing. `collision_shapes` adds a button that
    shows collision shapes; None adds it if the model has contact. `color_by` colors deformable bodies by their
    "strain", the principal one that is largest in size, or by their von Mises "stress"; both are averages of the
    elements around each node of the surface. Frames beyond `frames_per_second` are left out (`inf`: none),
    and more where a page of many worlds would exceed 5 MB. With `path` the page is also saved.
    """
    call = "show"
    require_model(call, model)
    if trajectory is None:
        trajectory = default_state(model)
    tracks = as_tracks(call, model, trajectory)
    _check_options(call, ground, title)
    frames_per_second = float(checked_numbers(call, "frames_per_second", frames_per_second, POSITIVE_OR_INFINITE))
    require_color(call, model, color_by)
    each_inputs = one_each(call, "inputs", inputs, trajectory, tracks)
    each_outputs = one_each(call, "outputs", outputs, trajectory, tracks)
    has_contact = bool(model.layout.contact.pairs)
    if contact_forces and not (has_contact or model.has_node_contacts) and outputs is None:
        raise ModelError(
            f"{call}: contact_forces=True, but no two collision geometries of the model may touch. Register a ground "
            'and load with contact_model="point", or leave contact_forces out.'
        )
    motions = []
    surfaces = deformable_surfaces(model)
    num_nodes = 0 if surfaces is None else len(surfaces.nodes)
    shown = [_frames(track, frames_per_second, len(tracks), model.num_bodies, num_nodes) for track in tracks]
    for world, track in enumerate(tracks):
        with_forces = world == 0 or len(tracks) <= MOST_WORLDS_WITH_FORCES
        motions.append(
            _motion(
                call, model, world, track, shown[world],
                each_inputs[world] if with_forces else None, each_outputs[world] if with_forces else None,
                with_forces and contact_forces is not False, contact_forces is True, surfaces, color_by,
            )
        )  # fmt: skip
    shapes = drawn_shapes(model, has_contact if collision_shapes is None else collision_shapes)
    record, packed = animation_record(
        shapes.seen, model.body_names, body_parents(model), motions, _title(model) if title is None else title,
        touching=shapes.touching, ground=ground, sliders=joint_sliders(model, tracks[0].q[shown[0]]),
        surfaces=surfaces, color_by=color_by,
    )  # fmt: skip
    animation = Animation(page(record, packed), len(motions[0].times), height)
    if path is not None:
        animation.save(path)
    return animation


def _frames(track: Track, frames_per_second: float, num_worlds: int, num_bodies: int, num_nodes: int) -> np.ndarray:
    shown = frames_to_show(track.time, frames_per_second)
    return shown[frames_that_fit(num_worlds, len(shown), num_bodies, num_nodes)]


def _motion(
    call: str,
    model: MultibodyModel,
    world: int,
    track: Track,
    frames: np.ndarray,
    inputs: Any,
    outputs: Any,
    contact_forces: bool,
    computes_soft_contacts: bool,
    surfaces: DeformableSurfaces | None,
    color_by: str | None,
) -> RecordedMotion:
    times = np.asarray(track.time, dtype=np.float64)[frames]
    if not np.all(np.diff(times) > 0.0):
        raise ModelError(f"{call}: the times of trajectory {world} must increase; they go from {times[0]} on.")
    states = track.at(frames)
    X_WB, p_WScm = of_states(_poses_and_mass_center, model, states)
    rotation, translation = (np.asarray(x, dtype=np.float64) for x in (X_WB.rotation, X_WB.translation))
    require_finite_trajectory(call, model.body_names, rotation, translation, times, world)
    center = np.asarray(p_WScm, dtype=np.float64) if total_mass(model) > 0.0 else None
    deformed = None
    if surfaces is not None:
        assert track.nodes is not None
        deformed = surface_motion(call, model, surfaces, track.nodes.position[frames], times, color_by)
    arrows: dict[str, Arrows] = {}
    shown: list[ContactSurface] = []
    if contact_forces:
        given = given_contact_results(call, outputs, track, frames) if outputs is not None else None
        results = given if outputs is not None else contact_results_of(call, model, track, inputs, frames)
        if results is not None:
            arrows["contact"] = contact_arrows(model, results)
            shown += [contact.surface for contact in results.surfaces]
        soft = soft_contacts_of(call, model, track, outputs, inputs, frames, computes_soft_contacts)
        if soft is not None:
            arrows["contact"] = joined(arrows.get("contact"), soft_contact_arrows(model, soft))
            shown += soft_contact_surfaces(model, states)
    patches = contact_patches(shown) if shown else None
    if inputs is not None:
        forces, torques = applied_arrows(call, model, track, inputs, frames)
        found = {"applied_force": forces, "applied_torque": torques}
        arrows |= {kind: each for kind, each in found.items() if np.any(each.vectors)}
    return RecordedMotion(
        times, rotation, translation, track.num_frames, track.label, center, arrows, patches, deformed
    )


def _poses_and_mass_center(model: MultibodyModel, state: State) -> tuple[RigidTransform, Vector3]:
    return body_poses_in_world(model, state.q), center_of_mass_position_in_world(model, state.q)


def _check_options(call: str, ground: Any, title: Any) -> None:
    if (isinstance(ground, str) and ground != "auto") or not isinstance(ground, (str, bool, int, float)):
        raise ModelError(f'{call}: ground must be "auto", True, False or a height in m, got {ground!r}.')
    if not isinstance(ground, str) and not np.isfinite(ground):
        raise ModelError(f"{call}: ground must be a finite height in m, got {ground!r}.")
    if title is not None and not isinstance(title, str):
        raise ModelError(f"{call}: title must be text, got {title!r}.")


def _title(model: MultibodyModel) -> str:
    names = [name for name in model.layout.instance_names[1:] if name != "DefaultModelInstance"]
    return ", ".join(names) or "mbjax"


def body_parents(model: MultibodyModel) -> list[int]:
    """Index of each body's parent body; -1 for a body without one, such as the world."""
    parents = [-1] * model.num_bodies
    for joint in model.layout.joints:
        parent, child = (model.topology.frame_bodies[f] for f in (joint.parent_frame, joint.child_frame))
        parents[child] = parent
    return parents
