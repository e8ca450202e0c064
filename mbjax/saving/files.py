"""`save` and `load_model`: one npz file with a JSON document and the arrays it names. Nothing is pickled."""

import contextlib
import json
import os
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any

import jax
import numpy as np

from mbjax.errors import ModelError, ModelWarning, ParseError
from mbjax.model import MultibodyModel, find_number_by_number, sentences
from mbjax.model.model_shapes import expected_shapes
from mbjax.plant.number_checks import float_type

from .encoding import BadDocumentError, Decoder, encoded
from .structure import find_misfit

FORMAT = "mbjax model"
SCHEMA_VERSION = 1
DOCUMENT = "document"
MOST_SENTENCES = 4  # in a warning
DAMAGE = (  # what NumPy, zip, JSON and a structure that is none raise
    OSError, EOFError, LookupError, ValueError, TypeError, AttributeError, MemoryError, RecursionError,
    NotImplementedError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
WAY_OUT = "Write it again with mbjax.save, or load the robot from its own file with mbjax.load."


def save(model: MultibodyModel, path: str | os.PathLike | IO[bytes]) -> None:
    """Saves a model with everything it holds: structure, names, geometry, report, and every leaf in its own dtype.

    `load_model` reads it back, equal in structure and bit by bit in numbers; programs compiled for one run the other.
    A batch of models is saved as it is. `path` is a file's name or a file that is open for writing bytes. Force
    elements, constraints, distributions and joints of your own classes, and forces per volume on deformable bodies, are
    refused, since the file holds no code. A mesh that is drawn stays in its own file; the vertices of one that touches
    are in the model. Numbers that make no sense, such as NaN, are kept and warned of, here and by `load_model`.
    """
    if type(model) is not MultibodyModel:
        raise ModelError(
            f"save: expected a MultibodyModel, got {type(model).__name__}; a plant is saved once finalized."
        )
    arrays: list[np.ndarray] = []
    document = {"format": FORMAT, "schema_version": SCHEMA_VERSION, "model": encoded(model, arrays, "model")}
    text = np.frombuffer(json.dumps(document).encode(), np.uint8)
    named = {f"array_{i}": array for i, array in enumerate(arrays)}
    with open(path, "wb") if isinstance(path, str | os.PathLike) else contextlib.nullcontext(path) as file:
        np.savez_compressed(file, **{DOCUMENT: text}, **named)  # pyright: ignore[reportArgumentType]
    warn_of_bad_numbers("save", model)


def load_model(path: str | os.PathLike | IO[bytes], *, dtype: Any = None) -> MultibodyModel:
    """Loads a model that `save` wrote. The file is data alone: no code of it runs, whoever wrote it.

    Leaves have the types they were saved with, or the float type `dtype`. Robot files (URDF, SDFormat, MJCF) are for
    `mbjax.load`.
    """
    dtype = None if dtype is None else float_type("load_model", dtype)
    file = str(path) if isinstance(path, str | os.PathLike) else str(getattr(path, "name", "file object"))
    with errors_of_file(file):
        document, arrays = read_parts(path)
        require_schema(document)
        model = Decoder(arrays, dtype).value(document["model"])
        require_model(model)
        warn_of_bad_numbers(f"load_model: {file}", model)
    return model


def warn_of_bad_numbers(call: str, model: MultibodyModel) -> None:
    """Warns of numbers that break their rules, such as NaN; they stay as they are."""
    known = jax.device_get(model)
    shapes = dict(expected_shapes(model.topology, model.layout))
    is_batch = any(np.ndim(getattr(known.parameters, name)) > len(shape) for name, shape in shapes.items())
    found = [finding for finding in find_number_by_number(known) if np.any(finding.is_bad)]
    if not found:
        return
    if is_batch:
        said = [f"{finding.leaf.what} must be {finding.words}, and is not in every world" for finding in found]
        way_out = "jax.vmap(mbjax.model_status) counts them world by world"
    else:
        said = [sentence.rstrip(".") for finding in found for sentence in sentences(known, finding)]
        way_out = "mbjax.diagnose(model) lists them all"
    more = f"; and {len(said) - MOST_SENTENCES} more" if len(said) > MOST_SENTENCES else ""
    warnings.warn(
        f"{call}: numbers of the model make no sense: {'; '.join(said[:MOST_SENTENCES])}{more}. {way_out}; set others "
        "by setters like mbjax.set_mass.",
        ModelWarning,
        stacklevel=3,
    )


def read_parts(path: str | os.PathLike | IO[bytes]) -> tuple[Any, list[np.ndarray]]:
    """The JSON document and the arrays of a file."""
    of_path = isinstance(path, str | os.PathLike)
    with (
        open(path, "rb") if of_path else contextlib.nullcontext(path) as file,  # NumPy leaves a damaged one open
        np.load(file, allow_pickle=False) as parts,
    ):
        if not isinstance(parts, np.lib.npyio.NpzFile) or DOCUMENT not in parts.files:
            raise BadDocumentError("it is not a file of mbjax.save")
        found = {name: parts[name] for name in parts.files}
    if not all(isinstance(part, np.ndarray) for part in found.values()):
        raise BadDocumentError("one of its parts is no array of NumPy")
    document = json.loads(found.pop(DOCUMENT).tobytes().decode())
    return document, [found[f"array_{i}"] for i in range(len(found))]


def require_schema(document: Any) -> None:
    """Refuses files of other programs and of other versions."""
    if not isinstance(document, dict) or document.get("format") != FORMAT or "model" not in document:
        raise BadDocumentError("it is not a file of mbjax.save")
    version = document.get("schema_version")
    if type(version) is not int or version != SCHEMA_VERSION:
        raise BadDocumentError(
            f"its schema version is {version!r}, this mbjax reads {SCHEMA_VERSION}; read it with the one that wrote it"
        )


def require_model(model: Any) -> None:
    """Refuses what is no model, and a model whose numbers do not fit its structure."""
    if not isinstance(model, MultibodyModel):
        raise BadDocumentError(f"it holds a {type(model).__name__}, not a model")
    hash((model.topology, model.layout))
    misfit = find_misfit(model.topology, model.layout)
    if misfit is not None:
        raise BadDocumentError(misfit)
    for name, shape in expected_shapes(model.topology, model.layout):
        found = np.shape(getattr(model.parameters, name))
        if found[len(found) - len(shape) :] != shape:  # a batch has axes before these
            raise BadDocumentError(f"'{name}' has shape {found}, where the model's structure has {shape}")


@contextlib.contextmanager
def errors_of_file(file: str) -> Iterator[None]:
    """Whatever is wrong with a file as one error with its name and the way out."""
    try:
        yield
    except ParseError:
        raise
    except BadDocumentError as error:
        raise ParseError(f"cannot load the model: {error}. {WAY_OUT}", file=file) from None
    except FileNotFoundError:
        raise ParseError("there is no such file.", file=file) from None
    except DAMAGE as error:
        said = " ".join(str(error).split())[:200]
        reason = "" if "pickle" in said else f" ({said})"
        raise ParseError(
            f"cannot load the model: the file is damaged or not one of mbjax.save{reason}. {WAY_OUT}", file=file
        ) from None
