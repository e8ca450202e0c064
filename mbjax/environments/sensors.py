"""Sensors: joint encoders with noise and delay, inertial units, contact sensors; pure functions of a world.

A task keeps a sensor's memory in its own: `start` makes it, `update` takes a true value in, `read` adds noise to the
value of some steps ago.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel
from mbjax.simulation import Outputs, State


class Sensor(eqx.Module):
    """Noise and delay of a measured array: what is read was so `delay` steps of the environment ago.

    `noise` is a standard deviation, one number or one for each that is measured. `bias` is added too.
    """

    noise: Any = 0.0
    bias: Any = 0.0
    delay: int = eqx.field(static=True, default=0)

    def __check_init__(self) -> None:
        if not isinstance(self.delay, int) or self.delay < 0:
            raise ModelError(f"Sensor: delay must be a whole number of steps >= 0, got {self.delay!r}.")

    def start(self, value: Float[Array, " k"]) -> Float[Array, "delay+1 k"]:
        """The memory at the start of an episode: the value has been so before."""
        return jnp.broadcast_to(value, (self.delay + 1, *value.shape))

    def update(self, memory: Float[Array, "delay+1 k"], value: Float[Array, " k"]) -> Float[Array, "delay+1 k"]:
        """The memory after a step that led to this value."""
        return jnp.concatenate([memory[1:], value[None]]) if self.delay else value[None]

    def read(self, memory: Float[Array, "delay+1 k"], key: PRNGKeyArray) -> Float[Array, " k"]:
        """The measured value: late, with bias and noise."""
        value = memory[0] + jnp.asarray(self.bias, memory.dtype)
        if isinstance(self.noise, float) and self.noise == 0.0:
            return value
        return value + jnp.asarray(self.noise, value.dtype) * jax.random.normal(key, value.shape, value.dtype)


def joint_encoders(model: MultibodyModel, state: State, joints: Sequence[str]) -> Float[Array, " k"]:
    """Positions, then velocities, of these joints."""
    q = np.concatenate([np.arange(*model.joint(name).q.indices(model.num_positions)) for name in joints])
    v = np.concatenate([np.arange(*model.joint(name).v.indices(model.num_velocities)) for name in joints])
    return jnp.concatenate([state.q[q], state.v[v]])


def inertial_unit(model: MultibodyModel, outputs: Outputs, body: str) -> Float[Array, "6"]:
    """Angular velocity in rad/s, then specific force in m/s², at a body's origin and in its frame.

    At rest the specific force is that which carries the body: 9.81 m/s² upward. The acceleration is that of the step.
    """
    index = model.body_index(body)
    R_BW = outputs.body_poses.rotation[index].T
    omega = outputs.body_spatial_velocities[index, :3]
    return jnp.concatenate(
        [R_BW @ omega, R_BW @ (outputs.body_spatial_accelerations[index, 3:] - model.parameters.gravity)]
    )


def contact_forces(model: MultibodyModel, outputs: Outputs, bodies: Sequence[str]) -> Float[Array, " k"]:
    """Normal forces in N on each of these bodies: the sum over its contacts."""
    found = outputs.contact_results
    if found is None:
        raise ModelError(
            "contact_forces: in this model nothing may touch; load it with ground= or contact_pairs=, or register "
            "collision geometry."
        )
    for body in bodies:
        model.body_index(body)  # raises with near matches
    names = found.names(model)
    touches = np.array([[body in (name[0], name[2]) for name in names] for body in bodies], float)
    along_normal = jnp.abs(jnp.sum(found.force * found.normal, axis=-1))
    return jnp.asarray(touches, along_normal.dtype) @ along_normal
