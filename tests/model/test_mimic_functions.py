"""Every public function of a model whose joints mimic others, beside the same model with free joints.

Functions that only read the model are compared with the free model's through the maps of `tests.model.mimics`: EᵀME and
so on. Those that solve for motion are compared with couplers in place of the mimics, in `test_mimic_motion`.
"""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.gradients.checks import compiled
from tests.gradients.test_transformations import OPTIONAL, arguments_of, functions_of_a_model
from tests.model.mimics import make_model, maps, state
from tests.models import relative_error

SAME = """
    body_poses_in_world body_pose_in_world body_spatial_velocities_in_world body_spatial_velocity_in_world
    body_spatial_acceleration_in_world spatial_accelerations_from_vdot relative_transform relative_rotation_matrix
    points_positions bias_spatial_acceleration bias_translational_acceleration kinetic_energy potential_energy
    body_center_of_mass_translational_velocity_in_world body_center_of_mass_translational_acceleration_in_world
    center_of_mass_position_in_world center_of_mass_translational_velocity_in_world
    center_of_mass_translational_acceleration_in_world bias_center_of_mass_translational_acceleration
    spatial_momentum_in_world_about_point spatial_inertia conservative_power non_conservative_power force_element_power
    free_body_pose free_body_spatial_velocity is_joint_locked is_body_locked constraints_position_error
    constraints_velocity_error constraint_spatial_forces compliant_forces joint_positions joint_velocities
    is_velocity_equal_to_qdot
"""
FIELDS = {
    "inverse_dynamics_derivatives": {"tau": "force", "dq": "matrix", "dv": "matrix", "dvdot": "matrix"},
    "constrained_system_variables": {"H": "matrix", "G": "columns", "C": "force", "c": "force"},
    "constraint_terms": {"G": "columns"},
    "force_elements_contribution": {"generalized": "force"},
    "add_in_force": {"generalized": "force"},
    "add_in_one_force": {"generalized": "force"},
    "position_kinematics": {"H_W": None, "S_T": None},  # directions are scaled by the multipliers
}
RULES = {
    **dict.fromkeys(SAME.split(), "same"),
    **dict.fromkeys(FIELDS, "fields"),
    **dict.fromkeys(
        ("inverse_dynamics", "bias_term", "gravity_generalized_forces", "generalized_forces", "actuation_matrix",
         "inverse_dynamics_with_constraints"), "force"
    ),
    **dict.fromkeys(("mass_matrix", "mass_matrix_via_inverse_dynamics"), "matrix"),
    **dict.fromkeys(
        ("jacobian_spatial_velocity", "jacobian_angular_velocity", "jacobian_translational_velocity",
         "jacobian_center_of_mass_translational_velocity", "constraints_jacobian"), "columns"
    ),
    "jacobian_position_vector": "columns of q",
    "velocity_to_qdot": "rates",
    "qdot_to_velocity": "motion",
    "difference_configuration": "motion",
    "integrate_configuration": "positions",
}  # fmt: skip
ELSEWHERE = {
    "in test_mimic_motion": """
        forward_dynamics forward_dynamics_derivatives constrained_forward_dynamics constrained_inverse_dynamics
        constraint_impulses project_onto_constraints time_derivatives outputs step rollout simulate assembly_q
        assembly_qdot implicit_time_derivatives_residual""",
    "in test_mimic: coordinates by name and instance, defaults, locks, refusals": """
        positions_from_array velocities_from_array set_positions_in_array set_velocities_in_array default_positions
        set_default_positions set_joint_default_positions lock_joint unlock_joint set_position_limits set_mimic
        velocity_to_qdot_matrix qdot_to_velocity_matrix default_state random_state random_state_within_limits
        state_selector_matrix actuation_matrix_pseudoinverse set_joint_random_position_distribution keyframe_state
        set_joint_random_velocity_distribution mujoco_state state_from_mujoco""",
    "parts of, or changes in, q and v as they are": """
        positions velocities positions_and_velocities set_positions set_velocities set_positions_and_velocities
        set_free_body_pose set_free_body_pose_in_world_frame set_free_body_pose_in_anchored_frame
        set_free_body_spatial_velocity set_free_body_spatial_velocity_in_world_frame
        set_free_body_spatial_velocity_in_anchored_frame""",
    "reads what the functions above return": "velocity_kinematics acceleration_kinematics signed_distances",
    "has to do with no joint's coordinates": """
        astype lock_body unlock_body mass set_mass set_masses center_of_mass_in_body_frame total_mass frame_pose
        set_center_of_mass_in_body_frame set_center_of_mass_in_body_frame_and_preserve_central_inertia
        spatial_inertia_in_body_frame set_spatial_inertia_in_body_frame set_frame_pose set_gravity set_time_step
        set_joint_axis set_joint_armature
        set_joint_damping set_joint_friction set_rotor_inertia set_gear_ratio set_effort_limit
        controller_gains has_controller set_controller_gains constraint_active_status set_constraint_active_status
        bound_constraints friction set_friction set_proximity_properties set_penetration_allowance
        collision_geometry_pose collision_geometry_size collision_geometry_vertices set_collision_geometry_pose
        set_collision_geometry_size set_collision_geometry_vertices contact_penalty_method_time_scale
        set_sap_near_rigid_threshold set_stiction_tolerance set_contact_smoothing_length default_free_body_pose
        set_default_free_body_pose set_free_body_random_rotation_distribution actuation_from_array
        set_free_body_random_rotation_distribution_to_uniform set_free_body_random_translation_distribution
        set_actuation_in_array actuator_selector_matrix force_in_world add_in_force_in_world""",
    "of every leaf, in test_model_status": "model_status",
    "in tests/formats: orders of other engines": """
        drake_state state_from_drake pinocchio_state state_from_pinocchio inputs_from_mujoco""",
    "in tests/formats and tests/saving: robots with mimics": "to_urdf to_sdf to_mjcf save",
    "steps, and models that differ": "rollout_policy randomize",
    "draws what others compute": "plot",
    "in tests/reaching: robots with mimics": "inverse_kinematics differential_inverse_kinematics follow",
}
TRIMMED = """
    mass_matrix jacobian_position_vector bias_translational_acceleration constraints_jacobian
    jacobian_center_of_mass_translational_velocity gravity_generalized_forces integrate_configuration
"""  # one of each formula that knows of mimics


def test_every_function_has_a_rule() -> None:
    told = {*RULES, *(name for names in ELSEWHERE.values() for name in names.split())}
    assert set(functions_of_a_model()) - told == set()


def arguments(relation: str, model: mbjax.MultibodyModel) -> dict:
    """The same forces and motions, in the model's coordinates."""
    E_q, c, E_v = (jnp.asarray(x) for x in maps())
    (q, v), rng = state(), np.random.default_rng(2)
    vdot, qdot, tau = (jnp.asarray(rng.normal(size=n)) for n in (9, 10, 12))
    q1 = q.at[:3].add(0.1 * vdot[:3])
    if relation == "free":
        q, q1, qdot, v, vdot = E_q @ q + c, E_q @ q1 + c, E_q @ qdot, E_v @ v, E_v @ vdot
    else:
        tau = E_v.T @ tau
    given = arguments_of(model, q, v)
    forces = mbjax.MultibodyForces(2.0 * tau, given["forces"].body)
    return given | {"tau": tau, "forces": forces, "vdot": vdot, "dv": vdot, "q1": q1, "qdot": qdot, "joint": "j3"}


def results(relation: str, names: list[str]) -> dict:
    """Of functions with a rule, by one program."""

    def call(model: mbjax.MultibodyModel) -> dict:
        answers, given = {}, arguments(relation, model)
        for name in names:
            function = functions_of_a_model()[name]
            parameters = inspect.signature(function).parameters.values()
            wanted = [p.name for p in parameters if p.default is p.empty or p.name in OPTIONAL]
            answers[name] = function(**{p: given[p] for p in wanted})
        return answers

    maps()  # made outside of a trace
    return compiled(call)(make_model(relation))


def in_free_coordinates(rule: str, ours: np.ndarray, free: np.ndarray) -> float:
    """How far the two are from telling the same."""
    E_q, c, E = maps()
    if rule == "same":
        return relative_error(ours, free)
    if rule == "force":
        return relative_error(ours, E.T @ free)
    if rule == "matrix":
        return relative_error(ours, E.T @ free @ E)
    if rule == "columns":
        return relative_error(ours, free @ E)
    if rule == "columns of q":
        return relative_error(ours, free @ E_q)
    mapped = {"motion": lambda: E @ ours, "rates": lambda: E_q @ ours, "positions": lambda: E_q @ ours + c}[rule]()
    return relative_error(mapped, free)


@pytest.mark.whole_run("Panda equals Pinocchio's mimic, and forces of a step are in balance, in test_mimic_motion.py")
def test_functions_that_read_a_model_agree_with_the_free_models(request: pytest.FixtureRequest) -> None:
    """Trimmed: one of each formula."""
    names = TRIMMED.split() if request.config.getoption("--trimmed") else list(RULES)
    ours, free, errors = results("mimic", names), results("free", names), {}
    for name in names:
        leaves = [jax.tree_util.tree_leaves_with_path(x[name]) for x in (ours, free)]
        for (path, a), (_, b) in zip(*leaves, strict=True):
            field = jax.tree_util.keystr(path).strip(".")
            how = FIELDS[name].get(field, "same") if RULES[name] == "fields" else RULES[name]
            if how is not None and jnp.issubdtype(a.dtype, jnp.floating):
                errors[name, field] = in_free_coordinates(how, np.asarray(a), np.asarray(b))
    print(f"largest of {len(errors)} results of {len(names)} functions: {max(errors.values()):.1e}")
    assert {key: error for key, error in errors.items() if not error < 1e-12} == {}
