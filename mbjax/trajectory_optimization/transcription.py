"""Transcription: the whole problem as a sparse nonlinear program, which IPOPT solves.

Unlike in shooting, states need not follow from efforts on the way, and constraints are met by the solver itself. Steps
are those of the problem, or rules of collocation, `HermiteSimpson()` and `Trapezoid()`, as its dynamics.
Wächter and Biegler 2006, "On the implementation of an interior-point filter line-search algorithm".
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.execution import is_traced
from mbjax.number_rules import POSITIVE
from mbjax.optional_packages import imported

from .abstract_solver import AbstractSolver, Found, require_solver_numbers
from .expansion import effort_slopes_of, expand
from .feasibility_ddp import clipped, limits_along
from .multipliers import Penalties, bounds_of, is_evaluated, mask_of, values_along
from .nonlinear_program import NonlinearProgram
from .problem import Problem
from .riccati import solve_riccati
from .solution import HISTORY_FIELDS, History, Outcome

WEIGHT = 1e3  # of constraints in the feedback, as in an augmented Lagrangian
STATUSES = {
    "Solve_Succeeded": Outcome.CONVERGED,
    "Infeasible_Problem_Detected": Outcome.CONSTRAINTS_VIOLATED,
    "Restoration_Failed": Outcome.CONSTRAINTS_VIOLATED,
    "Maximum_Iterations_Exceeded": Outcome.MAX_ITERATIONS,
    "Maximum_CpuTime_Exceeded": Outcome.MAX_ITERATIONS,
    "Maximum_WallTime_Exceeded": Outcome.MAX_ITERATIONS,
    "Invalid_Number_Detected": Outcome.NOT_FINITE,
}


class Transcription(AbstractSolver):
    """IPOPT on the problem's nonlinear program, with exact first derivatives in their sparsity.

    Extra `nlp`: CasADi, whose wheels hold IPOPT. `hessian` is that of Gauss and Newton, of costs alone, or "exact",
    with second derivatives of steps and constraints, which take longer to compile. `options` are IPOPT's own, by name.

    It runs on the host: not within `jit` or `vmap`. Derivatives of the optimum are those of every solver.
    """

    max_iterations: int = 500
    tolerance: float = 1e-9
    hessian: Literal["gauss_newton", "exact"] = eqx.field(static=True, default="gauss_newton")
    options: dict[str, Any] = eqx.field(static=True, default_factory=dict)

    takes_constraints = True
    runs_on_host = True

    def __check_init__(self):
        if self.hessian not in ("gauss_newton", "exact"):
            raise ModelError(f"Transcription: hessian must be 'gauss_newton' or 'exact', got {self.hessian!r}.")
        require_solver_numbers(self, ("max_iterations",), tolerance=POSITIVE)

    def search(
        self,
        problem: Problem,
        states: Any,
        efforts: Float[Array, "steps nu"],
        penalties: Penalties | None,
        history: History,
        callback: Callable | None,
    ) -> Found:
        """Solves the program from a trajectory, which may have gaps."""
        if is_traced(jax.tree.leaves((eqx.filter(problem, eqx.is_array), states, efforts))):
            raise ModelError(
                "Transcription runs on the host, not within jit or vmap: call solve outside of them, or use "
                "FeasibilityDDP or AugmentedLagrangian."
            )
        program = NonlinearProgram(problem, states, self.hessian == "exact")
        start = np.asarray(program.join(states, clipped(problem, efforts)), float)
        options = {"tol": self.tolerance, "max_iter": self.max_iterations, **IPOPT_OPTIONS, **self.options}
        ran = run_ipopt(Evaluations(program), start, options, callback)
        outcome = STATUSES.get(ran.status, Outcome.NO_DESCENT)
        weight = jnp.asarray(WEIGHT, efforts.dtype)
        z = jnp.asarray(ran.z, efforts.dtype)
        return found_of(
            program,
            z,
            jnp.asarray(ran.bound_multipliers, efforts.dtype),
            jnp.asarray(ran.row_multipliers, efforts.dtype),
            weight,
            jnp.asarray(outcome),
            filled(history, ran.entries),
        )


IPOPT_OPTIONS = {
    "acceptable_iter": 0,  # no end short of the tolerance
    "bound_relax_factor": 0.0,  # limits hold exactly
    "mu_strategy": "adaptive",
    "sb": "yes",
    "print_level": 0,
}


class Ran(NamedTuple):
    """What IPOPT ended with."""

    z: np.ndarray
    row_multipliers: np.ndarray
    bound_multipliers: np.ndarray  # above zero at the highest values, below zero at the lowest
    status: str
    entries: dict[str, list[float]]  # of the history


class Evaluations:
    """The program's functions on arrays of NumPy, each computed once for the same unknowns."""

    def __init__(self, program: NonlinearProgram):
        self.program = program
        self.jacobian = program.jacobian_sparsity()
        self.hessian = program.hessian_sparsity()
        self.lowest, self.highest = program.bounds_of_unknowns()
        self.lower, self.upper = program.bounds_of_rows()
        self.dtype = jax.tree.leaves(program.reference)[0].dtype
        self.known: dict[str, tuple[bytes, Any]] = {}

    def computed(self, name: str, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`values` or `derivatives` at z."""
        key = np.asarray(z, float).tobytes()
        if self.known.get(name, (b"",))[0] != key:
            found = getattr(self.program, name)(jnp.asarray(z, self.dtype))
            self.known[name] = key, tuple(np.asarray(a, float) for a in found)
        return self.known[name][1]

    def calc_hessian(self, z: np.ndarray, factor: float, multipliers: np.ndarray) -> np.ndarray:
        """Entries of the Hessian of factor f + multipliers · g."""
        given = (jnp.asarray(a, self.dtype) for a in (z, factor, multipliers))
        return np.asarray(self.program.hessian(*given), float)


def run_ipopt(e: Evaluations, start: np.ndarray, options: dict, callback: Callable | None) -> Ran:
    """IPOPT as CasADi calls it."""
    casadi = imported("casadi", "Transcription needs CasADi, whose wheels hold IPOPT", "nlp")
    sparse = imported("scipy.sparse", "Transcription needs scipy", "nlp")
    n, m = len(start), len(e.lower)

    def assembled(entries: np.ndarray, places: Any, shape: tuple[int, int]) -> Any:
        return sparse.csc_matrix((entries, (places.rows, places.columns)), shape)

    def pattern(places: Any, shape: tuple[int, int]) -> Any:
        ones = assembled(np.ones(len(places.rows)), places, shape)
        return casadi.Sparsity(*shape, ones.indptr.tolist(), ones.indices.tolist())

    def dense(rows: int) -> Any:
        return casadi.Sparsity.dense(rows, 1)

    one = dense(1)
    J, H = pattern(e.jacobian, (m, n)), casadi.triu(pattern(e.hessian, (n, n)))

    class Called(casadi.Callback):
        """A function that is computed here."""

        def __init__(self, name: str, inputs: list, outputs: list, function: Callable):
            casadi.Callback.__init__(self)
            self.places, self.function = (inputs, outputs), function
            self.construct(name, {})

        def get_n_in(self) -> int:
            return len(self.places[0])

        def get_n_out(self) -> int:
            return len(self.places[1])

        def get_name_in(self, i: int) -> str:
            return self.places[0][i][0]

        def get_name_out(self, i: int) -> str:
            return self.places[1][i][0]

        def get_sparsity_in(self, i: int) -> Any:
            return self.places[0][i][1]

        def get_sparsity_out(self, i: int) -> Any:
            return self.places[1][i][1]

        def eval(self, given: list) -> list:
            return self.function(*(np.asarray(x).ravel() for x in given))

    def nonzeros(matrix: Any, sparsity: Any) -> Any:
        return casadi.DM(sparsity, matrix.data)

    def values(z: np.ndarray, *_: Any) -> list:
        f, g = e.computed("values", z)
        return [casadi.DM(f), casadi.DM(g)]

    def gradient(z: np.ndarray, *_: Any) -> list:
        return [casadi.DM(e.computed("values", z)[0]), casadi.DM(e.computed("derivatives", z)[0])]

    def jacobian(z: np.ndarray, *_: Any) -> list:
        entries = assembled(e.computed("derivatives", z)[1], e.jacobian, (m, n))
        return [casadi.DM(e.computed("values", z)[1]), nonzeros(entries, J)]

    def hessian(z: np.ndarray, _: Any, factor: np.ndarray, multipliers: np.ndarray) -> list:
        entries = assembled(e.calc_hessian(z, factor[0], multipliers), e.hessian, (n, n))
        return [nonzeros(sparse.triu(entries, format="csc"), H)]

    seen = []

    def look(z: np.ndarray, f: np.ndarray, g: np.ndarray, *_: Any) -> list:
        if callback is not None:
            callback(len(seen), entry_of(e, f[0], g))
        seen.append(None)
        return [0]

    x, p, of_g, of_f = ("x", dense(n)), ("p", casadi.Sparsity(0, 0)), ("g", dense(m)), ("f", one)
    watched = [x, of_f, of_g, ("lam_x", dense(n)), ("lam_g", dense(m)), ("lam_p", casadi.Sparsity(0, 0))]
    kept = {
        "grad_f": Called("grad_f", [x, p], [of_f, ("grad_f_x", dense(n))], gradient),
        "jac_g": Called("jac_g", [x, p], [of_g, ("jac_g_x", J)], jacobian),
        "hess_lag": Called("hess_lag", [x, p, ("lam_f", one), ("lam_g", dense(m))], [("hess", H)], hessian),
        "iteration_callback": Called("look", watched, [("stop", one)], look),
    }
    nlp = Called("nlp", [x, p], [of_f, of_g], values)
    solver = casadi.nlpsol("solver", "ipopt", nlp, {**kept, "print_time": False, "no_nlp_grad": True, "ipopt": options})
    found = solver(x0=start, lbx=e.lowest, ubx=e.highest, lbg=e.lower, ubg=e.upper)
    stats = solver.stats()
    its = stats.get("iterations") or {}
    entries = {
        "cost": list(its.get("obj", ())),
        "gap": list(its.get("inf_pr", ())),
        "step_length": list(its.get("alpha_pr", ())),
        "regularization": list(its.get("regularization_size", ())),
    }
    z, of_rows, of_bounds = (np.asarray(found[name]).ravel() for name in ("x", "lam_g", "lam_x"))
    return Ran(z, of_rows, of_bounds, stats["return_status"], entries)


def entry_of(e: Evaluations, f: float, g: np.ndarray) -> dict[str, float]:
    """What a callback is told of an iteration."""
    return {"cost": float(f), "gap": float(np.max(np.maximum(e.lower - g, g - e.upper), initial=0.0))}


def filled(history: History, entries: dict[str, list[float]]) -> History:
    """The history with the iterations that a run noted."""
    fields, count = {name: getattr(history, name) for name in HISTORY_FIELDS}, 0
    for name, values in entries.items():
        values = np.asarray(values, float)[: len(history.cost)]
        count = max(count, len(values))
        fields[name] = fields[name].at[: len(values)].set(jnp.asarray(values, history.cost.dtype))
    return History(**fields, count=jnp.asarray(count, jnp.int32))


@eqx.filter_jit
def found_of(
    program: NonlinearProgram,
    z: Float[Array, " n"],
    of_bounds: Float[Array, " n"],
    of_rows: Float[Array, " m"],
    weight: Float[Array, ""],
    outcome: Array,
    history: History,
) -> Found:
    """The trajectory with its feedback, costates and multipliers, as every solver gives them.

    Interior points end a little inside of limits and bounds. Where the multiplier is larger than that distance, the
    effort is put onto its limit, and the constraint counts as active; else its multiplier is zero.
    """
    problem = program.problem
    states, efforts = program.split(z)
    room = None
    if problem.low is not None:
        low, high = limits_along(problem, efforts)
        _, slopes = program.parts(of_bounds)
        efforts = jnp.where(-slopes > efforts - low, low, jnp.where(slopes > high - efforts, high, efforts))
        room = low - efforts, high - efforts
    penalties = None
    if problem.constraints:
        penalties = Penalties(multipliers_of(program, states, efforts, of_rows), weight)
    reached = jax.vmap(problem.next_state)(
        jax.tree.map(lambda x: x[:-1], states), efforts, jax.tree.map(lambda x: x[:-1], problem.stages)
    )
    e = expand(problem, states, efforts, reached, penalties)
    feedback = solve_riccati(e, jnp.asarray(1e-9, efforts.dtype), room)
    slopes = effort_slopes_of(e)
    gap = jnp.maximum(jnp.max(jnp.abs(e.gaps)), jnp.max(jnp.abs(e.gap_at_start)))
    last = jnp.maximum(history.count - 1, 0)
    history = eqx.tree_at(lambda h: h.gap, history, history.gap.at[last].set(gap))
    return Found(states, efforts, feedback.K, feedback.V_x, slopes, e.A, e.B, penalties, outcome, history)


def multipliers_of(
    program: NonlinearProgram, states: Any, efforts: Array, of_rows: Float[Array, " m"]
) -> tuple[Float[Array, "steps_and_end size"], ...]:
    """Multipliers of every constraint at every step, zero where it is not active."""
    problem, (N, ndx, _), (run, _) = program.problem, program.sizes, program.row_sizes()
    rows = of_rows[(N + 1) * ndx :]
    running, at_end = rows[: N * run].reshape(N, run), rows[N * run :]
    values, starts, found = values_along(problem, states, efforts), [0, 0], []
    for constraint, value in zip(problem.constraints, values, strict=True):
        size, parts = value.shape[1], []
        for k, (source, shape) in enumerate(((running, (N, size)), (at_end[None], (1, size)))):
            if is_evaluated(constraint, k == 1):
                parts.append(source[:, starts[k] : starts[k] + size])
                starts[k] += size
            else:
                parts.append(jnp.zeros(shape, of_rows.dtype))
        multiplier = jnp.concatenate(parts)
        lower, upper = bounds_of(constraint, value[0])
        distance = jnp.where(multiplier > 0.0, upper - value, value - lower)
        is_active = (lower == upper) | (jnp.abs(multiplier) > distance)
        found.append(jnp.where(mask_of(problem, constraint)[:, None] & is_active, multiplier, 0.0))
    return tuple(found)
