"""Every force element against Drake, on trees of several instances: forces, energies, powers, and the motion."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pydrake.multibody.tree as drake_tree
import pytest
from pydrake.multibody.plant import MultibodyPlant as DrakePlant

import mbjax
from tests.dynamics.oracles import drake_bodies
from tests.models import Twin, relative_error

from .models import BUSHING_CONSTANTS, HINGE, bushings, drake_hinge, every_element

TOLERANCE = 1e-10


@jax.jit
def quantities(model: mbjax.MultibodyModel, q: jax.Array, v: jax.Array) -> dict[str, jax.Array]:
    forces = mbjax.force_elements_contribution(model, q, v)
    return {
        "forces on joints": forces.generalized,
        "forces on bodies": forces.body,
        "generalized forces": mbjax.generalized_forces(model, q, forces),
        "gravity": mbjax.gravity_generalized_forces(model, q),
        "accelerations": mbjax.time_derivatives(model, mbjax.State(q, v, jnp.zeros(())))[1],
        "potential energy": mbjax.potential_energy(model, q),
        "conservative power": mbjax.conservative_power(model, q, v),
        "non-conservative power": mbjax.non_conservative_power(model, q, v),
    }


def drake_quantities(twin: Twin, q: jax.Array, v: jax.Array) -> dict[str, np.ndarray]:
    """Drake's answers in our order; for a plant with bushings without what Drake does not offer for them."""
    plant, context, order = twin.plant, twin.context(q, v), np.argsort(twin.to_drake_v)
    forces = drake_tree.MultibodyForces(plant)
    plant.CalcForceElementsContribution(context, forces)
    bodies = drake_bodies(twin.model, plant)
    result: dict = {
        "forces on joints": forces.generalized_forces()[order],
        "forces on bodies": [body.GetForceInWorld(context, forces).get_coeffs() for body in bodies],
        "generalized forces": plant.CalcGeneralizedForces(context, forces)[order],
        "gravity": plant.CalcGravityGeneralizedForces(context)[order],
        "accelerations": plant.EvalTimeDerivatives(context).CopyToVector()[plant.num_positions() :][order],
    }
    if not any(isinstance(e, mbjax.LinearBushingRollPitchYaw) for e in twin.model.force_elements):
        result["potential energy"] = plant.CalcPotentialEnergy(context)
        result["conservative power"] = plant.CalcConservativePower(context)
        result["non-conservative power"] = plant.CalcNonConservativePower(context)
    return {name: np.asarray(x) for name, x in result.items()}


@pytest.mark.parametrize("make", [every_element, bushings])
def test_elements_equal_drakes(make, record_property):
    twin = make()
    for seed in range(6):
        state = mbjax.random_state(twin.model, jax.random.key(seed))
        got, expected = quantities(twin.model, state.q, state.v), drake_quantities(twin, state.q, state.v)
        errors = {name: relative_error(got[name], expected[name]) for name in expected}
        record_property(f"errors of seed {seed}", errors)
        assert np.max(list(errors.values())) <= TOLERANCE, errors


def test_bushing_power_is_the_rate_of_its_energy_and_the_dampers_loss():
    """Drake has none: -dU/dt by differences; and without dampers and with equal kxyz nothing is lost."""
    model = bushings().model
    state = mbjax.random_state(model, jax.random.key(0))

    @jax.jit
    def energy(dt):
        return mbjax.potential_energy(model, mbjax.integrate_configuration(model, state.q, dt * state.v))

    h = 1e-3
    weights = {h: 8.0, -h: -8.0, 2 * h: -1.0, -2 * h: 1.0}
    rate = sum(w * energy(dt) for dt, w in weights.items()) / (12.0 * h)
    got = quantities(model, state.q, state.v)
    np.testing.assert_allclose(got["conservative power"], -rate, rtol=1e-7)
    assert got["non-conservative power"] < 0.0

    def elastic(element):
        zero, equal = jnp.zeros(3), jnp.full(3, 20.0)
        return mbjax.LinearBushingRollPitchYaw(
            element.frame_A, element.frame_C, element.torque_stiffness_constants, zero, equal, zero
        )

    elements = tuple(map(elastic, model.force_elements))
    changed = eqx.tree_at(lambda m: m.force_elements, model, elements)
    got = quantities(changed, state.q, state.v)
    assert abs(got["non-conservative power"]) < 1e-12 * abs(got["conservative power"])


@pytest.mark.parametrize("numbers", [{}, HINGE, HINGE | {"catch_width": 0.0}], ids=["Drake's", "soft", "without catch"])
def test_door_hinge_curves_equal_drakes(numbers):
    """Term by term at the closed door, in the catch, beyond it, at rest and around the threshold; with the defaults."""
    hinge = mbjax.DoorHinge("hinge", mbjax.DoorHingeConfig(**numbers))
    angles, rates = np.linspace(-0.5, 1.5, 41), np.concatenate([[0.0], np.linspace(-2.0, 2.0, 20), [3e-4, -8e-4]])
    plant = DrakePlant(0.0)
    inertia = drake_tree.SpatialInertia(1.0, [0.0, 0.0, 0.0], drake_tree.UnitInertia(1.0, 1.0, 1.0))
    body = plant.AddRigidBody("door", inertia)
    joint = plant.AddJoint(drake_tree.RevoluteJoint("hinge", plant.world_frame(), body.body_frame(), [0, 0, 1]))
    theirs = plant.AddForceElement(drake_tree.DoorHinge(joint, drake_hinge(numbers)))
    plant.Finalize()
    context = plant.CreateDefaultContext()

    def stored(angle):
        joint.set_angle(context, angle)
        return plant.CalcPotentialEnergy(context)

    for ours, drakes, inputs in (
        (hinge.hinge_spring_torque, theirs.CalcHingeSpringTorque, angles),
        (hinge.hinge_frictional_torque, theirs.CalcHingeFrictionalTorque, rates),
        (hinge.hinge_stored_energy, stored, angles),
    ):
        expected = np.array([drakes(float(x)) for x in inputs])
        np.testing.assert_allclose(
            jax.vmap(ours)(jnp.asarray(inputs)), expected, rtol=0, atol=1e-13 * abs(expected).max()
        )
    torque = theirs.CalcHingeTorque(0.3, 0.2)
    np.testing.assert_allclose(hinge.hinge_torque(jnp.asarray(0.3), jnp.asarray(0.2)), torque, rtol=1e-12)


def test_door_hinge_without_threshold_is_viscous():
    """Drake 1.51 returns the same torque with the wrong sign there."""
    hinge = mbjax.DoorHinge("hinge", mbjax.DoorHingeConfig(**HINGE | {"motion_threshold": 0.0}))
    rate = jnp.asarray(1.2)
    np.testing.assert_allclose(hinge.hinge_frictional_torque(rate), -HINGE["viscous_friction"] * rate)
    np.testing.assert_allclose(jax.grad(hinge.hinge_frictional_torque)(rate), -HINGE["viscous_friction"])


REFUSED = {
    "stiffness": lambda: mbjax.LinearSpringDamper("a", (0, 0, 0), "b", (0, 0, 0), 1.0, -1.0),
    "p_AP": lambda: mbjax.LinearSpringDamper("a", (0, 0), "b", (0, 0, 0), 1.0, 1.0),
    "free_length": lambda: mbjax.LinearSpringDamper("a", (0, 0, 0), "b", (0, 0, 0), np.nan, 1.0),
    "nominal_angle": lambda: mbjax.RevoluteSpring("j", "north", 1.0),
    "catch_width": lambda: mbjax.DoorHinge("j", mbjax.DoorHingeConfig(catch_width=-0.1)),
    "force_damping_constants": lambda: mbjax.LinearBushingRollPitchYaw("A", "C", *BUSHING_CONSTANTS[:3], (1, 2, -3)),
    "torque_stiffness_constants": lambda: mbjax.LinearBushingRollPitchYaw("A", "C", 4.0, *BUSHING_CONSTANTS[1:]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_bad_numbers_are_refused_by_name(what):
    with pytest.raises(mbjax.ModelError, match=f"{what} must be"):
        REFUSED[what]()


def test_places_are_looked_up_at_finalize():
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("b", mbjax.SpatialInertia(1.0, np.zeros(3), mbjax.UnitInertia(1.0, 1.0, 1.0)))
    plant.add_joint(mbjax.PrismaticJoint("slide", "world", "b"))
    for element, message in (
        (mbjax.DoorHinge("slide"), "DoorHinge: joint 'slide' is prismatic, it must be revolute"),
        (mbjax.LinearBushingRollPitchYaw("world", "c", *BUSHING_CONSTANTS), "there is no frame named 'c'"),
    ):
        plant.force_elements[:] = [element]
        with pytest.raises(mbjax.ModelError, match=message):
            plant.finalize()
