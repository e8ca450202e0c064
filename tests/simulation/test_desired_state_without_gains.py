"""A desired state that no actuator follows is an error, one that some do not follow is warned of, by name."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.model.plants import hinge, inertia


def two_arms(**gains: float) -> mbjax.MultibodyModel:
    """An arm in each of two instances; `gains` are of the first joint of the left one."""
    plant = mbjax.MultibodyPlant(0.01)
    for instance in ("left", "right"):
        plant.add_model_instance(instance)
        for k, parent in enumerate(("world", f"{instance}_0")):
            plant.add_rigid_body(f"{instance}_{k}", inertia(), instance)
            plant.add_joint(hinge(f"{instance}_joint_{k}", parent, f"{instance}_{k}"))
            own = gains if instance == "left" and k == 0 else {}
            plant.add_joint_actuator(f"{instance}_motor_{k}", f"{instance}_joint_{k}", **own)
    return plant.finalize()


def advance(model: mbjax.MultibodyModel, **inputs: object) -> jax.Array:
    return mbjax.step(model, mbjax.default_state(model), mbjax.Inputs(**inputs))[0].v


def test_without_any_gains_it_is_an_error() -> None:
    model = two_arms()
    with pytest.raises(
        mbjax.ModelError, match=r"desired_state: no actuator follows it, for 'left_motor_0', .*kp and kd"
    ):
        advance(model, desired_state=jnp.zeros(8))
    with pytest.raises(mbjax.ModelError, match="no actuator follows it"):
        mbjax.rollout(model, mbjax.default_state(model), mbjax.Inputs(desired_state=jnp.zeros((3, 8))))
    with pytest.raises(mbjax.ModelError, match=r"set_controller_gains.*or leave it out"):
        mbjax.outputs(model, mbjax.default_state(model), mbjax.Inputs(desired_state=jnp.zeros(8)))


def test_an_instance_without_gains_is_an_error_another_is_not() -> None:
    model = two_arms(kp=5.0)
    with pytest.raises(mbjax.ModelError, match=r"instance_desired_state\['right'\]: no actuator follows it"):
        advance(model, instance_desired_state={"right": jnp.zeros(4)})


@pytest.mark.whole_run("desired states of the arm beside Drake")
def test_actuators_without_gains_among_others_are_named() -> None:
    model = two_arms(kd=5.0)
    with pytest.warns(
        mbjax.ModelWarning, match="no effect on actuators 'left_motor_1', 'right_motor_0', 'right_motor_1',"
    ):
        some = advance(model, desired_state=jnp.ones(8))
    with pytest.warns(
        mbjax.ModelWarning, match=r"instance_desired_state\['left'\] has no effect on actuators 'left_motor_1'"
    ):
        left = advance(model, instance_desired_state={"left": jnp.ones(4)})
    np.testing.assert_allclose(some, left, rtol=1e-6)
    full = mbjax.set_controller_gains(model, 1.0, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.eval_shape(lambda: advance(full, desired_state=jnp.ones(8)))


@pytest.mark.whole_run("desired states of the arm beside Drake, and an instance without gains, above")
def test_traced_gains_pass() -> None:
    """Whether they are zero is known only when the program runs: worlds of a batch may differ."""
    model = two_arms()

    def after(kp: jax.Array) -> jax.Array:
        m = mbjax.set_controller_gains(model, kp, 0.0, "left_motor_0")
        return advance(m, desired_state=jnp.ones(8))

    moved = jax.jit(jax.vmap(after))(jnp.array([0.0, 5.0]))
    assert not np.allclose(moved[0], moved[1])
    with pytest.raises(mbjax.ModelError, match="no actuator follows it"):  # the model is closed over, so it is known
        jax.jit(lambda target: advance(model, desired_state=target))(jnp.ones(8))
