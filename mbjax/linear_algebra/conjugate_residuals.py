"""Generalized conjugate residuals: a linear system by products with its matrix, near which one is easily solved.

Each direction is the easy solution for what is left, its product made orthogonal to those before: the residual is the
least over all directions, as in GMRES [Eisenstat, Elman, Schultz 1983], and no small system needs a factor of its own.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from mbjax.spatial import safe_sqrt


def solve_by_conjugate_residuals(
    product: Callable[[Array], Array],
    solve_near: Callable[[Array], Array],
    b: Float[Array, "n 3"],
    *,
    tolerance: float,
    num_directions: int,
    max_iterations: int,
) -> Float[Array, "n 3"]:
    """Solves A x = b until the residual is at most `tolerance` of b.

    `product` is A x for an x, `solve_near` solves with a matrix near A. As many directions are kept as `num_directions`
    says; after that each new one replaces the oldest.
    """
    enough = tolerance * safe_sqrt(jnp.sum(b**2))

    def unfinished(carry: tuple) -> Array:
        _, residual, _, _, count, progressed = carry
        return (safe_sqrt(jnp.sum(residual**2)) > enough) & (count < max_iterations) & progressed

    def iterate(carry: tuple) -> tuple:
        x, residual, directions, products, count, _ = carry
        direction = solve_near(residual)
        image = product(direction)
        for _ in range(2):  # once leaves rounding of the size of what cancels
            along = jnp.einsum("kni,ni->k", products, image)
            image = image - jnp.einsum("k,kni->ni", along, products)
            direction = direction - jnp.einsum("k,kni->ni", along, directions)
        length = safe_sqrt(jnp.sum(image**2))
        progressed = length > 0.0
        scale = jnp.where(progressed, 1.0 / jnp.where(progressed, length, 1.0), 0.0)
        image, direction = scale * image, scale * direction
        step = jnp.sum(image * residual)
        slot = count % num_directions
        return (
            x + step * direction,
            residual - step * image,
            directions.at[slot].set(direction),
            products.at[slot].set(image),
            count + 1,
            progressed,
        )

    none = jnp.zeros((num_directions, *b.shape), b.dtype)
    start = (jnp.zeros_like(b), b, none, none, jnp.zeros((), jnp.int32), jnp.array(True))
    return lax.while_loop(unfinished, iterate, start)[0]
