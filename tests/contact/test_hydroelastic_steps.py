"""Steps with hydroelastic contact by themselves: derivatives, batches, bounds, and programs of plants without it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.execution.worlds import chunks
from mbjax.geometry import Box, Geometry, HalfSpace, ProximityProperties, Sphere
from tests.conftest import FEW_NUMBERS
from tests.gradients.checks import WHOLE_RUN, all_gradients, compare, compiled

BALL = mbjax.SpatialInertia(0.7, [0.01, 0.0, 0.02], mbjax.UnitInertia(0.005, 0.004, 0.006, 0.0, 0.0, 0.0))
RIGID = ProximityProperties(0.5, 0.3).add_rigid_hydroelastic_properties()
SOFT = ProximityProperties(0.6, 0.4, hunt_crossley_dissipation=2.0, relaxation_time=0.02)
SOFT = SOFT.add_compliant_hydroelastic_properties(0.07, 2e5)
Q = jnp.array([0.9, 0.1, -0.3, 0.2, 0.05, 0.02, 0.092])
V = jnp.array([0.3, 0.5, -1.0, 0.3, 0.4, -0.2])


def ball_on_ground(time_step: float = 0.005, approximation: str = "sap", **options) -> mbjax.MultibodyModel:
    plant = mbjax.MultibodyPlant(time_step, discrete_contact_approximation=approximation, **options)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), RIGID)
    plant.add_rigid_body("ball", BALL)
    plant.register_collision_geometry("ball", Geometry("skin", Sphere(0.1)), SOFT)
    return plant.finalize()


@pytest.mark.whole_run("derivatives of a ball's surface on a plane in tests/geometry, and of steps with contact points")
def test_derivatives_by_state_and_by_every_number() -> None:
    """Forward = reverse = differences of a step by leaves of both geometries; whole run: of a continuous plant, too."""
    discrete, continuous = ball_on_ground(), ball_on_ground(0.0)

    def f(collision: mbjax.CollisionParameters, q: jax.Array, v: jax.Array) -> jax.Array:
        stepped, moving = (eqx.tree_at(lambda m: m.collision, m, collision) for m in (discrete, continuous))
        state = mbjax.State(q, v, jnp.zeros(()))
        after, outputs = mbjax.step(stepped, state)
        contact = outputs.contact_results.surfaces[0]
        of_step = [after.v, 0.01 * contact.spatial_force, contact.centroid]
        return jnp.concatenate([*of_step, 0.01 * mbjax.time_derivatives(moving, state)[1]] if WHOLE_RUN else of_step)

    result = all_gradients(f, discrete.collision, Q, V, step=1e-6)
    compare(result, tolerance=1e-5)
    moved = {
        name: np.abs(row).max() for name, row in zip(result.names, result.reverse.T, strict=True) if np.any(row != 0.0)
    }
    of_continuous = ("hunt_crossley_dissipation",) if WHOLE_RUN else ()
    for leaf in ("hydroelastic_modulus", "dynamic_friction", "relaxation_time", "size", *of_continuous):
        assert any(leaf in name for name in moved), leaf


@pytest.mark.whole_run("worlds of surfaces, and steps beside Drake's")
def test_worlds_are_as_one_by_one() -> None:
    model = ball_on_ground(max_faces=40)
    q = jnp.stack([Q.at[6].add(0.002 * k) for k in range(6)])
    v = jnp.stack([V * (1.0 + 0.1 * k) for k in range(6)])

    def after(q: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        state, outputs = mbjax.step(model, mbjax.State(q, v, jnp.zeros(())))
        return state.v, outputs.contact_results.surfaces[0].spatial_force

    together = compiled(jax.vmap(after))(q.at[5].set(jnp.nan), v)
    alone = compiled(lambda q, v: jax.lax.map(lambda x: after(*x), (q, v)))(q, v)
    for ours, expected in zip(together, alone, strict=True):
        np.testing.assert_allclose(ours[:5], expected[:5], rtol=1e-9, atol=1e-9)
        assert np.isnan(np.asarray(together[0][5])).any()


@pytest.mark.whole_run("steps beside Drake's, and dynamics of few worlds in tests/execution/test_few_worlds.py")
@pytest.mark.parametrize("worlds", [2, 5])
def test_few_worlds_are_as_one_by_one(worlds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU takes few worlds in turn, by one kernel: values and derivatives by the modulus are those of each alone."""
    monkeypatch.setattr(chunks, "FEW_NUMBERS", FEW_NUMBERS)
    model = ball_on_ground()
    apart = 4  # the world whose ball is in the air
    q = jnp.stack([Q.at[6].add(0.1 if k == apart else 0.001 * k) for k in range(worlds)])
    v = jnp.stack([V * (1.0 + 0.1 * k) for k in range(worlds)])

    def after(modulus: jax.Array, q: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        changed = mbjax.set_proximity_properties(model, "ball::skin", hydroelastic_modulus=modulus)
        end, _ = mbjax.step(changed, mbjax.State(q, v, jnp.zeros(())))
        return end.v @ jnp.arange(1.0, 7.0), end.v

    one = jax.value_and_grad(after, has_aux=True)
    modulus = jnp.array(2e5)
    together = compiled(jax.vmap(one, in_axes=(None, 0, 0)))(modulus, q, v)
    alone = compiled(one)
    for k in range(worlds):
        for found, expected in zip(jax.tree.leaves(together), jax.tree.leaves(alone(modulus, q[k], v[k])), strict=True):
            np.testing.assert_allclose(found[k], expected, rtol=1e-9, atol=1e-12)
        assert (together[1][k] != 0.0) == (k != apart)


@pytest.mark.whole_run("the same of surfaces alone")
def test_faces_beyond_the_bound_are_counted() -> None:
    few = ball_on_ground(max_faces=5)
    outputs = mbjax.outputs(few, mbjax.State(Q, V, jnp.zeros(())))
    (contact,) = outputs.contact_results.surfaces
    assert int(contact.surface.num_faces) <= 5
    assert int(contact.surface.left_out) > 0
    assert "left out" in str(mbjax.describe(few, outputs))


def test_single_precision_stays_single() -> None:
    """Also where JAX's default is double."""
    model = mbjax.astype(ball_on_ground(), jnp.float32)
    state = mbjax.State(*(x.astype(jnp.float32) for x in (Q, V, jnp.zeros(()))))
    after, outputs = jax.eval_shape(lambda state: mbjax.step(model, state), state)
    found = {str(x.dtype) for x in jax.tree.leaves((after, outputs))}
    assert {name for name in found if name.startswith("float")} == {"float32"}


@pytest.mark.parametrize("time_step", [pytest.param(0.005, marks=pytest.mark.whole_run("the continuous plant")), 0.0])
def test_plants_without_surfaces_keep_their_programs(time_step: float) -> None:
    """Under the default model the program is that of contact at points, to the instruction."""

    def text(contact_model: str) -> str:
        plant = mbjax.MultibodyPlant(time_step, contact_model=contact_model)
        plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), RIGID)
        plant.add_rigid_body("ball", BALL)
        plant.register_collision_geometry("ball", Geometry("skin", Box((0.1, 0.2, 0.3))), ProximityProperties(0.6))
        model = plant.finalize()
        state = mbjax.State(Q, V, jnp.zeros(()))
        function = mbjax.step if time_step else mbjax.time_derivatives
        return jax.jit(lambda state: function(model, state)).lower(state).as_text()

    assert text("hydroelastic_with_fallback") == text("point")
