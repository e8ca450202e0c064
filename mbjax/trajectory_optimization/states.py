"""States as points of a manifold: moves along tangents, and differences between states.

A state is a `State`, an array, or any pytree of them. The tangent dx of a `State` is (dq, dv), with dq the argument of
`integrate_configuration`, so that quaternions stay of unit length; an array's tangent is its change. Time is carried
along: it has no tangent.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.kinematics import difference_configuration, integrate_configuration
from mbjax.model import MultibodyModel
from mbjax.simulation import State


def parts_of(x: Any) -> list:
    """The `State`s and arrays that a state consists of."""
    return jax.tree.leaves(x, is_leaf=lambda part: isinstance(part, State))


def tangent_size(model: MultibodyModel | None, x: Any) -> int:
    """Number of components of a tangent dx at one state x."""
    return sum(size_of_part(model, part) for part in parts_of(x))


def size_of_part(model: MultibodyModel | None, part: Any) -> int:
    """Number of tangent components of one `State` or array."""
    if isinstance(part, State):
        assert model is not None
        return 2 * model.num_velocities
    return math.prod(jnp.shape(part))


def move_state(model: MultibodyModel | None, x: Any, dx: Float[Array, " ndx"]) -> Any:
    """The state x moved along the tangent dx; `difference_states` is the inverse."""
    parts, structure = jax.tree.flatten(x, is_leaf=lambda part: isinstance(part, State))
    moved, start = [], 0
    for part in parts:
        size = size_of_part(model, part)
        dpart = dx[start : start + size]
        start += size
        if isinstance(part, State):
            assert model is not None
            dq, dv = jnp.split(dpart, 2)
            moved.append(State(integrate_configuration(model, part.q, dq), part.v + dv, part.time))
        else:
            moved.append(part + dpart.reshape(jnp.shape(part)))
    return jax.tree.unflatten(structure, moved)


def difference_states(model: MultibodyModel | None, x0: Any, x1: Any) -> Float[Array, " ndx"]:
    """Tangent dx that leads from x0 to x1: move_state(model, x0, dx) = x1, apart from times."""
    differences = []
    for a, b in zip(parts_of(x0), parts_of(x1), strict=True):
        if isinstance(a, State):
            assert model is not None
            differences += [difference_configuration(model, a.q, b.q), b.v - a.v]
        else:
            differences.append(jnp.ravel(b - a))
    return jnp.concatenate(differences) if differences else jnp.zeros(0)


@eqx.filter_custom_jvp
def moved_from(model: MultibodyModel | None, x: Any, dx: Float[Array, " ndx"]) -> Any:
    """`move_state` at dx = 0, where derivatives are taken: x itself, so that programs see what functions share."""
    return x


@moved_from.def_jvp
def _moved_from_jvp(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    model, x, dx = primals
    dmodel, of_x, of_dx = tangents
    change = eqx.filter_jvp(move_state, (model, x, dx), (dmodel, of_x, of_dx))[1]
    moved = moved_from(model, x, dx)  # not x, which second derivatives would take for a constant
    return moved, jax.tree.map(lambda y, t: jnp.zeros_like(y) if t is None else t, x, change)
