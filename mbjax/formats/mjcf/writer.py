"""Writes a model as MJCF, MuJoCo's format."""

import os
from pathlib import Path
from typing import Literal

import numpy as np

from mbjax.forces import PrismaticSpring, RevoluteSpring
from mbjax.model import MultibodyModel

from ..notes.write_notes import WriteNotes, Written
from ..records.contact_shapes import unique_name
from ..records.deformables_of_models import refuse_deformable_bodies
from ..records.mesh_files import MeshFiles
from ..records.model_records import ModelRecords, records_of
from ..records.names import NameRules
from ..records.numbers import as_matrix, pose_matrix, pose_of_floating, quaternion_of
from ..records.poses import matrix
from ..records.robot_records import KeyframeRecord
from ..records.unwritten_parts import list_time_step
from ..xml.text import Element, add, document_text, new
from .write_actuators import add_actuators
from .write_bodies import Bodies, FreeJoint
from .write_contact import add_contacts
from .write_geoms import Geoms
from .write_joints import Part


def to_mjcf(
    model: MultibodyModel,
    path: str | os.PathLike | None = None,
    *,
    on_unsupported: Literal["error", "warn"] = "error",
    mesh_folder: str | os.PathLike | None = None,
) -> Written:
    """The model with its numbers of now as the text of an MJCF file, which is also written to `path` if one is given.

    MuJoCo has the same mass matrix, bias and forces of springs and dampers for it, and `load(text)` the same motion;
    contact, constraints and limits are soft in MuJoCo, whose parameters for these the file leaves at their defaults.
    `mujoco_state(model, state)` is the state there. All digits of a number are written. What MJCF does not hold and
    acts on the motion is refused, or with `on_unsupported="warn"` left out; the text's `report` lists it, with all else
    that is not in the file. Default positions are references (`ref`). A mesh is named by its file's path, from `path`
    if that is given. Convex hulls are written as .obj files into `mesh_folder`, or else as vertices.
    """
    notes = WriteNotes("to_mjcf", "MJCF", on_unsupported)
    records = records_of(model, notes, NameRules(is_flat=True, shared=()))
    text = MjcfWriter(records, notes, MeshFiles(path, mesh_folder, notes)).text()
    written = notes.finish(text)
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return written


class MjcfWriter:
    """Writes the records of a model into the elements of an MJCF file."""

    def __init__(self, records: ModelRecords, notes: WriteNotes, meshes: MeshFiles):
        self.records, self.notes = records, notes
        (self.robot,) = records.robots
        refuse_deformable_bodies(records.robots, notes)
        self.root = new("mujoco", model=self.robot.name)
        add(self.root, "compiler", angle="radian", inertiafromgeom="false", autolimits=True)
        step = records.time_step or None
        add(self.root, "option", timestep=step, gravity=records.world.gravity)
        self.assets = add(self.root, "asset")
        self.worldbody = add(self.root, "worldbody")
        geoms = Geoms(self.assets, meshes, records.has_contact, notes)
        self.bodies = Bodies(self.robot, records.world, geoms, notes)
        self.sites: dict[str, list[tuple[str, np.ndarray]]] = {}
        self._site_names: dict[str, int] = {}

    def text(self) -> str:
        for frame in [*self.robot.frames, *self.records.world.frames]:
            self._site(frame.name, frame.link, as_matrix(frame.X_PF))
        equality = new("equality")
        self._add_equality_of_bodies(equality)
        self.bodies.add_all(self.worldbody, self.sites)
        self._add_couplings(equality)
        add_contacts(self.root, self.records, self.bodies.geoms, self.bodies.collapsed)
        if len(equality):
            self.root.append(equality)
        add_actuators(self.root, self.robot, self.bodies.references, self.notes)
        self._add_keyframes()
        for record in self.robot.force_elements:
            if record.element_class not in (RevoluteSpring, PrismaticSpring):
                self.notes.unsupported(f"{record.element_class.__name__} '{record.name}'", "mbjax reads none in MJCF")
        if not len(self.assets):
            self.root.remove(self.assets)
        if self.records.time_step or self.records.has_contact:
            list_time_step(self.records, self.notes)
        return document_text(self.root)

    def _site(self, name: str, link: str, X_BF: np.ndarray) -> str:
        """A site at a pose in a link; its name."""
        name = unique_name(name, self._site_names)
        self.sites.setdefault(link, []).append((name, X_BF))
        return name

    def _add_equality_of_bodies(self, equality: Element) -> None:
        """Ball and weld constraints, between sites, so that nothing depends on the default positions."""
        for record in self.robot.constraints:
            options, name = record.options, record.name
            if record.kind == "ball":
                poses = [pose_matrix(np.eye(3), options[key]) for key in ("p_AP", "p_BQ")]
            elif record.kind == "weld":
                poses = [options[key] for key in ("X_AP", "X_BQ")]
            else:
                if record.kind != "coupler":
                    self.notes.unsupported(f"{record.kind} constraint '{name}'", "MJCF has no such constraint")
                continue
            ends = zip("AB", (options["body_A"], options["body_B"]), poses, strict=True)
            sites = [self._site(f"{name} {end}", body, X) for end, body, X in ends]
            add(equality, "connect" if record.kind == "ball" else "weld", name=name, site1=sites[0], site2=sites[1])

    def _add_couplings(self, equality: Element) -> None:
        """q0 = ratio q1 + offset, which MuJoCo writes from the references of the joints on."""
        relations = [
            (record.name, *(record.options[key] for key in ("joint0", "joint1", "gear_ratio", "offset")))
            for record in self.robot.constraints
            if record.kind == "coupler"
        ]
        for mimic in self.robot.mimics:
            name = f"{mimic.joint} mimics {mimic.leader}"
            relations.append((name, mimic.joint, mimic.leader, mimic.multiplier, mimic.offset))
            what = f"it mimics '{mimic.leader}' without a coordinate of its own: load with mimic=\"eliminate\""
            self.notes.repaired(f"joint '{mimic.joint}'", what)
        ref = self.bodies.references
        for name, joint, leader, ratio, offset in relations:
            constant = offset - ref[joint] + ratio * ref[leader]
            add(equality, "joint", name=name, joint1=joint, joint2=leader, polycoef=(constant, ratio, 0.0, 0.0, 0.0))

    def _add_keyframes(self) -> None:
        if not self.robot.keyframes:
            return
        keyframes = add(self.root, "keyframe")
        for keyframe in self.robot.keyframes:
            qpos, qvel = self._state(keyframe)
            add(keyframes, "key", name=keyframe.name, time=keyframe.time or None, qpos=qpos, qvel=qvel)

    def _state(self, keyframe: KeyframeRecord) -> tuple[list[float], list[float]]:
        """qpos and qvel of a keyframe, in the order of the joints in the file."""
        qpos: list[float] = []
        qvel: list[float] = []
        for item in self.bodies.written:
            if isinstance(item, FreeJoint):
                q, v = self._free_state(item, keyframe)
            else:
                q, v = part_state(item, keyframe)
            qpos += q
            qvel += v
        return qpos, qvel

    def _free_state(self, item: FreeJoint, keyframe: KeyframeRecord) -> tuple[list[float], list[float]]:
        joint = item.joint
        position, velocity = np.array(keyframe.positions[item.name]), np.array(keyframe.velocities[item.name])
        X = pose_of_floating(position)
        if joint is not None and not all(np.array_equal(joint.options[key], np.eye(4)) for key in ("X_PF", "X_BM")):
            self.notes.ignored(
                f"keyframe '{keyframe.name}'", f"joint '{item.name}' has frames of its own: at its default"
            )
            return [*np.zeros(3), 1.0, *np.zeros(3)], [0.0] * 6
        quaternion = position[:4] / np.linalg.norm(position[:4]) if len(position) == 7 else quaternion_of(X[:3, :3])
        return [*X[:3, 3], *quaternion], [*velocity[3:], *(X[:3, :3].T @ velocity[:3])]


def part_state(part: Part, keyframe: KeyframeRecord) -> tuple[list[float], list[float]]:
    """Positions and velocities of one joint of MuJoCo."""
    position, velocity = keyframe.positions[part.joint.name], keyframe.velocities[part.joint.name]
    if part.kind != "ball":
        return [position[part.component]], [velocity[part.component]]
    R = pose_of_floating(np.array([*position, 0.0, 0.0, 0.0]))[:3, :3]
    quaternion = quaternion_of(R)
    return list(quaternion), list(matrix(quaternion).T @ np.array(velocity))
