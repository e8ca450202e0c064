"""Pairs of shapes in random and in special poses, as rows of numbers."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from mbjax.geometry.signed_distance.pair_table import PAIRS
from mbjax.geometry.signed_distance.witnesses import Witnesses
from mbjax.spatial import quaternion_to_matrix

SIZES = {
    "Sphere": [0.3],
    "Box": [0.4, 0.7, 0.5],
    "Capsule": [0.2, 0.6],
    "Cylinder": [0.35, 0.5],
    "Ellipsoid": [0.3, 0.5, 0.2],
    "HalfSpace": [],
}
VERTICES = np.array(
    [[0.3, 0.2, 0.2], [-0.25, 0.3, 0.2], [-0.3, -0.2, 0.25], [0.3, -0.3, 0.2], [0.05, 0.1, -0.4], [-0.1, -0.2, -0.3]]
)
SIZES["Convex"] = list(VERTICES.T.ravel())
IDENTITY = [1.0, 0.0, 0.0, 0.0]


def turned(angle: float, axis) -> list[float]:
    """The quaternion of a turn about an axis."""
    axis = np.asarray(axis, float) / np.linalg.norm(axis)
    return [np.cos(angle / 2), *(np.sin(angle / 2) * axis)]


def as_sizes(kind: str, numbers: jax.Array) -> jax.Array:
    return numbers.reshape(3, -1) if kind == "Convex" else numbers


def witnesses_of_row(kind_A: str, kind_B: str, row: jax.Array) -> Witnesses:
    """Of a row of the sizes of A, of B, the quaternion of B in A, and p_AB; without the axis of pairs."""
    a, b = len(SIZES[kind_A]), len(SIZES[kind_B])
    size_A, size_B = as_sizes(kind_A, row[:a]), as_sizes(kind_B, row[a : a + b])
    R_AB, p_AB = quaternion_to_matrix(row[a + b : a + b + 4]), row[a + b + 4 :]
    witnesses = PAIRS[kind_A, kind_B].function(*(x[..., None] for x in (size_A, size_B, R_AB, p_AB)))
    return jax.tree.map(lambda x: x[..., 0], witnesses)


@cache
def witnesses_of_rows(kind_A: str, kind_B: str):
    """The same of many rows, compiled."""
    return jax.jit(jax.vmap(partial(witnesses_of_row, kind_A, kind_B)))


def rows(kind_A: str, kind_B: str, quaternions, positions) -> jax.Array:
    """Rows of the shapes of `SIZES` in poses."""
    sizes = np.tile([*SIZES[kind_A], *SIZES[kind_B]], (len(positions), 1))
    return jnp.asarray(np.concatenate([sizes, quaternions, positions], axis=1))


def random_rows(kind_A: str, kind_B: str, count: int, seed: int = 0, spread: float = 0.4) -> jax.Array:
    """Rows of random poses, overlapping and apart."""
    rng = np.random.default_rng(seed)
    quaternions = rng.normal(size=(count, 4))
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    positions = rng.normal(size=(count, 3)) * spread
    if kind_A == "HalfSpace":
        positions[:, 2] += 0.3
    return rows(kind_A, kind_B, quaternions, positions)


def pose(row: jax.Array) -> tuple[np.ndarray, np.ndarray]:
    """R_AB and p_AB of a row."""
    return np.asarray(quaternion_to_matrix(row[-7:-3])), np.asarray(row[-3:])
