"""Compares a model with what was read from a file written of it: by mbjax, by Drake and by MuJoCo."""

import logging
import warnings
from collections import Counter
from collections.abc import Collection
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from pydrake.multibody.parsing import Parser as DrakeParser
from pydrake.multibody.plant import MultibodyPlant as DrakePlant
from pydrake.multibody.tree import BodyIndex

import mbjax
from mbjax.engines.mujoco_order import FREE, ROTATED, moving_joints, num_qpos
from mbjax.formats.records.numbers import roll_pitch_yaw
from mbjax.joints import JOINT_KINDS
from tests.formats.mujoco_comparison import full_mass_matrix, random_qpos_qvel, relative
from tests.formats.numpy_dynamics import Dynamics, dynamics, rotation
from tests.models import relative_error

EXACT = 1e-12
BY_OTHERS = 1e-9
SPRINGS = (mbjax.RevoluteSpring, mbjax.PrismaticSpring)
LIMITS = tuple(
    f"{what}_{side}_limits" for what in ("position", "velocity", "acceleration") for side in ("lower", "upper")
)


def load_quietly(text: str, **options: Any) -> mbjax.MultibodyModel:
    """The model of a text; meshes that are not there, and what robots' own files have wrong, are warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbjax.ModelWarning)
        return mbjax.load(text, **options)


def write_quietly(write: Any, model: mbjax.MultibodyModel, **options: Any) -> Any:
    """The text, with a warning of what is left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbjax.ModelWarning)
        return write(model, on_unsupported="warn", **options)


def names_of(model: mbjax.MultibodyModel) -> tuple[list[str], list[str]]:
    """Names of positions and velocities by joint, with those of instances where names occur twice.

    A floating joint is called like its body, and a joint that is called like a body loses the `_joint` that it gets in
    SDFormat, where it cannot be.
    """
    bodies = {body.name for body in model.layout.bodies}
    q_names, v_names = [""] * model.num_positions, [""] * model.num_velocities
    moving = [joint for joint in model.layout.joints if joint.num_velocities]
    stems = [j.name if j.name.removesuffix("_joint") not in bodies else j.name.removesuffix("_joint") for j in moving]
    for joint, stem in zip(moving, stems, strict=True):
        name = model.body_names[joint.child_body].split("@")[0] if JOINT_KINDS[joint.kind].is_floating else stem
        if stems.count(stem) > 1:
            name = f"{model.layout.instance_names[joint.model_instance]}_{name}"
        q_names[joint.q] = [f"{name}_{suffix}" for suffix in joint.position_suffixes]
        v_names[joint.v] = [f"{name}_{suffix}" for suffix in joint.velocity_suffixes]
    return q_names, v_names


def random_coordinates(model: mbjax.MultibodyModel, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A state with unit quaternions."""
    rng = np.random.default_rng(seed)
    q, v = rng.normal(size=model.num_positions), rng.normal(size=model.num_velocities)
    for joint in model.layout.joints:
        if JOINT_KINDS[joint.kind].has_quaternion:
            q[joint.q][:4] /= np.linalg.norm(q[joint.q][:4])
    return q, v


def assert_close(got: Any, expected: Any, tolerance: float, what: str) -> None:
    error = (
        relative_error(got, expected)
        if np.size(expected) and np.abs(expected).max() > 1e-12
        else relative(got, expected)
    )
    assert error < tolerance, f"{what}: relative error {error:.2e}"


def assert_same_by_names(
    model: mbjax.MultibodyModel,
    other: mbjax.MultibodyModel,
    left_out: Collection[str] = (),
) -> None:
    """Dynamics at random states, poses of the bodies of `model`, limits, friction and actuators, all by names.

    `left_out` names the parts that the format does not hold: the model is compared as it is without them, or with the
    gravity that a user then sets.
    """
    model, other = without(model, left_out), with_gravity(other, model) if "gravity" in left_out else other
    (q_names, v_names), (q_others, v_others) = names_of(model), names_of(other)
    assert sorted(q_names) == sorted(q_others)
    to_q, to_v = [q_names.index(n) for n in q_others], [v_names.index(n) for n in v_others]
    for seed in range(2):
        q, v = random_coordinates(model, seed)
        ours, theirs = dynamics(model, q, v), dynamics(other, q[to_q], v[to_v])
        assert_close(theirs.M, ours.M[np.ix_(to_v, to_v)], EXACT, "M")
        for what in ("bias", "gravity", "passive"):
            assert_close(getattr(theirs, what), getattr(ours, what)[to_v], EXACT, what)
        assert_same_poses(ours, theirs)
    for what in LIMITS:
        order = to_q if what.startswith("position") else to_v
        mine, others = np.asarray(getattr(model, what))[order], np.asarray(getattr(other, what))
        np.testing.assert_allclose(others, mine, rtol=EXACT, err_msg=what)
    if not model.topology.followers:
        np.testing.assert_allclose(
            other.parameters.joint_friction, np.asarray(model.parameters.joint_friction)[to_v], rtol=EXACT
        )
    assert actuators_of(other) == actuators_of(model)


def without(model: mbjax.MultibodyModel, parts: Collection[str]) -> mbjax.MultibodyModel:
    """The model with no springs, or no armature of joints that no actuator drives, where they are among the parts."""
    if "springs" in parts:
        others = tuple(e for e in model.force_elements if not isinstance(e, SPRINGS))
        model = eqx.tree_at(lambda m: m.force_elements, model, others)
    if "armature" in parts:
        driven = [model.layout.joints[actuator.joint].all_v_start for actuator in model.layout.actuators]
        armature = model.parameters.joint_armature
        held = jnp.zeros_like(armature).at[jnp.array(driven, int)].set(armature[jnp.array(driven, int)])
        model = eqx.tree_at(lambda m: m.parameters.joint_armature, model, held)
    return model


def with_gravity(model: mbjax.MultibodyModel, like: mbjax.MultibodyModel) -> mbjax.MultibodyModel:
    return mbjax.set_gravity(model, like.parameters.gravity)


def assert_same_poses(ours: Dynamics, theirs: Dynamics) -> None:
    """Every body of the model is in the file, which may add massless ones; by names, with instances where need be."""
    stems = [name.rsplit("::", 1)[-1] for name in ours.poses]
    is_unique = len(set(stems)) == len(stems)
    found = {name.rsplit("::", 1)[-1] if is_unique else name: pose for name, pose in theirs.poses.items()}
    for name, stem in zip(ours.poses, stems, strict=True):
        key = stem if is_unique else name
        assert key in found, f"the file has no body {key}: {sorted(found)}"
        assert_close(found[key], ours.poses[name], EXACT, f"pose of {name}")


def actuators_of(model: mbjax.MultibodyModel) -> list[tuple[Any, ...]]:
    """Joint, effort limit and gains of each, by joint."""
    p, names = model.parameters, names_of(model)[1]
    return sorted(
        (
            names[model.layout.joints[a.joint].v_start],
            *(float(x[a.index]) for x in (p.effort_limit, p.proportional_gain, p.derivative_gain)),
        )
        for a in model.layout.actuators
    )


def assert_same_in_drake(model: mbjax.MultibodyModel, text: str, kind: str) -> None:
    """What Drake makes of a text has the same M, bias and forces of gravity."""
    logging.getLogger("drake").setLevel(logging.ERROR)
    plant = DrakePlant(0.0)
    DrakeParser(plant).AddModelsFromString(text, kind)
    plant.mutable_gravity_field().set_gravity_vector(np.asarray(model.parameters.gravity))  # not read of a <world>
    plant.Finalize()
    q_names, v_names = names_of(model)
    of_drake = names_in_drake(plant, q_names)
    assert sorted(of_drake[0]) == sorted(q_names)
    to_q, to_v = [q_names.index(n) for n in of_drake[0]], [v_names.index(n) for n in of_drake[1]]
    q, v = random_coordinates(model, 0)
    ours, context = dynamics(model, q, v), plant.CreateDefaultContext()
    plant.SetPositions(context, q[to_q])
    plant.SetVelocities(context, v[to_v])
    assert_close(plant.CalcMassMatrix(context), ours.M[np.ix_(to_v, to_v)], BY_OTHERS, "M of Drake")
    assert_close(plant.CalcBiasTerm(context), ours.bias[to_v], BY_OTHERS, "bias of Drake")
    gravity = plant.CalcGravityGeneralizedForces(context)
    assert_close(gravity, ours.gravity[to_v], BY_OTHERS, "gravity of Drake")


def names_in_drake(plant: DrakePlant, like: list[str]) -> tuple[list[str], list[str]]:
    """Drake's names of positions and velocities, as `names_of` has them."""
    found = [plant.GetPositionNames(p) for p in (False, True)], [plant.GetVelocityNames(p) for p in (False, True)]
    has_prefix = not set(found[0][0]) & set(like)
    names = [list(pair[has_prefix]) for pair in found]
    bodies = {plant.get_body(BodyIndex(i)).name() for i in range(plant.num_bodies())}
    for kind in names:
        for i, name in enumerate(kind):
            stem, _, suffix = name.rpartition("_joint_")
            if stem in bodies:
                kind[i] = f"{stem}_{suffix}"
    return names[0], names[1]


def in_mujoco(model: mbjax.MultibodyModel, qpos: np.ndarray, qvel: np.ndarray) -> tuple[Dynamics, np.ndarray]:
    """Dynamics at a state of MuJoCo's, and T with v = T qvel."""
    q, T, at, at_q = np.zeros(model.num_positions), np.zeros((model.num_velocities, len(qvel))), 0, 0
    for joint in moving_joints(model, "test"):
        n = JOINT_KINDS[joint.kind].num_velocities
        values, block = qpos[at_q : at_q + num_qpos(joint)], np.eye(n)
        if joint.kind in ROTATED:
            block = rotation(values)
            values = roll_pitch_yaw(block)
        elif joint.kind in FREE:
            block = np.zeros((6, 6))
            block[:3, 3:], block[3:, :3] = rotation(values[3:]), np.eye(3)
            values = np.concatenate([values[3:], values[:3]])
        q[joint.q] = values
        T[joint.v, at : at + n] = block
        at, at_q = at + n, at_q + num_qpos(joint)
    return dynamics(model, q, T @ qvel), T


def assert_same_in_mujoco(
    model: mbjax.MultibodyModel,
    text: str,
    other: mbjax.MultibodyModel,
    tolerance: float = EXACT,
) -> None:
    """MuJoCo, and `other`, which mbjax read of the same text, have the same M, bias, passive forces and poses."""
    by_others = max(tolerance, BY_OTHERS)
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    full = np.zeros((m.nv, m.nv))
    for seed in range(2):
        qpos, qvel = random_qpos_qvel(m, np.random.default_rng(seed))
        (ours, T), (theirs, S) = in_mujoco(model, qpos, qvel), in_mujoco(other, qpos, qvel)
        M, force = T.T @ ours.M @ T, T.T @ (ours.bias - ours.gravity)
        d.qpos, d.qvel = qpos, qvel
        mujoco.mj_forward(m, d)
        full_mass_matrix(m, d, full)
        assert_close(full, M, by_others, "M of MuJoCo")
        assert_close(d.qfrc_bias, force, by_others, "bias of MuJoCo")
        assert_close(d.qfrc_passive, T.T @ ours.passive, BY_OTHERS, "passive forces of MuJoCo")
        assert_close(S.T @ theirs.M @ S, M, tolerance, "M")
        assert_close(S.T @ (theirs.bias - theirs.gravity), force, tolerance, "bias and gravity")
        assert_close(S.T @ theirs.passive, T.T @ ours.passive, EXACT, "passive forces")
        assert_same_poses(ours, theirs)
    lower, upper = limits_in_mujoco(other)
    mine = limits_in_mujoco(model)
    for found, expected in zip((lower, upper), mine, strict=True):
        np.testing.assert_allclose(found, expected, rtol=EXACT, atol=1e-14)
    assert actuators_of(other) == actuators_of(model)


def limits_in_mujoco(model: mbjax.MultibodyModel) -> tuple[np.ndarray, np.ndarray]:
    """Position limits of hinges and slides, in MuJoCo's order."""
    joints = [joint for joint in moving_joints(model, "test") if joint.kind not in (*ROTATED, *FREE)]
    where = np.array([k for joint in joints for k in range(joint.all_q.start, joint.all_q.stop)], int)
    p = jax.tree.map(np.asarray, model.parameters)
    return p.position_lower_limits[where], p.position_upper_limits[where]


def touching_shapes(model: mbjax.MultibodyModel) -> Counter:
    """How many pairs of shapes may touch, by bodies and kinds."""
    contact = model.layout.contact
    shapes = [(model.body_names[g.body], g.kind) for g in contact.all_geometries]
    return Counter(tuple(sorted((shapes[a], shapes[b]))) for a, b in contact.distance_pairs)
