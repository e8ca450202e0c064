"""What values a parameter may take: each space maps one number that may take any value to such a value."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError

FREE, LOGARITHM, SOFTPLUS, LOGISTIC, FIXED = "free", "logarithm", "softplus", "logistic", "fixed"


@dataclasses.dataclass(frozen=True)
class Space:
    """Values of a parameter, and how far they are believed to be from the model's.

    `low` and `high` bound the value: factors of the model's value if `is_relative`. `prior` is the standard deviation
    of a Gaussian belief around the starting value: in parts of that value for `positive`, `scaled` and physical masses,
    of log-Cholesky numbers for physical inertias (0.1 is about a tenth of a body's extent), else in the value's unit.
    `start` replaces the model's value as the starting value, not in the bounds. Numbers of one kind whose spaces are
    `shared` under one name have one value, which goes by that name.
    """

    kind: str
    low: float = -np.inf
    high: float = np.inf
    is_relative: bool = False
    prior: float | None = None
    start: float | None = None
    nearest: bool = False  # inertias that no body can have start at the nearest one
    shared: str | None = None

    def __post_init__(self) -> None:
        if self.prior is not None and not 0.0 < self.prior < np.inf:
            raise ModelError(f"{self.kind}: prior must be a standard deviation > 0, got {self.prior}.")


def scaled(low: float, high: float, *, prior: float | None = None, start: float | None = None) -> Space:
    """Values between `low` and `high` times the model's, wherever they start: `scaled(0.5, 2.0)`.

    `prior` is in parts of the value.
    """
    if not low < 1.0 < high:
        raise ModelError(f"scaled({low}, {high}): the factors must have 1, the model's value, between them.")
    return Space("scaled", low, high, is_relative=True, prior=prior, start=start)


def between(low: float, high: float, *, prior: float | None = None, start: float | None = None) -> Space:
    """Values between two bounds, in the value's unit."""
    if not -np.inf < low < high < np.inf:
        raise ModelError(f"between({low}, {high}): the bounds must be finite and in order.")
    return Space("between", low, high, prior=prior, start=start)


def positive(*, prior: float | None = None, start: float | None = None) -> Space:
    """Values above zero. One that is zero in the model starts at `start`, 0.1 if none is given."""
    if start is not None and not start > 0.0:
        raise ModelError(f"positive(start={start}): it must be above 0.")
    return Space("positive", low=0.0, prior=prior, start=start)


def free(*, prior: float | None = None, start: float | None = None) -> Space:
    """Any value."""
    return Space("free", prior=prior, start=start)


def physical(*, prior: float | None = None, nearest: bool = False) -> Space:
    """Inertias that a body can have: the log-Cholesky numbers of Rucker and Wensing (2022) may take any value.

    With `nearest`, bodies whose inertia in the model is none that a body can have, or that of a point, a rod or a
    sheet, start at the nearest one that is.
    """
    return Space("physical", prior=prior, nearest=nearest)


def shared(name: str, space: Space) -> Space:
    """One value for all numbers of a kind that are shared under this name, within `space`.

    `{f"youngs_modulus:bar.{e}": shared("upper", positive()) for e in upper}` is one unknown, `youngs_modulus:upper`,
    and `{"joint_damping:*": shared("joints", positive())}` one damping for all joints.
    """
    if not isinstance(name, str) or not name:
        raise ModelError(f"shared: the first argument is the name of the common value, such as 'upper', got {name!r}.")
    if not isinstance(space, Space) or space.kind in ("physical", FIXED):
        came = f"{space.kind}()" if isinstance(space, Space) else repr(space)
        raise ModelError(
            f"shared('{name}', …): numbers may share a value within positive(), scaled(), between() or free(); "
            f"got {came}."
        )
    return dataclasses.replace(space, shared=name)


def fixed() -> Space:
    """Takes parameters that an earlier pattern chose out again."""
    return Space(FIXED)


@dataclasses.dataclass(frozen=True)
class Coding:
    """How one number theta stands for one value: value = f(theta), with the bounds or scale of f."""

    kind: str
    low: float = 0.0
    high: float = 1.0
    scale: float = 1.0


def coding_of(name: str, space: Space, value: float, scale: float) -> tuple[Coding, float]:
    """The coding of one value in a space, and the value to start from; raises `ModelError` if it is outside."""
    of_model, whose = value, "in the model" if space.start is None else "at start"
    value = value if space.start is None else space.start
    if space.kind in ("free", "physical"):  # physical are log-Cholesky numbers here
        return Coding(FREE, value, scale=scale), value
    if space.kind == "positive":
        if value < 0.0:
            raise ModelError(f"parameter '{name}': its value is {value:g}, and positive() wants one above 0.")
        if value > 0.0:
            return Coding(LOGARITHM), value
        return Coding(SOFTPLUS, scale=0.1), 0.1
    low, high = sorted((space.low * of_model, space.high * of_model)) if space.is_relative else (space.low, space.high)
    if space.is_relative and of_model == 0.0:
        raise ModelError(
            f"parameter '{name}' is 0 in the model, so that scaled({space.low}, {space.high}) holds it there; use "
            "between(low, high) or positive(start=...)."
        )
    if not low < value < high:
        raise ModelError(f"parameter '{name}' is {value:g} {whose}, not between {low:g} and {high:g}.")
    return Coding(LOGISTIC, low, high), value


def decode(codings: tuple[Coding, ...], theta: Float[Array, " n"]) -> Float[Array, " n"]:
    """Values of numbers theta.

    free  low + scale theta      logarithm  exp theta      softplus  scale log(1 + exp theta)
    logistic  low + (high - low) / (1 + exp(-theta))
    """
    parts, places = [], []
    for kind in sorted({coding.kind for coding in codings}):
        rows = np.array([i for i, coding in enumerate(codings) if coding.kind == kind])
        low, high, scale = (
            jnp.asarray([getattr(codings[i], field) for i in rows], theta.dtype) for field in ("low", "high", "scale")
        )
        x = theta[rows]
        if kind == FREE:
            parts.append(low + scale * x)
        elif kind == LOGARITHM:
            parts.append(jnp.exp(x))
        elif kind == SOFTPLUS:
            parts.append(scale * jax.nn.softplus(x))
        else:
            parts.append(low + (high - low) * jax.nn.sigmoid(x))
        places.append(rows)
    if not parts:
        return theta
    order = np.argsort(np.concatenate(places))
    return jnp.concatenate(parts)[order]


def encode(coding: Coding, value: float) -> float:
    """The number that stands for a value: the inverse of `decode`; values on or outside a bound are moved inside."""
    if coding.kind == FREE:
        return (value - coding.low) / coding.scale
    if coding.kind == LOGARITHM:
        return float(np.log(max(value, 1e-12)))
    if coding.kind == SOFTPLUS:
        return float(np.log(np.expm1(max(value / coding.scale, 1e-12))))
    part = np.clip((value - coding.low) / (coding.high - coding.low), 1e-9, 1.0 - 1e-9)
    return float(np.log(part) - np.log1p(-part))
