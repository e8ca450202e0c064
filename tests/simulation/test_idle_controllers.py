"""Gains without a desired state do nothing: a robot that nothing drives is warned of, by name, with the way out."""

import warnings

import jax
import jax.numpy as jnp
import pytest

import mbjax
from tests.model.plants import hinge, inertia


def one_arm(time_step: float, kp: float) -> mbjax.MultibodyModel:
    plant = mbjax.MultibodyPlant(time_step)
    plant.add_rigid_body("arm", inertia())
    plant.add_joint(hinge("joint", "world", "arm"))
    plant.add_joint_actuator("motor", "joint", kp=kp)
    return plant.finalize()


def advance(model: mbjax.MultibodyModel, inputs: object) -> None:
    """All three, as programs that are traced and not run."""
    jax.eval_shape(lambda: mbjax.step(model, mbjax.default_state(model), inputs)[0])


CALLS = {
    "step": advance,
    "rollout": lambda model, inputs: jax.eval_shape(
        lambda: mbjax.rollout(model, mbjax.default_state(model), inputs, num_steps=2)
    ),
    "simulate": lambda model, inputs: jax.eval_shape(
        lambda: mbjax.simulate(model, mbjax.default_state(model), inputs, save_at=jnp.arange(2.0))
    ),
}
FORCE = mbjax.Inputs(applied_generalized_force=jnp.ones(1))


@pytest.mark.parametrize(
    "call", ["step", "rollout", pytest.param("simulate", marks=pytest.mark.whole_run("step, rollout"))]
)
def test_controllers_that_nothing_tells_where_to_go_are_warned_of(call: str) -> None:
    model = one_arm(0.0 if call == "simulate" else 0.01, kp=5.0)
    for inputs in (None, FORCE):
        with pytest.warns(
            mbjax.ModelWarning, match=rf"{call}: actuators 'motor' have gains.*Inputs\(desired_state"
        ) as w:
            CALLS[call](model, inputs)
        assert w[0].filename == __file__


def test_what_is_said_is_not_warned_of() -> None:
    """A desired state, efforts, traced gains, and actuators that have none."""
    model = one_arm(0.01, kp=5.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        advance(model, mbjax.Inputs(desired_state=jnp.ones(2)))
        advance(model, jnp.zeros(1))
        advance(one_arm(0.01, kp=0.0), None)
        jax.eval_shape(lambda kp: advance(mbjax.set_controller_gains(model, kp, 0.0), None), jnp.ones(()))


def test_a_servo_of_mujoco_names_its_way_out() -> None:
    text = (
        '<mujoco><worldbody><body><joint name="hinge"/><geom size="0.1"/></body></worldbody>'
        '<actuator><position name="servo" joint="hinge" kp="3"/></actuator></mujoco>'
    )
    model = mbjax.load(text, time_step=0.01)
    with pytest.warns(mbjax.ModelWarning, match=r"'servo' have gains.*ctrl = 0.*inputs_from_mujoco"):
        advance(model, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        advance(model, mbjax.inputs_from_mujoco(model, jnp.zeros(1)))
