"""Every leaf of a model belongs to one group, and the specs of groups part a model and combine."""

import equinox as eqx
import jax
import numpy as np
import optax
import pytest

import mbjax
from mbjax import parameters
from mbjax.parameters.leaf_groups import ALL
from tests.model.test_numbers_in_setters import small_robot


@pytest.fixture(scope="module")
def model() -> mbjax.MultibodyModel:
    plain = small_robot()
    return mbjax.set_joint_random_position_distribution(plain, "elbow", mbjax.GaussianDistribution(0.0, 0.1))


def places(spec: mbjax.MultibodyModel) -> set[str]:
    """Where a spec is true."""
    return {jax.tree_util.keystr(path) for path, x in jax.tree_util.tree_leaves_with_path(spec) if x}


def test_every_leaf_is_in_exactly_one_group(model) -> None:
    found = [place for group in ALL for place in places(parameters.chosen(model, group))]
    assert sorted(found) == sorted(jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(model))
    for group in ALL[:-2]:
        if group not in ("physical",):
            assert places(getattr(parameters, group)(model)) == places(parameters.chosen(model, group)), group


def test_groups_hold_what_their_names_say(model) -> None:
    assert ".parameters.body_mass" in places(parameters.inertial(model))
    assert ".collision.static_friction" in places(parameters.contact(model))
    assert ".parameters.joint_friction" in places(parameters.friction(model))
    assert ".force_elements[0].stiffness" in places(parameters.force_elements(model))
    options = places(parameters.options(model))
    assert {".parameters.time_step", ".collision.stiction_tolerance", ".constraints[0].stabilization_time"} <= options
    assert places(parameters.switches(model)) == {".parameters.velocity_locked", ".constraints[0].active"}
    assert not places(parameters.physical(model)) & (options | places(parameters.limits(model)))


def test_specs_combine(model) -> None:
    both = parameters.union(parameters.inertial(model), parameters.gravity(model))
    assert places(both) == places(parameters.inertial(model)) | places(parameters.gravity(model))
    assert places(parameters.without(both, parameters.inertial(model))) == {".parameters.gravity"}
    with pytest.raises(mbjax.ModelError, match=r"no group 'inertal'\. Did you mean 'inertial'"):
        parameters.chosen(model, "inertal")


@pytest.mark.whole_run("specs combine, above; gradients by what moves alone in test_unconstrained.py")
def test_an_optimizer_moves_the_chosen_leaves_alone(model) -> None:
    """The time step, which an optax step on the whole model would make negative, stays."""
    moving, held = eqx.partition(model, parameters.inertial(model))
    optimizer = optax.sgd(100.0)

    q, v = model.parameters.default_positions, np.zeros(model.num_velocities)

    def cost(moving: mbjax.MultibodyModel) -> jax.Array:
        whole = eqx.combine(moving, held)
        return whole.time_step * (1e3 + mbjax.forward_dynamics(whole, q, v, v + 1.0)[0])

    gradient = jax.jit(jax.grad(cost))(moving)
    updates, _ = optimizer.update(gradient, optimizer.init(moving))
    changed = eqx.combine(optax.apply_updates(moving, updates), held)
    assert changed.time_step == model.time_step
    assert not np.array_equal(changed.parameters.body_mass, model.parameters.body_mass)
