"""Any size works (G49): nothing, one body, all welded, long chains, many branches."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.model.plants import chain_of, force_elements, hinge, inertia, mass_matrix


def everything(model):
    """Runs the main functions; returns what must be finite."""
    x = mbjax.random_state(model, jax.random.key(0))
    zero = jnp.zeros(model.num_velocities)
    forces = force_elements(model, x.q, x.v)
    return {
        "X": mbjax.body_poses_in_world(model, x.q).translation,
        "V": mbjax.body_spatial_velocities_in_world(model, x.q, x.v),
        "M": mass_matrix(model, x.q),
        "tau": mbjax.inverse_dynamics(model, x.q, x.v, zero, forces),
        "vdot": mbjax.forward_dynamics(model, x.q, x.v, zero, forces),
        "q": mbjax.integrate_configuration(model, x.q, x.v),
        "dv": mbjax.difference_configuration(model, x.q, x.q),
        "N": mbjax.velocity_to_qdot_matrix(model, x.q),
        "J": mbjax.jacobian_spatial_velocity(model, x.q, model.num_frames - 1, jnp.ones(3), 0, 0, "qdot"),
        "com": mbjax.center_of_mass_position_in_world(model, x.q),
        "energy": mbjax.kinetic_energy(model, x.q, x.v) + mbjax.potential_energy(model, x.q),
    }  # fmt: skip


def sized(what: str) -> mbjax.MultibodyModel:
    plant = mbjax.MultibodyPlant()
    if what == "all welded":
        plant.add_rigid_body("a", inertia())
        plant.add_rigid_body("b", inertia())
        plant.weld_frames("world", "a", [0.1, 0.2, 0.3])
        plant.weld_frames("a", "b", [0.1, 0.2, 0.3])
    if what == "single body":
        plant.add_rigid_body("a", inertia())
    if what in ("chain of 50", "50 branches"):
        for i in range(50):
            plant.add_rigid_body(f"b{i}", inertia())
            parent = "world" if i == 0 or what == "50 branches" else f"b{i - 1}"
            plant.add_joint(hinge(f"j{i}", parent, f"b{i}"))
    return plant.finalize()


SINGLE = pytest.param(
    "single body", marks=pytest.mark.whole_run("bodies that float free, in test_degenerate_models.py")
)
BRANCHES = pytest.param(
    "50 branches", marks=pytest.mark.whole_run("trees of many branches in tests/dynamics/test_recursions.py")
)
CHAIN = pytest.param("chain of 50", marks=pytest.mark.whole_run("many branches in tests/dynamics/test_recursions.py"))


@pytest.mark.parametrize("what", ["world only", "all welded", SINGLE, CHAIN, BRANCHES])
def test_any_size_works(what):
    model = sized(what)
    results = eqx.filter_jit(everything)(model)
    assert all(np.all(np.isfinite(x)) for x in results.values())
    assert results["M"].shape == (model.num_velocities,) * 2
    assert str(model)
    if what == "all welded":
        np.testing.assert_allclose(results["X"][2], [0.2, 0.4, 0.6])
        assert float(mbjax.total_mass(model)) == pytest.approx(2.6)
        np.testing.assert_allclose(results["com"], [0.25, 0.25, 0.65])
    if what == "50 branches":
        np.testing.assert_array_equal(results["M"], np.diag(np.diag(results["M"])))
        one = mass_matrix(chain_of(inertia()).finalize(), jnp.zeros(1))
        np.testing.assert_allclose(np.diag(results["M"]), one[0, 0], rtol=1e-13)
    if what == "chain of 50":
        residual = results["M"] @ results["vdot"] + results["tau"]
        assert np.abs(residual).max() < 1e-9 * np.abs(results["tau"]).max()
