"""How many elements of a mesh contact of usual depth reaches: what bounds the number of faces of a surface.

A plane is laid on the mesh in many directions and moved inward. A surface has about as many faces as elements of a
compliant mesh that the plane cuts, or triangles of a rigid mesh that it reaches.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from .pressure_field import leaves_of_shape, vertices_and_extents
from .topology import HydroelasticTopology

USUAL_DEPTHS = 0.01, 0.05, 0.1, 0.15  # of the mesh's smallest width
NUM_RANDOM, NUM_TILTED = 256, 16  # directions of the plane: at random, and close to each axis, where sides lie flush
MOST_TILTED = 0.03  # rad
FEWEST_DIRECTIONS, MOST_CORNERS = 24, 2_000_000  # large meshes are tried in fewer directions


@functools.lru_cache
def reached_elements(topology: HydroelasticTopology) -> int:
    """The most elements that a plane cuts, or reaches of a rigid mesh, down to a usual depth; none of a half-space."""
    if topology.is_half_space:
        return 0
    with jax.ensure_compile_time_eval():
        numbers = jnp.asarray(leaves_of_shape(topology.shape), float)
        vertices_G = np.asarray(vertices_and_extents(topology, numbers, jnp.asarray(topology.margin, float))[0])
    return most_elements_at_planes(vertices_G, np.asarray(topology.mesh.elements), topology.is_rigid)


def most_elements_at_planes(
    vertices_G: Float[np.ndarray, "vertices 3"],
    elements: Int[np.ndarray, "m corners"],
    is_rigid: bool,
    count: Callable[[Bool[np.ndarray, " m"]], int] = np.count_nonzero,
) -> int:
    """The most tetrahedra that a plane cuts, or triangles of a rigid mesh that it reaches, down to a usual depth.

    `count` takes a mask of elements; what it returns may be the number of something else that these have.
    """
    directions = directions_of_planes()[: max(FEWEST_DIRECTIONS, MOST_CORNERS // elements.size)]
    heights = vertices_G @ directions.T
    heights -= heights.min(axis=0)
    width = heights.max(axis=0).min()
    most = 0
    for height in heights.T:
        of_corners = height[elements]
        lowest, highest = of_corners.min(axis=1), of_corners.max(axis=1)
        for depth in USUAL_DEPTHS:
            is_reached = lowest < depth * width
            if not is_rigid:
                is_reached &= highest > depth * width
            most = max(most, int(count(is_reached)))
    return most


@functools.lru_cache
def directions_of_planes() -> Float[np.ndarray, "directions 3"]:
    """Unit vectors: along the axes, close to them, and at random; the same ones every time."""
    random = np.random.default_rng(0)
    axes = np.concatenate([np.eye(3), -np.eye(3)])
    tilts = MOST_TILTED * random.uniform(size=(NUM_TILTED, 1, 1)) * random.normal(size=(NUM_TILTED, 6, 3))
    close = (axes + tilts).reshape(-1, 3)
    found = np.concatenate([axes, close, random.normal(size=(NUM_RANDOM, 3))])
    return found / np.linalg.norm(found, axis=1, keepdims=True)
