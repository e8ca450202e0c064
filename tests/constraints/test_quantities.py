"""The public quantities of a constraint set."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.gradients.checks import compiled
from tests.models import relative_error

from .mechanisms import (
    compiled_terms,
    distance_rod_links,
    distance_rod_positions,
    four_bar,
    four_bar_links,
    four_bar_positions,
    one_dof_state,
    slider_crank,
    slider_crank_links,
    slider_crank_positions,
    slider_crank_with_distance_rod,
    spring_leg,
    zoo,
)

LINKAGES = {
    "four-bar": (four_bar, four_bar_positions, four_bar_links),
    "slider-crank": (slider_crank, slider_crank_positions, slider_crank_links),
    "distance rod": (slider_crank_with_distance_rod, distance_rod_positions, distance_rod_links),
}


OTHERS = pytest.mark.whole_run("the four-bar, and both accelerations in test_constrained_forward_dynamics.py")


@pytest.mark.parametrize("name", [pytest.param(x, marks=[OTHERS] * (x != "four-bar")) for x in LINKAGES])
def test_closed_forms_satisfy_the_constrained_equation(name: str) -> None:
    """G47: H vdot + C = tau + Gᵀ λ and G vdot = gamma for Lagrange's vdot, λ being what is left."""
    make, positions, links = LINKAGES[name]
    model, cset = make().model, make().cset
    tau = np.zeros(model.num_velocities)
    tau[0] = 1.3
    for theta in (0.3, 1.4, 2.9, 4.4):
        q, v, vdot = one_dof_state(positions, links, theta, -2.1, tau[0])
        system = compiled(system_under_gravity)(model, cset, q, v, jnp.asarray(tau))
        assert np.abs(system.error).max() < 1e-14
        assert np.abs(system.velocity_error).max() < 1e-13
        assert relative_error(system.G @ vdot, system.gamma) < 1e-11
        missing = system.H @ vdot - system.c
        multipliers = np.linalg.lstsq(system.G.T, missing, rcond=None)[0]
        assert relative_error(system.G.T @ multipliers, missing) < 1e-11


def system_under_gravity(model, cset, q, v, tau):
    forces = mbjax.force_elements_contribution(model, q, v)
    return mbjax.constrained_system_variables(model, cset, q, v, tau, forces)


@pytest.mark.whole_run("closed forms satisfy the constrained equation")
def test_system_variables_are_those_of_the_free_system_and_of_the_rows() -> None:
    model, cset, q, v = vars(spring_leg()).values()
    off, tau = cset.with_active({"heel": False}), jnp.arange(1.0, v.size + 1.0)

    def everything(model, cset, q, v, tau):
        free = mbjax.inverse_dynamics(model, q, v, 0.0 * v, mbjax.force_elements_contribution(model, q, v))
        return system_under_gravity(model, cset, q, v, tau), mbjax.mass_matrix(model, q), free

    (system, M, free), terms = compiled(everything)(model, off, q, v, tau), compiled_terms(model, off, q, v)
    assert relative_error(system.H, M) < 1e-13
    assert relative_error(system.C, free) < 1e-13
    assert relative_error(system.c, tau - free) < 1e-13
    heel, toe = cset.rows_of("heel"), cset.rows_of("toe")
    assert not np.any(system.G[heel])
    assert not np.any(system.gamma[heel])
    assert relative_error(system.G[toe], terms.G[toe]) < 1e-13
    assert relative_error(system.gamma[toe], (terms.gamma + terms.stabilization)[toe]) < 1e-12


def test_quantities_with_respect_to_qdot() -> None:
    model, cset, q, _ = vars(spring_leg()).values()
    v = jnp.arange(1.0, model.num_velocities + 1.0)

    def rates(model, cset, q, v):
        G, G_qdot = (mbjax.constraints_jacobian(model, cset, q, wrt) for wrt in ("v", "qdot"))
        rate = mbjax.constraints_velocity_error(model, cset, q, v)
        return G @ v, G_qdot @ mbjax.velocity_to_qdot(model, q, v), rate

    by_v, by_qdot, rate = compiled(rates)(model, cset, q, v)
    assert relative_error(by_qdot, by_v) < 1e-13
    assert relative_error(by_v, rate) < 1e-13


@pytest.mark.whole_run("steps of a stiff spring as Drake's")
def test_a_compliant_distance_is_a_spring_and_damper() -> None:
    model, _, q, v = vars(zoo()).values()
    points = np.array([0.3, -0.2, 0.1]), np.array([0.2, 0.5, -0.4])
    spring = mbjax.ConstraintSet().add_distance_constraint(
        2, points[0], 5, points[1], 0.4, stiffness=30.0, damping=2.5, name="spring"
    )
    cset = spring.bind(model)
    element = mbjax.LinearSpringDamper(2, points[0], 5, points[1], 0.4, 30.0, 2.5)

    def forces(model, cset, q, v):
        position = mbjax.position_kinematics(model, q)
        velocity = mbjax.velocity_kinematics(model, position, q, v)
        system = mbjax.constrained_system_variables(model, cset, q, v, 0.0 * v)
        by_element = element.forces(model, position, velocity, q, v)
        bias = mbjax.inverse_dynamics(model, q, v, 0.0 * v, by_element)
        return mbjax.compliant_forces(model, cset, q, v), by_element.body, system.C, bias

    run = compiled(forces)
    body, expected, C, bias = run(model, cset, q, v)
    assert relative_error(body, expected) < 1e-13
    assert relative_error(C, bias) < 1e-12
    assert not np.any(run(model, cset.with_active({"spring": False}), q, v)[0])
    softer = eqx.tree_at(lambda c: c.constraints[0].stiffness, cset, jnp.asarray(0.0))
    assert not np.allclose(run(model, softer, q, v)[0], body)
