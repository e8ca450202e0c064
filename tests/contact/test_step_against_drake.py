"""Discrete steps with contact beside Drake's, state and contact forces: 10 steps to 1e-8, 500 to 1e-6."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydrake.systems.analysis import Simulator

import mbjax
from mbjax.simulation import normalize_quaternions
from tests.contact.scenes import APPROXIMATIONS, DT, SCENES, built

STEPS = 500
COMPARED = (1, 10, 100, STEPS)
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


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
@pytest.mark.parametrize("name", SCENES)
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
    touched = False
    for k in COMPARED:
        simulator.AdvanceTo(k * DT)
        drake_q = scene.theirs.GetPositions(context)[np.argsort(twin.to_drake_q)]
        drake_v = scene.theirs.GetVelocities(context)
        ours, theirs = (normalize_quaternions(twin.model, jnp.asarray(x)) for x in (positions[k - 1], drake_q))
        error = np.max([np.abs(ours - theirs).max(), np.abs(velocities[k - 1][twin.to_drake_v] - drake_v).max()])
        force_error, count = compare_forces(scene, context, forces[k - 1], points[k - 1])
        touched |= count > 0
        print(f"{name}, {approximation}: {k} steps, state {error:.1e}, {count} contacts, forces {force_error:.1e}")
        assert error < (1e-6 if k > 10 else 1e-8)
        assert force_error < (1e-4 if k > 10 else 1e-6)
    assert touched or name == "colliding"


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
