"""Checks that the numbers of a model fit its structure: functions take one model; a batch needs `jax.vmap`."""

import functools
from typing import Any

from mbjax.errors import ModelError
from mbjax.topology import TreeTopology

from .model_layout import ModelLayout


def require_shapes(model: Any, call: str = "") -> None:
    """Raises `ModelError` for a batch of models, and for leaves whose shape the model's structure does not have."""
    place = f"{call}: " if call else ""
    for name, expected in expected_shapes(model.topology, model.layout):
        shape = getattr(getattr(model.parameters, name), "shape", expected)
        if shape == expected:
            continue
        if has_worlds_last(model):
            return
        if len(shape) > len(expected) and shape[len(shape) - len(expected) :] == expected:
            raise ModelError(
                f"{place}this is a batch of models: '{name}' has shape {shape}, that of one model has {expected}. "
                "Functions take one model: use jax.vmap, like jax.vmap(lambda model: mbjax.step(model, state))(models)."
            )
        raise ModelError(
            f"{place}the model's '{name}' has shape {shape}, its bodies, joints and actuators need {expected}. Change "
            "numbers by setters like mbjax.set_masses, or by equinox.tree_at with arrays of the same shape."
        )


def has_worlds_last(model: Any) -> bool:
    """Whether every leaf ends in one more axis, as in functions of many worlds, but not in users' code."""
    shapes = (
        (getattr(model.parameters, name).shape, known) for name, known in expected_shapes(model.topology, model.layout)
    )
    return all(shape[:-1] == expected for shape, expected in shapes)


@functools.lru_cache(maxsize=256)
def expected_shapes(topology: TreeTopology, layout: ModelLayout) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Shapes of `MultibodyParameters` that a structure asks for."""
    nb, nu, frames = topology.num_bodies - 1, len(layout.actuators), len(layout.offset_frames)
    njq, nd, nq, nv = (
        sum(topology.mobod_num_positions), topology.num_directions, topology.num_positions, topology.num_velocities,
    )  # fmt: skip
    sizes: dict[str, tuple[int, ...]] = {
        "body_mass": (nb,),
        "body_com": (nb, 3),
        "body_unit_inertia": (nb, 6),
        "frame_quaternion": (frames, 4),
        "frame_translation": (frames, 3),
        "joint_axis": (len(layout.axis_joints), 3),
        "screw_pitch": (len(layout.screw_joints),),
        "joint_damping": (nd,),
        "joint_friction": (nd,),
        "joint_armature": (nd,),
        "friction_velocity": (),
        "velocity_locked": (nv,),
        "effort_limit": (nu,),
        "rotor_inertia": (nu,),
        "gear_ratio": (nu,),
        "proportional_gain": (nu,),
        "derivative_gain": (nu,),
        "gravity": (3,),
        "default_positions": (nq,),
        "time_step": (),
    }
    for what, size in (("position", njq), ("velocity", nd), ("acceleration", nd)):
        sizes |= {f"{what}_{side}_limits": (size,) for side in ("lower", "upper")}
    return tuple(sizes.items())
