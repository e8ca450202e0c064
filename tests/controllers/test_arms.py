"""Controllers of arms: what each equation promises, seen in the simulated motion."""

import functools

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import controllers
from mbjax.controllers.damping_design import damping_matrix
from mbjax.controllers.task_inertia import calc_task_inertia
from tests.gradients.checks import compiled

GOAL = jnp.array([0.3, -0.5, 0.2, 0.8, 0.1, 0.4, -0.2])
PUSH = jnp.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0])  # 1 N along y
TOOL_STIFFNESS = jnp.array([30.0, 30.0, 30.0, 400.0, 500.0, 600.0])


@functools.cache
def arm() -> mbjax.MultibodyModel:
    return mbjax.load("arm")


@functools.cache
def planar(mimics: bool = False, coupled: bool = False) -> mbjax.MultibodyModel:
    """Two links in a vertical plane, with a gear, a spring's damping and a rotor; the second may drive a third."""
    plant = mbjax.MultibodyPlant()
    parent = "world"
    for i in range(3 if mimics else 2):
        inertia = mbjax.SpatialInertia(1.0 + i, (0.0, 0.0, -0.2), mbjax.UnitInertia(0.06, 0.06, 0.01))
        plant.add_rigid_body(f"link{i}", inertia)
        X_PF = np.eye(4)
        X_PF[2, 3] = -0.4 * (i > 0)
        joint = mbjax.RevoluteJoint(f"joint{i}", parent, f"link{i}", axis=(0.0, 1.0, 0.0), X_PF=X_PF, damping=0.1)
        plant.add_joint(joint)
        parent = f"link{i}"
    plant.add_joint_actuator("motor0", "joint0", rotor_inertia=1e-3, gear_ratio=10.0)
    plant.add_joint_actuator("motor1", "joint2" if mimics else "joint1")
    if mimics:
        plant.add_mimic("joint2", "joint1", 0.5, 0.1)
    if coupled:
        plant.add_coupler_constraint("joint0", "joint1", 0.5, name="link")
    return plant.finalize()


def wave(time):
    """Positions, velocities and accelerations to follow."""
    phase = 2.0 * time + jnp.arange(7.0)
    return GOAL + 0.3 * jnp.sin(phase), 0.6 * jnp.cos(phase), -1.2 * jnp.sin(phase)


def simulated(model, state, law, time):
    exact = diffrax.PIDController(rtol=1e-10, atol=1e-10)
    return compiled(
        lambda model, state: mbjax.simulate(model, state, law, save_at=jnp.asarray(time), stepsize_controller=exact)
    )(model, state)


@pytest.mark.whole_run("computed torque accelerates as asked, also with a joint that mimics, below")
def test_computed_torque_follows_a_trajectory() -> None:
    """On it to 1e-6; beside it the error decays as the critically damped oscillator's does."""
    model = arm()

    def law(state):
        return mbjax.Inputs(actuation=controllers.computed_torque(model, state, *wave(state.time)))

    q, v, _ = wave(0.0)
    off = 0.01 * jnp.arange(7.0)
    times = jnp.linspace(0.0, 1.0, 5)
    found = simulated(model, mbjax.State(q + off, v), law, times)
    wanted = jax.vmap(lambda t: wave(t)[0])(times)
    decay = (1.0 + 10.0 * times) * jnp.exp(-10.0 * times)
    np.testing.assert_allclose(found.q - wanted, decay[:, None] * off, rtol=0.0, atol=1e-6)


def test_joint_pd_picks_what_each_drive_follows() -> None:
    """In the order of actuators, with joints that mimic as they move."""
    model = mbjax.set_controller_gains(planar(True), 10.0, 1.0)
    inputs = controllers.joint_pd(model, [0.3, 0.4], [0.1, 0.2], [1.0, 2.0])
    np.testing.assert_allclose(inputs.desired_state, [0.3, 0.5 * 0.4 + 0.1, 0.1, 0.5 * 0.2], rtol=1e-12)
    np.testing.assert_allclose(inputs.actuation, [1.0, 2.0])
    with pytest.raises(mbjax.ModelError, match="no actuator follows it"):
        controllers.joint_pd(planar(), jnp.zeros(2))


@pytest.mark.parametrize("mimics", [pytest.param(False, marks=pytest.mark.whole_run("with a joint that mimics")), True])
def test_weight_is_held_and_accelerations_are_those_asked_for(mimics: bool) -> None:
    """Also with rotors behind gears, damping in joints, and a drive at a joint that mimics another.

    Springs of joints pull by their stiffness, and that of a frame does not where the frame is.
    """
    model = planar(mimics)
    q, v = jnp.array([0.4, 0.7]), jnp.array([0.5, -0.3])
    held = controllers.gravity_compensation(model, q)
    rest = mbjax.State(q, jnp.zeros(2))
    np.testing.assert_allclose(mbjax.time_derivatives(model, rest, held)[1], 0.0, atol=1e-12)
    pulled = controllers.joint_impedance(model, rest, q + 0.1, stiffness=jnp.array([30.0, 20.0]))
    vdot = mbjax.time_derivatives(model, rest, pulled)[1]
    np.testing.assert_allclose(mbjax.mass_matrix(model, q) @ vdot, [3.0, 2.0], rtol=1e-10)
    X = mbjax.relative_transform(model, q, "world", "link1")
    np.testing.assert_allclose(controllers.cartesian_impedance(model, rest, "link1", X, stiffness=9.0), held, atol=1e-9)
    u = controllers.computed_torque(model, mbjax.State(q, v), q, v, [1.0, -2.0])
    np.testing.assert_allclose(mbjax.time_derivatives(model, mbjax.State(q, v), u)[1], [1.0, -2.0], atol=1e-11)


@pytest.mark.whole_run("a spring of joints pulls as stiff as it is, above")
def test_joint_impedance_yields_by_its_stiffness_and_swings_by_its_damping() -> None:
    """A torque of 1 N m moves the joints by K⁻¹ τ; each mode decays as its damping ratio says."""
    model = mbjax.set_joint_damping(mbjax.set_joint_damping(planar(), "joint0", 0.0), "joint1", 0.0)
    q_d, K, ratio = jnp.array([0.4, 0.7]), jnp.array([300.0, 200.0]), 0.3

    def net(q, v, tau):
        u = controllers.joint_impedance(model, mbjax.State(q, v), q_d, stiffness=K, damping_ratio=ratio)
        return mbjax.time_derivatives(model, mbjax.State(q, v), mbjax.Inputs(u, applied_generalized_force=tau))[1]

    zero, tau = jnp.zeros(2), jnp.array([1.0, 0.0])
    np.testing.assert_allclose(net(q_d + tau / K, zero, tau), 0.0, atol=1e-11)
    by_q, by_v = compiled(jax.jacfwd(net, argnums=(0, 1)))(q_d, zero, zero)
    modes = np.linalg.eigvals(np.block([[np.zeros((2, 2)), np.eye(2)], [by_q, by_v]]))
    np.testing.assert_allclose(-modes.real / abs(modes), ratio, rtol=1e-9)
    M = np.asarray(mbjax.mass_matrix(model, q_d))
    frequencies = np.sqrt(np.linalg.eigvals(np.linalg.solve(M, np.diag(K))))
    np.testing.assert_allclose(np.sort(abs(modes)), np.repeat(np.sort(frequencies), 2), rtol=1e-9)


def cartesian(model, state, X, **given):
    return controllers.cartesian_impedance(
        model, state, "tool", X, stiffness=TOOL_STIFFNESS, damping_ratio=0.4, **given
    )


@pytest.mark.whole_run("operational space accelerates as asked, and admittance settles by its spring, below")
def test_cartesian_impedance_yields_by_its_stiffness_to_a_push_of_1_newton() -> None:
    """The frame comes to rest where K e balances the push, whatever the posture pulls at."""
    model = arm()
    X = mbjax.relative_transform(model, GOAL, "world", "tool")

    def law(state):
        u = cartesian(model, state, X, posture=GOAL + 0.1, posture_stiffness=20.0, posture_damping=10.0)
        J = mbjax.jacobian_spatial_velocity(model, state.q, "tool", jnp.zeros(3), "world", "world")
        return mbjax.Inputs(actuation=u, applied_generalized_force=J.T @ PUSH)

    found = simulated(model, mbjax.State(GOAL, jnp.zeros(7)), law, [0.0, 12.0])
    after = mbjax.relative_transform(model, found.q[-1], "world", "tool")
    np.testing.assert_allclose(after.translation - X.translation, [0.0, 1.0 / 500.0, 0.0], atol=1e-7)
    np.testing.assert_allclose(after.rotation, X.rotation, atol=1e-7)


@pytest.mark.whole_run("operational space: accelerations as asked, in each direction alone")
def test_cartesian_impedance_swings_by_the_damping_ratio() -> None:
    """The modes of the frame alone have the frequency of K on Λ, and the ratio asked for."""
    model = arm()
    for joint in model.joint_names:
        if model.joint(joint).num_velocities:
            model = mbjax.set_joint_damping(model, joint, 0.0)
    X = mbjax.relative_transform(model, GOAL, "world", "tool")
    J = mbjax.jacobian_spatial_velocity(model, GOAL, "tool", jnp.zeros(3), "world", "world")

    def acceleration(q, v):
        u = cartesian(model, mbjax.State(q, v), X)
        return J @ mbjax.time_derivatives(model, mbjax.State(q, v), u)[1]

    by_q, by_v = compiled(jax.jacfwd(acceleration, argnums=(0, 1)))(GOAL, jnp.zeros(7))
    onto = np.linalg.pinv(np.asarray(J))
    inertia = np.linalg.inv(J @ np.linalg.solve(mbjax.mass_matrix(model, GOAL), J.T))
    by_x = np.asarray(by_q @ onto)
    np.testing.assert_allclose(inertia @ by_x, -np.diag(TOOL_STIFFNESS), atol=1e-6)
    A = np.block([[np.zeros((6, 6)), np.eye(6)], [by_x, by_v @ onto]])
    modes = np.linalg.eigvals(A)
    np.testing.assert_allclose(-modes.real / abs(modes), 0.4, rtol=1e-7)


def test_operational_space_accelerates_as_asked_and_decouples() -> None:
    """In each direction alone, whatever the posture asks for, at any velocity, with a joint that is locked too."""
    model = arm()
    v = 0.5 * jnp.cos(jnp.arange(7.0))
    X = mbjax.relative_transform(model, GOAL, "world", "tool")

    @compiled
    def acceleration(model, v, A_d):
        task = controllers.FrameTask("tool", X, A_WF_W=A_d, stiffness=0.0, damping=0.0)
        state = mbjax.State(GOAL, v)
        u = controllers.operational_space(model, state, task, posture=jnp.zeros(7))
        vdot = mbjax.time_derivatives(model, state, u)[1]
        J = mbjax.jacobian_spatial_velocity(model, GOAL, "tool", jnp.zeros(3), "world", "world")
        return J @ vdot + mbjax.kinematics.bias_spatial_acceleration(
            model, GOAL, v, "tool", jnp.zeros(3), "world", "world"
        )

    for A_d in (*np.eye(6)[[0, 4]], np.zeros(6)):
        np.testing.assert_allclose(acceleration(model, v, jnp.asarray(A_d)), A_d, atol=1e-9)
    held = mbjax.lock_joint(model, next(j for j in model.joint_names if model.joint(j).num_velocities))
    np.testing.assert_allclose(acceleration(held, v.at[0].set(0.0), jnp.ones(6)), 1.0, atol=1e-8)


@pytest.mark.whole_run("accelerations as asked, above, and derivatives of the dynamics in test_dynamics_derivatives.py")
def test_efforts_stay_finite_at_singularities() -> None:
    """With the arm stretched out efforts and derivatives are finite, and the damping sets in without a jump."""
    model = arm()
    X = mbjax.RigidTransform(jnp.eye(3), jnp.array([2.0, 0.0, 2.0]))

    def efforts(q):
        task = controllers.FrameTask("tool", X)
        return controllers.operational_space(model, mbjax.State(q, jnp.zeros(7)), task)

    run = compiled(lambda q: (efforts(q), jax.jacrev(efforts)(q)))
    for bent in (0.0, 1e-3):
        u, slope = run(jnp.full(7, bent))
        assert jnp.isfinite(u).all()
        assert abs(u).max() < 1e6
        assert jnp.isfinite(slope).all()


def test_the_inertia_of_a_task_is_exact_away_from_singularities() -> None:
    rng = np.random.default_rng(0)
    M, J = np.diag(rng.uniform(1.0, 2.0, 5)), rng.normal(size=(3, 5))
    exact = np.linalg.inv(J @ np.linalg.inv(M) @ J.T)
    np.testing.assert_allclose(calc_task_inertia(jnp.asarray(M), jnp.asarray(J)).inertia, exact, rtol=1e-12)


def test_admittance_settles_where_the_spring_balances_the_wrench() -> None:
    """At K⁻¹ F, as fast as its modes say, in steps of any length."""
    gains = {"inertia": 2.0, "damping": 40.0, "stiffness": jnp.array([10.0, 10.0, 10.0, 200.0, 200.0, 200.0])}
    X = mbjax.RigidTransform(jnp.eye(3), jnp.array([0.1, 0.2, 0.3]))
    F = jnp.array([0.0, 0.0, 0.5, 1.0, 0.0, 0.0])

    def after(time, steps):
        def one(state, _):
            return controllers.admittance_step(state, X, F, dt=time / steps, **gains), None

        return jax.lax.scan(one, controllers.AdmittanceState(X), None, length=steps)[0]

    settled = after(100.0, 500)
    np.testing.assert_allclose(settled.X_WC.translation - X.translation, [1.0 / 200.0, 0.0, 0.0], atol=1e-9)
    turned = [[np.cos(0.05), -np.sin(0.05), 0.0], [np.sin(0.05), np.cos(0.05), 0.0], [0.0, 0.0, 1.0]]
    np.testing.assert_allclose(settled.X_WC.rotation, turned, atol=1e-8)
    early = after(0.1, 2000)  # critically damped at 10 rad/s
    exact = (1.0 - 2.0 * np.exp(-1.0)) / 200.0
    np.testing.assert_allclose(early.X_WC.translation[0] - X.translation[0], exact, rtol=2e-3)
    with pytest.raises(mbjax.ModelError, match="a wrench is"):
        controllers.admittance_step(controllers.AdmittanceState(X), X, jnp.zeros(3), dt=0.1, **gains)
    with pytest.raises(mbjax.ModelError, match="admittance_step: dt must be a finite number > 0 in s"):
        controllers.admittance_step(controllers.AdmittanceState(X), X, jnp.zeros(6), dt=-0.1, **gains)
    none = {"inertia": 0.0, "damping": 0.0, "stiffness": [0.0, 1.0, 1.0, 1.0, 1.0, 1.0]}
    with pytest.raises(mbjax.ModelError, match="all zero in some direction"):
        controllers.admittance_step(controllers.AdmittanceState(X), X, jnp.zeros(6), dt=0.1, **none)


def test_bodies_beside_the_arm_need_no_actuator() -> None:
    """A free box in the scene falls; the arm does what it is asked to."""
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("link", mbjax.SpatialInertia(1.0, (0.0, 0.0, -0.2), mbjax.UnitInertia(0.06, 0.06, 0.01)))
    plant.add_rigid_body("box", mbjax.SpatialInertia(1.0, (0.0, 0.0, 0.0), mbjax.UnitInertia(0.1, 0.1, 0.1)))
    plant.add_joint(mbjax.RevoluteJoint("joint", "world", "link", axis=(0.0, 1.0, 0.0)))
    plant.add_joint_actuator("motor", "joint")
    model = plant.finalize()
    state = mbjax.default_state(model)
    i = model.joint("joint").v_start
    u = controllers.computed_torque(model, state, state.q, None, jnp.zeros(7).at[i].set(3.0))
    np.testing.assert_allclose(mbjax.time_derivatives(model, state, u)[1][i], 3.0, rtol=1e-12)
    X = mbjax.RigidTransform(jnp.eye(3), jnp.zeros(3))
    with pytest.raises(mbjax.ModelError, match="no actuator moves frame 'box'"):
        controllers.cartesian_impedance(model, state, "box", X, stiffness=1.0)


def test_models_that_efforts_cannot_move_at_will_are_refused() -> None:
    cart = mbjax.load("cart_pole")
    with pytest.raises(mbjax.ModelError, match=r"no actuator drives the velocities '.*pole_pivot.*lqr"):
        controllers.computed_torque(cart, mbjax.default_state(cart), jnp.zeros(2))
    quadruped = mbjax.load("quadruped")
    with pytest.raises(mbjax.ModelError, match="whole_body"):
        controllers.gravity_compensation(quadruped, mbjax.default_state(quadruped).q)
    coupled = planar(coupled=True)
    with pytest.raises(mbjax.ModelError, match="has the constraints 'link'"):
        controllers.gravity_compensation(coupled, jnp.zeros(2))
    with pytest.raises(mbjax.ModelError, match="has the constraints 'link'"):
        controllers.whole_body(
            coupled, mbjax.State(jnp.zeros(2), jnp.zeros(2)), [controllers.PostureTask(jnp.zeros(2))]
        )
    held = mbjax.lock_joint(cart, "pole_pivot")
    u = controllers.computed_torque(held, mbjax.default_state(held), jnp.zeros(2), None, [1.5, 7.0])
    vdot = mbjax.time_derivatives(held, mbjax.default_state(held), u)[1]
    np.testing.assert_allclose(vdot, [1.5, 0.0], atol=1e-12)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"stiffness": jnp.ones(3)}, r"stiffness has shape \(3,\)"),
        ({"stiffness": 1.0, "damping": 1.0, "damping_ratio": 1.0}, "not both"),
        ({"stiffness": 1.0, "damping_ratio": jnp.ones(2)}, "damping_ratio must be one number"),
        ({"stiffness": 1.0, "damping_ratio": -1.0}, "damping_ratio must be a finite number >= 0"),
        ({"stiffness": -100.0}, r"joint_impedance: stiffness must be a finite number >= 0, got -100\.0"),
        ({"stiffness": [1.0, jnp.nan]}, "stiffness must be a finite number"),
        ({"stiffness": -jnp.eye(2)}, "stiffness must be positive semidefinite"),
        ({"stiffness": 1.0, "v_d": [0.0, jnp.nan]}, "joint_impedance: v_d must be finite"),
        ({"stiffness": 1.0, "v_d": jnp.ones(3)}, r"v_d has shape \(3,\)"),
    ],
)
def test_wrong_gains_and_references_are_refused(given, message) -> None:
    with pytest.raises(mbjax.ModelError, match=message):
        controllers.joint_impedance(planar(), mbjax.State(jnp.zeros(2), jnp.zeros(2)), jnp.zeros(2), **given)


def test_a_wanted_velocity_is_a_whole_twist() -> None:
    still = mbjax.State(jnp.zeros(2), jnp.zeros(2))
    X = mbjax.RigidTransform(jnp.eye(3), jnp.zeros(3))
    with pytest.raises(mbjax.ModelError, match=r"V_WF_d has shape \(3,\), the model needs \(6,\)"):
        controllers.cartesian_impedance(planar(), still, "link1", X, jnp.ones(3), stiffness=1.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"axes": (3, 6)}, "numbers from 0 to 5"),
        ({"axes": (3, 4, 5), "stiffness": jnp.ones(3)}, r"FrameTask\('tool'\): stiffness must be one number or 6"),
        ({"damping": jnp.ones((6, 6))}, "damping must be one number or 6"),
        ({"V_WF_W": jnp.ones(3)}, "V_WF_W must be one number or 6"),
        ({"weight": -1.0}, "weight must be a finite number >= 0"),
        ({"axes": (3, 4, 5), "weight": jnp.ones(6)}, "weight must be one number or 3"),
    ],
)
def test_tasks_with_wrong_numbers_are_refused(given, message) -> None:
    with pytest.raises(mbjax.ModelError, match=message):
        controllers.FrameTask("tool", mbjax.RigidTransform(jnp.eye(3), jnp.zeros(3)), **given)
    with pytest.raises(mbjax.ModelError, match="CenterOfMassTask: damping must be one number or 3"):
        controllers.CenterOfMassTask(jnp.zeros(3), damping=jnp.ones(6))
    with pytest.raises(mbjax.ModelError, match="CenterOfMassTask: p_WCcm must be 3 number"):
        controllers.CenterOfMassTask(1.0)
    with pytest.raises(mbjax.ModelError, match="MomentumTask: L_WCcm_W must be one number or 6"):
        controllers.MomentumTask(jnp.zeros(3))
    state = mbjax.State(jnp.zeros(2), jnp.zeros(2))
    with pytest.raises(mbjax.ModelError, match="PostureTask: weight must be one number or 2"):
        controllers.PostureTask(jnp.zeros(2), weight=jnp.ones(3))(planar(), state)
    with pytest.raises(mbjax.ModelError, match="PostureTask: v must be one number or 2"):
        controllers.PostureTask(jnp.zeros(2), jnp.zeros(1))(planar(), state)
    with pytest.raises(mbjax.ModelError, match=r"task must be one task, such as .* got list"):
        controllers.operational_space(planar(), state, [controllers.PostureTask(jnp.zeros(2))])


def test_poses_may_be_matrices() -> None:
    task = controllers.FrameTask("link1", np.eye(4))
    np.testing.assert_array_equal(task.X_WF.rotation, np.eye(3))
    with pytest.raises(mbjax.ModelError, match=r"FrameTask\('link1'\): X_WF must be a RigidTransform, a pair"):
        controllers.FrameTask("link1", np.eye(3))
    with pytest.raises(mbjax.ModelError, match="AdmittanceState: X_WC must be a RigidTransform"):
        controllers.AdmittanceState(np.eye(5))


@pytest.mark.whole_run("their values, above, and derivatives of the dynamics, in test_dynamics_derivatives.py")
def test_derivatives_of_arm_controllers() -> None:
    """By state, gains and all numbers of the model: forward = reverse = differences; in batches too."""
    model = planar()
    X = mbjax.relative_transform(model, jnp.array([0.5, 0.6]), "world", "link1")

    def efforts(x):
        q, v, gain, mass = x
        model = mbjax.set_mass(planar(), "link1", mass)
        state = mbjax.State(q, v)
        task = controllers.FrameTask("link1", X, stiffness=gain, axes=(3, 5))
        return jnp.stack(
            [
                controllers.gravity_compensation(model, q),
                controllers.computed_torque(model, state, jnp.ones(2), stiffness=gain),
                controllers.joint_impedance(model, state, jnp.ones(2), stiffness=gain),
                controllers.operational_space(model, state, task),
            ]
        )

    x = jnp.array([0.4, 0.7]), jnp.array([0.5, -0.3]), jnp.array(50.0), jnp.array(2.0)
    check = mbjax.check_grads(efforts, x, quiet=True)
    assert check, str(check)
    batch = jax.tree.map(lambda a: jnp.stack([a, 1.1 * a]), x)
    both = compiled(jax.vmap(efforts))(batch)
    np.testing.assert_allclose(both[0], efforts(x), rtol=1e-11)


@pytest.mark.whole_run("derivatives of admittance, below, and of the dynamics, in test_dynamics_derivatives.py")
def test_derivatives_of_impedance_where_the_frame_moves_in_two_of_six_directions() -> None:
    """By positions, where modes of the inertia are alike: forward = reverse = differences."""
    model = planar()
    X = mbjax.relative_transform(model, jnp.array([0.5, 0.6]), "world", "link1")

    def effort(q):
        state = mbjax.State(q, jnp.array([0.1, 0.2]))
        return controllers.cartesian_impedance(model, state, "link1", X, stiffness=100.0)

    run, q, h = (
        compiled(lambda q: (effort(q), jax.jacfwd(effort)(q), jax.jacrev(effort)(q))),
        jnp.array([0.4, 0.7]),
        1e-6,
    )
    _, forward, reverse = run(q)
    differences = np.stack([(run(q + d)[0] - run(q - d)[0]) / (2.0 * h) for d in h * np.eye(2)], 1)
    np.testing.assert_allclose(forward, reverse, atol=1e-10)
    np.testing.assert_allclose(reverse, differences, atol=1e-6)


def test_derivatives_of_damping_where_stiffness_is_zero_in_some_directions() -> None:
    """First and second ones, by an inertia and by a scale of the stiffness: derivatives are those of differences."""
    stiffness = jnp.diag(jnp.array([0.0, 0.0, 0.0, 3.0, 4.0, 3.0]))
    A, B, weight = jax.random.normal(jax.random.key(0), (3, 6, 6))

    def damping(t):
        L = jnp.eye(6) + 0.2 * A + 0.3 * jnp.sin(t) * B
        return jnp.sum(weight * damping_matrix(L @ L.T, (1.0 + t) * stiffness, jnp.array(0.7)))

    of = compiled(lambda t: (damping(t), jax.grad(damping)(t), jax.jacfwd(jax.grad(damping))(t)))
    t, h = jnp.array(0.3), 1e-4
    (above, slope_above, _), (below, slope_below, _), (_, slope, second) = of(t + h), of(t - h), of(t)
    np.testing.assert_allclose(slope, (above - below) / (2.0 * h), rtol=1e-6)
    np.testing.assert_allclose(second, (slope_above - slope_below) / (2.0 * h), rtol=1e-6)
    by_stiffness = compiled(jax.grad(lambda K: jnp.sum(damping_matrix(jnp.eye(6) + A @ A.T, K, jnp.array(0.7)))))
    assert np.all(np.isfinite(by_stiffness(stiffness)))


def test_derivatives_of_admittance() -> None:
    """By the wrench, the gains and the time: forward = reverse = differences."""
    X = mbjax.RigidTransform(jnp.eye(3), jnp.zeros(3))

    def pose(x):
        F, inertia, damping, stiffness, dt = x
        state = controllers.AdmittanceState(X, 0.1 * jnp.arange(6.0))
        found = controllers.admittance_step(state, X, F, inertia=inertia, damping=damping, stiffness=stiffness, dt=dt)
        return found.X_WC.as_matrix4(), found.V_WC_W

    x = jnp.arange(6.0), jnp.array(2.0), jnp.array(5.0), jnp.array(30.0), jnp.array(0.1)
    check = mbjax.check_grads(pose, x, quiet=True)
    assert check, str(check)
