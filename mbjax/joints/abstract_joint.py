"""The contract of a joint: questions that each kind answers, always in this order.

A joint connects frame F, fixed to its parent body, with frame M, fixed to its child body. Every question
is answered for k joints of one kind at once, with the joints on the last axis: `q` is (nq, k), `axis` (3, k) of length
one, or zero where the kind has none.

    pose            X_FM(q): rotation (3, 3, k) and translation (3, k)
    hinge_map       H(q) with V_FM_F = H(q) v, spatial velocity of M in F at Mo: (6, nv, k)
    hinge_map_rate  dH/dt at (q, v), or None where H is constant
    velocity_to_qdot, qdot_to_velocity    qdot = N(q) v and v = N+(q) qdot
    integrate, difference                 moves along the configuration manifold, and its inverse
"""

import abc
from collections.abc import Sequence
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.number_rules import FINITE, INFINITY, as_numbers, is_known, known_numbers


class AbstractJoint(abc.ABC):
    """A joint as given while a model is built; `MultibodyPlant.add_joint` takes it.

    `parent` and `child` are bodies or frames, as objects or names. `X_PF` and `X_BM` place F in the
    parent's and M in the child's frame (identity when left out). `damping` is in N m s/rad or N s/m per
    velocity, `friction` the Coulomb torque or force, `armature` an inertia in kg m² or kg that the mass matrix
    gets on its diagonal, as of rotors. Limits are (lower, upper), in rad or m by coordinate.
    """

    kind: ClassVar[str]
    num_positions: ClassVar[int]
    num_velocities: ClassVar[int]
    position_suffixes: ClassVar[tuple[str, ...]]
    velocity_suffixes: ClassVar[tuple[str, ...]]
    zero_positions: ClassVar[tuple[float, ...]]
    angular_velocities: ClassVar[tuple[bool, ...]]  # which velocities are rad/s, else m/s
    has_axis: ClassVar[bool] = False
    has_pitch: ClassVar[bool] = False
    has_quaternion: ClassVar[bool] = False
    is_floating: ClassVar[bool] = False

    def __init__(
        self,
        name: str,
        parent: Any,
        child: Any,
        *,
        X_PF: Any = None,
        X_BM: Any = None,
        damping: float | Sequence[float] = 0.0,
        friction: float | Sequence[float] = 0.0,
        position_limits: tuple[Any, Any] | None = None,
        velocity_limits: tuple[Any, Any] | None = None,
        acceleration_limits: tuple[Any, Any] | None = None,
        default_positions: Any = None,
        axis: Any = None,
        screw_pitch: float | None = None,
        armature: float | Sequence[float] = 0.0,
    ):
        if not isinstance(name, str) or not name:
            raise ModelError(f"{type(self).__name__}: the name must be a non-empty string, got {name!r}.")
        self.name = name
        self.parent = parent
        self.child = child
        self.X_PF = X_PF
        self.X_BM = X_BM
        nq, nv = self.num_positions, self.num_velocities
        self.damping = self._numbers("damping", damping, nv, lowest=0.0)
        self.friction = self._numbers("friction", friction, nv, lowest=0.0)
        self.armature = self._numbers("armature", armature, nv, lowest=0.0)
        self.position_limits = self._limits("position_limits", position_limits, nq)
        self.velocity_limits = self._limits("velocity_limits", velocity_limits, nv)
        self.acceleration_limits = self._limits("acceleration_limits", acceleration_limits, nv)
        self.set_default_positions(self.zero_positions if default_positions is None else default_positions)
        self.axis = self._unit_axis(axis) if self.has_axis else None
        self.screw_pitch = float(self._numbers("screw_pitch", screw_pitch, 1)[0]) if self.has_pitch else None
        self.index: int = -1
        self.model_instance: int = -1
        self.source: str | None = None

    def set_default_positions(self, q: Any) -> None:
        """Sets the default positions, in rad or m; only before finalize."""
        positions = self._numbers("default_positions", q, self.num_positions)
        if self.has_quaternion and not np.linalg.norm(positions[:4]) > 0.0:
            raise ModelError(f"joint '{self.name}': the default quaternion is zero; give (w, x, y, z).")
        self.default_positions = positions

    def _numbers(self, what: str, value: Any, size: int, lowest: float | None = None) -> np.ndarray:
        if not is_known(value):
            known_numbers(f"joint '{self.name}'", what, value, FINITE)
        numbers = as_numbers(value)
        if numbers is None or numbers.shape not in ((), (1,), (size,)):
            raise ModelError(f"joint '{self.name}': {what} must be {size} number(s), got {value!r}.")
        numbers = np.broadcast_to(numbers, (size,)).copy()
        if not np.all(np.isfinite(numbers)):
            raise ModelError(f"joint '{self.name}': {what} must be finite, got {value!r}.")
        if lowest is not None and np.any(numbers < lowest):
            raise ModelError(f"joint '{self.name}': {what} must be at least {lowest:g}, got {value!r}.")
        return numbers

    def _limits(self, what: str, value: Any, size: int) -> np.ndarray:
        """Limits as (2, size), lower then upper; infinite where nothing was given."""
        if not is_known(value):
            known_numbers(f"joint '{self.name}'", what, value, FINITE)
        try:
            lower, upper = (-INFINITY, INFINITY) if value is None else value
            limits = np.stack([np.broadcast_to(numbers_of(x), (size,)) for x in (lower, upper)])
        except (TypeError, ValueError):
            raise ModelError(
                f"joint '{self.name}': {what} must be (lower, upper) for {size} coordinate(s), got {value!r}."
            ) from None
        if np.any(np.isnan(limits)) or np.any(limits[0] > limits[1]):
            raise ModelError(f"joint '{self.name}': {what} must satisfy lower <= upper, got {lower} and {upper}.")
        if np.any(limits[0] == INFINITY) or np.any(limits[1] == -INFINITY):
            raise ModelError(
                f"joint '{self.name}': {what} must have a lower one below inf and an upper one above -inf, got {lower} "
                f"and {upper}; -inf and inf are for none."
            )
        return limits

    def _unit_axis(self, axis: Any) -> np.ndarray:
        vector = self._numbers("axis", (0.0, 0.0, 1.0) if axis is None else axis, 3)
        length = float(np.linalg.norm(vector))
        if length < 1e-10:
            raise ModelError(
                f"joint '{self.name}': the axis {tuple(vector.tolist())} has no direction; give a vector "
                "that is not zero, like (0, 0, 1)."
            )
        return vector / length

    @staticmethod
    @abc.abstractmethod
    def pose(
        q: Float[Array, "nq k"], axis: Float[Array, "3 k"], pitch: Float[Array, " k"]
    ) -> tuple[Float[Array, "3 3 k"], Float[Array, "3 k"]]: ...

    @staticmethod
    @abc.abstractmethod
    def hinge_map(
        q: Float[Array, "nq k"], axis: Float[Array, "3 k"], pitch: Float[Array, " k"]
    ) -> Float[Array, "6 nv k"]: ...

    @staticmethod
    def hinge_map_rate(q: Float[Array, "nq k"], v: Float[Array, "nv k"]) -> Float[Array, "6 nv k"] | None:
        """Rate dH/dt of the hinge map, or None: constant, unless a kind overrides it."""
        del q, v
        return None

    @staticmethod
    def velocity_to_qdot(q: Float[Array, "nq k"], v: Float[Array, "nv k"]) -> Float[Array, "nq k"]:
        """Position rates qdot = N(q) v, with N = 1 unless a kind overrides it."""
        del q
        return v

    @staticmethod
    def qdot_to_velocity(q: Float[Array, "nq k"], qdot: Float[Array, "nq k"]) -> Float[Array, "nv k"]:
        """Velocities v = N+(q) qdot, with N = 1 unless a kind overrides it."""
        del q
        return qdot

    @staticmethod
    def integrate(q: Float[Array, "nq k"], dv: Float[Array, "nv k"]) -> Float[Array, "nq k"]:
        """Moves q along dv = v dt: on a straight line, unless a kind overrides it."""
        return q + dv

    @staticmethod
    def difference(q0: Float[Array, "nq k"], q1: Float[Array, "nq k"]) -> Float[Array, "nv k"]:
        """Difference dv from q0 to q1: `integrate(q0, dv)` is q1."""
        return q1 - q0


def numbers_of(value: Any) -> np.ndarray:
    """The array of floats; a `TypeError` where it is none."""
    numbers = as_numbers(value)
    if numbers is None:
        raise TypeError
    return numbers


def constant_hinge_map(columns: Sequence[int], q: Array) -> Float[Array, "6 nv k"]:
    """Hinge map whose columns are unit spatial vectors (0-2 rotation, 3-5 translation), in F."""
    H = np.zeros((6, len(columns), *(1 for _ in q.shape[1:])))
    H[list(columns), range(len(columns))] = 1.0
    return jnp.broadcast_to(jnp.asarray(H, dtype=q.dtype), (6, len(columns), q.shape[1], *(1 for _ in q.shape[2:])))
