"""States in the order of another plant's coordinate names, as Drake gives them, and back."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.execution import of_one_model
from mbjax.model import MultibodyModel, all_joint_positions, all_joint_velocities, as_array, near_matches
from mbjax.model.coordinate_names import with_suffixes
from mbjax.simulation.state import State, as_state, nodes_at_rest


@of_one_model
def drake_state(
    model: MultibodyModel, state: State, position_names: Sequence[str], velocity_names: Sequence[str]
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """(q, v) in the order of Drake's names: `drake_state(model, state, plant.GetPositionNames(), …)`.

    The names are those of `plant.GetPositionNames()` and `plant.GetVelocityNames()`, with or without the prefix of the
    model instance and the suffix of joints with one coordinate. Conventions are alike, only the order may differ, and
    joints that mimic others have coordinates of their own there, which are included.
    """
    state = as_state(model, state)
    at_q, at_v = (places(model, names, which, "drake_state")[0] for which, names in
                  (("position", position_names), ("velocity", velocity_names)))  # fmt: skip
    return all_joint_positions(model, state.q)[at_q], all_joint_velocities(model, state.v)[at_v]


@of_one_model
def state_from_drake(
    model: MultibodyModel,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    position_names: Sequence[str],
    velocity_names: Sequence[str],
    time: Float[Array, ""] | float = 0.0,
) -> State:
    """The state that Drake's q and v of those names are: the inverse of `drake_state`.

    Of joints that mimic others the numbers are not looked at. Nodes of deformable bodies are at rest.
    """
    call, ours = "state_from_drake", []
    for which, names, given in (("position", position_names, q), ("velocity", velocity_names, v)):
        array = as_array(which[0].replace("p", "q"), given, 1, model.dtype)
        if array.shape != (len(names),):
            raise ModelError(
                f"{call}: there are {len(names)} {which} names, but an array of shape {array.shape}. Use jax.vmap for "
                "a batch."
            )
        ours.append(array[places(model, names, which, call)[1]])
    return State(ours[0], ours[1], jnp.asarray(time, model.dtype), nodes_at_rest(model))


def places(model: MultibodyModel, names: Sequence[str], which: str, call: str) -> tuple[np.ndarray, np.ndarray]:
    """Where each name stands among the coordinates of all joints, and where each of our own stands among the names."""
    known, own = known_names(model, which)
    found = []
    for name in map(str, names):
        if name not in known:
            raise ModelError(f"{call}: the model has no {which} '{name}'. {near_matches(name, known)}")
        if len(known[name]) > 1:
            raise ModelError(f"{call}: {which} '{name}' is ambiguous; give names with the model instance as prefix.")
        found.append(known[name][0])
    where = {place: i for i, place in enumerate(found)}
    missing = [name for name, place in own if place not in where]
    if missing:
        raise ModelError(
            f"{call}: the {which} names lack {', '.join(repr(name) for name in missing[:6])}, which moves here. Load "
            "both robots with the same base."
        )
    return np.array(found, int), np.array([where[place] for _, place in own], int)


def known_names(model: MultibodyModel, which: str) -> tuple[dict[str, list[int]], list[tuple[str, int]]]:
    """Places among the coordinates of all joints by every form of the name; and those that are our own, in order."""
    known: dict[str, list[int]] = {}
    own: list[tuple[int, str, int]] = []
    for joint in model.layout.joints:
        if joint.mobod < 0:
            continue
        is_position = which == "position"
        suffixes = joint.position_suffixes if is_position else joint.velocity_suffixes
        start = joint.all_q_start if is_position else joint.all_v_start
        stem = f"{model.layout.instance_names[joint.model_instance]}_{joint.name}"
        forms = {tuple(with_suffixes(s, suffixes, always)) for s in (stem, joint.name) for always in (True, False)}
        for form in forms:
            for offset, name in enumerate(form):
                known.setdefault(name, []).append(start + offset)
        if joint.mimics is None:
            first = joint.q_start if is_position else joint.v_start
            names = with_suffixes(stem, suffixes, True)
            own += [(first + offset, name, start + offset) for offset, name in enumerate(names)]
    return known, [(name, place) for _, name, place in sorted(own)]
