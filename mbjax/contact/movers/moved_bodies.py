"""Products with the contact Jacobian and its transpose, by paths of directions instead of a matrix.

A Jacobian of (3, m, nv) numbers a world does not stay in a cache. The directions hold the same information in fewer
numbers: a body's velocity is the sum over the directions on its path, and a force on it acts on all of them.
"""

import functools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mbjax.execution.arrays import dot_with_mask, sum_over_axis, sum_over_first, take
from mbjax.kinematics import PositionKinematics
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_sqrt
from mbjax.topology import TreeTopology, over_directions, sum_directions

from ..points.point_records import ContactPoints
from .abstract_mover import AbstractMover
from .contact_paths import ContactPaths, find_contact_paths

MOST_RUNS = 8  # runs of slots that are added up separately; the program grows with their number


class MovedBodies(AbstractMover):
    """The sides of m points, as in `ContactPaths`, and the directions of the velocities that move them."""

    p_MC_W: Float[Array, "3 s"]  # from the origin Mo of the side's mobod
    p_TC_W: Float[Array, "3 s"]
    S_T: Float[Array, "6 nd"]  # zero where locked
    mobods_A: tuple[int, ...] = eqx.field(static=True)
    mobods_B: tuple[int, ...] = eqx.field(static=True)
    pairs: tuple[int, ...] = eqx.field(static=True)  # of shapes, the pair of each point
    topology: TreeTopology = eqx.field(static=True)

    @property
    def paths(self) -> ContactPaths:
        return find_contact_paths(self.topology, self.mobods_A, self.mobods_B)

    @property
    def mobods(self) -> np.ndarray:
        """The moving mobod of each side, (s,)."""
        paths = self.paths
        return np.where(paths.is_A, np.array(self.mobods_A)[paths.points], np.array(self.mobods_B)[paths.points])

    def velocities(self, v: Float[Array, " nv"]) -> Float[Array, "3 m"]:
        """Relative velocities v_AcBc_W = J v of the points."""
        V_T = self.along_paths(ca.scale(self.S_T, over_directions(self.topology, v)))
        return self.sum_sides(V_T[3:] + ca.cross(V_T[:3], self.p_TC_W))

    def generalized(self, f_Bc_W: Float[Array, "3 m"]) -> Float[Array, " nv"]:
        """Generalized forces Jᵀ f of forces f on B at C."""
        f = take(f_Bc_W, self.paths.points, 1)
        F_T = over_slots(ca.concatenate([ca.cross(self.p_TC_W, f), f], 0), self.paths.of_sides)
        of_directions = sum_over_first(self.S_T * self.against_paths(F_T, summed_kinds(self.paths.of_sides)))
        return sum_directions(self.topology, of_directions)

    def response(self, diagonal: Float[Array, " nv"]) -> Float[Array, "6 m"]:
        """The response J diag⁻¹ Jᵀ of each point in 1/kg, as symmetric entries; for models without mimic joints.

        A direction (w, v) gives C the velocity v - [p]w, so the sum of its squares over directions is
        vvᵀ - [p]wvᵀ - ([p]wvᵀ)ᵀ + [p]wwᵀ[p]ᵀ, with sums of products in place of wwᵀ, wvᵀ and vvᵀ.
        """
        p, S = jnp.unstack(self.p_TC_W), self.S_T / safe_sqrt(diagonal)[None]
        products = jnp.concatenate([S[: 6 - k] * S[k:] for k in range(6)])  # diagonal by diagonal of the matrix
        moved = self.paths.forth | self.paths.back
        sums = ca.unstack_many(take(dot_with_mask(products, moved, 1), self.paths.of_sides, 1))
        entry = dict(zip([(i, i + k) for k in range(6) for i in range(6 - k)], sums, strict=True))
        of_w = [ca.cross_components(p, [entry[min(i, k), max(i, k)] for i in range(3)]) for k in range(3)]
        of_v = [ca.cross_components(p, [entry[i, 3 + k] for i in range(3)]) for k in range(3)]
        squares = [ca.cross_components(p, [of_w[k][i] for k in range(3)]) for i in range(3)]
        of_sides = [entry[3 + i, 3 + k] - of_v[k][i] - of_v[i][k] + squares[i][k] for i, k in ca.SYMMETRIC_PAIRS]
        return self.sum_sides(jnp.stack(of_sides))

    def along_paths(self, x: Float[Array, "k nd"]) -> Float[Array, "k s"]:
        """For each side, the sum of x over the directions of its path; directions that go back count negative."""
        paths = self.paths
        goes_forth, goes_back = paths.forth.any(0), paths.back.any(0)
        both, first = int((goes_forth & goes_back).sum()), int((~goes_back).sum())
        masks = np.concatenate([paths.forth[:, : first + both], paths.back[:, first:]], axis=1)
        forth, positive, negative, back = jnp.split(
            dot_with_mask(x, masks, 1), [first, first + both, first + 2 * both], axis=1
        )
        sums = [part for part in (forth, positive - negative, -back) if part.shape[1]]
        return take(ca.concatenate(sums, 1), paths.of_sides, 1)

    def against_paths(self, x: Float[Array, "k n"], paths: np.ndarray) -> Float[Array, "k nd"]:
        """For each direction, the sum of x over those of `paths` that it is on: the transpose of `along_paths`."""
        forth, back = self.paths.forth[:, paths], self.paths.back[:, paths]
        goes_forth, goes_back = np.flatnonzero(forth.any(0)), np.flatnonzero(back.any(0))
        masks = np.concatenate([forth[:, goes_forth], back[:, goes_back]], axis=1)
        return dot_with_mask(ca.concatenate([take(x, goes_forth, 1), -take(x, goes_back, 1)], 1), masks.T, 1)

    def sum_sides(self, x: Float[Array, "k s"]) -> Float[Array, "k m"]:
        """For each point, the sum of x over its one or two sides."""
        m, points = self.paths.num_points, self.paths.points
        if len(points) == m:
            return x
        place = np.full(m, len(points) - m)
        place[points[m:]] = np.arange(len(points) - m)
        second = jnp.concatenate([x[:, m:], jnp.zeros_like(x[:, :1])], 1)
        return x[:, :m] + take(second, place, 1)


def over_slots(x: Float[Array, "k s"], kinds: np.ndarray) -> Float[Array, "k n"]:
    """Sums columns over consecutive slots that repeat the same kinds.

    A product with a mask over all columns would take longer by the number of slots.
    """
    sums = []
    for start, n, slots in runs_of_slots(tuple(kinds.tolist())):
        part = x[:, start : start + n * slots].reshape(x.shape[0], slots, n, *x.shape[2:])
        sums.append(sum_over_axis(part, 1))
    return ca.concatenate(sums, 1)


def summed_kinds(kinds: np.ndarray) -> np.ndarray:
    """The kind of each column that `over_slots` returns."""
    runs = runs_of_slots(tuple(kinds.tolist()))
    return np.concatenate([kinds[start : start + n] for start, n, _ in runs]) if runs else kinds


def runs_of_slots(kinds: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """The runs of `find_slots`; one run without repetition if there are more than MOST_RUNS."""
    runs = find_slots(kinds)
    return runs if len(runs) <= MOST_RUNS else [(0, len(kinds), 1)]


@functools.lru_cache(maxsize=256)
def find_slots(kinds: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Runs of columns: start, number of kinds (all different), and how often the run repeats them.

    Among all divisions into runs it finds the one with the fewest sums, then the fewest runs, from the last column
    back.
    """
    best: dict[int, list[tuple[int, int, int]]] = {len(kinds): []}
    for start in reversed(range(len(kinds))):
        rest = kinds[start:]
        n = next((k for k in range(1, len(rest)) if rest[k] in rest[:k]), len(rest))
        slots = 1
        while rest[slots * n : (slots + 1) * n] == rest[:n]:
            slots += 1
        alone, others = (start, 1, 1), best[start + 1]
        if others and others[0][2] == 1 and others[0][1] < n:  # the next run can begin here as well
            alone, others = (start, others[0][1] + 1, 1), others[1:]
        repeated = [(start, n, slots), *best[start + n * slots]]
        best[start] = min(repeated, [alone, *others], key=lambda runs: (sum(n for _, n, _ in runs), len(runs)))
    return best[0]


def find_moved_bodies(
    topology: TreeTopology,
    position: PositionKinematics,
    points: ContactPoints,
    locked: Bool[Array, " nv"] | None = None,
) -> MovedBodies:
    """The paths and directions that move all contact points; locked velocities have zero directions."""
    paths = find_contact_paths(topology, points.mobods_A, points.mobods_B)
    m, second = paths.num_points, paths.points[paths.num_points :]
    is_A = paths.is_A[:m].reshape(-1, *(1,) * (points.distance.ndim - 1))
    p_MC_W = jnp.where(is_A, points.p_MaC_W, points.p_MbC_W) if is_A.any() else points.p_MbC_W
    if len(second):
        p_MC_W = ca.concatenate([p_MC_W, take(points.p_MaC_W, second, 1)], 1)
    mobods = np.where(paths.is_A, np.array(points.mobods_A)[paths.points], np.array(points.mobods_B)[paths.points])
    p_TC_W = take(position.p_TM_W, mobods, 1) + p_MC_W
    S_T = position.S_T if locked is None else jnp.where(over_directions(topology, locked), 0.0, position.S_T)
    return MovedBodies(p_MC_W, p_TC_W, S_T, points.mobods_A, points.mobods_B, points.pairs, topology)
