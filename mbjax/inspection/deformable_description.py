"""Deformable bodies in descriptions of states and trajectories: where they are and how they move, by name."""

from typing import Any

import numpy as np
from jax.core import Tracer
from jaxtyping import Float

from mbjax.errors import ModelError
from mbjax.finite_elements import ELEMENT_KINDS
from mbjax.model import DeformableBodies
from mbjax.model.known_leaves import known_element_masses
from mbjax.simulation.state import NodeState

DISPLACEMENT = "largest displacement (m)"
SPEED = "largest speed (m/s)"
STATE_HEADINGS = ["deformable body", "centre of mass (m)", DISPLACEMENT, SPEED]
TRAJECTORY_HEADINGS = ["deformable body", "centre of mass: start (m)", "end (m)", DISPLACEMENT, SPEED]


def name_of_deformable(deformables: DeformableBodies, index: int) -> str:
    """A body's name, with that of its model instance where other bodies share it."""
    body = deformables.layout.bodies[index]
    return body.name if deformables.names.count(body.name) == 1 else body.scoped_name


def require_nodes(deformables: DeformableBodies, what: str, nodes: NodeState) -> None:
    """Refuses nodes that are not as many as the model has."""
    count = deformables.mesh.num_nodes
    for name in ("position", "velocity"):
        shape = np.shape(getattr(nodes, name))
        if shape[-2:] != (count, 3):
            raise ModelError(
                f"describe: {what}.nodes.{name} has shape {shape}, the model needs {(count, 3)}: is it of this model?"
            )


def are_known(deformables: DeformableBodies, nodes: NodeState) -> bool:
    """Whether none of the numbers that the tables need is traced."""
    leaves = (nodes.position, nodes.velocity, deformables.mass_density, deformables.reference_positions)
    return not any(isinstance(leaf, Tracer) for leaf in leaves)


def centers_of_mass(deformables: DeformableBodies, position: Any) -> list[Float[np.ndarray, "*batch 3"]]:
    """Centre of mass of each body, with masses as in a step's mass matrix, for nodes at `position` (*batch, n, 3)."""
    masses, mesh = known_element_masses(deformables), deformables.mesh
    assert masses is not None
    position, found = np.asarray(position, float), []
    for body, kind in enumerate(mesh.kinds_of_bodies):
        nodes = mesh.of_body(body)[1] + mesh.nodes(body).start
        centers = np.einsum("k,...mkc->...mc", ELEMENT_KINDS[kind].shares, position[..., nodes, :])
        of_body = masses[..., mesh.elements_of(body)]
        shares = of_body / of_body.sum(axis=-1, keepdims=True)
        found.append(np.sum(shares[..., None] * centers, axis=-2))
    return found


def largest_sizes(
    deformables: DeformableBodies, vectors: Float[np.ndarray, "*batch n 3"]
) -> list[Float[np.ndarray, "*batch"]]:
    """Length of the longest vector at the nodes of each body."""
    lengths = np.linalg.norm(vectors, axis=-1)
    return [lengths[..., deformables.mesh.nodes(body)].max(axis=-1) for body in range(deformables.num_bodies)]


def displacements(deformables: DeformableBodies, position: Any, times: int = 0) -> list[Float[np.ndarray, "*batch"]]:
    """How far the node of each body is that is farthest from its place at rest; `times` axes stand before the nodes."""
    rest = np.asarray(deformables.reference_positions, float)
    rest = rest[..., deformables.mesh.ends, :].mean(axis=-2)
    rest = rest.reshape(*rest.shape[:-2], *(1,) * (times if rest.ndim > 2 else 0), *rest.shape[-2:])
    return largest_sizes(deformables, np.asarray(position, float) - rest)
