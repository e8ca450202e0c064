"""Few worlds on a CPU, one by one in one kernel: what they give in a chunk, and when they are few.

Other tests have few worlds too, but run them in chunks as many are (tests/conftest.py).
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.core import ShapedArray

import mbjax
from mbjax.execution import for_worlds
from mbjax.execution.worlds import chunks
from mbjax.execution.worlds.chunks import are_few
from tests.conftest import FEW_NUMBERS
from tests.gradients.checks import WHOLE_RUN
from tests.models import relative_error

WORLDS = 5
ROBOT = mbjax.load("acrobot", time_step=0.01)
KERNEL = "xla_cpu_small_call"


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "FEW_NUMBERS", FEW_NUMBERS)


def states(model: mbjax.MultibodyModel) -> mbjax.State:
    return jax.vmap(lambda key: mbjax.random_state(model, key))(jax.random.split(jax.random.key(0), WORLDS))


def both_ways(monkeypatch: pytest.MonkeyPatch, function: Callable, *args: Any) -> list[tuple[Any, str]]:
    """Results and lowered programs, one by one and in a chunk."""
    found = []
    for numbers in (FEW_NUMBERS, 0):
        monkeypatch.setattr(chunks, "FEW_NUMBERS", numbers)
        program = jax.jit(lambda *x: function(*x)).lower(*args)  # a new function, so that JAX lowers it anew
        found.append((program.compile()(*args), program.as_text()))
    return found


def largest_difference(a: Any, b: Any) -> float:
    return max(relative_error(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def test_dynamics_and_derivatives_by_what_worlds_share_and_own(monkeypatch) -> None:
    """Gradients by a model that all share are sums over the worlds.

    Whole run: Jacobians, with several tangents a world, too.
    """
    start = states(ROBOT)

    def everything(model, q, v):
        def forward(model, q, v):
            return mbjax.forward_dynamics(model, q, v, 0.3 * v, force_elements=True)

        def total(model, q, v):
            return jnp.sum(jnp.sin(jax.vmap(forward, (None, 0, 0))(model, q, v)))

        model, numbers = jax.tree.flatten(model)[1], jax.tree.leaves(model)
        floats = [i for i, x in enumerate(numbers) if jnp.issubdtype(jnp.asarray(x).dtype, jnp.floating)]

        def of_floats(of_floats, q, v):
            of = dict(zip(floats, of_floats, strict=True))
            return total(jax.tree.unflatten(model, [of.get(i, x) for i, x in enumerate(numbers)]), q, v)

        gradient = jax.value_and_grad(of_floats, (0, 1, 2))([numbers[i] for i in floats], q, v)
        return gradient, jax.vmap(jax.jacfwd(forward, (1, 2)), (None, 0, 0))(ROBOT, q, v) if WHOLE_RUN else None

    (found, kernels), (expected, chunk) = both_ways(monkeypatch, everything, ROBOT, start.q, start.v)
    assert largest_difference(found, expected) < 1e-12
    assert kernels.count(KERNEL) < chunk.count(KERNEL) / 2  # in a chunk, each scan of the tree is one


@pytest.mark.whole_run("dynamics of few worlds, above, and a bad world that stays alone, in test_worlds.py")
def test_a_step_with_contact_and_a_bad_world(monkeypatch) -> None:
    """A ball that rolls and one that falls, with what their searches found; a world of NaN stays alone."""
    plant = mbjax.MultibodyPlant(0.01)
    plant.add_rigid_body("ball", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
    plant.register_collision_geometry("ball", mbjax.Geometry("ball", mbjax.Sphere(0.1)), 0.5)
    plant.register_collision_geometry("world", mbjax.Geometry("ground", mbjax.HalfSpace()), 0.5)
    model = plant.finalize()
    q = jnp.tile(mbjax.default_state(model).q, (WORLDS, 1)).at[:, 6].set(jnp.array([0.099, 0.0995, 0.3, 0.098, 0.1]))
    v = jnp.zeros((WORLDS, 6)).at[:, 3].set(jnp.linspace(0.1, 0.5, WORLDS)).at[3, 4].set(jnp.nan)

    def moved(q, v):
        return mbjax.step(model, mbjax.State(q, v, jnp.zeros(())))[0].v

    def of_velocities(q, v):
        velocities = moved(q, v)
        return jnp.sum(jnp.cos(velocities)), velocities

    def values_and_gradients(q, v):
        (_, velocities), slopes = jax.vmap(jax.value_and_grad(of_velocities, (0, 1), has_aux=True))(q, v)
        return velocities, slopes

    (found, _), (expected, _) = both_ways(monkeypatch, values_and_gradients, q, v)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        rows = np.asarray(x).reshape(WORLDS, -1)
        np.testing.assert_array_equal(np.isnan(rows).any(axis=1), np.arange(WORLDS) == 3)
        good = np.arange(WORLDS) != 3
        np.testing.assert_allclose(rows[good], np.asarray(y).reshape(WORLDS, -1)[good], rtol=1e-9, atol=1e-9)
    assert np.ptp(np.asarray(found[0])[[0, 1, 2], 3] - np.asarray(v)[[0, 1, 2], 3]) > 1e-3  # friction holds two back


@pytest.mark.usefixtures("one_by_one")
def test_what_no_kernel_takes_runs_in_a_chunk() -> None:
    def sorted_numbers(x: jax.Array) -> jax.Array:
        return jnp.sort(x, axis=0)

    x = jnp.asarray(np.random.default_rng(0).normal(size=(WORLDS, 3)))
    program = jax.jit(jax.vmap(lambda x: for_worlds(sorted_numbers, x))).lower(x)
    assert KERNEL not in program.as_text()
    np.testing.assert_array_equal(program.compile()(x), np.sort(x, axis=1))


@pytest.mark.usefixtures("one_by_one")
def test_when_they_are_few() -> None:
    def most(numbers: int, several: int = 1) -> int:
        of_one = [ShapedArray((numbers,), np.float32), ShapedArray((9 * numbers,), np.int32)]
        return max((n for n in range(1000) if are_few(n, of_one, several)), default=0)

    assert most(486) == 16  # a quadruped
    assert most(945) == 8  # a humanoid
    assert most(1) == most(64) == 128  # whatever is small
    assert most(64, several=8) == 64
    assert most(10_000) == 0
