"""Mimic relations of every format, once their numbers are read."""

from mbjax.joints import WeldJoint
from mbjax.model import IGNORED, RECORDED, USED

from ..notes.load_notes import LoadNotes
from ..xml.tree import XmlElement
from ..xml.values import did_you_mean
from .robot_records import JointRecord, MimicRecord


def mimic_record(
    mimic: XmlElement,
    name: str,
    leader: str,
    numbers: tuple[float, float],
    by_name: dict[str, JointRecord],
    notes: LoadNotes,
    choice: str,
) -> MimicRecord | None:
    """q(name) = multiplier q(leader) + offset, if both are joints that have one coordinate."""
    if leader == name:
        raise mimic.error(f"joint '{name}' mimics itself; name another joint.")
    if by_name[name].joint_class is WeldJoint:
        message = "the mimic relation has no meaning on a fixed joint"
        notes.add(IGNORED, f"joint '{name}'", message, mimic.place)
        return None
    if leader not in by_name:
        notes.unsupported(
            mimic,
            f"joint '{name}' mimics joint '{leader}', which does not exist. "
            + did_you_mean(leader, by_name).rstrip("."),
        )
        return None
    for joint in (name, leader):
        size = by_name[joint].joint_class.num_velocities
        if size != 1:
            notes.unsupported(
                mimic, f"joint '{name}' mimics joint '{leader}', but '{joint}' has {size} degrees of freedom, not one"
            )
            return None
    multiplier, offset = numbers
    relation = f"the mimic relation q({name}) = {multiplier:g} q({leader}) + {offset:g}"
    if choice == "free":
        notes.add(RECORDED, f"joint '{name}'", f'{relation} is not kept, as asked by mimic="free"', mimic.place)
        return None
    how = "kept by a coupler constraint" if choice == "couple" else "exact: the joint has no coordinate of its own"
    notes.add(USED, f"joint '{name}'", f"{relation} is {how}", mimic.place)
    return MimicRecord(mimic.line, name, leader, multiplier, offset, choice == "couple", mimic.place)
