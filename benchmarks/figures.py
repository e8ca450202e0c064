"""Two figures on the ground, described once and built in mbjax and in MuJoCo: an ant and a humanoid."""

import dataclasses
from typing import Any

import numpy as np

DAMPING = 0.5  # N m s
TIME_STEP = 0.002
FRICTION = 1.0

Point = tuple[float, float, float]
ORIGIN = (0.0, 0.0, 0.0)


@dataclasses.dataclass(frozen=True)
class Part:
    """A capsule from `start` to `end`, a ball where they coincide, on a hinge `at` a point of its parent.

    The first part is free. Without `touches` it passes through the ground.
    """

    name: str
    parent: str
    at: Point
    axis: Point
    start: Point
    end: Point
    radius: float
    mass: float
    gear: float = 0.0
    touches: bool = True


def ant() -> list[Part]:
    """14 degrees of freedom, 9 shapes."""
    parts = [Part("torso", "", (0.0, 0.0, 0.55), ORIGIN, ORIGIN, ORIGIN, 0.25, 4.0)]
    for i, (x, y) in enumerate(((1, 1), (-1, 1), (-1, -1), (1, -1))):
        out = (0.2 * x, 0.2 * y, 0.0)
        parts.append(Part(f"hip{i}", "torso", out, (0.0, 0.0, 1.0), ORIGIN, out, 0.06, 0.5, 10.0))
        axis, shin = (-y / np.sqrt(2.0), x / np.sqrt(2.0), 0.0), (0.2 * x, 0.2 * y, -0.4)
        parts.append(Part(f"shin{i}", f"hip{i}", out, axis, ORIGIN, shin, 0.06, 0.7, 10.0))
    return parts


def humanoid() -> list[Part]:
    """22 degrees of freedom, 13 shapes."""
    x, y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
    parts = [
        Part("torso", "", (0.0, 0.0, 1.3), ORIGIN, (0.0, 0.0, -0.1), (0.0, 0.0, 0.15), 0.12, 15.0),
        Part("head", "torso", (0.0, 0.0, 0.3), y, (0.0, 0.0, 0.08), (0.0, 0.0, 0.08), 0.09, 4.0, 5.0),
        Part("pelvis", "torso", (0.0, 0.0, -0.25), y, (0.0, -0.07, 0.0), (0.0, 0.07, 0.0), 0.09, 8.0, 40.0),
    ]
    for side, s in (("left", 1.0), ("right", -1.0)):
        hip, thigh, shin = f"{side}_hip", f"{side}_thigh", f"{side}_shin"
        arm, upper = f"{side}_shoulder", f"{side}_upper_arm"
        down = (0.0, 0.0, -0.38)
        parts += [
            Part(hip, "pelvis", (0.0, 0.1 * s, -0.04), x, ORIGIN, ORIGIN, 0.05, 1.0, 40.0, touches=False),
            Part(thigh, hip, ORIGIN, y, ORIGIN, down, 0.06, 5.0, 60.0),
            Part(shin, thigh, down, y, ORIGIN, (0.0, 0.0, -0.36), 0.05, 3.0, 40.0),
            Part(f"{side}_foot", shin, (0.0, 0.0, -0.38), y, (-0.06, 0.0, -0.03), (0.14, 0.0, -0.03), 0.035, 1.0, 10.0),
            Part(arm, "torso", (0.0, 0.18 * s, 0.12), y, ORIGIN, ORIGIN, 0.04, 0.5, 10.0, touches=False),
            Part(upper, arm, ORIGIN, x, ORIGIN, (0.0, 0.0, -0.26), 0.04, 2.0, 10.0),
            Part(f"{side}_forearm", upper, (0.0, 0.0, -0.28), y, ORIGIN, (0.0, 0.0, -0.22), 0.035, 1.3, 5.0),
        ]
    return parts


FIGURES = {"ant": ant, "humanoid": humanoid}


def build_mbjax(parts: list[Part], dtype: Any, approximation: str, limbs_touch: bool = False, **settings: Any) -> Any:
    """On the ground, which all shapes touch; each other only if they shall, and where they are not neighbours."""
    import mbjax
    from mbjax.geometry import Geometry, HalfSpace

    plant = mbjax.MultibodyPlant(TIME_STEP, discrete_contact_approximation=approximation, **settings)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), FRICTION)
    for k, part in enumerate(parts):
        inertia, geometry = capsule(part)
        plant.add_rigid_body(part.name, inertia)
        if part.touches:
            plant.register_collision_geometry(part.name, geometry, FRICTION)
        for other in parts[:k]:
            if not limbs_touch or is_beside(parts, part, other):
                plant.exclude_collisions_between(part.name, other.name)
        if part.parent:
            joint = mbjax.RevoluteJoint(
                part.name, part.parent, part.name, X_PF=np.array(part.at), axis=part.axis, damping=DAMPING
            )
            plant.add_joint(joint)
            plant.add_joint_actuator(part.name, part.name)
    return plant.finalize(dtype)


def is_beside(parts: list[Part], part: Part, other: Part) -> bool:
    """Whether `other` is the next part inboard, of those that touch anything."""
    by_name = {part.name: part for part in parts}
    parent = by_name.get(part.parent)
    while parent is not None and not parent.touches:
        parent = by_name.get(parent.parent)
    return other is parent


def capsule(part: Part) -> tuple[Any, Any]:
    """Its inertia about the part's origin, and its shape."""
    import mbjax
    from mbjax.geometry import Capsule, Geometry, Sphere

    start, end = np.array(part.start), np.array(part.end)
    length, middle = float(np.linalg.norm(end - start)), 0.5 * (start + end)
    if length == 0.0:
        inertia = mbjax.SpatialInertia.solid_sphere_with_mass(part.mass, part.radius)
        return inertia.shift(-middle), Geometry(part.name, Sphere(part.radius), translation=tuple(middle.tolist()))
    z = (end - start) / length
    x = np.cross([0.3, 0.5, 1.0] if abs(z[0]) < 0.9 else [0.0, 0.0, 1.0], z)
    x /= np.linalg.norm(x)
    R = np.stack([x, np.cross(z, x), z], axis=1)
    inertia = mbjax.SpatialInertia.solid_capsule_with_mass(part.mass, part.radius, length, z)
    rows = tuple(map(tuple, R.tolist()))
    shape = Capsule(part.radius, length)
    return inertia.shift(-middle), Geometry(part.name, shape, rotation=rows, translation=tuple(middle.tolist()))


def mjcf(parts: list[Part], limbs_touch: bool = False) -> str:
    """The same in MuJoCo's words, with the solver settings that MJX's own examples use."""
    children: dict[str, list[Part]] = {}
    for part in parts:
        children.setdefault(part.parent, []).append(part)

    def text(*numbers: float) -> str:
        return " ".join(f"{x:.17g}" for x in numbers)

    def body(part: Part) -> str:
        is_ball = part.start == part.end
        shape = f'type="sphere" pos="{text(*part.start)}"'
        if not is_ball:
            shape = f'type="capsule" fromto="{text(*part.start, *part.end)}"'
        joint = f'<joint name="{part.name}" type="hinge" axis="{text(*part.axis)}" damping="{DAMPING}"/>'
        inside = "".join(map(body, children.get(part.name, [])))
        return (
            f'<body name="{part.name}" pos="{text(*part.at)}">{joint if part.parent else "<freejoint/>"}'
            f'<geom {shape} size="{part.radius}" mass="{part.mass}" '
            f'contype="{int(part.touches and limbs_touch)}" conaffinity="{int(part.touches)}"/>'
            f"{inside}</body>"
        )

    beside = [(part.name, other.name) for part in parts for other in parts if is_beside(parts, part, other)]
    excluded = "".join(f'<exclude body1="{a}" body2="{b}"/>' for a, b in beside if limbs_touch)
    motors = "".join(f'<motor joint="{part.name}"/>' for part in parts if part.parent)
    return (
        f'<mujoco><option timestep="{TIME_STEP}" solver="Newton" iterations="4" ls_iterations="8"/><worldbody>'
        f'<geom type="plane" size="0 0 1" friction="{FRICTION}" contype="1" conaffinity="0"/>'
        f"{''.join(map(body, children['']))}</worldbody><contact>{excluded}</contact>"
        f"<actuator>{motors}</actuator></mujoco>"
    )
