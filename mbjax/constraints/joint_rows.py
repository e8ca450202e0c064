"""Rows of a constraint, in the form that every kind of constraint on coordinates returns them."""

import equinox as eqx
from jaxtyping import Array, Float


class JointRows(eqx.Module):
    """Error, Jacobian G by v, rate G v, and second rate at vdot = 0, (dG/dt) v, of k rows; rates are None without v."""

    error: Float[Array, " k"]
    G: Float[Array, "k nv"]
    rate: Float[Array, " k"] | None
    bias: Float[Array, " k"] | None
