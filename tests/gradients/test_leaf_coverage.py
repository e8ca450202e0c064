"""Every float leaf of a model moves something, and its gradient is right.

One scenario reads every leaf: a step under PD control, springs and friction with one actuator at its limit, the smooth
friction of continuous plants, the poses of frames, the default state, and penalties on the limits. The limits of
velocity and acceleration have no effect on the motion yet: they are covered as the numbers a user's cost reads. One
leaf is a switch, whose derivative is zero by design: a velocity is locked or not (tests/simulation/test_lock.py). The
leaves of contact have a scenario in `tests/contact`, those of joints that mimic others in
`tests/model/test_mimic_motion.py`.
"""

import jax
import jax.numpy as jnp
import numpy as np

import mbjax
from mbjax.forces import calc_joint_dissipation
from tests.gradients.checks import check_gradients

SEED = 5


def make_model() -> mbjax.MultibodyModel:
    """A small tree that uses every parameter and every kind of force element."""
    rng = np.random.default_rng(SEED)
    plant = mbjax.MultibodyPlant(time_step=0.01)
    plant.set_gravity([0.3, -0.4, -9.6])
    for i in range(4):
        inertia = mbjax.SpatialInertia.solid_box_with_mass(1.0 + 0.3 * i, 0.3, 0.2, 0.1 + 0.05 * i)
        plant.add_rigid_body(f"body{i}", inertia.shift(-0.1 * rng.normal(size=3)))

    def pose() -> np.ndarray:
        X = np.eye(4)
        X[:3, :3] = np.asarray(mbjax.RigidTransform.from_rpy_xyz(rng.normal(size=3), np.zeros(3)).rotation)
        X[:3, 3] = 0.3 * rng.normal(size=3)
        return X

    limits = {"position_limits": (-0.1, 0.1), "velocity_limits": (-0.2, 0.2), "acceleration_limits": (-0.3, 0.3)}
    common = {"damping": 0.4, "friction": 0.5, "armature": 0.6, "default_positions": 0.2, **limits}
    joints = (
        (mbjax.RevoluteJoint, {"axis": rng.normal(size=3)}),
        (mbjax.ScrewJoint, {"axis": rng.normal(size=3), "screw_pitch": 0.3}),
        (mbjax.PrismaticJoint, {"axis": rng.normal(size=3)}),
    )
    parents = ("world", "body0", "body0")
    for i, ((kind, own), parent) in enumerate(zip(joints, parents, strict=True)):
        plant.add_joint(kind(f"joint{i}", parent, f"body{i}", X_PF=pose(), X_BM=pose(), **own, **common))
        plant.add_joint_actuator(
            f"motor{i}", f"joint{i}", 2.0 if i == 0 else 500.0,
            rotor_inertia=0.02 + 0.01 * i, gear_ratio=3.0 + i, kp=40.0 + 5.0 * i, kd=3.0 + i,
        )  # fmt: skip
    plant.add_frame("tip", "body2", pose())
    plant.add_force_element(
        mbjax.LinearSpringDamper("body1", [0.1, 0.2, 0.3], "body3", [0.2, 0.1, 0.0], 0.3, 30.0, 2.0)
    )
    plant.add_force_element(mbjax.RevoluteSpring("joint0", 0.4, 7.0))
    plant.add_force_element(mbjax.PrismaticSpring("joint2", 0.1, 9.0))
    return plant.finalize()


def scenario(model: mbjax.MultibodyModel) -> jax.Array:
    """Numbers that together depend on every leaf."""
    rng = np.random.default_rng(SEED + 1)
    start = mbjax.default_state(model)
    q = mbjax.integrate_configuration(model, start.q, jnp.asarray(0.5 * rng.normal(size=model.num_velocities)))
    state = mbjax.State(q, jnp.asarray(rng.normal(size=model.num_velocities)), start.time)
    inputs = mbjax.Inputs(actuation=jnp.array([50.0, 1.0, -2.0]), desired_state=jnp.asarray(rng.normal(size=6)))
    after, outputs = mbjax.step(model, state, inputs)
    tip = mbjax.relative_transform(model, q, "world", "tip")
    smooth = calc_joint_dissipation(model, state.v)
    energy = mbjax.kinetic_energy(model, q, state.v) + mbjax.potential_energy(model, q)
    p = model.parameters
    beyond = [
        penalty(after.q, p.position_lower_limits, p.position_upper_limits),
        penalty(after.v, p.velocity_lower_limits, p.velocity_upper_limits),
        penalty(outputs.generalized_acceleration, p.acceleration_lower_limits, p.acceleration_upper_limits),
    ]
    parts = [after.q, after.v, after.time[None], outputs.net_actuation, tip.translation, tip.rotation.ravel(), smooth]
    weights = np.random.default_rng(SEED + 2)
    total = sum(jnp.sum(part * jnp.asarray(weights.normal(size=part.shape))) for part in parts)
    return total + 0.1 * energy + sum(0.01 * b for b in beyond)


def penalty(x: jax.Array, lower: jax.Array, upper: jax.Array) -> jax.Array:
    """Squared distance to both limits, where there are any."""
    both = [(x - jnp.where(jnp.isfinite(limit), limit, 0.0)) * jnp.isfinite(limit) for limit in (lower, upper)]
    return sum(jnp.sum(d**2) for d in both)


def test_every_leaf_moves_something_and_its_gradient_is_right() -> None:
    model = make_model()
    with jax.numpy_dtype_promotion("standard"):
        result = check_gradients(scenario, model)
    leaves = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(model)]
    leaves = [leaf for leaf in leaves if not leaf.startswith(".collision")]
    moved = {name[: name.rindex("[")] for name, d in zip(result.names, result.reverse[0], strict=True) if d != 0.0}
    dead = [leaf for leaf in leaves if leaf not in moved]
    assert dead == [".parameters.velocity_locked"], f"leaves without effect: {dead}"


def test_every_leaf_is_a_float() -> None:
    assert all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in jax.tree.leaves(make_model()))
