"""Models that differ from world to world: numbers drawn by the patterns of their names."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from mbjax.errors import ModelError
from mbjax.execution import require_one_model
from mbjax.model import (
    COLLISION_RULES,
    DEFORMABLE_RULES,
    PARAMETER_RULES,
    WHAT_FITS,
    MultibodyModel,
    geometries_with_surfaces,
    is_mesh_inside_out,
    leaf_name,
)
from mbjax.number_rules import is_known, shown
from mbjax.parameters import KINDS, NamedNumber, NumberKind, matching_numbers, named_numbers

from .distributions import Distribution
from .keys import require_one_key

LEAF_RULES = {"parameters": PARAMETER_RULES, "collision": COLLISION_RULES, "deformables": DEFORMABLE_RULES}

Drawn = tuple[int, Distribution, list[NamedNumber]]  # place among the patterns, what is drawn, for which numbers


def randomize(
    model: MultibodyModel, key: PRNGKeyArray, worlds: int, distributions: Mapping[str, Distribution]
) -> tuple[MultibodyModel, MultibodyModel]:
    """Draws a model for each of `worlds` worlds: returns the batch and its axes for `jax.vmap`.

        models, axes = mbjax.randomize(model, key, 4096, {
            "mass:*": mbjax.uniform(0.9, 1.1, relative=True),
            "friction:*foot*": mbjax.uniform(0.4, 1.0),
        })
        jax.vmap(mbjax.step, (axes, 0, 0))(models, states, efforts)

    A name is `kind:element`, with `.component` for one of several numbers, and may be a pattern; a kind alone means all
    its elements (`mbjax.parameters.named_numbers(model)` has all names). A later pattern replaces what an earlier one
    said. Only leaves that are drawn have an axis of worlds. Nothing else of a model follows from its leaves, so that
    nothing becomes stale: world i is the model that setters would make of its numbers.

    Raises `ModelError` for a pattern that matches nothing, and for a drawn number that no model may have; within `jit`,
    where drawn numbers are not known, it is not seen: choose distributions that draw none.
    """
    require_one_model(model, "randomize")
    if not isinstance(worlds, int | np.integer) or isinstance(worlds, bool) or worlds < 1:
        raise ModelError(f"randomize: worlds must be a whole number >= 1, got {worlds!r}.")
    require_one_key("randomize", key, " For one key a world use mbjax.domain_randomizer({...})(model, keys).")
    return domain_randomizer(distributions)(model, jax.random.split(key, int(worlds)))


def domain_randomizer(
    distributions: Mapping[str, Distribution],
) -> Callable[[MultibodyModel, PRNGKeyArray], tuple[MultibodyModel, MultibodyModel]]:
    """A function `domain_randomize(model, keys) -> (models, in_axes)` of one key a world, as `randomize` draws.

    Users of MuJoCo Playground and brax know the signature; their wrappers pass the keys as `rng`.
    """
    distributions = dict(distributions)  # as they are now

    def domain_randomize(model: MultibodyModel, rng: PRNGKeyArray) -> tuple[MultibodyModel, MultibodyModel]:
        """Draws a model for each key."""
        require_one_model(model, "domain_randomize")
        drawn = choose_numbers(model, distributions)
        for kind, at in places_by_kind(drawn):
            model = kind.prepared(model, at)
        leaves, structure = jax.tree.flatten(model)
        batched = drawn_leaves(model, tuple(distributions.items()), rng)
        for i in batched:
            require_valid(model, i, batched, drawn)
        models = jax.tree.unflatten(structure, [batched.get(i, leaf) for i, leaf in enumerate(leaves)])
        axes = jax.tree.unflatten(structure, [0 if i in batched else None for i in range(len(leaves))])
        require_fitting_meshes(models, axes)
        return models, axes

    return domain_randomize


def choose_numbers(model: MultibodyModel, distributions: Mapping[str, Distribution]) -> list[Drawn]:
    """The numbers that each pattern draws, those left out that a later pattern draws."""
    if not distributions:
        raise ModelError(
            "randomize: no names were given. For example {'mass:*': mbjax.uniform(0.9, 1.1, relative=True)}."
        )
    known = named_numbers(model)
    by_name: dict[str, int] = {}
    matched = []
    for i, (pattern, distribution) in enumerate(distributions.items()):
        if not isinstance(distribution, Distribution):
            raise ModelError(
                f"randomize: '{pattern}' must have a distribution such as mbjax.uniform(low, high), mbjax.log_uniform "
                f"or mbjax.normal, got {distribution!r}."
            )
        numbers = matching_numbers("randomize", pattern, known)
        for number in numbers:
            if number.kind.only_factors and distribution.how != "relative":
                raise ModelError(
                    f"randomize: '{pattern}' needs relative=True: an {number.kind.name} is scaled along the body's "
                    f"axes, by factors around 1, so that it stays physical; got {distribution}."
                )
        matched.append((i, distribution, numbers))
        by_name |= {number.name: i for number in numbers}
    return [(i, d, kept) for i, d, numbers in matched if (kept := [n for n in numbers if by_name[n.name] == i])]


def with_drawn_numbers(model: MultibodyModel, drawn: list[Drawn], key: PRNGKeyArray) -> MultibodyModel:
    """The model of one world. A pattern's draws depend on its place among the patterns and on the key alone."""
    keys = {i: jax.random.fold_in(key, i) for i, _, _ in drawn}
    numbers = {i: d.draw(keys[i], len(chosen), model.dtype) for i, d, chosen in drawn}
    for kind, _ in places_by_kind(drawn):
        at, values = [], []
        for i, distribution, chosen in drawn:
            rows = np.array([row for row, number in enumerate(chosen) if number.kind is kind], int)
            if rows.size:
                places = tuple(chosen[row].place for row in rows)
                at += places
                values.append(distribution.apply(kind.read(model, places), numbers[i][rows]))
        model = kind.write(model, tuple(at), jax.numpy.concatenate(values))
    return model


def places_by_kind(drawn: list[Drawn]) -> list[tuple[NumberKind, tuple[int, ...]]]:
    """The kinds that are drawn in the order in which they are written, each with its places."""
    found: dict[NumberKind, tuple[int, ...]] = {}  # by kind: each force element has kinds of its own of the same name
    for _, _, chosen in drawn:
        for number in chosen:
            found[number.kind] = (*found.get(number.kind, ()), number.place)
    return sorted(found.items(), key=lambda item: KINDS.index(item[0]) if item[0] in KINDS else len(KINDS))


@eqx.filter_jit
def drawn_leaves(
    model: MultibodyModel, distributions: tuple[tuple[str, Distribution], ...], keys: PRNGKeyArray
) -> dict[int, Array]:
    """By place: the leaves that a draw replaces, for each key. Compiled once for names, distributions and shapes."""
    drawn = choose_numbers(model, dict(distributions))

    def one(key: PRNGKeyArray) -> dict[int, Array]:
        pairs = zip(jax.tree.leaves(model), jax.tree.leaves(with_drawn_numbers(model, drawn, key)), strict=True)
        return {i: new for i, (old, new) in enumerate(pairs) if old is not new}

    return jax.vmap(one)(keys)


def require_valid(model: MultibodyModel, place: int, batched: dict[int, Array], drawn: list[Drawn]) -> None:
    """Raises `ModelError` if the drawn leaf at a place breaks its rule in some world; traced ones pass."""
    leaf, path = batched[place], jax.tree_util.tree_leaves_with_path(model)[place][0]
    table = LEAF_RULES.get(path[0].name)
    if table is None or not is_known(leaf):
        return
    name, rule = leaf_name(path), table[leaf_name(path)].rule
    numbers = np.asarray(leaf)
    fine = np.asarray(rule.holds(numbers))
    if not fine.all():
        world = int(np.argwhere(~fine)[0][0])
        value = numbers[tuple(np.argwhere(~fine)[0])]
        found = number_of_value(model_of_world(model, batched, world), tuple(key.name for key in path), value, drawn)
        of, by = "", "Narrow its distribution, or draw factors by relative=True."
        if found is not None:
            number, distribution = found
            of = f" of '{number.name.partition(':')[2] or number.name}'"
            by = f"Narrow {distribution}" + (
                "." if distribution.how == "relative" else ", or draw factors by relative=True."
            )
        raise ModelError(
            f"randomize: the drawn {table[name].what}{of} is {value:g} in world {world}; must be {rule.words}. {by}"
        )


def require_fitting_meshes(models: MultibodyModel, axes: MultibodyModel) -> None:
    """Raises `ModelError` if the drawn lengths of a shape do not fit its hydroelastic mesh in some world."""
    for geometry in geometries_with_surfaces(models):
        record = models.layout.contact.geometries[geometry]
        what, rows = ("vertices", record.vertices) if record.num_vertices else ("size", record.sizes)
        drawn = getattr(models.collision, what)
        if getattr(axes.collision, what) is None or not is_known(drawn):
            continue
        is_bad = np.asarray(jax.vmap(is_mesh_inside_out, (axes, None))(models, geometry))
        if is_bad.any():
            world = int(np.argmax(is_bad))
            raise ModelError(
                f"randomize: the drawn {what} of '{record.name}' is {shown(np.asarray(drawn[world][rows]))} m in world "
                f"{world}, which its hydroelastic mesh does not fit; must be {WHAT_FITS}. Narrow its distribution."
            )


def model_of_world(model: MultibodyModel, batched: dict[int, Array], world: int) -> MultibodyModel:
    """One of the drawn models."""
    leaves, structure = jax.tree.flatten(model)
    return jax.tree.unflatten(structure, [batched[i][world] if i in batched else x for i, x in enumerate(leaves)])


def number_of_value(
    model: MultibodyModel, path: tuple[str, ...], value: Any, drawn: list[Drawn]
) -> tuple[NamedNumber, Distribution] | None:
    """The drawn number of a leaf that has this value in a model, and what it was drawn from; None where none has."""
    for _, distribution, numbers in drawn:
        for number in numbers:
            if number.kind.path == path and np.any(np.asarray(number.kind.read(model, (number.place,))) == value):
                return number, distribution
    return None
