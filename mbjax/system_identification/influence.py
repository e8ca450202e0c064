"""Refuses parameters that never influence the data, by name."""

import numpy as np
from jaxtyping import Float

from mbjax.errors import ModelError
from mbjax.parameters.kind_table import GROUPS

from .parameters import Parameters

NO_INFLUENCE = 1e-12  # of the largest column


def require_influence(unknown: Parameters, J: Float[np.ndarray, "rows n"]) -> None:
    """Raises `ModelError` that names the parameters whose derivatives are all zero.

    A body's mass, centre of mass and inertia count as one: data that see some of their numbers are fine.
    """
    norms = np.linalg.norm(J, axis=0)
    has_influence = norms > NO_INFLUENCE * norms.max(initial=0.0)
    by_element: dict[str, list[int]] = {}
    for i, entry in enumerate(unknown.unknowns):
        kind, _, body = entry.element.partition(":")
        by_element.setdefault(f"body:{body}" if kind in GROUPS["body"] else entry.name, []).append(i)
    for element, rows in list(by_element.items()):
        if len(rows) == 1:  # a mass alone goes by its own name
            by_element[unknown.names[rows[0]]] = by_element.pop(element)
    silent = [element for element, rows in by_element.items() if not has_influence[rows].any()]
    if not silent:
        return
    shown = ", ".join(f"'{name}'" for name in silent[:8]) + (f" and {len(silent) - 8} more" if len(silent) > 8 else "")
    raise ModelError(
        f"fit: {shown} never influence{'s' if len(silent) == 1 else ''} the data, so nothing can be said about "
        f"{'it' if len(silent) == 1 else 'them'}. Take {'it' if len(silent) == 1 else 'them'} out with "
        f"'{silent[0]}': si.fixed(), excite the motion that shows {'it' if len(silent) == 1 else 'them'}, or pass "
        "unseen='report'."
    )
