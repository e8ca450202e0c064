"""Public entries to parsing: `Parser(plant).add_models(file)` and `load(file)`, which also finalizes."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from mbjax.errors import ModelError
from mbjax.geometry import Geometry, HalfSpace, ProximityProperties
from mbjax.model import MultibodyModel
from mbjax.plant import MultibodyPlant
from mbjax.plant.contact_settings import ContactSettings
from mbjax.plant.number_checks import float_type

from .directives import DirectivesReader, find_directives
from .mjcf import read_mjcf
from .notes.load_notes import LoadNotes
from .records.plant_building import ACTUATORS, BASES, add_robots
from .records.robot_records import RobotRecord
from .sdf import Options as SdfOptions
from .sdf import read_sdf
from .urdf.reader import read_urdf
from .xacro import expand_xacro, is_xacro
from .xml.source import XmlDocument, read_xml

SDF_ROOTS = ("sdf", "gazebo")


class Parser:
    """Adds the robots of files to a plant; the options hold for all files that it reads.

    `package_map` maps the names in `package://` paths to folders. `on_unsupported="warn"` goes on
    without physics that mbjax cannot do, instead of refusing the file; `inertia="error"` refuses mass
    properties no body can have, instead of keeping them with a warning. `base="fixed"` welds links without a
    parent joint to the world, `"floating"` gives them a floating joint, `"file"` adds nothing: then they
    float from `finalize` on. `mimic="couple"` keeps the mimic relations of joints by coupler constraints, named
    `instance::joint mimics leader`, `"eliminate"` takes their coordinates away (`plant.add_mimic`), `"free"` drops the
    relations. `meshes="hull"` lets collision meshes touch with their convex hulls, which costs far more than
    simple shapes; with `"none"` they touch nothing. `actuators="joints"` gives each joint of one degree of freedom that
    the file drives by no actuator one of its own name, with the joint's effort limit; `"file"` takes those of the file,
    and so does None, which warns where joints have effort limits and none has an actuator. With names or patterns of
    joints, `actuators=["shoulder"]`, these are driven and no others, by the file's actuators or by ones of their name.
    `xacro_arguments` are those of `<xacro:arg>`; files called `*.xacro` are expanded, others and texts where arguments
    are given, be they `{}`. This evaluates expressions of the file as Python: load only those you trust. `plant.report`
    says what became of each part of a file.
    """

    def __init__(
        self,
        plant: MultibodyPlant,
        *,
        package_map: Mapping[str, str | os.PathLike] | None = None,
        on_unsupported: Literal["error", "warn"] = "error",
        inertia: Literal["warn", "error"] = "warn",
        base: Literal["file", "fixed", "floating"] = "file",
        mimic: Literal["couple", "eliminate", "free"] = "couple",
        meshes: Literal["hull", "none"] = "none",
        actuators: Literal["file", "joints"] | Sequence[str] | None = None,
        xacro_arguments: Mapping[str, str | float | bool] | None = None,
    ):
        if not isinstance(plant, MultibodyPlant):
            raise ModelError(f"Parser: expected a MultibodyPlant, got {type(plant).__name__}.")
        _require_choice("on_unsupported", on_unsupported, ("error", "warn"))
        _require_choice("inertia", inertia, ("warn", "error"))
        _require_choice("base", base, BASES)
        _require_choice("mimic", mimic, ("couple", "eliminate", "free"))
        _require_choice("meshes", meshes, ("hull", "none"))
        if isinstance(actuators, str):
            _require_choice("actuators", actuators, ACTUATORS)
        elif actuators is not None and not all(isinstance(name, str) for name in actuators):
            raise ModelError(f"Parser: actuators must be 'file', 'joints' or names of joints, got {actuators!r}.")
        self.plant = plant
        self.package_map = _checked_package_map({} if package_map is None else package_map)
        self.on_unsupported = on_unsupported
        self.inertia = inertia
        self.base = base
        self.mimic = mimic
        self.meshes = meshes
        self.actuators = actuators
        self.xacro_arguments = xacro_arguments

    def add_models(self, path_or_xml_text: str | os.PathLike) -> list[int]:
        """Adds what a URDF, SDFormat, MJCF or directives file holds, or its text; returns the model instances.

        The name of a bundled model, such as "arm", stands for its file where there is no file of that name.
        The instance carries the robot's name, or `name_1`, … where that is taken; each model of an SDFormat file has
        one, those in others named `outer::inner`. An error leaves the plant unchanged.
        """
        return self._add_models(path_or_xml_text)

    def _add_models(
        self, path_or_xml_text: str | os.PathLike, dtype: Any = None, is_of_caller: bool = True
    ) -> list[int]:
        """Adds the models, one stack frame below `add_models` and `load`: warnings then point at the caller's line."""
        if self.plant.is_finalized:
            raise ModelError(
                "Parser.add_models: the plant is finalized and takes no further elements. "
                "Load the files before finalize()."
            )
        directives = find_directives(path_or_xml_text)
        if directives is None:
            notes = LoadNotes("", self.on_unsupported)
            document = self._document(path_or_xml_text, notes, self.xacro_arguments)
            robots = self._read(document, notes)
        else:
            notes = LoadNotes(directives.file, self.on_unsupported)
            reader = DirectivesReader(
                self.package_map,
                lambda path: self._read(self._document(Path(path), notes, None, may_quote=False), notes),
                notes,
            )
            robots = reader.read(directives)
        of_leaves = float_type("load", dtype)
        return add_robots(self.plant, robots, notes, self.base, self.actuators, of_leaves, is_of_caller=is_of_caller)

    def _document(
        self,
        path_or_xml_text: str | os.PathLike,
        notes: LoadNotes,
        xacro_arguments: Mapping[str, Any] | None,
        may_quote: bool = True,
    ) -> XmlDocument:
        """The XML of a file or text, expanded where it is xacro; files of directives share the arguments."""
        if not is_xacro(path_or_xml_text, xacro_arguments):
            document, said = read_xml(path_or_xml_text, may_quote=may_quote), None
        else:
            is_only_one = xacro_arguments is self.xacro_arguments
            document, said = expand_xacro(
                path_or_xml_text, self.xacro_arguments, self.package_map, all_arguments_known=is_only_one
            )
        notes.file = notes.file or document.file
        if said is not None:
            notes.expanded(document.root.place, said, self.xacro_arguments or {})
        return document

    def _read(self, document: XmlDocument, notes: LoadNotes) -> list[RobotRecord]:
        """The robots of a file in the format that its outermost element tells."""
        hulls = self.meshes == "hull"
        if document.root.tag in SDF_ROOTS:
            return read_sdf(document, notes, SdfOptions(self.package_map, self.inertia, self.mimic, hulls))
        if document.root.tag == "mujoco":
            return [read_mjcf(document, notes, self.package_map, self.mimic, hulls)]
        return [read_urdf(document, notes, self.package_map, self.inertia, self.mimic, hulls)]


def load(
    path_or_xml_text: str | os.PathLike,
    *,
    time_step: float = 0.0,
    base: Literal["file", "fixed", "floating"] = "file",
    package_map: Mapping[str, str | os.PathLike] | None = None,
    on_unsupported: Literal["error", "warn"] = "error",
    inertia: Literal["warn", "error"] = "warn",
    mimic: Literal["couple", "eliminate", "free"] = "couple",
    contact_model: Literal["point", "hydroelastic", "hydroelastic_with_fallback", "none"] | None = None,
    discrete_contact_approximation: Literal["sap", "similar", "lagged"] = "sap",
    ground: bool | float | tuple[float, float] | ProximityProperties = False,
    contact_pairs: Sequence[tuple[str, str]] | None = None,
    meshes: Literal["hull", "none"] = "none",
    actuators: Literal["file", "joints"] | Sequence[str] | None = None,
    xacro_arguments: Mapping[str, str | float | bool] | None = None,
    dtype: Any = None,
) -> MultibodyModel:
    """Loads a model from a URDF, SDFormat, MJCF or directives file, its text, or a bundled model's name like "arm".

    The options are those of `MultibodyPlant` and `Parser`.
    `ground` adds what a file lacks, the half-space z <= 0 of the world as collision geometry "ground": True for a
    friction of 1, a coefficient, a (static, dynamic) pair or `ProximityProperties`. `contact_pairs` says what may
    touch, as `keep_contact_only` does: `[("*foot*", "ground")]`. Either turns contact on. Without them and a
    `contact_model` a robot's links pass through one another, as there are hundreds of pairs within a robot. A plant, by
    contrast, has contact from the start: `contact_model="hydroelastic_with_fallback"`.
    """
    plant = MultibodyPlant(
        time_step,
        contact_model=_contact_model(contact_model, ground, contact_pairs),
        discrete_contact_approximation=discrete_contact_approximation,
    )
    parser = Parser(
        plant,
        package_map=package_map,
        on_unsupported=on_unsupported,
        inertia=inertia,
        base=base,
        mimic=mimic,
        meshes=meshes,
        actuators=actuators,
        xacro_arguments=xacro_arguments,
    )
    parser._add_models(path_or_xml_text, dtype, is_of_caller=False)
    if ground is not False:
        properties = ProximityProperties() if ground is True else ground
        plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), properties)
    if contact_pairs is not None:
        plant.keep_contact_only(contact_pairs)
    return plant.finalize(dtype)


def _contact_model(contact_model: str | None, ground: Any, contact_pairs: Any) -> str:
    """The contact model that the options of `load` ask for: contact where something needs it."""
    asking = [
        name for name, given in (("ground", ground is not False), ("contact_pairs", contact_pairs is not None)) if given
    ]
    if contact_model == "none" and asking:
        raise ModelError(
            f"load: contact_model='none' asks for no contact, {' and '.join(f'{name}=' for name in asking)} for some; "
            "leave contact_model out."
        )
    return (ContactSettings.contact_model if asking else "none") if contact_model is None else contact_model


def _require_choice(option: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ModelError(f"{option}={value!r}: choose one of {', '.join(repr(c) for c in choices)}.")


def _checked_package_map(package_map: Mapping[str, str | os.PathLike]) -> dict[str, Path]:
    if not isinstance(package_map, Mapping):
        raise ModelError(f"package_map: expected a dict from package name to folder, got {type(package_map).__name__}.")
    folders = {}
    for name, folder in package_map.items():
        if not isinstance(name, str) or not isinstance(folder, str | os.PathLike):
            raise ModelError(f"package_map[{name!r}] = {folder!r}: expected names to folders (str or Path).")
        folders[name] = Path(folder).expanduser()
        if not folders[name].is_dir():
            raise ModelError(f"package_map['{name}'] = '{folder}': there is no such folder.")
    return folders
