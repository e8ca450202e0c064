"""Derivatives of the dynamics functions on trees of every joint type and on real robots."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.gradients.checks import OFFSETS, WEIGHTS, Gradients, all_gradients, compare, compiled
from tests.models import ALL_KINDS, load_robot, random_tree, relative_error

MODELS = {
    "every joint": lambda: random_tree(11, ALL_KINDS).model,
    "panda": lambda: load_robot("panda_description/urdf/panda.urdf", "fixed"),
    "a1": lambda: load_robot("a1_description/urdf/a1.urdf", "floating"),
}


def state_of(model: mbjax.MultibodyModel, seed: int = 3):
    state = mbjax.random_state(model, jax.random.key(seed))
    rng = np.random.default_rng(seed)
    return state.q, state.v, jnp.asarray(rng.normal(size=model.num_velocities))


ROBOT = pytest.mark.whole_run("the tree of every joint stands for the robots")


@pytest.mark.parametrize("name", ["every joint", pytest.param("panda", marks=ROBOT), pytest.param("a1", marks=ROBOT)])
def test_inverse_and_forward_dynamics(name: str, request: pytest.FixtureRequest) -> None:
    """By the state, the forces, and on the tree of every joint by all leaves of the model.

    Trimmed: by the state and the forces, of forward dynamics, in reverse mode. Both modes of the same tree are in
    tests/dynamics/test_many_tangents.py. Inverse dynamics is in the rule of forward dynamics, M,
    energy and momentum in the rates of `tests/dynamics/test_identities.py`, the leaves in `test_leaf_coverage.py`.
    """
    given, trimmed = MODELS[name](), request.config.getoption("--trimmed")
    q, v, tau = state_of(given)
    body = jnp.asarray(np.random.default_rng(1).normal(size=(given.num_bodies, 6)))
    weights = jnp.asarray(np.random.default_rng(2).normal(size=given.num_velocities))

    def both(x):
        model = x.get("model", given)
        q_moved = mbjax.integrate_configuration(model, q, x["dq"])
        forces = mbjax.force_elements_contribution(model, q_moved, x["v"]) + mbjax.MultibodyForces(tau, x["body"])
        vdot = mbjax.forward_dynamics(model, q_moved, x["v"], x["tau"], forces)
        if trimmed:
            return [vdot @ weights]
        energy = mbjax.kinetic_energy(model, q_moved, x["v"]) + mbjax.potential_energy(model, q_moved)
        L = mbjax.spatial_momentum_in_world_about_point(model, q_moved, x["v"], jnp.array([0.1, 0.2, 0.3]))
        required = mbjax.inverse_dynamics(model, q_moved, x["v"], x["tau"], forces)
        M = mbjax.mass_matrix(model, q_moved)
        return [vdot @ weights, required @ weights, weights @ M @ weights, energy, L]

    x = {"dq": jnp.zeros_like(v), "v": v, "tau": tau, "body": body}
    by_leaves = name == "every joint" and not trimmed
    result = all_gradients(both, x | {"model": given} if by_leaves else x, forward=not trimmed)
    of_model = np.array([entry.startswith("['model']") for entry in result.names])
    for block in (of_model, ~of_model) if by_leaves else (~of_model,):  # each beside its own largest entry
        names = [entry for entry, chosen in zip(result.names, block, strict=True) if chosen]
        compare(Gradients(result.forward[:, block], result.reverse[:, block], result.differences[:, block], names))


@pytest.mark.whole_run("Pinocchio's derivatives, in tests/dynamics/test_jacobians.py")
def test_forward_derivative_is_minus_inverse_mass_matrix_times_inverse_derivative() -> None:
    model = random_tree(11, ALL_KINDS).model
    q, v, tau = state_of(model)
    vdot = mbjax.forward_dynamics(model, q, v, tau)
    dID = compiled(jax.jacfwd(lambda v: mbjax.inverse_dynamics(model, q, v, vdot)))(v)
    M = mbjax.mass_matrix(model, q)
    by_v, by_tau = compiled(jax.jacrev(lambda v, tau: mbjax.forward_dynamics(model, q, v, tau), (0, 1)))(v, tau)
    assert relative_error(by_v, -np.linalg.solve(M, dID)) < 1e-10
    assert relative_error(by_tau @ M, np.eye(v.size)) < 1e-10


HESSIAN = "first derivatives in test_gradient_recursions.py; second ones of solves in test_solvers.py"


@pytest.mark.whole_run(HESSIAN)
@pytest.mark.parametrize("function", ["forward", "inverse"])
def test_second_derivatives(function: str) -> None:
    """Hessians along two directions: forward over reverse = differences of the gradient, and symmetric.

    Reverse over reverse too.
    """
    model = random_tree(4, ("universal", "prismatic")).model
    q, v, tau = state_of(model)
    nv = v.size

    def f(x):
        moved = mbjax.integrate_configuration(model, q, x[:nv])
        call = mbjax.forward_dynamics if function == "forward" else mbjax.inverse_dynamics
        return jnp.sum(jnp.sin(call(model, moved, x[nv : 2 * nv], x[2 * nv :])))

    x = jnp.concatenate([jnp.zeros(nv), v, tau])

    @compiled
    def gradient_and_products(x, d):
        gradient, forward = jax.jvp(jax.grad(f), (x,), (d,))
        return gradient, forward, jax.grad(lambda x: jax.grad(f)(x) @ d)(x)

    h, directions = 1e-4, np.random.default_rng(1).normal(size=(2, x.size))
    products = []
    for d in directions:
        _, forward, reverse = gradient_and_products(x, d)
        values = np.stack([gradient_and_products(x + h * offset * d, d)[0] for offset in OFFSETS])
        assert relative_error(reverse, forward) < 1e-9
        assert relative_error(forward, WEIGHTS @ values / h) < 1e-6
        products.append(forward)
    np.testing.assert_allclose(directions[0] @ products[1], directions[1] @ products[0], rtol=1e-10)
