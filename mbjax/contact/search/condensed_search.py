"""The step in which deformable bodies touch, on the nodes that take part: all others follow them."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.finite_elements import CondensedNodes
from mbjax.topology import TreeTopology

from ..nodes.participating_nodes import condense_nodes
from ..rows.rows_of_step import OfRows
from .convex_problem import ConvexProblem
from .convex_search import ConvexSolution, search


class ProblemOnFewNodes(NamedTuple):
    """A step's problem on the nodes that take part, and the way to all nodes; nothing of it is differentiable."""

    problem: ConvexProblem
    condensed: CondensedNodes

    def search(self, topology: TreeTopology) -> ConvexSolution:
        """The solution for the bodies and all nodes."""
        found = search(topology, self.problem).solution()
        of_bodies, of_nodes = self.problem.apart(found.vdot)
        return found._replace(vdot=joined(of_bodies, self.condensed.spread(of_nodes)))

    def solver(self, topology: TreeTopology, stiffness: OfRows) -> Callable[[Float[Array, " k"]], Float[Array, " k"]]:
        """Solves with the Newton matrix of the whole problem."""
        solve_few = self.problem.newton_matrix(topology).solver(stiffness)

        def solve(b: Float[Array, " k"]) -> Float[Array, " k"]:
            of_bodies, of_nodes = self.problem.apart(b)
            of_others, of_few = self.condensed.condense_force(of_nodes)
            x, x_few = self.problem.apart(solve_few(joined(of_bodies, of_few)))
            return joined(x, of_others + self.condensed.spread(x_few))

        return solve


def on_few_nodes(problem: ConvexProblem) -> ProblemOnFewNodes:
    """The problem condensed on the nodes that take part."""
    assert problem.nodes is not None
    condensed, nodes = condense_nodes(problem.nodes)
    return ProblemOnFewNodes(dataclasses.replace(problem, nodes=nodes), condensed)


def joined(of_bodies: Float[Array, " nv"], of_nodes: Float[Array, "n 3"]) -> Float[Array, " k"]:
    """Vectors of bodies and nodes as one."""
    return jnp.concatenate([of_bodies, of_nodes.reshape(-1)])
