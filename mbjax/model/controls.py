"""What a control of MuJoCo says to an actuator."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Control:
    """What number `index` of the `count` controls of a file says to an actuator, as `inputs_from_mujoco` uses it.

    Clipped to `lower` and `upper`, ctrl gives the effort `effort` ctrl + `constant`, the desired position `position`
    ctrl and the desired velocity `velocity` ctrl, which actuators without gains (not `is_tracking`) do not look at.
    """

    index: int
    count: int
    lower: float = -float("inf")
    upper: float = float("inf")
    effort: float = 0.0
    constant: float = 0.0
    position: float = 0.0
    velocity: float = 0.0
    is_tracking: bool = False
