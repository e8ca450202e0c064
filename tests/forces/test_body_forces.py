"""Forces on bodies and joints as Drake's RigidBody and Joint add them, and elements users write."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pydrake.multibody.tree as drake_tree
import pytest
from pydrake.multibody.math import SpatialForce

import mbjax
from tests.gradients.checks import WHOLE_RUN, check_gradients
from tests.models import relative_error

from .models import every_element


def test_forces_added_to_bodies_and_joints_equal_drakes():
    twin = every_element()
    model, plant = twin.model, twin.plant
    state = mbjax.random_state(model, jax.random.key(2))
    rng = np.random.default_rng(2)
    F, G, p, torque = rng.normal(size=6), rng.normal(size=6), rng.normal(size=3), 3.7

    @jax.jit
    def ours(q, F, G, p, torque):
        forces = mbjax.add_in_force(model, q, mbjax.MultibodyForces.zero(model), "b6", p, F, "j4_child")
        forces = mbjax.add_in_force_in_world(model, forces, "b2", G)
        forces = mbjax.add_in_force(model, q, forces, "b6", -p, G, "world")
        forces = mbjax.add_in_one_force(model, forces, "j3", 1, torque)
        tau = mbjax.generalized_forces(model, q, forces)
        return tau, forces, *(mbjax.force_in_world(model, forces, body) for body in ("b6", "b2", "b0"))

    context = twin.context(state.q, state.v)
    body = plant.GetBodyByName
    theirs = drake_tree.MultibodyForces(plant)
    body("b6").AddInForce(context, p, SpatialForce(F), plant.GetFrameByName("j4_child"), theirs)
    body("b2").AddInForceInWorld(context, SpatialForce(G), theirs)
    body("b6").AddInForce(context, -p, SpatialForce(G), plant.world_frame(), theirs)
    plant.GetJointByName("j3").AddInOneForce(context, 1, torque, theirs)
    expected = [
        plant.CalcGeneralizedForces(context, theirs)[np.argsort(twin.to_drake_v)],
        *(body(name).GetForceInWorld(context, theirs).get_coeffs() for name in ("b6", "b2", "b0")),
    ]
    got = ours(state.q, *map(jnp.asarray, (F, G, p, torque)))
    assert np.max([relative_error(a, b) for a, b in zip((got[0], *got[2:]), expected, strict=True)]) < 1e-12
    inverse_dynamics, zero = jax.jit(mbjax.inverse_dynamics), jnp.zeros_like(state.v)
    as_generalized = mbjax.MultibodyForces(got[0], jnp.zeros((model.num_bodies, 6)))
    work = inverse_dynamics(model, state.q, zero, zero, as_generalized)  # the dynamics feel both alike
    np.testing.assert_allclose(work, inverse_dynamics(model, state.q, zero, zero, got[1]), atol=1e-11)


def test_wrong_places_are_refused():
    model = every_element().model
    zero = mbjax.MultibodyForces.zero(model)
    with pytest.raises(mbjax.ModelError, match=r"joint 'j3' \(universal\) has 2 degrees of freedom; there is no 2"):
        mbjax.add_in_one_force(model, zero, "j3", 2, 1.0)
    with pytest.raises(mbjax.ModelError, match="no body named 'b60'"):
        mbjax.add_in_force_in_world(model, zero, "b60", jnp.zeros(6))
    with pytest.raises(mbjax.ModelError, match=r"MultibodyForces: body must be \(nb, 6\)"):
        mbjax.MultibodyForces(zero.generalized, jnp.zeros((3, 5)))
    with pytest.raises(mbjax.ModelError, match=r"forces.body has shape \(3, 6\), the model needs"):
        mbjax.generalized_forces(
            model, model.parameters.default_positions, mbjax.MultibodyForces(zero.generalized, jnp.zeros((3, 6)))
        )
    with pytest.raises(ValueError, match="F_Bp_E has shape"):
        mbjax.add_in_force(model, model.parameters.default_positions, zero, "b6", jnp.zeros(3), jnp.zeros(3), "world")


def test_forces_of_wrong_shapes_are_refused():
    """Out of range JAX would drop a force that is added, and read the last one."""
    model = every_element().model
    zero, nv, nb = mbjax.MultibodyForces.zero(model), model.num_velocities, model.num_bodies
    few_bodies = mbjax.MultibodyForces(zero.generalized, jnp.ones((1, 6)))
    few_joints = mbjax.MultibodyForces(jnp.ones(1), zero.body)
    q, last = model.parameters.default_positions, nb - 1
    for name, call in (
        ("force_in_world", lambda f: mbjax.force_in_world(model, f, last)),
        ("add_in_force_in_world", lambda f: mbjax.add_in_force_in_world(model, f, last, jnp.ones(6))),
        ("add_in_force_in_world", lambda f: mbjax.add_in_force(model, q, f, last, jnp.zeros(3), jnp.ones(6), "world")),
        ("add_in_one_force", lambda f: mbjax.add_in_one_force(model, f, "j3", 1, 1.0)),
        ("generalized_forces", lambda f: mbjax.generalized_forces(model, q, f)),
    ):
        with pytest.raises(mbjax.ModelError, match=rf"{name}: forces.body has shape \(1, 6\), .* \({nb}, 6\)"):
            call(few_bodies)
        with pytest.raises(mbjax.ModelError, match=rf"{name}: forces.generalized has shape \(1,\), .* \({nv},\)"):
            call(few_joints)
        with pytest.raises(mbjax.ModelError, match=rf"{name}: forces must be .*, got an array of shape \({nv},\)"):
            call(zero.generalized)
    for wrong in (few_bodies, few_joints):
        with pytest.raises(mbjax.ModelError, match="can't be added: add forces on one model"):
            wrong + zero
    with pytest.raises(TypeError, match="unsupported operand"):
        zero + zero.body
    many = jax.tree.map(lambda x: jnp.stack([x, x]), zero)
    assert (many + zero).body.shape == (2, nb, 6)  # of each world and of all


def test_power_of_an_element_that_is_none():
    model = every_element().model
    q, v, number = model.parameters.default_positions, jnp.zeros(model.num_velocities), len(model.force_elements)
    for index in (number, -1, "j0", 0.5):
        with pytest.raises(mbjax.ModelError, match=rf"the model has {number}, .* gravity is not among them"):
            mbjax.force_element_power(model, q, v, index)


class Magnet(mbjax.AbstractForceElement):
    """Attracts a body's origin to the world's with energy -strength / (1 + r²), and brakes it."""

    strength: jax.Array
    drag: jax.Array
    body: str = eqx.field(static=True)

    def resolve(self, plant):
        return Magnet(self.strength, self.drag, plant.body(self.body, "Magnet").index)

    def forces(self, model, position, velocity, q, v):
        p = mbjax.body_pose_in_world(model, q, self.body).translation
        V = mbjax.body_spatial_velocity_in_world(model, q, v, self.body)
        f = -2.0 * self.strength * p / (1.0 + p @ p) ** 2 - self.drag * V[3:]
        F = jnp.concatenate([jnp.zeros(3, f.dtype), f])
        return mbjax.add_in_force_in_world(model, mbjax.MultibodyForces.zero(model), self.body, F)

    def potential_energy(self, model, position, q):
        p = mbjax.body_pose_in_world(model, q, self.body).translation
        return -self.strength / (1.0 + p @ p)


def test_elements_of_users_have_power_and_gradients():
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("a", mbjax.SpatialInertia(1.0, np.zeros(3), mbjax.UnitInertia(0.2, 0.3, 0.4)))
    plant.add_rigid_body("b", mbjax.SpatialInertia(1.0, np.zeros(3), mbjax.UnitInertia(0.2, 0.3, 0.4)))
    plant.add_joint(mbjax.RevoluteJoint("turn", "world", "a", axis=(1, 2, 3), X_PF=np.array([0.4, 0.1, 0.2])))
    plant.add_joint(mbjax.PrismaticJoint("slide", "a", "b", axis=(1, 0, 1)))
    plant.add_force_element(mbjax.RevoluteSpring("turn", 0.1, 2.0))
    plant.add_force_element(Magnet(jnp.asarray(5.0), jnp.asarray(0.7), "b"))
    model = plant.finalize()
    q, v = jnp.array([0.4, 0.3]), jnp.array([1.1, -0.6])

    @jax.jit
    def powers(q, v):
        V = mbjax.body_spatial_velocity_in_world(model, q, v, "b")
        gravity = jnp.sum(mbjax.gravity_generalized_forces(model, q) * v)
        each = [mbjax.force_element_power(model, q, v, i) for i in range(2)]
        return *each, V[3:] @ V[3:], gravity, mbjax.conservative_power(model, q, v)

    spring, magnet, v_squared, gravity, total = powers(q, v)
    np.testing.assert_allclose(magnet.non_conservative, -0.7 * v_squared, rtol=1e-12)
    np.testing.assert_allclose(spring.conservative, -2.0 * (0.4 - 0.1) * 1.1, rtol=1e-12)
    np.testing.assert_allclose(spring.non_conservative, 0.0, atol=1e-15)
    np.testing.assert_allclose(total, gravity + magnet.conservative + spring.conservative, rtol=1e-12)

    if not WHOLE_RUN:  # trimmed: gradients of all elements are in test_gradients.py
        return

    def f(element):
        changed = eqx.tree_at(lambda m: m.force_elements[1], model, element)
        return mbjax.generalized_forces(changed, q, mbjax.force_elements_contribution(changed, q, v))

    check_gradients(f, model.force_elements[1])
