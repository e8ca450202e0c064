"""What mkdocs is told as it builds: the version in the header, and public names in the reference."""

import pathlib
import re
import sys
import tomllib
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs"))


def on_config(config: Any) -> Any:
    """Puts the version beside the name in the header."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    config.site_name = f"mbjax {project['version']}"
    return config


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Shows functions under the names that users call, where they are defined under others."""
    if not page.file.src_uri.startswith("reference/"):
        return html
    from reference_pages import renamed

    names = renamed()
    return re.sub(r"\bcalc_\w+\b", lambda found: names.get(found[0], found[0]), html)
