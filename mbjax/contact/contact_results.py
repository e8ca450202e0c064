"""Contact results, as the plant's output port reports them: forces, points and speeds of every slot."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from mbjax.execution import take
from mbjax.kinematics import PositionKinematics
from mbjax.model import MultibodyModel, summary_of
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_sqrt

from .contact_points import ContactPoints


class ContactForces(eqx.Module):
    """Contact points, forces on B at C, velocities of B's material relative to A's, and Jᵀ f; components first."""

    points: ContactPoints
    f_Bc_W: Float[Array, "3 m"]
    v_AcBc_W: Float[Array, "3 m"]
    generalized: Float[Array, " nv"]
    num_iterations: Int[Array, ""] | None = None
    converged: Bool[Array, ""] | None = None
    num_left_out: Int[Array, ""] | None = None


class ContactResults(eqx.Module):
    """Results of m contact slots; a slot without contact has zero force. Drake's PointPairContactInfo.

    Slot i belongs to the pair `pair_indices[i]` of the model's pairs of geometries; body A is that of the first one.
    `force` f_Bc_W acts on B at `point` p_WC; the opposite acts on A. `normal` nhat_BA_W points out of B into A.
    `depth` is negative where the surfaces are apart. Speeds are those of B's material relative to A's:
    `separation_speed` along -normal, `slip_speed` across. `converged` says whether the equation of the whole step was
    solved. `num_left_out` counts the touching points beyond the plant's `max_contacts`, which have no force; with
    prediction, or a smoothing length, it also counts points that would touch at the end of the step.
    `num_pairs_left_out` counts the pairs beyond the plant's `max_pairs` that were not looked at, although bounding
    spheres of their shapes overlap or are within the smoothing length.
    """

    is_active: Bool[Array, "*batch m"]
    force: Float[Array, "*batch m 3"]
    point: Float[Array, "*batch m 3"]
    normal: Float[Array, "*batch m 3"]
    depth: Float[Array, "*batch m"]
    separation_speed: Float[Array, "*batch m"]
    slip_speed: Float[Array, "*batch m"]
    is_degenerate: Bool[Array, "*batch m"]
    converged: Bool[Array, "*batch"]
    num_iterations: Int[Array, "*batch"]
    num_left_out: Int[Array, "*batch"]
    num_pairs_left_out: Int[Array, "*batch"]
    pair_indices: tuple[int, ...] = eqx.field(static=True)

    def __str__(self) -> str:
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        del fields["pair_indices"]
        return summary_of("ContactResults, by name: mbjax.describe(model, outputs.contact_results)", fields)

    def names(self, model: MultibodyModel) -> tuple[tuple[str, str, str, str], ...]:
        """Names of body A, geometry A, body B and geometry B of each slot."""
        contact = model.layout.contact
        sides = [[contact.geometries[g] for g in contact.pairs[i]] for i in self.pair_indices]
        return tuple((model.body_names[A.body], A.name, model.body_names[B.body], B.name) for A, B in sides)


def calc_contact_results(position: PositionKinematics, contacts: ContactForces) -> ContactResults:
    """Contact results of one world, from its points, forces and relative velocities."""
    points = contacts.points
    separation = ca.dot(points.normal_W, contacts.v_AcBc_W)
    slip = contacts.v_AcBc_W - ca.scale(points.normal_W, separation)
    p_WC = take(position.p_WM, points.mobods_A, 1) + points.p_MaC_W
    zero, true = jnp.zeros((), jnp.int32), jnp.ones((), bool)
    return ContactResults(
        jnp.any(contacts.f_Bc_W != 0.0, axis=0),
        contacts.f_Bc_W.T,
        p_WC.T,
        -points.normal_W.T,
        -points.distance,
        separation,
        safe_sqrt(ca.dot(slip, slip)),
        points.degenerate,
        true if contacts.converged is None else contacts.converged,
        zero if contacts.num_iterations is None else contacts.num_iterations,
        zero if contacts.num_left_out is None else contacts.num_left_out,
        points.num_pairs_left_out,
        points.pairs,
    )
