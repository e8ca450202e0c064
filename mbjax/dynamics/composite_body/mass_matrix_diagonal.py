"""The diagonal of the mass matrix alone, M_jj = S_j · I_j S_j with I_j the inertia of everything outboard of j.

M_jj does not change where all that is outboard of j moves together with j's own mobod m. So with phi the displacement
of mobods, I_i the composite inertia of mobod i, and i over the mobods strictly outboard of m

    dM_jj = S_j · (sum_i of dI_i along phi_i - phi_p(i), and the change by the model of all I) S_j + 2 e_j · I_j S_j

where e_j = dS_j - phi_m x S_j is zero for the one direction of a joint whose frames are fixed.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution.arrays import take
from mbjax.execution.derivative_rules import fit_tangent, fitting, linear_map
from mbjax.kinematics import MobodInertia, PositionKinematics, calc_position_kinematics, motions_within_tree
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology, sum_over_subtree

from ..derivatives.cotangent_inward import has_torque_cotangent
from ..derivatives.diagonal_cotangent import calc_diagonal_cotangent
from ..derivatives.rule import Moved, enough, pull_back_to_model, pull_back_to_q, shape_of_torques
from ..records.inertia_about_origin import (
    calc_inertia_about_T,
    calc_inertia_change,
    calc_inertia_rates,
    shift_inertia_to_T,
)
from ..records.tree_motion import TreeMotion, calc_inertia_in_world
from .mass_matrix import calc_composite_forces, calc_composite_inertia, calc_mass_matrix, forces_along, inertia_rows


def calc_mass_matrix_diagonal(
    motion: TreeMotion, diagonal: Float[Array, " nv"], known: Float[Array, "nv nv"] | None = None
) -> Float[Array, " nv"]:
    """The diagonal of `calc_mass_matrix` alone, with `diagonal` added; read from the matrix where that is `known`."""
    model, position = motion.model, motion.position
    if model.topology.followers:  # directions of one velocity are coupled
        inertia_T = calc_inertia_about_T(model, position, motion.inertia_W)
        M = calc_mass_matrix(model.topology, position, inertia_T, diagonal)
        return M[np.arange(M.shape[0]), np.arange(M.shape[0])]
    if known is None:
        return calc_products(model, position, motion.inertia_W, None) + diagonal
    products = known[np.arange(known.shape[0]), np.arange(known.shape[0])]
    if has_torque_cotangent(model):
        return known_products(model, motion.q, products) + diagonal
    return calc_products(model, position, motion.inertia_W, products) + diagonal


@eqx.filter_custom_jvp
def known_products(model: MultibodyModel, q: Float[Array, " nq"], known: Float[Array, " nd"]) -> Float[Array, " nd"]:
    """Returns M_jj of all directions, which are known; the derivative is by a recursion."""
    return known


@known_products.def_jvp
def _known_products_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    model, q, known = primals
    moved = Moved(tangents[0], tangents[1], None, None)
    products = known_products(model, q, known)
    if not jax.tree.leaves(moved):
        return products, jnp.zeros_like(products)
    return products, fit_tangent(calc_products_change((model, q), moved, products), products)


def calc_products_change(fixed: tuple, moved: Moved, products: Float[Array, " nd"]) -> Float[Array, " nd"]:
    """Change of `products`, M_jj of all directions at a model and q, as these move."""
    like = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), moved)

    def change(fixed: tuple, moved: Moved) -> Array:
        def at(model: MultibodyModel, q: Array) -> Array:
            position = calc_position_kinematics(model, q)
            return calc_products(model, position, calc_inertia_in_world(model, position), None)

        value, found = eqx.filter_jvp(at, fixed, (moved.model, moved.q))
        return jnp.zeros_like(value) if found is None else found  # numbers like the time step move no mass

    def pull_back(fixed: tuple, weight: Array) -> Moved:
        (model, q), of_model = fixed, bool(jax.tree.leaves(like.model))
        found = calc_diagonal_cotangent(model, q, weight, of_model)
        by_model = pull_back_to_model(model, found.by_model, None, like.model) if of_model else like.model
        return Moved(by_model, None if like.q is None else pull_back_to_q(model, q, found.q), None, None)

    def push_many(fixed: tuple, moved: Moved) -> Float[Array, "k nd"]:
        return jax.vmap(partial(change, fixed))(moved)

    def pull_many(fixed: tuple, weights: Float[Array, "k nd"]) -> Moved:
        still = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like)
        found, pull = jax.vjp(partial(change, fixed), still)
        return jax.vmap(lambda weight: pull(fitting(weight, found.shape))[0])(weights)

    many = push_many, pull_many, enough(fixed[0].topology)
    return linear_map(change, pull_back, fixed, moved, shape_of_torques(products, (fixed, moved)), many)


@eqx.filter_custom_jvp
def calc_products(
    model: MultibodyModel,
    position: PositionKinematics,
    inertia_W: MobodInertia,
    known: Float[Array, " nd"] | None,
) -> Float[Array, " nd"]:
    """M_jj of all directions, `known` or not. The derivative reads nothing of the tangent of `inertia_W`."""
    if known is not None:
        return known
    inertia_T = shift_inertia_to_T(position, inertia_W)
    return ca.dot(position.S_T, calc_composite_forces(model.topology, position, inertia_T))


@calc_products.def_jvp
def _calc_products_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array | None]:
    model, position, inertia_W, known = primals
    dmodel, dposition, *_ = tangents
    products, topology = calc_products(model, position, inertia_W, known), model.topology
    by_model = calc_inertia_change(model, dmodel, position, dposition.placement)
    phi, S, change = dposition.displacement, position.S_T, None
    if phi is not None:
        composite = calc_composite_inertia(topology, shift_inertia_to_T(position, inertia_W))
        change = calc_change_outboard(topology, composite, phi, by_model)
    elif by_model is not None:
        change = calc_composite_inertia(topology, by_model)
    if change is None:
        return products, fit_tangent(None, products)
    found = ca.dot(S, forces_along(topology, change, S))
    if phi is not None and (jax.tree.leaves(dmodel) or has_joints_of_several_directions(topology)):
        w, dp_TM = motions_within_tree(topology, position, phi)
        moved = ca.concatenate([w, dp_TM - ca.cross(w, position.p_TM_W)], 0)
        apart = dposition.S_T - ca.motion_cross(take(moved, topology.velocity_mobods, 1), S)
        found = found + 2.0 * ca.dot(apart, forces_along(topology, composite, S))
    return products, fit_tangent(found, products)


def calc_change_outboard(
    topology: TreeTopology, composite: Float[Array, "10 nm"], phi: Float[Array, "6 nm"], by_model: MobodInertia | None
) -> Float[Array, "10 nm"]:
    """Change of each mobod's composite inertia as seen by the mobod: by joints outboard of it, and by the model."""
    is_moved = topology.within_tree.reshape(1, -1, *(1 for _ in phi.shape[2:]))
    w, v = jnp.split(jnp.where(is_moved, phi - take(phi, topology.parents, 1), 0.0), 2)
    inertia = MobodInertia(composite[0], composite[1:4], ca.symmetric_matrix(composite[4:]))
    ds, dJ = calc_inertia_rates(inertia, w, v)
    own = ca.concatenate([jnp.zeros_like(ds[:1]), ds, ca.symmetric_components(dJ)], 0)
    total = own if by_model is None else own + inertia_rows(by_model)
    return sum_over_subtree(topology, total) - own


def has_joints_of_several_directions(topology: TreeTopology) -> bool:
    """Whether any joint has more than one direction."""
    return len(set(topology.velocity_mobods.tolist())) < topology.velocity_mobods.size
