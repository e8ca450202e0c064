"""Strain and stress of elements as one number each, and their averages at nodes, for people to look at."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial import safe_sqrt

from .assembly import sum_at_nodes
from .elements import ReferenceElements, by_laws, calc_start_rotations, deformation_gradient
from .material_laws import AbstractMaterialLaw, ElementMatrix, LameConstants
from .mesh_structure import MeshStructure
from .rotation_factor import cofactors, singular_factors, transposed


def calc_largest_strains(
    mesh: MeshStructure, elements: ReferenceElements, x: Float[Array, "n 3"]
) -> Float[Array, " m"]:
    """The principal strain of each element that is largest in size: how far a principal stretch is from one."""
    F = deformation_gradient(x[mesh.elements], elements.gradients)
    return jnp.max(jnp.abs(singular_factors(F).sigma - 1.0), axis=-1)


def calc_von_mises_stresses(
    mesh: MeshStructure, elements: ReferenceElements, lame: LameConstants, x: Float[Array, "n 3"]
) -> Float[Array, " m"]:
    """Von Mises' equivalent of each element's Cauchy stress P Fᵀ / det F, in Pa, without damping."""

    def first_piola(law: AbstractMaterialLaw, F: ElementMatrix, R: ElementMatrix, lame: LameConstants) -> ElementMatrix:
        return law.stress(F, R, lame)

    F = deformation_gradient(x[mesh.elements], elements.gradients)
    P = by_laws(mesh, first_piola, F, calc_start_rotations(mesh, elements, x), lame)
    J = jnp.sum(F[:, 0] * cofactors(F)[:, 0], axis=-1)
    sigma = P @ transposed(F) / J[:, None, None]
    pressure = jnp.trace(sigma, axis1=-2, axis2=-1) / 3.0
    deviator = sigma - pressure[:, None, None] * jnp.eye(3, dtype=x.dtype)
    return safe_sqrt(1.5 * jnp.sum(deviator**2, axis=(-2, -1)))


def calc_node_averages(
    mesh: MeshStructure, elements: ReferenceElements, values: Float[Array, " m"]
) -> Float[Array, " n"]:
    """Averages at each node of the values of the elements around it, by their volumes."""
    both = jnp.stack([elements.volume * values, elements.volume], axis=-1)
    sums = sum_at_nodes(mesh, jnp.repeat(both[:, None], 4, axis=1))
    return sums[:, 0] / sums[:, 1]
