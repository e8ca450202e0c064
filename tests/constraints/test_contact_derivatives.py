"""Closed-form derivatives of motion and impacts under contacts, against JAX's of the plain functions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.constraints.contact_derivatives import calc_contact_impulse_derivatives, calc_contact_motion_derivatives
from mbjax.kinematics import for_worlds_of

LINK = """<link name="{name}"><inertial><origin xyz="0.02 {y} -0.1"/><mass value="{m}"/>
<inertia ixx="0.03" iyy="0.04" izz="0.02" ixy="0.001" ixz="0.002" iyz="-0.001"/></inertial></link>"""
JOINT = """<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>
<origin xyz="{xyz}" rpy="0.1 0.2 0"/><axis xyz="{axis}"/><limit lower="-9" upper="9" effort="99" velocity="9"/>
<dynamics damping="0.2"/></joint>"""
STATES = 3
ACTIVE = jnp.array([[1.0, 1, 0], [0, 1, 1], [0, 0, 0]])


@pytest.fixture(scope="module")
def walker() -> mbjax.MultibodyModel:
    """A floating trunk with two legs of two joints."""
    links = [("trunk", 0.03, 3.0), ("thigh_l", 0.01, 1.0), ("shank_l", 0.02, 0.6), ("thigh_r", -0.01, 1.1)]
    links.append(("shank_r", 0.0, 0.5))
    joints = [("hip_l", "trunk", "thigh_l", "0.1 0.2 0", "0 1 0"), ("knee_l", "thigh_l", "shank_l", "0 0 -0.3", "0.6 0.8 0")]
    joints += [("hip_r", "trunk", "thigh_r", "0.1 -0.2 0", "1 0 0"), ("knee_r", "thigh_r", "shank_r", "0 0 -0.3", "0 1 0")]
    text = "".join(LINK.format(name=n, y=y, m=m) for n, y, m in links)
    keys = "name", "parent", "child", "xyz", "axis"
    text += "".join(JOINT.format(**dict(zip(keys, joint, strict=True))) for joint in joints)
    return mbjax.load(f'<robot name="walker">{text}</robot>', base="floating", time_step=0.01, actuators="joints")


@pytest.fixture(scope="module")
def feet(walker) -> mbjax.constraints.BoundConstraintSet:
    """Two feet of three rows with a velocity gain, and a point of the trunk with one slanted normal."""
    feet = mbjax.ConstraintSet()
    for name, x in (("l", 0.05), ("r", -0.02)):
        feet = feet.add_contact_constraint(f"shank_{name}", [x, 0.01, -0.3], np.eye(3), name=name, stabilization_time=0.1)
    return feet.add_contact_constraint("trunk", [0.1, 0.05, 0.2], [[0.6, 0.0, 0.8]], name="trunk").bind(walker)


@pytest.fixture(scope="module")
def inputs(walker) -> tuple:
    keys = jax.random.split(jax.random.key(3), STATES)
    q = jax.vmap(lambda key: mbjax.random_state(walker, key).q)(keys)
    v, tau = jax.random.normal(jax.random.key(4), (2, STATES, walker.num_velocities))
    return q, v, tau


def acting(feet, active):
    return feet.with_active(dict(zip(feet.names, active, strict=True)))


def test_motion_equals_the_derivative_of_the_plain_solve(walker, feet, inputs):
    @jax.jit
    @jax.vmap
    def both(q, v, tau, active):
        cset = acting(feet, active)
        of = for_worlds_of(calc_contact_motion_derivatives, walker, cset, q, v, tau, several=2)

        def plain(dq, v, tau):
            q_moved = mbjax.integrate_configuration(walker, q, dq)
            forces = mbjax.force_elements_contribution(walker, q_moved, v)
            found = mbjax.constrained_forward_dynamics(walker, cset, q_moved, v, tau, forces)
            return found.vdot, found.force

        zero = jnp.zeros_like(v)
        return of, plain(zero, v, tau), jax.jacfwd(plain, (0, 1, 2))(zero, v, tau)

    of, (vdot, force), (by_vdot, by_force) = both(*inputs, ACTIVE)
    np.testing.assert_allclose(of.result.vdot, vdot, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(of.result.multipliers, force, rtol=1e-9, atol=1e-9)
    for found, expected in zip((of.x_q, of.x_v, of.x_tau), by_vdot, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-8)
    for found, expected in zip((of.force_q, of.force_v, of.force_tau), by_force, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-8)
    assert np.max(np.abs(of.force_q[0])) > 1.0


def test_an_impact_equals_the_derivative_of_the_plain_solve(walker, feet, inputs):
    @jax.jit
    @jax.vmap
    def both(q, v, active):
        cset = acting(feet, active)
        of = for_worlds_of(calc_contact_impulse_derivatives, walker, cset, q, v, several=2)

        def plain(dq, v):
            found = mbjax.constraint_impulses(walker, cset, mbjax.integrate_configuration(walker, q, dq), v)
            return found.v - v, found.impulse

        zero = jnp.zeros_like(v)
        return of, plain(zero, v), jax.jacfwd(plain, (0, 1))(zero, v)

    of, (x, impulse), (by_x, by_impulse) = both(*inputs[:2], ACTIVE)
    np.testing.assert_allclose(of.result.vdot, x, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(of.result.multipliers, impulse, rtol=1e-9, atol=1e-9)
    for found, expected in zip((of.x_q, of.x_v), by_x, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-8)
    for found, expected in zip((of.force_q, of.force_v), by_impulse, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-8)
