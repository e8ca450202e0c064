"""Strain and stress of elements as one number each, and their averages at nodes, for people to look at.

Of a linear element they are the same everywhere. Those of other kinds are taken at their nodes.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial import safe_sqrt

from .assembly import sum_at_nodes, sum_of_groups
from .elements import (
    ByGroup,
    ReferenceElements,
    ReferencePoints,
    by_laws,
    calc_reference_points,
    calc_start_rotations,
    deformation_gradient,
    repeated_at_points,
)
from .material_laws import AbstractMaterialLaw, ElementMatrix, LameConstants
from .mesh_structure import ElementGroup, MeshStructure
from .rotation_factor import cofactors, singular_factors, transposed


def gradients_at(group: ElementGroup, of: ReferencePoints, x: Float[Array, "n 3"]) -> Float[Array, "q 3 3"]:
    """F at the points of a group's elements, with the nodes at x."""
    return deformation_gradient(repeated_at_points(len(group.kind.output_points), x[group.nodes]), of.gradients)


def calc_largest_strains(mesh: MeshStructure, elements: ReferenceElements, x: Float[Array, "n 3"]) -> ByGroup:
    """The principal strain that is largest in size: how far a principal stretch is from one; (q,) for each group."""
    pairs = zip(mesh.groups, calc_reference_points(mesh, elements, "output_points"), strict=True)
    stretches = [singular_factors(gradients_at(group, of, x)).sigma for group, of in pairs]
    return tuple(jnp.max(jnp.abs(sigma - 1.0), axis=-1) for sigma in stretches)


def calc_von_mises_stresses(
    mesh: MeshStructure, elements: ReferenceElements, lame: LameConstants, x: Float[Array, "n 3"]
) -> ByGroup:
    """Von Mises' equivalent of Cauchy's stress P Fᵀ / det F, in Pa, without damping; (q,) for each group."""

    def first_piola(law: AbstractMaterialLaw, F: ElementMatrix, R: ElementMatrix, lame: LameConstants) -> ElementMatrix:
        return law.stress(F, R, lame)

    points, found = calc_reference_points(mesh, elements, "output_points"), []
    for group, of, R in zip(mesh.groups, points, calc_start_rotations(mesh, points, x), strict=True):
        F = gradients_at(group, of, x)
        P = by_laws(group, first_piola, F, R, repeated_at_points(len(group.kind.output_points), group.of(lame)))
        J = jnp.sum(F[:, 0] * cofactors(F)[:, 0], axis=-1)
        sigma = P @ transposed(F) / J[:, None, None]
        pressure = jnp.trace(sigma, axis1=-2, axis2=-1) / 3.0
        deviator = sigma - pressure[:, None, None] * jnp.eye(3, dtype=x.dtype)
        found.append(safe_sqrt(1.5 * jnp.sum(deviator**2, axis=(-2, -1))))
    return tuple(found)


def calc_node_averages(mesh: MeshStructure, elements: ReferenceElements, values: ByGroup) -> Float[Array, " n"]:
    """Averages at each node of the values of the elements around it, by their volumes."""
    parts = []
    for group, of_points in zip(mesh.groups, values, strict=True):
        m, k = group.nodes.shape
        volume, at_nodes = group.of(elements.volume), jnp.broadcast_to(of_points.reshape(m, -1), (m, k))
        both = jnp.stack([volume[:, None] * at_nodes, jnp.broadcast_to(volume[:, None], (m, k))], axis=-1)
        parts.append(sum_at_nodes(mesh, group.nodes, both))
    sums = sum_of_groups(parts)
    return sums[:, 0] / sums[:, 1]
