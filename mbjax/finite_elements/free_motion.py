"""The velocities of deformable bodies at the end of a step in which nothing but their own forces acts on them.

    M (v - v0) / dt + (α M + β K) v + f(x) = f_external        x = x0 + dt/2 (v0 + v)

with the derivative f of the elastic energy, K its positive part, and Rayleigh's damping. Velocities are implicit,
positions follow by the midpoint rule, as in Drake. Newton's method with a line search solves it to rounding.
Derivatives follow from the equation at its solution, by one solve with its exact derivative.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from mbjax.linear_algebra.block_tridiagonal import (
    BlockCholesky,
    BlockTridiagonal,
    factor_block_tridiagonal,
    solve_block_tridiagonal,
)
from mbjax.linear_algebra.conjugate_residuals import solve_by_conjugate_residuals

from .assembly import (
    from_layers,
    sum_at_nodes,
    sum_in_layers,
    sum_of_groups,
    to_layers,
    with_identity_where_held,
)
from .convex_stiffness import convex_stiffness, stiffness_in_search
from .element_kinds import ElementKind
from .elements import (
    ByGroup,
    ReferencePoints,
    by_laws,
    deformation_gradient,
    elastic_forces,
    lame_at_points,
    mass_times,
    repeated_at_points,
    stiffness_matrices,
    sum_of_points,
)
from .material_laws import LAWS, AbstractMaterialLaw, LameConstants, wide
from .mesh_structure import ElementGroup, MeshStructure

MOST_ITERATIONS = 100
MAX_HALVINGS = 20
MOST_RISE = 0.1  # of the potential in a line search, in units of what is summed there: damping changes, too
IN_BALANCE = {4: 1e-5, 8: 1e-11}  # largest residual of a solution relative to the largest force, by bytes of a float
ROUNDED = 2.0  # in units of eps: what is left of stresses whose parts cancel, as near rest, relative to these parts
OF_ONE_SOLVE = 32.0  # times as much may one solve leave, whose rounding grows with the number of nodes
SHORT = 0.2  # a step of the line search, below which Newton's next matrix has no eigenvalue dropped
SLOPE_LEFT = 0.5  # of a line search: as much of the slope at its start may be left, upward
ROUNDED_SLOPE = 8.0  # the same where the slope at the start is upward, which is rounding
RESTS = {4: 1e-6, 8: 1e-14}  # of the right-hand side, in a derivative, by bytes of a float
DIRECTIONS_KEPT, MOST_DIRECTIONS = 12, 72


class ElementNumbers(NamedTuple):
    """Numbers of each element: Lamé's constants, mass in kg, and Rayleigh's damping in 1/s and s."""

    lame: LameConstants
    mass: Float[Array, " m"]
    mass_damping: Float[Array, " m"]
    stiffness_damping: Float[Array, " m"]


class ElementsOfStep(NamedTuple):
    """What a step reads of the elements of a group: the motion of their nodes at the start, points, and numbers."""

    x0: Float[Array, "m k 3"]
    v0: Float[Array, "m k 3"]
    points: ReferencePoints
    rotations: Float[Array, "q 3 3"]
    numbers: ElementNumbers


class MotionProblem(eqx.Module):
    """A step of deformable bodies: start, points of elements with rotations there, and external forces at the nodes.

    `points` and `rotations` are those of each group of elements.
    """

    x0: Float[Array, "n 3"]
    v0: Float[Array, "n 3"]
    time_step: Float[Array, ""]
    points: ByGroup
    rotations: ByGroup
    numbers: ElementNumbers
    forces: Float[Array, "n 3"]


class NodeVelocities(NamedTuple):
    """Velocities at the end of the step, and whether each body's were found within the iterations allowed."""

    v: Float[Array, "n 3"]
    num_iterations: Int[Array, ""]
    converged: Bool[Array, " bodies"]


class ElementEquation(NamedTuple):
    """What elements need to move with v at the step's end: inertial forces, elastic ones with damping; and the matrix.

    `cancelled` is the size of the parts of stress that cancel near rest, as forces. The matrix is Newton's:
    (1/dt + α) M + (dt/2 + β) K. The forces are the derivative of `potential` but for the change of damping with F.
    """

    inertial: Float[Array, "m k 3"]
    elastic: Float[Array, "m k 3"]
    cancelled: Float[Array, "m k 1"]
    matrix: Float[Array, "m 3k 3k"]
    potential: Float[Array, " m"] | None


def calc_element_equation(
    law: AbstractMaterialLaw,
    kind: ElementKind,
    dt: Array,
    of: ElementsOfStep,
    v: Float[Array, "m k 3"],
    turns: Bool[Array, " m"] | None = None,
) -> ElementEquation:
    """Forces and Newton's matrix of each element.

    A search says of which elements negative eigenvalues are not dropped but turned positive, and gets the potential.
    """
    numbers, gradients, volume, count = of.numbers, of.points.gradients, of.points.volume, kind.num_points
    lame, damping = lame_at_points(kind, numbers.lame), repeated_at_points(count, numbers.stiffness_damping)
    F = deformation_gradient(repeated_at_points(count, of.x0 + 0.5 * dt * (of.v0 + v)), gradients)
    rate = deformation_gradient(repeated_at_points(count, v), gradients)
    if turns is None:
        K = convex_stiffness(law, F, of.rotations, lame)
        damped = (K @ rate.reshape(-1, 9, 1)).reshape(-1, 3, 3)
    else:
        K, damped = stiffness_in_search(law, F, of.rotations, lame, repeated_at_points(count, turns), rate)
    P = law.stress(F, of.rotations, lame) + wide(damping) * damped
    change = (v - of.v0) / dt + wide(numbers.mass_damping) * v
    momentum = mass_times(kind, numbers.mass, change)
    of_mass = wide((1.0 / dt + numbers.mass_damping) * numbers.mass / kind.mass_unit)
    of_mass = of_mass * np.kron(kind.mass_numbers, np.eye(3)).astype(v.dtype)
    potential = None
    if turns is not None:
        density = 2.0 / dt * law.energy_density(F, of.rotations, lame)
        density = density + 0.5 * damping * jnp.sum(rate * damped, axis=(1, 2))
        of_masses = (v - of.v0) * mass_times(kind, numbers.mass, v - of.v0) / dt
        of_masses = of_masses + v * mass_times(kind, numbers.mass_damping * numbers.mass, v)
        potential = sum_of_points(count, volume * density) + 0.5 * jnp.sum(of_masses, axis=(1, 2))
    of_stiffness = stiffness_matrices(kind, wide((0.5 * dt + damping) * volume) * K, gradients)
    parts = (2.0 * lame.mu + 3.0 * jnp.abs(lame.lam)) * jnp.max(jnp.abs(F), axis=(1, 2))
    cancelled = wide(parts * volume) * jnp.max(jnp.abs(gradients), axis=-1, keepdims=True)
    elastic = elastic_forces(P, of.points)
    return ElementEquation(
        jnp.broadcast_to(momentum, v.shape),
        sum_of_points(count, elastic),
        sum_of_points(count, cancelled),
        of_stiffness + of_mass,
        potential,
    )


class Equation(NamedTuple):
    """Forces required less forces that act, at each node; the size of what is summed there; and Newton's matrix.

    Nodes that are held have their velocity as residual. `potential` is that of each body, whose derivative by v the
    residual is but for the change of damping with F, and the size of what is summed there.
    """

    residual: Float[Array, "n 3"]
    size: Float[Array, "n 3"]
    matrix: BlockTridiagonal
    potential: Float[Array, "2 bodies"] | None


def calc_equation(
    mesh: MeshStructure, problem: MotionProblem, v: Float[Array, "n 3"], turns: Bool[Array, " bodies"] | None = None
) -> Equation:
    """The step's equation at velocities v.

    A search says whose Newton matrix has no eigenvalue dropped, and gets the potential.
    """
    of_elements = None if turns is None else turns[mesh.body_of_element]

    def of_group(group: ElementGroup, points: ReferencePoints, rotations: Array) -> ElementEquation:
        def equation(
            law: AbstractMaterialLaw, of: ElementsOfStep, v: Array, turns: Array | None = None
        ) -> ElementEquation:
            return calc_element_equation(law, group.kind, problem.time_step, of, v, turns)

        x0, v0 = problem.x0[group.nodes], problem.v0[group.nodes]
        of = ElementsOfStep(x0, v0, points, rotations, group.of(problem.numbers))
        others = () if of_elements is None else (group.of(of_elements),)
        return by_laws(group, equation, of, v[group.nodes], *others)

    def at_nodes(group: ElementGroup, found: ElementEquation) -> Float[Array, "n 6"]:
        sizes = jnp.abs(found.inertial) + jnp.abs(found.elastic) + rounded * found.cancelled
        both = jnp.concatenate([found.inertial + found.elastic, sizes], axis=-1)
        return sum_at_nodes(mesh, group.nodes, both)

    rounded = ROUNDED * float(jnp.finfo(v.dtype).eps) / IN_BALANCE[v.dtype.itemsize]
    groups = zip(mesh.groups, problem.points, problem.rotations, strict=True)
    found = [(group, of_group(group, points, rotations)) for group, points, rotations in groups]
    total = sum_of_groups([at_nodes(*x) for x in found])
    held = mesh.is_held[:, None]
    residual = jnp.where(held, v, total[:, :3] - problem.forces)
    size = jnp.where(held, jnp.abs(v), total[:, 3:] + jnp.abs(problem.forces))
    matrix = sum_of_groups([sum_in_layers(mesh, group.nodes, x.matrix) for group, x in found])
    potential = None
    if turns is not None:
        of_bodies = sum_of_groups([potential_of_bodies(mesh, group, x) for group, x in found])
        done = problem.forces * v
        potential = of_bodies + jnp.stack([-by_body(mesh, done), by_body(mesh, jnp.abs(done))])
    return Equation(residual, size, with_identity_where_held(mesh, matrix), potential)


def potential_of_bodies(mesh: MeshStructure, group: ElementGroup, of: ElementEquation) -> Float[Array, "2 bodies"]:
    """Sum and size of the potential of a group's elements, for each body."""
    assert of.potential is not None
    both, bodies = jnp.stack([of.potential, jnp.abs(of.potential)], axis=1), group.of(mesh.body_of_element)
    return jax.ops.segment_sum(both, bodies, mesh.num_bodies).T


def calc_residual(mesh: MeshStructure, problem: MotionProblem, v: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
    """The residual of the step's equation alone."""
    return calc_equation(mesh, problem, v).residual


def calc_tangent(mesh: MeshStructure, problem: MotionProblem, v: Float[Array, "n 3"]) -> BlockTridiagonal:
    """Newton's matrix alone, symmetric and positive definite."""
    return calc_equation(mesh, problem, v).matrix


def is_linear(mesh: MeshStructure) -> bool:
    """Whether one solve finds the solution: the stress of every law is linear in F."""
    return all(LAWS[law].is_linear for law in mesh.laws_of_bodies)


def by_body(mesh: MeshStructure, values: Float[Array, "n 3"]) -> Float[Array, " bodies"]:
    """Sum over the nodes of each body."""
    return jax.ops.segment_sum(jnp.sum(values, axis=1), mesh.body_of_node, mesh.num_bodies, indices_are_sorted=True)


def largest_by_body(mesh: MeshStructure, values: Float[Array, "n 3"]) -> Float[Array, " bodies"]:
    """Largest number of each body; NaN where one is."""
    return jax.ops.segment_max(jnp.max(values, axis=1), mesh.body_of_node, mesh.num_bodies, indices_are_sorted=True)


def calc_node_velocities(mesh: MeshStructure, problem: MotionProblem) -> NodeVelocities:
    """The velocities at the end of the step, with their derivatives."""
    found = search_node_velocities(mesh, lax.stop_gradient(problem))
    return found._replace(v=motion_with_rule(mesh, problem, found.v))


class Search(NamedTuple):
    """State of Newton's method: velocities, the equation there, and which bodies are done.

    `turns` says whose matrix has no eigenvalue dropped.
    """

    v: Float[Array, "n 3"]
    equation: Equation
    num_iterations: Int[Array, ""]
    turns: Bool[Array, " bodies"]
    done: Bool[Array, " bodies"]
    converged: Bool[Array, " bodies"]


def search_node_velocities(mesh: MeshStructure, problem: MotionProblem) -> NodeVelocities:
    """Newton's method from the velocities of the step's start; each body has a line search of its own."""
    eps = float(jnp.finfo(problem.v0.dtype).eps)
    tolerance = IN_BALANCE[problem.v0.dtype.itemsize]
    of_nodes = mesh.body_of_node

    def direction_at(equation: Equation) -> Float[Array, "n 3"]:
        factors = factor_block_tridiagonal(equation.matrix)
        return -solve_at_nodes(mesh, factors, equation.residual)

    def is_balanced(equation: Equation, times: float = 1.0) -> Bool[Array, " bodies"]:
        largest = largest_by_body(mesh, equation.size)
        return largest_by_body(mesh, jnp.abs(equation.residual)) <= times * tolerance * largest

    def iterate(now: Search) -> Search:
        direction = direction_at(now.equation)
        is_number = jnp.isfinite(by_body(mesh, direction))  # else the matrix is singular but for rounding
        moves = is_number & ~now.done
        direction = jnp.where(moves[of_nodes, None], direction, 0.0)
        t, equation = line_search(mesh, problem, now, direction, moves)
        rounding = 8.0 * eps * largest_by_body(mesh, jnp.abs(now.v) + jnp.abs(problem.x0) / problem.time_step)
        share = jnp.where(t > 0.0, t, 1.0)
        is_still = is_number & (share * largest_by_body(mesh, jnp.abs(direction)) <= rounding)
        is_finite, is_stuck = jnp.isfinite(by_body(mesh, equation.residual)), (t == 0.0) & now.turns
        converged = is_balanced(equation) | is_still | (is_stuck & is_balanced(equation, OF_ONE_SOLVE))
        converged = jnp.where(now.done, now.converged, converged & is_finite)
        done = now.done | converged | is_stuck | ~is_finite
        moved = now.v + t[of_nodes, None] * direction
        return Search(moved, equation, now.num_iterations + 1, t < SHORT, done, converged)

    v, none = jnp.where(mesh.is_held[:, None], 0.0, problem.v0), jnp.zeros(mesh.num_bodies, bool)
    equation = calc_equation(mesh, problem, v, None if is_linear(mesh) else none)
    if is_linear(mesh):
        v = v + direction_at(equation)
        return NodeVelocities(v, jnp.ones((), jnp.int32), is_balanced(calc_equation(mesh, problem, v), OF_ONE_SOLVE))
    found = lax.while_loop(
        lambda now: jnp.any(~now.done) & (now.num_iterations < MOST_ITERATIONS),
        iterate,
        Search(v, equation, jnp.zeros((), jnp.int32), none, none, none),
    )
    return NodeVelocities(found.v, found.num_iterations, found.converged)


def solve_at_nodes(mesh: MeshStructure, factors: BlockCholesky, b: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
    """Solves with the factors of a matrix for one vector of the nodes."""
    return from_layers(mesh, solve_block_tridiagonal(factors, to_layers(mesh, b[..., None])))[..., 0]


def line_search(
    mesh: MeshStructure,
    problem: MotionProblem,
    now: Search,
    direction: Float[Array, "n 3"],
    moves: Bool[Array, " bodies"],
) -> tuple[Float[Array, " bodies"], Equation]:
    """The share of `direction`, for each body, at which neither slope nor potential has risen far: 1, 1/2, …, or 0.

    The slope is direction · residual, which is negative at the start but for rounding. The second result is the
    equation there. Where the share is short no eigenvalue of its matrix is dropped.
    """
    start = by_body(mesh, direction * now.equation.residual)
    most = jnp.where(start < 0.0, SLOPE_LEFT, ROUNDED_SLOPE) * jnp.abs(start)

    def at(t: Array) -> tuple[Bool[Array, " bodies"], Equation]:
        equation = calc_equation(mesh, problem, now.v + t[mesh.body_of_node, None] * direction, t < SHORT)
        slope = by_body(mesh, direction * equation.residual)
        assert equation.potential is not None
        assert now.equation.potential is not None
        (potential, size), (before, size_before) = equation.potential, now.equation.potential
        rises = ~(potential - before <= MOST_RISE * (size + size_before))
        return (~(slope <= most) | rises) & (t > 0.0), equation

    def shorten(carry: tuple) -> tuple:
        t, is_far, _, count = carry
        t = jnp.where(is_far & (count > 0), jnp.where(count > MAX_HALVINGS, 0.0, 0.5 * t), t)
        return t, *at(t), count + 1

    def unfinished(carry: tuple) -> Array:
        _, is_far, _, count = carry
        return jnp.any(is_far) & (count < MAX_HALVINGS + 2)

    t = moves.astype(direction.dtype)
    first = t, jnp.ones_like(moves), now.equation, jnp.zeros((), jnp.int32)
    t, _, equation, _ = lax.while_loop(unfinished, shorten, first)
    return t, equation


@eqx.filter_custom_jvp
def motion_with_rule(mesh: MeshStructure, problem: MotionProblem, v: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
    """Returns the solution v unchanged; the derivative rule differentiates the equation that it solves."""
    return v


@motion_with_rule.def_jvp
def _motion_with_rule_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    mesh, problem, v = primals
    v = motion_with_rule(mesh, problem, v)  # needed for second derivatives
    _, change = eqx.filter_jvp(lambda p: calc_residual(mesh, p, v), (problem,), (tangents[1],))

    def product(dv: Array) -> Array:
        return jax.jvp(lambda v: calc_residual(mesh, problem, v), (v,), (dv,))[1]

    factors = factor_block_tridiagonal(calc_tangent(mesh, *lax.stop_gradient((problem, v))))

    def solve_near(b: Array) -> Float[Array, "n 3"]:
        return solve_at_nodes(mesh, factors, b)

    def solve(product: Any, b: Array) -> Float[Array, "n 3"]:
        if is_linear(mesh):
            return solve_near(b)
        # Newton's matrix is near: it lacks dropped eigenvalues and what damping changes.
        return solve_by_conjugate_residuals(
            product,
            solve_near,
            b,
            tolerance=RESTS[b.dtype.itemsize],
            num_directions=DIRECTIONS_KEPT,
            max_iterations=MOST_DIRECTIONS,
        )

    return v, lax.custom_linear_solve(product, -change, solve, solve, symmetric=is_linear(mesh))
