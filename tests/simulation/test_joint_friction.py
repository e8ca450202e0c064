"""Dry friction of joints in the discrete step: holds up to its bound, slides beyond, with exact derivatives."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import mbjax
from mbjax.geometry import Geometry, HalfSpace, Sphere
from tests.gradients.checks import WHOLE_RUN, compiled

DT, MASS, RADIUS, LENGTH, FRICTION, G = 0.002, 1.0, 0.02, 0.5, 0.5, 9.81
CREEP = (0.1 / (2.0 * np.pi)) ** 2  # of a near-rigid row, of the speed the load would give in a step


@functools.cache
def pendulum(friction: float = FRICTION) -> mbjax.MultibodyModel:
    """A capsule that hangs from a hinge with friction."""
    plant = mbjax.MultibodyPlant(DT)
    capsule = mbjax.SpatialInertia.solid_capsule_with_mass(MASS, RADIUS, LENGTH, [0.0, 0.0, 1.0])
    plant.add_rigid_body("rod", capsule.shift(np.array([0.0, 0.0, 0.5 * LENGTH])))
    plant.add_joint(mbjax.RevoluteJoint("hinge", "world", "rod", axis=[0.0, 1.0, 0.0], friction=friction))
    return plant.finalize()


def inertia() -> float:
    """About the hinge."""
    return float(mbjax.mass_matrix(pendulum(), jnp.zeros(1))[0, 0])


def gravity_torque(q: np.ndarray) -> np.ndarray:
    return -MASS * G * 0.5 * LENGTH * np.sin(q)


def after(model: mbjax.MultibodyModel, x: jax.Array) -> jax.Array:
    """q and v after a step from (q, v) with this friction."""
    model = mbjax.set_joint_friction(model, "hinge", x[2])
    state = mbjax.step(model, mbjax.State(x[:1], x[1:2], jnp.zeros((), x.dtype)))[0]
    return jnp.concatenate([state.q, state.v])


@pytest.mark.whole_run("one that holds and one that swings to rest as MuJoCo's; contacts at rest in tests/contact")
def test_G10_and_G11_a_pendulum_that_sticks_or_slides() -> None:
    """At rest without load and under one, and sliding either way; without friction.

    Reverse mode = differences; whole run: = forward mode.
    """
    at_rest = [[0.0, 0.0, FRICTION], [0.0, 1e-8, FRICTION], [0.1, 0.0, FRICTION]]
    slides = [[0.5, 0.3, FRICTION], [0.5, -0.3, FRICTION], [0.5, 0.3, 0.0]]
    rows = np.array([*at_rest, *slides, [0.0, 0.0, 0.0]])
    f = functools.partial(after, pendulum())
    h = 1e-5 * np.eye(3)
    moved = jnp.asarray(np.concatenate([rows, *(rows + e for e in (*h, *-h))]))
    modes = (jax.jacfwd, jax.jacrev) if WHOLE_RUN else (jax.jacrev,)
    values, *jacobians = compiled(jax.vmap(lambda x: (f(x), *(mode(f)(x) for mode in modes))))(moved)
    forward, reverse = (np.asarray(J[: len(rows)]) for J in (jacobians[0], jacobians[-1]))
    values = np.asarray(values[len(rows) :]).reshape(2, 3, len(rows), 2)
    differences = np.moveaxis((values[0] - values[1]) / 2e-5, 0, -1)
    sizes = np.abs(differences).max(axis=-1, keepdims=True)
    assert (np.abs(forward - reverse) <= 1e-9 * sizes).all()
    differences[-1, :, 2] = 0.0  # at rest no friction but a negative one does anything
    assert (np.abs(reverse - differences) <= 1e-6 * sizes).all()

    by_q, by_v, by_friction = np.moveaxis(reverse[:, 1], -1, 0)
    sticks, held = len(at_rest), CREEP / (1.0 + CREEP)
    np.testing.assert_allclose(by_v[:sticks], held, rtol=1e-9)
    stiffness = MASS * G * 0.5 * LENGTH * np.cos(rows[:sticks, 0])
    np.testing.assert_allclose(by_q[:sticks], -held * DT * stiffness / inertia(), rtol=1e-9)
    np.testing.assert_array_equal(by_friction[:sticks], 0.0)
    np.testing.assert_allclose(by_v[sticks:], 1.0, rtol=1e-9)
    np.testing.assert_allclose(by_friction[sticks:], -DT / inertia() * np.sign(rows[sticks:, 1]), rtol=1e-9)


@pytest.mark.whole_run(
    "friction's values, below, and slopes by that of contacts in tests/contact/test_impact_gradients.py"
)
def test_what_was_built_without_friction_has_a_slope_by_it() -> None:
    """By the leaf alone, without a row: that of sliding, so that an optimizer can leave zero."""
    model, v = pendulum(0.0), jnp.array([0.0, 0.5, -2.0])
    assert not model.layout.frictional_directions

    def after(friction: jax.Array, v: jax.Array) -> jax.Array:
        changed = eqx.tree_at(lambda m: m.parameters.joint_friction, model, friction)
        return mbjax.step(changed, mbjax.State(jnp.zeros(1), v[None], jnp.zeros(())))[0].v[0]

    slopes = jax.vmap(jax.value_and_grad(after, argnums=(0, 1)), (None, 0))
    values, (by_friction, by_v) = compiled(slopes)(jnp.zeros(1), v)
    np.testing.assert_allclose(values, v, rtol=1e-12)
    np.testing.assert_allclose(by_v, 1.0, rtol=1e-12)
    np.testing.assert_allclose(by_friction[:, 0], -DT / inertia() * np.sign(v), rtol=1e-3)
    with pytest.raises(mbjax.ModelError, match=r"'hinge'.*friction must be a finite number >= 0"):
        mbjax.set_joint_friction(model, "hinge", -1.0)


def mujoco_swing(q: float, steps: int) -> np.ndarray:
    """The same pendulum there, its angle after each step: friction is a row of a convex problem, too."""
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco><option timestep="{DT}" gravity="0 0 -{G}" solver="Newton"/><worldbody><body>
        <joint type="hinge" axis="0 1 0" frictionloss="{FRICTION}" solreffriction="0.004 1"/>
        <geom type="capsule" fromto="0 0 0 0 0 -{LENGTH}" size="{RADIUS}" mass="{MASS}"/>
      </body></worldbody></mujoco>""")
    data, angles = mujoco.MjData(model), [q]
    data.qpos[0] = q
    for _ in range(steps):
        mujoco.mj_step(model, data)
        angles.append(float(data.qpos[0]))
    return np.array(angles)


def test_a_pendulum_holds_and_one_swings_to_rest() -> None:
    """Three seconds: held at 0.1 rad it creeps by the bound, 1e-5 rad; from 1.2 rad it stops where MuJoCo's does."""
    steps, q = 1500, np.array([0.1, 1.2])
    states = mbjax.State(jnp.asarray(q)[:, None], jnp.zeros((2, 1)), jnp.zeros(2))
    model = pendulum()
    way = compiled(jax.vmap(lambda s: mbjax.rollout(model, s, num_steps=steps)))(states)
    crept = way.q[0, -1, 0] - q[0]
    bound = steps * DT * CREEP * DT * gravity_torque(q[0]) / inertia()
    theirs = mujoco_swing(q[1], steps)
    apart = np.abs(way.q[1, :, 0] - theirs).max()
    print(f"crept {crept:.3e} of {bound:.3e} rad; {apart:.1e} rad from MuJoCo's, at rest at {way.q[1, -1, 0]:.4f}")
    assert crept == pytest.approx(bound, rel=2e-3)
    assert abs(crept) < 1e-5
    assert abs(gravity_torque(way.q[1, -1, 0])) < FRICTION
    assert np.abs(way.q[1, -1] - way.q[1, -100]).max() < 1e-5
    assert apart < 5e-3


ARM = (0.5, -0.5, 0.2)  # rad


def arm() -> mbjax.MultibodyModel:
    """Three links with friction at ARM, the last one's tip on the ground; one is driven by a motor that saturates."""
    plant = mbjax.MultibodyPlant(DT)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), 0.3)
    height = 0.3 * sum(np.cos(np.cumsum(ARM))) + 0.05 - 1e-4
    parent, at = "world", [0.0, 0.0, height]
    for i, friction in enumerate((4.0, 0.3, 0.5)):
        link = mbjax.SpatialInertia.solid_capsule_with_mass(1.0 - 0.2 * i, 0.03, 0.3, [0.0, 0.0, 1.0])
        plant.add_rigid_body(f"link{i}", link.shift(np.array([0.0, 0.0, 0.15])))
        joint = {"X_PF": at, "axis": [0.0, 1.0, 0.0], "friction": friction}
        plant.add_joint(mbjax.RevoluteJoint(f"j{i}", parent, f"link{i}", **joint))
        parent, at = f"link{i}", [0.0, 0.0, -0.3]
    plant.add_joint_actuator("motor", "j1", 2.0, kp=100.0, kd=1.0)
    plant.register_collision_geometry("link2", Geometry("tip", Sphere(0.05), translation=(0.0, 0.0, -0.3)), 0.3)
    return plant.finalize()


@pytest.mark.whole_run("friction alone, above; contacts, motors and joints as Drake's in other rooms")
def test_friction_beside_contact_and_a_motor() -> None:
    """What is left of the equation of motion is friction: within its bound, and all of it against v where it slides."""
    model = arm()

    @compiled
    @jax.vmap
    def friction_and_v(q: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        inputs = mbjax.Inputs(desired_state=jnp.array([ARM[1], 0.0]))
        after, outputs = mbjax.step(model, mbjax.State(q, v, jnp.zeros(())), inputs)
        taken = mbjax.inverse_dynamics(model, q, v, outputs.generalized_acceleration)
        gravity = mbjax.gravity_generalized_forces(model, q)
        motor = jnp.zeros(3).at[1].set(outputs.net_actuation[0])
        return taken - gravity - motor - outputs.generalized_contact_forces, after.v, outputs.contact_results.force[0]

    q = np.tile(ARM, (64, 1))
    v = np.random.default_rng(0).normal(size=(64, 3)) * np.geomspace(1e-5, 1.0, 64)[:, None]
    found, v, force = (np.asarray(x) for x in friction_and_v(jnp.asarray(q), jnp.asarray(v)))
    bound = np.asarray(model.parameters.joint_friction)
    share, slides = found / bound, np.abs(v) > 1e-3
    print(f"{slides.sum()} of {slides.size} slide, {np.count_nonzero(force[:, 2])} touch; share {np.abs(share).max()}")
    assert 20 < slides.sum() < slides.size - 20
    assert np.abs(share).max() < 1.0 + 1e-8
    np.testing.assert_allclose(share[slides], -np.sign(v[slides]), rtol=1e-8)
    assert (share * v <= 1e-9).all()
