"""Plants with constraints in motion: closed forms, drift, energy, forces among the ports, batches, gradients."""

import dataclasses
import functools

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.constraints.mechanisms import (
    Mechanism,
    distance_rod_links,
    distance_rod_positions,
    four_bar,
    four_bar_links,
    four_bar_positions,
    one_dof_state,
    slider_crank_with_distance_rod,
)
from tests.gradients.checks import (
    OFFSETS,
    WEIGHTS,
    WHOLE_RUN,
    Gradients,
    central_differences,
    check_gradients,
    compare,
    compiled,
)
from tests.models import relative_error

DT = 1e-3


def as_plant(mechanism: Mechanism) -> mbjax.MultibodyModel:
    """The model with the mechanism's constraints as its own."""
    return dataclasses.replace(mechanism.model, constraints=mechanism.cset.constraints)


def state_of(mechanism: Mechanism) -> mbjax.State:
    return mbjax.State(mechanism.q, mechanism.v, jnp.zeros(()))


def with_stabilization_time(model: mbjax.MultibodyModel, time: float) -> mbjax.MultibodyModel:
    return eqx.tree_at(lambda m: m.constraints[0].stabilization_time, model, jnp.asarray(time, model.dtype))


@functools.cache
def closed_four_bar(time_step: float = 0.0) -> mbjax.MultibodyModel:
    return as_plant(four_bar(time_step=time_step))


derivatives = jax.jit(mbjax.time_derivatives)
outputs = jax.jit(mbjax.outputs)


@pytest.mark.parametrize("angle", [0.3, 0.8, 2.5])
def test_four_bar_accelerates_as_in_closed_form(angle: float) -> None:
    q, v, vdot = one_dof_state(four_bar_positions, four_bar_links, angle, 1.7, 0.0)
    _, ours = derivatives(closed_four_bar(), mbjax.State(q, v, jnp.zeros(())))
    assert relative_error(ours, vdot) < 1e-12


@pytest.mark.whole_run("the same in test_constrained_forward_dynamics.py, and the four-bar as a plant, above")
@pytest.mark.parametrize("angle", [0.3, 0.8, 2.5])
def test_slider_crank_with_a_distance_rod_accelerates_as_in_closed_form(angle: float) -> None:
    """G47: a massless rod in a continuous plant; Drake leaves it out."""
    model = as_plant(slider_crank_with_distance_rod())
    q, v, vdot = one_dof_state(distance_rod_positions, distance_rod_links, angle, 1.7, 0.0)
    _, ours = derivatives(model, mbjax.State(q, v, jnp.zeros(())))
    assert relative_error(ours, vdot) < 1e-10
    free = derivatives(dataclasses.replace(model, constraints=()), mbjax.State(q, v, jnp.zeros(())))[1]
    assert relative_error(free, vdot) > 0.1


@functools.partial(jax.jit, static_argnames=("project", "adjoint"))
def run(model: mbjax.MultibodyModel, state: mbjax.State, times: jax.Array, project: bool, adjoint=None):
    """Heun's method at 1 ms."""
    return mbjax.simulate(
        model,
        state,
        save_at=times,
        solver=diffrax.Heun(),
        stepsize_controller=diffrax.ConstantStepSize(),
        first_step=DT,
        project=project,
        adjoint=adjoint,
    )


@jax.jit
def errors_and_energy(model, trajectory):
    """Largest errors of the four-bar's rows, and its energy, over time."""
    terms = jax.vmap(functools.partial(mbjax.constraint_terms, model, mbjax.bound_constraints(model)))
    found = terms(trajectory.q, trajectory.v)
    energy = jax.vmap(lambda q, v: mbjax.kinetic_energy(model, q, v) + mbjax.potential_energy(model, q))
    return jnp.abs(found.error).max(), jnp.abs(found.velocity_error).max(), energy(trajectory.q, trajectory.v)


# Largest loop error in m after 10 s at 1 ms, by stabilization time: none, 0.2 s, and the step itself.
DRIFT = {np.inf: 1e-4, 0.2: 5e-5, DT: 5e-6}


OTHERS = pytest.mark.whole_run("0.2 s, projected")


@pytest.mark.parametrize(
    ("time", "project"),
    [
        *(pytest.param(time, False, marks=OTHERS) for time in DRIFT),
        *(pytest.param(time, True, marks=() if time == 0.2 else OTHERS) for time in DRIFT),
    ],
)
def test_ten_seconds_of_a_four_bar(time: float, project: bool) -> None:
    """G48: the loop stays closed, to the bound stated or, projected, to 1e-8 (rounding); energy within 1e-3."""
    model = with_stabilization_time(closed_four_bar(), time)
    start = state_of(four_bar())
    trajectory = run(model, start, jnp.linspace(0.0, 10.0, 21), project)
    error, rate, energy = (np.asarray(x) for x in errors_and_energy(model, trajectory))
    drift = np.abs(energy - energy[0]).max() / np.abs(energy).max()
    print(f"T = {time}, projected {project}: error {error:.1e} m, rate {rate:.1e} m/s, energy drift {drift:.1e}")
    assert error < (1e-8 if project else DRIFT[time])
    assert rate < (1e-8 if project else 0.1)
    assert drift < 1e-3
    assert np.ptp(np.asarray(trajectory.q[:, 0])) > 0.5


@pytest.mark.whole_run("the projected four-bar, above, and derivatives of motion under contacts")
def test_projection_has_the_gradient_of_its_differences() -> None:
    """Of (q, v) on the loop, by a state off it and by a leaf of the loop."""
    mechanism, model = four_bar(), closed_four_bar()

    def projected(x: jax.Array) -> jax.Array:
        changed = eqx.tree_at(lambda m: m.constraints[0].p_BS, model, model.constraints[0].p_BS + x[:3])
        cset = mbjax.bound_constraints(changed)
        state = mechanism.q + x[3:6] + 1e-3, mechanism.v + x[6:]
        return jnp.concatenate(mbjax.project_onto_constraints(changed, cset, *state))

    check_gradients(projected, jnp.zeros(9))


@pytest.mark.whole_run(
    "worlds of constraints that differ, in test_constraint_set.py, and what worlds share in test_worlds.py"
)
def test_projection_of_worlds_is_that_of_each() -> None:
    """Whatever is theirs alone: numbers of the loop, configurations, or velocities."""
    mechanism, model = four_bar(), closed_four_bar()
    rng = np.random.default_rng(3)
    arguments = (
        mechanism.cset.constraints[0].p_BS + 0.01 * rng.normal(size=(2, 3)),
        mechanism.q + 0.01 * rng.normal(size=(2, 3)),
        mechanism.v + 0.1 * rng.normal(size=(2, 3)),
    )

    def project(p_BS: jax.Array, q: jax.Array, v: jax.Array) -> jax.Array:
        cset = eqx.tree_at(lambda c: c.constraints[0].p_BS, mechanism.cset, p_BS)
        return jnp.concatenate(mbjax.project_onto_constraints(model, cset, q, v))

    one = jax.jit(project)
    for axes in ((0, None, None), (None, 0, None), (None, None, 0)):
        chosen = [x[0] if axis is None else x for x, axis in zip(arguments, axes, strict=True)]
        batch = jax.jit(jax.vmap(project, axes))(*chosen)
        for k in range(2):
            each = one(*(x if axis is None else x[k] for x, axis in zip(chosen, axes, strict=True)))
            np.testing.assert_allclose(batch[k], each, rtol=0, atol=1e-13)


@pytest.mark.whole_run("the projected four-bar, above, and derivatives of motion under contacts")
def test_projected_simulation_has_the_gradient_of_its_differences() -> None:
    """By the start and the loop's frame: reverse mode of the default adjoint, and forward mode with its own."""
    mechanism, model, times = four_bar(), closed_four_bar(), jnp.linspace(0.0, 0.05, 21)
    direction = jnp.asarray(np.random.default_rng(0).normal(size=6))

    def end(x: jax.Array, adjoint: diffrax.AbstractAdjoint | None = None) -> jax.Array:
        changed = eqx.tree_at(lambda m: m.constraints[0].p_BS, model, model.constraints[0].p_BS + x[:3])
        start = mbjax.State(mechanism.q + x[3:6], mechanism.v + x[6:], jnp.zeros(()))
        final = run(changed, start, times, True, adjoint).final_state
        return direction @ jnp.concatenate([final.q, final.v])

    x, h = jnp.asarray(0.01 * np.random.default_rng(1).normal(size=9)), 1e-4
    reverse = compiled(jax.grad(end))(x)
    forward = compiled(jax.jacfwd(functools.partial(end, adjoint=diffrax.ForwardMode())))(x)
    values = np.array([[end(x + h * offset * e) for e in np.eye(9)] for offset in OFFSETS])
    differences = WEIGHTS @ values / h
    compare(Gradients(*(np.asarray(g)[None] for g in (forward, reverse, differences)), list("123456789")))


@pytest.mark.whole_run("its pull in test_kinds.py, and derivatives of motion under contacts")
def test_stabilization_has_a_gradient() -> None:
    """G48: the acceleration at an inconsistent state, by the time constant and the velocities."""
    state, model = mbjax.State(four_bar().q + 0.01, four_bar().v + 0.1, jnp.zeros(())), closed_four_bar()

    def acceleration(x: jax.Array) -> jax.Array:
        moved = mbjax.State(state.q, state.v + x[1:], state.time)
        return derivatives(with_stabilization_time(model, x[0]), moved)[1]

    slopes = check_gradients(acceleration, jnp.array([0.2, 0.0, 0.0, 0.0])).reverse
    assert np.abs(slopes[:, 0]).max() > 1.0


def test_ports_report_the_constraint_forces() -> None:
    """λ by name, its spatial forces on the links, and reaction forces that carry each link with them.

    Trimmed: without the reactions, which are Drake's in tests/simulation/test_ports_against_drake.py.
    """
    model, mechanism = closed_four_bar(), four_bar()
    names, crank, rocker = list(model.joint_names), ["crank", "coupler"], ["rocker"]
    pivots = [model.frame_index(model.joint(joint).child_frame) for joint in ("rocker_pivot", "crank_pivot")]

    @jax.jit
    def by_functions(model, free, cset, q, v):
        tau = mbjax.gravity_generalized_forces(model, q)
        vdot, multipliers = mbjax.constrained_forward_dynamics(free, cset, q, v, tau)
        F_Bo_W = mbjax.constraint_spatial_forces(free, cset, q, multipliers)
        if not WHOLE_RUN:
            return vdot, multipliers, F_Bo_W, {}, []
        accelerations = {
            body: mbjax.body_center_of_mass_translational_acceleration_in_world(model, q, v, vdot, body)
            for body in rocker + crank
        }
        rotations = [mbjax.relative_rotation_matrix(model, q, "world", frame) for frame in pivots]
        return vdot, multipliers, F_Bo_W, accelerations, rotations

    sampled = outputs(model, state_of(mechanism))
    vdot, multipliers, F_Bo_W, accelerations, rotations = by_functions(
        model, mechanism.model, mechanism.cset, mechanism.q, mechanism.v
    )
    np.testing.assert_allclose(sampled.generalized_acceleration, vdot, rtol=1e-10)
    np.testing.assert_allclose(sampled.constraint_force(model, "loop"), multipliers, rtol=1e-10)
    np.testing.assert_allclose(sampled.constraint_spatial_forces, F_Bo_W, rtol=0, atol=1e-12)
    # The pins hold crank and rocker in the world: weights, constraint forces and momentum rate balance.
    total = sampled.constraint_spatial_forces[:, 3:].sum(axis=0)
    np.testing.assert_allclose(total, 0.0, atol=1e-12)
    if not WHOLE_RUN:
        return
    gravity, held = np.asarray(model.gravity_vector), np.asarray(sampled.constraint_spatial_forces)
    for joint, carried, R_WJ in zip(("rocker_pivot", "crank_pivot"), (rocker, crank), rotations, strict=True):
        f_W = np.asarray(R_WJ) @ np.asarray(sampled.reaction_forces)[names.index(joint), 3:]
        needed = np.zeros(3)
        for body in carried:
            mass = float(mbjax.mass(model, body))
            needed += mass * (np.asarray(accelerations[body]) - gravity) - held[model.body_index(body), 3:]
        np.testing.assert_allclose(f_W, needed, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "time_step",
    [
        pytest.param(0.0, marks=pytest.mark.whole_run("the ports have these forces, above")),
        pytest.param(DT, marks=pytest.mark.whole_run("the ports have these forces, above")),
    ],
    ids=["simulate", "rollout"],
)
def test_trajectories_hold_the_constraint_forces(time_step: float) -> None:
    """λ of each step is that of the ports at its start."""
    model, start, times = closed_four_bar(time_step), state_of(four_bar()), jnp.linspace(0.0, 10.0, 21)
    if time_step:
        trajectory = jax.jit(lambda model, state: mbjax.rollout(model, state, num_steps=20))(model, start)
    else:
        trajectory = run(model, start, times, True)
    assert trajectory.constraint_forces.shape == (20, 2)
    for k in (0, 7):
        now = mbjax.State(trajectory.q[k], trajectory.v[k], trajectory.time[k])
        expected = outputs(model, now).constraint_force(model, "loop")
        assert relative_error(trajectory.constraint_forces[k], expected) < 1e-9


def spring_pair(time_step: float) -> mbjax.MultibodyModel:
    """A mass on a line, held by a compliant distance: m x'' = -k (x - 1) - c x'."""
    plant = mbjax.MultibodyPlant(time_step)
    plant.set_gravity([0.0, 0.0, 0.0])
    plant.add_rigid_body("mass", mbjax.SpatialInertia.solid_cube_with_mass(2.0, 0.1))
    plant.add_joint(mbjax.PrismaticJoint("slide", "world", "mass", axis=[1.0, 0.0, 0.0]))
    plant.add_distance_constraint("world", np.zeros(3), "mass", np.zeros(3), 1.0, 50.0, 3.0, name="spring")
    return plant.finalize()


@pytest.mark.whole_run("steps of plants with constraints beside Drake's")
def test_a_compliant_distance_is_a_spring_in_the_continuous_and_the_discrete_plant() -> None:
    state = mbjax.State(jnp.array([1.3]), jnp.array([-0.4]), jnp.zeros(()))
    continuous, discrete = spring_pair(0.0), spring_pair(DT)
    force = -50.0 * 0.3 - 3.0 * -0.4
    sampled = outputs(continuous, state)
    np.testing.assert_allclose(sampled.generalized_acceleration, force / 2.0, rtol=1e-13)
    np.testing.assert_allclose(sampled.constraint_force(continuous, "spring"), force, rtol=1e-13)
    np.testing.assert_allclose(sampled.reaction_forces[0, 3], 0.0, atol=1e-12)
    after, step_outputs = jax.jit(mbjax.step)(discrete, state)
    v = (2.0 * -0.4 - DT * 50.0 * 0.3) / (2.0 + DT * 3.0 + DT * DT * 50.0)  # implicit in the spring and its damper
    np.testing.assert_allclose(after.v, v, rtol=1e-13)
    expected = -50.0 * (0.3 + DT * v) - 3.0 * v
    np.testing.assert_allclose(step_outputs.constraint_forces, expected, rtol=1e-12)


@pytest.mark.whole_run("a loop that is off in forward dynamics, and worlds of motion under contacts")
def test_switched_off_constraints_do_nothing_and_nan_stays_in_its_world() -> None:
    """A batch with the loop closed, open, and NaN: neighbours are bit-equal to a batch without it."""
    model = closed_four_bar(DT)
    states = jax.tree.map(lambda x: jnp.stack([x] * 3), state_of(four_bar()))
    poisoned = eqx.tree_at(lambda s: s.v, states, states.v.at[2].set(jnp.nan))
    active = jnp.array([1.0, 0.0, 1.0])
    models = jax.vmap(lambda a: mbjax.set_constraint_active_status(model, "loop", a))(active)
    step = jax.jit(jax.vmap(lambda m, s: mbjax.step(m, s)[0].v))
    clean, dirty = np.asarray(step(models, states)), np.asarray(step(models, poisoned))
    np.testing.assert_array_equal(clean[:2], dirty[:2])
    assert np.isnan(dirty[2]).all()
    free = dataclasses.replace(model, constraints=())
    np.testing.assert_allclose(clean[1], jax.jit(mbjax.step)(free, state_of(four_bar()))[0].v, rtol=1e-12)
    assert relative_error(clean[1], clean[0]) > 1e-3
    np.testing.assert_allclose(clean[0], clean[2], rtol=1e-12)


@pytest.mark.whole_run("derivatives of motion under contacts, and steps of plants with constraints beside Drake's")
def test_gradient_of_a_thousand_steps_of_a_closed_loop() -> None:
    """Of the discrete four-bar, by its state, its torques and leaves of the loop: finite, that of differences."""
    model, mechanism = closed_four_bar(DT), four_bar()

    def end(x: jax.Array) -> jax.Array:
        changed = eqx.tree_at(
            lambda m: (m.constraints[0].p_BS, m.parameters.body_mass),
            model,
            (model.constraints[0].p_BS + jnp.zeros(3).at[0].set(x[0]), model.parameters.body_mass * (1.0 + x[1])),
        )
        inputs = mbjax.Inputs(applied_generalized_force=jnp.zeros(3).at[0].set(x[2]))
        state = mbjax.State(mechanism.q, mechanism.v * (1.0 + x[3]), jnp.zeros(()))
        q = mbjax.rollout(changed, state, inputs, num_steps=1000, checkpoint="sqrt").q[-1]
        return q @ jnp.array([1.0, 0.5, -0.7])

    reverse = np.asarray(jax.jit(jax.grad(end))(jnp.zeros(4)))
    assert np.isfinite(reverse).all()
    direction = np.array([1.0, -0.7, 0.8, -0.6])
    along = jax.jit(lambda t: central_differences(lambda t: end(t * direction)[None], t, 1e-5))
    error = relative_error(reverse @ direction, np.squeeze(along(jnp.zeros(1))))
    print(f"1000 steps: gradient {np.abs(reverse).max():.1e}, relative error {error:.1e}")
    assert error < 1e-6


def test_locked_joints_stay_in_constrained_plants() -> None:
    """With the crank locked the four-bar stands still; near-rigid rows of a step give way by (0.1 / 2π)² of gravity."""
    for model, allowed in ((closed_four_bar(), 1e-10), (closed_four_bar(DT), 9.81 * (0.1 / (2.0 * np.pi)) ** 2)):
        locked = mbjax.lock_joint(model, "crank_pivot")
        state = mbjax.State(four_bar().q, jnp.zeros(3), jnp.zeros(()))
        np.testing.assert_allclose(outputs(locked, state).generalized_acceleration, 0.0, atol=allowed)


@pytest.mark.whole_run("accelerations in closed form, above, and a tree's residual in tests/simulation")
def test_implicit_residual_vanishes_at_the_constrained_derivatives() -> None:
    model, state = closed_four_bar(), state_of(four_bar())
    residual = jax.jit(mbjax.implicit_time_derivatives_residual)(model, state, *derivatives(model, state))
    np.testing.assert_allclose(residual, 0.0, atol=1e-11)
