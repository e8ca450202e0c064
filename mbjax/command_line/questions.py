"""The functions that `mbjax bench` measures: of a model and one world, or of a model and all worlds."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import mbjax
from mbjax.model import MultibodyModel
from mbjax.simulation import Inputs, State


class World(NamedTuple):
    """A state, an acceleration, generalized forces and actuation; with several worlds, their axis comes first."""

    q: Float[Array, "*worlds nq"]
    v: Float[Array, "*worlds nv"]
    vdot: Float[Array, "*worlds nv"]
    tau: Float[Array, "*worlds nv"]
    u: Float[Array, "*worlds nu"]


def random_worlds(model: MultibodyModel, num_worlds: int | None, seed: int = 0) -> World:
    """Draws random states within limits and normal forces for each world; None gives one world without an axis."""

    def draw(key: Array) -> World:
        of_state, of_vdot, of_tau, of_u = jax.random.split(key, 4)
        state = mbjax.random_state(model, of_state)
        vdot = jax.random.normal(of_vdot, state.v.shape, model.dtype)
        tau = jax.random.normal(of_tau, state.v.shape, model.dtype)
        return World(state.q, state.v, vdot, tau, jax.random.normal(of_u, (model.num_actuators,), model.dtype))

    key = jax.random.key(seed)
    return jax.jit(draw)(key) if num_worlds is None else jax.jit(jax.vmap(draw))(jax.random.split(key, num_worlds))


def ask_forward_dynamics(model: MultibodyModel, world: World) -> Float[Array, " nv"]:
    """Acceleration vdot under tau, gravity, and the model's own force elements and damping."""
    state = State(world.q, world.v, jnp.zeros((), model.dtype))
    return mbjax.time_derivatives(model, state, Inputs(applied_generalized_force=world.tau))[1]


def ask_inverse_dynamics(model: MultibodyModel, world: World) -> Float[Array, " nv"]:
    """Generalized forces tau that produce vdot under gravity, and the model's own force elements and damping."""
    return mbjax.inverse_dynamics(model, world.q, world.v, world.vdot, force_elements=True)


def ask_mass_matrix(model: MultibodyModel, world: World) -> Float[Array, "nv nv"]:
    return mbjax.mass_matrix(model, world.q)


def body_poses(model: MultibodyModel, world: World) -> Any:
    return mbjax.body_poses_in_world(model, world.q)


def ask_step(model: MultibodyModel, world: World) -> State:
    """The state after one discrete step under actuation u; no output ports are computed."""
    return mbjax.step(model, State(world.q, world.v, jnp.zeros((), model.dtype)), world.u)[0]


def gradient(model: MultibodyModel, world: World) -> tuple[Array, Array, Array]:
    """Pullback of a cotangent of ones through forward dynamics: cotangents of q, v and tau."""

    def of(q: Array, v: Array, tau: Array) -> Array:
        return ask_forward_dynamics(model, world._replace(q=q, v=v, tau=tau))

    vdot, pull = jax.vjp(of, world.q, world.v, world.tau)
    return pull(jnp.ones_like(vdot))


def jacobian(model: MultibodyModel, world: World) -> tuple[Array, Array]:
    """Full Jacobian of forward dynamics with respect to (q, v), by forward mode."""
    return jax.jacfwd(lambda q, v: ask_forward_dynamics(model, world._replace(q=q, v=v)), (0, 1))(world.q, world.v)


def model_gradient(model: MultibodyModel, worlds: World) -> MultibodyModel:
    """Gradient of the sum of vdot over all entries and worlds with respect to every leaf of the shared model."""

    def total(model: MultibodyModel) -> Float[Array, ""]:
        if worlds.q.ndim == 1:
            return jnp.sum(ask_forward_dynamics(model, worlds))
        return jnp.sum(jax.vmap(ask_forward_dynamics, (None, 0))(model, worlds))

    return jax.grad(total)(model)


@dataclasses.dataclass(frozen=True)
class Question:
    """A function to measure: `function(model, world)`, or of the model and all worlds if `is_of_model`."""

    function: Callable[[MultibodyModel, World], Any]
    about: str
    is_of_model: bool = False

    def program(self, model: MultibodyModel, worlds: World) -> tuple[Callable, tuple]:
        """The function to compile and its arguments; the model is closed over unless `is_of_model`."""
        if self.is_of_model:
            return self.function, (model, worlds)
        one = lambda world: self.function(model, world)  # noqa: E731
        return (one if worlds.q.ndim == 1 else jax.vmap(one)), (worlds,)


QUESTIONS = {
    "forward_dynamics": Question(ask_forward_dynamics, "vdot from q, v, tau"),
    "inverse_dynamics": Question(ask_inverse_dynamics, "tau from q, v, vdot"),
    "mass_matrix": Question(ask_mass_matrix, "M from q"),
    "body_poses": Question(body_poses, "every X_WB from q"),
    "step": Question(ask_step, "the next state from q, v, u"),
    "gradient": Question(gradient, "vjp of forward dynamics by q, v, tau"),
    "jacobian": Question(jacobian, "forward dynamics by q and v, whole"),
    "model_gradient": Question(model_gradient, "the sum of vdot by every leaf of the model", is_of_model=True),
}
DEFAULT_QUESTIONS = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "body_poses", "step", "gradient")
