"""A small arm whose motion and efforts the tests share, and a box that slides."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

import mbjax
from mbjax import system_identification as si


@functools.cache
def two_links(time_step: float = 0.0) -> mbjax.MultibodyModel:
    """Two links on revolute joints with skew axes, friction, damping, and a spring in the second."""
    plant = mbjax.MultibodyPlant(time_step)
    for name, mass in (("upper", 2.0), ("lower", 1.2)):
        G = mbjax.UnitInertia(0.05, 0.06, 0.04, 0.003, -0.002, 0.004)
        plant.add_rigid_body(name, mbjax.SpatialInertia(mass, [0.05, 0.02, -0.15], G))
    joints = (("first", "world", "upper", [0.1, 1.0, 0.2]), ("second", "upper", "lower", [0.3, 0.9, -0.4]))
    for name, parent, child, axis in joints:
        offset = [0.0, 0.05, -0.3 if parent == "upper" else 0.0]
        joint = mbjax.RevoluteJoint(name, parent, child, X_PF=offset, axis=axis, damping=0.3)
        plant.add_joint(joint)
        plant.add_joint_actuator(f"{name}_motor", name)
    plant.add_force_element(mbjax.RevoluteSpring("second", 0.2, 3.0))
    model = plant.finalize()
    for name in ("first", "second"):
        model = mbjax.set_joint_armature(mbjax.set_joint_friction(model, name, 0.4), name, 0.02)
    return model


def motion(num_velocities: int, steps: int = 200, period: float = 0.01, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Times, positions, velocities and accelerations of a smooth motion."""
    rng = np.random.default_rng(seed)
    time = period * np.arange(steps)
    w = 2.0 * math.pi * np.array([0.6, 1.1, 1.7])
    a, b = rng.normal(size=(2, 3, num_velocities)) * 0.4
    sine, cosine = np.sin(np.outer(time, w)), np.cos(np.outer(time, w))
    q = sine @ a + cosine @ b
    return time, q, (cosine * w) @ a - (sine * w) @ b, -(sine * w**2) @ a - (cosine * w**2) @ b


def torque_log(model: mbjax.MultibodyModel, noise: float = 0.0, seed: int = 0, **of_motion: int) -> si.Log:
    """A log of efforts that the model needs along the motion, with noise in parts of their deviation."""
    time, q, v, vdot = motion(model.num_velocities, seed=seed, **of_motion)
    tau = np.asarray(efforts(model, jnp.asarray(q), jnp.asarray(v), jnp.asarray(vdot)))
    error = noise * tau.std(0) * np.random.default_rng(seed + 1).normal(size=tau.shape)
    return si.make_log(model, time, q, v, vdot, effort=tau + error, name=f"log{seed}")


@jax.jit
def efforts(model: mbjax.MultibodyModel, q: jax.Array, v: jax.Array, vdot: jax.Array) -> jax.Array:
    return jax.vmap(lambda *x: mbjax.inverse_dynamics(model, *x, force_elements=True))(q, v, vdot)


@functools.cache
def hopper() -> mbjax.MultibodyModel:
    """A floating trunk with a leg on one revolute joint, and a foot."""
    plant = mbjax.MultibodyPlant(0.0)
    G = mbjax.UnitInertia(0.05, 0.06, 0.04, 0.003, -0.002, 0.004)
    for name, mass in (("trunk", 5.0), ("foot", 1.0)):
        plant.add_rigid_body(name, mbjax.SpatialInertia(mass, [0.05, 0.02, -0.1], G))
    plant.add_joint(mbjax.RevoluteJoint("hip", "trunk", "foot", X_PF=[0.1, 0.0, -0.2], axis=[0.1, 1.0, 0.2]))
    return plant.finalize()


@functools.cache
def sliding_box(time_step: float = 0.01) -> mbjax.MultibodyModel:
    """A ball that cannot roll on the ground, one contact point, pushed along x and z by actuators."""
    plant = mbjax.MultibodyPlant(time_step)
    plant.add_rigid_body("carrier", mbjax.SpatialInertia(0.1, [0.0] * 3, mbjax.UnitInertia(0.1, 0.1, 0.1)))
    plant.add_rigid_body("ball", mbjax.SpatialInertia(1.0, [0.0] * 3, mbjax.UnitInertia(0.1, 0.1, 0.1)))
    plant.add_joint(mbjax.PrismaticJoint("along", "world", "carrier", axis=[1.0, 0.0, 0.0]))
    plant.add_joint(mbjax.PrismaticJoint("up", "carrier", "ball", axis=[0.0, 0.0, 1.0]))
    for name in ("along", "up"):
        plant.add_joint_actuator(name, name)
    properties = mbjax.ProximityProperties(
        static_friction=0.4, dynamic_friction=0.4, point_stiffness=2e4, hunt_crossley_dissipation=0.5
    )
    plant.register_collision_geometry("ball", mbjax.RigidTransform.identity(), mbjax.Sphere(0.1), "ball", properties)
    plant.register_collision_geometry("world", mbjax.RigidTransform.identity(), mbjax.HalfSpace(), "ground", properties)
    return plant.finalize()
