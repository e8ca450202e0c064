"""`ContactSolver`: a bounce known in closed form, both modes beside differences, many worlds, and its errors."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.geometry import Geometry, HalfSpace, ProximityProperties, Sphere
from mbjax.simulation.rosenbrock import rosenbrock_step
from tests.gradients.checks import compiled

R, T, GAP, V = 0.1, 1.0, 0.5, 1.0
TIMES = jnp.array([0.0, 0.3, T])


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


def end(x: jax.Array) -> jax.Array:
    """Where the ball is in the end, by its height, its speed upwards, and the stiffness of the contact."""
    model = ball()
    for name in ("ground", "round"):
        model = mbjax.set_proximity_properties(model, name, point_stiffness=2.0 * x[2])
    state = mbjax.State(x[:1], x[1:2], jnp.zeros(()))
    return mbjax.simulate(model, state, save_at=TIMES, solver=mbjax.ContactSolver(max_steps=300)).q[-1, 0]


@functools.cache
def both_modes() -> Callable:
    """Value, and derivatives in forward and reverse mode."""
    ball()  # built outside of what is traced
    return compiled(lambda x: (end(x), jax.jacfwd(end)(x), jax.grad(end)(x)))


def start(k: float, gap: float = GAP) -> np.ndarray:
    return np.array([R + gap, -V, k])


@pytest.mark.parametrize("k", [1e3, 1e4, 1e5, 1e6])
def test_a_bounce_has_the_derivatives_of_its_closed_form(k: float) -> None:
    """It stays for half a period of its spring: x(T) = R + v (T - π (m/k)^½) - gap; forward mode = reverse mode."""
    stays = np.pi / np.sqrt(k)
    value, forward, reverse = both_modes()(start(k))
    np.testing.assert_allclose(value, R + V * (T - stays) - GAP, atol=1e-6)
    np.testing.assert_allclose(forward, [-1.0, stays - T, 0.5 * V * stays / k], rtol=0.05)
    np.testing.assert_allclose(reverse, forward, rtol=1e-8)


def test_derivatives_are_those_of_differences() -> None:
    x = start(1e3)
    _, forward, _ = both_modes()(x)
    for i, h in enumerate((1e-3, 1e-3, 1.0)):
        d = h * np.eye(3)[i]
        differences = (both_modes()(x + d)[0] - both_modes()(x - d)[0]) / (2.0 * h)
        np.testing.assert_allclose(forward[i], differences, rtol=5e-3)


@pytest.mark.whole_run("one world at a time")
def test_worlds_of_a_batch_take_their_own_steps() -> None:
    ball()
    x = np.stack([start(1e3), start(1e5, 0.7), start(1e4, 2.0)])
    values, slopes = compiled(jax.vmap(jax.value_and_grad(end)))(x)
    stays = np.pi / np.sqrt(x[:2, 2])
    np.testing.assert_allclose(values, [*(R + V * (T - stays) - (x[:2, 0] - R)), R + 2.0 - V * T], atol=1e-6)
    np.testing.assert_allclose(slopes[:2, 0], -1.0, rtol=0.05)
    np.testing.assert_allclose(slopes[:2, 1], stays - T, rtol=0.05)
    np.testing.assert_allclose(slopes[2], [1.0, T, 0.0], rtol=1e-12, atol=1e-12)  # it does not arrive


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
    model, solver = ball(), mbjax.ContactSolver()
    state = mbjax.default_state(model)
    with pytest.raises(mbjax.ModelError, match=r"ContactSolver\(tolerance=1e-8, max_steps=10_000\)"):
        mbjax.simulate(model, state, save_at=TIMES, solver=solver, first_step=1e-3)
    for wrong in ({"tolerance": 0.0}, {"max_steps": 0}):
        with pytest.raises(mbjax.ModelError, match=next(iter(wrong))):
            mbjax.ContactSolver(**wrong)
