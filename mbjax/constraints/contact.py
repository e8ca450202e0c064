"""Contact constraints between a point and the world: the point's velocity along each normal is zero."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.model import ContactConstraint
from mbjax.spatial import safe_normalize

from .axis_rows import AxisKind
from .relative_motion import FramePair


def contact_frames(contact: ContactConstraint) -> FramePair:
    """Frames of a contact: P is the world's, S is at the point."""
    return FramePair(0, None, jnp.zeros_like(contact.p_BP), contact.body, None, contact.p_BP)


def contact_axes(contact: ContactConstraint) -> Float[Array, "6 k"]:
    """Axes of a contact: translation along the unit normals."""
    normals = safe_normalize(jnp.swapaxes(contact.normals, 0, 1), axis=0)
    return jnp.concatenate([jnp.zeros_like(normals), normals])


CONTACT = AxisKind(contact_frames, contact_axes, has_position_error=False)
