"""Numbers of contact: float leaves, all differentiable and vmappable, none derived from another."""

import equinox as eqx
from jaxtyping import Array, Float


class GeometryParameters(eqx.Module):
    """Poses and sizes of collision geometries, in the order of their records, which hold the places of sizes."""

    quaternion: Float[Array, "no 4"]  # of R_BG, normalised where it is used
    translation: Float[Array, "no 3"]  # p_BoGo_B
    size: Float[Array, " ns"]  # lengths of all shapes, in the order of their fields
    vertices: Float[Array, "nv 3"]  # of convex shapes, in G


class CollisionParameters(eqx.Module):
    """Numbers of the geometries of `model.layout.contact`, in their order; their records hold the places of sizes.

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
    hunt_crossley_dissipation: Float[Array, " l"]  # s/m, of the geometries that were given one

    penetration_allowance: Float[Array, ""]  # m; default stiffness and dissipation follow from it
    stiction_tolerance: Float[Array, ""]  # m/s, slip speed at which friction reaches its full amount
    sap_near_rigid_threshold: Float[Array, ""]  # stiffer contacts are treated as rigid
    smoothing_length: Float[Array, ""] | None  # m, depth over which force rises; None: it begins at touch

    hydroelastic_modulus: Float[Array, " h"] | None = None  # Pa, of compliant geometries; None: there are none

    others: GeometryParameters | None = None  # None: there are none
