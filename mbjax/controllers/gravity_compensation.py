"""Efforts that hold an arm against its weight."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.array_types import Positions
from mbjax.dynamics import inverse_dynamics
from mbjax.execution import call_compiled
from mbjax.model import MultibodyModel
from mbjax.simulation import State

from .actuated_trees import checked, efforts_of


def gravity_compensation(model: MultibodyModel, q: Positions) -> Float[Array, " nu"]:
    """Efforts u (nu,), in N m or N, with B u = g(q): they bear the weight, and what springs pull.

    With them alone an arm floats: it stays where it is put (Siciliano et al. 2009, "Robotics", section 8.5.1). q is
    (nq,). Raises `ModelError` where a joint of the arm has no actuator.
    """
    state = checked("gravity_compensation", model, State(q, jnp.zeros(model.num_velocities, model.dtype)))
    return call_compiled(holding_efforts, model, state.q)


def holding_efforts(model: MultibodyModel, q: Positions) -> Float[Array, " nu"]:
    """Efforts at which the model is in equilibrium."""
    return efforts_of(model, holding_force(model, q))


def holding_force(model: MultibodyModel, q: Positions) -> Float[Array, " nv"]:
    """Generalized force g(q) that balances weight and springs, in N m or N."""
    zero = jnp.zeros(model.num_velocities, model.dtype)
    return inverse_dynamics(model, q, zero, zero, force_elements=True)
