"""The contact Jacobian, for contact points whose bodies differ from world to world."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mbjax.execution.arrays import sum_over_axis, take
from mbjax.linear_algebra import matrix_vector, transposed_matrix_vector
from mbjax.spatial import component_algebra as ca
from mbjax.topology import sum_directions

from .abstract_mover import AbstractMover
from .moved_bodies import MovedBodies


class ContactJacobian(AbstractMover):
    """The Jacobian J of m points, with v_AcBc_W = J v."""

    J: Float[Array, "3 m nv"]

    def velocities(self, v: Float[Array, " nv"]) -> Float[Array, "3 m"]:
        """Relative velocities v_AcBc_W = J v of the points."""
        y = matrix_vector(self.rows, v)
        return y.reshape(*self.J.shape[:2], *y.shape[1:])

    def generalized(self, f_Bc_W: Float[Array, "3 m"]) -> Float[Array, " nv"]:
        """Generalized forces Jᵀ f of forces f on B at C."""
        f = f_Bc_W.reshape(3 * f_Bc_W.shape[1], *f_Bc_W.shape[2:])
        return transposed_matrix_vector(self.rows, f)

    def response(self, diagonal: Float[Array, " nv"]) -> Float[Array, "6 m"]:
        """The response J diag⁻¹ Jᵀ of each point, in 1/kg, as the entries of a symmetric matrix."""
        scaled = self.J / diagonal[None, None]
        return sum_over_axis(jnp.stack([scaled[i] * self.J[k] for i, k in ca.SYMMETRIC_PAIRS]), 2)

    @property
    def rows(self) -> Float[Array, "3*m nv"]:
        """J as a matrix with one row for each component and point."""
        return self.J.reshape(3 * self.J.shape[1], *self.J.shape[2:])


def calc_contact_jacobian(moved: MovedBodies, slots: Int[Array, "k *w"] | None = None) -> ContactJacobian:
    """The Jacobian of all points, or of those that `slots` selects in each world."""
    paths, m = moved.paths, moved.paths.num_points
    second = np.arange(m)  # the side of each point whose path goes back
    second[paths.points[m:]] = np.arange(m, len(paths.points))
    J = None
    for sides, masks, sign in ((np.arange(m), paths.forth, 1.0), (second, paths.back, -1.0)):
        if not masks.any():
            continue
        is_on_path, p_TC_W = jnp.asarray(masks[:, paths.of_sides[sides]]), take(moved.p_TC_W, sides, 1)
        if slots is None:
            is_on_path = is_on_path.reshape(*is_on_path.shape, *(1,) * (p_TC_W.ndim - 2))
        else:
            is_on_path, p_TC_W = is_on_path[:, slots], choose_slots(p_TC_W, slots, 1)
        J_of_side = jnp.where(jnp.swapaxes(is_on_path, 0, 1), sign * velocities_at(moved.S_T, p_TC_W), 0.0)
        J = J_of_side if J is None else J + J_of_side
    assert J is not None
    return ContactJacobian(sum_directions(moved.topology, J, 2))


def velocities_at(S_T: Float[Array, "6 nd"], p_TC_W: Float[Array, "3 m"]) -> Float[Array, "3 m nd"]:
    """Velocities v + w x p that unit rates of all directions give all points."""
    w, v, p = S_T[:3, None], S_T[3:, None], p_TC_W[:, :, None]
    return v + ca.cross(w, p)


def choose_slots(x: Float[Array, "..."], slots: Int[Array, "k *w"], axis: int) -> Float[Array, "..."]:
    """Selects each world's own slots along an axis of points."""
    index = jnp.expand_dims(slots, [k for k in range(x.ndim - slots.ndim + 1) if k != axis])
    return jnp.take_along_axis(x, index, axis)


def entries_of_product(A: Float[Array, "3 n"], B: Float[Array, "3 n"]) -> Float[Array, " 6"]:
    """Symmetric entries of A Bᵀ."""
    i, k = (np.array(side) for side in zip(*ca.SYMMETRIC_PAIRS, strict=True))
    return jnp.sum(take(A, i, 0) * take(B, k, 0), axis=1)
