"""Contact and joint limits where the answer is known."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.geometry import Box, Geometry, HalfSpace, ProximityProperties, Sphere
from tests.gradients.checks import WHOLE_RUN, check_gradients, compiled

DT = 1e-3
MU = 0.5
OTHER_LAWS = pytest.mark.whole_run("gradients of steps with friction, in test_impact_gradients.py")
APPROXIMATIONS = ("sap", *(pytest.param(name, marks=OTHER_LAWS) for name in ("similar", "lagged")))


def box_on_ground(approximation: str) -> mbjax.MultibodyModel:
    plant = mbjax.MultibodyPlant(DT, discrete_contact_approximation=approximation)
    plant.add_rigid_body("box", mbjax.SpatialInertia.solid_box_with_mass(2.0, 0.3, 0.2, 0.1))
    material = ProximityProperties(MU, MU, point_stiffness=1e5, hunt_crossley_dissipation=10.0, relaxation_time=0.005)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), material)
    plant.register_collision_geometry("box", Geometry("box", Box((0.3, 0.2, 0.1))), material)
    return plant.finalize()


@pytest.mark.whole_run("boxes in test_drops.py; what sticks and slides beside Drake's and MuJoCo's steps")
@pytest.mark.parametrize("approximation", ["sap", "similar", "lagged"])
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
    """Five that slide up and down and pass through one another, with room for so many contacts with the ground."""
    plant = mbjax.MultibodyPlant(DT, **options)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), MU)
    for i in range(5):
        plant.add_rigid_body(f"b{i}", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
        plant.add_joint(mbjax.PrismaticJoint(f"z{i}", "world", f"b{i}", axis=(0.0, 0.0, 1.0)))
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

    near = 0.4 * 9.81 * DT**2
    gaps = np.array([0.3, near, -1e-4])
    one = compiled(lambda x: jax.jvp(speeds, (x,), (jnp.ones(3),), has_aux=False))
    (v, left_out), (slopes, _) = one(jnp.asarray(gaps))
    settling = np.where(gaps < 0.0, DT + tau, DT)
    softness = mass * np.maximum((0.1 / (2.0 * np.pi)) ** 2 / (3.0 * mass), 1.0 / (DT * (DT + tau) * k))
    fall, reaches = -9.81 * DT, gaps < 0.1
    expected = np.where(reaches, (softness * fall - gaps / settling) / (1.0 + softness), fall)
    np.testing.assert_allclose(v, expected, rtol=1e-9)
    np.testing.assert_allclose(slopes, np.where(reaches, -1.0 / settling / (1.0 + softness), 0.0), rtol=1e-9)
    assert int(left_out) == 0
    for gaps, count in (([2.0 * near, near, -1e-4], 1), ([3.0 * near, near, -1e-4], 0)):  # 2.5: not within the step
        (v, left_out), _ = one(jnp.asarray(gaps))
        assert int(left_out) == count
        assert float(v[0]) == pytest.approx(fall, rel=1e-12)


@pytest.mark.whole_run("contacts that are kept and counted where they are predicted, above")
def test_the_deepest_contacts_are_kept_and_the_others_counted() -> None:
    """Five balls in the ground, room for three: those are as if the others were not there. None left out: the same."""
    depths = np.array([[0.1, 0.5, 0.3, 0.2, 0.4], [0.5, -0.1, 0.3, -0.2, 0.1]]) * 1e-3
    state = mbjax.default_state(balls())
    q = jnp.asarray(0.1 - depths)

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
    np.testing.assert_allclose(v[0][depths[0] < 0.25e-3], -9.81 * DT, rtol=1e-12)
    assert np.isfinite(gradient).all()
    assert gradient[0][depths[0] > 0.25e-3].all()


@pytest.mark.whole_run("points that would touch within the step")
def test_smoothed_contacts_that_are_left_out_are_counted() -> None:
    """Nearer than the smoothing length; farther ones push by less than a tenth of what they would at that length."""
    length = 1e-4
    model = balls(max_contacts=2, discrete_contact_approximation="lagged", contact_smoothing_length=length)
    state = mbjax.default_state(model)

    def count(gaps: jax.Array) -> tuple[jax.Array, jax.Array]:
        contacts = mbjax.step(model, mbjax.State(0.1 + gaps, state.v, state.time))[1].contact_results
        return contacts.num_left_out, contacts.is_active

    gaps = length * jnp.array([[-1.0, 0.0, 0.3, 0.9, 20.0], [-0.2, 0.5, 20.0, 30.0, 40.0]])
    left_out, is_active = compiled(jax.vmap(count))(gaps)
    assert left_out.tolist() == [2, 0]
    assert is_active.tolist() == [[True, True, False, False, False]] * 2


TAU = 0.004
RIGID = ProximityProperties(MU, point_stiffness=np.inf, hunt_crossley_dissipation=5.0, relaxation_time=TAU)


def rigid_balls(approximation: str, time_step: float = DT) -> mbjax.MultibodyModel:
    """Two rigid balls that slide up and down, one on the other, which lies on rigid ground."""
    plant = mbjax.MultibodyPlant(time_step, discrete_contact_approximation=approximation)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), RIGID)
    for name in ("low", "high"):
        plant.add_rigid_body(name, mbjax.SpatialInertia.solid_sphere_with_mass(2.0, 0.1))
        plant.add_joint(mbjax.PrismaticJoint(name, "world", name, axis=(0.0, 0.0, 1.0)))
        plant.register_collision_geometry(name, Geometry(name, Sphere(0.1)), RIGID)
    plant.exclude_collisions_between("world", "high")
    return plant.finalize()


@pytest.mark.parametrize(
    "approximation",
    [
        pytest.param("sap", marks=pytest.mark.whole_run("near-rigid contacts where they are predicted, above")),
        *(pytest.param(x, marks=pytest.mark.whole_run("predicted contacts, above")) for x in ("similar", "lagged")),
    ],
)
def test_rigid_on_rigid(approximation: str) -> None:
    """Drake ends the process. Here it carries the weight as other rigid rows do, with c = dt² R, R = (0.1 / 2π)² w.

    w = 1 / 3m with the ground, 2 / 3m between the two. In sap R is (1 / 2π)² w, as its threshold asks for, and without
    one c / (dt (dt + τ)). A locked ball that is not rigid is pressed with k depth, whatever would move elsewhere.
    """
    model, m = rigid_balls(approximation), 2.0
    weights, w = m * 9.81 * np.array([2.0, 1.0]), np.array([1.0, 2.0]) / (3.0 * m)

    def after(collision: mbjax.CollisionParameters, locked: jax.Array, q: jax.Array) -> tuple[jax.Array, jax.Array]:
        held = mbjax.lock_joint(eqx.tree_at(lambda x: x.collision, model, collision), "low", locked)
        state, outputs = mbjax.step(held, mbjax.State(q, jnp.zeros(2), jnp.zeros(())))
        return state.v, outputs.contact_results.force[:, 2]

    step = compiled(after)
    for threshold in (1.0, 0.0):
        depths = DT**2 * (0.1 / (2.0 * np.pi)) ** 2 * w * weights
        if approximation == "sap":
            near_rigid = DT * (DT + 2.0 * TAU) * (threshold / (2.0 * np.pi)) ** 2 * w * weights
            depths = np.maximum(depths, near_rigid)
        at_rest = jnp.array([0.1 - depths[0], 0.3 - depths.sum()])
        collision = mbjax.set_sap_near_rigid_threshold(model, threshold).collision
        v, force = step(collision, 0.0, at_rest)
        np.testing.assert_allclose(v, 0.0, atol=1e-12)
        np.testing.assert_allclose(force, weights, rtol=1e-8)
        v, force = step(collision, 1.0, at_rest)
        assert v[0] == 0.0
        assert force[1] == pytest.approx(weights[1], rel=1e-2)
    collision = eqx.tree_at(lambda c: c.stiffness, collision, jnp.full(3, 2e5))
    v, force = step(collision, 1.0, jnp.array([0.0995, 0.4]))
    np.testing.assert_allclose(force, [1e5 * 0.5e-3, 0.0], rtol=1e-12)
    assert v[1] == pytest.approx(-9.81 * DT, rel=1e-12)


def test_a_continuous_plant_refuses_rigid_on_rigid() -> None:
    with pytest.raises(mbjax.ModelError, match=r"'ground' and 'low'.*point_stiffness=inf.*time_step > 0"):
        rigid_balls("sap", time_step=0.0)
    plant = mbjax.MultibodyPlant()
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), RIGID)
    plant.add_rigid_body("ball", mbjax.SpatialInertia.solid_sphere_with_mass(2.0, 0.1))
    plant.register_collision_geometry("ball", Geometry("ball", Sphere(0.1)), ProximityProperties(point_stiffness=1e4))
    with pytest.raises(mbjax.ModelError, match="'ground' and 'ball'"):
        mbjax.set_proximity_properties(plant.finalize(), "ball", point_stiffness=np.inf)


@pytest.mark.whole_run("gradients of steps with friction, in test_impact_gradients.py")
@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_derivatives_of_rigid_on_rigid(approximation: str) -> None:
    """By the state and every material number, pressed deeper than at rest; one ball locked, and none."""
    model = rigid_balls(approximation)

    def after(collision: mbjax.CollisionParameters, q: jax.Array, v: jax.Array) -> jax.Array:
        m = eqx.tree_at(lambda x: x.collision, model, collision)
        locks = jax.vmap(lambda locked: mbjax.lock_joint(m, "low", locked))(jnp.array([0.0, 1.0]))
        return jax.vmap(lambda m: mbjax.step(m, mbjax.State(q, v, jnp.zeros(())))[0].v)(locks)

    q, v = jnp.array([0.0998, 0.2995]), jnp.array([-0.05, -0.1])
    result = check_gradients(after, model.collision, q, v, step=1e-7)
    assert result.forward.any(axis=1).tolist() == [True, True, False, True]


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


@compiled
def a_second_later(model: mbjax.MultibodyModel, state: mbjax.State) -> mbjax.State:
    return mbjax.rollout(model, state, num_steps=1000).final_state


def test_a_limit_carries_the_weight() -> None:
    model = pendulums()
    start = mbjax.State(jnp.array([0.1, 0.2]), jnp.zeros(2), jnp.zeros(()))
    end = a_second_later(model, start)
    assert end.q[0] == pytest.approx(-0.3, abs=1e-5)
    assert end.v[0] == pytest.approx(0.0, abs=1e-6)
    assert abs(end.v[1]) > 0.1


@pytest.mark.whole_run("a limit carries the weight, above, and limits set later in tests/model/test_setters.py")
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
        ends[name] = float(a_second_later(m, start).q[0])
    assert ends["free"] == pytest.approx(ends["unlimited"], rel=1e-9)
    assert ends["free"] < -0.4
    assert ends["limited"] == pytest.approx(-0.3, abs=1e-5)
    with pytest.raises(mbjax.ModelError, match=r"'j0'.*the lower limit 1"):
        mbjax.set_position_limits(model, "j0", 1.0, 0.0)


@pytest.mark.whole_run("limits that carry weights, above, and derivatives at contacts in test_impact_gradients.py")
def test_G14_and_G15_at_a_limit() -> None:
    """At, beside and beyond it, with infinite ones beside: continuous, finite, and the other joint is not moved.

    By every leaf of the model; trimmed: by the limits.
    """
    model = pendulums()

    def limits(model):
        return model.parameters.position_lower_limits, model.parameters.position_upper_limits

    positions = jnp.array([-0.3 - 0.02, -0.3 - 1e-9, -0.3, -0.3 + 1e-9, -0.25])

    def step_and_derivatives(q0):
        def after(leaves, v):
            changed = leaves if WHOLE_RUN else eqx.tree_at(limits, model, leaves)
            return mbjax.step(changed, mbjax.State(jnp.stack([q0, 0.2]), v, jnp.zeros(())))[0].v

        end, pull = jax.vjp(after, model if WHOLE_RUN else limits(model), jnp.array([-0.1, 0.3]))
        return end, *jax.vmap(pull)(jnp.eye(2))

    after, by_leaves, jacobian = compiled(jax.vmap(step_and_derivatives))(positions)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((by_leaves, jacobian)))
    assert np.ptp(after[1:4, 0]) < 1e-5
    assert after[0, 0] > 0.0  # pushed back
    assert not jacobian[:, 0, 1].any()
    assert not jacobian[:, 1, 0].any()
