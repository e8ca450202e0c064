"""Results of contact of deformable bodies: points with forces, and each pair as a whole."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel, summary_of
from mbjax.spatial import safe_divide

from .node_points import NodePoints


class DeformableContact(eqx.Module):
    """Contact of a deformable body A with a collision geometry of a body B, as a whole.

    `spatial_force` F_Bc_W, torque first, acts on B at the `centroid` of the surface, which is zero where nothing
    touches; the opposite acts on A.
    """

    area: Float[Array, "*batch"]  # m²
    centroid: Float[Array, "*batch 3"]  # in the world, m
    spatial_force: Float[Array, "*batch 6"]  # N m and N


class DeformableContacts(eqx.Module):
    """Polygons in which deformable bodies press into the pressure fields of collision geometries, in m slots.

    A slot without contact has zero area. `force` f_Bc_W acts on body B, the one of the geometry, at `point` p_WC; the
    opposite acts on the deformable body A. `normal` nhat_BA_W points out of B into A. `num_left_out` counts, for each
    pair, pairs of triangles and elements of the field beyond the bound on its polygons, which have no force:
    `set_max_faces` raises it. `of` has a pair as a whole.
    """

    force: Float[Array, "*batch m 3"]  # N
    point: Float[Array, "*batch m 3"]  # m
    normal: Float[Array, "*batch m 3"]
    area: Float[Array, "*batch m"]  # m²
    pressure: Float[Array, "*batch m"]  # Pa, of the field at the step's start
    is_active: Bool[Array, "*batch m"]
    num_left_out: Int[Array, "*batch pairs"]
    pairs: tuple[tuple[int, int], ...] = eqx.field(static=True)  # deformable body and collision geometry
    sizes: tuple[int, ...] = eqx.field(static=True)  # slots of each pair

    def __str__(self) -> str:
        fields = {
            name: getattr(self, name) for name in ("force", "point", "normal", "area", "pressure", "num_left_out")
        }
        return summary_of("DeformableContacts, by pair: of(model, body, geometry)", fields)

    def names(self, model: MultibodyModel) -> tuple[tuple[str, str], ...]:
        """Names of the deformable body and of the collision geometry of each pair."""
        assert model.deformables is not None
        bodies = model.deformables.layout.bodies
        return tuple((bodies[A].scoped_name, model.collision_geometry_name(B)) for A, B in self.pairs)

    def of(self, model: MultibodyModel, body: str | int, geometry: str | int) -> DeformableContact:
        """The contact of one deformable body with one collision geometry."""
        assert model.deformables is not None
        pair = model.deformables.index(body, "of"), model.collision_geometry_index(geometry)
        if pair not in self.pairs:
            known = ", ".join(f"'{A}' and '{B}'" for A, B in self.names(model))
            raise ModelError(f"of: '{body}' and '{geometry}' may not touch. These may: {known or 'none'}.")
        number = self.pairs.index(pair)
        first = int(np.sum(self.sizes[:number]))
        slots = slice(first, first + self.sizes[number])
        force, point, area = self.force[..., slots, :], self.point[..., slots, :], self.area[..., slots]
        total = jnp.sum(area, axis=-1)
        weighed = jnp.sum(area[..., None] * point, axis=-2)
        centroid = safe_divide(weighed, jnp.broadcast_to(total[..., None], weighed.shape))
        torque = jnp.sum(jnp.cross(point - centroid[..., None, :], force), axis=-2)
        return DeformableContact(total, centroid, jnp.concatenate([torque, jnp.sum(force, axis=-2)], axis=-1))


def calc_deformable_contacts(
    model: MultibodyModel, points: NodePoints, f_Bc_W: Float[Array, "3 m"]
) -> DeformableContacts:
    """The results of one world."""
    assert model.deformables is not None
    pairs = model.deformables.layout.contacts
    return DeformableContacts(
        force=f_Bc_W.T,
        point=points.p_WC.T,
        normal=-points.normal_W.T,
        area=points.area,
        pressure=points.pressure,
        is_active=points.active,
        num_left_out=points.left_out,
        pairs=tuple((pair.deformable, pair.geometry) for pair in pairs),
        sizes=tuple(pair.max_faces for pair in pairs),
    )
