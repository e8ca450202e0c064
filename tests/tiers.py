"""What the quick run has: the tests by which to trust an installation, a few of every room."""

QUICK: tuple[str, ...] = (
    # the house: imports, names, pages
    "test_import_rules.py",
    "test_tiers.py",
    "test_public_api.py",
    "test_drake_map.py",
    "test_reference_pages.py",
    "test_documentation.py::test_links_lead_somewhere",
    "test_documentation.py::test_snippets_run[README.md]",
    "test_documentation.py::test_snippets_run[docs/usage/first_gradient.md]",
    "test_documentation.py::test_snippets_run[docs/usage/pd_control.md]",
    "test_notebooks.py::test_notebooks_are_stripped",
    # algebra and trees
    "spatial",
    "topology/test_spanning_tree.py",
    "linear_algebra/test_factorizations.py",
    # models from code and from files
    "plant/test_misuse.py",
    "plant/test_plant_edits.py",
    "plant/test_collision_filters.py",
    "model/test_names.py",
    "model/test_setters.py",
    "model/test_misuse_of_models.py",
    "model/test_model_table.py",
    "formats/test_load.py",
    "formats/test_urdf_features.py",
    "formats/test_urdf_malformed.py",
    "formats/test_sdf_features.py",
    "formats/test_mjcf.py",
    "formats/test_reading_policy.py",
    "formats/test_round_trips.py::test_urdf_and_sdf_give_the_same_dynamics[arm",
    "formats/test_round_trips.py::test_urdf_and_sdf_give_the_same_dynamics[Panda",
    "saving/test_save.py",
    "reference_models",
    # kinematics and dynamics: identities, Drake and Pinocchio, derivatives
    "execution/test_other_devices.py::test_every_main_function_lowers_for_them[forward",
    "execution/test_other_devices.py::test_every_main_function_lowers_for_them[step through contact-3]",
    "kinematics/test_configuration.py",
    "dynamics/test_identities.py",
    "dynamics/test_against_drake_and_pinocchio.py::test_equals_drake_and_pinocchio[a1]",
    "gradients/test_dynamics_derivatives.py::test_inverse_and_forward_dynamics[every joint]",
    "gradients/test_pitfalls.py::test_G03",
    "gradients/test_pitfalls.py::test_G54_one_compilation_from_the_first_state_on",
    "forces/test_against_drake.py",
    # contact, constraints, steps
    "geometry/test_shapes.py",
    "contact/test_one_ball.py",
    "contact/test_step_against_drake.py::test_steps_equal_drakes[rolling",
    "constraints/test_constraint_set.py",
    "constraints/test_kinds_against_oracles.py::test_against_drake[ball]",
    "constraints/test_kinds_against_oracles.py::test_against_pinocchio_at_zero_error",
    "simulation/test_step.py",
    "simulation/test_ports.py",
    "simulation/test_step_against_drake.py::test_pd_actuators_of_the_arm",
    # the three jobs
    "environments/test_tasks.py::test_rewards_ends_and_observations[cart-pole]",
    "environments/test_tasks.py::test_rewards_ends_and_observations[quadruped]",
    "trajectory_optimization/test_riccati.py",
    "trajectory_optimization/test_solve.py::test_a_linear_problem_takes_one_step",
    "trajectory_optimization/test_solve.py::test_a_plan_of_a_model_is_stationary",
    "system_identification/test_torque_fits.py::test_noise_free_base_parameters_are_exact",
    "system_identification/test_logs.py",
    # what people look at
    "visualization/test_animate.py::test_what_cannot_be_drawn_is_named",
    "visualization/test_animate.py::test_trajectories_come_in_many_forms",
    "command_line/test_check.py",
)


def quick_name(node: str) -> str | None:
    """The entry of the quick run that a test belongs to: the beginning of its node id, a folder, file, test or case."""
    return next((name for name in QUICK if node.removeprefix("tests/").startswith(name)), None)


def is_quick(node: str) -> bool:
    """Whether a test is in the quick run."""
    return quick_name(node) is not None


def may_hold_quick_tests(path: str) -> bool:
    """Whether a folder or file is an entry of the quick run, holds one, or is within one."""
    within = path.removeprefix("tests").removeprefix("/")
    return any(name.startswith(within) or within.startswith(name.partition("::")[0]) for name in QUICK)
