"""Tables of numbers from files: CSV, npz, Parquet and MCAP."""

import codecs
import csv
import io
import json
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from mbjax.errors import ModelError, ModelWarning
from mbjax.optional_packages import imported

from .joint_state import JOINT_STATE, read_joint_state

Table = dict[str, Any]  # columns by name


def read_table(path: Path) -> Table:
    """Columns of a file by name; the format is that of its suffix."""
    if not path.is_file():
        raise ModelError(f"{path}: there is no such log file.")
    if path.suffix.lower() not in READERS:
        raise ModelError(f"{path}: a log must be a file of {', '.join(READERS)}.")
    table = read_or_refuse(path)
    if not table:
        raise ModelError(f"{path}: the log is empty.")
    lengths = {name: len(column) for name, column in table.items()}
    if len(set(lengths.values())) > 1:
        short = min(lengths, key=lambda name: lengths[name])
        raise ModelError(f"{path}: column '{short}' has {lengths[short]} rows, others have {max(lengths.values())}.")
    return table


def read_or_refuse(path: Path) -> Table:
    """Columns of a file; whatever a reader of the format stumbles over is one error with the file's name."""
    suffix = path.suffix.lower()
    try:
        return READERS[suffix](path)
    except (ModelError, ImportError):  # these say it already
        raise
    except Exception as error:  # each package has errors of its own for files that are damaged or of another format
        if path.stat().st_size == 0:
            raise ModelError(f"{path}: the file is empty.") from None
        said = " ".join(str(error).split())[:200] or type(error).__name__
        if "pickle" in said:  # NumPy's advice to read it unsafely is none for a log
            said = "no archive of arrays"
        raise ModelError(
            f"{path}: the file is damaged, or none of the format that its suffix {suffix} says ({said}). Write it "
            "again, or name it by its format."
        ) from None


def read_csv(path: Path) -> Table:
    """Columns of a CSV file with a row of names, separated by comma, semicolon or tab; lines with # are left out."""
    lines = [(k, line) for k, line in enumerate(text_lines(path), 1) if line.strip() and not line.startswith("#")]
    if len(lines) < 2:
        raise ModelError(f"{path}: the log has no rows.")
    reader = csv.reader([line for _, line in lines], delimiter=max(",;\t", key=lines[0][1].count))
    rows, places = [], []
    try:
        for row in reader:  # a row has several lines where a quoted text has line breaks
            rows.append(row)
            places.append(lines[reader.line_num - 1][0])
    except csv.Error as error:
        place = lines[max(reader.line_num - 1, 0)][0]
        raise ModelError(
            f"{path}:{place}: {error}. Is a quotation mark missing? A log holds names and numbers."
        ) from None
    names = [name.strip() for name in rows[0]]
    for place, row in zip(places[1:], rows[1:], strict=True):
        if len(row) != len(names):
            raise ModelError(f"{path}:{place}: {len(row)} values in a row of {len(names)} columns.")
    named = [(k, name) for k, name in enumerate(names) if name or k == 0]  # a separator at the end names nothing
    return table_of(path, [(name, [row[k] for row in rows[1:]]) for k, name in named])


def table_of(path: Path, columns: Iterable[tuple[str, Any]]) -> Table:
    """Columns by name; raises `ModelError` for a name that stands twice."""
    table: Table = {}
    for name, column in columns:
        if name in table:
            raise ModelError(
                f"{path}: there are two columns '{name}', and nothing says which is meant; rename one, or take it out."
            )
        table[name] = column
    return table


def text_lines(path: Path) -> list[str]:
    """The lines of a text, with their ends: UTF-8, or UTF-16 with its mark; other bytes as Latin-1, with a warning."""
    data = path.read_bytes()
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = data.decode("utf-16")
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            text = data.decode("latin-1")
            line = data.count(b"\n", 0, error.start) + 1
            warnings.warn(
                f"{path}:{line}: byte 0x{data[error.start]:02x} is not UTF-8, so the log is read as Latin-1. Save it "
                "as UTF-8 if names of columns look wrong.",
                ModelWarning, stacklevel=6,
            )  # fmt: skip
    return io.StringIO(text, newline="").readlines()


def read_npz(path: Path) -> Table:
    """Arrays of an npz file; those with several columns become `name0`, `name1`, …"""
    columns: list[tuple[str, Any]] = []
    with path.open("rb") as file:  # NumPy would leave a damaged one open
        arrays = np.load(file, allow_pickle=False)
        if not isinstance(arrays, np.lib.npyio.NpzFile):
            raise ModelError(f"{path}: this is a single array (.npy); a log is written by np.savez(path, time=…, q=…).")
        for name in arrays.files:
            try:
                array = np.asarray(arrays[name])
            except ValueError as error:
                if "pickle" not in str(error):
                    raise
                raise ModelError(
                    f"{path}: array '{name}' holds Python objects, which are not read. Save numbers: "
                    f"np.asarray({name}, float)."
                ) from None
            if array.ndim == 1:
                columns.append((name, array))
            elif array.ndim == 2:
                columns += [(f"{name}{k}", array[:, k]) for k in range(array.shape[1])]
    return table_of(path, columns)


def read_parquet(path: Path) -> Table:
    """Columns of a Parquet file, by pyarrow; lists of numbers become `name0`, `name1`, …"""
    parquet = imported("pyarrow.parquet", "Parquet logs need pyarrow", "identify")
    columns: list[tuple[str, Any]] = []
    arrow = parquet.ParquetFile(path).read()
    for name, column in zip(arrow.column_names, (column.to_pylist() for column in arrow.columns), strict=True):
        if column and isinstance(column[0], list):
            columns += [(f"{name}{k}", [row[k] for row in column]) for k in range(len(column[0]))]
        else:
            columns.append((name, column))
    return table_of(path, columns)


def read_mcap(path: Path) -> Table:
    """Messages of an MCAP file, by mcap: numbers as `topic.field`, at the times of the densest topic.

    Messages in JSON are read, and `sensor_msgs/msg/JointState` as ROS 2 records it. Joint states with `name`,
    `position`, `velocity` and `effort` become `position.joint` and so on. Other topics are interpolated linearly to
    those times.
    """
    make_reader = imported("mcap.reader", "MCAP logs need mcap", "identify").make_reader
    topics: dict[str, tuple[list[float], list[dict[str, float]]]] = {}
    skipped: set[str] = set()
    with path.open("rb") as file:
        for schema, channel, message in make_reader(file).iter_messages():
            is_joint_state = channel.message_encoding == "cdr" and schema and schema.name == JOINT_STATE
            if channel.message_encoding != "json" and not is_joint_state:
                skipped.add(f"{channel.topic} ({channel.message_encoding})")
                continue
            times, rows = topics.setdefault(channel.topic, ([], []))
            times.append(1e-9 * message.log_time)
            content = read_joint_state(message.data) if is_joint_state else json.loads(message.data)
            rows.append(flat_numbers(channel.topic.strip("/"), content))
    if not topics:
        raise ModelError(
            f"{path}: no messages in JSON, and no {JOINT_STATE}; found {', '.join(sorted(skipped)) or 'none at all'}. "
            "Write what you need into a CSV or Parquet file."
        )
    densest = max(topics, key=lambda topic: len(topics[topic][0]))
    time = np.array(topics[densest][0])
    columns: list[tuple[str, Any]] = [("time", time)]
    for times, rows in topics.values():
        for name in rows[0]:
            values = np.array([row.get(name, np.nan) for row in rows])
            columns.append((name, values if len(times) == len(time) else np.interp(time, times, values)))
    return table_of(path, columns)


def flat_numbers(name: str, message: Any) -> dict[str, float]:
    """Numbers of a message by dotted name."""
    if isinstance(message, dict) and isinstance(message.get("name"), list):
        return {
            f"{signal}.{joint}": float(value)
            for signal in ("position", "velocity", "effort")
            for joint, value in zip(message["name"], message.get(signal) or [], strict=False)
        }
    if isinstance(message, dict):
        parts = [flat_numbers(f"{name}.{key}" if name else key, value) for key, value in message.items()]
        return {key: value for part in parts for key, value in part.items()}
    if isinstance(message, list):
        return {f"{name}{k}": float(x) for k, x in enumerate(message) if isinstance(x, int | float)}
    return {name: float(message)} if isinstance(message, int | float) else {}


READERS: dict[str, Callable[[Path], Table]] = {
    ".csv": read_csv, ".npz": read_npz, ".parquet": read_parquet, ".mcap": read_mcap,
}  # fmt: skip
