"""Selects collision geometries by name: one geometry, all those of a body, or all that match a pattern."""

import dataclasses
import fnmatch
import re
from collections.abc import Iterable, Sequence
from typing import Any

from mbjax.errors import ModelError

from .lookup import near_matches

Pair = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class GeometryNames:
    """Names of a collision geometry and of its body."""

    body: str
    scoped_body: str  # instance::body
    geometry: str

    @property
    def scoped(self) -> str:
        """Unique name `instance::body::geometry`."""
        return f"{self.scoped_body}::{self.geometry}"

    @property
    def of_body(self) -> tuple[str, str]:
        return self.body, self.scoped_body

    @property
    def of_geometry(self) -> tuple[str, str, str]:
        return self.geometry, f"{self.body}::{self.geometry}", self.scoped


def select_pairs(
    call: str, pairs: Sequence[tuple[str, str]], names: Sequence[GeometryNames], bodies: Iterable[str]
) -> list[list[Pair]]:
    """For each pair of names, the pairs of different geometries (indices of `names`) that it means, each once.

    `bodies` are the names of all bodies, those without geometry too; `call` begins error messages.
    """
    found = []
    for pair in pairs:
        A, B = (select_geometries(call, key, names, bodies) for key in pair)
        once: dict[frozenset[int], Pair] = {}
        for a in A:
            for b in B:
                if a != b:
                    once.setdefault(frozenset((a, b)), (a, b))
        if not once:
            raise ModelError(
                f"{call}: '{pair[0]}' and '{pair[1]}' mean the same one geometry, '{names[A[0]].scoped}'; name two."
            )
        found.append(list(once.values()))
    return found


def checked_pairs(call: str, pairs: Any) -> tuple[tuple[str, str], ...]:
    """Pairs of names as tuples; raises `ModelError` for anything but a list of pairs of strings."""
    given = [] if isinstance(pairs, str) or not isinstance(pairs, Iterable) else list(pairs)
    if not given or not all(is_pair_of_names(pair) for pair in given):
        raise ModelError(
            f"{call}: expected a list of pairs of names, like [('*foot*', 'ground')], got {pairs!r}. A name is that of "
            "a body or of a collision geometry, or a pattern of names with * and ?."
        )
    return tuple((str(A), str(B)) for A, B in given)


def is_pair_of_names(pair: Any) -> bool:
    """Whether x is a sequence of two strings."""
    return isinstance(pair, Sequence) and not isinstance(pair, str) and [type(x) for x in pair] == [str, str]


def select_geometries(call: str, key: str, names: Sequence[GeometryNames], bodies: Iterable[str]) -> list[int]:
    """Geometries that `key` means: of that name, on the body of that name, or matched by the pattern."""
    found = matched(key, names) if is_pattern(key) else named(call, key, names)
    if found:
        return found
    bodies = list(dict.fromkeys(bodies))
    bare = [body for body in bodies if (fits(key, body) if is_pattern(key) else key == body)]
    if bare:
        listed = " and ".join(f"'{body}'" for body in bare)
        raise ModelError(f"{call}: '{key}' means {listed}, without any collision geometry. Name what has one.")
    known = [*bodies, *(f"{n.body}::{n.geometry}" for n in names), *(n.geometry for n in names)]
    what = "matches the pattern" if is_pattern(key) else "is named"
    raise ModelError(
        f"{call}: no body and no collision geometry {what} '{key}'. {near_matches(key.strip('*?'), known)}"
    )


def is_pattern(key: str) -> bool:
    """Whether a key is a pattern, with * or ?."""
    return "*" in key or "?" in key


def fits(pattern: str, name: str) -> bool:
    """Whether a pattern matches a whole name; upper and lower case differ, brackets stand for themselves."""
    return re.match(fnmatch.translate(pattern.replace("[", "[[]")), name) is not None


def matched(pattern: str, names: Sequence[GeometryNames]) -> list[int]:
    """Geometries that a pattern matches, by their own name or their body's."""
    return [i for i, n in enumerate(names) if any(fits(pattern, name) for name in (*n.of_body, *n.of_geometry))]


def named(call: str, key: str, names: Sequence[GeometryNames]) -> list[int]:
    """Geometries of the body of that name, or the geometry of that name; raises where both, or several, are meant."""
    by_body = [i for i, n in enumerate(names) if key in n.of_body]
    by_name = [i for i, n in enumerate(names) if key in n.of_geometry]
    one_body = len({names[i].scoped_body for i in by_body}) <= 1
    if not by_name and one_body:
        return by_body
    if len(by_name) == 1 and by_body in ([], by_name):
        return by_name
    options = [f"'{names[i].scoped}' (a shape)" for i in by_name]
    options += [f"'{names[i].scoped_body}' (a body, with all its shapes)" for i in by_body]
    listed = ", ".join(dict.fromkeys(options))
    raise ModelError(f"{call}: '{key}' may mean several things; say which: {listed}.")
