"""What every kind of constraint on coordinates answers, for one constraint of k rows."""

import equinox as eqx
from jaxtyping import Array, Float


class JointRows(eqx.Module):
    """Error, Jacobian with respect to v, rate G v, and second rate at vdot = 0: (dG/dt) v. Rates are None without v."""

    error: Float[Array, " k"]
    G: Float[Array, "k nv"]
    rate: Float[Array, " k"] | None
    bias: Float[Array, " k"] | None
