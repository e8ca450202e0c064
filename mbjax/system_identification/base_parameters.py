"""Base parameters: which combinations of a regressor's numbers motions can show, and which they cannot."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution import call_compiled, compiled_outside_jit
from mbjax.kinematics import integrate_configuration
from mbjax.linear_algebra import singular_values
from mbjax.model import MultibodyModel

from .regressor import linear_parameter_names, regressor_of_log

UNSEEN = 1e-8  # of the largest column's norm, in double precision
DEPENDENT = 1e-7  # of a column's norm, and of the largest factor
COLUMN_ROUNDING = 1e3  # times the type's epsilon: what rounding leaves of a column that others span


@dataclasses.dataclass(frozen=True, eq=False)
class BaseParameters:
    """Combinations of the linear parameters that the rows of a regressor tell apart.

    beta = pi[independent] + combinations @ pi[dependent] are the base parameters: Y pi = Y[:, independent] beta.
    `unseen` have zero columns. A column counts as dependent if those before it span
    it, by orthogonalization (Gautier 1991), from the last body to the first.
    """

    names: tuple[str, ...]
    independent: np.ndarray
    dependent: np.ndarray
    unseen: np.ndarray
    combinations: Float[np.ndarray, "rank dependent"]
    condition_number: float  # of Y[:, independent] with columns scaled to one

    @property
    def rank(self) -> int:
        return len(self.independent)

    @property
    def matrix(self) -> Float[np.ndarray, "rank parameters"]:
        """B with beta = B pi."""
        B = np.zeros((self.rank, len(self.names)))
        B[np.arange(self.rank), self.independent] = 1.0
        B[:, self.dependent] = self.combinations
        return B

    def values(self, pi: Float[Array, " parameters"]) -> Float[np.ndarray, " rank"]:
        """Base parameters beta of linear parameters pi."""
        return self.matrix @ np.asarray(pi, float)

    def in_words(self) -> tuple[str, ...]:
        """What is seen: a sentence for every combination, and one for each number that has no influence."""
        sentences = [
            f"only {self.names[k]} {terms} is seen, not each by itself"
            for k, terms in zip(self.independent, self.terms(), strict=True)
            if terms
        ]
        sentences += [f"{self.names[i]} is not seen at all" for i in self.unseen]
        return tuple(sentences)

    def terms(self) -> tuple[str, ...]:
        """For each base parameter what is added to the number that stands first, the largest factor first."""
        found = []
        for row in self.combinations:
            others = [i for i in np.argsort(-np.abs(row)) if abs(row[i]) > 1e-9]
            found.append(" ".join(f"{row[i]:+.4g} {self.names[self.dependent[i]]}" for i in others))
        return tuple(found)

    def __str__(self) -> str:
        head = f"{self.rank} of {len(self.names)} numbers can be told apart; condition {self.condition_number:.3g}."
        return "\n".join([head, *(f"- {sentence}" for sentence in self.in_words())])


def base_parameters(
    model: MultibodyModel, Y: Float[Array, "rows parameters"] | None = None, *, samples: int = 200, seed: int = 0
) -> BaseParameters:
    """Base parameters that rows of a regressor show, or, without rows, those that any motion can show.

    Without rows `samples` random positions, velocities and accelerations stand for all motions: what is then not seen,
    no experiment on this robot can show. Give the rows of a log, `regressor_of_log(...).reshape(-1, n)`, for what that
    log shows, with its `contacts=` where contact forces are unknown.
    """
    names = linear_parameter_names(model)
    rows = random_rows(model, samples, seed) if Y is None else np.asarray(Y, float).reshape(-1, len(names))
    given = np.asarray(rows if Y is None else Y).dtype
    single = np.float32 in (model.dtype, given)  # also where single precision was made double afterwards
    return base_of_rows(names, rows, np.dtype(np.float32 if single else np.float64))


def base_of_rows(names: tuple[str, ...], rows: Float[np.ndarray, "rows n"], dtype: np.dtype) -> BaseParameters:
    """Base parameters that rows show of the numbers with these names; `dtype` is what the rows were computed in."""
    rounding = COLUMN_ROUNDING * float(np.finfo(dtype).eps)
    least, dependent = max(UNSEEN, 0.1 * rounding), max(DEPENDENT, rounding)
    norms = np.linalg.norm(rows, axis=0)
    unseen = np.flatnonzero(norms <= least * norms.max(initial=0.0))
    seen = np.setdiff1d(np.arange(len(names)), unseen)
    scale = norms[seen]
    compressed = r_factor(rows[:, seen] / scale)
    order = np.arange(len(seen))[::-1]  # from the last body to the first: numbers near the tip stand for themselves
    R, pivots = echelon(compressed[:, order], dependent)
    columns = order[pivots]
    rank = R.shape[0]
    chosen, rest = columns[:rank], columns[rank:]
    mixed = np.linalg.solve(R[:, :rank], R[:, rank:])
    mixed = mixed * scale[rest] / scale[chosen][:, None]
    mixed[np.abs(mixed) < dependent * max(1.0, np.abs(mixed).max(initial=0.0))] = 0.0
    S = np.linalg.svd(compressed[:, chosen], compute_uv=False)
    return BaseParameters(names, seen[chosen], seen[rest], unseen, mixed, float(S[0] / S[-1]))


def r_factor(A: Float[np.ndarray, "rows n"]) -> Float[np.ndarray, "few n"]:
    """R of the QR factorization."""
    return np.asarray(np.linalg.qr(A)[1])


def echelon(A: Float[np.ndarray, "rows n"], dependent: float) -> tuple[np.ndarray, np.ndarray]:
    """R of A with its columns in the order: those independent of all before them, then the others.

    Of a dependent column at most this part of its norm is not in the span of those before.
    """
    R = r_factor(A)
    independent: list[int] = []
    basis = np.zeros((R.shape[0], 0))
    for k in range(R.shape[1]):
        column = R[:, k] - basis @ (basis.T @ R[:, k])
        column = column - basis @ (basis.T @ column)
        size = np.linalg.norm(column)
        if size > dependent * max(np.linalg.norm(R[:, k]), 1e-300):
            basis = np.concatenate([basis, (column / size)[:, None]], 1)
            independent.append(k)
    others = [k for k in range(R.shape[1]) if k not in set(independent)]
    order = np.array([*independent, *others], int)
    return basis.T @ R[:, order], order


def random_rows(model: MultibodyModel, samples: int, seed: int) -> Float[np.ndarray, "rows parameters"]:
    """Regressors of random motions, positions all around."""
    keys = jax.random.split(jax.random.key(seed), 3)
    shape = samples, model.num_velocities
    motion = (2.0 * jax.random.normal(key, shape, model.dtype) for key in keys)
    Y = call_compiled(rows_about_start, model, *motion)
    return np.asarray(Y, float).reshape(-1, Y.shape[-1])


def rows_about_start(
    model: MultibodyModel, dq: Float[Array, "steps nv"], v: Float[Array, "steps nv"], vdot: Float[Array, "steps nv"]
) -> Float[Array, "steps nv parameters"]:
    """Regressors at positions that are dq from the default ones."""
    q = jax.vmap(lambda d: integrate_configuration(model, model.parameters.default_positions, d))(dq)
    return regressor_of_log(model, q, v, vdot)


@compiled_outside_jit
def condition_number(Y: Float[Array, "rows n"]) -> Float[Array, ""]:
    """Condition number of a regressor whose columns are scaled to one: how evenly a motion excites its numbers."""
    norms = jnp.sum(Y * Y, 0)
    scale = jnp.where(norms > 0.0, norms, 1.0)
    S = singular_values(Y * jax.lax.rsqrt(scale))
    return S[0] / S[-1]
