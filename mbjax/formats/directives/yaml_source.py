"""Reads YAML safely, with lines: no objects are made of it, and it is bounded in size and depth."""

import dataclasses
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from mbjax.errors import ParseError
from mbjax.optional_packages import imported

from ..files.reading_policy import MAX_YAML_BYTES, MAX_YAML_DEPTH, MAX_YAML_VALUES
from ..xml.values import NUMBER, did_you_mean, shortened

TEXT_NAME = "<YAML text>"
DIRECTIVES = re.compile(r"^directives\s*:", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class YamlFile:
    """The text, the name to call its source by, and the folder it lies in."""

    text: str
    file: str
    folder: Path | None


@dataclasses.dataclass(frozen=True)
class Value:
    """A mapping (dict), a sequence (list) or a scalar (str) of a YAML file, with its tag and place."""

    data: Any
    tag: str
    file: str
    line: int

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"

    def error(self, message: str) -> ParseError:
        return ParseError(message, file=self.file, line=self.line)

    def mapping(self, what: str, *keys: str) -> dict[str, "Value"]:
        """The entries, all under known keys."""
        if not isinstance(self.data, dict):
            raise self.error(f"{what}: expected a mapping of {', '.join(keys)}.")
        for key, value in self.data.items():
            if keys and key not in keys:
                raise value.error(f"{what}: unknown key '{key[:100]}'. {did_you_mean(key, keys)}")
        return self.data

    def text(self, what: str) -> str:
        """A word."""
        if not isinstance(self.data, str) or not self.data.strip():
            raise self.error(f"{what}: expected a name.")
        return self.data.strip()

    def items(self, what: str) -> list["Value"]:
        """The entries of a sequence."""
        if not isinstance(self.data, list):
            raise self.error(f"{what}: expected a list, like [1, 2, 3].")
        return self.data

    def numbers(self, what: str, count: int | None = None) -> np.ndarray:
        """Finite numbers: a sequence of them, or one."""
        items = self.data if isinstance(self.data, list) else [self]
        words = [item.data if isinstance(item.data, str) else "" for item in items]
        if count is not None and len(words) != count:
            raise self.error(f"{what}: expected {count} numbers, got {len(words)}.")
        for word in words:
            if len(word) > 400 or not NUMBER.fullmatch(word) or not np.isfinite(float(word)):
                raise self.error(f"{what}: '{shortened(word)}' is not a finite number.")
        return np.array([float(word) for word in words])


def find_directives(path_or_text: Any) -> YamlFile | None:
    """The YAML file or text, if it holds model directives: `directives:` at the start of a line."""
    if not isinstance(path_or_text, str | os.PathLike):
        return None
    if isinstance(path_or_text, str) and "\n" in path_or_text:
        is_yaml = not path_or_text.lstrip("\ufeff \t\r\n").startswith("<") and DIRECTIVES.search(path_or_text)
        return YamlFile(path_or_text, TEXT_NAME, None) if is_yaml else None
    path = Path(path_or_text).expanduser()
    try:
        if not path.is_file():
            return None
        with path.open("rb") as stream:
            data = stream.read(MAX_YAML_BYTES + 1)
    except (OSError, ValueError):
        return None  # the reader of XML says what is wrong
    text = data.decode("utf-8", "replace")
    if text.lstrip("\ufeff \t\r\n").startswith("<") or not DIRECTIVES.search(text):
        return None
    if len(data) > MAX_YAML_BYTES:
        raise ParseError(f"more than {MAX_YAML_BYTES} bytes; no file of directives needs that.", file=str(path))
    return YamlFile(text, str(path), path.resolve().parent)


def read_yaml(source: YamlFile) -> Value:
    """The contents as values."""
    yaml = imported("yaml", "model directives need PyYAML", "directives", file=source.file)
    try:
        node = yaml.compose(source.text, Loader=yaml.SafeLoader)
    except RecursionError:
        raise ParseError("nested too deeply; no file of directives needs that.", file=source.file, line=1) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = 1 if mark is None else mark.line + 1
        problem = getattr(error, "problem", None) or "it cannot be read"
        raise ParseError(f"malformed YAML: {problem}.", file=source.file, line=line) from None
    count = 0

    def convert(node: Any, depth: int) -> Value:
        nonlocal count
        count += 1
        line = node.start_mark.line + 1
        if count > MAX_YAML_VALUES or depth > MAX_YAML_DEPTH:
            raise ParseError("too many values, or nested too deeply.", file=source.file, line=line)
        if isinstance(node, yaml.MappingNode):
            data: Any = {}
            for key, value in node.value:
                name = str(key.value)
                if name in data:
                    raise ParseError(
                        f"key '{name[:100]}' stands twice.", file=source.file, line=key.start_mark.line + 1
                    )
                data[name] = convert(value, depth + 1)
        elif isinstance(node, yaml.SequenceNode):
            data = [convert(value, depth + 1) for value in node.value]
        else:
            data = node.value
        return Value(data, node.tag, source.file, line)

    if node is None:
        raise ParseError("it is empty; expected directives.", file=source.file, line=1)
    return convert(node, 0)
