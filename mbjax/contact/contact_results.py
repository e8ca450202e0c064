"""Contact results, as the plant's output port reports them: forces, points and speeds of every slot."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mbjax.errors import ModelError
from mbjax.execution.arrays import dot_with_mask, take
from mbjax.kinematics import PositionKinematics
from mbjax.model import MultibodyModel, summary_of
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_sqrt

from .movers.moved_bodies import find_moved_bodies
from .points.point_records import ContactPoints
from .rows.rows_of_step import OfRows
from .search.convex_problem import ConvexProblem
from .search.convex_search import ConvexSolution
from .surface_contacts import SurfaceContact, calc_surface_contacts


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

    Forces in N, points and depths in m and speeds in m/s; vectors are in the world.
    Slot i belongs to the pair `pair_indices[i]` of the model's pairs of geometries; body A is that of the first one.
    `force` f_Bc_W acts on B at `point` p_WC; the opposite acts on A. `normal` nhat_BA_W points out of B into A.
    `depth` is negative where the surfaces are apart. Speeds are those of B's material relative to A's:
    `separation_speed` along -normal, `slip_speed` across. `converged` says whether the equation of the whole step was
    solved. `num_left_out` counts the touching points beyond the plant's `max_contacts`, which have no force; with
    prediction, or a smoothing length, it also counts points that would touch at the end of the step.
    `num_pairs_left_out` counts the pairs beyond the plant's `max_pairs` that were not looked at, although bounding
    spheres of their shapes overlap or are within the smoothing length. The slots of a hydroelastic pair are the faces
    of its surface, whose depth is pressure over gradient; `surfaces` has such pairs as wholes.
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
    surfaces: tuple[SurfaceContact, ...] = ()

    def __str__(self) -> str:
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        del fields["pair_indices"], fields["surfaces"]
        return summary_of("ContactResults, by name: mbjax.describe(model, outputs.contact_results)", fields)

    def names(self, model: MultibodyModel) -> tuple[tuple[str, str, str, str], ...]:
        """Names of body A, geometry A, body B and geometry B of each slot."""
        contact = model.layout.contact
        sides = [[contact.geometries[g] for g in contact.pairs[i]] for i in self.pair_indices]
        return tuple((model.body_names[A.body], A.name, model.body_names[B.body], B.name) for A, B in sides)

    def surface(self, model: MultibodyModel, geometry_A: str, geometry_B: str) -> SurfaceContact:
        """The contact of a hydroelastic pair by the names of its geometries, in the model's order."""
        A, B = (model.collision_geometry_index(geometry) for geometry in (geometry_A, geometry_B))
        found = {model.layout.contact.pairs[contact.pair_index]: contact for contact in self.surfaces}
        if (A, B) not in found:
            names = model.collision_geometry_names
            known = [f"'{names[a]}' and '{names[b]}'" for a, b in found]
            raise ModelError(
                f"surface: '{geometry_A}' and '{geometry_B}' are no hydroelastic pair, in this order. "
                f"The model has {', '.join(known) if known else 'none'}."
            )
        return found[A, B]


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
        calc_surface_contacts(points, p_WC, contacts.f_Bc_W),
    )


def calc_contact_forces_on_bodies(
    model: MultibodyModel, position: PositionKinematics, points: ContactPoints, f_Bc_W: Float[Array, "3 m"]
) -> Float[Array, "6 nb"]:
    """Spatial forces of all contacts on all bodies, about the bodies' origins, in W; A receives the opposite of B's."""
    contact = model.layout.contact
    total = None
    for side, p_MC_W, sign in ((0, points.p_MaC_W, -1.0), (1, points.p_MbC_W, 1.0)):
        bodies = [contact.geometries[contact.pairs[pair][side]].body for pair in points.pairs]
        mobods = [model.topology.body_mobods[b] for b in bodies]
        p_MB_W = ca.matvec(take(position.R_WM, mobods, 2), take(position.placement.p_MB, bodies, 1))
        f = sign * f_Bc_W
        F = ca.concatenate([ca.cross(p_MC_W - p_MB_W, f), f], 0)
        F = dot_with_mask(F, np.array(bodies)[:, None] == np.arange(model.num_bodies), 1)
        total = F if total is None else total + F
    return total


def calc_contact_forces_of_step(
    model: MultibodyModel,
    problem: ConvexProblem,
    points: ContactPoints,
    solution: ConvexSolution,
    motion: OfRows,
    impulses: OfRows,
) -> ContactForces:
    """Forces at all contact points over a step, from its solution and the motion and impulses of its rows."""
    form = problem.contacts
    assert form is not None
    assert impulses.contacts is not None
    assert motion.contacts is not None
    f_Bc_W = impulses.contacts / model.time_step
    tau, v_AcBc_W, num_left_out = form.generalized(f_Bc_W), form.v_AcBc_W + motion.contacts, None
    if form.slots is not None:
        moved = find_moved_bodies(model.topology, problem.terms.position, points)
        v_AcBc_W = moved.velocities(problem.v + model.time_step * solution.vdot)
        num_left_out = count_left_out(model, points, form.slots, v_AcBc_W)
        f_Bc_W = in_all_slots(f_Bc_W, form.slots, len(points.pairs))
    return ContactForces(points, f_Bc_W, v_AcBc_W, tau, solution.num_iterations, solution.converged, num_left_out)


def count_left_out(
    model: MultibodyModel, points: ContactPoints, slots: Int[Array, " k"], v_AcBc_W: Float[Array, "3 m"]
) -> Int[Array, ""]:
    """Counts points outside `slots` that touch now, or at the end of a step that ends with these velocities.

    At the step's end, surfaces nearer than the smoothing length count as touching.
    """
    length = model.zeros() if model.collision.smoothing_length is None else model.collision.smoothing_length
    distance_after = points.distance + model.time_step * ca.dot(points.normal_W, v_AcBc_W)
    acts = points.active & ((points.distance < 0.0) | (distance_after < length))
    kept = jnp.take_along_axis(acts, slots, 0)
    return jnp.sum(acts, axis=0, dtype=jnp.int32) - jnp.sum(kept, axis=0, dtype=jnp.int32)


def in_all_slots(x: Float[Array, "3 k"], slots: Int[Array, " k"], num_points: int) -> Float[Array, "3 m"]:
    """Scatters vectors of the points worked on to the slots of all points; zero elsewhere."""
    worlds = jnp.broadcast_shapes(x.shape[2:], slots.shape[1:])
    x, slots = (jnp.broadcast_to(y, (3, y.shape[-1 - len(worlds)], *worlds)) for y in (x, slots))
    return jnp.put_along_axis(jnp.zeros((3, num_points, *worlds), x.dtype), slots, x, axis=1, inplace=False)
