"""A model as a JSON document and a list of arrays, and back. Only `KNOWN_CLASSES` go in, and only they come out.

Numbers, texts and None stand for themselves and a JSON list is a tuple. An object is `{"class": name, "fields": {…}}`,
an array `{"array": place, "dtype": name}`.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from mbjax.errors import ModelError
from mbjax.joints import JOINT_KINDS
from mbjax.model import ForceDensity, JointInfo
from mbjax.number_rules import shown

from .annotations import fits, hints_of
from .classes import KNOWN_CLASSES

PLAIN = (bool, int, float, str, type(None))
OUR_PACKAGE = "mbjax."
OWN_CLASSES = (
    "save knows the classes of mbjax alone, since a file must not name code to run. Save the model without it, and add "
    "it again after load_model with dataclasses.replace(model, {field}=…)."
)

FUNCTION_OF_FORCES = (
    "save: {where} is a function, given to plant.add_force_density, and a file must not hold code to run. Save the "
    "model without it, by eqx.tree_at(lambda m: m.deformables.force_densities, model, ()), and put it back in the same "
    "way after load_model."
)


class BadDocumentError(Exception):
    """The document is not one that `encoded` made; the message says where it differs."""


def encoded(value: Any, arrays: list[np.ndarray], where: str) -> Any:
    """A value as JSON; its arrays are appended to `arrays`. `where` is its place in the model, for messages."""
    if isinstance(value, Tracer):
        raise ModelError(
            f"save: {where} is traced; save a model outside of jit, vmap and grad, where its numbers are known."
        )
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, np.bool_ | np.integer):
        return value.item()
    if isinstance(value, tuple):
        return [encoded(item, arrays, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, jax.Array | np.ndarray | np.floating):
        arrays.append(as_plain_array(np.asarray(value)))
        return {"array": len(arrays) - 1, "dtype": str(value.dtype)}
    if isinstance(value, JointInfo):
        require_own_joint(value)
    if isinstance(value, ForceDensity):
        raise ModelError(FUNCTION_OF_FORCES.format(where=where))
    return encoded_object(value, arrays, where)


def encoded_object(value: Any, arrays: list[np.ndarray], where: str) -> dict[str, Any]:
    """An object of a known class with its fields; a `ModelError` for any other."""
    cls = type(value)
    if KNOWN_CLASSES.get(cls.__name__) is not cls:
        field = next((f for f in ("force_elements", "constraints", "random_distributions") if f in where), "field")
        what = f"a {cls.__module__}.{cls.__qualname__}"
        raise ModelError(f"save: {where} is {what}. {OWN_CLASSES.format(field=field)}")
    fields = {
        field.name: encoded(getattr(value, field.name), arrays, f"{where}.{field.name}")
        for field in dataclasses.fields(value)
    }
    return {"class": cls.__name__, "fields": fields}


def require_own_joint(joint: JointInfo) -> None:
    """Refuses joints of classes that are not mbjax's."""
    cls = JOINT_KINDS[joint.kind]
    if not cls.__module__.startswith(OUR_PACKAGE):
        raise ModelError(
            f"save: joint '{joint.name}' is a {cls.__module__}.{cls.__qualname__}. save knows the joints of mbjax "
            "alone, since a file must not name code to run. Save the code that builds the model instead."
        )


def as_plain_array(array: np.ndarray) -> np.ndarray:
    """The array, or where NumPy has no such type in files (bfloat16), its bits."""
    return array if array.dtype.kind in "fiub" else array.view(f"u{array.dtype.itemsize}")


@dataclasses.dataclass(frozen=True)
class Decoder:
    """Makes values of a document and its arrays; with a `dtype`, leaves get that type instead of their own."""

    arrays: Sequence[np.ndarray]
    dtype: Any = None

    def value(self, document: Any) -> Any:
        """The value that a document stands for; a `BadDocumentError` where it stands for none."""
        if isinstance(document, PLAIN):
            return document
        if isinstance(document, list):
            return tuple(self.value(item) for item in document)
        keys = set(document)
        if keys == {"array", "dtype"}:
            return self._array(document["array"], document["dtype"])
        if keys == {"class", "fields"}:
            return self._object(document["class"], document["fields"])
        raise BadDocumentError(f"an object has the keys {sorted(keys)}, which mean nothing")

    def _array(self, place: Any, dtype: Any) -> jax.Array:
        if type(place) is not int or not 0 <= place < len(self.arrays):
            raise BadDocumentError(f"it names array {place!r} of {len(self.arrays)}")
        array = self.arrays[place]
        try:
            own = jnp.dtype(dtype)
        except TypeError:
            raise BadDocumentError(f"{dtype!r} is no type of numbers") from None
        if array.dtype != own:
            if array.dtype.kind != "u" or array.dtype.itemsize != own.itemsize:
                raise BadDocumentError(f"array {place} is of {array.dtype}, not of {dtype}")
            array = array.view(own)
        wanted = own if self.dtype is None else jnp.dtype(self.dtype)
        if jax.dtypes.canonicalize_dtype(wanted) != wanted:
            raise BadDocumentError(
                f"it has numbers of {wanted}, which JAX does not have at the moment; say "
                'jax.config.update("jax_enable_x64", True), or load_model(path, dtype=jnp.float32)'
            )
        with np.errstate(over="ignore"):  # a limit beyond the dtype becomes infinite: none
            return jnp.asarray(array.astype(wanted))

    def _object(self, name: Any, fields: Any) -> Any:
        """An object of a known class, made of its fields; no constructor runs."""
        cls = KNOWN_CLASSES.get(name) if isinstance(name, str) else None
        if cls is None:
            raise BadDocumentError(f"it names a class {name!r}, which is none that a model of mbjax holds")
        expected = {field.name for field in dataclasses.fields(cls)}
        if not isinstance(fields, dict) or set(fields) != expected:
            given = sorted(fields) if isinstance(fields, dict) else type(fields).__name__
            raise BadDocumentError(f"a {name} has the fields {given}, where {sorted(expected)} are expected")
        made = object.__new__(cls)
        for field, hint in hints_of(cls).items():
            value = self.value(fields[field])
            if not fits(value, hint):
                expected = hint.__name__ if isinstance(hint, type) else hint
                raise BadDocumentError(f"the {field} of a {name} is {shown(value)}, where {expected} is expected")
            object.__setattr__(made, field, value)
        if isinstance(made, JointInfo) and made.kind not in JOINT_KINDS:
            raise BadDocumentError(f"joint {made.name!r} is of kind {made.kind!r}, which mbjax does not have")
        return made
