"""Videos and pictures are what the page shows, and what is missing for them is said."""

import contextlib
import io
import sys
import types

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image

import mbjax
from mbjax.visualization import video
from mbjax.visualization.browser import Browser, BrowserError
from tests.visualization.pages import find_browser
from tests.visualization.sledge import sledge_model, sliding


@pytest.fixture(scope="module")
def animation():
    model = sledge_model()
    return mbjax.show(model, {"run": sliding(model), "plan": sliding(model, speed=0.5)}, contact_forces=False)


def jpeg(level, size):
    file = io.BytesIO()
    Image.fromarray(np.full((*size, 3), level, np.uint8)).save(file, "jpeg")
    return file.getvalue()


@pytest.mark.whole_run("a page in a browser, in test_contact_patches.py, and videos that are encoded, below")
def test_gif_is_filmed_without_controls(animation, tmp_path) -> None:
    find_browser()
    path = animation.save(tmp_path / "slide.gif", width=240, height=160, frames_per_second=10.0, speed=3.0)
    with Image.open(path) as film:
        assert (film.n_frames, film.size) == (3, (240, 160))  # 0.6 s at three times the speed, both ends included
        frames = []
        for k in range(film.n_frames):
            film.seek(k)
            frames.append(np.asarray(film.convert("RGB"), float))
    assert np.abs(frames[0] - frames[2]).max() > 50.0  # it moves
    assert np.ptp(frames[0][-30:], axis=(0, 1)).max() < 200.0  # nothing of the controls' ink below


@pytest.mark.parametrize(("suffix", "size"), [(".mp4", (40, 60)), (".webm", (41, 59))])
def test_videos_are_encoded(suffix, size, tmp_path) -> None:
    path = tmp_path / f"film{suffix}"
    pictures = iter([jpeg(level, size) for level in (0, 120, 240)])
    video.encode(video.find_encoder(), video.CODECS[suffix], path, pictures, 10.0)
    reader = imageio_ffmpeg.read_frames(str(path))
    assert next(reader)["fps"] == 10.0
    levels = [np.frombuffer(frame, np.uint8).mean() for frame in reader]
    assert np.all(np.diff(levels) > 50.0)
    assert len(levels) == 3


@pytest.mark.parametrize(("frames_per_second", "count"), [(30.0, 60), (120.0, 100), (7.0, 14), (45.0, 90)])
def test_gifs_last_as_long_as_what_they_show(frames_per_second, count, tmp_path, monkeypatch) -> None:
    """Two seconds, in delays of whole hundredths of a second; browsers show 50 frames a second at most."""
    times, halves = [], np.repeat([0, 255], 4)[None, :, None]

    def pictures_at(_, wanted):
        times.extend(wanted.tolist())
        return (jpeg(halves[:, :: 1 - k % 2 * 2], (8, 8)) for k in range(len(wanted)))

    monkeypatch.setattr(video, "Browser", lambda *_: contextlib.nullcontext(types.SimpleNamespace(open=lambda _: None)))
    monkeypatch.setattr(video, "open_page", lambda _: (0.0, 2.0))
    monkeypatch.setattr(video, "pictures_at", pictures_at)
    size = {"width": 8, "height": 8, "frames_per_second": frames_per_second, "speed": 1.0}
    with Image.open(video.film("", tmp_path / "film.gif", **size)) as film:
        durations = []
        for k in range(film.n_frames):
            film.seek(k)
            durations.append(film.info["duration"])
    assert len(times) == count + 1
    ideal = 1000.0 / min(frames_per_second, 50.0)
    assert abs(sum(durations) - ideal * (count + 1)) <= 5.0
    assert min(durations) >= 20
    assert video.gif_durations(count, frames_per_second if frames_per_second < 50.0 else 50.0) == durations[:count]


def test_what_is_missing_is_said(animation, tmp_path, monkeypatch) -> None:
    with pytest.raises(mbjax.ModelError, match=r"'film\.avi' is neither \.html nor one of \.mp4"):
        animation.save(tmp_path / "film.avi")
    with pytest.raises(mbjax.ModelError, match="save: speed must be a finite number > 0"):
        animation.save(tmp_path / "film.gif", speed=0.0)
    with pytest.raises(mbjax.ModelError, match="save: frames_per_second must be one number, got '30'"):
        animation.save(tmp_path / "film.gif", frames_per_second="30")
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.delenv("MBJAX_CHROMIUM", raising=False)
    with pytest.raises(BrowserError, match=r"no \.png without a browser: no Chromium or Chrome was found"):
        animation.save(tmp_path / "film.png")
    with pytest.raises(BrowserError, match="MBJAX_CHROMIUM"):
        Browser(100, 100)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ImportError, match=r'pip install "mbjax\[video\]"'):
        animation.save(tmp_path / "film.mp4")
