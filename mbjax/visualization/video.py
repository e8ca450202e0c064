"""Films an animation's page in a headless browser: mp4, webm or gif files, or one picture."""

from __future__ import annotations

import io
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mbjax.errors import ModelError
from mbjax.number_rules import POSITIVE, checked_numbers
from mbjax.optional_packages import imported

from .browser import Browser, BrowserError

CODECS = {
    ".mp4": ("-c:v", "libx264", "-crf", "20", "-pix_fmt", "yuv420p", "-movflags", "+faststart"),
    ".webm": ("-c:v", "libvpx-vp9", "-crf", "32", "-b:v", "0", "-pix_fmt", "yuv420p"),
}
PICTURES = (".png", ".jpg", ".jpeg")
SUFFIXES = (*CODECS, ".gif", *PICTURES)
MOST_GIF_FRAMES_PER_SECOND = 50.0  # browsers slow down what is faster
WITHOUT_CONTROLS = "footer, #panel, #joints, #tooltip { display: none !important }"
# Draws the time, and waits until the browser has shown it.
SEEK = (
    "new Promise((done) => {{ window.mbjax.seek({time!r}); "
    "requestAnimationFrame(() => requestAnimationFrame(() => done(true))); }})"
)


def film(
    html: str, path: Path, *, width: int, height: int, frames_per_second: float, speed: float, time: float | None = None
) -> Path:
    """Writes a video of an animation's page, or a picture of it at `time`, by the file's suffix; returns its path."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ModelError(f"save: '{path.name}' is neither .html nor one of {', '.join(SUFFIXES)}.")
    frames_per_second = float(checked_numbers("save", "frames_per_second", frames_per_second, POSITIVE))
    speed = float(checked_numbers("save", "speed", speed, POSITIVE))
    if suffix == ".gif":
        frames_per_second = min(frames_per_second, MOST_GIF_FRAMES_PER_SECOND)
    encoder = find_encoder() if suffix in CODECS else ""
    try:
        with tempfile.TemporaryDirectory() as folder, Browser(width, height) as browser:
            page = Path(folder) / "page.html"
            page.write_text(html, encoding="utf-8")
            browser.open(page.as_uri())
            start, end = open_page(browser)
            if suffix in PICTURES:
                browser.run(SEEK.format(time=end if time is None else float(time)))
                path.write_bytes(browser.picture("png" if suffix == ".png" else "jpeg"))
                return path
            times = np.arange(start, end + 0.5 * speed / frames_per_second, speed / frames_per_second)
            pictures = pictures_at(browser, np.minimum(times, end))
            if suffix == ".gif":
                write_gif(path, pictures, frames_per_second)
            else:
                encode(encoder, CODECS[suffix], path, pictures, frames_per_second)
    except BrowserError as error:
        raise type(error)(f"save: no {suffix} without a browser: {error}") from error
    return path


def open_page(browser: Browser) -> tuple[float, float]:
    """Waits for the page, stops it and hides its controls; returns the first and last time in s."""
    browser.wait_for("window.mbjax && (window.mbjax.ready || window.mbjax.error)")
    problem = browser.run("window.mbjax.error ? String(window.mbjax.error) : ''")
    if problem:
        raise BrowserError(f"the page cannot draw: {problem}")
    browser.run(
        "window.mbjax.pause(); const style = document.createElement('style'); "
        f"style.textContent = '{WITHOUT_CONTROLS}'; document.head.append(style);"
    )
    start, end = browser.run("[window.mbjax.view.start, window.mbjax.view.end]")
    return float(start), float(end)


def pictures_at(browser: Browser, times: np.ndarray) -> Iterator[bytes]:
    """JPEG files of the page at these times."""
    for time in times.tolist():
        browser.run(SEEK.format(time=time))
        yield browser.picture("jpeg")


def find_encoder() -> str:
    """Path of ffmpeg: the system's, or that of the package imageio-ffmpeg."""
    found = shutil.which("ffmpeg")
    if found:
        return found
    otherwise = "Or install ffmpeg; a .gif or .html needs none."
    return imported("imageio_ffmpeg", "save: videos need ffmpeg", "video", otherwise).get_ffmpeg_exe()


def encode(
    encoder: str, codec: tuple[str, ...], path: Path, pictures: Iterator[bytes], frames_per_second: float
) -> None:
    """Passes pictures to ffmpeg, which writes the video; a side of odd length gains a pixel."""
    command = [
        encoder, "-y", "-loglevel", "error", "-f", "image2pipe", "-c:v", "mjpeg", "-framerate", f"{frames_per_second}",
        "-i", "-", "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", *codec, str(path),
    ]  # fmt: skip
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=said)
        assert process.stdin is not None
        try:
            for picture in pictures:
                process.stdin.write(picture)
            process.stdin.close()
        except BrokenPipeError:
            pass
        finally:
            failed = process.wait() != 0
        if failed:
            said.seek(0)
            raise OSError(f"save: ffmpeg could not write '{path}': {said.read().decode(errors='replace').strip()}")


def gif_durations(count: int, frames_per_second: float) -> list[int]:
    """How long each frame of a gif is seen, in ms: whole hundredths of a second that keep to the time all along."""
    ends = np.floor(100.0 * np.arange(count + 1) / frames_per_second + 0.5)
    return (10 * np.diff(ends).astype(int)).tolist()


def write_gif(path: Path, pictures: Iterator[bytes], frames_per_second: float) -> None:
    """Writes an endless gif, with the colours of its first frame."""
    Image = imported("PIL.Image", "save: a .gif needs Pillow", "video")
    frames = [Image.open(io.BytesIO(picture)).convert("RGB") for picture in pictures]
    palette = frames[0].quantize(256)
    first, *others = (frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames)
    durations = gif_durations(len(frames), frames_per_second)
    first.save(path, save_all=True, append_images=others, duration=durations, loop=0, optimize=False)
