"""Records of the points where deformable bodies touch, and what they have in common."""

from typing import NamedTuple

from jaxtyping import Array, Bool, Float, Int

from mbjax.finite_elements import KeptNodes
from mbjax.model import DeformableBodies, MultibodyModel
from mbjax.spatial import component_algebra as ca

from ..points.contact_parameters import PairParameters, calc_default_stiffness_and_dissipation

GRADIENT_OF_DEFORMABLE = 1e8  # Pa/m: a cube of water of 10 cm sinks by 0.01 mm under its weight


class NodePoints(NamedTuple):
    """m points between deformable bodies A and others, of one world; normals point from A to B.

    A body B is rigid, and moves with its Jacobian J, or deformable, and J is zero. The point of A moves less that of a
    deformable B is the sum of the motions of k nodes times their `weights`.
    """

    p_WC: Float[Array, "3 m"]
    normal_W: Float[Array, "3 m"]
    distance: Float[Array, " m"]
    area: Float[Array, " m"]
    pressure: Float[Array, " m"]
    active: Bool[Array, " m"]
    parameters: PairParameters
    nodes: Int[Array, "k m"]
    weights: Float[Array, "k m"]
    J: Float[Array, "3 m nv"]
    left_out: Int[Array, " pairs"]
    participants: KeptNodes | None = None  # the nodes that touch, and those fixed to bodies; None of one pair alone


def are_inverted(corners: Float[Array, "3 4 m"]) -> Bool[Array, " m"]:
    """Whether tetrahedra are turned inside out."""
    a, b, c = (corners[:, i] - corners[:, 0] for i in (1, 2, 3))
    return ca.dot(a, ca.cross(b, c)) <= 0.0


def calc_dissipation(model: MultibodyModel, deformables: DeformableBodies, body: int) -> Float[Array, ""]:
    """The Hunt–Crossley dissipation of a deformable body's contact, in s/m: its own, or the default of the plant."""
    index = deformables.layout.bodies[body].dissipation_index
    if index < 0:
        return calc_default_stiffness_and_dissipation(model)[1]
    return deformables.hunt_crossley_dissipation[index]
