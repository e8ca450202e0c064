"""Rotation R_PM across a joint's inboard frame and axis, linear in the cosine and the sine of its angle.

R_PM = R_PF (n nᵀ + c (1 - n nᵀ) + s [n]x), with factors of 1, c and s that follow from the model alone: a step of a
recursion then multiplies matrices once, where R_WP R_PF R_FM would take two products.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial import component_algebra as ca


def calc_joint_turns(R_PF: Float[Array, "3 3 nm"], axis: Float[Array, "3 nm"]) -> Float[Array, "30 nm"]:
    """Factors of 1, c and s in R_PM, row by row, and the axis in P. Where there is no axis R_PF is the factor of c."""
    axis_P = ca.matvec(R_PF, axis)
    along = axis_P[:, None] * axis[None]
    turned = jnp.stack([ca.cross(row, axis) for row in jnp.unstack(R_PF)])
    matrices = [x.reshape(9, *x.shape[2:]) for x in (along, R_PF - along, turned)]
    return ca.concatenate([*matrices, axis_P], 0)
