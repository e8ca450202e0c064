"""Deformable bodies in saved models: equal bit by bit, and in a step; functions of forces are refused."""

import io

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.deformable_cube import SIDE, cube_plant
from tests.saving.test_save import assert_same_model, saved_and_loaded


class Wind(eqx.Module):
    """A constant force per volume."""

    strength: jax.Array

    def __call__(self, p_WQ: jax.Array) -> jax.Array:
        return self.strength * jnp.array([0.0, 1.0, 0.0])


@pytest.mark.whole_run("the same model without functions of forces, below; programs of rigid bodies in test_save.py")
def test_a_saved_model_is_the_same_and_steps_the_same() -> None:
    plant = cube_plant()
    shape, X_BG = mbjax.Box((0.4 * SIDE, 2 * SIDE, 2 * SIDE)), np.array([SIDE, 0.5 * SIDE, 0.5 * SIDE])
    plant.add_fixed_constraint("foam", "ball", shape=shape, X_BG=X_BG)
    model = plant.finalize()
    again = saved_and_loaded(model)
    assert_same_model(model, again)
    assert_same_model(mbjax.astype(model, jnp.float32), saved_and_loaded(model, dtype=jnp.float32))
    traces = []

    @jax.jit
    def after(model: mbjax.MultibodyModel) -> mbjax.State:
        traces.append(1)
        return mbjax.step(model, mbjax.default_state(model))[0]

    one, other = after(model), after(again)
    assert len(traces) == 1, "the program of one runs the other"
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)
    assert np.abs(one.nodes.velocity).max() > 0.0


@pytest.mark.parametrize("function", [lambda p_WQ: jnp.zeros(3), Wind(jnp.asarray(2.0))], ids=["plain", "module"])
def test_functions_of_forces_are_refused(function) -> None:
    plant = cube_plant()
    plant.add_force_density(function)
    model = plant.finalize()
    with pytest.raises(mbjax.ModelError, match=r"force_densities\[0\] is a function, given to plant.add_force_density"):
        mbjax.save(model, io.BytesIO())
    without = eqx.tree_at(lambda m: m.deformables.force_densities, model, ())
    assert_same_model(without, saved_and_loaded(without))
