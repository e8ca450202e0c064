"""Every kind of constraint: its Jacobian, rates and forces follow from its error."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.gradients.checks import OFFSETS, WEIGHTS, WHOLE_RUN, check_gradients, compiled
from tests.models import random_tree, relative_error

from .mechanisms import (
    HINGE_ABOUT_Z,
    Mechanism,
    body_poses,
    compiled_terms,
    constraint_terms,
    four_bar,
    place,
    spring_leg,
    zoo,
)

velocity_to_qdot = compiled(mbjax.velocity_to_qdot)
NO_POSITION_ERROR = ("contact", "point contact", "lock of velocity", "custom_14")


@functools.cache
def zoo_terms() -> mbjax.ConstraintTerms:
    return compiled_terms(*vars(zoo()).values())


def rates(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rates of the error and of G v along qdot = N(q) u, by differences of fourth order."""
    model, cset, q, v = vars(zoo()).values()
    step = 1e-3 * np.asarray(velocity_to_qdot(model, q, jnp.asarray(u)))
    shifted = [compiled_terms(model, cset, q + h * step, v) for h in OFFSETS]
    return tuple(WEIGHTS @ np.stack([getattr(x, name) for x in shifted]) / 1e-3 for name in ("error", "velocity_error"))


def has_position_error() -> np.ndarray:
    cset = zoo().cset
    mask = np.ones(cset.num_rows, bool)
    for name in NO_POSITION_ERROR:
        mask[cset.rows_of(name)] = False
    return mask


@pytest.mark.whole_run("rates beside Pinocchio's and Drake's")
def test_velocity_error_is_the_rate_of_the_error() -> None:
    terms, rows = zoo_terms(), has_position_error()
    assert relative_error(terms.G @ zoo().v, terms.velocity_error) < 1e-13
    columns = np.stack([rates(unit)[0] for unit in np.eye(zoo().v.size)], axis=1)
    assert relative_error(columns[rows], terms.G[rows]) < 1e-9
    assert np.all(terms.error[~rows] == 0.0)
    assert np.all(np.any(terms.G != 0.0, axis=1))


@pytest.mark.whole_run("gamma is Drake's, and that of closed forms")
def test_gamma_is_minus_the_rate_of_G_times_v() -> None:
    cset, gamma = zoo().cset, zoo_terms().gamma
    at_rest = [cset.rows_of(name) for name in ("coupler", "lock of velocity")]
    linear = sum(rows.stop - rows.start for rows in at_rest) + 3  # and three rows of the floating joint's lock
    assert np.count_nonzero(np.asarray(gamma)) == gamma.size - linear
    assert relative_error(rates(np.asarray(zoo().v))[1], -gamma) < 1e-9


def test_stabilization_pulls_errors_back() -> None:
    """Of several kinds with times of their own; trimmed: of a four-bar, without a time and with one."""
    if not WHOLE_RUN:
        model, cset, q, v = vars(four_bar()).values()
        for T in (0.1, np.inf):
            timed = eqx.tree_at(lambda c: c.constraints[0].stabilization_time, cset, jnp.asarray(T))
            terms = compiled_terms(model, timed, q + 0.1, v + 0.2)
            expected = -2.0 / T * terms.velocity_error - terms.error / T**2
            assert (np.abs(expected) > 0.1).all() == (T < 1.0)
            np.testing.assert_allclose(terms.stabilization, expected, rtol=1e-13, atol=0.0)
        return
    terms, cset = zoo_terms(), zoo().cset
    for name, T in (("free", 0.1), ("coupler", 0.02), ("custom_14", 0.1), ("hinge", np.inf), ("contact", np.inf)):
        rows = cset.rows_of(name)
        expected = -2.0 / T * terms.velocity_error[rows] - terms.error[rows] / T**2
        np.testing.assert_allclose(terms.stabilization[rows], expected, rtol=1e-13, atol=0.0)


def test_without_velocities_the_rest_is_the_same() -> None:
    model, cset, q, v = vars(four_bar()).values()
    terms, full = compiled(mbjax.constraint_terms)(model, cset, q), compiled_terms(model, cset, q, v)
    assert relative_error(terms.error, full.error) < 1e-14
    assert relative_error(terms.G, full.G) < 1e-14
    assert not np.any(terms.gamma)
    assert not np.any(terms.velocity_error)


@pytest.mark.whole_run("the successor's force, below, and those of a four-bar, in test_constrained_simulation.py")
def test_forces_act_on_both_bodies_and_do_the_work_of_the_rows() -> None:
    model, cset, q, v = vars(zoo()).values()
    multipliers = np.random.default_rng(0).normal(size=cset.num_rows)
    on_joints = ("custom", "coupler", "lock", "lock of velocity", "custom_14")
    for name in on_joints:
        multipliers[cset.rows_of(name)] = 0.0

    def forces_and_tau(model, cset, q, multipliers):
        body = mbjax.constraint_spatial_forces(model, cset, q, multipliers)
        return body, mbjax.generalized_forces(model, q, mbjax.MultibodyForces(jnp.zeros(v.size), body))

    forces, tau = compiled(forces_and_tau)(model, cset, q, jnp.asarray(multipliers))
    p_WB = body_poses(model, q)[:, :3, 3]
    moment = np.sum(forces[:, :3] + np.cross(p_WB - np.array([3.0, -2.0, 5.0]), forces[:, 3:]), axis=0)
    assert np.abs(moment).max() < 1e-12
    assert np.abs(np.sum(forces[:, 3:], axis=0)).max() < 1e-13
    assert relative_error(tau, zoo_terms().G.T @ multipliers) < 1e-13


def test_force_acts_on_the_successor() -> None:
    """λ > 0 along an axis pushes the successor that way: the sign RBDL's impulses lack in one of its solvers."""
    mechanism = four_bar()
    model, cset = mechanism.model, mechanism.cset
    forces = compiled(mbjax.constraint_spatial_forces)(model, cset, mechanism.q, jnp.array([2.0, 3.0]))
    R_WP = body_poses(model, mechanism.q)[model.body_index("rocker"), :3, :3]
    np.testing.assert_allclose(forces[model.body_index("coupler"), 3:], R_WP @ [2.0, 3.0, 0.0], atol=1e-14)
    np.testing.assert_allclose(forces[model.body_index("rocker"), 3:], -R_WP @ [2.0, 3.0, 0.0], atol=1e-14)


@pytest.mark.whole_run("rows as Drake's, and a leg's in batches in test_constraint_set.py")
def test_ancestors_that_both_bodies_share_do_not_enter() -> None:
    mechanism = spring_leg()
    model = mechanism.model
    G = compiled_terms(model, mechanism.cset, mechanism.q, mechanism.v).G
    toe, heel = (G[mechanism.cset.rows_of(name)] for name in ("toe", "heel"))
    for joint in ("pelvis", "roll", "knee_pitch", "shin_spring", "ankle"):
        assert not np.any(toe[:, model.joint(joint).v])
    for joint in ("pelvis", "roll"):
        assert not np.any(heel[:, model.joint(joint).v])
    assert np.all(np.any(heel[:, [model.joint(j).v_start for j in ("knee_pitch", "shin_spring", "ankle")]], axis=0))


@pytest.mark.whole_run("rows as Drake's, and a leg's in batches in test_constraint_set.py")
def test_far_from_the_origin_loops_keep_their_digits() -> None:
    mechanism = spring_leg()
    model, cset, q, v = vars(mechanism).values()
    far = q.at[model.joint("pelvis").q.stop - 3].add(100.0).at[model.joint("pelvis").q.stop - 2].add(-80.0)
    here, there = compiled_terms(model, cset, q, v), compiled_terms(model, cset, far, v)
    for x, y in zip(here, there, strict=True):
        assert np.abs(np.asarray(x - y)).max() < 1e-14
    single = [mbjax.astype(x, jnp.float32) for x in (model, cset, far, v)]
    assert np.abs(compiled_terms(*single).error).max() < 1e-6


def test_hinge_loop_is_satisfied_and_regular_at_every_angle() -> None:
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("body", mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.3))
    model = plant.finalize()
    cset = mbjax.ConstraintSet().add_loop_constraint("world", "body", None, None, HINGE_ABOUT_Z).bind(model)
    half = 0.5 * np.array([0.0, 1.0, np.pi / 2, 3.0, np.pi, np.nextafter(np.pi, 4.0), -2.5, 7.0])
    q = np.zeros((half.size, 7))
    q[:, 0], q[:, 3] = np.cos(half), np.sin(half)
    spinning = jnp.array([0.0, 0.0, 2.0, 0.0, 0.0, 0.0])
    terms = compiled(jax.vmap(constraint_terms, (None, None, 0, None)))(model, cset, jnp.asarray(q), spinning)
    for x in (terms.error, terms.velocity_error, terms.gamma):
        assert np.abs(x).max() < 1e-15
    np.testing.assert_allclose(np.linalg.svd(terms.G, compute_uv=False), 1.0, rtol=0, atol=1e-14)


@pytest.mark.whole_run("steps of welded bodies as Drake's, and hinges at every angle, above")
def test_weld_measures_the_angle_up_to_half_a_turn() -> None:
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("body", mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.3))
    X_WF, X_BM = place([0.3, -0.4, 1.0], [0.2, 0.1, 0.5]), place([-0.7, 0.2, 0.1], [0.1, -0.1, 0.0])
    plant.add_joint(mbjax.RevoluteJoint("joint", "world", "body", X_PF=X_WF, X_BM=X_BM, axis=[0.0, 0.0, 1.0]))
    model, v = plant.finalize(), jnp.ones(1)
    cset = mbjax.ConstraintSet().add_weld_constraint("world", X_WF, "body", X_BM).bind(model)
    angles = jnp.array([[0.0], [1e-9], [1e-4], [1.0], [3.0], [3.14159], [np.pi]])

    def measure(angle):
        return jax.jacfwd(lambda q: constraint_terms(model, cset, q, v).error)(angle), constraint_terms(
            model, cset, angle, v
        )

    J, terms = compiled(jax.vmap(measure))(angles)
    np.testing.assert_allclose(np.abs(terms.error[:, 2]), angles[:, 0], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(terms.error[:-1, 2], angles[:-1, 0], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(terms.G[:, 2], 1.0, rtol=1e-12)
    np.testing.assert_allclose(J[:, 2], 1.0, rtol=1e-8)
    assert np.abs(terms.gamma).max() < 1e-12
    assert np.abs(terms.error[:, [0, 1, 3, 4, 5]]).max() < 1e-12


@functools.cache
def two_sliders() -> Mechanism:
    """Two bodies on a line, a distance apart: G40."""
    plant = mbjax.MultibodyPlant()
    for name, axis in (("a", [1.0, 0.0, 0.0]), ("b", [0.6, 0.8, 0.0])):
        plant.add_rigid_body(name, mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.1))
        plant.add_joint(mbjax.PrismaticJoint(f"slide_{name}", "world", name, axis=axis))
    model = plant.finalize()
    rod = mbjax.ConstraintSet().add_distance_constraint("a", np.zeros(3), "b", np.zeros(3), 0.5)
    return Mechanism(model, rod.bind(model), jnp.zeros(2), jnp.array([1.0, -2.0]))


def test_distance_of_coincident_points_is_finite() -> None:
    model, cset, _, v = vars(two_sliders()).values()

    def everything(q):
        return jnp.concatenate([x.ravel() for x in constraint_terms(model, cset, q, v)])

    q = jnp.array([[0.0, 0.0], [1e-9, 0.0], [0.3, 0.5], [0.0, 1e-200]])
    values, slopes = compiled(jax.vmap(lambda q: (everything(q), jax.jacrev(everything)(q))))(q)
    assert np.all(np.isfinite(values))
    assert np.all(np.isfinite(slopes[:3]))
    np.testing.assert_allclose(values[0, 0], -0.5)


@pytest.mark.whole_run("dead centres in test_constrained_forward_dynamics.py, and points that coincide, above")
def test_collinear_four_bar_is_finite_and_singular() -> None:
    """G42, of a parallelogram: all links on a line, where two motions are possible."""
    plant = mbjax.MultibodyPlant()
    for name in ("crank", "coupler", "rocker"):
        plant.add_rigid_body(name, mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.1))
    for name, parent, child, x in (
        ("a", "world", "crank", 0.0),
        ("b", "crank", "coupler", 0.3),
        ("c", "world", "rocker", 0.7),
    ):
        plant.add_joint(mbjax.RevoluteJoint(name, parent, child, X_PF=np.array([x, 0.0, 0.0])))
    model = plant.finalize()
    loop = mbjax.ConstraintSet().add_loop_constraint(
        "rocker", "coupler", np.array([0.3, 0, 0]), np.array([0.7, 0, 0]), np.eye(6)[[3, 4]]
    )
    cset = loop.bind(model)

    def everything(q):
        return constraint_terms(model, cset, q, jnp.array([1.0, -1.0, 1.0]))

    terms, slopes = compiled(lambda q: (everything(q), jax.jacrev(everything)(q)))(jnp.zeros(3))
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves((terms, slopes)))
    assert np.linalg.matrix_rank(terms.G) == 1
    assert np.abs(terms.error).max() == 0.0


def terms_of(model, cset, q, v):
    """What moves with the state, in one vector."""
    terms = constraint_terms(model, cset, q, v)
    return jnp.concatenate([terms.error, terms.G.ravel(), terms.gamma, terms.stabilization])


@functools.cache
def pair_of_arms() -> Mechanism:
    """Two arms on a floating base and another body; hinge, weld, ball and distance between them and the world."""
    model = random_tree(11, ("quaternion_floating", "revolute", "universal", "revolute")).model
    rng = np.random.default_rng(11)
    poses = [place(0.5 * rng.normal(size=3), 0.5 * rng.normal(size=3)) for _ in range(6)]
    hinge = np.array([[1.0, 0.2, 0.0, 0, 0, 0], [0.3, 0.9, 0.1, 0, 0, 0], *np.eye(6)[3:]])
    constraints = mbjax.ConstraintSet().add_loop_constraint(2, 4, poses[0], poses[1], hinge)
    constraints.add_weld_constraint(3, poses[2], 5, poses[3]).add_loop_constraint(0, 3, poses[4], poses[5], hinge)
    constraints.add_distance_constraint(4, rng.normal(size=3), 1, rng.normal(size=3), 0.4)
    constraints.add_contact_constraint(4, rng.normal(size=3), [[0.3, 0.1, 2.0]])
    state = mbjax.random_state_within_limits(model, jax.random.key(3))
    return Mechanism(model, constraints.bind(model), state.q, state.v)


@pytest.mark.whole_run("derivatives of motion under contacts, in test_contact_derivatives.py")
def test_gradients() -> None:
    """G46: with respect to q, v, the constraints' leaves and the model's, J-dot terms and shared ancestors included."""
    model, cset, q, v = vars(pair_of_arms()).values()
    parts = ("frame_quaternion", "frame_translation", "joint_axis")

    def weighted(leaves, cset, q, v):
        changed = eqx.tree_at(lambda m: [getattr(m.parameters, part) for part in parts], model, leaves)
        terms = constraint_terms(changed, cset, q, v)
        everything = jnp.concatenate([terms.error, terms.G.ravel(), terms.gamma, terms.stabilization])
        weights = np.random.default_rng(1).normal(size=(4, everything.size))
        return jnp.asarray(weights) @ everything

    leaves = [getattr(model.parameters, part) for part in parts]
    result = check_gradients(weighted, leaves, cset, q, v, step=1e-4)
    still = [n for n, x in zip(result.names, result.reverse.T, strict=True) if not np.any(x)]
    assert not [n for n in still if any(part in n for part in ("quaternion_", ".p_", "normals", "distance"))]
    assert sum("axes" in n for n in still) == 2 * 9  # rotation parts of the axes that translate
