"""Contact of a point with the world: the velocity of the point along each normal is zero."""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.model import ContactConstraint
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_normalize

from .pair_kind import KindRows, PairKind
from .relative_motion import FramePair, RelativeMotion, stack_columns


def contact_frames(contact: ContactConstraint) -> FramePair:
    """P is the world, S at the point."""
    return FramePair(0, None, jnp.zeros_like(contact.p_BP), contact.body, None, contact.p_BP)


def contact_rows(
    contacts: Sequence[ContactConstraint],
    R_PS: Float[Array, "3 3 n"],
    p_PS_P: Float[Array, "3 n"],
    motion: RelativeMotion | None,
) -> KindRows:
    """rate = n · v_WS; there is no position error."""
    del R_PS, p_PS_P
    normals = stack_columns([safe_normalize(jnp.swapaxes(c.normals, 0, 1), axis=0) for c in contacts], 2)
    zero = jnp.zeros_like(normals)
    bias = None if motion is None else ca.dot(normals, ca.spread(motion.a_PS, normals.shape[1], 1))
    return KindRows(zero[0], zero, normals, bias)


CONTACT = PairKind(contact_frames, contact_rows)
