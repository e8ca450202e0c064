"""Default stiffness, combination rules and time scale beside Drake's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.contact.points.contact_parameters import calc_default_stiffness_and_dissipation, calc_pair_parameters
from mbjax.geometry import Geometry, ProximityProperties, Sphere
from tests.contact.scenes import ContactTwin, free


@pytest.mark.parametrize("allowance", [1e-3, 5e-4])
def test_time_scale_equals_drakes(allowance: float) -> None:
    scene = ContactTwin()
    scene.body("ball", 2.5)
    scene.shape("ball", "ball", Sphere(0.1))
    scene.theirs.set_penetration_allowance(allowance)
    scene.ours.set_penetration_allowance(allowance)
    model = scene.done().model
    theirs = scene.theirs.get_contact_penalty_method_time_scale()
    assert float(mbjax.contact_penalty_method_time_scale(model)) == pytest.approx(theirs, rel=1e-3)  # g to 3 digits


def pair(A: dict, B: dict) -> mbjax.MultibodyModel:
    """Two balls with these properties."""
    plant = mbjax.MultibodyPlant(1e-3)
    for name, properties in (("a", A), ("b", B)):
        plant.add_rigid_body(name, mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
        plant.register_collision_geometry(name, Geometry(name, Sphere(0.1)), ProximityProperties(**properties))
    return plant.finalize()


def test_two_in_series() -> None:
    common = {"static_friction": 0.9}
    model = pair(
        common | {"dynamic_friction": 0.6, "point_stiffness": 100.0, "hunt_crossley_dissipation": 1.0,
                  "relaxation_time": 0.1},
        common | {"dynamic_friction": 0.3, "point_stiffness": 300.0, "hunt_crossley_dissipation": 5.0,
                  "relaxation_time": 0.2},
    )  # fmt: skip
    found = calc_pair_parameters(model)
    expected = (75.0, (300.0 * 1.0 + 100.0 * 5.0) / 400.0, 0.3, 0.9, 0.4, 0.25)
    values = (
        1.0 / found.compliance, found.hunt_crossley_dissipation, found.relaxation_time,
        found.static_friction, found.dynamic_friction, found.weight_A,
    )  # fmt: skip
    assert [float(x[0]) for x in values] == pytest.approx(expected, rel=1e-12)


def test_a_rigid_one_leaves_the_other_all() -> None:
    frictionless = {"static_friction": 0.0, "dynamic_friction": 0.0}
    found = calc_pair_parameters(pair(frictionless | {"point_stiffness": float("inf")}, frictionless))
    k, d = calc_default_stiffness_and_dissipation(pair(frictionless, frictionless))
    assert jnp.array_equal(found.compliance, 1.0 / k[None])
    assert jnp.array_equal(found.weight_A, jnp.ones(1))
    assert jnp.array_equal(found.hunt_crossley_dissipation, d[None])
    assert jnp.array_equal(found.dynamic_friction, jnp.zeros(1))


def test_forces_of_continuous_plants_act_where_drakes_do() -> None:
    """Midway between the surfaces, whichever is softer; in steps, nearer to the stiff one's."""
    scene = ContactTwin(time_step=0.0)
    for name, stiffness in (("soft", 1e4), ("hard", 3e4)):
        scene.body(name, 1.0)
        scene.shape(name, name, Sphere(0.1), stiffness=stiffness, dissipation=2.0)
    twin = scene.done()
    start = (free((0.0, 0.0, 0.0), w=(0.0, 2.0, 0.0), v=(0.1, 0.0, 0.0)), free((0.02, 0.0, 0.19)))
    q, v = (jnp.asarray(np.concatenate(x)) for x in zip(*start, strict=True))
    root = scene.diagram.CreateDefaultContext()
    context = scene.theirs.GetMyMutableContextFromRoot(root)
    scene.theirs.SetPositionsAndVelocities(context, np.concatenate([q[twin.to_drake_q], v[twin.to_drake_v]]))
    theirs = scene.theirs.get_generalized_acceleration_output_port().Eval(context)
    ours = jax.jit(lambda q, v: mbjax.outputs(twin.model, mbjax.State(q, v)))(q, v)
    np.testing.assert_allclose(ours.generalized_acceleration[twin.to_drake_v], theirs, atol=1e-9 * np.abs(theirs).max())
    contact = scene.theirs.get_contact_results_output_port().Eval(context).point_pair_contact_info(0)
    np.testing.assert_allclose(ours.contact_results.point[0], contact.contact_point(), atol=1e-12)

    def accelerations(x):
        return mbjax.time_derivatives(twin.model, mbjax.State(x[:14], x[14:]))[1]

    weights, x = jnp.sin(jnp.arange(12.0)), jnp.concatenate([q, v])
    direction, h = jnp.cos(jnp.arange(26.0)), 1e-6
    reverse = jax.jit(jax.grad(lambda x: weights @ accelerations(x)))(x) @ direction
    forward, before, after = jax.jit(
        lambda x: (
            weights @ jax.jvp(accelerations, (x,), (direction,))[1],
            *(weights @ accelerations(x + o * h * direction) for o in (-1.0, 1.0)),
        )
    )(x)
    np.testing.assert_allclose(reverse, forward, rtol=1e-12)
    np.testing.assert_allclose((after - before) / (2.0 * h), forward, rtol=1e-6)
