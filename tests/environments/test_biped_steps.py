"""A biped steps from foot to foot: its gait in open loop by the robot's own kinematics, and who counts as a biped."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.environments import QuadrupedVelocity

HEIGHT = 0.6  # m, of the pelvis over the soles, with straight legs
AXES = (
    ("yaw", "0 0 1"),
    ("roll", "1 0 0"),
    ("pitch", "0 1 0"),
    ("knee", "0 1 0"),
    ("ankle", "0 1 0"),
    ("tilt", "1 0 0"),
)


def leg(name: str, y: float, sole: str) -> str:
    """Six joints: three at the hip, a knee 0.3 m below it, and two at the ankle 0.25 m below that."""
    joints = {part: f'<joint name="{name}_{part}" axis="{axis}"/>' for part, axis in AXES}
    mass = '<geom type="sphere" size="0.03" mass="{}" contype="0" conaffinity="0"/>'
    return (
        f'<body name="{name}_thigh" pos="0 {y} 0">{joints["yaw"]}{joints["roll"]}{joints["pitch"]}{mass.format(2)}'
        f'<body name="{name}_shank" pos="0 0 -0.3">{joints["knee"]}{mass.format(1)}'
        f'<body name="{name}_foot" pos="0 0 -0.25">{joints["ankle"]}{joints["tilt"]}{sole.format(name)}'
        "</body></body></body>"
    )


def biped(soles: tuple[str, str]) -> mbjax.MultibodyModel:
    legs = leg("left", 0.1, soles[0]) + leg("right", -0.1, soles[1])
    names = [f"{side}_{part}" for side in ("left", "right") for part, _ in AXES]
    motors = "".join(f'<position joint="{name}" kp="200" kv="5"/>' for name in names)
    bent = "0 0 -0.3 0.6 -0.3 0"
    text = f"""<mujoco><compiler angle="radian"/><worldbody><geom name="floor" type="plane" size="0 0 1"/>
      <body name="pelvis" pos="0 0 {HEIGHT}"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="10" contype="0"
        conaffinity="0"/>{legs}</body></worldbody><actuator>{motors}</actuator>
      <keyframe><key name="bent" qpos="0 0 1 1 0 0 0 {bent} {bent}"/></keyframe></mujoco>"""
    return mbjax.load(text, time_step=0.01, contact_pairs=[("*_sole", "floor")])


BOX = '<geom name="{}_sole" type="box" size="0.09 0.04 0.01" pos="0.03 0 -0.04" mass="0.5"/>'
SPHERE = '<geom name="{}_sole" type="sphere" size="0.02" mass="0.5"/>'


@functools.cache
def environment() -> QuadrupedVelocity:
    return QuadrupedVelocity(biped((BOX, BOX)), keyframe="bent")


@functools.cache
def soles_at() -> callable:
    """Poses of the feet in the pelvis's frame by q, compiled once: rotations, and centres of the soles."""

    @jax.jit
    def places(q: jax.Array) -> tuple[jax.Array, jax.Array]:
        poses = mbjax.body_poses_in_world(environment().model, q)
        pelvis, *feet = (environment().model.body_index(name) for name in ("pelvis", "left_foot", "right_foot"))
        rotations = poses.rotation[pelvis].T @ poses.rotation[jnp.array(feet)]
        centers = poses.translation[jnp.array(feet)] + poses.rotation[jnp.array(feet)] @ jnp.array([0.03, 0.0, -0.04])
        return rotations, (centers - poses.translation[pelvis]) @ poses.rotation[pelvis]

    return places


def test_home_has_both_soles_flat_on_the_ground() -> None:
    env = environment()
    rotations, centers = soles_at()(env.home)
    np.testing.assert_allclose(rotations, np.broadcast_to(np.eye(3), (2, 3, 3)), atol=1e-12)
    np.testing.assert_allclose(centers[:, 2] + env.home[6], 0.01, atol=1e-12)
    np.testing.assert_allclose(centers, env.trot.feet, atol=1e-12)


def test_legs_move_the_soles_as_the_gait_says_and_keep_them_flat() -> None:
    """To first order: joint angles for a thousandth of the displacements, by the robot's own kinematics."""
    env, command = environment(), jnp.array([0.4, -0.2, 0.5])
    before = soles_at()(env.home)
    for phase in (0.1, 0.35, 0.8):
        wanted = env.trot.displacements(jnp.float64(phase), command)
        rotations, centers = soles_at()(
            env.home.at[env.rows[0]].add(0.001 * env.trot.angles(jnp.float64(phase), command))
        )
        np.testing.assert_allclose(centers - before[1], 0.001 * wanted, atol=2e-7)
        np.testing.assert_allclose(rotations, before[0], atol=2e-6)


def test_feet_swing_in_turn_and_the_pelvis_is_over_the_other() -> None:
    env, still = environment(), jnp.zeros(3)
    for phase, swinging in ((0.25, 0), (0.75, 1)):
        moved = np.asarray(env.trot.displacements(jnp.float64(phase), still))
        assert moved[swinging, 2] == pytest.approx(env.trot.lift)
        assert moved[1 - swinging, 2] == 0.0
        np.testing.assert_allclose(moved[:, 1], (1 - 2 * swinging) * env.trot.sway, atol=1e-12)
    ends = [env.trot.displacements(jnp.float64(phase), jnp.array([0.4, -0.2, 0.5])) for phase in (1.0 - 1e-9, 0.0)]
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-7)


def test_two_spheres_or_one_box_are_no_biped() -> None:
    for soles in ((SPHERE, SPHERE), (BOX, SPHERE)):
        with pytest.raises(mbjax.ModelError, match="found 2: left_sole, right_sole"):
            QuadrupedVelocity(biped(soles), keyframe="bent")
