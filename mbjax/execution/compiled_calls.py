"""Functions compiled as a whole, also where they are called outside `jax.jit`.

Rolled loops would be compiled anew at every such call, and operations run one by one.
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
    """`function(*args)` of one world, compiled as a whole once per function, shapes and static parts.

    For functions that are not run by `for_worlds` in one piece. In a function that is traced already, and under
    `jax.disable_jit`, it is the plain call: what nobody reads of the results is then not computed.
    """
    leaves, flat = flatten(function, *jax.tree.flatten(args))
    return function(*args) if is_traced(leaves) else compiled_whole(flat)(*leaves)


def compiled_outside_jit(function: Callable) -> Callable:
    """A public function of one world that `call_compiled` runs, with one program for all numbers.

    Arrays are what the signature calls so, lists of numbers too, and floats wherever they stand; the rest is static.
    Every argument can be given by its place.
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
            return function(*args, **keywords)  # says what is missing
        bound.apply_defaults()  # `args` end at the first argument that is not there
        for name, given in bound.arguments.items():
            if name not in arrays:
                bound.arguments[name] = given.tolist() if isinstance(given, np.ndarray) else given  # of indices
            else:
                bound.arguments[name] = given if is_array(given) else as_numbers(given)
        leaves, flat = flatten(function, *jax.tree.flatten(bound.args))
        return compiled_whole(flat)(*leaves)

    return called


def of_one_model(function: Callable[P, R]) -> Callable[P, R]:
    """A public function of a model and more: a batch of models is refused, which it would read a wrong row of."""

    @functools.wraps(function)
    def called(*args: P.args, **keywords: P.kwargs) -> R:
        if args or "model" in keywords:
            require_one_model(args[0] if args else keywords["model"], function.__name__)
        return function(*args, **keywords)

    return called


def require_one_model(model: Any, call: str = "") -> None:
    """Refuses what is no model, and a batch of models: the model says so itself, which is defined further down."""
    if not hasattr(model, "require_one"):
        place = f"{call}: " if call else ""
        raise ModelError(f"{place}the model must be a mbjax.MultibodyModel, {what_came(model)}")
    model.require_one(call)


def what_came(model: Any) -> str:
    """What came in place of a model, and how to make one of it."""
    if hasattr(model, "finalize"):
        return f"got a {type(model).__name__}: pass what its finalize() returns."
    if isinstance(model, str):
        return f"got the text {model[:40]!r}: pass what mbjax.load returns for it."
    return f"got {type(model).__name__}."


def is_array(x: Any) -> bool:
    """Whether x may have an axis of worlds: NumPy's arrays count."""
    return isinstance(x, (jax.Array, np.ndarray))


def as_numbers(x: Any) -> Any:
    """x as an array where it is made of numbers; x itself where it is not, such as a pair of unlike arrays."""
    try:
        array = np.asarray(x)
    except ValueError:
        return x
    return array if array.dtype.kind in "biuf" else x


def is_traced(leaves: Iterable) -> bool:
    """Whether any is, or `jax.disable_jit` is on: nothing is then compiled here."""
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
    """`function` of the arrays among its arguments, to the list of its results."""

    function: Callable
    treedef: Any  # of all arguments
    static: tuple  # leaf by leaf; None stands for an array
    types: tuple[type, ...]  # of the former: 1 and True are equal

    def results(self, *leaves: Any, **found: Any) -> Any:
        arrays = iter(leaves)
        args = jax.tree.unflatten(self.treedef, [next(arrays) if x is None else x for x in self.static])
        return self.function(*args, **found)

    def __call__(self, *leaves: Any) -> list:
        return jax.tree.leaves(compiled_whole(self)(*leaves))


def flatten(function: Callable, leaves: list, treedef: Any) -> tuple[list, Flattened]:
    """The arrays among the leaves, and the function of them.

    Floats become arrays, Python's of the type that the first array of floats has: a new number needs no new program.
    """
    dtype = next((x.dtype for x in leaves if is_array(x) and jnp.issubdtype(x.dtype, jnp.floating)), float)
    leaves = [array_of_float(x, dtype) if is_float(x) else x for x in leaves]
    static = tuple(None if is_array(x) else x for x in leaves)
    arrays = [x for x, other in zip(leaves, static, strict=True) if other is None]
    return arrays, Flattened(function, treedef, static, tuple(map(type, static)))


def array_of_float(x: float | np.floating, dtype: Any) -> np.ndarray:
    """A Python float in this type, NumPy's in its own."""
    return np.asarray(x, jax.dtypes.canonicalize_dtype(getattr(x, "dtype", dtype)))


@functools.lru_cache(maxsize=1024)
def compiled_whole(flat: Flattened) -> Callable:
    """The function of the arrays among its arguments, with its results as it nests them; traced once per shapes."""
    return jax.jit(flat.results)
