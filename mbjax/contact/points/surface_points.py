"""Points of hydroelastic contact: each face of the surface where two pressures are equal is a point with a stiffness.

After Masterjohn et al. 2022, arXiv 2110.04157: over a step, the pressure of a face rises by g times the approach of the
two bodies at its centroid, 1 / g = 1 / g_A + 1 / g_B with the gradients of the two pressures along the normal. So a
face of area A is a point of stiffness A g and distance -p / g.
"""

import dataclasses
import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution.arrays import take
from mbjax.geometry.hydroelastic import (
    ContactSurface,
    HydroelasticTopology,
    calc_near_surfaces,
    contact_surface,
    field,
)
from mbjax.model import ContactLayout, MultibodyModel, hydroelastic_topology
from mbjax.spatial import RigidTransform

from .contact_parameters import PairParameters, SurfaceParameters, calc_surface_parameters, combine_surfaces
from .geometry_poses import GeometryPoses, calc_relative_poses, shape_sizes
from .near_surfaces import are_pairs_near
from .point_records import ContactPoints, PairSurfaces, flat, in_slots

SMALLEST_GRADIENT = 1e-14  # Pa/m: faces with less have no force in discrete steps, as in Drake
WEIGHTS_OF_CORNERS = ((2 / 3, 1 / 6, 1 / 6), (1 / 6, 2 / 3, 1 / 6), (1 / 6, 1 / 6, 2 / 3))  # of second order
Topologies = tuple[HydroelasticTopology, HydroelasticTopology]


def calc_surface_points(model: MultibodyModel, poses: GeometryPoses) -> list[ContactPoints]:
    """The faces of all hydroelastic pairs; pairs with the same two meshes are computed together."""
    kinds = surface_pairs_by_kind(model)
    return [calc_faces_of_kind(model, poses, topologies, pairs) for topologies, pairs in kinds.items()]


def surface_pairs_by_kind(model: MultibodyModel) -> dict[Topologies, list[int]]:
    """Indices of the hydroelastic pairs by the meshes of their geometries; each group is a program of its own."""
    contact, groups = model.layout.contact, {}
    for i in contact.surface_pairs:
        A, B = (hydroelastic_topology(model, g) for g in contact.pairs[i])
        groups.setdefault((A, B), []).append(i)
    return groups


def count_faces(model: MultibodyModel) -> int:
    """How many faces all hydroelastic pairs may have."""
    total = 0
    for (A, B), pairs in surface_pairs_by_kind(model).items():
        a, b = model.layout.contact.pairs[pairs[0]]
        last = -1 - model.num_world_axes
        sizes = [jax.ShapeDtypeStruct(s.shape[:last], s.dtype) for s in (shape_sizes(model, [g]) for g in (a, b))]
        R, p, E = (jax.ShapeDtypeStruct(shape, model.dtype) for shape in ((3, 3), (3,), ()))
        found = jax.eval_shape(functools.partial(calc_surface, model.layout.contact, A, B), *sizes, E, E, R, R, p)
        total += len(pairs) * found.area.shape[0]
    return total


def calc_surface(
    contact: ContactLayout,
    topology_A: HydroelasticTopology,
    topology_B: HydroelasticTopology,
    size_A: Float[Array, "..."],
    size_B: Float[Array, "..."],
    modulus_A: Float[Array, ""],
    modulus_B: Float[Array, ""],
    R_WA: Float[Array, "3 3"],
    R_WB: Float[Array, "3 3"],
    p_AB_W: Float[Array, "3"],
) -> ContactSurface:
    """The contact surface of one pair, with positions from Ao in W.

    Sizes are lengths, or the vertices (3, m) of hulls.
    """
    lengths_A, lengths_B = (size.T if size.ndim == 2 else size for size in (size_A, size_B))
    return contact_surface(
        topology_A,
        field(topology_A, lengths_A, modulus_A),
        RigidTransform(R_WA, jnp.zeros_like(p_AB_W)),
        topology_B,
        field(topology_B, lengths_B, modulus_B),
        RigidTransform(R_WB, p_AB_W),
        representation="triangle" if contact.surface_representation == "triangle" else "polygon",
        bound=contact.max_faces,
    )


def calc_faces_of_kind(
    model: MultibodyModel, poses: GeometryPoses, topologies: Topologies, pairs: list[int]
) -> ContactPoints:
    """The faces of pairs with the same two meshes."""
    contact, body_mobods = model.layout.contact, model.topology.body_mobods
    A, B = ([contact.pairs[i][side] for i in pairs] for side in (0, 1))
    mobods_A, mobods_B = ([body_mobods[contact.geometries[g].body] for g in side] for side in (A, B))
    R_WA, p_AB_W, R_AB, p_AB = calc_relative_poses(model, poses, A, B)
    moduli = [calc_moduli(model, side) for side in (A, B)]
    is_near = are_pairs_near(model, topologies, (A, B), R_AB, p_AB)
    args = shape_sizes(model, A), shape_sizes(model, B), *moduli, R_WA, take(poses.R_WG, B, 2), p_AB_W
    of_pair = functools.partial(calc_surface, contact, *topologies)
    surface = calc_near_surfaces(of_pair, model.num_world_axes, is_near, *args)

    faces = surface if model.is_discrete else at_quadrature_points(surface, contact)
    k = faces.area.shape[0]
    gradients = faces.gradient_M, faces.gradient_N
    has_gradient = (gradients[0] > SMALLEST_GRADIENT) & (gradients[1] > SMALLEST_GRADIENT)
    of_M, of_N = (1.0 / jnp.where(has_gradient, gradient, 2.0) for gradient in gradients)
    compliance = flat(of_M + of_N, 0)  # 1 / g in m/Pa, or 1
    active = flat(faces.active & has_gradient if model.is_discrete else faces.active, 0)
    area = jnp.where(active, flat(faces.area, 0), 1.0)
    surfaces = calc_surface_parameters(model)
    of_pairs = combine_surfaces(
        *(with_modulus(surfaces, model, side, E) for side, E in zip((A, B), moduli, strict=True))
    )
    of_points = jax.tree.map(lambda x: in_slots(x, k, 0), of_pairs)
    of_points = dataclasses.replace(of_points, compliance=compliance / area)
    distance = jnp.where(active, -flat(faces.pressure, 0) * compliance, 0.0)
    p_MaA_W, p_MbB_W = (in_slots(take(poses.p_MG_W, side, 1), k, 1) for side in (A, B))
    p_AC_W = flat(jnp.swapaxes(faces.centroid_W, 0, 1), 1)
    return ContactPoints(
        as_law_reads(model, distance, of_points),
        -flat(jnp.swapaxes(faces.normal_W, 0, 1), 1),
        p_MaA_W + p_AC_W,
        p_MbB_W + p_AC_W - in_slots(p_AB_W, k, 1),
        active,
        active,
        jnp.zeros_like(active),
        of_points,
        jnp.zeros(p_AB_W.shape[2:], jnp.int32),
        tuple(pairs) * k,
        tuple(mobods_A) * k,
        tuple(mobods_B) * k,
        (PairSurfaces(surface, take(poses.p_WG, A, 1), tuple(pairs), 0),),
    )


def at_quadrature_points(surface: ContactSurface, contact: ContactLayout) -> ContactSurface:
    """A surface whose faces are those of the quadrature of a continuous plant, with a share of the area each.

    Triangles have three points each, with which moments of a linear pressure are exact; polygons have their centroids.
    """
    if contact.surface_representation == "polygon":
        return surface
    corners = surface.vertices_W[:, :3], surface.vertex_pressure[:, :3]
    at_points = [[jnp.tensordot(x, np.array(weights), axes=(1, 0)) for x in corners] for weights in WEIGHTS_OF_CORNERS]
    centroid_W, pressure = (jnp.concatenate(x) for x in zip(*at_points, strict=True))
    names = ("area", "normal_W", "gradient_M", "gradient_N", "active")
    repeated = {name: jnp.concatenate([getattr(surface, name)] * len(WEIGHTS_OF_CORNERS)) for name in names}
    repeated["area"] = repeated["area"] / len(WEIGHTS_OF_CORNERS)
    return dataclasses.replace(surface, centroid_W=centroid_W, pressure=pressure, **repeated)


def calc_moduli(model: MultibodyModel, geometries: Sequence[int]) -> Float[Array, " n"]:
    """Hydroelastic moduli of geometries that are all compliant or all rigid, which have none: zero."""
    rows = [model.layout.contact.geometries[g].modulus_index for g in geometries]
    moduli = model.collision.hydroelastic_modulus
    return model.zeros(len(rows)) if moduli is None or rows[0] < 0 else take(moduli, rows, 0)


def with_modulus(
    surfaces: SurfaceParameters, model: MultibodyModel, geometries: Sequence[int], moduli: Float[Array, " n"]
) -> SurfaceParameters:
    """Parameters of geometries whose compliance is that of their moduli, in 1/Pa; zero for rigid ones.

    In a continuous plant, as in Drake, dissipation that is not given is zero.
    """
    records = [model.layout.contact.geometries[g] for g in geometries]
    own = jax.tree.map(lambda x: take(x, geometries, 0), surfaces)
    compliance = jnp.zeros_like(moduli) if records[0].modulus_index < 0 else 1.0 / moduli
    own = dataclasses.replace(own, compliance=compliance)
    if model.is_discrete:
        return own
    is_given = np.array([record.dissipation_index >= 0 for record in records])
    is_given = is_given.reshape(-1, *(1,) * model.num_world_axes)
    return dataclasses.replace(own, hunt_crossley_dissipation=jnp.where(is_given, own.hunt_crossley_dissipation, 0.0))


def as_law_reads(model: MultibodyModel, distance: Float[Array, " m"], parameters: PairParameters) -> Float[Array, " m"]:
    """Distances of faces as the law of the step expects them.

    Within a margin pressures are negative and distances positive. SAP's law lets points that are apart approach each
    other freely until they touch. A face within a margin is in contact and relaxes like all others, so its distance is
    given in the measure in which both mean the same.
    """
    if not model.is_discrete or model.layout.contact.approximation != "sap":
        return distance
    dt = model.time_step
    return jnp.where(distance > 0.0, distance * dt / (dt + parameters.relaxation_time), distance)
