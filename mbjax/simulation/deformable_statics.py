"""Deformable bodies at rest under forces, and their energies and momenta."""

import itertools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mbjax.errors import ModelError
from mbjax.execution import call_compiled, require_one_model
from mbjax.finite_elements import (
    ElementNumbers,
    MotionProblem,
    at_mass_points,
    bodies_of_mass_points,
    calc_elastic_energies,
    calc_mass_averages,
    calc_node_velocities,
    calc_reference_elements,
    calc_reference_points,
    calc_start_rotations,
)
from mbjax.kinematics import calc_position_kinematics
from mbjax.model import DeformableBodies, MultibodyModel, as_array
from mbjax.number_rules import is_known
from mbjax.spatial import safe_divide

from .deformable_step import calc_anchors_of_nodes, calc_motion_problem
from .state import NodeState, State, as_state, default_state

ON_A_LINE = 8.0  # in units of eps: det I / (trace I)³, at most 1/27, of masses whose width is rounding


class DeformableEquilibrium(NamedTuple):
    """A state whose deformable bodies are at rest, and whether each body's positions were found to rounding."""

    state: State
    converged: Bool[Array, " bodies"]


def require_deformables(model: MultibodyModel, call: str) -> DeformableBodies:
    """The model's deformable bodies; raises `ModelError` where there are none."""
    require_one_model(model)
    if model.deformables is None:
        raise ModelError(f"{call}: the model has no deformable bodies. Add one by plant.add_deformable_body.")
    return model.deformables


def deformable_equilibrium(
    model: MultibodyModel, state: State | None = None, node_forces: Any = None
) -> DeformableEquilibrium:
    """Positions of all nodes at which elastic forces balance gravity, forces per volume and `node_forces` (n, 3) in N.

    Rigid bodies stay at the `state`'s q: nodes that are fixed to them are at their anchors, and those behind walls
    where the state has them. Each body must be held somewhere, but for disabled ones, which stay as they are. The
    search starts from the state's nodes; the result is differentiated by every number at the solution, to any order.

    Forces per volume are those where nodes start. Where they are others at the result, as of a density that depends on
    the place, `converged` is false: call again from the result, until it is true. Derivatives hold such forces.
    """
    deformables = require_deformables(model, "deformable_equilibrium")
    state = default_state(model) if state is None else as_state(model, state)
    count = deformables.mesh.num_nodes
    if node_forces is not None:
        node_forces = as_array("node_forces", node_forces, 3 * count, model.dtype)
        if node_forces.shape != (count, 3):
            raise ModelError(f"deformable_equilibrium: node_forces has shape {node_forces.shape}, not {(count, 3)}.")
    held = nodes_held_at_rest(deformables)
    is_off = np.asarray(deformables.enabled) == 0.0 if is_known(deformables.enabled) else np.zeros(held.shape, bool)
    for body in deformables.layout.bodies:
        if not is_off[body.index] and held[deformables.mesh.nodes(body.index)].sum() < 3:
            raise ModelError(
                f"deformable_equilibrium: body '{body.name}' is held at fewer than three nodes and could move away. "
                "Hold it by plant.set_wall_boundary_condition or plant.add_fixed_constraint."
            )
    return call_compiled(_deformable_equilibrium, model, state, node_forces)


def nodes_held_at_rest(deformables: DeformableBodies) -> Bool[np.ndarray, " n"]:
    """Mask of the nodes that walls or rigid bodies hold."""
    held = np.array(deformables.mesh.is_held)
    for fixed in deformables.layout.fixed:
        held[list(fixed.nodes)] = True
    return held


def _deformable_equilibrium(
    model: MultibodyModel, state: State, node_forces: Float[Array, "n 3"] | None
) -> DeformableEquilibrium:
    deformables, nodes = model.deformables, state.nodes
    assert deformables is not None
    assert nodes is not None
    position, is_on = nodes.position, deformables.enabled != 0.0
    if deformables.layout.fixed:
        places = np.concatenate([x.nodes for x in deformables.layout.fixed])
        anchors = calc_anchors_of_nodes(model, calc_position_kinematics(model, state.q))
        position = position.at[places].set(anchors)
    moves, of_element = is_on[deformables.mesh.body_of_node][:, None], is_on[deformables.mesh.body_of_element]
    position = jnp.where(moves, position, deformables.rest_positions())
    rest = NodeState(position, jnp.zeros_like(position))
    moving = calc_motion_problem(model, deformables, rest, node_forces)
    # A step of 2 s from rest without mass or damping: x = x0 + v, and the residual is that of the forces at x. Disabled
    # bodies keep their mass instead, as they may be free, and feel no forces where they have no strain.
    none = jnp.zeros_like(moving.numbers.mass)
    numbers = ElementNumbers(moving.numbers.lame, jnp.where(of_element, none, moving.numbers.mass), none, none)
    two, forces = jnp.full((), 2.0, model.dtype), jnp.where(moves, moving.forces, 0.0)
    problem = MotionProblem(position, rest.velocity, two, moving.points, moving.rotations, numbers, forces)
    found = calc_node_velocities(deformables.mesh.at_rest(nodes_held_at_rest(deformables)), problem)
    after = NodeState(jnp.where(moves, position + found.v, nodes.position), jnp.zeros_like(position))
    converged = found.converged
    if deformables.force_densities:
        there = calc_motion_problem(model, deformables, after, node_forces).forces
        converged &= are_alike(deformables, moving.forces, there)
    converged |= ~is_on
    return DeformableEquilibrium(State(state.q, state.v, state.time, after), converged)


def are_alike(
    deformables: DeformableBodies, forces: Float[Array, "n 3"], others: Float[Array, "n 3"]
) -> Bool[Array, " bodies"]:
    """Whether the forces at the nodes of each body are the others, to 1e-6 of the body's largest; 1e-3 in float32."""
    tolerance, found = 1e-6 if forces.dtype == jnp.float64 else 1e-3, []
    for body in deformables.layout.bodies:
        of_body = deformables.mesh.nodes(body.index)
        largest = jnp.max(jnp.abs(forces[of_body]))
        found.append(jnp.max(jnp.abs(others[of_body] - forces[of_body])) <= tolerance * largest)
    return jnp.stack(found)


class DeformableEnergies(NamedTuple):
    """Elastic and kinetic energy of each deformable body, in J."""

    elastic: Float[Array, " bodies"]
    kinetic: Float[Array, " bodies"]


def deformable_energies(model: MultibodyModel, state: State) -> DeformableEnergies:
    """Elastic and kinetic energy of each deformable body at a state.

    The linear corotated law is taken with the rotations of the state itself.
    """
    require_deformables(model, "deformable_energies")
    return call_compiled(_deformable_energies, model, as_state(model, state))


def _deformable_energies(model: MultibodyModel, state: State) -> DeformableEnergies:
    deformables, nodes = model.deformables, state.nodes
    assert deformables is not None
    assert nodes is not None
    mesh = deformables.mesh
    points = calc_reference_points(mesh, calc_reference_elements(mesh, deformables.reference_positions))
    rotations = calc_start_rotations(mesh, points, nodes.position)
    elastic = calc_elastic_energies(mesh, points, deformables.lame_constants(), rotations, nodes.position)
    velocities = at_mass_points(mesh, nodes.velocity)
    half = 0.5 * deformables.element_masses()
    kinetic = half * calc_mass_averages(mesh, tuple(jnp.sum(v**2, axis=-1) for v in velocities))
    return DeformableEnergies(sum_by_body(deformables, elastic), sum_by_body(deformables, kinetic))


class DeformableMomentum(NamedTuple):
    """Of each deformable body: mass in kg, centre of mass, its velocity, and angular momentum about the centre."""

    mass: Float[Array, " bodies"]
    center_of_mass: Float[Array, "bodies 3"]  # in the world, m
    velocity: Float[Array, "bodies 3"]  # m/s
    angular_momentum: Float[Array, "bodies 3"]  # kg m²/s
    angular_velocity: Float[Array, "bodies 3"]  # of a rigid body with that angular momentum and inertia, rad/s


def deformable_momentum(model: MultibodyModel, state: State) -> DeformableMomentum:
    """Momenta of each deformable body, with masses as in the mass matrix of a step: at centroids of linear elements.

    `angular_velocity` is Drake's effective angular velocity; about a line on which all masses lie, as those of a single
    linear element do, it is zero.
    """
    require_deformables(model, "deformable_momentum")
    return call_compiled(_deformable_momentum, model, as_state(model, state))


def _deformable_momentum(model: MultibodyModel, state: State) -> DeformableMomentum:
    deformables, nodes = model.deformables, state.nodes
    assert deformables is not None
    assert nodes is not None
    mesh = deformables.mesh
    m = deformables.element_masses()
    p, v = at_mass_points(mesh, nodes.position), at_mass_points(mesh, nodes.velocity)
    mass = sum_by_body(deformables, m)
    center, velocity = (
        sum_by_body(deformables, m[:, None] * calc_mass_averages(mesh, x)) / mass[:, None] for x in (p, v)
    )
    bodies = bodies_of_mass_points(mesh)
    r = [x - center[body] for x, body in zip(p, bodies, strict=True)]
    u = [x - velocity[body] for x, body in zip(v, bodies, strict=True)]
    turning = calc_mass_averages(mesh, tuple(map(jnp.cross, r, u)))
    momentum = sum_by_body(deformables, m[:, None] * turning)
    squares = calc_mass_averages(mesh, tuple(map(squares_about_axes, r)))
    inertia = sum_by_body(deformables, m[:, None, None] * squares)
    is_point = np.bincount(np.concatenate(bodies)) == 1
    inertia = jnp.where(is_point[:, None, None], 0.0, inertia)  # not what rounding leaves of it
    return DeformableMomentum(mass, center, velocity, momentum, solve_inertia(inertia, momentum))


def squares_about_axes(r: Float[Array, "q 3"]) -> Float[Array, "q 3 3"]:
    """|r|² - r rᵀ: inertia of a unit mass."""
    return jnp.sum(r * r, axis=-1)[:, None, None] * jnp.eye(3, dtype=r.dtype) - r[:, :, None] * r[:, None, :]


def solve_inertia(inertia: Float[Array, "bodies 3 3"], momentum: Float[Array, "bodies 3"]) -> Float[Array, "bodies 3"]:
    """I⁻¹ L by cofactors, and without rotation about a line on which all masses lie.

    About such a line there is neither inertia nor momentum, and about others there is half of the inertia's trace.
    """
    trace = jnp.trace(inertia, axis1=1, axis2=2)[:, None]
    a, b, c = jnp.moveaxis(safe_divide(inertia, trace[:, None]), 1, 0)
    cofactors = jnp.stack([jnp.cross(b, c), jnp.cross(c, a), jnp.cross(a, b)], axis=-2)
    determinant = jnp.sum(a * cofactors[:, 0], axis=-1, keepdims=True)
    is_line = determinant <= ON_A_LINE * jnp.finfo(inertia.dtype).eps
    determinant = jnp.where(is_line, 1.0, determinant)
    across = safe_divide(2.0 * momentum, trace)
    solved = safe_divide(jnp.sum(cofactors * momentum[:, None, :], axis=-1), determinant * trace)
    return jnp.where(is_line, across, solved)


def sum_by_body(deformables: DeformableBodies, values: Float[Array, "m ..."]) -> Float[Array, "bodies ..."]:
    """Sums numbers of elements over each body."""
    counts = np.cumsum([0, *deformables.mesh.elements_of_bodies])
    return jnp.stack([jnp.sum(values[i:j], axis=0) for i, j in itertools.pairwise(counts)])
