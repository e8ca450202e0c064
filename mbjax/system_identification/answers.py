"""What a fit tells: covariance, what data cannot see, and combinations of parameters in words."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

FEWEST_DIGITS = 1e-3  # entries of a null vector below this part of the largest do not count
SHOWN_TERMS = 4
NOISE_ALONE = (
    "± is what noise alone does. Filters of positions, friction that is softer and contact that is simpler than the "
    "robot's move estimates too: look at errors on held-out logs, and fit a log that the fitted model made, treated "
    "alike."
)


@dataclasses.dataclass(frozen=True)
class Uncertainty:
    """Covariance of theta where data see it, and an orthonormal basis of what they do not."""

    covariance: Float[np.ndarray, "n n"]
    null_space: Float[np.ndarray, "n unseen"]
    singular_values: Float[np.ndarray, " n"]

    @property
    def rank(self) -> int:
        """Number of combinations that the data see."""
        return self.covariance.shape[0] - self.null_space.shape[1]

    @property
    def condition_number(self) -> float:
        """Largest over smallest singular value of the Jacobian, of what the data see."""
        seen = self.singular_values[: self.rank]
        return float(seen[0] / seen[-1]) if seen.size else np.inf


def uncertainty_of(J: Float[np.ndarray, "rows n"], variance: float, dtype: np.dtype) -> Uncertainty:
    """From the Jacobian of residuals in standard deviations, and their variance, which is 1 if they were right.

    Columns are scaled to one, so that units do not decide what counts as zero.
    """
    scale = np.linalg.norm(J, axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    _, S, Vt = np.linalg.svd(J / scale, full_matrices=True)
    n = J.shape[1]
    S = np.concatenate([S, np.zeros(n - S.size)])
    smallest = np.finfo(dtype).eps ** 0.6 * max(S.max(initial=0.0), np.finfo(float).tiny)
    seen = smallest < S
    V = Vt.T / scale[:, None]
    inverse = np.where(seen, 1.0 / np.where(seen, S, 1.0), 0.0)
    covariance = variance * (V * inverse**2) @ V.T
    null = np.linalg.qr(V[:, ~seen])[0] if np.any(~seen) else np.zeros((n, 0))
    return Uncertainty(covariance, null, S)


def is_seen(null_space: Float[np.ndarray, "n unseen"], typical: Float[np.ndarray, " n"]) -> np.ndarray:
    """Whether each parameter alone is determined: it has no part in what data do not see.

    Parts are counted in `typical` sizes of the parameters, so that units do not decide.
    """
    if not null_space.shape[1]:
        return np.ones(len(typical), bool)
    return np.linalg.norm(np.linalg.qr(null_space / typical[:, None])[0], axis=1) < 1e-4


def reduced_null_space(null_space: Float[np.ndarray, "n unseen"]) -> tuple[np.ndarray, list[int]]:
    """A basis of few entries: each vector is one at its pivot, where the others are zero (Gauss-Jordan)."""
    N = null_space.T.copy()
    pivots: list[int] = []
    for k in range(N.shape[0]):
        rest = np.abs(N[k:])
        if k:
            rest[:, pivots] = 0.0
        row, column = np.unravel_index(np.argmax(rest), rest.shape)
        N[[k, k + row]] = N[[k + row, k]]
        N[k] /= N[k, column]
        for other in range(N.shape[0]):
            if other != k:
                N[other] -= N[other, column] * N[k]
        pivots.append(int(column))
    N[np.abs(N) < FEWEST_DIGITS * np.abs(N).max(axis=1, initial=0.0, keepdims=True)] = 0.0
    return N, pivots


def unseen_in_words(
    null_space: Float[np.ndarray, "n unseen"], names: Sequence[str], units: Sequence[str], typical: np.ndarray
) -> tuple[str, ...]:
    """Sentences on what data do not see: single parameters, and combinations that may change together.

    `typical` are typical sizes of the parameters: entries that are small beside them do not count.
    """
    if not null_space.shape[1]:
        return ()
    N, pivots = reduced_null_space(null_space / typical[:, None])
    N = N * typical / typical[pivots][:, None]
    sentences = []
    for vector, pivot in sorted(zip(N, pivots, strict=True), key=lambda pair: np.count_nonzero(pair[0])):
        others = [i for i in np.argsort(-np.abs(vector)) if i != pivot and vector[i] != 0.0]
        if not others:
            sentences.append(f"{names[pivot]} is not seen at all")
            continue
        terms = [f"{names[int(i)]} by {change(float(vector[i]), units[int(i)])}" for i in others[:SHOWN_TERMS]]
        more = f" and {len(others) - SHOWN_TERMS} more" if len(others) > SHOWN_TERMS else ""
        together = f"{names[pivot]} and {names[others[0]]}" if len(others) == 1 else f"these {len(others) + 1}"
        sentences.append(
            f"only a combination of {together} is seen: {names[pivot]} may change by {change(1.0, units[pivot])} if "
            f"{', '.join(terms)}{more}"
        )
    return tuple(sentences)


def change(amount: float, unit: str) -> str:
    """A change with its sign and unit."""
    return f"{amount:+.3g} {unit}".rstrip()


def correlations_of(covariance: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """Correlations; zero for parameters without variance."""
    deviation = np.sqrt(np.diag(covariance))
    safe = np.where(deviation > 0.0, deviation, 1.0)
    return covariance / np.outer(safe, safe)
