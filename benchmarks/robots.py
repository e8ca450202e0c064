"""The robots of the benchmarks: files of the PyPI package `example-robot-data`, reduced to rigid-body dynamics.

Where that package is not at hand, the scripts of one question take the models that come with mbjax.

Every peer reads the same reduced text: no geometry, damping, mimic or transmission, which the peers treat
differently. What is left is a tree of inertias and one-dof joints under gravity.
"""

import dataclasses
import pathlib
import sysconfig
import xml.etree.ElementTree as ElementTree

from mbjax.reference_models import path as bundled

PIP_NAME = "example-robot-data"
FOLDER = pathlib.Path(sysconfig.get_path("purelib")) / "cmeel.prefix/share/example-robot-data/robots"

DROPPED_FROM_ROBOT = ("mujoco", "transmission", "material", "gazebo")
DROPPED_FROM_LINK = ("visual", "collision")
DROPPED_FROM_JOINT = ("dynamics", "mimic", "safety_controller", "calibration")


@dataclasses.dataclass(frozen=True)
class Robot:
    """`base` is "fixed" or "floating": the file does not say."""

    name: str
    title: str
    file: str
    base: str

    @property
    def path(self) -> pathlib.Path:
        return FOLDER / self.file

    @property
    def is_floating(self) -> bool:
        return self.base == "floating"


ROBOTS = {
    robot.name: robot
    for robot in (
        Robot("panda", "Panda (9 dof)", "panda_description/urdf/panda.urdf", "fixed"),
        Robot("a1", "A1 (18 dof)", "a1_description/urdf/a1.urdf", "floating"),
        Robot("g1", "G1 (35 dof)", "g1_description/urdf/g1_29dof_rev_1_0.urdf", "floating"),
    )
}
BUNDLED = {
    "arm": Robot("arm", "arm (7 dof)", str(bundled("arm")), "fixed"),
    "quadruped": Robot("quadruped", "quadruped (18 dof)", str(bundled("quadruped")), "floating"),
}
ALL_ROBOTS = {**ROBOTS, **BUNDLED}


def reduced_urdf(robot: Robot) -> str:
    """The robot's URDF text with nothing but links, inertias, joints and limits."""
    root = ElementTree.parse(robot.path).getroot()
    drop_children(root, DROPPED_FROM_ROBOT)
    for link in root.findall("link"):
        drop_children(link, DROPPED_FROM_LINK)
    for joint in root.findall("joint"):
        drop_children(joint, DROPPED_FROM_JOINT)
    return ElementTree.tostring(root, encoding="unicode")


def drop_children(element: ElementTree.Element, tags: tuple[str, ...]) -> None:
    for tag in tags:
        for child in element.findall(tag):
            element.remove(child)
