"""Trees that the tests of recursions share, random states of them, and the quantities that they compare."""

import functools
from collections.abc import Callable, Sequence

import jax
import pytest

import mbjax
from mbjax.dynamics import calc_reflected_inertia, calc_tree_motion
from mbjax.dynamics.composite_body.recursion import mass_matrix_by_recursion, mass_matrix_by_sums
from mbjax.dynamics.forward_dynamics import ForwardDynamicsTerms, articulated_body_recursion, solve_by_sums_over_tree
from mbjax.dynamics.newton_euler.recursion import calc_motion, calc_torques
from mbjax.dynamics.newton_euler.sums import moved_to_mobods, newton_euler
from mbjax.dynamics.records.direction_rows import PlacedRows, calc_placed_inertia
from mbjax.execution.recursions import walk_plan
from mbjax.forces import calc_gravity_on_mobods
from mbjax.kinematics import calc_position_kinematics
from mbjax.kinematics.recursive_poses import poses_by_sums, poses_outward
from mbjax.model import locked_velocities
from mbjax.topology import direction_parents
from tests.models import ALL_KINDS, JOINT_CLASSES, SCREW_PITCH, load_robot, random_tree, relative_error

from .test_jacobians import with_elements

CONSTANT = ("planar", "screw", "quaternion_floating", "revolute", "prismatic")  # hinge maps in F
G1 = pytest.mark.whole_run("a tree of every joint, a quadruped in the quick run, or the same with kernels")
MODELS = {
    "every joint": lambda: random_tree(11, ALL_KINDS).model,
    "constant hinge maps": lambda: random_tree(5, CONSTANT).model,
    "one direction a joint": lambda: load_robot("panda_description/urdf/panda.urdf"),
    "gravity on some bodies": with_elements,
    "many branches": lambda: branched(5),
    "many branches of every kind": lambda: branched(5, ("revolute", "planar", "ball_rpy", "prismatic", "screw")),
    "quadruped": lambda: load_robot("a1_description/urdf/a1.urdf", "floating"),
    "humanoid": lambda: load_robot("g1_description/urdf/g1_29dof_rev_1_0.urdf", "floating"),
}
LARGE = "humanoid", "many branches of every kind"
ARM = pytest.mark.whole_run("a tree of every joint, and many branches of hinges")
NAMES = [
    pytest.param(name, marks=[G1] * (name in LARGE) + [ARM] * (name == "one direction a joint")) for name in MODELS
]


def left_out(instead: str, *names: str) -> list:
    """NAMES, of which the trimmed run leaves `names` out too."""
    mark = pytest.mark.whole_run(instead)
    return [pytest.param(*x.values, marks=[*x.marks, mark] if x.values[0] in names else x.marks) for x in NAMES]


def branched(height: int, kinds: tuple[str, ...] = ("revolute",)) -> mbjax.MultibodyModel:
    """A tree in which each body has two more: so many parents wait that it is not walked as numbered."""
    model = tree_of([kinds[i % len(kinds)] for i in range(2**height - 1)], lambda i: (i - 1) // 2)
    assert walk_plan(direction_parents(model.topology)).order is not None
    return model


def tree_of(kinds: Sequence[str], parent: Callable[[int], int]) -> mbjax.MultibodyModel:
    """A joint of each kind and nothing else, on the body `parent(i)`, or on the world where that is negative."""
    plant = mbjax.MultibodyPlant()
    for i, kind in enumerate(kinds):
        plant.add_rigid_body(f"b{i}", mbjax.SpatialInertia.solid_box_with_mass(1.0 + 0.1 * i, 0.1, 0.2, 0.3))
        joint, inboard = JOINT_CLASSES[kind][0], "world" if parent(i) < 0 else f"b{parent(i)}"
        of_kind = {"axis": [1.0, 0.3 * i, -0.5]} if joint.has_axis else {}
        of_kind |= {"screw_pitch": SCREW_PITCH} if joint.has_pitch else {}
        X_PF, X_BM = [0.1, 0.2 - 0.01 * i, 0.3], [0.05, 0.0, 0.02 * i]
        plant.add_joint(joint(f"j{i}", inboard, f"b{i}", X_PF=X_PF, X_BM=X_BM, **of_kind))
    return plant.finalize()


@functools.cache
def model_of(name: str) -> mbjax.MultibodyModel:
    """Without what follows others: those models have no recursion."""
    model = MODELS[name]()
    assert not model.topology.followers
    return model


@functools.cache
def case(name: str) -> tuple:
    """A model with a state, torques and forces on every mobod."""
    model = model_of(name)
    state, keys = mbjax.random_state(model, jax.random.key(3)), jax.random.split(jax.random.key(4), 4)
    vdot, tau, weight = jax.random.normal(keys[0], (3, model.num_velocities))
    F = 5.0 * jax.random.normal(keys[1], (6, model.topology.num_mobods))
    return model, state.q, state.v, vdot, tau, weight, F


def both_ways(model, q, v, vdot, tau, F, kinds: tuple[str, ...] = ("weights", "forces", "nothing")) -> dict:
    """Inverse and forward dynamics under weights alone, other forces and none (`kinds`), by recursion and by sums.

    The last velocity is locked.
    """
    position = calc_position_kinematics(model, q)
    motion = calc_tree_motion(model, position, q, v)
    locked = locked_velocities(model).at[-1].set(True)
    diagonal = calc_reflected_inertia(model) + 0.1
    found = {}
    for name, weights, F_T in (
        ("weights", True, calc_gravity_on_mobods(model, position)),
        ("forces", False, F),
        ("nothing", False, None),
    ):
        if name not in kinds:
            continue
        F_W = F_T if weights or F_T is None else moved_to_mobods(position, F_T, -1.0)
        F_W = None if weights else F_W
        terms = ForwardDynamicsTerms(motion, tau, F_T, diagonal, locked)
        factor, solved = solve_by_sums_over_tree(terms)
        placed_rows = PlacedRows(factor.directions, calc_placed_inertia(model.topology, motion.inertia_W))
        tau_of_motion = calc_torques(model.topology, calc_motion(model, q, v, vdot, weights, F_W))
        found[name] = {
            "recursion": (tau_of_motion, articulated_body_recursion(model, q, v, tau, F_W, diagonal, locked, weights)),
            "sums": (newton_euler(motion, vdot, F_T), (factor, solved, placed_rows)),
        }
    return found


def positions_both_ways(model, q, v) -> dict:
    """Poses of all bodies and the mass matrix."""
    diagonal = calc_reflected_inertia(model) + 0.1
    return {
        "recursion": (poses_outward(model, q), mass_matrix_by_recursion(model, q, diagonal)),
        "sums": (poses_by_sums(model, q), mass_matrix_by_sums(model, q, diagonal)),
    }


def largest_error(found, expected) -> float:
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    return max(relative_error(a, b) for a, b in pairs)
