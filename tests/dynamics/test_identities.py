"""Identities that rigid-body dynamics obey, on a tree of every joint type and on a floating robot tree."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.models import ALL_KINDS, random_tree, relative_error

TREES = {"every kind": (0, ALL_KINDS), "chain": (5, ("revolute", "universal", "weld", "ball_rpy", "screw", "planar"))}


@functools.cache
def model_of(tree: str) -> mbjax.MultibodyModel:
    return random_tree(*TREES[tree]).model


def quaternion_slices(model: mbjax.MultibodyModel) -> list[slice]:
    return [j.q for j in model.layout.joints if j.kind == "quaternion_floating"]


def scaled(x, reference) -> float:
    return float(np.abs(x).max() / np.abs(reference).max())


@jax.jit
def _identities(model, q, v, vdot, tau):
    """Both sides of every identity at one state."""
    zero = jnp.zeros_like(v)
    M, forces = mbjax.mass_matrix(model, q), mbjax.force_elements_contribution(model, q, v)
    qdot = mbjax.velocity_to_qdot(model, q, v)
    N = mbjax.velocity_to_qdot_matrix(model, q)
    Mdot = jax.jvp(lambda q: mbjax.mass_matrix(model, q), (q,), (qdot,))[1]
    bias = mbjax.bias_term(model, q, v)
    C = 0.5 * jax.jacfwd(lambda v: mbjax.bias_term(model, q, v))(v)  # bias is quadratic in v: bias = C v
    required = mbjax.inverse_dynamics(model, q, v, vdot, forces)
    acceleration = mbjax.forward_dynamics(model, q, v, tau, forces)

    def energy(q, v):
        return mbjax.kinetic_energy(model, q, v) + mbjax.potential_energy(model, q)

    def rate(f, vdot):
        return jax.jvp(f, (q, v), (qdot, vdot))[1]

    return {
        "M": M,
        "M by jacobian": jax.jacfwd(lambda a: mbjax.inverse_dynamics(model, q, v, a))(vdot),
        "kinetic energy": mbjax.kinetic_energy(model, q, v),
        "half v M v": 0.5 * v @ M @ v,
        "Mdot": Mdot,
        "bias": bias,
        "C v": C @ v,
        "Mdot v": Mdot @ v,
        "gradient of kinetic energy": N.T @ jax.grad(lambda q: mbjax.kinetic_energy(model, q, v))(q),
        "gravity": mbjax.gravity_generalized_forces(model, q),
        "gradient of potential energy": N.T @ jax.grad(lambda q: mbjax.potential_energy(model, q))(q),
        "tau of forward": mbjax.inverse_dynamics(model, q, v, acceleration, forces),
        "vdot of inverse": mbjax.forward_dynamics(model, q, v, required, forces),
        "energy rate": rate(energy, acceleration),
        "power": tau @ v + forces.generalized @ v,
        "momentum": mbjax.spatial_momentum_in_world_about_point(model, q, v, jnp.zeros(3)),
        "forces": forces,
        "total mass": mbjax.total_mass(model),
        "p_WScm": mbjax.center_of_mass_position_in_world(model, q),
        "N": N,
        "N+": mbjax.qdot_to_velocity_matrix(model, q),
        "v": mbjax.qdot_to_velocity(model, q, qdot),
        "v_WScm": mbjax.center_of_mass_translational_velocity_in_world(model, q, v),
        "rate of p_WScm": jax.jvp(lambda q: mbjax.center_of_mass_position_in_world(model, q), (q,), (qdot,))[1],
        "a_WScm bias": mbjax.bias_center_of_mass_translational_acceleration(model, q, v),
        "rate of v_WScm": rate(
            lambda q, v: mbjax.center_of_mass_translational_velocity_in_world(model, q, v), zero
        ),
    }  # fmt: skip


EVERY = pytest.mark.whole_run("a chain and a free body, and every kind at Drake's ports in tests/simulation")
CASES = [pytest.param((tree, seed), marks=[EVERY] * (tree != "chain")) for tree in TREES for seed in range(2)]


@pytest.fixture(params=CASES, ids=str, scope="module")
def state(request):
    """A model, q, v, vdot, tau and both sides of the identities."""
    tree, seed = request.param
    model = model_of(tree)
    x = mbjax.random_state(model, jax.random.key(seed))
    vdot, tau = jax.random.normal(jax.random.key(seed + 100), (2, model.num_velocities))
    return model, x.q, x.v, tau, vdot, _identities(model, x.q, x.v, vdot, tau)


def test_mass_matrix_is_torque_per_acceleration(state):
    *_, sides = state
    assert relative_error(sides["M by jacobian"], sides["M"]) < 1e-12
    assert relative_error(sides["M"], sides["M"].T) < 1e-15
    assert np.linalg.eigvalsh(sides["M"]).min() > 0.0


def test_kinetic_energy_is_half_v_M_v(state):
    *_, sides = state
    assert relative_error(sides["kinetic energy"], sides["half v M v"]) < 1e-13


def test_bias_does_the_work_that_the_mass_matrix_takes(state):
    """v (Mdot - 2 C) v = 0; for joints without quasi-velocities C is that of Christoffel."""
    _, _, v, _, _, sides = state
    assert relative_error(sides["C v"], sides["bias"]) < 1e-12
    assert scaled(v @ (sides["Mdot v"] - 2.0 * sides["bias"]), sides["bias"]) < 1e-11


def test_christoffel_symbols_give_the_bias_and_a_skew_matrix():
    """With v = qdot: bias_i = sum c_ijk v_j v_k, and Mdot - 2 C is skew."""
    twin = random_tree(7, ("revolute", "prismatic", "universal", "planar", "screw", "revolute"))
    model = twin.model
    n = model.num_velocities - 6  # without the body that floats
    state = mbjax.random_state(model, jax.random.key(3))
    q0, v0 = state.q, state.v.at[n:].set(0.0)

    @jax.jit
    def parts(model, q, v):
        dM = jax.jacfwd(lambda x: mbjax.mass_matrix(model, q.at[:n].set(x))[:n, :n])(q[:n])
        return dM, mbjax.bias_term(model, q, v)[:n]

    assert all(j.v.start >= n for j in model.layout.joints if j.kind == "quaternion_floating")
    dM, bias = (np.asarray(x) for x in parts(model, q0, v0))
    v = np.asarray(v0[:n])
    symbols = 0.5 * (dM + np.swapaxes(dM, 1, 2) - np.moveaxis(dM, 2, 0))
    C = symbols @ v
    assert relative_error(C @ v, bias) < 1e-12
    S = dM @ v - 2.0 * C
    assert scaled(S + S.T, S) < 1e-13


def test_gravity_is_the_gradient_of_potential_energy(state):
    *_, sides = state
    assert relative_error(-sides["gradient of potential energy"], sides["gravity"]) < 1e-12


def test_forward_and_inverse_dynamics_undo_each_other(state):
    _, _, _, tau, vdot, sides = state
    assert relative_error(sides["tau of forward"], tau) < 1e-10
    assert relative_error(sides["vdot of inverse"], vdot) < 1e-9


def test_energy_changes_by_the_power_of_torques_and_dissipation(state):
    _, _, v, tau, _, sides = state
    power = np.abs(tau * v).sum()
    assert abs(sides["energy rate"] - sides["power"]) < 1e-11 * power
    assert sides["forces"].generalized @ v < 0.0  # damping only takes


def test_momentum_of_free_bodies_changes_by_gravity_alone():
    """Bodies that only gravity acts on from outside: joints inside a tree that floats do not matter."""
    plant = mbjax.MultibodyPlant()
    rng = np.random.default_rng(11)
    for i, joint in enumerate((None, mbjax.RevoluteJoint, mbjax.UniversalJoint, mbjax.BallRpyJoint)):
        G = mbjax.UnitInertia.solid_box(*rng.uniform(0.2, 0.6, 3)).shift_from_center_of_mass(-(p := rng.normal(size=3)))
        plant.add_rigid_body(f"b{i}", mbjax.SpatialInertia(rng.uniform(1.0, 2.0), p, G))
        if joint is not None:
            plant.add_joint(joint(f"j{i}", f"b{i - 1}", f"b{i}", X_PF=rng.normal(size=3), damping=0.3))
    model = plant.finalize()
    x = mbjax.random_state(model, jax.random.key(0))
    tau = jnp.asarray(np.concatenate([np.zeros(6), rng.normal(size=model.num_velocities - 6)]))

    @jax.jit
    def momentum_rate(q, v):
        vdot = mbjax.forward_dynamics(model, q, v, tau, force_elements=True)

        def momentum(q, v):
            return mbjax.spatial_momentum_in_world_about_point(model, q, v, jnp.zeros(3))

        return jax.jvp(momentum, (q, v), (mbjax.velocity_to_qdot(model, q, v), vdot))[1]

    weight = np.asarray(model.parameters.gravity) * float(mbjax.total_mass(model))
    expected = np.concatenate([np.cross(mbjax.center_of_mass_position_in_world(model, x.q), weight), weight])
    assert relative_error(momentum_rate(x.q, x.v), expected) < 1e-11


def test_momentum_about_what_is_no_point():
    """One number or row would count for all coordinates or rows."""
    model = model_of("chain")
    q, v = model.parameters.default_positions, jnp.zeros(model.num_velocities)
    for point in (1.0, [1.0], np.ones((1, 3)), [1.0, 2.0]):
        with pytest.raises(mbjax.ModelError, match="p_WoP_W"):
            mbjax.spatial_momentum_in_world_about_point(model, q, v, point)


def test_momentum_is_mass_times_velocity_of_the_centre(state):
    *_, sides = state
    assert relative_error(sides["momentum"][3:], sides["total mass"] * sides["v_WScm"]) < 1e-12
    assert relative_error(sides["rate of p_WScm"], sides["v_WScm"]) < 1e-12
    assert relative_error(sides["rate of v_WScm"], sides["a_WScm bias"]) < 1e-11


def test_n_plus_is_a_left_inverse_of_n(state):
    model, _, v, _, _, sides = state
    assert np.abs(sides["N+"] @ sides["N"] - np.eye(model.num_velocities)).max() < 1e-12
    assert relative_error(sides["v"], v) < 1e-12
