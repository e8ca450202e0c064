"""The search for a step in which deformable bodies touch: on the nodes that take part, which all others follow."""

import dataclasses

import jax.numpy as jnp

from mbjax.topology import TreeTopology

from ..nodes.participating_nodes import condense_nodes
from .convex_problem import ConvexProblem
from .convex_search import ConvexSolution, search


def search_on_few_nodes(topology: TreeTopology, problem: ConvexProblem) -> ConvexSolution:
    """The solution for the bodies and all nodes; not differentiable."""
    assert problem.nodes is not None
    condensed, nodes = condense_nodes(problem.nodes)
    of_few = dataclasses.replace(problem, nodes=nodes)
    found = search(topology, of_few).solution()
    of_bodies, of_nodes = of_few.apart(found.vdot)
    return found._replace(vdot=jnp.concatenate([of_bodies, condensed.spread(of_nodes).reshape(-1)]))
