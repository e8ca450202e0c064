"""Contact between bodies: points, laws, and the convex problem of a discrete step.

`docs/development/contact.md` tells how a step finds its contact forces.
"""

from .contact_results import ContactForces as ContactForces
from .contact_results import ContactResults as ContactResults
from .contact_results import calc_contact_forces_of_step as calc_contact_forces_of_step
from .contact_results import calc_contact_forces_on_bodies as calc_contact_forces_on_bodies
from .contact_results import calc_contact_results as calc_contact_results
from .forms.abstract_form import AbstractContactForm as AbstractContactForm
from .forms.abstract_form import StepSoFar as StepSoFar
from .forms.choose import are_worlds_alone as are_worlds_alone
from .forms.choose import form_elsewhere as form_elsewhere
from .forms.choose import is_matrix_factored as is_matrix_factored
from .laws.abstract_law import AbstractContactLaw as AbstractContactLaw
from .laws.continuous_law import calc_continuous_contact_forces as calc_continuous_contact_forces
from .laws.law_of_model import NEAR_RIGID as NEAR_RIGID
from .laws.law_of_model import LawInputs as LawInputs
from .laws.law_of_model import calc_contact_law as calc_contact_law
from .laws.law_of_model import size_of_response as size_of_response
from .movers.moved_bodies import find_moved_bodies as find_moved_bodies
from .nodes.node_contact_results import DeformableContact as DeformableContact
from .nodes.node_contact_results import DeformableContacts as DeformableContacts
from .nodes.node_contact_results import calc_deformable_contacts as calc_deformable_contacts
from .nodes.node_contact_results import names_of_pairs as names_of_pairs
from .nodes.node_point_records import NodePoints as NodePoints
from .nodes.node_points import calc_node_points as calc_node_points
from .nodes.nodes_of_step import FixedNodeSprings as FixedNodeSprings
from .nodes.nodes_of_step import NodesOfProblem as NodesOfProblem
from .nodes.nodes_of_step import relative_velocities as relative_velocities
from .nodes.nodes_of_step import response_of_points as response_of_points
from .nodes.surfaces_of_deformables import calc_surfaces_of_deformables as calc_surfaces_of_deformables
from .points.contact_parameters import contact_penalty_method_time_scale as contact_penalty_method_time_scale
from .points.contact_points import calc_contact_points as calc_contact_points
from .points.point_records import ContactPoints as ContactPoints
from .points.signed_distances import SignedDistances as SignedDistances
from .points.signed_distances import signed_distances as signed_distances
from .rows.box_rows import BoxRows as BoxRows
from .rows.box_rows import join_rows as join_rows
from .rows.coupled_rows import CoupledRows as CoupledRows
from .rows.rows_of_step import OtherRows as OtherRows
from .search.convex_problem import ConvexProblem as ConvexProblem
from .search.convex_problem import calc_impulses as calc_impulses
from .search.convex_problem import calc_row_motion as calc_row_motion
from .search.convex_search import ConvexSearch as ConvexSearch
from .search.convex_search import ConvexSolution as ConvexSolution
from .search.convex_solver import calc_convex_solution as calc_convex_solution
from .search.convex_solver import calc_solution as calc_solution
from .surface_contacts import SurfaceContact as SurfaceContact
