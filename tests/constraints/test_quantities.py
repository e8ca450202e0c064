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
    zoo,
)

LINKAGES = {
    "four-bar": (four_bar, four_bar_positions, four_bar_links),
    "slider-crank": (slider_crank, slider_crank_positions, slider_crank_links),
    "distance rod": (slider_crank_with_distance_rod, distance_rod_positions, distance_rod_links),
}


@pytest.mark.parametrize("name", LINKAGES)
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


def test_system_variables_are_those_of_the_free_system_and_of_the_rows() -> None:
    model, cset, q, v = vars(zoo()).values()
    off = cset.with_active({"hinge": False})
    tau = jnp.arange(1.0, v.size + 1.0)
    system, terms = compiled(system_under_gravity)(model, off, q, v, tau), compiled_terms(model, off, q, v)
    forces = mbjax.force_elements_contribution(model, q, v)
    assert relative_error(system.H, mbjax.mass_matrix(model, q)) < 1e-13
    assert relative_error(system.C, mbjax.inverse_dynamics(model, q, v, jnp.zeros_like(v), forces)) < 1e-13
    assert relative_error(system.c, tau - system.C) < 1e-13
    assert not np.any(system.G[2:7])
    assert not np.any(system.gamma[2:7])
    on = np.r_[0:2, 7 : cset.num_rows]
    assert relative_error(system.G[on], terms.G[on]) < 1e-13
    assert relative_error(system.gamma[on], (terms.gamma + terms.stabilization)[on]) < 1e-13


def test_quantities_with_respect_to_qdot() -> None:
    model, cset, q, v = vars(zoo()).values()
    both = compiled(lambda model, cset, q: [mbjax.constraints_jacobian(model, cset, q, wrt) for wrt in ("v", "qdot")])
    G, G_qdot = both(model, cset, q)
    rate = G_qdot @ mbjax.velocity_to_qdot(model, q, v)
    assert relative_error(rate, G @ v) < 1e-13
    assert relative_error(rate, compiled(mbjax.constraints_velocity_error)(model, cset, q, v)) < 1e-13


def test_a_compliant_distance_is_a_spring_and_damper() -> None:
    model, _, q, v = vars(zoo()).values()
    points = np.array([0.3, -0.2, 0.1]), np.array([0.2, 0.5, -0.4])
    spring = mbjax.ConstraintSet().add_distance_constraint(
        2, points[0], 5, points[1], 0.4, stiffness=30.0, damping=2.5, name="spring"
    )
    cset = spring.bind(model)
    element = mbjax.LinearSpringDamper(2, points[0], 5, points[1], 0.4, 30.0, 2.5).resolve(model)

    def forces(model, cset, q, v):
        position = mbjax.position_kinematics(model, q)
        velocity = mbjax.velocity_kinematics(model, position, q, v)
        system = mbjax.constrained_system_variables(model, cset, q, v, 0.0 * v)
        by_element = element.forces(model, position, velocity, q, v)
        return mbjax.compliant_forces(model, cset, q, v), system.C, by_element

    body, C, expected = compiled(forces)(model, cset, q, v)
    assert relative_error(body, expected.body) < 1e-13
    bias = mbjax.inverse_dynamics(model, q, v, 0.0 * v, expected)
    assert relative_error(C, bias) < 1e-12
    off, _, _ = compiled(forces)(model, cset.with_active({"spring": False}), q, v)
    assert not np.any(off)
    softer = eqx.tree_at(lambda c: c.constraints[0].stiffness, cset, jnp.asarray(0.0))
    assert not np.allclose(compiled(forces)(model, softer, q, v)[0], body)
