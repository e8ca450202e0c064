"""Records of constraints, one file a kind, named as its mathematics in `mbjax/constraints`.

A body is given by name, index or element; poses as `RigidTransform`, 4x4 matrix or translation.
"""

from .contact import ContactConstraint as ContactConstraint
from .loop import LoopConstraint as LoopConstraint
from .loop import BallConstraint as BallConstraint
from .loop import WeldConstraint as WeldConstraint
from .distance import DistanceConstraint as DistanceConstraint
from .coupler import CouplerConstraint as CouplerConstraint
from .lock import LockConstraint as LockConstraint
from .custom import CustomConstraint as CustomConstraint
