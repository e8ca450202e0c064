"""Drake's contact surfaces of two hydroelastic geometries, and their sums."""

import numpy as np
import pydrake.geometry as dg
from pydrake.math import RigidTransform

from mbjax.geometry import Box, Capsule, Convex, Cylinder, Ellipsoid, HalfSpace, Shape, Sphere


def drake_shape(shape: Shape) -> dg.Shape:
    """Drake's shape of the same kind and lengths."""
    match shape:
        case Sphere(radius):
            return dg.Sphere(radius)
        case Box(size):
            return dg.Box(*size)
        case Capsule(radius, length):
            return dg.Capsule(radius, length)
        case Cylinder(radius, length):
            return dg.Cylinder(radius, length)
        case Ellipsoid(a, b, c):
            return dg.Ellipsoid(a, b, c)
        case HalfSpace():
            return dg.HalfSpace()
        case Convex(vertices):
            return dg.Convex(np.array(vertices).T, "hull")
    raise ValueError(shape)


class DrakeSurfaces:
    """Two geometries whose poses are set again and again."""

    def __init__(self, geometries: list[dict]):
        self.scene_graph = dg.SceneGraph()
        self.source = self.scene_graph.RegisterSource("pair")
        self.frames, self.geometries = [], []
        for number, geometry in enumerate(geometries):
            frame = self.scene_graph.RegisterFrame(self.source, dg.GeometryFrame(f"frame {number}"))
            instance = dg.GeometryInstance(RigidTransform(), drake_shape(geometry["shape"]), f"geometry {number}")
            registered = self.scene_graph.RegisterGeometry(self.source, frame, instance)
            self.scene_graph.AssignRole(self.source, registered, properties(geometry))
            self.frames.append(frame)
            self.geometries.append(registered)
        self.context = self.scene_graph.CreateDefaultContext()
        self.poses = self.scene_graph.get_source_pose_port(self.source)
        self.query_port = self.scene_graph.get_query_output_port()

    def surface(self, poses: list[tuple[np.ndarray, np.ndarray]], representation: str) -> "DrakeSurface":
        """The contact surface for poses (R_WG, p_WoGo_W) of the geometries."""
        vector = dg.FramePoseVector()
        for frame, (R, p) in zip(self.frames, poses, strict=True):
            X = np.eye(4)
            X[:3, :3], X[:3, 3] = R, p
            vector.set_value(frame, RigidTransform(X))
        self.poses.FixValue(self.context, vector)
        kind = {
            "polygon": dg.HydroelasticContactRepresentation.kPolygon,
            "triangle": dg.HydroelasticContactRepresentation.kTriangle,
        }[representation]
        surfaces = self.query_port.Eval(self.context).ComputeContactSurfaces(kind)
        return DrakeSurface(surfaces[0] if surfaces else None, self.geometries[0])


class DrakeSurface:
    """Numbers of the faces of a contact surface, M being the first geometry."""

    def __init__(self, surface: dg.ContactSurface | None, first: dg.GeometryId):
        self.area = self.pressure = np.zeros(0)
        self.centroid = self.normal = self.grad_M = self.grad_N = np.zeros((0, 3))
        if surface is not None:
            count = range(surface.num_faces())
            self.area = np.array([surface.area(f) for f in count])
            self.centroid = np.array([surface.centroid(f) for f in count])
            self.normal = np.array([surface.face_normal(f) for f in count])
            field = surface.tri_e_MN() if surface.is_triangle() else surface.poly_e_MN()
            self.pressure = np.array([field.EvaluateCartesian(f, surface.centroid(f)) for f in count])
            gradients = [
                np.array([(g(f) if has else np.full(3, np.inf)) for f in count])
                for has, g in (
                    (surface.HasGradE_M(), surface.EvaluateGradE_M_W),
                    (surface.HasGradE_N(), surface.EvaluateGradE_N_W),
                )
            ]
            in_order = surface.id_M() == first
            self.normal *= 1.0 if in_order else -1.0
            self.grad_M, self.grad_N = gradients if in_order else gradients[::-1]


def properties(geometry: dict) -> dg.ProximityProperties:
    """Drake's hydroelastic properties."""
    result = dg.ProximityProperties()
    hint = geometry.get("resolution_hint") or 1.0
    if geometry["compliance"] == "rigid":
        dg.AddRigidHydroelasticProperties(hint, result)
    elif isinstance(geometry["shape"], HalfSpace):
        dg.AddCompliantHydroelasticPropertiesForHalfSpace(geometry["slab_thickness"], geometry["modulus"], result)
    else:
        dg.AddCompliantHydroelasticProperties(hint, geometry["modulus"], result)
    if geometry.get("margin"):
        result.AddProperty("hydroelastic", "margin", geometry["margin"])
    return result
