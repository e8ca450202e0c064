"""Deformable bodies in the live view: their surfaces move with the nodes that are shown."""

import time

import jax
import numpy as np
import pytest

import mbjax
from tests.deformable_cube import FOAM, SIDE, cube_mesh, cube_plant, stretched_states


@pytest.fixture(scope="module")
def viewer():
    with mbjax.Viewer(cube_plant().finalize(), port=0) as viewer:
        yield viewer


def box_of(viewer, world=0):
    """Corners of the box around the surface that a world shows."""
    vertices = np.asarray(viewer.drawing.scene.deformables.worlds[world][0].vertices)
    return [*vertices.min(axis=0), *vertices.max(axis=0)]


def test_a_state_and_trajectories_are_shown(viewer) -> None:
    rest = [0.0, 0.0, 0.0, SIDE, SIDE, SIDE]
    np.testing.assert_allclose(box_of(viewer), rest, atol=1e-6)
    assert viewer.drawing.size > 0.3, "the cube and the ball beside it"
    states = stretched_states(viewer.model)
    viewer.state = jax.tree.map(lambda x: jax.numpy.asarray(x[1]), states)
    np.testing.assert_allclose(box_of(viewer), [0.0, 0.0, 0.0, 1.1 * SIDE, SIDE, SIDE], atol=1e-6)
    viewer.set_positions([0.2])
    np.testing.assert_allclose(box_of(viewer)[3], 1.1 * SIDE, atol=1e-6)  # nodes stay where they are
    viewer.play({"moved": states, "at rest": mbjax.default_state(viewer.model)})
    viewer.seek(0.2)
    np.testing.assert_allclose(box_of(viewer)[5], 1.0 + SIDE, atol=1e-6)
    np.testing.assert_allclose(box_of(viewer, 1), rest, atol=1e-6)
    viewer.state = mbjax.State(viewer.state.q, viewer.state.v)  # without nodes: at rest
    np.testing.assert_allclose(box_of(viewer), rest, atol=1e-6)
    assert len(viewer.drawing.scene.deformables.worlds) == 1


def test_a_state_that_is_not_finite_is_said(viewer) -> None:
    state = mbjax.default_state(viewer.model)
    nodes = mbjax.NodeState(state.nodes.position.at[3, 0].set(np.nan), state.nodes.velocity)
    viewer.state = mbjax.State(state.q, state.v, state.time, nodes)
    assert "not finite" in viewer.panel.note.content
    viewer.reset()
    np.testing.assert_allclose(box_of(viewer)[3:], SIDE, atol=1e-6)


@pytest.mark.whole_run("surfaces that move, above, and simulations in test_live_view.py")
def test_a_model_of_deformable_bodies_alone_sags() -> None:
    plant = mbjax.MultibodyPlant(0.01)
    plant.add_deformable_body("foam", cube_mesh(), FOAM)
    plant.set_wall_boundary_condition("foam", [1e-6, 0, 0], [1, 0, 0])
    with mbjax.Viewer(plant.finalize(), port=0) as viewer:
        time.sleep(0.1)
        assert viewer._thread.is_alive()
        viewer.simulate()
        viewer.advance(0.05)
        viewer.pause()
        assert box_of(viewer)[2] < -1e-4
        assert np.isfinite(box_of(viewer)).all()
