"""A log: what was measured along one motion, on an even time grid."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.execution import compiled_outside_jit
from mbjax.kinematics import jacobian_spatial_velocity
from mbjax.linear_algebra import pseudo_inverse
from mbjax.model import MultibodyModel, summary_of

from .signals import differentiate_configurations, differentiate_evenly


class Log(eqx.Module):
    """Measured motion and forces of one run; a row a sample, at even times.

    `effort` are generalized forces along v that were measured or commanded, `external` those of measured contacts and
    other known forces; `actuation` is what drives `step`. `name` and the names in errors are of the file.
    """

    time: Float[Array, " steps"]  # s
    q: Float[Array, "steps nq"]
    v: Float[Array, "steps nv"]
    vdot: Float[Array, "steps nv"]
    effort: Float[Array, "steps nv"]
    external: Float[Array, "steps nv"]
    actuation: Float[Array, "steps nu"]
    name: str = eqx.field(static=True, default="log")

    def __len__(self) -> int:
        return self.time.shape[0]

    def __str__(self) -> str:
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "name"}
        return summary_of(f"Log '{self.name}', {len(self)} samples in SI units", fields)

    def __getitem__(self, rows: slice) -> "Log":
        """The samples of a slice, such as `log[:-200]` to hold the last 200 out."""
        arrays, static = eqx.partition(self, eqx.is_array)
        return eqx.combine(jax.tree.map(lambda x: x[rows], arrays), static)

    @property
    def period(self) -> float:
        """Time between samples, in s."""
        return float(self.time[-1] - self.time[0]) / (len(self) - 1)


def make_log(
    model: MultibodyModel,
    time: Any,
    q: Any,
    v: Any = None,
    vdot: Any = None,
    *,
    effort: Any = None,
    actuation: Any = None,
    external: Any = None,
    name: str = "log",
) -> Log:
    """A log from arrays with a row for each sample, at even times.

    Velocities and accelerations that are not given are differentiated from what is, along the configuration manifold.
    Of `effort` (along v) and `actuation` (by actuator) either follows from the other, by the actuators' joints.
    """
    time = np.asarray(time, float)
    steps = time.shape[0]

    def checked(what: str, x: Any, width: int) -> np.ndarray:
        array = np.asarray(x, float)
        if array.shape != (steps, width):
            raise ModelError(
                f"{name}: {what} has shape {array.shape}, expected ({steps}, {width}): a row for each time."
            )
        bad = np.argwhere(~np.isfinite(array))
        if bad.size:
            raise ModelError(f"{name}: {what} has {array[tuple(bad[0])]} in row {bad[0][0]}, column {bad[0][1]}.")
        return array

    if steps < 4:
        raise ModelError(f"{name}: {steps} samples are too few to identify anything; at least 4 are needed.")
    gaps = np.diff(time)
    if np.any(gaps <= 0.0) or np.ptp(gaps) > 1e-3 * gaps.mean():
        row = int(np.argmax(np.abs(gaps - np.median(gaps))))
        raise ModelError(
            f"{name}: times must grow evenly, but between rows {row} and {row + 1} they grow by {gaps[row]:g} s, "
            f"elsewhere by {np.median(gaps):g} s. Use si.resample, or si.read_log, which resamples."
        )
    period, nv, nu = float(gaps.mean()), model.num_velocities, model.num_actuators
    q = checked("q", q, model.num_positions)
    v = differentiate_configurations(model, q, period) if v is None else checked("v", v, nv)
    vdot = differentiate_evenly(v, period) if vdot is None else checked("vdot", vdot, nv)
    place = np.zeros((nu, nv))
    place[np.arange(nu), list(model.layout.velocities_of_actuators)] = 1.0
    if actuation is not None:
        actuation = checked("actuation", actuation, nu)
        effort = actuation @ place if effort is None else checked("effort", effort, nv)
    else:
        effort = np.zeros((steps, nv)) if effort is None else checked("effort", effort, nv)
        actuation = effort @ place.T
    external = np.zeros((steps, nv)) if external is None else checked("external", external, nv)
    arrays = [jnp.asarray(x, model.dtype) for x in (time, q, v, vdot, effort, external, actuation)]
    return Log(*arrays, name=name)


@compiled_outside_jit
def contact_generalized_forces(
    model: MultibodyModel, q: Float[Array, "steps nq"], bodies: tuple[str, ...], F_Bo_W: Float[Array, "steps k 6"]
) -> Float[Array, "steps nv"]:
    """Generalized forces of wrenches measured on bodies, at their origins and in the world: torque, then force.

    Give them to `make_log(external=...)` where contact forces of a floating base are measured.
    """
    jacobians = contact_jacobians(model, q, bodies).reshape(q.shape[0], len(bodies), 6, -1)
    return jnp.einsum("tbiv,tbi->tv", jacobians, jnp.asarray(F_Bo_W, model.dtype))


def contact_jacobians(
    model: MultibodyModel, q: Float[Array, "steps nq"], bodies: tuple[str, ...], first: int = 0
) -> Float[Array, "steps rows nv"]:
    """Jacobians of bodies' spatial velocities at their origins, in the world; from row `first` of the six of each."""
    zero = jnp.zeros(3, model.dtype)

    def of_one(q: Array) -> Array:
        parts = [jacobian_spatial_velocity(model, q, body, zero, "world", "world")[first:] for body in bodies]
        return jnp.concatenate(parts)

    return jax.vmap(of_one)(jnp.asarray(q, model.dtype))


def contact_projectors(
    model: MultibodyModel, q: Float[Array, "steps nq"], bodies: tuple[str, ...], first: int
) -> Float[Array, "steps nv nv"]:
    """Projectors on what contact forces at bodies cannot do; `first` of the six rows that each of them has."""

    def of_one(J: Array) -> Array:
        return jnp.eye(J.shape[1], dtype=J.dtype) - pseudo_inverse(J, 1e-10) @ J

    return jax.vmap(of_one)(contact_jacobians(model, q, bodies, first))
