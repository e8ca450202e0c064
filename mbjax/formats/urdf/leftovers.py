"""Lists the parts of a URDF that no reader uses, once per kind; refuses those that are physics."""

from ..notes.leftovers import Leftovers, report_leftovers
from ..notes.load_notes import LoadNotes
from ..xml.tree import XmlElement
from .read_contact import PROXIMITY_TAGS
from .read_hydroelastic import COMPLIANCE_TAGS, HYDROELASTIC_NUMBERS, HYDROELASTIC_TAGS, OLD_TAG
from .read_joints import ignored_parts

FILTER = "drake:collision_filter_group"
DRAWING = "not drawn: shapes have one color"
OTHER_TRANSMISSION = "part of a transmission that is no SimpleTransmission, and those alone make actuators"
NAMED = frozenset({"name"})
SHAPES = {
    "box": ({"size"}, set()),
    "sphere": ({"radius"}, set()),
    "cylinder": ({"radius", "length"}, set()),
    "capsule": ({"radius", "length"}, set()),
    "drake:capsule": ({"radius", "length"}, set()),
    "ellipsoid": ({"a", "b", "c"}, set()),
    "drake:ellipsoid": ({"a", "b", "c"}, set()),
    "mesh": ({"filename", "scale"}, set()),
}
JOINT_PARTS = {"origin", "parent", "child", "axis", "limit", "dynamics", "mimic"}
# Attributes and children of each element that readers use.
READ: dict[str, tuple[set[str], set[str]]] = {
    "robot": ({"name", "version"}, {"link", "joint", "drake:joint", "material", "transmission", "frame", FILTER}),
    "link": ({"name", "drake_ignore"}, {"inertial", "visual", "collision"}),
    "inertial": (set(), {"origin", "mass", "inertia"}),
    "mass": ({"value"}, set()),
    "inertia": ({"ixx", "iyy", "izz", "ixy", "ixz", "iyz"}, set()),
    "origin": ({"xyz", "rpy", "quat_xyzw"}, set()),
    "visual": ({"name"}, {"origin", "geometry", "material"}),
    "collision": ({"name"}, {"origin", "geometry", "drake:proximity_properties", "drake_compliance"}),
    "drake:proximity_properties": (set(), {*PROXIMITY_TAGS, *HYDROELASTIC_TAGS, OLD_TAG}),
    **dict.fromkeys((*PROXIMITY_TAGS, *HYDROELASTIC_NUMBERS), ({"value"}, set())),
    **dict.fromkeys((*COMPLIANCE_TAGS, OLD_TAG), (set(), set())),
    "drake_compliance": (set(), {"static_friction", "dynamic_friction"}),
    "static_friction": (set(), set()),
    "dynamic_friction": (set(), set()),
    FILTER: ({"name", "ignore"}, {"drake:member", "drake:member_group", "drake:ignored_collision_filter_group"}),
    "drake:member": ({"link"}, set()),
    "drake:member_group": ({"name"}, set()),
    "drake:ignored_collision_filter_group": ({"name"}, set()),
    "geometry": (set(), set(SHAPES)),
    "material": ({"name"}, {"color"}),
    "color": ({"rgba"}, set()),
    "joint": ({"name", "type", "drake_ignore"}, JOINT_PARTS),
    "drake:joint": ({"name", "type", "drake_ignore"}, JOINT_PARTS | {"drake:screw_thread_pitch"}),
    "parent": ({"link"}, set()),
    "child": ({"link"}, set()),
    "axis": ({"xyz"}, set()),
    "limit": ({"lower", "upper", "effort", "velocity", "acceleration", "drake:acceleration"}, set()),
    "dynamics": ({"damping", "friction"}, set()),
    "mimic": ({"joint", "multiplier", "offset"}, set()),
    "drake:screw_thread_pitch": ({"value"}, set()),
    "frame": ({"name", "link", "xyz", "rpy", "quat_xyzw"}, set()),
    "transmission": ({"name", "type"}, {"type", "joint", "actuator", "mechanicalReduction"}),
    "type": (set(), set()),
    "transmission/joint": ({"name"}, {"hardwareInterface", "mechanicalReduction"}),
    "actuator": (
        {"name"},
        {
            "mechanicalReduction",
            "hardwareInterface",
            "drake:rotor_inertia",
            "drake:gear_ratio",
            "drake:controller_gains",
        },
    ),
    "mechanicalReduction": (set(), set()),
    "drake:rotor_inertia": ({"value"}, set()),
    "drake:gear_ratio": ({"value"}, set()),
    "drake:controller_gains": ({"p", "d"}, set()),
    **SHAPES,
}
# Children that would change the motion; refused unless the caller asks for a warning.
PHYSICS = {
    "loop_joint": "loop joints are not supported; close the loop with a constraint",
    "drake:linear_bushing_rpy": "bushings are not supported yet",
    "drake:linear_spring_damper": "spring-dampers in a file are not supported yet",
    "drake:ball_constraint": "ball constraints are not supported yet",
    "drake:tendon_constraint": "tendon constraints are not supported yet",
    "drake:deformable_properties": "deformable links are read in SDFormat alone, as in Drake",
}
REASONS = {
    "gazebo": "settings of the Gazebo simulator",
    "sensor": "sensors are not simulated",
    "ros2_control": "settings of ros2_control",
    "hardwareInterface": "settings of ros_control",
    "safety_controller": "soft limits of a controller, not of the mechanism",
    "calibration": "reference positions for calibration",
    "texture": "textures are not drawn",
    "contact": "contact settings of Bullet",
    "verbose": "a setting of an old parser",
    "self_collision_checking": "a setting of an old parser; filters say which links may touch",
    "role": "a name for the controllers of ros2_control",
    "offset": "where the controllers of ros2_control count positions from",
    "use_simulated_gripper_joint": "a setting of the Gazebo simulator",
    **dict.fromkeys(("leftActuator", "rightActuator", "flexJoint", "rollJoint"), OTHER_TRANSMISSION),
    **dict.fromkeys(("gap_joint", "passive_joint"), OTHER_TRANSMISSION),
    "drake:accepting_renderer": "there is one renderer",
    "drake:diffuse_map": DRAWING,
    "drake:illustration_properties": "every visual shape is drawn",
    "drake:perception_properties": "every visual shape is drawn",
    "drake:declare_convex": 'with meshes="hull" every mesh touches with its convex hull',
}
DEFAULT_REASON = "nothing that mbjax reads in a URDF"


def list_leftovers(robot: XmlElement, notes: LoadNotes) -> None:
    """One report entry per kind of leftover, with count and lines; refuses physics we cannot do."""
    found: Leftovers = {}
    _collect(robot, "robot", notes, found)
    report_leftovers(found, notes)


def _collect(element: XmlElement, kind: str, notes: LoadNotes, found: Leftovers) -> None:
    attributes, children = READ[kind]
    for attribute in element.attributes:
        if attribute not in attributes and not attribute.startswith(("xmlns", "xml:")):
            found.setdefault((f"<{element.tag} {attribute}>", DEFAULT_REASON), []).append(element)
    without_meaning = dict(ignored_parts(element)) if kind in ("joint", "drake:joint") else {}
    for child in element.children:
        if child in without_meaning:
            found.setdefault((f"<{child.tag}>", without_meaning[child]), []).append(child)
        elif child.tag in PHYSICS:
            notes.unsupported(child, PHYSICS[child.tag])
        elif child.tag not in children or child.tag == "hardwareInterface":
            reason = REASONS.get(child.tag, f"in <{element.tag}>: {DEFAULT_REASON}")
            found.setdefault((f"<{child.tag}>", reason), []).append(child)
        else:
            nested = f"{kind}/{child.tag}"
            _collect(child, nested if nested in READ else child.tag, notes, found)
