"""Derivatives of the dynamics functions on trees of every joint type and on real robots."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.gradients.checks import check_gradients
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
def test_inverse_and_forward_dynamics(name: str) -> None:
    model = MODELS[name]()
    q, v, tau = state_of(model)
    body = jnp.asarray(np.random.default_rng(1).normal(size=(model.num_bodies, 6)))
    weights = jnp.asarray(np.random.default_rng(2).normal(size=model.num_velocities))

    def both(x):
        q_moved = mbjax.integrate_configuration(model, q, x["dq"])
        forces = mbjax.force_elements_contribution(model, q_moved, x["v"]) + mbjax.MultibodyForces(tau, x["body"])
        vdot = mbjax.forward_dynamics(model, q_moved, x["v"], x["tau"], forces)
        required = mbjax.inverse_dynamics(model, q_moved, x["v"], x["tau"], forces)
        M = mbjax.mass_matrix(model, q_moved)
        energy = mbjax.kinetic_energy(model, q_moved, x["v"]) + mbjax.potential_energy(model, q_moved)
        L = mbjax.spatial_momentum_in_world_about_point(model, q_moved, x["v"], jnp.array([0.1, 0.2, 0.3]))
        return [vdot @ weights, required @ weights, weights @ M @ weights, energy, L]

    check_gradients(both, {"dq": jnp.zeros_like(v), "v": v, "tau": tau, "body": body})


@pytest.mark.parametrize("name", ["every joint"])
def test_all_leaves_through_forward_dynamics(name: str) -> None:
    model = MODELS[name]()
    q, v, tau = state_of(model)

    def f(model):
        forces = mbjax.force_elements_contribution(model, q, v)
        return mbjax.forward_dynamics(model, q, v, tau, forces)

    check_gradients(f, model)


def test_forward_derivative_is_minus_inverse_mass_matrix_times_inverse_derivative() -> None:
    model = random_tree(11, ALL_KINDS).model
    q, v, tau = state_of(model)
    vdot = mbjax.forward_dynamics(model, q, v, tau)
    dID = jax.jacfwd(lambda v: mbjax.inverse_dynamics(model, q, v, vdot))(v)
    expected = -jnp.linalg.solve(mbjax.mass_matrix(model, q), dID)
    got = jax.jacrev(lambda v: mbjax.forward_dynamics(model, q, v, tau))(v)
    assert relative_error(got, expected) < 1e-10
    by_tau = jax.jacrev(lambda tau: mbjax.forward_dynamics(model, q, v, tau))(tau)
    assert relative_error(by_tau @ mbjax.mass_matrix(model, q), jnp.eye(v.size)) < 1e-10


INVERSE = pytest.param("inverse", marks=pytest.mark.whole_run("forward dynamics is differentiated through it"))


@pytest.mark.parametrize("function", ["forward", INVERSE])
def test_second_derivatives(function: str) -> None:
    model = random_tree(4, ("revolute", "universal", "prismatic")).model
    q, v, tau = state_of(model)
    nv = v.size

    def f(x):
        moved = mbjax.integrate_configuration(model, q, x[:nv])
        call = mbjax.forward_dynamics if function == "forward" else mbjax.inverse_dynamics
        return jnp.sum(jnp.sin(call(model, moved, x[nv : 2 * nv], x[2 * nv :])))

    x = jnp.concatenate([jnp.zeros(nv), v, tau])
    hessian, reverse_over_reverse = jax.jit(lambda x: (jax.hessian(f)(x), jax.jacrev(jax.grad(f))(x)))(x)
    assert relative_error(hessian, hessian.T) < 1e-10
    assert relative_error(reverse_over_reverse, hessian) < 1e-9
    gradient, h = jax.jit(jax.grad(f)), 1e-5
    differences = np.stack([(gradient(x + h * e) - gradient(x - h * e)) / (2 * h) for e in np.eye(x.size)])
    assert relative_error(hessian, differences) < 1e-6
