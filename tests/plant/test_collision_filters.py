"""Which geometries may touch: the same pairs as Drake's, for every kind of joint, welds, groups and random trees."""

import itertools

import numpy as np
import pytest
from pydrake.geometry import CollisionFilterDeclaration, GeometrySet, HalfSpace, Sphere
from pydrake.math import RigidTransform
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, CoulombFriction
from pydrake.multibody.tree import (
    BallRpyJoint,
    PlanarJoint,
    PrismaticJoint,
    QuaternionFloatingJoint,
    RevoluteJoint,
    RpyFloatingJoint,
    SpatialInertia,
    UniversalJoint,
    WeldJoint,
)
from pydrake.systems.framework import DiagramBuilder

import mbjax

FRICTION = CoulombFriction(1.0, 1.0)
DRAKE_JOINTS = {
    "revolute": lambda *j: RevoluteJoint(*j, axis=[0, 0, 1]),
    "prismatic": lambda *j: PrismaticJoint(*j, axis=[0, 0, 1]),
    "ball_rpy": BallRpyJoint,
    "planar": PlanarJoint,
    "universal": UniversalJoint,
    "weld": lambda *j: WeldJoint(*j, RigidTransform()),
    "quaternion_floating": QuaternionFloatingJoint,
    "rpy_floating": RpyFloatingJoint,
}
JOINTS = {
    "revolute": lambda *j: mbjax.RevoluteJoint(*j, axis=[0, 0, 1]),
    "prismatic": lambda *j: mbjax.PrismaticJoint(*j, axis=[0, 0, 1]),
    "ball_rpy": mbjax.BallRpyJoint,
    "planar": mbjax.PlanarJoint,
    "universal": mbjax.UniversalJoint,
    "weld": mbjax.WeldJoint,
    "quaternion_floating": mbjax.QuaternionFloatingJoint,
    "rpy_floating": mbjax.RpyFloatingJoint,
}


class Twins:
    """The same plant built in mbjax and in Drake; every body carries spheres, the world a half-space."""

    def __init__(self, bodies="", *, filter_adjacent=True):
        self.ours = mbjax.MultibodyPlant(0.01, adjacent_bodies_collision_filters=filter_adjacent)
        self.theirs, self.scene_graph = AddMultibodyPlantSceneGraph(DiagramBuilder(), 0.01)
        self.theirs.set_adjacent_bodies_collision_filters(filter_adjacent)
        self.ours.register_collision_geometry("world", np.eye(4), mbjax.HalfSpace(), "ground", 1.0)
        self.geometries = {"ground": self._add_to_drake(self.theirs.world_body(), HalfSpace(), "ground")}
        for name in bodies:
            self.body(name)

    def _add_to_drake(self, body, shape, name):
        return self.theirs.RegisterCollisionGeometry(body, RigidTransform(), shape, name, FRICTION)

    def body(self, name, number=1):
        self.ours.add_rigid_body(name, mbjax.SpatialInertia.solid_cube_with_mass(1.0, 1.0))
        body = self.theirs.AddRigidBody(name, SpatialInertia.SolidBoxWithMass(1, 1, 1, 1))
        for k in range(number):
            self.ours.register_collision_geometry(name, mbjax.Geometry(f"{name}{k}", mbjax.Sphere(0.1)), 1.0)
            self.geometries[f"{name}{k}"] = self._add_to_drake(body, Sphere(0.1), f"{name}{k}")

    def joint(self, kind, parent, child):
        name = f"{parent} to {child}"
        self.ours.add_joint(JOINTS[kind](name, parent, child))
        frames = (self.theirs.GetBodyByName(body).body_frame() for body in (parent, child))
        self.theirs.AddJoint(DRAKE_JOINTS[kind](name, *frames))

    def drake_set(self, names):
        return GeometrySet([self.geometries[name] for name in names])

    def pairs(self):
        """Ours and Drake's, as sets of names."""
        model = self.ours.finalize()
        self.theirs.Finalize()
        inspector = self.scene_graph.model_inspector()
        names = {identifier: name for name, identifier in self.geometries.items()}
        theirs = {frozenset(names[g] for g in pair) for pair in inspector.GetCollisionCandidates()}
        ours = {frozenset(name.split("::")[1] for name in pair) for pair in model.collision_pairs}
        assert len(ours) == len(model.collision_pairs)
        assert all(a < b for a, b in model.layout.contact.pairs)
        return ours, theirs


def assert_like_drake(twins, excluded=None):
    ours, theirs = twins.pairs()
    assert ours == theirs
    if excluded is not None:
        everything = set(map(frozenset, itertools.combinations(twins.geometries, 2)))
        assert everything - ours == set(map(frozenset, excluded))


@pytest.mark.parametrize("kind", JOINTS)
@pytest.mark.parametrize("filter_adjacent", [True, False])
def test_bodies_with_a_joint_between_them(kind, filter_adjacent):
    twins = Twins("abc", filter_adjacent=filter_adjacent)
    twins.joint(kind, "a", "b")
    apart = kind == "quaternion_floating" or not (filter_adjacent or kind == "weld")
    assert_like_drake(twins, [] if apart else [("a0", "b0")])


@pytest.mark.parametrize("kind", JOINTS)
def test_a_joint_to_the_world_filters_nothing_but_a_weld_does(kind):
    twins = Twins("ab")
    twins.joint(kind, "world", "a")
    assert_like_drake(twins, [("a0", "ground")] if kind == "weld" else [])


def test_welded_bodies_pass_through_each_other_and_neighbours_of_each_count_alone():
    twins = Twins("abcd")
    for kind, parent, child in (("weld", "a", "b"), ("weld", "b", "c"), ("revolute", "c", "d")):
        twins.joint(kind, parent, child)
    assert_like_drake(twins, [("a0", "b0"), ("a0", "c0"), ("b0", "c0"), ("c0", "d0")])


def test_a_joint_to_an_anchored_body_filters():
    twins = Twins("ab")
    twins.joint("weld", "world", "a")
    twins.joint("revolute", "a", "b")
    assert_like_drake(twins, [("a0", "ground"), ("a0", "b0")])


def test_shapes_of_one_body_pass_through_each_other():
    twins = Twins()
    twins.body("a", 3)
    assert_like_drake(twins, [("a0", "a1"), ("a0", "a2"), ("a1", "a2")])


@pytest.mark.parametrize("seed", range(4))
def test_random_trees(seed):
    rng = np.random.default_rng(seed)
    twins = Twins(filter_adjacent=seed != 3)
    names = ["world"]
    for i in range(14):
        name = f"body{i}_"
        twins.body(name, rng.integers(0, 3))
        if rng.random() < 0.85:
            twins.joint(rng.choice(list(JOINTS)), names[rng.integers(len(names))], name)
        names.append(name)
    assert_like_drake(twins)


def test_groups_of_bodies_and_geometries():
    twins = Twins("abcd")
    ours, manager = twins.ours, twins.scene_graph.collision_filter_manager()
    exclude = ours.exclude_collision_geometries_with_collision_filter_group_pair
    exclude(("left", ["a", ours.body("b")]), ("right", [ours.body("c").collision[0]]))
    exclude(("same", ["c", "d"]), ("same", ["a"]))
    ours.exclude_collisions_between("d", 0)
    declaration = CollisionFilterDeclaration()
    declaration.ExcludeBetween(twins.drake_set(["a0", "b0"]), twins.drake_set(["c0"]))
    declaration.ExcludeWithin(twins.drake_set(["c0", "d0"]))
    declaration.ExcludeBetween(twins.drake_set(["d0"]), twins.drake_set(["ground"]))
    manager.Apply(declaration)
    assert_like_drake(twins, [("a0", "c0"), ("b0", "c0"), ("c0", "d0"), ("d0", "ground")])


def test_groups_hold_what_bodies_carry_at_finalize():
    plant = mbjax.MultibodyPlant()
    for name in "ab":
        plant.add_rigid_body(name, mbjax.SpatialInertia.solid_cube_with_mass(1.0, 1.0))
    plant.exclude_collisions_between("a", "b")
    for name in "ab":
        plant.register_collision_geometry(name, mbjax.Geometry("ball", mbjax.Sphere(0.1)), 1.0)
    assert plant.finalize().collision_pairs == ()


def test_misuse_of_groups_is_refused():
    plant = Twins("ab").ours
    exclude = plant.exclude_collision_geometries_with_collision_filter_group_pair
    foreign = mbjax.Geometry("foreign", mbjax.Sphere(1.0))
    for group, message in (
        (("g", ["c"]), "group 'g': there is no body named 'c'"),
        (("g", [foreign]), "group 'g': 'foreign' is no collision geometry of this plant"),
        (("g", "ab"), r"a group is a pair \(name, \[bodies and geometries\]\)"),
        ((["a"], ["b"]), "a group is a pair"),
    ):
        with pytest.raises(mbjax.ModelError, match=message):
            exclude(group, ("h", ["a"]))
        with pytest.raises(mbjax.ModelError, match=message):
            exclude(("h", ["a"]), group)
