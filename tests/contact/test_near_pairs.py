"""A bounded number of pairs looked at closely: the nearest, with the same answer as when all are looked at."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.contact.points.near_pairs import find_near_pairs
from mbjax.geometry import Convex, Geometry, HalfSpace, ProximityProperties, Sphere
from tests.gradients.checks import check_gradients, compiled

DT, RADIUS = 1e-3, 0.1
MATERIAL = ProximityProperties(0.4, 0.4, point_stiffness=1e5, relaxation_time=0.01)
PYRAMID = ((0.1, 0.0, 0.0), (-0.1, 0.1, 0.0), (-0.1, -0.1, 0.0), (0.0, 0.0, 0.1))
WEDGE = (*((x, y, -0.05) for x in (0.1, -0.1) for y in (0.1, -0.1)), (0.0, 0.1, 0.1), (0.0, -0.1, 0.1))


@pytest.mark.parametrize("worlds", [(), (7,)])
def test_the_nearest_come_first(worlds: tuple[int, ...]) -> None:
    """In order, of equal ones the first; what is no number before all; and back at their places."""
    gap = np.random.default_rng(0).integers(-5, 5, (12, *worlds)).astype(float)
    gap[3] = np.nan
    near = find_near_pairs(jnp.asarray(gap), 5)
    order = np.argsort(np.where(np.isnan(gap), -np.inf, gap), axis=0, kind="stable")
    np.testing.assert_array_equal(near.pair, order[:5])
    np.testing.assert_array_equal(near.place, np.argsort(order, axis=0))
    x = np.random.default_rng(1).normal(size=(2, 12, *worlds))
    np.testing.assert_array_equal(near.choose(jnp.asarray(x), 1), np.take_along_axis(x, order[None, :5], 1))


def scene(max_pairs: int | None, **options) -> mbjax.MultibodyModel:
    """Four balls in a row, and three hulls that only the ground can touch, each on a joint along z."""
    plant = mbjax.MultibodyPlant(DT, max_pairs=max_pairs, **options)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), MATERIAL)
    shapes = [*(Sphere(RADIUS) for _ in range(4)), Convex(PYRAMID), Convex(WEDGE), Convex(PYRAMID)]
    for i, shape in enumerate(shapes):
        plant.add_rigid_body(f"b{i}", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, RADIUS))
        X_PF = (0.15 * i, 0.0, 0.0)
        plant.add_joint(mbjax.PrismaticJoint(f"z{i}", "world", f"b{i}", X_PF=X_PF, axis=(0.0, 0.0, 1.0)))
        plant.register_collision_geometry(f"b{i}", Geometry(f"b{i}", shape), MATERIAL)
    for i in range(4, 7):
        for k in range(i):
            plant.exclude_collisions_between(f"b{i}", f"b{k}")
    return plant.finalize()


HEIGHTS = np.array(
    [  # in the first world two balls touch the ground, in the second three balls each other
        [0.0999, 0.0995, 1.0, 1.5, 2.0, 2.5, 0.5],
        [2.0, 0.11, 0.22, 0.3, 1.1, 1.15, -0.002],
        [0.5, 1.0, 0.098, 0.31, 0.4, 0.048, 0.5],
        [0.7, 1.2, 1.2, 2.0, -0.001, 1.0, 0.4],
    ]
)


def step(model: mbjax.MultibodyModel):
    def of_heights(q: jax.Array) -> tuple[jax.Array, mbjax.ContactResults]:
        after, outputs = mbjax.step(model, mbjax.State(q, -0.1 * jnp.ones(7), jnp.zeros(())))
        return after.v, outputs.contact_results

    return of_heights


@pytest.mark.whole_run("boxes hold the meshes of surfaces, and lists of contact points")
def test_what_touches_is_found_and_what_is_left_out_counted() -> None:
    """Velocities, forces, slots and names are those of all pairs, world by world, as long as enough are looked at."""
    every, two, one = (scene(k) for k in (None, 2, 1))
    expected, forces = compiled(jax.vmap(step(every)))(HEIGHTS)
    assert (np.asarray(forces.is_active).sum(axis=1) > 0).all()
    of_two = compiled(jax.vmap(step(two)))
    v, found = jax.tree.map(lambda x: x[:4], of_two(np.concatenate([HEIGHTS, HEIGHTS[:1]])))
    spoiled, _ = of_two(np.concatenate([HEIGHTS, np.full((1, 7), np.nan)]))  # which leaves the others alone
    np.testing.assert_array_equal(spoiled[:4], v)
    assert np.isnan(spoiled[4]).any()
    np.testing.assert_allclose(v, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found.force, forces.force, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(found.is_active, forces.is_active)
    assert found.names(two) == forces.names(every)
    touching = np.where(found.is_active[..., None], [found.point, found.normal], 0.0)
    np.testing.assert_allclose(
        touching, np.where(forces.is_active[..., None], [forces.point, forces.normal], 0.0), atol=1e-12
    )
    assert (forces.num_pairs_left_out == 0).all()
    depths = np.asarray(found.depth)[:, [name[3] == "b5" for name in found.names(two)]]
    assert depths[2].max() == pytest.approx(0.05 - HEIGHTS[2, 5], abs=1e-12)  # hulls of other numbers of vertices, too

    v, found = compiled(jax.vmap(step(one)))(HEIGHTS)
    is_same = np.isclose(v, expected, rtol=1e-9, atol=1e-12).all(axis=1)
    assert (np.asarray(found.num_pairs_left_out)[~is_same] > 0).all()
    assert is_same.tolist() == [False, False, True, True]


@pytest.mark.whole_run("the nearest come first, above, and gradients of steps in test_impact_gradients.py")
def test_gradients_through_the_choice(request: pytest.FixtureRequest) -> None:
    """As of all pairs; whole run: and as of finite differences."""
    models = [scene(k, discrete_contact_approximation="lagged") for k in (None, 2)]

    def speed(model: mbjax.MultibodyModel, q: jax.Array, scale: jax.Array) -> jax.Array:
        geometry = model.collision
        sizes = geometry.size * scale[0], geometry.vertices * scale[1]
        scaled = eqx.tree_at(lambda m: (m.collision.size, m.collision.vertices), model, sizes)
        return jnp.sum(step(scaled)(q)[0] * jnp.arange(1.0, 8.0))

    q, scale = jnp.asarray(HEIGHTS[2]), jnp.ones(2)
    gradients = [compiled(jax.grad(lambda q, s, m=m: speed(m, q, s), (0, 1)))(q, scale) for m in models]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9), *gradients)
    assert all(float(jnp.abs(x).max()) > 1e-3 for x in gradients[1])
    if not request.config.getoption("--trimmed"):
        check_gradients(lambda q, s: speed(models[1], q, s), q, scale)
