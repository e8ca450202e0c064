"""Draws states of a model in a viser scene: bodies, contact, frames, centre of mass, gradients, what is held."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbjax.contact import ContactResults
from mbjax.dynamics import center_of_mass_position_in_world, total_mass
from mbjax.kinematics import body_poses_in_world, body_spatial_velocities_in_world, velocity_to_qdot_matrix
from mbjax.model import MultibodyModel
from mbjax.simulation import State, outputs

from ..contact_patches import contact_patches
from ..force_arrows import contact_arrows
from .drag import Grip
from .overlays import CONTACT_COLOR, DRAG_COLOR, GRADIENT_COLOR, Overlays
from .pressure_surfaces import PressureSurfaces, bodies_that_press
from .scene import LiveScene

WEIGHT_LENGTH = 0.35  # of the scene's size: how long a force of the robot's weight is drawn
GRADIENT_LENGTH = 0.25  # of the scene's size: the longest arrow of a gradient
NOTHING = np.zeros((0, 3))


class Drawing:
    """Everything that a live view draws of one model."""

    def __init__(self, server: Any, model: MultibodyModel, state: State) -> None:
        self.model = model
        places = np.asarray(poses_of(model, jnp.asarray(state.q)[None]).translation, float)[0]
        if state.nodes is not None:
            places = np.concatenate([places, np.asarray(state.nodes.position, float)])
        self.scene = LiveScene(server, model)
        self.size = self.scene.size(places)
        self.center = places.mean(axis=0)
        self.overlays = Overlays(server, self.size)
        self.pressure = PressureSurfaces(server, self.size)
        self.mass = float(total_mass(model))

    def draw_bodies(self, q: Any, nodes: Any = None) -> tuple[np.ndarray, np.ndarray] | None:
        """Moves the bodies to positions (worlds, nq), and the nodes of deformable bodies (worlds, n, 3).

        Returns poses of the first world, None if anything is not finite.
        """
        X_WB = poses_of(self.model, jnp.asarray(q))
        rotation, translation = np.asarray(X_WB.rotation, float), np.asarray(X_WB.translation, float)
        if not (np.isfinite(translation).all() and np.isfinite(rotation).all()):
            return None
        nodes = None if nodes is None else np.asarray(nodes, float)
        if nodes is not None and not np.isfinite(nodes).all():
            return None
        self.scene.place(rotation, translation, nodes)
        return rotation[0], translation[0]

    def draw_wanted(
        self, state: State, rotation: np.ndarray, translation: np.ndarray, inputs: Any, wanted: Mapping[str, bool]
    ) -> None:
        """Draws or removes contact forces and surfaces, frames and the centre of mass, as wanted.

        Bodies that press on each other in a surface are translucent, as the surface is inside of one of them.
        """
        self.overlays.frames(*((rotation, translation) if wanted["frames"] else (None, None)))
        shows_center = wanted["mass_center"] and self.mass > 0.0
        self.overlays.center(np.asarray(mass_center_of(self.model, state.q)) if shows_center else None)
        if not self.model.layout.contact.pairs:
            return
        points, vectors, patches, pressing = NOTHING, NOTHING, None, frozenset()
        if wanted["forces"]:
            results = jax.tree.map(lambda x: np.asarray(x)[None], contacts_of(self.model, state, inputs))
            arrows = contact_arrows(self.model, results)
            points, vectors = arrows.points[0], arrows.vectors[0]
            if results.surfaces:
                patches = contact_patches(contact.surface for contact in results.surfaces)
                pressing = bodies_that_press(self.model, results)
        self.pressure.draw(patches)
        self.scene.see_through(pressing)
        weight = 9.81 * max(self.mass, 1e-9)
        self.overlays.arrows("contact", points, WEIGHT_LENGTH * self.size / weight * vectors, CONTACT_COLOR)

    def draw_descent(self, state: State, translation: np.ndarray, cost: Callable[[State], Any]) -> float:
        """Draws where the gradient of a cost would move the bodies; returns the cost."""
        value, motion = descent(self.model, cost, state)
        vectors = np.asarray(motion, float)
        longest = np.linalg.norm(vectors, axis=-1).max(initial=0.0)
        scale = GRADIENT_LENGTH * self.size / longest if longest > 0.0 else 0.0
        self.overlays.arrows("gradient", translation, scale * vectors, GRADIENT_COLOR)
        return float(value)

    def draw_grip(self, rotation: np.ndarray, translation: np.ndarray, grip: Grip | None) -> None:
        """Draws an arrow from the point that is held to where it should be."""
        held, pulled = NOTHING, NOTHING
        if grip is not None:
            body = int(grip.body)
            held = translation[body] + rotation[body] @ np.asarray(grip.point, float)
            pulled = np.asarray(grip.target, float) - held
        self.overlays.arrows("drag", held, pulled, DRAG_COLOR)


@eqx.filter_jit
def poses_of(model: MultibodyModel, q: Any) -> Any:
    """Body poses of all worlds at positions (worlds, nq)."""
    return jax.vmap(lambda q: body_poses_in_world(model, q))(q)


@eqx.filter_jit
def mass_center_of(model: MultibodyModel, q: Any) -> Any:
    """Centre of mass in the world."""
    return center_of_mass_position_in_world(model, q)


@eqx.filter_jit
def contacts_of(model: MultibodyModel, state: State, inputs: Any) -> ContactResults | None:
    """Contact results of one state."""
    return outputs(model, state, inputs).contact_results


@eqx.filter_jit
def descent(model: MultibodyModel, cost: Callable[[State], Any], state: State) -> tuple[Any, Any]:
    """The cost, and velocities (nb, 3) of the bodies' origins as the positions go down its gradient."""
    value, by_q = jax.value_and_grad(lambda q: cost(State(q, state.v, state.time, state.nodes)))(state.q)
    v = -velocity_to_qdot_matrix(model, state.q).T @ by_q
    return value, body_spatial_velocities_in_world(model, state.q, v)[:, 3:]
