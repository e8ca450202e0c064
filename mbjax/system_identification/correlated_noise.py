"""Error bars where errors are not white: autoregressive models of what a fit leaves, and what they do to covariances.

    u_t = a_1 u_(t-1) + … + a_p u_(t-p) + e_t      (Yule and Walker; the order p by the Bayesian information criterion)
    cov = H⁻¹ (Σ_c X_cᵀ Γ_c X_c) H⁻¹,              H = Σ_c X_cᵀ X_c
X_c are the slopes of channel c in standard deviations, and Γ_c the covariance of its errors in time. A product with Γ
is a filter, Γ = s² A⁻¹ A⁻ᵀ (Söderström and Stoica 1989, section 7.3). White errors give back H⁻¹ s².
"""

import dataclasses
from collections.abc import Iterable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution import call_compiled

from .answers import Uncertainty
from .method import MethodWithRows
from .parameters import Parameters
from .search import Found

MOST_LAGS = 100


@dataclasses.dataclass(frozen=True)
class Scatter:
    """Covariance of theta with the errors' own distribution, the data of each channel, and what they are worth.

    `errors` are those of each log's rows in standard deviations, and ones where they are data.
    """

    covariance: Float[np.ndarray, "n n"]
    samples: Float[np.ndarray, " channels"]
    effective: Float[np.ndarray, " channels"]
    errors: list[tuple[np.ndarray, np.ndarray]]


Series = tuple[Float[np.ndarray, " steps"], Float[np.ndarray, " steps"]]  # values, and ones where they are data


@dataclasses.dataclass(frozen=True)
class NoiseModel:
    """An autoregressive model: x_t = a · (x_(t-1), …) + e_t with e of variance `innovation`."""

    coefficients: Float[np.ndarray, " order"]
    innovation: float
    variance: float

    @property
    def is_white(self) -> bool:
        return self.coefficients.size == 0

    def colored(self, X: Float[np.ndarray, "steps n"]) -> Float[np.ndarray, "steps n"]:
        """Rows Z with ZᵀZ = Xᵀ Γ X, where Γ is the covariance of the noise at these times."""
        if self.is_white:
            return np.sqrt(self.variance) * X
        from scipy import signal

        a = np.concatenate([[1.0], -self.coefficients])
        return np.asarray(signal.lfilter([np.sqrt(self.innovation)], a, X[::-1], axis=0))


def noise_model(series: Sequence[Series]) -> NoiseModel:
    """The model of a channel's errors in one log or several, by their common autocovariances."""
    count = int(sum(np.sum(kept) for _, kept in series))
    most = max(0, min(MOST_LAGS, count // 20, *(len(u) - 1 for u, _ in series)))
    gamma = autocovariances(series, most)
    if gamma[0] <= 0.0 or count < 20:
        return NoiseModel(np.zeros(0), gamma[0], gamma[0])
    best, least = (np.zeros(0), gamma[0]), np.log(gamma[0])
    for order, (a, innovation) in enumerate(levinson(gamma), 1):
        if innovation <= 1e-12 * gamma[0]:
            break
        criterion = np.log(innovation) + order * np.log(count) / count
        if criterion < least:
            best, least = (a, innovation), criterion
    return NoiseModel(*best, gamma[0])


def common_noise_model(scores: Sequence[tuple[np.ndarray, np.ndarray]]) -> NoiseModel:
    """The model of noise that all channels hold together, of which a projection left each a part.

    With r = P e and e alike and independent in all joints, sum_c X_cᵀ Γ X_c with one Γ is the covariance of the slopes
    X = P X times r, however P mixes joints.
    """
    model = noise_model([(u[:, c], kept[:, c]) for u, kept in scores for c in range(u.shape[1])])
    rows, data = (sum(float(np.sum(f(kept))) for _, kept in scores) for f in (lambda x: x > 0.0, np.asarray))
    whole = rows / max(data, 1.0)
    return NoiseModel(model.coefficients, whole * model.innovation, whole * model.variance)


def autocovariances(series: Sequence[Series], most: int) -> Float[np.ndarray, " lags"]:
    """Mean products of errors so many samples apart, up to `most`; what is no data is left out of sum and count.

    All are divided by the number of pairs that whole logs have at lag 0, as far as gaps allow, which keeps the sequence
    positive definite.
    """
    total = np.zeros(most + 1)
    for lag in range(most + 1):
        products = pairs = places = 0.0
        for u, kept in series:
            u, kept = u * (kept > 0.0), (kept > 0.0).astype(float)
            products += float(u[lag:] @ u[: len(u) - lag])
            pairs += float(kept[lag:] @ kept[: len(u) - lag])
            places += len(u) - lag
        whole = sum(len(u) for u, _ in series)
        total[lag] = products / max(pairs, 1.0) * places / whole
    return total


def levinson(gamma: Float[np.ndarray, " lags"]) -> Iterable[tuple[np.ndarray, float]]:
    """Coefficients and innovation variances of orders 1, 2, …, by the recursion of Levinson and Durbin."""
    a, innovation = np.zeros(0), float(gamma[0])
    for k in range(1, len(gamma)):
        reflection = (gamma[k] - a @ gamma[k - 1 : 0 : -1]) / innovation
        if abs(reflection) >= 1.0:
            return
        a = np.concatenate([a - reflection * a[::-1], [reflection]])
        innovation *= 1.0 - reflection**2
        yield a, innovation


def with_correlated_noise(method: MethodWithRows, unknown: Parameters, found: Found, classical: Uncertainty) -> Scatter:
    """How theta scatters where errors are correlated in time, or far from normal.

    `classical` is the uncertainty for white errors of standard deviation one. A robust loss has scores for errors, and
    its mean slope divides them (Huber 1981, section 7.6). Where the noise was given, the errors tell only how it is
    correlated.
    """
    theta = found.y[: len(unknown)]
    plain, loss = method.plain, method.loss_of
    in_problem = loss.is_robust and not method.can_clean(unknown)
    parts = [plain.rows_of(unknown, theta, log, with_slopes=False)[::2] for log in found.logs]
    scores = [(e * found.weights, kept) for e, kept in parts]
    slope = found.score_slope
    if in_problem:
        z, kept = (np.concatenate([part[i] for part in scores]) for i in (0, 1))
        slopes = np.asarray(loss.score_slope(jnp.asarray(z))) * (kept > 0.0)
        slope = slopes.sum(0) / np.maximum((kept > 0.0).sum(0), 1.0)
        scores = [(np.asarray(loss.score(jnp.asarray(z))), kept) for z, kept in scores]
    channels = range(len(found.weights))
    if found.problem.has_common_noise:
        models = [common_noise_model(scores)] * len(channels)
    else:
        models = [noise_model([(u[:, c], kept[:, c]) for u, kept in scores]) for c in channels]
    counts = np.array([sum(kept[:, c].sum() for _, kept in scores) for c in channels])
    freedom = max(1.0, counts.sum() - classical.rank)
    factor = counts.sum() / freedom / np.maximum(slope, 0.1) ** 2
    if found.noise_is_known and not loss.is_robust:
        factor = np.array([1.0 / max(model.variance, np.finfo(float).tiny) for model in models])
    C, n = classical.covariance, len(unknown)
    middle, white, colored = np.zeros((n, n)), np.zeros(len(counts)), np.zeros(len(counts))
    for log in found.logs:
        X_all = plain.rows_of(unknown, theta, log)[1]
        assert X_all is not None
        for c in channels:
            X = found.weights[c] * X_all[:, c]
            Z = models[c].colored(X)
            G = Z.T @ Z
            middle += factor[c] * G
            white[c] += models[c].variance * np.sum(X * (X @ C))
            colored[c] += np.sum(C * G)
    prior = prior_information(unknown, theta)
    effective = counts * np.where(colored > 0.0, white / np.where(colored > 0.0, colored, 1.0), 1.0)
    return Scatter(C @ (middle + prior) @ C, counts, np.minimum(effective, counts), scores)


def prior_information(unknown: Parameters, theta: Array) -> Float[np.ndarray, "n n"]:
    """What priors add to JᵀJ."""
    J = np.asarray(call_compiled(slopes_of_priors, unknown, theta), float)
    return J.T @ J


def slopes_of_priors(unknown: Parameters, theta: Array) -> Float[Array, "priors n"]:
    """Derivatives of the priors' residuals."""
    return jax.jacfwd(unknown.prior_residuals)(theta)
