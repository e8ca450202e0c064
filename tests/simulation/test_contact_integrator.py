"""`ContactIntegrator`: bounces known in closed form, both modes, many worlds, single precision, and its errors.

Most of it is tested on a spring in place of a model, which compiles in a second.
"""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.geometry import Box, Geometry, HalfSpace, ProximityProperties, Sphere
from mbjax.simulation.contact_integrator import Plant, integrate_through_contact
from mbjax.simulation.rosenbrock import rosenbrock_step
from tests.gradients.checks import compiled

R, T, GAP, V = 0.1, 1.0, 0.5, 1.0
TIMES = jnp.array([0.0, 0.3, T])


class OneCoordinate(eqx.Module):
    """What the solver asks of a model."""

    num_positions: int = 1


class Spring(eqx.Module):
    """A mass of 1 kg without gravity, above a spring at zero that pushes only."""

    stiffness: jax.Array
    model: OneCoordinate = OneCoordinate()

    def slope(self, y: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        push = jnp.where(y[0] < 0.0, -self.stiffness * y[0], jnp.zeros_like(y[0]))
        return jnp.stack([y[1], push, jnp.ones_like(push)]), (y[:1], y[1:2])


def spring_end(x: jax.Array, times: Any = TIMES, max_steps: int = 300) -> jax.Array:
    """Where the mass is at the times, by its height, its speed upwards, and the stiffness."""
    plant: Any = Spring(x[2])
    y = jnp.concatenate([x[:2], jnp.zeros_like(x[:1])])
    times = jnp.asarray(times, x.dtype)
    return integrate_through_contact(plant, y, times, mbjax.ContactIntegrator(max_steps=max_steps))[:, 0]


@functools.cache
def both_modes() -> Callable:
    """Value at the end, and derivatives in forward and reverse mode."""
    return compiled(
        lambda x: (spring_end(x)[-1], jax.jacfwd(spring_end)(x)[-1], jax.grad(lambda x: spring_end(x)[-1])(x))
    )


def start(k: float, gap: float = GAP) -> np.ndarray:
    return np.array([gap, -V, k])


@pytest.mark.parametrize("gap", [GAP, 0.5007, 0.4711])
def test_a_bounce_has_the_derivatives_of_its_closed_form(gap: float) -> None:
    """It stays for half a period of its spring: x(T) = v (T - π (m/k)^½) - gap; forward mode = reverse mode."""
    for k in (1e2, 1e3, 1e4, 1e5, 1e6):
        stays = np.pi / np.sqrt(k)
        value, forward, reverse = both_modes()(start(k, gap))
        np.testing.assert_allclose(value, V * (T - stays) - gap, atol=1e-7)
        np.testing.assert_allclose(forward, [-1.0, stays - T, 0.5 * V * stays / k], rtol=1e-4)
        np.testing.assert_allclose(reverse, forward, rtol=1e-8)


def test_a_step_that_ends_where_surfaces_touch() -> None:
    """A time to save at is that of the touch or just after, and a start touches already; no step may pass over it."""
    forward = compiled(lambda x, times: jax.jacfwd(lambda x: spring_end(x, times)[-1])(x))
    for gap, late in ((GAP, 0.0), (GAP, 1e-11), (GAP, 9e-11), (0.0, 0.0)):
        stays = np.pi / np.sqrt(1e4)
        found = forward(start(1e4, gap), jnp.array([0.0, GAP / V + late, T]))
        np.testing.assert_allclose(found, [-1.0, stays - T, 0.5 * V * stays / 1e4], rtol=1e-4)


def test_times_may_repeat_and_must_not_fall() -> None:
    """At each of equal times the state and its derivative are the same, also at the start and where surfaces touch."""
    twice = jnp.repeat(jnp.array([0.0, 0.3, GAP / V, T]), 2)

    @compiled
    def found(x: jax.Array, times: jax.Array) -> tuple[jax.Array, jax.Array]:
        return spring_end(x, times), jax.jacrev(lambda x: spring_end(x, times))(x)

    stays = np.pi / np.sqrt(1e4)
    values, slopes = found(start(1e4), twice)
    np.testing.assert_allclose(values[::2], [GAP, GAP - 0.3 * V, 0.0, V * (T - stays) - GAP], atol=1e-7)
    np.testing.assert_allclose(values[1::2], values[::2], atol=1e-9)
    np.testing.assert_allclose(slopes[1::2], slopes[::2], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(slopes[-1], [-1.0, stays - T, 0.5 * V * stays / 1e4], rtol=1e-4)
    with pytest.raises(Exception, match="did not reach the end"):  # traced
        jax.block_until_ready(found(start(1e4), twice.at[2].set(0.7)))


@pytest.mark.whole_run("a step that ends where surfaces touch")
def test_a_cube_whose_lowest_corner_is_another_while_a_step_would_end() -> None:
    """The nearest point jumps, so that no step can end where it touches: the search must go on all the same."""
    plant = mbjax.MultibodyPlant()
    plant.set_gravity([0.0, 0.0, -2.0])
    material = ProximityProperties(1.0, 1.0, point_stiffness=2e3, hunt_crossley_dissipation=1.0)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), material)
    plant.add_rigid_body("cube", mbjax.SpatialInertia.solid_box_with_mass(0.1, 0.1, 0.1, 0.1))
    plant.register_collision_geometry("cube", Geometry("cube", Box((0.1, 0.1, 0.1))), material)
    model = plant.finalize()
    q = jnp.array([np.cos(np.pi / 6), np.sin(np.pi / 6), 0.0, 0.0, 0.0, 0.0, 0.2])

    def end(vz: jax.Array) -> jax.Array:
        state = mbjax.State(q, jnp.array([0.0, 0.0, 0.0, 0.0, -0.1, vz]), jnp.zeros(()))
        found = mbjax.simulate(model, state, save_at=jnp.array([0.0, 1.0]), solver=mbjax.ContactIntegrator())
        return found.q[-1, 5]

    value, derivative = compiled(lambda vz: jax.jvp(end, (vz,), (1.0,)))(-1.2914572864321607)
    np.testing.assert_allclose(value, -0.46396391, rtol=1e-6)  # with a tolerance of 1e-9
    np.testing.assert_allclose(derivative, 0.90475165, rtol=1e-3)


def test_the_derivative_by_a_time_to_save_at_is_the_speed_then() -> None:
    moves = jnp.array([0.0, 1.0, 2.0])
    _, speeds = compiled(lambda t: jax.jvp(lambda t: spring_end(jnp.asarray(start(1e4)), t), (t,), (moves,)))(TIMES)
    np.testing.assert_allclose(speeds, [0.0, -V, 2.0 * V], atol=1e-7)


def test_worlds_of_a_batch_take_their_own_steps() -> None:
    x = np.stack([start(1e3), start(1e5, 0.7), start(1e4, 2.0)])
    values, slopes = compiled(jax.vmap(jax.value_and_grad(lambda x: spring_end(x)[-1])))(x)
    stays = np.pi / np.sqrt(x[:2, 2])
    np.testing.assert_allclose(values, [*(V * (T - stays) - x[:2, 0]), 2.0 - V * T], atol=1e-7)
    np.testing.assert_allclose(slopes[:2, 0], -1.0, rtol=1e-4)
    np.testing.assert_allclose(slopes[:2, 1], stays - T, rtol=1e-4)
    np.testing.assert_allclose(slopes[2], [1.0, T, 0.0], rtol=1e-12, atol=1e-12)  # it does not arrive


@pytest.mark.parametrize("k", [1e3, 1e5])
def test_single_precision_has_derivatives_too(k: float) -> None:
    x = start(k).astype(np.float32)
    value, forward, reverse = both_modes()(x)
    stays = np.pi / np.sqrt(k)
    assert value.dtype == forward.dtype == reverse.dtype == jnp.float32
    np.testing.assert_allclose(value, V * (T - stays) - GAP, atol=1e-5)
    np.testing.assert_allclose(forward, [-1.0, stays - T, 0.5 * V * stays / k], rtol=1e-2)
    np.testing.assert_allclose(reverse, forward, rtol=1e-3)


def test_too_few_steps_are_an_error() -> None:
    with pytest.raises(Exception, match="ContactIntegrator took max_steps=20 steps"):
        jax.block_until_ready(compiled(lambda x: spring_end(x, max_steps=20))(start(1e4)))


@functools.cache
def ball() -> mbjax.MultibodyModel:
    """An elastic ball of 1 kg on a vertical slide, without gravity."""
    plant = mbjax.MultibodyPlant()
    plant.set_gravity([0.0, 0.0, 0.0])
    elastic = ProximityProperties(0.0, 0.0, point_stiffness=2e4, hunt_crossley_dissipation=0.0)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), elastic)
    plant.add_rigid_body("ball", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, R))
    plant.add_joint(mbjax.PrismaticJoint("up", "world", "ball", axis=[0, 0, 1]))
    plant.register_collision_geometry("ball", Geometry("round", Sphere(R)), elastic)
    return plant.finalize()


def test_a_model_moves_by_its_accelerations_and_tells_its_distances() -> None:
    """The stand-in's slope is that of the ball, whose distance changes by its rate."""
    plant, spring = Plant(ball(), None), Spring(jnp.asarray(1e4))
    slope = compiled(lambda y: jax.jvp(plant.slope, (y,), (jnp.zeros(3).at[0].set(1.0),)))
    for z in (0.2, 1e-3, -1e-3):
        of_spring, (distance, rate) = spring.slope(jnp.array([z, -V, 0.0]))
        (of_ball, (found, its_rate)), (_, (by_height, _)) = slope(jnp.array([R + z, -V, 0.0]))
        np.testing.assert_allclose(of_ball, of_spring, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found, distance, atol=1e-12)
        np.testing.assert_allclose(its_rate, rate, atol=1e-12)
        np.testing.assert_allclose(by_height, 1.0, atol=1e-12)


def end(x: jax.Array) -> jax.Array:
    """Where the ball is in the end, by its height, its speed upwards, and the stiffness of the contact."""
    model = ball()
    for name in ("ground", "round"):
        model = mbjax.set_proximity_properties(model, name, point_stiffness=2.0 * x[2])
    state = mbjax.State(x[:1], x[1:2], jnp.zeros(()))
    return mbjax.simulate(model, state, save_at=TIMES, solver=mbjax.ContactIntegrator(max_steps=300)).q[-1, 0]


@pytest.mark.whole_run("a spring in place of the model, and the model's slope")
def test_a_ball_has_the_derivatives_of_the_spring() -> None:
    ball()  # built outside of what is traced
    x = start(1e5) + np.array([R, 0.0, 0.0])
    value, forward, reverse = compiled(lambda x: (end(x), jax.jacfwd(end)(x), jax.grad(end)(x)))(x)
    of_spring, by_spring, _ = both_modes()(start(1e5))
    np.testing.assert_allclose(value, R + of_spring, atol=1e-7)
    np.testing.assert_allclose(forward, by_spring, rtol=1e-4)
    np.testing.assert_allclose(reverse, forward, rtol=1e-8)


def test_the_formula_is_of_order_four_and_damps_what_is_stiff() -> None:
    """Powers of time up to the fourth are exact, which a wrong digit of a coefficient is not."""

    def powers(y: jax.Array) -> tuple[jax.Array, None]:
        return jnp.stack([jnp.ones(()), y[0], y[0] ** 2, y[0] ** 3]), None

    def slope(y: jax.Array) -> tuple[jax.Array, None]:
        return jnp.stack([y[1] * y[0], jnp.sin(y[1]) - y[0]]), None

    def after(count: int) -> np.ndarray:
        y = jnp.array([0.5, 0.3])
        for _ in range(count):
            y = step(y, 1.0 / count)
        return np.asarray(y)

    exact = rosenbrock_step(powers, jnp.zeros(4), jnp.asarray(1.0), needs_end=False).y
    np.testing.assert_allclose(exact, [1.0, 1 / 2, 1 / 3, 1 / 4], rtol=1e-14)
    step = jax.jit(lambda y, h: rosenbrock_step(slope, y, h, needs_end=False).y)
    errors = [np.abs(after(n) - after(512)).max() for n in (32, 64)]
    np.testing.assert_allclose(errors[0] / errors[1], 2.0**4, rtol=0.05)
    stiff = jax.jit(lambda y: rosenbrock_step(lambda y: (-1e9 * y, None), y, jnp.asarray(1.0), needs_end=False).y)
    assert abs(float(stiff(jnp.ones(1))[0])) < 1e-6


def test_what_it_does_not_take() -> None:
    model, solver = ball(), mbjax.ContactIntegrator()
    state = mbjax.default_state(model)
    with pytest.raises(mbjax.ModelError, match=r"ContactIntegrator\(tolerance=1e-8, max_steps=10_000\)"):
        mbjax.simulate(model, state, save_at=TIMES, solver=solver, first_step=1e-3)
    for wrong in (
        {"max_steps": 0},
        *({"tolerance": x} for x in (0.0, np.inf, "1e-8", np.float32(-1.0), jnp.zeros(()))),
    ):
        with pytest.raises(mbjax.ModelError, match=next(iter(wrong))):
            mbjax.ContactIntegrator(**wrong)
