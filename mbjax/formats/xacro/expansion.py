"""xacro file or text → the XML document it expands to, whose elements keep the file and line they come from."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mbjax.errors import MissingPackageError, ModelError, ParseError
from mbjax.optional_packages import how_to_install

from ..files.reading_policy import MAX_DEPTH, MAX_ELEMENTS, MEMORY, SECONDS
from ..xml.source import XmlDocument, read_text
from ..xml.tree import XmlElement
from ..xml.values import did_you_mean, shortened

EXTENSION = ".xacro"
WORKER = Path(__file__).with_name("worker.py")
FILES = Path(__file__).parent.parent / "files"


def is_xacro(path_or_text: Any, arguments: Mapping[str, Any] | None) -> bool:
    """Whether to expand: a file called *.xacro, or whatever is read with arguments, be they an empty dict."""
    if arguments is not None:
        return True
    is_name = isinstance(path_or_text, str) and "<" not in path_or_text and "\n" not in path_or_text
    return (is_name or isinstance(path_or_text, os.PathLike)) and str(path_or_text).lower().endswith(EXTENSION)


def expand_xacro(
    path_or_text: str | os.PathLike,
    arguments: Mapping[str, Any] | None,
    package_map: Mapping[str, str | os.PathLike],
    *,
    all_arguments_known: bool = True,
) -> tuple[XmlDocument, list[str]]:
    """The expanded document, and what xacro warned of.

    Expressions of xacro are evaluated as Python, so this happens in a process that reads only the file's folder or its
    package and packages that the file names, writes nothing, imports nothing, and has limits of time and memory.
    """
    source = read_text(path_or_text)
    given = checked_arguments(arguments or {})
    if importlib.util.find_spec("xacro") is None:  # the worker imports it, in its process
        way_out = how_to_install("xacro", "xacro")
        raise MissingPackageError(f"expanding xacro needs the package xacro: {way_out}.", file=source.file)
    text = source.text.lstrip("\ufeff \t\r\n")
    lines_before = source.text.count("\n", 0, len(source.text) - len(text))
    answer = run_worker(
        {
            "text": text,
            "lines_before": lines_before,
            "file": source.file,
            "folder": None if source.folder is None else str(source.folder),
            "arguments": given,
            "package_map": {name: str(folder) for name, folder in package_map.items()},
            "files": str(FILES),
            "sys_path": sys.path,
            "memory": MEMORY,
            "seconds": SECONDS,
            "max_elements": MAX_ELEMENTS,
            "max_depth": MAX_DEPTH,
        },
        source.file,
    )
    if "error" in answer:
        raise ParseError(f"xacro: {answer['error']}", file=answer["file"], line=answer["line"])
    if all_arguments_known:
        refuse_unknown(given, answer["unused"], answer["declared"], source.file)
    root = element_of(answer["root"], answer["files"])
    if root.tag == "mujoco":
        raise root.error("xacro that expands to MJCF is not read; expand it first, with `xacro FILE.xacro > FILE.xml`.")
    return XmlDocument(root, source.file, source.folder), answer["warnings"]


def checked_arguments(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Arguments as the words that xacro takes."""
    if not isinstance(arguments, Mapping):
        raise ModelError(f"xacro_arguments: expected a dict from name to value, got {type(arguments).__name__}.")
    words = {}
    for name, value in arguments.items():
        if not isinstance(name, str) or not isinstance(value, str | bool | int | float):
            raise ModelError(
                f"xacro_arguments[{name!r}] = {value!r}: expected names to texts, numbers or truth values."
            )
        words[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return words


def refuse_unknown(given: Mapping[str, str], unused: list[str], declared: list[str], file: str) -> None:
    """Refuses an argument that the file neither declares nor asks for."""
    if unused:
        known = f"it has {', '.join(declared)}" if declared else "it has none"
        hint = did_you_mean(unused[0], declared) if declared else ""
        value = shortened(given[unused[0]])
        raise ModelError(
            f"{file}: it has no xacro argument '{unused[0]}' (given as '{value}'); {known}. {hint}".strip()
        )


def run_worker(question: dict[str, Any], file: str) -> dict[str, Any]:
    """The worker's answer; it is another process, which can be stopped and has nothing to lose."""
    if not sys.executable:
        raise ParseError("xacro: there is no Python interpreter to expand it with; expand it first.", file=file)
    command = [sys.executable, "-P", "-S", "-B", str(WORKER)]
    try:
        done = subprocess.run(
            command, input=json.dumps(question), capture_output=True, text=True, encoding="utf-8", timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        message = f"xacro: not expanded after {SECONDS:g} s; does a macro call itself, or an expression never end?"
        raise ParseError(message, file=file) from None
    try:
        return json.loads(done.stdout)
    except ValueError:
        words = done.stderr.split("\n")
        last = next((line for line in reversed(words) if line.strip()), f"it ended with code {done.returncode}")
        limits = f"It may use {SECONDS:g} s and {MEMORY // 1024**3} GiB."
        message = f"xacro: the expansion was stopped: {shortened(last, 200)}. {limits}"
        raise ParseError(message, file=file) from None


def element_of(tree: list[Any], files: list[str]) -> XmlElement:
    """The element that the worker wrote as [tag, attributes, text, file, line, children]."""
    tag, attributes, text, file, line, children = tree
    return XmlElement(tag, attributes, files[file], line, [element_of(child, files) for child in children], text)
