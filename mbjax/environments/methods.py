"""Methods of equinox's modules that `jax.jit` takes: `jax.jit(environment.step)`."""

from collections.abc import Callable
from typing import Any

import equinox as eqx


class BoundToModule(eqx.Module):
    """A method bound to a module: a tree of the module's arrays, as equinox's are, but equal only to itself.

    Equinox compares methods by the arrays of their modules, so that `jax.jit`, which needs a hash, takes none of them.
    """

    function: Callable = eqx.field(static=True)
    module: Any

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.function(self.module, *arguments, **options)

    def __hash__(self) -> int:
        return hash((self.function, id(self.module)))

    def __eq__(self, other: object) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        return isinstance(other, BoundToModule) and self.function is other.function and self.module is other.module

    @property
    def __wrapped__(self) -> Callable:
        return self.function.__get__(self.module)


class for_jit:  # noqa: N801  (a decorator)
    """Decorates a method of a module: bound, it is a `BoundToModule`."""

    def __init__(self, function: Callable):
        self.__wrapped__ = function
        self.__doc__ = function.__doc__

    def __get__(self, module: Any, owner: Any = None) -> Any:
        return self.__wrapped__ if module is None else BoundToModule(self.__wrapped__, module)
