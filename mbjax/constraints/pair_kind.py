"""What a kind of constraint between two frames answers, for n constraints of k rows each at once."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jaxtyping import Array, Float

from .relative_motion import FramePair, RelativeMotion


class KindRows(NamedTuple):
    """A row measures the pose X_PS: its error, and how that changes with the motion of S in P.

    rate = torque_P · w_PS + force_P · v_PS, so that (torque, force) at So, expressed in P, is what λ = 1 does to B.
    `bias` is the second rate at vdot = 0; None without velocities.
    """

    error: Float[Array, "k n"]
    torque_P: Float[Array, "3 k n"]
    force_P: Float[Array, "3 k n"]
    bias: Float[Array, "k n"] | None


class PairKind(NamedTuple):
    """`frames(constraint)` says which frames, `rows(constraints, R_PS, p_PS_P, motion)` what is measured.

    `variant(constraint)` is static: constraints of one variant are computed together.
    """

    frames: Callable[[Any], FramePair]
    rows: Callable[[Sequence[Any], Array, Array, RelativeMotion | None], KindRows]
    variant: Callable[[Any], Any] = lambda constraint: constraint.num_rows
