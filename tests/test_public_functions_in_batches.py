"""Every public function of a state under `vmap`: what it gives world by world, whatever layout it runs in."""

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.gradients.test_transformations import OPTIONAL, arguments_of, functions_of_a_model, saturating_arm

WORLDS = 13  # none of the model's own sizes
OF_A_STATE = {"q", "state", "v", "position", "tau", "forces", "x", "q_instance"}
BUILT_OTHERWISE = (
    "set_contact_smoothing_length",
    "set_mimic",
    "keyframe_state",
    "inputs_from_mujoco",
    "rollout_policy",
)
COMPARED_IN_THE_TRIMMED_RUN = ("body_spatial_velocities_in_world",)
LOWERED_IN_EVERY_RUN = ("outputs",)  # `step` reports the same ports
EVERY_IN_THE_TRIMMED_RUN = 20
TRACED_IN_BOTH_PRECISIONS_IN_THE_TRIMMED_RUN = ("forward_dynamics_derivatives",)


def floats_of(name: str, function: Callable, model: mbjax.MultibodyModel) -> Callable | None:
    """(q, v) → the floats among its results; None where it takes nothing of a state."""
    parameters = inspect.signature(function).parameters.values()
    wanted = [p.name for p in parameters if p.default is p.empty or p.name in OPTIONAL]
    if name in (*BUILT_OTHERWISE, "simulate") or not OF_A_STATE & set(wanted):
        return None

    def call(q: jax.Array, v: jax.Array) -> list[Any]:
        given = arguments_of(model, q, v)
        if name == "set_joint_default_positions":
            given["q"] = v[:1]
        results = jax.tree.leaves(function(**{p: given[p] for p in wanted}))
        return [x for x in results if jnp.issubdtype(jnp.result_type(x), jnp.floating)]

    return call


@pytest.mark.slow
@pytest.mark.whole_run("forward dynamics of each world as alone, in tests/execution/test_worlds.py")
def test_as_world_by_world(request: pytest.FixtureRequest) -> None:
    """Trimmed: the values of one; of one in twenty functions the program alone, which finds a wrong axis."""
    is_trimmed = request.config.getoption("--trimmed")
    model, draw = saturating_arm(free_body=True), np.random.default_rng(0)
    q = jnp.asarray(0.3 + 0.2 * draw.normal(size=(WORLDS, model.num_positions)))
    v = jnp.asarray(0.2 + 0.3 * draw.normal(size=(WORLDS, model.num_velocities)))
    calls = {name: floats_of(name, function, model) for name, function in functions_of_a_model().items()}
    assert {*COMPARED_IN_THE_TRIMMED_RUN, *LOWERED_IN_EVERY_RUN} <= set(calls)
    wrong = {}
    for k, (name, call) in enumerate((name, call) for name, call in calls.items() if call is not None):
        is_compared = not is_trimmed or name in COMPARED_IN_THE_TRIMMED_RUN
        if not is_compared and name not in LOWERED_IN_EVERY_RUN and k % EVERY_IN_THE_TRIMMED_RUN:
            continue
        try:
            program = jax.jit(jax.vmap(call)).lower(q, v)
        except TypeError as error:
            wrong[name] = str(error)
            continue
        if is_compared:
            alone = jax.jit(call)
            each = [np.stack(x) for x in zip(*(alone(q[i], v[i]) for i in range(WORLDS)), strict=True)]
            largest = max((np.abs(x).max() for x in each if x.size), default=1.0)  # residuals are rounding beside it
            for x, y in zip(each, program.compile()(q, v), strict=True):
                np.testing.assert_allclose(y, x, rtol=0, atol=1e-11 * max(largest, 1.0), err_msg=name)
    assert not wrong


@pytest.mark.slow
def test_double_and_single_precision_in_turn(request: pytest.FixtureRequest) -> None:
    """In one process: JAX remembers of an array that stays alive as which type it once went into a program."""
    is_trimmed = request.config.getoption("--trimmed")
    for is_double in (True, False, True):
        with jax.enable_x64(is_double):
            model = saturating_arm(free_body=True)
            q, v = jnp.zeros(model.num_positions), jnp.zeros(model.num_velocities)
            assert q.dtype == model.dtype == (jnp.float64 if is_double else jnp.float32)
            for name, function in functions_of_a_model().items():
                if is_trimmed and name not in TRACED_IN_BOTH_PRECISIONS_IN_THE_TRIMMED_RUN:
                    continue
                call = floats_of(name, function, model)
                if call is not None:
                    jax.eval_shape(call, q, v)
