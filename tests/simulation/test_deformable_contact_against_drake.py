"""Contact of deformable bodies with rigid shapes beside Drake: a block that falls and is hit, a padded finger."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax

from ..deformable_meshes import box_mesh
from .deformable_plants import DT, DrakePlant, foam
from .test_deformable_contact import (
    BLOCK,
    MODULUS,
    PLACE,
    PLACE_OF_BALL,
    TILT,
    block_and_ball,
    compliant,
    middle,
    rubber,
)


class DrakeContact(DrakePlant):
    """The same in Drake."""

    def __init__(self, plant: Any, fem: Any, mesh: Any, path: Any, approximation: str, friction: float, pose: Any):
        from pydrake.geometry import AddContactMaterial, ProximityProperties

        self.friction, self.of_plant = friction, plant
        properties = ProximityProperties()
        AddContactMaterial(1.0, None, plant.CoulombFriction(friction, friction), properties)
        super().__init__(plant, fem, *mesh, "linear_corotated", path, approximation, pose, properties)

    def compliant(self, hint: float) -> Any:
        from pydrake.geometry import AddCompliantHydroelasticProperties, AddContactMaterial, ProximityProperties

        properties = ProximityProperties()
        AddContactMaterial(1.0, None, self.of_plant.CoulombFriction(self.friction, self.friction), properties)
        AddCompliantHydroelasticProperties(hint, MODULUS, properties)
        return properties

    def add(self, body: Any, pose: Any, shape: Any, name: str, hint: float = 1.0) -> None:
        self.plant.RegisterCollisionGeometry(body, pose, shape, name, self.compliant(hint))


@pytest.mark.whole_run("blocks that fall on the ground and on one another as in Drake")
@pytest.mark.parametrize(
    ("approximation", "friction"),
    [("sap", 0.0), ("lagged", 0.0), ("similar", 0.5)],
)
def test_a_block_falls_and_a_ball_on_it_as_in_drake(approximation: str, friction: float, tmp_path: Any) -> None:
    pydrake_plant = pytest.importorskip("pydrake.multibody.plant")
    fem = pytest.importorskip("pydrake.multibody.fem")
    from pydrake.geometry import Box, Sphere
    from pydrake.math import RigidTransform, RotationMatrix
    from pydrake.multibody.tree import SpatialInertia

    pose = RigidTransform(RotationMatrix(TILT), PLACE)
    theirs = DrakeContact(pydrake_plant, fem, BLOCK, tmp_path, approximation, friction, pose)
    theirs.add(theirs.plant.world_body(), RigidTransform([0, 0, -0.5]), Box(2, 2, 1), "ground")
    ball = theirs.plant.AddRigidBody("ball", SpatialInertia.SolidSphereWithMass(0.1, 0.02))
    theirs.add(ball, RigidTransform(), Sphere(0.02), "ball", 0.02)
    newer, older = "SetDefaultFloatingBaseBodyPose", "SetDefaultFreeBodyPose"  # names in Drake
    set_pose = getattr(theirs.plant, newer if hasattr(theirs.plant, newer) else older)
    set_pose(ball, RigidTransform(PLACE_OF_BALL))
    expected = theirs.run(40)
    model, state = block_and_ball(approximation, friction)
    step = jax.jit(lambda state: mbjax.step(model, state))
    touched, start = False, state.nodes.position
    for k, positions in enumerate(expected):
        state, outputs = step(state)
        contacts = outputs.deformable_contacts
        first_touch = not touched
        touched = touched or bool(contacts.is_active.any())
        error = np.abs(state.nodes.position - positions).max()
        motion = float(jnp.abs(state.nodes.position - start).max())
        assert error < (1e-9 if first_touch else (2e-4 if friction else 1e-5) * motion), (k, error)
        assert bool(outputs.deformables_converged.all())
        assert not contacts.num_left_out.any()
    assert float(jnp.linalg.norm(contacts.of(model, "block", "ball::ball").spatial_force[3:])) > 0.1
    np.testing.assert_allclose(state.q[4:], theirs.q()[4:], atol=(2e-4 if friction else 1e-5) * motion)


@pytest.mark.whole_run("blocks that fall on the ground and on one another, and a body fixed to a link, as in Drake")
@pytest.mark.parametrize("approximation", ["sap", "lagged"])
def test_a_padded_finger_presses_a_box_as_in_drake(approximation: str, tmp_path: Any) -> None:
    """The pad is fixed to a finger that slides along x and pushes a box, which slides too.

    What softens friction is estimated in two ways, and elements cross the edges of the box's field at other times.
    """
    pydrake_plant = pytest.importorskip("pydrake.multibody.plant")
    fem = pytest.importorskip("pydrake.multibody.fem")
    from pydrake.geometry import Box
    from pydrake.math import RigidTransform, RotationMatrix
    from pydrake.multibody.tree import PrismaticJoint, SpatialInertia

    mesh = middle(box_mesh((1, 2, 2), (0.02, 0.04, 0.04)))
    friction, push, gap, end = 0.5, 3.0, 1e-4, (0.004, 0.1, 0.1)
    theirs = DrakeContact(pydrake_plant, fem, mesh, tmp_path, approximation, friction, RigidTransform())
    plant = mbjax.MultibodyPlant(DT, discrete_contact_approximation=approximation)
    place = [0.01 + gap + 0.03, 0.003, 0.002]
    turned = RotationMatrix.MakeYRotation(0.02) @ RotationMatrix.MakeZRotation(0.03)
    for name, mass, axis in (("finger", 0.1, [1.0, 0.0, 0.0]), ("box", 0.2, [1.0, 0.0, 0.0])):
        where = np.zeros(3) if name == "finger" else np.array(place)
        R = np.eye(3) if name == "finger" else turned.matrix()
        body = plant.add_rigid_body(name, mbjax.SpatialInertia.solid_cube_with_mass(mass, 0.05))
        frame = plant.add_frame(
            f"{name}_frame", plant.world_frame, mbjax.RigidTransform(jnp.array(R), jnp.array(where))
        )
        joint = plant.add_joint(mbjax.PrismaticJoint(f"{name}_joint", frame, plant.frame(body), axis=axis, damping=2.0))
        other = theirs.plant.AddRigidBody(name, SpatialInertia.SolidBoxWithMass(mass, 0.05, 0.05, 0.05))
        from pydrake.multibody.tree import FixedOffsetFrame

        base = theirs.plant.AddFrame(
            FixedOffsetFrame(f"{name}_frame", theirs.plant.world_frame(), RigidTransform(RotationMatrix(R), where))
        )
        slides = theirs.plant.AddJoint(PrismaticJoint(f"{name}_joint", base, other.body_frame(), axis, damping=2.0))
        if name == "finger":
            plant.add_joint_actuator("push", joint)
            theirs.plant.AddJointActuator("push", slides)
        else:
            plant.register_collision_geometry(
                body, mbjax.RigidTransform.identity(), mbjax.Box((0.06, 0.025, 0.02)), "box", compliant()
            )
            theirs.add(other, RigidTransform(), Box(0.06, 0.025, 0.02), "box")
    plant.add_deformable_body("pad", mesh, foam("linear_corotated"), properties=rubber())
    X_BG = mbjax.RigidTransform(jnp.eye(3), jnp.array([-0.01, 0.0, 0.0]))
    plant.add_fixed_constraint("pad", "finger", shape=mbjax.Box(end), X_BG=X_BG)
    theirs.deformable_model.AddFixedConstraint(
        theirs.body,
        theirs.plant.GetBodyByName("finger"),
        RigidTransform(),
        Box(*end),
        RigidTransform([-0.01, 0.0, 0.0]),
    )
    theirs.efforts = [push]
    model = plant.finalize()
    state = mbjax.default_state(model)
    step = jax.jit(lambda state: mbjax.step(model, state, jnp.array([push])))
    for k, positions in enumerate(theirs.run(20)):  # the pad touches at once
        state, outputs = step(state)
        error = np.abs(state.nodes.position - positions).max()
        assert error < (1e-8 if k == 0 else 2e-4 * float(state.q[0])), (k, error)
    np.testing.assert_allclose(state.q, theirs.q(), rtol=1e-4)
    assert float(state.q[1]) > 0.03
    force = outputs.deformable_contacts.of(model, "pad", "box::box").spatial_force[3]
    v, a = state.v[1], outputs.generalized_acceleration[1]
    in_line = outputs.generalized_contact_forces[1]
    weight = -0.2 * 9.81 * turned.matrix()[2, 0]  # along the joint of the box
    np.testing.assert_allclose(in_line, 0.2 * a + 2.0 * v - weight, rtol=1e-9)
    assert abs(float(force - in_line)) < 0.1 * float(in_line)
