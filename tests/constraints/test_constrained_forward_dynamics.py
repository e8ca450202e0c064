"""Constrained accelerations and forces: closed forms, Pinocchio, energy, strategies, singular sets."""

import functools
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import mbjax
from mbjax.constraints import calc_constrained_dynamics, calc_constrained_dynamics_terms
from mbjax.execution.worlds.many_worlds import for_worlds
from tests.dynamics.oracles import PinocchioRobot, friction_forces
from tests.gradients.checks import WHOLE_RUN, compiled
from tests.models import ROBOTS, relative_error

from . import mechanisms
from .mechanisms import Mechanism

SOLVERS = {
    "direct": mbjax.Direct(),
    "range space": mbjax.RangeSpace(),
    "null space": mbjax.NullSpace(),
    "kokkevis": mbjax.Kokkevis(),
    "proximal": mbjax.Proximal(),
}


def forward(model, cset, q, v, tau):
    """With gravity, springs and damping."""
    forces = mbjax.force_elements_contribution(model, q, v)
    return mbjax.constrained_forward_dynamics(model, cset, q, v, tau, forces)


compiled_forward = compiled(forward)
compiled_in_batch = compiled(jax.vmap(forward, in_axes=(None, None, 0, 0, 0)))


def _all_strategies(model, cset, q, v, tau):
    forces = mbjax.force_elements_contribution(model, q, v)

    def inside(model, cset, q, v, tau, forces):
        terms = calc_constrained_dynamics_terms(model, cset, q, v, tau, forces)
        return {name: calc_constrained_dynamics(model.topology, s, terms) for name, s in SOLVERS.items()}

    return for_worlds(inside, model, cset, q, v, tau, forces)


all_strategies = compiled(_all_strategies)


def loops() -> Mechanism:
    """Two spatial loops; trimmed: a planar one. In space stands A1, in test_constrained_inverse_dynamics.py."""
    return mechanisms.spring_leg() if WHOLE_RUN else mechanisms.four_bar()


SLIDER_CRANK = pytest.param("slider_crank", marks=pytest.mark.whole_run("one whose rod is a distance"))
OTHER_ANGLES = pytest.mark.whole_run("the same linkages at 0.8 rad")


def torques(case: Mechanism, seed: int = 0) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=case.model.num_velocities))


@pytest.mark.parametrize("theta", [0.8, *(pytest.param(x, marks=OTHER_ANGLES) for x in (2.9, -1.4))])
@pytest.mark.parametrize("linkage", ["four_bar", SLIDER_CRANK, "slider_crank_with_distance_rod"])
def test_closed_forms(linkage: str, theta: float) -> None:
    """One Lagrange equation in the driven angle (G47: with a distance as the rod)."""
    case = getattr(mechanisms, linkage)()
    name = linkage.replace("slider_crank_with_", "")
    positions, links = getattr(mechanisms, f"{name}_positions"), getattr(mechanisms, f"{name}_links")
    q, v, vdot = mechanisms.one_dof_state(positions, links, theta, 1.7, 0.6)
    result = compiled_forward(case.model, case.cset, q, v, jnp.zeros(case.model.num_velocities).at[0].set(0.6))
    assert relative_error(result.vdot, vdot) < 1e-10
    assert result.num_redundant == 0
    assert result.residual < 1e-11


def test_the_rod_pulls_as_newton_says() -> None:
    """The slider feels nothing but the rod: its force along x is mass times acceleration."""
    case = mechanisms.slider_crank_with_distance_rod()
    q, v, _ = mechanisms.one_dof_state(mechanisms.distance_rod_positions, mechanisms.distance_rod_links, 0.8, 1.7, 0.6)
    result = compiled_forward(case.model, case.cset, q, v, jnp.array([0.6, 0.0]))
    along_x = (q[1] - mechanisms.CRANK * jnp.cos(q[0])) / mechanisms.ROD
    np.testing.assert_allclose(mechanisms.SLIDER_MASS * result.vdot[1], along_x * result.force[0], rtol=1e-12)


def test_strategies_agree() -> None:
    """With every constraint given twice, and the second ones off: the program of `test_the_same_constraints_twice`."""
    case = loops()
    cset, n = doubled(case), len(case.cset.constraints)
    once = eqx.tree_at(lambda c: [x.active for x in c.constraints[n:]], cset, [jnp.zeros(())] * n)
    single = compiled_forward(case.model, case.cset, case.q, case.v, torques(case))
    for result in all_strategies(case.model, once, case.q, case.v, torques(case)).values():
        assert relative_error(result.vdot, single.vdot) < 1e-9
        assert relative_error(result.multipliers[: single.force.size], single.force) < 1e-9
        np.testing.assert_array_equal(result.multipliers[single.force.size :], 0.0)
        assert result.num_redundant == 0
        assert result.residual < 1e-9


@pytest.mark.whole_run("closed forms of linkages, a standing A1 whose torques give its motion, and rows as Pinocchio's")
def test_against_pinocchio() -> None:
    """A1 on four point contacts; Pinocchio's multipliers are in the feet's frames, so forces are compared in W."""
    case, tau = mechanisms.quadruped(), torques(mechanisms.quadruped())
    model = case.model
    robot = PinocchioRobot(str(ROBOTS / "a1_description/urdf/a1.urdf"), model, floating=True)
    theirs = robot.model
    q, T, Tdot_v = robot.convert(np.asarray(case.q), np.asarray(case.v))
    v = T @ np.asarray(case.v)
    contacts, contact_data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    aligned, point = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED, pin.ContactType.CONTACT_3D
    for foot in mechanisms.A1_FEET:
        frame = theirs.frames[theirs.getFrameId(foot, pin.FrameType.BODY)]
        contacts.append(pin.RigidConstraintModel(point, theirs, frame.parentJoint, frame.placement, aligned))
        contact_data.append(contacts[-1].createData())
    data = theirs.createData()
    pin.initConstraintDynamics(theirs, data, contacts, contact_data)
    v_ours = np.asarray(case.v)
    loss = np.asarray(model.parameters.joint_damping) * v_ours - friction_forces(model, v_ours)
    tau_pin = np.linalg.solve(T.T, np.asarray(tau) - loss)
    settings = pin.ProximalSettings(1e-14, 1e-14, 0.0, 1)
    vdot_pin = pin.constraintDynamics(theirs, data, q, v, tau_pin, contacts, contact_data, settings)
    result = compiled_forward(model, case.cset, case.q, case.v, tau)
    assert relative_error(result.vdot, np.linalg.solve(T, vdot_pin - Tdot_v)) < 1e-10
    assert relative_error(np.abs(result.force), np.abs(data.lambda_c)) < 1e-9


@pytest.mark.whole_run("energy over ten seconds of a four-bar")
def test_constraints_do_no_work() -> None:
    """The power of all other forces is the rate of the kinetic energy."""
    case = loops()
    tau = torques(case)
    result = compiled_forward(case.model, case.cset, case.q, case.v, tau)

    def powers(model, q, v, vdot):
        rate = jax.jvp(
            lambda q, v: mbjax.kinetic_energy(model, q, v), (q, v), (mbjax.velocity_to_qdot(model, q, v), vdot)
        )[1]
        forces = mbjax.force_elements_contribution(model, q, v)
        return rate, v @ (tau + mbjax.generalized_forces(model, q, forces))

    rate, given = compiled(powers)(case.model, case.q, case.v, result.vdot)
    np.testing.assert_allclose(rate, given, rtol=1e-9)


@pytest.mark.whole_run("worlds of motion under contacts, in test_contact_derivatives.py")
def test_many_worlds_are_as_alone() -> None:
    case = mechanisms.slider_crank()
    count = 300  # more than a chunk
    q = jax.vmap(mechanisms.slider_crank_positions)(jnp.linspace(-3.0, 3.0, count))
    v, tau = jnp.asarray(np.random.default_rng(1).normal(size=(2, count, 3)))
    together = compiled_in_batch(case.model, case.cset, q, v, tau)
    for i in (0, 137, count - 1):
        alone = compiled_forward(case.model, case.cset, q[i], v[i], tau[i])
        assert relative_error(together.vdot[i], alone.vdot) < 1e-11
        assert relative_error(together.force[i], alone.force) < 1e-11
    assert together.num_redundant.shape == (count,)


def doubled(case: Mechanism) -> mbjax.BoundConstraintSet:
    """Every constraint twice."""
    return mbjax.BoundConstraintSet(case.cset.constraints * 2, case.cset.topology)


def test_the_same_constraints_twice() -> None:
    """G41: the acceleration of the single set; the proximal strategy shares the force between equals."""
    case = loops()
    single = compiled_forward(case.model, case.cset, case.q, case.v, torques(case))
    results = all_strategies(case.model, doubled(case), case.q, case.v, torques(case))
    n = case.cset.num_rows
    for name, result in results.items():
        assert relative_error(result.vdot, single.vdot) < 1e-8, name
        assert relative_error(result.multipliers[:n] + result.multipliers[n:], single.force) < 1e-8, name
        assert result.num_redundant == n
        assert result.residual < 1e-8
    shared = results["proximal"].multipliers
    assert relative_error(shared[:n], shared[n:]) < 1e-6


def test_dead_centres() -> None:
    """G42: a four-bar with all links in line, where two rows become one, and a slider-crank at its dead centres."""
    case = mechanisms.slider_crank()
    for theta in (0.0, np.pi):
        q = mechanisms.slider_crank_positions(jnp.asarray(theta))
        result = compiled_forward(case.model, case.cset, q, jnp.array([1.0, -1.0, 0.0]), torques(case))
        assert np.all(np.isfinite(result.vdot))
        assert result.residual < 1e-9
    parallelogram = kite()
    for q in ([0.0, 0.0, 0.0], [0.3, 0.0, 0.3]):
        result = compiled_forward(
            parallelogram.model, parallelogram.cset, jnp.asarray(q), jnp.zeros(3), torques(parallelogram)
        )
        assert np.all(np.isfinite(result.vdot))
        assert np.all(np.isfinite(result.force))
        assert result.residual < 1e-9
        assert (result.num_redundant > 0) == (q == [0.0, 0.0, 0.0])


@functools.cache
def kite() -> Mechanism:
    """A parallelogram: in line, its two rows are one in x, since no velocity moves the tips along x."""
    plant = mechanisms.planar_plant(0.0)
    for name in ("crank", "coupler", "rocker"):
        mechanisms.link(plant, name, 0.5, [0.2, 0.0, 0.0])
    mechanisms.hinge(plant, "crank_pivot", "world", "crank")
    mechanisms.hinge(plant, "coupler_pivot", "crank", "coupler", [0.4, 0.0, 0.0])
    mechanisms.hinge(plant, "rocker_pivot", "world", "rocker", [0.5, 0.0, 0.0])
    loop = mbjax.ConstraintSet().add_loop_constraint(
        "rocker", "coupler", [0.4, 0.0, 0.0], [0.5, 0.0, 0.0], mechanisms.PLANAR, name="loop"
    )
    return mechanisms.mechanism(plant.finalize(), loop, [0.0, 0.0, 0.0])


@pytest.mark.whole_run("the same constraints twice, above")
def test_a_planar_loop_closed_in_space() -> None:
    """A spatial hinge instead of two rows: the other three hold anyway, and are noticed."""
    case = mechanisms.four_bar()
    axes = np.eye(6)[[0, 1, 3, 4, 5]]
    hinge = mbjax.ConstraintSet().add_loop_constraint(
        "rocker", "coupler", [mechanisms.ROCKER, 0.0, 0.0], [mechanisms.COUPLER, 0.0, 0.0], axes
    )
    planar = compiled_forward(case.model, case.cset, case.q, case.v, torques(case))
    spatial = compiled_forward(case.model, hinge.bind(case.model), case.q, case.v, torques(case))
    assert relative_error(spatial.vdot, planar.vdot) < 1e-9
    assert spatial.num_redundant == 3


@pytest.mark.whole_run("a loop that is off, below, and locked joints in plants, in test_constrained_simulation.py")
def test_switched_off_and_locked() -> None:
    """A constraint that is off has no force; locked joints stay, and the rest moves as if they were welded."""
    case = mechanisms.five_bar()
    tau = torques(case)
    off = compiled_forward(case.model, case.cset.with_active({"tip": False}), case.q, case.v, tau)
    free = compiled(lambda m, q, v, t: mbjax.forward_dynamics(m, q, v, t, mbjax.force_elements_contribution(m, q, v)))(
        case.model, case.q, case.v, tau
    )
    assert relative_error(off.vdot, free) < 1e-11
    np.testing.assert_array_equal(off.force, 0.0)
    assert off.num_redundant == 0
    locked = mbjax.lock_joint(case.model, "left_shoulder")
    held = compiled_forward(locked, case.cset, case.q, case.v.at[0].set(5.0), tau)
    assert held.vdot[case.model.joint("left_shoulder").v][0] == 0.0
    assert held.residual < 1e-11
    ball = case.cset.with_active({"tip": 1.0})
    still = compiled_forward(mbjax.lock_joint(locked, "left_elbow"), ball, case.q, 0.0 * case.v, tau)
    np.testing.assert_allclose(still.vdot, 0.0, atol=1e-11)  # the rest of the loop cannot move


def test_no_constraints() -> None:
    case = mechanisms.four_bar()
    empty = mbjax.ConstraintSet().bind(case.model)
    result = compiled_forward(case.model, empty, case.q, case.v, torques(case))
    off = compiled_forward(case.model, case.cset.with_active({"loop": 0.0}), case.q, case.v, torques(case))
    assert relative_error(result.vdot, off.vdot) < 1e-12
    assert result.force.shape == (0,)
    assert result.residual == 0.0


def test_new_numbers_run_the_same_program() -> None:
    case = mechanisms.four_bar()
    before = compiled_forward._cache_size()
    compiled_forward(case.model, case.cset, case.q, case.v, torques(case))
    first = compiled_forward._cache_size()
    heavier = mbjax.set_masses(case.model, 2.0 * case.model.parameters.body_mass)
    compiled_forward(heavier, case.cset.with_active({"loop": 0.0}), case.q, case.v, torques(case))
    assert compiled_forward._cache_size() == first
    assert first <= before + 1


def test_systems_of_whole_numbers_and_of_wrong_shapes() -> None:
    result = mbjax.solve_constrained_system(np.eye(3, dtype=int), [[1, 1, 1]], np.ones(3, int), [0])
    np.testing.assert_allclose(result.vdot, 0.0, atol=1e-14)
    np.testing.assert_allclose(result.force, [-1.0])
    for c, gamma, message in (
        (np.ones((2, 1)), np.zeros(1), "c must be (nv,) and gamma (nc,), got shapes (2, 1) and (1,)"),
        (1.0, 0.0, "c must be (nv,) and gamma (nc,), got shapes () and ()"),
        (np.ones(2), "a", "gamma must be real numbers, got 'a'"),
    ):
        with pytest.raises(mbjax.ModelError, match=re.escape(message)):
            mbjax.solve_constrained_system(np.eye(2), np.ones((1, 2)), c, gamma)


def test_wrong_solvers_and_forces() -> None:
    """Each message names what the user gave, also in jit, where an array is traced."""
    case = mechanisms.four_bar()
    state = case.model, case.cset, case.q, case.v
    forward, inverse = mbjax.constrained_forward_dynamics, mbjax.constrained_inverse_dynamics
    for solver, came in ((mbjax.NullSpace, "the class NullSpace"), ("Direct", "str 'Direct'")):
        message = rf"solver must be an instance of a strategy, like mbjax\.Direct\(\), got {came}"
        for call in (
            lambda solver: forward(*state, case.v, solver=solver),
            lambda solver: inverse(*state, case.v, solver=solver),
            lambda solver: mbjax.constraint_impulses(*state, solver=solver),
            lambda solver: mbjax.solve_constrained_system(np.eye(2), np.eye(2), np.ones(2), np.ones(2), solver),
        ):
            with pytest.raises(mbjax.ModelError, match=message):
                call(solver)
    for call in (
        lambda forces: forward(*state, case.v, forces),
        lambda forces: forward(*state, case.v, forces, force_elements=True),
        lambda forces: inverse(*state, case.v, forces),
        lambda forces: mbjax.inverse_dynamics_with_constraints(*state, case.v, np.zeros(2), forces),
        lambda forces: mbjax.constrained_system_variables(*state, case.v, forces),
    ):
        for run in (call, jax.jit(call)):
            with pytest.raises(mbjax.ModelError, match=r"must be mbjax\.MultibodyForces.*got an array of shape \(3,\)"):
                run(case.v)
        with pytest.raises(mbjax.ModelError, match=r"forces\.generalized has shape \(2,\), the model needs \(3,\)"):
            call(mbjax.MultibodyForces(jnp.zeros(2), jnp.zeros((4, 6))))
