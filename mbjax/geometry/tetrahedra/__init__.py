"""Meshes of tetrahedra: checked records, files that hold them, and those of shapes."""

from .mesh_files import read_tetrahedra as read_tetrahedra
from .of_shape import as_tetrahedral_mesh as as_tetrahedral_mesh
from .of_shape import tetrahedra_of as tetrahedra_of
from .tetrahedral_mesh import TetrahedralMesh as TetrahedralMesh
from .tetrahedral_mesh import check_tetrahedra as check_tetrahedra
from .tetrahedral_mesh import repaired_tetrahedra as repaired_tetrahedra
from .vtk_writer import write_tetrahedra as write_tetrahedra
