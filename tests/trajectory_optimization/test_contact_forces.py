"""Forces of scheduled contacts in costs and constraints: flat feet and their wrench cone; quasi-static guesses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import trajectory_optimization as to
from mbjax.trajectory_optimization.flat_feet import wrench_margins
from tests.gradients.checks import all_gradients

from .problems import STEPS, pendulum

MASS, SIZE, CENTRE = 3.0, (0.2, 0.1), (0.03, -0.02)
BOX = f"""<robot name="box"><link name="box"><inertial><origin xyz="{CENTRE[0]} {CENTRE[1]} 0.3"/><mass value="{MASS}"/>
<inertia ixx="0.1" iyy="0.2" izz="0.15" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""
WEIGHT = MASS * 9.81


@pytest.fixture(scope="module")
def standing() -> tuple[mbjax.MultibodyModel, to.ScheduledContacts, to.FlatFoot]:
    """A box on a foot of its own, whose frame F is turned against the body's."""
    model = mbjax.load(BOX, base="floating", time_step=0.01)
    foot = to.FlatFoot("sole", "box", SIZE)
    return model, to.ScheduledContacts(foot.add_to(mbjax.ConstraintSet()).bind(model)), foot


def at(model: mbjax.MultibodyModel) -> mbjax.State:
    return mbjax.State(jnp.array([1.0, 0, 0, 0, 0, 0, 0]), jnp.zeros(6))


def stage(active: bool) -> dict:
    return {"active": jnp.full(3, active), "begins": jnp.zeros(3, bool)}


@pytest.mark.whole_run("the cone, below, and forces of contacts in test_dynamics_of_problems.py")
def test_a_foot_bears_the_weight_below_the_centre_of_mass(standing):
    model, dynamics, foot = standing
    vdot, force = dynamics.solve(model, at(model), jnp.zeros(0), stage(True))
    np.testing.assert_allclose(vdot, 0.0, atol=1e-10)
    wrench = foot.wrench(dynamics, force)
    np.testing.assert_allclose(wrench, [CENTRE[1] * WEIGHT, -CENTRE[0] * WEIGHT, 0, 0, 0, WEIGHT], atol=1e-9)
    pressure = to.CenterOfPressure(dynamics, foot, CENTRE, factor=4.0)
    np.testing.assert_allclose(pressure(model, at(model), jnp.zeros(0), stage(True)), 0.0, atol=1e-9)
    off = to.CenterOfPressure(dynamics, foot, (CENTRE[0] + 0.01, CENTRE[1]), factor=4.0)
    np.testing.assert_allclose(off(model, at(model), jnp.zeros(0), stage(True)), [0, 0.02 * WEIGHT], atol=1e-9)
    cone = to.WrenchCone(dynamics, foot, 0.5, margin=7.0)
    values = cone(model, at(model), jnp.zeros(0), stage(True))
    np.testing.assert_allclose(values, wrench_margins(wrench, jnp.array(SIZE), jnp.array(0.5)), atol=1e-9)
    assert np.all(values > 0.0)
    np.testing.assert_allclose(cone(model, at(model), jnp.zeros(0), stage(False)), np.full(17, 7.0))
    force_cost = to.ContactForce(dynamics, force, 2.0)
    np.testing.assert_allclose(force_cost(model, at(model), jnp.zeros(0), stage(True)), 0.0, atol=1e-9)
    np.testing.assert_allclose(force_cost(model, at(model), jnp.zeros(0), stage(False)), 0.0)


def test_the_wrench_cone_is_what_forces_at_the_corners_can_give():
    """By linear programming over the corners' pyramids: inside where all numbers are above zero, and only there."""
    linprog = pytest.importorskip("scipy.optimize").linprog
    rng, mu, size = np.random.default_rng(0), 0.6, np.array(SIZE)
    corners = np.array([[x, y, 0.0] for x in (-0.5, 0.5) for y in (-0.5, 0.5)]) * np.array([*size, 0.0])
    edges = [np.array([s * mu, t * mu, 1.0]) for s in (-1, 1) for t in (-1, 1)]
    columns = np.array([np.concatenate([np.cross(p, f), f]) for p in corners for f in edges]).T
    margins = jax.jit(lambda w: wrench_margins(w, jnp.asarray(size), jnp.asarray(mu)))
    inside = 0
    for _ in range(200):
        n = rng.uniform(1.0, 50.0)
        scale = np.array([size[1] / 2, size[0] / 2, mu * size.sum() / 2, mu, mu, 1.0]) * n
        wrench = scale * np.array([*rng.uniform(-0.8, 0.8, size=5), 1.0])
        found = linprog(np.zeros(16), A_eq=columns, b_eq=wrench, bounds=[(0, None)] * 16)
        smallest = float(np.min(margins(wrench)))
        assert (found.status == 0) == (smallest >= 0.0), smallest
        inside += found.status == 0
    assert 20 < inside < 180


@pytest.mark.whole_run("the cone is what forces at the corners give, above, and derivatives of motion under contacts")
def test_gradients_of_the_wrench_cone(standing):
    model, dynamics, foot = standing
    cone = to.WrenchCone(dynamics, foot, 0.5)

    def of(v):
        return cone(model, mbjax.State(at(model).q, v), jnp.zeros(0), stage(True))

    gradients = all_gradients(of, 0.1 * jnp.arange(1.0, 7.0))
    np.testing.assert_allclose(gradients.reverse, gradients.forward, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(gradients.differences, gradients.forward, rtol=1e-5, atol=1e-5)


def test_what_feet_cannot_be(standing):
    _, dynamics, _ = standing
    with pytest.raises(mbjax.ModelError, match=r"no contacts \['other_heel'"):
        to.WrenchCone(dynamics, to.FlatFoot("other", "box", SIZE), 0.5)
    for size in (0.2, [-0.2, 0.1]):
        with pytest.raises(mbjax.ModelError, match="a length and a width"):
            to.FlatFoot("sole", "box", size)
    with pytest.raises(mbjax.ModelError, match=r"R_WF must be numbers of shape \(3, 3\)"):
        to.FlatFoot("sole", "box", SIZE, R_WF=[0.0, 0.0, 1.0])
    for term in (to.FrictionPyramid, to.FrictionCone):
        with pytest.raises(mbjax.ModelError, match=f"{term.__name__}: coefficient must be a finite number >= 0, got"):
            term(dynamics, -0.6)


def test_a_quasi_static_guess_holds_what_it_can():
    angles = jnp.linspace(0.0, 2.0, STEPS + 1)
    states, efforts = to.quasi_static(pendulum(limited=True), jnp.stack([angles, jnp.zeros_like(angles)], axis=1))
    np.testing.assert_array_equal(states[:, 0], angles)
    np.testing.assert_allclose(efforts[:, 0], np.minimum(9.81 * np.sin(angles[:-1]), 9.0), atol=1e-9)
