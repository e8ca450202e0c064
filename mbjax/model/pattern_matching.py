"""Which names a pattern such as `left_*` means: a name itself first, so that names may hold brackets."""

import fnmatch
from collections.abc import Iterable, Sequence


def matching_places(patterns: Iterable[str], names: Sequence[Iterable[str]]) -> list[int]:
    """Places of the elements that any of the patterns matches; each element goes by one name or several.

    A pattern that is an element's name means just the elements so called. Else `*`, `?` and `[abc]` stand for letters,
    and brackets for themselves where nothing matches so. Upper and lower case differ.
    """
    found: set[int] = set()
    for pattern in patterns:
        found.update(_places(pattern, names))
    return sorted(found)


def _places(pattern: str, names: Sequence[Iterable[str]]) -> list[int]:
    exact = [i for i, of_one in enumerate(names) if pattern in of_one]
    if exact:
        return exact
    matching = _fitting(pattern, names)
    return matching if matching or "[" not in pattern else _fitting(pattern.replace("[", "[[]"), names)


def _fitting(pattern: str, names: Sequence[Iterable[str]]) -> list[int]:
    return [i for i, of_one in enumerate(names) if any(fnmatch.fnmatchcase(name, pattern) for name in of_one)]
