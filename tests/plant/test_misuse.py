"""Misuse of the builder is refused, with the remedy."""

import re

import jax
import numpy as np
import pytest

import mbjax
from tests.model.plants import hinge, inertia, two_links

MISUSES = {
    "two parents": (
        lambda p: (p.add_joint(hinge("third", "world", "lower")), p.finalize()),
        r"'lower' is the child of two joints, 'elbow' and 'third'.*constraint",
    ),
    "cycle": (
        lambda p: (p.add_rigid_body("a"), p.add_rigid_body("b"), p.add_joint(hinge("j1", "a", "b")),
                   p.add_joint(hinge("j2", "b", "a")), p.finalize()),
        r"'j2', 'j1' form a cycle|'j1', 'j2' form a cycle",
    ),
    "world as child": (lambda p: p.add_joint(hinge("j", "lower", "world")), "the world cannot be a child; swap"),
    "self joint": (lambda p: p.add_joint(hinge("j", "lower", "lower")), "same body 'lower'; a joint needs two"),
    "duplicate body": (lambda p: p.add_rigid_body("upper"), "has a body of that name already"),
    "duplicate frame": (lambda p: p.add_frame("upper", "lower"), "has a frame of that name already"),
    "duplicate joint": (lambda p: p.add_joint(hinge("elbow", "world", "lower")), "has a joint of that name already"),
    "duplicate actuator": (
        lambda p: (p.add_joint_actuator("motor", "elbow"), p.add_joint_actuator("motor", "shoulder")),
        "has an actuator of that name already",
    ),
    "duplicate instance": (lambda p: p.add_model_instance("DefaultModelInstance"), "name is taken"),
    "unknown parent": (lambda p: p.add_joint(hinge("j", "uper", "lower")), "'uper'. Did you mean 'upper'"),
    "unknown joint": (lambda p: p.add_joint_actuator("m", "elbo"), "no joint named 'elbo'. Did you mean 'elbow'"),
    "unknown instance": (lambda p: p.add_rigid_body("x", None, "robot"), "no model instance named 'robot'"),
    "instance index": (lambda p: p.add_rigid_body("x", None, 7), "no model instance 7"),
    "world's instance": (lambda p: p.add_rigid_body("x", None, 0), "holds the world alone"),
    "foreign body": (lambda p: p.add_frame("f", two_links().body("upper")), "'upper' belongs to another plant"),
    "foreign joint": (lambda p: p.add_joint_actuator("m", two_links().joint("elbow")), "belongs to another plant"),
    "joint used twice": (lambda p: p.add_joint(p.joint("elbow")), "is part of a plant already"),
    "joint of another plant": (lambda p: p.add_joint(two_links().joint("elbow")), "is part of a plant already"),
    "zero axis": (lambda p: hinge("j", "world", "upper", axis=(0, 0, 0)), r"joint 'j': the axis .* has no direction"),
    "NaN axis": (lambda p: hinge("j", "world", "upper", axis=(0, np.nan, 0)), "joint 'j': axis must be finite"),
    "NaN damping": (lambda p: hinge("j", "world", "upper", damping=np.nan), "joint 'j': damping must be finite"),
    "negative damping": (lambda p: hinge("j", "world", "upper", damping=-0.1), "damping must be at least 0"),
    "two dampings": (lambda p: hinge("j", "world", "upper", damping=(1, 2)), r"damping must be 1 number\(s\)"),
    "reversed limits": (lambda p: hinge("j", "world", "upper", position_limits=(1, -1)), "got 1 and -1"),
    "NaN limits": (lambda p: hinge("j", "world", "upper", position_limits=(np.nan, 1)), "lower <= upper"),
    "zero quaternion": (
        lambda p: mbjax.QuaternionFloatingJoint("f", "world", "upper", default_positions=np.zeros(7)),
        "default quaternion is zero",
    ),
    "nameless joint": (lambda p: hinge("", "world", "upper"), "name must be a non-empty string"),
    "nameless body": (lambda p: p.add_rigid_body(""), "name must be a non-empty string"),
    "nameless frame": (lambda p: p.add_frame("", "upper"), "a frame's name must be a non-empty string, got ''"),
    "frame with a number for a name": (lambda p: p.add_frame(3, "upper"), "a frame's name must be .* got 3"),
    "actuator without a name": (
        lambda p: p.add_joint_actuator(None, "elbow"),
        "an actuator's name must be a non-empty string, got None",
    ),
    "reflection as pose": (lambda p: p.add_frame("f", "upper", np.diag([1.0, 1, -1, 1])), "not a rotation matrix"),
    "pose of wrong shape": (lambda p: p.add_frame("f", "upper", np.eye(3)), r"4x4.*shape \(3, 3\)"),
    "NaN pose": (lambda p: p.add_frame("f", "upper", [0.0, np.nan, 0.0]), "must be finite"),
    "actuated ball": (
        lambda p: (p.add_rigid_body("b", inertia()), p.add_joint(mbjax.BallRpyJoint("ball", "lower", "b")),
                   p.add_joint_actuator("m", "ball")),
        "has 3 degrees of freedom",
    ),
    "negative effort": (lambda p: p.add_joint_actuator("m", "elbow", -1.0), "effort_limit must be"),
    "NaN gain": (lambda p: p.add_joint_actuator("m", "elbow", kp=np.nan), "kp must be a finite number"),
    "NaN gravity": (lambda p: p.set_gravity([0, np.nan, 0]), "three finite numbers"),
    "no force element": (lambda p: p.add_force_element("spring"), "expected an AbstractForceElement, got str"),
    "spring on nothing": (
        lambda p: (p.add_force_element(mbjax.RevoluteSpring("elbw", 0.0, 1.0)), p.finalize()),
        "RevoluteSpring: there is no joint named 'elbw'. Did you mean 'elbow'",
    ),
    "spring on the wrong joint": (
        lambda p: (p.add_force_element(mbjax.PrismaticSpring("elbow", 0.0, 1.0)), p.finalize()),
        "joint 'elbow' is revolute, it must be prismatic",
    ),
    "negative stiffness": (
        lambda p: mbjax.RevoluteSpring("elbow", 0.0, -1.0),
        "stiffness must be a finite number >= 0, got -1.0",
    ),
    "pose of a body that hangs": (
        lambda p: (p.set_default_free_body_pose("lower", np.eye(4)), p.finalize()),
        "hangs on a joint and does not float",
    ),
    "two defaults": (lambda p: p.set_joint_default_positions("elbow", [1, 2]), "default_positions must be 1 number"),
    "default without a direction": (
        lambda p: (p.add_rigid_body("b"), p.add_joint(mbjax.QuaternionFloatingJoint("f", "world", "b")),
                   p.set_joint_default_positions("f", np.zeros(7))),
        "joint 'f': the default quaternion is zero",
    ),
    "removal of a driven joint": (
        lambda p: (p.add_joint_actuator("motor", "elbow"), p.remove_joint("elbow")),
        r"remove_joint\('elbow'\): actuator 'motor' drives it; call remove_joint_actuator first",
    ),
    "removal after a force element": (
        lambda p: (p.add_force_element(mbjax.RevoluteSpring("shoulder", 0.0, 1.0)), p.remove_joint("elbow")),
        "remove joints before adding force elements",
    ),
    "removal of an unknown joint": (lambda p: p.remove_joint("elbo"), "Did you mean 'elbow'"),
    "removal of an unknown actuator": (lambda p: p.remove_joint_actuator("motor"), "no actuator named 'motor'"),
    "instance renamed to a taken name": (lambda p: p.rename_model_instance(1, "WorldModelInstance"), "name is taken"),
    "instance without a name": (lambda p: p.rename_model_instance(1, ""), "non-empty string"),
    "infinite lower limit": (
        lambda p: hinge("j", "world", "upper", position_limits=(np.inf, np.inf)),
        "a lower one below inf",
    ),
    "one limit": (lambda p: hinge("j", "world", "upper", position_limits=1.0), r"must be \(lower, upper\)"),
    "text as limits": (lambda p: hinge("j", "world", "upper", position_limits="ab"), r"must be \(lower, upper\)"),
    "text as damping": (lambda p: hinge("j", "world", "upper", damping="0.1"), r"1 number\(s\), got '0.1'"),
    "text as effort": (lambda p: p.add_joint_actuator("m", "elbow", "5"), "effort_limit must be one number, got '5'"),
    "two gear ratios": (
        lambda p: p.add_joint_actuator("m", "elbow", gear_ratio=[1, 2]),
        "gear_ratio must be one number",
    ),
    "negative rotor": (lambda p: p.add_joint_actuator("m", "elbow", rotor_inertia=-1e-3), "'m'.*rotor_inertia must be"),
    "traced gain": (
        lambda p: jax.jit(lambda kp: p.add_joint_actuator("m", "elbow", kp=kp) and 0)(1.0),
        "kp is traced, and a plant is built of known numbers",
    ),
    "one number as gravity": (lambda p: p.set_gravity(-9.81), r"three finite numbers in m/s², got -9.81"),
    "text as gravity": (lambda p: p.set_gravity("down"), "three finite numbers"),
    "text as switch": (lambda p: p.set_gravity_enabled(1, "no"), "enabled must be True or False, got 'no'"),
    "text as time step": (lambda p: mbjax.MultibodyPlant("fast"), "time_step must be a finite number of seconds"),
    "text as pose": (lambda p: p.add_frame("f", "upper", "here"), "a pair .* a 4x4 matrix, or a translation"),
    "number as inertia": (lambda p: p.add_rigid_body("b", 1.0), "the inertia must be a mbjax.SpatialInertia.*got 1.0"),
    "name as joint": (lambda p: p.add_joint("elbow"), "expected a joint.*got 'elbow'"),
    "leaves of integers": (lambda p: p.finalize(dtype=int), "dtype must be a float type"),
    "leaves of nothing that is a type": (
        lambda p: p.finalize(dtype="large"),
        "dtype must be a float type, like jnp.float32, got 'large'",
    ),
    "text as a distribution's limit": (lambda p: mbjax.UniformDistribution("a", 1.0), "needs one number"),
    "NaN spring": (lambda p: mbjax.RevoluteSpring("elbow", np.nan, 1.0), "nominal_angle must be a finite number"),
    "negative time step": (lambda p: mbjax.MultibodyPlant(-0.1), "time_step must be a finite number"),
    "NaN time step": (lambda p: mbjax.MultibodyPlant(np.nan), "time_step must be a finite number"),
}  # fmt: skip


@pytest.mark.parametrize("misuse", MISUSES)
def test_misuse_is_refused(misuse):
    act, message = MISUSES[misuse]
    with pytest.raises(mbjax.ModelError, match=message):
        act(two_links())


AFTER_FINALIZE = {
    "add_keyframe": lambda p: p.add_keyframe("home", {"elbow": 0.5}),
    "add_model_instance": lambda p: p.add_model_instance("x"),
    "add_rigid_body": lambda p: p.add_rigid_body("x"),
    "add_frame": lambda p: p.add_frame("x", "upper"),
    "add_joint": lambda p: p.add_joint(hinge("x", "upper", "lower")),
    "weld_frames": lambda p: p.weld_frames("upper", "lower"),
    "add_joint_actuator": lambda p: p.add_joint_actuator("x", "elbow"),
    "add_force_element": lambda p: p.add_force_element(mbjax.RevoluteSpring("elbow", 0.0, 1.0)),
    "add_constraint": lambda p: p.add_constraint(None),
    "add_coupler_constraint": lambda p: p.add_coupler_constraint("shoulder", "elbow", 1.0),
    "add_mimic": lambda p: p.add_mimic("shoulder", "elbow"),
    "add_distance_constraint": lambda p: p.add_distance_constraint("upper", np.zeros(3), "lower", np.zeros(3), 1.0),
    "add_ball_constraint": lambda p: p.add_ball_constraint("upper", np.zeros(3), "lower"),
    "add_weld_constraint": lambda p: p.add_weld_constraint("upper", np.eye(4), "lower", np.eye(4)),
    "remove_constraint": lambda p: p.remove_constraint(0),
    "register_visual_geometry": lambda p: p.register_visual_geometry("upper", None),
    "register_collision_geometry": lambda p: p.register_collision_geometry("upper", None),
    "exclude_collision_geometries_with_collision_filter_group_pair": (
        lambda p: p.exclude_collision_geometries_with_collision_filter_group_pair(("x", []), ("y", []))
    ),
    "keep_contact_only": lambda p: p.keep_contact_only([("upper", "lower")]),
    "exclude_collisions_between": lambda p: p.exclude_collisions_between("upper", "lower"),
    "set_adjacent_bodies_collision_filters": lambda p: p.set_adjacent_bodies_collision_filters(False),
    "add_deformable_body": lambda p: p.add_deformable_body("pad", None),
    "add_fixed_constraint": lambda p: p.add_fixed_constraint("pad", "upper", shape=None),
    "add_force_density": lambda p: p.add_force_density(None),
    "set_wall_boundary_condition": lambda p: p.set_wall_boundary_condition("pad", None, None),
    "set_contact_model": lambda p: p.set_contact_model("none"),
    "set_discrete_contact_approximation": lambda p: p.set_discrete_contact_approximation("lagged"),
    "set_penetration_allowance": lambda p: p.set_penetration_allowance(0.01),
    "set_stiction_tolerance": lambda p: p.set_stiction_tolerance(0.01),
    "set_sap_near_rigid_threshold": lambda p: p.set_sap_near_rigid_threshold(0.5),
    "set_max_contacts": lambda p: p.set_max_contacts(3),
    "set_max_pairs": lambda p: p.set_max_pairs(3),
    "set_max_faces": lambda p: p.set_max_faces(3),
    "set_contact_surface_representation": lambda p: p.set_contact_surface_representation("polygon"),
    "set_contact_prediction": lambda p: p.set_contact_prediction(True),
    "set_contact_smoothing_length": lambda p: p.set_contact_smoothing_length(0.001),
    "set_gravity": lambda p: p.set_gravity([0, 0, -1]),
    "set_gravity_enabled": lambda p: p.set_gravity_enabled(1, False),
    "set_default_free_body_pose": lambda p: p.set_default_free_body_pose("upper", np.eye(4)),
    "set_joint_default_positions": lambda p: p.set_joint_default_positions("elbow", 0.1),
    "remove_joint": lambda p: p.remove_joint("elbow"),
    "remove_joint_actuator": lambda p: p.remove_joint_actuator(0),
    "rename_model_instance": lambda p: p.rename_model_instance(1, "x"),
    "set_joint_random_position_distribution": lambda p: p.set_joint_random_position_distribution("elbow", None),
    "set_joint_random_velocity_distribution": lambda p: p.set_joint_random_velocity_distribution("elbow", None),
    "set_free_body_random_translation_distribution": (
        lambda p: p.set_free_body_random_translation_distribution("upper", None)
    ),
    "set_free_body_random_rotation_distribution": (
        lambda p: p.set_free_body_random_rotation_distribution("upper", None)
    ),
    "set_free_body_random_rotation_distribution_to_uniform": (
        lambda p: p.set_free_body_random_rotation_distribution_to_uniform("upper")
    ),
    "finalize": lambda p: p.finalize(),
}


@pytest.mark.parametrize("call", AFTER_FINALIZE)
def test_a_finalized_plant_takes_nothing_more(call):
    plant = two_links()
    plant.finalize()
    with pytest.raises(mbjax.ModelError, match=f"{call}: the plant is finalized.*setters"):
        AFTER_FINALIZE[call](plant)


def test_every_method_that_changes_a_plant_is_in_the_list():
    methods = {
        m
        for m in dir(mbjax.MultibodyPlant)
        if re.match("(add|exclude|keep|register|remove|rename|set|weld)_(?!constraint_specs)", m)
    }
    assert methods <= set(AFTER_FINALIZE)


def test_unknown_names_of_a_model_have_near_matches():
    model = two_links().finalize()
    for call in (model.body_index, model.frame_index):
        with pytest.raises(mbjax.ModelError, match=r"named 'uper'\. Did you mean 'upper'"):
            call("uper")
    with pytest.raises(mbjax.ModelError, match=r"no joint named 'elbo'\. Did you mean 'elbow'"):
        model.joint("elbo")
    with pytest.raises(mbjax.ModelError, match="indices run from 0 to 2"):
        model.body_index(3)
