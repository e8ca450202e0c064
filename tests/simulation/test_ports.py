"""How inputs are given and outputs read: sums, controllers on and off, sizes, and the cost of what nobody reads."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.simulation.actuation import calc_actuator_law, saturate
from mbjax.simulation.ports import as_inputs
from mbjax.simulation.step import advance
from tests.test_program_size import count_operations


def two_arms(time_step: float = 0.01) -> mbjax.MultibodyModel:
    """Two instances of one driven link each, and one without actuators."""
    plant = mbjax.MultibodyPlant(time_step)
    for name in ("left", "right"):
        instance = plant.add_model_instance(name)
        inertia = mbjax.SpatialInertia.solid_box_with_mass(1.0, 0.3, 0.2, 0.1)
        plant.add_rigid_body(f"{name}_link", inertia, instance)
        plant.add_joint(mbjax.RevoluteJoint(f"{name}_joint", "world", f"{name}_link", axis=[0.0, 1.0, 0.0]))
        plant.add_joint_actuator(f"{name}_motor", f"{name}_joint", 4.0, kp=20.0, kd=2.0)
    plant.add_rigid_body("ball", mbjax.SpatialInertia.solid_box_with_mass(1.0, 0.3, 0.2, 0.1))
    return plant.finalize()


@pytest.fixture(scope="module")
def model() -> mbjax.MultibodyModel:
    return two_arms()


def net_actuation(model: mbjax.MultibodyModel, inputs: mbjax.Inputs) -> jax.Array:
    """Efforts in a step that changes no velocity, from q = (0.1, 0.2), v = (1, -1)."""
    q = mbjax.default_state(model).q.at[jnp.array([0, 1])].set(jnp.array([0.1, 0.2]))
    v = jnp.zeros(model.num_velocities).at[jnp.array([0, 1])].set(jnp.array([1.0, -1.0]))
    law = calc_actuator_law(model, as_inputs(model, inputs), q, v, model.time_step)
    return saturate(law.u_0, model.parameters.effort_limit)


def test_actuation_is_summed(model) -> None:
    both = mbjax.Inputs(
        actuation=jnp.array([1.0, -1.0]),
        instance_actuation={"right": jnp.array([0.5]), "left": jnp.array([0.25]), "DefaultModelInstance": jnp.zeros(0)},
    )
    np.testing.assert_array_equal(net_actuation(model, both), [1.25, -0.5])
    np.testing.assert_array_equal(net_actuation(model, mbjax.Inputs(instance_actuation={3: jnp.array([9.0])})), [0, 4])


def test_controllers_without_desired_state_are_off(model) -> None:
    """As if their gains were zero; the desired state of all instances is the one of the plant."""
    desired, u = jnp.array([0.3, 0.4, 0.0, 0.5]), jnp.array([0.1, 0.2])
    of_plant = net_actuation(model, mbjax.Inputs(actuation=u, desired_state=desired))
    per_instance = {"left": desired[jnp.array([0, 2])], "right": desired[jnp.array([1, 3])]}
    of_instances = net_actuation(model, mbjax.Inputs(actuation=u, instance_desired_state=per_instance))
    np.testing.assert_allclose(of_instances, of_plant, rtol=1e-14)
    assert np.all(np.abs(np.asarray(of_plant) - u) > 0.1)

    right = net_actuation(model, mbjax.Inputs(actuation=u, instance_desired_state={"right": per_instance["right"]}))
    np.testing.assert_allclose(right, [0.1, of_plant[1]], rtol=1e-14)
    assert list(mbjax.has_controller(model)) == [True, True]
    without = mbjax.set_controller_gains(model, 0.0, 0.0, "left_motor")
    assert list(mbjax.has_controller(without)) == [False, True]
    assert not mbjax.has_controller(without, "left_motor")
    np.testing.assert_array_equal(mbjax.controller_gains(without, "right_motor"), [20.0, 2.0])
    of_one = net_actuation(without, mbjax.Inputs(actuation=u, desired_state=desired))
    np.testing.assert_allclose(of_one, right, rtol=1e-14)


FORCE = [[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (lambda: jnp.zeros(3), r"inputs\.actuation has shape \(3,\), the model needs \(2,\)"),
        (lambda: mbjax.Inputs(desired_state=jnp.zeros(2)), r"desired_state has shape \(2,\), the model needs \(4,\)"),
        (lambda: mbjax.Inputs(applied_generalized_force=jnp.zeros(2)), r"the model needs \(8,\)"),
        (lambda: mbjax.Inputs(instance_actuation={"left": jnp.zeros(2)}), r"\['left'\] has shape \(2,\)"),
        (lambda: mbjax.Inputs(instance_desired_state={"left": jnp.zeros(1)}), r"the model needs \(2,\)"),
        (lambda: mbjax.Inputs(instance_actuation={"lefd": jnp.zeros(1)}), "Did you mean 'left'"),
        (lambda: mbjax.Inputs(instance_actuation={"left": jnp.zeros(1), 3: jnp.zeros(1)}), "all by index"),
        (lambda: mbjax.Inputs(instance_actuation=jnp.zeros(2)), "must be a dict"),
        (lambda: mbjax.Inputs(None, jnp.zeros(4), None, None, None, {"left": jnp.zeros(2)}), "not both"),
        (lambda: forces(["ball"], np.zeros((2, 6))), r"F_Bq_W has shape \(2, 6\), the model needs \(1, 6\)"),
        (lambda: forces(["ball"], FORCE, [0.0, 0.0, 1.0]), r"p_BoBq_B has shape \(3,\), the model needs \(1, 3\)"),
        (lambda: forces(["bal"], FORCE), "Did you mean 'ball'"),
        (lambda: forces("ball", FORCE), "must be a list of bodies"),
    ],
)
def test_what_does_not_fit_is_refused(model, inputs, message: str) -> None:
    with pytest.raises(mbjax.ModelError, match=message):
        mbjax.step(model, mbjax.default_state(model), inputs())


def forces(*arguments) -> mbjax.Inputs:
    return mbjax.Inputs(applied_spatial_forces=mbjax.AppliedSpatialForces(*arguments))


def pendulum() -> mbjax.MultibodyModel:
    return mbjax.load(mbjax.reference_models.path("pendulum"), time_step=0.01)


def test_ports_that_nobody_reads_cost_nothing() -> None:
    """A compiled step whose outputs are dropped computes as much as one without output ports."""
    model = pendulum()

    def operations(f) -> float:
        return jax.jit(f).lower(model, mbjax.default_state(model)).compile().cost_analysis()["flops"]

    bare = operations(lambda model, state: advance(model, state, as_inputs(model, None))[0])
    assert operations(lambda model, state: mbjax.step(model, state)[0]) <= 1.01 * bare
    assert operations(mbjax.step) > 1.2 * bare


def test_rollouts_do_not_carry_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program of a rollout is that of the bare step, but for its scan, and for what makes a kernel of it."""
    monkeypatch.setenv("MBJAX_ONE_KERNEL", "0")
    model = pendulum()
    state = mbjax.default_state(model)
    bare = jax.jit(lambda model, state: advance(model, state, as_inputs(model, None))[0]).lower(model, state)
    rolled = jax.jit(lambda model, state: mbjax.rollout(model, state, num_steps=9)).lower(model, state)
    assert count_operations(rolled.as_text()) < count_operations(bare.as_text()) + 50


def test_inputs_of_instances_per_step(model) -> None:
    """In a rollout each array has a leading axis of steps, those of instances too."""
    u, x = jnp.array([[1.0], [2.0], [3.0]]), jnp.zeros((3, 2))
    inputs = mbjax.Inputs(instance_actuation={"left": u}, instance_desired_state={"right": x})
    trajectory = jax.jit(mbjax.rollout)(model, mbjax.default_state(model), inputs)
    np.testing.assert_array_equal(trajectory.net_actuation, np.concatenate([u, np.zeros((3, 1))], axis=1))
    assert np.all(np.asarray(trajectory.v)[1:, 0] != 0.0)
