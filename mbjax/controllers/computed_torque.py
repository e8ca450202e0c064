"""Computed torque: a model's own inverse dynamics makes tracking errors decay as those of a linear oscillator."""

from typing import Any

from jaxtyping import Array, Float

from mbjax.array_types import Positions
from mbjax.dynamics import inverse_dynamics
from mbjax.execution import call_compiled
from mbjax.kinematics import difference_configuration
from mbjax.model import MultibodyModel, zero_where_locked
from mbjax.simulation import State

from .actuated_trees import checked, efforts_of, finite_coordinates, gain_matrix, reference


def computed_torque(
    model: MultibodyModel,
    state: State,
    q_d: Positions,
    v_d: Any = None,
    vdot_d: Any = None,
    *,
    stiffness: Any = 100.0,
    damping: Any = 20.0,
) -> Float[Array, " nu"]:
    """Efforts (nu,) in N m or N that follow q_d (nq,), v_d (nv,) and vdot_d (nv,), the latter zero by default.

    B u = M(q) a + C(q, v) v + g(q),    a = vdot_d + Kd (v_d - v) + Kp (q_d ⊖ q)

    so that errors obey ë + Kd ė + Kp e = 0 (Siciliano et al. 2009, "Robotics", section 8.5.2). Kp is the
    `stiffness` in 1/s² and Kd the `damping` in 1/s: a number, (nv,) or (nv, nv). Springs and damping of the model are
    made up for. Locked joints get no effort. Raises `ModelError` where a joint of the arm has no actuator.
    """
    state = checked("computed_torque", model, state)
    q_d = finite_coordinates("computed_torque: q_d", q_d, model.num_positions, model.dtype)
    v_d, vdot_d = reference("computed_torque: v_d", model, v_d), reference("computed_torque: vdot_d", model, vdot_d)
    Kp = gain_matrix("computed_torque: stiffness", stiffness, model.num_velocities, model.dtype)
    Kd = gain_matrix("computed_torque: damping", damping, model.num_velocities, model.dtype)
    return call_compiled(following_efforts, model, state, q_d, v_d, vdot_d, Kp, Kd)


def following_efforts(
    model: MultibodyModel, state: State, q_d: Array, v_d: Array, vdot_d: Array, Kp: Array, Kd: Array
) -> Float[Array, " nu"]:
    """Efforts of computed torque, from checked arguments."""
    e = difference_configuration(model, state.q, q_d)
    a = zero_where_locked(model, vdot_d + Kd @ (v_d - state.v) + Kp @ e)
    return efforts_of(model, inverse_dynamics(model, state.q, state.v, a, force_elements=True))
