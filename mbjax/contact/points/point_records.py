"""The records of contact points, those of pairs that touch at points and those of faces of surfaces."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mbjax.geometry.hydroelastic import ContactSurface
from mbjax.spatial import component_algebra as ca

from .contact_parameters import PairParameters


class PairSurfaces(eqx.Module):
    """Contact surfaces of n hydroelastic pairs with the same two meshes: arrays with faces first, then pairs.

    Positions are from the origins Ao of the geometries A, in W. Each face is a point of `ContactPoints`; those of these
    pairs begin at `start`, all pairs' first faces first.
    """

    surface: ContactSurface
    p_WA: Float[Array, "3 n"]
    pairs: tuple[int, ...] = eqx.field(static=True)
    start: int = eqx.field(static=True)


class ContactPoints(eqx.Module):
    """m possible contact points C; geometry A and its body come first in the pair.

    C lies between the points Ca and Cb of the two surfaces, nearer to the stiffer surface.
    """

    distance: Float[Array, " m"]  # negative where the geometries overlap
    normal_W: Float[Array, "3 m"]  # nhat_AB_W: unit, out of A into B
    p_MaC_W: Float[Array, "3 m"]  # from the origin Mo of A's mobod
    p_MbC_W: Float[Array, "3 m"]
    exists: Bool[Array, " m"]  # a slot may hold no point
    active: Bool[Array, " m"]  # may have a force: the geometries overlap, or the plant predicts or smooths contact
    degenerate: Bool[Array, " m"]  # the normal is not unique and one was chosen
    parameters: PairParameters
    num_pairs_left_out: Int[Array, ""]  # not looked at, although their bounding spheres overlap
    pairs: tuple[int, ...] = eqx.field(static=True)  # pair of each point, indexes `model.layout.contact.pairs`
    mobods_A: tuple[int, ...] = eqx.field(static=True)
    mobods_B: tuple[int, ...] = eqx.field(static=True)
    surfaces: tuple[PairSurfaces, ...] = ()  # of the pairs whose points are faces

    @property
    def are_faces(self) -> Bool[np.ndarray, " m"]:
        """Whether each point is of a face of a surface."""
        first = min((surfaces.start for surfaces in self.surfaces), default=len(self.pairs))
        return np.arange(len(self.pairs)) >= first


def join(groups: Sequence[ContactPoints]) -> ContactPoints:
    """Concatenates the points of all groups."""
    if len(groups) == 1:
        return groups[0]
    vectors, indices = ("normal_W", "p_MaC_W", "p_MbC_W"), ("pairs", "mobods_A", "mobods_B")

    def joined(name: str) -> Any:
        parts = [getattr(group, name) for group in groups]
        if name in indices:
            return sum(parts, ())
        if name == "surfaces":
            starts = itertools.accumulate((len(group.pairs) for group in groups), initial=0)
            return tuple(dataclasses.replace(x, start=k) for k, own in zip(starts, parts, strict=False) for x in own)
        if name == "num_pairs_left_out":
            return sum(parts[1:], parts[0])
        return jax.tree.map(lambda *x: ca.concatenate(x, 1 if name in vectors else 0), *parts)

    return ContactPoints(*(joined(field.name) for field in dataclasses.fields(ContactPoints)))


def in_slots(x: Float[Array, "..."], k: int, axis: int) -> Float[Array, "..."]:
    """Repeats values of n pairs k times along an axis: one value for each of the k n points."""
    return jnp.concatenate([x] * k, axis)


def flat(x: Float[Array, "..."], axis: int) -> Float[Array, "..."]:
    """Flattens axes (k, n) of points into one, slot after slot."""
    return x.reshape(*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2 :])
