"""A solid cut into linear tetrahedra: a record that is right from the start, or an error with words."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from mbjax.errors import ModelError, ModelWarning

from ..hydroelastic.mesh_pattern import boundary_faces, oriented
from .mesh_faults import (
    first_at_same_place,
    first_fault,
    listed,
    repeated_tetrahedra,
    volumes_and_fullness,
    words_for_corners,
)

MOST_NODES = 2**31 - 1


@dataclass(frozen=True, eq=False)
class TetrahedralMesh:
    """A solid cut into tetrahedra of four nodes, in the frame G of its geometry.

    `points` are the nodes in m. A row of `tetrahedra` has the nodes of one, such that
    det[p1 - p0, p2 - p0, p3 - p0] > 0, as in Drake. `source` says where the mesh comes from. `node_fields` and
    `cell_fields` are what a file says besides, by name: an array with a row for each node or tetrahedron.

    All is checked when a mesh is made, and the arrays are read-only copies: `ModelError` says which node or
    tetrahedron is wrong.
    """

    points: Float[np.ndarray, "nodes 3"]
    tetrahedra: Int[np.ndarray, "tetrahedra 4"]
    source: str | None = None
    node_fields: Mapping[str, np.ndarray] = field(default_factory=dict)
    cell_fields: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        label = "TetrahedralMesh" if self.source is None else f"TetrahedralMesh('{self.source}')"
        points, tetrahedra = check_tetrahedra(self.points, self.tetrahedra, label=label)
        object.__setattr__(self, "points", read_only(points))
        object.__setattr__(self, "tetrahedra", read_only(tetrahedra))
        for name, count in (("node_fields", len(points)), ("cell_fields", len(tetrahedra))):
            object.__setattr__(self, name, checked_fields(getattr(self, name), count, f"{label}: {name}"))

    def __reduce__(self) -> tuple:
        return TetrahedralMesh, (
            self.points, self.tetrahedra, self.source, dict(self.node_fields), dict(self.cell_fields)
        )  # fmt: skip

    @property
    def num_nodes(self) -> int:
        return len(self.points)

    @property
    def num_tetrahedra(self) -> int:
        return len(self.tetrahedra)

    def volumes(self) -> Float[np.ndarray, " tetrahedra"]:
        """Volumes of the tetrahedra in m³."""
        return volumes_and_fullness(self.points, self.tetrahedra)[0]

    def surface(self) -> Int[np.ndarray, "triangles 3"]:
        """Nodes of the triangles that bound the solid, counterclockwise seen from outside."""
        return boundary_faces(self.tetrahedra)

    def scaled(self, scale: float | Sequence[float]) -> TetrahedralMesh:
        """The mesh with coordinates times one factor or three; an odd number of negative factors mirrors it.

        A mirrored tetrahedron has its first and third node swapped, as in Drake. Fields stay as they are.
        """
        try:
            factors = np.broadcast_to(np.asarray(scale, float), 3)
        except (TypeError, ValueError):
            factors = np.zeros(3)
        if not np.all(np.isfinite(factors) & (factors != 0.0)):
            raise ModelError(f"TetrahedralMesh.scaled: scale is {scale}; give one or three finite factors, none zero.")
        corners = [2, 1, 0, 3] if np.prod(np.sign(factors)) < 0.0 else [0, 1, 2, 3]
        return TetrahedralMesh(
            self.points * factors, self.tetrahedra[:, corners], self.source, self.node_fields, self.cell_fields
        )


def check_tetrahedra(
    points: Any, tetrahedra: Any, *, label: str = "check_tetrahedra"
) -> tuple[Float[np.ndarray, "nodes 3"], Int[np.ndarray, "tetrahedra 4"]]:
    """Points in m as float64 and tetrahedra as int32, if they make a mesh; ModelError with the first fault otherwise.

    Every number is finite, every node belongs to a tetrahedron, no two nodes are at the same place, and every
    tetrahedron has a positive volume: det[p1 - p0, p2 - p0, p3 - p0] > 0.
    """
    coordinates, corners = as_mesh_arrays(points, tetrahedra, label)
    fault = first_fault(coordinates, corners)
    if fault is not None:
        raise ModelError(f"{label} {fault.words}.")
    return coordinates, corners.astype(np.int32)


def as_mesh_arrays(
    points: Any, tetrahedra: Any, label: str
) -> tuple[Float[np.ndarray, "nodes 3"], Int[np.ndarray, "tetrahedra 4"]]:
    """The arrays, whatever numbers they have; ModelError where the shapes or types are not those of a mesh."""
    try:
        coordinates = np.array(points, float)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{label}: points are not numbers ({error}); give an array (nodes, 3) in m.") from None
    if coordinates.ndim != 2 or coordinates.shape[1] != 3:
        raise ModelError(f"{label}: points have the shape {coordinates.shape}; give (nodes, 3).")
    try:
        corners = np.array(tetrahedra)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{label}: tetrahedra are no array ({error}); give integers (tetrahedra, 4).") from None
    if corners.size and corners.dtype.kind not in "iu":
        raise ModelError(f"{label}: tetrahedra are of type {corners.dtype}; give integers (tetrahedra, 4).")
    if corners.ndim == 2 and corners.shape[1] != 4:
        raise ModelError(f"{label} {words_for_corners(corners.shape[1])}.")
    if corners.size and corners.ndim != 2:
        raise ModelError(f"{label}: tetrahedra have the shape {corners.shape}; give (tetrahedra, 4).")
    if len(coordinates) > MOST_NODES:
        raise ModelError(f"{label} has {len(coordinates)} nodes, more than the {MOST_NODES} that can be numbered.")
    return coordinates, corners.reshape(-1, 4)


def repaired_tetrahedra(
    points: Any, tetrahedra: Any, *, source: str | None = None, node_fields: Mapping[str, np.ndarray] | None = None,
    cell_fields: Mapping[str, np.ndarray] | None = None,
) -> TetrahedralMesh:  # fmt: skip
    """The mesh of points and tetrahedra with what can be mended mended; a `ModelWarning` says what was done.

    Nodes at the same place become one, tetrahedra of the same nodes one, nodes in no tetrahedron are left out, and
    tetrahedra inside out have two nodes swapped. Other faults are a `ModelError`: flat tetrahedra, for example.
    """
    label = "repaired_tetrahedra" if source is None else f"'{source}'"
    coordinates, corners = as_mesh_arrays(points, tetrahedra, label)
    if np.all((corners >= 0) & (corners < len(coordinates))) and np.isfinite(coordinates).all() and len(corners):
        first_at = first_at_same_place(coordinates)
        corners = first_at[corners]
        repeated = repeated_tetrahedra(corners)
        kept_cells = np.setdiff1d(np.arange(len(corners)), repeated)
        used, corners = np.unique(corners[kept_cells], return_inverse=True)
        coordinates, corners = coordinates[used], corners.reshape(-1, 4)
        turned = oriented(corners, coordinates)
        done = {
            ("merged", "node"): np.flatnonzero(first_at != np.arange(len(first_at))),
            ("left out", "node"): np.setdiff1d(np.unique(first_at), used),
            ("left out", "tetrahedron"): repeated,
            ("turned", "tetrahedron"): kept_cells[(turned != corners).any(axis=1)],
        }
        report_repairs(label, done)
        node_fields = {name: np.asarray(values)[used] for name, values in (node_fields or {}).items()}
        cell_fields = {name: np.asarray(values)[kept_cells] for name, values in (cell_fields or {}).items()}
        corners = turned
    return TetrahedralMesh(coordinates, corners, source, node_fields or {}, cell_fields or {})


def report_repairs(label: str, done: Mapping[tuple[str, str], np.ndarray]) -> None:
    """Warns once of all that was mended."""
    several = {"node": "nodes", "tetrahedron": "tetrahedra"}
    words = [f"{verb} {listed(what, several[what], which)}" for (verb, what), which in done.items() if len(which)]
    if words:
        warnings.warn(f"{label}: {'; '.join(words)}.", ModelWarning, stacklevel=4)


def checked_fields(fields: Mapping[str, Any], count: int, label: str) -> Mapping[str, np.ndarray]:
    """Fields as read-only arrays with `count` rows each."""
    result = {}
    for name, values in fields.items():
        array = np.array(values)
        if not name or array.dtype.kind not in "fiub" or array.ndim < 1 or len(array) != count or not array.size:
            raise ModelError(
                f"{label}: '{name}' has the shape {array.shape} and type {array.dtype}; give a name and numbers with "
                f"{count} rows."
            )
        result[name] = read_only(array)
    return MappingProxyType(result)


def read_only(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array
