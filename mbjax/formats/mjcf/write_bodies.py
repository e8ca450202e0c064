"""The tree of bodies of an MJCF file, with their joints, inertias, shapes and sites."""

import dataclasses

import numpy as np

from mbjax.joints import BallRpyJoint, WeldJoint
from mbjax.spatial import SpatialInertia

from ..notes.write_notes import WriteNotes
from ..records.contact_shapes import unique_name
from ..records.numbers import (
    as_matrix,
    central_inertia,
    inverse_pose,
    is_identity,
    numbers_text,
    pose_matrix,
    pose_of_floating,
)
from ..records.robot_records import WORLD, JointRecord, LinkRecord, RobotRecord
from ..records.unwritten_parts import joint_label, list_limits_without_place, refuse_dissipation
from ..xml.text import Element, add
from .write_geoms import Geoms, pose_attributes
from .write_joints import MAX_VELOCITIES, Chain, Part, chain_of

SMALLEST = 2e-14  # kg and kg m², more than the least that MuJoCo's compiler takes of a moving body


@dataclasses.dataclass
class FreeJoint:
    """A free joint of MuJoCo, and ours; None for that of a link without a joint."""

    name: str
    joint: JointRecord | None


class Bodies:
    """Writes links as a tree; `written` are the joints in MuJoCo's order, for keyframes."""

    def __init__(self, robot: RobotRecord, world: RobotRecord, geoms: Geoms, notes: WriteNotes):
        self.robot, self.world, self.geoms, self.notes = robot, world, geoms, notes
        self.links = {link.name: link for link in robot.links}
        self.holding = {joint.child: joint for joint in robot.joints}
        self.held: dict[str, list[JointRecord]] = {}
        order = {link.name: i for i, link in enumerate(robot.links)}
        for joint in sorted(robot.joints, key=lambda joint: order[joint.child]):
            self.held.setdefault(joint.parent, []).append(joint)
        self.written: list[Part | FreeJoint] = []
        self.references: dict[str, float] = {}  # qpos0 of hinges and slides
        self.collapsed: set[str] = set()
        self.armatures: dict[str, float] = {}
        for actuator in robot.actuators:
            reflected = actuator.options["rotor_inertia"] * actuator.options["gear_ratio"] ** 2
            if reflected:
                self.armatures[actuator.joint] = self.armatures.get(actuator.joint, 0.0) + reflected
                what = "its rotor inertia is written as armature of its joint"
                notes.repaired(f"actuator '{actuator.name}'", what)
        frames = [*robot.frames, *world.frames]
        self.used = {
            name for record in (*robot.constraints,) for name in record.options.values() if isinstance(name, str)
        }
        self.used |= {frame.link for frame in frames}
        self._taken = dict.fromkeys(self.links, 0)

    def add_all(self, worldbody: Element, sites: dict[str, list[tuple[str, np.ndarray]]]) -> None:
        """All bodies in the order of their links, those that float as well as those that hold to the world."""
        self.sites = sites
        for link in self.world.links:
            self.geoms.add_shapes(worldbody, link)
        self._add_sites(worldbody, WORLD)
        for link in self.robot.links:
            joint = self.holding.get(link.name)
            if joint is None or joint.joint_class.is_floating:
                self._add_free(worldbody, link, joint)
            elif joint.parent == WORLD:
                self._add_body(worldbody, [joint])

    def _add_free(self, parent: Element, link: LinkRecord, joint: JointRecord | None) -> None:
        name, attributes = link.name, {}
        X_WB = as_matrix(self.robot.free_poses[link.name]) if joint is None else self._floating_pose(joint)
        if joint is not None:
            name, plain = joint.name, self._has_plain_frames(joint)
            list_limits_without_place(joint, self.notes, ("position", "velocity", "acceleration"))
            for key, attribute in (("damping", "damping"), ("friction", "frictionloss"), ("armature", "armature")):
                values = np.asarray(joint.options[key])
                if np.any(values != values[0]) or (values[0] and not plain):
                    refuse_dissipation(joint, self.notes, (key,))
                elif values[0]:
                    attributes[attribute] = float(values[0])
        body = add(parent, "body", name=link.name, **pose_attributes(X_WB))
        self._add_inertial(body, link, moves=True)
        add(body, "joint", name=name, type="free", **attributes)
        self.written.append(FreeJoint(name, joint))
        self._add_contents(body, link)

    def _floating_pose(self, joint: JointRecord) -> np.ndarray:
        X_FM = pose_of_floating(np.asarray(joint.options["default_positions"]))
        X_PF, X_BM = (np.asarray(joint.options[key]) for key in ("X_PF", "X_BM"))
        return X_PF @ X_FM @ inverse_pose(X_BM)

    def _has_plain_frames(self, joint: JointRecord) -> bool:
        """Whether a floating joint's frames are those of the world and of the link, as in MuJoCo; noted where not."""
        what = "MuJoCo's free joint has a quaternion and the frames of world and body, so that positions differ"
        is_plain = all(is_identity(np.asarray(joint.options[key])) for key in ("X_PF", "X_BM"))
        if joint.parent != WORLD:
            self.notes.unsupported(joint_label(joint), f"'{joint.parent}' bears it, and MuJoCo's free joints the world")
            return False
        if not is_plain or joint.joint_class.num_positions != 7:
            self.notes.repaired(joint_label(joint), what)
        return is_plain

    def _add_body(self, parent: Element, joints: list[JointRecord]) -> None:
        """The body at the end of joints, between which are links that MuJoCo needs no bodies for."""
        link = self.links[joints[-1].child]
        following = self.held.get(link.name, [])
        if len(following) == 1 and self._is_only_between(link, [*joints, following[0]]):
            self.collapsed.add(link.name)
            self._add_body(parent, [*joints, following[0]])
            return
        chain = chain_of(joints, self.notes)
        X_BM = np.asarray(joints[-1].options["X_BM"])
        if joints[-1].joint_class is BallRpyJoint and not np.array_equal(X_BM[:3, :3], np.eye(3)):
            parent = self._add_body_at_ball(parent, link, joints[-1], chain)
            body = add(parent, "body", name=link.name, **pose_attributes(inverse_pose(X_BM)))
            self._add_inertial(body, link, moves=False)
        else:
            body = add(parent, "body", name=link.name, **pose_attributes(chain.X_PB))
            self._add_inertial(body, link, moves=bool(chain.parts))
            self._add_joints(body, chain)
        self._add_contents(body, link)

    def _add_body_at_ball(self, parent: Element, link: LinkRecord, joint: JointRecord, chain: Chain) -> Element:
        """A massless body at frame M, since a ball joint's quaternion turns the axes of its body."""
        name = unique_name(f"{link.name}@{joint.name}", self._taken)
        turned = Chain(chain.parts, chain.starts, chain.starts[-1])
        body = add(parent, "body", name=name, **pose_attributes(turned.X_PB))
        if not self._has_mass(link):
            self._add_inertial(body, LinkRecord(name, 0, ""), moves=True)
        self._add_joints(body, turned)
        self.notes.repaired(
            joint_label(joint), f"it holds the massless body '{name}', to which '{link.name}' is welded"
        )
        return body

    def _add_joints(self, body: Element, chain: Chain) -> None:
        chain.add_to(body, self.robot, self.armatures)
        self.written += chain.parts
        self.references |= {part.name: part.reference for part in chain.parts}

    def _is_only_between(self, link: LinkRecord, joints: list[JointRecord]) -> bool:
        """Whether a massless link only passes on motion, as those that the reader makes for several joints a body."""
        is_empty = link.inertia is None and not link.visual and not link.collision and link.name not in self.used
        moving = all(j.joint_class not in (WeldJoint, BallRpyJoint) and not j.joint_class.is_floating for j in joints)
        return is_empty and moving and sum(j.joint_class.num_velocities for j in joints) <= MAX_VELOCITIES

    def _add_contents(self, body: Element, link: LinkRecord) -> None:
        self.geoms.add_shapes(body, link)
        self._add_sites(body, link.name)
        for joint in self.held.get(link.name, []):
            if not joint.joint_class.is_floating:
                self._add_body(body, [joint])

    def _add_sites(self, body: Element, link: str) -> None:
        for name, X_BF in self.sites.get(link, []):
            add(body, "site", name=name, **pose_attributes(X_BF))

    def _has_mass(self, link: LinkRecord) -> bool:
        """Whether a link or one that is welded to it has mass and moments of inertia."""
        if link.inertia is not None and np.linalg.eigvalsh(central_inertia(link.inertia)[2])[0] > SMALLEST:
            return True
        welded = [j.child for j in self.held.get(link.name, []) if j.joint_class is WeldJoint]
        return any(self._has_mass(self.links[child]) for child in welded)

    def _add_inertial(self, body: Element, link: LinkRecord, *, moves: bool) -> None:
        needs_mass = moves and not self._has_mass(link)
        if link.inertia is None and not needs_mass:
            return
        if needs_mass:
            what = f"MuJoCo wants mass and moments of inertia of what moves: at least {SMALLEST:g} kg and kg m²"
            self.notes.repaired(f"body '{link.name}'", what)
        if link.inertia is None:
            add(body, "inertial", pos=np.zeros(3), mass=SMALLEST, diaginertia=np.full(3, SMALLEST))
            return
        mass, com, moments, R = self._principal(link.name, link.inertia)
        moments = np.maximum(moments, SMALLEST) if needs_mass else moments
        pose = pose_attributes(pose_matrix(R, com))
        add(body, "inertial", **{"pos": com, **pose}, mass=mass, diaginertia=moments)

    def _principal(self, name: str, inertia: SpatialInertia) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """Mass, centre, principal moments and their axes; MuJoCo wants each moment at most the sum of the others."""
        mass, com, central = central_inertia(inertia)
        if np.any(central != np.diag(np.diag(central))):
            moments, R = np.linalg.eigh(central)
            R = R * np.sign(np.linalg.det(R))
        else:
            moments, R = np.diag(central).copy(), np.eye(3)
        rounding = 1e-10 * max(float(np.abs(moments).max()), mass * float(com @ com))
        largest = int(np.argmax(moments))
        others = float(np.sum(np.delete(moments, largest)))
        if moments.min() < -rounding or moments[largest] > others + rounding:
            what = f"its principal moments {numbers_text(moments)} kg m² are not physical, which MuJoCo refuses"
            self.notes.unsupported(f"body '{name}'", what)
        moments = np.maximum(moments, 0.0)
        moments[largest] = min(moments[largest], float(np.sum(np.delete(moments, largest))))
        return mass, com, moments, R
