"""A ball that slides along x while a motor presses it onto the ground: its contact force is known in closed form."""

import jax.numpy as jnp
import numpy as np

import mbjax
from mbjax.geometry import Geometry, HalfSpace, ProximityProperties, Sphere

MASS, RADIUS, PRESSURE, FRICTION, STIFFNESS = 0.5, 0.1, 3.0, 0.4, 1e4
NORMAL_FORCE = MASS * 9.81 + PRESSURE
NUM_STEPS, TIME_STEP = 60, 0.01


def sledge_model():
    """`slide` along x and `press` along z carry the ball; the ground is at -0.2 m."""
    plant = mbjax.MultibodyPlant(time_step=TIME_STEP, discrete_contact_approximation="lagged")
    plant.add_model_instance("sledge")
    touch = ProximityProperties(FRICTION, FRICTION, point_stiffness=STIFFNESS, hunt_crossley_dissipation=0.0)
    for body, mass in (("carriage", 1e-3), ("ball", MASS - 1e-3)):
        plant.add_rigid_body(body, mbjax.SpatialInertia.solid_sphere_with_mass(mass, RADIUS), "sledge")
    plant.add_joint(mbjax.PrismaticJoint("slide", "world", "carriage", axis=(1.0, 0.0, 0.0)))
    press = plant.add_joint(mbjax.PrismaticJoint("press", "carriage", "ball", axis=(0.0, 0.0, 1.0)))
    plant.add_joint_actuator("motor", press)
    ground = Geometry("ground", HalfSpace(), translation=(0.0, 0.0, -0.2))
    plant.register_collision_geometry("ball", Geometry("skin", Sphere(RADIUS)), touch)
    plant.register_collision_geometry("world", ground, touch)  # after the ball: it is body B of their contact
    return plant.finalize()


def sliding(model, speed=1.0, num_steps=NUM_STEPS):
    """Motion at constant speed, as deep in the ground as the normal force asks."""
    time = TIME_STEP * np.arange(num_steps + 1)
    height = RADIUS - 0.2 - NORMAL_FORCE / (STIFFNESS / 2.0)
    steps = (num_steps, model.num_velocities)
    return mbjax.Trajectory(
        q=jnp.asarray(np.stack([speed * time, np.full_like(time, height)], axis=1)),
        v=jnp.asarray(np.broadcast_to([speed, 0.0], (num_steps + 1, 2))),
        time=jnp.asarray(time),
        generalized_acceleration=jnp.zeros(steps),
        net_actuation=jnp.full((num_steps, 1), -PRESSURE),
        constraint_forces=jnp.zeros((num_steps, 0)),
    )


def pull(num_steps=NUM_STEPS):
    """An applied spatial force on the ball, at its front, in the middle third of the time."""
    F_Bq_W = np.zeros((num_steps, 1, 6))
    F_Bq_W[num_steps // 3 : 2 * num_steps // 3] = [0.0, 0.0, 0.2, 1.5, 0.0, 0.0]
    forces = mbjax.AppliedSpatialForces(["ball"], F_Bq_W, np.tile([RADIUS, 0.0, 0.0], (num_steps, 1, 1)))
    return mbjax.Inputs(actuation=jnp.full((num_steps, 1), -PRESSURE), applied_spatial_forces=forces)
