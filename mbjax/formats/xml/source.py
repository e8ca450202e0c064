"""Reads XML from a path or from text, safely: no DTD, no entities, nothing fetched, bounded size."""

import codecs
import dataclasses
import difflib
import os
import re
from io import BytesIO
from pathlib import Path
from xml.sax import SAXParseException
from xml.sax.xmlreader import InputSource

from defusedxml.common import DefusedXmlException
from defusedxml.expatreader import DefusedExpatParser

from mbjax.errors import ModelError, ParseError
from mbjax.reference_models import find_robot, no_robot

from ..files.reading_policy import MAX_BYTES, ReadableFolders
from .tree import TreeBuilder, XmlElement

TEXT_NAME = "<XML text>"
LONGEST_NAME = 100  # characters of a robot's name
ROBOT_FILES = (".urdf", ".sdf", ".xml", ".xacro", ".dmd.yaml")
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
TEXT_ENCODINGS = (
    "utf-8",
    "utf-16",
    "utf-32",
    "ascii",
    "iso8859-",
    "cp125",
    "gb",
    "shift_jis",
    "euc_",
    "big5",
)
COMPRESSED = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}
ENCODING_DECLARATION = re.compile(rb"^<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([^\"']{1,60})[\"']")


@dataclasses.dataclass(frozen=True)
class XmlDocument:
    """A document: its root element, the source's name in messages, its folder, or the text itself."""

    root: XmlElement
    file: str
    folder: Path | None
    text: str = ""


@dataclasses.dataclass(frozen=True)
class SourceText:
    """A text, its source's name in messages, and its folder."""

    text: str
    file: str
    folder: Path | None


def read_xml(path_or_text: str | os.PathLike, *, may_quote: bool = True) -> XmlDocument:
    """Parses text that, stripped, starts with '<', else the file of that path or the bundled model of that name.

    Messages may quote from what is no XML, unless another file has named it.
    """
    source = read_text(path_or_text)
    text = source.text if source.folder is None else ""
    return XmlDocument(_parse(source.text, source.file, may_quote), source.file, source.folder, text)


def read_named_xml(path: str | os.PathLike, readable: ReadableFolders) -> XmlDocument:
    """The document of a file that another file names, where the policy lets it be read."""
    if not readable.allows(path):
        raise PermissionError(readable.refusal(path))
    if not os.path.isfile(path):
        raise FileNotFoundError(f"there is no file '{os.path.abspath(path)}'.")
    return read_xml(Path(path), may_quote=False)


def read_text(path_or_text: str | os.PathLike) -> SourceText:
    """The text itself where it starts with '<', else the contents of a file or of a robot by name, decoded."""
    if not isinstance(path_or_text, str | os.PathLike):
        raise ModelError(
            f"expected the path of a robot file (str or Path) or its XML text (str), got {type(path_or_text).__name__}."
        )
    if isinstance(path_or_text, str) and path_or_text.lstrip("\ufeff \t\r\n").startswith("<"):
        return SourceText(_decoded(_text_bytes(path_or_text), TEXT_NAME), TEXT_NAME, None)
    if isinstance(path_or_text, str) and not path_or_text.strip():
        raise ParseError("the text is empty; give the path of a robot file or its XML text.")
    path = Path(path_or_text).expanduser()
    if isinstance(path_or_text, str) and may_be_name(path) and not path.exists():
        path = find_robot(path_or_text) or path
    return SourceText(_decoded(_file_bytes(path), str(path)), str(path), _absolute_folder(path))


def _absolute_folder(path: Path) -> Path:
    return Path(os.path.abspath(path)).parent


def _text_bytes(text: str) -> bytes:
    if len(text) > MAX_BYTES:
        raise ParseError(f"the text has {len(text)} characters; at most {MAX_BYTES} are read.", file=TEXT_NAME)
    try:
        return text.lstrip("\ufeff").encode("utf-8")
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise ParseError(
            f"character {text[error.start]!r} is half of a surrogate pair and cannot be written as UTF-8.",
            file=TEXT_NAME,
            line=line,
        ) from None


def _file_bytes(path: Path) -> bytes:
    shown = str(path)
    try:
        if path.is_dir():
            names = sorted(child.name for child in path.iterdir() if child.name.lower().endswith(ROBOT_FILES))
            inside = ", ".join(names[:5]) or f"no robot file ({', '.join(ROBOT_FILES)})"
            raise ParseError(f"this is a directory; give the path of a robot file. It holds {inside}.", file=shown)
        if not path.exists():
            raise ParseError(_no_such_file(path), file=shown)
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise ParseError(f"the file has {size} bytes; at most {MAX_BYTES} are read.", file=shown)
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, ParseError):
            raise
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ParseError(f"the file cannot be read: {reason}.", file=shown[:200]) from None
    if len(data) > MAX_BYTES:
        raise ParseError(f"more than {MAX_BYTES} bytes; no robot file needs that.", file=shown)
    return data


def _no_such_file(path: Path) -> str:
    """Message for a missing file, with a guess at what was meant; a bare name could be that of a bundled model."""
    if path.is_symlink():
        return f"this is a link to '{os.readlink(path)}', where there is no file."
    if path.parent != Path() or path.suffix:
        return f"there is no such file. {_near_files(path)}"
    reason = no_robot(path.name)
    return f"there is no such file, and {reason}{'' if 'Did you mean' in reason else f' {_near_files(path)}'}"


def may_be_name(path: Path) -> bool:
    """Whether this may be the name of a robot, like `panda` or `unitree_go2/scene`, and not that of a file."""
    is_short = len(str(path)) <= LONGEST_NAME and str(path).isprintable()
    return (
        is_short and len(path.parts) in (1, 2, 3) and path.suffix.lower() not in ROBOT_FILES and not path.is_absolute()
    )


def _near_files(path: Path) -> str:
    hint = "(XML text must start with '<'.)"
    folder = path.parent
    if not folder.is_dir():
        return f"The folder '{folder}' does not exist either. {hint}"
    names = [child.name for child in folder.iterdir()]
    close = difflib.get_close_matches(path.name, names, n=3, cutoff=0.5)
    if not close:
        close = sorted(name for name in names if name.lower().endswith(ROBOT_FILES))[:3]
    if not close:
        return f"The folder '{folder}' holds no file of a similar name. {hint}"
    return "Did you mean " + " or ".join(f"'{folder / name}'" for name in close) + f"? {hint}"


def _parse(text: str, file: str, may_quote: bool) -> XmlElement:
    stripped = text.lstrip("\ufeff \t\r\n")
    lines_before = text.count("\n", 0, len(text) - len(stripped))
    if not stripped:
        raise ParseError("it is empty; expected a robot in XML (URDF, SDFormat or MJCF).", file=file)
    if not stripped.startswith("<"):
        begins = f"starts with {stripped[:20]!r}" if may_quote else "starts with something else"
        raise ParseError(
            f"this is not XML: it {begins} instead of '<'. mbjax reads URDF, SDFormat, MJCF and model directives.",
            file=file,
            line=lines_before + 1,
        )
    source = InputSource()
    source.setByteStream(BytesIO(stripped.encode("utf-8")))
    source.setEncoding("utf-8")
    builder = TreeBuilder(file, lines_before)
    parser = DefusedExpatParser(bufsize=2 * MAX_BYTES, forbid_dtd=True, forbid_entities=True, forbid_external=True)
    parser.setContentHandler(builder)
    try:
        parser.parse(source)
    except DefusedXmlException:
        raise ParseError(
            "the file declares a document type (<!DOCTYPE or <!ENTITY). Entities can read other files or "
            "grow without bound, so mbjax refuses them. Remove the declaration.",
            file=file,
            line=builder.line,
        ) from None
    except SAXParseException as error:
        raise _malformed(error, builder) from None
    assert builder.root is not None
    return builder.root


def _decoded(data: bytes, file: str) -> str:
    for magic, kind in COMPRESSED.items():
        if data.startswith(magic):
            saved = " A model that mbjax.save wrote is read by mbjax.load_model." if kind == "zip" else ""
            raise ParseError(f"this is a {kind} archive, not XML; unpack it first.{saved}", file=file)
    encoding = next((name for mark, name in BYTE_ORDER_MARKS if data.startswith(mark)), None)
    if encoding is None and b"\0" in data[:4096]:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise ParseError(
            "this is binary data (it has NUL bytes), not XML text. Give the robot file, not a mesh or an archive.",
            file=file,
            line=line,
        )
    if encoding is None:
        declared = ENCODING_DECLARATION.match(data.lstrip())
        encoding = "utf-8" if declared is None or file == TEXT_NAME else _known_encoding(declared, file)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ParseError(
            f"byte 0x{data[error.start]:02x} is not valid {encoding}. Save the file as UTF-8, or declare its "
            'encoding in the first line, like <?xml version="1.0" encoding="iso-8859-1"?>.',
            file=file,
            line=line,
        ) from None


def _known_encoding(declared: re.Match, file: str) -> str:
    name = declared.group(1).decode("ascii", "replace")
    try:
        canonical = codecs.lookup(name).name
    except (LookupError, ValueError):
        canonical = ""
    if not canonical.startswith(TEXT_ENCODINGS):
        raise ParseError(f"the declared encoding '{name}' is unknown. Save the file as UTF-8.", file=file, line=1)
    # Without a byte order mark the declaration itself was readable byte by byte.
    return "utf-8" if canonical.startswith(("utf-16", "utf-32")) else canonical


def _malformed(error: SAXParseException, builder: TreeBuilder) -> ParseError:
    reason = error.getMessage()
    line = builder.lines_before + (error.getLineNumber() or 1)
    column = (error.getColumnNumber() or 0) + 1
    still_open = ""
    if builder.open_elements:
        element = builder.open_elements[-1]
        still_open = f" {element.label}, opened at line {element.line}, is not closed."
    if reason in ("no element found", "unclosed token", "unclosed CDATA section"):
        reason = f"{reason}: the XML ends too early; is the file truncated?"
    return ParseError(
        f"malformed XML at column {column}: {reason}.{still_open}".replace("?.", "?"),
        file=builder.file,
        line=line,
    )
