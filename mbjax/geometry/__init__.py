"""Geometry: shapes that are seen or collide, their contact properties, and signed distances between them."""

from .hydroelastic_properties import HydroelasticProperties as HydroelasticProperties
from .membership import is_inside as is_inside
from .proximity_properties import ProximityProperties as ProximityProperties
from .proximity_properties import as_proximity_properties as as_proximity_properties
from .shapes import Box as Box
from .shapes import Capsule as Capsule
from .shapes import Convex as Convex
from .shapes import Cylinder as Cylinder
from .shapes import Ellipsoid as Ellipsoid
from .shapes import Geometry as Geometry
from .shapes import HalfSpace as HalfSpace
from .shapes import Mesh as Mesh
from .shapes import Shape as Shape
from .shapes import Sphere as Sphere
from .shapes import shape_lengths as shape_lengths
from .mesh_solid import read_solid as read_solid
from .tetrahedra import TetrahedralMesh as TetrahedralMesh
from .tetrahedra import as_tetrahedral_mesh as as_tetrahedral_mesh
from .tetrahedra import check_tetrahedra as check_tetrahedra
from .tetrahedra import read_tetrahedra as read_tetrahedra
from .tetrahedra import repaired_tetrahedra as repaired_tetrahedra
from .tetrahedra import tetrahedra_of as tetrahedra_of
from .tetrahedra import write_tetrahedra as write_tetrahedra
from .triangle_distance import distance_to_triangles as distance_to_triangles
