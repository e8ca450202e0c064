"""Scenes of hydroelastic contact as SDFormat that Drake and mbjax both read, and runs of them in Drake."""

import logging
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from pydrake.multibody.parsing import Parser as DrakeParser
from pydrake.multibody.plant import AddMultibodyPlant, MultibodyPlantConfig
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

import mbjax

DT = 0.005
GROUND = """<model name="floor"><static>true</static><link name="floor"><collision name="top"><geometry>
  <plane><normal>0 0 1</normal></plane></geometry><drake:proximity_properties><drake:rigid_hydroelastic/>
  <drake:mu_dynamic>0.5</drake:mu_dynamic></drake:proximity_properties></collision></link></model>"""
TABLE = """<model name="floor"><static>true</static><link name="floor"><collision name="top"><pose>0 0 -0.5 0 0 0</pose>
  <geometry><box><size>2 2 1</size></box></geometry><drake:proximity_properties><drake:rigid_hydroelastic/>
  <drake:mu_dynamic>0.5</drake:mu_dynamic></drake:proximity_properties></collision></link></model>"""
BALL = "<sphere><radius>0.1</radius></sphere>"
SOFT = """<drake:compliant_hydroelastic/><drake:hydroelastic_modulus>{modulus}</drake:hydroelastic_modulus>
  <drake:mesh_resolution_hint>0.05</drake:mesh_resolution_hint><drake:mu_dynamic>0.6</drake:mu_dynamic>
  <drake:hunt_crossley_dissipation>2</drake:hunt_crossley_dissipation>
  <drake:relaxation_time>0.03</drake:relaxation_time>"""
HARD = "<drake:rigid_hydroelastic/><drake:mu_dynamic>0.9</drake:mu_dynamic>"


def inertial(mass: float, moment: float) -> str:
    """A body of this mass whose moments of inertia are alike."""
    moments = "".join(f"<{i}>{moment}</{i}>" for i in ("ixx", "iyy", "izz"))
    return f"<inertial><mass>{mass}</mass><inertia>{moments}</inertia></inertial>"


def link_of(name: str, shape: str, properties: str, mass: float = 1.0, moment: float = 0.004) -> str:
    return (
        f'<link name="{name}">{inertial(mass, moment)}<collision name="skin"><geometry>{shape}</geometry>'
        f"<drake:proximity_properties>{properties}</drake:proximity_properties></collision></link>"
    )


def block(name: str, size: str = "0.1 0.16 0.2", modulus: float = 2e5) -> str:
    shape = f"<box><size>{size}</size></box>"
    return f'<model name="{name}">{link_of(name, shape, SOFT.format(modulus=modulus))}</model>'


def world_of(*models: str) -> str:
    content = "".join(models)
    return f'<sdf version="1.9" xmlns:drake="http://drake.mit.edu"><world name="w">{content}</world></sdf>'


def slide(name: str, parent: str, child: str, axis: str) -> str:
    ends = f"<parent>{parent}</parent><child>{child}</child>"
    return f'<joint name="{name}" type="prismatic">{ends}<axis><xyz>{axis}</xyz></axis></joint>'


def finger(name: str, x: float) -> str:
    shape = "<geometry><box><size>0.02 0.06 0.08</size></box></geometry>"
    pad = f"{shape}<drake:proximity_properties>{HARD}</drake:proximity_properties>"
    body = f'{inertial(0.2, 0.001)}<collision name="pad">{pad}</collision>'
    return f'<link name="{name}"><pose>{x} 0 0.1 0 0 0</pose>{body}</link>'


GRIPPER = (
    f'<model name="gripper"><link name="palm"><pose>0 0 0.25 0 0 0</pose>{inertial(0.5, 0.002)}</link>'
    + finger("left", -0.12)
    + finger("right", 0.12)
    + slide("lift", "world", "palm", "0 0 1")
    + slide("left_slide", "palm", "left", "1 0 0")
    + slide("right_slide", "palm", "right", "-1 0 0")
    + "</model>"
)
WORLDS = {
    "rolling": world_of(GROUND, f'<model name="ball">{link_of("ball", BALL, SOFT.format(modulus=2e5))}</model>'),
    "sliding": world_of(TABLE, block("box")),
    "lifted": world_of(GROUND, block("box", "0.2 0.1 0.2", 5e5), GRIPPER),
    "stacked": world_of(GROUND, block("low"), block("middle"), block("high")),
}
# Nearly upright: exactly upright, gradients of pressure along some normals are zero to rounding, and rounding decides
# whether Drake keeps such faces.
UPRIGHT = (1.0, 3e-3, -2e-3, 1e-3)
STARTS = {  # q and v by joint
    "rolling": ({"ball": (*UPRIGHT, 0.0, 0.0, 0.0985)}, {"ball": (0.0, 4.0, 0.5, 0.6, 0.1, 0.0)}),
    "sliding": ({"box": (*UPRIGHT, 0.0, 0.0, 0.0999)}, {"box": (0.0, 0.0, 1.0, 0.8, 0.3, 0.0)}),
    "lifted": (
        {"box": (*UPRIGHT, 0.0, 0.0, 0.0999), "lift": (0.0,), "left_slide": (0.0099,), "right_slide": (0.0099,)},
        {"left_slide": (0.05,), "right_slide": (0.05,)},
    ),
    "stacked": (
        {
            name: (*UPRIGHT, 0.004 * k, -0.003 * k, 0.0999 + 0.1998 * k)
            for k, name in enumerate(("low", "middle", "high"))
        },
        {"high": (0.2, 0.0, 0.1, 0.05, 0.02, -0.1)},
    ),
}
FORCES = {"lifted": {"lift": 20.0, "left_slide": 30.0, "right_slide": 30.0}}


class Twins(NamedTuple):
    """A scene here and in Drake, its start, its forces, and places of our coordinates among Drake's."""

    model: mbjax.MultibodyModel
    diagram: Any
    plant: Any
    state: mbjax.State
    tau: Float[np.ndarray, " nv"]
    names: tuple[list[str], list[str]]


def set_in_drake(twins: Twins, context: Any, q: Any, v: Any) -> None:
    """Sets a state in our order, and the scene's forces, in a context of Drake's plant."""
    q, v = mbjax.engines.drake_state(twins.model, mbjax.State(q, v, jnp.zeros(())), *twins.names)
    of_forces = mbjax.State(twins.state.q, jnp.asarray(twins.tau), jnp.zeros(()))
    _, tau = mbjax.engines.drake_state(twins.model, of_forces, *twins.names)
    twins.plant.SetPositions(context, np.array(q))
    twins.plant.SetVelocities(context, np.array(v))
    twins.plant.get_applied_generalized_force_input_port().FixValue(context, np.array(tau))


def drake_contexts(twins: Twins, q: Any, v: Any) -> tuple[Any, Any]:
    """The context of Drake's diagram, to be kept, and that of its plant, at a state in our order."""
    root = twins.diagram.CreateDefaultContext()
    context = twins.plant.GetMyMutableContextFromRoot(root)
    set_in_drake(twins, context, q, v)
    return root, context


def twins_of(name: str, approximation: str = "sap", time_step: float = DT, **options: Any) -> Twins:
    """A scene in both."""
    logging.getLogger("drake").setLevel(logging.CRITICAL)
    options = {"contact_model": "hydroelastic_with_fallback", **options}
    builder = DiagramBuilder()
    config = MultibodyPlantConfig(
        time_step=time_step,
        discrete_contact_approximation=approximation,
        use_sampled_output_ports=False,
        **options,
    )
    plant, _ = AddMultibodyPlant(config, builder)
    DrakeParser(plant).AddModelsFromString(WORLDS[name], "sdf")
    plant.Finalize()
    ours = mbjax.MultibodyPlant(time_step, discrete_contact_approximation=approximation, **options)
    mbjax.Parser(ours).add_models(WORLDS[name])
    model = ours.finalize()
    state, tau = mbjax.default_state(model), np.zeros(model.num_velocities)
    q, v = np.array(state.q), np.array(state.v)
    for start, numbers, places in (
        (q, STARTS[name][0], "q"),
        (v, STARTS[name][1], "v"),
        (tau, FORCES.get(name, {}), "v"),
    ):
        for joint, values in numbers.items():
            start[getattr(model.joint(joint), places)] = values
    names = plant.GetPositionNames(), plant.GetVelocityNames()
    return Twins(model, builder.Build(), plant, mbjax.State(jnp.asarray(q), jnp.asarray(v), jnp.zeros(())), tau, names)


def states_in_drake(twins: Twins, num_steps: int) -> tuple[np.ndarray, np.ndarray]:
    """q and v in our order at the start and after each of Drake's steps."""
    simulator = Simulator(twins.diagram)
    context = twins.plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    set_in_drake(twins, context, twins.state.q, twins.state.v)
    found = [(twins.state.q, twins.state.v)]
    for k in range(1, num_steps + 1):
        simulator.AdvanceTo(k * twins.plant.time_step())
        theirs = twins.plant.GetPositions(context), twins.plant.GetVelocities(context)
        after = mbjax.engines.state_from_drake(twins.model, *theirs, *twins.names)
        found.append((after.q, after.v))
    q, v = (np.array(x) for x in zip(*found, strict=True))
    return q, v
