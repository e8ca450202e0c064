"""Closed-form derivatives of motion and impacts under contacts, against JAX's of the plain functions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.constraints import contact_impulse_derivatives, contact_motion_derivatives
from tests.constraints.walkers import contacts_of, walker

STATES = 3
ACTIVE = jnp.array([[1.0, 1, 0], [0, 1, 1], [0, 0, 0]])


@pytest.fixture(scope="module")
def model() -> mbjax.MultibodyModel:
    return walker()


@pytest.fixture(scope="module")
def contacts(model) -> mbjax.constraints.BoundConstraintSet:
    return contacts_of(model)


@pytest.fixture(scope="module")
def inputs(model) -> tuple:
    keys = jax.random.split(jax.random.key(3), STATES)
    q = jax.vmap(lambda key: mbjax.random_state(model, key).q)(keys)
    v, tau = jax.random.normal(jax.random.key(4), (2, STATES, model.num_velocities))
    return q, v, tau


def acting(contacts, active):
    return contacts.with_active(dict(zip(contacts.names, active, strict=True)))


def assert_equal(found, expected, tolerance):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, float(np.max(np.abs(b)))))


def test_motion_under_contacts(model, contacts, inputs):
    """The rule, in reverse mode, against derivatives of the solve in which gravity is a given force."""

    @jax.jit
    @jax.vmap
    def both(q, v, tau, active):
        cset, given = acting(contacts, active), (jnp.zeros_like(v), v, tau)

        def solve(dq, v, tau, with_rule):
            q_moved = mbjax.integrate_configuration(model, q, dq)
            forces = None if with_rule else mbjax.force_elements_contribution(model, q_moved, v)
            found = mbjax.constrained_forward_dynamics(model, cset, q_moved, v, tau, forces, force_elements=with_rule)
            return found.vdot, found.force

        found, pull = jax.vjp(lambda *args: solve(*args, True), *given)
        of_vdot, of_force = jnp.split(jnp.eye(sum(x.size for x in found)), [len(v)], axis=1)
        plain = jax.jacfwd(lambda *args: jnp.concatenate(solve(*args, False)), (0, 1, 2))(*given)
        return (found, jax.vmap(lambda *weights: pull(weights))(of_vdot, of_force)), (solve(*given, False), plain)

    rule, plain = both(*inputs, ACTIVE)
    assert_equal(rule, plain, 1e-10)
    assert np.max(np.abs(plain[1][0][0, model.num_velocities :])) > 1.0  # forces vary with q


@pytest.mark.whole_run("derivatives of motion under contacts, and a ball's impact in closed form")
def test_an_impact(model, contacts, inputs):
    @jax.jit
    @jax.vmap
    def both(q, v, active):
        cset, zero = acting(contacts, active), jnp.zeros_like(v)
        of = contact_impulse_derivatives(model, cset, q, v)

        def plain(dq, v):
            q_moved = mbjax.integrate_configuration(model, q, dq)
            found = mbjax.constraint_impulses(model, cset, q_moved, v, solver=mbjax.constraints.Direct())
            return found.v - v, found.impulse

        closed = (of.x_q, of.x_v), (of.force_q, of.force_v)
        given = zero, v
        return ((of.result.vdot, of.result.multipliers), closed), (
            plain(*given),
            jax.jacfwd(plain, (0, 1))(*given),
        )

    closed, plain = both(*inputs[:2], ACTIVE)
    assert_equal(closed, plain, 1e-10)


@pytest.mark.whole_run("motion by the state, above")
def test_by_a_mass_and_by_differences(model, contacts, inputs):
    """Values and closed forms by a mass, and the closed form by q, against central differences."""
    q, v, tau = (x[0] for x in inputs)
    cset, place = acting(contacts, ACTIVE[0]), model.body_index("thigh_l")

    @jax.jit
    def at(mass, dq):
        heavier = eqx.tree_at(lambda m: m.parameters.body_mass, model, model.parameters.body_mass.at[place].set(mass))
        of = contact_motion_derivatives(heavier, cset, mbjax.integrate_configuration(model, q, dq), v, tau)
        return of.result.vdot, of.x_q, of.force_v

    mass, zero, h = model.parameters.body_mass[place], jnp.zeros_like(v), 1e-5
    _, change = jax.jit(lambda: jax.jvp(lambda m: at(m, zero), (mass,), (jnp.ones_like(mass),)))()
    differences = jax.tree.map(lambda a, b: (a - b) / (2 * h), at(mass + h, zero), at(mass - h, zero))
    assert_equal(change, differences, 1e-7)

    along = jnp.linspace(-1.0, 1.0, len(v))
    moved = (at(mass, h * along)[0] - at(mass, -h * along)[0]) / (2 * h)
    assert_equal(at(mass, zero)[1] @ along, moved, 1e-7)
