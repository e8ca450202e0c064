"""Sensitivities of a trajectory by the parameters, from Jacobians of single steps that are all computed at once.

    x[k+1] = f(x[k], theta)      S[k+1] = A[k] S[k] + B[k],   A = df/dx,  B = df/dtheta
A and B of a step need one backward pass for each velocity, however many parameters there are; the recursion is a
product of matrices. The passes end at the numbers of the model, whose derivatives by theta are the same for all steps.
States are perturbed along the velocities: q (+) dq, v + dv.
"""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from mbjax.kinematics import difference_configuration, integrate_configuration
from mbjax.simulation import State

from .shooting import measurement_error, start_of, take_step, with_shorter_steps
from .system import System

if TYPE_CHECKING:
    from .parameters import Parameters
    from .windows import Windows


def trajectory_and_sensitivities(
    unknown: "Parameters",
    theta: Float[Array, " p"],
    shift: Float[Array, " local"],
    window: "Windows",
    inputs: tuple[Float[Array, "samples substeps nu"], Float[Array, "samples substeps nv"]],
    factor: float,
) -> tuple[Float[Array, "samples 2nv"], Float[Array, "samples 2nv own"]]:
    """Errors of one window, and their Jacobian by theta and, if there is one, by the shift of the start."""
    system = with_shorter_steps(unknown.system(theta), factor)
    model, nv = system.model, system.model.num_velocities
    substeps = inputs[0].shape[1]
    inputs = tuple(x.reshape(-1, x.shape[-1]) for x in inputs)  # pyright: ignore[reportAssignmentType]

    def advance(state: State, held: tuple[Array, Array]) -> tuple[State, tuple[Array, Array, Array, Array]]:
        after = take_step(system, state, held)
        return after, (state.q, state.v, after.q, after.v)

    _, (q, v, q_after, v_after) = jax.lax.scan(advance, start_of(system, window, shift), inputs)
    numbers = Numbers(unknown, theta, factor)
    A, B = jax.vmap(lambda *x: jacobians_of_step(numbers, *x))(q, v, q_after, v_after, inputs)
    B = B @ numbers.by_theta

    def start(own: Array) -> Array:
        state = start_of(unknown.system(own[: theta.shape[0]]), window, own[theta.shape[0] :])
        return jnp.concatenate([difference_configuration(model, q[0], state.q), state.v])

    S0 = jax.jacfwd(start)(jnp.concatenate([theta, shift]))
    B = jnp.pad(B, ((0, 0), (0, 0), (0, shift.shape[0])))

    def propagate(S: Array, AB: tuple[Array, Array]) -> tuple[Array, Array]:
        S = AB[0] @ S + AB[1]
        return S, S

    _, S = jax.lax.scan(propagate, S0, (A, B))
    S, q_after, v_after = (x[substeps - 1 :: substeps] for x in (S, q_after, v_after))

    def error(theta: Array, dx: Array, q: Array, v: Array, q_measured: Array, v_measured: Array) -> Array:
        moved = integrate_configuration(model, q, dx[:nv])
        return measurement_error(unknown.system(theta), moved, v + dx[nv:], q_measured, v_measured)

    def errors(theta: Array, *sample: Array) -> Array:
        return error(theta, jnp.zeros(2 * nv, model.dtype), *sample)

    measured = (q_after, v_after, window.q, window.v)
    E = jax.vmap(lambda *x: errors(theta, *x))(*measured)
    C = jax.vmap(lambda *x: jax.jacfwd(error, 1)(theta, jnp.zeros(2 * nv, model.dtype), *x))(*measured)
    J = C @ S
    if unknown.kind_names() & {"position_bias", "velocity_bias"}:
        D = jax.vmap(lambda *x: jax.jacfwd(errors)(theta, *x))(*measured)
        J = J.at[..., : theta.shape[0]].add(D)
    return E, J


class Numbers:
    """The numbers of a system that depend on theta, and their derivatives by it."""

    def __init__(self, unknown: "Parameters", theta: Float[Array, " p"], factor: float):
        self.system = with_shorter_steps(unknown.system(theta), factor)
        leaves, self.treedef = jax.tree.flatten(self.system)
        before = jax.tree.leaves(unknown.base)
        self.changed = [i for i, (x, y) in enumerate(zip(leaves, before, strict=True)) if x is not y]
        self.leaves = leaves
        self.values, self.restore = ravel_pytree([leaves[i] for i in self.changed])

        def values_at(theta: Array) -> Array:
            leaves = jax.tree.leaves(with_shorter_steps(unknown.system(theta), factor))
            return ravel_pytree([leaves[i] for i in self.changed])[0]

        self.by_theta = jax.jacfwd(values_at)(theta)

    def system_at(self, values: Float[Array, " numbers"]) -> System:
        """The system with other values of these numbers."""
        leaves = list(self.leaves)
        for i, leaf in zip(self.changed, self.restore(values), strict=True):
            leaves[i] = leaf
        return jax.tree.unflatten(self.treedef, leaves)


def jacobians_of_step(
    numbers: Numbers, q: Array, v: Array, q_after: Array, v_after: Array, held: tuple[Array, Array]
) -> tuple[Float[Array, "2nv 2nv"], Float[Array, "2nv numbers"]]:
    """A and B of one step: those of v+ backwards, and of q+ = q (+) dt v+ by the chain rule."""
    model = numbers.system.model
    nv, zero = model.num_velocities, jnp.zeros(model.num_velocities, model.dtype)

    def v_next(values: Array, dq: Array, dv: Array) -> Array:
        state = State(integrate_configuration(model, q, dq), v + dv, jnp.zeros((), model.dtype))
        return take_step(numbers.system_at(values), state, held).v

    def q_next(values: Array, dq: Array, v_after: Array) -> Array:
        time_step = numbers.system_at(values).model.time_step
        moved = integrate_configuration(model, integrate_configuration(model, q, dq), time_step * v_after)
        return difference_configuration(model, q_after, moved)

    v_values, v_q, v_v = jax.jacrev(v_next, (0, 1, 2))(numbers.values, zero, zero)
    q_q, q_v = jax.jacfwd(q_next, (1, 2))(numbers.values, zero, v_after)
    q_values = jax.jacrev(q_next)(numbers.values, zero, v_after)  # by the time step, where that is unknown
    A = jnp.block([[q_q + q_v @ v_q, q_v @ v_v], [v_q, v_v]])
    assert A.shape == (2 * nv, 2 * nv)
    return A, jnp.concatenate([q_values + q_v @ v_values, v_values])
