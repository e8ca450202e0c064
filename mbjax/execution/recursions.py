"""The words that recursions over the tree are written in: scans, stages of a step, and rows taken apart.

One text of a recursion runs as one kernel on a CPU, as one on a GPU, and elsewhere as XLA would run it.
"""

from .cpu_kernel import in_one_kernel as in_one_kernel
from .packed_rows import Packed as Packed
from .packed_rows import zeros_of as zeros_of
from .parts import Matrix as Matrix
from .parts import Parts as Parts
from .parts import RowEntries as RowEntries
from .parts import ScannedRow as ScannedRow
from .parts import StageResult as StageResult
from .parts import Vector as Vector
from .parts import parts as parts
from .parts import put_together as put_together
from .parts import take_apart as take_apart
from .parts import total as total
from .stages import Late as Late
from .stages import Row as Row
from .stages import computed_once as computed_once
from .stages import computed_where_kept as computed_where_kept
from .stages import computed_where_read as computed_where_read
from .stages import kept_stage as kept_stage
from .stages import read as read
from .stages import read_all as read_all
from .stages import read_stage as read_stage
from .stages import row_of as row_of
from .stages import stage as stage
from .tree_scan import read_row as read_row
from .tree_scan import scan_inward as scan_inward
from .tree_scan import scan_outward as scan_outward
from .tree_scan import scan_paths as scan_paths
from .walk_plan import ON_BASE as ON_BASE
from .walk_plan import walk_plan as walk_plan
