"""Drake's answers about pairs of shapes, in the frame of A."""

import numpy as np
import pydrake.geometry as dg
from pydrake.math import RigidTransform

SHAPES = {
    "Sphere": lambda size: dg.Sphere(*size),
    "Box": lambda size: dg.Box(*size),
    "Capsule": lambda size: dg.Capsule(*size),
    "Cylinder": lambda size: dg.Cylinder(*size),
    "Ellipsoid": lambda size: dg.Ellipsoid(*size),
    "HalfSpace": lambda size: dg.HalfSpace(),
}


class DrakePair:
    """One pair of geometries whose relative pose is set again and again."""

    def __init__(self, kind_A: str, size_A: np.ndarray, kind_B: str, size_B: np.ndarray):
        self.scene_graph = dg.SceneGraph()
        self.source = self.scene_graph.RegisterSource("pair")
        self.frames, self.geometries = [], []
        for name, kind, size in (("A", kind_A, size_A), ("B", kind_B, size_B)):
            frame = self.scene_graph.RegisterFrame(self.source, dg.GeometryFrame(name))
            instance = dg.GeometryInstance(RigidTransform(), SHAPES[kind](size), name)
            geometry = self.scene_graph.RegisterGeometry(self.source, frame, instance)
            self.scene_graph.AssignRole(self.source, geometry, dg.ProximityProperties())
            self.frames.append(frame)
            self.geometries.append(geometry)
        self.context = self.scene_graph.CreateDefaultContext()
        self.poses = self.scene_graph.get_source_pose_port(self.source)
        self.query_port = self.scene_graph.get_query_output_port()

    def query(self, R_AB: np.ndarray, p_AB: np.ndarray) -> dg.QueryObject:
        X_AB = np.eye(4)
        X_AB[:3, :3], X_AB[:3, 3] = R_AB, p_AB
        poses = dg.FramePoseVector()
        poses.set_value(self.frames[0], RigidTransform())
        poses.set_value(self.frames[1], RigidTransform(X_AB))
        self.poses.FixValue(self.context, poses)
        return self.query_port.Eval(self.context)

    def signed_distance(self, R_AB: np.ndarray, p_AB: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Distance, nhat_BA and Ca, apart or overlapping."""
        answer = self.query(R_AB, p_AB).ComputeSignedDistancePairClosestPoints(*self.geometries)
        in_order = answer.id_A == self.geometries[0]
        if in_order:
            return answer.distance, answer.nhat_BA_W, answer.p_ACa
        p_ACa = np.asarray(R_AB) @ answer.p_BCb + p_AB if not in_order else answer.p_ACa
        return answer.distance, -answer.nhat_BA_W, p_ACa

    def penetration(
        self, R_AB: np.ndarray, p_AB: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray, np.ndarray] | None:
        """-depth, nhat_BA, Ca and Cb in A; None where they are apart."""
        answers = self.query(R_AB, p_AB).ComputePointPairPenetration()
        if not answers:
            return None
        (answer,) = answers
        if answer.id_A == self.geometries[0]:
            return -answer.depth, answer.nhat_BA_W, answer.p_WCa, answer.p_WCb
        return -answer.depth, -answer.nhat_BA_W, answer.p_WCb, answer.p_WCa
