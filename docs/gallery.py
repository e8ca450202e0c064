"""The notebooks as pages, with the outputs that were recorded, and the gallery that is the landing page.

`python notebooks/run.py --record` keeps outputs in notebooks/outputs: texts, pictures, and of animations the motion.
The viewer that plays it is the package's own, put around it here. Nothing of mbjax is imported.
"""

import base64
import html
import json
import pathlib
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
OUTPUTS = NOTEBOOKS / "outputs"
VIEWER = ROOT / "mbjax" / "visualization" / "viewer"
SCRIPTS = (
    "three.min.js", "shapes.js", "arrows.js", "patches.js", "deformables.js", "joints.js", "scene.js", "player.js",
)  # fmt: skip
LONGEST = 60  # lines of an output
# Notebooks in the order of the gallery, by what they are about.
GROUPS = {
    "Begin": ("quick_start", "coming_from_mjx", "coming_from_drake", "closed_loops"),
    "Plan motions": (
        "swing_up", "arm_around_obstacles", "push_through_contact", "quadruped_gaits", "throw_into_a_goal",
        "model_predictive_control", "design_a_leg", "grip_by_gradient", "lift_with_soft_pads",
    ),
    "Control": ("pick_and_place", "humanoid_that_stands"),
    "Identify": (
        "identify_arm", "identify_from_a_laboratory_log", "identify_contact", "identify_payload", "identify_soft_bar",
    ),
    "Learn": ("train_a_quadruped", "domain_randomization"),
}  # fmt: skip


def cells_of(notebook: pathlib.Path) -> list[dict[str, Any]]:
    """The cells of a notebook."""
    return json.loads(notebook.read_text())["cells"]


def recorded(notebook: pathlib.Path) -> dict[str, list[dict[str, str]]]:
    """Recorded outputs by the number of the cell; none where nothing was recorded."""
    file = OUTPUTS / f"{notebook.stem}.json"
    return json.loads(file.read_text())["cells"] if file.exists() else {}


def notebook_page(notebook: pathlib.Path) -> dict[str, bytes]:
    """The page of a notebook and the files beside it, by name."""
    files: dict[str, bytes] = {notebook.name: notebook.read_bytes()}
    outputs, parts = recorded(notebook), []
    for number, cell in enumerate(cells_of(notebook)):
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for k, output in enumerate(outputs.get(str(number), ())):
            shown, more = markdown_of(output, f"{notebook.stem}-{number}-{k}")
            parts.append(shown)
            files |= more
    without = "" if outputs else ", here without its outputs"
    parts.insert(
        1, f"*This page is the notebook [`{notebook.name}`]({notebook.name}){without}: download it, and run it.*"
    )
    files[f"{notebook.stem}.md"] = ("\n\n".join(parts).replace("](../docs/", "](../") + "\n").encode()
    return files


def markdown_of(output: dict[str, str], name: str) -> tuple[str, dict[str, bytes]]:
    """An output in Markdown, and the files that it needs."""
    if "png" in output:
        return f"![What the cell draws]({name}.png)", {f"{name}.png": base64.b64decode(output["png"])}
    if "data" in output:
        title = json.loads(output["data"]).get("title") or "animation"
        height = output["height"]
        # A page of the site stands in a folder of its own, as `use_directory_urls` has it.
        frame = f'<iframe class="animation" src="../{name}.html" title="{html.escape(title)}" loading="lazy"'
        return f'{frame} style="height: {height}px"></iframe>', {f"{name}.html": animation(output, title).encode()}
    if "html" in output:
        return f'<div class="output" markdown="0">{output["html"]}</div>', {}
    lines = output["text"].rstrip("\n").split("\n")
    lines = lines if len(lines) <= LONGEST else [*lines[:LONGEST], f"… {len(lines) - LONGEST} more lines"]
    escaped = html.escape("\n".join(lines))
    return f'<pre class="output">{escaped.replace(chr(10) * 2, chr(10) + "&#8203;" + chr(10))}</pre>', {}


def animation(output: dict[str, str], title: str) -> str:
    """The page that plays a recorded motion: what `mbjax.show(…).save` writes."""
    viewer = "\n".join((VIEWER / name).read_text() for name in SCRIPTS).encode()
    parts = {
        "title": html.escape(title),
        "three_license": (VIEWER / "three.LICENSE.txt").read_text(),
        "style": (VIEWER / "style.css").read_text(),
        "unpack": (VIEWER / "unpack.js").read_text(),
        "viewer": base64.b64encode(zlib.compress(viewer, 9)).decode(),
        "data": output["data"],
        "arrays": output["arrays"],
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], (VIEWER / "page.html").read_text())


def landing_page(readme: pathlib.Path, on_site: Callable[[pathlib.Path], str]) -> dict[str, bytes]:
    """The gallery: what mbjax is, in the README's first words, and a card for each notebook."""
    first = on_site(readme).split("\n## ")[0]
    parts = [first.strip(), LINKS.strip()]
    files: dict[str, bytes] = {}
    for group, names in GROUPS.items():
        cards = "\n".join(card(NOTEBOOKS / f"{name}.ipynb", files) for name in names)
        parts += [f"## {group}", f'<div class="gallery">\n{cards}\n</div>']
    files["index.md"] = ("---\nhide: [navigation, toc]\n---\n\n" + "\n\n".join(parts) + "\n").encode()
    return files


LINKS = """
[Install](usage/install.md){ .md-button .md-button--primary }
[First gradient](usage/first_gradient.md){ .md-button }
[All that works](overview.md#what-works-today){ .md-button }
[Reference](reference/model.md){ .md-button }
"""


def card(notebook: pathlib.Path, files: dict[str, bytes]) -> str:
    """One card: the notebook's picture, title and first sentence."""
    text = "".join(cells_of(notebook)[0]["source"])
    title, _, rest = text.partition("\n")
    sentence = re.match(r".+?[.:](?=\s|$)", " ".join(rest.split()))
    words = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", sentence[0] if sentence else "").replace("`", "").rstrip(".:")
    image = f'<span class="nothing">{html.escape(first_text(notebook))}</span>'
    for name, content in picture_of(notebook):
        files[f"notebooks/{name}"] = content
        image = f'<img src="notebooks/{name}" alt="" loading="lazy">'
    about = f"<b>{html.escape(title.lstrip('# '))}</b><span>{html.escape(words)}.</span>"
    return f'<a class="card" href="notebooks/{notebook.stem}/">{image}{about}</a>'


def first_text(notebook: pathlib.Path) -> str:
    """The longest text that a notebook prints, in place of a picture; empty if nothing was recorded."""
    texts = [output["text"] for of_cell in recorded(notebook).values() for output in of_cell if "text" in output]
    return "\n".join(max(texts, key=len, default="").strip().split("\n")[:16])


def picture_of(notebook: pathlib.Path) -> Iterator[tuple[str, bytes]]:
    """The picture of a notebook's card, if it was recorded."""
    file = OUTPUTS / f"{notebook.stem}.jpg"
    if file.exists():
        yield f"{notebook.stem}.jpg", file.read_bytes()
