"""Several devices: where `jit` shares a program out, each device runs its own worlds as if it were alone.

XLA cannot share out a loop over chunks of worlds: it would have every device run all of them. So the code that runs
over worlds is a single call for XLA, with the rule that its worlds may be shared out. A device's part is lowered when
XLA has decided how. Sums over the worlds are summed over the devices.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.core import ShapedArray
from jax.experimental.custom_partitioning import ArrayMapping, SdyShardingRule, custom_partitioning
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec

from ..targets.cpu_kernel_marks import APART, ATTRIBUTE, attribute

EVERYWHERE = PartitionSpec()


def lower_in_shares(
    ctx: mlir.LoweringRuleContext,
    function: Callable[..., list],
    worlds: int,
    batched: Sequence[bool],
    summed: Sequence[bool],
    out: Sequence[ShapedArray],
    *args: Any,
) -> Any:
    """Lowers `function(*args, worlds=worlds)`, whose arguments have the worlds first where they are `batched`.

    Its results, of shapes and types `out` for one world, have the worlds first too, unless they are `summed` over them.
    Where the devices cannot have equal shares each runs all worlds.
    """

    def of_all(*args: jax.Array) -> list:  # only its shapes are read
        del args
        return [jnp.zeros(x.shape if s else (worlds, *x.shape), x.dtype) for x, s in zip(out, summed, strict=True)]

    shared_out, shares = custom_partitioning(of_all), Shares(function, worlds, tuple(batched), tuple(summed))
    shared_out.def_partition(
        shares.partition,
        infer_sharding_from_operands=shares.of_results,
        sharding_rule=shares.rule(ctx.avals_in, ctx.avals_out),
    )
    context = dataclasses.replace(ctx.module_context.axis_context, **devices_by_factors(ctx))
    ctx = ctx.replace(module_context=ctx.module_context.replace(axis_context=context))
    return mlir.lower_fun(shared_out, multiple_results=True)(ctx, *args)


def is_shared_out(ctx: mlir.LoweringRuleContext) -> bool:
    """Whether XLA shares the program out to several devices, and can ask us how."""
    count = num_devices(ctx)
    return count > 1 and not ctx.module_context.lowering_parameters.for_export and len(devices(ctx)) >= count


def num_devices(ctx: mlir.LoweringRuleContext) -> int:
    """Number of devices that XLA is to share out the program among; 1 inside `shard_map`."""
    context = ctx.module_context.axis_context
    return getattr(context, "num_devices", 1) if getattr(context, "mesh", None) is None else 1


def devices(ctx: mlir.LoweringRuleContext) -> list:
    """Devices that the program could run on; none where they are elsewhere."""
    try:
        return jax.devices(ctx.module_context.platforms[0])
    except RuntimeError:
        return []


def devices_by_factors(ctx: mlir.LoweringRuleContext) -> dict:
    """A mesh by which JAX reads how XLA shares out: an axis for each prime factor of the number of devices.

    Each axis of the caller's mesh is some of these. Which devices they are does not matter here.
    """
    factors = prime_factors(num_devices(ctx))
    mesh = AbstractMesh(factors, tuple(f"factor_{k}" for k in range(len(factors))))
    return {"device_assignment": tuple(devices(ctx)[: num_devices(ctx)]), "abstract_mesh": mesh}


def prime_factors(number: int) -> tuple[int, ...]:
    """Prime factors in rising order."""
    for factor in range(2, math.isqrt(number) + 1):
        if number % factor == 0:
            return factor, *prime_factors(number // factor)
    return (number,)


@dataclass(frozen=True)
class Shares:
    """A function of many worlds, and how its worlds are shared out to devices."""

    function: Callable[..., list]
    worlds: int
    batched: tuple[bool, ...]
    summed: tuple[bool, ...]

    def rule(self, arguments: Sequence[Any], results: Sequence[Any]) -> SdyShardingRule:
        """Sharding rule for XLA: the worlds of these shapes may be shared out, other axes are whole on each device."""
        has_worlds = (*self.batched, *(not s for s in self.summed))
        own = []

        def axes(array: int, count: int) -> ArrayMapping:
            names = [f"x{array}_{k}" for k in range(has_worlds[array], count)]
            own.extend(names)
            return ArrayMapping(*["worlds"] * has_worlds[array], *names)

        arrays = [axes(k, len(x.shape)) for k, x in enumerate((*arguments, *results))]
        split = len(arguments)
        return SdyShardingRule(tuple(arrays[:split]), tuple(arrays[split:]), need_replication_factors=tuple(own))

    def axes_of_worlds(self, mesh: Mesh, arrays: Sequence[Any], has_worlds: Sequence[bool]) -> tuple[str, ...]:
        """Axes of the mesh along which worlds are shared out: those of the array with the smallest shares."""
        found: tuple[str, ...] = ()
        for x, h in zip(arrays, has_worlds, strict=True):
            first = x.sharding.spec[0] if h and isinstance(x.sharding, NamedSharding) and len(x.sharding.spec) else None
            names = (first,) if isinstance(first, str) else tuple(first or ())
            if size_of(mesh, names) > size_of(mesh, found):
                found = names
        return () if self.worlds % size_of(mesh, found) else found

    def partition(self, mesh: Mesh, arguments: Sequence[Any], results: Sequence[Any]) -> tuple:
        """The function that each device runs, and the shardings of its arguments and results."""
        has_worlds = (*self.batched, *(not s for s in self.summed))
        axes = self.axes_of_worlds(mesh, (*arguments, *results), has_worlds)
        share = self.worlds // size_of(mesh, axes)

        def of_share(*args: jax.Array) -> list:
            found = apart_p.bind(*args, function=partial(self.function, worlds=share))
            return [lax.psum(y, axes) if s and axes else y for y, s in zip(found, self.summed, strict=True)]

        of_arguments = tuple(self.sharding(mesh, axes, b) for b in self.batched)
        return mesh, of_share, [self.sharding(mesh, axes, not s) for s in self.summed], of_arguments

    def of_results(self, mesh: Mesh, arguments: Sequence[Any], results: Sequence[Any]) -> list:
        """Shardings of results from those of arguments, for XLA's older partitioner."""
        del results
        axes = self.axes_of_worlds(mesh, arguments, self.batched)
        return [self.sharding(mesh, axes, not s) for s in self.summed]

    def sharding(self, mesh: Mesh, axes: tuple[str, ...], has_worlds: bool) -> NamedSharding:
        """Sharding of an array: its worlds along these axes, or all of it on each device."""
        return NamedSharding(mesh, PartitionSpec(axes) if has_worlds and axes else EVERYWHERE)


def size_of(mesh: Mesh, axes: Sequence[str]) -> int:
    """Number of devices along these axes."""
    return math.prod(mesh.shape[name] for name in axes)


def lower_apart(ctx: mlir.LoweringRuleContext, *args: Any, function: Callable[..., list]) -> Any:
    """Lowers a device's function to a call that is not inlined at once.

    XLA puts a device's function into the program operation by operation, and drops the marks of these operations, but
    not those inside functions that they call. It inlines the call later.
    """
    results = mlir.lower_fun(jax.jit(lambda *args: tuple(function(*args))), multiple_results=True)(ctx, *args)
    call = jax.tree.leaves(results)[0].owner
    assert call.name == "func.call", call
    call.attributes[ATTRIBUTE] = attribute(APART)
    return results


apart_p = Primitive("apart")
apart_p.multiple_results = True
apart_p.def_abstract_eval(lambda *args, function: list(jax.make_jaxpr(function)(*args).out_avals))
mlir.register_lowering(apart_p, lower_apart, cacheable=False)
