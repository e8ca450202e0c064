"""Forward mode = reverse mode = finite differences, entry by entry, with the worst one named."""

import functools
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

import mbjax
from tests.xla_options import FAST_TO_COMPILE

WHOLE_RUN = "MBJAX_TRIMMED_TESTS" not in os.environ
"""Whether gradients have a third way: the trimmed run leaves out forward mode, whose rules reverse mode transposes.

Rules that are not transposed, of many tangents and of torques, have tests of their own in `tests/dynamics`."""
FORWARD_REVERSE = 1e-9
FINITE_DIFFERENCES = 1e-6
compiled = functools.partial(jax.jit, compiler_options=FAST_TO_COMPILE)
OFFSETS = np.array([1.0, -1.0, 2.0, -2.0])  # in steps, of the fourth-order difference with these weights
WEIGHTS = np.array([8.0, -8.0, -1.0, 1.0]) / 12.0


class Gradients(NamedTuple):
    """Jacobians (outputs, inputs) by three ways, and the inputs' names; `forward` is `reverse` where it is left out."""

    forward: np.ndarray
    reverse: np.ndarray
    differences: np.ndarray
    names: list[str]


def entry_names(tree: Any) -> list[str]:
    """A name per scalar of a pytree."""
    names = []
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        name = jax.tree_util.keystr(path)
        names += [f"{name}[{i}]" for i in range(np.size(leaf))]
    return names


def central_differences(g: Callable[[jax.Array], jax.Array], flat: jax.Array, step: Any = 1e-5) -> jax.Array:
    """Jacobian (outputs, inputs) of fourth order: (8 (g(h) - g(-h)) - (g(2h) - g(-2h))) / 12 h.

    h is `step`, one for all or one for each entry, times the entry's size, or `step` for entries below 1. g is traced
    and compiled once, for one point.
    """
    n = flat.size
    h = step * jnp.where(jnp.isfinite(flat), jnp.maximum(1.0, jnp.abs(flat)), 1.0)
    shifts = jnp.asarray(OFFSETS)[:, None, None] * jnp.eye(n) * h
    points = jnp.where(shifts == 0.0, flat, flat + shifts)  # an infinite limit stays what it is
    values = jax.lax.map(g, points.reshape(4 * n, n)).reshape(4, n, -1)
    return (jnp.tensordot(jnp.asarray(WEIGHTS), values, 1) / h[:, None]).T


def all_gradients(f: Callable[..., Any], *args: Any, step: Any = 1e-5, forward: bool = WHOLE_RUN) -> Gradients:
    """Jacobians of f, whose results are raveled, with respect to every scalar of its arguments."""
    x = args[0] if len(args) == 1 else args
    flat, unravel = ravel_pytree(x)

    def g(values: jax.Array) -> jax.Array:
        return ravel_pytree(f(unravel(values)) if len(args) == 1 else f(*unravel(values)))[0]

    modes = [jax.jacrev(g), jax.jacfwd(g)] if forward else [jax.jacrev(g)]
    found = compiled(lambda x: [mode(x) for mode in modes])(flat)
    differences = compiled(lambda x: central_differences(g, x, step))(flat)
    return Gradients(np.asarray(found[-1]), np.asarray(found[0]), np.asarray(differences), entry_names(x))


def check_gradients(
    f: Callable[..., Any],
    *args: Any,
    step: float = 1e-5,
    tolerance: float = FINITE_DIFFERENCES,
    scale: float | None = None,
    forward: bool = WHOLE_RUN,
) -> Gradients:
    """Asserts that the three agree, relative to the largest entry of each output (at least `scale`)."""
    result = all_gradients(f, *args, step=step, forward=forward)
    compare(result, tolerance, scale)
    return result


def compare(result: Gradients, tolerance: float = FINITE_DIFFERENCES, scale: float | None = None) -> None:
    """Finite, forward = reverse, reverse = differences; the message names the worst entry."""
    size = np.abs(result.differences).max(axis=1, keepdims=True, initial=0.0)
    size = np.maximum(size, 1e-9 if scale is None else scale)
    for what, error, allowed in (
        ("forward and reverse mode", np.abs(result.forward - result.reverse) / size, FORWARD_REVERSE),
        ("reverse mode and finite differences", np.abs(result.reverse - result.differences) / size, tolerance),
    ):
        assert np.isfinite(error).all(), f"{what}: not finite at {describe(result, np.argmax(~np.isfinite(error)))}"
        if error.size:
            assert error.max() <= allowed, f"{what} differ by {error.max():.2e} at {describe(result, error.argmax())}"


def describe(result: Gradients, flat_index: Any) -> str:
    """One entry in words."""
    output, entry = np.unravel_index(int(flat_index), result.forward.shape)
    return (
        f"output {output} with respect to {result.names[entry]}: forward {result.forward[output, entry]:.9g}, "
        f"reverse {result.reverse[output, entry]:.9g}, differences {result.differences[output, entry]:.9g}"
    )


def check_rows(
    f: Callable[[mbjax.MultibodyModel, jax.Array], jax.Array],
    model: mbjax.MultibodyModel,
    rows: Any,
    *,
    step: float = 1e-5,
    tolerance: float = FINITE_DIFFERENCES,
    scale: float | None = None,
    in_scan: bool = False,
    in_single: bool = True,
) -> np.ndarray:
    """Jacobians of f(model, row) for rows (k, n) that mix singular and regular ones; returns them (k, outputs, n).

    Both modes (trimmed: reverse mode) and differences under jit(vmap); the same numbers in a scan, if asked for; in
    float32, unless told not to, of that type and finite.
    """
    rows = jnp.asarray(rows, float)

    def derivatives(model: Any, row: jax.Array) -> tuple[jax.Array, jax.Array]:
        reverse = jax.jacrev(f, 1)(model, row)
        return jax.jacfwd(f, 1)(model, row) if WHOLE_RUN else reverse, reverse

    in_batch = compiled(jax.vmap(derivatives, (None, 0)))
    forward, reverse = in_batch(model, rows)
    differences = compiled(jax.vmap(lambda row: central_differences(lambda x: f(model, x), row, step)))(rows)
    for k, row in enumerate(rows):
        names = [f"row {k} = {np.asarray(row)} entry {i}" for i in range(row.size)]
        compare(Gradients(*(np.asarray(x[k]) for x in (forward, reverse, differences)), names), tolerance, scale)
    size = np.maximum(np.abs(forward).max(), 1e-9)
    if in_scan:
        scanned = compiled(lambda model, rows: jax.lax.map(lambda row: derivatives(model, row), rows))(model, rows)
        for got in scanned:
            np.testing.assert_allclose(got, forward, rtol=0, atol=1e-11 * size)
    for got in in_batch(mbjax.astype(model, jnp.float32), rows.astype(jnp.float32)) if in_single else ():
        assert got.dtype == jnp.float32
        assert np.isfinite(got).all()
    return np.asarray(forward)


def one_by_one(function: Callable, *x: Array) -> list[Array]:
    """The Jacobians by each argument; `lax.map` has one tangent at a time."""
    ends = np.cumsum([y.size for y in x])

    def column(tangent: Array) -> Array:
        return jax.jvp(function, x, tuple(jnp.split(tangent, ends[:-1])))[1]

    columns = lax.map(column, jnp.eye(ends[-1], dtype=x[0].dtype))
    return [block.T for block in jnp.split(columns, ends[:-1])]
