"""G02, G05, G06, G43, G44, G49: degenerate rows among normal ones, in one batch, a scan, and in float32."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.gradients.checks import check_gradients, check_rows

DT = 0.002
IDENTITY = [1.0, 0.0, 0.0, 0.0]
BALL = mbjax.SpatialInertia.solid_sphere_with_mass(1.3, 0.2)
BOX = mbjax.SpatialInertia.solid_box_with_mass(1.3, 0.3, 0.5, 0.1).shift(np.array([-0.1, 0.05, 0.2]))


def free_body(inertia: mbjax.SpatialInertia) -> mbjax.MultibodyModel:
    plant = mbjax.MultibodyPlant(DT)
    plant.add_rigid_body("body", inertia)
    return plant.finalize()


def hinges(*inertias: object, in_chain: bool = True, offset: float = 0.5) -> mbjax.MultibodyModel:
    """Bodies on hinges about y, below one another or side by side."""
    plant = mbjax.MultibodyPlant(DT)
    for i, inertia in enumerate(inertias):
        plant.add_rigid_body(f"b{i}", inertia)
        parent = f"b{i - 1}" if i and in_chain else "world"
        X = mbjax.RigidTransform(jnp.eye(3), jnp.array([0.0, 0.0, -offset if i else 0.0]))
        plant.add_joint(mbjax.RevoluteJoint(f"j{i}", parent, f"b{i}", axis=[0, 1, 0], X_PF=X))
    return plant.finalize()


def stepped(model: mbjax.MultibodyModel, qv: jax.Array) -> jax.Array:
    nq = model.num_positions
    after, _ = mbjax.step(model, mbjax.State(qv[:nq], qv[nq:], jnp.zeros((), qv.dtype)))
    return jnp.concatenate([after.q, after.v])


def test_g01_g02_g05_g06_free_bodies_in_one_batch(request: pytest.FixtureRequest) -> None:
    """At rest, nearly at rest, spinning fast, pitched by +-90 degrees, and with quaternions of other lengths.

    Whole run: in a scan and in single precision too, which trimmed is that of the test below.
    """
    half, motion = np.sqrt(0.5), [0.3, -0.2, 0.5, 1.0, 0.4, -0.7]
    unit = np.array([0.7, -0.1, 0.5, 0.5]) / np.linalg.norm([0.7, -0.1, 0.5, 0.5])
    rows = [[*IDENTITY, 0, 0, 0, w, -0.5 * w, 0.25 * w, 0, 0, 0] for w in (0.0, 1e-12, 1e-8, 1e-4, 30.0)]
    rows += [[*q, 0.1, 0.2, 0.3, *motion] for q in ([half, 0, half, 0], [half, 0, -half, 0], [0.5, 0.5, 0.5, -0.5])]
    rows += [[*(scale * unit), 0.1, 0.2, 0.3, *motion] for scale in (1.0, 1.001, 0.5, 2.0)]
    whole = not request.config.getoption("--trimmed")
    got = check_rows(stepped, free_body(BOX), rows, scale=1e-3, in_scan=whole, in_single=whole)
    for k in range(3):
        np.testing.assert_allclose(got[k][1:4, 7:10], 0.5 * DT * np.eye(3), rtol=0, atol=1e-10 * DT)
    for scale, jacobian in zip((1.001, 0.5, 2.0), got[9:], strict=True):
        np.testing.assert_allclose(scale * jacobian[:, :4], got[8][:, :4], rtol=0, atol=1e-10)


def test_g02_no_jump_at_the_switch_to_a_series() -> None:
    """Turns of up to half a circle in one step: derivatives in float32 follow those in float64."""

    def turned(dtype: type) -> np.ndarray:
        model = mbjax.astype(free_body(BALL), dtype)
        angles = np.concatenate([np.geomspace(1e-4, 3.1, 200), 2.0 + np.linspace(-1e-5, 1e-5, 9)])
        v = np.concatenate([angles[:, None] * [0.6, 0.0, 0.8], np.zeros((angles.size, 3))], axis=1)
        q = jnp.asarray([*IDENTITY, 0.0, 0.0, 0.0], dtype)
        jacobian = jax.jacrev(lambda dv: mbjax.integrate_configuration(model, q, dv))
        return np.asarray(jax.jit(jax.vmap(jacobian))(jnp.asarray(v, dtype)))

    np.testing.assert_allclose(turned(jnp.float32), turned(jnp.float64), rtol=0, atol=1e-6)


@pytest.mark.whole_run("G43 in test_pitfalls")
@pytest.mark.parametrize(
    "light", [None, mbjax.SpatialInertia.solid_cube_with_mass(1e-9, 0.1)], ids=["massless", "1 ug"]
)
def test_g43_a_light_middle_link(light: object) -> None:
    check_rows(stepped, hinges(BOX, light, BOX), [[0.3, 0.2, -0.4, 0.1, 0.2, 0.3], [0.1, 0.9, 0.3, 0.0, 0.0, 0.0]])


def test_g43_two_hinges_about_one_line_with_nothing_between() -> None:
    """The mass matrix is singular: a build error that names the body. Never NaN without a word."""
    with pytest.raises(mbjax.ModelError, match="b0"):
        hinges(None, BOX, offset=0.0)


@pytest.mark.whole_run("all numbers of inertias in test_leaf_coverage")
def test_g44_degenerate_inertias_below_hinges() -> None:
    """A ball, a thin rod (one moment 0) and a flat plate (triangle equality): all numbers of their inertias."""
    plate = mbjax.SpatialInertia.solid_box_with_mass(0.7, 0.3, 0.4, 0.0)
    rod = mbjax.SpatialInertia.thin_rod_with_mass(0.5, 0.6, [0.0, 0.0, 1.0])
    assert float(rod.unit_inertia.moments[2]) == 0.0
    moments = plate.unit_inertia.moments
    np.testing.assert_allclose(moments[0] + moments[1], moments[2], rtol=1e-14)
    model = hinges(BALL, rod, plate)

    def velocities(mass: jax.Array, com: jax.Array, unit_inertia: jax.Array) -> jax.Array:
        p = lambda m: (m.parameters.body_mass, m.parameters.body_com, m.parameters.body_unit_inertia)  # noqa: E731
        changed = eqx.tree_at(p, model, (mass, com, unit_inertia))
        return stepped(changed, jnp.array([0.3, -0.2, 0.5, 1.0, -2.0, 3.0]))[3:]

    p = model.parameters
    result = check_gradients(velocities, p.body_mass, p.body_com, p.body_unit_inertia)
    assert np.abs(result.reverse).max() > 1e-4


@pytest.mark.whole_run("free bodies in one batch, above; many branches in tests/dynamics/test_recursions.py")
def test_g49_fifty_branches_are_fifty_single_bodies() -> None:
    one, many = hinges(BOX), hinges(*[BOX] * 50, in_chain=False, offset=0.0)
    q, v = jnp.asarray(np.random.default_rng(2).normal(size=(2, 50)))

    def derivative(model: mbjax.MultibodyModel, q: jax.Array, v: jax.Array) -> jax.Array:
        return jax.jacrev(lambda x: stepped(model, x))(jnp.concatenate([q, v]))

    single = jax.jit(jax.vmap(lambda q, v: derivative(one, q[None], v[None])))(q, v)
    together = np.array(jax.jit(derivative)(many, q, v)).reshape(2, 50, 2, 50)
    i = np.arange(50)
    np.testing.assert_allclose(together[:, i, :, i], single, rtol=0, atol=1e-12)
    together[:, i, :, i] = 0.0
    np.testing.assert_allclose(together, 0.0, rtol=0, atol=1e-12)


@pytest.mark.whole_run("models without a degree of freedom, G49 in test_pitfalls.py")
def test_g49_gradients_where_nothing_moves(request: pytest.FixtureRequest) -> None:
    """A body welded to the world, through a rollout and the dynamics of no coordinates.

    Whole run: the world alone too, of which a step and its transformations are in test_pitfalls.
    """
    plant = mbjax.MultibodyPlant(DT)
    plant.add_rigid_body("b", BOX)
    plant.weld_frames("world", "b")
    alone = [] if request.config.getoption("--trimmed") else [mbjax.MultibodyPlant(DT).finalize()]
    for model in [*alone, plant.finalize()]:

        def f(model: mbjax.MultibodyModel, q: jax.Array) -> jax.Array:
            final = mbjax.rollout(model, mbjax.State(q, q, jnp.zeros(())), None, 3).final_state
            forces = mbjax.force_elements_contribution(model, q, q)
            tau = mbjax.inverse_dynamics(model, q, q, mbjax.forward_dynamics(model, q, q, q, forces), forces)
            weights = mbjax.inverse_dynamics(model, q, q, q, force_elements=True)
            total = jnp.sum(final.q) + jnp.sum(mbjax.mass_matrix(model, q)) + jnp.sum(tau) + jnp.sum(weights)
            return total + mbjax.potential_energy(model, q)

        derivatives = jax.vmap(jax.value_and_grad(f, (0, 1)), (None, 0))
        worlds, gradients = jax.jit(derivatives)(model, jnp.zeros((3, 0)))
        np.testing.assert_allclose(worlds, float(mbjax.potential_energy(model, jnp.zeros(0))), rtol=0, atol=1e-12)
        gradient = jax.tree.map(lambda x: x[0], gradients)
        assert gradient[1].shape == (0,)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
        if model.num_bodies > 1:  # the welded body has potential energy
            expected = 9.81 * float(model.parameters.body_com[0, 2])
            np.testing.assert_allclose(gradient[0].parameters.body_mass, [expected], rtol=1e-12)
