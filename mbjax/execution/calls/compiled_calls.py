"""Compiles a function as a whole where it is called outside `jax.jit`: one program a function, robot and shapes.

Otherwise rolled loops would be compiled anew at every call, and operations would run one by one.
"""

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import AbstractArray

from mbjax.errors import ModelError

P = ParamSpec("P")
R = TypeVar("R")


def call_compiled(function: Callable, *args: Any) -> Any:
    """Calls `function(*args)` of one world, compiled as a whole once per function, shapes and static parts.

    It is for functions that are not run by `for_worlds` in one piece. While tracing, and under `jax.disable_jit`, it is
    the plain call: results that nobody reads are then not computed.
    """
    leaves, flat = flatten(function, *jax.tree.flatten(args))
    return function(*args) if is_traced(leaves) else compiled_whole(flat)(*leaves)


def compiled_outside_jit(function: Callable) -> Callable:
    """Decorates a public function of one world to be compiled outside `jit`, with one program for all numbers.

    Arguments that the signature annotates as arrays are arrays, lists of numbers too, as are floats anywhere; the rest
    is static. Every argument can be given by its place.
    """
    signature = inspect.signature(function)
    assert all(p.kind is p.POSITIONAL_OR_KEYWORD for p in signature.parameters.values()), function
    takes_model = next(iter(signature.parameters), None) == "model"
    arrays = [name for name, parameter in signature.parameters.items() if says_array(parameter.annotation)]

    @functools.wraps(function)
    def called(*args: Any, **keywords: Any) -> Any:
        if takes_model and (args or "model" in keywords):
            require_one_model(args[0] if args else keywords["model"], function.__name__)
        if is_traced(jax.tree.leaves((args, keywords))):
            return function(*args, **keywords)
        try:
            bound = signature.bind(*args, **keywords)
        except TypeError:
            return function(*args, **keywords)  # raises with the name of what is missing
        bound.apply_defaults()  # else `args` would end at the first argument that is missing
        for name, given in bound.arguments.items():
            if name not in arrays:
                bound.arguments[name] = given.tolist() if isinstance(given, np.ndarray) else given  # indices
            else:
                bound.arguments[name] = given if is_array(given) else as_array_numbers(given)
        leaves, flat = flatten(function, *jax.tree.flatten(bound.args))
        return compiled_whole(flat)(*leaves)

    return called


def of_one_model(function: Callable[P, R]) -> Callable[P, R]:
    """Decorates a public function of a model to refuse a batch of models, of which it would read a wrong row."""

    @functools.wraps(function)
    def called(*args: P.args, **keywords: P.kwargs) -> R:
        if args or "model" in keywords:
            require_one_model(args[0] if args else keywords["model"], function.__name__)
        return function(*args, **keywords)

    return called


def takes_model_first(function: Callable[P, R]) -> Callable[P, R]:
    """Decorates a public function of a model to say so where something else came in the model's place.

    It looks only once reading the model has failed, so that a right call costs nothing more.
    """

    @functools.wraps(function)
    def called(*args: P.args, **keywords: P.kwargs) -> R:
        try:
            return function(*args, **keywords)
        except (AttributeError, TypeError):
            model = args[0] if args else keywords.get("model")
            if hasattr(model, "require_one"):
                raise
            raise ModelError(
                f"{function.__name__}: the model must be a mbjax.MultibodyModel, {what_came(model)}"
            ) from None

    return called


def require_one_model(model: Any, call: str = "") -> None:
    """Raises `ModelError` unless `model` is one model; its class, in a folder above, checks for a batch itself."""
    if not hasattr(model, "require_one"):
        place = f"{call}: " if call else ""
        raise ModelError(f"{place}the model must be a mbjax.MultibodyModel, {what_came(model)}")
    model.require_one(call)


def what_came(model: Any) -> str:
    """Describes what was given in place of a model, and how to make a model of it."""
    if hasattr(model, "finalize"):
        return f"got a {type(model).__name__}: pass what its finalize() returns."
    if isinstance(model, str):
        return f"got the text {model[:40]!r}: pass what mbjax.load returns for it."
    return f"got {type(model).__name__}."


def is_array(x: Any) -> bool:
    """Whether x is an array, which may have an axis of worlds; NumPy's arrays count."""
    return isinstance(x, (jax.Array, np.ndarray))


def as_array_numbers(x: Any) -> Any:
    """x as an array where it is made of numbers; x itself where it is not, such as a pair of unlike arrays."""
    try:
        array = np.asarray(x)
    except ValueError:
        return x
    return array if array.dtype.kind in "biuf" else x


def is_traced(leaves: Iterable) -> bool:
    """Whether any leaf is traced or `jax.disable_jit` is on; nothing is then compiled here."""
    return jax.config.jax_disable_jit or any(isinstance(x, Tracer) for x in leaves)  # pyright: ignore[reportAttributeAccessIssue]


def is_float(x: Any) -> bool:
    """Whether x is a Python or NumPy scalar that is a float."""
    return isinstance(x, (float, np.floating))


def says_array(annotation: Any) -> bool:
    """Whether an annotation is a shaped array, or a union with one."""
    if isinstance(annotation, type):
        return issubclass(annotation, AbstractArray | jax.Array)
    return any(says_array(x) for x in typing.get_args(annotation))


@dataclasses.dataclass(frozen=True)
class Flattened:
    """A function of the arrays among its arguments, to the list of its results."""

    function: Callable
    treedef: Any  # of all arguments
    static: tuple  # the other leaves; None stands for an array
    types: tuple[type, ...]  # types of `static`, as 1 and True are equal

    def results(self, *leaves: Any, **found: Any) -> Any:
        arrays = iter(leaves)
        args = jax.tree.unflatten(self.treedef, [next(arrays) if x is None else x for x in self.static])
        return self.function(*args, **found)

    def __call__(self, *leaves: Any) -> list:
        return jax.tree.leaves(compiled_whole(self)(*leaves))


def flatten(function: Callable, leaves: list, treedef: Any) -> tuple[list, Flattened]:
    """Splits the leaves of arguments into the arrays and a function of them.

    Floats become arrays, so that a new number needs no new program. Python's have the type of the first float array.
    """
    dtype = next((x.dtype for x in leaves if is_array(x) and jnp.issubdtype(x.dtype, jnp.floating)), float)
    leaves = [array_of_float(x, dtype) if is_float(x) else x for x in leaves]
    static = tuple(None if is_array(x) else x for x in leaves)
    arrays = [x for x, other in zip(leaves, static, strict=True) if other is None]
    return arrays, Flattened(function, treedef, static, tuple(map(type, static)))


def array_of_float(x: float | np.floating, dtype: Any) -> np.ndarray:
    """An array of a Python float in this type, or of NumPy's in its own."""
    return np.asarray(x, jax.dtypes.canonicalize_dtype(getattr(x, "dtype", dtype)))


@functools.lru_cache(maxsize=1024)
def compiled_whole(flat: Flattened) -> Callable:
    """Compiles the function of the arrays among its arguments, results as it nests them; traced once per shapes."""
    return jax.jit(flat.results)
