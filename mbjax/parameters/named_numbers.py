"""Where the numbers of each element stand in a model's leaves, by the element's name."""

from collections.abc import Callable

from mbjax.joints import JOINT_KINDS
from mbjax.model import MultibodyModel

Places = dict[str, tuple[tuple[int, ...], tuple[str, ...]]]  # by element: places in the flat leaf, component names
XYZ = ("x", "y", "z")


def unique_names(names: tuple[str, ...], scoped: tuple[str, ...]) -> tuple[str, ...]:
    """Short names where they are unique, else names with their model instance."""
    return tuple(scoped[i] if names.count(name) > 1 else name for i, name in enumerate(names))


def body_labels(model: MultibodyModel) -> tuple[str, ...]:
    """Names of bodies, the world first, with the model instance where it is needed."""
    return unique_names(model.body_names, tuple(body.scoped_name for body in model.layout.bodies))


def joint_labels(model: MultibodyModel) -> tuple[str, ...]:
    """Names of joints, with the model instance where it is needed."""
    return unique_names(model.joint_names, tuple(joint.scoped_name for joint in model.layout.joints))


def of_bodies(width: int, components: tuple[str, ...] = ("",)) -> Callable[[MultibodyModel], Places]:
    """Places of numbers by body, the world left out."""

    def places(model: MultibodyModel) -> Places:
        return {
            name: (tuple(range(i * width, i * width + len(components))), components)
            for i, name in enumerate(body_labels(model)[1:])
        }

    return places


def of_joints(model: MultibodyModel) -> Places:
    """Places of numbers by direction of joints, those that mimic included."""
    found = {}
    for label, joint in zip(joint_labels(model), model.layout.joints, strict=True):
        rows = tuple(range(joint.all_v.start, joint.all_v.stop))
        if rows and joint.mobod > 0:
            found[label] = rows, JOINT_KINDS[joint.kind].velocity_suffixes if len(rows) > 1 else ("",)
    return found


def of_positions(model: MultibodyModel) -> Places:
    """Places of numbers by position of joints without a quaternion, whose four numbers belong together."""
    found = {}
    for label, joint in zip(joint_labels(model), model.layout.joints, strict=True):
        kind = JOINT_KINDS[joint.kind]
        if not joint.num_positions:
            continue
        rows = tuple(range(joint.q_start, joint.q_start + joint.num_positions))
        first = 4 if kind.has_quaternion else 0  # the translation of a floating joint
        names = kind.position_suffixes[first:] if len(rows) > 1 else ("",)
        found[label] = rows[first:], tuple(names)
    return found


def of_actuators(model: MultibodyModel) -> Places:
    """Places of numbers by actuator."""
    labels = unique_names(model.actuator_names, tuple(a.scoped_name for a in model.layout.actuators))
    return {label: ((i,), ("",)) for i, label in enumerate(labels)}


def of_frames(width: int) -> Callable[[MultibodyModel], Places]:
    """Places of numbers by frame that has a pose: those of joints are `{joint}_parent` and `{joint}_child`."""

    def places(model: MultibodyModel) -> Places:
        frames = model.layout.frames
        labels = unique_names(model.frame_names, tuple(frame.scoped_name for frame in frames))
        return {
            labels[index]: (tuple(range(row * width, row * width + 3)), XYZ)
            for row, index in enumerate(model.layout.offset_frames)
        }

    return places


def of_geometries(field: str | None) -> Callable[[MultibodyModel], Places]:
    """Places of numbers by collision geometry that may touch, of those that have the number."""

    def places(model: MultibodyModel) -> Places:
        rows = [
            i if field is None else getattr(record, field) for i, record in enumerate(model.layout.contact.geometries)
        ]
        return {
            name: ((row,), ("",)) for name, row in zip(model.collision_geometry_names, rows, strict=True) if row >= 0
        }

    return places


def of_sizes(model: MultibodyModel) -> Places:
    """Places of the lengths of collision geometries that may touch, in the order of the shape's fields."""
    found = {}
    for name, record in zip(model.collision_geometry_names, model.layout.contact.geometries, strict=True):
        rows = tuple(range(record.size_start, record.size_start + record.num_sizes))
        if rows:
            found[name] = rows, tuple(map(str, range(len(rows)))) if len(rows) > 1 else ("",)
    return found


def of_geometry_places(model: MultibodyModel) -> Places:
    """Places of the translations of collision geometries that may touch."""
    return {name: ((3 * i, 3 * i + 1, 3 * i + 2), XYZ) for i, name in enumerate(model.collision_geometry_names)}


def of_the_whole(what: str, components: tuple[str, ...]) -> Callable[[MultibodyModel], Places]:
    """Places of numbers that there are once."""

    def places(model: MultibodyModel) -> Places:
        del model
        return {what: (tuple(range(len(components))), components)}

    return places


def of_the_time_step(model: MultibodyModel) -> Places:
    """The place of the time step; a continuous model has none."""
    return {"world": ((0,), ("",))} if model.is_discrete else {}


def of_deformables(model: MultibodyModel) -> Places:
    """Places of numbers of which each deformable body has one."""
    bodies = () if model.deformables is None else model.deformables.layout.bodies
    return {label: ((body.index,), ("",)) for label, body in zip(names_of_deformables(model), bodies, strict=True)}


def of_deformables_with_dissipation(model: MultibodyModel) -> Places:
    """Places of the dissipation of deformable bodies to which one was given."""
    bodies = () if model.deformables is None else model.deformables.layout.bodies
    named = zip(names_of_deformables(model), bodies, strict=True)
    return {label: ((body.dissipation_index,), ("",)) for label, body in named if body.dissipation_index >= 0}


def names_of_deformables(model: MultibodyModel) -> tuple[str, ...]:
    """Names of the deformable bodies, with their model instances where several share one."""
    if model.deformables is None:
        return ()
    scoped = tuple(body.scoped_name for body in model.deformables.layout.bodies)
    return tuple(unique_names(model.deformables.names, scoped))


def of_materials(what: str) -> Callable[[MultibodyModel], Places]:
    """Places of numbers by deformable body: one, or one for each element."""

    def places(model: MultibodyModel) -> Places:
        if model.deformables is None:
            return {}
        layout, found = model.deformables.layout, {}
        for label, body in zip(names_of_deformables(model), layout.bodies, strict=True):
            at = layout.numbers_of(what, body.index)
            count = at.stop - at.start
            found[label] = tuple(range(at.start, at.stop)), tuple(map(str, range(count))) if count > 1 else ("",)
        return found

    return places
