"""Reference models: robots that come with the package, and names of robots that other packages bring."""

from .bundled import REFERENCE_MODELS as REFERENCE_MODELS
from .bundled import path as path
from .installed_robots import Robot as Robot
from .installed_robots import Robots as Robots
from .installed_robots import find_robot as find_robot
from .installed_robots import no_robot as no_robot
from .installed_robots import robots as robots
