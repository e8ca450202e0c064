"""Small problems whose dynamics are written here: they compile in a second, and have no model."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import mbjax
from mbjax import trajectory_optimization as to
from tests.gradients.checks import central_differences

STEPS = 40
DT = 0.05


class Pendulum(eqx.Module):
    """A pendulum with damping by semi-implicit Euler steps; the state is (angle, speed)."""

    length: jax.Array

    def __call__(self, model, x, u):
        angle, speed = x
        speed = speed + DT * (u[0] - 9.81 / self.length * jnp.sin(angle) - 0.1 * speed)
        return jnp.stack([angle + DT * speed, speed])


class Linear(eqx.Module):
    """x[k+1] = A x + B u."""

    A: jax.Array
    B: jax.Array

    def __call__(self, model, x, u):
        return self.A @ x + self.B @ u


class EffortCost(eqx.Module):
    weight: jax.Array

    def __call__(self, model, x, u):
        return jnp.sqrt(self.weight) * u


class Goal(eqx.Module):
    angle: jax.Array

    def __call__(self, model, x):
        return jnp.stack([10.0 * (x[0] - self.angle), 3.0 * x[1]])


def speed(model, x):
    return x[1]


def angle(model, x):
    return x[0]


def pendulum(*, limited: bool = False, constrained: bool = False, goal: float = 1.2) -> to.Problem:
    """The pendulum's problem: to a goal at rest, with limits that act and constraints that act if asked for."""
    constraints = ()
    if constrained:
        constraints = to.at_most(speed, 1.5, name="speed"), to.equality(angle, 1.0, at="end", name="goal")
    bounds = (jnp.array([-1.0]), jnp.array([9.0])) if limited else (jnp.array([-np.inf]), jnp.array([np.inf]))
    return to.Problem(
        None,
        jnp.zeros(2),
        STEPS,
        EffortCost(jnp.array(0.05)),
        Goal(jnp.array(goal)),
        bounds,
        constraints,
        dynamics=Pendulum(jnp.array(1.0)),
    )


def linear_quadratic(seed: int = 0, steps: int = 12, n: int = 4, m: int = 2) -> to.Problem:
    """A random linear problem with quadratic costs."""
    rng = np.random.default_rng(seed)
    A, B = jnp.asarray(0.5 * rng.normal(size=(n, n))), jnp.asarray(rng.normal(size=(n, m)))
    Q, P, r = (jnp.asarray(rng.normal(size=s)) for s in ((n, n), (n, n), (n,)))
    return to.Problem(
        None,
        jnp.asarray(rng.normal(size=n)),
        steps,
        lambda model, x, u: jnp.concatenate([Q @ x - r, u]),
        lambda model, x: P @ x + r,
        (jnp.full(m, -np.inf), jnp.full(m, np.inf)),
        dynamics=Linear(A, B),
    )


def differences_of_steps(
    dynamics: Any, model: mbjax.MultibodyModel, states: mbjax.State, efforts: jax.Array
) -> to.Linearization:
    """A and B of steps by differences along the tangents of states: the program is that of two steps."""
    n = 2 * model.num_velocities

    def columns(given: tuple[mbjax.State, jax.Array]) -> jax.Array:
        state, effort = given
        after = dynamics(model, state, effort)

        def moved(z: jax.Array) -> jax.Array:
            return to.difference_states(
                model, after, dynamics(model, to.move_state(model, state, z[:n]), effort + z[n:])
            )

        return central_differences(moved, jnp.zeros(n + effort.size), 1e-4)

    both = jax.jit(lambda *x: jax.lax.map(columns, x))(states, efforts)
    return to.Linearization(both[..., :n], both[..., n:])


def goal_at(stage: jax.Array) -> to.Effort:
    return to.Effort(reference=stage)
