"""Forces on joints and bodies from their positions and motions, one law a file."""

from .door_hinge import DoorHinge as DoorHinge
from .door_hinge import DoorHingeConfig as DoorHingeConfig
from .force_elements import calc_force_elements as calc_force_elements
from .force_elements import calc_passive_forces_on_tree as calc_passive_forces_on_tree
from .force_elements import calc_potential_energy as calc_potential_energy
from .force_elements import force_elements_contribution as force_elements_contribution
from .force_elements import gravity_generalized_forces as gravity_generalized_forces
from .gravity import calc_gravity_on_mobods as calc_gravity_on_mobods
from .gravity import calc_masses_and_centers as calc_masses_and_centers
from .joint_dissipation import calc_dissipation_coefficient as calc_dissipation_coefficient
from .joint_dissipation import calc_joint_dissipation as calc_joint_dissipation
from .joint_springs import PrismaticSpring as PrismaticSpring
from .joint_springs import RevoluteSpring as RevoluteSpring
from .linear_bushing import LinearBushingRollPitchYaw as LinearBushingRollPitchYaw
from .linear_spring_damper import LinearSpringDamper as LinearSpringDamper
from .multibody_forces import MultibodyForces as MultibodyForces
from .multibody_forces import add_in_force as add_in_force
from .multibody_forces import add_in_force_in_world as add_in_force_in_world
from .multibody_forces import add_in_one_force as add_in_one_force
from .multibody_forces import calc_mobod_forces as calc_mobod_forces
from .multibody_forces import force_in_world as force_in_world
from .multibody_forces import generalized_forces as generalized_forces
from .power import ForceElementPower as ForceElementPower
from .power import conservative_power as conservative_power
from .power import force_element_power as force_element_power
from .power import non_conservative_power as non_conservative_power
