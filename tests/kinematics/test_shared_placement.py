"""Functions that a trace gives the same model share its placement, and with it the transpose of a gradient by it."""

import gc

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jaxtyping import Array

import mbjax
from mbjax.kinematics import placed_model
from tests.models import relative_error


def heights(model: mbjax.MultibodyModel, q: Array) -> Array:
    return mbjax.body_poses_in_world(model, q).translation[:, 2]


def reached(model: mbjax.MultibodyModel, q: Array) -> Array:
    """Heights at the end of a rollout, which places the model too."""
    trajectory = mbjax.rollout(model, mbjax.State(q, jnp.zeros_like(q)), num_steps=3)
    return jnp.sum(heights(model, trajectory.q[-1]))


def pendulum() -> mbjax.MultibodyModel:
    plant = mbjax.MultibodyPlant(0.01)
    for name, parent in (("upper", "world"), ("lower", "upper")):
        plant.add_rigid_body(name, mbjax.SpatialInertia.solid_box_with_mass(1.0, 0.1, 0.2, 0.3))
        plant.add_joint(mbjax.RevoluteJoint(name, parent, name, X_PF=[0.0, 0.0, -0.5], axis=[0, 1, 0]))
    return plant.finalize()


def test_a_rollout_and_poses_place_the_model_once(monkeypatch) -> None:
    model, q, count = pendulum(), jnp.array([0.3, -0.2]), []
    calc_placement = placed_model.calc_placement
    monkeypatch.setattr(placed_model, "calc_placement", lambda model: count.append(1) or calc_placement(model))
    jax.make_jaxpr(jax.grad(reached))(model, q)
    assert len(count) == 1
    gc.collect()
    assert not placed_model._in_traces  # nothing outlives its trace


@pytest.mark.whole_run("a rollout and poses after it, above, whose gradient would meet what its loop left")
def test_a_loop_keeps_its_placement_to_itself() -> None:
    """What was computed within a loop is not read outside of it, though the model is the same."""
    model, q = pendulum(), jnp.array([0.3, -0.2])

    def cost(model: mbjax.MultibodyModel) -> Array:
        def turn(total: Array, angle: Array) -> tuple[Array, None]:
            return total + jnp.sum(heights(model, q + angle)), None

        within, _ = lax.scan(turn, jnp.zeros(()), jnp.array([0.0, 0.1]))
        return within - jnp.sum(heights(model, q)) + jax.checkpoint(lambda m: jnp.sum(heights(m, q)))(model)

    def by_hand(model: mbjax.MultibodyModel) -> Array:
        return jnp.sum(heights(model, q)) + jnp.sum(heights(model, q + 0.1))

    got, expected = (jax.tree.leaves(jax.jit(jax.grad(f))(model)) for f in (cost, by_hand))
    assert max(relative_error(x, y) for x, y in zip(got, expected, strict=True) if x.size) < 1e-12
