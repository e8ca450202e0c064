"""Hessians through inverse and forward dynamics, against differences of the gradient."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.gradients.checks import compiled
from tests.models import ALL_KINDS, load_robot, random_tree, relative_error

MODELS = {
    "every joint": lambda: random_tree(11, ALL_KINDS).model,
    "panda": lambda: load_robot("panda_description/urdf/panda.urdf", "fixed"),
}
H = 1e-5


def numbers(model, q, weights, x) -> dict[str, jax.Array]:
    """A quadratic number of what each returns at q moved by x["dq"], under all forces."""
    moved = mbjax.integrate_configuration(model, q, x["dq"])
    forces = mbjax.force_elements_contribution(model, moved, x["v"])
    vdot = mbjax.forward_dynamics(model, moved, x["v"], x["tau"], forces)
    tau = mbjax.inverse_dynamics(model, moved, x["v"], x["vdot"], forces)
    return {"forward": jnp.sum(weights * vdot**2), "inverse": jnp.sum(weights * tau**2)}


def both_gradients(model, q, weights, x):
    return jax.jacrev(functools.partial(numbers, model, q, weights))(x)


gradients = compiled(both_gradients)


@compiled
def hessians_along(model, q, weights, x, direction):
    """The Hessians times a direction, forward over reverse."""
    return jax.jvp(lambda x: both_gradients(model, q, weights, x), (x,), (direction,))[1]


@pytest.mark.whole_run("first derivatives in test_gradient_recursions.py; second ones of solves in test_solvers.py")
@pytest.mark.parametrize("name", MODELS)
def test_hessians_along_directions(name: str):
    """With respect to q, v, tau and vdot in random directions, so that every entry counts."""
    model = MODELS[name]()
    state = mbjax.random_state_within_limits(model, jax.random.key(3))
    rng = np.random.default_rng(3)
    nv = model.num_velocities
    x = {"dq": np.zeros(nv), "v": state.v, "tau": rng.normal(size=nv), "vdot": rng.normal(size=nv)}
    x, weights = jax.tree.map(jnp.asarray, x), jnp.asarray(rng.uniform(0.5, 1.5, nv))
    for _ in range(4):
        direction = jax.tree.map(lambda a: jnp.asarray(rng.normal(size=a.shape)), x)
        products = hessians_along(model, state.q, weights, x, direction)
        differences = jax.tree.map(jnp.zeros_like, products)
        for h, weight in zip((H, -H, 2 * H, -2 * H), (8.0, -8.0, -1.0, 1.0), strict=True):
            at_h = gradients(model, state.q, weights, jax.tree.map(lambda a, d, h=h: a + h * d, x, direction))
            differences = jax.tree.map(lambda sum, g, w=weight: sum + w / (12.0 * H) * g, differences, at_h)
        unused = {("forward", "vdot"), ("inverse", "tau")}
        errors = {
            (function, block): relative_error(products[function][block], differences[function][block])
            for function in products
            for block in x
            if (function, block) not in unused
        }
        assert np.max(list(errors.values())) < 1e-6, errors
