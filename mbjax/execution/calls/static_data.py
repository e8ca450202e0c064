"""Static data of models: frozen dataclasses that compute their hash once."""

import dataclasses
import functools


class HashedOnce:
    """Base of dataclasses whose hash is computed once: JAX asks for it at every call of a compiled function.

    The hash is not pickled, as that of strings differs from process to process. Each subclass says
    `__hash__ = HashedOnce.__hash__`, or `dataclass` would write another.
    """

    @functools.cached_property
    def _hash(self) -> int:
        assert dataclasses.is_dataclass(self)
        return hash(tuple(getattr(self, field.name) for field in dataclasses.fields(self)))

    def __hash__(self) -> int:
        return self._hash

    def __getstate__(self) -> dict:
        return {name: value for name, value in self.__dict__.items() if name != "_hash"}
