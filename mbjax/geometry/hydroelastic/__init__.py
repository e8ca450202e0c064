"""Hydroelastic contact: pressure fields within shapes, and the surfaces where two of them press on each other."""

from .contact_surface import ContactSurface as ContactSurface
from .faces import Representation as Representation
from .faces import faces_of as faces_of
from .faces import seen_from_other as seen_from_other
from .mesh_fit import is_inside_out as is_inside_out
from .moving_tetrahedra import TetrahedronFaces as TetrahedronFaces
from .moving_tetrahedra import faces_of_tetrahedra as faces_of_tetrahedra
from .moving_tetrahedra import polygons_of_equal_depth as polygons_of_equal_depth
from .moving_tetrahedra import weights_of_corners as weights_of_corners
from .moving_triangles import TriangleFaces as TriangleFaces
from .moving_triangles import faces_of_triangles as faces_of_triangles
from .moving_triangles import polygons_of_triangles as polygons_of_triangles
from .moving_triangles import usual_number_of_faces as usual_number_of_faces
from .near_pairs import calc_near_surfaces as calc_near_surfaces
from .reached_elements import most_elements_at_planes as most_elements_at_planes
from .pressure_field import PressureField as PressureField
from .pressure_field import field as field
from .surface_of_pair import contact_surface as contact_surface
from .surface_of_pair import largest_number_of_faces as largest_number_of_faces
from .surface_of_pair import reason_for_no_surface as reason_for_no_surface
from .topology import Compliance as Compliance
from .topology import HydroelasticTopology as HydroelasticTopology
from .topology import SurfaceMesh as SurfaceMesh
from .topology import count_open_edges as count_open_edges
from .topology import hydroelastic_geometry as hydroelastic_geometry
from .topology import surface_in_file as surface_in_file
