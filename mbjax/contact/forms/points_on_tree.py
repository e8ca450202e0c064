"""All contact points side by side where a single body moves at each: they keep the sparsity of the tree."""

from mbjax.dynamics import ForwardDynamicsTerms
from mbjax.topology import TreeTopology, velocity_parents

from ..newton.along_branches import matrix_along_branches
from ..newton.by_articulated_bodies import articulated_matrix
from ..newton.contact_hessian import contact_hessian_in_tree
from ..newton.newton_matrix import NewtonMatrix
from ..rows.rows_of_step import OtherRows
from .all_points import AbstractAllPoints


class PointsOnDeepTree(AbstractAllPoints):
    """All points, one moving body at each, with the Newton matrix by articulated bodies."""

    def newton_matrix(self, topology: TreeTopology, terms: ForwardDynamicsTerms, others: OtherRows) -> NewtonMatrix:
        return articulated_matrix(topology, terms, others, self.moved)


class PointsOnTree(AbstractAllPoints):
    """All points, one moving body at each, with the Newton matrix factored along the tree's branches."""

    def newton_matrix(self, topology: TreeTopology, terms: ForwardDynamicsTerms, others: OtherRows) -> NewtonMatrix:
        parents = velocity_parents(topology)
        return matrix_along_branches(topology, terms, others, parents, contact_hessian_in_tree(self.moved, parents))
