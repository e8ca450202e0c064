"""Draws `arm.png` of the README by the README's own lines: `python docs/images/draw_arm.py`; needs Chromium."""

import io
import os
import pathlib
import re
import tempfile

from PIL import Image

from mbjax.visualization.browser import Browser

HERE = pathlib.Path(__file__).parent
README = HERE.parent.parent / "README.md"
MOMENT = 1.9  # s
SIZE = (1200, 680)


def main() -> None:
    snippets = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    names: dict = {}
    with tempfile.TemporaryDirectory() as folder, Browser(*SIZE) as browser:
        os.chdir(folder)
        for snippet in snippets[:2]:
            exec(snippet, names)
        browser.open(pathlib.Path("arm.html").resolve().as_uri())
        browser.wait_for("window.mbjax && window.mbjax.ready")
        browser.run("window.mbjax.pause(), document.getElementById('names').click()")
        browser.run(f"window.mbjax.seek({MOMENT}), new Promise((done) => setTimeout(done, 500))")
        image = Image.open(io.BytesIO(browser.picture())).convert("RGB")
        os.chdir(HERE)
    image.quantize(128, dither=Image.Dither.NONE).save(HERE / "arm.png", optimize=True)


if __name__ == "__main__":
    main()
