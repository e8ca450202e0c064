"""Plain functions whose traced numbers are leaves, so that a problem is differentiated by what functions close over."""

import copy
import functools
import types
from typing import Any

import equinox as eqx
import jax
from jax.core import Tracer

from mbjax.errors import ModelError


def with_traced_as_leaves(tree: Any, within: tuple[int, ...] = ()) -> Any:
    """The tree with its plain functions, and objects of plain classes, as modules if they hold traced numbers.

    Functions are found wherever they are leaves: within other modules, within `functools.partial`, among the defaults
    of other functions and among what these close over. Raises `ModelError` for functions that call themselves.
    """
    return jax.tree.map(lambda leaf: closed(leaf, within) if holds_traced(leaf) else leaf, tree)


def closed(leaf: Any, within: tuple[int, ...]) -> Any:
    """A module that does as the function or object that holds traced numbers."""
    if isinstance(leaf, Tracer):
        return leaf
    if id(leaf) in within:
        raise ModelError(
            f"Problem: the function {getattr(leaf, '__name__', leaf)!r} calls itself and closes over traced numbers; "
            "give it these as fields of an equinox.Module."
        )
    within = (*within, id(leaf))
    if isinstance(leaf, functools.partial):
        return ClosedPartial(*(with_traced_as_leaves(x, within) for x in (leaf.func, leaf.args, leaf.keywords)))
    if isinstance(leaf, types.MethodType):
        return ClosedPartial(*(with_traced_as_leaves(x, within) for x in (leaf.__func__, (leaf.__self__,), {})))
    if isinstance(leaf, types.FunctionType):
        numbers = cells_of(leaf), leaf.__defaults__, leaf.__kwdefaults__
        return ClosedFunction(kept(numbers, within), leaf.__code__, Fixed(leaf.__globals__))
    attributes = {name: x for name, x in vars(leaf).items() if holds_traced(x)}
    rest = copy.copy(leaf)
    for name in attributes:
        rest.__dict__[name] = None
    return ClosedObject(kept(attributes, within), Fixed(rest))


def holds_traced(value: Any) -> bool:
    """Whether a value is traced, or holds one: a pytree, a function, or an object of a plain class."""
    waiting, seen = [value], set()
    while waiting:
        part = waiting.pop()
        if isinstance(part, Tracer):
            return True
        if id(part) in seen:
            continue
        seen.add(id(part))
        if not jax.tree_util.all_leaves([part]):
            waiting += jax.tree.leaves(part)
        elif isinstance(part, functools.partial):
            waiting += [part.func, part.args, part.keywords]
        elif isinstance(part, types.MethodType):
            waiting += [part.__func__, part.__self__]
        elif isinstance(part, types.FunctionType):
            waiting += [cells_of(part), part.__defaults__, part.__kwdefaults__]
        elif callable(part) and not isinstance(part, type):
            waiting += list(getattr(part, "__dict__", {}).values())
    return False


def cells_of(function: types.FunctionType) -> dict[str, Any]:
    """What a function closes over, by name; names that have no value yet are left out."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found


class Fixed:
    """A value that is no leaf, compared by its identity."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fixed) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def kept(tree: Any, within: tuple[int, ...]) -> Any:
    """The tree with all fixed that is not traced, so that programs need not compare it."""

    def leaf(x: Any) -> Any:
        return closed(x, within) if holds_traced(x) else Fixed(x)

    return jax.tree.map(leaf, tree)


def released(tree: Any) -> Any:
    """The tree that was `kept`."""
    return jax.tree.map(lambda x: x.value if isinstance(x, Fixed) else x, tree, is_leaf=lambda x: isinstance(x, Fixed))


class ClosedFunction(eqx.Module):
    """A function, remade at each call of its code and of the values that it closes over and has as defaults."""

    numbers: Any
    code: types.CodeType = eqx.field(static=True)
    scope: Fixed = eqx.field(static=True)

    def __call__(self, *given: Any, **named: Any) -> Any:
        values, defaults, of_keywords = released(self.numbers)
        cells = tuple(
            types.CellType(values[name]) if name in values else types.CellType() for name in self.code.co_freevars
        )
        function = types.FunctionType(self.code, self.scope.value, self.code.co_name, defaults, cells)
        function.__kwdefaults__ = of_keywords
        return function(*given, **named)


class ClosedPartial(eqx.Module):
    """A function with its first arguments and keywords given."""

    function: Any
    first: tuple
    keywords: dict[str, Any]

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self.function(*self.first, *given, **(self.keywords | named))


class ClosedObject(eqx.Module):
    """An object of a plain class, copied at each use with its traced attributes in place."""

    attributes: dict[str, Any]
    rest: Fixed = eqx.field(static=True)

    def __call__(self, *given: Any) -> Any:
        return self.remade()(*given)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("attributes", "rest"):
            raise AttributeError(name)
        return getattr(self.remade(), name)

    def remade(self) -> Any:
        """The object with its attributes."""
        remade = copy.copy(self.rest.value)
        remade.__dict__.update(released(self.attributes))
        return remade
