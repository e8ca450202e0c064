"""The gradient of a weighted diagonal of M by recursion, as steps with rows alone have it, against sums over trees."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

import mbjax
from mbjax.dynamics import calc_tree_motion
from mbjax.dynamics.composite_body.mass_matrix_diagonal import calc_mass_matrix_diagonal
from mbjax.dynamics.composite_body.recursion import calc_mass_matrix_from_state
from mbjax.dynamics.derivatives.cotangent_inward import has_torque_cotangent
from mbjax.kinematics import calc_position_kinematics, for_worlds_of
from tests.models import random_tree, relative_error


def weighted(model: mbjax.MultibodyModel, q: Array, weight: Array, *, known: bool) -> Array:
    """weight · diag(M)."""
    v = jnp.zeros_like(weight)
    motion = calc_tree_motion(model, calc_position_kinematics(model, q), q, v)
    M = jax.lax.stop_gradient(calc_mass_matrix_from_state(model, q, v)) if known else None
    return jnp.sum(weight * calc_mass_matrix_diagonal(motion, v, M), axis=0)


def by_sums(model: mbjax.MultibodyModel, q: Array, weight: Array) -> Array:
    return weighted(model, q, weight, known=False)


def by_recursion(model: mbjax.MultibodyModel, q: Array, weight: Array) -> Array:
    return weighted(model, q, weight, known=True)


@pytest.mark.whole_run("derivatives of steps with friction in contacts beside differences")
@pytest.mark.parametrize("worlds", [None, 3])
def test_recursion_is_the_sums(worlds: int | None) -> None:
    """By q and by every leaf of the model, joints of several directions and such that slide among them."""
    model, rng = random_tree(3, ("revolute", "screw", "planar", "prismatic")).model, np.random.default_rng(7)
    assert has_torque_cotangent(model)
    states = [mbjax.random_state_within_limits(model, jax.random.key(k)) for k in range(worlds or 1)]
    q = jnp.stack([state.q for state in states])
    weight = jnp.asarray(rng.normal(size=(q.shape[0], model.num_velocities)))

    def total(function: Callable, model: mbjax.MultibodyModel, q: Array) -> Array:
        if worlds is None:
            return for_worlds_of(function, model, q[0], weight[0])
        return jnp.sum(jax.vmap(lambda q, weight: for_worlds_of(function, model, q, weight))(q, weight))

    def both(model: mbjax.MultibodyModel, q: Array) -> tuple:
        found = (jax.value_and_grad(lambda *x, f=f: total(f, *x), (0, 1))(model, q) for f in (by_recursion, by_sums))
        return tuple(found)

    got, expected = (dict(jax.tree.leaves_with_path(x)) for x in jax.jit(both)(model, q))
    for path, known in expected.items():
        assert relative_error(got[path], known) < 1e-11, path
