"""What dragging a body does: inverse kinematics of a pose, or a spring that pulls at a simulated body."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from mbjax.kinematics import body_poses_in_world, body_spatial_velocities_in_world
from mbjax.model import MultibodyModel
from mbjax.reaching import inverse_kinematics
from mbjax.simulation import AppliedSpatialForces, Inputs, State, step

ITERATIONS = 20  # of one movement of the mouse
STIFFNESS_PER_MASS = 100.0  # 1/s²: the spring moves the whole robot at 10 rad/s


class Grip(NamedTuple):
    """A hold on a body: its index, the point p_BoBq_B that is held, and the place p_WT where it should be."""

    body: Int[Array, ""]
    point: Float[Array, " 3"]
    target: Float[Array, " 3"]


@eqx.filter_jit
def grip_at(model: MultibodyModel, q: Float[Array, " nq"], body: Any, place: Any) -> Grip:
    """A hold on a body at the point of it that is at `place` in the world."""
    X_WB = body_poses_in_world(model, q)
    p_WT = jnp.asarray(place, q.dtype)
    return Grip(jnp.asarray(body, jnp.int32), X_WB.rotation[body].T @ (p_WT - X_WB.translation[body]), p_WT)


class HeldPoint(eqx.Module):
    """Goal of inverse kinematics: the held point is where it should be; one program serves all bodies."""

    grip: Grip

    def __call__(self, model: MultibodyModel, state: State) -> Float[Array, " 3"]:
        X_WB = body_poses_in_world(model, state.q)
        R_WB, p_WB = X_WB.rotation[self.grip.body], X_WB.translation[self.grip.body]
        return p_WB + R_WB @ self.grip.point - self.grip.target


def reach(model: MultibodyModel, q: Float[Array, " nq"], grip: Grip) -> Float[Array, " nq"]:
    """Positions within limits that bring the held point close to its target, next to q; closed loops stay closed."""
    if model.num_velocities == 0:
        return q
    found = inverse_kinematics(
        model, {"grip": HeldPoint(grip)}, q, local=True, tolerance=1e-5, max_iterations=ITERATIONS
    )
    return found.q


@eqx.filter_jit
def steps_under_grip(
    model: MultibodyModel, state: State, inputs: Any, grip: Grip, stiffness: Float[Array, ""], count: Int[Array, ""]
) -> State:
    """The state `count` steps later, under the inputs and a damped spring from the held point to its target."""

    def one(_: Any, state: State) -> State:
        given = as_ports(inputs(state) if callable(inputs) else inputs)
        return step(model, state, with_spring(model, state, given, grip, stiffness))[0]

    return jax.lax.fori_loop(0, count, one, state)


def as_ports(inputs: Any) -> Inputs:
    """Inputs from what `step` takes: None, `Inputs`, or a bare array of efforts."""
    if isinstance(inputs, Inputs):
        return inputs
    return Inputs() if inputs is None else Inputs(actuation=inputs)


def with_spring(model: MultibodyModel, state: State, inputs: Inputs, grip: Grip, stiffness: Float[Array, ""]) -> Inputs:
    """The inputs with the spring's force added; a stiffness of zero adds none."""
    X_WB = body_poses_in_world(model, state.q)
    V_WB_W = body_spatial_velocities_in_world(model, state.q, state.v)[grip.body]
    p_BoBq_W = X_WB.rotation[grip.body] @ grip.point
    stretch = grip.target - X_WB.translation[grip.body] - p_BoBq_W
    v_WBq_W = V_WB_W[3:] + jnp.cross(V_WB_W[:3], p_BoBq_W)
    damping = stiffness / jnp.sqrt(jnp.asarray(STIFFNESS_PER_MASS, stiffness.dtype))
    force = stiffness * stretch - damping * v_WBq_W
    at_origin = jnp.concatenate([jnp.cross(p_BoBq_W, force), force])
    bodies = tuple(range(1, model.num_bodies))
    F_Bq_W = jnp.zeros((model.num_bodies, 6), model.dtype).at[grip.body].set(at_origin.astype(model.dtype))[1:]
    points = jnp.zeros((model.num_bodies - 1, 3), model.dtype)
    given = inputs.applied_spatial_forces
    if given is not None:
        bodies = (*given.bodies, *bodies)
        F_Bq_W = jnp.concatenate([jnp.asarray(given.F_Bq_W, model.dtype), F_Bq_W])
        points = jnp.concatenate([jnp.asarray(given.p_BoBq_B, model.dtype), points])
    return eqx.tree_at(
        lambda each: each.applied_spatial_forces,
        inputs,
        AppliedSpatialForces(bodies, F_Bq_W, points),
        is_leaf=lambda x: x is None,
    )
