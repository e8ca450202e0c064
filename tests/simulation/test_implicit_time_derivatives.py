"""The implicit form of the continuous plant, against Drake's and against time_derivatives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.deformable_cube import cube_plant
from tests.forces.models import build
from tests.gradients.checks import check_gradients
from tests.models import Twin, make_twin, relative_error


@functools.cache
def driven() -> Twin:
    """Joints of three kinds on two trees, damped, two of them driven through gears."""
    kinds = (("revolute", None, "one"), ("prismatic", 0, "one"), ("quaternion_floating", None, "two"))
    ours, theirs, _ = build(kinds, 3)
    for joint, rotor, gear in (("j0", 0.01, 9.0), ("j1", 0.02, -4.0)):
        ours.add_joint_actuator(f"{joint} motor", joint, rotor_inertia=rotor, gear_ratio=gear)
        actuator = theirs.AddJointActuator(f"{joint} motor", theirs.GetJointByName(joint))
        actuator.set_default_rotor_inertia(rotor)
        actuator.set_default_gear_ratio(gear)
    theirs.Finalize()
    return make_twin(ours.finalize(), theirs)


def sample(model):
    state = mbjax.random_state_within_limits(model, jax.random.key(4))
    rng = np.random.default_rng(4)
    sizes = model.num_positions, model.num_velocities, model.num_actuators, model.num_velocities
    return state, *(jnp.asarray(rng.normal(size=n)) for n in sizes)


residual = jax.jit(mbjax.implicit_time_derivatives_residual)


def test_equals_drakes():
    twin = driven()
    state, qdot, vdot, u, tau = sample(twin.model)
    plant, context = twin.plant, twin.context(state.q, state.v)
    plant.get_actuation_input_port().FixValue(context, np.asarray(u))
    plant.get_applied_generalized_force_input_port().FixValue(context, np.asarray(tau)[twin.to_drake_v])
    proposed = plant.AllocateTimeDerivatives()
    proposed.get_mutable_vector().SetFromVector(np.concatenate([qdot[twin.to_drake_q], vdot[twin.to_drake_v]]))
    theirs = plant.CalcImplicitTimeDerivativesResidual(context, proposed)
    nq = plant.num_positions()
    expected = np.concatenate([theirs[:nq][np.argsort(twin.to_drake_q)], theirs[nq:][np.argsort(twin.to_drake_v)]])
    inputs = mbjax.Inputs(actuation=u, applied_generalized_force=tau)
    assert relative_error(residual(twin.model, state, qdot, vdot, inputs), expected) < 1e-12


def test_vanishes_at_the_time_derivatives_locked_or_not():
    model = driven().model
    state, _, _, u, _ = sample(model)
    for changed in (model, mbjax.lock_joint(model, "j1")):
        qdot, vdot = jax.jit(mbjax.time_derivatives)(changed, state, u)
        np.testing.assert_allclose(residual(changed, state, qdot, vdot, u), 0.0, atol=1e-11)


@pytest.mark.whole_run("it vanishes at the time derivatives, and derivatives of inverse dynamics in the quick run")
def test_derivatives():
    """With respect to velocities and what is proposed; those by q are inverse dynamics'."""
    model = driven().model
    state, qdot, vdot, u, _ = sample(model)

    def f(v, qdot, vdot, u):
        return mbjax.implicit_time_derivatives_residual(model, mbjax.State(state.q, v, state.time), qdot, vdot, u)

    check_gradients(f, state.v, qdot, vdot, u)


@pytest.mark.whole_run("it vanishes at the time derivatives, and is Drake's, above")
def test_counts_the_forces_of_contacts():
    """A ball that sinks into the ground and slips."""
    plant = mbjax.MultibodyPlant(0.0)
    plant.add_rigid_body("ball", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
    for body, shape in {"world": mbjax.HalfSpace(), "ball": mbjax.Sphere(0.1)}.items():
        plant.register_collision_geometry(body, mbjax.Geometry(f"{body}_shape", shape), 0.5)
    model = plant.finalize()
    q = jnp.zeros(7).at[0].set(1.0).at[6].set(0.095)
    state = mbjax.State(q, jnp.array([0.1, 0.2, 0.3, 0.4, 0.5, -0.6]), jnp.zeros(()))
    qdot, vdot = jax.jit(mbjax.time_derivatives)(model, state)
    assert np.linalg.norm(vdot[3:5]) > 1.0
    np.testing.assert_allclose(residual(model, state, qdot, vdot), 0.0, atol=1e-12 * np.abs(vdot).max())


def test_deformable_bodies_are_refused():
    """As by time_derivatives: their nodes are no part of the residual; and a wrong model has its own message."""
    model = cube_plant().finalize()
    state, zero = mbjax.default_state(model), jnp.zeros(1)
    with pytest.raises(mbjax.ModelError, match="implicit_time_derivatives_residual: the model has deformable bodies"):
        mbjax.implicit_time_derivatives_residual(model, state, zero, zero)
    with pytest.raises(mbjax.ModelError, match="model"):
        mbjax.implicit_time_derivatives_residual(state, model, zero, zero)
