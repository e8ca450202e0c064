"""Whether the mesh of a geometry still fits when lengths change but the connectivity stays."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mbjax.spatial import cross3

from .pressure_field import vertices_and_extents
from .topology import HydroelasticTopology, SurfacePattern

ROUNDING = 64.0  # times the type's epsilon; of volumes relative to that of a cube around the mesh


def is_inside_out(topology: HydroelasticTopology, numbers: Float[Array, "..."]) -> Bool[Array, ""]:
    """Whether some element is inside out with these lengths, or with these vertices (m, 3) of a hull.

    So is one of a box whose shortest side is no longer the shortest, of a long cylinder that became short, and of a
    hull with a vertex that moved inside. A cube and a cylinder whose half length is its radius keep their meshes.
    """
    if topology.is_half_space or isinstance(topology.mesh, SurfacePattern):
        return jnp.zeros((), bool)
    margin = jnp.asarray(topology.margin, numbers.dtype)
    vertices_G, _ = vertices_and_extents(topology, numbers, margin)
    corners = vertices_G[np.asarray(topology.mesh.elements)]
    if topology.is_rigid:  # triangles, seen from the middle
        middle = jnp.broadcast_to(vertices_G.mean(axis=0), (corners.shape[0], 1, 3))
        corners = jnp.concatenate([middle, corners], axis=1)
    a, b, c = (corners[:, k] - corners[:, 0] for k in (1, 2, 3))
    volumes = (a * cross3(b, c)).sum(axis=1)
    size = jnp.abs(vertices_G).max()
    return volumes.min() < -ROUNDING * float(jnp.finfo(numbers.dtype).eps) * size**3
