"""Derivatives of poses where `vmap` comes first: also of what no joint changes, like the rotations here."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

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
        names = [field.name for field in dataclasses.fields(position) if field.name not in ("placement", "shift")]
        return {name: 2.0 * getattr(position, name)[:3] for name in names}

    together, push = jax.linearize(jax.jit(jax.vmap(everything)), q)
    moved = push(jnp.ones_like(q))
    for i in range(3):
        alone, change = jax.jvp(everything, (q[i],), (jnp.ones(2),))
        for name, value in alone.items():
            np.testing.assert_allclose(together[name][i], value, atol=1e-15)
            np.testing.assert_allclose(moved[name][i], change[name], atol=1e-15)


def test_of_a_model_that_several_worlds_share() -> None:
    """One change of the model, of all worlds together: that of each."""
    model, q = two_sliders(), jnp.array([[0.1, 0.2], [0.3, -0.4], [0.5, 0.6]])
    changes = np.random.default_rng(2)
    change = jax.tree.map(lambda x: changes.normal(size=x.shape), eqx.filter(model, eqx.is_inexact_array))

    def poses(model, q):
        position = calc_position_kinematics(model, q)
        return position.R_WM, position.p_WM, position.S_T

    def along(model, q):
        return eqx.filter_jvp(lambda model: poses(model, q), (model,), (change,))[1]

    together = eqx.filter_jvp(lambda model: jax.vmap(poses, (None, 0))(model, q), (model,), (change,))[1]
    each = jax.vmap(along, (None, 0))(model, q)
    for i in range(3):
        for ours, own, alone in zip(together, each, along(model, q[i]), strict=True):
            np.testing.assert_allclose(ours[i], alone, atol=1e-15)
            np.testing.assert_allclose(own[i], alone, atol=1e-15)


@pytest.mark.whole_run("derivatives where worlds differ in one leaf alone, in tests/dynamics")
def test_of_a_model_for_each_world() -> None:
    """At a q that they share, with `vmap` before derivatives: forward and reverse."""
    model, q = two_sliders(), jnp.array([0.1, 0.2])
    arrays, static = eqx.partition(model, eqx.is_inexact_array)
    rng = np.random.default_rng(3)
    models, changes = (jax.tree.map(lambda x: x + rng.normal(size=(3, *x.shape)), arrays) for _ in range(2))

    def everything(arrays):
        model = eqx.combine(arrays, static)
        position = calc_position_kinematics(model, q)
        return jax.tree.map(lambda x: 2.0 * x, position), mbjax.forward_dynamics(model, q, q, q, force_elements=True)

    @jax.jit
    def derivatives(arrays, change, cotangent, function):
        _, push = jax.linearize(function, arrays)
        return push(change), jax.vjp(function, arrays)[1](cotangent)[0]

    shapes = jax.eval_shape(everything, arrays)
    cotangents = jax.tree.map(lambda x: jnp.asarray(rng.normal(size=(3, *x.shape))), shapes)
    together = derivatives(models, changes, cotangents, jax.tree_util.Partial(jax.jit(jax.vmap(everything))))
    for i in range(3):
        own = jax.tree.map(lambda x, i=i: x[i], (models, changes, cotangents))
        alone = derivatives(*own, jax.tree_util.Partial(everything))
        for ours, theirs in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
            np.testing.assert_allclose(ours[i], theirs, rtol=1e-10, atol=1e-12)
