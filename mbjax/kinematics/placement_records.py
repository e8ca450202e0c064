"""Records of what follows from the model alone: poses and inertias in mobods, and rows of recursions."""

import equinox as eqx
from jaxtyping import Array, Float


class BodyPlacement(eqx.Module):
    """Fixed poses in the mobilized body's frame M; bodies and frames in declaration order."""

    R_BF: Float[Array, "3 3 nf"]  # frames in their body
    p_BF: Float[Array, "3 nf"]
    R_MB: Float[Array, "3 3 nb"]  # bodies in their mobod
    p_MB: Float[Array, "3 nb"]
    R_PF: Float[Array, "3 3 nm"]  # inboard frame F of each mobod in the parent mobod P
    p_PF: Float[Array, "3 nm"]
    axis: Float[Array, "3 nm"]  # of the mobod's joint, of length one, in F and M; zero where the kind has none
    pitch: Float[Array, " nm"]


class MobodInertia(eqx.Module):
    """Mass (kg), first moment m p_MoMcm (kg m) and inertia about Mo (kg m²) of each mobod, in one basis."""

    mass: Float[Array, " nm"]
    moment: Float[Array, "3 nm"]
    rotational: Float[Array, "3 3 nm"]


class JointSteps(eqx.Module):
    """The constant part of each step's row, which follows from the model alone."""

    turns: Float[Array, "n 27"]
    point: Float[Array, "n 3"]
    axis: Float[Array, "n 3"]  # in P
    advance: Float[Array, " n"] | None  # along the axis as q grows by one; None where no joint does


class DirectionSteps(eqx.Module):
    """Constant rows of recursions, one for each direction, directions first. Not differentiated.

    For a joint's first direction P is the parent's frame, for those that follow it is F.
    """

    joint: JointSteps
    hinge_map: Float[Array, "nd 6"] | None  # in P; None where one changes with q
    inertia: Float[Array, "nd 10"]  # of the mobod about Mo, in M: moments, m p_MoMcm, m; at a joint's last direction
    weight: Float[Array, "nd 4"] | None  # of what feels gravity: m p_MoMcm, m; None where all bodies do


class ModelPlacement(eqx.Module):
    """Poses of bodies and frames in mobods, inertias of mobods about Mo in M, and rows of steps over the tree."""

    bodies: BodyPlacement
    inertia: MobodInertia
    weight: MobodInertia  # inertia of the bodies that feel gravity
    mobods: JointSteps  # all but the world
    directions: DirectionSteps | None  # None where joints mimic others: recursions are for trees without
