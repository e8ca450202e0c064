"""Whatever of an SDFormat file no reader uses: listed once each by name, or refused where it is physics."""

from ..notes.leftovers import Leftovers, report_leftovers
from ..notes.load_notes import LoadNotes
from ..urdf.read_contact import PROXIMITY_TAGS
from ..urdf.read_hydroelastic import HYDROELASTIC_TAGS, OLD_TAG
from ..xml.tree import XmlElement
from .pose_graph import DEFORMABLE
from .read_contact import FILTER
from .read_custom import BALL, BUSHING, DISTANCE, NO_PHYSICS, SPRING
from .read_deformables import NUMBERS, WALL
from .read_shapes import without_prefix

Entry = tuple[set[str], set[str]]
NOTHING: Entry = (set(), set())
POSE = {"relative_to", "frame", "rotation_format", "degrees"}
NAMED_PARTS = {"link", "joint", "frame", "model", "include"}
AXIS: Entry = (set(), {"xyz", "use_parent_model_frame", "limit", "dynamics", "mimic"})
SHAPES: dict[str, Entry] = {
    "box": (set(), {"size"}),
    "sphere": (set(), {"radius"}),
    "cylinder": (set(), {"radius", "length"}),
    "capsule": (set(), {"radius", "length"}),
    "drake:capsule": (set(), {"radius", "length"}),
    "ellipsoid": (set(), {"radii"}),
    "drake:ellipsoid": (set(), {"a", "b", "c"}),
    "plane": (set(), {"normal"}),
    "mesh": (set(), {"uri", "scale"}),
    "empty": NOTHING,
}
POINTS = ("body_A", "p_AP", "body_B", "p_BQ")
CUSTOM: dict[str, set[str]] = {
    BALL: {f"{BALL}_{part}" for part in POINTS},
    DISTANCE: {f"{DISTANCE}_{part}" for part in (*POINTS, "distance", "stiffness", "damping")},
    SPRING: {f"{SPRING}_{part}" for part in (*POINTS, "free_length", "stiffness", "damping")},
    BUSHING: {f"drake:bushing_{k}_{w}" for k in ("torque", "force") for w in ("stiffness", "damping")}
    | {"drake:bushing_frameA", "drake:bushing_frameC"},
}
# What the readers read: attributes and children of each element; those that are not here hold a text alone.
READ: dict[str, Entry] = {
    "sdf": ({"version"}, {"world", "model"}),
    "gazebo": ({"version"}, {"world", "model"}),
    "world": ({"name"}, NAMED_PARTS | {"gravity"}),
    "model": (
        {"name", "canonical_link", "placement_frame"},
        NAMED_PARTS | {"pose", "static", "drake:joint", FILTER, *CUSTOM},
    ),
    "include": ({"merge"}, {"uri", "name", "pose", "static", "placement_frame"}),
    "frame": ({"name", "attached_to"}, {"pose"}),
    "pose": (POSE, set()),
    "link": (
        {"name"},
        {"pose", "inertial", "visual", "drake:visual", "collision", "gravity", "kinematic", "velocity_decay"}
        | {DEFORMABLE, WALL},
    ),
    "velocity_decay": (set(), {"linear", "angular"}),
    DEFORMABLE: (set(), {*NUMBERS, "drake:material_model"}),
    WALL: (set(), {"drake:point_on_plane", "drake:outward_normal"}),
    "inertial": ({"auto"}, {"pose", "mass", "inertia", "density"}),
    "inertia": (set(), {"ixx", "iyy", "izz", "ixy", "ixz", "iyz"}),
    "visual": (
        {"name"},
        {"pose", "geometry", "material", "drake:perception_properties", "drake:illustration_properties"},
    ),
    "drake:perception_properties": ({"enabled"}, set()),
    "drake:illustration_properties": ({"enabled"}, set()),
    "material": (set(), {"diffuse"}),
    "collision": ({"name"}, {"pose", "geometry", "surface", "density", "drake:proximity_properties"}),
    "surface": (set(), {"friction"}),
    "friction": (set(), {"ode"}),
    "ode": (set(), {"mu", "mu2"}),
    "drake:proximity_properties": (set(), {*PROXIMITY_TAGS, *HYDROELASTIC_TAGS, OLD_TAG}),
    "geometry": (set(), set(SHAPES)),
    "joint": (
        {"name", "type"},
        {"pose", "parent", "child", "axis", "axis2", "screw_thread_pitch", "thread_pitch", "drake:mimic"}
        | {"drake:rotor_inertia", "drake:gear_ratio", "drake:controller_gains"},
    ),
    "drake:mimic": ({"joint", "multiplier", "offset"}, set()),
    "drake:controller_gains": ({"p", "d"}, set()),
    "drake:joint": ({"name", "type"}, {"drake:parent", "drake:child", "drake:damping"}),
    "axis": AXIS,
    "axis2": (set(), {"xyz", "use_parent_model_frame", "limit", "dynamics"}),
    "xyz": ({"expressed_in"}, set()),
    "joint/axis/dynamics": NOTHING,
    "limit": (set(), {"lower", "upper", "effort", "velocity", "drake:acceleration"}),
    "dynamics": (set(), {"damping", "friction", "spring_reference", "spring_stiffness"}),
    "mimic": ({"joint", "axis"}, {"multiplier", "offset", "reference"}),
    FILTER: ({"name", "ignore"}, {"drake:member", "drake:member_group", "drake:ignored_collision_filter_group"}),
    **{tag: (set(), children) for tag, children in CUSTOM.items()},
    **SHAPES,
}
# Children that would change the motion: refused unless the caller asks for a warning.
PHYSICS = {
    **NO_PHYSICS,
    "population": "populations of models are not made; add each model",
    "state": "states of a world are not read; set positions and velocities of the model",
    "gripper": "grippers of Gazebo, which hold what they touch, are not simulated",
}
# Physics with a reader of its own, which refuses it with more to say.
REFUSED_BY_READERS = {"fluid_added_mass", "cone", "heightmap", "image", "polyline"}
GAZEBO, SENSOR, ODE = (
    "a setting of the Gazebo simulator",
    "sensors are not simulated",
    "a setting of other engines' contact",
)
DRAWING = "not drawn: shapes have one color"
REASONS = {
    "plugin": GAZEBO,
    "physics": "a setting of another engine; the time step is given to load",
    "scene": DRAWING,
    "gui": GAZEBO,
    "light": "lights are not drawn",
    "actor": "actors, which move by scripts, are not simulated",
    "atmosphere": GAZEBO,
    "magnetic_field": SENSOR,
    "spherical_coordinates": GAZEBO,
    "wind": "wind is not simulated",
    "enable_wind": "wind is not simulated",
    "road": "roads are not drawn",
    "audio": "sound is not simulated",
    "audio_source": "sound is not simulated",
    "audio_sink": "sound is not simulated",
    "projector": "projectors are not drawn",
    "particle_emitter": "particles are not drawn",
    "battery": "batteries are not simulated",
    "sensor": SENSOR,
    "self_collide": "as in Drake, links of a model touch one another unless filters or a joint between them say no",
    "allow_auto_disable": GAZEBO,
    "must_be_base_link": GAZEBO,
    "max_contacts": ODE,
    "laser_retro": SENSOR,
    "auto_inertia_params": 'with auto="true" volumes are exact: nothing is divided into cells',
    "cast_shadows": DRAWING,
    "transparency": DRAWING,
    "visibility_flags": SENSOR,
    "meta": GAZEBO,
    "ambient": DRAWING,
    "specular": DRAWING,
    "shininess": DRAWING,
    "emissive": DRAWING,
    "script": DRAWING,
    "shader": DRAWING,
    "lighting": DRAWING,
    "render_order": DRAWING,
    "double_sided": DRAWING,
    "pbr": DRAWING,
    "drake:diffuse_map": DRAWING,
    "drake:accepting_renderer": "there is one renderer",
    "submesh": "the whole mesh is used",
    "convex_decomposition": 'with meshes="hull" every mesh touches with its convex hull',
    "drake:declare_convex": 'with meshes="hull" every mesh touches with its convex hull',
    "bounce": ODE,
    "contact": ODE,
    "soft_contact": ODE,
    "torsional": "friction against turning is not simulated, as in Drake",
    "bullet": ODE,
    "fdir1": "friction is the same in all directions",
    "slip1": ODE,
    "slip2": ODE,
    "stiffness": "limits are stiff as the time step lets them",
    "dissipation": "limits are stiff as the time step lets them",
    "gearbox_ratio": "for gearbox joints alone",
    "gearbox_reference_body": "for gearbox joints alone",
    "initial_position": "joints start at zero; set default positions of the model",
    "model_state": "states are not read; set positions and velocities of the model",
    "namespace": "names of topics",
}
# Where the tag alone does not tell.
PHYSICS_IN = {("axis2", "mimic"): "a second axis that mimics a joint is not simulated"}
REASONS_IN = {
    ("plane", "size"): "a plane has no edges, as in Drake",
    **{
        (tag, "frame"): "only models and worlds have frames"
        for tag in ("link", "joint", "collision", "visual", "inertial")
    },
    ("joint", "physics"): "a setting of another engine",
}
DEFAULT_REASON = "nothing that mbjax reads in SDFormat"


def list_leftovers(roots: list[XmlElement], notes: LoadNotes) -> None:
    """One report entry per kind of leftover, with count and lines; refuses physics we cannot do."""
    found: Leftovers = {}
    for root in roots:
        _collect(root, notes, found)
    report_leftovers(found, notes)


def _collect(element: XmlElement, notes: LoadNotes, found: Leftovers) -> None:
    attributes, children = READ.get(element.tag, NOTHING)
    for attribute in element.attributes:
        if attribute not in attributes and not attribute.startswith(("xmlns", "xml:")):
            found.setdefault((f"<{element.tag} {attribute}>", DEFAULT_REASON), []).append(element)
    for child in element.children:
        if child.tag in children:
            _collect(without_prefix(child) if child.tag == "drake:visual" else child, notes, found)
        elif child.tag in PHYSICS or (element.tag, child.tag) in PHYSICS_IN:
            notes.unsupported(child, PHYSICS_IN.get((element.tag, child.tag)) or PHYSICS[child.tag])
        elif child.tag not in REFUSED_BY_READERS:
            reason = REASONS_IN.get((element.tag, child.tag)) or REASONS.get(child.tag)
            reason = reason or f"in <{element.tag}>: {DEFAULT_REASON}"
            found.setdefault((f"<{child.tag}>", reason), []).append(child)
