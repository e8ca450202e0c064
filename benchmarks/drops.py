"""Random drops: bodies of random shape, size, mass and motion that fall on the ground, or on one another.

All that differs between the worlds of one batch is numbers, so a batch is one program: the shapes' kinds, the
approximation and the number type are static, everything else is a leaf, the time step too.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import mbjax
from mbjax.geometry import (
    Box,
    Capsule,
    Convex,
    Cylinder,
    Ellipsoid,
    Geometry,
    HalfSpace,
    ProximityProperties,
    Sphere,
)
from mbjax.spatial import quaternion_to_matrix

GROUND = "ground"
CORNERS = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
SHAPES = {
    "sphere": Sphere(1.0),
    "box": Box((1.0, 1.0, 1.0)),
    "capsule": Capsule(1.0, 1.0),
    "cylinder": Cylinder(1.0, 1.0),
    "ellipsoid": Ellipsoid(1.0, 1.0, 1.0),
    "convex": Convex(tuple(map(tuple, CORNERS))),
}
TIME_STEPS = (1e-4, 1e-2)  # s, least and largest
MASSES = (1e-3, 1e3)  # kg: ratios up to 1e6
ALLOWANCES = (1e-5, 1e-3)  # m, of penetration: stiffness follows from it
GRAVITY = 9.81  # m/s²


@dataclasses.dataclass(frozen=True)
class Drop:
    """What one program is made for: the shapes from the ground up, the approximation, the number type."""

    shapes: tuple[str, ...]
    approximation: str = "sap"
    dtype: str = "float64"

    @property
    def names(self) -> tuple[str, ...]:
        """One body a shape, the lowest first."""
        return tuple(f"{shape}{i}" for i, shape in enumerate(self.shapes))


class Start(eqx.Module):
    """A model and a state of one world; in a batch every array has its axis of worlds."""

    model: mbjax.MultibodyModel
    state: mbjax.State
    smallest_length: Float[Array, ""]  # m: of all half lengths and radii
    outer_lengths: Float[Array, " n"]  # m: radii of balls around the bodies


class Outcome(eqx.Module):
    """What was seen in one world, over all its steps.

    `energy_growth` in J is the largest rise of kinetic and gravity's energy above that of the start, where nothing
    touches, less what gyroscopic forces allow. Multiplying the step's equation by v⁺ bounds it by zero:

        K⁺ - K = dt v⁺ᵀ(τ_g - C v) + γᵀ J v⁺ - ½ |v⁺ - v|²_M,    -dt (v⁺ - v)ᵀ C v - ½ |v⁺ - v|²_M <= ½ dt² |C v|²_M⁻¹

    and γᵀ J v⁺ is at most what the springs give back, as far as surfaces move in straight lines during a step.
    """

    is_finite: Array
    energy_growth: Float[Array, ""]
    peak_energy: Float[Array, ""]  # largest kinetic energy
    deepest: Float[Array, ""]  # m
    crossed: Array  # through the ground, or through one another
    driven: Array  # a step moved a body by more than half the smallest half length: it may pass what it meets
    unconverged: Array  # steps
    most_iterations: Array
    touched: Array
    final: mbjax.State


def build(drop: Drop) -> mbjax.MultibodyModel:
    """Bodies of size and mass 1 on a half-space; every number is replaced in each world."""
    plant = mbjax.MultibodyPlant(1e-3, discrete_contact_approximation=drop.approximation)
    material = ProximityProperties(0.5, 0.5, hunt_crossley_dissipation=1.0, relaxation_time=0.01)
    plant.register_collision_geometry("world", Geometry(GROUND, HalfSpace()), material)
    for name, shape in zip(drop.names, drop.shapes, strict=True):
        plant.add_rigid_body(name, mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 1.0))
        plant.register_collision_geometry(name, Geometry(name, SHAPES[shape]), material)
    return plant.finalize(jnp.dtype(drop.dtype))


def random_start(drop: Drop, model: mbjax.MultibodyModel, key: Array, num_steps: int) -> Start:
    """Sizes 0.04 to 0.4 m, masses 1e-3 to 1e3 kg, speeds up to 5 m/s, all steps and materials.

    Ordinary speeds at the start: in a step, and in the time the spring of a contact takes to stop it, nothing moves
    farther than a quarter of the smallest half length. Bodies meet within the first third of the steps. Contacts of a
    stack are not softened (`sap_near_rigid_threshold`): that is in proportion to the lighter body, which a heavier one
    would sink through.
    """
    keys = iter(jax.random.split(key, 12 + 12 * len(drop.shapes)))

    def uniform(low: float, high: float, shape: tuple = ()) -> Array:
        return jax.random.uniform(next(keys), shape, model.dtype, low, high)

    def log_uniform(low: float, high: float) -> Array:
        return jnp.exp(uniform(float(np.log(low)), float(np.log(high))))

    sizes, vertices, inertias, inner, outer = [], [], [], [], []
    for shape in drop.shapes:
        half = 0.1 * log_uniform(0.4, 4.0) * uniform(0.4, 1.0, (3,))
        size, points, G, least, most = numbers_of_shape(shape, half, uniform)
        sizes.append(size)
        vertices.append(points)
        inertias.append(G)
        inner.append(least)
        outer.append(most)
    masses = jnp.stack([log_uniform(*MASSES) for _ in drop.shapes])
    time_step, allowance, smallest = log_uniform(*TIME_STEPS), log_uniform(*ALLOWANCES), jnp.min(jnp.stack(inner))
    num_geometries = len(drop.shapes) + 1
    leaves = {
        "parameters.body_mass": masses,
        "parameters.body_unit_inertia": jnp.stack(inertias),
        "parameters.time_step": time_step,
        "collision.size": jnp.concatenate(sizes),
        "collision.vertices": jnp.concatenate(vertices),
        "collision.dynamic_friction": uniform(0.0, 1.2) * jnp.ones(num_geometries, model.dtype),
        "collision.relaxation_time": uniform(0.0, 0.1) * jnp.ones(num_geometries, model.dtype),
        "collision.hunt_crossley_dissipation": uniform(0.0, 20.0) * jnp.ones(num_geometries, model.dtype),
        "collision.penetration_allowance": allowance,
        "collision.sap_near_rigid_threshold": jnp.full((), float(len(drop.shapes) == 1), model.dtype),
    }
    for path, value in leaves.items():
        group, name = path.split(".")
        model = eqx.tree_at(lambda m, g=group, n=name: getattr(getattr(m, g), n), model, value)

    quick = 0.25 * smallest / jnp.maximum(time_step, jnp.sqrt(allowance / GRAVITY))
    fastest = jnp.minimum(5.0, quick)
    q, v, height = [], [], jnp.zeros((), model.dtype)
    for i in range(len(drop.shapes)):
        speed = fastest * uniform(0.0, 1.0)
        spin = jnp.minimum(10.0, quick / outer[i]) * uniform(-1.0, 1.0, (3,))
        height = height + outer[i] + uniform(0.01, 0.3) * num_steps * time_step * speed / (i + 1)
        q += [jax.random.normal(next(keys), (4,), model.dtype), 0.1 * inner[i] * uniform(-1.0, 1.0, (2,)), height[None]]
        v += [spin, speed * 0.3 * uniform(-1.0, 1.0, (2,)), -speed[None]]
        height = height + outer[i]
    state = mbjax.State(jnp.concatenate(q), jnp.concatenate(v), jnp.zeros((), model.dtype))
    return Start(model, state, smallest, jnp.stack(outer))


def numbers_of_shape(shape: str, half: Float[Array, "3"], uniform: Any) -> tuple[Array, Array, Array, Array, Array]:
    """Sizes, vertices, unit inertia, and the radii of a ball inside and of one around it."""
    x, y, z = half
    along_z, none, no_points = [0.0, 0.0, 1.0], jnp.zeros(0, half.dtype), jnp.zeros((0, 3), half.dtype)
    solid = mbjax.UnitInertia
    match shape:
        case "sphere":
            return x[None], no_points, six(solid.solid_sphere(x)), x, x
        case "box":
            inertia = solid.solid_box(2.0 * x, 2.0 * y, 2.0 * z)
            return 2.0 * half, no_points, six(inertia), jnp.min(half), jnp.linalg.norm(half)
        case "capsule":
            return jnp.stack([x, z]), no_points, six(solid.solid_capsule(x, z, along_z)), x, x + 0.5 * z
        case "cylinder":
            inertia = solid.solid_cylinder(x, z, along_z)
            return jnp.stack([x, z]), no_points, six(inertia), jnp.minimum(x, 0.5 * z), jnp.hypot(x, 0.5 * z)
        case "ellipsoid":
            return half, no_points, six(solid.solid_ellipsoid(x, y, z)), jnp.min(half), jnp.max(half)
        case "convex":
            points = jnp.asarray(CORNERS, half.dtype) * half * uniform(0.7, 1.3, (8, 3))
            inertia = solid.solid_box(2.0 * x, 2.0 * y, 2.0 * z)
            return none, points, six(inertia), 0.7 * jnp.min(half), jnp.max(jnp.linalg.norm(points, axis=1))
    raise ValueError(f"no shape '{shape}'")


def six(inertia: mbjax.UnitInertia) -> Float[Array, "6"]:
    """xx, yy, zz, xy, xz, yz."""
    return jnp.concatenate([inertia.moments, inertia.products])


def drop_it(start: Start, num_steps: int) -> Outcome:
    """Steps, and what was seen in them."""
    model = start.model

    def advance(carry: tuple, _: None) -> tuple[tuple, None]:
        state, seen, allowed = carry
        allowed = allowed + gyroscopic_growth(model, state)
        after, outputs = mbjax.step(model, state)
        contacts = outputs.contact_results
        kinetic, energy = energies(model, after)
        now = Outcome(
            jnp.all(jnp.isfinite(after.q)) & jnp.all(jnp.isfinite(after.v)),
            energy - first - allowed,
            kinetic,
            jnp.max(jnp.where(contacts.is_active, contacts.depth, 0.0)),
            is_crossed(start, after),
            is_driven(start, state, after),
            (~contacts.converged).astype(jnp.int32),
            contacts.num_iterations,
            jnp.any(contacts.is_active),
            after,
        )
        return (after, gathered(seen, now), allowed), None

    kinetic, first = energies(model, start.state)
    zero, no, count = jnp.zeros((), model.dtype), jnp.zeros((), bool), jnp.zeros((), jnp.int32)
    seen = Outcome(~no, zero, kinetic, zero, no, no, count, count, no, start.state)
    return jax.lax.scan(advance, (start.state, seen, zero), length=num_steps)[0][1]


def turning(model: mbjax.MultibodyModel, state: mbjax.State) -> tuple[Array, Array]:
    """Angular velocities in the bodies, and their diagonal inertias; (n, 3)."""
    q, v = state.q.reshape(-1, 7), state.v.reshape(-1, 6)
    R_WB = jax.vmap(quaternion_to_matrix)(q[:, :4])
    inertia = model.parameters.body_mass[:, None] * model.parameters.body_unit_inertia[:, :3]
    return jnp.einsum("nij,ni->nj", R_WB, v[:, :3]), inertia


def energies(model: mbjax.MultibodyModel, state: mbjax.State) -> tuple[Array, Array]:
    """Kinetic, and kinetic with gravity's: free bodies about their centres of mass, axes along the principal ones."""
    w_B, inertia = turning(model, state)
    mass, v, height = model.parameters.body_mass, state.v.reshape(-1, 6)[:, 3:], state.q[6::7]
    kinetic = 0.5 * (jnp.sum(inertia * w_B**2) + jnp.sum(mass[:, None] * v**2))
    return kinetic, kinetic + GRAVITY * jnp.sum(mass * height)


def gyroscopic_growth(model: mbjax.MultibodyModel, state: mbjax.State) -> Float[Array, ""]:
    """½ dt² |C v|² in the norm of M⁻¹: what a step may add, since it takes the gyroscopic torque at its start."""
    w_B, inertia = turning(model, state)
    torque = jnp.cross(w_B, inertia * w_B)
    return 0.5 * model.time_step**2 * jnp.sum(torque**2 / inertia)


def is_crossed(start: Start, state: mbjax.State) -> Array:
    """A body's centre below the ground, or two centres nearer than the smallest half length."""
    p = state.q.reshape(-1, 7)[:, 4:]
    crossed = jnp.any(p[:, 2] < 0.0)
    for i in range(p.shape[0]):
        for k in range(i):
            crossed = crossed | (jnp.sum((p[i] - p[k]) ** 2) < start.smallest_length**2)
    return crossed


def is_driven(start: Start, before: mbjax.State, after: mbjax.State) -> Array:
    """A centre moved, or a surface turned, by more than half the smallest half length.

    A heavy body can shoot a light one off like that, or spin it up until the gyroscopic torque, which is that of the
    step's start, spins it faster and faster.
    """
    way = (after.q - before.q).reshape(-1, 7)[:, 4:]
    turn = start.model.time_step * after.v.reshape(-1, 6)[:, :3] * start.outer_lengths[:, None]
    moved = jnp.maximum(jnp.sum(way**2, axis=1), jnp.sum(turn**2, axis=1))
    return jnp.any(moved > (0.5 * start.smallest_length) ** 2)


def gathered(seen: Outcome, now: Outcome) -> Outcome:
    """The worst of what was seen before and now; a NaN stays."""
    return Outcome(
        seen.is_finite & now.is_finite,
        jnp.maximum(seen.energy_growth, now.energy_growth),
        jnp.maximum(seen.peak_energy, now.peak_energy),
        jnp.maximum(seen.deepest, now.deepest),
        seen.crossed | now.crossed,
        seen.driven | now.driven,
        seen.unconverged + now.unconverged,
        jnp.maximum(seen.most_iterations, now.most_iterations),
        seen.touched | now.touched,
        now.final,
    )
