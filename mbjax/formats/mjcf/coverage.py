"""What becomes of every element and attribute of MJCF: used, listed with a reason, or refused."""

from typing import Literal

Status = Literal["used", "listed", "refused"]

SOFT = "MuJoCo's soft contacts and limits; here contact is that of the plant, limits and constraints are exact"
APART = "MuJoCo holds geoms margin - gap of both apart, and starts to push at limits that far away; here at 0"
LOOKS = "how it looks in MuJoCo's viewer"
SOLVER = "settings of MuJoCo's solver"
USER = "data of the user"
CONDIM = "friction is that of points (condim 3); where all contacts of a geom have condim 1, it is zero"
OF_GEOMS = "a pair has the friction of its two geoms"
ROOM = "room for MuJoCo's data"
NOT_IN_STATE = "not part of a state"
UNKNOWN = "nothing that mbjax reads in an MJCF"

# Elements with all they hold.
LISTED_TAGS = {
    "camera": "cameras are not simulated",
    "light": LOOKS,
    "texture": "textures are not drawn",
    "layer": "textures are not drawn",
    "skin": LOOKS,
    "sensor": "sensors are not simulated; ask for positions, velocities and forces by name",
    "visual": LOOKS,
    "statistic": LOOKS,
    "custom": USER,
    "lengthrange": "settings of MuJoCo's compiler for muscles",
}
# Elements whose effect on the motion, where they have one in the compiled model, is refused or warned of.
REFUSED_TAGS = frozenset(
    {
        "plugin", "instance", "config", "flexcomp", "flex", "deformable", "flexstrain", "edge", "elasticity", "pin",
        "pulley", "hfield", "intvelocity", "orientation", "pid", "damper", "cylinder", "muscle", "adhesion", "dcmotor",
    }
)  # fmt: skip
# Attributes of elements that are read, or that MuJoCo's compiler has turned into something that is.
POSE = "pos quat axisangle xyaxes zaxis euler"
ACTUATOR = (
    "name class joint jointinparent tendon site slidersite cranksite cranklength refsite body lengthrange gear "
    "ctrllimited ctrlrange forcelimited forcerange armature damping kp kv dampratio inheritrange group"
)
USED_WORDS = {
    "mujoco": "model",
    "mujocoinclude": "model",
    "include": "file",
    "compiler": (
        "alignfree angle assetdir autolimits balanceinertia boundinertia boundmass conflict coordinate discardvisual "
        "eulerseq fitaabb fusestatic inertiafromgeom inertiagrouprange meshdir passthrough savecanonical savecompiled "
        "saveinertial settotalmass strippath texturedir usethread convexhull"
    ),
    "option": "gravity timestep density viscosity wind actuatorgroupdisable",
    "flag": (
        "actuation clampctrl constraint contact damper equality filterparent frictionloss gravity limit passive spring"
    ),
    "size": "nkey",
    "default": "class",
    "extension": "",
    "asset": "",
    "worldbody": "name",
    "body": f"name class childclass mocap gravcomp content_type file fuse {POSE}",
    "inertial": f"mass diaginertia fullinertia {POSE}",
    "joint": (
        "name class type axis pos springdamper limited actuatorfrclimited actuatorfrcrange stiffness range springref "
        "ref armature damping frictionloss active joint1 joint2 polycoef joint coef"
    ),
    "freejoint": "name align",
    "geom": (
        "name class type contype conaffinity group size friction mass density shellinertia fromto hfield mesh fitscale "
        f"rgba geom sidesite {POSE}"
    ),
    "site": f"name class fromto site {POSE}",
    "frame": f"name childclass {POSE}",
    "replicate": f"childclass count offset sep euler {POSE}",
    "attach": "model body frame prefix",
    "composite": "prefix type count offset vertex initial curve size quat",
    "mesh": ("name class content_type file vertex normal face refpos refquat scale maxhullvert inertia builtin params"),
    "model": "name file content_type",
    "material": "name class rgba",
    "pair": "name class geom1 geom2 condim",
    "exclude": "name body1 body2",
    "contact": "",
    "connect": "name class active body1 body2 anchor site1 site2",
    "weld": "name class active body1 body2 anchor relpose site1 site2",
    "equality": "active",
    "tendon": (
        "name class active tendon1 tendon2 polycoef limited range stiffness springlength damping frictionloss armature"
    ),
    "fixed": "name class limited range stiffness springlength damping frictionloss armature",
    "spatial": "name class limited range stiffness springlength damping frictionloss armature",
    "actuator": "",
    "general": f"{ACTUATOR} gainprm gaintype biasprm biastype dyntype actlimited actrange dynprm actdim actearly",
    "motor": ACTUATOR,
    "position": f"{ACTUATOR} timeconst",
    "velocity": ACTUATOR,
    "keyframe": "",
    "key": "name time qpos qvel",
}
USED = {tag: frozenset(words.split()) for tag, words in USED_WORDS.items()}
LISTED: dict[str, str] = {
    **dict.fromkeys(("solref", "solimp", "solreflimit", "solimplimit", "solreffriction", "solimpfriction"), SOFT),
    **dict.fromkeys(("solmix", "priority", "torquescale"), SOFT),
    **dict.fromkeys(("margin", "gap"), APART),
    "condim": CONDIM,
    "user": USER,
    "group": LOOKS,
    "sleep": SOLVER,
    "simple": SOLVER,
    **dict.fromkeys(("material", "texrepeat", "texuniform", "shininess", "specular", "reflectance", "emission"), LOOKS),
    **dict.fromkeys(("texture", "metallic", "roughness", "texcoord", "smoothnormal", "width", "rgba"), LOOKS),
    "castshadow": LOOKS,
    **dict.fromkeys(("ctrl", "act", "mpos", "mquat", "plastic"), NOT_IN_STATE),
}
LISTED_OF: dict[tuple[str, str], str] = {
    ("pair", "friction"): OF_GEOMS,
    **{("site", attribute): LOOKS for attribute in ("size", "type", "mesh")},
    **{("geom", attribute): "of a fluid, which is refused" for attribute in ("fluidshape", "fluidcoef")},
}
# Refused where the compiled model has them other than zero.
REFUSED_OF: dict[str, frozenset[str]] = {
    "geom": frozenset({"adhesion", "surfacevel"}),
    "pair": frozenset({"adhesion"}),
    "joint": frozenset({"springyield", "actuatorgravcomp"}),
    **dict.fromkeys(
        ("fixed", "spatial", "tendon"), frozenset({"springyield", "actuatorfrclimited", "actuatorfrcrange"})
    ),
    **dict.fromkeys(
        ("general", "motor", "position", "velocity"),
        frozenset({"delay", "interp", "nsample", "input", "ffrange", "velrange"}),
    ),
}
WHOLE = {"option": SOLVER, "flag": SOLVER, "size": ROOM}


def status_of(tag: str, attribute: str | None = None) -> tuple[Status, str] | None:
    """Status and reason of an element, or of its attribute; None where neither is known."""
    if tag in LISTED_TAGS:
        return "listed", LISTED_TAGS[tag]
    if tag in REFUSED_TAGS:
        return "refused", "where it acts on the motion"
    if tag not in USED:
        return None
    if attribute is None or attribute in USED[tag]:
        return "used", ""
    if attribute in REFUSED_OF.get(tag, ()):
        return "refused", "where it is not zero"
    reason = LISTED_OF.get((tag, attribute)) or LISTED.get(attribute) or WHOLE.get(tag)
    return None if reason is None else ("listed", reason)
