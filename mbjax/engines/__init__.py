"""States and controls in the orders of coordinates of other engines: Drake, MuJoCo and Pinocchio."""

from .drake_order import drake_state as drake_state
from .drake_order import state_from_drake as state_from_drake
from .mujoco_controls import inputs_from_mujoco as inputs_from_mujoco
from .mujoco_order import mujoco_state as mujoco_state
from .mujoco_order import state_from_mujoco as state_from_mujoco
from .pinocchio_order import pinocchio_state as pinocchio_state
from .pinocchio_order import state_from_pinocchio as state_from_pinocchio
