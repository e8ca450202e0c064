"""Fixed poses of frames and welded bodies in their mobilized body, and its inertia, computed from the model's leaves.

Each mobilized body has one frame M for the computation, the joint's frame on it. For the world, M is W.
"""

import itertools

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array

from mbjax.execution.arrays import dot_with_mask, take
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import quaternion_to_matrix, safe_normalize

from .placement_records import BodyPlacement, MobodInertia
from .with_placement import placement_of


def bodies_with_gravity(model: MultibodyModel) -> np.ndarray:
    """(nb,) mask of the bodies that feel gravity; the world does not."""
    enabled = np.array(model.layout.gravity_enabled)[np.array(model.layout.body_instances, dtype=int)]
    enabled[0] = False
    return enabled


def all_feel_gravity(model: MultibodyModel) -> bool:
    """Whether all bodies but the world feel gravity."""
    return bool(bodies_with_gravity(model)[1:].all())


def calc_body_placement(model: MultibodyModel) -> BodyPlacement:
    """Places frames in bodies along chains of offset frames, then bodies in mobods along chains of welds."""
    placement = placement_of(model)
    if placement is not None:
        return placement.bodies
    topology = model.topology
    R_BF, p_BF = place_frames(model)
    R_MB, p_MB = place_bodies(model, R_BF, p_BF)
    frame_bodies = np.array(topology.frame_bodies)
    inboard = np.maximum(np.array(topology.mobod_inboard_frames), 0)
    R_MF, p_MF = compose_components(
        take(R_MB, frame_bodies[inboard], 2),
        take(p_MB, frame_bodies[inboard], 1),
        take(R_BF, inboard, 2),
        take(p_BF, inboard, 1),
    )
    axis, pitch = spread_axes(model)
    return BodyPlacement(R_BF, p_BF, R_MB, p_MB, R_MF, p_MF, axis, pitch)


def compose_components(R_AB: Array, p_AB: Array, R_BC: Array, p_BC: Array) -> tuple[Array, Array]:
    """Composes poses: X_AC = X_AB X_BC."""
    return ca.matmul(R_AB, R_BC), p_AB + ca.matvec(R_AB, p_BC)


def invert(R_AB: Array, p_AB: Array) -> tuple[Array, Array]:
    """Inverts poses: X_BA of X_AB."""
    return jnp.swapaxes(R_AB, 0, 1), -ca.transposed_matvec(R_AB, p_AB)


def by_level(levels: tuple[int, ...]) -> list[np.ndarray]:
    """Indices of the elements at each level, level 0 first."""
    array = np.array(levels, dtype=int)
    return [np.flatnonzero(array == level) for level in range(array.max(initial=0) + 1)]


def identity_poses(count: int, dtype: DTypeLike, worlds: int) -> tuple[Array, Array]:
    """`count` identity poses, as constants: XLA then folds what they are composed with."""
    ones = (1,) * worlds
    identity = np.eye(3).reshape(3, 3, 1, *ones)
    return jnp.asarray(np.repeat(identity, count, 2), dtype), jnp.zeros((3, count, *ones), dtype)


def in_order(parts: list[Array], indices: list[np.ndarray], axis: int) -> Array:
    """Concatenates parts and sorts their columns by `indices`."""
    return take(ca.concatenate(parts, axis), np.argsort(np.concatenate(indices)), axis)


def place_frames(model: MultibodyModel) -> tuple[Array, Array]:
    """Pose X_BF of every frame in its body: the identity for a body's own frame, else chained level by level."""
    topology, parameters = model.topology, model.parameters
    levels = by_level(topology.frame_levels)
    slot = {frame: i for i, frame in enumerate(model.layout.offset_frames)}
    R, p = identity_poses(len(levels[0]), model.dtype, model.num_world_axes)
    R_parts, p_parts = [R], [p]
    for previous, frames in itertools.pairwise(levels):
        rows = np.array([slot[f] for f in frames])
        R_PF = ca.over_columns(quaternion_to_matrix, jnp.swapaxes(take(parameters.frame_quaternion, rows, 0), 0, 1))
        p_PF = jnp.swapaxes(take(parameters.frame_translation, rows, 0), 0, 1)
        parents = np.searchsorted(previous, [topology.frame_parents[f] for f in frames])
        R, p = compose_components(take(R_parts[-1], parents, 2), take(p_parts[-1], parents, 1), R_PF, p_PF)
        R_parts.append(R)
        p_parts.append(p)
    return in_order(R_parts, levels, 2), in_order(p_parts, levels, 1)


def place_bodies(model: MultibodyModel, R_BF: Array, p_BF: Array) -> tuple[Array, Array]:
    """Pose X_MB of every body in its mobod: X_BM inverted for the mobod's inboard body, then weld by weld outward."""
    topology = model.topology
    levels = by_level(topology.body_weld_levels)
    outboard = np.maximum(np.array(topology.body_outboard_frames), 0)  # the world's own frame stands in for it
    inboard = np.array(topology.body_inboard_frames)
    R, p = invert(take(R_BF, outboard[levels[0]], 2), take(p_BF, outboard[levels[0]], 1))
    R_parts, p_parts = [R], [p]
    for previous, bodies in itertools.pairwise(levels):
        F, M = inboard[bodies], outboard[bodies]
        parents = np.searchsorted(previous, [topology.frame_bodies[f] for f in F])
        X_MP = take(R_parts[-1], parents, 2), take(p_parts[-1], parents, 1)
        X_MF = compose_components(*X_MP, take(R_BF, F, 2), take(p_BF, F, 1))
        R, p = compose_components(*X_MF, *invert(take(R_BF, M, 2), take(p_BF, M, 1)))
        R_parts.append(R)
        p_parts.append(p)
    return in_order(R_parts, levels, 2), in_order(p_parts, levels, 1)


def spread_axes(model: MultibodyModel) -> tuple[Array, Array]:
    """Unit axes and pitches of joints, spread from the order of joints to that of mobods; zero where there is none."""
    layout, parameters, n = model.layout, model.parameters, model.topology.num_mobods
    axis_mask = np.zeros((len(layout.axis_joints), n))
    pitch_mask = np.zeros((len(layout.screw_joints), n))
    for row, joint in enumerate(layout.axis_joints):
        axis_mask[row, layout.joints[joint].mobod] = 1.0
    for row, joint in enumerate(layout.screw_joints):
        pitch_mask[row, layout.joints[joint].mobod] = 1.0
    axis = dot_with_mask(safe_normalize(jnp.swapaxes(parameters.joint_axis, 0, 1), axis=0), axis_mask, 1)
    return axis, dot_with_mask(parameters.screw_pitch, pitch_mask, 0)


def calc_inertia_in_mobod(
    model: MultibodyModel, placement: BodyPlacement, counted: np.ndarray | None = None
) -> MobodInertia:
    """Inertia of each mobod about Mo, in M: the sum over its welded bodies.

    The mask `counted` (nb,) selects bodies; None counts all.
    """
    parameters, worlds = model.parameters, model.num_world_axes
    mass, com, unit_inertia = (
        jnp.swapaxes(jnp.concatenate([jnp.zeros((1, *x.shape[1:]), x.dtype), x]), 0, x.ndim - 1 - worlds)
        for x in (parameters.body_mass, parameters.body_com, parameters.body_unit_inertia)  # the world has none
    )
    R, p = placement.R_MB, placement.p_MB
    p_BoBcm_M = ca.matvec(R, com)
    G_BBo_M = ca.re_express_symmetric(R, ca.symmetric_matrix(unit_inertia))
    # About Mo: G_Mo = G_Bo + [p]²-terms with p = p_MoBo and c = p_BoBcm (parallel axis through the centre).
    shifted = ca.point_mass_inertia(p) + 2.0 * ca.symmetric_product_inertia(p, p_BoBcm_M)
    G_BMo_M = G_BBo_M + ca.symmetric_matrix(shifted)
    G_BMo_M = G_BMo_M.reshape(9, *G_BMo_M.shape[2:])
    per_body = ca.concatenate([mass[None], ca.scale(p + p_BoBcm_M, mass), ca.scale(G_BMo_M, mass)], 0)
    membership = model.topology.body_membership
    if counted is not None:
        membership = membership & counted[:, None]
    summed = dot_with_mask(per_body, membership, 1)
    return MobodInertia(summed[0], summed[1:4], summed[4:].reshape(3, 3, *summed.shape[1:]))
