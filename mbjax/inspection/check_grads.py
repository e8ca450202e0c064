"""Compares derivatives of a function with finite differences, and reports the worst entry by name."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Bool, Float, Int

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel
from mbjax.number_rules import is_known

from .argument_names import names_and_use, only_model

SMALLER = 4.0  # the second step of the differences is so many times smaller
MOST_NAMED = 8  # outputs that are not finite are named so far
KINK = 0.5  # of the gap between one-sided differences that must be left when the step gets smaller


@dataclasses.dataclass(frozen=True)
class GradientCheck:
    """Derivatives of all m numbers of f(x) by n numbers of x; true if both modes agree with finite differences.

    `forward`, `reverse`, `differences`, and those from `below` and `above`, are arrays (m, n); a mode that fails is
    None, and `failures` says why. `tolerance` (m, n) is how far apart they may be, and `at_kink` (m, n) where one-sided
    differences do not meet. `names` and `outputs` name the numbers of x and f(x), which are `values` and `results`.
    `worst` is the (row, column) that is farthest outside of the tolerance. An entry with anything that is not finite
    disagrees.
    """

    names: tuple[str, ...]
    outputs: tuple[str, ...]
    values: Float[np.ndarray, " n"]
    results: Float[np.ndarray, " m"]
    forward: Float[np.ndarray, "m n"] | None
    reverse: Float[np.ndarray, "m n"] | None
    differences: Float[np.ndarray, "m n"]
    below: Float[np.ndarray, "m n"]
    above: Float[np.ndarray, "m n"]
    tolerance: Float[np.ndarray, "m n"]
    at_kink: Bool[np.ndarray, "m n"]
    failures: dict[str, str]
    left_out: int

    @property
    def disagreement(self) -> Float[np.ndarray, "m n"]:
        """How far forward or reverse mode is from finite differences, in tolerances; inf where that is not finite."""
        with np.errstate(invalid="ignore", over="ignore"):
            apart = [np.abs(each - self.differences) for each in (self.forward, self.reverse) if each is not None]
            if self.forward is not None and self.reverse is not None:
                apart.append(np.abs(self.forward - self.reverse))
            ratio = (np.max(apart, axis=0) if apart else np.full_like(self.differences, np.inf)) / self.tolerance
        return np.where(np.isfinite(ratio), ratio, np.inf)

    @property
    def worst(self) -> tuple[int, int]:
        """Row and column of the entry that agrees least."""
        row, column = np.unravel_index(np.argmax(self.disagreement), self.differences.shape)
        return int(row), int(column)

    def __bool__(self) -> bool:
        return not self.failures and bool(np.all(self.disagreement <= 1.0))

    def __repr__(self) -> str:
        return f"GradientCheck(agrees={bool(self)}, outputs={len(self.outputs)}, entries={len(self.names)})"

    def __str__(self) -> str:
        lines = [f"{mode} mode fails: {why}" for mode, why in self.failures.items()]
        if not self.differences.size:
            return "\n".join([*lines, "there is nothing to differentiate"])
        if len(self.failures) == 2:
            return "\n".join([*lines, "there is no derivative to compare with finite differences"])
        bad = self.disagreement > 1.0
        count = f"{int(bad.sum())} of {bad.size} entries disagree" if bad.any() else f"all {bad.size} entries agree"
        count += f" in {'reverse' if 'forward' in self.failures else 'forward'} mode" if self.failures else ""
        left = f"; {self.left_out} were left out" if self.left_out else ""
        row, k = self.worst
        of = f"{self.outputs[row]} by " if len(self.outputs) > 1 else ""
        lines += [f"{count}{left}", *self._lines_of_bad_results()]
        lines.append(f"worst: {of}{self.names[k]} = {self.values[k]:.6g}")
        for mode in ("forward", "reverse"):
            found = getattr(self, mode)
            lines += [f"  {mode + ' mode':19} {found[row, k]:+.9e}"] if found is not None else []
        lines.append(f"  {'finite differences':19} {self.differences[row, k]:+.9e} ± {self.tolerance[row, k]:.0e}")
        if self.at_kink[row, k]:
            lines += [
                f"  {'from below, above':19} {self.below[row, k]:+.9e}, {self.above[row, k]:+.9e}",
                "  x is at a kink here: the differences from below and from above do not meet, so there is no one",
                "  derivative. Move x a little, or expect that of one side.",
            ]
        elif np.isfinite(self.results[row]) and not np.isfinite(self.differences[row, k]):
            lines.append("  The function is not finite next to x, so that there are no differences.")
        elif bad[row, k] and np.isfinite(self.differences[row, k]):
            lines.append("  x is not at a kink here: differences from below and above meet.")
        others = int(self.at_kink.sum()) - int(self.at_kink[row, k])
        lines += [f"{others} other entries are at a kink"] if others else []
        return "\n".join(lines)

    def _lines_of_bad_results(self) -> list[str]:
        """A line that names the outputs that are not finite at x, if any."""
        bad = np.flatnonzero(~np.isfinite(self.results))
        if not len(bad):
            return []
        named = [f"{self.outputs[k]} is {self.results[k]}" for k in bad[:MOST_NAMED]]
        more = f", and {len(bad) - MOST_NAMED} more are not finite" if len(bad) > MOST_NAMED else ""
        return [f"not finite at x: {', '.join(named)}{more}; no derivative of these can agree"]


def check_grads(
    function: Callable[[Any], Any],
    x: Any,
    *,
    model: MultibodyModel | None = None,
    most_entries: int = 1000,
    quiet: bool = False,
) -> GradientCheck:
    """Compares `function`'s derivatives at x, by forward and reverse mode, with finite differences; prints the worst.

    x is a model, a state, an array, or any tree of them with floats; so is what the function returns. Entries have the
    names of a model's elements, as "mass of 'forearm'", or of coordinates if `model` is given or part of x. Differences
    are central, extrapolated from two steps. Those from one side tell whether x is at a kink, where a contact closes or
    a limit is met, and no derivative is right for both sides. More than `most_entries` numbers of x are thinned evenly.
    Call it in double precision (`jax_enable_x64`): in single precision differences have two or three digits.
    """
    if not is_known(x):
        raise ModelError("check_grads: the numbers of x are traced; call it outside of jit.")
    names, use = names_and_use(x, model)
    flat, unravel = ravel_pytree(jax.tree.map(jnp.asarray, x))
    if not jnp.issubdtype(flat.dtype, jnp.floating) or not use.any():
        raise ModelError("check_grads: x has no finite floating-point numbers to differentiate by.")
    outputs: list[str] = []

    def of_flat(flat: Any) -> Any:
        result = function(unravel(flat))
        outputs[:] = names_and_use_of_shapes(result, only_model(x) if model is None else model)
        return ravel_pytree(jax.tree.map(jnp.asarray, result))[0]

    chosen = np.flatnonzero(use)
    if len(chosen) > most_entries:
        chosen = chosen[np.unique(np.linspace(0, len(chosen) - 1, most_entries).astype(int))]
    value = np.asarray(jax.jit(of_flat)(flat), np.float64)
    found, failures = {}, {}
    for mode, jacobian in (("forward", forward_columns), ("reverse", reverse_columns)):
        try:
            found[mode] = np.asarray(jacobian(of_flat, flat, chosen), np.float64)
        except Exception as error:  # whatever a mode raises is what the caller wants to know
            failures[mode] = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"
    check = GradientCheck(
        tuple(names[k] for k in chosen), tuple(outputs), np.asarray(flat)[chosen], value,
        found.get("forward"), found.get("reverse"), *finite_differences(of_flat, flat, value, chosen),
        failures, int(use.sum()) - len(chosen),
    )  # fmt: skip
    if not quiet:
        print(check)
    return check


def names_and_use_of_shapes(result: Any, model: MultibodyModel | None) -> list[str]:
    """Names of the numbers of a traced result, which depend on shapes only."""
    shapes = jax.tree.map(lambda leaf: np.zeros(jnp.shape(leaf)), result)
    return [name if name != "x" else "f(x)" for name in names_and_use(shapes, model)[0]]


def forward_columns(of_flat: Callable, flat: Any, chosen: np.ndarray) -> Any:
    """Columns (m, n) of the Jacobian by forward mode."""

    def column(k: Any) -> Any:
        tangent = jnp.zeros_like(flat).at[k].set(1.0)
        return jax.jvp(of_flat, (flat,), (tangent,))[1]

    return jax.jit(lambda: jax.lax.map(column, jnp.asarray(chosen)))().T


def reverse_columns(of_flat: Callable, flat: Any, chosen: np.ndarray) -> Any:
    """Columns (m, n) of the Jacobian by reverse mode."""
    return jax.jit(lambda: jax.jacrev(of_flat)(flat)[:, jnp.asarray(chosen)])()


def finite_differences(
    of_flat: Callable, flat: Any, value: Float[np.ndarray, " m"], chosen: Int[np.ndarray, " n"]
) -> tuple[
    Float[np.ndarray, "m n"],
    Float[np.ndarray, "m n"],
    Float[np.ndarray, "m n"],
    Float[np.ndarray, "m n"],
    Bool[np.ndarray, "m n"],
]:
    """Differences: central, from below, from above; tolerances; and where one-sided ones do not meet."""
    epsilon = float(jnp.finfo(flat.dtype).eps)
    at = np.asarray(flat, np.float64)[chosen]
    small = epsilon ** (1.0 / 3.0) * np.maximum(np.abs(at), 1e-2)
    count = len(chosen)
    shifts = np.concatenate([SMALLER * small, -SMALLER * small, small, -small])
    where = jnp.asarray(np.tile(chosen, 4))

    def moved(each: Any) -> Any:
        k, shift = each
        after = flat.at[k].add(shift)
        return of_flat(after), after[k] - flat[k]

    values, steps = jax.jit(lambda: jax.lax.map(moved, (where, jnp.asarray(shifts, flat.dtype))))()
    values = np.asarray(values, np.float64).reshape(4, count, -1)
    steps = np.asarray(steps, np.float64).reshape(4, count, 1)
    sizes = np.where(np.isfinite(value), np.abs(value), 0.0)
    noise = 16.0 * epsilon * np.maximum(sizes, 1e-3 * sizes.max(initial=0.0)) / np.abs(steps[2])
    with np.errstate(invalid="ignore", over="ignore"):  # outputs that are not finite; `disagreement` tells them
        far_above, far_below, above, below = (values - value) / steps
        far, near = ((values[i] - values[i + 1]) / (steps[i] - steps[i + 1]) for i in (0, 2))
        central = near + (near - far) / (SMALLER**2 - 1.0)
        gap, far_gap = np.abs(above - below), np.abs(far_above - far_below)
        rounding = epsilon ** (1.0 / 3.0) * np.maximum(np.abs(above), np.abs(below))
        at_kink = (gap > KINK * far_gap) & (gap > 4.0 * noise + 4.0 * rounding)
        tolerance = noise + 4.0 * np.abs(near - far) / (SMALLER**2 - 1.0) * ~at_kink
        tolerance += 10.0 * epsilon ** (1.0 / 3.0) * np.abs(central) + 1e-300
    return central.T, below.T, above.T, tolerance.T, at_kink.T
