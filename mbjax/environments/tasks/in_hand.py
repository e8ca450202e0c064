"""A hand that turns a cube without dropping it."""

import importlib.util
import pathlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mbjax.errors import MissingPackageError, ModelError
from mbjax.model import MultibodyModel
from mbjax.number_rules import is_known
from mbjax.optional_packages import how_to_install
from mbjax.simulation import Inputs, State, default_state, keyframe_state
from mbjax.spatial import safe_norm

from ..environment import AbstractEnvironment, Motion, Outcome, require_contact, require_discrete_model

HOME = "home"  # the keyframe that episodes start from
SCENE = "_src/manipulation/leap_hand/xmls/scene_mjx_cube.xml"


class InHandCube(AbstractEnvironment):
    """Turns a cube in a hand about the vertical, as fast as it can, without dropping it.

        options = dict(time_step=0.01, contact_pairs=[("*", "cube")], on_unsupported="warn")
        env = mbjax.environments.InHandCube(mbjax.load(mbjax.environments.leap_hand_file(), **options))

    The task is MuJoCo Playground's LeapCubeRotateZAxis, for any hand that is fixed to the world below a free body
    `cube`. Actions are offsets of the desired joint angles from those at home, up to `scale` rad, followed by the
    model's PD controllers. reward = duration of a step · (the cube's rate about z - 100 where it fell): an episode ends
    where the cube is below `lowest`. Observation: the joints' angles with uniform noise of up to `noise` rad, and the
    last action. An episode starts at the model's keyframe "home", or where joints are by default: the hand's angles
    with a noise of 0.1 rad, the cube turned at random and moved by up to 1 cm along each axis.
    """

    model: MultibodyModel
    substeps: int = eqx.field(static=True, default=5)
    cube: str = eqx.field(static=True, default="cube")
    scale: float = eqx.field(static=True, default=0.6)
    noise: float = eqx.field(static=True, default=0.05)
    lowest: float = eqx.field(static=True, default=-0.05)  # m

    def __check_init__(self) -> None:
        require_discrete_model("InHandCube", self.model)
        require_contact("InHandCube", self.model)
        if not self.model.body(self.cube).is_floating:
            raise ModelError(f"InHandCube: body '{self.cube}' must move freely; give it a free joint.")
        if not self.model.num_actuators:
            raise ModelError("InHandCube: no joint of the hand has an actuator; load it with actuators='joints'.")
        gains = self.model.parameters.proportional_gain
        if is_known(gains) and not np.all(gains):
            raise ModelError(
                "InHandCube: the actuators need gains, as actions are desired angles; for example "
                "mbjax.set_controller_gains(model, 3.0, 0.1)."
            )

    @property
    def action_size(self) -> int:
        return self.model.num_actuators

    def start(self, key: PRNGKeyArray) -> tuple[State, Array]:
        key_hand, key_turn, key_place = jax.random.split(key, 3)
        home, dtype, (turn, place) = self.home, self.model.dtype, self.cube_rows
        nu = self.model.num_actuators
        angles = self.within(home.q[self.rows] + 0.1 * jax.random.normal(key_hand, (nu,), dtype))
        turned = jax.random.normal(key_turn, (4,), dtype)
        moved = home.q[place] + jax.random.uniform(key_place, (3,), dtype, -0.01, 0.01)
        q = home.q.at[self.rows].set(angles).at[turn].set(turned / safe_norm(turned)).at[place].set(moved)
        return State(q, jnp.zeros_like(home.v), home.time), jnp.zeros(nu, dtype)

    def inputs(self, state: State, memory: Array, action: Float[Array, " actions"]) -> Inputs:
        desired = self.within(self.home.q[self.rows] + self.scale * action)
        return Inputs(desired_state=jnp.concatenate([desired, jnp.zeros_like(desired)]))

    def judge(self, motion: Motion, memory: Array, action: Float[Array, " actions"], key: PRNGKeyArray) -> Outcome:
        rate = motion.after.v[self.model.body(self.cube).floating_velocities_start_in_v + 2]
        _, place = self.cube_rows
        fell = motion.after.q[place.start + 2] < self.lowest
        reward = motion.duration * (rate - 100.0 * fell.astype(rate.dtype))
        return Outcome(action, reward, fell, {"rate": rate})

    def observe(self, state: State, memory: Array, key: PRNGKeyArray) -> Float[Array, " observations"]:
        angles = state.q[self.rows]
        noise = self.noise * jax.random.uniform(key, angles.shape, angles.dtype, -1.0, 1.0)
        return jnp.concatenate([angles + noise, memory])

    @property
    def home(self) -> State:
        """Where episodes start, but for noise."""
        known = HOME in self.model.keyframe_names
        return keyframe_state(self.model, HOME) if known else default_state(self.model)

    @property
    def rows(self) -> np.ndarray:
        """Places of the actuated joints in q, in the order of actuators."""
        return np.array([self.model.joint(actuator.joint).q.start for actuator in self.model.layout.actuators])

    @property
    def cube_rows(self) -> tuple[slice, slice]:
        """Places of the cube's quaternion and translation in q."""
        start = self.model.body(self.cube).floating_positions_start
        return slice(start, start + 4), slice(start + 4, start + 7)

    def within(self, angles: Float[Array, " nu"]) -> Float[Array, " nu"]:
        """The angles within the joints' limits."""
        low, high = self.model.position_lower_limits, self.model.position_upper_limits
        return jnp.clip(angles, low[self.rows], high[self.rows])


def leap_hand_file() -> pathlib.Path:
    """The LEAP hand with a cube, as MuJoCo Playground's wheel has it; raises `MissingPackageError` without one.

    The shapes that touch are all there; the meshes that are only drawn are not in the wheel, hence
    `on_unsupported="warn"`.
    """
    package = "mujoco_playground"
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise MissingPackageError(
            f"leap_hand_file: the file is MuJoCo Playground's: {how_to_install('playground', None)}. A hand of your "
            "own needs a free body 'cube' and actuators with gains."
        )
    return pathlib.Path(found.origin).parent / SCENE
