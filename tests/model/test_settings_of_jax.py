"""Settings of JAX that users switch on: no promotion of ranks, no silent transfers, 64 bits switched off again."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import trajectory_optimization
from tests.constraints.mechanisms import four_bar
from tests.gradients.checks import WHOLE_RUN


@pytest.fixture(scope="module")
def arm() -> mbjax.MultibodyModel:
    return mbjax.load("arm", time_step=1e-3)


@pytest.fixture(scope="module")
def quadruped() -> mbjax.MultibodyModel:
    return mbjax.load("quadruped", time_step=1e-3, ground=True, contact_pairs=[("*foot*", "ground")])


@pytest.mark.whole_run("transfers that are not silent")
def test_ranks_are_not_promoted(arm, quadruped) -> None:
    """A step with contact, its outputs and derivatives, constraints, assembly and linearizations: traced, not run."""
    state, standing, mechanism = mbjax.default_state(arm), mbjax.default_state(quadruped), four_bar()
    several = jax.tree.map(lambda x: jnp.stack([x] * 2), standing)
    u = jnp.zeros((2, arm.num_actuators))
    calls = {
        "rollout": lambda: mbjax.rollout(arm, state, u),
        "linearize": lambda: trajectory_optimization.linearize(
            arm, jax.tree.map(lambda x: jnp.stack([x] * 2), state), u
        ),
        "outputs": lambda: mbjax.outputs(quadruped, standing),
        "steps": lambda: jax.vmap(lambda state: mbjax.step(quadruped, state))(several),
        "gradient": lambda: jax.grad(
            lambda v: mbjax.step(quadruped, mbjax.State(standing.q, v, standing.time))[0].q.sum()
        )(standing.v),
        "assembly": lambda: mbjax.assembly_q(mechanism.model, mechanism.cset, mechanism.q),
        "velocities": lambda: mbjax.assembly_qdot(mechanism.model, mechanism.cset, mechanism.q, mechanism.v),
        "constraints": lambda: mbjax.constrained_forward_dynamics(
            mechanism.model, mechanism.cset, mechanism.q, mechanism.v, mechanism.v
        ),
    }
    with jax.numpy_rank_promotion("raise"):
        for call in calls.values():
            jax.eval_shape(call)


def test_an_eager_rollout_transfers_nothing_silently() -> None:
    model = mbjax.load("cart_pole", time_step=1e-3)
    state, u = mbjax.default_state(model), jnp.zeros((2, model.num_actuators))
    with jax.transfer_guard("disallow"):
        found = mbjax.rollout(model, state, u)
        if not WHOLE_RUN:
            return
        again = mbjax.rollout(model, state, num_steps=2)
        after, _ = mbjax.step(model, state)
    np.testing.assert_allclose(found.q, again.q, rtol=0, atol=1e-12)
    assert float(after.time) == model.time_step


def test_a_model_of_64_bits_without_them_is_an_error(arm) -> None:
    state = mbjax.default_state(arm)
    with jax.enable_x64(False):
        for call in (
            lambda: mbjax.mass_matrix(arm, state.q),
            lambda: mbjax.step(arm, state),
            lambda: mbjax.rollout(arm, state, num_steps=2),
        ):
            with pytest.raises(mbjax.ModelError, match=r"jax_enable_x64.*astype\(model, jnp.float32\)"):
                call()
        assert mbjax.astype(arm, jnp.float32).dtype == jnp.float32
