"""One world works on a list of the points that act: it gives what a search among all points gives."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.contact import are_worlds_alone, calc_contact_points
from mbjax.contact.forms import choose
from mbjax.contact.forms.listed_bodies import ListedBodies
from mbjax.contact.forms.listed_trees import ListedTrees
from mbjax.contact.points import contact_list
from mbjax.contact.points.contact_list import list_contacts, with_ordered_pairs
from mbjax.execution import in_one_kernel
from mbjax.geometry import Box, Capsule, Convex, Cylinder, Ellipsoid, Geometry, HalfSpace, Sphere
from mbjax.kinematics import calc_position_kinematics
from tests.gradients.checks import compiled
from tests.models import relative_error

from .test_crowds import crowd
from .test_crowds import thrown as thrown_crowd

STEPS = 3


LONG = Capsule(0.08, 0.2)
HULL = Convex(np.random.default_rng(4).normal(size=(12, 3)) * (0.08, 0.06, 0.1) + (0.02, 0.0, 0.03))


def robot(shape: Any = LONG, dtype: Any = None, **settings: Any) -> mbjax.MultibodyModel:
    """A floating body with two branches that may touch it and each other, a ball of another tree, and the ground."""
    plant = mbjax.MultibodyPlant(2e-3, **settings)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), 0.7)
    inertia = mbjax.SpatialInertia.solid_box_with_mass(1.0, 0.2, 0.1, 0.1)
    for k in range(3):
        plant.add_rigid_body(f"link{k}", inertia)
        if k:
            axis, X_PF = (0.0, 1.0, 0.3 * k), ((0.2, 0.0, 0.0), (0.02, 0.21, 0.0))[k - 1]
            plant.add_joint(mbjax.RevoluteJoint(f"joint{k}", "link0", f"link{k}", axis=axis, X_PF=X_PF))
    plant.register_collision_geometry("link0", Geometry("long", shape), 0.6)
    plant.register_collision_geometry("link1", Geometry("end", Sphere(0.1), translation=(0.0, 0.0, 0.15)), 0.6)
    plant.register_collision_geometry("link2", Geometry("round", Sphere(0.12)), 0.6)
    plant.add_rigid_body("ball", mbjax.SpatialInertia.solid_sphere_with_mass(0.5, 0.1))
    plant.register_collision_geometry("ball", Geometry("ball", Sphere(0.1)), 0.4)
    return plant.finalize(dtype=dtype)


def thrown(model: mbjax.MultibodyModel, count: int) -> tuple[np.ndarray, np.ndarray]:
    """q and v of states in which some shapes overlap: none, few or many."""
    rng, q = np.random.default_rng(1), np.tile(np.asarray(mbjax.default_state(model).q), (count, 1))
    q[:, :4] = rng.normal(size=(count, 4))
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1, keepdims=True)
    q[:, 4:7] = rng.uniform((-0.2, -0.2, -0.05), (0.2, 0.2, 0.8), (count, 3))
    q[:, 7:9] = rng.uniform(-3.0, 3.0, (count, 2))
    q[:, 13:16] = q[:, 4:7] + rng.uniform(-0.25, 0.25, (count, 3))
    return q, rng.normal(size=(count, model.num_velocities))


def is_listed(model: mbjax.MultibodyModel) -> bool:
    """Whether one world of a rollout works on a list on a CPU."""
    return choose.form_on_cpu(model, reads_points=False) in (ListedBodies, ListedTrees)


def velocities(model: mbjax.MultibodyModel, q: jax.Array, v: jax.Array) -> jax.Array:
    return mbjax.rollout(model, mbjax.State(q, v, jnp.zeros(())), num_steps=STEPS).v


def by_steps(model: mbjax.MultibodyModel, q: jax.Array, v: jax.Array) -> jax.Array:
    """`velocities` by calls of `step`, which looks at all points."""

    def one(state: mbjax.State, _: None) -> tuple[mbjax.State, jax.Array]:
        after, _ = mbjax.step(model, state)
        return after, after.v

    return jnp.concatenate([v[None], jax.lax.scan(one, mbjax.State(q, v, jnp.zeros(())), None, length=STEPS)[1]])


def alone_and_together(model: mbjax.MultibodyModel) -> tuple[np.ndarray, np.ndarray]:
    """Velocities of worlds one by one, from lists, and of all at once, from all points."""
    assert is_listed(model)
    assert not are_worlds_alone(model, reads_points=False)  # few pairs
    q, v = (jnp.asarray(x, model.dtype) for x in thrown(model, 40))
    alone = compiled(velocities)
    together = compiled(jax.vmap(velocities, (None, 0, 0)))(model, q, v)
    found = np.stack([alone(model, *state) for state in zip(q, v, strict=True)])
    assert np.isnan(alone(model, q[0].at[6].set(jnp.nan), v[0])[1:]).any()
    return found, np.asarray(together)


@pytest.mark.whole_run("the list has the points that act, below")
@pytest.mark.parametrize("law", ["sap", "similar", "lagged"])
def test_a_list_gives_what_all_points_give(law: str) -> None:
    assert relative_error(*alone_and_together(robot(discrete_contact_approximation=law))) < 1e-10


@pytest.mark.whole_run("the list has the points that act, below")
@pytest.mark.parametrize("kind", ["bodies", "trees"])
def test_worlds_of_a_batch_have_lists_of_their_own(
    kind: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """They give what all points give; NaN stays in its world. Whole run: with derivatives by state and friction."""
    trimmed = request.config.getoption("--trimmed")
    monkeypatch.setattr(choose, "LEAST_POINTS_IN_TREES", 1)
    model, (q, v) = (crowd(), thrown_crowd(crowd(), 9)) if kind == "bodies" else (robot(), thrown(robot(), 9))
    assert are_worlds_alone(model, reads_points=False)
    q, v, friction = jnp.asarray(q), jnp.asarray(v), model.collision.dynamic_friction
    dv, dmu = jnp.asarray(np.random.default_rng(2).normal(size=v.shape)), jnp.full_like(friction, 0.1)

    def moved(function: Any, q: jax.Array, v: jax.Array, dv: jax.Array) -> tuple[jax.Array, jax.Array]:
        def after(v: jax.Array, friction: jax.Array) -> jax.Array:
            collision = dataclasses.replace(model.collision, dynamic_friction=friction)
            return function(dataclasses.replace(model, collision=collision), q, v)

        if trimmed:
            return after(v, friction), jnp.zeros(())
        return jax.jvp(after, (v, friction), (dv, dmu))

    listed, whole = (compiled(jax.vmap(lambda *x, f=f: moved(f, *x))) for f in (velocities, by_steps))
    found, expected = listed(q, v, dv), whole(q, v, dv)
    assert np.abs(np.asarray(expected[0])[:, 1:] - np.asarray(v)[:, None]).max() > 0.1
    for ours, theirs, tolerance in list(zip(found, expected, (1e-10, 1e-9), strict=True))[: 1 if trimmed else 2]:
        assert relative_error(ours, theirs) < tolerance
    spoiled = listed(q.at[4].set(jnp.nan), v, dv)[0]
    assert np.isnan(spoiled[4, 1:]).any()
    others = np.arange(9) != 4
    np.testing.assert_array_equal(spoiled[others], found[0][others])


@pytest.mark.whole_run("kernels on, and double precision")
def test_without_kernels_and_in_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    assert relative_error(*alone_and_together(robot(dtype=jnp.float32))) < 1e-4
    monkeypatch.setenv("MBJAX_ONE_KERNEL", "0")
    jax.clear_caches()
    assert relative_error(*alone_and_together(robot())) < 1e-12
    jax.clear_caches()


SHAPES = [Cylinder(0.08, 0.2), Box((0.15, 0.1, 0.2)), Ellipsoid(0.1, 0.08, 0.12), HULL]


@pytest.mark.parametrize(
    "shape",
    [pytest.param(x, marks=[pytest.mark.whole_run("boxes")] * (not isinstance(x, Box))) for x in SHAPES],
    ids=lambda shape: type(shape).__name__,
)
def test_the_list_has_the_points_that_act(shape: Any) -> None:
    """Of the same pairs, at the same distances and places, where the order of the two shapes may be another."""
    model = robot(shape)
    ordered = with_ordered_pairs(model)

    @compiled
    def both(q: jax.Array) -> tuple:
        position = calc_position_kinematics(model, q)
        return calc_contact_points(model, position), in_one_kernel(lambda p: list_contacts(ordered, p), position)

    counts = []
    for q in thrown(model, 30)[0]:
        points, found = both(jnp.asarray(q))
        acts, count = np.asarray(points.active), int(found.count)
        of_all = np.column_stack(
            [np.array(points.pairs)[acts], points.distance[acts], points.parameters.compliance[acts]]
        )
        of_list = np.column_stack([found.pair, found.distance, found.parameters.compliance])[:count]
        of_all, of_list = (x[np.lexsort(np.round(x, 9).T[::-1])] for x in (of_all, of_list))
        np.testing.assert_allclose(of_list, of_all, atol=1e-9)
        counts.append(count)
    assert min(counts) == 0
    assert max(counts) > 3


@pytest.mark.whole_run("the list has the points that act, above; gradients of contact in test_impact_gradients.py")
def test_derivatives_are_those_of_all_points(request: pytest.FixtureRequest) -> None:
    """Values and tangents of one world, by state and friction, as of a batch; whole run: reverse, differences too."""
    model = robot()
    q, v = thrown(model, 6)
    dv, dmu = np.random.default_rng(2).normal(size=v.shape), jnp.full_like(model.collision.dynamic_friction, 0.1)

    def after(q: jax.Array, v: jax.Array, friction: jax.Array) -> jax.Array:
        collision = dataclasses.replace(model.collision, dynamic_friction=friction)
        return velocities(dataclasses.replace(model, collision=collision), q, v)

    friction = model.collision.dynamic_friction

    def tangent(q: jax.Array, v: jax.Array, dv: jax.Array) -> jax.Array:
        """Beside the value."""
        return jnp.stack(jax.jvp(lambda *x: after(q, *x), (v, friction), (dv, dmu)))

    together = compiled(jax.vmap(tangent))(q, v, dv)
    alone = compiled(tangent)
    values, found = np.stack([alone(*state) for state in zip(q, v, dv, strict=True)], axis=1)
    assert relative_error(values, together[:, 0]) < 1e-10
    assert relative_error(found, together[:, 1]) < 1e-9
    assert np.isnan(alone(np.where(np.arange(len(q[0])) == 6, np.nan, q[0]), v[0], dv[0])[0, 1:]).any()
    if request.config.getoption("--trimmed"):
        return
    weights, value = np.random.default_rng(3).normal(size=found[0].shape), compiled(after)
    reverse = compiled(jax.grad(lambda q, v, mu: jnp.sum(weights * after(q, v, mu)), (1, 2)))
    h = 1e-6
    for k in range(len(q)):
        by_v, by_friction = reverse(q[k], v[k], friction)
        forward = np.sum(weights * found[k])
        assert relative_error(by_v @ dv[k] + by_friction @ dmu, forward) < 1e-9
        after_h, before_h = (value(q[k], v[k] + s * h * dv[k], friction + s * h * dmu) for s in (1.0, -1.0))
        assert relative_error(np.sum(weights * (after_h - before_h)) / (2.0 * h), forward) < 1e-4


@pytest.mark.whole_run("bodies without constraints")
def test_bodies_that_a_constraint_couples() -> None:
    """A rod between two balls of the crowd: their matrix has no blocks."""
    model = crowd(is_tied=True)
    q, v = (jnp.asarray(x) for x in thrown_crowd(model, 9))
    free = crowd()
    apart = compiled(jax.vmap(lambda q, v: by_steps(free, q, v)))(q, v)
    expected = compiled(jax.vmap(lambda q, v: by_steps(model, q, v)))(q, v)
    assert relative_error(apart, expected) > 1e-2
    alone = compiled(lambda q, v: velocities(model, q, v))
    assert relative_error(np.stack([alone(*state) for state in zip(q, v, strict=True)]), expected) < 1e-9
    assert relative_error(compiled(jax.vmap(lambda q, v: velocities(model, q, v)))(q, v), expected) < 1e-9


@pytest.mark.whole_run("as many points as there is room for")
def test_more_points_than_there_is_room_for_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stack of three boxes has twelve points; with room for eight its velocities are NaN."""
    plant = mbjax.MultibodyPlant(2e-3)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), 0.7)
    for k in range(3):
        plant.add_rigid_body(f"box{k}", mbjax.SpatialInertia.solid_box_with_mass(1.0, 0.2, 0.2, 0.2))
        plant.register_collision_geometry(f"box{k}", Geometry("box", Box((0.2, 0.2, 0.2))), 0.7)
    model = plant.finalize()
    default = mbjax.default_state(model)
    q = default.q.at[jnp.array([6, 13, 20])].set(jnp.array([0.099, 0.298, 0.497]))
    assert np.isfinite(compiled(velocities)(model, q, default.v)).all()
    monkeypatch.setattr(contact_list, "LEAST_ROOM", 8)
    monkeypatch.setattr(contact_list, "POINTS_OF_A_BODY", 0)
    jax.clear_caches()
    assert np.isnan(compiled(lambda *x: velocities(*x))(model, q, default.v)[1:]).all()


def test_what_cannot_be_listed() -> None:
    """Contact at a distance and bounds that the user gave; single movers."""
    assert not is_listed(robot(contact_prediction=True))
    assert not is_listed(robot(max_contacts=4))
    assert not is_listed(mbjax.load("quadruped", time_step=0.002, ground=0.8, contact_pairs=[("*foot*", "ground")]))
