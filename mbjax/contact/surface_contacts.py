"""Results of hydroelastic pairs as wholes: the surface, its area, its centroid and the spatial force there."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.geometry.hydroelastic import ContactSurface
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_divide

from .points.point_records import ContactPoints, PairSurfaces


class SurfaceContact(eqx.Module):
    """Contact of one hydroelastic pair, in W; Drake's HydroelasticContactInfo.

    `surface` has the faces; `centroid` is that of the whole surface, weighed by area, and zero where nothing touches.
    `spatial_force` F_Ac_W, torque first, acts on body A there; the opposite acts on B.
    """

    surface: ContactSurface
    area: Float[Array, "*batch"]  # m²
    centroid: Float[Array, "*batch 3"]
    spatial_force: Float[Array, "*batch 6"]
    pair_index: int = eqx.field(static=True)

    def names(self, model: MultibodyModel) -> tuple[str, str, str, str]:
        """Names of body A, geometry A, body B and geometry B."""
        contact = model.layout.contact
        A, B = (contact.geometries[g] for g in contact.pairs[self.pair_index])
        return model.body_names[A.body], A.name, model.body_names[B.body], B.name


def calc_surface_contacts(
    points: ContactPoints, p_WC: Float[Array, "3 m"], f_Bc_W: Float[Array, "3 m"]
) -> tuple[SurfaceContact, ...]:
    """The contacts of all hydroelastic pairs of one world, from the places of points and the forces there."""
    found = {}
    for surfaces in points.surfaces:
        n, total = len(surfaces.pairs), points.pairs[surfaces.start :].count(surfaces.pairs[0])
        of_pairs = slice(surfaces.start, surfaces.start + n * total)
        places, forces = (x[:, of_pairs].reshape(3, total, n) for x in (p_WC, f_Bc_W))
        for k, pair in enumerate(surfaces.pairs):
            found[pair] = calc_surface_contact(surfaces, k, places[:, :, k], forces[:, :, k])
    return tuple(found[pair] for pair in sorted(found))


def calc_surface_contact(
    surfaces: PairSurfaces, k: int, p_WC: Float[Array, "3 f"], f_Bc_W: Float[Array, "3 f"]
) -> SurfaceContact:
    """The contact of the pair in place k, from the places and forces of its points."""
    surface = jax.tree.map(lambda x: x[..., k], surfaces.surface)
    p_WA = surfaces.p_WA[:, k]
    surface = dataclasses.replace(surface, centroid_W=surface.centroid_W + p_WA, vertices_W=surface.vertices_W + p_WA)
    area = jnp.sum(surface.area)
    centroid = safe_divide(surface.area @ surface.centroid_W, area)
    f_Ac_W = -f_Bc_W
    torque = jnp.sum(ca.cross(p_WC - centroid[:, None], f_Ac_W), axis=1)
    return SurfaceContact(
        surface, area, centroid, jnp.concatenate([torque, jnp.sum(f_Ac_W, axis=1)]), surfaces.pairs[k]
    )
