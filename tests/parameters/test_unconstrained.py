"""Numbers that may take any value: they come back exactly, always mean something possible, and have right gradients."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import mbjax
from mbjax import parameters
from mbjax.spatial import from_log_cholesky, log_cholesky
from tests.deformable_cube import cube_plant
from tests.gradients.checks import check_gradients
from tests.model.test_numbers_in_setters import small_robot

INF = np.inf


@pytest.fixture(scope="module")
def model() -> mbjax.MultibodyModel:
    m = mbjax.set_joint_damping(small_robot(), "elbow", 0.3)
    m = mbjax.set_position_limits(m, "wrist", -INF, 0.7)
    return mbjax.set_rotor_inertia(m, "motor", 0.02)


@pytest.fixture(scope="module")
def spec(model) -> mbjax.MultibodyModel:
    return parameters.without(jax.tree.map(lambda _: True, model), parameters.switches(model))


def random_numbers(numbers: mbjax.MultibodyModel, seed: int = 0, scale: float = 1.0) -> mbjax.MultibodyModel:
    flat, unravel = ravel_pytree(numbers)
    return unravel(flat + scale * np.random.default_rng(seed).normal(size=flat.size))


def test_there_and_back(model, spec) -> None:
    numbers = parameters.unconstrained(model, spec)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(numbers))
    back = parameters.constrained(model, numbers)
    for (path, x), y in zip(jax.tree_util.tree_leaves_with_path(model), jax.tree.leaves(back), strict=True):
        np.testing.assert_allclose(y, x, rtol=4e-15, atol=4e-16, err_msg=jax.tree_util.keystr(path))
    single, numbers_f32 = mbjax.astype(model, jnp.float32), mbjax.astype(numbers, jnp.float32)
    assert {x.dtype for x in jax.tree.leaves(parameters.constrained(single, numbers_f32))} == {np.dtype(np.float32)}


@pytest.mark.whole_run("there and back, above; extreme numbers in tests/system_identification/test_parameters.py")
def test_any_numbers_are_possible(model, spec) -> None:
    """Far away too, world by world: nothing is negative, crossed or impossible, and only what was chosen has moved."""
    numbers = parameters.unconstrained(model, spec)
    draws = [random_numbers(numbers, seed, scale) for seed, scale in enumerate((0.1, 1.0, 3.0, 3.0, 5.0))]
    numbers = jax.tree.map(lambda *x: jnp.stack(x), *draws)
    models = jax.jit(jax.vmap(lambda n: parameters.constrained(model, n)))(numbers)
    status = jax.vmap(mbjax.model_status)(models)
    np.testing.assert_array_equal(status.is_valid, True)
    assert (np.ptp(models.parameters.body_mass, axis=0) > 0.0).all()
    assert (models.parameters.position_upper_limits > models.parameters.position_lower_limits).all()
    for world in range(len(draws)):
        one = jax.tree.map(lambda x, world=world: x[world], models)
        for body in one.body_names[1:]:
            assert mbjax.spatial_inertia_in_body_frame(one, body).is_physically_valid()


def test_what_has_no_number_is_held(model, spec) -> None:
    """Zero damping and friction, infinite limits, and inertias at the border."""
    plant = mbjax.MultibodyPlant(0.01)
    plant.add_rigid_body("marker")  # massless
    plant.add_rigid_body("point", mbjax.SpatialInertia.point_mass(0.5, np.array([0.1, 0.2, 0.3])))
    plant.add_rigid_body("rod", mbjax.SpatialInertia.thin_rod_with_mass(0.5, 0.3, np.array([0.0, 0.0, 1.0])))
    plant.add_joint(mbjax.WeldJoint("w", "rod", "marker"))
    plant.add_joint(mbjax.RevoluteJoint("j", "world", "rod", axis=[1, 0, 0]))
    plant.add_joint(mbjax.WeldJoint("x", "rod", "point"))
    plant.add_joint_actuator("motor", "j")
    model = plant.finalize()
    physical = parameters.physical(model)
    moved = parameters.constrained(model, random_numbers(parameters.unconstrained(model, physical)))
    for name in ("body_com", "body_unit_inertia", "joint_damping", "joint_friction", "effort_limit", "rotor_inertia"):
        np.testing.assert_array_equal(getattr(moved.parameters, name), getattr(model.parameters, name), err_msg=name)
    assert moved.parameters.body_mass[0] == 0.0
    assert (moved.parameters.body_mass[1:] != model.parameters.body_mass[1:]).all()
    gradient = jax.grad(lambda n: jnp.sum(parameters.constrained(model, n).parameters.body_unit_inertia))
    assert not any(np.any(x) for x in jax.tree.leaves(gradient(parameters.unconstrained(model, physical))))


def test_materials_stay_possible() -> None:
    """Elastic numbers, densities and dampings are positive, Poisson's ratio between -1 and ½, whatever the numbers."""
    material = mbjax.DeformableMaterial(5e4, 0.3, 300.0, stiffness_damping=0.005)
    model = cube_plant(material).finalize()
    spec = parameters.union(parameters.materials(model), parameters.contact(model))
    numbers = parameters.unconstrained(model, spec)
    back, bodies = parameters.constrained(model, numbers), model.deformables
    for (path, x), y in zip(jax.tree_util.tree_leaves_with_path(model), jax.tree.leaves(back), strict=True):
        np.testing.assert_allclose(y, x, rtol=4e-15, atol=4e-16, err_msg=jax.tree_util.keystr(path))
    for shift in (-1e6, -40.0, -1.0, 1.0, 40.0):
        moved = parameters.constrained(model, jax.tree.map(lambda x, by=shift: x + by, numbers)).deformables
        assert moved is not None
        assert -1.0 < moved.poissons_ratio[0] < 0.5
        assert moved.youngs_modulus[0] >= 0.0
        assert moved.mass_density[0] >= 0.0
        assert moved.mass_damping[0] == 0.0  # has no number, and is held
        assert moved.stiffness_damping[0] >= 0.0
        assert moved.dynamic_friction[0] >= 0.0
        assert moved.relaxation_time[0] >= 0.0
    np.testing.assert_allclose(numbers.deformables.youngs_modulus, np.log(bodies.youngs_modulus))

    def ratio(number: jax.Array) -> jax.Array:
        changed = eqx.tree_at(lambda n: n.deformables.poissons_ratio, numbers, number[None])
        return parameters.constrained(model, changed).deformables.poissons_ratio[0]

    at = numbers.deformables.poissons_ratio[0]
    numeric = (ratio(at + 1e-6) - ratio(at - 1e-6)) / 2e-6
    np.testing.assert_allclose(jax.grad(ratio)(at), numeric, rtol=1e-7)


def test_gradients_there_and_back(model, spec) -> None:
    """Forward = reverse = differences, through the numbers and by the model's own leaves."""
    numbers = random_numbers(parameters.unconstrained(model, spec), scale=0.1)
    weights = [np.random.default_rng(k).normal(size=x.shape) for k, x in enumerate(jax.tree.leaves(model))]

    def weighted(m: mbjax.MultibodyModel) -> jax.Array:
        leaves = (jnp.where(jnp.isfinite(x), x, 0.0) for x in jax.tree.leaves(m))
        return sum(jnp.sum(w * x) for w, x in zip(weights, leaves, strict=False))

    check_gradients(lambda n: weighted(parameters.constrained(model, n)), numbers)
    inertial = parameters.inertial(model)
    moving, held = eqx.partition(model, inertial)
    check_gradients(lambda m: weighted(parameters.unconstrained(eqx.combine(m, held), inertial)), moving)


def test_log_cholesky_is_that_of_the_pseudo_inertia() -> None:
    """Against a dense factor of numpy: S = U Uᵀ, U upper triangular with a positive diagonal."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        A = rng.normal(size=(3, 3))
        S = A @ A.T + 0.1 * np.eye(3)
        U = np.linalg.cholesky(S[::-1, ::-1])[::-1, ::-1]
        numbers, is_definite = log_cholesky(jnp.asarray(S), jnp.asarray(0.0))
        assert is_definite
        ratios = [U[0, 1] / U[1, 1], U[0, 2] / U[2, 2], U[1, 2] / U[2, 2]]
        np.testing.assert_allclose(numbers, [*np.log(np.diag(U)), *ratios], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(from_log_cholesky(numbers), S, rtol=1e-13)
    _, is_definite = log_cholesky(jnp.diag(jnp.array([1.0, 0.0, 1.0])), jnp.asarray(1e-15))
    assert not is_definite


def test_specs_that_could_leave_what_is_possible_are_refused(model) -> None:
    none = jax.tree.map(lambda _: False, model)
    alone = eqx.tree_at(lambda s: s.parameters.body_com, none, True)
    with pytest.raises(mbjax.ModelError, match=r"body_com without \.parameters\.body_unit_inertia"):
        parameters.unconstrained(model, alone)
    with pytest.raises(mbjax.ModelError, match=r"velocity_locked is a switch.*parameters\.without"):
        parameters.unconstrained(model, parameters.switches(model))
    with pytest.raises(mbjax.ModelError, match="the spec must be a tree of truth values like the model"):
        parameters.unconstrained(model, True)
    mass = eqx.tree_at(lambda s: s.parameters.body_mass, none, True)
    assert len(jax.tree.leaves(parameters.unconstrained(model, mass))) == 1
