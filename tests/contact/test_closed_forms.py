"""Contact and joint limits where the answer is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.geometry import Box, Geometry, HalfSpace, ProximityProperties, Sphere
from tests.gradients.checks import compiled

DT = 1e-3
MU = 0.5
APPROXIMATIONS = ("sap", "similar", "lagged")


def box_on_ground(approximation: str) -> mbjax.MultibodyModel:
    plant = mbjax.MultibodyPlant(DT, discrete_contact_approximation=approximation)
    plant.add_rigid_body("box", mbjax.SpatialInertia.solid_box_with_mass(2.0, 0.3, 0.2, 0.1))
    material = ProximityProperties(MU, MU, point_stiffness=1e5, hunt_crossley_dissipation=10.0, relaxation_time=0.005)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), material)
    plant.register_collision_geometry("box", Geometry("box", Box((0.3, 0.2, 0.1))), material)
    return plant.finalize()


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_box_on_a_slope(approximation: str) -> None:
    """It lies still below the angle of friction, within 1 % of it, and slides with g (sin - mu cos) above.

    The ground stays level and gravity is tilted. Its four corners carry the weight. Fast slides hop from step to step.
    """
    model, g = box_on_ground(approximation), 9.81
    limit = np.arctan(MU)
    angles = jnp.array([0.0, 0.99 * limit, 1.05 * limit, 1.5 * limit])
    state = mbjax.default_state(model)
    state = mbjax.State(state.q.at[6].set(0.05), state.v, state.time)

    def slide(angle):
        tilted = mbjax.set_gravity(model, g * jnp.array([jnp.sin(angle), 0.0, -jnp.cos(angle)]))
        end = mbjax.rollout(tilted, state, num_steps=300).final_state
        return end, mbjax.outputs(tilted, end).contact_results

    end, contacts = jax.jit(jax.vmap(slide))(angles)
    weights = contacts.force[:2, :, 2].sum(axis=1)
    np.testing.assert_allclose(weights, 2.0 * g * jnp.cos(angles[:2]), rtol=1e-2)
    np.testing.assert_allclose(end.q[0, 4:6], 0.0, atol=1e-9)
    assert (contacts.is_active[:2].sum(axis=1) == 4).all()
    assert abs(end.v[1, 3]) < 2e-3
    expected = g * (jnp.sin(angles[2:]) - MU * jnp.cos(angles[2:])) * 0.3
    np.testing.assert_allclose(end.v[2:, 3], expected, atol=0.01 * g * 0.3)
    assert contacts.converged.all()


def balls(**options) -> mbjax.MultibodyModel:
    """Five on the ground that pass through one another, with room for so many contacts."""
    plant = mbjax.MultibodyPlant(DT, **options)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), MU)
    for i in range(5):
        plant.add_rigid_body(f"b{i}", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
        plant.register_collision_geometry(f"b{i}", Geometry(f"b{i}", Sphere(0.1)), MU)
    for i in range(5):
        for k in range(i):
            plant.exclude_collisions_between(f"b{i}", f"b{k}")
    return plant.finalize()


def test_predicted_contacts_are_kept_too() -> None:
    """One ball in the ground, one that would reach it within the step, one far above: room for the first two.

    The normal impulse is (v̂ - v⁺) / R_n with v̂ = -gap / dt, or / (dt + τ) where they overlap; slopes follow from it.
    """
    k, tau, mass = 1e4, 0.01, 1.0
    plant = mbjax.MultibodyPlant(DT, max_contacts=2, contact_prediction=True)
    material = ProximityProperties(MU, point_stiffness=2.0 * k, relaxation_time=0.5 * tau)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), material)
    for i in range(3):
        plant.add_rigid_body(f"b{i}", mbjax.SpatialInertia.solid_sphere_with_mass(mass, 0.1))
        plant.add_joint(mbjax.PrismaticJoint(f"z{i}", "world", f"b{i}", X_PF=(i, 0.0, 0.0), axis=(0.0, 0.0, 1.0)))
        plant.register_collision_geometry(f"b{i}", Geometry(f"b{i}", Sphere(0.1)), material)
    for pair in (("b0", "b1"), ("b0", "b2"), ("b1", "b2")):
        plant.exclude_collisions_between(*pair)
    model, zero = plant.finalize(), jnp.zeros(())

    def speeds(gaps: jax.Array) -> tuple[jax.Array, jax.Array]:
        after, outputs = mbjax.step(model, mbjax.State(0.1 + gaps, jnp.zeros(3), zero))
        return after.v, outputs.contact_results.num_left_out

    gaps = np.array([0.3, 0.4 * 9.81 * DT**2, -1e-4])
    one = compiled(lambda x: jax.jvp(speeds, (x,), (jnp.ones(3),), has_aux=False))
    (v, left_out), (slopes, _) = one(jnp.asarray(gaps))
    settling = np.where(gaps < 0.0, DT + tau, DT)
    softness = mass * np.maximum((0.1 / (2.0 * np.pi)) ** 2 / (3.0 * mass), 1.0 / (DT * (DT + tau) * k))
    fall, reaches = -9.81 * DT, gaps < 0.1
    expected = np.where(reaches, (softness * fall - gaps / settling) / (1.0 + softness), fall)
    np.testing.assert_allclose(v, expected, rtol=1e-9)
    np.testing.assert_allclose(slopes, np.where(reaches, -1.0 / settling / (1.0 + softness), 0.0), rtol=1e-9)
    assert int(left_out) == 0


def test_the_deepest_contacts_are_kept_and_the_others_counted() -> None:
    """Five balls in the ground, room for three: those are as if the others were not there. None left out: the same."""
    depths = np.array([[0.1, 0.5, 0.3, 0.2, 0.4], [0.5, -0.1, 0.3, -0.2, 0.1]]) * 1e-3
    state = mbjax.default_state(balls())
    q = jnp.stack([state.q.at[6::7].set(0.1 - depth) for depth in depths])

    def force_and_count(model: mbjax.MultibodyModel, q: jax.Array):
        after, outputs = mbjax.step(model, mbjax.State(q, state.v, state.time))
        return outputs.contact_results.force[:, 2], outputs.contact_results.num_left_out, after.v

    every, kept = balls(), balls(max_contacts=3)

    def total(q: jax.Array):
        found = force_and_count(kept, q)
        return jnp.sum(found[2]), found

    all_forces, none, _ = compiled(jax.vmap(lambda q: force_and_count(every, q)))(q)
    (_, (forces, left_out, v)), gradient = compiled(jax.vmap(jax.value_and_grad(total, has_aux=True)))(q)
    assert none.tolist() == [0, 0]
    assert left_out.tolist() == [2, 0]
    np.testing.assert_allclose(forces[0], np.where(depths[0] > 0.25e-3, all_forces[0], 0.0), rtol=1e-9)
    np.testing.assert_allclose(forces[1], all_forces[1], rtol=1e-9)
    np.testing.assert_allclose(v[0, 5::6][depths[0] < 0.25e-3], -9.81 * DT, rtol=1e-12)
    assert np.isfinite(gradient).all()
    assert gradient[0, 6::7][depths[0] > 0.25e-3].all()


def pendulums() -> mbjax.MultibodyModel:
    """Two unconnected ones; the first has a lower limit, the second none above."""
    plant = mbjax.MultibodyPlant(DT)
    for i, limits in enumerate(((-0.3, np.inf), (-2.0, 2.0))):
        plant.add_rigid_body(
            f"b{i}", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1).shift(np.array([-0.5, 0.0, 0.0]))
        )
        axis = [0.0, -1.0, 0.0]
        plant.add_joint(mbjax.RevoluteJoint(f"j{i}", "world", f"b{i}", axis=axis, position_limits=limits))
    return plant.finalize()


def test_a_limit_carries_the_weight() -> None:
    model = pendulums()
    start = mbjax.State(jnp.array([0.1, 0.2]), jnp.zeros(2), jnp.zeros(()))
    end = jax.jit(lambda state: mbjax.rollout(model, state, num_steps=1000).final_state)(start)
    assert end.q[0] == pytest.approx(-0.3, abs=1e-5)
    assert end.v[0] == pytest.approx(0.0, abs=1e-6)
    assert abs(end.v[1]) > 0.1


def test_limits_can_be_set_later_also_where_there_were_none() -> None:
    model = pendulums()
    free = mbjax.set_position_limits(model, "j0", -jnp.inf, jnp.inf)
    plant = mbjax.MultibodyPlant(DT)
    plant.add_rigid_body("b", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1).shift(np.array([-0.5, 0.0, 0.0])))
    plant.add_joint(mbjax.RevoluteJoint("j", "world", "b", axis=[0.0, -1.0, 0.0]))
    unlimited = plant.finalize()
    limited = mbjax.set_position_limits(unlimited, "j", -0.3, 1.0)
    assert not unlimited.layout.limited_joints
    ends = {}
    for name, m in {"free": free, "unlimited": unlimited, "limited": limited}.items():
        start = mbjax.State(jnp.array([0.1, 0.2])[: m.num_positions], jnp.zeros(m.num_velocities), jnp.zeros(()))
        ends[name] = float(mbjax.rollout(m, start, num_steps=1000).final_state.q[0])
    assert ends["free"] == pytest.approx(ends["unlimited"], rel=1e-9)
    assert ends["free"] < -0.4
    assert ends["limited"] == pytest.approx(-0.3, abs=1e-5)
    with pytest.raises(mbjax.ModelError, match="'j0' has lower limit 1"):
        mbjax.set_position_limits(model, "j0", 1.0, 0.0)


def test_G14_and_G15_at_a_limit() -> None:
    """At, beside and beyond it, with infinite ones beside: continuous, finite, and the other joint is not moved."""
    model = pendulums()
    positions = jnp.array([-0.3 - 0.02, -0.3 - 1e-9, -0.3, -0.3 + 1e-9, -0.25])

    def step(q0, v):
        state = mbjax.State(jnp.stack([q0, 0.2]), v, jnp.zeros(()))
        return mbjax.step(model, state)[0].v

    v = jnp.array([-0.1, 0.3])
    after = compiled(jax.vmap(lambda q0: step(q0, v)))(positions)
    jacobian = compiled(jax.vmap(lambda q0: jax.jacrev(lambda v: step(q0, v))(v)))(positions)
    assert np.isfinite(jacobian).all()
    assert np.ptp(after[1:4, 0]) < 1e-5
    assert after[0, 0] > 0.0  # pushed back
    assert not jacobian[:, 0, 1].any()
    assert not jacobian[:, 1, 0].any()
    gradient = compiled(jax.grad(lambda model: jnp.sum(mbjax.step(model, mbjax.State(
        jnp.array([-0.3, 0.2]), v, jnp.zeros(())))[0].v)))(model)  # fmt: skip
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
