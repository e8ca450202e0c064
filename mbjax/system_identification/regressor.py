"""The regressor: inverse dynamics as a matrix times the numbers that it is linear in.

    tau = Y(q, v, vdot) pi

Columns, in this order (`linear_parameter_names`):
    ten a body, the world left out: m, m c (x, y, z), then the inertia about Bo (xx, yy, zz, xy, xz, yz), in the body's
        frame; kg, kg m, kg m²
    damping of each direction; Coulomb friction of each direction, with the smooth law of a continuous plant
    reflected inertia of each velocity: armatures and rotors
    for each spring in a joint: its stiffness, and stiffness times nominal position
A row of a body is R_WBᵀ of its Newton-Euler equation, projected on the directions that move the body
(Khalil and Dombre 2002, chapter 12).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.array_types import Accelerations, Positions, Velocities
from mbjax.dynamics import calc_reflected_inertia
from mbjax.execution import compiled_outside_jit
from mbjax.execution.arrays import take
from mbjax.forces import PrismaticSpring, RevoluteSpring
from mbjax.kinematics import (
    bodies_with_gravity,
    calc_acceleration_kinematics,
    calc_body_accelerations,
    calc_body_poses,
    calc_body_velocities,
    calc_position_kinematics,
    calc_velocity_kinematics,
    for_worlds_of,
)
from mbjax.model import (
    MultibodyModel,
    all_joint_velocities,
    as_coordinates,
    direction_ratios,
    joint_positions,
)
from mbjax.parameters.named_numbers import body_labels, joint_labels
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_sqrt
from mbjax.topology import sum_directions

from .log import contact_projectors, first_contact_row
from .system import velocity_labels

TEN = ("mass", "mc.x", "mc.y", "mc.z", "I.xx", "I.yy", "I.zz", "I.xy", "I.xz", "I.yz")


@compiled_outside_jit
def regressor(model: MultibodyModel, q: Positions, v: Velocities, vdot: Accelerations) -> Float[Array, "nv parameters"]:
    """Y with Y pi = `inverse_dynamics(model, q, v, vdot, force_elements=True)`, in N m or N per parameter's unit.

    pi is `linear_parameters(model)`. Gravity is in the columns of the bodies. Force elements other than springs in
    joints are not linear in numbers and are left out.
    """
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    v = as_coordinates("v", v, model.num_velocities, model.dtype)
    vdot = as_coordinates("vdot", vdot, model.num_velocities, model.dtype)
    topology = model.topology
    wrenches, S = for_worlds_of(calc_wrenches_and_directions, model, q, v, vdot)
    wrenches = wrenches.reshape(len(TEN), 6, -1)
    moves = jnp.asarray(topology.moves[:, np.array(topology.body_mobods)[1:]], S.dtype)  # (nd, nb-1)
    torques = [S[i][:, None, None] * wrenches[:, i].T[None] for i in range(6)]
    bodies = sum_directions(topology, sum(torques[1:], torques[0]) * moves[:, :, None])
    return jnp.concatenate([bodies.reshape(bodies.shape[0], -1), joint_columns(model, q, v, vdot)], -1)


def calc_wrenches_and_directions(
    model: MultibodyModel, q: Array, v: Array, vdot: Array
) -> tuple[Float[Array, "60 nb-1"], Float[Array, "6 nd"]]:
    """Wrenches about T that each of the ten numbers of a body needs, six components each, and the directions S_T."""
    position = calc_position_kinematics(model, q)
    velocity = calc_velocity_kinematics(model, position, q, v)
    acceleration = calc_acceleration_kinematics(model, position, velocity, v, vdot)
    bodies = np.arange(1, len(model.body_names))
    R_WB, p_WB = calc_body_poses(model, position)
    V = calc_body_velocities(model, position, velocity)
    A = calc_body_accelerations(model, position, velocity, acceleration)
    R_WB, p_WB, V, A = (take(x, bodies, axis) for x, axis in ((R_WB, 2), (p_WB, 1), (V, 1), (A, 1)))
    p_WT = take(position.p_WM - position.p_TM_W, np.array(model.topology.body_mobods)[1:], 1)
    wrenches = calc_wrenches(R_WB, p_WB - p_WT, V, A, calc_gravity_of_bodies(model))
    return ca.stack_many([component for wrench in wrenches for component in wrench]), position.S_T


def calc_gravity_of_bodies(model: MultibodyModel) -> Float[Array, "3 nb-1"]:
    """Acceleration of gravity that each body feels, in W."""
    enabled, gravity = bodies_with_gravity(model)[1:], model.parameters.gravity
    mask = jnp.asarray(enabled, gravity.dtype).reshape(1, -1, *(1,) * model.num_world_axes)
    return gravity[:, None] * mask


def calc_wrenches(
    R_WB: Float[Array, "3 3 n"],
    p_TB: Float[Array, "3 n"],
    V: Float[Array, "6 n"],
    A: Float[Array, "6 n"],
    gravity: Float[Array, "3 n"],
) -> list[list[Array]]:
    """Wrench about T, in W, as six components, that each of the ten numbers of a body needs.

    With e the columns of R_WB, a the acceleration of Bo less gravity:
        m       f = a                                    n_B = 0
        m c_k   f = alpha x e_k + w x (w x e_k)          n_B = e_k x a
        I_kl    f = 0                                    n_B = E_kl alpha + w x E_kl w,  E_kl = (e_k e_lᵀ + e_l e_kᵀ)
    and n_T = n_B + p_TB x f.
    """  # fmt: skip
    w, alpha, a = V[:3], A[:3], A[3:] - gravity
    e = [R_WB[:, k] for k in range(3)]
    zero = jnp.zeros_like(a)
    pairs: list[tuple[Array, Array]] = [(ca.cross(p_TB, a), a)]
    for axis in e:
        f = ca.cross(alpha, axis) + ca.cross(w, ca.cross(w, axis))
        pairs.append((ca.cross(axis, a) + ca.cross(p_TB, f), f))
    w_B, alpha_B = [ca.dot(axis, w) for axis in e], [ca.dot(axis, alpha) for axis in e]
    turned = [ca.cross(w, axis) for axis in e]
    for k, m in ca.SYMMETRIC_PAIRS:
        n = ca.scale(e[k], alpha_B[m]) + ca.scale(turned[k], w_B[m])
        if k != m:
            n = n + ca.scale(e[m], alpha_B[k]) + ca.scale(turned[m], w_B[k])
        pairs.append((n, zero))
    return [[*jnp.unstack(n), *jnp.unstack(f)] for n, f in pairs]


def joint_columns(model: MultibodyModel, q: Array, v: Array, vdot: Array) -> Float[Array, "nv columns"]:
    """Columns of damping, friction, reflected inertia and springs."""
    v_all, v_s = all_joint_velocities(model, v), model.parameters.friction_velocity
    parts = [
        forces_per_direction(model, v_all),
        forces_per_direction(model, v_all / safe_sqrt(v_all * v_all + v_s * v_s)),
        jnp.diag(vdot),
    ]
    for joint in spring_joints(model):
        place = model.joint(joint).all_v_start
        unit = jnp.zeros((model.topology.num_directions,), v.dtype).at[place].set(1.0)
        along = forces_per_direction(model, unit)[:, place]
        parts += [(along * joint_positions(model, q, joint)[0])[:, None], -along[:, None]]
    return jnp.concatenate(parts, -1)


def forces_per_direction(model: MultibodyModel, x: Float[Array, " nd"]) -> Float[Array, "nv nd"]:
    """Generalized forces of a force x in each direction, by direction."""
    if not model.topology.followers:
        return jnp.diag(x)
    return sum_directions(model.topology, jnp.diag(direction_ratios(model) * x))


def spring_joints(model: MultibodyModel) -> tuple[int, ...]:
    """Joints of the model's springs in joints, in the order of the force elements."""
    return tuple(e.joint for e in model.force_elements if isinstance(e, RevoluteSpring | PrismaticSpring))


def linear_parameters(model: MultibodyModel) -> Float[Array, " parameters"]:
    """The numbers pi that inverse dynamics is linear in, in the order of the regressor's columns."""
    p = model.parameters
    m = p.body_mass[:, None]
    bodies = jnp.concatenate([m, m * p.body_com, m * p.body_unit_inertia], -1).reshape(-1)
    springs = []
    for element in model.force_elements:
        if isinstance(element, RevoluteSpring | PrismaticSpring):
            nominal = element.nominal_angle if isinstance(element, RevoluteSpring) else element.nominal_position
            springs += [element.stiffness, element.stiffness * nominal]
    parts = [bodies, p.joint_damping, p.joint_friction, calc_reflected_inertia(model)]
    return jnp.concatenate([*parts, *([jnp.stack(springs)] if springs else [])])


def linear_parameter_names(model: MultibodyModel) -> tuple[str, ...]:
    """Names of the regressor's columns, such as `forearm.mass`, `elbow.damping`."""
    names = [f"{body}.{what}" for body in body_labels(model)[1:] for what in TEN]
    directions = direction_labels(model)
    names += [f"{label}.{what}" for what in ("damping", "friction") for label in directions]
    names += [f"{label}.reflected_inertia" for label in velocity_labels(model)]
    for joint in spring_joints(model):
        names += [f"{joint_labels(model)[joint]}.spring_{what}" for what in ("stiffness", "stiffness_times_position")]
    return tuple(names)


def direction_labels(model: MultibodyModel) -> tuple[str, ...]:
    """Names of the directions of all joints, those that mimic included."""
    if not model.topology.followers:
        return velocity_labels(model)
    labels = [""] * model.topology.num_directions
    for label, joint in zip(joint_labels(model), model.layout.joints, strict=True):
        for i, place in enumerate(range(joint.all_v.start, joint.all_v.stop)):
            labels[place] = label if joint.all_v.stop - joint.all_v.start == 1 else f"{label}_{i}"
    return tuple(labels)


@compiled_outside_jit
def regressor_of_log(
    model: MultibodyModel,
    q: Float[Array, "steps nq"],
    v: Float[Array, "steps nv"],
    vdot: Float[Array, "steps nv"],
    contacts: tuple[str, ...] = (),
    contact_rows: int = 3,
) -> Float[Array, "steps nv parameters"]:
    """Regressors of many samples.

    `contacts` are bodies that touch something with forces nobody measured: what they could do at the bodies' origins,
    in three translations or with `contact_rows=6` also torques, is projected out, as `Torques(contacts=)` does.
    """
    first = first_contact_row("regressor_of_log", contact_rows)
    Y = jax.vmap(lambda q, v, vdot: regressor(model, q, v, vdot))(q, v, vdot)
    if not contacts:
        return Y
    return contact_projectors(model, q, tuple(contacts), first) @ Y
