"""Constraints of a plant while it is built and of the model: names, counts, records, switches, refusals."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.constraints.mechanisms import PLANAR


def chain() -> mbjax.MultibodyPlant:
    """Three links A, B, C on hinges a, b, c; a floating body D."""
    plant = mbjax.MultibodyPlant()
    for name in "ABCD":
        plant.add_rigid_body(name, mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.2))
    for name, parent, child, start in (("a", "world", "A", 0.3), ("b", "A", "B", -0.5), ("c", "B", "C", 0.2)):
        joint = mbjax.RevoluteJoint(name, parent, child, X_PF=[0.5, 0.0, 0.1], axis=[0.0, 1.0, 0.3])
        plant.add_joint(joint).set_default_positions(start)
    return plant


def with_one_of_each() -> mbjax.MultibodyPlant:
    plant = chain()
    assert plant.add_coupler_constraint("a", "c", 2.0, 0.1) == "coupler_0"
    assert plant.add_distance_constraint("B", [0.1, 0, 0], "D", np.zeros(3), 0.7, name="rod") == "rod"
    assert plant.add_distance_constraint("A", np.zeros(3), "D", np.zeros(3), 0.7, 100.0, 2.0) == "distance_0"
    assert plant.add_ball_constraint("C", [0.4, 0.0, 0.0], "D") == "ball_0"
    assert plant.add_weld_constraint("B", np.eye(4), "D", np.eye(4)) == "weld_0"
    loop = mbjax.LoopConstraint("world", "C", [1.0, 0.0, 0.0], None, PLANAR)
    assert plant.add_constraint(loop) == "loop_0"
    return plant


def test_counts_names_and_records_of_plant_and_model() -> None:
    plant = with_one_of_each()
    model = plant.finalize()
    for of in (plant, model):
        assert of.constraint_names == ("coupler_0", "rod", "distance_0", "ball_0", "weld_0", "loop_0")
        assert (of.num_constraints, of.num_coupler_constraints, of.num_distance_constraints) == (6, 1, 2)
        assert (of.num_ball_constraints, of.num_weld_constraints) == (1, 1)
        assert list(of.distance_constraint_specs()) == ["rod", "distance_0"]
        assert of.coupler_constraint_specs()["coupler_0"].gear_ratio == 2.0
        assert of.weld_constraint_specs()["weld_0"] is of.constraint("weld_0")
        assert of.constraint(1) is of.constraint("rod")
    record = model.constraint("rod")
    assert isinstance(record, mbjax.DistanceConstraint)
    assert (record.body_A, record.body_B) == (model.body_index("B"), model.body_index("D"))
    leaves = jax.tree.leaves(model.constraints)
    assert all(leaf.dtype == model.dtype for leaf in leaves)
    assert "6 constraints" in str(model)


def test_a_ball_without_second_point_fits_the_default_configuration() -> None:
    """Also with offset frames, on a floating body, and if the default configuration changes afterwards."""
    plant = with_one_of_each()
    X_WD = mbjax.RigidTransform.from_rpy_xyz(jnp.array([0.3, -0.2, 0.5]), jnp.array([0.7, 0.1, -0.4]))
    plant.set_default_free_body_pose("D", X_WD)
    model = plant.finalize()
    q = mbjax.default_positions(model)
    p_CP = jnp.array([0.4, 0.0, 0.0])
    p_DQ = model.ball_constraint_specs()["ball_0"].p_BQ
    np.testing.assert_allclose(p_DQ, mbjax.points_positions(model, q, "C", p_CP, "D"), rtol=0, atol=1e-14)
    moved = mbjax.set_joint_default_positions(model, "a", 1.0)
    np.testing.assert_array_equal(moved.ball_constraint_specs()["ball_0"].p_BQ, p_DQ)


def test_constraints_are_removed_by_name_or_place() -> None:
    plant = with_one_of_each()
    plant.remove_constraint("rod")
    plant.remove_constraint(0)
    assert plant.constraint_names == ("distance_0", "ball_0", "weld_0", "loop_0")
    assert plant.add_coupler_constraint("a", "b", 1.0) == "coupler_0"
    with pytest.raises(mbjax.ModelError, match="no constraint named 'rot'"):
        plant.remove_constraint("rot")
    with pytest.raises(mbjax.ModelError, match=r"constraints .*may refer to the joint.*remove_constraint"):
        plant.remove_joint("b")


REFUSED = {
    "unknown body": (lambda p: p.add_ball_constraint("A", np.zeros(3), "Bb"), "no body named 'Bb'.*Did you mean 'B'"),
    "same body": (lambda p: p.add_weld_constraint("A", None, "A", None), "both sides are body 'A'"),
    "distance zero": (lambda p: p.add_distance_constraint("A", np.zeros(3), "B", np.zeros(3), 0.0), "BallConstraint"),
    "negative stiffness": (
        lambda p: p.add_distance_constraint("A", np.zeros(3), "B", np.zeros(3), 1.0, -1.0),
        "stiffness must be > 0",
    ),
    "same joint": (lambda p: p.add_coupler_constraint("a", "a", 1.0), "a coupler needs two"),
    "not a constraint": (lambda p: p.add_constraint("rod"), "expected a constraint, got str"),
    "name twice": (
        lambda p: [p.add_coupler_constraint("a", "b", 1.0, name="x") for _ in range(2)],
        "has a constraint of that name",
    ),
    "body of another plant": (
        lambda p: p.add_ball_constraint(extra_body(), np.zeros(3), "A"),
        "belongs to another plant|there is no body",
    ),
}


def extra_body():
    plant = chain()
    return plant.add_rigid_body("E", mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.2))


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_and_leaves_the_plant_as_it_was(case: str) -> None:
    act, message = REFUSED[case]
    plant = chain()
    with pytest.raises(mbjax.ModelError, match=message):
        act(plant)
    assert plant.num_constraints == (case == "name twice")


def test_a_constraint_within_welded_bodies_is_refused_at_finalize() -> None:
    plant = chain()
    plant.add_rigid_body("tool")
    plant.weld_frames("C", "tool")
    plant.add_ball_constraint("C", np.zeros(3), "tool", np.zeros(3))
    with pytest.raises(mbjax.ModelError, match="'C' and 'tool' are welded together"):
        plant.finalize()


def test_switching_is_a_leaf() -> None:
    model = with_one_of_each().finalize()
    off = mbjax.set_constraint_active_status(model, "rod", False)
    assert bool(mbjax.constraint_active_status(model, "rod"))
    assert not bool(mbjax.constraint_active_status(off, "rod"))
    assert bool(mbjax.constraint_active_status(off, "weld_0"))
    assert jax.tree.structure(off) == jax.tree.structure(model)
    assert bool(mbjax.constraint_active_status(mbjax.set_constraint_active_status(off, 1, jnp.asarray(True)), 1))
    with pytest.raises(mbjax.ModelError, match="one truth value"):
        mbjax.set_constraint_active_status(model, "rod", [True, False])
    with pytest.raises(mbjax.ModelError, match="no constraint named 'rods'"):
        mbjax.constraint_active_status(model, "rods")


def test_parameters_are_replaced_like_other_leaves() -> None:
    model = with_one_of_each().finalize()
    longer = eqx.tree_at(lambda m: m.constraint("rod").distance, model, jnp.asarray(0.9))
    assert longer.constraint("rod").distance == 0.9
    assert mbjax.astype(longer, jnp.float32).constraint("rod").distance.dtype == jnp.float32
