"""Makes placed models: the placement, which follows from a model alone, is computed once, where it is cheapest.

A `PlacedModel` lasts for one call. Functions that read its placement, like `calc_body_placement`, compute it where the
model carries none.
"""

import dataclasses
import functools
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.core import Tracer
from jax.extend.core import get_opaque_trace_state

from mbjax.execution import call_now, for_worlds, is_batched, is_traced, require_one_model
from mbjax.execution.derivative_rules import no_tangent
from mbjax.model import MultibodyModel

from .model_placement import calc_model_placement
from .placement_records import ModelPlacement
from .with_placement import placement_of, with_placement

READ = (
    "body_mass", "body_com", "body_unit_inertia", "frame_quaternion", "frame_translation", "joint_axis", "screw_pitch",
)  # fmt: skip


def for_worlds_of(function: Callable, model: MultibodyModel, *args: Any, **options: Any) -> Any:
    """Calls `for_worlds(function, model, *args, **options)` with a model that carries its placement.

    Where each world has a model of its own, the placement is computed chunk by chunk of worlds, and not kept in memory.
    """
    require_one_model(model)
    if placement_of(model) is None and not is_batched(read_by_placement(model)):
        model = placed(model, *args)
    return for_worlds(function if placement_of(model) is not None else Placing(function), model, *args, **options)


def placed(model: MultibodyModel, *args: Any) -> MultibodyModel:
    """Adds its placement to the model where it or `args` are traced; else returns the model unchanged.

    For a model that is closed over, the placement is computed now and is a constant of the program, in loops too. For a
    traced model it is part of the program, and derivatives by the model pass through it.
    """
    if placement_of(model) is not None or not is_traced(jax.tree.leaves((model, args))):
        return model
    if any(isinstance(x, Tracer) for x in jax.tree.leaves(model)):
        placement = placement_in_trace(model)
    else:
        placement = call_now(calc_model_placement, read_by_placement(model))
    return with_placement(model, placement)


class InTrace(NamedTuple):
    """The placement of a traced model, and the trace that computed it."""

    model: weakref.ref
    trace: Any
    placement: ModelPlacement


_in_traces: dict[int, InTrace] = {}  # by the model's address; an entry goes with the model


def placement_in_trace(model: MultibodyModel) -> ModelPlacement:
    """The placement of a traced model, computed once for all functions that a trace gives the same model.

    Each would otherwise have its own in the program, and in a gradient by the model its own transpose.
    """
    trace, known = get_opaque_trace_state(), _in_traces.get(id(model))
    if known is not None and known.model() is model and known.trace == trace:
        return known.placement
    placement = calc_placement(model)
    forget = functools.partial(forgotten, id(model))
    _in_traces[id(model)] = InTrace(weakref.ref(model, forget), trace, placement)
    return placement


def forgotten(address: int, model: weakref.ref) -> None:
    """Forgets what was computed for a model that is no more."""
    known = _in_traces.get(address)
    if known is not None and known.model is model:
        del _in_traces[address]


def calc_placement(model: MultibodyModel) -> ModelPlacement:
    """`calc_model_placement`, also of many models; worlds whose models differ only in other numbers share it."""
    return for_worlds(calc_model_placement, read_by_placement(model))


def read_by_placement(model: MultibodyModel) -> MultibodyModel:
    """The model with only those numbers that its placement depends on."""
    read = {name: getattr(model.parameters, name) for name in READ}
    empty, zero = no_tangent(model), np.zeros((), model.dtype)
    parameters = dataclasses.replace(empty.parameters, **read, time_step=zero, gravity=np.zeros(3, model.dtype))
    return dataclasses.replace(empty, parameters=parameters)  # the last two have axes of worlds and a dtype


@dataclasses.dataclass(frozen=True)
class Placing:
    """Calls `function` with the model's placement added, computed inside the call."""

    function: Callable

    def __call__(self, model: MultibodyModel, *args: Any, **found: Any) -> Any:
        return self.function(with_placement(model, calc_model_placement(model)), *args, **found)
