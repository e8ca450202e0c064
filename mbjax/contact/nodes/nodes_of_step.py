"""The nodes of deformable bodies in a step's convex problem: their inertia with stiffness, and what they touch.

With the free motion v* and the tangent T there (`mbjax.finite_elements`), nodes at the step's end have v* + dt a, and

    dt T a = Jᵀ γ / dt

with the impulses γ at their contacts, and at those that are fixed to bodies. dt T stands for a mass matrix. Newton's
matrix is that of the problem condensed on the nodes that take part: contacts add to it where dt T has no entries.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mbjax.finite_elements import AbstractNodeMatrix, DenseNodeMatrix, KeptNodes
from mbjax.spatial import component_algebra as ca

from ..laws.abstract_law import AbstractContactLaw, LawBefore
from ..rows.rows_of_step import OfNodes


class FixedNodeSprings(eqx.Module):
    """Nodes fixed to bodies, as springs: impulse = start - stiffness (G dv - dv_node) on the anchor."""

    places: tuple[int, ...] = eqx.field(static=True)
    G: Float[Array, "r nv"]
    start: Float[Array, " r"]
    stiffness: Float[Array, " r"]


class NodesOfProblem(eqx.Module):
    """Inertia dt T of the nodes, contacts with their law and Jacobians, and fixed nodes; of one world.

    `nodes` and `places` number the nodes of `inertia`: all of the meshes, or those on which it is condensed. The first
    `num_on_geometries` points are moved by three nodes, the corners of a triangle, all others by as many as there are.
    """

    num_on_geometries: int = eqx.field(static=True)

    participants: KeptNodes  # on which the problem may be condensed
    inertia: AbstractNodeMatrix
    v_free: Float[Array, "n 3"]
    law: AbstractContactLaw
    v_AcBc_W: Float[Array, "3 m"]  # with the nodes in their free motion, and the bodies as at the step's start
    nodes: Int[Array, "k m"]
    weights: Float[Array, "k m"]
    J: Float[Array, "3 m nv"]
    fixed: FixedNodeSprings | None

    def motion(self, dv: Float[Array, " nv"], dv_nodes: Float[Array, "n 3"]) -> OfNodes:
        """Change of the relative velocities, of B's points less A's; dv_nodes is the change from the free motion."""
        of_points = relative_velocities(self.nodes, self.weights, self.J, dv, dv_nodes)
        if self.fixed is None:
            return OfNodes(of_points, None)
        return OfNodes(of_points, self.fixed.G @ dv - dv_nodes[np.array(self.fixed.places)].reshape(-1))

    def impulse(self, motion: OfNodes) -> OfNodes:
        """Impulses on B and on the anchors; the opposite ones act on the nodes."""
        return self.with_fixed(self.law.impulse(self.v_AcBc_W + motion.contacts), motion)

    def stiffness(self, motion: OfNodes) -> OfNodes:
        """-dγ / d motion of the contacts; that of fixed nodes does not change."""
        return OfNodes(self.law.stiffness(self.v_AcBc_W + motion.contacts), None)

    def linear_law(self, motion: OfNodes, before: LawBefore) -> tuple[OfNodes, OfNodes]:
        """Impulses and stiffness of a search's iteration, with friction's direction by the law of the one before."""
        impulse, stiffness = self.law.linear_law(self.v_AcBc_W + motion.contacts, before)
        return self.with_fixed(impulse, motion), OfNodes(stiffness, None)

    def with_fixed(self, impulse: Float[Array, "3 m"], motion: OfNodes) -> OfNodes:
        """Impulses of the contacts, and those on the anchors."""
        if self.fixed is None or motion.fixed is None:
            return OfNodes(impulse, None)
        return OfNodes(impulse, self.fixed.start - self.fixed.stiffness * motion.fixed)

    def sticking_law(self, motion: OfNodes) -> tuple[OfNodes, OfNodes]:
        """Impulse and stiffness as if all points would stick, from which a search starts."""
        impulse, stiffness = self.law.sticking_law(self.v_AcBc_W + motion.contacts)
        return self.with_fixed(impulse, motion), OfNodes(stiffness, None)

    def power_along(self, motion: OfNodes, d: OfNodes) -> Callable[[Array], Float[Array, "2"]]:
        """s → d · impulse(motion + s d) and its derivative, summed over all rows."""
        of_points = self.law.power_along(self.v_AcBc_W + motion.contacts, d.contacts)

        def power(s: Array) -> Float[Array, "2"]:
            total = jnp.sum(of_points(s), axis=1)
            if self.fixed is None or motion.fixed is None or d.fixed is None:
                return total
            impulse = self.fixed.start - self.fixed.stiffness * (motion.fixed + s * d.fixed)
            rate = -self.fixed.stiffness * d.fixed * d.fixed
            return total + jnp.stack([jnp.sum(impulse * d.fixed), jnp.sum(rate)])

        return power

    def generalized(self, impulses: OfNodes) -> tuple[Float[Array, " nv"], Float[Array, "n 3"]]:
        """Jᵀ γ on the bodies' velocities, and the impulses on the nodes."""
        gamma = impulses.contacts
        on_bodies = jnp.einsum("imv,im->v", self.J, gamma)
        shares = -self.weights[:, :, None] * gamma.T
        on_nodes = jnp.zeros_like(self.v_free).at[self.nodes.reshape(-1)].add(shares.reshape(-1, 3))
        if self.fixed is not None and impulses.fixed is not None:
            on_bodies = on_bodies + self.fixed.G.T @ impulses.fixed
            on_nodes = on_nodes.at[np.array(self.fixed.places)].add(-impulses.fixed.reshape(-1, 3))
        return on_bodies, on_nodes

    def hessian(self, stiffness: OfNodes) -> "NodeHessian":
        """dt T with the stiffness of all rows, by nodes and velocities, of a problem that is condensed."""
        assert isinstance(self.inertia, DenseNodeMatrix)
        total, w, S = self.inertia, self.weights, ca.symmetric_matrix(stiffness.contacts)
        for count, of_group in ((3, slice(self.num_on_geometries)), (len(w), slice(self.num_on_geometries, None))):
            of_nodes = w[:count, of_group]
            if of_nodes.shape[1]:
                of_points = jnp.einsum("am,bm,ijm->maibj", of_nodes, of_nodes, S[:, :, of_group])
                of_points = of_points.reshape(-1, 3 * count, 3 * count)
                total = total.plus(self.nodes[:count, of_group].T, of_points)
        SJ = jnp.einsum("ijm,jmv->imv", S, self.J)
        of_bodies = jnp.einsum("imv,imu->vu", self.J, SJ)
        shares = -w[:, :, None, None] * jnp.transpose(SJ, (1, 0, 2))
        nv = of_bodies.shape[0]
        between = (
            jnp.zeros((*self.v_free.shape, nv), w.dtype)
            .at[self.nodes.reshape(-1)]
            .add(shares.reshape(self.nodes.size, 3, nv))
        )
        if self.fixed is not None:
            places, k = np.array(self.fixed.places), self.fixed.stiffness
            of_nodes = k.reshape(-1, 3, 1) * jnp.eye(3, dtype=k.dtype)
            total = total.plus(places[:, None], of_nodes)
            kG = k[:, None] * self.fixed.G
            of_bodies = of_bodies + self.fixed.G.T @ kG
            between = between.at[places].add(-kG.reshape(len(places), 3, nv))
        return NodeHessian(total, between, of_bodies)


class NodeHessian(NamedTuple):
    """Parts of a Newton matrix: nodes by nodes, nodes by velocities, and what is added for velocities by velocities."""

    of_nodes: DenseNodeMatrix
    between: Float[Array, "n 3 nv"]
    of_bodies: Float[Array, "nv nv"]


def relative_velocities(
    nodes: Int[Array, "k m"],
    weights: Float[Array, "k m"],
    J: Float[Array, "3 m nv"],
    v: Float[Array, " nv"],
    v_nodes: Float[Array, "n 3"],
) -> Float[Array, "3 m"]:
    """Velocities v_AcBc_W of points of bodies B, by their Jacobian, relative to those of deformable bodies A."""
    return jnp.einsum("imv,v->im", J, v) - jnp.einsum("km,kmi->im", weights, v_nodes[nodes])


def response_of_points(
    nodes: Int[Array, "k m"],
    weights: Float[Array, "k m"],
    J: Float[Array, "3 m nv"],
    diagonal: Float[Array, " nv"],
    diagonal_of_nodes: Float[Array, "n 3"],
) -> Float[Array, "6 m"]:
    """The response of each point to an impulse in 1/kg, with M and dt T taken as diagonal."""
    of_B = jnp.stack([jnp.sum(J[i] * J[k] / diagonal, axis=1) for i, k in ca.SYMMETRIC_PAIRS])
    return of_B.at[:3].add(jnp.einsum("km,kmi->im", weights**2, (1.0 / diagonal_of_nodes)[nodes]))
