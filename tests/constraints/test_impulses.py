"""Impacts: momentum, energy, restitution, strategies, singular sets, gradients."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.gradients.checks import WHOLE_RUN, check_gradients, compiled
from tests.models import relative_error

from . import mechanisms

SOLVERS = {
    "direct": mbjax.Direct(),
    "range space": mbjax.RangeSpace(),
    "null space": mbjax.NullSpace(),
    "kokkevis": mbjax.Kokkevis(),
    "proximal": mbjax.Proximal(),
}


USED = SOLVERS if WHOLE_RUN else {name: SOLVERS[name] for name in ("direct", "kokkevis")}  # all are in test_solvers.py


@compiled
def impact(model, cset, q, v_minus, v_plus):
    """Every strategy, with what the laws of impact need."""
    results = {name: mbjax.constraint_impulses(model, cset, q, v_minus, v_plus, s) for name, s in USED.items()}
    return results, mbjax.mass_matrix(model, q), mbjax.constraints_jacobian(model, cset, q)


@functools.cache
def falling_ball():
    """A ball on a point contact off its centre of mass, which is free to turn."""
    plant = mbjax.MultibodyPlant()
    mechanisms.link(plant, "ball", 2.0, [0.0, 0.0, 0.0])
    model = plant.finalize()
    contact = mbjax.ConstraintSet().add_contact_constraint("ball", [0.1, 0.0, -0.2], [[0.0, 0.0, 1.0]], name="ground")
    return model, contact.bind(model), mbjax.default_positions(model)


bounce = compiled(lambda model, cset, q, v, v_plus: mbjax.constraint_impulses(model, cset, q, v, v_plus))
own_v_plus = compiled(lambda model, cset, q, v: mbjax.constraint_impulses(model, cset, q, v))


@pytest.mark.whole_run("a ball on the ground in closed form, and strategies that agree in forward dynamics")
@pytest.mark.parametrize("v_plus", [[0.0, 0.0], [0.3, -0.2]])
def test_laws_of_impact(v_plus: list[float]) -> None:
    """M (v - v_minus) = Gᵀ Λ, G v = v_plus; the energy lost is -½ Λ · (G v_minus + G v)."""
    case = mechanisms.four_bar()
    before, after = jnp.array([1.0, -2.0, 0.5]), jnp.array(v_plus)
    results, M, G = impact(case.model, case.cset, case.q, before, after)
    for result in results.values():
        np.testing.assert_allclose(M @ (result.v - before), G.T @ result.impulse, atol=1e-12)
        np.testing.assert_allclose(G @ result.v, after, atol=1e-12)
        assert relative_error(result.impulse, results["direct"].impulse) < 1e-9
        lost = 0.5 * before @ M @ before - 0.5 * result.v @ M @ result.v
        np.testing.assert_allclose(lost, -0.5 * result.impulse @ (G @ before + after), atol=1e-12)
        assert result.num_redundant == 0
        assert result.residual < 1e-12


def test_a_ball_on_the_ground() -> None:
    """Closed form: 1 / m_eff = 1 / m + (p x n) · I⁻¹ (p x n); the impulse acts upward on the body."""
    model, cset, q = falling_ball()
    v_minus = jnp.array([0.0, 0.0, 0.0, 0.3, 0.0, -1.5])
    lever = np.cross([0.1, 0.0, -0.2], [0.0, 0.0, 1.0])
    inertia = 2.0 * 0.1**2 * np.array([1.0, 1.3, 1.1])
    effective = 1.0 / (0.5 + lever @ (lever / inertia))
    for e in (0.0, 0.6, 1.0):
        rate = mbjax.constraints_velocity_error(model, cset, q, v_minus)
        result = bounce(model, cset, q, v_minus, -e * rate)
        np.testing.assert_allclose(result.impulse, [(1.0 + e) * 1.5 * effective], rtol=1e-12)
        np.testing.assert_allclose(result.v[5] * 2.0 + 3.0, result.impulse[0], rtol=1e-12)
        np.testing.assert_allclose(result.v[:3], lever / inertia * result.impulse[0], rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(result.v[3], 0.3, rtol=1e-12)
    own = own_v_plus(model, cset.with_v_plus({"ground": 0.9}), q, v_minus)
    np.testing.assert_allclose(own.v, bounce(model, cset, q, v_minus, jnp.array([0.9])).v, rtol=1e-12)
    v, impulse = own
    np.testing.assert_array_equal(v, own.v)
    np.testing.assert_array_equal(impulse, own.impulse)


@pytest.mark.whole_run("a ball on the ground, and locked joints in plants, in test_constrained_simulation.py")
def test_locked_joints_take_the_impact() -> None:
    case = mechanisms.four_bar()
    locked = mbjax.lock_joint(case.model, "crank_pivot")
    results, _, _ = impact(locked, case.cset, case.q, jnp.array([1.0, -2.0, 0.5]), jnp.zeros(2))
    for result in results.values():
        np.testing.assert_allclose(result.v, 0.0, atol=1e-12)  # the others cannot move without it


@pytest.mark.whole_run("derivatives of motion under contacts")
def test_gradients() -> None:
    """With respect to q, v_minus, v_plus, masses and the points of the loop."""
    case = mechanisms.four_bar()

    def after(q, v_minus, v_plus, mass, constraints):
        model = mbjax.set_masses(case.model, mass)
        cset = mbjax.BoundConstraintSet(constraints, case.cset.topology)
        return tuple(mbjax.constraint_impulses(model, cset, q, v_minus, v_plus))

    mass = case.model.parameters.body_mass
    arguments = (case.q, jnp.array([1.0, -2.0, 0.5]), jnp.array([0.3, -0.2]), mass, case.cset.constraints)
    result = check_gradients(after, *arguments)
    assert np.all(np.any(result.reverse[:, : case.q.size] != 0.0, axis=0))


def test_wrong_sizes_and_models() -> None:
    case = mechanisms.four_bar()
    model, _, q = falling_ball()
    for v_plus in (jnp.zeros(3), jnp.nan, "x", {"loop": 1.0}):
        with pytest.raises(mbjax.ModelError, match="constraint_impulses: v_plus must be"):
            mbjax.constraint_impulses(case.model, case.cset, case.q, case.v, v_plus)
    with pytest.raises(mbjax.ModelError, match="bound to another model"):
        mbjax.constraint_impulses(model, case.cset, q, jnp.zeros(6))
