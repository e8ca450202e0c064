"""Rollouts: the memory of their gradients, one program for all numbers and batches of models, and their inputs."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import mbjax
from mbjax import reference_models
from mbjax.simulation.rollout import checkpoint_interval
from tests.gradients.checks import WHOLE_RUN
from tests.models import relative_error

MEGABYTE = 1e6


@functools.cache
def arm() -> mbjax.MultibodyModel:
    return mbjax.load(reference_models.path("arm"), time_step=0.002)


@functools.cache
def acrobot() -> mbjax.MultibodyModel:
    return mbjax.load(reference_models.path("acrobot"), time_step=0.01)


def start_of(model: mbjax.MultibodyModel) -> mbjax.State:
    return mbjax.State(jnp.full(model.num_positions, 0.3), jnp.zeros(model.num_velocities), jnp.zeros(()))


step = jax.jit(mbjax.step)


@pytest.mark.whole_run("the sizes of programs in test_program_size")
def test_memory_of_a_gradient_over_a_thousand_steps(record_property) -> None:
    """Seven joints, 1000 steps, gradient for all controls and all numbers of the model."""
    model = arm()
    controls = jnp.asarray(np.random.default_rng(0).normal(size=(1000, 7)))

    def cost(checkpoint: object, model: mbjax.MultibodyModel, controls: jax.Array) -> jax.Array:
        final = mbjax.rollout(model, start_of(model), controls, checkpoint=checkpoint).final_state
        return jnp.sum(final.q**2) + jnp.sum(final.v**2)

    results, sizes = [], []
    for checkpoint in (None, "sqrt"):
        gradient = jax.jit(jax.value_and_grad(functools.partial(cost, checkpoint), (0, 1)))
        compiled = gradient.lower(model, controls).compile()
        sizes.append(compiled.memory_analysis().temp_size_in_bytes)
        results.append(ravel_pytree(compiled(model, controls))[0])
    record_property("temporary bytes", str(sizes))
    print("temporary bytes, plain and checkpointed:", sizes)
    assert sizes[0] <= 5 * MEGABYTE
    assert sizes[1] <= 0.5 * MEGABYTE
    assert np.abs(results[0]).max() > 1e-3
    assert relative_error(results[1], results[0]) < 1e-12


def test_one_program_for_all_steps_and_all_numbers() -> None:
    """init → step → step, then with new mass, gravity and time step: traced once."""
    traces = []

    @jax.jit
    def counted(model: mbjax.MultibodyModel, state: mbjax.State, inputs: jax.Array) -> mbjax.State:
        traces.append(1)
        return mbjax.step(model, state, inputs)[0]

    model, u = arm(), jnp.ones(7)
    state = counted(model, mbjax.default_state(model), u)
    state = counted(model, state, u)
    changed = mbjax.set_mass(model, "forearm", 3.0)
    changed = mbjax.set_gravity(changed, [0.0, 0.5, -3.7])
    changed = mbjax.set_time_step(changed, 0.001)
    after = counted(changed, state, u)
    assert len(traces) == 1
    assert counted._cache_size() == 1
    np.testing.assert_allclose(after.time, 0.005, rtol=1e-12)


def build(mass: float, sides: np.ndarray, offset: np.ndarray, gravity: np.ndarray) -> mbjax.MultibodyModel:
    """A hinged box with a slide at `offset`, and a free box."""
    plant = mbjax.MultibodyPlant(0.01)
    plant.set_gravity(gravity)
    X = np.eye(4)
    X[:3, 3] = offset
    for i in range(3):
        box = mbjax.SpatialInertia.solid_box_with_mass(mass * (1 + i), *sides)
        plant.add_rigid_body(f"b{i}", box.shift(np.array([0.0, 0.1, 0.2])))
    plant.add_joint(mbjax.RevoluteJoint("hinge", "world", "b0", axis=[0, 1, 0], damping=0.1))
    plant.add_joint(mbjax.PrismaticJoint("slide", "b0", "b1", axis=[1, 0, 0], X_PF=X, damping=0.2))
    plant.add_joint_actuator("motor", "hinge")
    return plant.finalize()


@pytest.mark.whole_run("setters give the models built so, in tests/model; worlds that setters made, in randomize")
def test_a_batch_of_models_equals_models_built_one_by_one() -> None:
    """1024 models made by setters under vmap, in one program; 24 of them are also built from the start.

    They differ in mass, inertia, a joint's offset and gravity; accelerations and one step agree to 1e-12.
    """
    rng = np.random.default_rng(1)
    n, sample = 1024, np.linspace(0, 1023, 24).astype(int)
    masses, sides = rng.uniform(0.5, 2.0, n), rng.uniform(0.2, 0.6, (n, 3))
    offsets, gravities = rng.normal(size=(n, 3)), 3.0 * rng.normal(size=(n, 3))
    base = build(masses[0], sides[0], offsets[0], gravities[0])
    state = mbjax.random_state(base, jax.random.key(0))
    tau, u = jnp.asarray(rng.normal(size=base.num_velocities)), jnp.ones(1)
    traces = []

    def answers(model: mbjax.MultibodyModel) -> list:
        traces.append(1)
        forces = mbjax.force_elements_contribution(model, state.q, state.v)
        vdot = mbjax.forward_dynamics(model, state.q, state.v, tau, forces)
        after, _ = mbjax.step(model, state, u)
        return [vdot, after.q, after.v, mbjax.mass_matrix(model, state.q)]

    def changed(mass: jax.Array, sides: jax.Array, offset: jax.Array, gravity: jax.Array) -> list:
        model = base
        for i in range(3):
            box = mbjax.SpatialInertia.solid_box_with_mass(mass * (1 + i), *sides).shift(jnp.array([0.0, 0.1, 0.2]))
            model = mbjax.set_spatial_inertia_in_body_frame(model, f"b{i}", box)
        pose = mbjax.RigidTransform(jnp.eye(3), offset)
        model = mbjax.set_frame_pose(model, "slide_parent", pose)
        return answers(mbjax.set_gravity(model, gravity))

    batch = jax.jit(jax.vmap(changed))
    many = batch(*(jnp.asarray(x) for x in (masses, sides, offsets, gravities)))
    assert batch._cache_size() == 1
    assert len(traces) == 1
    alone = jax.jit(answers)
    for i in sample:
        one = alone(build(masses[i], sides[i], offsets[i], gravities[i]))
        for got, expected in zip(many, one, strict=True):
            assert relative_error(got[i], expected) < 1e-12
    assert alone._cache_size() == 1  # models built apart share one program
    assert len({float(x) for x in many[0][:, 0]}) == n


def test_a_rollout_is_a_loop_of_steps() -> None:
    model = acrobot()
    controls = jnp.asarray(np.random.default_rng(2).normal(size=(20, 1)))
    trajectory = jax.jit(mbjax.rollout)(model, start_of(model), controls)
    state = start_of(model)
    for k in range(20):
        np.testing.assert_allclose(trajectory.q[k], state.q, rtol=0, atol=1e-13)
        np.testing.assert_allclose(trajectory.v[k], state.v, rtol=0, atol=1e-13)
        np.testing.assert_allclose(trajectory.time[k], k * 0.01, rtol=0, atol=1e-13)
        state, outputs = step(model, state, controls[k])
        np.testing.assert_allclose(trajectory.generalized_acceleration[k], outputs.generalized_acceleration, atol=1e-11)
        np.testing.assert_allclose(trajectory.net_actuation[k], outputs.net_actuation, atol=1e-11)
    np.testing.assert_allclose(trajectory.final_state.q, state.q, rtol=0, atol=1e-13)


@pytest.mark.whole_run("a rollout is a loop of steps, above, and inputs by a policy in test_rollout_policy.py")
def test_constant_inputs_and_inputs_from_a_function() -> None:
    """Held inputs act in every step; a function sees the state of each step. Whole run: equal rows, and no inputs."""
    model, n = acrobot(), 12
    start = start_of(model)
    held, state = mbjax.rollout(model, start, jnp.array([0.7]), n), start
    for _ in range(n):
        state, _ = step(model, state, jnp.array([0.7]))
    np.testing.assert_allclose(held.final_state.q, state.q, rtol=0, atol=1e-13)

    def feedback(state: mbjax.State) -> mbjax.Inputs:
        return mbjax.Inputs(actuation=-2.0 * state.q[1:] - 0.3 * state.v[1:])

    run = mbjax.rollout(model, start, feedback, n)
    state = start
    for _ in range(n):
        state, _ = step(model, state, feedback(state).actuation)
    np.testing.assert_allclose(run.final_state.q, state.q, rtol=0, atol=1e-13)
    np.testing.assert_allclose(run.net_actuation, -2.0 * run.q[:-1, 1:] - 0.3 * run.v[:-1, 1:], rtol=0, atol=1e-13)
    if not WHOLE_RUN:
        return
    by_row = mbjax.rollout(model, start, jnp.full((n, 1), 0.7))
    np.testing.assert_allclose(held.q, by_row.q, rtol=0, atol=1e-14)
    idle = mbjax.rollout(model, start, None, 3)
    np.testing.assert_array_equal(idle.net_actuation, 0.0)


@pytest.mark.whole_run("a rollout is a loop of steps, above, and bad numbers of steps and chunks, below")
@pytest.mark.slow
def test_no_steps_and_chunks_that_do_not_divide(request: pytest.FixtureRequest) -> None:
    model = acrobot()
    start = start_of(model)
    none = mbjax.rollout(model, start, None, 0)
    assert none.q.shape == (1, 2)
    assert none.net_actuation.shape == (0, 1)
    controls = jnp.asarray(np.random.default_rng(3).normal(size=(11, 1)))
    whole = mbjax.rollout(model, start, controls)
    for checkpoint in ("sqrt",) if request.config.getoption("--trimmed") else (1, 4, 11, 50, "sqrt"):
        chunked = mbjax.rollout(model, start, controls, checkpoint=checkpoint)
        assert chunked.q.shape == whole.q.shape
        np.testing.assert_allclose(chunked.q, whole.q, rtol=0, atol=1e-14)
        np.testing.assert_allclose(chunked.net_actuation, whole.net_actuation, rtol=0, atol=1e-14)


PUSHES = mbjax.AppliedSpatialForces(["Link1"], np.ones((3, 1, 6)), np.zeros((1, 3)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(inputs=None), "num_steps"),
        (dict(inputs=lambda state: None), "num_steps"),
        (dict(inputs=None, num_steps=-1), "num_steps must be at least 0"),
        (dict(inputs=mbjax.Inputs(jnp.ones((3, 1)), applied_generalized_force=jnp.ones((4, 2)))), "same leading axis"),
        (dict(inputs=mbjax.Inputs(applied_generalized_force=jnp.ones(2))), "generalized_force .*no axis of steps"),
        (dict(inputs=mbjax.Inputs(applied_generalized_force=jnp.ones((3, 2))), num_steps=3), "Leave num_steps out"),
        (dict(inputs=mbjax.Inputs(instance_actuation={"acrobot": jnp.ones(1)})), r"\['acrobot'\] .*no axis of steps"),
        (dict(inputs=mbjax.Inputs(applied_spatial_forces=PUSHES)), r"p_BoBq_B has shape \(1, 3\) and no axis of steps"),
        (dict(inputs=mbjax.Inputs(node_forces=[["x"]])), "node_forces must be an array of numbers"),
        (dict(inputs=jnp.ones(())), "leading axis"),
        (dict(inputs=jnp.ones((3, 2))), "actuation"),
        (dict(inputs=jnp.ones(2), num_steps=3), "actuation"),
        (dict(inputs=None, num_steps=3, checkpoint=0), "checkpoint"),
        (dict(inputs=None, num_steps=3, checkpoint="all"), "checkpoint"),
        (dict(inputs=None, num_steps=3, checkpoint=True), "checkpoint"),
    ],
)
def test_bad_arguments_are_named(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mbjax.rollout(acrobot(), start_of(acrobot()), **arguments)


def test_the_number_of_steps_between_states_may_be_numpys() -> None:
    assert checkpoint_interval(np.int64(2), 5) == 2


def test_states_of_another_size_are_refused() -> None:
    with pytest.raises(ValueError, match=r"state\.q"):
        mbjax.rollout(acrobot(), start_of(arm()), None, 2)


def test_a_continuous_model_has_no_rollout() -> None:
    model = mbjax.load(reference_models.path("pendulum"))
    with pytest.raises(mbjax.ModelError, match="time_step"):
        mbjax.rollout(model, mbjax.default_state(model), None, 2)
