"""Distributions of a model's numbers: what is drawn, and whether it replaces, multiplies or shifts the number."""

import dataclasses
import math
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mbjax.errors import ModelError
from mbjax.number_rules import FINITE, checked_numbers, is_known


@dataclasses.dataclass(frozen=True)
class Distribution:
    """A distribution of numbers, made by `uniform`, `log_uniform` or `normal`.

    `first` and `second` are its bounds, or its mean and standard deviation. A draw replaces the model's number, is a
    factor of it ("relative"), or is added to it ("add"). With `shared`, all numbers that a pattern matches have the
    same draw.
    """

    kind: Literal["uniform", "log_uniform", "normal"]
    first: float
    second: float
    how: Literal["replace", "relative", "add"] = "replace"
    shared: bool = False

    def __post_init__(self) -> None:
        known = {"kind": ("uniform", "log_uniform", "normal"), "how": ("replace", "relative", "add")}
        for what, names in known.items():
            if getattr(self, what) not in names:
                came = getattr(self, what)
                raise ModelError(f"Distribution: {what} must be one of {', '.join(names)}, got {came!r}.")
        call = f"{self.kind}({self.first}, {self.second})"
        if not is_known(self.first, self.second):
            raise ModelError(f"{call}: the two numbers must be known, and one of them is traced.")
        for value in (self.first, self.second):
            checked_numbers(call, "what is given", value, FINITE)
        if self.kind == "normal":
            if self.second < 0.0:
                raise ModelError(f"{call}: the mean must be finite and the standard deviation >= 0.")
        elif self.first > self.second or (self.kind == "log_uniform" and self.first <= 0.0):
            least = "above 0, " if self.kind == "log_uniform" else ""
            raise ModelError(f"{call}: the bounds must be {least}finite and in order.")
        for name in ("first", "second"):
            object.__setattr__(self, name, float(getattr(self, name)))

    def draw(self, key: PRNGKeyArray, number: int, dtype: jnp.dtype) -> Float[Array, " n"]:
        """Draws `number` numbers."""
        shape = (1,) if self.shared else (number,)
        if self.kind == "normal":
            drawn = self.first + self.second * jax.random.normal(key, shape, dtype)
        elif self.kind == "uniform":
            drawn = jax.random.uniform(key, shape, dtype, self.first, self.second)
        else:
            low, high = math.log(self.first), math.log(self.second)
            drawn = jnp.exp(jax.random.uniform(key, shape, dtype, low, high))
        return jnp.broadcast_to(drawn, (number,))

    def apply(self, values: Float[Array, " n"], drawn: Float[Array, " n"]) -> Float[Array, " n"]:
        """The new numbers."""
        return {"replace": drawn, "relative": values * drawn, "add": values + drawn}[self.how]

    def __str__(self) -> str:
        how = {"replace": "", "relative": ", relative=True", "add": ", add=True"}[self.how]
        return f"{self.kind}({self.first:g}, {self.second:g}{how})"


def uniform(
    low: float, high: float, *, relative: bool = False, add: bool = False, shared: bool = False
) -> Distribution:
    """Numbers between two bounds; `relative=True` multiplies the model's number, `add=True` adds to it.

    `shared=True` draws one number for all elements that a pattern matches.
    """
    return Distribution("uniform", low, high, how_of("uniform", relative, add), shared)


def log_uniform(
    low: float, high: float, *, relative: bool = False, add: bool = False, shared: bool = False
) -> Distribution:
    """Positive numbers whose logarithm is uniform: each order of magnitude is as likely; options as of `uniform`."""
    return Distribution("log_uniform", low, high, how_of("log_uniform", relative, add), shared)


def normal(
    mean: float, standard_deviation: float, *, relative: bool = False, add: bool = False, shared: bool = False
) -> Distribution:
    """Gaussian numbers, without bounds; options as of `uniform`. `normal(1.0, 0.05, relative=True)` scales by ±5 %."""
    return Distribution("normal", mean, standard_deviation, how_of("normal", relative, add), shared)


def how_of(call: str, relative: bool, add: bool) -> Literal["replace", "relative", "add"]:
    """What a draw does to the model's number."""
    if relative and add:
        raise ModelError(f"{call}: relative=True multiplies and add=True adds; give one of them.")
    return "relative" if relative else "add" if add else "replace"
