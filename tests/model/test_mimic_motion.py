"""Models whose joints mimic others move as with couplers in their place, which keep both coordinates."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import mbjax
from tests.constraints.test_plant_constraints_against_drake import GRIPPER
from tests.gradients.checks import WHOLE_RUN, check_gradients, compiled
from tests.model.mimics import BOX, JOINTS, RELATIONS, make_model, maps, state
from tests.models import ROBOTS, relative_error

TAU = jnp.asarray(np.random.default_rng(3).normal(size=9))


def given_forces(model: mbjax.MultibodyModel) -> mbjax.MultibodyForces:
    """On bodies alone."""
    body = np.random.default_rng(4).normal(size=(model.num_bodies, 6))
    return mbjax.MultibodyForces(jnp.zeros(model.num_velocities), jnp.asarray(body))


@pytest.mark.whole_run("Panda equals Pinocchio's mimic, below; derivatives in test_dynamics_derivatives.py")
def test_forward_dynamics_and_its_derivatives_are_those_of_the_reduced_equation() -> None:
    """(EᵀME) vdot = tau - Eᵀ bias, and -(EᵀME)⁻¹ Eᵀ times the free model's derivatives of inverse dynamics times E."""
    E_q, c, E = maps()
    (q, v), ours, free = state(), make_model("mimic"), make_model("free")
    forces = given_forces(ours)

    def reduced(model, q, v, tau, forces):
        derivatives = mbjax.forward_dynamics_derivatives(model, q, v, tau, forces, force_elements=True)
        forces = mbjax.MultibodyForces(forces.generalized, forces.body) + mbjax.force_elements_contribution(model, q, v)
        return mbjax.forward_dynamics(model, q, v, tau, forces), derivatives

    vdot, derivatives = compiled(reduced)(ours, q, v, TAU, forces)
    at = (E_q @ q + c, E @ v, E @ vdot, given_forces(free))
    of_free = compiled(functools.partial(mbjax.inverse_dynamics_derivatives, force_elements=True))(free, *at)
    M = E.T @ of_free.dvdot @ E
    rest = TAU - E.T @ (of_free.tau - of_free.dvdot @ (E @ vdot))
    expected = {
        "vdot": np.linalg.solve(M, rest),
        "dq": -np.linalg.solve(M, E.T @ of_free.dq @ E),
        "dv": -np.linalg.solve(M, E.T @ of_free.dv @ E),
        "dtau": np.linalg.inv(M),
    }
    errors = {name: relative_error(getattr(derivatives, name), x) for name, x in expected.items()}
    errors["forward_dynamics"] = relative_error(vdot, expected["vdot"])
    print(errors)
    assert all(error < 1e-11 for error in errors.values())


def coupled(model: mbjax.MultibodyModel, cset: mbjax.ConstraintSet) -> mbjax.BoundConstraintSet:
    """A free model's constraints, with couplers after them that stand for the mimics."""
    for follower, of in RELATIONS.items():
        cset.add_coupler_constraint(follower, *of, stabilization_time=np.inf)
    return cset.bind(model)


def loop() -> mbjax.ConstraintSet:
    cset = mbjax.ConstraintSet()
    cset.add_distance_constraint("b4", [0.1, 0.0, -0.5], "b6", [0.0, 0.1, 0.0], 1.0)
    return cset.add_ball_constraint("b5", [0.0, 0.0, 0.1], "b2", [0.0, 0.2, 0.0])


def constrained(model, cset, q, v, tau, solver):
    acceleration = mbjax.constrained_forward_dynamics(model, cset, q, v, tau, solver=solver)
    return acceleration.vdot, acceleration.force[:4]


@pytest.mark.whole_run("the balance of forces in a step")
@pytest.mark.parametrize("solver", ["Direct", "Kokkevis"])
def test_constrained_forward_dynamics_is_that_with_couplers(solver: str) -> None:
    E_q, c, E = maps()
    (q, v), strategy = state(), getattr(mbjax, solver)()
    ours, free = make_model("mimic"), make_model("free")
    vdot, force = compiled(constrained)(ours, loop().bind(ours), q, v, TAU, strategy)
    of_free = jnp.linalg.pinv(E.T) @ TAU
    expected = compiled(constrained)(free, coupled(free, loop()), E_q @ q + c, E @ v, of_free, strategy)
    errors = relative_error(E @ vdot, expected[0]), relative_error(force, expected[1])
    print(solver, errors)
    assert max(errors) < 1e-9


def impulses_and_projection(model, cset, q, v):
    torques = mbjax.constrained_inverse_dynamics(model, cset, q, v, 0.5 * v)  # of them the least in other coordinates
    impulses = mbjax.constraint_impulses(model, cset, q, v)
    nearly = mbjax.project_onto_constraints(model, cset, q, v)
    return torques.vdot, impulses.v, impulses.impulse[:4], *nearly


@pytest.mark.whole_run("velocities that keep the loop, below, and the balance of forces in a step")
def test_impulses_projection_and_constrained_inverse_dynamics_are_those_with_couplers() -> None:
    E_q, c, E = maps()
    (q, v), ours, free = state(), make_model("mimic"), make_model("free")
    got = compiled(impulses_and_projection)(ours, loop().bind(ours), q, v)
    other = compiled(impulses_and_projection)(free, coupled(free, loop()), E_q @ q + c, E @ v)
    mapped = (E @ got[0], E @ got[1], got[2], E_q @ got[3] + c, E @ got[4])
    errors = [relative_error(a, b) for a, b in zip(mapped, other, strict=True)]
    print(errors)
    assert np.max(errors) < 1e-8


def test_assembled_velocities_are_the_nearest_that_keep_the_loop() -> None:
    (q, v), model = state(), make_model("mimic")
    cset = loop().bind(model)
    assembled = compiled(mbjax.assembly_qdot)(model, cset, q, v)
    G = np.asarray(mbjax.constraints_jacobian(model, cset, q))
    change = np.asarray(assembled - v)
    assert np.abs(G @ assembled).max() < 1e-12
    assert np.abs(change).max() > 0.01
    assert np.abs(change - np.linalg.pinv(G) @ (G @ change)).max() < 1e-12


@pytest.mark.whole_run("velocities, above")
def test_an_assembled_configuration_satisfies_couplers() -> None:
    E_q, c, _ = maps()
    (q, _), ours, free = state(), make_model("mimic"), make_model("free")
    found = compiled(mbjax.assembly_q)(ours, loop().bind(ours), q)
    assert found.status == 0
    error = mbjax.constraints_position_error(free, coupled(free, loop()), E_q @ found.q + c)
    assert np.abs(error).max() < 1e-12
    assert np.abs(found.q - q).max() > 0.01


@pytest.mark.whole_run("the balance of forces in a step")
def test_the_implicit_residual_vanishes_at_the_time_derivatives() -> None:
    model = make_model("mimic", 0.0)
    at, inputs = start("mimic"), inputs_of(model)

    @compiled
    def both(*x):
        derivatives = mbjax.time_derivatives(*x)
        return mbjax.implicit_time_derivatives_residual(*x[:2], *derivatives, x[2]), derivatives[1]

    residual, vdot = both(model, at, inputs)
    assert np.abs(residual).max() < 1e-9 * np.abs(vdot).max()


@pytest.mark.whole_run("the balance of forces in a step")
def test_simulation_is_that_with_couplers() -> None:
    ends = []
    for mimic in ("eliminate", "couple"):
        model = gripper(mimic, 0.0)
        inputs = mbjax.Inputs(desired_state=jnp.array([0.03, 0.0]))
        ends.append(mbjax.simulate(model, at_start(model), inputs, save_at=jnp.array([0.0, 0.2])).q[-1])
    assert np.abs(ends[0] - ends[1][:2]).max() < 1e-6


def inputs_of(model: mbjax.MultibodyModel) -> mbjax.Inputs:
    """Tracking, a bound effort, and a force on a body."""
    desired = jnp.array([0.3, 0.2, 0.1, 0.0, 0.1, -0.1])
    applied = mbjax.AppliedSpatialForces(["b4"], jnp.ones((1, 6)), jnp.ones((1, 3)))
    return mbjax.Inputs(jnp.array([0.2, -0.1, 0.3]), desired, None, applied)


def start(relation: str) -> mbjax.State:
    """The coupler j0, j6 is satisfied."""
    E_q, c, E = maps()
    (q, v), names = state(), make_model("mimic").position_names()
    j0, j6 = (next(k for k, n in enumerate(names) if f"_{joint}_" in n) for joint in ("j0", "j6"))
    q, v = q.at[j0].set(2.0 * q[j6]), v.at[j0].set(2.0 * v[j6])
    return mbjax.State(q, v, jnp.zeros(())) if relation == "mimic" else mbjax.State(E_q @ q + c, E @ v, jnp.zeros(()))


@functools.cache
def ports(relation: str, time_step: float) -> mbjax.Outputs:
    model = make_model(relation, time_step, 0.0 if time_step else 0.05)
    return compiled(mbjax.outputs)(model, start(relation), inputs_of(model))


@pytest.mark.whole_run("the balance of forces in a step")
def test_all_output_ports_are_those_with_couplers() -> None:
    """Exactly in the continuous plant; in a discrete one couplers give way."""
    _, _, E = maps()
    ours, other = ports("mimic", 0.0), ports("couple", 0.0)
    errors = {
        "generalized_acceleration": relative_error(E @ ours.generalized_acceleration, other.generalized_acceleration),
        "constraint_forces": relative_error(ours.constraint_forces, other.constraint_forces[:1]),
        "generalized_contact_forces": relative_error(
            ours.generalized_contact_forces, E.T @ other.generalized_contact_forces
        ),
    }
    for name in ("net_actuation", "reaction_forces", "body_spatial_accelerations", "body_spatial_velocities"):
        errors[name] = relative_error(getattr(ours, name), getattr(other, name))
    errors["contact force"] = relative_error(ours.contact_results.force, other.contact_results.force)
    print(errors)
    assert np.abs(ours.contact_results.force).max() > 0.1
    assert np.abs(ours.constraint_forces).min() > 0.1
    assert all(error < 1e-10 for error in errors.values())


def test_forces_of_a_step_are_in_balance() -> None:
    """What the joints transmit, found body by body, is along v what drives them.

    Eᵀ S·F = B u + Gᵀ λ + springs - Eᵀ d E v⁺ - reflected inertia times vdot.
    """
    model, dt, state = make_model("mimic", 1e-3, 0.0), 1e-3, start("mimic")
    live, (_, _, E) = ports("mimic", 1e-3), maps()
    in_joints = np.zeros(12)
    for name, (_, kind, axis) in JOINTS.items():
        joint, unit = model.joint(name), np.array(axis) / np.linalg.norm(axis)
        part = slice(3, 6) if kind is mbjax.PrismaticJoint else slice(0, 3)
        in_joints[joint.all_v_start] = unit @ live.reaction_forces[joint.index, part]
    p, dv = model.parameters, dt * live.generalized_acceleration

    @jax.jit
    def given(model, q, v):
        G = mbjax.constraints_jacobian(model, mbjax.bound_constraints(model), q)
        return G, mbjax.force_elements_contribution(model, q, v)

    (G, elements), B = given(model, state.q, state.v), mbjax.actuation_matrix(model)
    driven = B @ live.net_actuation + G.T @ live.constraint_forces + elements.generalized
    rotors = B**2 @ (p.rotor_inertia * p.gear_ratio**2) * live.generalized_acceleration
    error = relative_error(E.T @ in_joints, driven - E.T @ (p.joint_damping * (E @ dv)) - rotors)
    print(error)
    assert np.abs(live.contact_results.force).max() > 0.1
    assert abs(live.net_actuation[0]) == 1.0
    assert error < 1e-9


@functools.cache
def gripper(mimic: str, time_step: float = 1e-3) -> mbjax.MultibodyModel:
    """A swinging hand whose right finger follows the left one, which a stiff controller drives."""
    model = mbjax.load(GRIPPER, mimic=mimic, time_step=time_step)
    model = mbjax.set_joint_friction(mbjax.set_controller_gains(model, 2000.0, 30.0), "follow", 0.3)
    return mbjax.set_position_limits(model, "follow", -0.1, 0.08)


def at_start(model: mbjax.MultibodyModel) -> mbjax.State:
    q, v = jnp.array([0.4, 0.01, 0.035]), jnp.array([0.5, -0.1, -0.15])
    return mbjax.State(q[: model.num_positions], v[: model.num_velocities], jnp.zeros(()))


AT_ZERO = "the balance of forces in a step, above; a pendulum that holds in tests/simulation/test_joint_friction.py"


@functools.partial(jax.jit, static_argnums=2)
def run(model: mbjax.MultibodyModel, target: jax.Array, num_steps: int) -> mbjax.Trajectory:
    inputs = mbjax.Inputs(desired_state=jnp.stack([target, jnp.zeros(())]))
    return mbjax.rollout(model, at_start(model), inputs, num_steps)


@pytest.mark.whole_run(AT_ZERO)
@pytest.mark.parametrize("friction", [0.0, 0.3])
def test_a_multiplier_of_zero_has_a_slope(friction: float) -> None:
    """The finger is held at the offset, its limits bind nothing; with friction there is a kink, which is finite."""
    model = mbjax.set_joint_friction(gripper("eliminate"), "follow", friction)
    start = at_start(model)

    def after(x: jax.Array) -> jax.Array:
        state = mbjax.step(mbjax.set_mimic(model, "follow", x[0], x[1]), start)[0]
        return jnp.concatenate([state.q, state.v])

    if friction == 0.0:
        result = check_gradients(after, jnp.array([0.0, 0.035]))
        assert np.abs(result.reverse[:, 0]).max() > 1e-6
    else:
        assert np.isfinite(compiled(jax.jacrev(after))(jnp.array([0.0, 0.035]))).all()


@pytest.mark.whole_run("the balance of forces in a step")
@pytest.mark.parametrize("target", [0.02, 0.3], ids=["within effort limits", "to the finger's position limit"])
def test_rollout_is_that_with_couplers(target: float) -> None:
    """The limit of the finger that mimics stops both: at slide = (0.08 - 0.02) / 1.5 = 0.04."""
    ours, other = (run(gripper(mimic), jnp.asarray(target), 400) for mimic in ("eliminate", "couple"))
    errors = [np.abs(getattr(ours, x) - getattr(other, x)[..., :2]).max() for x in ("q", "v")]
    print(f"400 steps to {target}: {errors}, at last {ours.q[-1]}")
    assert errors[0] < 1e-6
    assert errors[1] < 1e-3
    assert abs(ours.q[-1, 1] - min(target, 0.04)) < 3e-3


@pytest.mark.whole_run("the balance of forces in a step")
def test_a_long_rollouts_gradient_by_multiplier_and_offset() -> None:
    """Reverse mode through 1000 steps beside central differences, and forward mode."""
    model = gripper("eliminate", 2e-4)

    def cost(numbers: jax.Array) -> jax.Array:
        moved = mbjax.set_mimic(model, "follow", numbers[0], numbers[1])
        trajectory = run(moved, jnp.asarray(0.02), 1000)
        return jnp.sum(trajectory.q[-1]) + 0.1 * jnp.sum(trajectory.v[-1])

    result = check_gradients(cost, jnp.array([1.5, 0.02]), step=1e-4)
    assert np.all(np.abs(result.reverse) > 1e-6)


@functools.cache
def chain() -> mbjax.MultibodyModel:
    """A swinging hand with a driven slide, a hinge that follows it, and on that a slide that follows the hinge."""
    plant = mbjax.MultibodyPlant(0.01)
    joints = (
        (mbjax.RevoluteJoint, "world", [0.0, 1.0, 0.0], None),
        (mbjax.PrismaticJoint, "b0", [1.0, 0.0, 0.1], (-1.0, 0.5)),
        (mbjax.RevoluteJoint, "b0", [0.2, 0.0, 1.0], (-1.0, 0.3)),
        (mbjax.PrismaticJoint, "b2", [0.0, 1.0, 0.3], None),
    )
    for i, (kind, parent, axis, limits) in enumerate(joints):
        plant.add_rigid_body(f"b{i}", BOX)
        options = {"damping": 0.1 + 0.1 * i, "friction": 0.2 + 0.1 * i, "position_limits": limits}
        plant.add_joint(kind(f"j{i}", parent, f"b{i}", axis=axis, X_PF=[0.1, 0.0, -0.2], **options))
    plant.add_mimic("j2", "j1", 1.5, 0.1)
    plant.add_mimic("j3", "j2", -0.7, 0.05)
    for name, joint, limit in (("m1", "j1", 2.0), ("m3", "j3", 100.0)):
        plant.add_joint_actuator(name, joint, limit, kp=300.0, kd=5.0, rotor_inertia=0.01, gear_ratio=3.0)
    plant.add_force_element(mbjax.RevoluteSpring("j2", 0.3, 5.0))
    return plant.finalize()


def step_of(numbers: jax.Array, parameters: mbjax.MultibodyModel) -> jax.Array:
    """A step near the hinge's limit, for other multipliers and offsets, with one actuator at its effort limit."""
    leaves = jnp.split(numbers, 2)
    model = eqx.tree_at(lambda m: (m.parameters.mimic_multiplier, m.parameters.mimic_offset), parameters, leaves)
    state = mbjax.State(jnp.array([0.3, 0.13]), jnp.array([0.5, 0.4]), jnp.zeros(()))
    after, outputs = mbjax.step(model, state, mbjax.Inputs(desired_state=jnp.array([1.0, -0.2, 0.0, 0.0])))
    return jnp.concatenate([after.q, after.v, outputs.net_actuation])


NUMBERS = jnp.array([1.5, -0.7, 0.1, 0.05])
OWN_LEAVES = ("joint_damping", "joint_friction", "rotor_inertia", "effort_limit", "position_upper_limits")


@pytest.mark.whole_run("the balance of forces in a step")
def test_gradient_of_a_step_by_numbers_of_mimics() -> None:
    """Multipliers and offsets, and what the joints that mimic have of their own."""

    def step_of_leaves(numbers: jax.Array, own: list[jax.Array]) -> jax.Array:
        model = eqx.tree_at(lambda m: [getattr(m.parameters, name) for name in OWN_LEAVES], chain(), own)
        return step_of(numbers, model)

    own = [getattr(chain().parameters, name) for name in OWN_LEAVES]
    result = check_gradients(step_of_leaves, NUMBERS, own)
    moved = dict(zip(result.names, np.abs(result.reverse).max(axis=0) > 1e-7, strict=True))
    assert {name for name, moves in moved.items() if not moves} == {
        "[1][3][1]",
        "[1][4][0]",
        "[1][4][1]",
        "[1][4][3]",
    }  # no limit, or another's is tighter


@pytest.mark.whole_run("Panda equals Pinocchio's mimic")
def test_derivatives_of_forward_dynamics() -> None:
    """By numbers of mimics, and the closed form by q, v and tau; trimmed: where a multiplier is zero."""

    def dynamics(model, numbers, q, v, tau):
        leaves = jnp.split(numbers, 2)
        m = eqx.tree_at(lambda m: (m.parameters.mimic_multiplier, m.parameters.mimic_offset), model, leaves)
        return mbjax.forward_dynamics(m, q, v, tau)

    numbers = NUMBERS if WHOLE_RUN else NUMBERS.at[1].set(0.0)
    at = numbers, *(jnp.array(x) for x in ([0.3, 0.2], [0.5, 0.4], [1.0, -2.0]))
    result = check_gradients(functools.partial(dynamics, chain()), *at)
    assert np.abs(result.reverse[:, 1]).max() > 1e-6
    changed = eqx.tree_at(
        lambda m: (m.parameters.mimic_multiplier, m.parameters.mimic_offset), chain(), np.split(numbers, 2)
    )
    closed = compiled(mbjax.forward_dynamics_derivatives)(changed, *at[1:])
    error = relative_error(np.hstack([closed.dq, closed.dv, closed.dtau]), result.forward[:, 4:])
    print(error)
    assert error < 1e-12


@pytest.mark.whole_run("Panda equals Pinocchio's mimic")
def test_second_derivatives_of_forward_dynamics() -> None:
    def gradient(x: jax.Array) -> jax.Array:
        def weighed(x: jax.Array) -> jax.Array:
            m = mbjax.set_mimic(chain(), "j2", x[0], x[1])
            return mbjax.forward_dynamics(m, x[2:4], x[4:6], x[4:6] + 0.3) @ jnp.array([1.0, -0.7])

        return jax.grad(weighed)(x)

    check_gradients(gradient, jnp.array([1.5, 0.1, 0.3, 0.2, 0.5, 0.4]), step=1e-4, scale=1e-3)


@pytest.mark.whole_run("models that differ, in tests/execution/test_worlds.py")
def test_worlds_with_multipliers_of_their_own() -> None:
    """Each is as alone, and new numbers need no new program."""
    worlds = NUMBERS * (1.0 + 0.1 * jnp.arange(5.0))[:, None]
    together = compiled(jax.vmap(step_of, (0, None)))(worlds, chain())
    alone = compiled(step_of)
    errors = [relative_error(together[k], alone(worlds[k], chain())) for k in (0, 4)]
    print(errors)
    assert np.max(errors) < 1e-11
    assert alone._cache_size() == 1


@functools.cache
def panda(mimic: str) -> mbjax.MultibodyModel:
    path = ROBOTS / "panda_description/urdf/panda.urdf"
    return mbjax.load(path, mimic=mimic, base="fixed", on_unsupported="warn", time_step=1e-3)


def test_panda_equals_pinocchios_mimic() -> None:
    """M(q) and ID(q, v, vdot) of a robot whose second finger follows the first."""
    theirs = pin.buildModelFromUrdf(str(ROBOTS / "panda_description/urdf/panda.urdf"), mimic=True)
    model, rng = panda("eliminate"), np.random.default_rng(0)
    assert model.num_velocities == theirs.nv == 8
    q, v, vdot = (0.3 * rng.normal(size=8) for _ in range(3))
    data = theirs.createData()
    M = pin.crba(theirs, data, q)
    M = np.triu(M) + np.triu(M, 1).T

    def dynamics(model, q, v, vdot):
        forces = mbjax.MultibodyForces(mbjax.gravity_generalized_forces(model, q), jnp.zeros((model.num_bodies, 6)))
        return mbjax.mass_matrix(model, q), mbjax.inverse_dynamics(model, q, v, vdot, forces)

    ours = compiled(dynamics)(model, *map(jnp.asarray, (q, v, vdot)))
    errors = relative_error(ours[0], M), relative_error(ours[1], pin.rnea(theirs, data, q, v, vdot))
    print(f"Panda beside Pinocchio: {errors}")
    assert max(errors) < 1e-12


@pytest.mark.whole_run("Panda equals Pinocchio's mimic, and forces of a step are in balance, above")
def test_panda_moves_as_with_coupled_fingers() -> None:
    """200 steps, with the limits of the fingers."""

    @jax.jit
    def fall(model, q, v):
        return mbjax.rollout(model, mbjax.State(q, v, jnp.zeros(())), None, 200).q

    q, v = jnp.array([0.1, -0.5, 0.2, -1.5, 0.3, 1.8, 0.4, 0.03]), jnp.linspace(-0.3, 0.3, 8)
    fallen = fall(panda("eliminate"), q, v)
    coupled = fall(panda("couple"), jnp.append(q, q[7]), jnp.append(v, v[7]))
    print(f"Panda beside couplers: {np.abs(fallen - coupled[:, :8]).max()}")
    assert np.abs(fallen - coupled[:, :8]).max() < 1e-6
