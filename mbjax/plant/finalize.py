"""Makes a `MultibodyModel` of a `MultibodyPlant`: all validation and all graph work."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mbjax.errors import ModelError
from mbjax.joints import QuaternionFloatingJoint, WeldJoint
from mbjax.model import (
    ActuatorInfo,
    BodyInfo,
    ContactLayout,
    Frame,
    FrameInfo,
    JointInfo,
    MultibodyModel,
    MultibodyParameters,
    ReportEntry,
)
from mbjax.model.elements import rotation_quaternion
from mbjax.model.lookup import scoped_name
from mbjax.model.model_layout import ModelLayout
from mbjax.model.parameters import leaf_of
from mbjax.spatial import RigidTransform
from mbjax.topology import JointEdge, TreeNode, TreeTopology, build_spanning_tree

from .constraints import with_constraints
from .deformables import PlantDeformables, finalize_deformables
from .finalize_contact import finalize_contact
from .keyframes import declared_keyframes
from .limit_notes import limits_not_enforced
from .mass_checks import reject_joints_that_move_nothing
from .mimics import default_positions_of, leaders_first, reject_contradicting_limits
from .number_checks import find_overflow
from .queries import PlantQueries
from .random_distributions import with_declared_distributions

DEFAULT_FRICTION_VELOCITY = 1e-2  # rad/s or m/s


def finalize(plant: PlantQueries, dtype: Any) -> MultibodyModel:
    """Makes the model: adds floating joints, numbers the tree, merges welded bodies, gathers numbers in arrays.

    An error leaves the plant as it was, to be mended and finalized again.
    """
    num_declared = len(plant.joints)
    try:
        return build_model(plant, dtype)
    except BaseException:
        del plant.joints[num_declared:]
        raise


def build_model(plant: PlantQueries, dtype: Any) -> MultibodyModel:
    """Builds the model; appends floating joints to the plant on the way."""
    edges = [
        JointEdge(j.index, j.name, j.parent.body.index, j.child.body.index, isinstance(j, WeldJoint), j.source or "")
        for j in plant.joints
    ]  # fmt: skip
    nodes = build_spanning_tree([b.name for b in plant.bodies], edges)
    nodes = add_floating_joints(plant, nodes)
    topology = build_topology(plant, nodes)
    overflow = find_overflow(plant, dtype)
    if overflow is not None:
        raise ModelError(overflow.message if overflow.source is None else f"{overflow.source}: {overflow.message}")
    reject_joints_that_move_nothing(plant, topology)
    reject_contradicting_limits(plant.mimics)
    contact, collision, left_out, soft = finalize_contact(plant, topology, dtype)
    layout = build_layout(plant, topology, contact, left_out)
    parameters = gather_parameters(plant, topology, dtype)
    elements = tuple(
        jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=dtype), element.resolve(plant))
        for element in plant.force_elements
    )
    model = MultibodyModel(
        topology=topology,
        layout=layout,
        parameters=parameters,
        collision=collision,
        force_elements=elements,
        deformables=finalize_deformables(plant, dtype, *soft) if isinstance(plant, PlantDeformables) else None,
    )
    model = with_declared_distributions(plant, with_constraints(plant, model, nodes))
    return dataclasses.replace(model, keyframes=declared_keyframes(plant, model)) if plant.keyframes else model


def add_floating_joints(plant: PlantQueries, nodes: list[TreeNode]) -> list[TreeNode]:
    """Adds a six-dof joint, named after the body, for each body without an inboard joint, as in Drake."""
    result = []
    taken = {(j.model_instance, j.name) for j in plant.joints}
    for node in nodes:
        if node.edge is not None:
            result.append(node)
            continue
        body = plant.bodies[node.body]
        name = body.name
        while (body.model_instance, name) in taken:
            name = f"_{name}"
        taken.add((body.model_instance, name))
        joint = QuaternionFloatingJoint(name, plant.world_frame, plant.frame(body))
        pose = plant.default_free_poses.get(body.index, plant.free_poses_of_files.get(body.index))
        if pose is not None:
            quaternion = rotation_quaternion(np.asarray(pose.rotation, dtype=float))
            joint.default_positions = np.concatenate([quaternion, np.asarray(pose.translation)])
        joint.index, joint.model_instance = len(plant.joints), body.model_instance
        plant.joints.append(joint)
        edge = JointEdge(joint.index, joint.name, 0, body.index, False)
        result.append(TreeNode(node.body, edge, node.parent_body, node.mobod))
    unused = set(plant.default_free_poses) - {n.body for n in nodes if n.edge is None}
    for body in unused:
        raise ModelError(
            f"set_default_free_body_pose('{plant.bodies[body].name}'): the body hangs on a joint and does not "
            "float; set the joint's default_positions."
        )
    return result


def build_topology(plant: PlantQueries, nodes: list[TreeNode]) -> TreeTopology:
    """Builds the tree: numbers of mobods, coordinates, welds and frames."""
    nb = len(plant.bodies)
    mobods: list[tuple] = [(-1, "world", -1, 0, 0, 0, 0, -1, -1)]
    body_mobods, weld_levels = [0] * nb, [0] * nb
    inboard_frames, outboard_frames = [-1] * nb, [-1] * nb
    nq = nv = 0
    for node in nodes:
        assert node.edge is not None  # add_floating_joints gave each body one
        joint = plant.joints[node.edge.joint]
        body_mobods[node.body] = node.mobod
        outboard_frames[node.body] = joint.child.index
        if isinstance(joint, WeldJoint):
            inboard_frames[node.body] = joint.parent.index
            weld_levels[node.body] = weld_levels[node.parent_body] + 1
            continue
        mobods.append(
            (
                body_mobods[node.parent_body], joint.kind, joint.index, nq, nv,
                joint.num_positions, joint.num_velocities, joint.parent.index, joint.child.index,
            )
        )  # fmt: skip
        nq, nv = nq + joint.num_positions, nv + joint.num_velocities
    mobod_of = {mobod[2]: number for number, mobod in enumerate(mobods)}  # by joint
    levels: list[int] = []
    for frame in plant.frames:
        levels.append(0 if frame.parent is None else levels[frame.parent.index] + 1)
    return TreeTopology(
        *map(tuple, zip(*mobods, strict=True)),
        body_mobods=tuple(body_mobods),
        body_weld_levels=tuple(weld_levels),
        body_inboard_frames=tuple(inboard_frames),
        body_outboard_frames=tuple(outboard_frames),
        frame_bodies=tuple(f.body.index for f in plant.frames),
        frame_parents=tuple(-1 if f.parent is None else f.parent.index for f in plant.frames),
        frame_levels=tuple(levels),
        followers=tuple((mobod_of[m.follower.index], mobod_of[m.leader.index]) for m in leaders_first(plant.mimics)),
    )


def build_layout(
    plant: PlantQueries, topology: TreeTopology, contact: ContactLayout, left_out: tuple[ReportEntry, ...]
) -> ModelLayout:
    """Builds the layout: names of elements and their places in arrays; `left_out` ends the report."""
    mobod_of_joint = {joint: mobod for mobod, joint in enumerate(topology.mobod_joints) if mobod}
    names, leader_of = plant.instance_names, {m.follower: m.leader.index for m in plant.mimics}
    joints = []
    for joint in plant.joints:
        mobod = mobod_of_joint.get(joint.index)
        all_q, all_v = (0, 0) if mobod is None else (topology.mobod_q_starts[mobod], topology.mobod_v_starts[mobod])
        mimics = leader_of.get(joint)
        joints.append(
            JointInfo(
                name=joint.name,
                kind=joint.kind,
                model_instance=joint.model_instance,
                scoped_name=scoped_name(joint, names),
                index=joint.index,
                parent_body=joint.parent.body.index,
                child_body=joint.child.body.index,
                parent_frame=joint.parent.index,
                child_frame=joint.child.index,
                mobod=-1 if mobod is None else mobod,
                q_start=0 if mobod is None else int(topology.positions_of_joints[all_q]),
                num_positions=joint.num_positions if mimics is None else 0,
                v_start=0 if mobod is None else int(topology.velocities_of_directions[all_v]),
                num_velocities=joint.num_velocities if mimics is None else 0,
                all_q_start=all_q,
                all_v_start=all_v,
                source=joint.source,
                has_position_limits=bool(np.isfinite(joint.position_limits).any()),
                has_friction=bool(joint.friction.any()),
                mimics=mimics,
            )
        )
    inboard = {joint.child_body: joint for joint in joints}
    with_axis = [i for i, j in enumerate(plant.joints) if j.has_axis]
    screws = [i for i, j in enumerate(plant.joints) if j.has_pitch]
    return ModelLayout(
        instance_names=tuple(plant.instance_names),
        gravity_enabled=tuple(plant.gravity_enabled),
        bodies=tuple(
            BodyInfo(
                name=b.name,
                index=b.index,
                model_instance=b.model_instance,
                scoped_name=scoped_name(b, names),
                body_frame=plant.frame(b).index,
                mobod_index=topology.body_mobods[b.index],
                inboard_joint=inboard.get(b.index),
                source=b.source,
            )
            for b in plant.bodies
        ),
        frames=tuple(
            FrameInfo(
                name=f.name,
                index=f.index,
                model_instance=f.model_instance,
                scoped_name=scoped_name(f, names),
                body=f.body.index,
                parent=None if f.parent is None else f.parent.index,
            )
            for f in plant.frames
        ),
        joints=tuple(joints),
        actuators=tuple(
            ActuatorInfo(
                name=a.name,
                model_instance=a.model_instance,
                scoped_name=scoped_name(a, names),
                index=a.index,
                joint=a.joint.index,
                velocity=joints[a.joint.index].v_start,
                control=a.control,
            )
            for a in plant.actuators
        ),
        axis_joints=tuple(with_axis),
        screw_joints=tuple(screws),
        offset_frames=tuple(f.index for f in plant.frames if f.parent is not None),
        visual=tuple(tuple(b.visual) for b in plant.bodies),
        collision=tuple(tuple(b.collision) for b in plant.bodies),
        contact=contact,
        report=(*limits_not_enforced(plant.joints, plant.time_step > 0.0), *plant.report.entries, *left_out),
        is_discrete=plant.time_step > 0.0,
    )


def gather_parameters(plant: PlantQueries, topology: TreeTopology, dtype: Any) -> MultibodyParameters:
    """Gathers the leaves: bodies, frames and actuators in declaration order, moving joints in depth-first order."""

    def array(values: Any, *shape: int) -> Any:
        return leaf_of(np.asarray(values, dtype=float).reshape(shape), dtype)

    bodies = plant.bodies[1:]
    offset_frames = [f for f in plant.frames if f.parent is not None]
    moving = [plant.joints[j] for j in topology.mobod_joints[1:]]
    with_axis = [j for j in plant.joints if j.has_axis]
    njq, nd, nu = sum(topology.mobod_num_positions), topology.num_directions, len(plant.actuators)
    mimics, of_mimics = leaders_first(plant.mimics), default_positions_of(plant.mimics)

    def coordinates(pick: Any, size: int, joints: Any = moving) -> Any:
        return array(np.concatenate([pick(j) for j in joints]) if moving else np.zeros(0), size)

    return MultibodyParameters(
        body_mass=array([0.0 if b.inertia is None else b.inertia.mass for b in bodies], len(bodies)),
        body_com=array([np.zeros(3) if b.inertia is None else b.inertia.com for b in bodies], len(bodies), 3),
        body_unit_inertia=array([unit_inertia_numbers(b.inertia) for b in bodies], len(bodies), 6),
        frame_quaternion=array([frame_quaternion(f) for f in offset_frames], len(offset_frames), 4),
        frame_translation=array([transform(f).translation for f in offset_frames], len(offset_frames), 3),
        joint_axis=array([j.axis for j in with_axis], len(with_axis), 3),
        screw_pitch=array([j.screw_pitch for j in plant.joints if j.has_pitch], -1),
        mimic_multiplier=array([m.multiplier for m in mimics], -1) if mimics else None,
        mimic_offset=array([m.offset for m in mimics], -1) if mimics else None,
        joint_damping=coordinates(lambda j: j.damping, nd),
        joint_friction=coordinates(lambda j: j.friction, nd),
        joint_armature=coordinates(lambda j: j.armature, nd),
        friction_velocity=array(DEFAULT_FRICTION_VELOCITY),
        velocity_locked=array(np.zeros(topology.num_velocities), -1),
        position_lower_limits=coordinates(lambda j: j.position_limits[0], njq),
        position_upper_limits=coordinates(lambda j: j.position_limits[1], njq),
        velocity_lower_limits=coordinates(lambda j: j.velocity_limits[0], nd),
        velocity_upper_limits=coordinates(lambda j: j.velocity_limits[1], nd),
        acceleration_lower_limits=coordinates(lambda j: j.acceleration_limits[0], nd),
        acceleration_upper_limits=coordinates(lambda j: j.acceleration_limits[1], nd),
        effort_limit=array([a.effort_limit for a in plant.actuators], nu),
        rotor_inertia=array([a.rotor_inertia for a in plant.actuators], nu),
        gear_ratio=array([a.gear_ratio for a in plant.actuators], nu),
        proportional_gain=array([a.kp or 0.0 for a in plant.actuators], nu),
        derivative_gain=array([a.kd or 0.0 for a in plant.actuators], nu),
        gravity=array(plant.gravity, 3),
        default_positions=coordinates(
            lambda j: j.default_positions, topology.num_positions, [j for j in moving if j not in of_mimics]
        ),
        time_step=array(plant.time_step),
    )


def unit_inertia_numbers(inertia: Any) -> np.ndarray:
    """Moments and products xx, yy, zz, xy, xz, yz of G_BBo_B, in m²; zero for a massless body."""
    if inertia is None:
        return np.zeros(6)
    G = inertia.unit_inertia
    return np.concatenate([np.asarray(G.moments, float), np.asarray(G.products, float)])


def transform(frame: Frame) -> RigidTransform:
    """Pose X_PF of an offset frame."""
    assert frame.X_PF is not None
    return frame.X_PF


def frame_quaternion(frame: Frame) -> np.ndarray:
    """Unit quaternion of R_PF, computed in double precision whatever JAX's default is."""
    R = np.asarray(transform(frame).rotation, dtype=float)
    return rotation_quaternion(R)
