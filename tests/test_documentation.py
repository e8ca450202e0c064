"""Every Python snippet of README and docs runs, in order, page by page."""

import os
import pathlib
import re
import subprocess
import sys

import jax
import numpy as np
import pytest
from PIL import Image

from benchmarks.contact_gradients import readme_picture
from tests.xla_options import HAS_OLDER_GENERATOR

ROOT = pathlib.Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES += sorted((ROOT / "benchmarks").rglob("*.md"))
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+?)\)")


def name_of(page: pathlib.Path) -> str:
    return str(page.relative_to(ROOT))


DEAR = {
    "docs/usage/contact_gradients.md": "the same solver in tests/simulation/test_contact_integrator.py",
    "docs/usage/controllers.md": "the controllers' own tests, and pd_control.md",
    "docs/usage/constraints.md": "tests/constraints",
    "docs/usage/hydroelastic_contact.md": "tests/contact/test_hydroelastic_against_drake.py, and tests/geometry",
    "docs/usage/deformable_bodies.md": "tests/simulation/test_deformable_bodies.py, and tests/finite_elements",
    "docs/usage/contact.md": "tests/contact",
    "docs/usage/inverse_kinematics.md": "tests/reaching",
    "docs/usage/system_identification.md": "tests/system_identification, and tests/command_line/test_identify.py",
    "docs/usage/trajectory_optimization.md": "tests/trajectory_optimization",
    "docs/usage/many_worlds.md": "tests/environments, tests/randomization and tests/simulation/test_rollout_policy.py",
    "docs/usage/visualization.md": "tests/visualization",
    "docs/usage/parameters.md": "tests/parameters, and tests/model/test_model_status.py",
    "docs/usage/force_elements.md": "tests/forces",
    "docs/usage/files.md": "tests/formats",
    "docs/usage/simulation.md": "tests/simulation",
}


def with_snippets() -> list:
    pages = [p for p in PAGES if FENCE.search(p.read_text())]
    marks = [[pytest.mark.whole_run(DEAR[name_of(p)])] if name_of(p) in DEAR else [] for p in pages]
    return [pytest.param(p, marks=m, id=name_of(p)) for p, m in zip(pages, marks, strict=True)]


@pytest.mark.parametrize("page", with_snippets())
def test_snippets_run(page: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # what a snippet writes
    names: dict = {}
    with jax.numpy_dtype_promotion("standard"), jax.enable_x64(False):
        for snippet in FENCE.findall(page.read_text()):
            exec(compile(snippet, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: pathlib.Path) -> None:
    missing = [
        target
        for target in LINK.findall(page.read_text())
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert not missing


def test_xla_knows_the_flags_and_options() -> None:
    """XLA ends the process at a flag that it does not know; options of the older code generator are for JAX 0.10."""
    text = "\n".join(page.read_text() for page in PAGES if "notes" not in page.parts)
    flags = set(re.findall(r"--xla_\w+=\w+", text))
    program = "import jax; jax.jit(lambda x: x + 1.0)(1.0)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"XLA_FLAGS": " ".join(sorted(flags))},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    options = set(re.findall(r'"(xla_\w+)": (\w+)', text))
    assert options
    for name, value in options:
        if HAS_OLDER_GENERATOR or name != "xla_cpu_use_fusion_emitters":
            jax.jit(lambda x: x + 1.0, compiler_options={name: {"False": False}.get(value, value)})(1.0)


def test_readme_counts_its_lines() -> None:
    """First gradient, animation and trained policy: as many lines of code as the headings say."""
    found = re.findall(
        r"^## First [\w ]+: (\d+) lines?[\w ]*$(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S
    )
    for said, section in found:
        lines = [line for line in section.partition("```python\n")[2].splitlines() if line.strip()]
        assert len(lines) == int(said)
    assert len(found) == 3


def test_the_picture_of_the_readme_shows_the_records() -> None:
    """Drawn again by `python -m benchmarks.contact_gradients.readme_picture` when the records change."""
    assert str(readme_picture.PICTURE.relative_to(ROOT)) in (ROOT / "README.md").read_text()
    with Image.open(readme_picture.PICTURE) as picture:
        assert picture.info[readme_picture.KEY] == readme_picture.mark_of(readme_picture.curves())
    assert readme_picture.PICTURE.stat().st_size < 50_000


def test_what_the_readme_says_of_its_picture_is_so() -> None:
    """Ours is the slope of the values, to a part of its range; that of fixed steps is off by more than the range."""
    errors = {}
    curves = readme_picture.curves()
    height = np.ptp(np.array(curves["ours"])[:, 2])
    for kind, points in curves.items():
        speeds, values, slopes = np.array(points).T
        of_values = np.diff(values) / np.diff(speeds)
        errors[kind] = np.abs(of_values - 0.5 * (slopes[1:] + slopes[:-1])).max() / height
    assert errors["ours"] < 0.01
    assert errors["fixed"] > 1.0
