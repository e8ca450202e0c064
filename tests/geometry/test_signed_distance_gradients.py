"""Derivatives of every pair: forward = reverse = differences, and finite beside degenerate poses, in f32 too."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.execution.worlds.many_worlds import for_worlds
from mbjax.geometry.signed_distance.pair_table import PAIRS
from tests.geometry.pairs import IDENTITY, pose, random_rows, rows, turned, witnesses_of_row
from tests.gradients.checks import Gradients, central_differences, compare, compiled

KINDS = [
    ("HalfSpace", "Sphere"),
    ("HalfSpace", "Capsule"),
    ("HalfSpace", "Box"),
    ("HalfSpace", "Cylinder"),
    ("HalfSpace", "Ellipsoid"),
    ("HalfSpace", "Convex"),
    ("Sphere", "Sphere"),
    ("Capsule", "Sphere"),
    ("Box", "Sphere"),
    ("Cylinder", "Sphere"),
    ("Ellipsoid", "Sphere"),
    ("Capsule", "Capsule"),
    ("Box", "Capsule"),
]
EASY = KINDS[:3] + KINDS[4:8]  # nothing singular that the others do not have: the trimmed run skips float32
SLOW = KINDS[1:4] + KINDS[7:10] + KINDS[12:]
IN_THE_WHOLE_RUN = pytest.mark.whole_run("other pairs of simple shapes, and signed distances in tests/contact")
NUM_REGULAR = 6
QUATERNIONS = [
    IDENTITY,
    turned(np.pi / 2, [1, 0, 0]),
    turned(np.pi / 2, [0, 1, 0]),
    turned(np.pi, [1, 0, 0]),
    turned(np.pi / 4, [0, 0, 1]),
]
POSITIONS = [
    [0.0, 0.0, 0.0],
    [0.0, 0.0, 0.1],
    [0.0, 0.0, 1.0],
    [0.2, 0.0, 0.0],
    [0.2, 0.35, 0.0],
    [0.2, 0.35, 0.25],
    [0.2, 0.35, 0.5],
    [0.3, 0.45, 0.35],
    [0.35, 0.0, 0.25],
    [1e-12, 0.0, 0.0],
    [1e-6, 1e-6, 0.3],
    [0.0, 0.0, 1e-12],
]


def degenerate_rows(kinds) -> jax.Array:
    """Centres, axes, faces, edges, corners and parallel axes, all with one another."""
    poses = [(q, p) for q in QUATERNIONS for p in POSITIONS]
    return rows(*kinds, [q for q, _ in poses], [p for _, p in poses])


def numbers(kinds, row: jax.Array) -> jax.Array:
    """Distances, normals and points, one after the other."""
    w = witnesses_of_row(*kinds, row)
    return jnp.concatenate([x.ravel() for x in (w.distance, w.normal, w.point)])


def both_modes(kinds, row: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    f = partial(numbers, kinds)
    y, push = jax.linearize(f, row)
    pull, inputs, outputs = jax.linear_transpose(push, row), jnp.eye(row.size), jnp.eye(y.size)
    return y, jax.vmap(push, out_axes=1)(inputs), jax.vmap(lambda weights: pull(weights)[0])(outputs)


@pytest.mark.parametrize(
    "kinds", [pytest.param(x, id="-".join(x), marks=[IN_THE_WHOLE_RUN] * (x in SLOW)) for x in KINDS]
)
def test_derivatives(kinds, request) -> None:
    """Regular rows between degenerate ones: the former equal differences, the latter are finite, in float32 too.

    Everywhere d(distance)/dp_AB = -nhat_BA (G21, G24).
    """
    regular = random_rows(*kinds, NUM_REGULAR, seed=3)
    mixed = jnp.concatenate([regular, degenerate_rows(kinds)])
    derivatives = compiled(jax.vmap(partial(both_modes, kinds)))
    differences = compiled(jax.vmap(lambda row: central_differences(partial(numbers, kinds), row)))(regular)
    values, forward, reverse = (np.asarray(x) for x in derivatives(mixed))
    num_points = PAIRS[kinds].num_points
    first_normal = num_points * np.arange(1, 4)
    assert np.isfinite(values).all()
    np.testing.assert_allclose(forward[:, 0, -3:], -values[:, first_normal], rtol=0, atol=1e-12)
    for k in range(NUM_REGULAR):
        names = [f"row {k} entry {i}" for i in range(regular.shape[1])]
        compare(Gradients(forward[k], reverse[k], np.asarray(differences[k]), names), scale=1.0)
    size = np.maximum(np.abs(forward).max(axis=(1, 2), keepdims=True), 1.0)
    np.testing.assert_allclose(forward / size, reverse / size, rtol=0, atol=1e-9)
    if kinds in EASY and request.config.getoption("--trimmed"):
        return
    reverse = compiled(jax.vmap(lambda row: jax.jacrev(partial(numbers, kinds))(row)))(mixed.astype(jnp.float32))
    assert reverse.dtype == jnp.float32
    assert np.isfinite(reverse).all()


@pytest.mark.parametrize("kinds", [("HalfSpace", "Cylinder"), ("Capsule", "Capsule")], ids="-".join)
def test_worlds_last_are_one_world_each(kinds) -> None:
    """With worlds, some of the arrays shared between them, the numbers are those of every world by itself."""
    several = random_rows(*kinds, 6)
    one_by_one = jax.vmap(partial(witnesses_of_row, *kinds))(several)
    R_AB, p_AB = (jnp.asarray(np.stack(x)) for x in zip(*(pose(row) for row in several), strict=True))
    sizes = several[0, :-7]
    num_A = {"HalfSpace": 0, "Capsule": 2}[kinds[0]]

    def of_one_world(R, p):
        function = PAIRS[kinds].function
        return for_worlds(function, sizes[:num_A, None], sizes[num_A:, None], R[..., None], p[..., None])

    together = jax.jit(jax.vmap(of_one_world))(R_AB, p_AB)
    for x, y in zip(one_by_one, together, strict=True):
        np.testing.assert_allclose(x, y[..., 0], rtol=0, atol=1e-14)


def test_second_derivatives_of_an_ellipsoid() -> None:
    """The distance's Hessian by pose and sizes, also through its own rule, is the difference of its gradient."""
    kinds = ("Ellipsoid", "Sphere")
    row = random_rows(*kinds, 1, seed=7)[0]
    gradient = jax.grad(lambda row: witnesses_of_row(*kinds, row).distance[0])
    hessian, differences = compiled(lambda row: (jax.jacfwd(gradient)(row), central_differences(gradient, row)))(row)
    np.testing.assert_allclose(hessian, differences, rtol=0, atol=1e-7 * np.abs(differences).max())
    np.testing.assert_allclose(hessian, hessian.T, rtol=0, atol=1e-10)
