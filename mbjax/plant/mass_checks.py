"""Refuses joints that move nothing at finalize, as the mass matrix would be singular; names the body."""

import numpy as np

from mbjax.errors import ModelError
from mbjax.joints import AbstractJoint
from mbjax.model import Body
from mbjax.topology import TreeTopology

from .default_body_poses import pose_in_body
from .queries import PlantQueries

NEGLIGIBLE = 1e-12  # of lengths and of axes' components
NO_MOMENT = 2e-15  # of mass × length²: rounding in double precision; a needle's moment about itself may be 1e-7
REMEDY = "Give it mass and inertia, weld it, or give the joint's actuator a rotor inertia."


def reject_joints_that_move_nothing(plant: PlantQueries, topology: TreeTopology) -> None:
    """Refuses outermost bodies without the inertia their joint needs, and massless bodies between equal joints.

    Equal joints are two hinges on one line, or two slides along one axis.
    """
    exempt = {a.joint.index for a in plant.actuators if a.rotor_inertia * a.gear_ratio**2 > 0.0}
    exempt |= {j.index for j in plant.joints if np.all(j.armature > 0.0) and j.num_velocities}
    exempt |= {m.follower.index for m in plant.mimics}  # joints that mimic have no row in the mass matrix
    children: dict[int, list[int]] = {}
    for mobod, parent in enumerate(topology.mobod_parents):
        children.setdefault(parent, []).append(mobod)
    poses: dict[int, np.ndarray] = {}
    for mobod in range(1, topology.num_mobods):
        joint = plant.joints[topology.mobod_joints[mobod]]
        members = [plant.bodies[b] for b, m in enumerate(topology.body_mobods) if m == mobod]
        if joint.index in exempt or followers_carry_mass(plant, topology, mobod):
            continue
        outboard = [plant.joints[topology.mobod_joints[child]] for child in children.get(mobod, [])]
        if not outboard:
            poses = poses or placements(plant, topology)
            reject_light_tip(joint, members, poses)
        elif len(outboard) == 1 and outboard[0].index not in exempt and not any(map(mass_of, members)):
            poses = poses or placements(plant, topology)
            reject_repeated_direction(joint, outboard[0], members, poses)


def followers_carry_mass(plant: PlantQueries, topology: TreeTopology, leader: int) -> bool:
    """Whether a body with mass moves with a joint that mimics the joint of mobod `leader`."""
    following = [m for m, _ in topology.followers if topology.leaders[m] == leader]
    moved = np.any(topology.is_ancestor[:, following], axis=1)
    return any(mass_of(plant.bodies[b]) > 0.0 for b, mobod in enumerate(topology.body_mobods) if moved[mobod])


def reject_light_tip(joint: AbstractJoint, members: list[Body], X_MB: dict[int, np.ndarray]) -> None:
    """Refuses a tip that can translate but has no mass, or can turn but has no inertia (a hinge: about its axis)."""
    massless = not any(map(mass_of, members)) and not all(joint.angular_velocities)
    inertialess = any(joint.angular_velocities) and all(largest_moment_of(body) == 0.0 for body in members)
    what = "no rotational inertia"
    if joint.kind == "revolute" and not inertialess:
        inertialess = not any(has_moment_about_axis(body, X_MB[body.index], np.asarray(joint.axis)) for body in members)
        what = "no inertia about the joint's axis"
    if massless or inertialess:
        what = what if any(map(mass_of, members)) else "no mass"
        raise ModelError(
            f"{place_of(members)}body '{members[0].name}' has {what} and nothing outboard of it, so joint "
            f"'{joint.name}' ({joint.kind}) moves nothing and the mass matrix is singular. {REMEDY}"
        )


def has_moment_about_axis(body: Body, X_MB: np.ndarray, axis_M: np.ndarray) -> bool:
    """Whether a body's moment of inertia about an axis through Mo is more than rounding of its mass × length²."""
    if body.inertia is None or mass_of(body) == 0.0:
        return False
    xx, yy, zz, xy, xz, yz = np.asarray(body.inertia.unit_inertia.moments_products(), float)
    G_BBo_B = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    com, axis, p_BoMo_B = np.asarray(body.inertia.com, float), X_MB[:3, :3].T @ axis_M, -X_MB[:3, :3].T @ X_MB[:3, 3]
    about_Mo = np.sum(np.cross(axis, com - p_BoMo_B) ** 2) - np.sum(np.cross(axis, com) ** 2)
    square = np.abs(G_BBo_B).max() + com @ com + p_BoMo_B @ p_BoMo_B
    return bool(axis @ G_BBo_B @ axis + about_Mo > NO_MOMENT * square)


def reject_repeated_direction(
    inboard: AbstractJoint, outboard: AbstractJoint, members: list[Body], X_MB: dict[int, np.ndarray]
) -> None:
    """Refuses two joints on a massless body that allow the same motion: hinges on one line, slides along one axis."""
    if inboard.kind != outboard.kind or inboard.kind not in ("revolute", "prismatic"):
        return
    line_in, line_out = (
        axis_line(X_MB[frame.body.index] @ pose_in_body(frame), joint)
        for frame, joint in ((inboard.child, inboard), (outboard.parent, outboard))
    )
    parallel = np.linalg.norm(np.cross(line_in[1], line_out[1])) < NEGLIGIBLE
    between = np.linalg.norm(np.cross(line_out[0] - line_in[0], line_in[1]))
    if parallel and (inboard.kind == "prismatic" or between < NEGLIGIBLE):
        raise ModelError(
            f"{place_of(members)}body '{members[0].name}' has no mass and stands between joints '{inboard.name}' and "
            f"'{outboard.name}', which allow the same motion, so the mass matrix is singular. {REMEDY}"
        )


def axis_line(X: np.ndarray, joint: AbstractJoint) -> tuple[np.ndarray, np.ndarray]:
    """A point and the direction of a joint's axis, given the pose of its frame."""
    return X[:3, 3], X[:3, :3] @ np.asarray(joint.axis)


def placements(plant: PlantQueries, topology: TreeTopology) -> dict[int, np.ndarray]:
    """Poses X_MB (4, 4) of all bodies in their mobods' frames M, weld by weld."""
    X_MB: dict[int, np.ndarray] = {0: np.eye(4)}
    for body in sorted(range(1, topology.num_bodies), key=lambda b: topology.body_weld_levels[b]):
        outboard = plant.frames[topology.body_outboard_frames[body]]
        X = np.linalg.inv(pose_in_body(outboard))
        if topology.body_weld_levels[body] > 0:
            inboard = plant.frames[topology.body_inboard_frames[body]]
            X = X_MB[inboard.body.index] @ pose_in_body(inboard) @ X
        X_MB[body] = X
    return X_MB


def mass_of(body: Body) -> float:
    """Mass of a body in kg; zero without an inertia."""
    return 0.0 if body.inertia is None else float(body.inertia.mass)


def largest_moment_of(body: Body) -> float:
    """Largest entry of a body's rotational inertia about its origin, in kg m²."""
    if body.inertia is None:
        return 0.0
    return mass_of(body) * float(np.abs(np.asarray(body.inertia.unit_inertia.moments_products())).max())


def place_of(members: list[Body]) -> str:
    """Place of the first body as `file:line: `; empty where it is not known."""
    return "" if members[0].source is None else f"{members[0].source}: "
