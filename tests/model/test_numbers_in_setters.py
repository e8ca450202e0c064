"""Numbers that setters refuse, by element, value and expectation; limits that mean "none", and traced ones, pass."""

import inspect
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.model.plants import hinge, inertia

NAN, INF = np.nan, np.inf


def small_robot() -> mbjax.MultibodyModel:
    """A hinge with a motor and a spring, one that mimics it, and a floating crate with a collision geometry."""
    plant = mbjax.MultibodyPlant(0.01)
    for name in ("arm", "hand", "crate"):
        plant.add_rigid_body(name, inertia())
    plant.add_joint(hinge("elbow", "world", "arm", position_limits=(-1.0, 1.0), friction=0.1))
    plant.add_joint(hinge("wrist", "arm", "hand"))
    plant.add_mimic("wrist", "elbow")
    plant.add_joint_actuator("motor", "elbow", 5.0, kp=1.0)
    plant.add_force_element(mbjax.RevoluteSpring("elbow", 0.1, 2.0))
    plant.add_distance_constraint("arm", [0.0, 0.0, 0.0], "crate", [0.0, 0.0, 0.0], 1.0)
    shape = mbjax.Geometry("ball", mbjax.Sphere(0.1))
    plant.register_collision_geometry("crate", shape, mbjax.ProximityProperties(0.5, 0.4, 1e4))
    plant.register_collision_geometry("world", mbjax.Geometry("ground", mbjax.HalfSpace()), 0.5)
    return plant.finalize()


@pytest.fixture(scope="module")
def model() -> mbjax.MultibodyModel:
    return small_robot()


X = mbjax.RigidTransform(np.eye(3), np.zeros(3))
REFUSED = {
    "set_mass": [(("arm", -1.0), r"set_mass\('arm'\): mass must be a finite number >= 0 in kg, got -1.0"),
                 (("arm", NAN), "got nan"), (("arm", INF), "got inf"),
                 (("arm", [1.0, 2.0]), r"one number.*shape \(2,\)"),
                 (("arm", "heavy"), "one number in kg, got 'heavy'"), (("arm", None), "got None"),
                 (("arm", True), "one number in kg, got True")],
    "set_masses": [((np.ones(5),), r"one number or 3 number\(s\) in kg, got shape \(5,\).*arm, hand, crate"),
                   (([1.0, -1.0, 1.0],), "finite number >= 0")],
    "set_center_of_mass_in_body_frame": [(("arm", [0.0, NAN, 0.0]), "'arm'.*centre of mass.*finite"),
                                         (("arm", 0.1), r"3 number\(s\) in m, got shape \(\)")],
    "set_center_of_mass_in_body_frame_and_preserve_central_inertia": [(("arm", [0.0, INF, 0.0]), "'arm'.*finite")],
    "set_spatial_inertia_in_body_frame": [
        (("arm", mbjax.SpatialInertia.nan()), "'arm'.*mass must be a finite"),
        (("arm", 1.0), "expected a mbjax.SpatialInertia, got float")],
    "set_frame_pose": [(("elbow_parent", np.diag([1.0, 1, -1, 1])), "'elbow_parent'.*not a rotation matrix"),
                       (("elbow_parent", [0.0, NAN, 0.0]), "must be finite"),
                       (("elbow_parent", "up"), "RigidTransform")],
    "set_joint_axis": [(("elbow", [0, 0, 0]), "'elbow'.*axis must be finite and not all zero"),
                       (("elbow", [0, NAN, 1]), "axis must be finite"), (("elbow", 1.0), r"3 number\(s\)")],
    "set_joint_armature": [(("elbow", -0.1), r"'elbow'\): armature must be a finite number >= 0, got -0.1")],
    "set_joint_damping": [(("elbow", -0.1), r"'elbow'\): damping must be a finite number >= 0, got -0.1"),
                          (("elbow", INF), "finite"), (("elbow", [1, 2]), "one number")],
    "set_joint_friction": [(("elbow", -0.1), "'elbow'.*friction must be a finite number >= 0"),
                           (("elbow", NAN), "nan")],
    "set_position_limits": [(("elbow", 1.0, -1.0), "'elbow'.*lower limit 1.0 is above the upper limit -1.0"),
                            (("elbow", NAN, 1.0), "lower position limit must be a number, or -inf for none"),
                            (("elbow", INF, INF), "lower position limit"),
                            (("elbow", -1.0, -INF), "upper position limit"),
                            (("elbow", [0, 0], 1.0), "one number")],
    "set_controller_gains": [((-1.0, 0.0, "motor"), "'motor'.*kp must be a finite number >= 0"), ((1.0, NAN), "kd")],
    "set_effort_limit": [(("motor", -1.0), "'motor'.*effort limit must be a number >= 0, or inf for none, got -1.0"),
                         (("motor", NAN), "effort limit")],
    "set_rotor_inertia": [(("motor", -1e-3), "'motor'.*rotor inertia"), (("motor", INF), "rotor inertia")],
    "set_gear_ratio": [(("motor", NAN), "'motor'.*gear ratio must be a finite number"),
                       (("motor", [1.0]), "one number")],
    "set_mimic": [(("wrist", NAN, 0.0), "'wrist'.*multiplier"), (("wrist", 1.0, INF), "'wrist'.*offset")],
    "set_gravity": [(([0, 0, NAN],), "gravity must be a finite number in m/s²"), ((-9.81,), r"3 number\(s\)")],
    "set_time_step": [((0.0,), "time step must be a finite number > 0 in s, got 0.0"), ((-0.1,), "> 0"),
                      ((NAN,), "> 0")],
    "lock_joint": [(("elbow", 0.5), "one truth value, True or False, got 0.5"), (("elbow", NAN), "truth value")],
    "lock_body": [(("crate", 2), "one truth value")],
    "set_constraint_active_status": [((0, 0.5), "status must be one truth value"), ((0, NAN), "truth value")],
    "set_default_positions": [((np.zeros(8),), "quaternion of joint 'crate' is .*no orientation.*1, 0, 0, 0"),
                              (([NAN, 1, 0, 0, 0, 0, 0, 0],), "position 'DefaultModelInstance_elbow_q' must be finite"),
                              ((np.zeros(3),), r"shape \(3,\)")],
    "set_joint_default_positions": [(("elbow", NAN), "'elbow'.*default positions must be a finite number"),
                                    (("crate", np.zeros(7)), "no orientation"), (("crate", 1.0), r"7 number\(s\)")],
    "set_default_free_body_pose": [(("crate", np.diag([2.0, 1, 1, 1])), "'crate'.*not a rotation matrix")],
    "set_friction": [(("ball", -0.1), "'ball'.*static_friction"), (("ball", 0.3, 0.4), "greater than the static")],
    "set_proximity_properties": [],  # test_collision_geometry.py
    "set_collision_geometry_pose": [(("ball", np.diag([2.0, 1, 1, 1])), "'ball'.*not a rotation matrix")],
    "set_collision_geometry_size": [(("ball", -0.1), "'ball'.*size must be a finite number > 0 in m")],
    "set_collision_geometry_vertices": [], "set_penetration_allowance": [((-1.0,), "> 0 in m, got -1.0")],
    "set_stiction_tolerance": [((NAN,), "finite")], "set_sap_near_rigid_threshold": [((-1.0,), ">= 0")],
    "set_contact_smoothing_length": [],
    "set_joint_random_position_distribution": [(("elbow", 1.0), "expected a distribution")],
    "set_joint_random_velocity_distribution": [(("elbow", 1.0), "expected a distribution")],
    "set_free_body_random_translation_distribution": [(("crate", 1.0), "expected a distribution")],
    "set_free_body_random_rotation_distribution": [(("crate", 1.0), "expected a distribution")],
}  # fmt: skip
CASES = [(name, *case) for name, cases in REFUSED.items() for case in cases]


@pytest.mark.parametrize(("name", "arguments", "message"), CASES, ids=[f"{n}{a}"[:60] for n, a, _ in CASES])
def test_bad_numbers_are_refused(model, name, arguments, message) -> None:
    with pytest.raises(mbjax.ModelError, match=message):
        getattr(mbjax, name)(model, *arguments)


def test_every_setter_of_a_number_is_in_the_list() -> None:
    """Those of states and of deformable bodies are in tests/simulation; those of arrays put one into another."""
    of_others = {
        "set_default_free_body_pose", "set_free_body_random_rotation_distribution_to_uniform", "set_deformable_enabled",
    }  # fmt: skip
    setters = {
        name
        for name in dir(mbjax)
        if name.startswith(("set_", "lock_")) and not name.endswith("_in_array")
        and "state" not in inspect.signature(getattr(mbjax, name)).parameters
    }  # fmt: skip
    assert setters <= set(REFUSED) | of_others


STATE_REFUSED = {
    "set_positions": ((np.zeros(8),), "set_positions: the quaternion of joint 'crate'"),
    "set_velocities": (([0, 0, NAN, 0, 0, 0, 0],), "velocity 'DefaultModelInstance_crate_wy' must be finite, got nan"),
    "set_positions_and_velocities": ((np.zeros(15),), "quaternion of joint 'crate'"),
    "set_free_body_pose": (("crate", np.diag([2.0, 1, 1, 1])), r"set_free_body_pose\('crate'\): X_FM.*rotation matrix"),
    "set_free_body_pose_in_world_frame": (("crate", [NAN, 0, 0]), "X_WB must be finite"),
    "set_free_body_pose_in_anchored_frame": (("world", "crate", [NAN, 0, 0]), "X_AB must be finite"),
    "set_free_body_spatial_velocity": (("crate", [0, 0, 0, 0, INF, 0]), "number 'vy' must be finite, got inf"),
}


@pytest.mark.parametrize("name", STATE_REFUSED)
def test_bad_numbers_of_states_are_refused(model, name) -> None:
    arguments, message = STATE_REFUSED[name]
    with pytest.raises(mbjax.ModelError, match=message):
        getattr(mbjax, name)(model, mbjax.default_state(model), *arguments)


def test_infinite_limits_mean_none(model) -> None:
    assert mbjax.set_effort_limit(model, "motor", INF).parameters.effort_limit[0] == INF
    free = mbjax.set_position_limits(model, "elbow", -INF, INF)
    assert np.isinf(free.position_upper_limits[0])
    assert mbjax.set_position_limits(model, "elbow", 0.3, 0.3).position_lower_limits[0] == 0.3
    stiff = mbjax.set_proximity_properties(model, "ball", point_stiffness=INF)
    assert stiff.collision.stiffness[0] == INF


def test_limits_that_no_step_enforces_are_kept_with_a_warning() -> None:
    plant = mbjax.MultibodyPlant(0.01)
    plant.add_rigid_body("puck", inertia())
    plant.add_joint(mbjax.PlanarJoint("table", "world", "puck"))
    model = plant.finalize()
    with pytest.warns(
        mbjax.ModelWarning, match=r"set_position_limits\('table'\).*not enforced in a step.*planar"
    ) as said:
        limited = mbjax.set_position_limits(model, "table", -1.0, [1.0, INF, INF])
    assert [w.filename for w in said] == [__file__]
    np.testing.assert_array_equal(limited.position_upper_limits, [1.0, INF, INF])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mbjax.set_position_limits(limited, "table", -INF, INF)
        jax.jit(lambda x: mbjax.set_position_limits(limited, "table", -x, x).position_upper_limits)(1.0)


def welded() -> mbjax.MultibodyModel:
    plant = mbjax.MultibodyPlant(0.01)
    plant.add_rigid_body("arm", inertia())
    plant.add_joint(mbjax.WeldJoint("glue", "world", "arm"))
    return plant.finalize()


NUMBERS_OF_WELDS = {
    "set_joint_damping": ((1.0,), "'glue' is a weld and has no damping"),
    "set_joint_friction": ((1.0,), "'glue' is a weld and has no friction"),
    "set_joint_armature": ((1.0,), "'glue' is a weld and has no armature"),
    "set_position_limits": ((-1.0, 1.0), "'glue' is a weld and has no position limits"),
    "set_joint_default_positions": ((1.0,), "'glue' is a weld and has no positions"),
    "set_joint_random_position_distribution": ((None,), "'glue'.*is a weld and has no coordinates"),
    "set_joint_random_velocity_distribution": ((mbjax.UniformDistribution(0.0, 1.0),), "'glue'.*no coordinates"),
    "lock_joint": ((False,), r"lock_joint\('glue'\): a weld cannot move"),
    "unlock_joint": ((), r"unlock_joint\('glue'\): a weld cannot move"),
}


@pytest.mark.parametrize("name", NUMBERS_OF_WELDS)
def test_a_weld_has_no_numbers_to_set(name) -> None:
    arguments, message = NUMBERS_OF_WELDS[name]
    with pytest.raises(mbjax.ModelError, match=message):
        getattr(mbjax, name)(welded(), "glue", *arguments)


def test_a_weld_may_be_locked_and_traced_truth_values_pass() -> None:
    model = welded()
    assert mbjax.lock_joint(model, "glue") == model
    assert jax.jit(lambda locked: mbjax.lock_joint(model, "glue", locked).parameters.velocity_locked)(False).size == 0


def test_an_impossible_inertia_is_kept_with_a_warning(model) -> None:
    """Files have such inertias too; reading one and setting it again must go."""
    bad = mbjax.SpatialInertia(
        1.0, np.zeros(3), mbjax.UnitInertia.from_moments_products(jnp.array([1.0, 1.0, 9.0, 0.0, 0.0, 0.0])), True
    )
    with pytest.warns(mbjax.ModelWarning, match=r"'arm'\): the spatial inertia is not physical.*triangle inequality"):
        kept = mbjax.set_spatial_inertia_in_body_frame(model, "arm", bad)
    assert mbjax.model_status(kept).impossible_inertias == 1


def test_traced_numbers_pass_setters(model) -> None:
    """Under jit, vmap and grad nobody knows them; the derivative is that of the leaf."""

    def total(x: jax.Array) -> jax.Array:
        m = mbjax.set_mass(model, "arm", x[0])
        m = mbjax.set_effort_limit(m, "motor", x[1])
        m = mbjax.set_joint_damping(m, "elbow", [x[2]])
        m = mbjax.set_position_limits(m, "elbow", x[3], x[4])
        m = mbjax.set_joint_axis(m, "elbow", x[:3])
        m = mbjax.set_frame_pose(m, "elbow_parent", mbjax.RigidTransform(jnp.eye(3), x[2:5]))
        m = mbjax.set_controller_gains(m, x[0], x[1])
        m = mbjax.set_default_positions(m, jnp.concatenate([x, x[:3]]))
        m = mbjax.set_time_step(m, x[4])
        return sum(jnp.sum(jnp.where(jnp.isfinite(leaf), leaf, 0.0)) for leaf in jax.tree.leaves(m))

    bad = jnp.array([-1.0, -2.0, -0.3, 2.0, -0.5])
    np.testing.assert_allclose(jax.jit(jax.grad(total))(bad), jnp.array([5.0, 5.0, 5.0, 3.0, 4.0]))
    assert jax.vmap(total)(jnp.stack([bad, -bad])).shape == (2,)


def test_nothing_is_warned_of_good_numbers(model) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same = mbjax.set_spatial_inertia_in_body_frame(model, "arm", mbjax.spatial_inertia_in_body_frame(model, "arm"))
    np.testing.assert_array_equal(same.parameters.body_mass, model.parameters.body_mass)
