"""Robots from MJCF fall, settle where they do in MuJoCo, and their rollouts have gradients."""

import importlib.util
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import mbjax

CHUNK = 50  # steps
WHOLE = pytest.mark.whole_run("a quadruped that trots as in Drake, and numbers of MJCF in tests/formats/test_mjcf.py")


def folder_of(package: str, inside: str) -> Path:
    found = importlib.util.find_spec(package)
    assert found is not None
    return Path(str(found.origin)).parent / inside


# name: file, ankles at the start, time step, duration, tolerance of the height: MuJoCo's ant creeps 4 mm a second
ROBOTS = {
    "ant": ("gymnasium", "envs/mujoco/assets/ant.xml", [1.0, -1.0, -1.0, 1.0], 0.005, 1.0, 5e-3),
    "humanoid": ("gymnasium", "envs/mujoco/assets/humanoid.xml", None, 0.005, 2.5, 3e-3),
    "quadruped": ("mujoco", "mjx/test_data/barkour_v0/assets/barkour_v0_mjx.xml", None, 0.004, 1.0, 5e-3),
}


def start_of(m: mujoco.MjModel, ankles: list[float] | None) -> np.ndarray:
    """The file's first keyframe or reference, within the ranges of the joints, where a step would else throw them."""
    qpos = np.array(m.key_qpos[0] if m.nkey else m.qpos0)
    if ankles is not None:
        qpos[2], qpos[8::2] = 0.7, ankles
    for j in range(m.njnt):
        if m.jnt_limited[j] and m.jnt_type[j] in (2, 3):
            qpos[m.jnt_qposadr[j]] = np.clip(qpos[m.jnt_qposadr[j]], *m.jnt_range[j])
    return qpos


@WHOLE
@pytest.mark.parametrize("name", ["ant", "humanoid", "quadruped"])
def test_falls_and_settles_where_it_does_in_mujoco(name: str, request: pytest.FixtureRequest) -> None:
    """MuJoCo holds geoms `margin` apart, which is taken away there; heights then differ by the softness of contact.

    Trimmed: without the gradient, which is that of steps with friction in test_impact_gradients.py.
    """
    package, inside, ankles, dt, duration, tolerance = ROBOTS[name]
    file = folder_of(package, inside)
    m = mujoco.MjModel.from_xml_path(str(file))
    m.geom_margin[:] = 0.0
    m.hfield_data[:] = 0.0  # the quadruped's rough ground: heightfields are refused here
    m.opt.timestep = dt
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbjax.ModelWarning)
        ground = 0.7 if name == "quadruped" else False
        model = mbjax.load(file, time_step=dt, contact_model="point", on_unsupported="warn", ground=ground)
    qpos, d = start_of(m, ankles), mujoco.MjData(m)
    d.qpos[:] = qpos
    ctrl = d.ctrl[:] = np.array(m.key_ctrl[0]) if m.nkey else np.zeros(m.nu)
    for _ in range(round(duration / dt)):
        mujoco.mj_step(m, d)

    def heights(state: mbjax.State, ctrl: jax.Array) -> tuple[jax.Array, mbjax.State]:
        """Height of the base at the end of some steps, and the state there."""
        inputs = mbjax.inputs_from_mujoco(model, ctrl)
        final = mbjax.rollout(model, state, inputs, num_steps=CHUNK).final_state
        return mbjax.mujoco_state(model, final)[0][2], final

    if request.config.getoption("--trimmed"):
        run = jax.jit(lambda state, ctrl: (heights(state, ctrl), jnp.zeros(m.nu)))
    else:
        run = jax.jit(jax.value_and_grad(heights, argnums=1, has_aux=True))
    state = mbjax.state_from_mujoco(model, qpos, np.zeros(m.nv))
    highest = height = float(qpos[2])
    for _ in range(round(duration / dt / CHUNK)):
        (height, state), gradient = run(state, jnp.asarray(ctrl))
        assert np.isfinite(gradient).all()
    print(name, "height here", float(height), "in MuJoCo", d.qpos[2])
    assert float(height) < highest - 0.01
    assert abs(float(height) - d.qpos[2]) < tolerance
    assert np.abs(state.v).max() < 0.5

    if request.config.getoption("--trimmed"):
        return
    (_, _), gradient = run(state, jnp.asarray(ctrl))
    direction, e = np.random.default_rng(0).normal(size=m.nu), 1e-5
    ends = [float(run(state, jnp.asarray(ctrl + sign * e * direction))[0][0]) for sign in (1.0, -1.0)]
    np.testing.assert_allclose(gradient @ direction, (ends[0] - ends[1]) / (2 * e), rtol=1e-4, atol=1e-8)
