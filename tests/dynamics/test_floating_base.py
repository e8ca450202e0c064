"""The velocities of a floating base solved for together, beside one after the other: see `articulated_body`."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.dynamics import factor_articulated_bodies, solve_with_factor
from mbjax.dynamics.records.tree_motion import calc_inertia_in_world
from mbjax.kinematics import calc_position_kinematics
from mbjax.topology import free_base
from tests.models import random_tree

KINDS = {
    "robot": ("quaternion_floating", "revolute", "universal", "prismatic", "revolute", "ball_rpy", "revolute"),
    "two bases and an arm": ("revolute", "quaternion_floating", "revolute", "rpy_floating", "planar", "revolute"),
    "free bodies alone": ("quaternion_floating",),
}


OTHERS = pytest.mark.whole_run("a floating quadruped beside Drake's and Pinocchio's, in the quick run")


@pytest.mark.whole_run("a floating quadruped beside Drake's and Pinocchio's, in the quick run")
@pytest.mark.parametrize("kinds", [pytest.param(x, marks=[OTHERS] * (x != "two bases and an arm")) for x in KINDS])
def test_the_base_as_a_matrix(kinds: str) -> None:
    """Also where some of its velocities are locked, and of another right-hand side with the factor."""
    model = random_tree(4, KINDS[kinds]).model
    topology, n = model.topology, model.num_velocities
    base = free_base(topology)
    assert len(base) == 6
    rng, worlds = np.random.default_rng(0), 3
    q = mbjax.default_state(model).q + 0.3 * rng.normal(size=(worlds, model.num_positions))
    diagonal, b, c = (jnp.asarray(x) for x in rng.uniform(0.1, 1.0, (3, worlds, n)))
    locked = np.zeros((worlds, n), bool)
    locked[1, [base[0], base[4]]] = True
    locked[2, base] = True

    @jax.jit
    @jax.vmap
    def solve(q: jax.Array, diagonal: jax.Array, locked: jax.Array, b: jax.Array, c: jax.Array) -> Any:
        position = calc_position_kinematics(model, q)
        inertia_W = calc_inertia_in_world(model, position)
        b, c = jnp.where(locked, 0.0, b), jnp.where(locked, 0.0, c)
        factors = (
            factor_articulated_bodies(topology, position, inertia_W, diagonal, locked, b, None, together)
            for together in (False, True)
        )
        return [(x, solve_with_factor(topology, factor, c)) for factor, x in factors]

    apart, together = solve(jnp.asarray(q), diagonal, jnp.asarray(locked), b, c)
    for expected, x in zip(apart, together, strict=True):
        assert np.all(np.asarray(x)[locked] == 0.0)
        np.testing.assert_allclose(x, expected, rtol=0.0, atol=1e-12 * np.abs(expected).max())
