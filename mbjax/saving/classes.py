"""The classes whose objects a saved model may hold; a file names them, and no other name means anything."""

from mbjax import forces, geometry, model
from mbjax.finite_elements import MeshStructure
from mbjax.geometry.hydroelastic import SurfaceMesh
from mbjax.model.model_layout import ModelLayout
from mbjax.model.random_distributions import CoordinateDistribution
from mbjax.topology import TreeTopology

STRUCTURE = (
    model.MultibodyModel,
    TreeTopology,
    ModelLayout,
    model.BodyInfo,
    model.FrameInfo,
    model.JointInfo,
    model.ActuatorInfo,
    model.Control,
    model.ContactLayout,
    model.CollisionGeometryRecord,
    model.HydroelasticRecord,
    model.ReportEntry,
    model.DeformableBodies,
    model.DeformableBodyInfo,
    model.DeformableLayout,
    model.FixedNodes,
    model.NodeContactPair,
    model.BodyContactPair,
    MeshStructure,
)
NUMBERS = (model.MultibodyParameters, model.CollisionParameters, model.GeometryParameters, model.Keyframe)
SHAPES = (
    geometry.Geometry,
    geometry.Sphere,
    geometry.Box,
    geometry.Cylinder,
    geometry.Capsule,
    geometry.Ellipsoid,
    geometry.HalfSpace,
    geometry.Mesh,
    geometry.Convex,
    SurfaceMesh,
)
LAWS = (
    forces.RevoluteSpring,
    forces.PrismaticSpring,
    forces.LinearSpringDamper,
    forces.LinearBushingRollPitchYaw,
    forces.DoorHinge,
    forces.DoorHingeConfig,
    model.BallConstraint,
    model.ContactConstraint,
    model.CouplerConstraint,
    model.DistanceConstraint,
    model.LockConstraint,
    model.LoopConstraint,
    model.WeldConstraint,
)
DISTRIBUTIONS = (
    CoordinateDistribution,
    model.UniformDistribution,
    model.GaussianDistribution,
    model.UniformRotation,
)
KNOWN_CLASSES: dict[str, type] = {cls.__name__: cls for cls in (*STRUCTURE, *NUMBERS, *SHAPES, *LAWS, *DISTRIBUTIONS)}
