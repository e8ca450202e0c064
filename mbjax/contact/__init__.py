"""Contact between bodies: points, laws, and the convex problem of a discrete step."""

from .abstract_law import AbstractContactLaw as AbstractContactLaw
from .box_rows import BoxRows as BoxRows
from .box_rows import join_rows as join_rows
from .contact_jacobian import calc_contact_forces_on_bodies as calc_contact_forces_on_bodies
from .contact_parameters import contact_penalty_method_time_scale as contact_penalty_method_time_scale
from .contact_points import ContactPoints as ContactPoints
from .contact_points import calc_contact_points as calc_contact_points
from .contact_results import ContactForces as ContactForces
from .contact_results import ContactResults as ContactResults
from .contact_results import calc_contact_results as calc_contact_results
from .contact_rows import NEAR_RIGID as NEAR_RIGID
from .contact_rows import ContactRows as ContactRows
from .contact_rows import calc_contact_rows as calc_contact_rows
from .contact_rows import count_left_out as count_left_out
from .contact_rows import in_all_slots as in_all_slots
from .continuous_law import calc_continuous_contact_forces as calc_continuous_contact_forces
from .convex_problem import ConvexProblem as ConvexProblem
from .convex_problem import CoupledRows as CoupledRows
from .convex_problem import calc_impulses as calc_impulses
from .convex_problem import calc_row_motion as calc_row_motion
from .convex_search import ConvexSearch as ConvexSearch
from .convex_search import ConvexSolution as ConvexSolution
from .convex_solver import calc_convex_solution as calc_convex_solution
from .moved_bodies import find_moved_bodies as find_moved_bodies
from .signed_distances import SignedDistances as SignedDistances
from .signed_distances import signed_distances as signed_distances
