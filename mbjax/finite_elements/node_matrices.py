"""Symmetric positive definite matrices of nodes: of a whole mesh in layers, or dense, of a few nodes."""

import abc
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mbjax.execution import call_library
from mbjax.linear_algebra import lapack
from mbjax.linear_algebra.block_tridiagonal import BlockTridiagonal, times_block_tridiagonal

from .assembly import from_layers, to_layers
from .mesh_structure import MeshStructure


class AbstractNodeMatrix(eqx.Module):
    """A symmetric positive definite matrix of n nodes, x, y and z of one after those of another."""

    @abc.abstractmethod
    def product(self, x: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
        """The matrix times a vector."""

    @abc.abstractmethod
    def diagonal(self) -> Float[Array, "n 3"]:
        """Its diagonal."""


class MeshMatrix(AbstractNodeMatrix):
    """A matrix of all nodes of a mesh, in layers."""

    mesh: MeshStructure = eqx.field(static=True)
    blocks: BlockTridiagonal

    def product(self, x: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
        return from_layers(self.mesh, times_block_tridiagonal(self.blocks, to_layers(self.mesh, x[..., None])))[..., 0]

    def diagonal(self) -> Float[Array, "n 3"]:
        entries = jnp.diagonal(self.blocks.diagonal, axis1=1, axis2=2)
        return from_layers(self.mesh, entries[..., None])[..., 0]


class DenseNodeMatrix(AbstractNodeMatrix):
    """A matrix of n nodes of which every two may be coupled."""

    entries: Float[Array, "3n 3n"]

    def product(self, x: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
        return (self.entries @ x.reshape(-1)).reshape(x.shape)

    def diagonal(self) -> Float[Array, "n 3"]:
        return jnp.diagonal(self.entries).reshape(-1, 3)

    def plus(self, nodes: Int[Array | np.ndarray, "m k"], matrices: Float[Array, "m 3k 3k"]) -> "DenseNodeMatrix":
        """The sum with m symmetric matrices of k nodes each."""
        places = (3 * jnp.asarray(nodes, jnp.int32)[:, :, None] + np.arange(3, dtype=np.int32)).reshape(
            nodes.shape[0], -1
        )
        return DenseNodeMatrix(self.entries.at[places[:, :, None], places[:, None, :]].add(matrices))

    def solver(self) -> Callable[[Float[Array, "n 3 k"]], Float[Array, "n 3 k"]]:
        """Solves with it; not differentiable."""
        L = call_library(lapack.cholesky, self.entries)[0]

        def solve(b: Float[Array, "n 3 k"]) -> Float[Array, "n 3 k"]:
            return call_library(lapack.cholesky_solve, L, b.reshape(-1, b.shape[2]))[0].reshape(b.shape)

        return solve
