"""External forces at the nodes of deformable bodies: weight, and forces per volume."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .assembly import sum_at_nodes
from .elements import ReferenceElements, deformation_gradient
from .mesh_structure import MeshStructure
from .rotation_factor import cofactors


def calc_node_weights(
    mesh: MeshStructure, masses: Float[Array, " m"], gravity: Float[Array, "m 3"]
) -> Float[Array, "n 3"]:
    """A quarter of each element's weight at each of its nodes, in N."""
    quarter = 0.25 * masses[:, None] * gravity
    return sum_at_nodes(mesh, jnp.repeat(quarter[:, None], 4, axis=1))


def calc_volume_forces(
    mesh: MeshStructure,
    elements: ReferenceElements,
    x: Float[Array, "n 3"],
    density: Callable[[Float[Array, "3"]], Float[Array, "3"]],
    per_current_volume: bool,
) -> Float[Array, "n 3"]:
    """Forces of a density in N/m³, taken at the centroid of each element at nodes x, in N."""

    x, volume = x[mesh.elements], elements.volume
    if per_current_volume:
        F = deformation_gradient(x, elements.gradients)
        volume = volume * jnp.sum(F[:, 0] * cofactors(F)[:, 0], axis=-1)
    quarter = 0.25 * volume[:, None] * jax.vmap(density)(jnp.mean(x, axis=1))
    return sum_at_nodes(mesh, jnp.repeat(quarter[:, None], 4, axis=1))
