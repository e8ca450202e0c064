"""A headless Chromium that a program drives: opens a page, runs scripts in it, and takes pictures."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any

from mbjax.errors import MissingPackageError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = (
    "--headless", "--no-sandbox", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--disable-background-networking", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
    "--remote-debugging-pipe", "--force-device-scale-factor=1",
)  # fmt: skip
SECONDS_TO_ANSWER = 120.0
# Chromium reads commands from file 3 and writes answers to file 4; this program puts our pipes there and becomes it.
BECOME = """import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(file), fcntl.F_DUPFD, 10) for file in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class BrowserError(RuntimeError):
    """The browser does not answer, or reports an error."""


class NoBrowserError(BrowserError, MissingPackageError):
    """There is no browser that a program can drive."""


def find_browser() -> str | None:
    """Path of a Chromium, from MBJAX_CHROMIUM or the search path; None if there is none."""
    named = os.environ.get("MBJAX_CHROMIUM")
    return named or next((found for found in map(shutil.which, BROWSERS) if found), None)


class Browser:
    """One page of a headless Chromium, `width` by `height` pixels; closes at the end of a `with` block."""

    def __init__(self, width: int, height: int) -> None:
        path = find_browser()
        if path is None:
            raise NoBrowserError(
                "no Chromium or Chrome was found. Install one (apt install chromium, brew install --cask chromium), or "
                "set MBJAX_CHROMIUM to its path."
            )
        if sys.platform == "win32":
            raise NoBrowserError("pictures of pages are made on Linux and macOS only; use WSL, or save the HTML page.")
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs, self._to = os.pipe()
        self._from, answers = os.pipe()
        command = [
            sys.executable, "-I", "-c", BECOME, str(theirs), str(answers), path, *OPTIONS,
            f"--user-data-dir={self._folder.name}", f"--window-size={width},{height}",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command, pass_fds=(theirs, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(theirs)
        os.close(answers)
        self._count = 0
        self._buffer = b""
        self.errors: list[str] = []  # what the page's console said of them
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._ask(f"{domain}.enable")
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    _session: str | None = None

    def open(self, address: str) -> None:
        """Opens an address; returns as soon as the browser has begun to load it."""
        self._ask("Page.navigate", url=address)

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression; a promise is waited for."""
        answer = self._ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def wait_for(self, script: str, seconds: float = SECONDS_TO_ANSWER) -> Any:
        """The value of an expression as soon as it is true in JavaScript's sense."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.run(script)
            if value:
                return value
            time.sleep(0.05)
        raise BrowserError(f"the page did not get so far within {seconds:.0f} s that `{script}` is true.")

    def picture(self, kind: str = "png") -> bytes:
        """The page as it looks now, as a PNG or JPEG file."""
        extra = {"quality": 92} if kind == "jpeg" else {}
        return base64.b64decode(self._ask("Page.captureScreenshot", format=kind, **extra)["data"])

    def mouse(self, what: str, x: float, y: float, buttons: int = 0) -> None:
        """A mouse event of the left button: "mousePressed", "mouseMoved" or "mouseReleased"."""
        self._ask(
            "Input.dispatchMouseEvent", type=what, x=x, y=y, buttons=buttons, clickCount=1,
            button="left" if buttons or what != "mouseMoved" else "none",
        )  # fmt: skip

    def key(self, key: str, code: int) -> None:
        """Presses and releases a key."""
        for what in ("keyDown", "keyUp"):
            self._ask("Input.dispatchKeyEvent", type=what, key=key, code=key, windowsVirtualKeyCode=code)

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._session is not None and not method.startswith("Target."):
            message["sessionId"] = self._session
        try:
            os.write(self._to, json.dumps(message).encode() + b"\0")
        except BrokenPipeError as error:
            raise BrowserError(f"the browser ended ({find_browser()}).") from error
        while True:
            answer = self._read()
            if answer.get("id") == self._count:
                break
            self._hear(answer)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error'].get('message')}")
        return answer["result"]

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            piece = os.read(self._from, 1 << 20)
            if not piece:
                raise BrowserError(f"the browser ended before it answered ({find_browser()}).")
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _hear(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            said = (str(each.get("value", each.get("description", ""))) for each in params["args"])
            self.errors.append(" ".join(said))
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])

    def close(self) -> None:
        """Ends the browser."""
        self._process.terminate()
        try:
            self._process.wait(timeout=10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._folder.cleanup()

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
