"""Input and output ports as pytrees: the inputs that drive a model, and the outputs that it reports."""

import dataclasses
import math
import warnings
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from mbjax.contact import ContactResults, DeformableContacts
from mbjax.errors import ModelError, ModelWarning
from mbjax.execution import require_one_model
from mbjax.model import MultibodyModel, as_array, missing_actuators, summary_of
from mbjax.number_rules import is_known, shown
from mbjax.spatial import RigidTransform

from .constraint_rows import constraint_rows
from .state import State

PerInstance = dict[str, Array] | dict[int, Array]


class AppliedSpatialForces(eqx.Module):
    """Spatial forces F_Bq_W (k, 6), torque first, at points p_BoBq_B (k, 3) of k bodies, given by name or index.

    A body may be listed any number of times. Without points the forces act at the bodies' origins.
    """

    p_BoBq_B: Float[Array, "*batch k 3"]
    F_Bq_W: Float[Array, "*batch k 6"]
    bodies: tuple[str | int, ...] = eqx.field(static=True)

    def __init__(self, bodies: Sequence[str | int], F_Bq_W: ArrayLike, p_BoBq_B: ArrayLike | None = None):
        if isinstance(bodies, str):
            raise ModelError(f"AppliedSpatialForces: bodies must be a list of bodies, got the name '{bodies}'.")
        self.bodies = tuple(bodies)
        self.F_Bq_W = jnp.asarray(F_Bq_W, float)
        shape = (*self.F_Bq_W.shape[:-1], 3)
        self.p_BoBq_B = jnp.zeros(shape) if p_BoBq_B is None else jnp.asarray(p_BoBq_B, float)


def checked_keys(what: str, values: Any) -> PerInstance | None:
    """The dict, after a check that its keys can be sorted, as JAX does."""
    if values is not None and (not isinstance(values, dict) or len({type(key) for key in values}) > 1):
        raise ModelError(f"Inputs: {what} must be a dict with all instances by name or all by index, got {values!r}.")
    return values


class Inputs(eqx.Module):
    """Inputs that act on a model from outside; every field is optional.

    `actuation` (nu,) in N m or N and `instance_actuation` {instance: (nu of it,)} are summed.
    `desired_state` (2 nu,) holds positions, then velocities, of all actuated joints, tracked with the model's gains. In
    its place, `instance_desired_state` {instance: (2 nu of it,)} turns the controllers of other instances off; without
    either all are off, whatever the gains. It is an error if no actuator that a desired state is for has gains, and a
    warning if some have none. Traced gains are not checked. `applied_generalized_force` is (nv,), and
    `applied_spatial_forces` act at points of bodies.
    Instances are all given by name, or all by index. `node_forces` (n, 3) in N act on the nodes of all deformable
    bodies, in the world.
    """

    actuation: Float[Array, "*batch nu"] | None
    desired_state: Float[Array, "*batch two_nu"] | None
    applied_generalized_force: Float[Array, "*batch nv"] | None
    applied_spatial_forces: AppliedSpatialForces | None
    instance_actuation: PerInstance | None
    instance_desired_state: PerInstance | None
    node_forces: Float[Array, "*batch n 3"] | None

    def __init__(
        self,
        actuation: Any = None,
        desired_state: Any = None,
        applied_generalized_force: Any = None,
        applied_spatial_forces: AppliedSpatialForces | None = None,
        instance_actuation: PerInstance | None = None,
        instance_desired_state: PerInstance | None = None,
        node_forces: Any = None,
    ):
        self.actuation = actuation
        self.desired_state = desired_state
        self.applied_generalized_force = applied_generalized_force
        self.applied_spatial_forces = applied_spatial_forces
        self.instance_actuation = checked_keys("instance_actuation", instance_actuation)
        self.instance_desired_state = checked_keys("instance_desired_state", instance_desired_state)
        self.node_forces = node_forces


class Outputs(eqx.Module):
    """Outputs that a model reports; per-body arrays have the world first, reaction forces the order of `joint_names`.

    `state`, `body_poses` X_WB and `body_spatial_velocities` V_WB_W belong to the state after a step. All other ports
    are those of the step, sampled at its start. They are `generalized_acceleration` vdot, `body_spatial_accelerations`
    A_WB_W, `net_actuation` (after effort limits), and `reaction_forces` F_CJc_Jc on the child body of each joint, at
    its frame Jc and expressed there. `constraint_forces` λ are in N or N m, in the order of the model's constraints;
    `constraint_spatial_forces` F_Bo_W are their forces on the bodies, without couplers and locks, which act on joints
    alone. `generalized_contact_forces` are Jᵀ f, and `contact_results` holds the contacts one by one; it is None in a
    model without pairs of collision geometries. `deformables_converged` says of each deformable body whether its motion
    was found to rounding, and `deformable_contacts` has what such bodies touch; both are None where there is nothing
    of the kind. From `outputs` all ports are live: those of the given state and inputs.
    """

    state: State
    body_poses: RigidTransform
    body_spatial_velocities: Float[Array, "*batch nb 6"]
    body_spatial_accelerations: Float[Array, "*batch nb 6"]
    generalized_acceleration: Float[Array, "*batch nv"]
    net_actuation: Float[Array, "*batch nu"]
    reaction_forces: Float[Array, "*batch joints 6"]
    constraint_forces: Float[Array, "*batch nc"]
    constraint_spatial_forces: Float[Array, "*batch nb 6"]
    generalized_contact_forces: Float[Array, "*batch nv"]
    contact_results: ContactResults | None = None
    deformables_converged: Bool[Array, "*batch bodies"] | None = None
    deformable_contacts: DeformableContacts | None = None

    def __str__(self) -> str:
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        if self.deformables_converged is None:
            del fields["deformables_converged"]
        state, poses, *contacts = (
            fields.pop(name) for name in ("state", "body_poses", "contact_results", "deformable_contacts")
        )
        fields = {"q": state.q, "v": state.v, "time": state.time, "body_poses": poses.translation} | fields
        title = "Outputs, by name: mbjax.describe(model, outputs)"
        return "\n".join([summary_of(title, fields), *(str(x) for x in contacts if x is not None)])

    def constraint_force(self, model: MultibodyModel, constraint: str | int) -> Float[Array, "*batch k"]:
        """Force λ of one of the model's constraints, a number for each of its rows."""
        cset = constraint_rows(model)
        return self.constraint_forces[..., cset.rows_of(cset.names[model.constraint_index(constraint)])]

    def instance_state(self, model: MultibodyModel, instance: str | int) -> Float[Array, "*batch nx_instance"]:
        """Positions, then velocities, of one model instance."""
        of = model.model_instance(instance)
        return jnp.concatenate([self.state.q[..., of.q], self.state.v[..., of.v]], axis=-1)

    def instance_generalized_acceleration(
        self, model: MultibodyModel, instance: str | int
    ) -> Float[Array, "*batch nv_instance"]:
        """Acceleration vdot of one model instance."""
        return self.generalized_acceleration[..., model.model_instance(instance).v]

    def instance_generalized_contact_forces(
        self, model: MultibodyModel, instance: str | int
    ) -> Float[Array, "*batch nv_instance"]:
        """Generalized contact forces Jᵀ f on one model instance."""
        return self.generalized_contact_forces[..., model.model_instance(instance).v]

    def instance_net_actuation(self, model: MultibodyModel, instance: str | int) -> Float[Array, "*batch nu_instance"]:
        """Efforts of one model instance's actuators."""
        return self.net_actuation[..., model.model_instance(instance).u]


def as_inputs(model: MultibodyModel, inputs: Any) -> Inputs:
    """Converts to checked `Inputs` of one world, with instances by index; an array is actuation, None no inputs."""
    if inputs is None:
        return Inputs()
    require_one_model(model)
    if not isinstance(inputs, Inputs):
        require_numbers(inputs)
        inputs = Inputs(actuation=inputs)
    if inputs.desired_state is not None and inputs.instance_desired_state is not None:
        raise ModelError("inputs: give desired_state for the whole plant or per instance, not both.")
    require_controllers(model, inputs)
    nu, num_nodes = model.num_actuators, 0 if model.deformables is None else model.deformables.mesh.num_nodes

    def checked(what: str, value: Any, *shape: int) -> Array | None:
        if value is None:
            return None
        array = as_array(f"inputs.{what}", value, math.prod(shape), model.dtype)
        if array.shape != shape:
            batch = " Functions take one world: use jax.vmap for a batch." if array.ndim > len(shape) else ""
            hint = missing_actuators(model) if shape == (0,) else ""
            raise ModelError(f"inputs.{what} has shape {array.shape}, the model needs {shape}.{hint or batch}")
        return array

    def checked_instances(what: str, values: PerInstance | None, per_actuator: int) -> dict[int, Any] | None:
        if values is None:
            return None
        instances = [model.model_instance(key) for key in values]
        return {
            instance.index: checked(f"{what}['{instance.name}']", value, per_actuator * instance.num_actuators)
            for instance, value in zip(instances, values.values(), strict=True)
        }

    applied = inputs.applied_spatial_forces
    if applied is not None:
        if not isinstance(applied, AppliedSpatialForces):
            raise ModelError(
                "inputs.applied_spatial_forces must be mbjax.AppliedSpatialForces(bodies, F_Bq_W), got "
                f"{shown(applied)}."
            )
        k = len([model.body_index(body) for body in applied.bodies])
        checked("applied_spatial_forces.F_Bq_W", applied.F_Bq_W, k, 6)
        checked("applied_spatial_forces.p_BoBq_B", applied.p_BoBq_B, k, 3)
    return Inputs(
        checked("actuation", inputs.actuation, nu),
        checked("desired_state", inputs.desired_state, 2 * nu),
        checked("applied_generalized_force", inputs.applied_generalized_force, model.num_velocities),
        applied,
        checked_instances("instance_actuation", inputs.instance_actuation, 1),
        checked_instances("instance_desired_state", inputs.instance_desired_state, 2),
        checked("node_forces", inputs.node_forces, num_nodes, 3),
    )


def require_numbers(inputs: Any) -> None:
    """Raises `ModelError` for inputs that are neither `Inputs` nor an array of actuation."""
    if callable(inputs):
        raise ModelError("inputs: a function of the state is for rollout and simulate; here call it: inputs(state).")
    if isinstance(inputs, str | dict | eqx.Module):
        raise ModelError(
            f"inputs must be mbjax.Inputs(actuation=..., desired_state=...), an array of actuation or None, got "
            f"{type(inputs).__name__}."
        )


def require_controllers(model: MultibodyModel, inputs: Inputs) -> None:
    """Raises `ModelError` for a desired state that no actuator follows, and warns if only some actuators follow it.

    An actuator follows if its gains are not zero; motors of an MJCF file are not expected to. Traced gains are not
    checked.
    """
    kp, kd = model.parameters.proportional_gain, model.parameters.derivative_gain
    if (inputs.desired_state is None and not inputs.instance_desired_state) or not is_known(kp, kd):
        return
    has_gains = (np.asarray(kp) != 0.0) | (np.asarray(kd) != 0.0)
    told = {"desired_state": tuple(range(model.num_actuators))} if inputs.desired_state is not None else {}
    for key in inputs.instance_desired_state or {}:
        instance = model.model_instance(key)
        told[f"instance_desired_state['{instance.name}']"] = instance.actuators
    without = {what: [k for k in actuators if not has_gains[k]] for what, actuators in told.items()}
    for what, idle in without.items():
        if not idle:
            continue
        names = ", ".join(f"'{model.actuator_names[k]}'" for k in idle[:8]) + (", …" if len(idle) > 8 else "")
        way_out = "Give gains by mbjax.set_controller_gains or add_joint_actuator(..., kp=, kd=)"
        if all(model.layout.actuators[k].control is not None for k in idle) and len(idle) < len(told[what]):
            continue  # motors of a file that also has position actuators
        if len(idle) == len(told[what]):
            raise ModelError(
                f"inputs.{what}: no actuator follows it, for {names} have no controller: kp and kd are 0. {way_out}, "
                "or leave it out."
            )
        warnings.warn(
            f"inputs.{what} has no effect on actuators {names}, which have no controller: kp and kd are 0. {way_out}.",
            ModelWarning,
            stacklevel=4,
        )
