"""What MuJoCo's compiler makes of an MJCF file, with names for everything and the XML element behind it."""

import dataclasses
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mbjax.errors import ParseError
from mbjax.model import IGNORED, KEPT
from mbjax.optional_packages import imported

from ..notes.load_notes import LoadNotes
from ..xml.source import XmlDocument
from ..xml.tree import XmlElement
from .source import Source, read_source

LINE = re.compile(r"line (\d+)")
MISSING = re.compile(r"(?:Error opening file|resource not found via provider or OS filesystem:) '?([^'\n]*)'?")
NO_MESH = "dynamics needs no mesh where <inertial> is given; a tetrahedron of 10 mm stands for it"
OFF_WITH = {
    **dict.fromkeys(("EQUALITY", "FRICTIONLOSS", "LIMIT", "CONTACT"), ("CONSTRAINT",)),
    **dict.fromkeys(("SPRING", "DAMPER"), ("PASSIVE",)),  # of MuJoCo before 3.4
}
FINITE_FIELDS = (
    "body_pos", "body_quat", "body_ipos", "body_iquat", "body_mass", "body_inertia", "jnt_pos", "jnt_axis",
    "jnt_stiffness", "dof_damping", "dof_armature", "dof_frictionloss", "geom_pos", "geom_quat", "geom_size",
    "geom_friction", "geom_rgba", "site_pos", "site_quat", "actuator_gear", "actuator_gainprm", "actuator_biasprm",
    "eq_data", "key_qpos", "key_qvel", "key_time", "qpos_spring", "qpos0", "mesh_pos", "mesh_quat", "mesh_scale",
    "wrap_prm", "tendon_length0", "mat_rgba",
)  # fmt: skip
KIND_OF_FIELD = {"jnt": "joint", "dof": "joint", "eq": "equality", "key": "keyframe"}
TETRAHEDRON = 1e-2 * np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
BODY_PARTS = {"joint": ("joint", "freejoint"), "geom": ("geom",), "site": ("site",)}
MAKES_BODIES = {"replicate", "composite", "flexcomp", "attach"}


@dataclasses.dataclass
class Compiled:
    """`m` is the `mujoco.MjModel`; `names[kind][i]` is never empty, `elements[kind][i]` says where it stands."""

    mujoco: Any
    spec: Any
    m: Any
    source: Source
    file: str
    name: str
    names: dict[str, list[str]]
    elements: dict[str, list[XmlElement]]
    missing: set[str]

    def element(self, kind: str, index: int) -> XmlElement:
        return self.elements[kind][index]

    def disabled(self, flag: str) -> bool:
        """Whether <flag> switches something off, by itself or with all constraints."""
        flags = (flag, *OFF_WITH.get(flag, ()))
        bits = (getattr(self.mujoco.mjtDisableBit, f"mjDSBL_{name}", 0) for name in flags)
        return any(self.m.opt.disableflags & int(bit) for bit in bits)


def compile_model(document: XmlDocument, notes: LoadNotes, folders: Sequence[Path] = ()) -> Compiled:
    """Reads the file, twice: the XML, safely, and then by MuJoCo."""
    source = read_source(document, folders)
    needs, otherwise = "reading MJCF needs MuJoCo's own compiler", "Or pip install mujoco."
    mujoco = imported("mujoco", needs, "mjcf", otherwise, document.file, source.root.line)
    with warnings.catch_warnings(), warnings_into(mujoco, notes):
        warnings.simplefilter("ignore")
        try:
            spec = load_spec(mujoco, document)
            missing = replace_missing_files(mujoco, spec, document, notes)
            m = compile_spec(mujoco, spec, missing, notes)
        except ParseError:
            raise
        except Exception as error:  # whatever MuJoCo raises means that it cannot read the file
            raise refusal(error, document) from None
    refuse_inertia_of_missing(m, spec, missing, document)
    name = getattr(spec, "modelname", "") or (Path(document.file).stem if document.folder else "model")
    names, elements = name_everything(mujoco, m, source)
    compiled = Compiled(mujoco, spec, m, source, document.file, name, names, elements, missing)
    refuse_numbers_that_are_not_finite(compiled)
    return compiled


@contextmanager
def warnings_into(mujoco: Any, notes: LoadNotes) -> Iterator[None]:
    """Notes what MuJoCo warns of; left alone it writes that to MUJOCO_LOG.TXT in the working directory."""
    said: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(said.append)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)
        for text in dict.fromkeys(" ".join(text.split()) for text in said):
            notes.add(KEPT, "MuJoCo's compiler", f"it warns: {text}", notes.file)


def load_spec(mujoco: Any, document: XmlDocument) -> Any:
    """The `MjSpec` of a file or a text."""
    if document.folder is None:
        return mujoco.MjSpec.from_string(document.text)
    return mujoco.MjSpec.from_file(os.path.abspath(document.file))


def compile_spec(mujoco: Any, spec: Any, missing: set[str], notes: LoadNotes) -> Any:
    """Compiles; a file that only now turns out to be missing gets a stand-in as well."""
    for _ in range(len(spec.meshes) + len(spec.textures) + len(spec.hfields) + 1):
        try:
            return spec.compile()
        except ValueError as error:
            found = MISSING.search(str(error))
            if found is None or not stand_in(mujoco, spec, os.path.basename(found.group(1)), missing, notes):
                raise
    return spec.compile()


def replace_missing_files(mujoco: Any, spec: Any, document: XmlDocument, notes: LoadNotes) -> set[str]:
    """Gives stand-ins to the meshes that are not where the file says; returns their names."""
    missing: set[str] = set()
    folder = Path.cwd() if document.folder is None else document.folder
    for mesh in spec.meshes:
        if mesh.file and "://" not in mesh.file and len(mesh.uservert) == 0:
            bases = (folder / (spec.meshdir or ""), folder, folder / (getattr(spec, "assetdir", "") or ""))
            if not any((base / mesh.file).is_file() for base in bases):
                stand_in(mujoco, spec, os.path.basename(mesh.file), missing, notes)
    return missing


def stand_in(mujoco: Any, spec: Any, basename: str, missing: set[str], notes: LoadNotes) -> bool:
    """Replaces what reads that file; False where nothing does."""
    replaced = False
    for mesh in spec.meshes:
        if mesh.file and os.path.basename(mesh.file) == basename:
            name = mesh.name or Path(mesh.file).stem
            notes.add(IGNORED, f"mesh '{mesh.file}'", f"file not found; {NO_MESH}", notes.file)
            notes.warn(f"mesh files not found ({NO_MESH})", f"'{mesh.file}'")
            mesh.name, mesh.file, mesh.scale = name, "", [1.0, 1.0, 1.0]
            mesh.uservert = TETRAHEDRON.ravel()
            mesh.userface = [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3]
            missing.add(name)
            replaced = True
    for hfield in spec.hfields:
        if hfield.file and os.path.basename(hfield.file) == basename:
            notes.add(IGNORED, f"hfield '{hfield.file}'", "file not found; heightfields are not read", notes.file)
            hfield.file, hfield.nrow, hfield.ncol, hfield.userdata = "", 2, 2, [0.0, 0.0, 0.0, 1.0]
            replaced = True
    for texture in spec.textures:
        files = [texture.file, *getattr(texture, "cubefiles", [])]
        if any(file and os.path.basename(file) == basename for file in files):
            notes.add(IGNORED, f"texture '{basename}'", "file not found; textures are not drawn", notes.file)
            texture.file = ""
            if hasattr(texture, "cubefiles"):
                texture.cubefiles = [""] * 6
            texture.builtin = mujoco.mjtBuiltin.mjBUILTIN_FLAT
            texture.width = texture.height = 8
            replaced = True
    return replaced


def refuse_inertia_of_missing(m: Any, spec: Any, missing: set[str], document: XmlDocument) -> None:
    """A body whose mass would come from a mesh that is not there."""
    for body in spec.bodies if missing else ():
        for geom in body.geoms:
            if geom.meshname in missing and body.id > 0 and not body.explicitinertial and m.body_mass[body.id] > 0.0:
                has_mass = geom.mass > 0.0 or (np.isnan(geom.mass) and geom.density > 0.0)
                if has_mass:
                    raise ParseError(
                        f"body '{body.name}' gets its mass from mesh '{geom.meshname}', whose file was not found. "
                        "Put the file there, or give the body an <inertial>.",
                        file=document.file,
                    )


def refuse_numbers_that_are_not_finite(compiled: Compiled) -> None:
    """MuJoCo's compiler lets NaN and infinities through."""
    m = compiled.m
    for field in FINITE_FIELDS:
        array = np.asarray(getattr(m, field), float)
        bad = np.flatnonzero([not np.all(np.isfinite(row)) for row in array])
        if not len(bad):
            continue
        prefix, _, what = field.partition("_")
        kind, index = KIND_OF_FIELD.get(prefix, prefix), int(bad[0])
        if prefix == "dof":
            index = int(m.dof_jntid[index])
        element = compiled.element(kind, index) if kind in compiled.elements else compiled.source.root
        value = array[bad[0]].tolist()
        raise element.error(f"{element.label}: its {what or field} is {value} once compiled; give finite numbers.")
    if not np.all(np.isfinite(np.asarray(m.opt.gravity))):
        raise compiled.source.root.error(f"<option gravity> is {m.opt.gravity.tolist()}; give finite numbers.")


def refusal(error: Exception, document: XmlDocument) -> ParseError:
    """MuJoCo's message in one line, with the line it names."""
    text = " ".join(str(error).split())
    found = LINE.search(text)
    line = int(found.group(1)) if found and int(found.group(1)) > 0 else document.root.line
    return ParseError(f"MuJoCo's compiler refuses it: {text}", file=document.file, line=line)


def name_everything(mujoco: Any, m: Any, source: Source) -> tuple[dict[str, list[str]], dict[str, list[XmlElement]]]:
    """Names, made up where there are none, and elements, by kind and index."""
    T = mujoco.mjtObj
    kinds = {
        "body": (T.mjOBJ_BODY, m.nbody),
        "joint": (T.mjOBJ_JOINT, m.njnt),
        "geom": (T.mjOBJ_GEOM, m.ngeom),
        "site": (T.mjOBJ_SITE, m.nsite),
        "actuator": (T.mjOBJ_ACTUATOR, len(m.actuator_trntype)),
        "equality": (T.mjOBJ_EQUALITY, m.neq),
        "tendon": (T.mjOBJ_TENDON, m.ntendon),
        "keyframe": (T.mjOBJ_KEY, m.nkey),
        "mesh": (T.mjOBJ_MESH, m.nmesh),
    }
    raw = {k: [mujoco.mj_id2name(m, int(t), i) or "" for i in range(n)] for k, (t, n) in kinds.items()}
    elements = {kind: elements_of(kind, raw[kind], source) for kind in kinds}
    names = {kind: made_unique(raw[kind], [f"{kind}_{i}" for i in range(len(raw[kind]))]) for kind in kinds}
    names["joint"] = made_unique(raw["joint"], joint_names(mujoco, m, names["body"]))
    for kind in ("geom", "site"):
        of_body = [names["body"][b] for b in getattr(m, f"{kind}_bodyid")]
        names[kind] = made_unique(raw[kind], [f"{body}_{kind}" for body in of_body])
    return names, elements


def joint_names(mujoco: Any, m: Any, bodies: Sequence[str]) -> list[str]:
    """Names for joints that have none: that of the body, with a number where it has several."""
    result = []
    for j in range(m.njnt):
        body = m.jnt_bodyid[j]
        several = m.body_jntnum[body] > 1
        result.append(f"{bodies[body]}_joint{j - m.body_jntadr[body]}" if several else bodies[body])
    return result


def made_unique(names: Sequence[str], fallbacks: Sequence[str]) -> list[str]:
    """The names, those that are empty replaced."""
    taken = set(names)
    result = []
    for name, fallback in zip(names, fallbacks, strict=True):
        candidate, count = fallback, 0
        while not name and candidate in taken:
            count += 1
            candidate = f"{fallback}_{count}"
        taken.add(name or candidate)
        result.append(name or candidate)
    return result


def elements_of(kind: str, names: Sequence[str], source: Source) -> list[XmlElement]:
    """The element of each, by order where nothing was copied and by name otherwise; else the root."""
    found = found_elements(kind, source)
    if len(found) == len(names) and all(
        not n or e.attributes.get("name", n) == n for e, n in zip(found, names, strict=True)
    ):
        return found
    by_name = {e.attributes["name"]: e for e in found if e.attributes.get("name")}
    return [by_name.get(name, source.root) for name in names]


def found_elements(kind: str, source: Source) -> list[XmlElement]:
    """Elements of a kind in MuJoCo's order."""
    if kind in ("actuator", "equality", "tendon", "keyframe"):
        return list(source.sections(kind))
    if kind == "mesh":
        return [element for element in source.sections("asset") if element.tag == "mesh"]
    worlds = [element for element in source.elements if element.tag == "worldbody"]
    bodies: list[list[XmlElement]] = [worlds]
    collect_bodies([child for world in worlds for child in world.children], bodies)
    if kind == "body":
        return [source.root, *(parts[0] for parts in bodies[1:])]
    tags = BODY_PARTS[kind]
    return [e for parts in bodies for part in parts for e in own_elements(part.children, tags)]


def collect_bodies(children: Sequence[XmlElement], bodies: list[list[XmlElement]]) -> None:
    """All <body> elements, depth first."""
    for child in children:
        if child.tag == "body":
            bodies.append([child])
        if child.tag in ("body", "frame", "replicate"):
            collect_bodies(child.children, bodies)


def own_elements(children: Sequence[XmlElement], tags: tuple[str, ...]) -> list[XmlElement]:
    """Those of one body, through the frames that group them."""
    found = []
    for child in children:
        if child.tag in tags:
            found.append(child)
        elif child.tag in ("frame", "replicate"):
            found.extend(own_elements(child.children, tags))
    return found
