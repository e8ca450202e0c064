"""Springs together on one tree equal Drake's; coincident points are finite."""

import jax
import jax.numpy as jnp
import numpy as np
import pydrake.multibody.tree as drake_tree
from pydrake.math import RigidTransform as DrakeTransform
from pydrake.multibody.plant import MultibodyPlant as DrakePlant

import mbjax
from tests.model.plants import force_elements, inertia
from tests.models import JOINT_CLASSES, make_twin, relative_error


def test_springs_equal_drakes():
    """Forces, energy, and through dynamics, for the three springs together on one tree."""
    kinds = ("revolute", "prismatic", "universal")
    axis, rng = np.array([0.6, 0.0, 0.8]), np.random.default_rng(5)
    ours, theirs = mbjax.MultibodyPlant(), DrakePlant(0.0)
    parent = "world"
    for i, kind in enumerate(kinds):
        p = rng.normal(size=3)
        G = np.asarray(inertia().unit_inertia.moments_products())
        ours.add_rigid_body(f"b{i}", inertia())
        body = theirs.AddRigidBody(
            f"b{i}", drake_tree.SpatialInertia(1.3, [0.1, -0.05, 0.2], drake_tree.UnitInertia(*G))
        )
        our_class, their_class = JOINT_CLASSES[kind]
        F = theirs.AddFrame(drake_tree.FixedOffsetFrame(f"F{i}", theirs.GetFrameByName(parent), DrakeTransform(p)))
        with_axis = {"axis": axis} if our_class.has_axis else {}
        ours.add_joint(our_class(f"j{i}", parent, f"b{i}", X_PF=p, **with_axis))
        theirs.AddJoint(their_class(f"j{i}", F, body.body_frame(), *with_axis.values()))
        parent = f"b{i}"
    P, Q = np.array([0.1, 0.3, -0.2]), np.array([-0.2, 0.15, 0.4])
    ours.add_force_element(mbjax.RevoluteSpring("j0", 0.3, 11.0))
    ours.add_force_element(mbjax.PrismaticSpring("j1", -0.2, 70.0))
    ours.add_force_element(mbjax.LinearSpringDamper("b0", P, "b2", Q, 0.9, 40.0, 3.0))
    ours.add_force_element(mbjax.LinearSpringDamper("world", P, "b1", Q, 0.5, 20.0, 2.0))
    body = theirs.GetBodyByName
    theirs.AddForceElement(drake_tree.RevoluteSpring(theirs.GetJointByName("j0"), 0.3, 11.0))
    theirs.AddForceElement(drake_tree.PrismaticSpring(theirs.GetJointByName("j1"), -0.2, 70.0))
    theirs.AddForceElement(drake_tree.LinearSpringDamper(body("b0"), P, body("b2"), Q, 0.9, 40.0, 3.0))
    theirs.AddForceElement(drake_tree.LinearSpringDamper(body("world"), P, body("b1"), Q, 0.5, 20.0, 2.0))
    theirs.Finalize()
    twin = make_twin(ours.finalize(), theirs)
    model, plant = twin.model, twin.plant
    for seed in range(3):
        state = mbjax.random_state(model, jax.random.key(seed))
        context = twin.context(state.q, state.v)
        order = np.argsort(twin.to_drake_v)
        expected = drake_tree.MultibodyForces(plant)
        plant.CalcForceElementsContribution(context, expected)
        got = force_elements(model, state.q, state.v)
        assert relative_error(got.generalized, expected.generalized_forces()[order]) < 1e-12
        names = ("b0", "b1", "b2")
        bodies = np.stack([body(n).GetForceInWorld(context, expected).get_coeffs() for n in names])
        assert relative_error(got.body[1:], bodies) < 1e-12
        assert relative_error(mbjax.potential_energy(model, state.q), plant.CalcPotentialEnergy(context)) < 1e-12
        vdot = mbjax.time_derivatives(model, state)[1]
        derivatives = plant.EvalTimeDerivatives(context).CopyToVector()[model.num_positions :][: model.num_velocities]
        assert relative_error(vdot, derivatives[order]) < 1e-10
    got = force_elements(model, state.q, state.v)
    power = got.generalized @ state.v + jnp.sum(
        got.body * mbjax.body_spatial_velocities_in_world(model, state.q, state.v)
    )
    theirs_power = plant.CalcConservativePower(context) + plant.CalcNonConservativePower(context)
    assert relative_error(power, theirs_power) < 1e-12


def test_spring_between_coincident_points_is_finite():
    """G40: no direction, so no force; and no NaN in the gradient."""
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("b", inertia())
    plant.add_joint(mbjax.PrismaticJoint("slide", "world", "b", axis=(1, 0, 0)))
    plant.add_force_element(mbjax.LinearSpringDamper("world", np.zeros(3), "b", np.zeros(3), 0.0, 30.0, 1.0))
    model = plant.finalize()

    def force(q, v):
        forces = force_elements(model, q, v)
        return mbjax.inverse_dynamics(model, q, v, jnp.zeros(1), forces)

    q, v = jnp.zeros(1), jnp.array([0.4])
    assert np.all(np.isfinite(force(q, v)))
    assert np.all(np.isfinite(jax.jacrev(force)(q, v)))
    assert np.all(np.isfinite(jax.jacfwd(force)(q, v)))
    np.testing.assert_allclose(force(q + 0.1, 0 * v), 3.0, rtol=1e-12)
