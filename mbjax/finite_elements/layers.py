"""Layers of a mesh's nodes such that elements join nodes of one layer, or of two that follow each other.

The matrices of a step are then block tridiagonal. Orders of the nodes along each axis and by reverse Cuthill–McKee are
cut into layers; the order whose factor costs least is taken.
"""

import dataclasses

import numpy as np
from jaxtyping import Float, Int


@dataclasses.dataclass(frozen=True)
class Layers:
    """The layer of each node and its slot there; layers are as large as the largest."""

    layer: Int[np.ndarray, " n"]
    slot: Int[np.ndarray, " n"]
    num_layers: int
    size: int  # slots of a layer

    @property
    def cost(self) -> float:
        """Of a factor, up to a constant."""
        return self.num_layers * float(3 * self.size + 6) ** 3


def find_layers(points: Float[np.ndarray, "n 3"], elements: Int[np.ndarray, "m k"]) -> Layers:
    """The layers of a connected or unconnected mesh whose factor costs least."""
    from scipy.sparse import coo_matrix  # here: few models have deformable bodies
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    n, k = len(points), elements.shape[1]
    a, b = (elements[:, [i for i in range(k) for _ in range(k)]].ravel(), np.tile(elements, (1, k)).ravel())
    joined = coo_matrix((np.ones(len(a), np.int8), (a, b)), shape=(n, n)).tocsr()
    centred = points - points.mean(axis=0)
    centred = centred / max(float(np.abs(centred).max()), 1e-300)
    axes = np.linalg.svd(centred, full_matrices=False)[2] if n > 2 else np.eye(3)
    places = [np.round(centred @ axis, 9) for axis in np.concatenate([np.eye(3), axes])]  # rounded: grids have ties
    orders = [np.argsort(place, kind="stable") for place in places]
    orders.append(np.asarray(reverse_cuthill_mckee(joined, symmetric_mode=True)))
    found = [cut(order, joined.indptr, joined.indices) for order in orders]
    return min(found, key=lambda layers: layers.cost)


def cut(order: Int[np.ndarray, " n"], starts: np.ndarray, neighbours: np.ndarray) -> Layers:
    """Cuts an order of the nodes into the layers that cost least, among several sizes of the first one."""
    n = len(order)
    rank = np.empty(n, int)
    rank[order] = np.arange(n)
    reach = np.maximum.reduceat(rank[neighbours], starts[:-1]) if len(neighbours) else np.zeros(n, int)
    furthest = np.maximum.accumulate(reach[order]) + 1  # nodes before which all neighbours of the first nodes stand
    best: tuple[float, list[int]] | None = None
    for first in sorted({1, *np.unique(np.linspace(1, max(1, int(furthest[0])), 8).astype(int))}):
        ends = [min(int(first), n)]
        while ends[-1] < n:
            ends.append(max(int(furthest[ends[-1] - 1]), ends[-1] + 1))
        sizes = np.diff([0, *ends])
        ends = merged(ends, int(sizes.max()))
        sizes = np.diff([0, *ends])
        cost = len(ends) * float(3 * sizes.max() + 6) ** 3
        if best is None or cost < best[0]:
            best = cost, ends
    assert best is not None
    ends = best[1]
    layer, slot = np.empty(n, int), np.empty(n, int)
    for number, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        layer[order[begin:end]], slot[order[begin:end]] = number, np.arange(end - begin)
    return Layers(layer, slot, len(ends), int(np.diff([0, *ends]).max()))


def merged(ends: list[int], size: int) -> list[int]:
    """Joins neighbouring layers that together are no larger than `size`."""
    found = [0]
    for end, following in zip(ends, [*ends[1:], None], strict=True):
        if following is None or following - found[-1] > size:
            found.append(end)
    return found[1:]


def side_by_side(parts: list[Layers]) -> Layers:
    """Layers of several bodies, one after another."""
    firsts = np.cumsum([0, *(part.num_layers for part in parts)])
    return Layers(
        np.concatenate([part.layer + first for part, first in zip(parts, firsts[:-1], strict=True)]),
        np.concatenate([part.slot for part in parts]),
        int(firsts[-1]),
        max(part.size for part in parts),
    )
