"""`jax.jacfwd` and `jax.jacrev` of the dynamics: from whole matrices, as one tangent at a time has them."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.dynamics.derivatives.rule import enough
from tests.dynamics.recursion_models import case
from tests.gradients.checks import compiled, one_by_one
from tests.models import relative_error
from tests.test_program_size import chain

CLOSE = 1e-12


def dynamics(name: str, model: mbjax.MultibodyModel) -> Callable:
    """Of q, v and tau or vdot."""
    function = {"forward": mbjax.forward_dynamics, "inverse": mbjax.inverse_dynamics}[name]
    return lambda *x: function(model, *x, force_elements=True)


CONSTANT = pytest.mark.whole_run("Jacobians equal those of Pinocchio")
INVERSE = pytest.mark.whole_run("Jacobians equal those of Pinocchio")
CASES = [
    pytest.param("quadruped", "forward", marks=pytest.mark.whole_run("Jacobians equal those of Pinocchio")),
    pytest.param("quadruped", "inverse", marks=INVERSE),
    ("every joint", "forward"),
    pytest.param("every joint", "inverse", marks=INVERSE),
    *(pytest.param("constant hinge maps", direction, marks=CONSTANT) for direction in ("forward", "inverse")),
]


@pytest.mark.whole_run("Jacobians equal those of Pinocchio")
@pytest.mark.parametrize(("name", "direction"), CASES)
def test_jacobians_are_those_of_single_tangents(name: str, direction: str) -> None:
    """Of one world, also at rest, and of several, where a joint is locked, and by a part of the arguments alone."""
    model, q, v, vdot, tau, *_ = case(name)
    model = mbjax.lock_joint(model, model.joint_names[1])
    x = q, v, tau if direction == "forward" else vdot
    assert v.size >= enough(model.topology)

    @compiled
    def both(model, *x):
        function = dynamics(direction, model)
        return one_by_one(function, *x), jax.jacfwd(function, (0, 1, 2))(*x), jax.jacrev(function, (0, 1, 2))(*x)

    @compiled
    def of_worlds(model, *x):
        function = dynamics(direction, model)
        return jax.vmap(lambda *x: (jax.jacfwd(function, 1)(*x), jax.jacrev(function, (0, 2))(*x)))(*x)

    for state in ((q, 0.0 * v, x[2]), x):  # in free fall the quadruped's Jacobian by q would be rounding alone
        expected, *found = both(model, *state)
        for jacobians in found:
            assert max(map(relative_error, jacobians, expected)) < CLOSE
    by_v, (by_q, by_last) = of_worlds(model, *(jnp.stack([jnp.nan * y, y]) for y in x))
    assert max(map(relative_error, (by_q[1], by_v[1], by_last[1]), expected)) < CLOSE
    assert not np.isfinite(by_v[0]).any()


@pytest.mark.whole_run("Jacobians equal those of Pinocchio, in double precision")
def test_in_single_precision() -> None:
    """As exact as one tangent at a time: solved with the factor, not with an inverse of the mass matrix."""
    model = chain(40)
    q = v = jnp.linspace(-0.5, 0.5, 40)

    def by_tau(model, q, v):
        return one_by_one(lambda tau: mbjax.forward_dynamics(model, q, v, tau), v)[0]

    def every_way(model, q, v):
        def function(tau):
            return mbjax.forward_dynamics(model, q, v, tau)

        return by_tau(model, q, v), jax.jacfwd(function)(v), jax.jacrev(function)(v)

    expected = compiled(by_tau)(model, q, v)
    single = [x.astype(jnp.float32) for x in (q, v)]
    alone, *found = compiled(every_way)(mbjax.astype(model, jnp.float32), *single)
    for jacobian in found:
        assert relative_error(jacobian, expected) < 2.0 * relative_error(alone, expected) + 1e-6


@pytest.mark.whole_run("first derivatives in test_gradient_recursions.py; second ones of solves in test_solvers.py")
def test_second_derivatives_of_jacobians() -> None:
    """They pass through the whole matrices' plain form."""
    model, q, v, _, tau, *_ = case("quadruped")
    function = dynamics("forward", model)

    @compiled
    def gradients(q, v, tau):
        ways = jax.jacfwd(function, 1), jax.jacrev(function, 1), lambda *x: one_by_one(function, *x)[1]
        return [jax.grad(lambda q, way=way: jnp.sum(jnp.sin(way(q, v, tau))))(q) for way in ways]

    *found, expected = gradients(q, v, tau)
    assert max(relative_error(x, expected) for x in found) < CLOSE
