"""Contact of a point with the world: the velocity of the point along each normal is zero."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.model import ContactConstraint
from mbjax.spatial import safe_normalize

from .axis_rows import AxisKind
from .relative_motion import FramePair


def contact_frames(contact: ContactConstraint) -> FramePair:
    """P is the world, S at the point."""
    return FramePair(0, None, jnp.zeros_like(contact.p_BP), contact.body, None, contact.p_BP)


def contact_axes(contact: ContactConstraint) -> Float[Array, "6 k"]:
    """Translation along the normals."""
    normals = safe_normalize(jnp.swapaxes(contact.normals, 0, 1), axis=0)
    return jnp.concatenate([jnp.zeros_like(normals), normals])


CONTACT = AxisKind(contact_frames, contact_axes, has_position_error=False)
