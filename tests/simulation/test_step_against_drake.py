"""One discrete step against Drake's SAP plant, without contact: trees of all joints, dampers, PD actuators."""

import jax
import jax.numpy as jnp
import numpy as np
import pydrake.multibody.plant as drake_plant
import pytest
from pydrake.multibody.parsing import Parser as DrakeParser
from pydrake.multibody.tree import PdControllerGains
from pydrake.systems.analysis import Simulator

import mbjax
from mbjax import reference_models
from tests.models import ALL_KINDS, Twin, make_twin, random_tree, relative_error

DT = 1e-3
step = jax.jit(mbjax.step)


def drake_step(twin: Twin, context: object) -> np.ndarray:
    """Drake's next velocities, in our order."""
    Simulator(twin.plant, context).AdvanceTo(DT)
    return twin.plant.GetVelocities(context)[np.argsort(twin.to_drake_v)]


REVOLUTE = pytest.mark.whole_run("the arm, below, and every kind of joint at Drake's ports")


@pytest.mark.whole_run("every kind of joint at Drake's ports in test_ports_against_drake.py, and the arm, below")
@pytest.mark.parametrize(
    ("seed", "kinds"),
    [
        *(pytest.param(seed, ("revolute",) * 6, marks=REVOLUTE) for seed in range(2)),
        pytest.param(2, ("revolute", "prismatic", "screw"), marks=pytest.mark.whole_run("every kind at Drake's ports")),
        (0, ALL_KINDS),
    ],
    ids=["revolute", "revolute again", "one degree of freedom", "every joint"],
)
def test_damped_trees(seed: int, kinds: tuple[str, ...]) -> None:
    """Gravity, Coriolis forces and implicit joint damping: next velocities to 1e-8."""
    twin = random_tree(seed, kinds, DT)
    errors = []
    for k in range(5):
        state = mbjax.random_state(twin.model, jax.random.key(k))
        ours = step(twin.model, state)[0].v
        assert relative_error(ours, state.v) > 1e-3
        errors.append(relative_error(ours, drake_step(twin, twin.context(state.q, state.v))))
    print(f"{kinds}: worst of 5 states {max(errors):.1e}")
    assert max(errors) < 1e-8


@pytest.fixture(scope="module")
def arms() -> Twin:
    """The arm with PD gains and rotor inertias in both."""
    theirs = drake_plant.MultibodyPlant(DT)
    theirs.set_discrete_contact_approximation(drake_plant.DiscreteContactApproximation.kSap)
    DrakeParser(theirs).AddModels(str(reference_models.path("arm")))
    for index in theirs.GetJointActuatorIndices():
        theirs.get_joint_actuator(index).set_controller_gains(PdControllerGains(p=300.0, d=20.0))
    theirs.Finalize()
    ours = mbjax.load(reference_models.path("arm"), time_step=DT)
    return make_twin(mbjax.set_controller_gains(ours, 300.0, 20.0), theirs)


@pytest.mark.parametrize("reach", [0.05, 5.0], ids=["within limits", "some at limits"])
def test_pd_actuators_of_the_arm(arms: Twin, reach: float) -> None:
    """Next velocities to 1e-8, within effort limits and with several actuators at theirs."""
    model, instance = arms.model, arms.plant.GetModelInstanceByName("arm")
    order = [arms.plant.get_joint_actuator(i).name() for i in arms.plant.GetJointActuatorIndices()]
    assert tuple(order) == model.actuator_names
    rng = np.random.default_rng(0)
    errors, saturated = [], 0
    for _ in range(5):
        q, v = 0.3 * rng.normal(size=7), rng.normal(size=7)
        target = np.concatenate([q + reach * rng.normal(size=7), v])
        u = rng.normal(size=7)
        context = arms.context(q, v)
        arms.plant.get_desired_state_input_port(instance).FixValue(context, target)
        arms.plant.get_actuation_input_port(instance).FixValue(context, u)
        inputs = mbjax.Inputs(actuation=jnp.asarray(u), desired_state=jnp.asarray(target))
        after, outputs = step(model, mbjax.State(jnp.asarray(q), jnp.asarray(v), jnp.zeros(())), inputs)
        saturated += int((np.abs(outputs.net_actuation) == model.parameters.effort_limit).sum())
        errors.append(relative_error(after.v, drake_step(arms, context)))
    print(f"arm, reach {reach}: worst {max(errors):.1e}, {saturated} efforts at their limits")
    assert max(errors) < 1e-8
    assert (saturated > 3) == (reach > 1.0)
