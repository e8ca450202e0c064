"""Misuse of functions of a model, as by a new user: each message says what came, what was expected, and the way out."""

import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.gradients.test_transformations import OPTIONAL, arguments_of, functions_of_a_model, saturating_arm


@pytest.fixture(scope="module")
def model() -> mbjax.MultibodyModel:
    return saturating_arm(free_body=True)


def several(tree: object, size: int = 3) -> object:
    return jax.tree.map(lambda x: jnp.stack([x] * size), tree)


def after_step(model: mbjax.MultibodyModel, inputs: object = None, state: object = None) -> object:
    return mbjax.step(model, mbjax.default_state(model) if state is None else state, inputs)


def forces_on(bodies: list, F: object) -> mbjax.Inputs:
    return mbjax.Inputs(applied_spatial_forces=mbjax.AppliedSpatialForces(bodies, F))


def a_plant() -> mbjax.MultibodyPlant:
    return mbjax.MultibodyPlant(0.01)


MISUSES = {
    "batch of models": (lambda m, q: mbjax.mass_matrix(several(m), q), r"batch of models.*jax\.vmap"),
    "batch of models in jit": (lambda m, q: jax.jit(mbjax.mass_matrix)(several(m), q), r"batch of models.*jax\.vmap"),
    "batch of models, set": (lambda m, q: mbjax.set_mass(several(m), "b0", 1.0), r"set_mass\('b0'\): this is a batch"),
    "batch of states": (lambda m, q: after_step(m, None, several(mbjax.default_state(m))), r"state\.q has.*jax\.vmap"),
    "batch of times": (lambda m, q: after_step(m, None, mbjax.State(q, q[1:], jnp.zeros(3))), r"state\.time has shape"),
    "leaf of another length": (
        lambda m, q: mbjax.mass_matrix(eqx.tree_at(lambda m: m.parameters.body_mass, m, jnp.ones(9)), q),
        r"'body_mass' has shape \(9,\).*need \(4,\).*set_masses",
    ),
    "masses of another length": (
        lambda m, q: mbjax.set_masses(m, jnp.ones(5)),
        r"4 number\(s\) in kg, got shape \(5,\)",
    ),
    "tuple as state": (lambda m, q: after_step(m, None, (q, q)), r"must be a mbjax\.State, got tuple.*mbjax\.State\(q"),
    "result of a step": (
        lambda m, q: after_step(m, None, (mbjax.default_state(m), 0)),
        r"step returns \(state, outputs\)",
    ),
    "array as state": (lambda m, q: after_step(m, None, q), "must be a mbjax.State, got"),
    "index through jit": (
        lambda m, q: jax.jit(mbjax.set_mass)(m, 1, 1.0),
        "index, got an array. It is traced.*static_arg",
    ),
    "no point": (
        lambda m, q: mbjax.jacobian_spatial_velocity(m, q, "b0", None, "world", "world"),
        "p_BoBp_B must be a point or points of 3 coordinates in m, got None",
    ),
    "point of two coordinates": (
        lambda m, q: mbjax.points_positions(m, q, "b0", jnp.ones(2), "world"),
        r"p_BQi must be a point or points of 3 coordinates in m, got shape \(2,\)",
    ),
    "points where one is meant": (
        lambda m, q: mbjax.jacobian_spatial_velocity(m, q, "b0", jnp.ones((3, 3)), "world", "world"),
        r"p_BoBp_B must be one point \(3,\) in m, got shape \(3, 3\)",
    ),
    "points for one bias": (
        lambda m, q: mbjax.bias_spatial_acceleration(m, q, q[1:], "b0", jnp.ones((2, 3)), "world", "world"),
        r"p_BoBp_B must be one point \(3,\) in m",
    ),
    "names as a list": (lambda m, q: mbjax.mass(m, ["b0"]), r"by name or index, got \['b0'\]"),
    "short list as q": (lambda m, q: mbjax.mass_matrix(m, [0.0] * 5), r"q has shape \(5,\), the model needs \(9,\)"),
    "ragged list as q": (
        lambda m, q: mbjax.mass_matrix(m, [[0], [1, 2]]),
        r"q must be an array of 9 numbers, got \[\[0",
    ),
    "column as q": (lambda m, q: mbjax.mass_matrix(m, q[:, None]), r"q has shape \(9, 1\)"),
    "state as q": (lambda m, q: mbjax.mass_matrix(m, mbjax.default_state(m)), r"array of 9 numbers.*pass state\.q"),
    "None as q": (lambda m, q: mbjax.mass_matrix(m, None), "q must be an array of 9 numbers, got None"),
    "text as q": (lambda m, q: mbjax.mass_matrix(m, "zero"), "q must be an array of 9 numbers, got 'zero'"),
    "complex q": (lambda m, q: mbjax.mass_matrix(m, q.astype(complex)), "q must be an array of 9 numbers, got"),
    "plant as model": (
        lambda m, q: after_step(a_plant(), None, q),
        r"got a MultibodyPlant: pass what its finalize\(\)",
    ),
    "plant, of a frame": (
        lambda m, q: mbjax.relative_transform(a_plant(), q, 0, 1),
        r"relative_transform: .*finalize\(\)",
    ),
    "path as model": (
        lambda m, q: mbjax.default_state("arm.urdf"),
        r"default_state: .*the text 'arm\.urdf'.*mbjax\.load",
    ),
    "model and state swapped": (
        lambda m, q: mbjax.step(mbjax.default_state(m), m),
        "must be a mbjax.MultibodyModel, got St",
    ),
    "text as inputs": (lambda m, q: after_step(m, "go"), r"inputs must be mbjax\.Inputs\(.*got str"),
    "dict as inputs": (lambda m, q: after_step(m, {"actuation": q}), r"inputs must be mbjax\.Inputs\(.*got dict"),
    "state as inputs": (
        lambda m, q: after_step(m, mbjax.default_state(m)),
        r"inputs must be mbjax\.Inputs\(.*got State",
    ),
    "function as inputs": (lambda m, q: after_step(m, lambda state: 0.0), r"for rollout and simulate; here call it"),
    "pair as inputs": (lambda m, q: after_step(m, (q[:2], q[:4])), r"inputs\.actuation must be an array of 2 numbers"),
    "short inputs": (lambda m, q: after_step(m, q[:1]), r"inputs\.actuation has shape \(1,\), the model needs \(2,\)"),
    "array as forces": (
        lambda m, q: after_step(m, mbjax.Inputs(applied_spatial_forces=q)),
        r"AppliedSpatialForces\(bodies",
    ),
    "one force flat": (
        lambda m, q: after_step(m, forces_on(["b0"], q[:6])),
        r"F_Bq_W has shape \(6,\).*needs \(1, 6\)",
    ),
    "array as MultibodyForces": (
        lambda m, q: mbjax.inverse_dynamics(m, q, q[1:], q[1:], q[1:]),
        r"forces must be mbjax\.MultibodyForces.*got an array of shape.*Generalized forces alone go in by tau",
    ),
    "seed as key": (
        lambda m, q: mbjax.random_state(m, 3),
        r"key must be one of JAX, like jax\.random\.key\(0\), got a num",
    ),
    "fraction of a step": (
        lambda m, q: mbjax.rollout(m, mbjax.default_state(m), None, 2.5),
        "at least 0 and a whole number",
    ),
    "traced number of steps": (
        lambda m, q: jax.jit(lambda n: mbjax.rollout(m, mbjax.default_state(m), None, n))(3),
        "num_steps must be at least 0 and a whole number.*static_argnums",
    ),
    "q before the model": (
        lambda m, q: mbjax.mass_matrix(q, m),
        r"mass_matrix: the model must be a mbjax\.MultibodyModel",
    ),
    "q before the model, of poses": (
        lambda m, q: mbjax.body_poses_in_world(q, m),
        r"body_poses_in_world: the model must be",
    ),
    "number of steps as inputs": (
        lambda m, q: mbjax.rollout(m, mbjax.default_state(m), 10),
        r"the inputs are one number, 10, .*name it: num_steps=",
    ),
    "one row without a number of steps": (
        lambda m, q: mbjax.rollout(m, mbjax.default_state(m), q[:2]),
        r"inputs\.actuation has shape \(2,\) and no axis of steps\. Pass num_steps",
    ),
    "rows with a number of steps": (
        lambda m, q: mbjax.rollout(m, mbjax.default_state(m), jnp.zeros((5, 2)), 5),
        r"inputs\.actuation has shape \(5, 2\), but with num_steps one row .*Leave num_steps out",
    ),
    "inputs of unlike lengths": (
        lambda m, q: mbjax.rollout(
            m, mbjax.default_state(m), mbjax.Inputs(jnp.zeros((5, 2)), applied_generalized_force=jnp.zeros((4, 8)))
        ),
        r"same leading axis of steps, got inputs\.actuation of shape \(5, 2\), .*_force of shape \(4, 8\)",
    ),
    "leaves of integers": (lambda m, q: mbjax.astype(m, int), "dtype must be a float type, like jnp.float32, got int"),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_misuse_is_refused_in_words(model, misuse) -> None:
    act, message = MISUSES[misuse]
    with pytest.raises(mbjax.ModelError, match=message):
        act(model, mbjax.default_state(model).q)


def test_numbers_of_other_types_are_taken(model) -> None:
    q = mbjax.default_state(model).q
    expected = mbjax.potential_energy(model, q)
    for other in (np.asarray(q), q.tolist(), np.asarray(q).astype(int)):
        np.testing.assert_allclose(mbjax.potential_energy(model, other), expected, rtol=1e-6)


READ_NO_NUMBERS = {
    "add_in_force_in_world", "add_in_one_force", "force_in_world", "is_velocity_equal_to_qdot", "astype",
    "actuation_from_array", "positions_from_array", "velocities_from_array", "set_actuation_in_array",
    "set_positions_in_array", "set_velocities_in_array", "free_body_spatial_velocity", "set_free_body_spatial_velocity",
    "actuator_selector_matrix", "state_selector_matrix", "positions", "positions_and_velocities", "set_positions",
    "set_positions_and_velocities", "set_velocities", "velocities", "bound_constraints",
}  # fmt: skip
BUILT_OTHERWISE = {"keyframe_state", "set_mimic", "set_contact_smoothing_length"}
TESTED_ELSEWHERE = {  # with arguments of their own; `save` takes a batch
    "drake_state", "state_from_drake", "pinocchio_state", "state_from_pinocchio", "inputs_from_mujoco", "plot",
    "randomize", "rollout_policy", "save", "to_mjcf", "to_sdf", "to_urdf",
}  # fmt: skip
OF_A_CONVEX = {"set_collision_geometry_vertices", "collision_geometry_vertices"}


def test_every_function_refuses_a_batch_of_models(model) -> None:
    """Before anything is computed; but for those that read none of the model's numbers."""
    state, batch, silent = mbjax.default_state(model), several(model), []
    for name, function in functions_of_a_model().items():
        if name in READ_NO_NUMBERS | BUILT_OTHERWISE | TESTED_ELSEWHERE | OF_A_CONVEX:
            continue
        parameters = inspect.signature(function).parameters.values()
        given = arguments_of(model, state.q, state.v) | {"model": batch}
        wanted = [p.name for p in parameters if p.default is p.empty or p.name in OPTIONAL]
        with pytest.raises(mbjax.ModelError) as caught:
            function(**{p: given[p] for p in wanted})
        silent += [] if "batch of models" in str(caught.value) else [(name, str(caught.value))]
    assert not silent


def test_names_are_static_arguments_of_jit(model) -> None:
    """As docs/usage/conventions.md says: JAX itself refuses text as a traced argument."""
    by_name = jax.jit(mbjax.set_mass, static_argnames="body")
    assert by_name(model, "b1", 2.5).parameters.body_mass[1] == 2.5


def functions_that_take_a_model() -> list[str]:
    """Public functions whose first argument is a model and that need no keywords."""
    signatures = {name: inspect.signature(f) for name, f in vars(mbjax).items() if inspect.isfunction(f)}
    of_a_model = {
        name: list(x.parameters.values()) for name, x in signatures.items() if "model" in list(x.parameters)[:1]
    }
    return [
        name
        for name, all_of in of_a_model.items()
        if not any(x.kind is x.KEYWORD_ONLY and x.default is x.empty for x in all_of)
        and name != "astype"  # which takes any tree, as that of a gradient
    ]


def test_another_argument_in_the_models_place_is_named(model: mbjax.MultibodyModel) -> None:
    """As where the first two arguments are swapped."""
    names = functions_that_take_a_model()
    assert len(names) > 180
    for name in names:
        function = getattr(mbjax, name)
        needed = [x for x in inspect.signature(function).parameters.values() if x.default is x.empty]
        with pytest.raises(mbjax.ModelError, match=r"[mM]odel|State|joints=|trajectory"):
            function(*[1.0, model, *[1.0] * len(needed)][: len(needed)])


def test_jacobians_of_points_on_any_leading_axes(model: mbjax.MultibodyModel) -> None:
    q, points = mbjax.default_positions(model), jnp.arange(12.0).reshape(2, 2, 3)
    found = mbjax.jacobian_translational_velocity(model, q, "b1", points, "world", "world")
    for i in range(2):
        one = mbjax.jacobian_spatial_velocity(model, q, "b1", points[i, 1], "world", "world")[3:]
        np.testing.assert_allclose(found[i, 1], one, atol=1e-13)
