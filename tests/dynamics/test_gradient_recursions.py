"""The gradient of λ · inverse_dynamics by recursions, by the state and by the model: that of sums over all mobods."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.dynamics import calc_inverse_dynamics, calc_tree_motion
from mbjax.dynamics.derivatives.cotangent_inward import has_torque_cotangent
from mbjax.dynamics.derivatives.rule import Fixed, Moved, calc_change_under_weights
from mbjax.dynamics.newton_euler.recursion import calc_motion
from mbjax.dynamics.records.direction_rows import PlacedRows
from mbjax.execution.linear.tangents import no_tangent
from mbjax.execution.recursions import array_of
from mbjax.forces import calc_gravity_on_mobods
from mbjax.kinematics import calc_position_kinematics
from tests.gradients.checks import WHOLE_RUN, compiled
from tests.model import mimics
from tests.models import relative_error

from .recursion_models import G1, case, largest_error, model_of


@functools.partial(jax.jit, static_argnames="gravity")
def gradient_both_ways(model, q, v, vdot, weight, gravity: bool) -> dict:
    """Cotangents of the model, q, v and vdot, by the recursion and by JAX's transpose of the change along them.

    Those of the state from what a pass outward has placed, too.
    """
    found = calc_motion(model, q, v, None, False, None)
    placed = PlacedRows(array_of(found.hinge), array_of(found.inertia))

    def required(model, q, v, vdot):
        position = calc_position_kinematics(model, q)
        F_T = calc_gravity_on_mobods(model, position) if gravity else None
        return calc_inverse_dynamics(calc_tree_motion(model, position, q, v), vdot, F_T)

    def change(*moved, placed=None):
        return calc_change_under_weights(Fixed(model, q, v, vdot, placed), Moved(*moved), gravity)

    def of_state(*moved, placed=None):
        return change(no_tangent(model), *moved, placed=placed)

    zeros = jax.tree.map(jnp.zeros_like, (model, q, v, vdot))
    return {
        "recursion": jax.vjp(change, *zeros)[1](weight),
        "sums": jax.vjp(required, model, q, v, vdot)[1](weight),
        "of the state": jax.vjp(lambda *x: of_state(*x, None), *zeros[1:3])[1](weight),
        "placed": jax.vjp(functools.partial(of_state, placed=placed), *zeros[1:])[1](weight),
    }


TREES = ["quadruped", "constant hinge maps", "many branches of every kind"]
MORE_TREES = ["one direction a joint", "many branches", "humanoid"]
WITH_GRAVITY = pytest.mark.whole_run("reverse, forward and differences agree, below")
WEIGHTLESS = pytest.mark.whole_run("reverse, forward and differences agree, below")
CASES = [
    *(pytest.param(tree, True, marks=WITH_GRAVITY) for tree in TREES),
    *(pytest.param(tree, False, marks=WEIGHTLESS) for tree in TREES),
    *(pytest.param(tree, gravity, marks=G1) for tree in MORE_TREES for gravity in (True, False)),
]


@pytest.mark.parametrize(("name", "gravity"), CASES)
def test_gradient_by_recursion(name: str, gravity: bool) -> None:
    model, q, v, vdot, _, weight, _ = case(name)
    assert has_torque_cotangent(model)
    ways = gradient_both_ways(model, q, v, vdot, weight, gravity)
    for found, expected in zip(ways["recursion"], ways["sums"], strict=True):
        assert leaf_by_leaf(found, expected) < 1e-12
    assert largest_error(ways["of the state"], ways["sums"][1:3]) < 1e-12
    assert largest_error(ways["placed"], ways["sums"][1:]) < 1e-12


@pytest.mark.whole_run("double precision, and what stays single, in g53 of tests/gradients")
def test_gradient_in_single_precision() -> None:
    """By the state and by every leaf of the model, as exact as the sums: both beside double precision."""
    model, q, v, vdot, _, weight, _ = case("quadruped")
    exact = gradient_both_ways(model, q, v, vdot, weight, True)["sums"]
    single = (x.astype(jnp.float32) for x in (q, v, vdot, weight))
    ways = gradient_both_ways(mbjax.astype(model, jnp.float32), *single, True)
    for expected, by_recursion, by_sums in zip(exact, ways["recursion"], ways["sums"], strict=True):
        assert leaf_by_leaf(by_recursion, expected) < 4.0 * leaf_by_leaf(by_sums, expected) + 1e-6


def leaf_by_leaf(found, expected) -> float:
    """The largest error of a leaf; what moves nothing has no gradient either way."""
    pairs = list(zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True))
    assert all(np.any(a) == np.any(b) for a, b in pairs)
    return max(relative_error(a, b) for a, b in pairs if np.any(b))


def test_trees_without_a_recursion_for_the_gradient() -> None:
    """Where hinge maps change in F, where joints mimic, and where some bodies feel no gravity."""
    assert has_torque_cotangent(model_of("one direction a joint"))
    assert not has_torque_cotangent(model_of("every joint"))
    assert not has_torque_cotangent(model_of("gravity on some bodies"))
    assert not has_torque_cotangent(mimics.make_model("mimic"))


@compiled
def gradients_of_many(model, q, v, tau, weight):
    """In reverse mode of a batch (whole run), and of the batch at one position."""

    def cost(q, v, tau):
        return jnp.sum(weight * mbjax.forward_dynamics(model, q, v, tau, force_elements=True))

    def at_one(q, v):
        return jnp.sum(jax.vmap(cost, (None, 0, 0))(q, v, tau))

    own = jax.vmap(jax.grad(cost, (0, 1, 2)))(q, v, tau) if WHOLE_RUN else None
    return own, jax.grad(at_one, (0, 1))(q[0], v)


@pytest.mark.whole_run("reverse, forward and differences agree, below; batches in tests/execution/test_worlds.py")
def test_gradients_of_many_worlds() -> None:
    """Each as alone (trimmed: in test_many_worlds.py); of what all share the sum."""
    model, _, _, _, _, weight, _ = case("constant hinge maps")
    states = jax.vmap(lambda key: mbjax.random_state(model, key))(jax.random.split(jax.random.key(1), 300))
    tau = jax.random.normal(jax.random.key(2), states.v.shape)
    own, shared = gradients_of_many(model, states.q, states.v, tau, weight)

    def alone(q, v, tau):
        return jnp.sum(weight * mbjax.forward_dynamics(model, q, v, tau, force_elements=True))

    single = jax.jit(jax.grad(alone, (0, 1, 2)))
    for i in (0, 150, 299) if own else ():
        assert largest_error([x[i] for x in own], single(states.q[i], states.v[i], tau[i])) < 1e-11
    by_q = sum(single(states.q[0], v, t)[0] for v, t in zip(states.v, tau, strict=True))
    assert relative_error(shared[0], by_q) < 1e-10
    assert relative_error(shared[1][7], single(states.q[0], states.v[7], tau[7])[1]) < 1e-11


def test_reverse_forward_and_differences_agree(request: pytest.FixtureRequest) -> None:
    """Of forward dynamics by q and v, along one direction; whole run: second derivatives both ways round.

    Trimmed: those are in test_g50_every_transformation_of_a_saturated_step.
    """
    model, q, v, _, tau, weight, _ = case("constant hinge maps")
    dq = mbjax.velocity_to_qdot(model, q, jnp.linspace(-1.0, 1.0, model.num_velocities))
    dv = jnp.linspace(1.0, -0.5, model.num_velocities)

    def cost(q, v):
        return jnp.sum(weight * mbjax.forward_dynamics(model, q, v, tau, force_elements=True))

    def along(f, q, v):
        return jax.jvp(f, (q, v), (dq, dv))[1]

    def by_reverse(q, v):
        by_q, by_v = jax.grad(cost, (0, 1))(q, v)
        return jnp.vdot(by_q, dq) + jnp.vdot(by_v, dv)

    @jax.jit
    def second_derivatives(q, v):
        by_q, by_v = jax.grad(lambda q, v: along(cost, q, v), (0, 1))(q, v)
        return along(by_reverse, q, v), jnp.vdot(by_q, dq) + jnp.vdot(by_v, dv)

    reverse, forward = jax.jit(lambda q, v: (by_reverse(q, v), along(cost, q, v)))(q, v)
    assert relative_error(reverse, forward) < 1e-12
    if not request.config.getoption("--trimmed"):
        assert relative_error(*second_derivatives(q, v)) < 1e-10
    value, step = jax.jit(cost), 1e-6
    difference = (value(q + step * dq, v + step * dv) - value(q - step * dq, v - step * dv)) / (2.0 * step)
    assert relative_error(reverse, difference) < 1e-7
