"""The Newton matrix of a step in which deformable bodies touch: their nodes eliminated, then the bodies' velocities.

    [H_bb  H_bn] [x_b]   [b_b]
    [H_nb  H_nn] [x_n] = [b_n]        (H_bb - H_bn H_nn⁻¹ H_nb) x_b = b_b - H_bn H_nn⁻¹ b_n

The nodes are those on which the problem is condensed.
"""

import dataclasses
from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.dynamics import ForwardDynamicsTerms
from mbjax.linear_algebra import branch_rows, chain
from mbjax.topology import TreeTopology

from ..nodes.nodes_of_step import NodesOfProblem
from ..rows.rows_of_step import OfRows, OtherRows
from .along_branches import matrix_along_branches
from .newton_matrix import NewtonMatrix, Product

NOTHING_MOVES = NewtonMatrix(lambda x: x, lambda _: lambda b: b, lambda _, b: b)  # no body moves


def matrix_with_nodes(
    topology: TreeTopology,
    terms: ForwardDynamicsTerms,
    others: OtherRows,
    hessian: Callable[[Float[Array, "6 m"]], Float[Array, "nv nv"]] | None,
    nodes: NodesOfProblem,
) -> NewtonMatrix:
    """The Newton matrix of bodies and nodes; `hessian` has the part of contacts between bodies, if there are any."""
    nv, parents = topology.num_velocities, chain(topology.num_velocities)
    of_bodies = NOTHING_MOVES
    if nv > 0:
        of_bodies = matrix_along_branches(topology, terms, others, parents, lambda A: branch_rows(parents, A))

    def inertia_product(x: Float[Array, " k"]) -> Float[Array, " k"]:
        return jnp.concatenate(
            [of_bodies.inertia_product(x[:nv]), of_nodes(nodes.inertia.product(x[nv:].reshape(-1, 3)))]
        )

    def solver(stiffness: OfRows) -> Product:
        assert stiffness.nodes is not None
        parts = nodes.hessian(stiffness.nodes)
        solve_nodes = parts.of_nodes.solver()
        if nv == 0:
            return lambda b: of_nodes(solve_nodes(b.reshape(-1, 3, 1)))
        columns = solve_nodes(parts.between)
        dense = parts.of_bodies - jnp.einsum("niv,niu->vu", parts.between, columns)
        if hessian is not None and stiffness.contacts is not None:
            dense = dense + hessian(stiffness.contacts)
        solve_bodies = of_bodies.solver(dataclasses.replace(stiffness, contacts=dense))

        def solve(b: Float[Array, " k"]) -> Float[Array, " k"]:
            y = solve_nodes(b[nv:].reshape(-1, 3, 1))[..., 0]
            x = solve_bodies(b[:nv] - jnp.einsum("niv,ni->v", parts.between, y))
            return jnp.concatenate([x, of_nodes(y - columns @ x)])

        return solve

    return NewtonMatrix(inertia_product, solver, lambda stiffness, b: solver(stiffness)(b))


def of_nodes(x: Float[Array, "n 3"]) -> Float[Array, " 3n"]:
    """Vectors of nodes as one vector."""
    return x.reshape(-1)
