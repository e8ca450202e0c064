"""The linear-quadratic model of a problem about a trajectory: what Riccati recursions solve."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.simulation import Inputs, State

from .costs import running_costs, terminal_costs
from .linearization import differentiate_steps, linearize_steps
from .multipliers import Penalties, penalty_residuals, penalty_slopes
from .problem import Problem
from .slopes import Slopes, expand_slopes, slopes_of
from .states import difference_states, moved_from, parts_of, size_of_part

FEW = 0.25  # of the tangent's size: terms with fewer residuals are differentiated in reverse mode


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
    motions = motion_slopes_of(problem, before, efforts, stages)
    A, B = linearize_problem(problem, before, efforts, stages, reached, motions)
    steps = jnp.arange(problem.num_steps)
    of_steps = jax.vmap(lambda x, u, stage, k, motion: expand_running(problem, x, u, stage, k, penalties, motion))(
        before, efforts, stages, steps, motions
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


def motion_slopes_of(problem: Problem, states: Any, efforts: Array, stages: Any) -> Any:
    """What linearization and costs share of all steps, where the dynamics say it; else None."""
    shared = getattr(problem.dynamics, "motion_slopes", None)
    return None if shared is None else shared(problem.model, states, efforts, *(() if stages is None else (stages,)))


def linearize_problem(
    problem: Problem, states: Any, efforts: Array, stages: Any, reached: Any, motions: Any = None
) -> tuple[Array, Array]:
    """A and B of all steps: by closed forms of a model's own steps or of the dynamics, else by differentiating them."""
    if problem.dynamics is None and isinstance(states, State):
        assert problem.model is not None
        of = linearize_steps(problem.model, states, Inputs(actuation=efforts), reached.v)
        return of.A, of.B

    closed = getattr(problem.dynamics, "linearize", None)
    if closed is not None:
        parameters = inspect.signature(closed).parameters
        known = {name: x for name, x in (("reached", reached), ("motions", motions)) if name in parameters}
        of = closed(problem.model, states, efforts, *(() if stages is None else (stages,)), **known)
    else:
        of = differentiate_steps(problem.next_state, problem.model, states, efforts, stages)
    return of.A, of.B


def running_terms(
    problem: Problem, x: Any, u: Any, stage: Any, k: Any, penalties: Penalties | None, motion: Any = None
) -> list[Array]:
    """Costs of one step, whose motion may be known: numbers, and vectors of residuals."""
    terms = running_costs(problem, x, u, stage, k, motion)
    if penalties is not None:
        terms += penalty_residuals(problem, penalties, x, u, stage, k, False, motion)
    return terms


def terminal_terms(problem: Problem, x: Any, penalties: Penalties | None) -> list[Array]:
    """Costs of the last state: numbers, and vectors of residuals."""
    terms = terminal_costs(problem, x)
    if penalties is not None:
        terms += penalty_residuals(problem, penalties, x, None, problem.stage(-1), problem.num_steps, True)
    return terms


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


def costates_of(e: Expansion) -> Float[Array, "steps_and_end ndx"]:
    """Derivatives of the cost to go by each state, under efforts as they are."""

    def backward(costate: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        A, l_x = step
        costate = l_x + costate @ A
        return costate, costate

    _, costates = jax.lax.scan(backward, e.l_x[-1], (e.A, e.l_x[:-1]), reverse=True)
    return jnp.concatenate([costates, e.l_x[-1:]])


def effort_slopes_of(e: Expansion) -> Float[Array, "steps nu"]:
    """Derivatives of the total cost by each effort, the states following from the efforts: zero at an optimum."""
    return e.l_u + jnp.einsum("kij,ki->kj", e.B, costates_of(e)[1:])


def at(penalties: Penalties | None, k: Any) -> Penalties | None:
    """The penalties of step k, if there are any."""
    return None if penalties is None else penalties.at(k)


def expand_running(
    problem: Problem, x: Any, u: Array, stage: Any, k: Any, penalties: Penalties | None, motion: Any = None
) -> tuple[Array, Array, Array]:
    """Value, gradient and Hessian by (dx, du) of the costs of one step, whose motion's derivatives may be known."""

    closed, others = divided(problem, problem.running, x, u, stage, k, motion)
    rest = eqx.tree_at(lambda p: p.running, problem, others)
    closed, rest, of_rest = with_penalties(closed, rest, at(penalties, k), x, u, stage, k, motion)

    def terms(dx: Array, du: Array) -> list[Array]:
        moved, effort = moved_from(problem.model, x, dx), moved_from(None, u, du)
        return running_terms(rest, moved, effort, stage, k, of_rest)

    zeros = [*zeros_at(problem, x), jnp.zeros_like(u)]
    found = expand_terms(lambda *parts: terms(jnp.concatenate(parts[:-1]), parts[-1]), zeros)
    return with_closed_forms(found, closed, zeros)


def expand_terminal(problem: Problem, x: Any, penalties: Penalties | None) -> tuple[Array, Array, Array]:
    """Value, gradient and Hessian by dx of the costs of the last state."""

    stage = problem.stage(-1)
    closed, others = divided(problem, problem.terminal, x, None, stage, -1, None)
    rest = eqx.tree_at(lambda p: p.terminal, problem, others)
    closed, rest, of_rest = with_penalties(closed, rest, at(penalties, -1), x, None, stage, problem.num_steps, None)

    def terms(*parts: Array) -> list[Array]:
        return terminal_terms(rest, moved_from(problem.model, x, jnp.concatenate(parts)), of_rest)

    zeros = zeros_at(problem, x)
    return with_closed_forms(expand_terms(terms, zeros), closed, zeros)


def divided(
    problem: Problem, terms: tuple[Any, ...], x: Any, u: Any, stage: Any, k: Any, motion: Any
) -> tuple[list[Slopes], tuple[Any, ...]]:
    """The closed forms of the costs that have them, and the other costs."""
    found = [slopes_of(problem, term, x, u, stage, k, motion) for term in terms]
    others = tuple(term for term, slopes in zip(terms, found, strict=True) if slopes is None)
    return [part for slopes in found if slopes is not None for part in slopes], others


def with_penalties(
    closed: list[Slopes], rest: Problem, penalties: Penalties | None, x: Any, u: Any, stage: Any, k: Any, motion: Any
) -> tuple[list[Slopes], Problem, Penalties | None]:
    """The closed forms with those of constraints, and what is left of the constraints."""
    if penalties is None or not isinstance(x, State):
        return closed, rest, penalties
    found, others, of_others = penalty_slopes(rest, penalties, x, u, stage, k, u is None, motion)
    return closed + found, eqx.tree_at(lambda p: p.constraints, rest, others), of_others


def with_closed_forms(
    of_rest: tuple[Array, Array, Array], closed: list[Slopes], zeros: list[Array]
) -> tuple[Array, Array, Array]:
    """Value, gradient and Hessian of all terms."""
    if not closed:
        return of_rest
    found = expand_slopes(closed, tuple(len(part) for part in zeros))
    return of_rest[0] + found[0], of_rest[1] + found[1], of_rest[2] + found[2]


def zeros_at(problem: Problem, x: Any) -> list[Array]:
    """The zero tangent at a state, in the parts that costs may depend on alone: positions, velocities, arrays."""
    dtype, parts = jax.tree.leaves(x)[0].dtype, []
    for part in parts_of(x):
        size = size_of_part(problem.model, part)
        parts += [jnp.zeros(size // 2, dtype)] * 2 if isinstance(part, State) else [jnp.zeros(size, dtype)]
    return parts


def expand_terms(terms: Callable[..., list[Array]], zeros: list[Array]) -> tuple[Array, Array, Array]:
    """Value, gradient and Hessian at zero of the sum of `terms(*zeros)`; residuals have the Hessian JᵀJ.

    Terms of few residuals are differentiated in reverse mode, all together, and others in forward mode, by one part of
    the tangent after the other: what does not depend on a part is not differentiated by it.
    """
    z, ends = jnp.concatenate(zeros), np.cumsum([len(part) for part in zeros])[:-1]
    shapes = jax.eval_shape(terms, *zeros)
    value, gradient, hessian = jnp.zeros((), z.dtype), jnp.zeros_like(z), jnp.zeros((len(z), len(z)), z.dtype)
    for i in [i for i, shape in enumerate(shapes) if shape.ndim == 0]:

        def term(z: Array, i: int = i) -> Array:
            return terms(*jnp.split(z, ends))[i]

        value, gradient = value + term(z), gradient + jax.grad(term)(z)
        hessian = hessian + jax.hessian(term)(z)
    residuals = [i for i, shape in enumerate(shapes) if shape.ndim > 0]
    few = [i for i in residuals if shapes[i].size <= FEW * len(z)]
    many = [i for i in residuals if i not in few]
    for chosen, differentiate in ((few, jax.jacrev), (many, jax.jacfwd)):
        if not chosen:
            continue

        def residual(*parts: Array, chosen: list[int] = chosen) -> Array:
            all_terms = terms(*parts)
            return jnp.concatenate([jnp.ravel(all_terms[i]) for i in chosen])

        r = residual(*zeros)
        J = jnp.concatenate(differentiate(residual, tuple(range(len(zeros))))(*zeros), axis=1)
        value, gradient, hessian = value + 0.5 * r @ r, gradient + r @ J, hessian + J.T @ J
    return value, gradient, hessian
