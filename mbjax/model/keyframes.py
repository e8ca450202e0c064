"""Named states that a file or a builder gives a model, like the poses in which a robot stands."""

from collections.abc import Sequence

import equinox as eqx
from jaxtyping import Array, Float

from mbjax.errors import ModelError

from .lookup import near_matches


class Keyframe(eqx.Module):
    """Positions, velocities and the time of a named state; its numbers are leaves of the model."""

    name: str = eqx.field(static=True)
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    time: Float[Array, ""]


def find_keyframe(keyframes: Sequence[Keyframe], name: str) -> Keyframe:
    """The keyframe of that name; refused where there is none."""
    for keyframe in keyframes:
        if keyframe.name == name:
            return keyframe
    names = [keyframe.name for keyframe in keyframes]
    hint = near_matches(str(name), names) if names else "It has none; plant.add_keyframe makes one before finalize."
    raise ModelError(f"keyframe_state: the model has no keyframe {name!r}. {hint}")
