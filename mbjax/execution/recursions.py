"""The words that recursions over the tree are written in: scans, rows of records, and stages of a step.

One text of a recursion runs as one kernel on a CPU, as one on a GPU, and elsewhere as XLA would run it.
"""

from .recursion.packed_rows import array_of as array_of
from .recursion.packed_rows import rows_of as rows_of
from .recursion.packed_rows import zeros_of as zeros_of
from .recursion.parts import Matrix as Matrix
from .recursion.parts import Vector as Vector
from .recursion.parts import parts as parts
from .recursion.parts import sum_of_rows as sum_of_rows
from .recursion.stages import Row as Row
from .recursion.stages import computed_once as computed_once
from .recursion.stages import kept_stage as kept_stage
from .recursion.stages import read as read
from .recursion.stages import read_all as read_all
from .recursion.stages import read_stage as read_stage
from .recursion.stages import row_of as row_of
from .recursion.stages import stage as stage
from .recursion.tree_scan import read_row as read_row
from .recursion.tree_scan import scan_inward as scan_inward
from .recursion.tree_scan import scan_outward as scan_outward
from .recursion.tree_scan import scan_paths as scan_paths
from .recursion.walk_plan import ON_BASE as ON_BASE
from .recursion.walk_plan import walk_plan as walk_plan
from .targets.cpu_kernel import in_one_kernel as in_one_kernel
