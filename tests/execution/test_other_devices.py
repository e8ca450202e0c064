"""Programs for devices that are not here, TPUs and AMD's GPUs: every main function lowers for them, without kernels."""

import functools
import re
import warnings
from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest

import mbjax

WORLDS, STEPS = 3, 4


@functools.cache
def walker() -> mbjax.MultibodyModel:
    """A quadruped whose feet touch the ground."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbjax.ModelWarning)
        return mbjax.load("quadruped", time_step=0.004, ground=0.8, contact_pairs=[("*foot*", "ground")])


def after_steps(q: jax.Array, v: jax.Array, u: jax.Array) -> jax.Array:
    efforts = jnp.broadcast_to(u[-walker().num_actuators :], (STEPS, walker().num_actuators))
    return mbjax.rollout(walker(), mbjax.State(q, v), efforts).final_state.v


def summed(function: Callable) -> Callable:
    return lambda *state: jnp.sum(function(*state))


FUNCTIONS: dict[str, Callable] = {
    "forward dynamics": lambda q, v, tau: mbjax.forward_dynamics(walker(), q, v, tau),
    "its gradient": jax.grad(summed(lambda q, v, tau: mbjax.forward_dynamics(walker(), q, v, tau)), (0, 1, 2)),
    "inverse dynamics": lambda q, v, vdot: mbjax.inverse_dynamics(walker(), q, v, vdot),
    "mass matrix": lambda q, v, tau: mbjax.mass_matrix(walker(), q),
    "poses": lambda q, v, tau: mbjax.body_poses_in_world(walker(), q),
    "rollout through contact": after_steps,
    "its gradient by efforts": jax.grad(summed(after_steps), 2),
}


def calls_outside(function: Callable, args: tuple) -> set[str]:
    """What a program for these devices calls that is no operation of StableHLO."""
    exported = jax.export.export(jax.jit(function), platforms=["tpu", "rocm"])(*args)
    return set(re.findall(r"custom_call @([\w.]+)", exported.mlir_module()))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_main_function_lowers_for_them(name: str) -> None:
    state = mbjax.default_state(walker())
    one = state.q, state.v, jnp.ones(walker().num_velocities)
    assert not calls_outside(jax.vmap(FUNCTIONS[name]), tuple(jnp.tile(x, (WORLDS, 1)) for x in one))
    if name in ("forward dynamics", "rollout through contact"):
        assert not calls_outside(FUNCTIONS[name], one)
