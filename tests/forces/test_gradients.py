"""Derivatives of force elements: every parameter and state, and the places where a formula has none of its own."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.gradients.checks import WHOLE_RUN, Gradients, central_differences, check_gradients, compare, compiled

from .models import BUSHING_CONSTANTS, HINGE

INERTIA = mbjax.SpatialInertia(1.3, np.array([0.1, -0.2, 0.15]), mbjax.UnitInertia(0.2, 0.25, 0.3, 0.01, -0.02, 0.03))


@functools.cache
def two_links() -> mbjax.MultibodyModel:
    """Every force element on two links."""
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("a", INERTIA)
    plant.add_rigid_body("b", INERTIA)
    X_PF = mbjax.RigidTransform.from_rpy_xyz(jnp.array([0.3, 0.4, 0.5]), jnp.array([0.4, 0.1, -0.2]))
    plant.add_joint(mbjax.RevoluteJoint("hinge", "world", "a", axis=(1, 2, 3), X_PF=X_PF))
    plant.add_joint(mbjax.PrismaticJoint("slide", "a", "b", axis=(3, 1, 2), X_PF=X_PF))
    plant.add_force_element(mbjax.LinearSpringDamper("world", (0.1, 0.2, 0.3), "b", (0.2, 0.1, 0.0), 0.3, 30.0, 2.0))
    plant.add_force_element(mbjax.RevoluteSpring("hinge", 0.4, 7.0))
    plant.add_force_element(mbjax.PrismaticSpring("slide", 0.1, 9.0))
    plant.add_force_element(mbjax.DoorHinge("hinge", mbjax.DoorHingeConfig(**HINGE)))
    plant.add_frame("C", "b", X_PF)
    plant.add_force_element(mbjax.LinearBushingRollPitchYaw("world", "C", *BUSHING_CONSTANTS))
    return plant.finalize()


def test_parameters_and_state():
    """Forces, energy and a force added by hand, with respect to all they read; no parameter is dead."""
    model = two_links()
    F = jnp.arange(1.0, 7.0)

    def f(x):
        changed = eqx.tree_at(lambda m: (m.force_elements, m.parameters.gravity), model, (x["elements"], x["gravity"]))
        q, v = x["q"], x["v"]
        forces = mbjax.force_elements_contribution(changed, q, v)
        forces = mbjax.add_in_force(changed, q, forces, "b", x["p"], F, "a")
        return mbjax.generalized_forces(changed, q, forces), mbjax.potential_energy(changed, q)

    x = {
        "elements": model.force_elements,
        "gravity": jnp.array([1.0, 2.0, -9.0]),
        "q": jnp.array([0.5, 0.2]),
        "v": jnp.array([0.7, -0.4]),
        "p": jnp.array([0.3, -0.1, 0.2]),
    }
    result = check_gradients(f, x)
    assert (np.abs(result.reverse).max(axis=0) > 1e-6).all()


@pytest.mark.whole_run("powers of elements in test_body_forces.py, and derivatives of forces and energy, above")
def test_powers():
    """With respect to the state and an element's numbers; they contain a derivative already."""
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("a", INERTIA)
    plant.add_joint(mbjax.RevoluteJoint("hinge", "world", "a", axis=(1, 2, 3)))
    plant.add_force_element(mbjax.LinearSpringDamper("world", (0.3, -0.2, 0.1), "a", (0.2, 0.1, 0.0), 0.3, 30.0, 2.0))
    model = plant.finalize()

    def f(elements, q, v):
        changed = eqx.tree_at(lambda m: m.force_elements, model, elements)
        return mbjax.conservative_power(changed, q, v), mbjax.non_conservative_power(changed, q, v)

    check_gradients(f, model.force_elements, jnp.array([0.5]), jnp.array([0.7]))


@functools.cache
def free_body() -> mbjax.MultibodyModel:
    """A floating body on two springs at its origin and a bushing there; tests switch them off by zeros."""
    plant = mbjax.MultibodyPlant()
    plant.set_gravity(np.zeros(3))
    plant.add_rigid_body("b", INERTIA)
    plant.add_force_element(mbjax.LinearSpringDamper("world", np.zeros(3), "b", np.zeros(3), 0.0, 30.0, 2.0))
    plant.add_force_element(mbjax.LinearSpringDamper("world", np.zeros(3), "b", np.zeros(3), 0.4, 40.0, 3.0))
    plant.add_force_element(mbjax.LinearBushingRollPitchYaw("world", "b", *BUSHING_CONSTANTS))
    return plant.finalize()


def forces_and_energy(elements, x: jax.Array) -> jax.Array:
    """Spatial force on the body at its origin, in W, and the energy, at x = (roll, pitch, yaw, p, w, v)."""
    model = mbjax.astype(eqx.tree_at(lambda m: m.force_elements, free_body(), elements), x.dtype)
    q, v = jnp.concatenate([mbjax.spatial.rpy_to_quaternion(x[:3]), x[3:6]]), x[6:]
    return jnp.append(mbjax.force_elements_contribution(model, q, v).body[1], mbjax.potential_energy(model, q))


@compiled
def in_batch(elements, rows):
    """Values, and derivatives by x in both modes; trimmed: in reverse mode."""
    value, reverse = (
        jax.vmap(f, (None, 0))(elements, rows) for f in (forces_and_energy, jax.jacrev(forces_and_energy, 1))
    )
    forward = jax.vmap(jax.jacfwd(forces_and_energy, 1), (None, 0))(elements, rows) if WHOLE_RUN else reverse
    return value, forward, reverse


@compiled
def differences_in_batch(elements, rows):
    return jax.lax.map(lambda row: central_differences(lambda x: forces_and_energy(elements, x), row), rows)


def only(index: int, change=lambda element: element) -> tuple:
    """The elements with all numbers of the others zero."""
    zero = functools.partial(jax.tree.map, jnp.zeros_like)
    return tuple(change(e) if i == index else zero(e) for i, e in enumerate(free_body().force_elements))


def at(rpy=(0.0, 0.0, 0.0), p=(0.0, 0.0, 0.0), w=(0.0, 0.0, 0.0), v=(0.0, 0.0, 0.0)) -> np.ndarray:
    return np.concatenate([rpy, p, w, v])


def batch(rows) -> jax.Array:
    """Six rows, the last one repeated: one size, one compilation."""
    return jnp.asarray(np.stack([*rows, *[rows[-1]] * (6 - len(rows))]))


def check_batch(elements, rows, scale: float = 1.0) -> np.ndarray:
    """Both modes and differences on all rows at once; returns the derivatives (k, 7, 12)."""
    rows = batch(rows)
    _, forward, reverse = in_batch(elements, rows)
    differences = differences_in_batch(elements, rows)
    for k, row in enumerate(rows):
        names = [f"row {k} = {np.asarray(row)} entry {i}" for i in range(row.size)]
        compare(Gradients(*(np.asarray(x[k]) for x in (forward, reverse, differences)), names), scale=scale)
    return np.asarray(reverse)


@pytest.mark.whole_run("derivatives elsewhere, above, and points that coincide in tests/constraints/test_kinds.py")
def test_G40_spring_of_zero_length_is_linear_where_its_points_meet():
    """Without free length the force is k times the vector; its derivatives at 0 and 1e-9 say so, in one batch."""
    rows = [at(p=p) for p in np.array([[0, 0, 0], [1e-9, 0, 0], [0, -2e-7, 1e-7], [0.3, 0.1, -0.2]])]
    slopes = check_batch(only(0), rows)[:, 3:6, 3:6]
    np.testing.assert_allclose(slopes, np.broadcast_to(-30.0 * np.eye(3), slopes.shape), atol=1e-6)
    check_batch(only(0), [at(v=(1.0, -2.0, 3.0)), at(w=(1.0, 2.0, 3.0), p=(0.1, 0.2, 0.3))])
    if WHOLE_RUN:  # trimmed: the slopes of the force above
        model = eqx.tree_at(lambda m: m.force_elements, free_body(), only(0))
        hessian = jax.hessian(lambda p: mbjax.potential_energy(model, jnp.append(jnp.array([1.0, 0, 0, 0]), p)))
        np.testing.assert_allclose(jax.jit(hessian)(jnp.zeros(3)), 30.0 * np.eye(3), atol=1e-9)


@pytest.mark.whole_run("derivatives elsewhere, above, and points that coincide in tests/constraints/test_kinds.py")
def test_G40_spring_with_free_length_is_finite_where_its_points_meet():
    """No direction, so no push and no damping: force 0, every derivative finite, as the row beside it says true."""
    rows = batch([at(v=(1.0, -2.0, 3.0)), at(p=(0.2, 0.1, 0.0), v=(1.0, -2.0, 3.0))])
    values, *derivatives = in_batch(only(1), rows)
    np.testing.assert_allclose(values[0, :6], 0.0)
    assert all(np.isfinite(x).all() for x in derivatives)
    check_batch(only(1), rows[1:])
    if not WHOLE_RUN:
        return
    in_float32 = jax.jit(jax.vmap(jax.jacrev(forces_and_energy, 1), (None, 0)))
    derivatives = in_float32(mbjax.astype(only(1), jnp.float32), rows.astype(jnp.float32))
    assert derivatives.dtype == jnp.float32
    assert np.isfinite(derivatives).all()


@pytest.mark.whole_run("derivatives elsewhere, above, and pitch of a quarter turn in tests/spatial/test_rotation.py")
def test_G05_bushing_up_to_gimbal_lock():
    """At aligned frames, at 89 degrees of pitch and elsewhere; NaN at gimbal lock, unless no torque is there."""
    moving = {"p": (0.1, 0.2, -0.3), "w": (0.3, -0.2, 0.5), "v": (1.0, 2.0, 3.0)}
    angles = [(0.0, 0.0, 0.0), (0.2, np.deg2rad(89.0), -0.3), (0.5, -0.3, 1.0), (3.0, 1.2, -3.0)]
    check_batch(only(2), [at(rpy, **moving) for rpy in angles])
    locked = [at((0.2, np.pi / 2, 0.1), **moving), at((0.4, -np.pi / 2 + 1e-3, 0.2), **moving)]
    assert np.isnan(in_batch(only(2), batch(locked))[0][:, :3]).any(axis=1).all()

    def ball_and_socket(bushing):
        zero = jnp.zeros(3)
        return eqx.tree_at(lambda b: (b.torque_stiffness_constants, b.torque_damping_constants), bushing, (zero, zero))

    check_batch(only(2, ball_and_socket), [at(rpy, **moving) for rpy in angles] + locked)


@pytest.mark.whole_run("derivatives elsewhere, above, and forces of bushings beside Drake in test_against_drake.py")
def test_bushing_at_coincident_aligned_frames():
    """Where all six displacements vanish: six springs and dampers, one along each."""
    k012, d012, kxyz, dxyz = map(np.array, BUSHING_CONSTANTS)
    slopes = check_batch(only(2), [at(), at()])[0, :6]
    np.testing.assert_allclose(slopes[:, :6], -np.diag([*k012, *kxyz]), atol=1e-12)
    np.testing.assert_allclose(slopes[:, 6:], -np.diag([*d012, *dxyz]), atol=1e-12)


ANGLE_AND_RATE = {
    "closed and at rest": (0.0, 0.0),
    "middle of the catch": (0.5 * HINGE["catch_width"], HINGE["motion_threshold"]),
    "end of the catch": (HINGE["catch_width"], -HINGE["motion_threshold"]),
    "open": (2.0, 5.0),
}


def test_door_hinge_at_its_thresholds():
    def f(hinge, rows):
        return jax.lax.map(lambda x: (hinge.hinge_torque(x[0], x[1]), hinge.hinge_stored_energy(x[0])), rows)

    rows = jnp.array(list(ANGLE_AND_RATE.values()))
    check_gradients(f, mbjax.DoorHinge("hinge", mbjax.DoorHingeConfig(**HINGE)), rows)
