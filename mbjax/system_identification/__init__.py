"""System identification: from a log to a model with error bars."""

from .parameters import Parameters as Parameters
from .regressor import linear_parameter_names as linear_parameter_names
from .regressor import linear_parameters as linear_parameters
from .regressor import regressor as regressor
from .regressor import regressor_of_log as regressor_of_log
from .spaces import Space as Space
from .spaces import between as between
from .spaces import fixed as fixed
from .spaces import free as free
from .spaces import physical as physical
from .spaces import positive as positive
from .spaces import scaled as scaled
from .system import Sensors as Sensors
from .system import System as System
