"""Parts of q, v, u and of the state that belong to a model instance; names; default positions: as Drake's."""

import jax
import jax.numpy as jnp
import numpy as np
import pydrake.multibody.tree as drake_tree
import pytest
from pydrake.multibody.plant import MultibodyPlant as DrakePlant

import mbjax
from tests.gradients.checks import check_gradients
from tests.simulation.instances import two_instances

INSTANCES = ("left", "right", "WorldModelInstance", "DefaultModelInstance")


def arrays(model: mbjax.MultibodyModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and u of which no two numbers are equal."""
    return tuple(10.0 * k + 1.0 + np.arange(n) for k, n in enumerate(sizes(model)))


def sizes(model: mbjax.MultibodyModel) -> tuple[int, int, int]:
    return model.num_positions, model.num_velocities, model.num_actuators


def test_the_order_of_coordinates_is_drakes() -> None:
    model, drake = two_instances().model, two_instances().plant
    for prefix in (True, False):
        options = {"add_model_instance_prefix": prefix}
        assert list(model.state_names(**options)) == drake.GetStateNames(**options)
        assert list(model.actuation_names(**options)) == drake.GetActuatorNames(**options)
        for suffix in (True, False):
            options["always_add_suffix"] = suffix
            assert list(model.position_names(**options)) == drake.GetPositionNames(**options)
            assert list(model.velocity_names(**options)) == drake.GetVelocityNames(**options)


@pytest.mark.parametrize("name", INSTANCES)
def test_parts_of_arrays(name: str) -> None:
    model, drake = two_instances().model, two_instances().plant
    q, v, u = arrays(model)
    instance = drake.GetModelInstanceByName(name)
    for x, ours, theirs in (
        (q, mbjax.positions_from_array, drake.GetPositionsFromArray),
        (v, mbjax.velocities_from_array, drake.GetVelocitiesFromArray),
        (u, mbjax.actuation_from_array, drake.GetActuationFromArray),
    ):
        got = ours(model, name, x)
        np.testing.assert_array_equal(got, theirs(instance, x))
        np.testing.assert_array_equal(ours(model, int(instance), x), got)
    for x, setter, theirs in (
        (q, mbjax.set_positions_in_array, drake.SetPositionsInArray),
        (v, mbjax.set_velocities_in_array, drake.SetVelocitiesInArray),
        (u, mbjax.set_actuation_in_array, drake.SetActuationInArray),
    ):
        part = -1.0 - np.arange(setter_size(model, name, setter))
        expected = x.copy()
        theirs(instance, part, expected)
        np.testing.assert_array_equal(setter(model, name, x, part), expected)


def setter_size(model: mbjax.MultibodyModel, name: str, setter: object) -> int:
    instance = model.model_instance(name)
    return {
        mbjax.set_positions_in_array: instance.num_positions,
        mbjax.set_velocities_in_array: instance.num_velocities,
        mbjax.set_actuation_in_array: instance.num_actuators,
    }[setter]


def test_states_whole_and_per_instance() -> None:
    twin = two_instances()
    model, drake = twin.model, twin.plant
    q, v, _ = arrays(model)
    state = mbjax.State(jnp.zeros(q.size), jnp.zeros(v.size), jnp.array(2.5))
    whole = mbjax.set_velocities(model, mbjax.set_positions(model, state, q), v)
    np.testing.assert_array_equal(mbjax.positions(model, whole), q)
    np.testing.assert_array_equal(mbjax.velocities(model, whole), v)
    np.testing.assert_array_equal(mbjax.positions_and_velocities(model, whole), np.concatenate([q, v]))
    again = mbjax.set_positions_and_velocities(model, state, np.concatenate([q, v]))
    context = twin.context(q, v)
    parts = state
    for name in ("left", "right"):
        instance = drake.GetModelInstanceByName(name)
        np.testing.assert_array_equal(mbjax.positions(model, whole, name), drake.GetPositions(context, instance))
        np.testing.assert_array_equal(mbjax.velocities(model, whole, name), drake.GetVelocities(context, instance))
        x = mbjax.positions_and_velocities(model, whole, name)
        np.testing.assert_array_equal(x, drake.GetPositionsAndVelocities(context, instance))
        parts = mbjax.set_positions_and_velocities(model, parts, x, name)
    for got in (again, parts):
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(whole), strict=True):
            np.testing.assert_array_equal(a, b)


def test_sizes_that_do_not_fit_are_refused() -> None:
    model = two_instances().model
    q, v, u = arrays(model)
    state = mbjax.default_state(model)
    with pytest.raises(ValueError, match=r"q_instance of 'left' has shape \(2,\), the model needs"):
        mbjax.set_positions_in_array(model, "left", q, [1.0, 2.0])
    with pytest.raises(ValueError, match=r"v has shape \(2,\)"):
        mbjax.velocities_from_array(model, "left", v[:2])
    with pytest.raises(ValueError, match=r"u_instance of 'right'"):
        mbjax.set_actuation_in_array(model, "right", u, u)
    with pytest.raises(ValueError, match=r"x = \[q, v\] has shape"):
        mbjax.set_positions_and_velocities(model, state, q)
    with pytest.raises(mbjax.ModelError, match=r"no model instance named 'lft'. Did you mean 'left'"):
        mbjax.positions(model, state, "lft")


def test_names_of_an_instance() -> None:
    """Drake gives names of instances whose coordinates lie side by side; ours of others too."""
    ours, theirs = mbjax.MultibodyPlant(), DrakePlant(0.0)
    inertia = mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1)
    drake_inertia = drake_tree.SpatialInertia.SolidSphereWithMass(1.0, 0.1)
    for name in ("first", "second"):
        ours.add_model_instance(name)
        instance = theirs.AddModelInstance(name)
        parent = theirs.world_frame()
        for body, our_class, their_class, axis in (
            ("a", mbjax.RevoluteJoint, drake_tree.RevoluteJoint, [[0, 0, 1]]),
            ("b", mbjax.UniversalJoint, drake_tree.UniversalJoint, []),
        ):
            ours.add_rigid_body(body, inertia, name)
            child = theirs.AddRigidBody(body, instance, drake_inertia).body_frame()
            joint = our_class(f"to_{body}", "world" if body == "a" else f"{name}::a", f"{name}::{body}")
            ours.add_joint(joint)
            theirs.AddJoint(their_class(f"to_{body}", parent, child, *axis))
            parent = child
        ours.add_joint_actuator(f"motor_{name}", f"{name}::to_a")
        theirs.AddJointActuator(f"motor_{name}", theirs.GetJointByName("to_a", instance))
    theirs.Finalize()
    model = ours.finalize()
    for name in ("first", "second"):
        instance = theirs.GetModelInstanceByName(name)
        assert list(model.position_names(name)) == theirs.GetPositionNames(instance)
        assert list(model.velocity_names(name)) == theirs.GetVelocityNames(instance)
        assert list(model.state_names(name)) == theirs.GetStateNames(instance)
        assert list(model.actuation_names(name)) == theirs.GetActuatorNames(instance)
        for prefix in (True, False):
            for suffix in (True, False):
                options = {"add_model_instance_prefix": prefix, "always_add_suffix": suffix}
                assert list(model.position_names(name, **options)) == theirs.GetPositionNames(instance, **options)
                assert list(model.velocity_names(name, **options)) == theirs.GetVelocityNames(instance, **options)
            assert list(model.state_names(name, add_model_instance_prefix=prefix)) == theirs.GetStateNames(
                instance, prefix
            )
            assert list(model.actuation_names(name, add_model_instance_prefix=prefix)) == theirs.GetActuatorNames(
                instance, prefix
            )
    interleaved = two_instances().model
    q = np.arange(interleaved.num_positions)
    names = np.array(interleaved.position_names(add_model_instance_prefix=False))
    for name in ("left", "right"):
        mine = np.asarray(mbjax.positions_from_array(interleaved, name, q)).astype(int)
        assert interleaved.position_names(name) == tuple(names[mine])


def test_default_positions() -> None:
    twin = two_instances()
    model, drake = twin.model, twin.plant
    q, _, _ = arrays(model)
    before = drake.GetDefaultPositions()
    np.testing.assert_array_equal(mbjax.default_positions(model), before)
    try:
        for name in ("left", "right"):
            instance = drake.GetModelInstanceByName(name)
            part = mbjax.positions_from_array(model, name, q)
            model = mbjax.set_default_positions(model, part, name)
            drake.SetDefaultPositions(instance, part)
            np.testing.assert_array_equal(mbjax.default_positions(model), drake.GetDefaultPositions())
            np.testing.assert_array_equal(mbjax.default_positions(model, name), drake.GetDefaultPositions(instance))
    finally:
        drake.SetDefaultPositions(before)
    np.testing.assert_array_equal(mbjax.default_state(model).q, q)
    model = mbjax.set_joint_default_positions(model, "hand_joint", [0.3, 0.4])
    np.testing.assert_array_equal(mbjax.default_state(model).q[model.joint("hand_joint").q], [0.3, 0.4])
    np.testing.assert_array_equal(mbjax.default_state(mbjax.set_default_positions(model, q)).q, q)
    with pytest.raises(ValueError, match="the model needs"):
        mbjax.set_default_positions(model, q[:-1])


def test_derivatives_and_batches() -> None:
    """Parts move what they are parts of, and nothing else; in a batch each world its own."""
    model = two_instances().model
    q, v, _ = arrays(model)

    def f(q, v, part):
        state = mbjax.set_positions(model, mbjax.State(q, v, jnp.zeros(())), part, "left")
        moved = mbjax.set_default_positions(model, jnp.sin(part), "left")
        return mbjax.positions_and_velocities(model, state, "right"), state.q, mbjax.default_state(moved).q

    part = mbjax.positions_from_array(model, "left", q)
    check_gradients(f, jnp.asarray(q), jnp.asarray(v), part)
    parts = jnp.stack([part, 2.0 * part])
    in_batch = jax.vmap(lambda part: mbjax.set_positions_in_array(model, "left", q, part))(parts)
    np.testing.assert_array_equal(in_batch[1], mbjax.set_positions_in_array(model, "left", q, parts[1]))
