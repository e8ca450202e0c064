"""A log: what was measured along one motion, and which of it is data."""

import dataclasses
import warnings
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from mbjax.errors import ModelError, ModelWarning
from mbjax.execution import compiled_outside_jit
from mbjax.kinematics import jacobian_spatial_velocity
from mbjax.linear_algebra import pseudo_inverse
from mbjax.model import MultibodyModel, summary_of
from mbjax.simulation import actuation_matrix, actuation_matrix_pseudoinverse

from .effort_filter import EffortFilter, make_effort_filter
from .signals import differentiate, differentiate_configurations, low_pass, smooth_positions

EVEN = 1e-3  # by how much of a period even times may differ
LONG_GAP = 1.5  # periods; over a longer one something is missing
SHORT_HOLE = 2  # missing samples that a cubic spline fills as well as differences know the motion
FILTER_REACH = 4.0  # periods of the cutoff, behind which 1e-4 of the filter's response is left
END_REACH = 2.0  # the same from the ends of a log, where the filter continues the signal
POSITION_CUTOFF = 5.0  # times that of efforts: what is differentiated must not lose the motion (Gautier 1997)


class Log(eqx.Module):
    """Measured motion and forces of one run; a row a sample.

    `effort` are generalized forces along v that were measured or commanded, `external` those of measured contacts and
    other known forces; `actuation` is what drives `step`. `weight` says how much the effort along each velocity counts
    in a sample: its squared error is multiplied by it, and where it is zero, there are no data. `recorded` is zero
    where a sample was interpolated. None stands for ones. `effort_filter` is what measured and predicted efforts go
    through alike before they are compared; `effort` itself is as it was measured. `name` is of the file.
    """

    time: Float[Array, " steps"]  # s
    q: Float[Array, "steps nq"]
    v: Float[Array, "steps nv"]
    vdot: Float[Array, "steps nv"]
    effort: Float[Array, "steps nv"]
    external: Float[Array, "steps nv"]
    actuation: Float[Array, "steps nu"]
    weight: Float[Array, "steps nv"] | None = None
    recorded: Float[Array, " steps"] | None = None
    effort_filter: EffortFilter | None = None
    name: str = eqx.field(static=True, default="log")

    def __len__(self) -> int:
        return self.time.shape[0]

    def __str__(self) -> str:
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        shown = {name: x for name, x in fields.items() if eqx.is_array(x)}
        cutoff = "" if self.effort_filter is None else f", efforts filtered at {self.effort_filter.cutoff:g} Hz"
        return summary_of(f"Log '{self.name}', {len(self)} samples in SI units{cutoff}", shown)

    def __getitem__(self, rows: slice) -> "Log":
        """The samples of a slice, such as `log[:-200]` to hold the last 200 out."""
        if self.effort_filter is not None and rows.step not in (None, 1):
            raise ModelError(
                f"log '{self.name}' has filtered efforts, which are decimated in the fit: take all samples of a part, "
                "log[start:stop]."
            )
        whole = dataclasses.replace(self, effort_filter=None)
        arrays, static = eqx.partition(whole, eqx.is_array)
        part = eqx.combine(jax.tree.map(lambda x: x[rows], arrays), static)
        return dataclasses.replace(part, effort_filter=self.effort_filter)

    @property
    def period(self) -> float:
        """Mean time between samples, in s."""
        return float(self.time[-1] - self.time[0]) / (len(self) - 1)

    @property
    def weights(self) -> Float[Array, "steps nv"]:
        """`weight`, or ones."""
        return jnp.ones_like(self.effort) if self.weight is None else self.weight

    def weighted(self, weight: Any) -> "Log":
        """The log with its weights multiplied by others, by sample, or by sample and velocity; zero leaves out.

        `log.weighted(np.abs(log.v) > 0.05)` leaves out efforts of joints that hardly move, where friction is known
        least.
        """
        factor = jnp.asarray(weight, self.effort.dtype)
        factor = factor[:, None] if factor.ndim == 1 else factor
        if factor.shape[0] != len(self) or factor.shape[1] not in (1, self.effort.shape[1]):
            raise ModelError(
                f"log '{self.name}': weights have shape {np.shape(weight)}, expected ({len(self)},) or "
                f"{self.effort.shape}: a row for each sample."
            )
        if not isinstance(factor, Tracer) and not bool(jnp.all(jnp.isfinite(factor) & (factor >= 0.0))):
            raise ModelError(f"log '{self.name}': weights must be finite and not negative.")
        return dataclasses.replace(self, weight=self.weights * factor)


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
    weight: Any = None,
    recorded: Any = None,
    cutoff: float | Mapping[str, float] | None = None,
    name: str = "log",
) -> Log:
    """A log from arrays with a row for each sample.

    Velocities and accelerations that are not given are differentiated from what is, along the configuration manifold.
    Of `effort` (along v) and `actuation` (by actuator) either follows from the other, by `mbjax.actuation_matrix`:
    actuators of one joint share its effort evenly. Where neither is given, both are zero, with a warning.
    Times may be uneven for `Torques`; samples whose derivatives reach over a longer gap are no data. `weight` and
    `recorded` are those of `Log`. `cutoff` in Hz is that of a filter for measured and predicted efforts, for which
    times must be even; positions, velocities and accelerations are low-passed at five times that, or
    `cutoff={"effort": 10, "position": 40}` says both. Filters run forwards and backwards, so that nothing comes late.
    """
    time = np.asarray(time, float)
    if time.ndim != 1:
        raise ModelError(f"{name}: time must be finite numbers (steps,) in s, got shape {time.shape}.")
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
    bad_times = np.flatnonzero(~np.isfinite(time))
    if bad_times.size:
        row = int(bad_times[0])
        raise ModelError(f"{name}: time must be finite numbers (steps,) in s; row {row} has {time[row]}.")
    gaps = np.diff(time)
    if np.any(gaps <= 0.0):
        row = int(np.argmin(gaps))
        raise ModelError(
            f"{name}: times must grow, but from row {row} to row {row + 1} they change by {gaps[row]:g} s."
        )
    recorded = np.ones(steps) if recorded is None else checked("recorded", np.reshape(recorded, (-1, 1)), 1)[:, 0]
    period, nv, nu = float(np.median(gaps)), model.num_velocities, model.num_actuators
    cutoffs = checked_cutoffs(name, cutoff, gaps)
    q = checked("q", q, model.num_positions)
    v = None if v is None else checked("v", v, nv)
    vdot = None if vdot is None else checked("vdot", vdot, nv)
    usable = usable_samples(time, recorded, v is None, v is None or vdot is None, cutoffs.get("position"))
    if "position" in cutoffs:
        q = smooth_positions(model, q, period, cutoffs["position"])
        v, vdot = (None if x is None else low_pass(x, period, cutoffs["position"]) for x in (v, vdot))
    v = differentiate_configurations(model, q, time) if v is None else v
    vdot = differentiate(v, time) if vdot is None else vdot
    if actuation is not None:
        actuation = checked("actuation", actuation, nu)
        B = np.asarray(actuation_matrix(model), float)
        effort = actuation @ B.T if effort is None else checked("effort", effort, nv)
    else:
        if effort is None:
            words = "no effort or actuation was given; they count as zero. Give zeros if they were."
            warnings.warn(f"{name}: {words}", ModelWarning, stacklevel=2)
        effort = np.zeros((steps, nv)) if effort is None else checked("effort", effort, nv)
        actuation = effort @ np.asarray(actuation_matrix_pseudoinverse(model), float).T
    external = np.zeros((steps, nv)) if external is None else checked("external", external, nv)
    arrays = [jnp.asarray(x, model.dtype) for x in (time, q, v, vdot, effort, external, actuation)]
    kept = usable * (recorded > 0.0)
    log = Log(
        *arrays, weight=None if np.all(kept) else jnp.repeat(jnp.asarray(kept, model.dtype)[:, None], nv, 1),
        recorded=None if np.all(recorded > 0.0) else jnp.asarray(recorded > 0.0, model.dtype),
        effort_filter=make_effort_filter(period, cutoffs["effort"], model.dtype) if "effort" in cutoffs else None,
        name=name,
    )  # fmt: skip
    return log if weight is None else log.weighted(weight)


def checked_cutoffs(
    name: str, cutoff: float | Mapping[str, float] | None, gaps: Float[np.ndarray, " gaps"]
) -> dict[str, float]:
    """Cutoffs of efforts and positions in Hz; positions have none where it would be above half the rate."""
    if cutoff is None:
        return {}
    if np.ptp(gaps) > EVEN * gaps.mean():
        row = int(np.argmax(np.abs(gaps - np.median(gaps))))
        raise ModelError(
            f"{name}: a filter needs even times, but between rows {row} and {row + 1} they grow by {gaps[row]:g} s, "
            f"elsewhere by {np.median(gaps):g} s. Use si.resample, or si.read_log, which resamples."
        )
    nyquist = 0.5 / float(np.median(gaps))
    if isinstance(cutoff, Mapping):
        found = {signal: float(value) for signal, value in cutoff.items()}
        unknown = sorted(set(found) - {"effort", "position"})
        if unknown:
            raise ModelError(f"{name}: cutoff has '{unknown[0]}'; there are cutoffs of 'effort' and 'position'.")
    else:
        found = {"effort": float(cutoff)}
        if POSITION_CUTOFF * found["effort"] < nyquist:
            found["position"] = POSITION_CUTOFF * found["effort"]
    for signal, value in found.items():
        if not 0.0 < value < nyquist:
            raise ModelError(
                f"{name}: the cutoff of {signal} must be between 0 and {nyquist:g} Hz, half the rate, got {value:g}."
            )
    return found


def usable_samples(
    time: Float[np.ndarray, " steps"],
    recorded: Float[np.ndarray, " steps"],
    v_is_derived: bool,
    vdot_is_derived: bool,
    position_cutoff: float | None,
) -> Bool[np.ndarray, " steps"]:
    """Samples whose velocities and accelerations come from what was recorded alone.

    Not those whose differences reach an interpolated sample or over a gap in time, nor those to which the filter of
    positions carries more than a little of a hole. One or two missing samples are interpolated to the order of the
    differences, so that filters may pass them, and differences over them are as good as others.
    """
    steps, gaps = len(time), np.diff(time)
    reach = 2 * (int(v_is_derived) + int(vdot_is_derived))
    missing = recorded <= 0.0
    unusable = dilated(missing, reach)
    for row in np.flatnonzero(gaps > (SHORT_HOLE + LONG_GAP) * np.median(gaps)):  # between row and row + 1
        unusable[max(0, row + 1 - reach) : row + 1 + reach] |= reach > 0
    if position_cutoff is not None:
        end = min(int(np.ceil(END_REACH / (position_cutoff * np.median(gaps)))), steps // 8)
        unusable[:end], unusable[steps - end :] = True, True
        starts = np.flatnonzero(np.diff(np.concatenate([[0], missing.astype(int), [0]])))
        for first, end in starts.reshape(-1, 2):
            if end - first > SHORT_HOLE:
                around = int(np.ceil(FILTER_REACH / (position_cutoff * np.median(gaps)))) + reach
                unusable[max(0, first - around) : min(steps, end + around)] = True
    return ~unusable


def dilated(mask: Bool[np.ndarray, " steps"], reach: int) -> Bool[np.ndarray, " steps"]:
    """True up to `reach` samples from where the mask is true."""
    return np.convolve(mask, np.ones(2 * reach + 1))[reach : reach + len(mask)] > 0.5


def bare(log: Log) -> Log:
    """The samples alone, without a name, weights or a filter: programs that take it serve all logs of its length."""
    return dataclasses.replace(log, weight=None, recorded=None, effort_filter=None, name="")


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


def first_contact_row(call: str, contact_rows: int) -> int:
    """The first of a contact's six rows, torque then force, that `contact_rows` of them leave; refuses but 3 and 6."""
    if contact_rows not in (3, 6):
        raise ModelError(f"{call}: contact_rows must be 3, forces, or 6, torques too, got {contact_rows!r}.")
    return 6 - contact_rows


def smallest_part(dtype: np.dtype) -> float:
    """Part of the largest singular value of a contact's Jacobian below which one counts as zero."""
    return max(1e-10, 100.0 * float(jnp.finfo(dtype).eps))


def contact_projectors(
    model: MultibodyModel, q: Float[Array, "steps nq"], bodies: tuple[str, ...], first: int
) -> Float[Array, "steps nv nv"]:
    """Projectors on what contact forces at bodies cannot do; `first` of the six rows that each of them has."""

    def of_one(J: Array) -> Array:
        return jnp.eye(J.shape[1], dtype=J.dtype) - pseudo_inverse(J, smallest_part(J.dtype)) @ J

    return jax.vmap(of_one)(contact_jacobians(model, q, bodies, first))
