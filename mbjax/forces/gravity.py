"""Uniform gravity on the bodies of the model instances where it is enabled."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.execution.derivative_rules import add_tangents, fit_tangent
from mbjax.kinematics import (
    BodyPlacement,
    PositionKinematics,
    all_feel_gravity,
    bodies_with_gravity,
    calc_body_poses,
    calc_inertia_in_mobod,
    calc_poses_of_bodies,
    for_worlds_of,
    motions_within_tree,
    placement_of,
)
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca


@eqx.filter_custom_jvp
def calc_gravity_on_mobods(model: MultibodyModel, position: PositionKinematics) -> Float[Array, "6 nm"]:
    """Weight of each mobod about its tree's origin T, in W: f = m g, t = p_TMcm x f.

    The derivative is in closed form: dt = m dp_TMcm x g where mobods move rigidly, plus what changes with masses and
    gravity. The rule reads only the displacement and the placement of the tangent of `position`.
    """
    return calc_weights(model, position)


@calc_gravity_on_mobods.def_jvp
def _calc_gravity_on_mobods_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    model, position = primals
    dmodel, dposition = tangents
    F_T = calc_gravity_on_mobods(model, position)
    change = None
    if jax.tree.leaves(dmodel):

        def at_rest(model: MultibodyModel, placement: BodyPlacement) -> Array:
            return calc_weights(model, dataclasses.replace(position, placement=placement))

        _, change = eqx.filter_jvp(at_rest, (model, position.placement), (dmodel, dposition.placement))
    if dposition.displacement is not None:
        moment_W, mass = calc_masses_with_gravity(model, position)
        w, dp_TM = motions_within_tree(model.topology, position, dposition.displacement)
        moved = ca.cross(w, moment_W) + ca.scale(dp_TM, mass)
        turned = ca.cross(moved, gravity_at_each(model, moved))
        change = add_tangents(change, ca.concatenate([turned, jnp.zeros_like(turned)], 0))
    return F_T, fit_tangent(change, F_T)


def calc_weights(model: MultibodyModel, position: PositionKinematics) -> Float[Array, "6 nm"]:
    """`calc_gravity_on_mobods` without its derivative rule."""
    moment_W, mass = calc_masses_with_gravity(model, position)
    moment_T = moment_W + ca.scale(position.p_TM_W, mass)
    g = gravity_at_each(model, moment_T)
    return ca.concatenate([ca.cross(moment_T, g), mass[None] * g], 0)


def calc_masses_with_gravity(
    model: MultibodyModel, position: PositionKinematics
) -> tuple[Float[Array, "3 nm"], Float[Array, " nm"]]:
    """First moment about Mo, in W, and mass of the bodies that feel gravity, summed per mobod."""
    placement = placement_of(model)
    if placement is not None:
        inertia = placement.weight
    else:
        counted = None if all_feel_gravity(model) else bodies_with_gravity(model)
        inertia = calc_inertia_in_mobod(model, position.placement, counted)
    return ca.matvec(position.R_WM, inertia.moment), inertia.mass


def gravity_at_each(model: MultibodyModel, like: Float[Array, "3 nm *w"]) -> Float[Array, "3 nm *w"]:
    """Gravity g, repeated for each column of `like`."""
    return jnp.repeat(model.parameters.gravity[:, None], like.shape[1], axis=1)


def calc_gravity_on_bodies(model: MultibodyModel, position: PositionKinematics) -> Float[Array, "nb 6"]:
    """Weight of each body at its origin Bo, in W."""
    mass, p_BoBcm_W, _ = calc_masses_and_centers(model, position)
    mass = mass * jnp.asarray(bodies_with_gravity(model), model.dtype)
    f = mass[None] * model.parameters.gravity[:, None]
    return jnp.concatenate([ca.cross(p_BoBcm_W, f), f]).T


def calc_gravity_at_poses(model: MultibodyModel, q: Float[Array, " nq"]) -> Float[Array, "nb 6"]:
    """`calc_gravity_on_bodies` from the poses alone, which a recursion finds."""
    R_WB, _ = for_worlds_of(calc_poses_of_bodies, model, q)
    of_world = jnp.zeros((1, 3), model.dtype)
    felt = jnp.asarray(bodies_with_gravity(model), model.dtype)[1:, None]
    f = jnp.concatenate([of_world, model.parameters.body_mass[:, None] * felt * model.parameters.gravity])
    p_BoBcm_W = ca.matvec(jnp.moveaxis(R_WB, 0, 2), jnp.concatenate([of_world, model.parameters.body_com]).T)
    return jnp.concatenate([ca.cross(p_BoBcm_W, f.T), f.T]).T


def calc_gravity_potential_energy(model: MultibodyModel, position: PositionKinematics) -> Float[Array, ""]:
    """Potential energy -sum m g · p_WBcm of gravity over the bodies, in J; zero at the world's origin."""
    mass, _, p_WBcm = calc_masses_and_centers(model, position)
    weight = mass * jnp.asarray(bodies_with_gravity(model), model.dtype) * model.parameters.gravity[:, None]
    return -jnp.sum(weight * p_WBcm)


def calc_masses_and_centers(
    model: MultibodyModel, position: PositionKinematics
) -> tuple[Float[Array, " nb"], Float[Array, "3 nb"], Float[Array, "3 nb"]]:
    """Mass of each body (zero for the world), p_BoBcm_W and p_WBcm."""
    zero = jnp.zeros((1,), model.dtype)
    mass = jnp.concatenate([zero, model.parameters.body_mass])
    com = jnp.concatenate([jnp.zeros((3, 1), model.dtype), model.parameters.body_com.T], axis=-1)
    R_WB, p_WB = calc_body_poses(model, position)
    p_BoBcm_W = ca.matvec(R_WB, com)
    return mass, p_BoBcm_W, p_WB + p_BoBcm_W
