"""Linear tetrahedra: deformation gradient, forces, stiffness and mass of elements.

An element has one quadrature point, at its centroid, for all integrals, that of the mass included (Drake's `fem`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .material_laws import LAWS, AbstractMaterialLaw, ElementMatrix, LameConstants
from .mesh_structure import MeshStructure
from .rotation_factor import cofactors, rotation_factor, transposed


class ReferenceElements(NamedTuple):
    """Of each element at rest: gradients dS_a/dX of the four shape functions, in 1/m, and the volume in m³."""

    gradients: Float[Array, "m 4 3"]
    volume: Float[Array, " m"]


def calc_reference_elements(mesh: MeshStructure, X: Float[Array, "n 3"]) -> ReferenceElements:
    """The elements of reference positions X; each must have a positive volume."""
    X = X[mesh.elements]
    edges = X[:, 1:] - X[:, :1]
    C = cofactors(edges)
    six_volumes = jnp.sum(edges[:, 0] * C[:, 0], axis=-1)
    inner = C / six_volumes[:, None, None]  # rows: gradients of the shape functions 1, 2 and 3
    gradients = jnp.concatenate([-jnp.sum(inner, axis=1, keepdims=True), inner], axis=1)
    return ReferenceElements(gradients, six_volumes / 6.0)


def deformation_gradient(x: Float[Array, "m 4 3"], gradients: Float[Array, "m 4 3"]) -> ElementMatrix:
    """F = Σ x_a ⊗ dS_a/dX, from differences of positions, so that small elements keep their digits."""
    return transposed(x[:, 1:] - x[:, :1]) @ gradients[:, 1:]


def elastic_forces(P: ElementMatrix, elements: ReferenceElements) -> Float[Array, "m 4 3"]:
    """Derivative of the elastic energy by the nodes' positions: minus the elastic forces, in N."""
    return elements.volume[:, None, None] * (elements.gradients @ transposed(P))


def stiffness_matrices(dPdF: Float[Array, "m 9 9"], gradients: Float[Array, "m 4 3"]) -> Float[Array, "m 12 12"]:
    """dS_a/dX_n dP_in/dF_jl dS_b/dX_l; rows go through nodes, then axes."""
    C = dPdF.reshape(-1, 3, 3, 3, 3)
    return jnp.einsum("man,minjl,mbl->maibj", gradients, C, gradients).reshape(-1, 12, 12)


def by_laws(mesh: MeshStructure, function: Callable[..., Any], *args: Any) -> Any:
    """`function(law, …)` of the elements of each law; all arrays have elements first."""
    found, first = [], 0
    for name, count in mesh.law_runs:
        part = args if len(mesh.law_runs) == 1 else jax.tree.map(lambda x, i=first, n=count: x[i : i + n], args)
        found.append(function(LAWS[name], *part))
        first += count
    return found[0] if len(found) == 1 else jax.tree.map(lambda *parts: jnp.concatenate(parts), *found)


def calc_start_rotations(
    mesh: MeshStructure, elements: ReferenceElements, x: Float[Array, "n 3"]
) -> Float[Array, "m 3 3"]:
    """Rotation of each element at the start of a step; the identity where its law reads none."""

    def rotations(law: AbstractMaterialLaw, x: Array, gradients: Array) -> ElementMatrix:
        if law.reads_rotation:
            return rotation_factor(deformation_gradient(x, gradients))
        return jnp.broadcast_to(jnp.eye(3, dtype=x.dtype), (x.shape[0], 3, 3))

    return by_laws(mesh, rotations, x[mesh.elements], elements.gradients)


def calc_elastic_energies(
    mesh: MeshStructure, elements: ReferenceElements, lame: LameConstants, R: ElementMatrix, x: Float[Array, "n 3"]
) -> Float[Array, " m"]:
    """Elastic energy of each element, in J."""

    def energies(law: AbstractMaterialLaw, x: Array, R: ElementMatrix, lame: LameConstants, element: Any) -> Array:
        return element.volume * law.energy_density(deformation_gradient(x, element.gradients), R, lame)

    return by_laws(mesh, energies, x[mesh.elements], R, lame, elements)
