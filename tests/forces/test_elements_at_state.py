"""Forces passed on as `force_elements_contribution` returned them: the same results as by `force_elements`."""

import jax
import jax.numpy as jnp
import pytest

import mbjax
from tests.constraints.walkers import contacts_of, walker
from tests.dynamics.test_jacobians import with_elements
from tests.gradients.checks import WHOLE_RUN
from tests.models import relative_error

elements = mbjax.force_elements_contribution


MODEL = mbjax.load("acrobot")  # with damping


def random_motion(model: mbjax.MultibodyModel, seed: int) -> tuple[jax.Array, jax.Array]:
    state = mbjax.random_state(model, jax.random.key(seed))
    return state.q, state.v


def as_they_are(forces: mbjax.MultibodyForces) -> mbjax.MultibodyForces:
    return forces


def copied(forces: mbjax.MultibodyForces) -> mbjax.MultibodyForces:
    return jax.tree.map(lambda x: x, forces)


@pytest.mark.whole_run("other forces act as given")
@pytest.mark.parametrize("dynamics", [mbjax.forward_dynamics, mbjax.inverse_dynamics])
def test_values_and_gradients_are_those_of_copied_forces(dynamics) -> None:
    q, v = random_motion(MODEL, 1)
    weights = jnp.cos(jnp.arange(MODEL.num_velocities * 1.0))

    def total(passed, q, v):
        return weights @ dynamics(MODEL, q, v, weights, forces=passed(elements(MODEL, q, v)))

    @jax.jit
    def both(q, v):
        return [jax.value_and_grad(total, (1, 2))(passed, q, v) for passed in (as_they_are, copied)]

    found, expected = map(jax.tree.leaves, both(q, v))
    assert max(relative_error(a, b) for a, b in zip(found, expected, strict=True)) < 1e-12


@pytest.mark.whole_run("other forces act as given, below, and motion under contacts in tests/constraints")
def test_under_constraints() -> None:
    """Where `force_elements` of contacts alone has closed-form Jacobians, which forces that are copied have not."""
    model = walker()
    cset, (q, v) = contacts_of(model), random_motion(model, 4)

    @jax.jit
    def both(q, v):
        def vdot(passed, q, v):
            return mbjax.constrained_forward_dynamics(model, cset, q, v, 0.1 * v, passed(elements(model, q, v))).vdot

        return [jax.jvp(lambda q, v, p=p: vdot(p, q, v), (q, v), (0.1 * q, v)) for p in (as_they_are, copied)]

    found, expected = both(q, v)
    assert max(map(relative_error, found, expected)) < 1e-9


def operations(function, *args) -> float:
    analysis = jax.jit(jax.vmap(function)).lower(*args).compile().cost_analysis()
    assert analysis is not None
    return analysis["flops"]


@pytest.mark.whole_run("other forces act as given, below")
def test_they_cost_as_much_as_force_elements() -> None:
    states = jax.vmap(lambda key: mbjax.random_state(MODEL, key))(jax.random.split(jax.random.key(0), 3))
    q, v, dynamics = states.q, states.v, mbjax.forward_dynamics

    natural = operations(lambda q, v: dynamics(MODEL, q, v, v, elements(MODEL, q, v)), q, v)
    keyword = operations(lambda q, v: dynamics(MODEL, q, v, v, force_elements=True), q, v)
    of_copies = operations(lambda q, v: dynamics(MODEL, q, v, v, copied(elements(MODEL, q, v))), q, v)
    assert natural == keyword < of_copies


def test_other_forces_act_as_given() -> None:
    """Forces of another state or held by `stop_gradient`; whole run: beside `force_elements`, with others added."""
    q, v = random_motion(MODEL, 2)
    push = mbjax.MultibodyForces(v, jnp.ones((MODEL.num_bodies, 6)))

    def torques(q, forces, **also):
        return mbjax.inverse_dynamics(MODEL, q, v, v, forces, **also)

    def slope(q, change):
        return jax.jvp(lambda q: torques(q, change(elements(MODEL, q, v))), (q,), (jnp.ones_like(q),))[1]

    @jax.jit
    def all_of_them(q):
        here, elsewhere = elements(MODEL, q, v), elements(MODEL, q, 2.0 * v)
        added = [lambda x: torques(q, x(here), force_elements=True), lambda x: torques(q, x(here) + push)]
        ways = [lambda x: torques(q, x(elsewhere)), *(added if WHOLE_RUN else ())]
        found = [[way(x) for way in ways] for x in (as_they_are, copied)]
        return torques(q, here), found, [slope(q, x) for x in (as_they_are, copied, jax.lax.stop_gradient)]

    plain, (ours, theirs), (moving, copies, held) = all_of_them(q)
    assert max(relative_error(*x) for x in zip(ours, theirs, strict=True)) < 1e-12
    assert min(relative_error(x, plain) for x in ours) > 1e-3
    assert relative_error(moving, copies) < 1e-12 < 1e-3 < relative_error(moving, held)


@pytest.mark.whole_run("other forces act as given, above")
def test_locked_joints_with_springs() -> None:
    """Springs and dampers read a locked joint's velocity as it is given: those forces are not computed anew."""
    model = mbjax.lock_joint(with_elements(), "p")
    q, v = random_motion(model, 3)

    @jax.jit
    def both(q, v):
        return [mbjax.forward_dynamics(model, q, v, v, x(elements(model, q, v))) for x in (as_they_are, copied)]

    assert relative_error(*both(q, v)) < 1e-12
