"""Tasks that people know, one file a task."""

from .ant import Ant as Ant
from .cart_pole import CartPoleSwingUp as CartPoleSwingUp
from .hopper import Hopper as Hopper
from .in_hand import InHandCube as InHandCube
from .in_hand import leap_hand_file as leap_hand_file
from .quadruped import QuadrupedVelocity as QuadrupedVelocity
from .reach import ArmReach as ArmReach
from .trot import OpenLoopTrot as OpenLoopTrot
