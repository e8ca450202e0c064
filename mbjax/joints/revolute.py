"""Rotation about one axis, the same in F and in M."""

from collections.abc import Sequence

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from mbjax.one_kernel import computed_once, is_in_kernel
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_normalize

from .abstract_joint import AbstractJoint


class RevoluteJoint(AbstractJoint):
    """q: the angle in rad, v: its rate."""

    kind = "revolute"
    num_positions = 1
    num_velocities = 1
    position_suffixes = ("q",)
    velocity_suffixes = ("w",)
    zero_positions = (0.0,)
    angular_velocities = (True,)
    has_axis = True

    @staticmethod
    def pose(q, axis, pitch):
        del pitch
        return rotation_about(safe_normalize(axis, axis=0), q[0]), jnp.zeros_like(axis, dtype=q.dtype)

    @staticmethod
    def hinge_map(q, axis, pitch):
        del pitch
        axis = safe_normalize(axis, axis=0)
        return jnp.concatenate([axis, jnp.zeros_like(axis)])[:, None].astype(q.dtype)


def rotation_about(n: Float[Array, "3 *k"], angle: Float[Array, "*k"]) -> Float[Array, "3 3 *k"]:
    """R = n nᵀ + cos(a) (1 - n nᵀ) + sin(a) [n]x about a unit axis n (Rodrigues).

    In a fused loop XLA's CPU backend would compute sine and cosine anew for each of the nine entries: so of several
    worlds with common axes by products of matrices.
    """
    along = ca.outer(n, n)
    identity = jnp.eye(3, dtype=n.dtype).reshape(3, 3, *(1 for _ in n.shape[1:]))
    parts = along, identity - along, ca.skew(n)
    if angle.ndim == 2 and n.shape[2:] == (1,) and not is_in_kernel():
        return sum_of_parts(parts, [jnp.ones_like(angle), jnp.cos(angle), jnp.sin(angle)])
    c, s = (ca.spread(ca.spread(x, 3), 3) for x in computed_once(lambda a: (jnp.cos(a), jnp.sin(a)), angle))
    return parts[0] + c * parts[1] + s * parts[2]


def sum_of_parts(parts: Sequence[Float[Array, "3 3 k 1"]], factors: Sequence[Float[Array, "k w"]]) -> Array:
    """(3, 3, k, w): the sum of constant matrices times a number of each world."""
    constant = jnp.stack([jnp.transpose(x[..., 0], (2, 0, 1)).reshape(-1, 9) for x in parts], -1)
    product = jnp.matmul(constant, jnp.stack(factors, 1), precision=lax.Precision.HIGHEST)
    return jnp.moveaxis(product, 0, 1).reshape(3, 3, *factors[0].shape)
