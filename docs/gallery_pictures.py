"""Draws the pictures of the gallery's cards: `python docs/gallery_pictures.py [NOTEBOOK …]`; needs Chromium and Pillow.

A notebook's picture is its longest recorded animation, partway, else its first recorded plot.
"""

import base64
import io
import pathlib
import sys
import tempfile

from gallery import NOTEBOOKS, OUTPUTS, animation, recorded
from PIL import Image

from mbjax.visualization.browser import Browser

SIZE = (960, 540)
CARD = (480, 270)
SHARE = 0.45  # of the animation that has passed
HIDE = "for (const part of document.querySelectorAll('header, footer, .card')) part.style.display = 'none'"


def still(output: dict[str, str]) -> bytes:
    """A picture of an animation without its controls."""
    with tempfile.TemporaryDirectory() as folder, Browser(*SIZE) as browser:
        page = pathlib.Path(folder, "page.html")
        page.write_text(animation(output, "animation"), encoding="utf-8")
        browser.open(page.as_uri())
        browser.wait_for("window.mbjax && window.mbjax.ready")
        browser.run(f"window.mbjax.pause(); {HIDE}")
        end = browser.run("parseFloat(document.getElementById('end').textContent.replace('/', ''))")
        browser.run(f"window.mbjax.seek({SHARE * end}), new Promise((done) => setTimeout(done, 500))")
        return browser.picture()


def draw(notebook: pathlib.Path) -> None:
    """Writes the picture of one notebook, if it has an output to show."""
    outputs = [output for of_cell in recorded(notebook).values() for output in of_cell]
    motions, plots = ([output for output in outputs if key in output] for key in ("data", "png"))
    if not motions and not plots:
        return
    longest = max(motions, key=lambda output: len(output["arrays"]), default=None)
    image = base64.b64decode(plots[0]["png"]) if longest is None else still(longest)
    picture = Image.open(io.BytesIO(image)).convert("RGB")
    picture = picture.resize((CARD[0], round(picture.height * CARD[0] / picture.width)), Image.Resampling.LANCZOS)
    picture = picture.crop((0, 0, picture.width, min(CARD[1], picture.height)))
    picture.save(OUTPUTS / f"{notebook.stem}.jpg", quality=85, optimize=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(NOTEBOOKS.glob("*.ipynb")):
        draw(pathlib.Path(name))
