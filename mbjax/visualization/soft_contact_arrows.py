"""Contact of deformable bodies in pictures: an arrow for the force of each pair, and the surface where it touches."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from mbjax.contact import DeformableContacts
from mbjax.geometry.hydroelastic import ContactSurface
from mbjax.model import MultibodyModel
from mbjax.simulation import Inputs, Outputs, State, deformable_contact_surfaces, outputs

from .force_arrows import Arrows, frames_of_given
from .tracks import Track, inputs_at, of_states


def soft_contacts_of(
    call: str, model: MultibodyModel, track: Track, given: Any, inputs: Any, frames: np.ndarray, wanted: bool
) -> DeformableContacts | None:
    """Contacts of deformable bodies at these frames, from given `Outputs`, or computed if `wanted`; else None."""
    if not model.has_node_contacts:
        return None
    if given is None:
        if not wanted:
            return None
        acting = inputs_at(call, track, inputs, frames)
        return of_states(_deformable_contacts, model, track.at(frames), acting)
    contacts = given.deformable_contacts if isinstance(given, Outputs) else None
    if contacts is None:
        return None
    chosen = frames_of_given(call, given, contacts, track, frames)
    return jax.tree.map(lambda x: np.asarray(x)[chosen], contacts)


def soft_contact_arrows(model: MultibodyModel, contacts: DeformableContacts) -> Arrows:
    """Arrows of the force of each pair at the centroid of its surface, on the geometry's body if that can move.

    Otherwise they are on the deformable body. Of two deformable bodies they are on the second.
    """
    points, vectors, names = [], [], []
    assert model.deformables is not None
    bodies = model.deformables.layout.bodies
    for A, B in contacts.pairs:
        soft, geometry = model.deformables.names[A], model.collision_geometry_name(B)
        contact = contacts.of(model, A, B)
        force = np.asarray(contact.spatial_force, np.float64)[:, 3:]
        is_anchored = model.is_anchored(model.layout.contact.geometries[B].body)
        points.append(np.asarray(contact.centroid, np.float64))
        vectors.append(-force if is_anchored else force)
        names.append(f"{geometry} on {soft}" if is_anchored else f"{soft} on {geometry}")
    for A, B in contacts.body_pairs:
        contact = contacts.of(model, A, bodies[B].scoped_name)
        points.append(np.asarray(contact.centroid, np.float64))
        vectors.append(np.asarray(contact.spatial_force, np.float64)[:, 3:])
        names.append(f"{bodies[A].name} on {bodies[B].name}")
    return Arrows(np.stack(points, axis=1), np.stack(vectors, axis=1), tuple(names))


def soft_contact_surfaces(model: MultibodyModel, states: State) -> list[ContactSurface]:
    """The surfaces of all pairs at these states."""
    return list(of_states(deformable_contact_surfaces, model, states).values())


def joined(first: Arrows | None, second: Arrows) -> Arrows:
    """The arrows of both."""
    if first is None:
        return second
    points, vectors = (
        np.concatenate([a, b], axis=1) for a, b in ((first.points, second.points), (first.vectors, second.vectors))
    )
    return Arrows(points, vectors, first.names + second.names)


def _deformable_contacts(model: MultibodyModel, state: State, inputs: Inputs) -> DeformableContacts | None:
    return outputs(model, state, inputs).deformable_contacts
