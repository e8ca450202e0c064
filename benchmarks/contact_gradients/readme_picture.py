"""Draws the README's picture from the records: `python -m benchmarks.contact_gradients.readme_picture`.

An ellipsoid is tossed at the ground and tumbles: where it is after a second, over the speed of the toss, and the
derivative of that.
The file says which records it shows, and a test compares.
"""

import hashlib
import io
import json
import pathlib
from typing import Any

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from .__main__ import read
from .problems import OWN_STEPS

PROBLEM = "toss of an ellipsoid"
PICTURE = pathlib.Path(__file__).parent.parent.parent / "docs" / "images" / "derivative_over_starts.png"
INK, SOFT, GRID, OURS, FIXED = "#1f2a37", "#64748b", "#e6eaef", "#2f6fb3", "#dd7f4f"
KEY = "Records"  # of the file's metadata


def curves() -> dict[str, list[tuple[float, float, float]]]:
    """Speed, place and derivative of each toss, by what computed them."""
    found: dict[str, list[tuple[float, float, float]]] = {"fixed": [], "ours": []}
    for record in read():
        if record["problem"] == PROBLEM and "vz" in record and record["setting"] in (*OWN_STEPS, "lagged"):
            kind = "ours" if record["setting"] in OWN_STEPS else "fixed"
            found[kind].append((record["vz"], record["value"], record["forward"]))
    return {kind: sorted(points) for kind, points in found.items()}


def mark_of(points: dict[str, list[tuple[float, float, float]]]) -> str:
    """A hash of the numbers that the picture shows."""
    return hashlib.sha256(json.dumps(points).encode()).hexdigest()


def draw(points: dict[str, list[tuple[float, float, float]]]) -> Any:
    """The figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 3.0), layout="constrained", facecolor="white")
    places, slopes = figure.subplots(1, 2)
    (v, y, dy), (v_fixed, y_fixed, dy_fixed) = (list(zip(*points[kind], strict=True)) for kind in ("ours", "fixed"))
    for axes, fixed, ours in ((places, y_fixed, y), (slopes, dy_fixed, dy)):
        axes.plot(v_fixed, fixed, ".", color=FIXED, markersize=4.5, label="fixed steps of 1 ms")
        axes.plot(v, ours, "-", color=OURS, linewidth=2.2, label="mbjax.ContactIntegrator")
        axes.set_xlabel("vertical speed of the toss [m/s]", fontsize=9, color=SOFT)
        axes.grid(color=GRID)
        axes.set_axisbelow(True)
        axes.tick_params(labelsize=8.5, length=0, labelcolor=SOFT)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
    slopes.set_ylim(-1.0, 0.75)
    places.set_title("where it is after 1 s [m]", loc="left", fontsize=11, color=INK)
    slopes.set_title("derivative of that by the speed [s]", loc="left", fontsize=11, color=INK)
    places.legend(fontsize=8.5, frameon=False, labelcolor=SOFT)
    return figure


def main() -> None:
    points, file, mark = curves(), io.BytesIO(), PngInfo()
    draw(points).savefig(file, dpi=110)
    mark.add_text(KEY, mark_of(points))
    Image.open(file).convert("RGB").quantize(48).save(PICTURE, optimize=True, pnginfo=mark)


if __name__ == "__main__":
    main()
