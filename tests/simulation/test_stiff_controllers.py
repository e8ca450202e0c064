"""A seven-joint arm under PD gains that would blow up an explicit step: it holds, tracks and differentiates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.gradients.checks import check_gradients

DT, KP, KD = 1e-3, 1e6, 1e3
PHASES, POSE = 0.7 * np.arange(7.0), 0.4 * (-1.0) ** np.arange(7)


@pytest.fixture(scope="module")
def arm() -> mbjax.MultibodyModel:
    """Without effort limits, so that the gains act."""
    model = mbjax.load(mbjax.reference_models.path("arm"), time_step=DT)
    for name in model.actuator_names:
        model = mbjax.set_effort_limit(model, name, np.inf)
    return mbjax.set_controller_gains(model, KP, KD)


def follow(model: mbjax.MultibodyModel, amplitude: jax.Array, frequency: jax.Array, steps: int):
    """Targets on sines about POSE, started on them; returns the targets with the trajectory."""
    times = DT * np.arange(1.0, steps + 1.0)[:, None]
    angle = 2.0 * jnp.pi * frequency * times
    q = POSE + amplitude * (jnp.sin(angle + PHASES) - np.sin(PHASES))
    v = amplitude * 2.0 * jnp.pi * frequency * jnp.cos(angle + PHASES)
    start = mbjax.State(jnp.asarray(POSE), amplitude * 2.0 * jnp.pi * frequency * np.cos(PHASES), jnp.zeros(()))
    return q, mbjax.rollout(model, start, mbjax.Inputs(desired_state=jnp.concatenate([q, v], axis=1)))


@pytest.mark.whole_run("PD actuators of the arm beside Drake, in the quick run")
def test_it_holds_and_tracks(arm) -> None:
    """At rest the law's sag is what gravity asks, tau / Kp; in motion the error stays as small."""
    run = jax.jit(follow, static_argnums=3)
    target, still = run(arm, jnp.array(0.0), jnp.array(1.0), 1000)
    held = still.q[-1]
    np.testing.assert_allclose(still.v[-1], 0.0, atol=1e-10)
    np.testing.assert_allclose(KP * (target[-1] - held), -mbjax.gravity_generalized_forces(arm, held), atol=1e-6)
    assert jnp.abs(target[-1] - held).max() > 1e-7

    target, moving = run(arm, jnp.array(0.3), jnp.array(1.0), 1000)
    error, effort = jnp.abs(moving.q[1:] - target).max(), jnp.abs(moving.net_actuation).max()
    print(f"moving by {jnp.ptp(moving.q, axis=0).max():.2f} rad: error {error:.1e} rad, efforts up to {effort:.0f} N m")
    assert error < 2e-4
    assert jnp.ptp(moving.q, axis=0).min() > 0.5


@pytest.mark.whole_run("gains among the leaves of a saturated step, in tests/gradients/test_leaf_coverage.py")
def test_its_gradient_equals_finite_differences(arm) -> None:
    """Of the end of 30 steps with respect to the motion, to the gains and to a mass."""

    def end(x):
        model = mbjax.set_controller_gains(arm, KP * x["kp"], KD * x["kd"])
        model = mbjax.set_mass(model, 7, x["mass"])
        _, trajectory = follow(model, x["amplitude"], x["frequency"], 30)
        return trajectory.final_state.q, trajectory.final_state.v, trajectory.net_actuation[-1]

    x = {"amplitude": 0.3, "frequency": 1.0, "kp": 1.0, "kd": 1.0, "mass": float(mbjax.mass(arm, 7))}
    check_gradients(end, jax.tree.map(jnp.asarray, x))
