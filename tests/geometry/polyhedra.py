"""What tests of pairs share: Drake's answer, a search over directions, derivatives on a batch of poses."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from pydrake.geometry import FramePoseVector, GeometryFrame, GeometryInstance, SceneGraph, Shape
from pydrake.math import RigidTransform, RotationMatrix
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

from mbjax.geometry.signed_distance.witnesses import Witnesses
from mbjax.spatial.rotation import rotation_exp

from ..gradients.checks import Gradients, central_differences, compare, compiled

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
        scene.AssignRole(source, geometry, proximity())
    context = scene.CreateDefaultContext()
    poses = FramePoseVector()
    poses.set_value(frame, RigidTransform(RotationMatrix(R_AB), p_AB))
    scene.get_source_pose_port(source).FixValue(context, poses)
    pair = scene.get_query_output_port().Eval(context).ComputeSignedDistancePairClosestPoints(id_A, id_B)
    return pair.distance, pair.nhat_BA_W


def proximity() -> Any:
    """Drake's empty properties."""
    from pydrake.geometry import ProximityProperties

    return ProximityProperties()


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

    Pairs first; the sizes may have any shape. Entries of a pair whose points come or go within the step are left out.
    """
    shapes = [np.shape(x)[1:] for x in (size_A, size_B)]
    splits = np.cumsum([int(np.prod(s)) for s in shapes] + [3])

    def witnesses(x: jax.Array, R: jax.Array) -> Witnesses:
        a, b, turn, p = jnp.split(x, splits)
        arguments = a.reshape(shapes[0]), b.reshape(shapes[1]), rotation_exp(turn) @ R, p
        return function(*(y[..., None] for y in arguments))

    def numbers(x: jax.Array, R: jax.Array) -> jax.Array:
        w = witnesses(x, R)
        return jnp.concatenate([jnp.where(w.valid, y, 0.0).ravel() for y in (w.distance, w.normal, w.point)])

    count = len(p_AB)
    flat = [np.reshape(x, (count, -1)) for x in (size_A, size_B, np.zeros((count, 3)), p_AB)]
    rows, R_AB = jnp.asarray(np.concatenate(flat, axis=1)), jnp.asarray(R_AB)
    both = compiled(jax.vmap(lambda x, R: (jax.jacfwd(numbers)(x, R), jax.jacrev(numbers)(x, R))))
    forward, reverse = both(rows, R_AB)
    step = 1e-6
    differences = compiled(
        jax.vmap(lambda x, R: central_differences(lambda y: numbers(y, R), x, step)),
    )(rows, R_AB)
    for k in range(count):
        names = [f"pair {k} entry {i}" for i in range(rows.shape[1])]
        compare(Gradients(*(np.asarray(x[k]) for x in (forward, reverse, differences)), names), tolerance, scale=1.0)
