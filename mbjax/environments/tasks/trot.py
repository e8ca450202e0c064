"""A gait in open loop: desired joint angles that swing legs in diagonal pairs, or a biped's one after the other."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.geometry import Box, Sphere
from mbjax.kinematics import body_pose_in_world, body_poses_in_world, jacobian_spatial_velocity
from mbjax.linear_algebra import pseudo_inverse
from mbjax.model import MultibodyModel
from mbjax.simulation import default_state, keyframe_state

BIPED = {"period": 0.6, "lift": 0.07, "sway": 0.03}  # s, m, m: of the humanoid G1, which falls by it without a policy
STANDING = {"abduction": 0.0, "flexion": 0.6, "knee": -1.2}  # rad, by parts of names of the bundled quadruped's joints


class OpenLoopTrot(eqx.Module):
    """Offsets of joint angles from standing, as functions of the phase and of a commanded velocity.

    Feet move about their places below the trunk: in the first half of the period one diagonal pair swings, raised by up
    to `lift`, while the other pushes the ground back at `share` of the commanded velocity; then they change. With
    `share` 0 the robot trots in place. A biped's feet are its pairs; its trunk moves by up to `sway` to the side of the
    foot that stands. Joint angles follow from displacements of feet by the inverse of their Jacobian at standing, by
    which soles keep their attitude.
    """

    feet: Float[Array, "feet 3"]  # from the trunk's origin to each foot's centre at standing, in its frame, in m
    angles_by_feet: Float[Array, "joints 3*feet"]  # rad/m
    period: float = eqx.field(static=True, default=0.5)  # s
    lift: float = eqx.field(static=True, default=0.07)  # m
    share: float = eqx.field(static=True, default=1.0)
    sway: float = eqx.field(static=True, default=0.0)  # m

    def displacements(self, phase: Float[Array, ""], command: Float[Array, "3"]) -> Float[Array, "feet 3"]:
        """Displacements of the feet from standing in the trunk's frame, in m; the phase counts periods."""
        phase_of_foot = jnp.mod(phase + self.delays, 1.0)
        swings = phase_of_foot < 0.5
        part = 2.0 * jnp.mod(phase_of_foot, 0.5)  # of this half of the period
        way = jnp.where(swings, -jnp.cos(jnp.pi * part), 1.0 - 2.0 * part)  # from behind to the front, and back
        raised = self.lift * jnp.where(swings, jnp.sin(jnp.pi * part) ** 2, 0.0)
        x, y = self.feet[:, 0], self.feet[:, 1]
        velocity = jnp.stack([command[0] - command[2] * y, command[1] + command[2] * x], axis=1)
        steps = (0.25 * self.period * self.share) * way[:, None] * velocity
        aside = jnp.stack([jnp.zeros_like(phase), self.sway * jnp.sin(2.0 * jnp.pi * phase)])
        return jnp.concatenate([steps + aside, raised[:, None]], axis=1)

    def angles(self, phase: Float[Array, ""], command: Float[Array, "3"]) -> Float[Array, " joints"]:
        """Offsets of the joint angles from standing, in rad."""
        return self.angles_by_feet @ self.displacements(phase, command).reshape(-1)

    @property
    def delays(self) -> Float[Array, " feet"]:
        """Phase by which each foot is ahead: 0 for one diagonal pair, or for the left foot, 1/2 for the other."""
        side = self.feet[:, 1] if len(self.feet) == 2 else self.feet[:, 0] * self.feet[:, 1]
        return jnp.where(side > 0.0, 0.0, 0.5).astype(self.feet.dtype)


def standing_on_ground(model: MultibodyModel, joints: np.ndarray, keyframe: str) -> Float[Array, " nq"]:
    """The robot with its lowest foot on the ground, as in a keyframe of this name.

    Without such a keyframe joints with these places in q are bent if they are known by name.
    """
    is_shown = keyframe in model.keyframe_names
    names = {joint.q_start: joint.name for joint in model.layout.joints if joint.mobod >= 0}
    angles = {place: angle for place in joints for part, angle in STANDING.items() if part in names[place]}
    feet = feet_of(model)

    @jax.jit
    def standing(model: MultibodyModel) -> Float[Array, " nq"]:
        q = keyframe_state(model, keyframe).q if is_shown else default_state(model).q
        if angles and not is_shown:
            q = q.at[np.array(list(angles))].set(jnp.array(list(angles.values()), q.dtype))
        poses = body_poses_in_world(model, q)
        heights = [
            poses.translation[b, 2] + poses.rotation[b, 2] @ jnp.array(p, q.dtype) - low for b, p, low, _ in feet
        ]
        return q.at[6].add(-jnp.min(jnp.stack(heights)))

    return standing(model)


def trot_of(model: MultibodyModel, home: Float[Array, " nq"], joints: np.ndarray) -> OpenLoopTrot:
    """The trot of a robot that stands at `home`; `joints` are the places in v of the joints that it moves."""
    feet = feet_of(model)
    trunk = model.layout.bodies[model.floating_base_bodies()[0]]

    @jax.jit
    def numbers(model: MultibodyModel, q: Float[Array, " nq"]) -> tuple[Array, Array]:
        X_BW, centers, rows, moved = body_pose_in_world(model, q, trunk.index).inverse(), [], [], []
        for body, p_BoFo_B, _, is_sole in feet:
            point, frame = jnp.array(p_BoFo_B, q.dtype), model.layout.bodies[body].body_frame
            centers.append(X_BW @ (body_pose_in_world(model, q, body) @ point))
            J_foot = jacobian_spatial_velocity(model, q, frame, point, trunk.body_frame, trunk.body_frame)[:, joints]
            rows.append(J_foot if is_sole else J_foot[3:])
            moved += [False] * (3 * is_sole) + [True] * 3
        J = jnp.concatenate(rows)
        inverse = pseudo_inverse(J, rtol=max(J.shape) * float(jnp.finfo(J.dtype).eps))
        return jnp.stack(centers), inverse[:, np.array(moved)]

    return OpenLoopTrot(*numbers(model, home), **(BIPED if len(feet) == 2 else {}))


class Foot(NamedTuple):
    """A shape that stands on the world, its centre in the frame of its body, and how high that is above the ground."""

    body: int
    center: tuple[float, float, float]  # m
    below: float  # m
    is_sole: bool


def feet_of(model: MultibodyModel) -> list[Foot]:
    """Spheres that may touch the world, or boxes, whose frames have the soles' normals as z axes."""
    records, found = model.layout.contact.geometries, {}
    for pair in model.layout.contact.pairs:
        bodies = [records[i].body for i in pair]
        for i, other in zip(pair, reversed(bodies), strict=True):
            shape = next(g for g in model.layout.collision[records[i].body] if g.name == records[i].name)
            if other == 0 and records[i].body != 0 and isinstance(shape.shape, Sphere | Box):
                is_sole = isinstance(shape.shape, Box)
                below = 0.5 * shape.shape.size[2] if isinstance(shape.shape, Box) else shape.shape.radius
                found[i] = Foot(records[i].body, shape.translation, float(below), is_sole)
    soles = [foot.is_sole for foot in found.values()]
    if len(found) != (2 if all(soles) else 4) or len(set(soles)) > 1:
        names = ", ".join(records[i].name for i in found) or "none"
        raise ModelError(
            "QuadrupedVelocity: four spheres must be able to touch the ground, as feet, or two boxes, as soles; found "
            f"{len(found)}: {names}. Name them on loading, for example contact_pairs=[('*foot*', 'ground')]."
        )
    return [found[i] for i in sorted(found)]
