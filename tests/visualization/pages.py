"""Reads the pages that animations are, without the package's own code, and plays them in a headless browser."""

import base64
import html
import json
import os
import re
import shutil
import subprocess
import tempfile
import zlib

import numpy as np
import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
HEADLESS = (
    "--headless",
    "--no-sandbox",
    "--no-first-run",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--enable-logging=stderr",
    "--window-size=480,320",
)


def read_record(text):
    """The record of a page, every reference to an array replaced by that array."""
    record = json.loads(content(text, "mbjax-data"))
    packed = zlib.decompress(base64.b64decode(content(text, "mbjax-arrays")))
    return with_arrays(record, packed)


def viewer_of(text):
    """The viewer's scripts, as the page holds them."""
    return zlib.decompress(base64.b64decode(content(text, "mbjax-viewer"))).decode()


def content(text, name):
    return re.search(rf'<script type="[^"]*" id="{name}">(.*?)</script>', text, re.S)[1]


def with_arrays(node, packed):
    if isinstance(node, dict) and "at" in node:
        return unpacked(packed, **node)
    if isinstance(node, dict):
        return {key: with_arrays(value, packed) for key, value in node.items()}
    return [with_arrays(value, packed) for value in node] if isinstance(node, list) else node


def unpacked(packed, at, count, type, columns, differences):
    """Rows of `columns` numbers: bytes of equal weight stand together, columns one after another, as differences."""
    dtype = np.dtype(type.lower()).newbyteorder("<")
    planes = np.frombuffer(packed, np.uint8, count * dtype.itemsize, at).reshape(dtype.itemsize, count)
    stored = np.ascontiguousarray(planes.T).view(dtype).reshape(columns, -1)
    for _ in range(differences):
        stored = np.cumsum(stored, axis=1, dtype=dtype)
    return stored[0] if columns == 1 else stored.T


def surface(mesh):
    """Vertices (n, 3) and faces (k, 3) of a mesh of a record."""
    coded = mesh["changes"].astype(int)
    steps = np.cumsum(np.where(coded % 2, -(coded + 1) // 2, coded // 2), axis=0)
    corners, newest = [], 0
    for back in mesh["back"].tolist():
        corners.append(newest - back)
        newest += back == 0
    return mesh["lower"] + mesh["step"] * steps, np.array(corners).reshape(-1, 3)


def find_browser():
    named = os.environ.get("MBJAX_CHROMIUM")
    found = [named] if named else [shutil.which(name) for name in BROWSERS]
    browser = next((path for path in found if path), None)
    if browser is None:
        pytest.skip("no Chromium found: install one or set MBJAX_CHROMIUM to its path")
    return browser


def report_of(text, reporter):
    """What a script that is put into the page writes to `document.body.dataset.report`, and the page's document.

    Fails where the browser's console says anything.
    """
    browser = find_browser()
    with tempfile.TemporaryDirectory() as folder:
        page = os.path.join(folder, "page.html")
        with open(page, "w", encoding="utf-8") as file:
            file.write(text.replace("</body>", f"<script>{reporter}</script></body>"))
        command = [
            browser,
            *HEADLESS,
            f"--user-data-dir={folder}/profile",
            "--run-all-compositor-stages-before-draw",
            "--virtual-time-budget=30000",
            "--dump-dom",
            f"file://{page}",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line and "GPU stall" not in line]
    assert console == []
    found = re.search(r'data-report="([^"]*)"', done.stdout)
    assert found, f"the page did not report:\n{done.stderr[-3000:]}"
    return json.loads(html.unescape(found[1])), done.stdout
