"""External forces at the nodes of deformable bodies: weight, and forces per volume."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .assembly import sum_at_nodes, sum_of_groups
from .elements import ByGroup, deformation_gradient, given_to_nodes, interpolated, repeated_at_points
from .mesh_structure import MeshStructure
from .rotation_factor import cofactors


def calc_node_weights(
    mesh: MeshStructure, masses: Float[Array, " m"], gravity: Float[Array, "m 3"]
) -> Float[Array, "n 3"]:
    """The weight of the elements at their nodes, in N: what the mass matrix gives for a fall with no strain.

    That is a quarter at each corner of a linear element, and for quadratic ones -1/20 at corners, 1/5 at others.
    """
    each = [given_to_nodes(g.kind.shares[None], g.of(masses), g.of(gravity)) for g in mesh.groups]
    return sum_of_groups([sum_at_nodes(mesh, g.nodes, x) for g, x in zip(mesh.groups, each, strict=True)])


def calc_volume_forces(
    mesh: MeshStructure,
    points: ByGroup,
    x: Float[Array, "n 3"],
    density: Callable[[Float[Array, "3"]], Float[Array, "3"]],
    per_current_volume: bool,
) -> Float[Array, "n 3"]:
    """Forces of a density in N/m³, taken at the load points of elements whose nodes are at x, in N."""
    parts = []
    for group, of in zip(mesh.groups, points, strict=True):
        x_e, volume, S = x[group.nodes], of.volume, group.kind.shapes(group.kind.load_points)
        if per_current_volume:
            F = deformation_gradient(repeated_at_points(len(S), x_e), of.gradients)
            volume = volume * jnp.sum(F[:, 0] * cofactors(F)[:, 0], axis=-1)
        forces = given_to_nodes(S, volume, jax.vmap(density)(interpolated(S, x_e)))
        parts.append(sum_at_nodes(mesh, group.nodes, forces))
    return sum_of_groups(parts)
