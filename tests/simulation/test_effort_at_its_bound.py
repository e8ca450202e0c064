"""G16: an effort exactly at its limit has the derivative of the inside, in the explicit and in the implicit law."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax

LIMIT = 1.5
EFFORTS = jnp.array([-2.0, -LIMIT, -0.3, 0.0, LIMIT, 1.6])  # within, at and beyond, in one batch
SLOPES = np.array([0.0, 1.0, 1.0, 1.0, 1.0, 0.0])


@functools.cache
def wheel(time_step: float) -> mbjax.MultibodyModel:
    """One driven joint without gravity or damping, of inertia 1: vdot is the net effort."""
    plant = mbjax.MultibodyPlant(time_step)
    plant.add_rigid_body("wheel", mbjax.SpatialInertia(1.0, np.zeros(3), mbjax.UnitInertia(1.0, 1.0, 1.0)))
    plant.add_joint(mbjax.RevoluteJoint("axle", "world", "wheel"))
    plant.add_joint_actuator("motor", "axle", LIMIT)
    return plant.finalize()


@pytest.mark.parametrize(
    "time_step", [0.0, pytest.param(0.01, marks=pytest.mark.whole_run("explicit"))], ids=["explicit", "implicit"]
)
def test_G16_derivative_at_the_bound_is_that_of_the_inside(time_step):
    """Forward and reverse."""
    model = wheel(time_step)

    def acceleration(u):
        state = mbjax.State(jnp.zeros(1), jnp.zeros(1), jnp.zeros(()))
        if time_step == 0.0:
            return mbjax.time_derivatives(model, state, u[None])[1][0]
        return mbjax.step(model, state, u[None])[0].v[0] / time_step

    @jax.jit
    @jax.vmap
    def of(u):
        return acceleration(u), jax.jacfwd(acceleration)(u), jax.jacrev(acceleration)(u)

    values, *slopes = of(EFFORTS)
    np.testing.assert_allclose(values, np.clip(EFFORTS, -LIMIT, LIMIT), atol=1e-12)
    for found in slopes:
        np.testing.assert_allclose(found, SLOPES, atol=1e-12)
