"""Many worlds at once give what each gives alone: values and derivatives, whoever shares what."""

import functools
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

import mbjax
from mbjax.execution import for_worlds, is_batched, keeps_found
from mbjax.execution.calls.compiled_calls import call_compiled, compiled_outside_jit
from mbjax.execution.worlds.chunks import CHUNK
from mbjax.kinematics import placed
from tests.gradients.checks import WHOLE_RUN, compiled
from tests.models import random_tree, relative_error

WORLDS = 2 * CHUNK + 57  # three chunks that are not quite full
SAMPLED = (0, 3, WORLDS - 1)


@functools.cache
def model() -> mbjax.MultibodyModel:
    """A tree with branches, of joints of one and several degrees of freedom."""
    return random_tree(3, ("revolute", "universal", "prismatic", "revolute", "quaternion_floating"), 0.01).model


@functools.cache
def samples():
    states = jax.vmap(lambda key: mbjax.random_state_within_limits(model(), key))(
        jax.random.split(jax.random.key(0), WORLDS)
    )
    return states.q, states.v, jax.random.normal(jax.random.key(1), states.v.shape)


def discrete_step(model, q, v, tau):
    inputs = mbjax.Inputs(applied_generalized_force=tau)
    return mbjax.step(model, mbjax.State(q, v, jnp.zeros((), q.dtype)), inputs)[0].q


FUNCTIONS = {
    "forward dynamics": mbjax.forward_dynamics,
    "inverse dynamics": functools.partial(mbjax.inverse_dynamics, force_elements=True),
    "mass matrix": lambda model, q, v, tau: mbjax.mass_matrix(model, q),
    "poses": lambda model, q, v, tau: mbjax.body_poses_in_world(model, q).translation,
    "gravity": lambda model, q, v, tau: mbjax.gravity_generalized_forces(model, q),
    "step": discrete_step,
}
ALONE = {name: compiled(function) for name, function in FUNCTIONS.items()}
TOGETHER = {name: compiled(jax.vmap(function, (None, 0, 0, 0))) for name, function in FUNCTIONS.items()}
OF_INVERSE = pytest.mark.whole_run("gradients by what few worlds share and own, in test_few_worlds.py")


def trees_differ_by(a, b) -> float:
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return max(relative_error(x, y) for x, y in pairs if np.any(np.asarray(y)))


def alone(i: int, name: str = "forward dynamics") -> jax.Array:
    return ALONE[name](model(), *(x[i] for x in samples()))


@pytest.mark.whole_run("forward dynamics where a world is bad, below; steps in tests/environments/test_environment.py")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_world_is_as_alone(name: str) -> None:
    together = TOGETHER[name](model(), *samples())
    for i in SAMPLED:
        assert relative_error(together[i], alone(i, name)) < 1e-12


@pytest.mark.parametrize(
    "name", ["inverse dynamics", *(pytest.param(n, marks=OF_INVERSE) for n in ("forward dynamics", "poses"))]
)
@pytest.mark.whole_run("gradients by what few worlds share and own, in test_few_worlds.py")
def test_gradients_of_shared_and_own_arguments(name: str) -> None:
    q, v, tau = samples()
    weights = jnp.cos(jnp.arange(WORLDS * 1.0))

    def cost(model, q, v, tau):
        return jnp.sum(jnp.sin(FUNCTIONS[name](model, q, v, tau)))

    def total(model, q, tau):  # all worlds share the model and v
        return jnp.sum(weights * jax.vmap(cost, in_axes=(None, 0, None, 0))(model, q, v[0], tau))

    shared, own = compiled(jax.grad(total, (0, 1)))(model(), q, tau)
    per_world = compiled(jax.vmap(jax.grad(cost, (0, 1)), in_axes=(None, 0, None, 0)))(model(), q, v[0], tau)
    summed = jax.tree.map(lambda g: jnp.tensordot(weights, g, 1), per_world[0])
    assert trees_differ_by(shared, summed) < 1e-10
    assert relative_error(own, weights[:, None] * per_world[1]) < 1e-12
    alone = compiled(jax.grad(cost, (0, 1)))
    assert trees_differ_by(alone(model(), q[3], v[0], tau[3]), jax.tree.map(lambda g: g[3], per_world)) < 1e-10


def test_models_that_differ() -> None:
    q, v, tau = (x[:12] for x in samples())
    factors = 1.0 + 0.1 * jnp.arange(12.0)
    scaled = compiled(jax.vmap(lambda f: mbjax.set_masses(model(), f * model().parameters.body_mass)))(factors)
    together = compiled(jax.vmap(mbjax.forward_dynamics))(scaled, q, v, tau)
    for i in (0, 11):
        own = mbjax.set_masses(model(), factors[i] * model().parameters.body_mass)
        assert relative_error(together[i], ALONE["forward dynamics"](own, q[i], v[i], tau[i])) < 1e-12


@pytest.mark.whole_run("derivatives where worlds have models of their own, in test_recursions_of_own_models.py")
def test_gradients_by_models_that_differ() -> None:
    """By a recursion, where what follows from a model is computed with its world, and where it is kept in memory."""
    base = random_tree(5, ("revolute", "planar", "quaternion_floating", "prismatic")).model
    states = jax.vmap(lambda key: mbjax.random_state(base, key))(jax.random.split(jax.random.key(2), 5))
    numbers = jax.random.split(jax.random.key(3), 5)

    def other(key: jax.Array) -> mbjax.MultibodyModel:
        leaves, treedef = jax.tree.flatten(base)
        keys = jax.random.split(key, len(leaves))
        moved = [x + 0.01 * jax.random.normal(k, x.shape, x.dtype) for x, k in zip(leaves, keys, strict=True)]
        return jax.tree.unflatten(treedef, moved)

    def gradient(model: mbjax.MultibodyModel, state: mbjax.State) -> mbjax.MultibodyModel:
        return jax.grad(lambda m: jnp.sum(jnp.sin(mbjax.forward_dynamics(m, state.q, state.v, state.v))))(model)

    models = compiled(jax.vmap(other))(numbers)
    computed, kept = (compiled(jax.vmap(f))(models, states) for f in (gradient, jax.jit(gradient)))
    alone = compiled(gradient)
    for i in (0, 4):
        expected = alone(*of_world((models, states), i))
        for found in (computed, kept):
            assert trees_differ_by(of_world(found, i), expected) < 1e-10


def of_world(tree, i: int):
    return jax.tree.map(lambda x: x[i], tree)


def test_worlds_that_differ_elsewhere_share_what_follows_from_frames_and_inertias() -> None:
    def placement(factor: jax.Array):
        damping = factor * model().parameters.joint_damping
        return placed(eqx.tree_at(lambda m: m.parameters.joint_damping, model(), damping)).placement

    shared = jax.vmap(placement, out_axes=None)(jnp.ones(3))  # raises where a result is batched
    assert shared.bodies.R_PF.ndim == 3


def test_what_is_known_to_be_batched() -> None:
    seen = []

    def look(x: jax.Array) -> jax.Array:
        seen.append(is_batched({"x": x, "y": 2.0}))
        return jnp.sum(x * x)

    x = jnp.ones((3, 2))
    jax.jit(jax.vmap(look))(x)
    jax.vmap(jax.grad(look))(x)
    jax.jit(jax.grad(lambda x: jnp.sum(jax.vmap(look)(x))))(x)
    jax.jit(jax.vmap(jax.hessian(look)))(x)
    assert seen == [True] * 4
    seen.clear()
    look(x)
    jax.jit(jax.grad(look))(x)
    jax.vmap(jax.jit(look))(x)
    jax.jit(lambda x: jax.vmap(lambda y: look(x) + y)(x[:, 0]))(x)
    assert seen == [False] * 4


@pytest.mark.parametrize("worlds", [(), (3,), (WORLDS,), (5, CHUNK)])
def test_a_function_is_traced_once(worlds: tuple[int, ...]) -> None:
    """Worlds or not: with those of a chunk from the start, as it will be lowered, and as it is differentiated."""
    traced = []

    def square(x: jax.Array, y: jax.Array) -> jax.Array:
        traced.append(x.shape)
        return x * x + y

    def function(x: jax.Array) -> jax.Array:
        return for_worlds(square, x, np.ones(2))

    for _ in worlds:
        function = jax.vmap(function)
    x = jnp.arange(2.0 * np.prod(worlds, dtype=int)).reshape(*worlds, 2)
    np.testing.assert_array_equal(jax.jit(function)(x), np.asarray(x) ** 2 + 1)
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: jnp.sum(function(x))))(x), 2 * np.asarray(x))
    assert len(traced) == 1, traced


@pytest.mark.whole_run("forces and states that worlds share, in batches of batches")
def test_numpy_arrays_are_shared_like_others() -> None:
    """Also where the number of bodies is the number of worlds, and a missing axis would broadcast unseen."""
    count = model().topology.num_mobods
    q, v, tau = (x[:count] for x in samples())
    body = np.random.default_rng(0).normal(size=(model().num_bodies, 6))
    heavy = eqx.tree_at(lambda m: m.parameters.gravity, model(), np.array([1.0, 2.0, -5.0]))
    gravity = compiled(jax.vmap(lambda q: mbjax.gravity_generalized_forces(heavy, q)))(q)
    pushed = compiled(
        jax.vmap(lambda q, v, t: mbjax.forward_dynamics(model(), q, v, t, mbjax.MultibodyForces(np.ones(v.size), body)))
    )(q, v, tau)
    forces = mbjax.MultibodyForces(jnp.ones(v.shape[1]), jnp.asarray(body))
    own = mbjax.set_gravity(model(), [1.0, 2.0, -5.0])
    assert relative_error(gravity[2], ALONE["gravity"](own, q[2], v[2], tau[2])) < 1e-12
    by_forces = compiled(mbjax.forward_dynamics)(model(), q[2], v[2], tau[2], forces)
    assert relative_error(pushed[2], by_forces) < 1e-12


def test_batches_of_batches_and_one_world() -> None:
    """Whole run: worlds along another axis, and one of them, too."""
    q, v, tau = (x[:6] for x in samples())
    dynamics = functools.partial(FUNCTIONS["inverse dynamics"], model())
    each = jnp.stack([alone(i, "inverse dynamics") for i in range(6)])
    nested = compiled(jax.vmap(jax.vmap(dynamics)))(*(x.reshape(2, 3, -1) for x in (q, v, tau)))
    assert relative_error(nested.reshape(6, -1), each) < 1e-12
    if WHOLE_RUN:
        transposed = compiled(jax.vmap(dynamics, in_axes=(1, 1, 1), out_axes=1))(q.T, v.T, tau.T)
        assert relative_error(transposed.T, each) < 1e-12
        assert relative_error(compiled(jax.vmap(dynamics))(q[:1], v[:1], tau[:1])[0], each[0]) < 1e-12
    only_inner = jax.vmap(jax.vmap(dynamics, in_axes=(None, 0, None)), in_axes=(0, None, 0))
    expected = ALONE["inverse dynamics"](model(), q[1], v[2], tau[1])
    assert relative_error(compiled(only_inner)(q[:2], v[:3], tau[:2])[1, 2], expected) < 1e-12

    def cost(v, q, tau):  # the inner worlds share v
        return jnp.sum(jax.vmap(dynamics, in_axes=(0, None, 0))(q, v, tau) ** 2)

    outer = compiled(jax.vmap(jax.grad(cost)))(v[:2], q.reshape(2, 3, -1), tau.reshape(2, 3, -1))
    assert relative_error(outer[1], compiled(jax.grad(cost))(v[1], q[3:], tau[3:])) < 1e-12


@pytest.mark.whole_run("batches of batches, with a gradient")
def test_jacobians_and_hessians() -> None:
    q, v, tau = (x[:3] for x in samples())
    fd = functools.partial(mbjax.forward_dynamics, model())
    forward = compiled(jax.vmap(jax.jacfwd(fd, (0, 1))))(q, v, tau)
    reverse = compiled(jax.vmap(jax.jacrev(fd, (0, 1))))(q, v, tau)
    alone = compiled(jax.jacfwd(fd, (0, 1)))(q[1], v[1], tau[1])
    for f, r, a in zip(forward, reverse, alone, strict=True):
        assert relative_error(f, r) < 1e-10
        assert relative_error(f[1], a) < 1e-12

    def moved(q, dv):  # worlds share the point v, not the tangent
        return jax.jvp(lambda v: fd(q, v, tau[0]), (v[0],), (dv,))[1]

    pulled = compiled(lambda q, ct: jax.vjp(lambda dv: jax.vmap(moved)(q, dv), v)[1](ct)[0])(q, tau)
    alone = compiled(lambda q, ct: jax.vjp(lambda dv: moved(q, dv), v[1])[1](ct)[0])(q[1], tau[1])
    assert relative_error(pulled[1], alone) < 1e-12

    def cost(v, tau):
        return jnp.sum(fd(q[0], v, tau) ** 2)

    together = compiled(jax.vmap(jax.hessian(cost)))(v, tau)
    assert relative_error(together[1], compiled(jax.hessian(cost))(v[1], tau[1])) < 1e-12


def sine_and_square(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jnp.sin(x), x * x


def test_results_without_a_cotangent_are_not_gone_back_through() -> None:
    """Of one world, of many, and where several cotangents are pulled back at one point."""
    x = jnp.linspace(0.1, 2.0, 12).reshape(4, 3)
    identity = jnp.eye(3)

    def squares(x: jax.Array) -> jax.Array:
        return for_worlds(sine_and_square, x)[1]

    def first_two(x: jax.Array) -> jax.Array:
        return jax.vmap(lambda ct: jax.vjp(squares, x)[1](ct)[0])(identity[:2])

    total = jax.grad(lambda x: jnp.sum(squares(x)))
    for function, argument, expected in (
        (total, x[0], 2.0 * x[0]),
        (jax.vmap(total), x, 2.0 * x),
        (jax.vmap(first_two), x, 2.0 * x[:, None] * identity[:2]),
        (jax.jacfwd(total), x[0], 2.0 * identity),
    ):
        compiled_function = jax.jit(function).lower(argument).compile()
        np.testing.assert_allclose(compiled_function(argument), expected, rtol=1e-14)
        assert "cosine(" not in compiled_function.as_text()


def squared_and_counted(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return x * x, jnp.sum((x > 0.0).astype(jnp.int32), axis=0)


def test_counts_beside_numbers_have_no_tangent() -> None:
    """Results that are integers, as iterations are, of functions that are differentiated as a whole."""

    def f(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return for_worlds(squared_and_counted, x)

    x = jnp.array([[1.0, -2.0], [3.0, 4.0]])
    for g, y in ((f, x[0]), (jax.vmap(f), x)):
        (_, count), (slope, none) = jax.jit(lambda y, g=g: jax.jvp(g, (y,), (jnp.ones_like(y),)))(y)
        np.testing.assert_array_equal(slope, 2.0 * y)
        assert none.dtype == jax.dtypes.float0
        assert none.shape == count.shape
        gradient = jax.jit(jax.grad(lambda y, g=g: jnp.sum(g(y)[0])))(y)
        np.testing.assert_array_equal(gradient, 2.0 * y)


@jax.custom_jvp
def at_root(root: jax.Array, x: jax.Array) -> jax.Array:
    """The square root of x, which is `root`, with its derivative by x."""
    return root


@at_root.defjvp
def _at_root_jvp(primals: tuple, tangents: tuple) -> tuple[jax.Array, jax.Array]:
    root = at_root(*primals)
    return root, 0.5 / root * tangents[1]


def square_root(x: jax.Array, found: jax.Array | None = None) -> tuple[tuple[jax.Array, jax.Array], jax.Array, None]:
    """By iterations, each of which forgets its derivative."""
    if found is None:
        fixed = jax.lax.stop_gradient(x)
        found = jax.lax.fori_loop(0, 20, lambda _, y: 0.5 * (y + fixed / y), jnp.ones_like(x))
    root = at_root(found, x)
    return (3.0 * root, jnp.sum((x > 0.0).astype(jnp.int32), axis=0)), root, None


def test_derivatives_at_what_was_found() -> None:
    """Derivatives of all orders and modes are those at what the function itself found, of one world and of many.

    That it is not searched for again: tests/contact/test_gradients.py.
    """

    def f(x: jax.Array) -> jax.Array:
        return for_worlds(square_root, x, finds=True)[0]

    x = jnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    for g, y in ((f, x[0]), (jax.vmap(f), x), (jax.vmap(jax.vmap(f)), jnp.stack([x, 2.0 * x]))):
        kept = jax.checkpoint(g, policy=keeps_found)
        slope = compiled(lambda y, g=g: jax.jvp(g, (y,), (jnp.ones_like(y),))[1])(y)
        np.testing.assert_allclose(slope, 1.5 * y**-0.5, rtol=1e-14)
        gradient = compiled(jax.grad(lambda y, g=kept: jnp.sum(g(y) ** 3)))(y)
        np.testing.assert_allclose(gradient, 40.5 * y**0.5, rtol=1e-14)
        curvature = compiled(jax.grad(lambda y, g=kept: jnp.sum(jax.grad(lambda y: jnp.sum(g(y)))(y))))(y)
        np.testing.assert_allclose(curvature, -0.75 * y**-1.5, rtol=1e-14)


def test_without_compilation() -> None:
    """For debugging: `jax.disable_jit` reaches the code inside."""
    small = mbjax.load(mbjax.reference_models.path("pendulum"))
    q = jnp.array([0.4])
    with jax.disable_jit():
        plain = mbjax.gravity_generalized_forces(small, q)
    assert relative_error(plain, mbjax.gravity_generalized_forces(small, q)) < 1e-12


def test_calls_compiled_as_a_whole() -> None:
    """Traced once for a function and shapes, whatever the numbers; the plain call where it is traced already."""
    q, v, _ = samples()
    traces = []

    def two_energies(model, q, v):
        traces.append(q)
        return {"kinetic": mbjax.kinetic_energy(model, q, v), "potential": mbjax.potential_energy(model, q)}

    first = call_compiled(two_energies, model(), q[0], v[0])
    heavier = mbjax.set_masses(model(), 2.0 * model().parameters.body_mass)
    second = call_compiled(two_energies, heavier, np.asarray(q[0]), v[0])
    assert len(traces) == 1
    assert relative_error(second["potential"], 2.0 * first["potential"]) < 1e-12
    within = compiled(lambda q: call_compiled(two_energies, model(), q, v[0])["kinetic"])(q[0])
    assert len(traces) == 2
    assert relative_error(within, first["kinetic"]) < 1e-12


def test_numbers_of_functions_compiled_outside_jit_are_never_static() -> None:
    """Lists where the signature has an array, and floats anywhere; what else differs is another program."""
    traces = []

    @compiled_outside_jit
    def moved(x: Float[Array, "3"], more: dict, axis: int, offset: Float[Array, "3"] | None = None) -> jax.Array:
        traces.append(axis)
        x = jnp.asarray(x, float) + (0.0 if offset is None else jnp.asarray(offset, float))
        return x.at[axis].add(more["by"])

    np.testing.assert_allclose(moved([1, 2, 3], {"by": 0.5}, 1), [1.0, 2.5, 3.0])
    np.testing.assert_allclose(moved([4, 5, 6], {"by": np.float64(1.5)}, axis=1), [4.0, 6.5, 6.0])
    assert traces == [1]
    np.testing.assert_allclose(moved([1.0, 2.0, 3.0], {"by": 0.5}, 2, [1.0, 0.0, 0.0]), [2.0, 2.0, 3.5])
    np.testing.assert_allclose(moved([1.0, 2.0, 4.0], {"by": 0.5}, 2, (2.0, 0.0, 0.0)), [3.0, 2.0, 4.5])
    assert traces == [1, 2]
    assert moved([1.0, 2.0, 4.0], {"by": 0.5}, np.array(2), (2.0, 0.0, 0.0))[2] == 4.5
    assert traces == [1, 2]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'axis'"):
        moved([1, 2, 3], {})
    slope = jax.grad(lambda by: jnp.sum(moved([1.0, 2.0, 3.0], {"by": by}, 0)))(2.0)
    assert slope == 1.0


def test_arguments_by_name_after_ones_left_out_reach_functions_compiled_outside_jit() -> None:
    """Also a real one: the Jacobian by q̇ is not that by v where an optional argument before `wrt` is left out."""

    @compiled_outside_jit
    def scaled(x: Float[Array, "3"], power: int = 1, factor: float = 1.0) -> jax.Array:
        return factor * x**power

    np.testing.assert_allclose(scaled(jnp.arange(3.0), factor=2.0), [0.0, 2.0, 4.0])
    with pytest.raises(AssertionError):
        compiled_outside_jit(lambda x, *, factor: factor * x)
    q = mbjax.default_state(model()).q
    by_name = mbjax.jacobian_center_of_mass_translational_velocity(model(), q, wrt="qdot")
    np.testing.assert_array_equal(
        by_name, mbjax.jacobian_center_of_mass_translational_velocity(model(), q, None, "qdot")
    )
    assert by_name.shape == (3, model().num_positions)


def test_what_nobody_reads_is_not_computed() -> None:
    """Of one world and of several, in loops and where derivatives are taken later, too."""

    def plain(x: jax.Array) -> tuple:
        return jnp.sin(x), jnp.exp(x), x * jnp.tanh(x)  # which can be a kernel: XLA would leave all of it in

    def one(x: jax.Array) -> jax.Array:
        return for_worlds(plain, x)[1]

    def rolled(x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 3, lambda _, x: 0.1 * one(x), x)

    x = jnp.linspace(0.0, 1.0, 4)
    worlds = jnp.stack([x] * 200)
    for function, given in ((one, x), (jax.vmap(one), worlds), (rolled, x), (jax.grad(lambda x: one(x)[0]), x)):
        program = jax.jit(function).lower(given).compile().as_text()
        assert " exponential(" in program
        assert not re.search(r" (sine|cosine|tanh)\(", program)
    slopes = jax.jit(jax.vmap(jax.grad(jax.checkpoint(lambda x: jnp.sum(rolled(x))))))(worlds)
    np.testing.assert_allclose(slopes[0], jax.grad(lambda x: jnp.sum(rolled(x)))(x), rtol=1e-12)


def test_no_worlds_at_all() -> None:
    """As `vmap` of any function."""
    q, v, tau = (x[:0] for x in samples())

    def everything(q, v, tau):
        results = [function(model(), q, v, tau) for function in FUNCTIONS.values()]
        by_state = jax.grad(lambda *x: jnp.sum(mbjax.forward_dynamics(model(), *x)), (0, 1, 2))(q, v, tau)
        return results, by_state, jax.jacfwd(lambda v: mbjax.inverse_dynamics(model(), q, v, tau))(v)

    one = jax.eval_shape(everything, *(x[0] for x in samples()))
    found = compiled(jax.vmap(everything))(q, v, tau)
    assert [x.shape for x in jax.tree.leaves(found)] == [(0, *x.shape) for x in jax.tree.leaves(one)]


def test_worlds_without_a_degree_of_freedom() -> None:
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("fixed", mbjax.SpatialInertia.solid_box_with_mass(1.0, 0.1, 0.2, 0.3))
    plant.add_joint(mbjax.WeldJoint("weld", "world", "fixed"))
    still, x = plant.finalize(), jnp.zeros((3, 0))

    def everything(q, v, tau):
        dynamics = functools.partial(mbjax.forward_dynamics, still, force_elements=True)
        whole = mbjax.forward_dynamics_derivatives(still, q, v, tau, force_elements=True)
        return dynamics(q, v, tau), jax.jacfwd(dynamics)(q, v, tau), jax.jacrev(dynamics, 2)(q, v, tau), whole

    assert {x.shape[0] for x in jax.tree.leaves(compiled(jax.vmap(everything))(x, x, x))} == {3}


def test_a_bad_world_stays_alone() -> None:
    q, v, tau = samples()
    bad = q.at[1].set(jnp.nan)
    got, expected = (TOGETHER["forward dynamics"](model(), x, v, tau) for x in (bad, q))
    for i in SAMPLED:
        assert relative_error(expected[i], alone(i)) < 1e-12
    assert np.all(np.isnan(got[1]))
    others = np.arange(WORLDS) != 1
    assert np.array_equal(got[others], expected[others])
