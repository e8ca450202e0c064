"""The quantities of a model at one state, by mbjax, by Drake and by Pinocchio, in mbjax's coordinates and units.

All as dictionaries of arrays with the same keys, so that a test is one comparison.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from pydrake.multibody.plant import MultibodyPlant as DrakePlant
from pydrake.multibody.tree import BodyIndex, JacobianWrtVariable, MultibodyForces

import mbjax
from tests.models import Twin

WRT = {"v": JacobianWrtVariable.kV, "qdot": JacobianWrtVariable.kQDot}
POINT_B = np.array([0.13, -0.21, 0.34])  # of frame B
POINTS_B = np.array([[0.13, -0.21, 0.34], [-0.4, 0.25, 0.11]])
POINT_P = np.array([0.3, 0.5, -0.7])  # of the world, for the momentum; moved with the base


@dataclasses.dataclass(frozen=True)
class FrameChoice:
    """Bodies whose frames B, A (moving) and E the Jacobians are taken of."""

    B: int
    A: int
    E: int


def choose_frames(model: mbjax.MultibodyModel) -> FrameChoice:
    """The last body of the longest path, one near the middle and one near the world."""
    mobods = model.topology.body_mobods
    depth = [int(model.topology.is_ancestor[m].sum()) for m in mobods]
    order = sorted(range(1, model.num_bodies), key=lambda b: depth[b])
    return FrameChoice(order[-1], order[len(order) // 2], order[0])


@dataclasses.dataclass(frozen=True)
class Sample:
    """One state with accelerations and torques to ask about."""

    q: np.ndarray
    v: np.ndarray
    vdot: np.ndarray
    tau: np.ndarray
    p_WP: np.ndarray

    def rounded(self, dtype: Any) -> "Sample":
        """The numbers `dtype` can hold, in double precision."""
        return Sample(*(np.asarray(x).astype(dtype).astype(float) for x in dataclasses.astuple(self)))


def make_sample(model: mbjax.MultibodyModel, seed: int, p_WBase: np.ndarray | None = None) -> Sample:
    """A random state; floating bases are moved by `p_WBase`, and P with them."""
    state = mbjax.random_state(model, jax.random.key(seed))
    rng = np.random.default_rng(seed)
    q = np.array(state.q)
    p_WP = POINT_P.copy()
    if p_WBase is not None:
        p_WP = p_WP + p_WBase
        for kind, start, n in zip(
            model.topology.mobod_kinds,
            model.topology.mobod_q_starts,
            model.topology.mobod_num_positions,
            strict=True,
        ):
            if kind.endswith("floating"):
                q[start + n - 3 : start + n] += p_WBase
    nv = model.num_velocities
    return Sample(q, np.array(state.v), rng.normal(size=nv), 5.0 * rng.normal(size=nv), p_WP)


def _ours(model, frames, jacobians, q, v, vdot, tau, p_WP):
    names = model.layout.body_frames
    B, A, E = names[frames.B], names[frames.A], names[frames.E]
    p, points = jnp.asarray(POINT_B, model.dtype), jnp.asarray(POINTS_B, model.dtype)
    X_WB = mbjax.body_poses_in_world(model, q)
    X_AB = mbjax.relative_transform(model, q, A, B)
    forces = mbjax.force_elements_contribution(model, q, v)
    qdot = mbjax.velocity_to_qdot(model, q, v)
    result = {
        "R_WB": X_WB.rotation,
        "p_WB": X_WB.translation,
        "V_WB": mbjax.body_spatial_velocities_in_world(model, q, v),
        "A_WB": mbjax.spatial_accelerations_from_vdot(model, q, v, vdot),
        "R_AB": X_AB.rotation,
        "p_AB": X_AB.translation,
        "R_AB alone": mbjax.relative_rotation_matrix(model, q, A, B),
        "p_AQi": mbjax.points_positions(model, q, B, points, A),
        "spatial bias": mbjax.bias_spatial_acceleration(model, q, v, B, p, A, E),
        "translational bias": mbjax.bias_translational_acceleration(model, q, v, B, points, A, E),
        "qdot": qdot,
        "v of qdot": mbjax.qdot_to_velocity(model, q, qdot),
        "N": mbjax.velocity_to_qdot_matrix(model, q),
        "N+": mbjax.qdot_to_velocity_matrix(model, q),
        "M": mbjax.mass_matrix(model, q),
        "M by inverse dynamics": mbjax.mass_matrix_via_inverse_dynamics(model, q),
        "bias": mbjax.bias_term(model, q, v),
        "gravity": mbjax.gravity_generalized_forces(model, q),
        "element forces on joints": forces.generalized,
        "element forces on bodies": forces.body,
        "inverse dynamics": mbjax.inverse_dynamics(model, q, v, vdot, forces),
        "inverse dynamics without forces": mbjax.inverse_dynamics(model, q, v, vdot),
        "forward dynamics": mbjax.forward_dynamics(model, q, v, tau, forces),
        "p_WScm": mbjax.center_of_mass_position_in_world(model, q),
        "v_WScm": mbjax.center_of_mass_translational_velocity_in_world(model, q, v),
        "a_WScm bias": mbjax.bias_center_of_mass_translational_acceleration(model, q, v),
        "momentum": mbjax.spatial_momentum_in_world_about_point(model, q, v, p_WP),
        "kinetic energy": mbjax.kinetic_energy(model, q, v),
        "potential energy": mbjax.potential_energy(model, q),
        "total mass": mbjax.total_mass(model),
    }
    if jacobians:
        result["position Jacobian"] = mbjax.jacobian_position_vector(model, q, B, points, A, E)
    for wrt in WRT if jacobians else ():
        result[f"spatial Jacobian {wrt}"] = mbjax.jacobian_spatial_velocity(model, q, B, p, A, E, wrt)
        result[f"spatial Jacobian in W {wrt}"] = mbjax.jacobian_spatial_velocity(model, q, B, p, "world", "world", wrt)
        result[f"angular Jacobian {wrt}"] = mbjax.jacobian_angular_velocity(model, q, B, A, E, wrt)
        result[f"translational Jacobian {wrt}"] = mbjax.jacobian_translational_velocity(model, q, B, points, A, E, wrt)
        result[f"Scm Jacobian {wrt}"] = mbjax.jacobian_center_of_mass_translational_velocity(model, q, None, wrt)
    return result


_compiled = jax.jit(_ours, static_argnums=(1, 2))


def mbjax_quantities(model: mbjax.MultibodyModel, sample: Sample, jacobians: bool = True) -> dict[str, np.ndarray]:
    """One compilation per model and dtype; without `jacobians` if so asked."""
    arguments = (jnp.asarray(x, model.dtype) for x in dataclasses.astuple(sample))
    return {k: np.asarray(x) for k, x in _compiled(model, choose_frames(model), jacobians, *arguments).items()}


def friction_forces(model: mbjax.MultibodyModel, v: np.ndarray) -> np.ndarray:
    """Coulomb friction, which mbjax takes from the file and the others do not."""
    limit, speed = np.asarray(model.parameters.joint_friction), float(model.parameters.friction_velocity)
    return -limit * v / np.sqrt(v**2 + speed**2)


def drake_quantities(twin: Twin, sample: Sample) -> dict[str, np.ndarray]:
    """By Drake, at our coordinates."""
    plant, model, frames = twin.plant, twin.model, choose_frames(twin.model)
    context = twin.context(sample.q, sample.v)
    context.SetTime(0.0)
    W = plant.world_frame()
    bodies = drake_bodies(model, plant)
    B, A, E = (bodies[i].body_frame() for i in (frames.B, frames.A, frames.E))
    q_of, v_of = np.argsort(twin.to_drake_q), np.argsort(twin.to_drake_v)
    columns = {"v": v_of, "qdot": q_of}
    vdot, tau = sample.vdot[twin.to_drake_v], sample.tau[twin.to_drake_v]
    friction = friction_forces(model, sample.v)
    X_AB = plant.CalcRelativeTransform(context, A, B)
    poses = [plant.EvalBodyPoseInWorld(context, body) for body in bodies]
    velocities = [plant.EvalBodySpatialVelocityInWorld(context, body) for body in bodies]
    accelerations = plant.CalcSpatialAccelerationsFromVdot(context, vdot)
    forces = MultibodyForces(plant)
    plant.CalcForceElementsContribution(context, forces)
    empty = MultibodyForces(plant)
    bias = plant.CalcBiasSpatialAcceleration(context, WRT["v"], B, POINT_B, A, E)
    momentum = plant.CalcSpatialMomentumInWorldAboutPoint(context, sample.p_WP)
    M = plant.CalcMassMatrix(context)
    qdot = plant.MapVelocityToQDot(context, plant.GetVelocities(context))
    v_of_qdot = plant.MapQDotToVelocity(context, qdot)
    result = {
        "R_WB": [X.rotation().matrix() for X in poses],
        "p_WB": [X.translation() for X in poses],
        "V_WB": [V.get_coeffs() for V in velocities],
        "A_WB": [accelerations[int(body.index())].get_coeffs() for body in bodies],
        "R_AB": X_AB.rotation().matrix(),
        "p_AB": X_AB.translation(),
        "R_AB alone": plant.CalcRelativeRotationMatrix(context, A, B).matrix(),
        "p_AQi": plant.CalcPointsPositions(context, B, POINTS_B.T, A).T,
        "spatial bias": bias.get_coeffs(),
        "translational bias": plant.CalcBiasTranslationalAcceleration(context, WRT["v"], B, POINTS_B.T, A, E).T,
        "position Jacobian": plant.CalcJacobianPositionVector(context, B, POINTS_B.T, A, E).reshape(2, 3, -1)[
            ..., q_of
        ],
        "qdot": qdot[q_of],
        "v of qdot": v_of_qdot[v_of],
        "N": plant.MakeVelocityToQDotMap(context).toarray()[np.ix_(q_of, v_of)],
        "N+": plant.MakeQDotToVelocityMap(context).toarray()[np.ix_(v_of, q_of)],
        "M": M[np.ix_(v_of, v_of)],
        "M by inverse dynamics": plant.CalcMassMatrixViaInverseDynamics(context)[np.ix_(v_of, v_of)],
        "bias": plant.CalcBiasTerm(context)[v_of],
        "gravity": plant.CalcGravityGeneralizedForces(context)[v_of],
        "element forces on joints": forces.generalized_forces()[v_of] + friction,
        "element forces on bodies": [body.GetForceInWorld(context, forces).get_coeffs() for body in bodies],
        "inverse dynamics": plant.CalcInverseDynamics(context, vdot, forces)[v_of] - friction,
        "inverse dynamics without forces": plant.CalcInverseDynamics(context, vdot, empty)[v_of],
        "p_WScm": plant.CalcCenterOfMassPositionInWorld(context),
        "v_WScm": plant.CalcCenterOfMassTranslationalVelocityInWorld(context),
        "a_WScm bias": plant.CalcBiasCenterOfMassTranslationalAcceleration(context, WRT["v"], W, W),
        "momentum": momentum.get_coeffs(),
        "kinetic energy": plant.CalcKineticEnergy(context),
        "potential energy": plant.CalcPotentialEnergy(context),
        "total mass": plant.CalcTotalMass(context),
    }
    for wrt, order in columns.items():
        kind = WRT[wrt]
        J = plant.CalcJacobianSpatialVelocity(context, kind, B, POINT_B, A, E)
        result[f"spatial Jacobian {wrt}"] = J[:, order]
        J = plant.CalcJacobianSpatialVelocity(context, kind, B, POINT_B, W, W)
        result[f"spatial Jacobian in W {wrt}"] = J[:, order]
        result[f"angular Jacobian {wrt}"] = plant.CalcJacobianAngularVelocity(context, kind, B, A, E)[:, order]
        J = plant.CalcJacobianTranslationalVelocity(context, kind, B, POINTS_B.T, A, E)
        result[f"translational Jacobian {wrt}"] = J.reshape(2, 3, -1)[..., order]
        J = plant.CalcJacobianCenterOfMassTranslationalVelocity(context, kind, W, W)
        result[f"Scm Jacobian {wrt}"] = J[:, order]
    plant.get_applied_generalized_force_input_port().FixValue(context, tau + friction[twin.to_drake_v])
    derivatives = plant.EvalTimeDerivatives(context).CopyToVector()
    result["forward dynamics"] = derivatives[plant.num_positions() : plant.num_multibody_states()][v_of]
    return {k: np.asarray(x) for k, x in result.items()}


def drake_bodies(model: mbjax.MultibodyModel, plant: DrakePlant) -> list[Any]:
    """Drake's bodies in our order."""
    found = {plant.get_body(BodyIndex(i)).name(): plant.get_body(BodyIndex(i)) for i in range(plant.num_bodies())}
    return [found[name] for name in ("world", *model.body_names[1:])]


class PinocchioRobot:
    """A Pinocchio model with the map from our coordinates to its own.

    Its free-flyer has q = (x y z, qx qy qz qw) and v = (v_WBo_B, w_WB_B): v_pin = T(q) v, and
    vdot_pin = T vdot + Tdot v with d(R_BW v)/dt = R_BW vdot - w_B x (R_BW v).
    """

    def __init__(self, urdf: str, model: mbjax.MultibodyModel, floating: bool):
        import pinocchio as pin

        self.pin, self.ours = pin, model
        self.model = (
            pin.buildModelFromUrdf(urdf, pin.JointModelFreeFlyer()) if floating else pin.buildModelFromUrdf(urdf)
        )
        assert self.model.nv == model.num_velocities
        self.frames = [0] + [self.model.getFrameId(n, pin.FrameType.BODY) for n in model.body_names[1:]]
        assert max(self.frames) < self.model.nframes

    def convert(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q and T of Pinocchio, and Tdot v."""
        pin, model = self.pin, self.model
        q_pin, T, Tdot_v = pin.neutral(model), np.zeros((model.nv, model.nv)), np.zeros(model.nv)
        for j, name in enumerate(model.names):
            joint = model.joints[j]
            if j == 0:
                continue
            row, column = joint.idx_q, joint.idx_v
            if joint.nv == 6:
                info = next(i for i in self.ours.layout.joints if i.kind == "quaternion_floating")
                w, x, y, z = q[info.q][:4] / np.linalg.norm(q[info.q][:4])
                q_pin[row : row + 7] = [*q[info.q][4:], x, y, z, w]
                R_BW = pin.Quaternion(w, x, y, z).toRotationMatrix().T
                T[column : column + 3, info.v_start + 3 : info.v_start + 6] = R_BW
                T[column + 3 : column + 6, info.v_start : info.v_start + 3] = R_BW
                w_B, v_B = R_BW @ v[info.v][:3], R_BW @ v[info.v][3:]
                Tdot_v[column : column + 3] = -np.cross(w_B, v_B)
                continue
            info = self.ours.joint(name)
            angle = q[info.q_start]
            q_pin[row : row + joint.nq] = [np.cos(angle), np.sin(angle)] if joint.nq == 2 else [angle]
            T[column, info.v_start] = 1.0
        return q_pin, T, Tdot_v

    def quantities(self, sample: Sample) -> dict[str, np.ndarray]:
        """What Pinocchio offers; relative Jacobians are put together from those of frames."""
        pin, model, ours = self.pin, self.model, self.ours
        data = model.createData()
        q, T, Tdot_v = self.convert(sample.q, sample.v)
        v = T @ sample.v
        aligned = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        turned = np.r_[3:6, 0:3]  # ours is rotation first

        def accelerations(vdot: np.ndarray) -> np.ndarray:
            pin.forwardKinematics(model, data, q, v, T @ vdot + Tdot_v)
            found = [pin.getFrameClassicalAcceleration(model, data, f, aligned).vector[turned] for f in self.frames]
            return np.stack(found)

        A_WB = accelerations(sample.vdot)
        pin.updateFramePlacements(model, data)
        placements = [data.oMf[f] for f in self.frames]
        R_WB, p_WB = np.stack([X.rotation for X in placements]), np.stack([X.translation for X in placements])
        V_WB = np.stack([pin.getFrameVelocity(model, data, f, aligned).vector[turned] for f in self.frames])
        A_bias = accelerations(np.zeros(model.nv))
        M = pin.crba(model, data, q)
        M = np.triu(M) + np.triu(M, 1).T
        total, fixed = pin.computeTotalMass(model), model.inertias[0]  # Pinocchio leaves out what the world carries
        share = total / (total + fixed.mass)
        loss = np.asarray(ours.parameters.joint_damping) * sample.v - friction_forces(ours, sample.v)
        pin_loss = np.linalg.solve(T.T, loss)
        vdot_pin = pin.aba(model, data, q, v, np.linalg.solve(T.T, sample.tau) - pin_loss)
        gravity = pin.computeGeneralizedGravity(model, data, q)
        result = {
            "R_WB": R_WB,
            "p_WB": p_WB,
            "V_WB": V_WB,
            "A_WB": A_WB,
            "M": T.T @ M @ T,
            "M by inverse dynamics": T.T @ M @ T,
            "bias": T.T @ (pin.rnea(model, data, q, v, Tdot_v) - gravity),
            "gravity": -T.T @ gravity,
            "inverse dynamics": T.T @ pin.rnea(model, data, q, v, T @ sample.vdot + Tdot_v) + loss,
            "forward dynamics": np.linalg.solve(T, vdot_pin - Tdot_v),
            "p_WScm": share * pin.centerOfMass(model, data, q, v, Tdot_v) + (1.0 - share) * fixed.lever,
            "v_WScm": share * data.vcom[0],
            "a_WScm bias": share * data.acom[0],
            "Scm Jacobian v": share * pin.jacobianCenterOfMass(model, data, q) @ T,
            "kinetic energy": pin.computeKineticEnergy(model, data, q, v),
            "potential energy": pin.computePotentialEnergy(model, data, q)
            - fixed.mass * model.gravity.linear @ fixed.lever,
            "total mass": total + fixed.mass,
        }
        h = pin.computeCentroidalMomentum(model, data, q, v)
        lever = np.cross(data.com[0] - sample.p_WP, h.linear)
        result["momentum"] = np.concatenate([h.angular + lever, h.linear])
        choice = choose_frames(ours)
        B, A, E = choice.B, choice.A, choice.E
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)

        def jacobian(body: int, p_W: np.ndarray) -> np.ndarray:
            J = pin.getFrameJacobian(model, data, self.frames[body], aligned)[turned] @ T
            J[3:] += np.cross(J[:3].T, p_W).T
            return J

        p_BoBp_W = R_WB[B] @ POINT_B
        p_AoBp_W = p_WB[B] + p_BoBp_W - p_WB[A]
        J_B, J_A = jacobian(B, p_BoBp_W), jacobian(A, p_AoBp_W)
        result["spatial Jacobian in W v"] = J_B
        to_E = np.kron(np.eye(2), R_WB[E].T)
        result["spatial Jacobian v"] = to_E @ (J_B - J_A)
        result["angular Jacobian v"] = result["spatial Jacobian v"][:3]

        def moved(A_Bo: np.ndarray, w: np.ndarray, p: np.ndarray) -> np.ndarray:
            return np.concatenate([A_Bo[:3], A_Bo[3:] + np.cross(A_Bo[:3], p) + np.cross(w, np.cross(w, p))])

        w_A, V_AB = V_WB[A][:3], (J_B - J_A) @ sample.v
        bias = moved(A_bias[B], V_WB[B][:3], p_BoBp_W) - moved(A_bias[A], w_A, p_AoBp_W)
        bias -= np.concatenate([np.cross(w_A, V_AB[:3]), 2.0 * np.cross(w_A, V_AB[3:])])
        result["spatial bias"] = to_E @ bias
        return {k: np.asarray(x) for k, x in result.items()}


def relative_errors(got: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> dict[str, float]:
    """Largest difference over the largest expected number, per quantity.

    Rotations and translations of spatial vectors share one scale.
    """
    errors = {}
    for name, reference in expected.items():
        assert got[name].shape == reference.shape, (name, got[name].shape, reference.shape)
        scale = np.abs(reference).max(initial=0.0)
        difference = np.abs(got[name] - reference).max(initial=0.0)
        errors[name] = float(difference / max(scale, 1e-6))
    return errors
