"""The numbers that sliders show: positions within limits by name, and quaternions as roll, pitch and yaw."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from mbjax.model import MultibodyModel

from ..series import all_series

HALF_TURN = 3.142  # rad; the ends stand below the slider, so they are short
UNLIMITED = {"rad": HALF_TURN, "m": 1.5}  # half the width of a slider without limits
ANGLES = ("roll", "pitch", "yaw")


@dataclasses.dataclass(frozen=True)
class Slider:
    """One slider: `column` of q, or of the first number of a quaternion whose angle `angle` it shows."""

    label: str
    column: int
    lower: float
    upper: float
    angle: int | None = None

    def read(self, q: np.ndarray) -> float:
        """The number shown at these positions, within the slider's ends."""
        value = q[self.column] if self.angle is None else roll_pitch_yaw(q[self.column : self.column + 4])[self.angle]
        return float(np.clip(value, self.lower, self.upper))

    def write(self, q: np.ndarray, value: float) -> np.ndarray:
        """The positions with this number changed."""
        q = np.array(q)
        if self.angle is None:
            q[self.column] = value
            return q
        angles = roll_pitch_yaw(q[self.column : self.column + 4])
        angles[self.angle] = value
        q[self.column : self.column + 4] = quaternion(angles)
        return q


def sliders_of(model: MultibodyModel) -> list[Slider]:
    """A slider for each position of the model, in the model's order."""
    lower, upper = np.asarray(model.position_lower_limits), np.asarray(model.position_upper_limits)
    start = np.asarray(model.parameters.default_positions)
    short = model.position_names(add_model_instance_prefix=False)
    found = []
    for series in all_series(model):
        if series.group != "positions":
            continue
        k = series.column
        if series.unit == "1":
            if short[k].endswith("_qw"):
                ends = (-HALF_TURN, HALF_TURN)
                found += [Slider(f"{short[k][:-3]} {angle}", k, *ends, angle=i) for i, angle in enumerate(ANGLES)]
            continue
        reach = UNLIMITED[series.unit]
        low = float(lower[k]) if np.isfinite(lower[k]) else min(-reach, round(float(start[k]) - reach, 3))
        high = float(upper[k]) if np.isfinite(upper[k]) else max(reach, round(float(start[k]) + reach, 3))
        low, high = short_ends(low, high)
        found.append(Slider(f"{short[k]} [{series.unit}]", k, low, max(high, low + 1e-6)))
    return found


def short_ends(low: float, high: float) -> tuple[float, float]:
    """Ends of a slider with few digits, since they are shown, at most a thousandth of its width within the limits."""
    width = high - low
    if not width > 0.0:
        return low, high
    digits = max(3, 3 - math.floor(math.log10(width)))
    scale = 10.0**digits
    return math.ceil(round(low * scale, 6)) / scale, math.floor(round(high * scale, 6)) / scale


def roll_pitch_yaw(wxyz: np.ndarray) -> np.ndarray:
    """Angles about the fixed x, y, z of a quaternion (w, x, y, z)."""
    from scipy.spatial.transform import Rotation

    w, x, y, z = wxyz
    return Rotation.from_quat([x, y, z, w]).as_euler("xyz")


def quaternion(angles: np.ndarray) -> np.ndarray:
    """Unit quaternion (w, x, y, z) of angles about the fixed x, y, z."""
    from scipy.spatial.transform import Rotation

    return np.roll(Rotation.from_euler("xyz", angles).as_quat(), 1)
