"""What unmeasured contact forces cannot do to measured efforts: projections that leave the rest, and its noise.

    measured = predicted - J_mᵀ F + S e,     S = diag(s / √w),     r = P S⁻¹ (predicted - measured)
J_m are the columns of the contacts' Jacobian that belong to measured efforts, s their noises in parts of a common one,
w the samples' weights, and P = 1 - (J_m S⁻¹)⁺ (J_m S⁻¹). The unknown forces F drop out of r, which holds no effort that
was not measured, and sum r² is what least squares over all F leaves. Of the noise e it leaves P e: as many independent
numbers as P has rank, the sum of its diagonal, and not one for each joint.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.linear_algebra import pseudo_inverse
from mbjax.model import MultibodyModel
from mbjax.spatial import safe_sqrt

from .log import contact_jacobians, smallest_part
from .problem import Channels


class Projection(eqx.Module):
    """Of each sample of a log: what errors of measured efforts are multiplied by, and how much of each is noise.

    The matrices hold the weights, too. Channels keep their unit: r is multiplied by the noises' parts again.
    """

    matrices: Float[Array, "steps measured measured"]  # diag(s) P diag(√w / s)
    shares: Float[Array, "steps measured"]  # the diagonal of P, zero where there are no data
    is_data: Float[Array, "steps measured"]

    def __call__(self, x: Float[Array, "steps measured ..."]) -> Float[Array, "steps measured ..."]:
        """Projected errors, or columns that errors are made of."""
        return jnp.einsum("tij,tj...->ti...", self.matrices, x)


def contact_projection(
    model: MultibodyModel,
    q: Float[Array, "steps nq"],
    weights: Float[Array, "steps nv"],
    bodies: tuple[str, ...],
    first: int,
    measured: tuple[int, ...],
    parts: Float[np.ndarray, " measured"],
) -> Projection:
    """The projection of one log; `first` of a contact's six rows, and the noises of channels in parts of a common one.

    Samples of weight zero are in no row, joint by joint.
    """
    places = np.array(measured)
    s = jnp.asarray(parts, model.dtype)
    J = contact_jacobians(model, q, bodies, first)[..., places]

    def of_one(J: Array, weight: Array) -> Projection:
        is_data = (weight > 0.0).astype(J.dtype)
        scale = safe_sqrt(weight) / s
        A = J * scale
        rtol = smallest_part(A.dtype)
        P = jnp.diag(is_data) - pseudo_inverse(A, rtol) @ A
        P = jnp.where(jnp.abs(P) > rtol, P, 0.0)  # what is nothing but rounding would look like data
        return Projection(s[:, None] * P * scale, jnp.clip(jnp.diagonal(P), 0.0, 1.0), is_data)

    return jax.vmap(of_one)(J, weights[:, places])


def channels_of(
    squares: Float[Array, " channels"],
    rows: Float[Array, " channels"],
    data: Float[Array, " channels"],
    noise: Float[Array, " channels"],
    *,
    is_common: bool,
) -> Channels:
    """Mean squared errors of channels, and squares of their noise: one for all where they are projected.

    `noise` is what each channel alone tells, `rows` how many rows it has, and `data` how many independent numbers.
    """
    if is_common:
        noise = jnp.broadcast_to(jnp.sum(noise * rows) / jnp.maximum(jnp.sum(data), 1.0), noise.shape)
    return Channels(squares, noise)
