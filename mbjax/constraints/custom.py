"""Custom constraints: the user's equations, with Jacobian and rates by automatic differentiation, world by world."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.execution import each_world
from mbjax.kinematics import velocity_to_qdot, without_placement
from mbjax.model import CustomConstraint, MultibodyModel

from .joint_rows import JointRows


def custom_rows(
    custom: CustomConstraint, model: MultibodyModel, q: Float[Array, " nq"], v: Float[Array, " nv"] | None
) -> JointRows:
    """Rows of a custom constraint."""
    rows = position_rows_of_one_world if custom.level == "position" else velocity_rows_of_one_world
    return each_world(rows, model.num_world_axes, custom, model, q, v)


def position_rows_of_one_world(custom: CustomConstraint, model: MultibodyModel, q: Array, v: Array | None) -> JointRows:
    """Rows of a custom function of positions, which is the error."""
    return rows_of_residual(lambda q: evaluate(custom, model, q), model, q, v)


def velocity_rows_of_one_world(custom: CustomConstraint, model: MultibodyModel, q: Array, v: Array | None) -> JointRows:
    """Rows of a custom function of velocities, which is the rate."""

    def rate(q: Array, v: Array) -> Array:
        return evaluate(custom, model, q, v)

    zero = jnp.zeros(custom.num_rows, model.dtype)
    G = jax.jacfwd(rate, 1)(q, jnp.zeros(model.num_velocities, model.dtype) if v is None else v)
    if v is None:
        return JointRows(zero, G, None, None)
    value, bias = jax.jvp(lambda q: rate(q, v), (q,), (velocity_to_qdot(model, q, v),))
    return JointRows(zero, G, value, bias)


def rows_of_residual(
    residual: Callable[[Array], Array], model: MultibodyModel, q: Float[Array, " nq"], v: Float[Array, " nv"] | None
) -> JointRows:
    """Rows of a residual of q: G v = d(residual)/dq N(q) v, and its rate along qdot = N(q) v."""

    def rate(q: Array, v: Array) -> tuple[Array, Array]:
        return jax.jvp(residual, (q,), (velocity_to_qdot(model, q, v),))

    units = jnp.eye(model.num_velocities, dtype=model.dtype)
    error, columns = jax.vmap(lambda unit: rate(q, unit), out_axes=(None, 1))(units)
    if v is None:
        return JointRows(error, columns, None, None)
    value, bias = jax.jvp(lambda q: rate(q, v)[1], (q,), (velocity_to_qdot(model, q, v),))
    return JointRows(error, columns, value, bias)


def evaluate(custom: CustomConstraint, model: MultibodyModel, *coordinates: Array) -> Float[Array, " k"]:
    """Calls the user's function; the result has the model's dtype."""
    parameters = () if custom.parameters is None else (custom.parameters,)
    return jnp.asarray(custom.function(without_placement(model), *coordinates, *parameters), model.dtype)
