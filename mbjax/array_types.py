"""Shaped array types that several folders use. It imports nothing of mbjax.

Axis names: nb bodies (world first), nm mobilized bodies (world first), nq positions,
nv velocities, nu actuators. Records keep vectors with components first and bodies last, `(3, nm)`:
a product over the tree is then one plain matrix product, and a batch vectorises over the last axis.
"""

from jaxtyping import Array, Float

Scalar = Float[Array, ""]
Vector3 = Float[Array, "3"]
Matrix3 = Float[Array, "3 3"]
Quaternion = Float[Array, "4"]
SpatialVector = Float[Array, "6"]
Matrix6 = Float[Array, "6 6"]
Positions = Float[Array, " nq"]
Velocities = Float[Array, " nv"]
Accelerations = Float[Array, " nv"]
GeneralizedForces = Float[Array, " nv"]
BodySpatialVectors = Float[Array, "nb 6"]
