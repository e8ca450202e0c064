"""Inertia of each mobod about T, its tree's origin: it adds up over subtrees without shifts."""

import dataclasses

import equinox as eqx
import jax
from jaxtyping import Array, Float

from mbjax.execution.derivative_rules import add_tangents, fit_tangent, is_none, no_tangent, with_zeros
from mbjax.kinematics import BodyPlacement, MobodInertia, PositionKinematics, motions_within_tree
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca

from .tree_motion import calc_inertia_in_world


@eqx.filter_custom_jvp
def calc_inertia_about_T(model: MultibodyModel, position: PositionKinematics, inertia_W: MobodInertia) -> MobodInertia:
    """Mass m, first moment s = m p_TMcm and rotational inertia J of each mobod about T, in W.

    The derivative is in closed form. Where a mobod moves rigidly, with angular velocity w and velocity v at T,

        ds = w x s + m v,    dJ = [w]x J - J [w]x + 2 (s·v) 1 - s vᵀ - v sᵀ

    and what the model changes with mobods held is added. The rule reads only the displacement and the placement of the
    tangent of `position`, and nothing of the tangent of `inertia_W`.
    """
    return shift_inertia_to_T(position, inertia_W)


@calc_inertia_about_T.def_jvp
def _calc_inertia_about_T_jvp(primals: tuple, tangents: tuple) -> tuple[MobodInertia, MobodInertia]:
    model, position, _ = primals
    dmodel, dposition, _ = tangents
    inertia = calc_inertia_about_T(*primals)
    change = calc_inertia_change(model, dmodel, position, dposition.placement) or no_tangent(inertia)
    if dposition.displacement is not None:
        w, dp_TM = motions_within_tree(model.topology, position, dposition.displacement)
        ds, dJ = calc_inertia_rates(inertia, w, dp_TM - ca.cross(w, position.p_TM_W))
        displaced = eqx.tree_at(lambda x: (x.moment, x.rotational), no_tangent(inertia), (ds, dJ), is_leaf=is_none)
        change = add_tangents(change, displaced)
    return inertia, fit_tangent(change, inertia)


def calc_inertia_rates(
    inertia_T: MobodInertia, w: Float[Array, "3 nm"], v: Float[Array, "3 nm"]
) -> tuple[Float[Array, "3 nm"], Float[Array, "3 3 nm"]]:
    """Rates of first moment and rotational inertia of mobods that move rigidly, with velocity v at T."""
    s, J = inertia_T.moment, inertia_T.rotational
    turned = ca.cross(w[:, None], J)
    dJ = turned + ca.transpose(turned) + ca.symmetric_matrix(2.0 * ca.symmetric_product_inertia(s, v))
    return ca.cross(w, s) + ca.scale(v, inertia_T.mass), dJ


def calc_inertia_change(
    model: MultibodyModel, dmodel: MultibodyModel, position: PositionKinematics, dplacement: BodyPlacement
) -> MobodInertia | None:
    """Tangent of the inertias about T along that of model and placement, mobods held; None where the model is fixed."""
    if not jax.tree.leaves(dmodel):
        return None

    def at_rest(model: MultibodyModel, placement: BodyPlacement) -> MobodInertia:
        held = dataclasses.replace(position, placement=placement)
        return shift_inertia_to_T(held, calc_inertia_in_world(model, held))

    inertia_T, change = eqx.filter_jvp(at_rest, (model, position.placement), (dmodel, dplacement))
    return with_zeros(change, inertia_T)


def shift_inertia_to_T(position: PositionKinematics, inertia_W: MobodInertia) -> MobodInertia:
    """Shifts inertias from Mo to T: `calc_inertia_about_T` without its derivative rule."""
    r, s, m = position.p_TM_W, inertia_W.moment, inertia_W.mass
    shifted = ca.scale(ca.point_mass_inertia(r), m) + 2.0 * ca.symmetric_product_inertia(r, s)
    return MobodInertia(m, s + ca.scale(r, m), inertia_W.rotational + ca.symmetric_matrix(shifted))
