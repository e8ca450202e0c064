"""Keyframes declared on a plant: kept, and set on the model by `finalize`."""

import abc
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from mbjax.errors import ModelError, ModelWarning
from mbjax.joints import AbstractJoint
from mbjax.model import Keyframe, MultibodyModel
from mbjax.model.parameters import leaf_of
from mbjax.number_rules import FINITE, known_numbers

from .declarations import DeclaredKeyframe
from .mimics import Relation, relations_of
from .queries import PlantQueries

AGREES = 1e-4  # largest difference, also relative, of numbers that agree: those of files are rounded
LISTED = 4  # numbers that one warning lists
CALLER_OF_FINALIZE = 6  # stack frames: this, declared_keyframes, build_model, finalize, plant.finalize, its caller


class PlantKeyframes(PlantQueries):
    """Named states."""

    def add_keyframe(
        self,
        name: str,
        positions: Mapping[AbstractJoint | str | int, Any],
        velocities: Mapping[AbstractJoint | str | int, Any] | None = None,
        *,
        time: float = 0.0,
    ) -> None:
        """A named state, for `keyframe_state(model, name)`.

        Positions (rad or m) and velocities are given by joint; joints that are left out are at their defaults and at
        rest. A body that floats has no joint before finalize: declare one to name it here. A joint that mimics another
        follows it: finalize warns where its numbers differ from those that its leader's give it.
        """
        call = f"add_keyframe('{name}')"
        self._require_building("add_keyframe")
        if not isinstance(name, str) or not name:
            raise ModelError(f"add_keyframe: the name must be a non-empty string, got {name!r}.")
        if any(keyframe.name == name for keyframe in self.keyframes):
            raise ModelError(f"{call}: the plant has a keyframe of that name already; choose another.")
        found = {}
        for what, given in (("positions", positions), ("velocities", velocities or {})):
            joints = {self.joint(key, call): value for key, value in given.items()}
            found[what] = {joint: numbers(call, what, joint, value) for joint, value in joints.items()}
        when = float(known_numbers(call, "time", time, FINITE))
        self.keyframes.append(DeclaredKeyframe(name, found["positions"], found["velocities"], when))

    @abc.abstractmethod
    def _require_building(self, call: str) -> None: ...


def numbers(call: str, what: str, joint: AbstractJoint, value: Any) -> np.ndarray:
    """As many finite numbers as the joint has positions or velocities."""
    size = joint.num_positions if what == "positions" else joint.num_velocities
    shape = () if size == 1 and np.shape(value) == () else (size,)
    return np.atleast_1d(known_numbers(call, f"{what} of joint '{joint.name}'", value, FINITE, shape)).astype(float)


def declared_keyframes(plant: PlantQueries, model: MultibodyModel) -> tuple[Keyframe, ...]:
    """The keyframes as states of the whole model."""
    warn_of_followers_apart(plant)
    result = []
    defaults = np.asarray(model.parameters.default_positions, float)
    for keyframe in plant.keyframes:
        q, v = defaults.copy(), np.zeros(model.num_velocities)
        for array, given, part in ((q, keyframe.positions, "q"), (v, keyframe.velocities, "v")):
            for joint, value in given.items():
                info = model.layout.joints[joint.index]
                if info.mimics is None:  # those that mimic follow
                    array[getattr(info, part)] = value
        dtype = model.dtype
        result.append(
            Keyframe(keyframe.name, leaf_of(q, dtype), leaf_of(v, dtype), leaf_of(np.asarray(keyframe.time), dtype))
        )
    return tuple(result)


def warn_of_followers_apart(plant: PlantQueries) -> None:
    """Warns once of numbers of joints that mimic, in keyframes, that differ from what their leaders give them."""
    found = [text for keyframe in plant.keyframes for text in followers_apart(keyframe, relations_of(plant.mimics))]
    if found:
        warnings.warn(
            "joints that mimic others follow them in keyframes, so that these numbers do not count: "
            f"{'; '.join(found[:LISTED])}{'; …' if len(found) > LISTED else ''}. Give numbers to the leaders.",
            ModelWarning,
            stacklevel=CALLER_OF_FINALIZE,
        )


def followers_apart(keyframe: DeclaredKeyframe, relations: Mapping[AbstractJoint, Relation]) -> Iterator[str]:
    """Each number of a keyframe's joints that mimic that is not the one their leaders give them, in words."""
    for what, given in (("position", keyframe.positions), ("velocity", keyframe.velocities)):
        is_position = what == "position"
        for joint, (own,) in ((joint, value) for joint, value in given.items() if joint in relations):
            leader, multiplier, offset = relations[joint]
            default = leader.default_positions if is_position else np.zeros(1)
            follows = multiplier * float(given.get(leader, default)[0]) + (offset if is_position else 0.0)
            if not np.isclose(own, follows, rtol=AGREES, atol=AGREES):
                place = f"by '{leader.name}' it is {follows:g}"
                yield f"'{keyframe.name}' gives joint '{joint.name}' the {what} {own:g}, {place}"
