"""Few kernels: a loop of one world on a CPU as a single kernel; XLA would start several kernels at every step.

`as_one_kernel` marks a function. Where it is differentiated or runs for many worlds, it is the function itself.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.core import ShapedArray, Tracer
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array

from ..calls.compiled_calls import Flattened, compiled_whole, flatten, is_traced
from ..targets.by_device import on_cpu
from ..targets.cpu_kernel import in_one_kernel, lower_as_one_kernel, lowered
from ..targets.platform_rules import register_by_platform
from .many_worlds import is_batched
from .worlds_primitive import of_moving


def as_one_kernel(function: Callable) -> Callable:
    """Compiles a function of one world for a CPU as a single kernel with all its loops, where that can be.

    XLA starts a kernel for every few operations, at every step of a loop; without that a step of one world takes about
    a microsecond less. Nothing changes where the function calls libraries (products of matrices, factorizations,
    callbacks), is under `vmap` or differentiated, or runs on another device. Arguments and results are trees of arrays;
    arguments may be floats, too, and other leaves among them are static.

    ```
    @jax.jit
    @mbjax.as_one_kernel
    def swing(q, v):
        return lax.fori_loop(0, 1000, lambda _, state: step(*state), (q, v))
    ```
    """

    def plain(args: tuple, keywords: dict) -> Any:
        return function(*args, **keywords)

    def marked(args: tuple, keywords: dict) -> Any:
        leaves, flat = flatten(plain, *jax.tree.flatten((args, keywords)))
        if not leaves or jax.config.jax_disable_jit or is_batched(leaves):  # pyright: ignore[reportAttributeAccessIssue]
            return plain(args, keywords)
        if not is_traced(leaves):
            return compiled_whole(dataclasses.replace(flat, function=marked))(*leaves)
        return run_loop(flat, leaves)

    @functools.wraps(function)
    def called(*args: Any, **keywords: Any) -> Any:
        return marked(args, keywords)

    return called


def one_by_one(function: Callable, *args: Array) -> Array:
    """Applies an elementwise function; for one world on a CPU by a loop within a kernel, a number a turn.

    XLA runs a program of fewer than a thousand operations at once, where it is called; it counts a loop by one turn.
    For other programs it wakes another thread, which takes longer than the dynamics of one world. So one world has
    loops instead of long vectors. Arguments without an axis are the same for all numbers. Derivatives are not loops.
    """
    if any(x.ndim > 1 for x in args):
        return function(*args)
    return in_turns(function, *args)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def in_turns(function: Callable, *args: Array) -> Array:
    """Applies an elementwise function to the numbers of one world by a loop."""

    def loop(*args: Array) -> Array:
        each = [k for k, x in enumerate(args) if x.ndim]

        def turn(_: None, numbers: Sequence[Array]) -> tuple[None, Array]:
            found = dict(enumerate(args)) | dict(zip(each, numbers, strict=True))
            return None, function(*found.values())

        return lax.scan(turn, None, [args[k] for k in each])[1]

    return on_cpu(functools.partial(in_one_kernel, loop), function, *args)


@in_turns.defjvp
def _in_turns_jvp(function: Callable, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    return in_turns(function, *primals), jax.jvp(function, primals, tangents)[1]


@eqx.filter_custom_jvp
def called_if(condition: Array, function: Callable, args: tuple, otherwise: Any) -> Any:
    """`function(*args)` where the condition holds, and else `otherwise`, as a loop of one turn that a kernel can hold.

    Branches are no part of kernels. Derivatives are those of a branch; the function must close over no arrays.
    """

    def turn(_: tuple[Array, Any]) -> tuple[Array, Any]:
        return jnp.zeros_like(condition), function(*args)

    return lax.while_loop(lambda carry: carry[0], turn, (condition, otherwise))[1]


@called_if.def_jvp
def _called_if_jvp(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    condition, function, args, otherwise = primals

    def branch(args: tuple, otherwise: Any) -> Any:
        return lax.cond(condition, lambda: function(*args), lambda: otherwise)

    _, _, *moved = tangents
    return eqx.filter_jvp(branch, (args, otherwise), tuple(moved))


def run_loop(flat: Flattened, leaves: Sequence) -> Any:
    """Binds `loop_p` to the arrays that are traced; the known ones become constants of the function."""
    traced = [i for i, x in enumerate(leaves) if isinstance(x, Tracer)]

    def of_traced(*values: Any) -> Any:
        of_all = dict(enumerate(leaves)) | dict(zip(traced, values, strict=True))
        return flat.results(*of_all.values())

    given = [leaves[i] for i in traced]
    closed, shapes = jax.make_jaxpr(of_traced, return_shape=True)(*given)
    if closed.effects or is_batched(closed.consts):  # arrays that it closes over are arguments, too
        return flat.results(*leaves)
    found = loop_p.bind(*closed.consts, *given, jaxpr=closed.jaxpr, num_consts=len(closed.consts))
    return jax.tree.unflatten(jax.tree.structure(shapes), found)


def evaluate_loop(*args: Any, jaxpr: Any, num_consts: int) -> list:
    """Runs the function as it was given."""
    return jaxpr_as_fun(ClosedJaxpr(jaxpr, args[:num_consts]))(*args[num_consts:])


def shapes_of_loop(*_: Any, jaxpr: Any, **__: Any) -> list[ShapedArray]:
    """Shapes and types of the primitive's results."""
    return [x.aval for x in jaxpr.outvars]


def differentiate_loop(primals: Sequence, tangents: Sequence, **params: Any) -> tuple:
    """Forward-mode rule of `loop_p`: JAX's derivative of the function as it was given."""
    moving = [i for i, t in enumerate(tangents) if type(t) is not ad.Zero]
    moved = of_some(moving, primals, params)
    return jax.jvp(moved, tuple(primals[i] for i in moving), tuple(tangents[i] for i in moving))


def transpose_loop(cotangents: Sequence, *args: Any, **params: Any) -> list:
    """Reverse-mode rule of `loop_p`, where the function is linear in some arguments."""
    moving = [i for i, x in enumerate(args) if ad.is_undefined_primal(x)]
    pull = jax.linear_transpose(of_some(moving, args, params), *(args[i].aval for i in moving))
    found = dict(zip(moving, pull([ad.instantiate_zeros(ct) for ct in cotangents]), strict=True))
    return [found.get(i) for i in range(len(args))]


def of_some(moving: Sequence[int], held: Sequence, params: dict) -> Callable:
    """The function of the arguments `moving`, the others held."""
    return of_moving(functools.partial(evaluate_loop, **params), moving, held, (True,) * len(params["jaxpr"].outvars))


def batch_loop(args: Sequence, dims: Sequence, **params: Any) -> tuple[list, list]:
    """Batching rule of `loop_p`: the function as it was given, under `vmap`."""
    found = jax.vmap(functools.partial(evaluate_loop, **params), in_axes=tuple(dims))(*args)
    return found, [0] * len(found)


def lower_loop_on_cpu(ctx: mlir.LoweringRuleContext, *args: Any, **params: Any) -> Any:
    """Lowers the loop for a CPU, as one kernel."""
    return lower_as_one_kernel(functools.partial(evaluate_loop, **params), ctx, *args)


loop_p = Primitive("loop")
loop_p.multiple_results = True
loop_p.def_impl(lambda *args, **params: jax.jit(functools.partial(evaluate_loop, **params))(*args))
loop_p.def_abstract_eval(shapes_of_loop)
ad.primitive_jvps[loop_p] = differentiate_loop
ad.primitive_transposes[loop_p] = transpose_loop
batching.primitive_batchers[loop_p] = batch_loop
register_by_platform(loop_p, lowered(evaluate_loop), cpu=lower_loop_on_cpu)
