"""The derivatives of Newton–Euler, all columns at once (Singh, Russell and Wensing 2022, eqs. 36 to 43).

With the composite terms of velocity k where it is outboard of j's joint, of j where not:

    dtau_k / dq_j = S_k · (I E_j + 𝓑 B_j + Z b_j)                     k outboard
    dtau_k / dq_j = S_k · (I E_j + 𝓑 B_j + Z b_j + S_j x* F_j)        k inboard or in the same joint, there also
                    + dS_k/dq_j · F_j
    dtau_k / dv_j = S_k · (I (B_j + dS_j/dt) + 𝓑 S_j)

where 𝓑 and Z are what `composite_terms` says and b_j is the rotation of S_j. All of it is of directions; those that one
velocity drives are summed in the end.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.kinematics import PositionKinematics, VelocityKinematics
from mbjax.linear_algebra import products_of_columns
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology, sum_directions

from .composite_terms import CompositeTerms
from .motion_derivatives import MotionDerivatives, calc_forces_within_joints
from .spatial_cross import force_cross


class TorqueColumns(NamedTuple):
    """Derivatives of S · F by q (its tangent) and v."""

    dq: Float[Array, "nv nv"]
    dv: Float[Array, "nv nv"]


def calc_torque_columns(
    topology: TreeTopology,
    position: PositionKinematics,
    velocity: VelocityKinematics,
    motion: MotionDerivatives,
    terms: CompositeTerms,
) -> TorqueColumns:
    """The equations of the module."""
    S, nd = position.S_T, topology.num_directions
    by_v = motion.B + velocity.Sdot_T
    G_q = terms.inertia_times(motion.E) + terms.change_by(motion.B) + force_cross(S, terms.F)
    G_v = terms.inertia_times(by_v) + terms.change_by(S)
    left = [terms.inertia_times(S), terms.change_by_transposed(S)]
    right_q, right_v = [motion.E, motion.B[:3]], [by_v, S[:3]]
    if terms.Z is not None:
        G_q = G_q + terms.change_of_wrenches(S)
        left.append(terms.change_of_wrenches_transposed(S))
        right_q.append(S[:3])
        right_v.append(jnp.zeros_like(S[:3]))
    upper = products_of_columns(S, ca.concatenate([G_q, G_v], 1))
    right = ca.concatenate([ca.concatenate(right_q, 0), ca.concatenate(right_v, 0)], 1)
    lower = products_of_columns(ca.concatenate(left, 0), right)
    both = by_place(topology, upper, lower, 2)
    dq, dv = both[:, :nd], both[:, nd:]
    if max(topology.mobod_num_velocities) > 1:
        dq = dq + calc_forces_within_joints(topology, position, motion, terms.F)
    dq, dv = (sum_directions(topology, sum_directions(topology, x, 0), 1) for x in (dq, dv))
    return TorqueColumns(dq, dv)


def by_place(
    topology: TreeTopology, upper: Float[Array, "nd n"], lower: Float[Array, "nd n"], times: int = 1
) -> Float[Array, "nd n"]:
    """Entry kj of `upper` where k is inboard of j or in its joint, of `lower` where outboard, zero in other branches.

    For matrices of `times` nd columns.
    """
    inboard = topology.moves[:, topology.velocity_mobods]
    outboard = inboard.T & ~inboard
    inboard, outboard = (
        np.tile(x, (1, times)).reshape(*upper.shape[:2], *(1 for _ in upper.shape[2:])) for x in (inboard, outboard)
    )
    return jnp.where(inboard, upper, jnp.where(outboard, lower, 0.0))
