"""RigidTransform X_AB: pose of a frame B in a frame A."""

from typing import TYPE_CHECKING, Any, overload

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from .checked_arrays import as_batch_of
from .rotation import rpy_to_matrix
from .small_matrices import small_matmul, small_matvec

OF_QUATERNION = " A quaternion becomes a rotation matrix by mbjax.spatial.quaternion_to_matrix."


class RigidTransform(eqx.Module):
    """Pose X_AB, or a batch of poses over shared leading axes.

    `rotation` is R_AB, `translation` is p_AoBo_A in metres. `X_AB @ X_BC` composes, `X_AB @ p_BQ`
    maps points: p_AQ = R_AB p_BQ + p_AoBo_A. Nothing re-orthonormalises R_AB.
    """

    rotation: Float[Array, "*batch 3 3"]
    translation: Float[Array, "*batch 3"]

    if TYPE_CHECKING:  # poses made while a model is built hold NumPy arrays, in double precision whatever JAX's is

        def __init__(self, rotation: Array | np.ndarray, translation: Array | np.ndarray) -> None: ...

    @classmethod
    def identity(cls, dtype: DTypeLike | None = None) -> "RigidTransform":
        """Identity pose of coincident frames."""
        return cls(jnp.eye(3, dtype=dtype), jnp.zeros(3, dtype=dtype))

    @classmethod
    def from_translation(cls, p_AoBo_A: Float[Array, "*batch 3"]) -> "RigidTransform":
        """Pose of parallel frames, with B's origin at p_AoBo_A in m."""
        p = as_batch_of("from_translation: p_AoBo_A", p_AoBo_A, 3)
        return cls(jnp.broadcast_to(jnp.eye(3, dtype=p.dtype), (*p.shape, 3)), p)

    @classmethod
    def from_rotation(cls, R_AB: Float[Array, "*batch 3 3"]) -> "RigidTransform":
        """Pose of frames with a shared origin, turned by R_AB."""
        R = as_batch_of("from_rotation: R_AB", R_AB, 3, 3, hint=OF_QUATERNION)
        return cls(R, jnp.zeros(R.shape[:-1], dtype=R.dtype))

    @classmethod
    def from_rpy_xyz(cls, rpy: Float[Array, "*batch 3"], p_AoBo_A: Float[Array, "*batch 3"]) -> "RigidTransform":
        """Pose with R_AB = Rz(yaw) Ry(pitch) Rx(roll), as a URDF `origin` element; angles in rad, lengths in m."""
        angles = as_batch_of("from_rpy_xyz: rpy", rpy, 3, hint=OF_QUATERNION)
        return cls(rpy_to_matrix(angles), as_batch_of("from_rpy_xyz: p_AoBo_A", p_AoBo_A, 3))

    @classmethod
    def from_matrix4(cls, X_AB: Float[Array, "*batch 4 4"]) -> "RigidTransform":
        """Pose of a homogeneous matrix, of which the upper three rows are read."""
        X = as_batch_of("from_matrix4: X_AB", X_AB, 4, 4)
        return cls(X[..., :3, :3], X[..., :3, 3])

    def as_matrix4(self) -> Float[Array, "*batch 4 4"]:
        """Homogeneous matrix [[R_AB, p_AoBo_A], [0, 1]]."""
        upper = jnp.concatenate([self.rotation, self.translation[..., None]], axis=-1)
        last_row = jnp.array([0.0, 0.0, 0.0, 1.0], dtype=upper.dtype)
        lower = jnp.broadcast_to(last_row, (*upper.shape[:-2], 1, 4))
        return jnp.concatenate([upper, lower], axis=-2)

    def inverse(self) -> "RigidTransform":
        """Inverse pose X_BA."""
        R_BA = jnp.swapaxes(self.rotation, -1, -2)
        return type(self)(R_BA, -small_matvec(R_BA, self.translation))

    @overload
    def __matmul__(self, other: "RigidTransform") -> "RigidTransform": ...
    @overload
    def __matmul__(self, other: Float[Array, "... 3"]) -> Float[Array, "... 3"]: ...
    def __matmul__(self, other: Any) -> Any:
        """Composes X_AB @ X_BC -> X_AC, or maps points X_AB @ p_BQ -> p_AQ of shape (3,), (k, 3), ...

        Leading axes of both sides broadcast: n poses map one point, or n points, to n points.
        """
        if isinstance(other, RigidTransform):
            rotation = small_matmul(self.rotation, other.rotation)
            return RigidTransform(rotation, self @ other.translation)
        if not hasattr(other, "ndim"):
            other = jnp.asarray(other, dtype=self.translation.dtype)
        if other.shape[-1:] != (3,):
            raise ValueError(f"RigidTransform @ array: points need shape (..., 3), got {other.shape}.")
        rotated = small_matvec(self.rotation, other)
        missing = rotated.ndim - self.translation.ndim
        return rotated + self.translation.reshape((1,) * missing + self.translation.shape)

    def __getitem__(self, index: Any) -> "RigidTransform":
        """Selects poses along the leading axes; the axes of one pose cannot be indexed."""
        num_leading = self.translation.ndim - 1
        entries = index if isinstance(index, tuple) else (index,)
        num_used = sum(entry is not None and entry is not Ellipsis for entry in entries)
        if num_used > num_leading:
            raise IndexError(
                f"RigidTransform with {num_leading} leading axes got {num_used} indices; "
                "use .rotation or .translation to read components."
            )
        if Ellipsis not in entries:
            entries = (*entries, Ellipsis)
        rotation = self.rotation[(*entries, slice(None), slice(None))]
        return type(self)(rotation, self.translation[(*entries, slice(None))])

    def __str__(self) -> str:
        return f"RigidTransform\n rotation:\n{self.rotation}\n translation: {self.translation}"
