"""Operational space control: the task moves as a unit mass does, and the rest of the arm does not disturb it."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.dynamics import inverse_dynamics, mass_matrix
from mbjax.errors import ModelError
from mbjax.execution import call_compiled
from mbjax.linear_algebra import solve_positive_definite
from mbjax.model import MultibodyModel
from mbjax.simulation import State

from .actuated_trees import checked, efforts_of
from .cartesian_impedance import Posture, as_posture, posture_force
from .driven_frames import require_driven_frame
from .held_inertia import free_columns, held_inertia
from .task_inertia import calc_task_inertia, without_effect
from .tasks import FrameTask


def operational_space(
    model: MultibodyModel,
    state: State,
    task: Any,
    *,
    posture: Any = None,
    posture_stiffness: Any = 10.0,
    posture_damping: Any = 2.0,
) -> Float[Array, " nu"]:
    """Efforts (nu,) in N m or N at which a `task`, such as `FrameTask`, accelerates as it asks.

    B u = Jᵀ F + (1 - Jᵀ J̄ᵀ) tau_0,    F = Λ (a - J̇ v) + J̄ᵀ h,    Λ = (J M⁻¹ Jᵀ)⁻¹,    J̄ = M⁻¹ Jᵀ Λ

    (Khatib 1987, "A unified approach for motion and force control of robot manipulators"), with
    tau_0 = h + K_q (q_0 ⊖ q) - D_q v for the `posture` q_0 (nq,), or h alone, where h is C v + g less the forces of
    springs and damping; `posture_stiffness` and `posture_damping` act only with `posture`. What is left of tau_0
    accelerates nothing in the task. Where the task is singular, its inertia is damped and directions without mobility
    are given up. Raises `ModelError` where a joint of the arm has no actuator.
    """
    state = checked("operational_space", model, state)
    if isinstance(task, FrameTask):
        require_driven_frame("operational_space", model, task.frame)
    if not callable(task):
        raise ModelError(
            f"operational_space: task must be one task, such as controllers.FrameTask, got {type(task).__name__}."
        )
    kept = as_posture("operational_space", model, posture, posture_stiffness, posture_damping)
    return call_compiled(task_efforts, model, state, task, kept)


def task_efforts(model: MultibodyModel, state: State, task: Any, posture: Posture | None) -> Float[Array, " nu"]:
    """Efforts of operational space control, from checked arguments."""
    zero = jnp.zeros(model.num_velocities, model.dtype)
    J, bias, wanted = task(model, state)
    J, M = free_columns(model, J), held_inertia(model, mass_matrix(model, state.q))
    of = calc_task_inertia(M, J)
    h = inverse_dynamics(model, state.q, state.v, zero, force_elements=True)
    tau = h if posture is None else h + posture_force(model, state, posture)
    F = of.inertia @ (wanted - bias + J @ solve_positive_definite(M, free_columns(model, h[None])[0]))
    return efforts_of(model, J.T @ F + without_effect(J, of, free_columns(model, tau[None])[0]))
