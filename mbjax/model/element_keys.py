"""How users name elements and give numbers in constructors: types of arguments, for signatures."""

from collections.abc import Sequence
from typing import Any

from jax.typing import ArrayLike

from mbjax.joints import AbstractJoint
from mbjax.spatial import RigidTransform

from .elements import Body, Frame
from .model_layout import BodyInfo, FrameInfo, JointInfo

BodyKey = Body | BodyInfo | str | int
FrameKey = Frame | FrameInfo | Body | str | int
JointKey = AbstractJoint | JointInfo | str | int
Numbers = ArrayLike | Sequence[Any]
PoseLike = RigidTransform | Numbers | None  # a 4x4 matrix or a translation; None is the identity
