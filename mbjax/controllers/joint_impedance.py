"""Joint impedance: each joint yields as a spring and a damper about a reference."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.array_types import Positions
from mbjax.dynamics import mass_matrix
from mbjax.errors import ModelError
from mbjax.execution import call_compiled
from mbjax.kinematics import difference_configuration
from mbjax.model import MultibodyModel
from mbjax.number_rules import NOT_NEGATIVE, checked_numbers
from mbjax.simulation import State

from .actuated_trees import checked, efforts_of, finite_coordinates, gain_matrix, reference
from .damping_design import damping_matrix
from .gravity_compensation import holding_force
from .held_inertia import held_inertia


def joint_impedance(
    model: MultibodyModel,
    state: State,
    q_d: Positions,
    v_d: Any = None,
    *,
    stiffness: Any,
    damping: Any = None,
    damping_ratio: Any = None,
) -> Float[Array, " nu"]:
    """Efforts (nu,) in N m or N that hold q_d (nq,) as springs and dampers do, with the inertia that the model has.

    B u = g(q) + K (q_d ⊖ q) + D (v_d - v)      (Ott 2008, "Cartesian Impedance Control"; Hogan 1985)

    An external torque moves a joint at rest by K⁻¹ τ. K is the `stiffness` in N m/rad or N/m, positive definite: a
    number, (nv,) or (nv, nv). D is the `damping` in N m s/rad or N s/m, or what gives every mode a `damping_ratio`, 1
    by default, with the inertia at q. Raises `ModelError` where a joint of the arm has no actuator.
    """
    state = checked("joint_impedance", model, state)
    q_d = finite_coordinates("joint_impedance: q_d", q_d, model.num_positions, model.dtype)
    K = gain_matrix("joint_impedance: stiffness", stiffness, model.num_velocities, model.dtype)
    D, ratio = damping_or_ratio("joint_impedance", damping, damping_ratio, model.num_velocities, model.dtype)
    return call_compiled(
        yielding_efforts, model, state, q_d, reference("joint_impedance: v_d", model, v_d), K, D, ratio
    )


def damping_or_ratio(call: str, damping: Any, ratio: Any, size: int, dtype: Any) -> tuple[Any, Array]:
    """The damping matrix, None if it follows from the ratio; and the ratio, 1 by default."""
    if damping is not None and ratio is not None:
        raise ModelError(f"{call}: give damping or damping_ratio, not both.")
    ratio = checked_numbers(call, "damping_ratio", 1.0 if ratio is None else ratio, NOT_NEGATIVE)
    D = None if damping is None else gain_matrix(f"{call}: damping", damping, size, dtype)
    return D, jnp.asarray(ratio, dtype)


def yielding_efforts(
    model: MultibodyModel, state: State, q_d: Array, v_d: Array, K: Array, D: Any, ratio: Array
) -> Float[Array, " nu"]:
    """Efforts of joint impedance, from checked arguments."""
    if D is None:
        D = damping_matrix(held_inertia(model, mass_matrix(model, state.q)), K, ratio)
    e = difference_configuration(model, state.q, q_d)
    return efforts_of(model, holding_force(model, state.q) + K @ e + D @ (v_d - state.v))
