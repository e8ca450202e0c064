"""Controllers: pure functions of a model, a state and a reference that return efforts."""

from .gravity_compensation import gravity_compensation as gravity_compensation
from .joint_pd import joint_pd as joint_pd
from .computed_torque import computed_torque as computed_torque
from .joint_impedance import joint_impedance as joint_impedance
from .cartesian_impedance import cartesian_impedance as cartesian_impedance
from .operational_space import operational_space as operational_space
from .admittance import AdmittanceState as AdmittanceState
from .admittance import admittance_step as admittance_step
from .tasks import CenterOfMassTask as CenterOfMassTask
from .tasks import FrameTask as FrameTask
from .tasks import MomentumTask as MomentumTask
from .tasks import PostureTask as PostureTask
from .damping_design import damping_matrix as damping_matrix
from .linear_quadratic_regulator import Regulator as Regulator
from .linear_quadratic_regulator import lqr as lqr
from .riccati import discrete_riccati as discrete_riccati
from .time_varying_lqr import TrajectoryRegulator as TrajectoryRegulator
from .time_varying_lqr import time_varying_lqr as time_varying_lqr
from .sampled_plans import SampledPlan as SampledPlan
from .sampled_plans import sampled_plan as sampled_plan
from .path_integral import mppi_step as mppi_step
from .cross_entropy import cem_step as cem_step
from .contact_points import ContactPoints as ContactPoints
from .whole_body import WholeBody as WholeBody
from .whole_body import whole_body as whole_body
