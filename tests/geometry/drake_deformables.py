"""Meshes that Drake has of deformable bodies."""

import numpy as np
import pydrake.geometry as dg
from pydrake.math import RigidTransform
from pydrake.multibody.fem import DeformableBodyConfig
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph
from pydrake.systems.framework import DiagramBuilder


def drake_mesh(shape: dg.Shape, resolution_hint: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Reference positions (nodes, 3) in m, and nodes of the tetrahedra (tetrahedra, 4)."""
    plant, scene_graph = AddMultibodyPlantSceneGraph(DiagramBuilder(), 0.01)
    instance = dg.GeometryInstance(RigidTransform(), shape, "pad")
    instance.set_proximity_properties(dg.ProximityProperties())
    deformables = plant.mutable_deformable_model()
    body = deformables.RegisterDeformableBody(instance, DeformableBodyConfig(), resolution_hint)
    mesh = scene_graph.model_inspector().GetReferenceMesh(deformables.GetGeometryId(body))
    tetrahedra = [[element.vertex(k) for k in range(4)] for element in mesh.tetrahedra()]
    return deformables.GetReferencePositions(body).reshape(-1, 3), np.array(tetrahedra)
