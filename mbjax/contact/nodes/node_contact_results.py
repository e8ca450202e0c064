"""Results of contact of deformable bodies: points with forces, and each pair as a whole."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel, summary_of
from mbjax.spatial import safe_divide

from .node_point_records import NodePoints


class DeformableContact(eqx.Module):
    """Contact of a deformable body A with another body B, as a whole: with a collision geometry, or a deformable one.

    `spatial_force` F_Bc_W, torque first, acts on B at the `centroid` of the surface, which is zero where nothing
    touches; the opposite acts on A.
    """

    area: Float[Array, "*batch"]  # m²
    centroid: Float[Array, "*batch 3"]  # in the world, m
    spatial_force: Float[Array, "*batch 6"]  # N m and N


class DeformableContacts(eqx.Module):
    """Polygons in which deformable bodies press into collision geometries, and into each other, in m slots.

    A slot without contact has zero area. `force` f_Bc_W acts on body B at `point` p_WC; the opposite acts on the
    deformable body A. `normal` nhat_BA_W points out of B into A. `num_left_out` counts, for each pair, what of it goes
    beyond the bound on its polygons and has no force: `set_max_faces` raises it. `of` has a pair as a whole. Pairs with
    collision geometries come first.
    """

    force: Float[Array, "*batch m 3"]  # N
    point: Float[Array, "*batch m 3"]  # m
    normal: Float[Array, "*batch m 3"]
    area: Float[Array, "*batch m"]  # m²
    pressure: Float[Array, "*batch m"]  # Pa, at the step's start; of two deformables their depth times 1e8
    is_active: Bool[Array, "*batch m"]
    num_left_out: Int[Array, "*batch pairs"]
    pairs: tuple[tuple[int, int], ...] = eqx.field(static=True)  # deformable body and collision geometry
    body_pairs: tuple[tuple[int, int], ...] = eqx.field(static=True)  # two deformable bodies
    sizes: tuple[int, ...] = eqx.field(static=True)  # slots of each pair

    def __str__(self) -> str:
        fields = {
            name: getattr(self, name) for name in ("force", "point", "normal", "area", "pressure", "num_left_out")
        }
        return summary_of("DeformableContacts, by pair: of(model, body, geometry)", fields)

    def names(self, model: MultibodyModel) -> tuple[tuple[str, str], ...]:
        """Names of A and B of each pair: a deformable body, and a collision geometry or a second deformable body."""
        return names_of_pairs(model, self.pairs, self.body_pairs)

    def of(self, model: MultibodyModel, body: str | int, other: str | int) -> DeformableContact:
        """The contact of a deformable body with a collision geometry, or with another deformable body by its name.

        The force is that on `other`.
        """
        number, is_turned = self._find(model, body, other)
        first = int(np.sum(self.sizes[:number]))
        slots = slice(first, first + self.sizes[number])
        force, point, area = self.force[..., slots, :], self.point[..., slots, :], self.area[..., slots]
        total = jnp.sum(area, axis=-1)
        weighed = jnp.sum(area[..., None] * point, axis=-2)
        centroid = safe_divide(weighed, jnp.broadcast_to(total[..., None], weighed.shape))
        torque = jnp.sum(jnp.cross(point - centroid[..., None, :], force), axis=-2)
        on_B = jnp.concatenate([torque, jnp.sum(force, axis=-2)], axis=-1)
        return DeformableContact(total, centroid, -on_B if is_turned else on_B)

    def _find(self, model: MultibodyModel, body: str | int, other: str | int) -> tuple[int, bool]:
        """The place of a pair, and whether `other` is its deformable body A."""
        deformables = model.deformables
        assert deformables is not None
        A = deformables.index(body, "of")
        names = {name for x in deformables.layout.bodies for name in (x.name, x.scoped_name)}
        if isinstance(other, str) and other in names:
            B = deformables.index(other, "of")
            for pair, is_turned in (((A, B), False), ((B, A), True)):
                if pair in self.body_pairs:
                    return len(self.pairs) + self.body_pairs.index(pair), is_turned
        else:
            pair = A, model.collision_geometry_index(other)
            if pair in self.pairs:
                return self.pairs.index(pair), False
        known = ", ".join(f"'{A}' and '{B}'" for A, B in self.names(model))
        raise ModelError(f"of: '{body}' and '{other}' may not touch. These may: {known or 'none'}.")


def names_of_pairs(
    model: MultibodyModel, pairs: Sequence[tuple[int, int]], body_pairs: Sequence[tuple[int, int]]
) -> tuple[tuple[str, str], ...]:
    """Names of a deformable body and a collision geometry, then those of two deformable bodies."""
    assert model.deformables is not None
    bodies = [body.scoped_name for body in model.deformables.layout.bodies]
    with_geometries = ((bodies[A], model.collision_geometry_name(B)) for A, B in pairs)
    return (*with_geometries, *((bodies[A], bodies[B]) for A, B in body_pairs))


def calc_deformable_contacts(
    model: MultibodyModel, points: NodePoints, f_Bc_W: Float[Array, "3 m"]
) -> DeformableContacts:
    """The results of one world."""
    assert model.deformables is not None
    layout = model.deformables.layout
    return DeformableContacts(
        force=f_Bc_W.T,
        point=points.p_WC.T,
        normal=-points.normal_W.T,
        area=points.area,
        pressure=points.pressure,
        is_active=points.active,
        num_left_out=points.left_out,
        pairs=tuple((pair.deformable, pair.geometry) for pair in layout.contacts),
        body_pairs=tuple((pair.deformable_A, pair.deformable_B) for pair in layout.body_contacts),
        sizes=tuple(pair.max_faces for pair in layout.all_pairs),
    )
