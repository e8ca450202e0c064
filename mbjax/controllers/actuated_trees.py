"""Efforts of actuators from generalized forces, and the checks that actuators can produce them.

A model is a forest: an arm on its base, a box that lies beside it. A tree without actuators moves as it will and asks
nothing of a controller. In a tree with actuators every velocity needs one, since the others would take part in its
motion through the mass matrix and no effort could produce their generalized force.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mbjax.constraints import bound_constraints
from mbjax.errors import ModelError
from mbjax.execution import require_one_model
from mbjax.model import MultibodyModel, as_array, as_coordinates, locked_velocities, missing_actuators
from mbjax.number_rules import NOT_NEGATIVE, POSITIVE, is_known, shown
from mbjax.simulation import State, actuation_matrix_pseudoinverse
from mbjax.simulation.state import as_state


def efforts_of(model: MultibodyModel, tau: Float[Array, " nv"]) -> Float[Array, " nu"]:
    """Efforts u = B⁺ tau whose generalized forces B u are `tau`, none at locked joints, in N m or N.

    Actuators of one joint share its force evenly, and that of a joint that mimics gives its multiple. Entries of
    velocities that no actuator drives are left out. Efforts are not limited: steps limit them.
    """
    return actuation_matrix_pseudoinverse(model) @ jnp.where(locked_velocities(model), 0.0, tau)


def checked(call: str, model: MultibodyModel, state: Any) -> State:
    """The state with checked sizes, of a model whose actuators can produce any motion of their trees."""
    require_one_model(model, call)
    require_drives(call, model)
    return as_state(model, state)


def require_drives(call: str, model: MultibodyModel) -> None:
    """Raises `ModelError` unless every velocity of each tree with actuators is driven, and nothing else holds it."""
    if not model.num_actuators:
        raise ModelError(f"{call}: there is nothing to drive.{missing_actuators(model)}")
    if model.constraints:
        names = ", ".join(f"'{name}'" for name in bound_constraints(model).names)
        raise ModelError(
            f"{call}: the model has the constraints {names}, whose forces this controller does not know. Take "
            "controllers.lqr, controllers.mppi_step or Inputs(desired_state=...)."
        )
    idle = driven_trees(model) & ~driven_velocities(model)
    locked = model.parameters.velocity_locked
    if is_known(locked):
        idle &= ~(np.asarray(locked) > 0.5)
    if idle.any():
        names = [name for name, is_idle in zip(model.velocity_names(), idle, strict=True) if is_idle]
        listed = ", ".join(f"'{name}'" for name in names[:6]) + (", …" if len(names) > 6 else "")
        raise ModelError(
            f"{call}: no actuator drives the velocities {listed}, which move with those that are driven, so no efforts "
            "produce the motion asked for. Take controllers.whole_body with contacts, controllers.lqr or "
            "controllers.mppi_step, which are for such models."
        )


def driven_velocities(model: MultibodyModel) -> Bool[np.ndarray, " nv"]:
    """Which velocities an actuator drives."""
    driven = np.zeros(model.num_velocities, bool)
    driven[list(model.layout.velocities_of_actuators)] = True
    return driven


def driven_trees(model: MultibodyModel) -> Bool[np.ndarray, " nv"]:
    """Which velocities belong to a tree that has an actuator."""
    roots = np.zeros(model.num_velocities, int)
    for joint in model.layout.joints:
        roots[joint.v] = model.topology.mobod_roots[joint.mobod]
    return np.isin(roots, roots[driven_velocities(model)])


def reference(what: str, model: MultibodyModel, value: Any) -> Float[Array, " nv"]:
    """A reference with a number for each velocity; zeros if None."""
    if value is None:
        return jnp.zeros(model.num_velocities, model.dtype)
    return finite_coordinates(what, value, model.num_velocities, model.dtype)


def finite_coordinates(what: str, value: Any, size: int, dtype: Any) -> Float[Array, " n"]:
    """Coordinates of a reference; raises `ModelError` where known ones are not finite."""
    array = as_coordinates(what, value, size, dtype)
    if is_known(array) and not np.all(np.isfinite(np.asarray(array))):
        raise ModelError(f"{what} must be finite, got {shown(value)}.")
    return array


def gain_matrix(what: str, gain: Any, size: int, dtype: Any, is_positive: bool = False) -> Float[Array, "n n"]:
    """A gain as a matrix: of one number, of one for each coordinate, or of a matrix that couples them.

    Raises `ModelError` where a known one is not finite or pushes away: numbers must be at least 0, and a matrix
    positive semidefinite, xᵀ G x >= 0; above 0 with `is_positive`.
    """
    array = as_array(what, gain, size, dtype)
    if array.shape not in ((), (size,), (size, size)):
        raise ModelError(f"{what} has shape {array.shape}; give a number, ({size},) or ({size}, {size}).")
    if is_known(array):
        require_gain(what, np.asarray(array), gain, is_positive)
    return array if array.ndim == 2 else jnp.diag(jnp.broadcast_to(array, (size,)))


def cost_matrix(what: str, cost: Any, size: int, dtype: Any, is_positive: bool = False) -> Float[Array, "n n"]:
    """A matrix of a quadratic cost, given as a gain is: of one that is not symmetric, the part that costs."""
    array = gain_matrix(what, cost, size, dtype, is_positive)
    return 0.5 * (array + array.T)


def require_gain(what: str, array: np.ndarray, gain: Any, is_positive: bool) -> None:
    """Raises `ModelError` unless a gain is finite and positive semidefinite, or definite."""
    rule = POSITIVE if is_positive else NOT_NEGATIVE
    if array.ndim < 2:
        if not np.all(rule.holds(array)):
            raise ModelError(f"{what} must be {rule.words}, got {shown(gain)}.")
        return
    if not np.all(np.isfinite(array)):
        raise ModelError(f"{what} must be finite, got {shown(gain)}.")
    numbers = array.astype(float)
    least = np.linalg.eigvalsh(0.5 * (numbers + numbers.T)).min(initial=0.0 if not is_positive else np.inf)
    rounding = len(array) * float(jnp.finfo(array.dtype).eps) * np.abs(numbers).max(initial=0.0)
    if least < -rounding or (is_positive and least <= 0.0):
        kind = "positive definite" if is_positive else "positive semidefinite"
        raise ModelError(f"{what} must be {kind}; the least eigenvalue of its symmetric part is {least:.3g}.")
