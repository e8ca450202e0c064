"""Finite elements of deformable bodies: tetrahedra, materials, and their motion in a step.

Functions know nodes and elements, no bodies of a plant. Each is for one world; `vmap` gives many.
"""

from .condensation import CondensedNodes as CondensedNodes
from .condensation import KeptNodes as KeptNodes
from .condensation import condense as condense
from .element_kinds import ELEMENT_KINDS as ELEMENT_KINDS
from .element_kinds import OUTWARD_FACES as OUTWARD_FACES
from .element_kinds import between_corners as between_corners
from .elements import ReferenceElements as ReferenceElements
from .elements import ReferencePoints as ReferencePoints
from .elements import at_mass_points as at_mass_points
from .elements import bodies_of_mass_points as bodies_of_mass_points
from .elements import calc_elastic_energies as calc_elastic_energies
from .elements import calc_mass_averages as calc_mass_averages
from .elements import calc_reference_elements as calc_reference_elements
from .elements import calc_reference_points as calc_reference_points
from .elements import calc_rest_positions as calc_rest_positions
from .elements import calc_start_rotations as calc_start_rotations
from .elements import deformation_gradient as deformation_gradient
from .fixed_nodes import EliminatedRows as EliminatedRows
from .fixed_nodes import FixedNodeRows as FixedNodeRows
from .fixed_nodes import calc_fixed_node_rows as calc_fixed_node_rows
from .fixed_nodes import calc_node_response as calc_node_response
from .fixed_nodes import eliminate_nodes_of_mesh as eliminate_nodes_of_mesh
from .free_motion import ElementNumbers as ElementNumbers
from .free_motion import NodeVelocities as NodeVelocities
from .free_motion import MotionProblem as MotionProblem
from .free_motion import calc_node_velocities as calc_node_velocities
from .free_motion import calc_tangent as calc_tangent
from .massless_motions import find_massless_element as find_massless_element
from .material_laws import AT_REST as AT_REST
from .material_laws import LAWS as LAWS
from .material_laws import MODELS as MODELS
from .material_laws import LameConstants as LameConstants
from .material_laws import lame_constants as lame_constants
from .mesh_structure import MeshOfBody as MeshOfBody
from .mesh_structure import MeshStructure as MeshStructure
from .mesh_structure import mesh_structure as mesh_structure
from .depth_mesh import DepthMesh as DepthMesh
from .depth_mesh import depth_mesh as depth_mesh
from .node_matrices import AbstractNodeMatrix as AbstractNodeMatrix
from .node_matrices import DenseNodeMatrix as DenseNodeMatrix
from .node_matrices import MeshMatrix as MeshMatrix
from .node_forces import calc_volume_forces as calc_volume_forces
from .node_forces import calc_node_weights as calc_node_weights
from .strain_and_stress import calc_largest_strains as calc_largest_strains
from .strain_and_stress import calc_node_averages as calc_node_averages
from .strain_and_stress import calc_von_mises_stresses as calc_von_mises_stresses
