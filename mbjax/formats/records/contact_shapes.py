"""What shapes of every format need: hulls that stand for meshes, names that differ, files that are missing."""

import numpy as np

from mbjax.errors import MissingPackageError
from mbjax.geometry import Convex, Mesh, Shape
from mbjax.geometry.mesh_hull import MAX_VERTICES, describe_cut, read_mesh_hull
from mbjax.model import IGNORED, REPAIRED, USED

from ..files.resource_paths import ResourceFinder, words_for_tried
from ..notes.load_notes import LoadNotes
from ..xml.tree import XmlElement


def shape_for_contact(element: XmlElement, shape: Shape, hulls: bool, notes: LoadNotes) -> Shape:
    """With `hulls`, the hull of a mesh that is there, with what was cut off in the notes; other shapes as they are.

    All hulls of a file have `MAX_VERTICES` vertices, the last one repeated: the pairs of all of them are one
    program.
    """
    if not (hulls and isinstance(shape, Mesh) and shape.path is not None):
        return shape
    try:
        hull = read_mesh_hull(shape.path, shape.scale, MAX_VERTICES)
    except MissingPackageError as error:
        message = f'{error} With meshes="none" they touch nothing and are not read.'
        raise MissingPackageError(message, file=element.file, line=element.line) from None
    except ValueError as error:
        raise element.error(str(error)) from None
    what = "the convex hull stands for the mesh in contact"
    cut = f"; {describe_cut(hull)}" if hull.num_left_out else ""
    notes.add(USED, f"mesh '{shape.filename}'", what + cut, element.place)
    missing = MAX_VERTICES - len(hull.vertices)
    vertices = np.concatenate([hull.vertices, np.tile(hull.vertices[-1:], (missing, 1))])
    return Convex(tuple(map(tuple, vertices.tolist())))


def warn_of_missing_files(finder: ResourceFinder, notes: LoadNotes) -> None:
    """One warning for all meshes that were not found, and an entry each."""
    hint = 'give package_map={"package": "folder"} if you want to see them; dynamics needs no mesh'
    for filename, tried in finder.missing.items():
        where = words_for_tried(tried)
        notes.add(
            IGNORED,
            f"mesh '{filename}'",
            f"file not found ({where}); {hint}",
            notes.file,
        )
        notes.warn(f"mesh files not found ({hint})", f"'{filename}' ({where})")


def shape_name(element: XmlElement, link_name: str, taken: dict[str, int], notes: LoadNotes) -> str:
    """The name of a <visual> or <collision>, one of its kind in the link; `notes` says where it is not the file's."""
    given = element.attributes.get("name")
    name = unique_name(given or f"{link_name}_{element.tag}", taken)
    if given and name != given:
        message = f"called '{name}' here: link '{link_name}' has another <{element.tag}> of that name"
        notes.add(REPAIRED, element.label, message, element.place)
    return name


def unique_name(name: str, taken: dict[str, int]) -> str:
    """`name`, or `name_1`, …; `taken` holds the last number tried for each name."""
    candidate = name
    while candidate in taken:
        taken[name] += 1
        candidate = f"{name}_{taken[name]}"
    taken[candidate] = 0
    return candidate
