"""What `mbjax bench` measures is what it says: identities between its questions, and honest timing."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.command_line.measurement import QUICK, compile_apart, measure, per_evaluation, time_calls, with_prefix
from mbjax.command_line.questions import QUESTIONS, random_worlds
from mbjax.reference_models import path

WORLDS = 3


@pytest.fixture(scope="module")
def model() -> mbjax.MultibodyModel:
    return mbjax.load(path("acrobot"), time_step=1e-3)


@pytest.fixture(scope="module")
def worlds(model):
    return random_worlds(model, WORLDS)


@pytest.fixture(scope="module")
def answers(model, worlds) -> dict:
    """Every question's answer about the same worlds, in one program."""

    def ask(model, worlds):
        programs = {name: question.program(model, worlds) for name, question in QUESTIONS.items()}
        return {name: function(*args) for name, (function, args) in programs.items()}

    return jax.jit(ask)(model, worlds)


def test_worlds_differ(worlds) -> None:
    for x in (worlds.q, worlds.v, worlds.vdot, worlds.tau, worlds.u):
        assert x.shape[0] == WORLDS
        assert len(np.unique(np.asarray(x[:, 0]))) == WORLDS


def test_one_world_has_no_axis(model) -> None:
    assert random_worlds(model, None).q.shape == (model.num_positions,)


@pytest.mark.whole_run("the same of the functions themselves, in tests/dynamics")
def test_forward_dynamics_is_the_inverse_of_inverse_dynamics(model, worlds, answers) -> None:
    """tau = ID(vdot) and vdot = FD(tau) are both affine with the same M: M (FD(tau) - vdot) = tau - ID(vdot)."""
    difference = jnp.einsum("nij,nj->ni", answers["mass_matrix"], answers["forward_dynamics"] - worlds.vdot)
    np.testing.assert_allclose(difference, worlds.tau - answers["inverse_dynamics"], rtol=0, atol=1e-12)


@pytest.mark.whole_run("numbers agree with one another")
def test_step_moves_to_the_velocity_it_returns(model, worlds, answers) -> None:
    np.testing.assert_allclose(answers["step"].q, worlds.q + 1e-3 * answers["step"].v, rtol=0, atol=1e-13)


@pytest.mark.whole_run("numbers agree with one another")
def test_body_poses_are_of_all_bodies(model, answers) -> None:
    assert answers["body_poses"].translation.shape == (WORLDS, model.num_bodies, 3)


@pytest.mark.whole_run("numbers agree with one another")
def test_gradient_is_the_jacobian_pulled_back(answers) -> None:
    by_q, by_v = (jnp.sum(J, axis=1) for J in answers["jacobian"])
    by_tau = jnp.sum(jnp.linalg.inv(answers["mass_matrix"]), axis=1)
    for ours, expected in zip(answers["gradient"], (by_q, by_v, by_tau), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-10 * float(jnp.abs(expected).max()))


@pytest.mark.whole_run("numbers agree with one another")
def test_gradient_by_the_model_is_that_of_the_sum_over_worlds(model, worlds, answers) -> None:
    @jax.jit
    def total(mass):
        function, args = QUESTIONS["forward_dynamics"].program(mbjax.set_masses(model, mass), worlds)
        return jnp.sum(function(*args))

    mass = model.parameters.body_mass
    step = 1e-5 * jnp.where(jnp.arange(mass.size) == mass.size - 1, mass, 0.0)
    difference = (total(mass + step) - total(mass - step)) / (2.0 * step[-1])
    ours = answers["model_gradient"].parameters.body_mass[-1]
    assert abs(float(ours)) > 1e-3
    np.testing.assert_allclose(ours, difference, rtol=1e-7)


def test_timing_warms_up_and_takes_the_median_of_blocks() -> None:
    calls = []

    def call() -> None:
        calls.append(None)
        time.sleep(0.05 if len(calls) == 1 else 1e-4)  # the first call is slow, as one that compiles

    timing = time_calls(call, QUICK)
    assert 1e-4 <= timing.minimum <= timing.lower_quartile <= timing.median <= timing.upper_quartile
    assert timing.repeats >= QUICK.min_repeats
    assert len(calls) >= 2 + timing.repeats
    assert timing.per(4).median == pytest.approx(timing.median / 4)


def test_the_program_measured_is_the_program_compiled() -> None:
    x = jnp.arange(64.0).reshape(8, 8)
    compiled, compilation = compile_apart(lambda x: jax.lax.fori_loop(0, 3, lambda _, y: jnp.sin(x @ y), x), (x,))
    assert compiled(x).shape == x.shape
    assert compilation.whiles <= 1
    assert compilation.temp_bytes is not None
    assert compilation.total_s == pytest.approx(compilation.trace_s + compilation.lower_s + compilation.compile_s)


def test_record_per_evaluation() -> None:
    record = measure(lambda x: x + 1.0, (jnp.ones(4),), QUICK)
    each = per_evaluation(record, 4)
    assert each["median"] == record["median"] / 4
    assert each["compile_s"] == record["compile_s"]


@pytest.mark.parametrize(
    ("x", "unit", "text"),
    [(0, "B", "0 B"), (999, "B", "999 B"), (2052, "B", "2.05 kB"), (4.5e6, "", "4.50 M"), (0.012, "s", "0.0120 s")],
)
def test_prefixes(x, unit, text) -> None:
    assert with_prefix(x, unit) == text
