"""Every setter equals a separately built model, and recompiles nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pydrake.multibody.tree as drake_tree
import pytest
from pydrake.math import RigidTransform as DrakeTransform
from pydrake.math import RollPitchYaw
from pydrake.multibody.plant import MultibodyPlant as DrakePlant

import mbjax
from tests.model.plants import assert_same_dynamics, hinge, inertia, mass_matrix
from tests.models import ALL_KINDS, random_tree, relative_error


def arm(
    upper=None,
    X_PF=(0.0, 0.1, 0.4),
    axis=(0.2, 0.9, -0.3),
    gravity=(0, 0, -9.81),
    rotor=0.02,
    gear=5.0,
    damping=0.0,
    armature=0.0,
):
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("upper", inertia() if upper is None else upper)
    plant.add_rigid_body("lower", inertia())
    plant.add_joint(hinge("shoulder", "world", "upper", damping=damping, armature=armature))
    plant.add_joint(hinge("elbow", "upper", "lower", X_PF=X_PF, axis=axis))
    plant.add_joint_actuator("motor", "elbow", rotor_inertia=rotor, gear_ratio=gear)
    plant.set_gravity(gravity)
    return plant.finalize()


TURNED = DrakeTransform(RollPitchYaw(0.3, -0.5, 0.9), [0.1, 0.2, -0.3]).GetAsMatrix4()
SETTERS = {
    "mass": (
        lambda m: mbjax.set_mass(m, "upper", 2.1),
        lambda: arm(mbjax.SpatialInertia(2.1, inertia().com, inertia().unit_inertia)),
    ),
    "centre of mass": (
        lambda m: mbjax.set_center_of_mass_in_body_frame(m, "upper", (0.05, 0.02, 0.1)),
        lambda: arm(mbjax.SpatialInertia(1.3, (0.05, 0.02, 0.1), inertia().unit_inertia)),
    ),
    "centre of mass, central inertia kept": (
        lambda m: mbjax.set_center_of_mass_in_body_frame_and_preserve_central_inertia(m, "upper", (0.4, -0.6, 0.5)),
        lambda: arm(inertia(com=(0.4, -0.6, 0.5))),
    ),
    "inertia": (
        lambda m: mbjax.set_spatial_inertia_in_body_frame(m, "upper", inertia(3.0, (0.3, 0.2, 0.1), (0.7, 0.2, 0.4))),
        lambda: arm(inertia(3.0, (0.3, 0.2, 0.1), (0.7, 0.2, 0.4))),
    ),
    "frame pose": (
        lambda m: mbjax.set_frame_pose(m, "elbow_parent", mbjax.RigidTransform(TURNED[:3, :3], TURNED[:3, 3])),
        lambda: arm(X_PF=TURNED),
    ),
    "axis": (
        lambda m: mbjax.set_joint_axis(m, "elbow", np.array([3.0, 0.5, 1.0]) / np.linalg.norm([3.0, 0.5, 1.0])),
        lambda: arm(axis=(3.0, 0.5, 1.0)),
    ),
    "gravity": (lambda m: mbjax.set_gravity(m, (1.0, 2.0, 3.0)), lambda: arm(gravity=(1.0, 2.0, 3.0))),
    "rotor inertia": (lambda m: mbjax.set_rotor_inertia(m, "motor", 0.3), lambda: arm(rotor=0.3)),
    "gear ratio": (lambda m: mbjax.set_gear_ratio(m, "motor", 9.0), lambda: arm(gear=9.0)),
    "armature": (lambda m: mbjax.set_joint_armature(m, "shoulder", 0.3), lambda: arm(armature=0.3)),
    "damping": (lambda m: mbjax.set_joint_damping(m, "shoulder", 0.8), lambda: arm(damping=0.8)),
}  # fmt: skip


@pytest.mark.parametrize("what", SETTERS)
def test_setter_equals_a_model_built_so(what):
    setter, build = SETTERS[what]
    original = arm()
    leaves = jax.tree.leaves(original)
    changed, built = setter(original), build()
    assert all(a is b for a, b in zip(leaves, jax.tree.leaves(original), strict=True))
    assert jax.tree.structure(changed) == jax.tree.structure(original)
    for a, b in zip(jax.tree.leaves(changed), jax.tree.leaves(built), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-15)
    assert any(np.any(np.asarray(a) != np.asarray(b)) for a, b in zip(leaves, jax.tree.leaves(changed), strict=True))
    assert_same_dynamics(changed, built)


def test_the_length_of_an_axis_does_not_matter():
    assert_same_dynamics(mbjax.set_joint_axis(arm(), "elbow", (3.0, 0.5, 1.0)), arm(axis=(3.0, 0.5, 1.0)))


def test_other_setters_write_their_numbers():
    model = arm()
    gains = mbjax.set_controller_gains(model, 10.0, 1.0, "motor").parameters
    assert (float(gains.proportional_gain[0]), float(gains.derivative_gain[0])) == (10.0, 1.0)
    assert float(mbjax.set_effort_limit(model, "motor", 7.0).parameters.effort_limit[0]) == 7.0
    assert float(mbjax.set_joint_friction(model, "elbow", 0.4).parameters.joint_friction[1]) == 0.4
    assert float(mbjax.set_joint_default_positions(model, "elbow", 0.3).parameters.default_positions[1]) == 0.3
    with pytest.raises(mbjax.ModelError, match="continuous"):
        mbjax.set_time_step(model, 0.1)
    with pytest.raises(mbjax.ModelError, match="world has no mass"):
        mbjax.set_mass(model, "world", 1.0)
    with pytest.raises(mbjax.ModelError, match="body's own frame and cannot be moved"):
        mbjax.set_frame_pose(model, "upper", mbjax.RigidTransform(np.eye(3), np.zeros(3)))
    with pytest.raises(mbjax.ModelError, match="has no axis"):
        mbjax.set_joint_axis(random_tree(0, ALL_KINDS).model, "joint3", (1, 0, 0))


def test_records_are_the_same_wherever_they_are_asked_for():
    """Friction and limits that a joint did not have change its record, in the body that it carries too."""
    model = mbjax.set_position_limits(mbjax.set_joint_friction(arm(), "elbow", 0.4), "elbow", -1.0, 1.0)
    joint = model.joint("elbow")
    assert joint.has_friction
    assert joint.has_position_limits
    for body in model.layout.bodies[1:]:
        inboard = body.inboard_joint
        assert inboard is not None
        assert inboard is model.joint(inboard.index)
    assert model.body(joint.child_body).inboard_joint == joint == model.mobilizer(joint.mobod)


@pytest.mark.parametrize("keeps_central_inertia", [False, True])
def test_centre_of_mass_setters_do_what_drakes_do(keeps_central_inertia):
    twin = random_tree(3, ("revolute", "universal"))
    context, new = twin.plant.CreateDefaultContext(), np.array([0.11, -0.07, 0.05])
    body = twin.plant.GetBodyByName("body1")
    old = body.CalcSpatialInertiaInBodyFrame(context)
    if keeps_central_inertia:  # not bound in Python: by two shifts of Drake's spatial inertia
        expected = old.Shift(old.get_com()).Shift(-new).CopyToFullMatrix6()
        model = mbjax.set_center_of_mass_in_body_frame_and_preserve_central_inertia(twin.model, "body1", new)
    else:
        body.SetCenterOfMassInBodyFrame(context, new)
        expected = body.CalcSpatialInertiaInBodyFrame(context).CopyToFullMatrix6()
        model = mbjax.set_center_of_mass_in_body_frame(twin.model, "body1", new)
    got = mbjax.spatial_inertia_in_body_frame(model, "body1").copy_to_full_matrix6()
    assert relative_error(got, expected) < 1e-13


def test_rotor_inertia_as_in_drake():
    plant = DrakePlant(0.0)
    body = plant.AddRigidBody("link0", drake_tree.SpatialInertia.SolidSphereWithMass(1.3, 0.3))
    joint = plant.AddJoint(drake_tree.RevoluteJoint("joint0", plant.world_frame(), body.body_frame(), [0, 0, 1]))
    actuator = plant.AddJointActuator("motor", joint)
    actuator.set_default_rotor_inertia(0.02)
    actuator.set_default_gear_ratio(5.0)
    plant.Finalize()
    ours = mbjax.MultibodyPlant()
    ours.add_rigid_body("link0", mbjax.SpatialInertia(1.3, np.zeros(3), mbjax.UnitInertia.solid_sphere(0.3)))
    ours.add_joint(mbjax.RevoluteJoint("joint0", "world", "link0", axis=(0, 0, 1)))
    ours.add_joint_actuator("motor", "joint0", rotor_inertia=0.02, gear_ratio=5.0)
    model = ours.finalize()
    context = plant.CreateDefaultContext()
    plant.SetVelocities(context, [0.7])
    v = jnp.array([0.7])
    assert relative_error(mass_matrix(model, jnp.zeros(1)), plant.CalcMassMatrix(context)) < 1e-14
    assert relative_error(mbjax.kinetic_energy(model, jnp.zeros(1), v), plant.CalcKineticEnergy(context)) < 1e-14
    tau = plant.CalcInverseDynamics(context, [2.0], drake_tree.MultibodyForces(plant))
    assert relative_error(mbjax.inverse_dynamics(model, jnp.zeros(1), v, jnp.array([2.0])), tau) < 1e-14


def test_new_numbers_do_not_recompile():
    model = arm()
    count = mass_matrix._cache_size()
    q = jnp.array([0.1, 0.2])
    mass_matrix(model, q)
    first = mass_matrix._cache_size()
    for changed in (mbjax.set_mass(model, "upper", 5.0), mbjax.set_joint_axis(model, "elbow", (1, 2, 3))):
        mass_matrix(changed, q)
    assert mass_matrix._cache_size() == first <= count + 1
