"""Contacts with what never moves: one body each, moved by the velocities on its path."""

import functools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mbjax.kinematics import PositionKinematics
from mbjax.linear_algebra import sum_over_axis, sum_over_first
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_sqrt
from mbjax.topology import TreeTopology, dot_with_mask, take

from .contact_points import ContactPoints

MOST_RUNS = 8  # of slots that are added up apart; the program would grow with them


class MovedBodies(eqx.Module):
    """The one mobod that moves at each of m points, and the directions of the velocities that move it.

    They say what the Jacobian of the contacts says, in fewer numbers.
    """

    p_MC_W: Float[Array, "3 m"]
    p_TC_W: Float[Array, "3 m"]
    S_T: Float[Array, "6 nv"]  # zero where locked
    mobods: tuple[int, ...] = eqx.field(static=True)
    is_A: tuple[bool, ...] = eqx.field(static=True)
    topology: TreeTopology = eqx.field(static=True)

    def velocities(self, v: Float[Array, " nv"]) -> Float[Array, "3 m"]:
        """v_AcBc_W."""
        V_T = self.along_paths(self.S_T * v[None])
        return self.of_B(V_T[3:] + ca.cross(V_T[:3], self.p_TC_W))

    def response(self, diagonal: Float[Array, " nv"]) -> Float[Array, "6 m"]:
        """J diag⁻¹ Jᵀ of each point, the entries of a symmetric matrix.

        The velocity of C by a direction (w, v) is v - [p]w, so that the sum of their squares is
        vvᵀ - [p]wvᵀ - ([p]wvᵀ)ᵀ + [p]wwᵀ[p]ᵀ of the sums of products.
        """
        p, S = jnp.unstack(self.p_TC_W), self.S_T / safe_sqrt(diagonal)
        products = jnp.concatenate([S[: 6 - k] * S[k:] for k in range(6)])  # diagonal by diagonal of the matrix
        sums = ca.unstack_many(self.along_paths(products))
        entry = dict(zip([(i, i + k) for k in range(6) for i in range(6 - k)], sums, strict=True))
        of_w = [ca.cross_components(p, [entry[min(i, k), max(i, k)] for i in range(3)]) for k in range(3)]
        of_v = [ca.cross_components(p, [entry[i, 3 + k] for i in range(3)]) for k in range(3)]
        squares = [ca.cross_components(p, [of_w[k][i] for k in range(3)]) for i in range(3)]
        return jnp.stack([entry[3 + i, 3 + k] - of_v[k][i] - of_v[i][k] + squares[i][k] for i, k in ca.SYMMETRIC_PAIRS])

    def generalized(self, f_Bc_W: Float[Array, "3 m"]) -> Float[Array, " nv"]:
        """The generalized force of forces on B at C: that of each velocity takes those on all that it moves."""
        f = self.of_B(f_Bc_W)
        F_T, mobods = self.over_slots(ca.concatenate([ca.cross(self.p_TC_W, f), f], 0))
        return sum_over_first(self.S_T * dot_with_mask(F_T, self.topology.moves[:, list(mobods)].T, 1))

    def along_paths(self, x: Float[Array, "k nv"]) -> Float[Array, "k m"]:
        """Of each point, the sum over the velocities that move its body."""
        movers = sorted(set(self.mobods))
        sums = dot_with_mask(x, self.topology.moves[:, movers], 1)
        return take(sums, [movers.index(mobod) for mobod in self.mobods], 1)

    def over_slots(self, x: Float[Array, "k m"]) -> tuple[Float[Array, "k n"], tuple[int, ...]]:
        """Sums over points that follow each other in slots of the same bodies, and the mobod of each sum.

        A product with a mask over all points would take as many times longer.
        """
        runs = find_slots(self.mobods)
        if len(runs) > MOST_RUNS:
            return x, self.mobods
        sums = []
        for start, n, slots in runs:
            part = x[:, start : start + n * slots].reshape(x.shape[0], slots, n, *x.shape[2:])
            sums.append(sum_over_axis(part, 1))
        return jnp.concatenate(sums, 1), tuple(m for start, n, _ in runs for m in self.mobods[start : start + n])

    def of_B(self, x: Float[Array, "3 m"]) -> Float[Array, "3 m"]:
        """What is B's, by what is the moving body's: the opposite where that is A."""
        is_A = np.array(self.is_A).reshape(-1, *(1,) * (x.ndim - 2))
        return jnp.where(is_A, -x, x) if is_A.any() else x


@functools.lru_cache(maxsize=256)
def find_slots(mobods: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Runs of points: where each starts, how many mobods, all different, it has, and how often it repeats them.

    Those with the fewest sums, and of these the fewest runs; found from the last point back.
    """
    best: dict[int, list[tuple[int, int, int]]] = {len(mobods): []}
    for start in reversed(range(len(mobods))):
        rest = mobods[start:]
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
    topology: TreeTopology, position: PositionKinematics, points: ContactPoints, locked: Bool[Array, " nv"]
) -> MovedBodies | None:
    """None where two bodies that may move touch each other, or joints mimic others."""
    A, B = np.array(points.mobods_A), np.array(points.mobods_B)
    if topology.followers or np.any((A > 0) & (B > 0)):
        return None
    is_A = (A > 0).reshape(-1, *(1,) * (points.distance.ndim - 1))
    p_MC_W, mobods = jnp.where(is_A, points.p_MaC_W, points.p_MbC_W), (A + B).tolist()
    p_TC_W = take(position.p_TM_W, mobods, 1) + p_MC_W
    S_T = jnp.where(locked, 0.0, position.S_T)
    return MovedBodies(p_MC_W, p_TC_W, S_T, tuple(mobods), tuple((A > 0).tolist()), topology)
