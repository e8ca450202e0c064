"""The continuous plant integrated by diffrax: conservation, Drake's simulator, gradients, the limit of steps."""

import functools

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydrake.multibody.parsing import Parser as DrakeParser
from pydrake.multibody.plant import MultibodyPlant as DrakePlant
from pydrake.systems.analysis import Simulator

import mbjax
from mbjax import reference_models
from mbjax.geometry import Geometry, HalfSpace, ProximityProperties, Sphere
from tests.models import make_twin, relative_error

TIGHT = diffrax.PIDController(rtol=1e-10, atol=1e-10)


@functools.cache
def acrobot() -> mbjax.MultibodyModel:
    """Without damping."""
    return without_damping(mbjax.load(reference_models.path("acrobot"), time_step=0.01))


def without_damping(model: mbjax.MultibodyModel) -> mbjax.MultibodyModel:
    zeros = jnp.zeros(model.num_velocities)
    return eqx.tree_at(lambda m: (m.parameters.joint_damping, m.parameters.joint_friction), model, (zeros, zeros))


@jax.jit
def run(model: mbjax.MultibodyModel, state: mbjax.State, times: jax.Array) -> mbjax.Trajectory:
    return mbjax.simulate(model, state, save_at=times, stepsize_controller=TIGHT)


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, 0, 0))
def energy(model: mbjax.MultibodyModel, q: jax.Array, v: jax.Array) -> jax.Array:
    return mbjax.kinetic_energy(model, q, v) + mbjax.potential_energy(model, q)


@pytest.mark.whole_run("Drake's simulator, below, and the rate of energy in tests/dynamics/test_identities.py")
@pytest.mark.parametrize("name", ["acrobot", "quadruped"])
def test_energy_of_passive_systems_stays(name: str) -> None:
    """An acrobot that tumbles and a quadruped that falls and spins, without damping: 1e-6 over 2 s."""
    model = acrobot() if name == "acrobot" else without_damping(mbjax.load(reference_models.path(name)))
    state = mbjax.random_state(model, jax.random.key(3))
    trajectory = run(model, state, jnp.linspace(0.0, 2.0, 21))
    energies = np.asarray(energy(model, trajectory.q, trajectory.v))
    drift = np.abs(energies - energies[0]).max() / np.abs(energies[0])
    print(f"{name}: relative energy drift {drift:.1e}")
    assert drift < 1e-6
    assert np.abs(trajectory.v[-1] - trajectory.v[0]).max() > 0.1
    if name == "quadruped":
        lengths = np.linalg.norm(trajectory.q[:, :4], axis=1)
        np.testing.assert_allclose(lengths, 1.0, rtol=0, atol=1e-14)
        falls = trajectory.q[:, 4:7]  # the quadruped's own origin moves about its centre of mass, which is ballistic
        com = jax.jit(jax.vmap(functools.partial(mbjax.center_of_mass_position_in_world, model)))(trajectory.q)
        t = np.asarray(trajectory.time)
        v0 = jax.jit(mbjax.center_of_mass_translational_velocity_in_world)(model, state.q, state.v)
        expected = com[0] + t[:, None] * v0 + 0.5 * t[:, None] ** 2 * np.array([0.0, 0.0, -9.81])
        np.testing.assert_allclose(com, expected, rtol=0, atol=1e-7)
        assert np.abs(falls - com).max() > 1e-3


def test_equals_drakes_simulator() -> None:
    """The damped arm for 1 s from rest under gravity and a constant torque, Drake at accuracy 1e-10."""
    model = mbjax.load(reference_models.path("arm"))
    theirs = DrakePlant(0.0)
    DrakeParser(theirs).AddModels(str(reference_models.path("arm")))
    theirs.Finalize()
    twin = make_twin(model, theirs)
    q, torque = np.array([0.3, 0.4, -0.2, 0.5, 0.1, -0.3, 0.2]), np.array([5.0, -8.0, 3.0, 2.0, 1.0, -0.5, 0.3])
    context = twin.context(q, np.zeros(7))
    theirs.get_actuation_input_port(theirs.GetModelInstanceByName("arm")).FixValue(context, torque)
    simulator = Simulator(theirs, context)
    simulator.get_mutable_integrator().set_target_accuracy(1e-10)
    simulator.get_mutable_integrator().set_maximum_step_size(0.01)
    simulator.AdvanceTo(1.0)
    start = mbjax.State(jnp.asarray(q), jnp.zeros(7), jnp.zeros(()))
    simulate = jax.jit(
        lambda s, u: mbjax.simulate(model, s, u, save_at=jnp.array([0.0, 1.0]), stepsize_controller=TIGHT)
    )
    trajectory = simulate(start, jnp.asarray(torque))
    errors = [
        relative_error(np.asarray(trajectory.q[-1])[twin.to_drake_q], theirs.GetPositions(context)),
        relative_error(np.asarray(trajectory.v[-1])[twin.to_drake_v], theirs.GetVelocities(context)),
    ]
    print("arm after 1 s, q and v against Drake:", errors)
    assert max(errors) < 1e-6


@pytest.mark.whole_run("a bounce has the derivatives of its closed form, in test_contact_integrator.py")
def test_gradients_through_the_integrator() -> None:
    """For the state and every mass: forward mode over given steps equals differences, and reverse mode (the default
    adjoint) over chosen steps equals both.

    Chosen steps are no ground for more digits than their tolerance: the backward pass computes each step again, and
    with it, from errors rounded otherwise, the length of the step.
    """
    model = acrobot()
    times = jnp.array([0.0, 0.5])
    given = diffrax.StepTo(jnp.linspace(0.0, 0.5, 129))

    def final(
        flat: jax.Array, steps: diffrax.AbstractStepSizeController, adjoint: diffrax.AbstractAdjoint | None
    ) -> jax.Array:
        x = unravel(flat)
        changed = eqx.tree_at(lambda m: m.parameters.body_mass, model, x["mass"])
        state = mbjax.State(x["q"], x["v"], jnp.zeros(()))
        end = mbjax.simulate(changed, state, save_at=times, stepsize_controller=steps, adjoint=adjoint, max_steps=1000)
        return jnp.sum(end.final_state.q * jnp.array([1.0, -2.0])) + end.final_state.v[1]

    x = {"q": jnp.array([0.8, -0.5]), "v": jnp.array([0.3, 1.0]), "mass": model.parameters.body_mass}
    flat, unravel = jax.flatten_util.ravel_pytree(x)
    forward = jax.jit(jax.jacfwd(lambda flat: final(flat, given, diffrax.ForwardMode())))(flat)
    reverse = jax.jit(jax.grad(lambda flat: final(flat, TIGHT, None)))(flat)
    h = 1e-3
    points = flat + h * np.array([1.0, -1.0, 2.0, -2.0])[:, None, None] * np.eye(flat.size)
    value = jax.jit(jax.vmap(lambda flat: final(flat, given, None)))
    values = np.asarray(value(points.reshape(-1, flat.size))).reshape(4, -1)
    differences = np.array([8.0, -8.0, -1.0, 1.0]) @ values / (12.0 * h)
    print("beside differences", relative_error(forward, differences), "modes", relative_error(reverse, forward))
    assert relative_error(forward, differences) < 1e-9
    assert relative_error(reverse, forward) < 1e-8


@pytest.mark.whole_run("simulations beside Drake's")
def test_rollouts_converge_to_the_simulation_with_the_time_step() -> None:
    """First order: half the step, half the error."""
    model, T = acrobot(), 0.4
    start = mbjax.State(jnp.array([0.8, -0.5]), jnp.array([0.3, 1.0]), jnp.zeros(()))
    exact = run(model, start, jnp.array([0.0, T])).final_state
    step = jax.jit(lambda model, state: mbjax.step(model, state)[0])
    errors = []
    for n in (50, 100, 200, 400):
        model, state = mbjax.set_time_step(model, T / n), start
        for _ in range(n):
            state = step(model, state)
        errors.append(float(jnp.abs(jnp.concatenate([state.q - exact.q, state.v - exact.v])).max()))
    ratios = np.array(errors[:-1]) / np.array(errors[1:])
    print("errors", errors, "ratios", ratios)
    assert step._cache_size() == 1
    np.testing.assert_allclose(ratios[1:], 2.0, rtol=0.1)


@pytest.mark.whole_run("inputs by a policy in test_rollout_policy.py, and Drake's simulator, above")
def test_feedback_is_seen_along_the_way() -> None:
    """Inputs from a function of the state: a spring made of actuation swings like one built in."""
    plant = mbjax.MultibodyPlant()
    plant.set_gravity([0.0, 0.0, 0.0])
    plant.add_rigid_body("b", mbjax.SpatialInertia.solid_cube_with_mass(2.0, 0.1))
    plant.add_joint(mbjax.PrismaticJoint("slide", "world", "b", axis=[1, 0, 0]))
    plant.add_joint_actuator("motor", "slide")
    model = plant.finalize()
    times = jnp.linspace(0.0, 1.0, 5)
    start = mbjax.State(jnp.ones(1), jnp.zeros(1), jnp.zeros(()))
    got = mbjax.simulate(model, start, lambda state: -8.0 * state.q, save_at=times, stepsize_controller=TIGHT)
    np.testing.assert_allclose(got.q[:, 0], np.cos(2.0 * times), rtol=0, atol=1e-8)
    np.testing.assert_allclose(got.net_actuation[:, 0], -8.0 * got.q[:-1, 0], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"save_at": 0.5}, "save_at must be a list"),
        ({"save_at": np.zeros((2, 2))}, "save_at must be a list"),
        ({"save_at": np.zeros(0)}, "save_at must be a list"),
        ({"save_at": [0.0, 0.1, 0.05]}, r"save_at must rise, but entries 1 and 2 are 0\.1 and 0\.05 s"),
        ({"save_at": [0.0, np.nan]}, "save_at must be finite times in s, but entry 1 is nan"),
        ({"save_at": [0.0, np.inf]}, "save_at must be finite"),
        ({"solver": mbjax.ContactIntegrator}, "solver must be an object .*got the class ContactIntegrator"),
        ({"adjoint": "forward"}, r"adjoint must be an object such as diffrax\.ForwardMode\(\)"),
        ({"max_steps": 0}, "max_steps must be a whole number of at least 1"),
        ({"first_step": -1.0}, "first_step must be a finite number > 0 in s"),
    ],
)
def test_misuse_is_refused_in_words(options: dict, words: str) -> None:
    """Times by both kinds of solvers."""
    state = mbjax.default_state(acrobot())
    for solver in (None, mbjax.ContactIntegrator()) if "save_at" in options else (None,):
        with pytest.raises(mbjax.ModelError, match=words):
            mbjax.simulate(acrobot(), state, **({"save_at": [0.0, 0.1], "solver": solver} | options))


def test_two_rigid_surfaces_of_a_discrete_model_have_no_continuous_force() -> None:
    plant, rigid = mbjax.MultibodyPlant(0.01), ProximityProperties(0.5, 0.5, point_stiffness=np.inf)
    plant.add_rigid_body("ball", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), rigid)
    plant.register_collision_geometry("ball", Geometry("round", Sphere(0.1)), rigid)
    model = plant.finalize()
    state = mbjax.default_state(model)
    for call in (
        lambda: mbjax.time_derivatives(model, state),
        lambda: mbjax.implicit_time_derivatives_residual(model, state, jnp.zeros(7), jnp.zeros(6)),
        lambda: mbjax.simulate(model, state, save_at=[0.0, 0.1]),
    ):
        with pytest.raises(mbjax.ModelError, match=r"'ground' and 'round'.*point_stiffness=inf.*step or rollout"):
            call()


@pytest.mark.whole_run("one compilation from the first state on, in g54 of tests/gradients, in the quick run")
def test_outside_jit_a_second_call_compiles_nothing() -> None:
    """With another state, actuation and first step. That steps are too few is said in words."""
    compiled: list[float] = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda name, seconds, **_: compiled.append(seconds) if name.endswith("backend_compile_duration") else None
    )
    model, times = acrobot(), jnp.array([0.0, 0.1])
    states = [mbjax.State(jnp.array([0.8 - k, -0.5]), jnp.array([0.3, 1.0]), jnp.zeros(())) for k in range(2)]
    actuation, few = jnp.ones(model.num_actuators), 50
    ends = []
    for state, first_step in zip(states, (1e-3, 2e-3), strict=True):
        before = len(compiled)
        way = mbjax.simulate(model, state, actuation, save_at=times, max_steps=few, first_step=first_step)
        ends.append(way.final_state.q)
        count = len(compiled) - before
        print("programs compiled:", count)
    assert compiled
    assert count == 0
    assert not np.allclose(ends[0], ends[1])
    with pytest.raises(RuntimeError, match="Try increasing `max_steps`") as raised:
        mbjax.simulate(model, states[0], actuation, save_at=100.0 * times, max_steps=few, first_step=1e-3)
    assert "INTERNAL" not in str(raised.value)  # of XLA, when nobody reads the message out of it
