"""`diagnose` with a state: bad coordinates and inputs, and the first quantity of a step that is not finite."""

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.inspection.diagnose import first_bad, mass_matrix_stages
from tests.gradients.checks import WHOLE_RUN
from tests.model.plants import hinge, inertia

NAN = np.nan


@pytest.fixture(scope="module")
def model() -> mbjax.MultibodyModel:
    plant = mbjax.MultibodyPlant(0.01)
    plant.add_rigid_body("upper", inertia())
    plant.add_rigid_body("lower", inertia())
    plant.add_rigid_body("crate", inertia())
    plant.add_joint(hinge("shoulder", "world", "upper"))
    plant.add_joint(hinge("elbow", "upper", "lower"))
    plant.add_joint_actuator("motor", "elbow")
    plant.add_force_element(mbjax.LinearSpringDamper("upper", [0.1, 0, 0], "crate", [0.0, 0, 0.1], 0.1, 5.0))
    return plant.finalize()


@pytest.mark.whole_run("findings of steps that are not")
def test_a_healthy_step_has_no_findings(model) -> None:
    assert not mbjax.diagnose(model, mbjax.default_state(model), jnp.array([1.0]))


def test_the_first_quantity_that_is_not_finite(model) -> None:
    """Whole run: also an effort, for which a step is compiled."""
    state = mbjax.default_state(model)
    elbow = "DefaultModelInstance_elbow"
    bad_q = mbjax.State(state.q.at[1].set(NAN), state.v, state.time)
    found = mbjax.diagnose(model, bad_q).findings
    assert found[0] == f"state.q of '{elbow}_q' is nan; must be finite."
    assert "first quantity of a step that is not finite is the pose of body 'lower'" in found[-1]
    bad_v = mbjax.State(state.q, state.v.at[1].set(np.inf), state.time)
    assert "spatial velocity of body 'lower'" in str(mbjax.diagnose(model, bad_v))
    heavy = eqx.tree_at(lambda m: m.parameters.body_mass, model, model.parameters.body_mass.at[1].set(NAN))
    assert "mass matrix in the row of velocity" in str(mbjax.diagnose(heavy, state))
    spring = eqx.tree_at(lambda m: m.force_elements[0].stiffness, model, jnp.asarray(NAN))
    assert "force of gravity and force elements on body 'upper'" in str(mbjax.diagnose(spring, state))
    if not WHOLE_RUN:
        return  # what else a step is made of goes the same way
    found = str(mbjax.diagnose(model, state, jnp.array([NAN])))
    assert "inputs.actuation is not finite at [0]" in found
    assert "effort of actuator 'motor'" in found


def test_a_mass_matrix_that_is_not_definite_is_named(model) -> None:
    light = mbjax.set_mass(model, "lower", 0.0)
    assert "along velocity 'DefaultModelInstance_elbow_w', is not positive definite" in str(
        mbjax.diagnose(light, mbjax.default_state(model))
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_masses_and_inertias_of_unlike_sizes_are_definite(dtype) -> None:
    """2 t that slides and a small wheel are no singular matrix; two velocities that move the same body are."""
    slide, wheel = "slide_v", "wheel_w"
    stages = list(mass_matrix_stages(np.diag([2000.0, 6.7e-7]).astype(dtype), [slide, wheel]))
    assert [stage.what for stage in stages] == ["mass matrix in the row of velocity"]
    same = np.array([[2000.0, 2e-2], [2e-2, 2e-7]], dtype)
    (said,) = first_bad(list(mass_matrix_stages(same, [slide, wheel]))[1])
    assert re.search(
        r"smallest eigenvalue is \S+( \(0 but for rounding\))? once scaled to a diagonal of 1, along velocity", said
    )
    assert said.endswith("is not positive definite: no acceleration follows from it.")
    negative = np.diag([2000.0, -1e-9]).astype(dtype)
    (said,) = first_bad(list(mass_matrix_stages(negative, [slide, wheel]))[1])
    assert "whose diagonal entry is -1e-09, along velocity 'wheel_w', is not positive definite" in said


@pytest.mark.whole_run("numbers that are not finite, and what they spoil, above")
def test_zero_quaternions_and_useless_targets_are_named(model) -> None:
    state = mbjax.default_state(model)
    lost = mbjax.State(jnp.zeros_like(state.q), state.v, state.time)
    found = str(mbjax.diagnose(model, lost, mbjax.Inputs(desired_state=jnp.zeros(2))))
    assert "the quaternion of joint 'crate' in state.q is zero" in found
    assert "no actuator follows it, for 'motor' have no controller" in found


def test_what_cannot_be_diagnosed_is_refused(model) -> None:
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), model)
    with pytest.raises(mbjax.ModelError, match=r"diagnose: this is a batch of models.*jax\.vmap"):
        mbjax.diagnose(batch)
    with pytest.raises(mbjax.ModelError, match=r"diagnose: the numbers are traced.*model_status"):
        jax.jit(lambda m: mbjax.diagnose(m) and 0)(model)
