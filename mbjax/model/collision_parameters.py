"""The numbers of contact: float leaves, every one differentiable and vmappable, none derived from another."""

import equinox as eqx
from jaxtyping import Array, Float


class GeometryParameters(eqx.Module):
    """Where collision geometries are and how large, in the order of their records, which say whose sizes are where."""

    quaternion: Float[Array, "no 4"]  # of R_BG, normalised where it is used
    translation: Float[Array, "no 3"]  # p_BoGo_B
    size: Float[Array, " ns"]  # lengths of all shapes, in the order of their fields
    vertices: Float[Array, "nv 3"]  # of convex shapes, in G


class CollisionParameters(eqx.Module):
    """Of the geometries of `model.layout.contact`, in their order; their records say whose sizes are where.

    `others` are geometries that can touch no other one: `signed_distances` reads them, a step does not.
    """

    quaternion: Float[Array, "ng 4"]  # of R_BG, normalised where it is used
    translation: Float[Array, "ng 3"]  # p_BoGo_B
    size: Float[Array, " ns"]  # lengths of all shapes, in the order of their fields
    vertices: Float[Array, "nv 3"]  # of convex shapes, in G

    static_friction: Float[Array, " ng"]
    dynamic_friction: Float[Array, " ng"]
    relaxation_time: Float[Array, " ng"]  # s, of the sap approximation
    stiffness: Float[Array, " k"]  # N/m, of the geometries that were given one
    hunt_crossley_dissipation: Float[Array, " l"]  # s/m, of those that were given one

    penetration_allowance: Float[Array, ""]  # m, what default stiffness and dissipation follow from
    stiction_tolerance: Float[Array, ""]  # m/s, slip speed at which friction is all there
    sap_near_rigid_threshold: Float[Array, ""]  # the stiffer are treated as rigid
    smoothing_length: Float[Array, ""] | None  # m, of depth; None: force begins where surfaces touch

    others: GeometryParameters | None = None  # None: there are none
