"""Comparison of a model from MJCF with MuJoCo itself, at random states."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np

import mbjax


@dataclasses.dataclass
class Agreement:
    """Largest relative differences."""

    mass_matrix: float
    forces: float  # of Coriolis, gravity, springs and dampers
    poses: float
    actuation: float

    @property
    def worst(self) -> float:
        return max(dataclasses.astuple(self))


def random_qpos_qvel(m: Any, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Positions around the reference, with unit quaternions, and velocities."""
    qpos, dq = np.array(m.qpos0), rng.normal(size=m.nv)
    mujoco.mj_integratePos(m, qpos, dq, 1.0)
    return qpos, rng.normal(size=m.nv)


def relative(ours: Any, theirs: Any) -> float:
    """Largest difference by the largest number, or by 1 if that is larger."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    return float(np.abs(ours - theirs).max(initial=0.0) / max(1.0, np.abs(theirs).max(initial=0.0)))


@eqx.filter_jit
def of_model(model: mbjax.MultibodyModel, qpos: jax.Array, qvel: jax.Array, ctrl_terms: jax.Array) -> Any:
    """What MuJoCo computes too, in its coordinates: M, bias less passive forces, actuation, poses, a round trip."""
    state = mbjax.state_from_mujoco(model, qpos, qvel)
    back = mbjax.mujoco_state(model, state)

    def velocities(v_mujoco: jax.Array) -> jax.Array:
        return mbjax.state_from_mujoco(model, qpos, v_mujoco).v

    nv = model.num_velocities
    T = jax.vmap(velocities)(jnp.eye(nv)).T  # v = T qvel, at this state

    def inverse_dynamics(vdot: jax.Array) -> jax.Array:
        return mbjax.inverse_dynamics(model, state.q, state.v, vdot, force_elements=True)

    columns = jax.vmap(inverse_dynamics)(jnp.concatenate([jnp.zeros((1, nv)), jnp.eye(nv)]))
    M = (columns[1:] - columns[0]).T
    p = model.parameters
    where = jnp.array(model.layout.velocities_of_actuators, int)
    at_q = jnp.array([model.layout.joints[a.joint].q_start for a in model.layout.actuators], int)
    u = ctrl_terms - p.proportional_gain * state.q[at_q] - p.derivative_gain * state.v[where]
    u = jnp.clip(u, -p.effort_limit, p.effort_limit)
    tau = jnp.zeros(nv).at[where].add(u)
    X = mbjax.body_poses_in_world(model, state.q)
    return T.T @ M @ T, T.T @ columns[0], T.T @ tau, X.translation, X.rotation, back


def assert_same_state(m: Any, ours: Any, qpos: np.ndarray, qvel: np.ndarray) -> None:
    """Quaternions of either sign."""
    mine = np.array(ours[0])
    for joint in range(m.njnt):
        if m.jnt_type[joint] in (0, 1):
            start = m.jnt_qposadr[joint] + (3 if m.jnt_type[joint] == 0 else 0)
            mine[start : start + 4] *= np.sign(mine[start : start + 4] @ qpos[start : start + 4])
    np.testing.assert_allclose(mine, qpos, atol=1e-12)
    np.testing.assert_allclose(ours[1], qvel, atol=1e-12)


def compare(model: mbjax.MultibodyModel, m: Any, seed: int = 0, num_states: int = 3) -> Agreement:
    """All of it at a few states; actuators of the model are found by name."""
    rng, d = np.random.default_rng(seed), mujoco.MjData(m)
    model = eqx.tree_at(lambda x: x.parameters.joint_friction, model, jnp.zeros(len(model.parameters.joint_friction)))
    worst = np.zeros(4)
    for _ in range(num_states):
        qpos, qvel = random_qpos_qvel(m, rng)
        ctrl = rng.uniform(-1.0, 1.0, size=m.nu)
        d.qpos, d.qvel, d.ctrl = qpos, qvel, ctrl
        mujoco.mj_forward(m, d)
        M, forces, actuation, p, R, back = of_model(model, qpos, qvel, actuator_terms(model, m, d, ctrl))
        theirs = np.zeros((m.nv, m.nv))
        full_mass_matrix(m, d, theirs)
        names = [mujoco.mj_id2name(m, mujoco.mjtObj.mjOBJ_BODY, b) or f"body_{b}" for b in range(1, m.nbody)]
        rows = [model.body_index(name) for name in names]
        fluid = np.asarray(getattr(d, "qfrc_fluid", np.zeros(m.nv)))
        errors = [
            relative(M, theirs),
            relative(forces, d.qfrc_bias - d.qfrc_passive + fluid),
            max(
                relative(p[np.array(rows, int)], d.xpos[1:]),
                relative(R[np.array(rows, int)].reshape(-1, 9), d.xmat[1:]),
            ),
            relative(actuation, d.qfrc_actuator) if model.num_actuators == m.nu else 0.0,
        ]
        assert_same_state(m, back, qpos, qvel)
        worst = np.maximum(worst, errors)
    return Agreement(*worst.tolist())


def actuator_terms(model: mbjax.MultibodyModel, m: Any, d: Any, ctrl: np.ndarray) -> np.ndarray:
    """gear (gain ctrl + bias0) of each actuator, as the report says; controls within their ranges."""
    del d
    if model.num_actuators != m.nu:
        return np.zeros(model.num_actuators)
    limited = np.asarray(m.actuator_ctrllimited, bool)
    ctrl = np.where(limited, np.clip(ctrl, *m.actuator_ctrlrange.T), ctrl)
    gear = np.array(m.actuator_gear[:, 0])
    for a in range(m.nu):
        if m.actuator_trntype[a] == mujoco.mjtTrn.mjTRN_TENDON:
            gear[a] *= m.wrap_prm[m.tendon_adr[m.actuator_trnid[a, 0]]]
    bias = np.where(np.asarray(m.actuator_biastype) == 0, 0.0, m.actuator_biasprm[:, 0])
    return gear * (m.actuator_gainprm[:, 0] * ctrl + bias)


def full_mass_matrix(m: Any, d: Any, M: np.ndarray) -> None:
    """M of MuJoCo, whatever the version calls it."""
    try:
        mujoco.mj_fullM(m, d, M)
    except TypeError:
        mujoco.mj_fullM(m, M, d.qM)


def touching_pairs(m: Any) -> set[frozenset[str]]:
    """Pairs of geoms that MuJoCo lets touch: its collisions with all geoms blown up by a huge margin."""
    d = mujoco.MjData(m)
    found: set[frozenset[str]] = set()
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_MIDPHASE
    m.geom_margin[:] = m.body_margin[:] = 100.0
    m.pair_margin[:] = 100.0
    mujoco.mj_fwdPosition(m, d)
    for contact in d.contact:
        found.add(frozenset(int(g) for g in contact.geom))
    return found
