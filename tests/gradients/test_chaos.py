"""G37: gradients over long chaotic horizons, compared as far as double precision can tell."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import reference_models

HORIZONS = np.array([10, 30, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000])
OBSERVABLE = 1e8  # growth beyond which differences in double precision say nothing


@pytest.mark.whole_run("derivatives of a step, and a rollout's gradient in docs/usage/first_gradient.md")
def test_g37_gradients_follow_differences_until_growth_hides_them(record_property) -> None:
    """An undamped double pendulum thrown from near the top, 10 s: forward = reverse = differences while growth < 1e8.

    Differences lose eps growth / h to rounding and (growth h)^4 to curvature, so each horizon has its own h.
    """
    model = mbjax.load(reference_models.path("acrobot"), time_step=0.01)
    model = eqx.tree_at(lambda m: m.parameters.joint_damping, model, jnp.zeros(2))

    def states(qv: jax.Array) -> jax.Array:
        trajectory = mbjax.rollout(model, mbjax.State(qv[:2], qv[2:], jnp.zeros(())), None, int(HORIZONS[-1]))
        return jnp.concatenate([trajectory.q, trajectory.v], axis=-1)[HORIZONS]

    start = jnp.array([2.5, 2.5, 1.0, 1.0])
    forward, reverse = jax.jit(lambda x: (jax.jacfwd(states)(x), jax.jacrev(states)(x)))(start)
    growth = np.linalg.norm(forward, 2, axis=(1, 2))
    run = jax.jit(jax.vmap(states))
    report, seen = [], 0
    for k, horizon in enumerate(HORIZONS):
        assert np.isfinite(forward[k]).all()
        assert np.isfinite(reverse[k]).all()
        scale = np.abs(forward[k]).max()
        by_mode = np.abs(forward[k] - reverse[k]).max() / scale
        if growth[k] > OBSERVABLE:
            report.append(f"{horizon} steps: growth {growth[k]:.1e}, forward against reverse {by_mode:.1e}")
            continue
        h = 1e-3 / max(growth[k], 1.0) ** 0.9
        points = start + h * np.array([1.0, -1.0, 2.0, -2.0])[:, None, None] * np.eye(4)
        values = np.asarray(run(points.reshape(16, 4)))[:, k].reshape(4, 4, 4)
        differences = np.tensordot(np.array([8.0, -8.0, -1.0, 1.0]) / 12.0, values, 1).T / h
        error = np.abs(differences - forward[k]).max() / scale
        report.append(f"{horizon} steps: growth {growth[k]:.1e}, modes {by_mode:.1e}, differences {error:.1e}")
        seen += 1
        assert by_mode < max(1e-9, 1e-13 * growth[k]), report
        assert error < max(1e-6, 1e-11 * growth[k]), report
    record_property("growth", "; ".join(report))
    print("\n".join(report))
    assert seen >= 4
    assert growth[-1] > 1e6
