"""Every input and output port against Drake's: continuous, discrete live and sampled, with locked joints too."""

import functools

import jax
import numpy as np
import pytest

import mbjax
from tests.simulation.plants import DT, Scene, compare_ports, drake_step, our_ports, random_case, random_scene

SEEDS = range(4)
TOLERANCE = 1e-10


@functools.cache
def compiled() -> tuple:
    """One program for live ports, and one for live and sampled ones with the next state."""

    def both(model: mbjax.MultibodyModel, state: mbjax.State, inputs: mbjax.Inputs) -> tuple:
        return mbjax.outputs(model, state, inputs), *mbjax.step(model, state, inputs)

    return jax.jit(mbjax.outputs), jax.jit(both)


def num_saturated(scene: Scene, outputs: mbjax.Outputs) -> int:
    return int((np.abs(outputs.net_actuation) == scene.model.parameters.effort_limit).sum())


@pytest.mark.whole_run("ports of the discrete plant, live ones too, and Drake's simulator in test_simulate.py")
def test_continuous_plant() -> None:
    """With the controller of "right" off, as it has no desired state."""
    scene = random_scene(0, 0.0)
    live, _ = compiled()
    saturated = 0
    for seed in SEEDS:
        state, inputs = random_case(scene, seed)
        context = scene.twin.context(state.q, state.v)
        scene.fix_inputs(context, inputs)
        outputs = live(scene.model, state, inputs)
        saturated += num_saturated(scene, outputs)
        compare_ports(our_ports(scene.model, outputs), scene.ports(context), TOLERANCE)
    assert saturated


LOCKED = {
    "none": [],
    "joints of one degree of freedom, driven": ["left_joint1", "right_joint0"],
    "joints of several, a floating one among them": ["right_joint1", "right_joint2", "left_joint6"],
    "a free body, and everything": ["right_body5", "left_joint1", "left_joint2", "left_joint4", "left_joint5"],
}


@pytest.mark.parametrize("case", LOCKED)
def test_discrete_plant(case: str) -> None:
    """Live ports of Drake's plant without sampling, and ports after a step of the one with it."""
    scene, sampled_scene = random_scene(0, DT), random_scene(0, DT, use_sampled_output_ports=True)
    _, both = compiled()
    model = functools.reduce(mbjax.lock_joint, LOCKED[case], scene.model)
    saturated = 0
    for seed in SEEDS:
        state, inputs = random_case(scene, seed)
        contexts = []
        for each in (scene, sampled_scene):
            context = each.twin.context(state.q, state.v)
            each.fix_inputs(context, inputs)
            for joint in LOCKED[case]:
                each.twin.plant.GetJointByName(joint).Lock(context)
            contexts.append(context)
        live, after, sampled = both(model, state, inputs)
        saturated += num_saturated(scene, live)
        compare_ports(our_ports(model, live), scene.ports(contexts[0]), TOLERANCE)

        drake_step(sampled_scene, contexts[1])
        np.testing.assert_array_equal(after.q, sampled.state.q)
        # Drake moves orientations along dt N(q) v, we along the exponential map: the same to first order in dt. From
        # our positions on, its kinematic ports must be ours; setting them leaves its sampled ports as they are.
        plant, in_drake = sampled_scene.twin.plant, np.asarray(after.q)[sampled_scene.twin.to_drake_q]
        np.testing.assert_allclose(in_drake, plant.GetPositions(contexts[1]), atol=5.0 * DT**2)
        plant.SetPositions(contexts[1], in_drake)
        compare_ports(our_ports(model, sampled), sampled_scene.ports(contexts[1]), TOLERANCE)
    assert saturated
    assert both._cache_size() == 1, "locking compiled another program"
