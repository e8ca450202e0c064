"""A step's deformable bodies: their free motion, and what bodies that they are fixed to feel of them.

First each body moves as if nothing held it but walls. Then the step's convex problem, whose matrix of a deformable body
is the tangent at that motion, finds the impulses at nodes that are fixed to rigid bodies, as in Drake.
"""

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mbjax.contact import NEAR_RIGID, ConvexProblem, CoupledRows, OtherRows
from mbjax.dynamics import ForwardDynamicsTerms
from mbjax.dynamics.composite_body.mass_matrix_diagonal import calc_mass_matrix_diagonal
from mbjax.execution import each_world
from mbjax.finite_elements import (
    ElementNumbers,
    FixedNodeRows,
    MotionProblem,
    NodeVelocities,
    calc_fixed_node_rows,
    calc_node_response,
    calc_node_velocities,
    calc_node_weights,
    calc_reference_elements,
    calc_start_rotations,
    calc_tangent,
    calc_volume_forces,
)
from mbjax.kinematics import PositionKinematics, calc_body_poses, calc_point_jacobian
from mbjax.linear_algebra import solve_upper_triangular
from mbjax.model import DeformableBodies, MultibodyModel
from mbjax.spatial import component_algebra as ca

from .ports import Inputs
from .state import NodeState, State


class NodesOfStep(NamedTuple):
    """Free motion of the nodes, and the rows of those fixed to bodies; None without any."""

    free: NodeVelocities
    rows: FixedNodeRows | None


class NodeMotion(NamedTuple):
    """Velocities of the nodes at the step's end, forces F_Bo_W on the bodies, and whether each motion was found."""

    v: Float[Array, "n 3"]
    F_Bo_W: Float[Array, "nb 6"] | None
    converged: Array


def calc_nodes_of_step(model: MultibodyModel, state: State, inputs: Inputs, terms: ForwardDynamicsTerms) -> NodesOfStep:
    """The deformable bodies' part of a step, before the step's convex problem is solved."""
    diagonal = None
    if model.has_fixed_nodes:
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
    mesh = deformables.mesh
    problem = calc_motion_problem(model, deformables, nodes, node_forces)
    free = calc_node_velocities(mesh, problem)
    if not model.has_fixed_nodes:
        return NodesOfStep(free, None)
    assert diagonal is not None
    fixed = deformables.layout.fixed
    places = np.concatenate([x.nodes for x in fixed])
    p_WQ, G = calc_anchors(model, terms.position)
    G = jnp.where(terms.locked | ~are_rows_enabled(deformables)[:, None], 0.0, G)
    response = calc_node_response(mesh, calc_tangent(mesh, problem, free.v), problem.time_step, places)
    owner = jnp.asarray(np.repeat(np.arange(len(fixed)), [len(x.nodes) for x in fixed]))
    error = p_WQ - nodes.position[places]
    rows = calc_fixed_node_rows(
        response, places, owner, G, terms.v, diagonal, free.v, error, problem.time_step, NEAR_RIGID
    )
    return NodesOfStep(free, rows)


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
    masses = deformables.by_element("mass_density") * elements.volume
    has_gravity = np.array([body.has_gravity for body in deformables.layout.bodies])[mesh.body_of_element]
    gravity = jnp.where(has_gravity[:, None], model.parameters.gravity, 0.0)
    v0 = jnp.where(mesh.is_held[:, None], 0.0, nodes.velocity)
    forces = calc_node_weights(mesh, masses, gravity)
    if node_forces is not None:
        forces = forces + node_forces
    for density in deformables.force_densities:
        ahead = nodes.position + dt * v0
        forces = forces + calc_volume_forces(mesh, elements, ahead, density.function, density.per == "current_volume")
    numbers = ElementNumbers(
        deformables.lame_constants(),
        masses,
        deformables.by_element("mass_damping"),
        deformables.by_element("stiffness_damping"),
    )
    rotations = calc_start_rotations(mesh, elements, nodes.position)
    return MotionProblem(nodes.position, v0, dt, elements, rotations, numbers, forces)


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


def with_fixed_nodes(problem: ConvexProblem, nodes: NodesOfStep) -> ConvexProblem:
    """The step's problem with the rows of fixed nodes after those of constraints."""
    if nodes.rows is None or problem.v.shape[0] == 0:
        return problem
    rows = CoupledRows(nodes.rows.G, nodes.rows.start, jnp.ones_like(nodes.rows.start))
    before = problem.others.coupled
    if before is not None:
        parts = zip((before.G, before.start, before.stiffness), (rows.G, rows.start, rows.stiffness), strict=True)
        rows = CoupledRows(*(ca.concatenate([a, b], 0) for a, b in parts))
    return dataclasses.replace(problem, others=OtherRows(problem.others.box, rows))


def calc_node_motion(
    model: MultibodyModel, nodes: NodesOfStep, vdot: Float[Array, " nv"], position: PositionKinematics
) -> NodeMotion:
    """The nodes' motion in the step whose acceleration is vdot."""
    return each_world(_calc_node_motion, model.num_world_axes, model, nodes, vdot, position)


def _calc_node_motion(
    model: MultibodyModel, nodes: NodesOfStep, vdot: Float[Array, " nv"], position: PositionKinematics
) -> NodeMotion:
    deformables, free, rows = model.deformables, nodes.free, nodes.rows
    assert deformables is not None
    if rows is None:
        return NodeMotion(free.v, None, free.converged)
    impulse = rows.start - rows.G @ (model.time_step * vdot)
    gamma = jnp.where(are_rows_enabled(deformables), solve_upper_triangular(rows.L.T, impulse), 0.0)
    v = free.v - jnp.einsum("nir,r->ni", rows.response, gamma)
    return NodeMotion(v, calc_forces_on_bodies(model, position, gamma / model.time_step), free.converged)


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
    """The nodes after a step with the velocities v at its end: the midpoint rule. Disabled bodies stay as they are."""
    deformables = model.deformables
    assert deformables is not None
    moves = deformables.enabled[deformables.mesh.body_of_node] != 0.0
    moves = moves[:, None]
    v = jnp.where(moves, v, 0.0)
    v0 = jnp.where(moves, nodes.velocity, 0.0)
    return NodeState(nodes.position + 0.5 * model.time_step * (v0 + v), v)
