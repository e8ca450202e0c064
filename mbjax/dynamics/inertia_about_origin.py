"""Inertia of each mobod about T, its tree's origin: it adds up over subtrees without shifts."""

import equinox as eqx
import jax
from jaxtyping import Array, Float

from mbjax.kinematics import MobodInertia, PositionKinematics, calc_position_kinematics, motions_within_tree
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.tangents import add_tangents, fit_tangent, is_none, no_tangent

from .tree_motion import calc_inertia_in_world


@eqx.filter_custom_jvp
def calc_inertia_about_T(
    model: MultibodyModel, q: Float[Array, " nq"], position: PositionKinematics, inertia_W: MobodInertia
) -> MobodInertia:
    """m, s = m p_TMcm and J about T, in W.

    The derivative by q is in closed form: mobods move rigidly, turned by w and with what is at T moved by v,

        ds = w x s + m v,    dJ = [w]x J - J [w]x + 2 (s·v) 1 - s vᵀ - v sᵀ

    Of the derivative of `position` only the displacement is asked for, of that of `inertia_W` nothing.
    """
    return shift_inertia_to_T(position, inertia_W)


@calc_inertia_about_T.def_jvp
def _calc_inertia_about_T_jvp(primals: tuple, tangents: tuple) -> tuple[MobodInertia, MobodInertia]:
    model, q, position, _ = primals
    dmodel, _, dposition, _ = tangents
    inertia = calc_inertia_about_T(*primals)
    change = no_tangent(inertia)
    if jax.tree.leaves(dmodel):

        def of_model(model: MultibodyModel) -> MobodInertia:
            position = calc_position_kinematics(model, q)
            return shift_inertia_to_T(position, calc_inertia_in_world(model, position))

        _, change = eqx.filter_jvp(of_model, (model,), (dmodel,))
    if dposition.displacement is not None:
        s, J = inertia.moment, inertia.rotational
        w, dp_TM = motions_within_tree(model.topology, position, dposition.displacement)
        v = dp_TM - ca.cross(w, position.p_TM_W)
        turned = ca.cross(w[:, None], J)
        dJ = turned + ca.transpose(turned) + ca.symmetric_matrix(2.0 * ca.symmetric_product_inertia(s, v))
        ds = ca.cross(w, s) + ca.scale(v, inertia.mass)
        displaced = eqx.tree_at(lambda x: (x.moment, x.rotational), no_tangent(inertia), (ds, dJ), is_leaf=is_none)
        change = add_tangents(change, displaced)
    return inertia, fit_tangent(change, inertia)


def shift_inertia_to_T(position: PositionKinematics, inertia_W: MobodInertia) -> MobodInertia:
    """`calc_inertia_about_T` without its rule, from inertias about Mo."""
    r, s, m = position.p_TM_W, inertia_W.moment, inertia_W.mass
    shifted = ca.scale(ca.point_mass_inertia(r), m) + 2.0 * ca.symmetric_product_inertia(r, s)
    return MobodInertia(m, s + ca.scale(r, m), inertia_W.rotational + ca.symmetric_matrix(shifted))
