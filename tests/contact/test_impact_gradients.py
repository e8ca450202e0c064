"""Derivatives where contact begins: at a gap of zero, from a distance, through bounces; and of friction at rest."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.geometry import Geometry, HalfSpace, ProximityProperties, Sphere
from tests.gradients.checks import compiled

R, DT = 0.1, 2e-3


def ball(time_step: float = DT, friction: float = 0.5, k: float = 1e4, d: float = 0.0, **settings: Any):
    """A free ball of 1 kg above the ground."""
    plant = mbjax.MultibodyPlant(time_step, **settings)
    plant.add_rigid_body("ball", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, R))
    material = ProximityProperties(
        friction, friction, point_stiffness=2.0 * k, hunt_crossley_dissipation=d, relaxation_time=0.01
    )
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), material)
    plant.register_collision_geometry("ball", Geometry("round", Sphere(R)), material)
    return plant.finalize()


def at(gap: Any, v: Any = 0.0, slip: Any = 0.0) -> mbjax.State:
    """Above the ground by `gap`, moving up at v and along x at `slip`."""
    z = jnp.asarray(R + gap)
    q = jnp.zeros(7).at[0].set(1.0).at[6].set(z)
    return mbjax.State(q, jnp.zeros(6).at[5].set(v).at[3].set(slip), jnp.zeros(()))


WHOLE_RUN = pytest.mark.whole_run("sap has the same switch")


@functools.cache
def pushed(approximation: str = "sap", prediction: bool = False) -> Callable:
    """(n, 4) gap, speed up, slip and friction, and their tangents → (n, 6) velocities after a step, and theirs."""
    model = ball(contact_prediction=prediction, discrete_contact_approximation=approximation)

    def after(x: jax.Array) -> jax.Array:
        gap, v, slip, mu = x
        return mbjax.step(mbjax.set_friction(model, "round", mu), at(gap, v, slip))[0].v

    return compiled(lambda x, dx: jax.jvp(jax.vmap(after), (x,), (dx,)))


def check_pushed(f: Callable, x: np.ndarray, which: int, h: float, one_sided: bool = False) -> np.ndarray:
    """The tangents by one of the four, which must be those of differences."""
    dx = np.zeros_like(x)
    dx[:, which] = 1.0
    slope = f(x, dx)[1]
    below = x if one_sided else x - h * dx
    differences = (f(x + h * dx, dx)[0] - f(below, dx)[0]) / (h if one_sided else 2.0 * h)
    np.testing.assert_allclose(slope, differences, rtol=1e-5, atol=2e-5 * np.abs(differences).max())
    return np.asarray(slope)


@pytest.mark.whole_run("closed forms of predicted contacts and their slopes, in test_closed_forms.py")
@pytest.mark.parametrize("approximation", ["sap", "lagged"])
def test_with_prediction_the_step_is_continuous_where_contact_begins(approximation: str) -> None:
    """G20: gaps of 0 and ±1e-9, where the step of sap jumps by g dt without prediction."""
    f, fall = pushed(approximation, True), 9.81 * DT * DT
    x = np.zeros((6, 4))
    x[:, 0], x[:, 3] = [-1e-9, 0.0, 1e-9, 0.3 * fall, 0.7 * fall, 2.0 * fall], 0.5
    v = f(x, np.zeros_like(x))[0][:, 5]
    assert np.ptp(v[:3]) < 1e-6
    np.testing.assert_allclose(v[5], -9.81 * DT, rtol=1e-12)  # too far to touch within the step
    assert (v[3:5] > v[5]).all()
    check_pushed(f, x[3:], 0, 1e-9)


@functools.cache
def smoothed_force(time_step: float) -> Callable:
    """Gap and smoothing length → the force on a ball at rest, and its slopes by both."""
    model = ball(time_step, discrete_contact_approximation="lagged", contact_smoothing_length=1e-3)
    model = mbjax.set_gravity(model, jnp.zeros(3))

    def force(gap: jax.Array, delta: jax.Array) -> jax.Array:
        changed = mbjax.set_contact_smoothing_length(model, delta)
        if model.is_discrete:
            return mbjax.step(changed, at(gap))[0].v[5] / DT
        return mbjax.time_derivatives(changed, at(gap))[1][5]

    return compiled(jax.value_and_grad(force, argnums=(0, 1)))


OF_BOTH_PLANTS = pytest.mark.parametrize(
    "time_step", [0.0, pytest.param(DT, marks=pytest.mark.whole_run("a bounce in closed form"))]
)


@pytest.mark.whole_run("a bounce has the derivatives of its closed form, in test_contact_integrator.py")
@OF_BOTH_PLANTS
def test_smoothing_is_felt_from_a_distance_and_where_surfaces_just_touch(time_step: float) -> None:
    """The force k δ² / (4 φ) of the law, in the step and in the continuous plant; its slope and that by δ.

    At the corner of (φ² + δ²)^½, φ = δ = 0: no force, and slopes between those of the two sides.
    """
    k, delta, gap = 1e4, 1e-3, 8e-3
    value, slopes = smoothed_force(time_step)(jnp.array(gap), jnp.array(delta))
    np.testing.assert_allclose(value, k * delta**2 / (4.0 * gap), rtol=0.02)
    np.testing.assert_allclose(slopes[0], -value / gap, rtol=0.05)
    np.testing.assert_allclose(slopes[1], 2.0 * value / delta, rtol=0.02)

    zero = jnp.zeros(())
    value, slopes = smoothed_force(time_step)(zero, zero)
    assert float(value) == 0.0
    assert -k <= float(slopes[0]) <= 0.0
    assert 0.0 <= float(slopes[1]) <= 0.5 * k
    beyond = smoothed_force(time_step)(jnp.array(1e-9), zero)
    np.testing.assert_allclose([beyond[0], *beyond[1]], 0.0, atol=1e-9)


@functools.cache
def on_a_line() -> mbjax.MultibodyModel:
    """Two elastic balls on the x axis, the first one before a wall at 0: continuous, with a smoothing length."""
    plant = mbjax.MultibodyPlant(contact_smoothing_length=1e-4)
    plant.set_gravity([0.0, 0.0, 0.0])
    hard = ProximityProperties(0.0, 0.0, point_stiffness=2e5, hunt_crossley_dissipation=0.0)
    wall = Geometry("wall", HalfSpace(), rotation=((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0)))
    plant.register_collision_geometry("world", wall, hard)
    for name in ("one", "two"):
        plant.add_rigid_body(name, mbjax.SpatialInertia.solid_sphere_with_mass(1.0, R))
        plant.add_joint(mbjax.PrismaticJoint(name, "world", name, axis=[1, 0, 0]))
        plant.register_collision_geometry(name, Geometry(name, Sphere(R)), hard)
    plant.exclude_collisions_between("world", "two")
    return plant.finalize()


@functools.cache
def slopes_of_end() -> Callable[[jax.Array, jax.Array], jax.Array]:
    """Of the two positions after a second, by positions and velocities before, with stiffness k."""

    at_first = on_a_line()

    def end(x: jax.Array, k: jax.Array) -> jax.Array:
        model = at_first
        for name in ("wall", "one", "two"):
            model = mbjax.set_proximity_properties(model, name, point_stiffness=2.0 * k)
        state = mbjax.State(x[:2], x[2:], jnp.zeros(()))
        return mbjax.simulate(model, state, save_at=jnp.array([0.0, 1.0])).q[-1]

    return compiled(jax.jacrev(end))


@pytest.mark.whole_run("friction at rest and without friction, and a step that starts at its solution, below")
@pytest.mark.parametrize("k", [1e3, 1e4, 1e5])
def test_gradient_through_an_elastic_bounce(k: float) -> None:
    """G30: 0.5 from the wall, v = -1, T = 1; dz(T)/dz0 = -1. The other ball is far away."""
    slopes = slopes_of_end()(jnp.array([R + 0.5, 9.0, -1.0, 0.0]), jnp.asarray(k))
    np.testing.assert_allclose(slopes[0, 0], -1.0, atol=0.02)


@pytest.mark.whole_run("a bounce has the derivatives of its closed form, in test_contact_integrator.py")
def test_gradient_through_billiards() -> None:
    """G31: x1 = 0, v1 = 1 meets x2 = 0.52, r = 0.1, T = 1; d x2(T) / d(x1, x2, v1, v2) = (1, 0, 1, 0)."""
    far = 5.0  # from the wall
    slopes = slopes_of_end()(jnp.array([far, far + 0.52, 1.0, 0.0]), jnp.asarray(1e5))
    np.testing.assert_allclose(slopes[1], [1.0, 0.0, 1.0, 0.0], atol=0.02)


@pytest.mark.whole_run("rolling in test_one_ball.py, and gradients with friction, below")
def test_rolling_knows_the_inertia_about_its_axis_alone() -> None:
    """G35: down a plane at 0.1 rad, a = g sin θ / (1 + I / (m r²)); x and z of the inertia do nothing."""
    model = ball(friction=0.8)
    model = mbjax.set_gravity(model, 9.81 * jnp.array([np.sin(0.1), 0.0, -np.cos(0.1)]))
    steps = 50
    sinking = 9.81 * np.cos(0.1) / 1e4

    def speed(moments: jax.Array) -> jax.Array:
        inertia = mbjax.SpatialInertia(1.0, jnp.zeros(3), mbjax.UnitInertia(*moments, 0.0, 0.0, 0.0))
        changed = mbjax.set_spatial_inertia_in_body_frame(model, "ball", inertia)
        return mbjax.rollout(changed, at(-sinking), num_steps=steps).final_state.v[3]

    G = 0.4 * R**2
    value, slopes = compiled(jax.value_and_grad(speed))(jnp.full(3, G))
    expected = steps * DT * 9.81 * np.sin(0.1) / (1.0 + G / R**2)
    # Friction creeps, by an amount that knows of all moments a little.
    np.testing.assert_allclose(value, expected, rtol=5e-3)
    np.testing.assert_allclose(slopes, [0.0, -expected / (R**2 + G), 0.0], rtol=5e-3, atol=1e-4)


def test_friction_at_rest_and_without_friction() -> None:
    """G12 and G13: slip of 0, 1e-12 and 0.5; friction coefficients of 0. Finite, and one-sided differences."""
    x = np.zeros((5, 4))
    x[:, 0], x[:, 2], x[:, 3] = -1e-3, [0.0, 1e-12, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 0.0, 1e-9]
    check_pushed(pushed("sap"), x, 2, 1e-7, one_sided=True)
    by_friction = check_pushed(pushed("sap"), x, 3, 1e-7, one_sided=True)
    assert abs(by_friction[2, 3]) > 1e-3  # slides: friction moves it
    np.testing.assert_allclose(by_friction[:2, 3], 0.0, atol=1e-9)  # sticks


@pytest.mark.parametrize("approximation", ["sap", pytest.param("lagged", marks=WHOLE_RUN)])
def test_a_step_that_starts_at_its_solution(approximation: str) -> None:
    """G45: at rest, where no iteration is needed, the derivative is still that of the equation."""
    x = np.tile([-9.81 / 1e4, 0.0, 0.0, 0.5], (5, 1))
    assert abs(pushed(approximation)(x, x)[0][0, 5]) < 1e-6
    assert check_pushed(pushed(approximation), x, 0, 1e-7)[0, 5] < -1.0
