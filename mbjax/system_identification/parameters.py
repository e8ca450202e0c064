"""Unknown parameters of a model by name: numbers that may take any value, and the model that they stand for."""

import dataclasses
from collections.abc import Mapping

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.execution import call_compiled
from mbjax.model import MultibodyModel
from mbjax.parameters.kind_table import GROUPS

from .choosing import choose
from .kinds import Kind
from .parameter_table import parameter_table
from .shared_values import require_unique_names, with_shared_values
from .spaces import Coding, Space, coding_of, decode, encode
from .system import Drives, Sensors, System, ideal_sensors, symmetric_drives


@dataclasses.dataclass(frozen=True)
class Unknown:
    """One number: its name, that of its element, its kind, places in the kind's leaf, and how theta stands for it."""

    name: str
    element: str
    kind: int  # in `Parameters.kinds`
    places: tuple[int, ...]  # more than one where numbers share a value
    space: Space
    coding: Coding
    start: float


class Parameters(eqx.Module):
    """Parameters of a model that are to be found, by patterns of their names.

        Parameters(model, {"mass:*": scaled(0.5, 2.0), "inertia:forearm": physical(), "joint_friction:*": positive()})

    A name is `kind:element`, with `.component` for one of several numbers; `body:NAME` means a body's mass, centre of
    mass and inertia. A later pattern replaces what an earlier one said, and numbers may share a value (`shared`).
    `theta` is an array of numbers that may take any value: `unknown.model(theta)` is a model with physical inertias
    whatever they are, and `unknown.initial` stands for the model given. All functions are pure, so `jit`, `vmap` and
    `grad` go through.
    """

    base: System
    initial: Float[Array, " n"]
    kinds: tuple[Kind, ...] = eqx.field(static=True)
    unknowns: tuple[Unknown, ...] = eqx.field(static=True)

    def __init__(self, model: MultibodyModel, patterns: Mapping[str, Space]):
        model.require_one("Parameters")
        model, chosen = choose(model, patterns)
        kinds = tuple(dict.fromkeys(entry.kind for entry in chosen))
        places = [tuple(entry.place for entry in chosen if entry.kind == kind) for kind in kinds]
        for kind, at in zip(kinds, places, strict=True):
            model = kind.of.prepared(model, at) if kind.part == "model" else model
        base = System(model, ideal_sensors(model), symmetric_drives(model))
        unknowns, theta = [], []
        for k, (kind, at) in enumerate(zip(kinds, places, strict=True)):
            raw = np.asarray(kind.raw(base, base, at), float)
            of_kind = [entry for entry in chosen if entry.kind == kind]
            for one in with_shared_values(of_kind, raw):
                space = space_of(kind, one.name, one.space)
                coding, start = coding_of(one.name, space, one.value, kind.scale)
                unknowns.append(Unknown(one.name, one.element, k, one.places, space, coding, start))
                theta.append(encode(coding, start))
        require_unique_names([unknown.name for unknown in unknowns])
        self.base, self.kinds, self.unknowns = base, kinds, tuple(unknowns)
        self.initial = jnp.asarray(np.array(theta), model.dtype)

    def __len__(self) -> int:
        return len(self.unknowns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers, in the order of theta."""
        return tuple(unknown.name for unknown in self.unknowns)

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the values."""
        return tuple(self.kinds[unknown.kind].unit for unknown in self.unknowns)

    def kind_names(self) -> frozenset[str]:
        """Names of the kinds that are unknown."""
        return frozenset(self.kinds[unknown.kind].name for unknown in self.unknowns)

    def system(self, theta: Float[Array, " n"]) -> System:
        """The model and its sensors at theta."""
        return call_compiled(written_system, self, jnp.asarray(theta))

    def model(self, theta: Float[Array, " n"]) -> MultibodyModel:
        """The model at theta."""
        return self.system(theta).model

    def sensors(self, theta: Float[Array, " n"]) -> Sensors:
        """The sensors at theta."""
        return self.system(theta).sensors

    def drives(self, theta: Float[Array, " n"]) -> Drives:
        """The drives at theta, with the friction that the model does not have."""
        return self.system(theta).drives

    def values(self, theta: Float[Array, " n"]) -> Float[Array, " n"]:
        """Values at theta, in their units; inertias about the centre of mass."""
        return call_compiled(values_at, self, jnp.asarray(theta))

    def values_of(self, system: System | MultibodyModel) -> Float[Array, " n"]:
        """Values of these parameters in another model of the same structure; of those that are shared, the means."""
        system = self.as_system(system)
        parts = [kind.read(system, self.base, at) for kind, _, at in self.blocks()]
        rows = np.concatenate([rows for _, rows, _ in self.blocks()]) if parts else np.zeros(0, int)
        return self.means(rows, jnp.concatenate(parts)) if parts else self.initial

    def numbers(self, system: System | MultibodyModel) -> Float[Array, " n"]:
        """The theta of another model of the same structure; values outside of their bounds are moved inside."""
        system = self.as_system(system)
        theta = np.zeros(len(self))
        for kind, rows, at in self.blocks():
            raw = np.asarray(kind.raw(system, self.base, at), float)
            for i in np.unique(rows):
                theta[i] = encode(self.unknowns[i].coding, float(raw[rows == i].mean()))
        return jnp.asarray(theta, self.initial.dtype)

    def as_system(self, system: System | MultibodyModel) -> System:
        """A bare model has the sensors and drives of the base."""
        return system if isinstance(system, System) else dataclasses.replace(self.base, model=system)

    def blocks(self) -> list[tuple[Kind, np.ndarray, tuple[int, ...]]]:
        """By kind: the places in the kind's leaf, and the row of theta that each of them has its value from."""
        found = []
        for k, kind in enumerate(self.kinds):
            pairs = [(i, at) for i, x in enumerate(self.unknowns) if x.kind == k for at in x.places]
            if pairs:
                rows, places = zip(*pairs, strict=True)
                found.append((kind, np.array(rows, int), places))
        return found

    def means(self, rows: np.ndarray, values: Float[Array, " numbers"]) -> Float[Array, " n"]:
        """Means of the values of each row of theta."""
        if len(rows) == len(self):
            return values[np.argsort(rows)]
        total = jnp.zeros(len(self), values.dtype).at[rows].add(values)
        return total / jnp.asarray(np.bincount(rows, minlength=len(self)), values.dtype)

    def prior_residuals(self, theta: Float[Array, " n"]) -> Float[Array, " priors"]:
        """How far values are from where they are believed to be, in standard deviations; one for each prior."""
        rows = np.array([i for i, unknown in enumerate(self.unknowns) if unknown.space.prior is not None], int)
        if not rows.size:
            return jnp.zeros(0, self.initial.dtype)
        numbers = decode(tuple(unknown.coding for unknown in self.unknowns), jnp.asarray(theta))
        of = [self.unknowns[i] for i in rows]
        deviation = [prior_deviation(unknown) for unknown in of]
        start = jnp.asarray([unknown.start for unknown in of], numbers.dtype)
        return (numbers[rows] - start) / jnp.asarray(deviation, numbers.dtype)

    def __str__(self) -> str:
        return parameter_table(self.unknowns, np.asarray(self.values(self.initial)), self.units)


def written_system(unknown: Parameters, theta: Float[Array, " n"]) -> System:
    """The base with the numbers that theta stands for."""
    numbers = decode(tuple(entry.coding for entry in unknown.unknowns), theta)
    system = unknown.base
    for kind, rows, at in unknown.blocks():
        system = kind.write(system, at, numbers[rows])
    return system


def values_at(unknown: Parameters, theta: Float[Array, " n"]) -> Float[Array, " n"]:
    """Values that theta stands for."""
    return unknown.values_of(written_system(unknown, theta))


def typical_sizes(unknown: Parameters) -> Float[np.ndarray, " n"]:
    """The largest starting value of each parameter's element, or its kind's typical change if that is larger."""
    values = np.abs(np.asarray(unknown.values(unknown.initial), float))
    largest: dict[str, float] = {}
    elements = [entry.element for entry in unknown.unknowns]
    for element, value in zip(elements, values, strict=True):
        largest[element] = max(largest.get(element, 0.0), value)
    scales = [0.0 if kind.only_physical else kind.scale for kind in (unknown.kinds[u.kind] for u in unknown.unknowns)]
    return np.maximum([max(largest[e], s) for e, s in zip(elements, scales, strict=True)], 1e-9)


def prior_deviation(unknown: Unknown) -> float:
    """The standard deviation of a prior, in the unit of the number that `decode` returns."""
    prior = unknown.space.prior
    assert prior is not None
    relative = unknown.space.is_relative or unknown.space.kind == "positive"
    return prior * abs(unknown.start) if relative and unknown.start != 0.0 else prior


def space_of(kind: Kind, name: str, space: Space) -> Space:
    """The space of one number: `physical` means positive masses, and any centre of mass."""
    if space.kind != "physical" or kind.only_physical:
        return space
    if kind.name not in GROUPS["body"]:
        raise ModelError(f"Parameters: '{name}' cannot be physical(), which is for bodies; use positive() or free().")
    return Space("positive" if kind.name == "mass" else "free", prior=space.prior)
