"""The tree as integers: how it is found, and sums and products along its paths."""

from .directions import ends_of_joints as ends_of_joints
from .directions import over_directions as over_directions
from .directions import sum_directions as sum_directions
from .directions import velocity_parents as velocity_parents
from .spanning_tree import JointEdge as JointEdge
from .spanning_tree import TreeNode as TreeNode
from .spanning_tree import build_spanning_tree as build_spanning_tree
from .tree_topology import TreeTopology as TreeTopology
from .tree_traversal import compose_outward as compose_outward
from .tree_traversal import sum_moved_mobods as sum_moved_mobods
from .tree_traversal import sum_over_path as sum_over_path
from .tree_traversal import sum_over_subtree as sum_over_subtree
from .tree_traversal import sum_velocities_over_path as sum_velocities_over_path
from .parents import direction_parents as direction_parents
from .parents import free_base as free_base
from .parents import parents_beyond as parents_beyond
