"""The linear-quadratic model of a problem about a trajectory: what Riccati recursions solve."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.simulation import Inputs, State

from .linearization import differentiate_step, linearize_steps
from .multipliers import Penalties, penalty_residuals
from .problem import Problem, call_term
from .states import difference_states, move_state, tangent_size


class Expansion(eqx.Module):
    """dx[k+1] = A dx + B du + gap, and costs l + l_x·dx + l_u·du + (dx, du)ᵀ H (dx, du) / 2, step by step.

    A gap leads from the trajectory's next state to the state that the step gives, and `gap_at_start` from its first
    state to the start. Costs with an index _x, _xx have one more entry, the terminal one; their Hessians are symmetric.
    """

    A: Float[Array, "steps ndx ndx"]
    B: Float[Array, "steps ndx nu"]
    gaps: Float[Array, "steps ndx"]
    gap_at_start: Float[Array, " ndx"]
    cost: Float[Array, ""]
    l_x: Float[Array, "steps_and_end ndx"]
    l_u: Float[Array, "steps nu"]
    l_xx: Float[Array, "steps_and_end ndx ndx"]
    l_ux: Float[Array, "steps nu ndx"]
    l_uu: Float[Array, "steps nu nu"]


def expand(
    problem: Problem, states: Any, efforts: Float[Array, "steps nu"], reached: Any, penalties: Penalties | None
) -> Expansion:
    """Expands dynamics and costs about a trajectory, all steps at once; `reached` is what each step gives."""
    model = problem.model
    before, after = jax.tree.map(lambda x: x[:-1], states), jax.tree.map(lambda x: x[1:], states)
    stages = jax.tree.map(lambda x: x[:-1], problem.stages)
    gaps = jax.vmap(lambda x, y: difference_states(model, x, y))(after, reached)
    A, B = linearize_problem(problem, before, efforts, stages, reached)
    steps = jnp.arange(problem.num_steps)
    of_steps = jax.vmap(lambda x, u, stage, k: expand_running(problem, x, u, stage, k, penalties))(
        before, efforts, stages, steps
    )
    last = jax.tree.map(lambda x: x[-1], states)
    value, l_x, l_xx = expand_terminal(problem, last, penalties)
    ndx = l_x.shape[0]
    gradient, hessian = of_steps[1], of_steps[2]
    return Expansion(
        A,
        B,
        gaps,
        difference_states(model, jax.tree.map(lambda x: x[0], states), problem.start),
        jnp.sum(of_steps[0]) + value,
        jnp.concatenate([gradient[:, :ndx], l_x[None]]),
        gradient[:, ndx:],
        jnp.concatenate([hessian[:, :ndx, :ndx], l_xx[None]]),
        hessian[:, ndx:, :ndx],
        hessian[:, ndx:, ndx:],
    )


def linearize_problem(problem: Problem, states: Any, efforts: Array, stages: Any, reached: Any) -> tuple[Array, Array]:
    """A and B of all steps: by closed forms for a model's own steps, else by differentiating the dynamics."""
    if problem.dynamics is None and isinstance(states, State):
        assert problem.model is not None
        of = linearize_steps(problem.model, states, Inputs(actuation=efforts), reached.v)
        return of.A, of.B

    def one(x: Any, u: Array, stage: Any) -> tuple[Array, Array]:
        of = differentiate_step(lambda x, u: problem.next_state(x, u, stage), problem.model, x, u)
        return of.A, of.B

    return jax.vmap(one)(states, efforts, stages)


def running_terms(problem: Problem, x: Any, u: Any, stage: Any, k: Any, penalties: Penalties | None) -> list[Array]:
    """Costs of one step: numbers, and vectors of residuals."""
    terms = [call_term(term, problem.model, x, u, stage) for term in problem.running]
    if penalties is not None:
        terms += penalty_residuals(problem, penalties, x, u, stage, k, False)
    return [jnp.asarray(term) for term in terms]


def terminal_terms(problem: Problem, x: Any, penalties: Penalties | None) -> list[Array]:
    """Costs of the last state: numbers, and vectors of residuals."""
    stage = problem.stage(-1)
    terms = [call_term(term, problem.model, x, None, stage) for term in problem.terminal]
    if penalties is not None:
        terms += penalty_residuals(problem, penalties, x, None, stage, problem.num_steps, True)
    return [jnp.asarray(term) for term in terms]


def value_of(terms: list[Array]) -> Float[Array, ""]:
    """Sum of numbers, and of half the squares of residuals."""
    values = [term if term.ndim == 0 else 0.5 * jnp.sum(term * term) for term in terms]
    return functools.reduce(jnp.add, values) if values else jnp.asarray(0.0)


def total_cost(
    problem: Problem, states: Any, efforts: Float[Array, "steps nu"], penalties: Penalties | None = None
) -> Float[Array, ""]:
    """Cost of a trajectory, with the penalties of an augmented Lagrangian if given."""
    before, last = jax.tree.map(lambda x: x[:-1], states), jax.tree.map(lambda x: x[-1], states)
    stages = jax.tree.map(lambda x: x[:-1], problem.stages)

    def one(x: Any, u: Array, stage: Any, k: Any) -> Array:
        return value_of(running_terms(problem, x, u, stage, k, at(penalties, k)))

    running = jax.vmap(one)(before, efforts, stages, jnp.arange(problem.num_steps))
    return jnp.sum(running) + value_of(terminal_terms(problem, last, at(penalties, -1)))


def at(penalties: Penalties | None, k: Any) -> Penalties | None:
    """The penalties of step k, if there are any."""
    return None if penalties is None else penalties.at(k)


def expand_running(
    problem: Problem, x: Any, u: Array, stage: Any, k: Any, penalties: Penalties | None
) -> tuple[Array, Array, Array]:
    """Value, gradient and Hessian by (dx, du) of the costs of one step."""
    ndx = tangent_size(problem.model, x)

    def terms(z: Array) -> list[Array]:
        moved = move_state(problem.model, x, z[:ndx])
        return running_terms(problem, moved, u + z[ndx:], stage, k, at(penalties, k))

    return expand_terms(terms, jnp.zeros(ndx + u.shape[0], u.dtype))


def expand_terminal(problem: Problem, x: Any, penalties: Penalties | None) -> tuple[Array, Array, Array]:
    """Value, gradient and Hessian by dx of the costs of the last state."""
    zero = jnp.zeros(tangent_size(problem.model, x), jax.tree.leaves(x)[0].dtype)
    return expand_terms(lambda z: terminal_terms(problem, move_state(problem.model, x, z), at(penalties, -1)), zero)


def expand_terms(terms: Any, z: Float[Array, " nz"]) -> tuple[Array, Array, Array]:
    """Value, gradient and Hessian at z of the sum of `terms(z)`; residuals have the Hessian JᵀJ."""
    shapes = jax.eval_shape(terms, z)
    value, gradient, hessian = jnp.zeros((), z.dtype), jnp.zeros_like(z), jnp.zeros((len(z), len(z)), z.dtype)
    for i, shape in enumerate(shapes):

        def term(z: Array, i: int = i) -> Array:
            return terms(z)[i]

        if shape.ndim == 0:
            value, gradient = value + term(z), gradient + jax.grad(term)(z)
            hessian = hessian + jax.hessian(term)(z)
            continue

        def residual(z: Array, i: int = i) -> Array:
            return jnp.ravel(terms(z)[i])

        differentiate = jax.jacrev if shape.size <= len(z) else jax.jacfwd
        r, J = residual(z), differentiate(residual)(z)
        value, gradient, hessian = value + 0.5 * r @ r, gradient + r @ J, hessian + J.T @ J
    return value, gradient, hessian
