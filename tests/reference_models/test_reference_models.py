"""Drake, Pinocchio and MuJoCo read the reference models as intended."""

import xml.etree.ElementTree as ElementTree

import mujoco
import numpy as np
import pinocchio
import pytest
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant

from mbjax.reference_models import REFERENCE_MODELS, path

# positions, velocities, actuators in Drake; mass of all links and of those fixed to the world, kg
EXPECTED = {
    "pendulum": (1, 1, 1, 1.95, 0.8),
    "acrobot": (2, 2, 1, 3.5, 1.5),
    "cart_pole": (2, 2, 1, 5.5, 3.0),
    "four_bar": (3, 3, 1, 6.1, 4.0),
    "arm": (7, 7, 7, 18.0, 3.6),
    "quadruped": (19, 18, 12, 12.74, 0.0),
}


def drake_plant(name):
    plant = MultibodyPlant(0.0)
    parser = Parser(plant)
    parser.SetStrictParsing()
    parser.AddModels(str(path(name)))
    plant.Finalize()
    return plant


def test_every_model_is_listed():
    assert set(REFERENCE_MODELS) == set(EXPECTED)
    assert {file.stem for file in path("arm").parent.glob("*.urdf")} == set(REFERENCE_MODELS)


def test_unknown_name_suggests_near_ones():
    with pytest.raises(KeyError, match="Did you mean 'quadruped'"):
        path("quadrupd")


@pytest.mark.parametrize("name", REFERENCE_MODELS)
def test_drake_reads_it_strictly(name):
    plant = drake_plant(name)
    num_positions, num_velocities, num_actuators, mass, _ = EXPECTED[name]
    assert plant.num_positions() == num_positions
    assert plant.num_velocities() == num_velocities
    assert plant.num_actuators() == num_actuators
    assert plant.CalcTotalMass(plant.CreateDefaultContext()) == pytest.approx(mass, rel=1e-12)


@pytest.mark.parametrize("name", REFERENCE_MODELS)
def test_pinocchio_reads_it(name):
    model = pinocchio.buildModelFromUrdf(str(path(name)))
    floating = 6 if name == "quadruped" else 0
    assert model.nv == EXPECTED[name][1] - floating
    assert sum(inertia.mass for inertia in model.inertias) == pytest.approx(EXPECTED[name][3])


@pytest.mark.parametrize("name", REFERENCE_MODELS)
def test_mujoco_reads_it(name):
    model = mujoco.MjModel.from_xml_path(str(path(name)))
    floating, trunk = (6, 6.1) if name == "quadruped" else (0, 0.0)
    assert model.nv == EXPECTED[name][1] - floating
    moving = EXPECTED[name][3] - EXPECTED[name][4] - trunk
    assert model.body_mass.sum() == pytest.approx(moving), "MuJoCo drops what is fixed to the world"


@pytest.mark.parametrize("name", REFERENCE_MODELS)
def test_inertias_are_those_of_rigid_bodies(name):
    for link in ElementTree.parse(path(name)).getroot().iter("link"):
        inertial = link.find("inertial")
        if inertial is None:
            assert link.find("visual") is None
            continue
        entries = {key: float(value) for key, value in inertial.find("inertia").attrib.items()}
        inertia = np.array(
            [
                [entries["ixx"], entries["ixy"], entries["ixz"]],
                [entries["ixy"], entries["iyy"], entries["iyz"]],
                [entries["ixz"], entries["iyz"], entries["izz"]],
            ]
        )
        moments = np.linalg.eigvalsh(inertia)
        assert float(inertial.find("mass").get("value")) > 0.0
        assert moments[0] > 0.0
        assert moments[2] <= (moments[0] + moments[1]) * (1.0 + 1e-6), link.get("name")


@pytest.mark.parametrize("name", ["arm", "quadruped"])
def test_drake_finds_rotor_inertia_gear_ratio_and_limits(name):
    plant = drake_plant(name)
    for index in plant.GetJointActuatorIndices():
        actuator = plant.get_joint_actuator(index)
        joint = actuator.joint()
        assert 0.0 < actuator.default_rotor_inertia() < 1e-3
        assert actuator.default_gear_ratio() > 1.0
        assert 0.0 < actuator.effort_limit() < 1e3
        assert joint.default_damping() > 0.0
        assert np.all(np.isfinite(joint.position_lower_limits() + joint.position_upper_limits()))
        assert np.all(joint.velocity_upper_limits() > 0.0)


def test_four_bar_is_assembled_at_zero():
    plant = drake_plant("four_bar")
    X_CR = plant.CalcRelativeTransform(
        plant.CreateDefaultContext(),
        plant.GetFrameByName("coupler_tip"),
        plant.GetFrameByName("rocker_tip"),
    )
    np.testing.assert_allclose(X_CR.GetAsMatrix4(), np.eye(4), atol=1e-14)


def test_quadruped_feet_are_level_spheres():
    plant = drake_plant("quadruped")
    context = plant.CreateDefaultContext()
    legs = [f"{end}_{side}_foot" for end in ("front", "rear") for side in ("left", "right")]
    p_WFo = [plant.EvalBodyPoseInWorld(context, plant.GetBodyByName(leg)).translation() for leg in legs]
    np.testing.assert_allclose(np.array(p_WFo)[:, 2], -0.43, atol=1e-12)
