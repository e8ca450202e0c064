"""A plant with several model instances and everything ports see, and its Drake twin."""

import dataclasses
import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
import pydrake.multibody.plant as drake_plant
import pydrake.multibody.tree as drake_tree
from pydrake.math import RigidTransform as DrakeTransform
from pydrake.math import RollPitchYaw
from pydrake.multibody.math import SpatialForce
from pydrake.systems.analysis import Simulator

import mbjax
from tests.models import Twin, add_joint, make_twin, random_inertia, relative_error

DT = 1e-2
INSTANCES = {
    "left": ("weld", "revolute", "prismatic", "weld", "screw", "universal", "quaternion_floating"),
    "right": ("revolute", "ball_rpy", "planar", "prismatic", "rpy_floating", None),
}
EFFORT_LIMITS = (0.4, np.inf, 30.0, 0.3, np.inf)
GAINS = ((30.0, 2.0), None, (300.0, 20.0), (40.0, 1.0), None)


@dataclasses.dataclass(frozen=True)
class Scene:
    """A twin, and Drake's ports as arrays in our order."""

    twin: Twin

    @property
    def model(self) -> mbjax.MultibodyModel:
        return self.twin.model

    def fix_inputs(self, context: Any, inputs: mbjax.Inputs) -> None:
        """Our inputs at Drake's ports."""
        plant, model = self.twin.plant, self.model
        plant.get_actuation_input_port().FixValue(context, np.asarray(inputs.actuation))
        for name, u in inputs.instance_actuation.items():
            plant.get_actuation_input_port(plant.GetModelInstanceByName(name)).FixValue(context, np.asarray(u))
        for name, x in inputs.instance_desired_state.items():
            plant.get_desired_state_input_port(plant.GetModelInstanceByName(name)).FixValue(context, np.asarray(x))
        tau = np.asarray(inputs.applied_generalized_force)[self.twin.to_drake_v]
        plant.get_applied_generalized_force_input_port().FixValue(context, tau)
        forces, applied = [], inputs.applied_spatial_forces
        for body, F, p in zip(applied.bodies, applied.F_Bq_W, applied.p_BoBq_B, strict=True):
            force = drake_plant.ExternallyAppliedSpatialForce()
            force.body_index = plant.GetBodyByName(model.body(body).name).index()
            force.F_Bq_W, force.p_BoBq_B = SpatialForce(np.asarray(F)), np.asarray(p)
            forces.append(force)
        plant.get_applied_spatial_force_input_port().FixValue(context, forces)

    def ports(self, context: Any) -> dict[str, np.ndarray]:
        """Every output port of Drake's plant, by the names of our outputs."""
        plant, model, to_ours = self.twin.plant, self.model, np.argsort(self.twin.to_drake_v)
        bodies = [plant.GetBodyByName(name).index() for name in model.body_names]
        joints = [plant.GetJointByName(name).index() for name in model.joint_names]
        poses = plant.get_body_poses_output_port().Eval(context)
        velocities = plant.get_body_spatial_velocities_output_port().Eval(context)
        accelerations = plant.get_body_spatial_accelerations_output_port().Eval(context)
        reactions = plant.get_reaction_forces_output_port().Eval(context)
        state = plant.get_state_output_port().Eval(context)
        nq = plant.num_positions()
        result = {
            "q": state[:nq][np.argsort(self.twin.to_drake_q)],
            "v": state[nq:][to_ours],
            "rotations": np.array([poses[int(i)].rotation().matrix() for i in bodies]),
            "translations": np.array([poses[int(i)].translation() for i in bodies]),
            "body_spatial_velocities": np.array([velocities[int(i)].get_coeffs() for i in bodies]),
            "body_spatial_accelerations": np.array([accelerations[int(i)].get_coeffs() for i in bodies]),
            "generalized_acceleration": plant.get_generalized_acceleration_output_port().Eval(context)[to_ours],
            "net_actuation": plant.get_net_actuation_output_port().Eval(context),
            "reaction_forces": np.array([reactions[int(i)].get_coeffs() for i in joints]),
        }
        for name in INSTANCES:
            instance = plant.GetModelInstanceByName(name)
            q_order, v_order = self.instance_order(name)
            x, vdot, u = (
                getattr(plant, f"get_{port}_output_port")(instance).Eval(context)
                for port in ("state", "generalized_acceleration", "net_actuation")
            )
            result[f"{name} state"] = np.concatenate([x[: len(q_order)][q_order], x[len(q_order) :][v_order]])
            result[f"{name} generalized_acceleration"] = vdot[v_order]
            result[f"{name} net_actuation"] = u
        return result

    def instance_order(self, name: str) -> tuple[list[int], list[int]]:
        """Where our coordinates of an instance are among Drake's, which numbers the tree's branches otherwise."""
        plant, model, of = self.twin.plant, self.model, self.model.model_instance(name)
        instance = plant.GetModelInstanceByName(name)
        q_names, v_names = plant.GetPositionNames(instance, True, True), plant.GetVelocityNames(instance, True, True)
        return (
            [q_names.index(model.position_names()[i]) for i in of.q],
            [v_names.index(model.velocity_names()[i]) for i in of.v],
        )


def our_ports(model: mbjax.MultibodyModel, outputs: mbjax.Outputs) -> dict[str, np.ndarray]:
    """The same of ours."""
    result = {
        "q": outputs.state.q,
        "v": outputs.state.v,
        "rotations": outputs.body_poses.rotation,
        "translations": outputs.body_poses.translation,
        "body_spatial_velocities": outputs.body_spatial_velocities,
        "body_spatial_accelerations": outputs.body_spatial_accelerations,
        "generalized_acceleration": outputs.generalized_acceleration,
        "net_actuation": outputs.net_actuation,
        "reaction_forces": outputs.reaction_forces,
    }
    for name in INSTANCES:
        result[f"{name} state"] = outputs.instance_state(model, name)
        result[f"{name} generalized_acceleration"] = outputs.instance_generalized_acceleration(model, name)
        result[f"{name} net_actuation"] = outputs.instance_net_actuation(model, name)
    return {name: np.asarray(value) for name, value in result.items()}


def compare_ports(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray], tolerance: float) -> float:
    """Asserts that each port agrees, relative to its largest entry; returns the worst error."""
    errors = {name: relative_error(ours[name], theirs[name]) for name in theirs}
    worst = max(errors, key=lambda name: errors[name])
    print(f"worst of {len(errors)} ports: {worst} {errors[worst]:.1e}")
    assert errors[worst] < tolerance, errors
    return errors[worst]


@functools.cache
def random_scene(seed: int, time_step: float, use_sampled_output_ports: bool = False) -> Scene:
    """Two instances with every kind of joint, welds to the world and to bodies, actuators, springs, rotors."""
    rng = np.random.default_rng(seed)
    ours, theirs = mbjax.MultibodyPlant(time_step), drake_plant.MultibodyPlant(time_step)
    if time_step > 0.0:
        theirs.set_discrete_contact_approximation(drake_plant.DiscreteContactApproximation.kSap)
        theirs.SetUseSampledOutputPorts(use_sampled_output_ports)
    driven = []
    for instance, kinds in INSTANCES.items():
        our_instance, their_instance = ours.add_model_instance(instance), theirs.AddModelInstance(instance)
        parents: list[str] = []
        for i, kind in enumerate(kinds):
            name = f"{instance}_body{i}"
            mass, com, G = random_inertia(rng)
            upper = (G[0, 0], G[1, 1], G[2, 2], G[0, 1], G[0, 2], G[1, 2])
            ours.add_rigid_body(name, mbjax.SpatialInertia(mass, com, mbjax.UnitInertia(*upper)), our_instance)
            inertia = drake_tree.SpatialInertia(mass, com, drake_tree.UnitInertia(*upper))
            body = theirs.AddRigidBody(name, their_instance, inertia)
            if kind is None:
                continue
            is_root = kind.endswith("floating") or not parents
            # The first two joints hang on one after the other: a weld to the world carries a tree in "left".
            parent = "world" if is_root else parents[0] if i == 1 else parents[rng.integers(len(parents))]
            poses = [DrakeTransform(RollPitchYaw(rng.normal(size=3)), 0.4 * rng.normal(size=3)) for _ in range(2)]
            axis = rng.normal(size=3)
            joint = f"{instance}_joint{i}"
            add_joint(ours, theirs, kind, joint, parent, body, poses, axis / np.linalg.norm(axis), rng)
            parents.append(name)
            if kind in ("revolute", "prismatic", "screw"):
                driven.append(joint)
    for k, (joint, limit, gains) in enumerate(zip(driven, EFFORT_LIMITS, GAINS, strict=True)):
        actuator = theirs.AddJointActuator(f"motor{k}", theirs.GetJointByName(joint), limit)
        actuator.set_default_rotor_inertia(0.01 + 0.01 * k)
        actuator.set_default_gear_ratio(2.0 + k)
        keywords: dict[str, Any] = {}
        if gains is not None:
            actuator.set_controller_gains(drake_tree.PdControllerGains(p=gains[0], d=gains[1]))
            keywords = {"kp": gains[0], "kd": gains[1]}
        ours.add_joint_actuator(
            f"motor{k}", joint, limit, rotor_inertia=0.01 + 0.01 * k, gear_ratio=2.0 + k, **keywords
        )
    add_springs(ours, theirs)
    theirs.Finalize()
    return Scene(make_twin(ours.finalize(), theirs))


def add_springs(ours: mbjax.MultibodyPlant, theirs: Any) -> None:
    """Force elements: one between the instances, one in a joint."""
    ends = ("left_body2", (0.1, 0.2, 0.3), "right_body5", (0.2, -0.1, 0.0))
    ours.add_force_element(mbjax.LinearSpringDamper(*ends, 0.3, 30.0, 2.0))
    bodies = theirs.GetBodyByName(ends[0]), theirs.GetBodyByName(ends[2])
    theirs.AddForceElement(drake_tree.LinearSpringDamper(bodies[0], ends[1], bodies[1], ends[3], 0.3, 30.0, 2.0))
    ours.add_force_element(mbjax.RevoluteSpring("left_joint1", 0.4, 7.0))
    theirs.AddForceElement(drake_tree.RevoluteSpring(theirs.GetJointByName("left_joint1"), 0.4, 7.0))


def random_case(scene: Scene, seed: int) -> tuple[mbjax.State, mbjax.Inputs]:
    """A state, and inputs at all ports. In continuous plants "right" has no desired state: its controller is off.

    Drake's discrete plant ends the process when one instance's controllers are off and another's are on.
    """
    model, rng = scene.model, np.random.default_rng(seed)
    nv, nu = model.num_velocities, model.num_actuators
    q = mbjax.integrate_configuration(model, mbjax.default_state(model).q, jnp.asarray(0.7 * rng.normal(size=nv)))
    state = mbjax.State(q, jnp.asarray(rng.normal(size=nv)), jnp.zeros(()))
    desired = {"left": jnp.asarray(rng.normal(size=6))}
    if model.is_discrete:
        desired["right"] = jnp.asarray(rng.normal(size=4))
    forces = mbjax.AppliedSpatialForces(
        ["left_body2", "right_body1", "left_body2", "left_body0"], rng.normal(size=(4, 6)), rng.normal(size=(4, 3))
    )
    inputs = mbjax.Inputs(
        actuation=jnp.asarray(0.2 * rng.normal(size=nu)),
        applied_generalized_force=jnp.asarray(rng.normal(size=nv)),
        applied_spatial_forces=forces,
        instance_actuation={
            "left": jnp.asarray(0.3 * rng.normal(size=3)),
            "right": jnp.asarray(0.2 * rng.normal(size=2)),
        },
        instance_desired_state=desired,
    )
    return state, inputs


def drake_step(scene: Scene, context: Any) -> None:
    """One step of Drake's simulator."""
    Simulator(scene.twin.plant, context).AdvanceTo(DT)
