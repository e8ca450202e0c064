"""The trajectory that follows from efforts."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .problem import Problem


@eqx.filter_jit
def rolled_out(problem: Problem, efforts: Float[Array, "steps nu"]) -> Any:
    """States (num_steps + 1) from the start under the efforts."""
    stages = jax.tree.map(lambda x: x[:-1], problem.stages)

    def one(x: Any, step: tuple[Array, Any]) -> tuple[Any, Any]:
        after = problem.next_state(x, *step)
        return after, after

    start = jax.tree.map(jnp.asarray, problem.start)
    _, after = jax.lax.scan(one, start, (efforts, stages))
    return jax.tree.map(lambda x, rest: jnp.concatenate([x[None], rest]), start, after)
