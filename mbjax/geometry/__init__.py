"""What can be seen and, later, touched."""

from .shapes import Box as Box
from .shapes import Capsule as Capsule
from .shapes import Cylinder as Cylinder
from .shapes import Ellipsoid as Ellipsoid
from .shapes import Geometry as Geometry
from .shapes import HalfSpace as HalfSpace
from .shapes import Mesh as Mesh
from .shapes import Shape as Shape
from .shapes import Sphere as Sphere
