"""Random states: each distribution's moments and support, uniform rotations, defaults elsewhere, derivatives."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float, PRNGKeyArray

import mbjax
from tests.gradients.checks import check_gradients
from tests.models import relative_error

SAMPLES = 20_000
MANY = 5.0  # standard errors; a right program fails once in a million
BODY = mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1)
DEFAULT = np.array([0.6, 0.0, 0.8, 0.0, 1.0, 2.0, 3.0])


def make_plant() -> mbjax.MultibodyPlant:
    """A hinge and a slider, a ball and a planar joint; bodies that float by quaternion, by angles and by themselves."""
    plant = mbjax.MultibodyPlant()
    for name in ("link", "cart", "ball", "puck", "box", "drone", "crate"):
        plant.add_rigid_body(name, BODY)
    plant.add_joint(mbjax.RevoluteJoint("hinge", "world", "link", default_positions=0.25, position_limits=(-1.0, 2.0)))
    plant.add_joint(mbjax.PrismaticJoint("rail", "link", "cart"))
    plant.add_joint(mbjax.BallRpyJoint("socket", "world", "ball"))
    plant.add_joint(mbjax.PlanarJoint("table", "world", "puck"))
    plant.add_joint(mbjax.QuaternionFloatingJoint("box_joint", "cart", "box", default_positions=DEFAULT))
    plant.add_joint(mbjax.RpyFloatingJoint("drone_joint", "world", "drone"))
    return plant


def draw(model: mbjax.MultibodyModel, count: int = SAMPLES) -> mbjax.State:
    """Many states."""
    keys = jax.random.split(jax.random.key(7), count)
    return jax.jit(jax.vmap(mbjax.random_state, (None, 0)))(model, keys)


@functools.cache
def everything() -> tuple[mbjax.MultibodyModel, mbjax.State]:
    """A model with a distribution of each kind, declared on the plant, and samples of it."""
    plant = make_plant()
    plant.set_joint_random_position_distribution("hinge", mbjax.UniformDistribution(-0.5, 1.5))
    plant.set_joint_random_position_distribution("table", mbjax.GaussianDistribution([1.0, -2.0, 0.5], [0.1, 0.2, 0.3]))
    plant.set_joint_random_velocity_distribution("rail", mbjax.GaussianDistribution(0.4, 2.0))
    plant.set_joint_random_position_distribution("socket", mbjax.UniformRotation())
    plant.set_free_body_random_rotation_distribution_to_uniform("box")
    plant.set_free_body_random_rotation_distribution_to_uniform("drone")
    plant.set_free_body_random_translation_distribution("drone", mbjax.UniformDistribution(0.0, [1.0, 2.0, 3.0]))
    plant.set_free_body_random_translation_distribution("crate", mbjax.GaussianDistribution(2.0, 1.0))
    model = plant.finalize()
    return model, draw(model)


def check_moments(samples: Array, mean: float, deviation: float, kurtosis: float) -> None:
    """Mean and variance within the error of so many samples; `kurtosis` is the fourth moment over deviation^4."""
    x = np.asarray(samples)
    root = math.sqrt(x.size)
    assert abs(x.mean() - mean) < MANY * deviation / root
    assert abs(((x - mean) ** 2).mean() - deviation**2) < MANY * deviation**2 * math.sqrt(kurtosis - 1.0) / root


def check_independent(samples: Array) -> None:
    """No two columns of (samples, n) are correlated."""
    correlation = np.corrcoef(np.asarray(samples).T) - np.eye(samples.shape[1])
    assert np.abs(correlation).max() < MANY / math.sqrt(samples.shape[0])


def check_uniform_rotations(R: np.ndarray) -> None:
    """By formulas that know no quaternion (Haar measure on SO(3)): where each axis points, and the angle.

    Every component of every column is uniform in [-1, 1] (Archimedes), columns are uncorrelated, and the angle has
    the density (1 - cos a) / pi: trace = 1 + 2 cos a has mean 0 and variance 1.
    """
    columns = R.reshape(-1, 9)
    for k in range(9):
        check_moments(columns[:, k], 0.0, math.sqrt(1.0 / 3.0), 9.0 / 5.0)
        kolmogorov = np.abs(np.sort(columns[:, k]) - np.linspace(-1.0, 1.0, len(R))).max() / 2.0
        assert kolmogorov < 2.5 / math.sqrt(len(R))
    check_independent(columns)
    trace = np.trace(R, axis1=1, axis2=2)
    assert abs(trace.mean()) < MANY / math.sqrt(len(R))
    assert abs((trace**2).mean() - 1.0) < MANY * math.sqrt(2.0) / math.sqrt(len(R))  # E trace^4 = 3
    angle = np.sort(np.arccos(np.clip((trace - 1.0) / 2.0, -1.0, 1.0)))
    distribution = (angle - np.sin(angle)) / math.pi
    assert np.abs(distribution - np.linspace(0.0, 1.0, len(R))).max() < 2.5 / math.sqrt(len(R))


def test_moments_and_support_of_coordinates() -> None:
    model, x = everything()
    hinge, table = x.q[:, model.joint("hinge").q], x.q[:, model.joint("table").q]
    assert hinge.min() >= -0.5
    assert hinge.max() < 1.5
    check_moments(hinge, 0.5, 2.0 / math.sqrt(12.0), 9.0 / 5.0)
    for k, (mean, deviation) in enumerate(((1.0, 0.1), (-2.0, 0.2), (0.5, 0.3))):
        check_moments(table[:, k], mean, deviation, 3.0)
    check_moments(x.v[:, model.joint("rail").v], 0.4, 2.0, 3.0)
    drone, crate = x.q[:, model.joint("drone_joint").q][:, 3:], x.q[:, model.joint("crate").q][:, 4:]
    for k in range(3):
        check_moments(drone[:, k], 0.5 * (k + 1), (k + 1) / math.sqrt(12.0), 9.0 / 5.0)
        check_moments(crate[:, k], 2.0, 1.0, 3.0)
    check_independent(jnp.concatenate([hinge, table, drone, crate, x.v[:, model.joint("rail").v]], axis=1))


@pytest.mark.parametrize("joint", ["box_joint", "drone_joint", "socket"])
def test_uniform_rotations(joint: str) -> None:
    model, x = everything()
    info = model.joint(joint)
    q = x.q[:, info.q]
    if info.kind == "quaternion_floating":
        np.testing.assert_allclose(np.linalg.norm(q[:, :4], axis=1), 1.0, atol=1e-12)
        R = mbjax.spatial.quaternion_to_matrix(q[:, :4])
    else:
        R = mbjax.spatial.rpy_to_matrix(q[:, :3])
    check_uniform_rotations(np.asarray(R))


def test_the_check_of_uniformity_finds_others() -> None:
    """Uniform roll, pitch and yaw are not uniform rotations."""
    rng = np.random.default_rng(0)
    rpy = rng.uniform(-math.pi, math.pi, (SAMPLES, 3)) * [1.0, 0.5, 1.0]
    with pytest.raises(AssertionError):
        check_uniform_rotations(np.asarray(mbjax.spatial.rpy_to_matrix(jnp.asarray(rpy))))


def test_what_has_no_distribution_takes_its_default() -> None:
    model, x = everything()
    default = mbjax.default_state(model)
    drawn_q = np.zeros(model.num_positions, bool)
    parts = {
        "hinge": (0, 1),
        "table": (0, 3),
        "socket": (0, 3),
        "box_joint": (0, 4),
        "drone_joint": (0, 6),
        "crate": (4, 7),
    }
    for joint, (start, stop) in parts.items():
        drawn_q[model.joint(joint).q_start + start : model.joint(joint).q_start + stop] = True
    drawn_v = np.zeros(model.num_velocities, bool)
    drawn_v[model.joint("rail").v] = True
    for got, expected, drawn in ((x.q, default.q, drawn_q), (x.v, default.v, drawn_v)):
        varies = np.asarray(got).std(axis=0) > 0.0
        np.testing.assert_array_equal(varies, drawn)
        np.testing.assert_array_equal(got[:5, ~drawn], np.broadcast_to(expected[~drawn], (5, (~drawn).sum())))
    assert not np.asarray(x.time).any()


def test_a_model_without_distributions_draws_all_within_limits() -> None:
    model = make_plant().finalize()
    x, key = draw(model, 500), jax.random.key(4)
    assert np.asarray(x.q).std(axis=0).min() > 0.1
    assert np.asarray(x.v).std(axis=0).min() > 0.5
    hinge = x.q[:, model.joint("hinge").q]
    assert (hinge.min() >= -1.0) & (hinge.max() <= 2.0)
    alone = mbjax.random_state_within_limits(model, key)
    np.testing.assert_array_equal(mbjax.random_state(model, key).q, alone.q)
    narrow = mbjax.set_joint_random_position_distribution(model, "hinge", mbjax.UniformDistribution(0.1, 0.2))
    np.testing.assert_array_equal(mbjax.random_state_within_limits(narrow, key).q, alone.q)


def test_orientations_by_angles_are_uniform_within_limits() -> None:
    """Without limits all are equally likely; limits of pitch keep the density cos(pitch), as of areas on a sphere."""
    plant = mbjax.MultibodyPlant()
    for name in ("ball", "drone", "mast", "stern"):
        plant.add_rigid_body(name, BODY)
    lower, upper = np.array([-math.inf, -0.3, 0.2]), np.array([math.inf, 1.2, 0.5])
    plant.add_joint(mbjax.BallRpyJoint("socket", "world", "ball"))
    plant.add_joint(mbjax.RpyFloatingJoint("drone_joint", "world", "drone"))
    plant.add_joint(mbjax.BallRpyJoint("narrow", "world", "mast", position_limits=(lower, upper)))
    plant.add_joint(mbjax.BallRpyJoint("beyond", "world", "stern", position_limits=(2.0, 3.0)))
    model = plant.finalize()
    q = np.asarray(draw(model).q)
    for joint in ("socket", "drone_joint"):
        rpy = q[:, model.joint(joint).q][:, :3]
        check_uniform_rotations(np.asarray(mbjax.spatial.rpy_to_matrix(jnp.asarray(rpy))))
        assert np.abs(rpy[:, 1]).max() <= math.pi / 2
    narrow, beyond = q[:, model.joint("narrow").q], q[:, model.joint("beyond").q]
    assert (narrow >= lower).all()
    assert (narrow <= upper).all()
    assert ((beyond >= 2.0) & (beyond <= 3.0)).all()
    low, high = np.sin(-0.3), np.sin(1.2)
    check_moments(np.sin(narrow[:, 1]), (low + high) / 2.0, (high - low) / math.sqrt(12.0), 9.0 / 5.0)
    low, high = np.sin(3.0), np.sin(2.0)
    check_moments(np.sin(beyond[:, 1]), (low + high) / 2.0, (high - low) / math.sqrt(12.0), 9.0 / 5.0)
    single = mbjax.random_state(mbjax.astype(model, jnp.float32), jax.random.key(1))
    assert single.q.dtype == jnp.float32


def test_distributions_are_replaced_and_taken_away() -> None:
    model, key = make_plant().finalize(), jax.random.key(0)
    rail = model.joint("rail").q
    for low in (5.0, 7.0):
        model = mbjax.set_joint_random_position_distribution(model, "rail", mbjax.UniformDistribution(low, low + 1.0))
        assert low <= mbjax.random_state(model, key).q[rail][0] < low + 1.0
        assert len(model.random_distributions) == 1
    model = mbjax.set_free_body_random_translation_distribution(model, "box", mbjax.UniformDistribution(0.0, 1.0))
    other = mbjax.set_joint_random_position_distribution(model, "hinge", mbjax.GaussianDistribution(0.0, 1.0))
    np.testing.assert_array_equal(mbjax.random_state(other, key).q[rail], mbjax.random_state(model, key).q[rail])
    model = mbjax.set_joint_random_position_distribution(model, "rail", None)
    assert mbjax.random_state(model, key).q[rail][0] == 0.0
    model = mbjax.set_free_body_random_translation_distribution(model, "box", None)
    assert model.random_distributions == ()


class Laplace(mbjax.AbstractDistribution):
    """A distribution of a user's own."""

    scale: Float[Array, ""]

    def sample(self, key: PRNGKeyArray, size: int) -> Float[Array, " size"]:
        return self.scale * jax.random.laplace(key, (size,), jnp.result_type(self.scale))


def test_a_distribution_of_ones_own() -> None:
    model = make_plant().finalize()
    model = mbjax.set_joint_random_position_distribution(model, "rail", Laplace(jnp.array(3.0)))
    check_moments(draw(model).q[:, model.joint("rail").q], 0.0, 3.0 * math.sqrt(2.0), 6.0)


def test_a_rotation_distribution_is_of_quaternions() -> None:
    """A Gaussian about (1, 0, 0, 0) with a small deviation s of the vector part turns by 2 s in each direction."""
    about_identity = mbjax.GaussianDistribution([1.0, 0.0, 0.0, 0.0], [0.0, 0.01, 0.02, 0.03])
    model = make_plant().finalize()
    for body in ("box", "drone"):
        model = mbjax.set_free_body_random_rotation_distribution(model, body, about_identity)
    x = draw(model)
    quaternion, angles = x.q[:, model.joint("box_joint").q][:, :4], x.q[:, model.joint("drone_joint").q][:, :3]
    vectors = np.asarray(mbjax.spatial.rotation_log(mbjax.spatial.quaternion_to_matrix(quaternion)))
    for k, deviation in enumerate((0.02, 0.04, 0.06)):
        assert relative_error(vectors[:, k].std(), deviation) < 0.03
        assert relative_error(np.asarray(angles[:, k]).std(), deviation) < 0.03


@pytest.mark.whole_run("moments and support of coordinates, above")
def test_samples_have_derivatives_and_numbers_are_batched() -> None:
    """By reparameterisation: x = lower + (upper - lower) u, mean + deviation n; one program for all numbers."""
    plain = make_plant().finalize()
    key, traces = jax.random.key(2), []

    def f(low, high, mean, deviation, default):
        model = mbjax.set_default_positions(plain, default)
        model = mbjax.set_joint_random_position_distribution(model, "hinge", mbjax.UniformDistribution(low, high))
        model = mbjax.set_joint_random_position_distribution(
            model, "table", mbjax.GaussianDistribution(mean, deviation)
        )
        rotation = mbjax.GaussianDistribution(jnp.append(mean, 1.0), jnp.append(deviation, 0.0))
        for body in ("box", "drone"):
            model = mbjax.set_free_body_random_rotation_distribution(model, body, rotation)
        state = mbjax.random_state(model, key)
        return state.q, state.v

    numbers = (jnp.array(-0.3), jnp.array(0.8), jnp.array([0.1, 0.2, 0.3]), jnp.array([0.3, 0.2, 0.1]))
    arguments = (*numbers, mbjax.default_state(plain).q)
    check_gradients(f, *arguments)
    model = mbjax.set_joint_random_position_distribution(plain, "hinge", mbjax.UniformDistribution(0.0, 1.0))
    in_batch = jax.tree.map(lambda x: jnp.stack([x, 2.0 * x]), model.random_distributions)
    of_many = jax.vmap(lambda d: mbjax.random_state(with_numbers(model, d), key).q[model.joint("hinge").q][0])
    first, second = of_many(in_batch)
    np.testing.assert_allclose(second, 2.0 * first, rtol=1e-14)

    @jax.jit
    def compiled(model: mbjax.MultibodyModel) -> Array:
        traces.append(1)
        return mbjax.random_state(model, key).q[model.joint("hinge").q][0]

    other = mbjax.set_joint_random_position_distribution(plain, "hinge", mbjax.UniformDistribution(5.0, 7.0))
    np.testing.assert_allclose((compiled(other) - 5.0) / 2.0, compiled(model), rtol=1e-12)
    assert len(traces) == 1
    single = mbjax.random_state(mbjax.astype(everything()[0], jnp.float32), key)
    assert {x.dtype for x in jax.tree.leaves(single)} == {jnp.dtype(jnp.float32)}


def with_numbers(model: mbjax.MultibodyModel, distributions: tuple) -> mbjax.MultibodyModel:
    """The model with other numbers in its distributions."""
    leaves = jax.tree.leaves(distributions)
    return jax.tree.unflatten(jax.tree.structure(model), [*jax.tree.leaves(model)[: -len(leaves)], *leaves])


def test_what_does_not_fit_is_refused() -> None:
    plant = make_plant()
    model = plant.finalize()
    uniform, three = mbjax.UniformDistribution(0.0, 1.0), mbjax.GaussianDistribution([0.0, 0.0, 0.0], 1.0)
    for match, call in (
        ("lower <= upper", lambda: mbjax.UniformDistribution(1.0, 0.0)),
        ("standard deviation >= 0", lambda: mbjax.GaussianDistribution([0.0, 1.0], [1.0, -1.0])),
        ("standard deviation >= 0", lambda: mbjax.GaussianDistribution(np.nan, 1.0)),
        ("quaternion are no coordinates.*body 'box'", lambda: on_joint(model, "box_joint", uniform)),
        (r"must draw 3 number\(s\)", lambda: on_joint(model, "table", mbjax.UniformDistribution([0.0, 0.0], 1.0))),
        ("UniformRotation draws orientations", lambda: on_joint(model, "hinge", mbjax.UniformRotation())),
        ("expected a distribution", lambda: on_joint(model, "hinge", 0.3)),
        ("no joint named 'hing'. Did you mean 'hinge'", lambda: on_joint(model, "hing", uniform)),
        ("'link' does not float", lambda: mbjax.set_free_body_random_rotation_distribution_to_uniform(model, "link")),
        ("4 numbers, a quaternion", lambda: mbjax.set_free_body_random_rotation_distribution(model, "box", three)),
        ("finalized", lambda: plant.set_joint_random_position_distribution("hinge", uniform)),
    ):  # fmt: skip
        with pytest.raises(mbjax.ModelError, match=match):
            call()


on_joint = mbjax.set_joint_random_position_distribution


def test_declared_distributions_follow_what_is_removed() -> None:
    plant = make_plant()
    plant.set_joint_random_position_distribution("table", mbjax.UniformDistribution(0.0, 1.0))
    plant.set_joint_random_position_distribution("rail", mbjax.UniformDistribution(3.0, 4.0))
    plant.remove_joint("table")
    model = plant.finalize()
    assert len(model.random_distributions) == 1
    assert 3.0 <= mbjax.random_state(model, jax.random.key(0)).q[model.joint("rail").q][0] < 4.0
    undone = make_plant()
    undone.set_free_body_random_rotation_distribution_to_uniform("link")
    with pytest.raises(mbjax.ModelError, match="'link' does not float"):
        undone.finalize()
