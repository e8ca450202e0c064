"""`describe` of deformable bodies: where each is and how it moves, by name, also in batches and while traced."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.inspection.diagnose import bad_coordinates
from mbjax.simulation.rollout import Trajectory
from tests.deformable_cube import FOAM, SIDE, cube_mesh, cube_plant, stretched_states


@pytest.fixture(scope="module")
def model() -> mbjax.MultibodyModel:
    """Two cubes; the second is denser in one of its elements."""
    plant = cube_plant()
    density = np.where(np.arange(6) == 2, 900.0, 300.0)
    plant.add_deformable_body("heavy", cube_mesh(), dataclasses.replace(FOAM, mass_density=density))
    return plant.finalize()


@pytest.fixture(scope="module")
def states(model) -> mbjax.State:
    return stretched_states(model)


def test_a_node_that_is_not_finite_is_found_with_its_body(model, states) -> None:
    state = jax.tree.map(lambda x: jnp.asarray(x[0]), states)
    nodes = mbjax.NodeState(state.nodes.position.at[9, 1].set(jnp.nan), state.nodes.velocity)
    (found,) = bad_coordinates(model, dataclasses.replace(state, nodes=nodes))
    assert found.startswith("state.nodes.position of node 9, of deformable body 'heavy', is [")


def words_of(text: object, name: str) -> list[str]:
    """The words of the line that starts with this name."""
    (line,) = [line for line in str(text).splitlines() if line.startswith(f"{name} ")]
    return line.split()[1:]


def test_a_state_has_a_line_for_each_body(model, states) -> None:
    moved = jax.tree.map(lambda x: jnp.asarray(x[2]), states)
    text = mbjax.describe(model, moved)
    displacement = f"{np.hypot(0.1 * SIDE, 1.0):.4g}"
    assert words_of(text, "foam") == ["0.055", "0.05", "1.05", displacement, "2"]
    centers = mbjax.deformable_momentum(model, moved).center_of_mass
    assert words_of(text, "heavy") == [*(f"{x:.4g}" for x in centers[1]), displacement, "2"]
    assert len(str(text).splitlines()) < 12, "bodies, no nodes"


def test_worlds_and_times_show_the_least_and_the_most(model, states) -> None:
    assert words_of(mbjax.describe(model, states), "foam")[:3] == ["0.05", "…", "0.055"]
    nothing = jnp.zeros((2, 0))
    trajectory = Trajectory(states.q, states.v, states.time, nothing, nothing, nothing, states.nodes)
    text = mbjax.describe(model, trajectory)
    displacement = f"{np.hypot(0.1 * SIDE, 1.0):.4g}"
    assert words_of(text, "foam") == ["0.05", "0.05", "0.05", "0.055", "0.05", "1.05", displacement, "2"]
    worlds = jax.tree.map(lambda x: jnp.stack([x, x]), trajectory)
    assert words_of(mbjax.describe(model, worlds), "foam")[-1] == "2"
    models = jax.tree.map(lambda x: jnp.stack([x, x, x]), model)
    assert words_of(mbjax.describe(models, states), "foam") == words_of(mbjax.describe(model, states), "foam")


def test_traced_absent_and_foreign_nodes(model, states) -> None:
    moved = jax.tree.map(lambda x: jnp.asarray(x[2]), states)
    said = []
    jax.eval_shape(lambda s: said.append(str(mbjax.describe(model, s))), moved)
    assert words_of(said[0], "foam") == ["traced"] * 3
    text = str(mbjax.describe(model, mbjax.State(moved.q, moved.v)))
    assert "deformable bodies are at rest" in text
    short = dataclasses.replace(moved, nodes=jax.tree.map(lambda x: x[:7], moved.nodes))
    with pytest.raises(mbjax.ModelError, match=r"nodes.position has shape \(7, 3\), the model needs \(16, 3\)"):
        mbjax.describe(model, short)
