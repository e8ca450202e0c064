"""Tetrahedra of any kind: gradients at points of elements, deformation gradient, forces, stiffness and mass.

Numbers at points have all points of an element one after another. Where an element has one point, as linear ones do
(Drake's `fem`), numbers of elements and of points are the same.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .element_kinds import ElementKind
from .material_laws import LAWS, AbstractMaterialLaw, ElementMatrix, LameConstants
from .mesh_structure import ElementGroup, MeshStructure
from .rotation_factor import cofactors, rotation_factor, transposed

# λ at points where mu is, in units of mu: with 1, bars of one cell were 12 % too soft, with 3, 1 % stiffer.
LARGEST_BESIDE = 2.0
ByGroup = tuple  # of arrays or records, one for each group of a mesh's elements


class ReferenceElements(NamedTuple):
    """Of each element at rest: gradients dL_a/dX of the corners' barycentric coordinates, in 1/m, and volume in m³."""

    gradients: Float[Array, "m 4 3"]
    volume: Float[Array, " m"]


class ReferencePoints(NamedTuple):
    """Of each point of elements at rest: gradients dS_a/dX of the shape functions in 1/m, and its volume in m³."""

    gradients: Float[Array, "q k 3"]
    volume: Float[Array, " q"]


def calc_reference_elements(mesh: MeshStructure, X: Float[Array, "c 3"]) -> ReferenceElements:
    """The elements of reference positions X of the corners; each must have a positive volume."""
    X = X[mesh.reference_corners]
    edges = X[:, 1:] - X[:, :1]
    C = cofactors(edges)
    six_volumes = jnp.sum(edges[:, 0] * C[:, 0], axis=-1)
    inner = C / six_volumes[:, None, None]  # rows: gradients of the coordinates 1, 2 and 3
    gradients = jnp.concatenate([-jnp.sum(inner, axis=1, keepdims=True), inner], axis=1)
    return ReferenceElements(gradients, six_volumes / 6.0)


def calc_rest_positions(mesh: MeshStructure, X: Float[Array, "c 3"]) -> Float[Array, "n 3"]:
    """Positions of all nodes at rest: those of the corners, and the middles of edges."""
    return X if mesh.has_corners_alone else 0.5 * (X[mesh.ends[:, 0]] + X[mesh.ends[:, 1]])


def calc_reference_points(
    mesh: MeshStructure,
    elements: ReferenceElements,
    where: Literal["points", "load_points", "output_points"] = "points",
) -> ByGroup:
    """`ReferencePoints` of each group: where elastic energy or loads are summed, or where strains are looked at."""
    return tuple(reference_points(group.kind, group.of(elements), *group.kind.rule(where)) for group in mesh.groups)


def reference_points(
    kind: ElementKind, elements: ReferenceElements, L: Float[np.ndarray, "p 4"], shares: Float[np.ndarray, " p"]
) -> ReferencePoints:
    """Points at the places L of elements of one kind, with these shares of the volume."""
    if not kind.edges:
        return ReferencePoints(*elements)
    dtype = elements.volume.dtype
    gradients = jnp.einsum("pkl,mld->mpkd", jnp.asarray(kind.slopes(L), dtype), elements.gradients)
    volume = elements.volume[:, None] * jnp.asarray(shares, dtype)
    return ReferencePoints(gradients.reshape(-1, kind.num_nodes, 3), volume.reshape(-1))


def lame_at_points(kind: ElementKind, lame: LameConstants) -> LameConstants:
    """Lamé's constants at the points of elements: selective reduced integration, against locking where λ is large.

    The energy is linear in mu and λ. Mu is summed at the points before the last. Beside it is a part of λ, its harmonic
    sum with 2 mu, which leaves stable laws stable at each point. The rest is at the centroid, where it asks one thing
    of an element and not four (Hughes 1987, "The finite element method", section 4.4).
    """
    if kind.num_points == 1:
        return lame
    (mu, lam), count = lame, kind.num_points - 1
    beside = jnp.where(lam > 0.0, LARGEST_BESIDE * mu * lam / (LARGEST_BESIDE * mu + lam), lam)
    of_mu = jnp.stack([*([mu] * count), jnp.zeros_like(mu)], axis=1)
    of_lam = jnp.stack([*([beside] * count), lam - beside], axis=1)
    return LameConstants(of_mu.reshape(-1), of_lam.reshape(-1))


def repeated_at_points(count: int, values: Any) -> Any:
    """Numbers of elements, as arrays (m, …), at each of so many points of an element."""
    return values if count == 1 else jax.tree.map(lambda x: jnp.repeat(x, count, axis=0), values)


def sum_of_points(count: int, values: Float[Array, "q ..."]) -> Float[Array, "m ..."]:
    """Sums over the points of each element."""
    return values if count == 1 else jnp.sum(values.reshape(-1, count, *values.shape[1:]), axis=1)


def interpolated(S: Float[np.ndarray, "p k"], values: Float[Array, "m k c"]) -> Float[Array, "q c"]:
    """Vectors at points of elements, where the shape functions are S, of those at nodes."""
    if is_mean(S):
        return jnp.mean(values, axis=1)
    return jnp.einsum("pk,mkc->mpc", jnp.asarray(S, values.dtype), values).reshape(-1, values.shape[-1])


def given_to_nodes(
    S: Float[np.ndarray, "p k"], amounts: Float[Array, " q"], vectors: Float[Array, "q c"]
) -> Float[Array, "m k c"]:
    """What nodes of elements get of amounts times vectors at points where the shape functions are S."""
    p, k = S.shape
    if is_mean(S):
        return jnp.repeat((float(S[0, 0]) * amounts[:, None] * vectors)[:, None], k, axis=1)
    at_points = (amounts[:, None] * vectors).reshape(-1, p, vectors.shape[-1])
    return jnp.einsum("pk,mpc->mkc", jnp.asarray(S, vectors.dtype), at_points)


def is_mean(S: Float[np.ndarray, "p k"]) -> bool:
    """Whether there is one point, and its number is the mean of those at the nodes."""
    return len(S) == 1 and bool(np.all(S.shape[1] * S == 1.0))


def deformation_gradient(x: Float[Array, "q k 3"], gradients: Float[Array, "q k 3"]) -> ElementMatrix:
    """F = Σ x_a ⊗ dS_a/dX, from differences of positions, so that small elements keep their digits."""
    return transposed(x[:, 1:] - x[:, :1]) @ gradients[:, 1:]


def elastic_forces(P: ElementMatrix, points: ReferencePoints) -> Float[Array, "q k 3"]:
    """Derivative of the elastic energy by the nodes' positions: minus the elastic forces, in N."""
    return points.volume[:, None, None] * (points.gradients @ transposed(P))


def stiffness_matrices(
    kind: ElementKind, dPdF: Float[Array, "q 9 9"], gradients: Float[Array, "q k 3"]
) -> Float[Array, "m 3k 3k"]:
    """dS_a/dX_n dP_in/dF_jl dS_b/dX_l, summed over points; rows go through nodes, then axes."""
    p, k = kind.num_points, kind.num_nodes
    C = dPdF.reshape(-1, 3, 3, 3, 3)
    if p == 1:
        found = jnp.einsum("man,minjl,mbl->maibj", gradients, C, gradients)
    else:
        half = jnp.einsum("qan,qinjl->qaijl", gradients, C).reshape(-1, p, k, 3, 3, 3)
        found = jnp.einsum("mpaijl,mpbl->maibj", half, gradients.reshape(-1, p, k, 3))
    return found.reshape(-1, 3 * k, 3 * k)


def mass_times(kind: ElementKind, mass: Float[Array, " m"], values: Float[Array, "m k 3"]) -> Float[Array, "m #k 3"]:
    """Mass matrices of elements times vectors at their nodes."""
    each = (mass / kind.mass_unit)[:, None, None]
    if np.all(kind.mass_numbers == 1.0):
        return each * jnp.sum(values, axis=1, keepdims=True)
    return each * jnp.einsum("ab,mbc->mac", jnp.asarray(kind.mass_numbers, values.dtype), values)


def by_laws(group: ElementGroup, function: Callable[..., Any], *args: Any) -> Any:
    """`function(law, …)` of the elements of each law of a group; all arrays have its elements, or points, first."""
    found, first, count_of_all = [], 0, len(group.nodes)
    for name, count in group.law_runs:

        def part(x: Array, i: int = first, n: int = count) -> Array:
            each = len(x) // count_of_all
            return x[each * i : each * (i + n)]

        found.append(function(LAWS[name], *(args if len(group.law_runs) == 1 else jax.tree.map(part, args))))
        first += count
    return found[0] if len(found) == 1 else jax.tree.map(lambda *parts: jnp.concatenate(parts), *found)


def calc_start_rotations(mesh: MeshStructure, points: ByGroup, x: Float[Array, "n 3"]) -> ByGroup:
    """Rotations (q, 3, 3) at the points of each group at the start of a step; the identity where a law reads none."""

    def rotations(law: AbstractMaterialLaw, x: Array, gradients: Array) -> ElementMatrix:
        count = len(gradients) // len(x)
        if law.reads_rotation:
            return rotation_factor(deformation_gradient(repeated_at_points(count, x), gradients))
        return jnp.broadcast_to(jnp.eye(3, dtype=x.dtype), (len(gradients), 3, 3))

    pairs = zip(mesh.groups, points, strict=True)
    return tuple(by_laws(group, rotations, x[group.nodes], of.gradients) for group, of in pairs)


def calc_elastic_energies(
    mesh: MeshStructure, points: ByGroup, lame: LameConstants, R: ByGroup, x: Float[Array, "n 3"]
) -> Float[Array, " m"]:
    """Elastic energy of each element, in J."""

    def energies(law: AbstractMaterialLaw, x: Array, R: ElementMatrix, lame: LameConstants, of: Any) -> Array:
        count = len(R) // len(x)
        x = repeated_at_points(count, x)
        return sum_of_points(count, of.volume * law.energy_density(deformation_gradient(x, of.gradients), R, lame))

    groups = zip(mesh.groups, R, points, strict=True)
    parts = [by_laws(g, energies, x[g.nodes], R_g, lame_at_points(g.kind, g.of(lame)), of) for g, R_g, of in groups]
    return mesh.in_order(parts)


def at_mass_points(mesh: MeshStructure, values: Float[Array, "n 3"]) -> ByGroup:
    """Vectors (q, 3) at the points of each group's elements at which their mass is, of those at nodes."""
    return tuple(interpolated(g.kind.shapes(g.kind.mass_points), values[g.nodes]) for g in mesh.groups)


def calc_mass_averages(mesh: MeshStructure, values: ByGroup) -> Float[Array, "m ..."]:
    """Averages of each element over the points at which its mass is."""

    def average(kind: ElementKind, values: Float[Array, "q ..."]) -> Float[Array, "m ..."]:
        if len(kind.mass_points) == 1:
            return values
        weights = jnp.asarray(kind.mass_weights, values.dtype)
        return jnp.einsum("r,mr...->m...", weights, values.reshape(-1, len(weights), *values.shape[1:]))

    return mesh.in_order([average(g.kind, x) for g, x in zip(mesh.groups, values, strict=True)])


def bodies_of_mass_points(mesh: MeshStructure) -> tuple[np.ndarray, ...]:
    """The body of each point at which mass is, by group."""
    return tuple(np.repeat(mesh.body_of_element[g.places], len(g.kind.mass_points)) for g in mesh.groups)
