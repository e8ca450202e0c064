"""One world works on a list of the points that act: it gives what a search among all points gives."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.contact import can_list
from mbjax.geometry import Capsule, Cylinder, Geometry, HalfSpace, Sphere
from tests.gradients.checks import compiled
from tests.models import relative_error

from .test_crowds import crowd

STEPS = 3


def robot(others: Any = Capsule, **settings: Any) -> mbjax.MultibodyModel:
    """A floating chain whose ends may touch, a ball of another tree, and the ground; two shapes on one body."""
    plant = mbjax.MultibodyPlant(2e-3, **settings)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), 0.7)
    inertia = mbjax.SpatialInertia.solid_box_with_mass(1.0, 0.2, 0.1, 0.1)
    for k in range(3):
        plant.add_rigid_body(f"link{k}", inertia)
        if k:
            plant.add_joint(mbjax.RevoluteJoint(f"joint{k}", f"link{k - 1}", f"link{k}", axis=(0.0, 1.0, 0.3 * k)))
    plant.register_collision_geometry("link0", Geometry("long", others(0.08, 0.2)), 0.6)
    plant.register_collision_geometry("link0", Geometry("end", Sphere(0.1), translation=(0.0, 0.0, 0.15)), 0.6)
    plant.register_collision_geometry("link2", Geometry("round", Sphere(0.12)), 0.6)
    plant.add_rigid_body("ball", mbjax.SpatialInertia.solid_sphere_with_mass(0.5, 0.1))
    plant.register_collision_geometry("ball", Geometry("ball", Sphere(0.1)), 0.4)
    return plant.finalize()


def thrown(model: mbjax.MultibodyModel, count: int) -> tuple[np.ndarray, np.ndarray]:
    """q and v of states in which some shapes overlap: none, few or many."""
    rng, q = np.random.default_rng(1), np.tile(np.asarray(mbjax.default_state(model).q), (count, 1))
    q[:, :4] = rng.normal(size=(count, 4))
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1, keepdims=True)
    q[:, 4:7] = rng.uniform((-0.2, -0.2, -0.05), (0.2, 0.2, 0.4), (count, 3))
    q[:, 7:9] = rng.uniform(-1.5, 1.5, (count, 2))
    q[:, 13:16] = q[:, 4:7] + rng.uniform(-0.25, 0.25, (count, 3))
    return q, rng.normal(size=(count, model.num_velocities))


def velocities(model: mbjax.MultibodyModel, q: jax.Array, v: jax.Array) -> jax.Array:
    return mbjax.rollout(model, mbjax.State(q, v, jnp.zeros(())), num_steps=STEPS).v


@pytest.mark.parametrize(
    "law", ["sap", *(pytest.param(x, marks=pytest.mark.whole_run("SAP's law")) for x in ("similar", "lagged"))]
)
def test_a_list_gives_what_all_points_give(law: str) -> None:
    """Of one world, a list; of many worlds, all points. In some states nothing touches."""
    model = robot(discrete_contact_approximation=law)
    assert can_list(model)
    q, v = thrown(model, 40)
    alone = compiled(velocities)
    together = compiled(jax.vmap(velocities, (None, 0, 0)))(model, q, v)
    found = np.stack([alone(model, *state) for state in zip(q, v, strict=True)])
    assert relative_error(found, together) < 1e-10
    q[0, 6] = np.nan
    assert np.isnan(alone(model, q[0], v[0])[1:]).any()


@pytest.mark.whole_run("capsules, whose contact is a closed form")
def test_a_list_of_cylinders() -> None:
    model = robot(Cylinder)
    q, v = thrown(model, 40)
    alone = compiled(velocities)
    together = compiled(jax.vmap(velocities, (None, 0, 0)))(model, q, v)
    found = np.stack([alone(model, *state) for state in zip(q, v, strict=True)])
    assert relative_error(found, together) < 1e-9


def test_derivatives_are_those_of_all_points() -> None:
    """Tangents of one world, by state and by friction, beside those of a batch."""
    model = robot()
    q, v = thrown(model, 6)
    dv, dmu = np.random.default_rng(2).normal(size=v.shape), jnp.full_like(model.collision.dynamic_friction, 0.1)

    def tangent(q: jax.Array, v: jax.Array, dv: jax.Array) -> jax.Array:
        def after(v: jax.Array, friction: jax.Array) -> jax.Array:
            collision = dataclasses.replace(model.collision, dynamic_friction=friction)
            return velocities(dataclasses.replace(model, collision=collision), q, v)

        return jax.jvp(after, (v, model.collision.dynamic_friction), (dv, dmu))[1]

    together = compiled(jax.vmap(tangent))(q, v, dv)
    alone = compiled(tangent)
    found = np.stack([alone(*state) for state in zip(q, v, dv, strict=True)])
    assert relative_error(found, together) < 1e-9


def test_what_cannot_be_listed() -> None:
    """Contact at a distance and bounds that the user gave; free bodies, whose search has blocks; single movers."""
    assert not can_list(robot(contact_prediction=True))
    assert not can_list(robot(max_contacts=4))
    assert not can_list(crowd())
    assert not can_list(mbjax.load("quadruped", time_step=0.002, ground=0.8, contact_pairs=[("*foot*", "ground")]))
