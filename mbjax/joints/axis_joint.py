"""Common base of joints with one axis: a rotation about it and a translation along it, in proportion to q."""

import abc
from collections.abc import Sequence
from typing import ClassVar

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from mbjax.execution import traced_for
from mbjax.execution.recursions import computed_once
from mbjax.spatial import component_algebra as ca
from mbjax.spatial.cosine_and_sine import cosine_and_sine

from .abstract_joint import AbstractJoint


class AxisJoint(AbstractJoint):
    """A joint whose axis is the same in F and in M."""

    num_positions = 1
    num_velocities = 1
    zero_positions = (0.0,)
    has_axis = True
    turns: ClassVar[bool]  # whether the joint rotates by q about the axis

    @staticmethod
    @abc.abstractmethod
    def advance(pitch: Float[Array, "*k"]) -> Float[Array, "*k"] | None:
        """Distance by which M moves along the axis as q grows by one; None where M does not translate."""

    @classmethod
    def pose(cls, q, axis, pitch):
        advance = cls.advance(pitch)
        if cls.turns:
            R_FM = rotation_about(axis, q[0])
        else:
            identity = jnp.eye(3, dtype=q.dtype).reshape(3, 3, *(1 for _ in q.shape[1:]))
            R_FM = jnp.broadcast_to(identity, (3, 3, *q.shape[1:]))
        return R_FM, jnp.zeros_like(axis, dtype=q.dtype) if advance is None else ca.scale(axis, advance * q[0])

    @classmethod
    def hinge_map(cls, q, axis, pitch):
        advance = cls.advance(pitch)
        h = axis if cls.turns else jnp.zeros_like(axis)
        s = jnp.zeros_like(axis) if advance is None else ca.scale(axis, advance)
        return ca.concatenate([h, s], 0)[:, None].astype(q.dtype)


def rotation_about(n: Float[Array, "3 *k"], angle: Float[Array, "*k"]) -> Float[Array, "3 3 *k"]:
    """Rotation R = n nᵀ + cos(a) (1 - n nᵀ) + sin(a) [n]x about a unit axis n (Rodrigues).

    Where many worlds share the axes, R is a product of constant matrices with each world's cosine and sine: a sum
    written out would compute these anew for each of the nine entries.
    """
    along = ca.outer(n, n)
    identity = jnp.eye(3, dtype=n.dtype).reshape(3, 3, *(1 for _ in n.shape[1:]))
    parts = along, identity - along, ca.skew(n)
    if angle.ndim == 2 and n.shape[2:] == (1,) and not traced_for().one_kernel:
        return sum_of_parts(parts, [jnp.ones_like(angle), *cosine_and_sine(angle)])
    c, s = (ca.spread(ca.spread(x, 3), 3) for x in computed_once(cosine_and_sine, angle))
    return parts[0] + c * parts[1] + s * parts[2]


def sum_of_parts(parts: Sequence[Float[Array, "3 3 k 1"]], factors: Sequence[Float[Array, "k w"]]) -> Array:
    """Sum of constant matrices times one number of each world, (3, 3, k, w), as one product of matrices."""
    constant = jnp.stack([jnp.transpose(x[..., 0], (2, 0, 1)).reshape(-1, 9) for x in parts], -1)
    product = jnp.matmul(constant, jnp.stack(factors, 1), precision=lax.Precision.HIGHEST)
    return jnp.moveaxis(product, 0, 1).reshape(3, 3, *factors[0].shape)
