"""`describe`: numbers by name, with units; of one world, of many, and while they are traced."""

import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.gradients.checks import compiled


@functools.cache
def sledge() -> mbjax.MultibodyModel:
    """A free ball over the ground, an arm with a motor, and a coupled slider: all that a table may hold."""
    plant = mbjax.MultibodyPlant(time_step=0.01)
    cube = mbjax.SpatialInertia.solid_cube_with_mass(2.0, 0.2)
    for name in ("ball", "arm", "slider"):
        plant.add_rigid_body(name, cube)
    plant.add_joint(mbjax.RevoluteJoint("elbow", "world", "arm", axis=[0, 1, 0]))
    plant.add_joint(mbjax.PrismaticJoint("rail", "world", "slider", axis=[1, 0, 0]))
    plant.add_joint_actuator("motor", "elbow")
    plant.add_coupler_constraint("elbow", "rail", 2.0)
    plant.register_collision_geometry("ball", [0, 0, 0], mbjax.Sphere(0.1), "round", 0.5)
    plant.register_collision_geometry("world", [0, 0, 0], mbjax.HalfSpace(), "ground", 0.5)
    return plant.finalize()


def start(model: mbjax.MultibodyModel, height: jax.typing.ArrayLike = 0.099) -> mbjax.State:
    state = mbjax.default_state(model)
    q = state.q.at[model.position_names(add_model_instance_prefix=False).index("ball_z")].set(height)
    return mbjax.State(q, state.v.at[model.velocity_names(add_model_instance_prefix=False).index("ball_vx")].set(0.3))


run = compiled(mbjax.step)


def line_of(text: str, name: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
    return " ".join(line.split())


def test_states_by_name_with_units() -> None:
    model = sledge()
    text = str(mbjax.describe(model, start(model)))
    assert text.splitlines()[0] == "time 0 s"
    assert line_of(text, "ball_qw") == "ball_qw 1 ball_wx 0 rad/s"
    assert line_of(text, "ball_x") == "ball_x 0 m ball_vy 0 m/s"
    assert line_of(text, "ball_z") == "ball_z 0.099 m"
    assert line_of(text, "elbow_q") == "elbow_q 0 rad elbow_w 0 rad/s"
    assert line_of(text, "rail_x") == "rail_x 0 m rail_v 0 m/s"
    assert repr(mbjax.describe(model, start(model))) == text


@pytest.mark.whole_run("states by name, above")
def test_outputs_and_contacts_by_name() -> None:
    """The numbers are those of the records; contacts that have no force are not listed."""
    model = sledge()
    _, outputs = run(model, start(model), jnp.array([1.5]))
    text, results = str(mbjax.describe(model, outputs)), outputs.contact_results
    assert results is not None
    assert line_of(text, "motor") == "motor 1.5 N m"
    assert f"{outputs.constraint_forces[0]:.4g}" in line_of(text, "coupler_0" if "coupler_0" in text else "coupler")
    assert f"{outputs.reaction_forces[model.joint_names.index('rail'), 5]:.4g}" in line_of(text, "rail")
    contacts = str(mbjax.describe(model, results))
    assert contacts in text
    assert contacts.splitlines()[0] == "1 of 1 places for contacts are taken"
    (line,) = [line for line in contacts.splitlines() if "ball/round" in line]
    assert "world/ground" in line
    size = np.linalg.norm(results.force[0])
    for number in (*results.force[0], size, results.depth[0], results.slip_speed[0], *results.point[0]):
        assert f"{number:.4g}" in line.split()
    _, apart = run(model, start(model, 1.0), jnp.array([1.5]))
    assert apart.contact_results is not None
    assert str(mbjax.describe(model, apart.contact_results)) == "0 of 1 places for contacts are taken"
    for record in (outputs, results):
        assert len(str(record).splitlines()) < 30
        assert len(repr(record)) < 1000


@pytest.mark.whole_run("states by name, above; worlds, times and tracers in test_deformable_description.py")
def test_trajectories_worlds_and_traced_numbers() -> None:
    model = sledge()
    trajectory = compiled(lambda model, state: mbjax.rollout(model, state, None, 3))(model, start(model))
    text = str(mbjax.describe(model, trajectory))
    assert text.splitlines()[0] == "3 steps, time 0 … 0.03 s"
    end = trajectory.q[-1, model.joint("ball").q][-1]
    assert line_of(text, "ball_z").startswith(f"ball_z 0.099 {end:.4g} ")
    assert len(str(trajectory).splitlines()) == 7
    each = [start(model, height) for height in (0.099, 0.5, 1.0)]
    states = jax.tree.map(lambda *x: jnp.stack(x), *each)
    outputs = jax.tree.map(lambda *x: jnp.stack(x), *(run(model, state, jnp.array([1.5]))[1] for state in each))
    text = str(mbjax.describe(model, outputs))
    assert text.splitlines()[0].endswith("3 worlds, least … most")
    assert "world/ground – ball/round in 1 " in text or "ball/round – world/ground in 1 " in text
    assert "0.099 … 1" in str(mbjax.describe(model, states))
    texts = []

    def traced(state: mbjax.State) -> None:
        _, outputs = mbjax.step(model, state)
        assert outputs.contact_results is not None
        moving = mbjax.rollout(model, state, None, 2)
        texts.extend([str(mbjax.describe(model, x)) for x in (state, outputs, outputs.contact_results, moving)])
        texts.extend([f"{x}{x!r}" for x in (state, outputs, outputs.contact_results, moving)])

    jax.eval_shape(traced, start(model))
    assert all("traced" in text for text in texts)


def test_what_cannot_be_described() -> None:
    model = sledge()
    with pytest.raises(mbjax.ModelError, match=r"takes a State, Outputs, ContactResults or Trajectory .* got ndarray"):
        mbjax.describe(model, np.zeros(3))  # pyright: ignore[reportArgumentType]
    plan = types.SimpleNamespace(states=mbjax.default_state(model))
    with pytest.raises(mbjax.ModelError, match=r"Describe its states: describe\(model, x\.states\)"):
        mbjax.describe(model, plan)  # pyright: ignore[reportArgumentType]
    with pytest.raises(mbjax.ModelError, match=r"state\.q has 2 number\(s\), the model needs 9: is it of this model"):
        mbjax.describe(model, mbjax.State(jnp.zeros(2), jnp.zeros(8)))
