"""A half-space against everything: points of the other shape, measured along its normal Az."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .witnesses import PairFunction, Witnesses, make_witnesses


def half_space_sphere(
    size_A: Float[Array, "0 n *w"],
    size_B: Float[Array, "1 n *w"],
    R_AB: Float[Array, "3 3 n *w"],
    p_AB: Float[Array, "3 n *w"],
) -> Witnesses:
    """The sphere's lowest point."""
    del size_A, R_AB
    return below([p_AB], size_B[0])


def below(centers: list[Float[Array, "3 n *w"]], radius: Float[Array, "n *w"] | float = 0.0) -> Witnesses:
    """Points of the plane under spheres about the `centers`."""
    distances, normals, points = [], [], []
    for center in centers:
        x, y, z = jnp.unstack(center)
        zero = jnp.zeros_like(z)
        distances.append(z - radius)
        normals.append(jnp.stack([zero, zero, zero - 1.0]))
        points.append(jnp.stack([x, y, zero]))
    return make_witnesses(distances, normals, points)


HALF_SPACE_PAIRS: dict[tuple[str, str], PairFunction] = {
    ("HalfSpace", "Sphere"): PairFunction(half_space_sphere, 1),
}
