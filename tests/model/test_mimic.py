"""What a model whose joints mimic others says of its coordinates, and what it refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.topology import velocity_parents
from tests.constraints.test_plant_constraints_against_drake import GRIPPER
from tests.model.mimics import BOX, make_model, maps, state

ELIMINATED = mbjax.load(GRIPPER, mimic="eliminate")


def test_coordinates_leave_followers_out() -> None:
    model = make_model("mimic")
    assert (model.num_positions, model.num_velocities) == (10, 9)
    assert not {"j3", "j4", "j5"} & {name.split("_")[-2] for name in model.position_names()}
    assert (model.joint("j3").num_positions, model.joint("j3").q) == (0, slice(1, 1))
    assert model.joint("j5").mimics == model.joint("j3").index
    assert model.joint("j1").mimics is None
    assert model.model_instance(1).q.tolist() == list(range(10))
    q, v = state()
    np.testing.assert_array_equal(mbjax.positions_from_array(model, 1, q), q)
    np.testing.assert_array_equal(mbjax.set_velocities_in_array(model, 1, v, 2.0 * v), 2.0 * v)


def test_own_coordinates_of_joints() -> None:
    E_q, c, E = maps()
    model, free, (q, v) = make_model("mimic"), make_model("free"), state()
    for name in ("j0", "j3", "j4", "j5", "b2"):
        joint = free.joint(name)
        np.testing.assert_allclose(mbjax.joint_positions(model, q, name), (E_q @ q + c)[joint.q], rtol=1e-15)
        np.testing.assert_allclose(mbjax.joint_velocities(model, v, name), (E @ v)[joint.v], rtol=1e-15)
    moved = mbjax.set_mimic(model, "j3", 2.0, 0.5)
    np.testing.assert_allclose(mbjax.joint_positions(moved, q, "j3"), 2.0 * q[model.joint("j1").q] + 0.5)
    np.testing.assert_allclose(mbjax.joint_positions(moved, q, "j5")[0], -0.6 * (2.0 * q[1] + 0.5) + 0.1)


def test_rates_have_the_reduced_matrices() -> None:
    E_q, _, E = maps()
    model, free, (q, _) = make_model("mimic"), make_model("free"), state()
    q_free = jnp.asarray(E_q @ q + maps()[1])
    N, N_free = (jax.jit(mbjax.velocity_to_qdot_matrix)(m, x) for m, x in ((model, q), (free, q_free)))
    np.testing.assert_allclose(E_q @ N, N_free @ E, atol=1e-14)
    N, N_free = (jax.jit(mbjax.qdot_to_velocity_matrix)(m, x) for m, x in ((model, q), (free, q_free)))
    np.testing.assert_allclose(E @ N, N_free @ E_q, atol=1e-14)


def test_limits_of_followers_tighten_their_leaders() -> None:
    """follow = 1.5 slide + 0.02."""
    model, slide = ELIMINATED, ELIMINATED.joint("slide").q_start
    assert np.isinf(model.position_upper_limits).all()
    model = mbjax.set_position_limits(model, "follow", -0.1, 0.08)
    np.testing.assert_allclose(model.position_lower_limits[slide], -0.08)
    np.testing.assert_allclose(model.position_upper_limits[slide], 0.04)
    assert [joint.name for joint in model.layout.limited_joints] == ["slide"]
    turned = mbjax.set_mimic(model, "follow", -2.0, 0.0)
    np.testing.assert_allclose(turned.position_lower_limits[slide], -0.04)
    np.testing.assert_allclose(turned.position_upper_limits[slide], 0.05)
    slope = jax.grad(lambda m: mbjax.set_mimic(model, "follow", m, 0.02).position_upper_limits[slide])
    np.testing.assert_allclose(slope(1.5), -0.06 / 1.5**2)
    assert slope(0.0) == 0.0
    state = jax.vmap(mbjax.random_state, (None, 0))(model, jax.random.split(jax.random.key(0), 50))
    assert np.all((state.q[:, slide] <= 0.04) & (state.q[:, slide] >= -0.08))


def test_the_report_and_the_table_tell_of_mimics() -> None:
    entry = next(e for e in ELIMINATED.report() if "mimic relation" in e.message)
    assert entry.message.endswith("is exact: the joint has no coordinate of its own")
    assert "prismatic, 1.5 slide + 0.02" in str(ELIMINATED)
    assert ELIMINATED.num_constraints == 0
    assert "0 constraints" not in str(ELIMINATED)


def test_locking_the_leader_locks_the_followers() -> None:
    locked = mbjax.lock_joint(ELIMINATED, "slide")
    assert mbjax.is_joint_locked(locked, "follow")
    assert not mbjax.is_joint_locked(ELIMINATED, "follow")
    state = mbjax.State(jnp.array([0.3, 0.01]), jnp.array([1.0, 0.5]), jnp.zeros(()))
    _, vdot = jax.jit(mbjax.time_derivatives)(locked, state, jnp.array([3.0]))
    assert vdot[1] == 0.0
    assert vdot[0] != 0.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: mbjax.lock_joint(ELIMINATED, "follow"),
        lambda: mbjax.unlock_joint(ELIMINATED, "follow"),
        lambda: mbjax.set_joint_default_positions(ELIMINATED, "follow", 0.1),
        lambda: mbjax.state_selector_matrix(ELIMINATED, ["follow"]),
        lambda: mbjax.set_joint_random_position_distribution(ELIMINATED, "follow", mbjax.UniformDistribution(0.0, 1.0)),
        lambda: mbjax.set_joint_random_velocity_distribution(ELIMINATED, "follow", mbjax.UniformDistribution(0.0, 1.0)),
    ],
)
def test_what_needs_a_coordinate_names_the_joint_that_has_it(call) -> None:
    with pytest.raises(mbjax.ModelError, match=r"'follow' mimics 'slide' and has no coordinate .* use 'slide'"):
        call()


def make_plant() -> mbjax.MultibodyPlant:
    """Three hinges and a body that floats."""
    plant = mbjax.MultibodyPlant()
    for i in range(4):
        plant.add_rigid_body(f"b{i}", BOX)
    for i in range(3):
        plant.add_joint(mbjax.RevoluteJoint(f"j{i}", "world", f"b{i}"))
    plant.add_joint(mbjax.UniversalJoint("cross", "b0", "b3"))
    return plant


def test_wrong_relations_are_refused() -> None:
    plant = make_plant()
    plant.add_mimic("j1", "j0", 2.0, 0.1)
    wrong = {
        "'cross' .* has 2 degrees of freedom": ("cross", "j0"),
        "mimics 'j0' already": ("j1", "j2"),
        "'j0' mimics 'j1' mimics 'j0': one of": ("j0", "j1"),
        "'j2' mimics 'j2': one of": ("j2", "j2"),
        "multiplier must be a finite number": ("j2", "j0", np.inf),
        "offset must be a finite number": ("j2", "j0", 1.0, np.nan),
        "there is no joint named 'j7'": ("j2", "j7"),
        "belongs to another plant": ("j2", make_plant().joint("j0")),
    }
    for message, arguments in wrong.items():
        with pytest.raises(mbjax.ModelError, match=message):
            plant.add_mimic(*arguments)
    for joint in ("j0", "j1"):
        with pytest.raises(mbjax.ModelError, match="joint 'j1' mimics 'j0'; remove joints before"):
            plant.remove_joint(joint)
    model = plant.finalize()
    with pytest.raises(mbjax.ModelError, match="joint 'j2' does not mimic another"):
        mbjax.set_mimic(model, "j2", 1.0, 0.0)


def hinges_that_mimic(multiplier: float, offset: float) -> mbjax.MultibodyPlant:
    """j0 within 0 and 1, and j1, j2 that follow it one through the other, j2 within 2 and 3."""
    plant = mbjax.MultibodyPlant()
    for i, limits in enumerate(((0.0, 1.0), None, (2.0, 3.0))):
        plant.add_rigid_body(f"b{i}", BOX)
        plant.add_joint(mbjax.RevoluteJoint(f"j{i}", "world", f"b{i}", axis=[0, 1, 0], position_limits=limits))
    plant.add_mimic("j2", "j1", multiplier, offset)
    plant.add_mimic("j1", "j0", -1.0)
    return plant


def test_limits_that_contradict_each_other_are_refused() -> None:
    model = hinges_that_mimic(-2.5, 0.0).finalize()
    np.testing.assert_allclose((model.position_lower_limits, model.position_upper_limits), [[0.8], [1.0]])
    hinges_that_mimic(0.0, 2.5).finalize()
    for numbers in ((2.0, 0.0), (-1.0, 0.0), (0.0, 1.0)):
        with pytest.raises(mbjax.ModelError, match=r"'j2' follows 'j0' as .* leave 'j0' no position within \[0, 1\]"):
            hinges_that_mimic(*numbers).finalize()


def test_defaults_follow_the_leader() -> None:
    plant = make_plant()
    plant.add_mimic("j1", "j0", 2.0, 0.1)
    plant.set_joint_default_positions("j0", 0.3)
    plant.set_joint_default_positions("j1", 0.5)
    with pytest.raises(mbjax.ModelError, match=r"'j1' mimics 'j0', whose default position puts it at 0\.7, but"):
        plant.finalize()
    plant.set_joint_default_positions("j1", 0.7)
    name = plant.add_ball_constraint("b1", [0.1, 0.2, 0.0], "b2")  # its second point is where the first is by default
    model = plant.finalize()
    q = mbjax.default_positions(model)
    np.testing.assert_allclose(mbjax.joint_positions(model, q, "j1"), 0.7)
    error = jax.jit(mbjax.constraints_position_error)(model, mbjax.bound_constraints(model), q)
    np.testing.assert_allclose(error, np.zeros(3), atol=1e-15)
    assert model.constraint_names == (name,)


def test_a_lock_constraint_of_a_follower_is_refused() -> None:
    with pytest.raises(mbjax.ModelError, match="joint 'follow' mimics another; lock the joint it follows"):
        mbjax.ConstraintSet().add_lock_constraint("follow").bind(ELIMINATED)


def test_the_mass_matrix_is_factored_along_its_own_tree() -> None:
    """Coupled velocities are on one path, and nodes numbered depth first, where a finger's joint follows another's."""
    plant = mbjax.MultibodyPlant()
    ends = {"j0": "world", "j1": "world", "j2": "world", "j3": "b0", "j4": "world", "j5": "b4"}
    for i, (joint, parent) in enumerate(ends.items()):
        plant.add_rigid_body(f"b{i}", BOX)
        plant.add_joint(mbjax.RevoluteJoint(joint, parent, f"b{i}", axis=[0.1 * i, 1.0, 0.2]))
    plant.add_mimic("j3", "j2", -0.5)
    model = plant.finalize()
    assert model.velocity_names(add_model_instance_prefix=False) == ("j0_w", "j1_w", "j2_w", "j4_w", "j5_w")
    assert velocity_parents(model.topology) == (0, 1, 2, 0, 4)  # j2 couples with j0, and j1 lies between
    q, tau = jnp.linspace(0.1, 0.5, 5), jnp.linspace(1.0, -1.0, 5)
    vdot = jax.jit(mbjax.forward_dynamics)(model, q, 0.0 * q, tau)
    np.testing.assert_allclose(jax.jit(mbjax.mass_matrix)(model, q) @ vdot, tau, atol=1e-13)


def test_mujoco_and_keyframes_have_the_coordinates_of_followers_too() -> None:
    """In MuJoCo a joint that mimics has a place in qpos; coming back it is left out."""
    model, free = make_model("mimic"), make_model("free")
    state = mbjax.random_state(model, jax.random.key(0))
    every_q = jnp.concatenate([mbjax.joint_positions(model, state.q, name) for name in free.joint_names])
    qpos, qvel = mbjax.mujoco_state(model, state)
    assert (qpos.size, qvel.size) == (free.num_positions, free.num_velocities)
    np.testing.assert_allclose(np.sort(qpos), np.sort(every_q), atol=1e-14)
    back = mbjax.state_from_mujoco(model, qpos, qvel)
    np.testing.assert_allclose(back.q, state.q, atol=1e-14)
    np.testing.assert_allclose(back.v, state.v, atol=1e-14)
    plant = mbjax.MultibodyPlant()
    for name in ("a", "b"):
        plant.add_rigid_body(name, mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.2))
        plant.add_joint(mbjax.RevoluteJoint(name, "world", name))
    plant.add_mimic("b", "a", 2.0)
    plant.add_keyframe("there", {"a": 0.3, "b": 0.6}, {"a": 1.0}, time=2.0)
    there = mbjax.keyframe_state(plant.finalize(), "there")
    assert (there.q.tolist(), there.v.tolist(), float(there.time)) == ([0.3], [1.0], 2.0)
