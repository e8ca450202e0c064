"""Motion and impacts under contacts as functions whose derivatives by the state are the closed forms.

Many tangents at once, as in a Jacobian, then cost a product with matrices. By the model or the contacts, derivatives
are those of the plain functions.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.execution.derivative_rules import is_none
from mbjax.kinematics import for_worlds_of, placed, qdot_to_velocity
from mbjax.model import MultibodyModel

from .bound_constraint_set import BoundConstraintSet
from .constrained_dynamics import ConstrainedDynamicsResult
from .contact_derivatives import (
    ContactDerivatives,
    calc_contact_impulse_derivatives,
    calc_contact_motion_derivatives,
)


def contact_motion_derivatives(
    model: MultibodyModel, cset: BoundConstraintSet, q: Array, v: Array, tau: Array
) -> ContactDerivatives:
    """Accelerations, contact forces and their derivatives under tau and force elements; the set has contacts alone."""
    return for_worlds_of(calc_contact_motion_derivatives, model, cset, q, v, tau)


def contact_impulse_derivatives(
    model: MultibodyModel, cset: BoundConstraintSet, q: Array, v_minus: Array
) -> ContactDerivatives:
    """Change of velocity, impulses and their derivatives of an impact; the set has contacts alone."""
    return for_worlds_of(calc_contact_impulse_derivatives, model, cset, q, v_minus)


@eqx.filter_custom_jvp
def with_closed_forms(
    plain: Callable, derivatives: Callable, model: MultibodyModel, cset: BoundConstraintSet, *state: Array
) -> ConstrainedDynamicsResult:
    """Returns `plain(model, cset, *state)`; `derivatives`, of the same arguments, has its derivatives by the state."""
    return plain(model, cset, *state)


@with_closed_forms.def_jvp
def _with_closed_forms_jvp(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    plain, derivatives, *arguments = primals
    _, _, *moved = tangents
    if jax.tree.leaves(moved[:2]):
        result, change = eqx.filter_jvp(plain, tuple(arguments), tuple(moved))
        zeros = jax.tree.map(lambda x, y: jnp.zeros_like(y) if x is None else x, change, result, is_leaf=is_none)
        return result, zeros
    of = derivatives(*arguments)
    dq, *rest = moved[2:]
    dq = None if dq is None else qdot_to_velocity(arguments[0], arguments[2], dq)
    along = dq, *rest
    zero = jnp.zeros_like(of.result.residual)
    change = ConstrainedDynamicsResult(
        summed(of.result.vdot, (of.x_q, of.x_v, of.x_tau), along),
        summed(of.result.multipliers, (of.force_q, of.force_v, of.force_tau), along),
        zero,
        zero,
    )
    return of.result, change


def summed(like: Float[Array, " n"], matrices: tuple, tangents: tuple) -> Float[Array, " n"]:
    """Sum of matrices times tangents."""
    parts = [M @ x for M, x in zip(matrices, tangents, strict=False) if x is not None]
    return sum(parts[1:], parts[0]) if parts else jnp.zeros_like(like)


def with_contact_derivatives(
    plain: Callable, derivatives: Callable, model: MultibodyModel, *args: Any
) -> ConstrainedDynamicsResult:
    """`with_closed_forms` of a model that carries its placement, which is a constant where the model is."""
    return with_closed_forms(plain, derivatives, placed(model, *args), *args)
