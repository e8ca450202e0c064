"""Motions → applied forces, one law a file."""

from .force_elements import calc_passive_forces_on_tree as calc_passive_forces_on_tree
from .force_elements import calc_potential_energy as calc_potential_energy
from .force_elements import force_elements_contribution as force_elements_contribution
from .force_elements import gravity_generalized_forces as gravity_generalized_forces
from .gravity import calc_masses_and_centers as calc_masses_and_centers
from .joint_dissipation import calc_dissipation_coefficient as calc_dissipation_coefficient
from .joint_dissipation import calc_joint_dissipation as calc_joint_dissipation
from .joint_springs import PrismaticSpring as PrismaticSpring
from .joint_springs import RevoluteSpring as RevoluteSpring
from .linear_spring_damper import LinearSpringDamper as LinearSpringDamper
from .multibody_forces import MultibodyForces as MultibodyForces
from .multibody_forces import calc_mobod_forces as calc_mobod_forces
