"""Robots whose bodies may touch each other, in one world on a CPU: a list of the points that overlap."""

from jaxtyping import Array

from mbjax.dynamics import ForwardDynamicsTerms
from mbjax.execution.arrays import repeat_turns
from mbjax.linear_algebra import branch_rows, chain
from mbjax.topology import TreeTopology, velocity_parents

from ..movers.paths_of_list import PathsOfList, paths_of_list
from ..newton.along_branches import matrix_along_branches
from ..newton.newton_matrix import NewtonMatrix
from ..rows.rows_of_step import OfRows, OtherRows
from .listed_points import AbstractListedPoints


class ListedTrees(AbstractListedPoints):
    """Points on a list, between any bodies; the Newton matrix is dense only while one of them couples branches."""

    moved: PathsOfList
    mover = staticmethod(paths_of_list)

    def newton_matrix(self, topology: TreeTopology, terms: ForwardDynamicsTerms, others: OtherRows) -> NewtonMatrix:
        def along(parents: tuple[int, ...]) -> NewtonMatrix:
            def rows(G: Array) -> Array:
                return branch_rows(parents, self.moved.hessian(G))

            return matrix_along_branches(topology, terms, others, parents, rows)

        dense = along(chain(topology.num_velocities))
        if others.coupled is not None:
            return dense
        by_tree, couples = along(velocity_parents(topology)), self.moved.couples_branches()

        def solve(stiffness: OfRows, b: Array) -> Array:
            x = repeat_turns(1 - couples, lambda _, x: by_tree.solve(stiffness, x), b)
            return repeat_turns(couples, lambda _, x: dense.solve(stiffness, x), x)

        return NewtonMatrix(by_tree.inertia_product, dense.solver, solve)
