"""Terms of each body that the derivatives of Newton–Euler need: linear in the body, so they add up over subtrees.

With inertia I = (m, s, J) about T and velocity V = [w; v], the momentum is [ht; hf] = I V and the net force
f = I A + V x* I V - F_applied. Where V changes by B in addition to being carried along, f changes by

    B x* I V + V x* I B - I (V x B) = [K b; 2 b x hf],    b the rotation of B,
    K = [w]x (2 J - tr J) + 2 ((s·v) 1 - v sᵀ)             (Singh, Russell and Wensing 2022, eq. 30, multiplied out)

A wrench [t; f] that is fixed in the world, at a point p of the body, is not carried along: where the body is turned by
b, -F_applied changes by [Z b; b x f] in addition, with Z = (p·f) 1 - f pᵀ - [t]x.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.kinematics import MobodInertia
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import written_out as wo
from mbjax.topology import TreeTopology, sum_moved_mobods


class FixedWrenches(eqx.Module):
    """Wrenches on mobods that are fixed in the world: force about T, and Z."""

    F_T: Float[Array, "6 nm"]
    Z: Float[Array, "3 3 nm"]

    def __add__(self, other: "FixedWrenches") -> "FixedWrenches":
        return FixedWrenches(self.F_T + other.F_T, self.Z + other.Z)


class CompositeTerms(eqx.Module):
    """Sums of the terms of all mobods that a direction moves, about T in W."""

    mass: Float[Array, " nd"]
    moment: Float[Array, "3 nd"]
    rotational: Float[Array, "3 3 nd"]
    F: Float[Array, "6 nd"]  # net force
    K: Float[Array, "3 3 nd"]
    momentum: Float[Array, "3 nd"]  # translational
    Z: Float[Array, "3 3 nd"] | None
    f_fixed: Float[Array, "3 nd"] | None

    def inertia_times(self, X: Float[Array, "6 nd"]) -> Float[Array, "6 nd"]:
        """Composite inertia times motions X."""
        return times_inertia_at_T(MobodInertia(self.mass, self.moment, self.rotational), X)

    def change_by(self, B: Float[Array, "6 nd"]) -> Float[Array, "6 nd"]:
        """Change [K b; 2 b x hf] of the net force where velocities change by B."""
        b = B[:3]
        return ca.concatenate([ca.matvec(self.K, b), 2.0 * ca.cross(b, self.momentum)], 0)

    def change_by_transposed(self, S: Float[Array, "6 nd"]) -> Float[Array, "3 nd"]:
        """Transpose of `change_by`: x with x · b = S · [K b; 2 b x hf]."""
        return ca.transposed_matvec(self.K, S[:3]) + 2.0 * ca.cross(self.momentum, S[3:])

    def change_of_wrenches(self, S: Float[Array, "6 nd"]) -> Float[Array, "6 nd"]:
        """Change [Z b; b x f] of the fixed wrenches, negated, where bodies turn by the rotation b of S."""
        assert self.Z is not None
        assert self.f_fixed is not None
        return ca.concatenate([ca.matvec(self.Z, S[:3]), ca.cross(S[:3], self.f_fixed)], 0)

    def change_of_wrenches_transposed(self, S: Float[Array, "6 nd"]) -> Float[Array, "3 nd"]:
        """Transpose of `change_of_wrenches`: x with x · b = S · [Z b; b x f]."""
        assert self.Z is not None
        assert self.f_fixed is not None
        return ca.transposed_matvec(self.Z, S[:3]) + ca.cross(self.f_fixed, S[3:])


def times_inertia_at_T(inertia: MobodInertia, X: Float[Array, "6 n"]) -> Float[Array, "6 n"]:
    """Inertia times a motion X = [x; y]: [J x + s x y; m y + x x s]."""
    entries, s, J = jnp.unstack(X), jnp.unstack(inertia.moment), jnp.unstack(inertia.rotational)
    x, y = entries[:3], entries[3:]
    turned = [wo.dot(jnp.unstack(row), x) for row in J]
    return jnp.stack([*wo.add(turned, wo.cross(s, y)), *wo.add(wo.scale(y, inertia.mass), wo.cross(x, s))])


def calc_composite_terms(
    topology: TreeTopology,
    inertia_T: MobodInertia,
    V_WM_T: Float[Array, "6 nm"],
    A_WM_T: Float[Array, "6 nm"],
    wrenches: FixedWrenches | None,
) -> CompositeTerms:
    """Computes the terms of every mobod, and sums them over the mobods that each direction moves."""
    momentum, F = calc_momentum_and_force(inertia_T, V_WM_T, A_WM_T)
    J, s, K = inertia_T.rotational, inertia_T.moment, calc_turning_of_momentum(inertia_T, V_WM_T)
    parts = [inertia_T.mass[None], s, matrix_rows(J), F, matrix_rows(K), momentum[3:]]
    if wrenches is not None:
        parts = [*parts[:3], F - wrenches.F_T, *parts[4:], matrix_rows(wrenches.Z), wrenches.F_T[3:]]
    total = sum_moved_mobods(topology, ca.concatenate(parts, 0))
    mass, s, J, F, K, hf = total[0], total[1:4], total[4:13], total[13:19], total[19:28], total[28:31]
    fixed = (None, None) if wrenches is None else (rows_as_matrix(total[31:40]), total[40:43])
    return CompositeTerms(mass, s, rows_as_matrix(J), F, rows_as_matrix(K), hf, *fixed)


def add_wrenches(
    topology: TreeTopology, terms: CompositeTerms, F_T: Float[Array, "6 nm"], wrenches: FixedWrenches
) -> CompositeTerms:
    """The terms with more net force `F_T` on mobods, less wrenches that are fixed in the world."""
    parts = [F_T - wrenches.F_T, matrix_rows(wrenches.Z), wrenches.F_T[3:]]
    F, Z, f_fixed = jnp.split(sum_moved_mobods(topology, ca.concatenate(parts, 0)), [6, 15])
    Z = rows_as_matrix(Z)
    if terms.Z is not None and terms.f_fixed is not None:
        Z, f_fixed = Z + terms.Z, f_fixed + terms.f_fixed
    more = terms.F + F, Z, f_fixed
    return eqx.tree_at(lambda t: (t.F, t.Z, t.f_fixed), terms, more, is_leaf=lambda x: x is None)


def calc_momentum_and_force(
    inertia_T: MobodInertia, V_WM_T: Float[Array, "6 nm"], A_WM_T: Float[Array, "6 nm"]
) -> tuple[Float[Array, "6 nm"], Float[Array, "6 nm"]]:
    """Momentum I V, and the force I A + V x* I V that the motion takes."""
    momentum = times_inertia_at_T(inertia_T, V_WM_T)
    return momentum, times_inertia_at_T(inertia_T, A_WM_T) + ca.force_cross(V_WM_T, momentum)


def calc_turning_of_momentum(inertia_T: MobodInertia, V_WM_T: Float[Array, "6 nm"]) -> Float[Array, "3 3 nm"]:
    """K of each mobod: its torque changes by K b where the angular velocity changes by b."""
    w, v = V_WM_T[:3], V_WM_T[3:]
    J, s = inertia_T.rotational, inertia_T.moment
    K = ca.cross(w[:, None], 2.0 * J - times_identity(J[0, 0] + J[1, 1] + J[2, 2]))
    return K + 2.0 * (times_identity(ca.dot(s, v)) - ca.outer(v, s))


def calc_turning_of_wrenches(p_TP_W: Float[Array, "3 n"], F_P_W: Float[Array, "6 n"]) -> Float[Array, "3 3 n"]:
    """Z of torques and forces F_P_W that act at points P."""
    t, f = F_P_W[:3], F_P_W[3:]
    return times_identity(ca.dot(p_TP_W, f)) - ca.outer(f, p_TP_W) - ca.skew(t)


def times_identity(x: Float[Array, "*n"]) -> Float[Array, "3 3 *n"]:
    """x times the 3 x 3 identity."""
    zero = jnp.zeros_like(x)
    return jnp.stack([jnp.stack([x if i == j else zero for j in range(3)]) for i in range(3)])


def matrix_rows(A: Float[Array, "3 3 *n"]) -> Float[Array, "9 *n"]:
    """Entries of 3 x 3 matrices, row by row."""
    return A.reshape(9, *A.shape[2:])


def rows_as_matrix(A: Float[Array, "9 *n"]) -> Float[Array, "3 3 *n"]:
    """3 x 3 matrices of nine entries, row by row: inverts `matrix_rows`."""
    return A.reshape(3, 3, *A.shape[1:])
