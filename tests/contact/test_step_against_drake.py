"""Discrete steps with contact beside Drake's: states and contact forces.

Drake stops where the momentum residual, in a norm scaled by diag(M), is 1e-6 of the momentum, and friction makes an
error there last. So two things are compared: that Drake's every step solves our equation to that tolerance, and how far
the two are apart after up to 500 steps of their own.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.numpy.linalg import norm
from pydrake.systems.analysis import Simulator

import mbjax
from mbjax.contact.search.convex_problem import calc_impulses, calc_problem_residual, calc_row_forces, calc_row_motion
from mbjax.simulation import normalize_quaternions
from mbjax.simulation.discrete_acceleration import calc_step_problem
from mbjax.simulation.ports import as_inputs
from mbjax.simulation.state import as_state
from tests.contact.scenes import APPROXIMATIONS, DT, SCENES, built

STEPS = 500
COMPARED = (1, 10, 100, STEPS)
DRAKES_TOLERANCE = 1.01e-6
TARGETS = {"arm": [0.9, -0.8, 0.0, 0.0]}


@jax.jit
def rollout_turning_as_drake(model, state, inputs):
    """States after each step, with dt N v added to quaternions, which Drake lets grow, and forces of the contacts."""

    def advance(state, _):
        after, outputs = mbjax.step(model, state, inputs)
        q = state.q + DT * mbjax.velocity_to_qdot(model, state.q, after.v)
        contacts = outputs.contact_results
        return mbjax.State(q, after.v, after.time), (q, after.v, contacts.force, contacts.point, contacts.converged)

    return jax.lax.scan(advance, state, length=STEPS)[1]


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, 0, 0, 0, None))
def momentum_residual(model, q, v, v_after, inputs):
    """How well v_after solves a step's equation, in Drake's measure: 1e-6 is where it stops.

    |D (A v - p)| / max(|D A v|, |D j|) with D = diag(A)^-½, A = M + dt C, and j the impulses of all rows.
    """
    state = as_state(model, mbjax.State(q, v, jnp.zeros(())))
    problem, _, _ = calc_step_problem(model, state, as_inputs(model, inputs))
    vdot = (v_after - v) / DT
    A = mbjax.mass_matrix(model, q) + DT * jnp.diag(model.parameters.joint_damping)
    D = jnp.diag(A) ** -0.5
    residual = DT * D * calc_problem_residual(model.topology, problem, vdot)
    forces = calc_row_forces(problem, calc_impulses(problem, calc_row_motion(problem, vdot)))
    size = jnp.maximum(norm(D * (A @ v_after)), norm(DT * D * forces))
    return norm(residual) / jnp.maximum(size, 1e-12)


WHOLE_RUN = pytest.mark.whole_run("a ball that rolls, and the quadruped that trots with sap in test_quadruped.py")
TRIMMED = (("rolling", "similar"), ("rolling", "lagged"))
CASES = [
    pytest.param(name, approximation, marks=() if (name, approximation) in TRIMMED else WHOLE_RUN)
    for name in SCENES
    for approximation in APPROXIMATIONS
]


@pytest.mark.parametrize(("name", "approximation"), CASES)
def test_steps_equal_drakes(name: str, approximation: str) -> None:
    scene, twin, q, v = built(name, approximation)
    simulator = Simulator(scene.diagram)
    context = scene.theirs.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    scene.theirs.SetPositions(context, q[twin.to_drake_q])
    scene.theirs.SetVelocities(context, v[twin.to_drake_v])
    inputs = mbjax.Inputs(desired_state=jnp.asarray(TARGETS[name])) if name in TARGETS else mbjax.Inputs()
    if name in TARGETS:
        port = scene.theirs.get_desired_state_input_port(scene.theirs.GetModelInstanceByName("DefaultModelInstance"))
        port.FixValue(context, TARGETS[name])
    state = mbjax.State(jnp.asarray(q), jnp.asarray(v), jnp.zeros(()))
    positions, velocities, forces, points, converged = rollout_turning_as_drake(twin.model, state, inputs)
    assert converged.all()
    drake_q, drake_v = np.zeros((STEPS + 1, q.size)), np.zeros((STEPS + 1, v.size))
    touched, drake_q[0], drake_v[0] = False, q, v
    for k in range(1, STEPS + 1):
        simulator.AdvanceTo(k * DT)
        drake_q[k] = scene.theirs.GetPositions(context)[np.argsort(twin.to_drake_q)]
        drake_v[k] = scene.theirs.GetVelocities(context)[np.argsort(twin.to_drake_v)]
        if k not in COMPARED:
            continue
        ours, theirs = (normalize_quaternions(twin.model, jnp.asarray(x)) for x in (positions[k - 1], drake_q[k]))
        error = np.max([np.abs(ours - theirs).max(), np.abs(velocities[k - 1] - drake_v[k]).max()])
        force_error, count = compare_forces(scene, context, forces[k - 1], points[k - 1])
        touched |= count > 0
        print(f"{name}, {approximation}: {k} steps, state {error:.1e}, {count} contacts, forces {force_error:.1e}")
        assert error < 1e-5
        assert force_error < 1e-5
    assert touched or name == "colliding"
    theirs = momentum_residual(twin.model, drake_q[:-1], drake_v[:-1], drake_v[1:], inputs)
    before_q, before_v = np.concatenate([q[None], positions[:-1]]), np.concatenate([v[None], velocities[:-1]])
    ours = momentum_residual(twin.model, before_q, before_v, velocities, inputs)
    print(f"{name}, {approximation}: residual of Drake's steps {np.max(theirs):.1e}, of ours {np.max(ours):.1e}")
    assert np.max(theirs) < DRAKES_TOLERANCE
    assert np.max(ours) < 1e-8


def compare_forces(scene, context, forces, points) -> tuple[float, int]:
    """Largest difference of the forces at the points Drake reports, relative to the largest force; and their number."""
    results = scene.theirs.get_contact_results_output_port().Eval(context)
    worst, ours = 0.0, np.flatnonzero(np.abs(forces).max(axis=1))
    infos = [results.point_pair_contact_info(i) for i in range(results.num_point_pair_contacts())]
    infos = [info for info in infos if np.abs(info.contact_force()).max() > 0.0]
    assert len(infos) == len(ours)
    for info in infos:
        nearest = ours[np.argmin(np.linalg.norm(points[ours] - info.contact_point(), axis=1))]
        difference = min(np.abs(forces[nearest] - sign * info.contact_force()).max() for sign in (1.0, -1.0))
        worst = np.maximum(worst, difference / (1.0 + np.abs(info.contact_force()).max()))
    return float(worst), len(infos)
