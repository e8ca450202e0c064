"""Expands one xacro file, as a process of its own: reads a question as JSON from stdin, writes the answer to stdout.

xacro evaluates expressions of the file as Python and has one global state. Here it is changed in three ways that would
be rude in the caller's process: elements remember their file and line, packages are found as mbjax finds them, and an
audit hook refuses to read outside of the file's folder and the packages it names, to write, to import and to run.
"""

import ast
import importlib
import io
import json
import os
import re
import string
import sys
import types
import xml.parsers.expat
from typing import Any

FORBIDDEN_NAME = re.compile(r"^(gi|cr|ag|tb)_|^f_(back|globals|locals|builtins|code)$|__|^vars$")
ALLOWED_EVENTS = {
    "compile", "exec", "object.__getattr__", "builtins.id", "sys._getframe", "sys._getframemodulename", "array.__new__"
}  # fmt: skip
READING_EVENTS = {"open", "os.listdir", "os.scandir", "glob.glob", "glob.glob/2"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Place:
    """The element that is being expanded, for messages."""

    node: Any = None


def main() -> None:
    """Answers one question."""
    question = json.loads(sys.stdin.buffer.read())
    sys.path[:] = question["sys_path"]
    answer_to, sys.stdout = sys.stdout, io.StringIO()
    limit(question["memory"], question["seconds"])
    answer_to.write(json.dumps(expand(question)))
    answer_to.flush()


def limit(memory: int, seconds: float) -> None:
    """Bounds memory and processor time, where the system can."""
    try:
        import resource
    except ImportError:
        return
    for what, soft, hard in (
        (resource.RLIMIT_AS, memory, memory),
        (resource.RLIMIT_CPU, int(seconds) + 1, int(seconds) + 2),
    ):
        try:
            resource.setrlimit(what, (soft, hard))
        except (ValueError, OSError):  # as macOS does for memory
            continue


def expand(question: dict[str, Any]) -> dict[str, Any]:
    """The expanded tree, or an error with its place."""
    import encodings.latin_1

    import defusedxml.common
    import xacro
    import yaml
    from xacro import substitution_args

    del encodings, yaml
    name = question["file"]
    within_folder = os.path.join(question["folder"], os.path.basename(name)) if question["folder"] else None
    finder, readable = package_finder(question)
    substitution_args._eval_find = finder
    substitution_args._eval_dict["find"] = finder
    xacro.safe_eval = checked_eval
    sys.stderr = stderr = io.StringIO()
    warnings: list[str] = []
    xacro.warning = lambda *words, **_: warnings.append(" ".join(map(str, words)))
    xacro.print_location = lambda: None
    for function in ("eval_all", "grab_property", "grab_macro", "process_include", "handle_macro_call", "check_attrs"):
        track(xacro, function)
    module: Any = xacro
    module.parse = lambda _, filename: parse_file(xacro, filename)
    arguments = Arguments(question["arguments"])
    xacro.init_stacks(within_folder)
    try:
        document = parse_text(question["text"].encode("utf-8"), name, question["lines_before"])
        Place.node = document.documentElement
        sys.addaudithook(guard(readable))
        xacro.process_doc(document, mappings=arguments, verbosity=0)
        files: list[str] = []
        root = tree(document.documentElement, files, question, [0], 0)
    except Exception as error:
        file, line = place_of(Place.node, name)
        if isinstance(error, xml.parsers.expat.ExpatError):
            file, line = getattr(error, "file", name), error.lineno
        message = reason(error, defusedxml.common.DefusedXmlException)
        macros = [macro.body.getAttribute("name") for macro in reversed(xacro.macrostack or [])]
        inside = f" (in macro {', called by '.join(repr(macro) for macro in macros[:5])})" if macros else ""
        return {"error": message + inside, "file": file, "line": line}
    unused = sorted(set(question["arguments"]) - arguments.seen)
    said = [re.sub(r"\x1b\[[0-9;]*m", "", line).strip() for line in stderr.getvalue().split("\n")]
    warnings += [line for line in said if line]
    declared = sorted(arguments.seen)
    return {"root": root, "files": files, "warnings": warnings[:50], "unused": unused, "declared": declared}


class Arguments(dict):
    """The arguments, and which of them the file has asked for."""

    def __init__(self, given: dict[str, str]):
        super().__init__(given)
        self.seen: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.seen.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self.seen.add(str(name))
        return super().__contains__(name)


def package_finder(question: dict[str, Any]) -> tuple[Any, Any]:
    """What $(find package) means: the search of mbjax for package://; and the folders that may be read."""
    package = types.ModuleType("robot_files")  # the readers' folder, without all of mbjax
    package.__path__ = [question["files"]]
    sys.modules["robot_files"] = package
    resource_paths = importlib.import_module("robot_files.resource_paths")
    folder = resource_paths.Path(question["folder"]) if question["folder"] else None
    finder = resource_paths.ResourceFinder(folder, question["package_map"])

    def find(name: str) -> str:
        is_name = name not in ("", ".", "..") and not set(name) & {"/", "\\", os.sep}
        Guard.is_on = False
        try:
            path = finder.find_package(name) if is_name else None  # it may be read from now on
        finally:
            Guard.is_on = True
        if path is None:
            raise FileNotFoundError(f"package '{name}' was not found; give package_map={{'{name}': 'its folder'}}.")
        return str(path)

    return find, finder.readable


class Guard:
    """Whether the audit hook refuses; our own search for packages looks at folders above the file."""

    is_on = True


def guard(readable: Any) -> Any:
    """The audit hook: files are read in the folders that the policy names, and nothing else happens."""
    codecs = os.path.dirname(os.path.realpath(sys.modules["encodings"].__file__ or ""))

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if (
            not Guard.is_on
            or event in ALLOWED_EVENTS
            or event.startswith(("sys.monitoring", "cpython.PyInterpreterState"))
        ):
            return
        if event == "import":
            if not str(arguments[0]).startswith("encodings"):
                raise PermissionError(f"importing '{arguments[0]}' is not allowed")
            return
        if event not in READING_EVENTS:
            raise PermissionError(f"'{event}' is not allowed in a robot file")
        path = arguments[0]
        mode, flags = (arguments[1], arguments[2]) if event == "open" else ("r", 0)
        if isinstance(path, int) or set(mode or "") & set("wax+") or (flags or 0) & WRITING:
            raise PermissionError(f"writing '{path}' is not allowed")
        name = os.path.abspath(os.fsdecode(path or "."))
        if not readable.allows(name) and not os.path.realpath(name).startswith(codecs + os.sep):
            raise PermissionError(readable.refusal(name))

    return hook


def checked_eval(expression: str, symbols: dict, local_symbols: Any = None) -> Any:
    """An expression's value; names by which one gets at Python itself are refused, also within lambdas."""
    parsed = ast.parse(expression.strip(), "<expression>", "eval")
    for node in ast.walk(parsed):
        refuse_formats(node)
        words = [getattr(node, field, None) for field in ("id", "attr", "arg", "value")]
        for word in words:
            if isinstance(word, str) and FORBIDDEN_NAME.search(word) and not is_plain(node, word):
                raise ValueError(f"'{word[:60]}' is not allowed in an expression")
    symbols.update(__builtins__={})
    return eval(compile(parsed, "<expression>", "eval"), symbols, local_symbols)


def refuse_formats(node: ast.AST) -> None:
    """Refuses `format`, which reaches into Python's objects, but of a text that names whole arguments."""
    if isinstance(node, ast.Attribute) and node.attr in ("format", "format_map"):
        text = node.value.value if isinstance(node.value, ast.Constant) else None
        if node.attr != "format" or not isinstance(text, str) or not names_whole_arguments(text):
            raise ValueError(f"'{node.attr}' is allowed only of a text with fields like {{}} or {{0:.3f}}")


def names_whole_arguments(text: str) -> bool:
    """Whether the fields of a format are whole arguments, without attributes and entries of them."""
    for _, field, specification, _ in string.Formatter().parse(text):
        if field is not None and not re.fullmatch(r"\w*", field):
            return False
        if specification and not names_whole_arguments(specification):
            return False
    return True


def is_plain(node: ast.AST, word: str) -> bool:
    """Whether a word is a text without a way to Python's internals."""
    return isinstance(node, ast.Constant) and "__" not in word


def track(xacro: Any, name: str) -> None:
    """Remembers the element that a function of xacro is given, until it has returned."""
    original = getattr(xacro, name)

    def tracked(node: Any, *arguments: Any) -> Any:
        before, Place.node = Place.node, node
        result = original(node, *arguments)
        if name != "check_attrs":
            Place.node = before
        return result

    setattr(xacro, name, tracked)


class CopyPlace:
    """Gives copies of an element, as macros make them, the place of the original."""

    def handle(self, operation: Any, key: Any, data: Any, src: Any, dst: Any) -> None:
        del operation, src
        if dst is not None:
            dst.setUserData(key, data, self)


def parse_text(data: bytes, file: str, lines_before: int = 0) -> Any:
    """A DOM document without entities whose elements know where they stand."""
    from defusedxml.expatbuilder import DefusedExpatBuilderNS

    class Builder(DefusedExpatBuilderNS):
        def start_element_handler(self, name: Any, attributes: Any) -> None:
            super().start_element_handler(name, attributes)
            line = lines_before + self.getParser().CurrentLineNumber
            self.curNode.setUserData("place", (file, line), CopyPlace())

    try:
        return Builder(forbid_dtd=True, forbid_entities=True, forbid_external=True).parseString(data)
    except xml.parsers.expat.ExpatError as error:
        error.lineno += lines_before
        vars(error)["file"] = file
        raise


def parse_file(xacro: Any, filename: str) -> Any:
    """A file that another includes."""
    try:
        with open(os.path.join(xacro.root_dir, filename), "rb") as stream:
            data = stream.read()
    except FileNotFoundError as error:
        xacro.filestack.pop()
        raise xacro.XacroException(f"'{filename}' was not found", exc=error) from None
    return parse_text(data, os.path.abspath(filename))


def place_of(node: Any, file: str) -> tuple[str, int]:
    """File and line of an element, or of what holds it."""
    while node is not None:
        place = node.getUserData("place") if hasattr(node, "getUserData") else None
        if place is not None:
            return place
        node = node.parentNode
    return file, 1


def reason(error: Exception, forbidden: type[Exception]) -> str:
    """What went wrong, in one line."""
    causes: list[Any] = [error]
    while isinstance(getattr(causes[-1], "exc", None), Exception) and len(causes) < 20:
        causes.append(causes[-1].exc)
    if isinstance(causes[-1], RecursionError):
        return "nested too deeply; does a macro or a file include itself?"
    if isinstance(causes[-1], MemoryError):
        return "it needs too much memory; does it expand without end?"
    if isinstance(error, forbidden):
        return "the file declares a document type or entities, which mbjax refuses; remove the declaration"
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(causes[-1], FileNotFoundError) and error.args and error.args[0]:
        text = " ".join(str(error.args[0]).split())
    return re.sub(r"^<class '[\w.]+'>: |: line \d+, column \d+$", "", text)


def tree(node: Any, files: list[str], question: dict[str, Any], count: list[int], depth: int) -> list[Any]:
    """[tag, attributes, text, file, line, children] of an element."""
    count[0] += 1
    Place.node = node
    if count[0] > question["max_elements"] or depth > question["max_depth"]:
        raise ValueError(
            f"it expands to more than {question['max_elements']} elements, or {question['max_depth']} levels"
        )
    file, line = place_of(node, question["file"])
    if file not in files:
        files.append(file)
    children = [child for child in node.childNodes if child.nodeType == child.ELEMENT_NODE]
    texts = [child.data for child in node.childNodes if child.nodeType in (child.TEXT_NODE, child.CDATA_SECTION_NODE)]
    inside = [tree(child, files, question, count, depth + 1) for child in children]
    return [node.tagName, dict(node.attributes.items()), "".join(texts).strip(), files.index(file), line, inside]


if __name__ == "__main__":
    main()
