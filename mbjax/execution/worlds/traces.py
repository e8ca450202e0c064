"""Forgets the functions that this process has traced and kept besides JAX's own caches."""

from ..calls.compiled_calls import compiled_whole
from ..calls.known_numbers import operations_of
from .many_worlds import results_of
from .worlds_primitive import compiled


def forget_traces() -> None:
    """Drops every traced function, so that the next call traces it anew: for those who measure how long that takes."""
    for cache in (compiled_whole, operations_of, compiled, results_of):
        cache.cache_clear()
