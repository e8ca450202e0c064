"""A step's deformable bodies: their free motion, and what bodies that they are fixed to feel of them.

First each body moves as if nothing held it but walls. Then the step's convex problem, whose matrix of a deformable body
is the tangent at that motion, finds the impulses at contacts and at nodes that are fixed to rigid bodies, as in Drake.
Without contacts, the nodes are eliminated beforehand: fixed nodes alone are linear springs between the bodies.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mbjax.contact import (
    NEAR_RIGID,
    ConvexProblem,
    ConvexSolution,
    CoupledRows,
    DeformableContacts,
    FixedNodeSprings,
    LawInputs,
    NodePoints,
    NodesOfProblem,
    OtherRows,
    calc_contact_law,
    calc_deformable_contacts,
    calc_node_points,
    calc_solution,
    relative_velocities,
    response_of_points,
    size_of_response,
)
from mbjax.dynamics import ForwardDynamicsTerms
from mbjax.dynamics.composite_body.mass_matrix_diagonal import calc_mass_matrix_diagonal
from mbjax.execution import ResumedSearch, each_world
from mbjax.finite_elements import (
    ElementNumbers,
    EliminatedRows,
    FixedNodeRows,
    MeshMatrix,
    MotionProblem,
    NodeVelocities,
    calc_fixed_node_rows,
    calc_node_response,
    calc_node_velocities,
    calc_node_weights,
    calc_reference_elements,
    calc_reference_points,
    calc_start_rotations,
    calc_tangent,
    calc_volume_forces,
    eliminate_nodes_of_mesh,
)
from mbjax.kinematics import PositionKinematics, calc_body_poses, calc_point_jacobian
from mbjax.linear_algebra import solve_upper_triangular
from mbjax.linear_algebra.block_tridiagonal import BlockTridiagonal
from mbjax.model import DeformableBodies, MultibodyModel
from mbjax.spatial import component_algebra as ca

from .ports import Inputs
from .state import NodeState, State


class NodesOfStep(NamedTuple):
    """Free motion of the nodes, and the rows of those fixed to bodies, and contacts; None without any."""

    free: NodeVelocities
    rows: FixedNodeRows | None
    eliminated: EliminatedRows | None = None
    points: NodePoints | None = None
    of_problem: NodesOfProblem | None = None


class NodeMotion(NamedTuple):
    """Velocities of the nodes at the step's end, forces F_Bo_W on the bodies, and whether each motion was found.

    Contacts, and their generalized forces on the bodies, are there where something may touch.
    """

    v: Float[Array, "n 3"]
    F_Bo_W: Float[Array, "nb 6"] | None
    converged: Array
    contacts: DeformableContacts | None = None
    generalized: Float[Array, " nv"] | None = None


def calc_nodes_of_step(model: MultibodyModel, state: State, inputs: Inputs, terms: ForwardDynamicsTerms) -> NodesOfStep:
    """The deformable bodies' part of a step, before the step's convex problem is solved."""
    diagonal = None
    if model.has_fixed_nodes or model.has_node_contacts:
        diagonal = terms.diagonal  # of a model without velocities
        if model.num_velocities > 0:
            diagonal = calc_mass_matrix_diagonal(terms.motion, terms.diagonal, terms.M)
    return each_world(
        _calc_nodes_of_step, model.num_world_axes, model, terms, diagonal, state.nodes, inputs.node_forces
    )


def _calc_nodes_of_step(
    model: MultibodyModel,
    terms: ForwardDynamicsTerms,
    diagonal: Float[Array, " nv"] | None,
    nodes: NodeState,
    node_forces: Float[Array, "n 3"] | None,
) -> NodesOfStep:
    deformables = model.deformables
    assert deformables is not None
    problem = calc_motion_problem(model, deformables, nodes, node_forces)
    free = calc_node_velocities(deformables.mesh, problem)
    if diagonal is None:
        return NodesOfStep(free, None)
    tangent = calc_tangent(deformables.mesh, problem, free.v)
    rows = calc_rows_of_fixed_nodes(model, terms, diagonal, nodes, free, tangent) if model.has_fixed_nodes else None
    if not model.has_node_contacts:
        places = np.concatenate([x.nodes for x in deformables.layout.fixed])
        return NodesOfStep(free, rows, None if rows is None else eliminate_nodes_of_mesh(rows, places))
    points = calc_node_points(model, terms.position, nodes.position)
    points = points._replace(J=jnp.where(terms.locked, 0.0, points.J))
    return NodesOfStep(
        free, None, None, points, calc_nodes_of_problem(model, terms, diagonal, problem, free, tangent, points, rows)
    )


def calc_rows_of_fixed_nodes(
    model: MultibodyModel,
    terms: ForwardDynamicsTerms,
    diagonal: Float[Array, " nv"],
    nodes: NodeState,
    free: NodeVelocities,
    tangent: BlockTridiagonal,
) -> FixedNodeRows:
    """The rows of nodes that are fixed to bodies."""
    deformables = model.deformables
    assert deformables is not None
    fixed = deformables.layout.fixed
    places = np.concatenate([x.nodes for x in fixed])
    p_WQ, G = calc_anchors(model, terms.position)
    G = jnp.where(terms.locked | ~are_rows_enabled(deformables)[:, None], 0.0, G)
    response = calc_node_response(deformables.mesh, tangent, model.time_step, places)
    owner = jnp.asarray(np.repeat(np.arange(len(fixed)), [len(x.nodes) for x in fixed]))
    error = p_WQ - nodes.position[places]
    return calc_fixed_node_rows(
        response, places, owner, G, terms.v, diagonal, free.v, error, model.time_step, NEAR_RIGID
    )


def calc_nodes_of_problem(
    model: MultibodyModel,
    terms: ForwardDynamicsTerms,
    diagonal: Float[Array, " nv"],
    problem: MotionProblem,
    free: NodeVelocities,
    tangent: BlockTridiagonal,
    points: NodePoints,
    rows: FixedNodeRows | None,
) -> NodesOfProblem:
    """The part of the nodes in the step's convex problem."""
    deformables, dt = model.deformables, model.time_step
    assert deformables is not None
    inertia = MeshMatrix(deformables.mesh, BlockTridiagonal(dt * tangent.diagonal, dt * tangent.lower))
    moved = points.nodes, points.weights, points.J
    w = size_of_response(response_of_points(*moved, diagonal, inertia.diagonal()))
    law_inputs = LawInputs(points.distance, points.normal_W, points.active, points.parameters)
    law = calc_contact_law(model, law_inputs, relative_velocities(*moved, terms.v, problem.v0), w)
    springs = None
    if rows is not None:
        stiffness = jnp.where(are_rows_enabled(deformables), 1.0 / rows.R, 0.0)
        springs = FixedNodeSprings(deformables.layout.fixed_nodes, rows.G, stiffness * rows.aim, stiffness)
    v_AcBc_W = relative_velocities(*moved, terms.v, free.v)
    assert points.participants is not None
    first = sum(pair.max_faces for pair in deformables.layout.contacts)
    return NodesOfProblem(first, points.participants, inertia, free.v, law, v_AcBc_W, *moved, springs)


def calc_motion_problem(
    model: MultibodyModel,
    deformables: DeformableBodies,
    nodes: NodeState,
    node_forces: Float[Array, "n 3"] | None,
) -> MotionProblem:
    """The step of all nodes without contact or fixed nodes.

    Forces per volume are taken where the nodes would be after the step with the velocities at its start, as Drake does
    for laws that are linear.
    """
    mesh, dt = deformables.mesh, model.time_step
    elements = calc_reference_elements(mesh, deformables.reference_positions)
    points, loads = calc_reference_points(mesh, elements), calc_reference_points(mesh, elements, "load_points")
    masses = deformables.by_element("mass_density") * elements.volume
    has_gravity = np.array([body.has_gravity for body in deformables.layout.bodies])[mesh.body_of_element]
    gravity = jnp.where(has_gravity[:, None], model.parameters.gravity, 0.0)
    v0 = jnp.where(mesh.is_held[:, None], 0.0, nodes.velocity)
    forces = calc_node_weights(mesh, masses, gravity)
    if node_forces is not None:
        forces = forces + node_forces
    for density in deformables.force_densities:
        ahead = nodes.position + dt * v0
        forces = forces + calc_volume_forces(mesh, loads, ahead, density.function, density.per == "current_volume")
    numbers = ElementNumbers(
        deformables.lame_constants(),
        masses,
        deformables.by_element("mass_damping"),
        deformables.by_element("stiffness_damping"),
    )
    rotations = calc_start_rotations(mesh, points, nodes.position)
    return MotionProblem(nodes.position, v0, dt, points, rotations, numbers, forces)


def calc_anchors(
    model: MultibodyModel, position: PositionKinematics
) -> tuple[Float[Array, "k 3"], Float[Array, "3k nv"]]:
    """Places p_WQ of the anchors of all fixed nodes, and the Jacobian of their velocities."""
    deformables = model.deformables
    assert deformables is not None
    R_WB, p_WB = calc_body_poses(model, position)
    rows = []
    for fixed, p_BQ in zip(deformables.layout.fixed, deformables.anchors, strict=True):
        p_BQ_W = p_BQ @ R_WB[:, :, fixed.body].T
        mobod = model.topology.body_mobods[fixed.body]
        J = calc_point_jacobian(model, position, mobod, p_WB[:, fixed.body] - position.p_WM[:, mobod])
        turned = jnp.cross(J[:3].T[None], p_BQ_W[:, None])
        rows.append((J[3:].T[None] + turned).transpose(0, 2, 1).reshape(3 * len(fixed.nodes), J.shape[1]))
    return calc_anchors_of_nodes(model, position), jnp.concatenate(rows)


def calc_anchors_of_nodes(model: MultibodyModel, position: PositionKinematics) -> Float[Array, "k 3"]:
    """Places p_WQ of the anchors of all fixed nodes."""
    deformables = model.deformables
    assert deformables is not None
    R_WB, p_WB = calc_body_poses(model, position)
    pairs = zip(deformables.layout.fixed, deformables.anchors, strict=True)
    return jnp.concatenate([p_BQ @ R_WB[:, :, fixed.body].T + p_WB[:, fixed.body] for fixed, p_BQ in pairs])


def are_rows_enabled(deformables: DeformableBodies) -> Bool[Array, " r"]:
    """Mask of the rows of fixed nodes whose deformable body is not disabled."""
    owners = [fixed.deformable for fixed in deformables.layout.fixed for _ in fixed.nodes]
    return jnp.repeat(deformables.enabled[np.array(owners)] != 0.0, 3)


def with_fixed_nodes(model: MultibodyModel, problem: ConvexProblem, rows: EliminatedRows | None) -> ConvexProblem:
    """The step's problem with the rows of fixed nodes after those of constraints."""
    if rows is None or model.num_velocities == 0:
        return problem
    coupled = CoupledRows(rows.G, rows.start, jnp.ones_like(rows.start))
    before = problem.others.coupled
    if before is not None:
        coupled = jax.tree.map(lambda a, b: ca.concatenate([a, b], 0), before, coupled)
    return dataclasses.replace(problem, others=OtherRows(problem.others.box, coupled))


def calc_solution_with_nodes(
    model: MultibodyModel, problem: ConvexProblem, nodes: NodesOfProblem, found: ConvexSolution | ResumedSearch | None
) -> ConvexSolution:
    """The solution of the step's problem with nodes: accelerations of the bodies, then those of the nodes."""
    assert not isinstance(found, ResumedSearch), "such a search is not resumed, for it returns none"

    def of_world(model: MultibodyModel, problem: ConvexProblem, nodes: NodesOfProblem, found: Any) -> ConvexSolution:
        return calc_solution(model.topology, dataclasses.replace(problem, nodes=nodes), found)[0]

    return each_world(of_world, model.num_world_axes, model, problem, nodes, found)


def calc_node_motion(
    model: MultibodyModel,
    nodes: NodesOfStep,
    vdot: Float[Array, " k"],
    position: PositionKinematics,
    converged: Bool[Array, ""] | bool = True,
) -> NodeMotion:
    """The nodes' motion in the step whose acceleration is vdot, of the bodies and, where they touch, of the nodes.

    `converged` says whether the step's convex problem was solved.
    """
    return each_world(_calc_node_motion, model.num_world_axes, model, nodes, vdot, position, converged)


def _calc_node_motion(
    model: MultibodyModel,
    nodes: NodesOfStep,
    vdot: Float[Array, " k"],
    position: PositionKinematics,
    converged: Bool[Array, ""] | bool,
) -> NodeMotion:
    deformables, free, rows, dt = model.deformables, nodes.free, nodes.rows, model.time_step
    assert deformables is not None
    if nodes.of_problem is not None and nodes.points is not None:
        nv = model.num_velocities
        change = dt * vdot[nv:].reshape(-1, 3)
        impulses = nodes.of_problem.impulse(nodes.of_problem.motion(dt * vdot[:nv], change))
        f_Bc_W = impulses.contacts / dt
        on_bodies = calc_node_contact_forces_on_bodies(model, position, nodes.points, f_Bc_W)
        if impulses.fixed is not None:
            on_bodies = on_bodies + calc_forces_on_bodies(model, position, impulses.fixed / dt)
        contacts = calc_deformable_contacts(model, nodes.points, f_Bc_W)
        generalized = jnp.einsum("imv,im->v", nodes.points.J, f_Bc_W)
        return NodeMotion(free.v + change, on_bodies, free.converged & converged, contacts, generalized)
    if rows is None:
        return NodeMotion(free.v, None, free.converged)
    eliminated = nodes.eliminated
    assert eliminated is not None
    impulse = eliminated.start - eliminated.G @ (dt * vdot)
    gamma = jnp.where(are_rows_enabled(deformables), solve_upper_triangular(eliminated.L.T, impulse), 0.0)
    v = free.v - jnp.einsum("nir,r->ni", rows.response, gamma)
    return NodeMotion(v, calc_forces_on_bodies(model, position, gamma / dt), free.converged)


def calc_node_contact_forces_on_bodies(
    model: MultibodyModel, position: PositionKinematics, points: NodePoints, f_Bc_W: Float[Array, "3 m"]
) -> Float[Array, "nb 6"]:
    """Spatial forces F_Bo_W on all bodies of their contacts with deformable bodies."""
    deformables = model.deformables
    assert deformables is not None
    _, p_WB = calc_body_poses(model, position)
    total, first = jnp.zeros((model.num_bodies, 6), f_Bc_W.dtype), 0
    for pair in deformables.layout.contacts:
        of_pair = slice(first, first + pair.max_faces)
        first += pair.max_faces
        body = model.layout.contact.geometries[pair.geometry].body
        f = f_Bc_W[:, of_pair]
        moment = jnp.cross(points.p_WC[:, of_pair] - p_WB[:, body, None], f, axis=0)
        total = total.at[body].add(jnp.sum(jnp.concatenate([moment, f]), axis=1))
    return total


def calc_forces_on_bodies(
    model: MultibodyModel, position: PositionKinematics, forces: Float[Array, " r"]
) -> Float[Array, "nb 6"]:
    """Spatial forces F_Bo_W on all bodies of the forces at the anchors of fixed nodes."""
    deformables = model.deformables
    assert deformables is not None
    R_WB, _ = calc_body_poses(model, position)
    total, first = jnp.zeros((model.num_bodies, 6), forces.dtype), 0
    for fixed, p_BQ in zip(deformables.layout.fixed, deformables.anchors, strict=True):
        f = forces[first : first + p_BQ.size].reshape(-1, 3)
        first += p_BQ.size
        moment = jnp.sum(jnp.cross(p_BQ @ R_WB[:, :, fixed.body].T, f), axis=0)
        total = total.at[fixed.body].add(jnp.concatenate([moment, jnp.sum(f, axis=0)]))
    return total


def advance_nodes(model: MultibodyModel, nodes: NodeState, v: Float[Array, "n 3"]) -> NodeState:
    """The nodes after a step with the velocities v at its end: the midpoint rule.

    Disabled bodies and held nodes stay where they are, whatever velocities the state gives them.
    """
    deformables = model.deformables
    assert deformables is not None
    mesh = deformables.mesh
    is_on = deformables.enabled[mesh.body_of_node] != 0.0
    moves = (is_on & ~mesh.is_held.reshape(-1, *(1,) * (is_on.ndim - 1)))[:, None]  # worlds may follow
    v = jnp.where(moves, v, 0.0)
    v0 = jnp.where(moves, nodes.velocity, 0.0)
    return NodeState(nodes.position + 0.5 * model.time_step * (v0 + v), v)
