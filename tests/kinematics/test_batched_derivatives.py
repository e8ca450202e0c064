"""Derivatives of poses where `vmap` comes first: also of what no joint changes, like the rotations here."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import mbjax
from mbjax.kinematics import calc_position_kinematics


def two_sliders() -> mbjax.MultibodyModel:
    plant = mbjax.MultibodyPlant()
    for parent, name, axis in (("world", "one", [1, 0, 0]), ("one", "two", [0, 1, 0])):
        plant.add_rigid_body(name, mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
        plant.add_joint(mbjax.PrismaticJoint(name, parent, name, axis=axis))
    return plant.finalize()


def test_of_several_worlds_before_derivatives() -> None:
    model, q = two_sliders(), jnp.array([[0.1, 0.2], [0.3, -0.4], [0.5, 0.6]])

    def everything(q):
        position = calc_position_kinematics(model, q)
        names = [field.name for field in dataclasses.fields(position) if field.name != "placement"]
        return {name: 2.0 * getattr(position, name)[:3] for name in names}

    together, push = jax.linearize(jax.jit(jax.vmap(everything)), q)
    moved = push(jnp.ones_like(q))
    for i in range(3):
        alone, change = jax.jvp(everything, (q[i],), (jnp.ones(2),))
        for name, value in alone.items():
            np.testing.assert_allclose(together[name][i], value, atol=1e-15)
            np.testing.assert_allclose(moved[name][i], change[name], atol=1e-15)
