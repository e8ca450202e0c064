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
from ..sensors import frame_motion

HOME = "home"  # the keyframe that episodes start from
SCENE = "_src/manipulation/leap_hand/xmls/scene_mjx_cube.xml"


class InHandMemory(eqx.Module):
    """The last action, and the one before, which the observation shows."""

    last_action: Float[Array, "*batch nu"]
    shown_action: Float[Array, "*batch nu"]


class InHandCube(AbstractEnvironment):
    """Turns a cube in a hand about the vertical, as fast as it can, without dropping it.

        pairs = [("*_collision*", "cube"), ("*_tip", "cube")]
        options = dict(time_step=0.01, contact_pairs=pairs, on_unsupported="warn")
        env = mbjax.environments.InHandCube(mbjax.load(mbjax.environments.leap_hand_file(), **options))

    The task is MuJoCo Playground's LeapCubeRotateZAxis, for any hand that is fixed to the world below a free body
    `cube`. Actions are offsets of the desired joint angles from those at home, up to `scale` rad, followed by the
    model's PD controllers. reward = duration of a step · (the cube's rate about z - 100 where it fell): an episode ends
    where the cube is below `lowest`. Observation: the joints' angles with uniform noise of up to `noise` rad, and, as
    in Playground, the action before the last. An episode starts at the model's keyframe "home", or where joints are by
    default: the hand's angles with a noise of 0.1 rad, the cube turned at random and moved by up to 1 cm along each
    axis.

    With `privileged` an observation is Playground's "privileged_state": what is above, and then, without noise, joint
    angles and rates, efforts that the actuators want, places of the frames `tips` in the frame `palm`, the way from the
    cube to the palm, and the cube's quaternion, angular and translational velocity. `as_brax` hands over both under
    Playground's names, for a critic that sees more than the policy.
    """

    model: MultibodyModel
    substeps: int = eqx.field(static=True, default=5)
    cube: str = eqx.field(static=True, default="cube")
    scale: float = eqx.field(static=True, default=0.6)
    noise: float = eqx.field(static=True, default=0.05)
    lowest: float = eqx.field(static=True, default=-0.05)  # m
    privileged: bool = eqx.field(static=True, default=False)
    palm: str = eqx.field(static=True, default="grasp_site")
    tips: tuple[str, ...] = eqx.field(static=True, default=("th_tip", "if_tip", "mf_tip", "rf_tip"))

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
        for frame in (self.palm, *self.tips) if self.privileged else ():
            self.model.frame(frame)

    @property
    def action_size(self) -> int:
        return self.model.num_actuators

    def start(self, key: PRNGKeyArray) -> tuple[State, InHandMemory]:
        key_hand, key_turn, key_place = jax.random.split(key, 3)
        home, dtype, (turn, place) = self.home, self.model.dtype, self.cube_rows
        nu = self.model.num_actuators
        angles = self.within(home.q[self.rows] + 0.1 * jax.random.normal(key_hand, (nu,), dtype))
        turned = jax.random.normal(key_turn, (4,), dtype)
        moved = home.q[place] + jax.random.uniform(key_place, (3,), dtype, -0.01, 0.01)
        q = home.q.at[self.rows].set(angles).at[turn].set(turned / safe_norm(turned)).at[place].set(moved)
        still = jnp.zeros(nu, dtype)
        return State(q, jnp.zeros_like(home.v), home.time), InHandMemory(still, still)

    def inputs(self, state: State, memory: InHandMemory, action: Float[Array, " actions"]) -> Inputs:
        desired = self.desired(action)
        return Inputs(desired_state=jnp.concatenate([desired, jnp.zeros_like(desired)]))

    def judge(
        self, motion: Motion, memory: InHandMemory, action: Float[Array, " actions"], key: PRNGKeyArray
    ) -> Outcome:
        rate = motion.after.v[self.cube_velocity][2]
        _, place = self.cube_rows
        fell = motion.after.q[place.start + 2] < self.lowest
        reward = motion.duration * (rate - 100.0 * fell.astype(rate.dtype))
        return Outcome(InHandMemory(action, memory.last_action), reward, fell, {"rate": rate})

    def observe(self, state: State, memory: InHandMemory, key: PRNGKeyArray) -> Float[Array, " observations"]:
        angles = state.q[self.rows]
        noise = self.noise * jax.random.uniform(key, angles.shape, angles.dtype, -1.0, 1.0)
        seen = jnp.concatenate([angles + noise, memory.shown_action])
        return jnp.concatenate([seen, self.unseen(state, memory)]) if self.privileged else seen

    def unseen(self, state: State, memory: InHandMemory) -> Float[Array, " unseen"]:
        """What the privileged state has after the state."""
        model, rows, (turn, place) = self.model, self.rows, self.cube_rows
        of_v = np.array([model.joint(actuator.joint).v.start for actuator in model.layout.actuators])
        angles, rates = state.q[rows], state.v[of_v]
        frames = frame_motion(model, state, (self.palm, *self.tips))
        tips = (frames.origin[1:] - frames.origin[0]) @ frames.rotation[0]
        gains = model.parameters.proportional_gain, model.parameters.derivative_gain
        effort = gains[0] * (self.desired(memory.last_action) - angles) - gains[1] * rates
        to_palm = frames.origin[0] - state.q[place]
        return jnp.concatenate(
            [angles, rates, effort, tips.reshape(-1), to_palm, state.q[turn], state.v[self.cube_velocity]]
        )

    @property
    def observation_groups(self) -> dict[str, int] | None:
        seen = 2 * self.action_size
        return {"state": seen, "privileged_state": self.observation_size} if self.privileged else None

    def desired(self, action: Float[Array, " actions"]) -> Float[Array, " nu"]:
        """The joint angles that an action asks for, in rad."""
        return self.within(self.home.q[self.rows] + self.scale * action)

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

    @property
    def cube_velocity(self) -> slice:
        """Places of the cube's angular and translational velocity in v."""
        start = self.model.body(self.cube).floating_velocities_start_in_v
        return slice(start, start + 6)

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
