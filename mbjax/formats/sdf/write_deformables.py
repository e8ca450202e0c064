"""Deformable links of an SDFormat file."""

from ..notes.write_notes import WriteNotes
from ..records.deformable_records import DeformableRecord
from ..records.mesh_files import MeshFiles
from ..xml.text import Element, add
from .pose_graph import DEFORMABLE
from .read_deformables import MATERIAL_MODELS, NUMBERS, PROPERTIES, WALL

NO_FOLDER = "its tetrahedra need a mesh file: give mesh_folder="


def add_deformable(model: Element, record: DeformableRecord, meshes: MeshFiles, notes: WriteNotes) -> None:
    """A <link> of tetrahedra, whose nodes are written in the frame of the world."""
    uri = meshes.write_tetrahedra(record.name, record.mesh)
    if uri is None:
        notes.unsupported(f"deformable body '{record.name}'", NO_FOLDER)
        return
    link = add(model, "link", name=record.name)
    collision = add(link, "collision", name=record.name)
    add(add(add(collision, "geometry"), "mesh"), "uri", uri)
    properties = add(collision, "drake:proximity_properties")
    for tag, name in PROPERTIES.items():
        value = getattr(record.properties, name)
        if value is not None:
            add(properties, tag, value)
    material = add(link, DEFORMABLE)
    for tag, (name, *_) in NUMBERS.items():
        add(material, tag, record.material[name])
    words = {ours: word for word, ours in MATERIAL_MODELS.items()}
    add(material, "drake:material_model", words[record.material["model"]])
    for wall in record.walls:
        element = add(link, WALL)
        add(element, "drake:point_on_plane", wall.p_WQ)
        add(element, "drake:outward_normal", wall.n_W)
