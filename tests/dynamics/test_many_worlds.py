"""Many worlds in code that is optimized as users have it: each as it is alone, at the edges of chunks too."""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import mbjax
from mbjax.dynamics.derivatives.cotangent_inward import has_torque_cotangent
from mbjax.dynamics.derivatives.rule import enough
from tests.gradients.checks import WHOLE_RUN, compiled
from tests.xla_options import AS_USERS_HAVE_IT

from .recursion_models import model_of

as_users = functools.partial(jax.jit, compiler_options=AS_USERS_HAVE_IT)
WHOLE = pytest.mark.whole_run("neighbours of a bad world, as alone, in tests/execution/test_worlds.py")
ONE_CHUNK, TWO_CHUNKS = 97, 193  # the second chunk of the latter begins within the first
# the error of single precision beside double precision of the same numbers, of the largest number of a world
SINGLE = {"forward": 1e-5, "gradient": 2e-4, "inverse": 2e-6, "its gradient": 1e-4, "mass": 2e-6, "poses": 1e-6}


def states(model, worlds: int, dtype=np.float64) -> list:
    drawn = jax.vmap(lambda key: mbjax.random_state(model, key))(jax.random.split(jax.random.key(6), worlds))
    return [np.asarray(x, dtype) for x in (drawn.q, drawn.v, jax.random.normal(jax.random.key(7), drawn.v.shape))]


BY_MODEL = "body_mass", "body_com", "frame_translation", "joint_axis"
accelerations = functools.partial(mbjax.forward_dynamics, force_elements=True)


def everything(model, q, v, x) -> dict:
    """What has a recursion, and the gradients that have one.

    Trimmed: forward dynamics, whose gradient is by that of inverse dynamics, by the model too. The others: many worlds
    in test_recursions.py.
    """
    weight = jnp.cos(jnp.arange(x.size, dtype=x.dtype))

    def of(function):
        value, pull = jax.vjp(lambda *state: function(model, *state, force_elements=True), q, v, x)
        return value, pull(weight)

    if not WHOLE_RUN:
        given = {name: getattr(model.parameters, name) for name in BY_MODEL}
        vdot, pull = jax.vjp(lambda p, *state: accelerations(with_parameters(model, p), *state), given, q, v, x)
        by_model, *by_state = pull(weight)
        return {"forward": vdot, "gradient": by_state, "by the model": by_model}
    (vdot, by_state), (tau, back) = of(mbjax.forward_dynamics), of(mbjax.inverse_dynamics)
    poses, M = mbjax.body_poses_in_world(model, q), mbjax.mass_matrix(model, q)
    return {
        "forward": vdot,
        "gradient": by_state,
        "inverse": tau,
        "its gradient": back,
        "mass": M,
        "poses": (poses.rotation, poses.translation),
    }


def together(function, *worlds):
    return as_users(jax.vmap(function))(*worlds)


@functools.cache
def everything_together(name: str):
    """Compiled once for all worlds of as many."""
    return as_users(jax.vmap(functools.partial(everything, model_of(name))))


def alone(function, *worlds):
    """Every world, one after the other."""
    return compiled(lambda *x: lax.map(lambda y: function(*y), x))(*worlds)


def largest_errors(found, expected) -> dict:
    """Of each quantity the largest error of a world, beside its largest number there."""

    def error(x, y) -> float:
        x, y = (np.asarray(z, np.float64).reshape(len(z), -1) for z in (x, y))
        difference, scale = np.max(np.abs(x - y), axis=1), np.max(np.abs(y), axis=1)
        return float(np.max(difference / np.maximum(scale, 1e-300))) if np.isfinite(x).all() else np.inf

    return {k: max(map(error, jax.tree.leaves(found[k]), jax.tree.leaves(expected[k]))) for k in expected}


@pytest.mark.parametrize(
    ("name", "worlds"),
    [
        pytest.param("constant hinge maps", TWO_CHUNKS, marks=WHOLE),
        pytest.param("constant hinge maps", ONE_CHUNK, marks=WHOLE),
        pytest.param("every joint", TWO_CHUNKS, marks=WHOLE),
        pytest.param("many branches", 250, marks=WHOLE),
    ],
)
def test_each_world_is_as_alone(name: str, worlds: int) -> None:
    model = model_of(name)
    function, x = functools.partial(everything, model), states(model, worlds)
    errors = largest_errors(everything_together(name)(*x), alone(function, *x))
    assert {k: e for k, e in errors.items() if not e < (1e-11 if "model" in k else 1e-12)} == {}


@pytest.mark.whole_run("worlds as alone, in tests/execution/test_worlds.py, and what stays single, in g53")
@pytest.mark.parametrize("name", ["quadruped", "constant hinge maps", "humanoid"])
def test_single_precision(name: str) -> None:
    """Of each world, beside double precision of the same numbers."""
    single = mbjax.astype(model_of(name), np.float32)
    x = states(model_of(name), TWO_CHUNKS, np.float32)
    exact = functools.partial(everything, mbjax.astype(single, np.float64))
    found = together(functools.partial(everything, single), *x)
    assert {y.dtype for y in jax.tree.leaves(found)} == {np.dtype(np.float32)}
    errors = largest_errors(found, alone(exact, *(y.astype(np.float64) for y in x)))
    assert {k: e for k, e in errors.items() if e > SINGLE[k]} == {}


def with_parameters(model, parameters: dict):
    return dataclasses.replace(model, parameters=dataclasses.replace(model.parameters, **parameters))


@pytest.mark.whole_run("derivatives where worlds differ in one leaf, in test_recursions_of_own_models.py")
@pytest.mark.parametrize("own_models", [False, True])
def test_gradients_by_the_model(own_models: bool) -> None:
    """Of each world, of a model that worlds share and of its own."""
    model, names = model_of("constant hinge maps"), BY_MODEL
    assert has_torque_cotangent(model)
    given = {name: getattr(model.parameters, name) for name in names}

    def gradient(scale, q, v, tau):
        def cost(parameters):
            moved = jax.tree.map(lambda x: scale * x if own_models else x, parameters)
            return jnp.sum(mbjax.forward_dynamics(with_parameters(model, moved), q, v, tau, force_elements=True))

        return jax.grad(cost)(given)

    x = np.linspace(0.9, 1.1, TWO_CHUNKS), *states(model, TWO_CHUNKS)
    errors = largest_errors(together(gradient, *x), alone(gradient, *x))
    assert max(errors.values()) < 1e-11, errors


@pytest.mark.whole_run("worlds as alone, in tests/execution/test_worlds.py, and Jacobians as Pinocchio's")
@pytest.mark.parametrize("name", ["quadruped", "every joint"])
def test_jacobians(name: str) -> None:
    """Whole ones in several chunks, and by fewer tangents than are worth it."""
    model = model_of(name)
    few = np.eye(model.num_velocities)[: enough(model.topology) - 1]

    def derivatives(q, v, tau):
        def function(q, v, tau):
            return mbjax.forward_dynamics(model, q, v, tau, force_elements=True)

        return {
            "reverse mode": jax.jacrev(function, 0)(q, v, tau),
            "closed form": mbjax.forward_dynamics_derivatives(model, q, v, tau, force_elements=True),
            "forward mode": jax.jacfwd(function, (1, 2))(q, v, tau),
            "few tangents": jax.vmap(lambda dv: jax.jvp(lambda v: function(q, v, tau), (v,), (dv,))[1])(few),
        }

    x = states(model, 75)
    errors = largest_errors(together(derivatives, *x), alone(derivatives, *x))
    assert max(errors.values()) < 1e-11, errors


@pytest.mark.whole_run("the same in tests/execution/test_worlds.py; NaN in drops, in tests/contact/test_drops.py")
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_world_stays_alone(bad: float, request: pytest.FixtureRequest) -> None:
    """To the last bit, whether q, v or (whole run) a mass is bad, in worlds that two chunks compute as well."""
    model, names = model_of("constant hinge maps"), ("q", "v", "mass")
    q, v, tau = states(model, TWO_CHUNKS)
    masses = np.tile(model.parameters.body_mass, (TWO_CHUNKS, 1))

    @jax.jit
    @jax.vmap
    def of_worlds(masses, q, v, tau):
        return everything(with_parameters(model, {"body_mass": masses}), q, v, tau)

    if request.config.getoption("--trimmed"):
        names, of_worlds = names[:2], lambda _, *x: everything_together("constant hinge maps")(*x)

    healthy = of_worlds(masses, q, v, tau)
    for name, world in itertools.product(names, (1, 100, TWO_CHUNKS - 1)):
        spoilt = {"q": q.copy(), "v": v.copy(), "mass": masses.copy()}
        spoilt[name][world, -1] = bad
        found = of_worlds(spoilt["mass"], spoilt["q"], spoilt["v"], tau)
        assert not np.isfinite(found["forward"][world]).all(), (name, world)
        for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(healthy), strict=True):
            np.testing.assert_array_equal(*(np.delete(np.asarray(z), world, 0) for z in (x, y)))
