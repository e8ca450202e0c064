"""Finds the numbers of a model that break their rules, as masks over its leaves, for a count or for a sentence."""

import collections
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mbjax.joints import JOINT_KINDS
from mbjax.linear_algebra import eigenvalues
from mbjax.number_rules import DIRECTION, FINITE, NumberRule, is_finite
from mbjax.spatial import central_second_moment

from .deformable_bodies import MATERIAL_NUMBERS
from .hydroelastic_meshes import WHAT_FITS, geometries_with_surfaces, is_mesh_inside_out, numbers_of_shape
from .leaf_rules import COLLISION_RULES, DEFORMABLE_RULES, ELEMENT_RULES, ORDERED_LIMITS, PARAMETER_RULES, LeafRule
from .multibody_model import MultibodyModel

INDEX_OF_LEAF = {  # of leaves that some geometries have
    "stiffness": "stiffness_index",
    "hunt_crossley_dissipation": "dissipation_index",
    "hydroelastic_modulus": "modulus_index",
}
INERTIA_ROUNDING = 16.0  # times the type's epsilon; allowed beyond the border of physical inertias
TIME_STEP_OF_CONTINUOUS = NumberRule("0, as the model is continuous", lambda x: x == 0.0)


@dataclasses.dataclass(frozen=True)
class Finding:
    """Outcome of a check of a leaf, row by row: `counted_as` is a field of `ModelStatus`, `words` end the sentence."""

    counted_as: str
    section: str  # part of the model: "parameters", "collision", "others", or a name in words
    name: str  # name of the leaf
    leaf: LeafRule
    values: Array
    is_bad: Bool[Array, "..."]
    words: str


def find_numbers(model: MultibodyModel) -> Iterator[Finding]:
    """Makes all checks of a model's numbers; a check that holds has no bad row."""
    yield from find_number_by_number(model)
    yield from find_crossed(model)
    yield find_inertias(model)
    yield from find_default_quaternions(model)
    yield from find_inside_out(model)


def find_number_by_number(model: MultibodyModel) -> Iterator[Finding]:
    """Makes the checks that look at one number or row of a leaf at a time, of NumPy's or JAX's arrays."""
    for section, held, rules in (
        ("parameters", model.parameters, PARAMETER_RULES),
        ("collision", model.collision, COLLISION_RULES),
        ("others", model.collision.others, COLLISION_RULES),
    ):
        for name, leaf in rules.items():
            values = getattr(held, name, None)  # geometries that touch nothing have some of them only
            if values is None:
                continue
            if name == "time_step" and not model.is_discrete:
                leaf = dataclasses.replace(leaf, rule=TIME_STEP_OF_CONTINUOUS)
            yield from find_in_leaf(section, name, leaf, values)
    for name, leaf in DEFORMABLE_RULES.items() if model.deformables is not None else ():
        for values in jax.tree.leaves(eqx.filter(getattr(model.deformables, name), eqx.is_inexact_array)):
            yield from find_in_leaf("deformables", name, leaf, values)
    yield from find_in_elements(model)


def find_in_leaf(section: str, name: str, leaf: LeafRule, values: Array) -> Iterator[Finding]:
    """Finds numbers that are not finite where they must be, and others that break the leaf's rule."""
    rule = leaf.rule
    if rule.by_row:
        finite = is_finite(values).all(-1)
        yield Finding("not_finite", section, name, leaf, values, ~finite, rule.words)
        yield Finding("zero_directions", section, name, leaf, values, finite & ~rule.holds(values), rule.words)
        return
    bad, finite = ~rule.holds(values), is_finite(values)
    yield Finding("not_finite", section, name, leaf, values, bad & ~finite, rule.words)
    if rule is not FINITE:
        counted_as = {"body_mass": "negative_masses", "time_step": "time_step"}.get(name, "wrong_signs")
        yield Finding(counted_as, section, name, leaf, values, bad & finite, rule.words)


def find_in_elements(model: MultibodyModel) -> Iterator[Finding]:
    """Checks numbers of force elements, constraints and distributions, by the names of their fields."""
    named = {
        "force element": [(f"{type(e).__name__} {i}", e) for i, e in enumerate(model.force_elements)],
        "constraint": [(str(c.name), c) for c in model.constraints],
        "distribution": [(f"{type(d.distribution).__name__} {i}", d) for i, d in enumerate(model.random_distributions)],
    }
    for what, elements in named.items():
        for label, element in elements:
            for path, values in jax.tree_util.tree_leaves_with_path(element):
                name = leaf_name(path)
                leaf = LeafRule(name, "", ELEMENT_RULES.get(name, FINITE))
                yield from find_in_leaf(f"{what} '{label}'", name, leaf, values)


def find_crossed(model: MultibodyModel) -> Iterator[Finding]:
    """Finds lower limits above upper ones, and dynamic friction above static friction."""
    ordered = [("parameters", lower, upper, "limits") for lower, upper in ORDERED_LIMITS]
    ordered += [("collision", "dynamic_friction", "static_friction", "dynamic and static friction")]
    for section, lower, upper, what in ordered:
        low, high = (getattr(getattr(model, section), name) for name in (lower, upper))
        what = f"{lower.split('_')[0]} limits" if what == "limits" else what
        words = "in order, the first not above the second"
        leaf, pairs = LeafRule(what, "", FINITE), jnp.stack([low, high], -1)
        yield Finding("crossed_limits", section, lower, leaf, pairs, low > high, words)


def find_inertias(model: MultibodyModel) -> Finding:
    """Finds central inertias that are negative or break the triangle inequality, by more than rounding."""
    parameters = model.parameters
    com, six = parameters.body_com, parameters.body_unit_inertia
    finite = is_finite(com).all(-1) & is_finite(six).all(-1)
    com, six = (jnp.where(finite[:, None], x, 0.0) for x in (com, six))
    scale = jnp.maximum(jnp.abs(six).max(-1, initial=0.0), jnp.sum(com**2, -1))
    smallest = jax.vmap(eigenvalues)(jax.vmap(central_second_moment)(com, six))[:, 0]
    is_bad = smallest < -INERTIA_ROUNDING * jnp.finfo(model.dtype).eps * scale
    leaf = LeafRule("unit inertia about the origin", "m²", FINITE)
    words = "physical about the centre of mass: moments >= 0, none above the sum of the two others"
    return Finding("impossible_inertias", "parameters", "body_unit_inertia", leaf, six, is_bad, words)


def find_default_quaternions(model: MultibodyModel) -> Iterator[Finding]:
    """Finds zero quaternions among the default positions."""
    joints = [j for j in model.layout.joints if JOINT_KINDS[j.kind].has_quaternion]
    leaf = LeafRule("default quaternion", "", DIRECTION)
    for joint in joints:
        values = model.parameters.default_positions[joint.q_start : joint.q_start + 4]
        is_bad = ~jnp.any(values != 0.0)
        yield Finding(
            "zero_directions", f"joint '{joint.name}'", "default_positions", leaf, values, is_bad, "not all zero"
        )


def find_inside_out(model: MultibodyModel) -> Iterator[Finding]:
    """Finds shapes whose hydroelastic meshes do not fit their numbers."""
    for geometry in geometries_with_surfaces(model):
        record, values = model.layout.contact.geometries[geometry], numbers_of_shape(model, geometry)
        leaf = LeafRule("vertices" if record.num_vertices else "size", "m", FINITE)
        is_bad = is_mesh_inside_out(model, geometry)
        yield Finding("meshes_inside_out", f"'{record.name}'", leaf.what, leaf, values, is_bad, WHAT_FITS)


def leaf_name(path: Any) -> str:
    """Name of the field that holds a leaf."""
    names = [key.name for key in path if hasattr(key, "name")]
    return names[-1] if names else ""


def sentences(model: MultibodyModel, finding: Finding) -> list[str]:
    """A sentence for each bad row, as `mass of 'forearm' is -1 kg; must be finite and >= 0.`; numbers must be known."""
    is_bad, values = np.asarray(finding.is_bad), np.asarray(finding.values)
    rows = is_bad.any(axis=tuple(range(1, is_bad.ndim)))
    if not rows.any():
        return []
    unit = f" {finding.leaf.unit}" if finding.leaf.unit else ""
    if rows.ndim == 0:
        owners = [""] if finding.section in ("parameters", "collision", "others") else [f" of {finding.section}"]
        return [f"{finding.leaf.what}{owners[0]} is {as_text(values)}{unit}; must be {finding.words}."]
    names = row_names(model, finding.section, finding.name)
    return [
        f"{finding.leaf.what} of {names[k] if k < len(names) else f'{finding.section}, row {k}'} is "
        f"{as_text(values[k])}{unit}; must be {finding.words}."
        for k in np.flatnonzero(rows)
    ]


def as_text(values: Float[np.ndarray, "..."]) -> str:
    """Numbers as short text."""
    return f"{float(values):g}" if values.ndim == 0 else "[" + ", ".join(f"{x:g}" for x in values.ravel()) + "]"


def row_names(model: MultibodyModel, section: str, name: str) -> list[str]:
    """Quoted names of the elements that the rows of a leaf belong to."""
    layout = model.layout
    if section in ("collision", "others"):
        return geometry_names(model, section, name)
    if section == "deformables":
        return deformable_names(model, name)
    if section != "parameters":
        return []
    joints = layout.joints
    if name.startswith("body_"):
        names = unique_names(layout.bodies)[1:]
    elif name.startswith("frame_"):
        names = [unique_names(layout.frames)[i] for i in layout.offset_frames]
    elif name in ("joint_axis", "screw_pitch"):
        names = [unique_names(joints)[i] for i in (layout.axis_joints if name == "joint_axis" else layout.screw_joints)]
    elif name.startswith("mimic_"):
        names = [model.mobilizer(mobod).name for mobod, _ in model.topology.followers]
    elif name.startswith("position_") or name == "default_positions":
        names = list(model.position_names()) if name == "default_positions" else by_place(model, "all_q")
    elif name.startswith(("joint_", "velocity_", "acceleration_")):
        names = list(model.velocity_names()) if name == "velocity_locked" else by_place(model, "all_v")
    elif name == "gravity":
        names = ["x", "y", "z"]
    else:
        names = unique_names(layout.actuators)
    return [f"'{name}'" for name in names]


def unique_names(elements: Sequence[Any]) -> list[str]:
    """Names of elements, prefixed by the model instance where several share a name."""
    count = collections.Counter(element.name for element in elements)
    return [element.name if count[element.name] == 1 else element.scoped_name for element in elements]


def by_place(model: MultibodyModel, places: str) -> list[str]:
    """Name of the joint for each number of an array of all joints' numbers."""
    moving = sorted((j for j in model.layout.joints if j.mobod > 0), key=lambda j: getattr(j, places).start)
    names = unique_names(model.layout.joints)
    return [names[j.index] for j in moving for _ in range(getattr(j, places).stop - getattr(j, places).start)]


def deformable_names(model: MultibodyModel, name: str) -> list[str]:
    """Name of the deformable body for each row of a leaf that has one for each body, or for each of its elements."""
    deformables = model.deformables
    assert deformables is not None
    if name in ("enabled", "dynamic_friction", "relaxation_time"):
        return [f"'{body}'" for body in deformables.names]
    if name not in MATERIAL_NUMBERS:
        return []
    at = [deformables.layout.numbers_of(name, k) for k in range(deformables.num_bodies)]
    return [
        f"'{body}'" for body, place in zip(deformables.names, at, strict=True) for _ in range(place.stop - place.start)
    ]


def geometry_names(model: MultibodyModel, section: str, name: str) -> list[str]:
    """Name of the geometry for each row of a leaf of `collision`, or of its `others`."""
    contact = model.layout.contact
    records = contact.geometries if section == "collision" else contact.others
    if name in INDEX_OF_LEAF:
        index = INDEX_OF_LEAF[name]
        found = sorted((getattr(r, index), r.name) for r in records if getattr(r, index) >= 0)
        return [f"'{geometry}'" for _, geometry in found]
    if name in ("size", "vertices"):
        runs = [(getattr(r, "sizes" if name == "size" else "vertices"), r.name) for r in records]
        runs.sort(key=lambda run: run[0].start)
        return [f"'{geometry}'" for run, geometry in runs for _ in range(run.start, run.stop)]
    return [f"'{r.name}'" for r in records]
