"""vdot = FD(q, v, tau) under gravity in every library, all from the same reduced URDF.

A builder imports its library itself: a missing one is an `ImportError` that the caller reports.
"""

import dataclasses
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from .coordinates import Convention, mbjax_convention, mujoco_convention, pinocchio_convention
from .robots import Robot, reduced_urdf


@dataclasses.dataclass(frozen=True)
class JaxProblem:
    """`forward_dynamics(model, q, v, tau)` of one world, in the peer's own coordinates."""

    forward_dynamics: Callable[[Any, Any, Any, Any], Any]
    model: Any
    convention: Convention
    looped: Callable[[Callable], Callable] = lambda loop: loop  # what its users put a loop of one world in


@dataclasses.dataclass(frozen=True)
class CompiledProblem:
    """A C or C++ library behind a Python binding, one world a call.

    `evaluate` and `trivial` take (q, v, tau); `trivial` passes through the same binding and does nothing.
    `derivatives` is None where the library has none.
    """

    evaluate: Callable[..., Any]
    trivial: Callable[..., Any]
    derivatives: Callable[..., Any] | None
    trivial_derivatives: Callable[..., Any] | None
    convention: Convention


@dataclasses.dataclass(frozen=True)
class Peer:
    """`dtypes` are those it can compute in."""

    name: str
    title: str
    pip_name: str
    build: Callable[[Robot, tuple[str, ...], str], JaxProblem | CompiledProblem]
    uses_jax: bool
    dtypes: tuple[str, ...] = ("f32", "f64")


def order_of(names: list[str], common: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(common.index(name) for name in names)


def build_mbjax(robot: Robot, joint_names: tuple[str, ...], dtype: str) -> JaxProblem:
    import mbjax

    model = load_mbjax(robot, dtype)

    def forward_dynamics(model: Any, q: Any, v: Any, tau: Any) -> Any:
        state = mbjax.State(q, v, np.zeros((), q.dtype))
        return mbjax.time_derivatives(model, state, mbjax.Inputs(applied_generalized_force=tau))[1]

    order = order_of(mbjax_joint_names(model), joint_names)
    convention = mbjax_convention(robot.is_floating, order)
    return JaxProblem(forward_dynamics, model, convention, mbjax.as_one_kernel)


def load_mbjax(robot: Robot, dtype: str, time_step: float = 0.0) -> Any:
    import mbjax

    width = {"f32": np.float32, "f64": np.float64}[dtype]
    return mbjax.load(reduced_urdf(robot), time_step=time_step, base=robot.base, actuators="file", dtype=width)


def mbjax_joint_names(model: Any) -> list[str]:
    return [joint.name for joint in model.layout.joints if joint.num_velocities == 1]


def build_frax_robot(robot: Robot, joint_names: tuple[str, ...]) -> tuple[Any, Convention]:
    """frax's own object, and its coordinates."""
    from frax.core.robot import Robot as FraxRobot

    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / f"{robot.name}.urdf"
        file.write_text(reduced_urdf(robot))
        model = FraxRobot(str(file), floating_base="quaternion" if robot.is_floating else None)
    names = list(model.joint_names)[6:] if robot.is_floating else list(model.joint_names)
    return model, mujoco_convention(robot.is_floating, order_of(names, joint_names))


def build_frax(robot: Robot, joint_names: tuple[str, ...], dtype: str) -> JaxProblem:
    model, convention = build_frax_robot(robot, joint_names)

    def forward_dynamics(_: Any, q: Any, v: Any, tau: Any) -> Any:
        return model.forward_dynamics(q, v, tau, None)

    return JaxProblem(forward_dynamics, None, convention)


def build_mjx(robot: Robot, joint_names: tuple[str, ...], dtype: str) -> JaxProblem:
    from mujoco import mjx

    mj_model, convention = build_mujoco_model(robot, joint_names)
    model = mjx.put_model(mj_model)
    data = mjx.make_data(model)

    def forward_dynamics(_: Any, q: Any, v: Any, tau: Any) -> Any:
        return mjx.forward(model, data.replace(qpos=q, qvel=v, qfrc_applied=tau)).qacc

    return JaxProblem(forward_dynamics, None, convention)


def build_mujoco_model(robot: Robot, joint_names: tuple[str, ...]) -> tuple[Any, Convention]:
    """The robot as MuJoCo compiles it, everything but smooth dynamics off."""
    import mujoco

    spec = mujoco.MjSpec.from_string(reduced_urdf(robot))
    if robot.is_floating:
        spec.worldbody.first_body().add_freejoint()
    spec.compiler.fusestatic = True
    off = mujoco.mjtDisableBit
    spec.option.disableflags = int(
        off.mjDSBL_CONSTRAINT | off.mjDSBL_CONTACT | off.mjDSBL_EQUALITY | off.mjDSBL_LIMIT | off.mjDSBL_FRICTIONLOSS
    )
    model = spec.compile()
    if np.any(model.dof_armature) or np.any(model.dof_damping):
        raise ValueError(f"{robot.name}: MuJoCo's model has armature or damping, the other peers have none.")
    first = 1 if robot.is_floating else 0
    names = [model.joint(i).name for i in range(first, model.njnt)]
    return model, mujoco_convention(robot.is_floating, order_of(names, joint_names))


def build_mujoco(robot: Robot, joint_names: tuple[str, ...], dtype: str) -> CompiledProblem:
    import mujoco

    model, convention = build_mujoco_model(robot, joint_names)
    data = mujoco.MjData(model)
    qpos, qvel, qfrc_applied, qacc = data.qpos, data.qvel, data.qfrc_applied, data.qacc

    def evaluate(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        qpos[:], qvel[:], qfrc_applied[:] = q, v, tau
        mujoco.mj_forward(model, data)
        return qacc

    def trivial(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        qpos[:], qvel[:], qfrc_applied[:] = q, v, tau
        mujoco.mj_tendon(model, data)  # the model has none
        return qacc

    return CompiledProblem(evaluate, trivial, None, None, convention)


def build_pinocchio_model(robot: Robot, joint_names: tuple[str, ...]) -> tuple[Any, Convention]:
    """Pinocchio's own model, and its coordinates."""
    import pinocchio

    base = (pinocchio.JointModelFreeFlyer(),) if robot.is_floating else ()
    model = pinocchio.buildModelFromXML(reduced_urdf(robot), *base)
    model.armature[:] = 0.0
    first = 2 if robot.is_floating else 1
    if any(model.joints[i].nq != 1 for i in range(first, model.njoints)):
        raise ValueError(f"{robot.name}: Pinocchio writes a continuous joint as (cos, sin); not covered here.")
    order = order_of(list(model.names)[first:], joint_names)
    return model, pinocchio_convention(robot.is_floating, order)


def build_pinocchio(robot: Robot, joint_names: tuple[str, ...], dtype: str) -> CompiledProblem:
    import pinocchio

    model, convention = build_pinocchio_model(robot, joint_names)
    data = model.createData()
    nothing = pinocchio.Model()
    no_data, empty = nothing.createData(), np.zeros(0)

    def evaluate(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        return pinocchio.aba(model, data, q, v, tau)

    def trivial(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        return pinocchio.aba(nothing, no_data, empty, empty, empty)

    def derivatives(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Any:
        return pinocchio.computeABADerivatives(model, data, q, v, tau)

    def trivial_derivatives(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Any:
        return pinocchio.computeABADerivatives(nothing, no_data, empty, empty, empty)

    return CompiledProblem(evaluate, trivial, derivatives, trivial_derivatives, convention)


PEERS = {
    peer.name: peer
    for peer in (
        Peer("mbjax", "mbjax", "mbjax", build_mbjax, True),
        Peer("frax", "frax", "frax", build_frax, True),
        Peer("mjx", "MJX forward, no constraints", "mujoco-mjx", build_mjx, True),
        Peer("mujoco", "MuJoCo C mj_forward, no constraints", "mujoco", build_mujoco, False, ("f64",)),
        Peer("pinocchio", "Pinocchio aba / derivatives", "pin", build_pinocchio, False, ("f64",)),
    )
}
