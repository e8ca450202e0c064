"""A problem as a sparse nonlinear program: the states are unknowns too, and each step is a constraint, its defect.

    minimize f(z)   with   lower <= g(z) <= upper,   lowest <= z <= highest

The unknowns z are (dx_0, u_0, dx_1, u_1, …, dx_N), with dx_k the tangent from a reference trajectory to the state k, so
that attitudes have three of them. The rows of g are the start, the defects of all steps, and the constraints, step by
step. A row of step k depends on dx_k, u_k and dx_{k+1} alone: those blocks are all that derivatives hold.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .constraints import Constraint
from .costs import running_costs, terminal_costs
from .expansion import expand_terms, linearize_problem, total_cost, value_of
from .multipliers import bounds_of, evaluate, is_evaluated, mask_of
from .problem import Problem, num_efforts
from .states import difference_states, move_state, tangent_size


class Sparsity(NamedTuple):
    """Rows and columns of the entries of a sparse matrix; entries at the same place add up."""

    rows: np.ndarray
    columns: np.ndarray


class NonlinearProgram(eqx.Module):
    """What solvers of nonlinear programs ask for; every method is compiled once and takes z."""

    problem: Problem
    reference: Any  # states (num_steps + 1) from which the unknowns count
    exact_hessian: bool = eqx.field(
        static=True
    )  # with second derivatives of steps and constraints; else of Gauss and Newton

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Number of steps, of components of a state's tangent, and of efforts."""
        first = jax.tree.map(lambda x: x[0], self.reference)
        return self.problem.num_steps, tangent_size(self.problem.model, first), num_efforts(self.problem)

    @property
    def num_unknowns(self) -> int:
        """Length of z."""
        N, ndx, nu = self.sizes
        return N * (ndx + nu) + ndx

    def join(self, states: Any, efforts: Float[Array, "steps nu"]) -> Float[Array, " n"]:
        """The unknowns of a trajectory."""
        dx = jax.vmap(lambda x, y: difference_states(self.problem.model, x, y))(self.reference, states)
        return jnp.concatenate([jnp.ravel(jnp.concatenate([dx[:-1], efforts], axis=1)), dx[-1]])

    def split(self, z: Float[Array, " n"]) -> tuple[Any, Float[Array, "steps nu"]]:
        """States and efforts of the unknowns."""
        dx, efforts = self.parts(jnp.asarray(z))
        return jax.vmap(lambda x, d: move_state(self.problem.model, x, d))(self.reference, dx), efforts

    def parts(self, z: Float[Array, " n"]) -> tuple[Float[Array, "steps_and_end ndx"], Float[Array, "steps nu"]]:
        """Tangents and efforts of the unknowns."""
        N, ndx, nu = self.sizes
        steps = z[: N * (ndx + nu)].reshape(N, ndx + nu)
        return jnp.concatenate([steps[:, :ndx], z[None, N * (ndx + nu) :]]), steps[:, ndx:]

    def bounds_of_unknowns(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest values of z: the limits of efforts."""
        N, ndx, nu = self.sizes
        free = np.full((N, ndx), np.inf)
        pairs = []
        for bound, sign in ((self.problem.low, -1.0), (self.problem.high, 1.0)):
            u = np.broadcast_to(np.asarray(sign * np.inf if bound is None else bound), (N, nu))
            pairs.append(
                np.concatenate([np.concatenate([sign * free, u], axis=1).ravel(), np.full(ndx, sign * np.inf)])
            )
        return pairs[0], pairs[1]

    def bounds_of_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of g: zeros of defects, then those of constraints."""
        N, ndx, _ = self.sizes
        lower, upper = [np.zeros((N + 1) * ndx)], [np.zeros((N + 1) * ndx)]
        for at_end in (False, True):
            low, high = [], []
            for constraint in self.of_steps(at_end):
                for bound, bounds, free in zip(
                    self.bounds(constraint, at_end), (low, high), (-np.inf, np.inf), strict=True
                ):
                    mask = np.asarray(mask_of(self.problem, constraint))
                    mask = mask[-1:] if at_end else mask[:-1]
                    bounds.append(np.where(mask[:, None], np.asarray(bound), free))
            if low:
                lower.append(np.concatenate(low, axis=1).ravel())
                upper.append(np.concatenate(high, axis=1).ravel())
        return np.concatenate(lower), np.concatenate(upper)

    def of_steps(self, at_end: bool) -> list[Constraint]:
        """Constraints that are evaluated at the end, or before."""
        return [c for c in self.problem.constraints if is_evaluated(c, at_end)]

    def bounds(self, constraint: Constraint, at_end: bool) -> tuple[Array, Array]:
        """Bounds of a constraint's entries."""
        k = -1 if at_end else 0
        x = jax.tree.map(lambda x: x[k], self.reference)
        u = None if at_end else jnp.zeros(self.sizes[2], jax.tree.leaves(x)[0].dtype)
        value = jax.eval_shape(lambda: evaluate(constraint, self.problem, x, u, self.problem.stage(k)))
        return bounds_of(constraint, jnp.zeros(value.shape, value.dtype))

    def row_sizes(self) -> tuple[int, int]:
        """Number of constraint rows of each step, and of the end."""
        run, end = (sum(self.bounds(c, at_end)[0].size for c in self.of_steps(at_end)) for at_end in (False, True))
        return run, end

    # functions of one step, of its own unknowns (dx, u, dx_after)

    def step_rows(self, w: Float[Array, " nw"], at: "StepData") -> Float[Array, " rows"]:
        """Constraints of one step."""
        x, u, _ = self.of_step(w, at)
        values = [evaluate(c, self.problem, x, u, at.stage) for c in self.of_steps(False)]
        return jnp.concatenate([jnp.zeros(0, w.dtype), *values])

    def step_defect(self, w: Float[Array, " nw"], at: "StepData") -> Float[Array, " ndx"]:
        """Defect of one step: from the state after it to the one that the step gives."""
        x, u, after = self.of_step(w, at)
        rule = getattr(self.problem.dynamics, "defect", None)
        if rule is not None:
            return rule(self.problem.model, x, u, after, *(() if at.stage is None else (at.stage,)))
        return difference_states(self.problem.model, after, self.problem.next_state(x, u, at.stage))

    def step_terms(self, w: Float[Array, " nw"], at: "StepData") -> list[Array]:
        """Running costs of one step."""
        x, u, _ = self.of_step(w, at)
        return running_costs(self.problem, x, u, at.stage, at.index)

    def end_terms(self, w: Float[Array, " ndx"]) -> list[Array]:
        """Terminal costs."""
        return terminal_costs(self.problem, self.last(w))

    def end_rows(self, w: Float[Array, " ndx"]) -> Float[Array, " rows"]:
        """Constraints at the end."""
        x, stage = self.last(w), self.problem.stage(-1)
        values = [evaluate(c, self.problem, x, None, stage) for c in self.of_steps(True)]
        return jnp.concatenate([jnp.zeros(0, w.dtype), *values])

    def start_rows(self, w: Float[Array, " ndx"]) -> Float[Array, " ndx"]:
        """From the first state to the start."""
        model, first = self.problem.model, jax.tree.map(lambda x: x[0], self.reference)
        return difference_states(model, move_state(model, first, w), self.problem.start)

    def last(self, w: Float[Array, " ndx"]) -> Any:
        """The last state."""
        return move_state(self.problem.model, jax.tree.map(lambda x: x[-1], self.reference), w)

    def of_step(self, w: Float[Array, " nw"], at: "StepData") -> tuple[Any, Array, Any]:
        """State, effort and following state of one step."""
        _, ndx, nu = self.sizes
        model = self.problem.model
        x, after = move_state(model, at.before, w[:ndx]), move_state(model, at.after, w[ndx + nu :])
        return x, w[ndx : ndx + nu], after

    def windows(self, z: Float[Array, " n"]) -> tuple[Float[Array, "steps nw"], "StepData"]:
        """Unknowns of every step, and its data."""
        dx, efforts = self.parts(z)
        before, after = (jax.tree.map(lambda x, p=p: x[p], self.reference) for p in (np.s_[:-1], np.s_[1:]))
        stages = jax.tree.map(lambda x: x[:-1], self.problem.stages)
        return jnp.concatenate([dx[:-1], efforts, dx[1:]], axis=1), StepData(
            before, after, stages, jnp.arange(self.problem.num_steps)
        )

    # the whole program

    @eqx.filter_jit
    def values(self, z: Float[Array, " n"]) -> tuple[Float[Array, ""], Float[Array, " m"]]:
        """f and g."""
        w, at = self.windows(z)
        dx, _ = self.parts(z)
        states, efforts = self.split(z)
        defects, rows = jax.vmap(lambda w, at: (self.step_defect(w, at), self.step_rows(w, at)))(w, at)
        parts = self.start_rows(dx[0]), jnp.ravel(defects), jnp.ravel(rows), self.end_rows(dx[-1])
        return total_cost(self.problem, states, efforts), jnp.concatenate(parts)

    @eqx.filter_jit
    def derivatives(self, z: Float[Array, " n"]) -> tuple[Float[Array, " n"], Float[Array, " entries"]]:
        """Gradient of f, and the entries of the Jacobian of g."""
        _, ndx, nu = self.sizes
        (w, at), (dx, _) = self.windows(z), self.parts(z)
        zw = w[:, : ndx + nu]

        def gradient(zw: Array, w: Array, at: StepData) -> Array:
            return jax.grad(lambda zw: value_of(self.step_terms(zw_in(w, zw), at)))(zw)

        of_steps = jax.vmap(gradient)(zw, w, at)
        of_end = jax.grad(lambda w: value_of(self.end_terms(w)))(dx[-1])
        rows = jax.vmap(lambda zw, w, at: jax.jacrev(lambda zw: self.step_rows(zw_in(w, zw), at))(zw))(zw, w, at)
        blocks = (
            jax.jacfwd(self.start_rows)(dx[0]),
            self.defect_blocks(z, w, at),
            rows,
            jax.jacrev(self.end_rows)(dx[-1]),
        )
        return jnp.concatenate([jnp.ravel(of_steps), of_end]), jnp.concatenate([jnp.ravel(b) for b in blocks])

    def defect_blocks(self, z: Array, w: Array, at: "StepData") -> Float[Array, "steps ndx nw"]:
        """Derivatives of the defects by the unknowns of their steps: by closed forms of steps where there are any."""
        if hasattr(self.problem.dynamics, "defect"):
            return jax.vmap(jax.jacrev(self.step_defect))(w, at)
        model, (_, ndx, nu) = self.problem.model, self.sizes
        states, efforts = self.split(z)
        before, after = (jax.tree.map(lambda x, p=p: x[p], states) for p in (np.s_[:-1], np.s_[1:]))
        reached = jax.vmap(self.problem.next_state)(before, efforts, at.stage)
        A, B = linearize_problem(self.problem, before, efforts, at.stage, reached)

        def block(w: Array, at: StepData, x: Any, after: Any, reached: Any, A: Array, B: Array) -> Array:
            zero = jnp.zeros(ndx, w.dtype)
            turn = jax.jacfwd(lambda d: difference_states(model, x, move_state(model, at.before, w[:ndx] + d)))(zero)
            of_reached = jax.jacfwd(lambda d: difference_states(model, after, move_state(model, reached, d)))(zero)
            of_after = jax.jacfwd(
                lambda d: difference_states(model, move_state(model, at.after, w[ndx + nu :] + d), reached)
            )(zero)
            return jnp.concatenate([of_reached @ A @ turn, of_reached @ B, of_after], axis=1)

        return jax.vmap(block)(w, at, before, after, reached, A, B)

    @eqx.filter_jit
    def hessian(
        self, z: Float[Array, " n"], factor: Float[Array, ""], multipliers: Float[Array, " m"]
    ) -> Float[Array, " entries"]:
        """Entries of the Hessian of factor f + multipliers · g."""
        N, ndx, nu = self.sizes
        (w, at), (dx, _) = self.windows(z), self.parts(z)
        if not self.exact_hessian:

            def one(w: Array, at: StepData) -> Array:
                return expand_terms(lambda zw: self.step_terms(zw_in(w, zw), at), [w[: ndx + nu]])[2]

            at_end = expand_terms(self.end_terms, [dx[-1]])[2]
            return factor * jnp.concatenate([jnp.ravel(jax.vmap(one)(w, at)), jnp.ravel(at_end)])
        run, _ = self.row_sizes()
        multipliers = multipliers[ndx:]
        of_defects, multipliers = multipliers[: N * ndx].reshape(N, ndx), multipliers[N * ndx :]
        of_rows, of_end = multipliers[: N * run].reshape(N, run), multipliers[N * run :]

        def lagrangian(w: Array, at: StepData, y: Array, m: Array) -> Array:
            cost = value_of(self.step_terms(w, at))
            return factor * cost + y @ self.step_defect(w, at) + m @ self.step_rows(w, at)

        def lagrangian_at_end(w: Array) -> Array:
            return factor * value_of(self.end_terms(w)) + of_end @ self.end_rows(w)

        H = jax.vmap(jax.hessian(lagrangian))(w, at, of_defects, of_rows)
        return jnp.concatenate([jnp.ravel(H), jnp.ravel(jax.hessian(lagrangian_at_end)(dx[-1]))])

    # where the entries are

    def jacobian_sparsity(self) -> Sparsity:
        """Places of the Jacobian's entries."""
        N, ndx, nu = self.sizes
        run, end = self.row_sizes()
        width, last = ndx + nu, np.array([N * (ndx + nu)])
        steps = np.arange(N)
        start = (N + 1) * ndx
        return joined(
            [
                blocks(np.array([0]), ndx, np.array([0]), ndx),
                blocks(ndx + ndx * steps, ndx, width * steps, 2 * ndx + nu),
                blocks(start + run * steps, run, width * steps, width),
                blocks(np.array([start + run * N]), end, last, ndx),
            ]
        )

    def hessian_sparsity(self) -> Sparsity:
        """Places of the Hessian's entries: whole blocks, of both triangles."""
        N, ndx, nu = self.sizes
        width = ndx + nu
        size, steps, last = 2 * ndx + nu if self.exact_hessian else width, width * np.arange(N), np.array([width * N])
        return joined([blocks(steps, size, steps, size), blocks(last, ndx, last, ndx)])


class StepData(NamedTuple):
    """Reference states before and after steps, the steps' data, and their indices."""

    before: Any
    after: Any
    stage: Any
    index: Any


def zw_in(w: Float[Array, " nw"], zw: Float[Array, " nz"]) -> Float[Array, " nw"]:
    """The unknowns of a step with (dx, u) replaced."""
    return jnp.concatenate([zw, w[len(zw) :]])


def blocks(rows: np.ndarray, num_rows: int, columns: np.ndarray, num_columns: int) -> Sparsity:
    """Places of dense blocks that begin at `rows` and `columns`."""
    shape = len(rows), num_rows, num_columns
    r = rows[:, None, None] + np.arange(num_rows)[:, None]
    c = columns[:, None, None] + np.arange(num_columns)
    return Sparsity(np.broadcast_to(r, shape).ravel(), np.broadcast_to(c, shape).ravel())


def joined(parts: list[Sparsity]) -> Sparsity:
    """Places of several parts, one after the other."""
    return Sparsity(np.concatenate([p.rows for p in parts]), np.concatenate([p.columns for p in parts]))
