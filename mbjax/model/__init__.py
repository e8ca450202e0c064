"""BUILD → FINALIZE: the mutable plant, and the frozen model the functions take."""

from .abstract_force_element import AbstractForceElement as AbstractForceElement
from .elements import Body as Body
from .elements import Frame as Frame
from .elements import JointActuator as JointActuator
from .load_report import LoadReport as LoadReport
from .load_report import ReportEntry as ReportEntry
from .multibody_model import ActuatorInfo as ActuatorInfo
from .multibody_model import JointInfo as JointInfo
from .multibody_model import MultibodyModel as MultibodyModel
from .multibody_model import astype as astype
from .multibody_plant import MultibodyPlant as MultibodyPlant
from .parameters import MultibodyParameters as MultibodyParameters
