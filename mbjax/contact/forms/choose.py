"""Which form of contact a step works on: the only file that decides it.

`FORMS` lists the forms; the first whose condition a model and its target fulfil is taken. The table of
docs/development/contact.md is printed from it.
"""

from collections.abc import Callable
from typing import NamedTuple

from mbjax.dynamics import ForwardDynamicsTerms
from mbjax.execution import traced_for
from mbjax.linear_algebra import chain, paths
from mbjax.model import MultibodyModel
from mbjax.topology import TreeTopology, velocity_parents

from ..movers.body_blocks import are_free_bodies
from ..movers.contact_paths import find_contact_paths
from ..newton.along_branches import matrix_along_branches
from ..newton.by_articulated_bodies import articulated_matrix
from ..newton.newton_matrix import NewtonMatrix
from ..points.contact_list import count_points, do_only_overlaps_act, mobods_of_pairs, num_points_of
from ..points.contact_points import pairs_by_kind
from ..rows.rows_of_step import OtherRows
from .abstract_form import AbstractContactForm
from .all_points import AllPoints
from .deepest_points import DeepestPoints
from .listed_bodies import ListedBodies
from .listed_trees import ListedTrees
from .points_on_tree import PointsOnDeepTree, PointsOnTree

DEEPEST = 10  # velocities along a path; beyond it articulated bodies are at least as fast (measured at 8, 11 and 24)
LEAST_PAIRS_OF_BODIES = 3  # measured: two boxes are as fast either way, three faster on lists
LEAST_POINTS_IN_TREES = 60  # measured: a humanoid takes 32 µs without such points and 145 with 176, on lists 65


class Target(NamedTuple):
    """Where a step's search runs, as far as contact asks."""

    has_kernels: bool  # a CPU's, which run loops of one world as fast as they are short
    is_one_world: bool  # else several side by side, in vectors
    has_world_threads: bool  # a GPU's
    reads_points: bool  # all points are computed anyway, as their forces are results


class FormRow(NamedTuple):
    """A form, the condition under which a model takes it on a target, and the condition in words."""

    form: type[AbstractContactForm]
    takes: Callable[[MultibodyModel, Target], bool]
    when: str


def target_of(model: MultibodyModel, has_kernels: bool, reads_points: bool = True) -> Target:
    """The target of the code traced now, on a CPU with kernels or anywhere else."""
    return Target(has_kernels, model.num_world_axes == 0, traced_for().expects_world_threads, reads_points)


def choose_form(model: MultibodyModel, target: Target) -> type[AbstractContactForm]:
    """The form that a model's contacts take on a target."""
    return next(row.form for row in FORMS if row.takes(model, target))


def form_on_cpu(model: MultibodyModel, reads_points: bool) -> type[AbstractContactForm]:
    """The form of contact of a search on a CPU with kernels."""
    return choose_form(model, target_of(model, has_kernels=True, reads_points=reads_points))


def form_elsewhere(model: MultibodyModel) -> type[AbstractContactForm]:
    """The form of contact of all other searches, of derivatives and of results."""
    return choose_form(model, target_of(model, has_kernels=False))


def are_worlds_alone(model: MultibodyModel, reads_points: bool) -> bool:
    """Whether each world of a batch, too, is faster on a list of its own than beside others with all points.

    Vector instructions take eight worlds at a time, so that all points of few pairs cost less than one world's loops.
    """
    form = form_on_cpu(model, reads_points) if model.layout.contact.pairs else None
    if form not in (ListedBodies, ListedTrees) or not do_only_overlaps_act(model):
        return False
    if are_free_bodies(model.topology):
        return num_moving_pairs(model) >= LEAST_PAIRS_OF_BODIES
    return num_moving_points(model) >= LEAST_POINTS_IN_TREES


def matrix_without_contacts(topology: TreeTopology, terms: ForwardDynamicsTerms, others: OtherRows) -> NewtonMatrix:
    """The Newton matrix of limits, friction, actuators and constraints alone."""
    if topology.followers or others.coupled is not None:
        return matrix_along_branches(topology, terms, others, chain(topology.num_velocities), None)
    if not is_matrix_factored(topology):
        return articulated_matrix(topology, terms, others, None)
    return matrix_along_branches(topology, terms, others, velocity_parents(topology), None)


def is_matrix_factored(topology: TreeTopology) -> bool:
    """Whether a step without contacts factors M and what rows add to it, instead of articulated bodies."""
    return bool(topology.followers) or not (is_deep(topology) or traced_for().expects_world_threads)


def is_deep(topology: TreeTopology) -> bool:
    """Whether paths have so many velocities that articulated bodies are as fast as the matrix along branches."""
    return paths(velocity_parents(topology)).ancestors.shape[1] > DEEPEST


def can_list(model: MultibodyModel, target: Target) -> bool:
    """Whether the target runs loops over the points that act, and bodies that move may touch each other at points."""
    if not (target.has_kernels and target.is_one_world) or model.topology.followers or model.has_node_contacts:
        return False
    contact = model.layout.contact
    return contact.max_contacts is None and not contact.surface_pairs and num_moving_pairs(model) > 0


def num_moving_pairs(model: MultibodyModel) -> int:
    """How many pairs of shapes are between bodies that both move."""
    return sum(are_moving_pairs(model))


def num_moving_points(model: MultibodyModel) -> int:
    """How many points such pairs may have: two boxes have eight, two spheres one."""
    moves = are_moving_pairs(model)
    return sum(sum(moves[i] for i in pairs) * num_points_of(model, pairs) for pairs in pairs_by_kind(model))


def are_moving_pairs(model: MultibodyModel) -> list[bool]:
    """Of each pair of shapes, whether it is between bodies that both move."""
    return [a > 0 and b > 0 for a, b in mobods_of_pairs(model)]


def chooses_points(model: MultibodyModel) -> bool:
    """Whether which bodies a point moves is known only when the program runs, or needs a Jacobian to be told."""
    most = model.layout.contact.max_contacts
    return bool(model.topology.followers) or (most is not None and most < count_points(model))


def keeps_tree(model: MultibodyModel) -> bool:
    """Whether rows of all kinds keep the sparsity of the tree: one body moves at each point, nothing couples."""
    if model.has_node_contacts:
        return False
    mobods_A, mobods_B = zip(*mobods_of_pairs(model), strict=True)
    return not model.constraints and find_contact_paths(model.topology, mobods_A, mobods_B).is_single


def takes_bodies(model: MultibodyModel, target: Target) -> bool:
    """Whether the model is of free bodies that nothing but contact couples, on a target of lists."""
    return can_list(model, target) and are_free_bodies(model.topology) and not model.constraints


def takes_trees(model: MultibodyModel, target: Target) -> bool:
    """Whether a list spares points: not where all are computed anyway, as then it saves little for robots."""
    return can_list(model, target) and not target.reads_points and do_only_overlaps_act(model)


FORMS = (
    FormRow(
        ListedBodies, takes_bodies, "free bodies that may touch each other, without constraints; one world on a CPU"
    ),
    FormRow(
        ListedTrees,
        takes_trees,
        "robots whose bodies may touch each other, where only overlaps act; one world on a CPU, in a rollout",
    ),
    FormRow(
        DeepestPoints,
        lambda model, _: chooses_points(model),
        "`max_contacts` below the number of points, or joints that mimic others",
    ),
    FormRow(
        PointsOnDeepTree,
        lambda model, target: keeps_tree(model) and (is_deep(model.topology) or target.has_world_threads),
        "one moving body at each point and no constraints, where paths "
        f"have more than {DEEPEST} velocities or worlds are a GPU's threads",
    ),
    FormRow(PointsOnTree, lambda model, _: keeps_tree(model), "the same, where paths are shorter"),
    FormRow(AllPoints, lambda *_: True, "all other models and targets, among them those whose deformable bodies touch"),
)
