"""Maps leaves of a model to unconstrained numbers and back, so that any optimizer step gives a valid model."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.errors import ModelError
from mbjax.execution import compiled_outside_jit
from mbjax.model import (
    COLLISION_RULES,
    ELEMENT_RULES,
    ORDERED_LIMITS,
    PARAMETER_RULES,
    MultibodyModel,
    leaf_name,
)
from mbjax.model.leaf_rules import DEFORMABLE_RULES, BetweenRule
from mbjax.number_rules import FINITE, NumberRule, is_finite
from mbjax.spatial import (
    central_second_moment,
    from_log_cholesky,
    log_cholesky,
    unit_inertia_of_second_moment,
)

from .leaf_groups import group_of

COM, INERTIA = ".parameters.body_com", ".parameters.body_unit_inertia"
STATIC, DYNAMIC = ".collision.static_friction", ".collision.dynamic_friction"
LIMITS = tuple((f".parameters.{lower}", f".parameters.{upper}") for lower, upper in ORDERED_LIMITS)
TOGETHER = ((COM, INERTIA), (STATIC, DYNAMIC), *LIMITS)  # the first alone could become invalid beside the second
ROUNDING = 64.0  # times the type's epsilon; a smaller moment counts as zero

Leaves = dict[str, Array]  # by place in the model


@compiled_outside_jit
def unconstrained(model: MultibodyModel, spec: MultibodyModel) -> MultibodyModel:
    """The leaves that `spec` chooses as numbers that may take any value; None in place of the other leaves.

    Numbers that must be positive become their logarithms, Poisson's ratios the logit of their place between -1 and ½,
    upper limits the logarithm of their distance to the lower ones, dynamic friction of surfaces the logit of its ratio
    to the static one, and a unit inertia the six numbers of its log-Cholesky factor about the centre of mass; other
    leaves stay as they are. Values without such a number are held, with zero in their place and zero derivatives:
    damping, friction or gains of zero, infinite limits, and the centre of mass and inertia of a body that is a point, a
    rod, a sheet, or not physical.
    """
    chosen = chosen_places(model, spec)
    leaves, rules = leaves_of(model), rules_of(model)
    numbers = {place: encoded(rules[place], x) for place, x in leaves.items()} | encoded_pairs(leaves)
    numbers |= encoded_inertias(leaves)
    return jax.tree.unflatten(jax.tree.structure(model), [numbers[p] if p in chosen else None for p in leaves])


@compiled_outside_jit
def constrained(model: MultibodyModel, numbers: MultibodyModel) -> MultibodyModel:
    """The model with leaves from `numbers`, which `unconstrained` makes; leaves not chosen, or held, stay.

    The result is valid whatever the numbers are, and `constrained(model, unconstrained(model, spec))` is the model, to
    rounding. `model` decides which values are held: give the model that the numbers were made from.
    """
    base, given, rules = leaves_of(model), leaves_of(numbers), rules_of(model)
    new = base | {place: decoded(rules[place], base[place], x) for place, x in given.items()}
    new |= {place: x for place, x in decoded_pairs(base, new, given).items() if place in given}
    new |= {place: x for place, x in decoded_inertias(base, given).items() if place in given}
    return jax.tree.unflatten(jax.tree.structure(model), [new[place] for place in base])


def leaves_of(model: MultibodyModel) -> Leaves:
    """Leaves of a tree that are not None, by their place in the model."""
    return {jax.tree_util.keystr(path): x for path, x in jax.tree_util.tree_leaves_with_path(model)}


def rules_of(model: MultibodyModel) -> dict[str, NumberRule]:
    """The rule that each leaf must satisfy, by its place in the model."""
    rules = {}
    for path, _ in jax.tree_util.tree_leaves_with_path(model):
        name, section = leaf_name(path), path[0].name
        table = {"parameters": PARAMETER_RULES, "collision": COLLISION_RULES}.get(section)
        if section == "deformables":
            table, name = DEFORMABLE_RULES, path[1].name
        rules[jax.tree_util.keystr(path)] = ELEMENT_RULES.get(name, FINITE) if table is None else table[name].rule
    return rules


def chosen_places(model: MultibodyModel, spec: MultibodyModel) -> set[str]:
    """Places where the spec is true.

    Raises `ModelError` for a spec that is not of this model, that chooses switches, or that chooses a leaf of
    `TOGETHER` without its second.
    """
    if jax.tree.structure(spec) != jax.tree.structure(model):
        raise ModelError(
            "parameters.unconstrained: the spec must be a tree of truth values like the model, for example "
            f"mbjax.parameters.inertial(model); got {type(spec).__name__}."
        )
    paths = [path for path, is_chosen in jax.tree_util.tree_leaves_with_path(spec) if is_chosen]
    chosen = {jax.tree_util.keystr(path) for path in paths}
    for path in paths:
        if group_of(path) == "switches":
            raise ModelError(
                f"parameters.unconstrained: {jax.tree_util.keystr(path)} is a switch, and no number to optimize; take "
                "it out by mbjax.parameters.without(spec, mbjax.parameters.switches(model))."
            )
    for first, second in TOGETHER:
        if first in chosen and second not in chosen:
            raise ModelError(
                f"parameters.unconstrained: the spec has {first} without {second}, which together must stay possible; "
                "choose both, or only the second."
            )
    return chosen


def encoded(rule: NumberRule, x: Array) -> Array:
    """Logarithms where a rule wants positive numbers, logits between two, else the numbers; 0 where there is none."""
    if isinstance(rule, BetweenRule):
        ratio = (jnp.where(rule.holds(x), x, 0.5 * (rule.low + rule.high)) - rule.low) / (rule.high - rule.low)
        return jnp.log(ratio) - jnp.log1p(-ratio)
    if rule.is_positive:
        has_one = (x > 0.0) & is_finite(x)
        return jnp.where(has_one, jnp.log(jnp.where(has_one, x, 1.0)), 0.0)
    return jnp.where(is_finite(x), x, 0.0)


def decoded(rule: NumberRule, base: Array, number: Array) -> Array:
    """Inverse of `encoded`; values without an encoding stay as in `base`."""
    if isinstance(rule, BetweenRule):
        edge = jnp.finfo(base.dtype).eps  # a number that rounds to one of the ends would be no longer between
        ratio = jnp.clip(jax.nn.sigmoid(number), edge, 1.0 - edge)
        return jnp.where(rule.holds(base), rule.low + (rule.high - rule.low) * ratio, base)
    if rule.is_positive:
        return jnp.where((base > 0.0) & is_finite(base), jnp.exp(number), base)
    return jnp.where(is_finite(base), number, base)


def encoded_pairs(leaves: Leaves) -> Leaves:
    """Upper limits as the logarithm of their distance from lower ones; dynamic friction as the logit of its ratio."""
    numbers = {}
    for lower, upper in LIMITS:
        low, high = leaves[lower], leaves[upper]
        apart, width = are_apart(low, high)
        numbers[upper] = jnp.where(apart, jnp.log(width), jnp.where(is_free(low, high), high, 0.0))
    between, ratio = is_between(leaves[STATIC], leaves[DYNAMIC])
    return numbers | {DYNAMIC: jnp.where(between, jnp.log(ratio) - jnp.log1p(-ratio), 0.0)}


def decoded_pairs(base: Leaves, new: Leaves, given: Leaves) -> Leaves:
    """Inverse of `encoded_pairs` for the given leaves; lower limits and static friction are in `new`."""
    values = {}
    for lower, upper in LIMITS:
        if upper in given:
            low, high = base[lower], base[upper]
            apart, _ = are_apart(low, high)
            both = is_finite(low) & is_finite(high)  # equal, where not apart
            held = jnp.where(both, new[lower], jnp.where(is_free(low, high), given[upper], high))
            values[upper] = jnp.where(apart, new[lower] + jnp.exp(jnp.where(apart, given[upper], 0.0)), held)
    if DYNAMIC in given:
        between, ratio = is_between(base[STATIC], base[DYNAMIC])
        ratio = jnp.where(between, jax.nn.sigmoid(given[DYNAMIC]), jnp.where(base[DYNAMIC] > 0.0, 1.0, 0.0))
        values[DYNAMIC] = new[STATIC] * ratio
    return values


def are_apart(low: Array, high: Array) -> tuple[Bool[Array, " n"], Float[Array, " n"]]:
    """Whether both limits are finite with low < high, and their distance; 1 where they are not."""
    apart = is_finite(low) & is_finite(high) & (high > low)
    return apart, jnp.where(apart, jnp.where(apart, high, 1.0) - jnp.where(apart, low, 0.0), 1.0)


def is_free(low: Array, high: Array) -> Bool[Array, " n"]:
    """Whether only the upper limit is finite."""
    return is_finite(high) & ~is_finite(low)


def is_between(static: Array, dynamic: Array) -> tuple[Bool[Array, " n"], Float[Array, " n"]]:
    """Whether dynamic friction is above zero and below static friction, and the ratio of the two; ½ where not."""
    between = (dynamic > 0.0) & (dynamic < static)
    return between, jnp.where(between, dynamic / jnp.where(between, static, 1.0), 0.5)


def encoded_inertias(leaves: Leaves) -> Leaves:
    """Log-Cholesky numbers of unit inertias, and centres of mass; zero for bodies without such numbers."""
    numbers, is_regular = regular_inertias(leaves)
    return {COM: jnp.where(is_regular, leaves[COM], 0.0), INERTIA: numbers}


def decoded_inertias(base: Leaves, given: Leaves) -> Leaves:
    """Inverse of `encoded_inertias`, about the given centres of mass or those of `base`."""
    if INERTIA not in given:
        return {}
    _, is_regular = regular_inertias(base)
    com = jnp.where(is_regular, given.get(COM, base[COM]), base[COM])
    six = unit_inertia_of_second_moment(com, from_log_cholesky(jnp.where(is_regular, given[INERTIA], 0.0)))
    return {COM: com, INERTIA: jnp.where(is_regular, six, base[INERTIA])}


def regular_inertias(leaves: Leaves) -> tuple[Float[Array, "n 6"], Bool[Array, "n 1"]]:
    """Log-Cholesky numbers of each body, and whether it has them: it must extend in all directions."""
    com, six = leaves[COM], leaves[INERTIA]
    scale = jnp.max(jnp.abs(six), axis=-1, initial=0.0)
    numbers, is_regular = log_cholesky(central_second_moment(com, six), ROUNDING * jnp.finfo(six.dtype).eps * scale)
    return numbers, is_regular[..., None]
