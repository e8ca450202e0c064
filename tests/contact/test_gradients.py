"""Derivatives of a step with contact: forward = reverse = differences, by the state and by every leaf."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import mbjax
from mbjax.contact.search import convex_search, convex_solver
from mbjax.geometry import Capsule, Geometry, HalfSpace, ProximityProperties, Sphere
from tests.gradients.checks import (
    Gradients,
    all_gradients,
    central_differences,
    check_gradients,
    compare,
    compiled,
    entry_names,
)
from tests.models import relative_error

from .test_impact_gradients import at, ball
from .test_newton_matrix import three_trees

BALL = mbjax.SpatialInertia(0.7, [0.01, 0.0, 0.02], mbjax.UnitInertia(0.005, 0.004, 0.006, 0.0, 0.0, 0.0))
LOCAL = ("slides", "sticks", "apart")


def two_balls(approximation: str = "sap", time_step: float = 1e-3, **options) -> mbjax.MultibodyModel:
    """A ball on the ground and a capsule on a limited hinge that lies on it; every material number given once."""
    plant = mbjax.MultibodyPlant(time_step, discrete_contact_approximation=approximation, **options)
    plant.add_rigid_body("ball", BALL)
    plant.add_rigid_body("lid", BALL)
    X = mbjax.RigidTransform(jnp.eye(3), jnp.array([-0.3, 0.0, 0.22]))
    plant.add_joint(mbjax.RevoluteJoint("hinge", "world", "lid", axis=[0, 1, 0], X_PF=X, position_limits=(-0.5, 0.1)))
    given = ProximityProperties(0.6, 0.4, point_stiffness=2e4, hunt_crossley_dissipation=2.0, relaxation_time=0.02)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), ProximityProperties(0.5, 0.3))
    plant.register_collision_geometry("ball", Geometry("round", Sphere(0.1)), given)
    lying = Geometry(
        "bar", Capsule(0.02, 0.7), rotation=((0, 0, 1.0), (0, 1.0, 0), (-1.0, 0, 0)), translation=(0.3, 0, 0)
    )
    plant.register_collision_geometry("lid", lying, ProximityProperties(0.3, 0.2))
    return plant.finalize()


def state_of(case: str) -> tuple[jax.Array, jax.Array]:
    """Between ground and lid, turning or at rest; or above the one and below the other."""
    height, lift = (0.12, -0.2) if case == "apart" else (0.0995, 0.007)
    q = jnp.array([lift, 0.9, 0.1, -0.3, 0.2, 0.05, 0.02, height])
    slides = jnp.array([0.3, 0.5, -1.0, 0.3, 0.4, -0.2, -0.05])
    return q, 1e-5 * slides if case == "sticks" else slides


def step_of(model: mbjax.MultibodyModel, q: jax.Array, v: jax.Array) -> jax.Array:
    """q and v after a step, and the forces at the contacts in units of 100 N."""
    after, outputs = mbjax.step(model, mbjax.State(q, v, jnp.zeros((), q.dtype)))
    return jnp.concatenate([after.q, after.v, 0.01 * outputs.contact_results.force.ravel()])


@pytest.mark.whole_run("a gradient factorizes once, in tests/constraints/test_constraint_gradients.py")
def test_gradients_do_not_search_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient of a rollout, whose steps are recomputed, holds the search once; it is marked by a sort."""
    model, (q, v) = two_balls(), state_of("slides")
    search = convex_solver.search  # no kernel can sort, so XLA runs it

    def marked(*args):
        found = search(*args)
        return found._replace(vdot=found.vdot + 0.0 * jnp.sort(found.vdot, axis=0))

    monkeypatch.setattr(convex_solver, "search", marked)

    def after(v: jax.Array) -> jax.Array:
        return jnp.sum(mbjax.rollout(model, mbjax.State(q, v, jnp.zeros(())), num_steps=3).final_state.q)

    assert compiled(jax.grad(after)).lower(v).compile().as_text().count(" sort(") == 1


@pytest.mark.whole_run("steps of a ball with friction, in test_impact_gradients.py")
@pytest.mark.parametrize("approximation", ["sap", "lagged", "similar"])
def test_by_the_state(approximation: str) -> None:
    """Each of the modes of contact, the three states in one batch."""
    model = two_balls(approximation)
    states = [state_of(case) for case in LOCAL]
    q, v = (jnp.stack([state[i] for state in states]) for i in range(2))
    steps = jax.vmap(lambda q, v: step_of(model, q, v))
    forces = compiled(steps)(q, v)[:, 15:]
    assert (np.abs(forces).max(axis=1) > 1e-3).tolist() == [True, True, False]

    def total(q, v):
        weights = jnp.cos(jnp.arange(forces.shape[1] + 15.0))
        return jax.vmap(lambda q, v: step_of(model, q, v) @ weights)(q, v)

    check_gradients(total, q, v, step=1e-7, tolerance=1e-5)


@pytest.mark.whole_run("steps that start at their solution, in test_impact_gradients.py")
@pytest.mark.parametrize("approximation", ["sap", "lagged", "similar"])
def test_gradients_do_not_depend_on_the_tolerance_of_the_solver(monkeypatch, approximation: str) -> None:
    """G45: a hundred times tighter, with more iterations or as many, the gradient is the same to 1e-6."""
    states = [state_of(case) for case in LOCAL]
    q, v = (jnp.stack([state[i] for state in states]) for i in range(2))
    model, weights = two_balls(approximation), jnp.cos(jnp.arange(15.0))

    def total(q: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        after, outputs = mbjax.step(model, mbjax.State(q, v, jnp.zeros(())))
        return jnp.concatenate([after.q, after.v]) @ weights, outputs.contact_results.num_iterations

    found = []
    for rounding in (convex_search.BALANCED[8], 1e-2 * convex_search.BALANCED[8]):
        monkeypatch.setitem(convex_search.BALANCED, 8, rounding)
        found.append(compiled(jax.vmap(jax.grad(total, argnums=(0, 1), has_aux=True)))(q, v))
    (loose, few), (tight, many) = found
    errors = [relative_error(a, b) for a, b in zip(loose, tight, strict=True)]
    print(f"{approximation}: {few} and {many} iterations, gradients apart by {errors}")
    assert (many >= few).all()
    assert np.max(errors) < 1e-6


def without_forward(f: Callable, *by: Any, step: np.ndarray) -> Gradients:
    """`all_gradients`, with reverse mode in the place of forward mode."""
    flat, unravel = ravel_pytree(by)

    def g(values: jax.Array) -> jax.Array:
        return f(*unravel(values))

    reverse = np.asarray(compiled(jax.jacrev(g))(flat))
    differences = compiled(lambda x: central_differences(g, x, step))(flat)
    return Gradients(reverse, reverse, np.asarray(differences), entry_names(by))


@pytest.mark.whole_run("impacts' gradients, by friction too, and signed distances' derivatives")
def test_by_every_leaf_of_contact_and_the_state(request: pytest.FixtureRequest) -> None:
    """Each moves a step of sap, compliant or near-rigid, or the continuous plant.

    Trimmed: reverse = differences, for forward mode is in test_impact_gradients.py. Whole run: a lagged step too.

    The steps of sap are those of each mode of contact, and one where it slides and is near-rigid.
    """
    cases, factors = (*LOCAL, "slides"), jnp.array([1.0, 1.0, 1.0, 50.0])
    q, v = (jnp.stack([state_of(case)[i] for case in cases]) for i in range(2))
    compliant, lagged, continuous = two_balls(), two_balls("lagged"), two_balls(time_step=0.0)
    trimmed = request.config.getoption("--trimmed")

    def f(collision: mbjax.CollisionParameters, q: jax.Array, v: jax.Array) -> jax.Array:
        at = [eqx.tree_at(lambda m: m.collision, m, collision) for m in (compliant, lagged, continuous)]

        def sap(case: tuple) -> jax.Array:
            factor, q, v = case
            model = mbjax.set_sap_near_rigid_threshold(at[0], factor * collision.sap_near_rigid_threshold)
            after = step_of(model, q, v)
            return jnp.stack([after @ jnp.cos(jnp.arange(float(after.size))), jnp.sum(after[15:])])

        totals, forces = jax.lax.map(sap, (factors, q, v)).T
        slow = mbjax.State(q[0], 3e-4 * v[0], jnp.zeros(()))  # where friction is still rising
        others = [1e-3 * mbjax.time_derivatives(at[2], slow)[1] @ jnp.cos(jnp.arange(7.0))]
        if not trimmed:
            others.append(step_of(at[1], q[0], v[0])[:15] @ jnp.cos(jnp.arange(15.0)))
        return jnp.concatenate([totals, forces, jnp.stack(others)])

    by = (compliant.collision, q, v)
    is_leaf = np.concatenate([np.full(np.size(x), k == 0) for k in range(3) for x in jax.tree.leaves(by[k])])
    step = np.where(is_leaf, 1e-6, 1e-7)
    result = without_forward(f, *by, step=step) if trimmed else all_gradients(f, *by, step=step)
    for block in (is_leaf, ~is_leaf):  # each beside its own largest entry
        names = [name for name, chosen in zip(result.names, block, strict=True) if chosen]
        compare(Gradients(*(x[:, block] for x in result[:3]), names), tolerance=1e-5)
    assert result.reverse[4:8, is_leaf].any(axis=1).tolist() == [True, True, False, True]  # apart there is no force
    by_leaves = zip(result.names, result.reverse.T, is_leaf, strict=True)
    moved = {name.split("[")[1][3:] for name, column, is_one in by_leaves if is_one and column.any()}
    fields = {field.name for field in dataclasses.fields(compliant.collision)}
    elsewhere = {  # see tests/geometry, test_impact_gradients, test_signed_distances, test_hydroelastic_steps
        "vertices",
        "smoothing_length",
        "others",
        "hydroelastic_modulus",
    }
    assert moved == fields - elsewhere


@pytest.mark.whole_run("steps of a ball with friction, in test_impact_gradients.py")
def test_where_limbs_touch_and_where_trees_do() -> None:
    """By the state, through the paths of both bodies and, where a world chooses its points, through their Jacobian."""
    every, rng = three_trees(), np.random.default_rng(5)
    q = mbjax.default_state(every).q + 0.05 * rng.normal(size=every.num_positions)
    v = jnp.asarray(0.3 * rng.normal(size=every.num_velocities))
    contacts = compiled(lambda q, v: mbjax.step(every, mbjax.State(q, v, jnp.zeros(())))[1].contact_results)(q, v)
    is_active = np.asarray(contacts.is_active)
    kept = three_trees(max_contacts=int(is_active.sum()))
    assert 10 < is_active.sum() < is_active.size

    def checked(model: mbjax.MultibodyModel) -> np.ndarray:
        result = all_gradients(lambda q, v: 1e-2 * step_of(model, q, v), q, v, step=1e-6)
        compare(result)
        return result.reverse

    paths, jacobian = checked(every), checked(kept)
    np.testing.assert_allclose(jacobian, paths, rtol=0.0, atol=1e-9 * np.abs(paths).max())


@pytest.mark.whole_run("first derivatives, in test_impact_gradients.py")
def test_second_derivatives_where_it_slides() -> None:
    """Of a ball: the Hessian along a direction, forward over reverse, against differences of gradients."""
    model, state = ball(), at(-5e-4, -0.05, 0.4)
    v = state.v + jnp.array([0.3, 0.5, -1.0, 0.0, -0.2, 0.0])
    weights = jnp.cos(jnp.arange(13.0))
    gradient = jax.grad(lambda v: step_of(model, state.q, v)[:13] @ weights)
    direction, h = jnp.sin(jnp.arange(6.0)), 1e-5
    along = compiled(lambda v: jax.jvp(gradient, (v,), (direction,)))
    differences = (along(v + h * direction)[0] - along(v - h * direction)[0]) / (2.0 * h)
    assert np.abs(differences).max() > 1e-3
    assert relative_error(along(v)[1], differences) < 1e-6


@pytest.mark.whole_run("worlds that break in test_drops.py")
def test_worlds_do_not_touch_each_other() -> None:
    """G51: one NaN world among many, some of which need more iterations than others."""
    model = two_balls()
    q, v = state_of("slides")
    q = jnp.stack([q.at[7].add(0.0003 * i) for i in range(8)])

    def push(q: jax.Array, f: jax.Array) -> tuple[jax.Array, jax.Array, mbjax.ContactResults]:
        inputs = mbjax.Inputs(applied_generalized_force=jnp.zeros(7).at[4].set(f))
        after, outputs = mbjax.step(model, mbjax.State(q, v, jnp.zeros(())), inputs)
        return jnp.append(after.q, after.v), outputs.generalized_acceleration, outputs.contact_results

    alone, zero = jax.jit(push), jnp.zeros(())
    of_each = jax.jit(jax.vmap(push, (0, None)))
    healthy, hurt = of_each(q, zero), of_each(q.at[3, 7].set(jnp.nan), zero)
    others = np.arange(8) != 3
    for a, b in ((healthy[0], hurt[0]), (healthy[2].force, hurt[2].force)):
        np.testing.assert_array_equal(np.asarray(a)[others], np.asarray(b)[others])
    assert np.isnan(hurt[0][3]).any()
    np.testing.assert_allclose(healthy[0][5], alone(q[5], zero)[0], rtol=1e-9, atol=1e-9)
    _, acceleration, contacts = alone(q[0], jnp.asarray(jnp.nan))
    assert np.isnan(acceleration).all()
    assert not contacts.converged
    pushes = jnp.linspace(-30.0, 30.0, 8)  # and worlds that share the state
    together = jax.jit(jax.vmap(push, (None, 0)))(q[0], pushes)
    np.testing.assert_allclose(together[0][6], alone(q[0], pushes[6])[0], rtol=1e-9, atol=1e-9)
