"""Solvers: Levenberg-Marquardt by optimistix for least squares, first-order methods by optax for large data."""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.optional_packages import imported
from mbjax.spatial import safe_sqrt

from .least_squares import LeastSquares
from .problem import AbstractProblem, Evaluated, Rows, for_solver, linear

DONE = "converged"
SETTLED = 4  # steps
OPTIONS = {"jac": "bwd"}  # of n + 1 rows whose Jacobian is known; it is then an array, not a program


def require_steps(solver: str, max_steps: Any) -> None:
    """Raises `ModelError` unless a solver may take a step."""
    if isinstance(max_steps, bool) or not isinstance(max_steps, int) or max_steps < 1:
        raise ModelError(f"{solver}: max_steps must be a whole number of at least 1, got {max_steps!r}.")


@dataclasses.dataclass(frozen=True)
class LevenbergMarquardt:
    """Levenberg-Marquardt of optimistix. Tolerances of None follow the type: 1e-10 for 64 bits, 1e-5 for 32."""

    rtol: float | None = None
    atol: float | None = None
    max_steps: int = 100

    def __post_init__(self) -> None:
        require_steps("LevenbergMarquardt", self.max_steps)

    def solver(self, dtype: Any) -> optx.AbstractLeastSquaresSolver:
        """The solver of optimistix."""
        default = 1e-10 if jnp.finfo(dtype).bits == 64 else 1e-5
        rtol = default if self.rtol is None else self.rtol
        return optx.LevenbergMarquardt(rtol, default if self.atol is None else self.atol, linear_solver=LeastSquares())

    def steps(
        self, problem: AbstractProblem, y: Array, weights: Array, anchor: Array
    ) -> Iterator[tuple[Array, Array, bool, str]]:
        """Iterates: unknowns, half the sum of squares, whether it is done, and how.

        `anchor` are one over the standard deviations of unknowns around where they start; zeros leave them free.
        """
        step, start = compiled_steps(self.solver(y.dtype), anchor.shape[0])
        first, state, scale = y, None, jnp.ones((), y.dtype)
        costs: list[float] = []
        for _ in range(self.max_steps):
            at = y if state is None else state.y_eval
            r, J, _ = evaluate(problem, at, weights)
            if state is None:
                scale = residual_scale(J)
                state = start(y)
            rows = jnp.concatenate([r, anchor * (at - first)]), jnp.concatenate([J, jnp.diag(anchor)])
            y, state, cost, done, failed = step(*rows, scale, y, state)
            if int(state.num_steps_since_acceptance) == 0:
                costs.append(float(cost))
            if bool(failed):
                yield y, cost, True, "the linear solver failed: residuals or derivatives are not finite"
                return
            done = bool(done) or has_settled(costs, problem.num_data)
            yield y, cost, done, DONE if done else ""
            if done:
                return
        yield y, cost, True, f"stopped after {self.max_steps} steps"


@eqx.filter_jit
def evaluate(problem: AbstractProblem, y: Array, weights: Array) -> Evaluated:
    """The problem's rows and errors at y: the one program that knows the problem."""
    return problem.evaluate(y, weights)


def has_settled(costs: list[float], num_data: int) -> bool:
    """Whether some accepted steps have changed the cost far less than the noise of one number does.

    Directions that the data hardly see may still move, within a small part of their standard deviations. Costs are in
    units of the noise; where errors are far below it, a hundredth of it counts.
    """
    return len(costs) > SETTLED and costs[-1 - SETTLED] - costs[-1] <= 0.02 * max(costs[-1] / num_data, 0.01)


def residual_scale(J: Float[Array, "rows n"]) -> Float[Array, ""]:
    """A factor for all residuals with which the solver's first damping, 1, is a hundredth of the largest (JᵀJ)_ii."""
    largest = jnp.max(jnp.sum(J * J, 0), initial=0.0)
    return safe_sqrt(100.0 / jnp.where(largest > 0.0, largest, 1.0))


def scaled_rows(problem: AbstractProblem, weights: Array, scale: Array) -> Callable[[Array], Array]:
    """The problem's canonical rows times a factor, as a function that solvers linearize."""

    def rows(y: Array) -> Rows:
        r, J = problem.rows(y, weights)
        return scale * r, scale * J

    return for_solver(rows)


@functools.lru_cache(maxsize=64)
def compiled_steps(solver: optx.AbstractLeastSquaresSolver, num_unknowns: int) -> tuple[Callable, Callable]:
    """One step of the solver from known rows, and its start, as compiled functions that do not know the problem."""
    tags = frozenset()

    def function(y: Array, args: tuple[Array, Array]) -> tuple[Array, None]:
        return linear(*args)(y), None

    @eqx.filter_jit
    def start(y: Array) -> Any:
        rows = 2 * num_unknowns + 1
        args = jnp.zeros(rows, y.dtype), jnp.zeros((rows, num_unknowns), y.dtype)
        shape, _ = eqx.filter_eval_shape(function, y, args)
        return solver.init(function, y, args, OPTIONS, shape, None, tags)

    @eqx.filter_jit
    def step(r: Array, J: Array, scale: Array, y: Array, state: Any) -> tuple:
        args = scale * r, scale * J
        y, state, _ = solver.step(function, y, args, OPTIONS, state, tags)
        done, result = solver.terminate(function, y, args, OPTIONS, state, tags)
        cost = 0.5 * jnp.sum((state.f_info.residual / scale) ** 2)
        return y, state, cost, done, (result != optx.RESULTS.successful) | ~jnp.isfinite(cost)

    return step, start


def solve(
    problem: AbstractProblem, weights: Float[Array, " channels"], settings: LevenbergMarquardt | None = None
) -> Float[Array, " unknowns"]:
    """Unknowns that solve a problem, as a pure function: under `jit`, and under `vmap` for many noises or starts."""
    settings = LevenbergMarquardt() if settings is None else settings
    rows = scaled_rows(problem, weights, residual_scale(problem.rows(problem.initial, weights)[1]))
    solver = settings.solver(problem.initial.dtype)
    found = optx.least_squares(
        lambda y, _: rows(y), solver, problem.initial, options=OPTIONS, max_steps=settings.max_steps, throw=False
    )
    return found.value


@dataclasses.dataclass(frozen=True)
class FirstOrder:
    """A first-order method of optax on all residuals, for data that are too many for Jacobians.

    `optimizer` is of optax, `optax.adam(learning_rate)` if None.
    """

    learning_rate: float = 0.02
    max_steps: int = 1000
    rtol: float = 1e-7
    optimizer: Any = None

    def __post_init__(self) -> None:
        require_steps("FirstOrder", self.max_steps)

    def steps(
        self, problem: AbstractProblem, y: Array, weights: Array, anchor: Array
    ) -> Iterator[tuple[Array, Array, bool, str]]:
        """Iterates as those of `LevenbergMarquardt`."""
        first = y
        optax = imported("optax", "FirstOrder needs optax", "identify")
        optimizer = optax.adam(self.learning_rate) if self.optimizer is None else self.optimizer
        if not hasattr(optimizer, "update"):
            raise ModelError(f"FirstOrder: optimizer must be one of optax's, got {type(optimizer).__name__}.")

        @eqx.filter_jit
        def step(problem: AbstractProblem, y: Array, memory: Any) -> tuple:
            def cost_of(y: Array) -> Array:
                held = jnp.sum((anchor * (y - first)) ** 2)
                return 0.5 * (jnp.sum(problem.residuals(y, weights) ** 2) + held)

            cost, gradient = jax.value_and_grad(cost_of)(y)
            with jax.numpy_dtype_promotion("standard"):  # optax multiplies floats by counts
                updates, memory = optimizer.update(gradient, memory, y)
                return optax.apply_updates(y, updates), memory, cost

        memory, best = optimizer.init(y), None
        for count in range(self.max_steps):
            after, memory, cost = step(problem, y, memory)
            if not bool(jnp.isfinite(cost)):
                yield y, cost, True, "residuals or derivatives are not finite"
                return
            if count % 50 == 49:
                if best is not None and float(best - cost) < self.rtol * float(best):
                    yield y, cost, True, DONE
                    return
                best = cost
            yield y, cost, False, ""
            y = after
        yield y, cost, True, f"stopped after {self.max_steps} steps"
