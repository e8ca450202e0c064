"""Locked joints in continuous and discrete plants: as if welded, without another program, with gradients."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.gradients.checks import check_gradients
from tests.models import relative_error

ANGLE = 0.7
OFFSETS = np.random.default_rng(0).normal(size=(5, 3)) * 0.3


@functools.cache
def branched_arm(weld: bool = False, time_step: float = 0.0) -> mbjax.MultibodyModel:
    """Four links on skew axes, the second joint a weld at ANGLE if asked, and a body that floats."""
    plant = mbjax.MultibodyPlant(time_step)
    parents = ("world", "link0", "link1", "link1")
    axes = ([0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.6, 0.8], [0.0, 0.0, 1.0])
    for i, (parent, axis) in enumerate(zip(parents, axes, strict=True)):
        inertia = mbjax.SpatialInertia.solid_box_with_mass(1.0 + i, 0.3, 0.2, 0.1).shift(-OFFSETS[i])
        plant.add_rigid_body(f"link{i}", inertia)
        X_PF = np.eye(4)
        X_PF[:3, 3] = OFFSETS[i]
        if weld and i == 1:
            X_PF[:3, :3] = np.asarray(mbjax.RigidTransform.from_rpy_xyz(np.array([ANGLE, 0, 0]), np.zeros(3)).rotation)
            plant.add_joint(mbjax.WeldJoint("joint1", parent, "link1", X_PF=X_PF))
            continue
        kind = mbjax.PrismaticJoint if i == 2 else mbjax.RevoluteJoint
        plant.add_joint(kind(f"joint{i}", parent, f"link{i}", X_PF=X_PF, axis=axis, damping=0.3))
    for i in (0, 1) if not weld else (0,):
        plant.add_joint_actuator(f"motor{i}", f"joint{i}", 5.0, rotor_inertia=0.1, gear_ratio=2.0, kp=30.0, kd=3.0)
    plant.add_rigid_body("free", mbjax.SpatialInertia.solid_box_with_mass(2.0, 0.3, 0.2, 0.1))
    return plant.finalize()


@pytest.mark.whole_run("locked joints in constrained plants, and at Drake's ports")
def test_as_if_welded() -> None:
    """Acceleration and reaction forces of every joint, whatever velocity the state gives the locked joint."""
    arm, welded = branched_arm(), branched_arm(weld=True)
    locked = mbjax.lock_joint(arm, "joint1")
    rng = np.random.default_rng(1)
    q, v = rng.normal(size=arm.num_positions), rng.normal(size=arm.num_velocities)
    q[arm.joint("joint1").q_start] = ANGLE
    kept_q = np.delete(np.arange(arm.num_positions), arm.joint("joint1").q_start)
    kept_v = np.delete(np.arange(arm.num_velocities), arm.joint("joint1").v_start)
    forces = mbjax.AppliedSpatialForces(["link1", "link3"], rng.normal(size=(2, 6)), rng.normal(size=(2, 3)))
    target = jnp.array([0.2, 0.5])

    def ports(model, q, v, u, desired):
        inputs = mbjax.Inputs(actuation=u, applied_spatial_forces=forces, desired_state=desired)
        return mbjax.outputs(model, mbjax.State(q, v, jnp.zeros(())), inputs)

    u, state = jnp.array([0.3, 9.0]), (jnp.asarray(q), jnp.asarray(v))
    ours = jax.jit(ports)(locked, *state, u, jnp.array([0.2, 7.0, 0.5, 9.0]))
    theirs = jax.jit(ports)(welded, state[0][kept_q], state[1][kept_v], u[:1], target)
    assert ours.generalized_acceleration[arm.joint("joint1").v_start] == 0.0
    assert relative_error(ours.generalized_acceleration[kept_v], theirs.generalized_acceleration) < 1e-12
    assert relative_error(ours.body_spatial_accelerations, theirs.body_spatial_accelerations) < 1e-12
    in_ours = [arm.joint(name).index for name in welded.joint_names]
    assert relative_error(np.asarray(ours.reaction_forces)[in_ours], theirs.reaction_forces) < 1e-12
    np.testing.assert_allclose(ours.net_actuation[1], 5.0)  # at its limit, and without the controller's part


@pytest.mark.whole_run("derivatives by every leaf of the model")
def test_gradients_of_a_step() -> None:
    """With respect to state, inputs and model; zero for the lock itself and for the velocity it overrides."""
    plant = mbjax.MultibodyPlant(0.01)
    for i, axis in enumerate(([0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.6, 0.8])):
        inertia = mbjax.SpatialInertia.solid_box_with_mass(1.0 + i, 0.3, 0.2, 0.1).shift(-OFFSETS[i])
        plant.add_rigid_body(f"link{i}", inertia)
        parent = f"link{i - 1}" if i else "world"
        plant.add_joint(mbjax.RevoluteJoint(f"joint{i}", parent, f"link{i}", X_PF=OFFSETS[i], axis=axis, damping=0.3))
        plant.add_joint_actuator(f"motor{i}", f"joint{i}", rotor_inertia=0.1)
    model = mbjax.lock_joint(plant.finalize(), "joint1")
    rng = np.random.default_rng(2)
    x = {
        "q": jnp.asarray(rng.normal(size=3)),
        "v": jnp.asarray(rng.normal(size=3)),
        "u": jnp.asarray(rng.normal(size=3)),
        "masses": model.parameters.body_mass,
        "rotors": model.parameters.rotor_inertia,
        "lock": model.parameters.velocity_locked,
    }

    def f(x):
        where = lambda m: (m.parameters.body_mass, m.parameters.rotor_inertia, m.parameters.velocity_locked)  # noqa: E731
        m = eqx.tree_at(where, model, (x["masses"], x["rotors"], x["lock"]))
        after, _ = mbjax.step(m, mbjax.State(x["q"], x["v"], jnp.zeros(())), x["u"])
        return after.q, after.v

    gradients = check_gradients(f, x)
    moves = {name: bool(np.any(d != 0.0)) for name, d in zip(gradients.names, gradients.reverse.T, strict=True)}
    still = {"['v'][1]", "['u'][1]", "['rotors'][1]", *(f"['lock'][{i}]" for i in range(3))}
    assert {name for name, moved in moves.items() if not moved} == still


@pytest.mark.whole_run("locked joints at Drake's ports, of which none compiles another program")
def test_worlds_differ_in_what_is_locked() -> None:
    """One program for a batch of locks; what is locked rests where it was, and starts from rest when unlocked."""
    model = branched_arm(time_step=0.01)
    q = mbjax.default_state(model).q
    state = mbjax.State(q, jnp.ones(model.num_velocities), jnp.zeros(()))

    @jax.jit
    @jax.vmap
    def run(locked):
        m = mbjax.lock_body(mbjax.lock_joint(model, "joint1", locked[0]), "free", locked[1])
        return mbjax.rollout(m, state, num_steps=5), mbjax.is_joint_locked(m, "joint1"), mbjax.is_body_locked(m, "free")

    flags = jnp.array([[False, False], [True, False], [False, True], [True, True]])
    trajectory, joint_locked, body_locked = run(flags)
    np.testing.assert_array_equal(np.stack([joint_locked, body_locked], axis=1), flags)
    for column, name in enumerate(("joint1", "free")):
        joint = model.joint(name)
        moved = np.asarray(trajectory.q)[:, -1, joint.q] != np.asarray(q)[joint.q]
        np.testing.assert_array_equal(moved.any(axis=1), ~flags[:, column])
        still = np.asarray(flags[:, column])
        assert np.all(np.asarray(trajectory.v)[still][..., joint.v] == 0.0)
        assert np.all(np.asarray(trajectory.generalized_acceleration)[still][..., joint.v] == 0.0)
    others = np.asarray(trajectory.q)[:, -1, model.joint("joint3").q]
    assert len(np.unique(others[[0, 1]])) == 2  # another load, another motion
    np.testing.assert_allclose(others[[0, 1]], others[[2, 3]], rtol=1e-12)  # the free body is no load


def test_locking_by_name() -> None:
    arm = branched_arm()
    assert not mbjax.is_joint_locked(arm, "joint2")
    assert mbjax.is_joint_locked(mbjax.lock_joint(arm, 2), "joint2")
    assert not mbjax.is_joint_locked(mbjax.unlock_joint(mbjax.lock_joint(arm, 2), "joint2"), "joint2")
    assert mbjax.is_body_locked(mbjax.lock_joint(arm, "joint2"), "link2")
    free = mbjax.lock_body(arm, "free")
    assert mbjax.is_body_locked(free, "free")
    assert mbjax.is_joint_locked(free, "free")
    assert not mbjax.is_body_locked(mbjax.unlock_body(free, "free"), "free")
    assert mbjax.is_body_locked(arm, "world")
    with pytest.raises(mbjax.ModelError, match=r"lock_body: body 'link1' hangs on joint 'joint1' .*Use lock_joint"):
        mbjax.lock_body(arm, "link1")
    with pytest.raises(mbjax.ModelError, match="is the world"):
        mbjax.unlock_body(arm, 0)
    with pytest.raises(mbjax.ModelError, match="one truth value"):
        mbjax.lock_joint(arm, "joint1", jnp.array([True, False]))
    welded = branched_arm(weld=True)
    assert mbjax.is_joint_locked(mbjax.lock_joint(welded, "joint1"), "joint1")
    with pytest.raises(mbjax.ModelError, match="a weld cannot move"):
        mbjax.unlock_joint(welded, "joint1")
