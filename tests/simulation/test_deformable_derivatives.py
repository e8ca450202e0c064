"""Derivatives of steps with deformable bodies: forward, reverse and differences; of statics; at rest; twice."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.gradients.checks import WHOLE_RUN

from ..deformable_meshes import held_bar
from .deformable_plants import Wind, foam, moving_state, swinging_plant

rng = np.random.default_rng(0)


def with_numbers(model: mbjax.MultibodyModel, numbers: Any) -> mbjax.MultibodyModel:
    """The model with numbers of its deformable bodies and its gravity replaced."""
    deformables, gravity = numbers
    return dataclasses.replace(
        model,
        deformables=eqx.combine(deformables, model.deformables),
        parameters=dataclasses.replace(model.parameters, gravity=gravity),
    )


def numbers_of(model: mbjax.MultibodyModel) -> Any:
    deformables = eqx.filter(model.deformables, eqx.is_inexact_array)
    return dataclasses.replace(deformables, enabled=None), model.parameters.gravity


def check(loss: Any, at: Any, tolerance: float = 1e-7, h: float = 1e-4) -> Any:
    """The gradient: forward = reverse = differences of fourth order over steps h, leaf by leaf along random directions.

    Trimmed: reverse = differences; reverse mode transposes the rules of forward mode.
    """
    value, gradient = jax.jit(jax.value_and_grad(loss))(at)
    assert np.isfinite(value)
    leaves, treedef = jax.tree.flatten(at)
    moves = [jnp.array(rng.normal(size=x.shape)) * (jnp.abs(x) + 1e-2) for x in leaves]
    names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(at)]
    value_at = jax.jit(lambda at, along, h: loss(jax.tree.map(lambda x, d: x + h * d, at, along)))
    forward = jax.jit(lambda at, along: jax.jvp(loss, (at,), (along,))[1])
    for i, (name, move) in enumerate(zip(names, moves, strict=True)):
        along = jax.tree.unflatten(treedef, [move if i == j else jnp.zeros_like(x) for j, x in enumerate(leaves)])
        reverse = sum(jnp.vdot(a, b) for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(along), strict=True))
        found = forward(at, along) if WHOLE_RUN else reverse
        near, far = (value_at(at, along, k * h) - value_at(at, along, -k * h) for k in (1, 2))
        differences = (8 * near - far) / (12 * h)
        scale = max(abs(float(found)), 1e-4)
        np.testing.assert_allclose(reverse, found, rtol=1e-9, atol=1e-12, err_msg=name)
        assert abs(float(differences - found)) < tolerance * scale + 1e-10, name
    return gradient


def held_bar_in_wind(law: str, elements: str, time_step: float) -> mbjax.MultibodyModel:
    """A short bar behind a wall, with a force per current volume that depends on the place."""
    plant = held_bar(foam(law), (1, 1, 1), time_step, elements)
    plant.add_force_density(Wind(jnp.array(100.0)), per="current_volume")
    return plant.finalize()


def check_step(model: mbjax.MultibodyModel, state: mbjax.State) -> None:
    """Derivatives of a step by every number of the bodies, their nodes, and forces on these."""
    weights = jnp.array(rng.normal(size=state.nodes.position.shape))

    def loss(at: Any) -> jax.Array:
        numbers, nodes, forces = at
        before = mbjax.State(state.q, state.v, state.time, nodes)
        after, _ = mbjax.step(with_numbers(model, numbers), before, mbjax.Inputs(node_forces=forces))
        return jnp.sum(weights * after.nodes.position) + jnp.sum(weights * jnp.sin(after.nodes.velocity))

    forces = jnp.array(0.01 * rng.normal(size=weights.shape))
    check(loss, (numbers_of(model), state.nodes, forces))


CASES = [
    pytest.param("linear_corotated", marks=pytest.mark.whole_run("such bodies that touch")),
    pytest.param("linear", marks=pytest.mark.whole_run("linear_corotated bodies that touch")),
    pytest.param("corotated", marks=pytest.mark.whole_run("linear_corotated bodies that touch")),
    pytest.param("neo_hookean", marks=pytest.mark.whole_run("linear_corotated bodies that touch")),
]


@pytest.mark.parametrize("law", CASES)
def test_derivatives_of_a_step_by_every_number_and_the_state(law: str) -> None:
    model = held_bar_in_wind(law, "linear", 5e-3)
    check_step(model, moving_state(model))


@pytest.mark.whole_run("derivatives of a step of two bodies that touch; such bodies move as in Drake")
def test_derivatives_through_nodes_fixed_to_a_moving_body() -> None:
    model = swinging_plant().finalize()
    state = moving_state(model, 1e-3)

    def loss(at: Any) -> jax.Array:
        numbers, nodes, q, v = at
        after, _ = mbjax.step(with_numbers(model, numbers), mbjax.State(q, v, state.time, nodes))
        return jnp.sum(jnp.sin(30.0 * after.nodes.position)) + jnp.sum(after.nodes.velocity) + after.q[0] + after.v[0]

    check(loss, (numbers_of(model), state.nodes, state.q + 0.1, state.v + 0.3), 1e-6)


@pytest.mark.whole_run("first derivatives of a step of two bodies that touch")
@pytest.mark.parametrize("law", ["corotated", "neo_hookean"])
def test_hessian_vector_products_also_at_rest(law: str) -> None:
    """Without damping by stiffness: second derivatives of that hold the eigenvectors that were dropped."""
    model = held_bar(foam(law, stiffness_damping=0.0), (1, 1, 1)).finalize()

    def loss(at: Any) -> jax.Array:
        E, nodes = at
        changed = eqx.tree_at(lambda m: m.deformables.youngs_modulus, model, E)
        after, _ = mbjax.step(changed, mbjax.State(jnp.zeros(0), jnp.zeros(0), None, nodes))
        return jnp.sum(jnp.sin(50.0 * after.nodes.position)) + jnp.sum(after.nodes.velocity**2)

    gradient = jax.jit(jax.grad(loss))
    product = jax.jit(lambda at, along: jax.jvp(jax.grad(loss), (at,), (along,))[1])
    E = model.deformables.youngs_modulus
    rest = mbjax.default_state(model).nodes
    for nodes in (moving_state(model).nodes, rest):
        along = jax.tree.map(lambda x: jnp.array(rng.normal(size=x.shape)) * (jnp.abs(x) + 1e-2), (E, nodes))
        found = product((E, nodes), along)
        assert all(np.isfinite(x).all() for x in jax.tree.leaves(found))
        if nodes is rest:
            continue  # eigenvalues of rotations are zero there, and may be dropped on one side
        h = 1e-5
        up, down = (gradient(jax.tree.map(lambda x, d, move=s * h: x + move * d, (E, nodes), along)) for s in (1, -1))
        for a, b, c in zip(*map(jax.tree.leaves, (found, up, down)), strict=True):
            differences = (b - c) / (2 * h)
            np.testing.assert_allclose(a, differences, atol=1e-5 * float(jnp.max(jnp.abs(differences))))


def test_a_rest_state_and_its_derivatives() -> None:
    """Elastic forces balance weight: the sag's derivative by E is that of differences; whole run: a step moves nothing.

    A body that is off stays as it is. Trimmed: sags are Timoshenko's in test_bending_of_bars.py.
    """
    plant = held_bar(foam("stable_neo_hookean"), (3, 1, 1))
    model = plant.finalize()

    start = moving_state(model)

    def sag(E: jax.Array, enabled: Any = 1.0) -> tuple[jax.Array, Any]:
        changed = mbjax.set_deformable_enabled(model, "bar", enabled)
        changed = eqx.tree_at(lambda m: m.deformables.youngs_modulus, changed, E)
        found = mbjax.deformable_equilibrium(changed, start)
        return jnp.min(found.state.nodes.position[:, 2]), found

    at = model.deformables.youngs_modulus
    value_and_slope = jax.jit(jax.value_and_grad(sag, has_aux=True))
    on, h = jnp.array(1.0), 1.0
    (value, found), slope = value_and_slope(at, on)
    differences = (value_and_slope(at + h, on)[0][0] - value_and_slope(at - h, on)[0][0]) / (2 * h)
    (_, off), of_off = value_and_slope(at, 1.0 - on)
    np.testing.assert_array_equal(off.state.nodes.position, start.nodes.position)
    assert bool(off.converged.all())
    assert of_off[0] == 0.0
    np.testing.assert_allclose(slope[0], differences, rtol=1e-6)
    assert value < -1e-3
    assert bool(found.converged.all())
    if not WHOLE_RUN:
        return
    after, _ = jax.jit(lambda s: mbjax.step(model, s))(found.state)
    np.testing.assert_allclose(after.nodes.position, found.state.nodes.position, atol=1e-13)
    assert jnp.abs(after.nodes.velocity).max() < 1e-11
