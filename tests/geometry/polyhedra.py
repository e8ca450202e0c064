"""What tests of pairs share: Drake's answer, a search over directions, derivatives on a batch of poses."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from pydrake.geometry import (
    FramePoseVector,
    GeometryFrame,
    GeometryInstance,
    ProximityProperties,
    SceneGraph,
    Shape,
)
from pydrake.math import RigidTransform, RotationMatrix
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

from mbjax.geometry.signed_distance.witnesses import Witnesses
from mbjax.spatial.rotation import rotation_exp

from ..gradients.checks import OFFSETS, WEIGHTS, Gradients, compare, compiled

Support = Callable[[np.ndarray], np.ndarray]  # directions (..., 3) to the farthest reach along them


def random_rotations(count: int, seed: int) -> np.ndarray:
    """(count, 3, 3)."""
    return Rotation.random(count, random_state=seed).as_matrix()


def drake_distance(shape_A: Shape, shape_B: Shape, R_AB: np.ndarray, p_AB: np.ndarray) -> tuple[float, np.ndarray]:
    """Signed distance and normal nhat_BA in A."""
    scene = SceneGraph()
    source = scene.RegisterSource("shapes")
    frame = scene.RegisterFrame(source, GeometryFrame("B"))
    identity = RigidTransform()
    id_A = scene.RegisterAnchoredGeometry(source, GeometryInstance(identity, shape_A, "A"))
    id_B = scene.RegisterGeometry(source, frame, GeometryInstance(identity, shape_B, "B"))
    for geometry in (id_A, id_B):
        scene.AssignRole(source, geometry, ProximityProperties())
    context = scene.CreateDefaultContext()
    poses = FramePoseVector()
    poses.set_value(frame, RigidTransform(RotationMatrix(R_AB), p_AB))
    scene.get_source_pose_port(source).FixValue(context, poses)
    pair = scene.get_query_output_port().Eval(context).ComputeSignedDistancePairClosestPoints(id_A, id_B)
    return pair.distance, pair.nhat_BA_W


def searched_distance(support_A: Support, support_B: Support, R_AB: np.ndarray, p_AB: np.ndarray) -> float:
    """The largest separation over directions: sampled, then Nelder and Mead from the best three."""

    def separation(n: np.ndarray) -> np.ndarray:
        n = n / np.linalg.norm(n, axis=-1, keepdims=True)
        return n @ p_AB - support_A(n) - support_B(-n @ R_AB)

    directions = np.random.default_rng(5).normal(size=(5000, 3))
    best = directions[np.argsort(-separation(directions))[[0, 20]]]
    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 600}
    for _ in range(2):
        found = [minimize(lambda n: -separation(n), n, method="Nelder-Mead", options=options) for n in best]
        best = np.stack([result.x / np.linalg.norm(result.x) for result in found])
    return -min(result.fun for result in found)


def each_pair(function: Callable, size_A: Any, size_B: Any, R_AB: Any, p_AB: Any) -> Witnesses:
    """A pair function on arrays with the pairs first: results with the pairs first."""
    arguments = (jnp.moveaxis(jnp.asarray(x), 0, -1) for x in (size_A, size_B, R_AB, p_AB))
    return Witnesses(*(np.moveaxis(np.asarray(x), -1, 0) for x in compiled(function)(*arguments)))


def check_pair_gradients(function: Callable, size_A: Any, size_B: Any, R_AB: Any, p_AB: Any, tolerance: float) -> None:
    """Forward = reverse = differences of distance, normal and point with respect to sizes, rotation and translation.

    Pairs first; the sizes may have any shape. Points that are not valid count as zero.
    """
    shapes = [np.shape(x)[1:] for x in (size_A, size_B)]
    splits = np.cumsum([int(np.prod(s)) for s in shapes] + [3])
    count = len(p_AB)
    rows = jnp.asarray(np.concatenate([np.reshape(x, (count, -1)).T for x in (size_A, size_B, 0.0 * p_AB, p_AB)]))

    def numbers(x: jax.Array, R: jax.Array) -> jax.Array:
        a, b, turn, p = jnp.split(x, splits)
        R = jnp.moveaxis(rotation_exp(turn.T) @ R, 0, -1)
        w = function(a.reshape(*shapes[0], -1), b.reshape(*shapes[1], -1), R, p)
        kept = [jnp.where(w.valid, y, 0.0).reshape(-1, count) for y in (w.distance, w.normal, w.point)]
        return jnp.concatenate(kept)

    def forward_and_reverse(x: jax.Array, R: jax.Array) -> tuple[jax.Array, jax.Array]:
        y, push = jax.linearize(lambda x: numbers(x, R), x)
        pull = jax.linear_transpose(push, x)
        inputs, outputs = jnp.eye(len(x))[:, :, None], jnp.eye(len(y))[:, :, None]
        forward = jax.vmap(push)(jnp.broadcast_to(inputs, (len(x), *x.shape)))
        return forward, jax.vmap(pull)(jnp.broadcast_to(outputs, (len(y), *y.shape)))[0]

    forward, reverse = compiled(forward_and_reverse)(rows, jnp.asarray(R_AB))
    value, h = compiled(numbers), 1e-5
    shifts = h * np.eye(len(rows))[:, :, None]
    at = [np.stack([value(rows + k * shift, jnp.asarray(R_AB)) for shift in shifts]) for k in OFFSETS]
    differences = np.tensordot(WEIGHTS, np.stack(at), 1) / h
    for k in range(count):
        names = [f"pair {k} entry {i}" for i in range(len(rows))]
        jacobians = forward[:, :, k].T, reverse[:, :, k], differences[:, :, k].T
        compare(Gradients(*map(np.asarray, jacobians), names), tolerance, scale=1.0)
