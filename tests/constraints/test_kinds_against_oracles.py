"""Rows of constraints against Drake's and Pinocchio's kinematics, and against the same rows written by a user."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest
from pydrake.multibody.tree import JacobianWrtVariable

import mbjax
from mbjax.spatial import quaternion_to_matrix
from tests.gradients.checks import compiled
from tests.models import ROBOTS, load_robot, random_tree, relative_error

from .mechanisms import ZOO_KINDS, body_poses, compiled_terms, place, zoo


@functools.cache
def drake_context():
    twin = random_tree(7, ZOO_KINDS)
    return twin, twin.context(zoo().q, zoo().v)


def drake_motion(A: int, B: int, p_BS: np.ndarray):
    """J, velocity and bias acceleration of S measured in A, expressed in A: (6, nv), (6,), (6,), in our order of v."""
    twin, context = drake_context()
    frame_A, frame_B = (
        twin.plant.GetFrameByName(zoo().model.body_names[i]) if i else twin.plant.world_frame() for i in (A, B)
    )
    kV = JacobianWrtVariable.kV
    J = twin.plant.CalcJacobianSpatialVelocity(context, kV, frame_B, p_BS, frame_A, frame_A)
    bias = twin.plant.CalcBiasSpatialAcceleration(context, kV, frame_B, p_BS, frame_A, frame_A)
    ours = np.empty_like(J)
    ours[:, twin.to_drake_v] = J
    return ours, J @ np.asarray(zoo().v)[twin.to_drake_v], np.concatenate([bias.rotational(), bias.translational()])


def drake_rows(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Error, G and gamma of a constraint, from Drake's relative poses and motions."""
    model, c = zoo().model, zoo().cset.constraint(name)
    X_WB = body_poses(model, zoo().q)
    A, B = {
        mbjax.ContactConstraint: lambda: (0, c.body),
        mbjax.LoopConstraint: lambda: (c.predecessor, c.successor),
    }.get(type(c), lambda: (c.body_A, c.body_B))()
    p_AP = np.asarray(getattr(c, "p_AP", np.zeros(3)))
    p_BS = np.asarray(c.p_BP if isinstance(c, mbjax.ContactConstraint) else c.p_BS if hasattr(c, "p_BS") else c.p_BQ)
    J, V, bias = drake_motion(A, B, p_BS)
    X_AB = np.linalg.inv(X_WB[A]) @ X_WB[B]
    p_PS_A = X_AB[:3, :3] @ p_BS + X_AB[:3, 3] - p_AP
    if isinstance(c, mbjax.DistanceConstraint):
        length = np.linalg.norm(p_PS_A)
        u = p_PS_A / length
        curve = (V[3:] @ V[3:] - (u @ V[3:]) ** 2) / length
        return np.array([length - c.distance]), (u @ J[3:])[None], -np.array([u @ bias[3:] + curve])
    if isinstance(c, mbjax.ContactConstraint):
        n = np.asarray(c.normals) / np.linalg.norm(c.normals, axis=1, keepdims=True)
        return np.zeros(len(n)), n @ J[3:], -n @ bias[3:]
    R_AP = np.eye(3) if isinstance(c, mbjax.BallConstraint) else np.asarray(quaternion_to_matrix(c.quaternion_AP))
    axes = np.eye(6)[3:] if isinstance(c, mbjax.BallConstraint) else np.asarray(c.axes)
    a = axes[:, 3:] @ R_AP.T
    error, G, gamma = a @ p_PS_A, a @ J[3:], -a @ bias[3:]
    if getattr(c, "is_hinge", False):
        r = axes[:, :3] @ R_AP.T
        f_A = np.cross(r[0], r[1]) / np.linalg.norm(np.cross(r[0], r[1]))
        d_A = X_AB[:3, :3] @ np.asarray(quaternion_to_matrix(c.quaternion_BS)) @ R_AP.T @ f_A
        w, alpha = V[:3], bias[:3]
        error = error + r @ np.cross(f_A, d_A)
        G = G + r @ np.cross(f_A, np.cross(J[:3].T, d_A)).T
        gamma = gamma - r @ np.cross(f_A, np.cross(alpha, d_A) + np.cross(w, np.cross(w, d_A)))
    return error, G, gamma


@pytest.mark.parametrize(
    "name",
    ["free", "hinge", "hinge on world", "world on successor", "contact", "point contact", "distance", "ball"],
)
def test_against_drake(name: str) -> None:
    terms, rows = compiled_terms(*vars(zoo()).values()), zoo().cset.rows_of(name)
    for got, expected in zip((terms.error, terms.G, terms.gamma), drake_rows(name), strict=True):
        assert relative_error(got[rows], expected) < 1e-12


def user_loop(model, q):
    """The constraint "free" in terms of public functions."""
    loop = zoo().cset.constraint("free")
    R_AP, R_AB = quaternion_to_matrix(loop.quaternion_AP), mbjax.relative_transform(model, q, *frames(model))
    p_PS_P = R_AP.T @ (R_AB @ loop.p_BS - loop.p_AP)
    return p_PS_P[jnp.array([0, 2])]


def frames(model) -> tuple[int, int]:
    loop = zoo().cset.constraint("free")
    return model.body_frame_index(loop.predecessor), model.body_frame_index(loop.successor)


def test_against_the_same_rows_written_by_a_user() -> None:
    model, _, q, v = vars(zoo()).values()
    cset = mbjax.ConstraintSet().add_custom_constraint(user_loop, 2).bind(model)
    several = compiled(jax.vmap(mbjax.constraint_terms, (None, None, 0, 0)))(
        model, cset, jnp.stack([q, q + 0.1]), jnp.stack([v, v])
    )
    built_in, rows = compiled_terms(*vars(zoo()).values()), zoo().cset.rows_of("free")
    for x, y in zip(several, built_in, strict=True):
        assert relative_error(x[0], y[rows]) < 1e-12


PANDA = "panda_description/urdf/panda.urdf"


@pytest.mark.parametrize("kind", [pin.ContactType.CONTACT_6D, pin.ContactType.CONTACT_3D])
def test_against_pinocchio_at_zero_error(kind) -> None:
    """The rows span what Pinocchio's span; its 3D rows are along other axes."""
    model = load_robot(PANDA, "fixed")
    theirs = pin.buildModelFromUrdf(str(ROBOTS / PANDA))
    data = theirs.createData()
    q = np.array(mbjax.random_state_within_limits(model, jax.random.key(0)).q)
    to_pin = [model.joint(name).v_start for name in list(theirs.names)[1:]]
    X_WB, X_AP = body_poses(model, q), place([0.3, -0.5, 0.2], [0.1, 0.02, -0.3])
    A, B = "panda_link2", "panda_leftfinger"
    X_BS = np.linalg.inv(X_WB[model.body_index(B)]) @ X_WB[model.body_index(A)] @ X_AP
    placed = []
    for body, X in ((A, X_AP), (B, X_BS)):
        frame = theirs.frames[theirs.getFrameId(body)]
        placed += [frame.parentJoint, frame.placement * pin.SE3(X)]
    constraint = pin.RigidConstraintModel(kind, theirs, *placed, pin.ReferenceFrame.LOCAL)
    pin.computeJointJacobians(theirs, data, q[to_pin])
    pin.forwardKinematics(theirs, data, q[to_pin])
    constraint_data = constraint.createData()
    constraint.calc(theirs, data, constraint_data)
    J = pin.getConstraintJacobian(theirs, data, constraint, constraint_data)
    expected = np.empty_like(J)
    expected[:, to_pin] = J
    axes = np.eye(6) if kind == pin.ContactType.CONTACT_6D else np.eye(6)[3:]
    cset = mbjax.ConstraintSet().add_loop_constraint(A, B, X_AP, X_BS, axes).bind(model)
    terms = compiled_terms(model, cset, jnp.asarray(q), jnp.zeros(model.num_velocities))
    assert np.abs(terms.error).max() < 1e-14
    project = [np.linalg.pinv(G) @ G for G in (np.asarray(terms.G), expected)]
    assert relative_error(*project) < 1e-10


@pytest.mark.whole_run("gamma beside Drake's, and steps of welded bodies as Drake's")
def test_gamma_against_pinocchio_at_zero_error() -> None:
    """Of a weld between two moving links, from Pinocchio's classical accelerations of P and S without vdot.

    At p_PS = 0 and R_PS = 1 the errors' second derivatives are α_S - α_P - w_P x (w_S - w_P) and
    a_S - a_P - 2 w_P x (v_S - v_P), expressed in P.
    """
    model = load_robot(PANDA, "fixed")
    theirs = pin.buildModelFromUrdf(str(ROBOTS / PANDA))
    q = np.array(mbjax.random_state_within_limits(model, jax.random.key(1)).q)
    v = np.random.default_rng(2).normal(size=model.num_velocities)
    X_WB, X_AP = body_poses(model, q), place([0.3, -0.5, 0.2], [0.1, 0.02, -0.3])
    A, B = "panda_link2", "panda_leftfinger"
    X_BS = np.linalg.inv(X_WB[model.body_index(B)]) @ X_WB[model.body_index(A)] @ X_AP
    frames = []
    for body, X in ((A, X_AP), (B, X_BS)):
        link = theirs.frames[theirs.getFrameId(body)]
        placement = link.placement * pin.SE3(X)
        frames.append(theirs.addFrame(pin.Frame(f"on {body}", link.parentJoint, placement, pin.FrameType.OP_FRAME)))
    data, to_pin = theirs.createData(), [model.joint(name).v_start for name in list(theirs.names)[1:]]
    pin.forwardKinematics(theirs, data, q[to_pin], v[to_pin], np.zeros(theirs.nv))
    along_P = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    V_P, V_S = (pin.getFrameVelocity(theirs, data, frame, along_P) for frame in frames)
    A_P, A_S = (pin.getFrameClassicalAcceleration(theirs, data, frame, along_P) for frame in frames)
    w_P = V_P.angular
    rotational = A_S.angular - A_P.angular - np.cross(w_P, V_S.angular - w_P)
    translational = A_S.linear - A_P.linear - 2.0 * np.cross(w_P, V_S.linear - V_P.linear)
    R_WP = X_WB[model.body_index(A)][:3, :3] @ X_AP[:3, :3]
    cset = mbjax.ConstraintSet().add_weld_constraint(A, X_AP, B, X_BS).bind(model)
    terms = compiled_terms(model, cset, jnp.asarray(q), jnp.asarray(v))
    expected = -np.concatenate([rotational @ R_WP, translational @ R_WP])
    assert np.abs(terms.error).max() < 1e-13
    assert relative_error(terms.gamma, expected) < 1e-12
    assert np.abs(expected).max() > 0.1
