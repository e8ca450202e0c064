"""The regressor: identity with inverse dynamics, Pinocchio as oracle, derivatives, base parameters."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio
import pytest

import mbjax
from mbjax import system_identification as si
from tests.models import ALL_KINDS, ROBOTS, load_robot, random_tree, relative_error

from .robots import hopper, motion, two_links


def state_of(model: mbjax.MultibodyModel, seed: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    keys = jax.random.split(jax.random.key(seed), 3)
    dq, v, vdot = (jax.random.normal(key, (model.num_velocities,)) for key in keys)
    return mbjax.integrate_configuration(model, model.parameters.default_positions, dq), v, vdot


OTHERS = pytest.mark.whole_run("every joint, and motions of two links below")
TWO, QUADRUPED = (pytest.param(name, marks=OTHERS) for name in ("two links", "quadruped"))


@pytest.mark.parametrize("name", ["every joint", TWO, QUADRUPED])
def test_times_parameters_is_inverse_dynamics(name: str) -> None:
    models = {"two links": two_links, "every joint": lambda: random_tree(0, ALL_KINDS).model}
    model = models[name]() if name in models else mbjax.load(name)
    state = state_of(model, 1)
    Y = jax.jit(lambda *x: si.regressor(model, *x))(*state)
    tau = mbjax.inverse_dynamics(model, *state, force_elements=True)
    assert relative_error(Y @ si.linear_parameters(model), tau) < 1e-12
    assert len(si.linear_parameter_names(model)) == Y.shape[1]


@pytest.mark.whole_run("every joint, above, and Pinocchio's regressor")
def test_mimics_and_disabled_gravity_are_right() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbjax.ModelWarning)
        model = mbjax.load(ROBOTS / "panda_description/urdf/panda.urdf", base="fixed", mimic="eliminate")
    state = state_of(model, 2)
    tau = mbjax.inverse_dynamics(model, *state, force_elements=True)
    assert relative_error(si.regressor(model, *state) @ si.linear_parameters(model), tau) < 1e-12


def test_equals_pinocchio() -> None:
    """Bodies' columns of UR10; welded links are part of their carrier there."""
    path = "ur_description/urdf/ur10_robot.urdf"
    model, other = load_robot(path, base="fixed"), pinocchio.buildModelFromUrdf(str(ROBOTS / path))
    q, v, vdot = (np.asarray(x) for x in state_of(model, 3))
    theirs = pinocchio.computeJointTorqueRegressor(other, other.createData(), q, v, vdot)
    ours = np.asarray(si.regressor(model, *map(jnp.asarray, (q, v, vdot))))
    order = [0, 1, 2, 3, 4, 7, 5, 8, 9, 6]  # theirs: xx, xy, yy, xz, yz, zz
    for j in range(1, other.njoints):
        body = model.layout.joints[model.joint(other.names[j]).index].child_body - 1
        block = ours[:, 10 * body : 10 * body + 10][:, order]
        assert relative_error(block, theirs[:, 10 * (j - 1) : 10 * j]) < 1e-10


@pytest.mark.whole_run("that it is inverse dynamics, above, whose derivatives are in test_dynamics_derivatives.py")
def test_derivatives_by_motion() -> None:
    model = two_links()
    q, v, vdot = state_of(model, 4)

    @jax.jit
    def everything(x: jax.Array, d: jax.Array) -> tuple:
        def weighted(x: jax.Array) -> tuple[jax.Array, jax.Array]:
            Y = si.regressor(model, x[:2], x[2:4], x[4:])
            return jnp.sum(jnp.sin(Y)), Y

        (value, Y), gradient = jax.value_and_grad(weighted, has_aux=True)(x)
        forward = jax.jvp(lambda x: weighted(x)[0], (x,), (d,))[1]
        tau = mbjax.inverse_dynamics(model, x[:2], x[2:4], x[4:], force_elements=True)
        return value, gradient @ d, forward, Y @ si.linear_parameters(model), tau

    x, d = np.concatenate([q, v, vdot]), np.random.default_rng(5).normal(size=6)
    _, reverse, forward, *_ = everything(x, d)
    numeric = (everything(x + 1e-6 * d, d)[0] - everything(x - 1e-6 * d, d)[0]) / 2e-6
    np.testing.assert_allclose(reverse, forward, rtol=1e-10)
    np.testing.assert_allclose(numeric, forward, rtol=1e-6)
    still, h = x.copy(), 1e-7
    still[2:4] = 0.0  # where Coulomb friction turns around
    _, reverse, _, by_regressor, tau = everything(still, d)
    numeric = (everything(still + h * d, d)[0] - everything(still - h * d, d)[0]) / (2.0 * h)
    np.testing.assert_allclose(reverse, numeric, rtol=1e-5)
    assert relative_error(by_regressor, tau) < 1e-12


def test_base_parameters_carry_all_that_is_seen() -> None:
    model = two_links()
    base = si.base_parameters(model)
    _, *rows = motion(2)
    Y = np.asarray(si.regressor_of_log(model, *map(jnp.asarray, rows))).reshape(-1, len(base.names))
    pi = np.asarray(si.linear_parameters(model))
    np.testing.assert_allclose(Y[:, base.independent] @ base.values(pi), Y @ pi, atol=1e-9)
    assert base.rank == np.linalg.matrix_rank(Y, tol=1e-8 * np.linalg.norm(Y))
    words = "\n".join(base.in_words())
    assert "is seen, not each by itself" in words
    assert "upper" in words


def test_single_precision_shows_no_more_base_parameters() -> None:
    """What rounding leaves of a dependent column is no number of its own, whatever type rows have afterwards."""
    model = two_links()
    single, expected = mbjax.astype(model, jnp.float32), si.base_parameters(model)
    found = si.base_parameters(single)
    assert found.rank == expected.rank
    np.testing.assert_array_equal(np.sort(found.independent), np.sort(expected.independent))
    _, *rows = motion(2, steps=50)
    Y = si.regressor_of_log(single, *(jnp.asarray(x, jnp.float32) for x in rows))
    for given in (Y, np.asarray(Y, float)):
        assert si.base_parameters(single, given).rank <= expected.rank


@pytest.mark.whole_run("base parameters of two links carry all that is seen")
def test_floating_base_shows_all_but_three_numbers_of_each_revolute_joint() -> None:
    """A floating body and one on a revolute joint show 10 n - 3 numbers of inertia (Ayusawa et al. 2014)."""
    model = hopper()
    keys = jax.random.split(jax.random.key(0), 3)
    dq, v, vdot = (jax.random.normal(key, (60, model.num_velocities)) for key in keys)
    q = jax.vmap(lambda d: mbjax.integrate_configuration(model, model.parameters.default_positions, d))(dq)
    Y = np.array(si.regressor_of_log(model, q, v, vdot))
    Y[..., 20:] = 0.0  # damping, friction and reflected inertia
    base = si.base_parameters(model, Y)
    assert base.rank == 17
    assert np.all(base.unseen >= 20)
