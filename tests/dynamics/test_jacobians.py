"""Derivatives in closed form: those of JAX and Pinocchio, for every joint, force, lock and batch."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pinocchio
import pytest

import mbjax
from mbjax.dynamics import forward_dynamics_derivatives, inverse_dynamics_derivatives
from tests.gradients.checks import WHOLE_RUN, central_differences, check_gradients, compiled, one_by_one
from tests.models import ALL_KINDS, ROBOTS, load_robot, random_tree, relative_error

PANDA = "panda_description/urdf/panda.urdf"
CLOSE = 1e-12


@functools.cache
def with_elements() -> mbjax.MultibodyModel:
    """A branched tree with joints whose directions move, a spring between bodies, and weightless parts."""
    plant = mbjax.MultibodyPlant()
    floating = plant.add_model_instance("weightless")
    for name, instance in (("a", None), ("b", floating), ("c", None), ("free", floating)):
        inertia = mbjax.SpatialInertia.solid_box_with_mass(1.3, 0.2, 0.3, 0.4)
        plant.add_rigid_body(name, inertia, *([] if instance is None else ["weightless"]))
    plant.add_joint(mbjax.UniversalJoint("u", "world", "a", X_PF=[0.1, 0.2, 0.3], X_BM=[0.0, 0.3, 0.1], damping=0.3))
    plant.add_joint(mbjax.PlanarJoint("p", "a", "b", X_PF=[0.4, 0.0, 0.1]))
    plant.add_joint(mbjax.ScrewJoint("s", "a", "c", axis=[1, 2, 3], screw_pitch=0.4, friction=0.2))
    plant.add_force_element(mbjax.LinearSpringDamper("b", [0.1, 0.0, 0.2], "free", [0.0, 0.1, 0.0], 0.5, 30.0, 2.0))
    plant.set_gravity_enabled("weightless", False)
    return plant.finalize()


MODELS = {"every joint": lambda: random_tree(11, ALL_KINDS).model, "elements": with_elements}


@functools.cache
def sample(name: str) -> tuple:
    """q, v, vdot or tau, and forces held."""
    model, rng = MODELS[name](), np.random.default_rng(5)
    state = mbjax.random_state_within_limits(model, jax.random.key(2))
    x, tau = (jnp.asarray(rng.normal(size=model.num_velocities)) for _ in range(2))
    return state.q, state.v, x, mbjax.MultibodyForces(tau, jnp.asarray(rng.normal(size=(model.num_bodies, 6))))


@functools.partial(compiled, static_argnums=0)
def by_jax(dynamics, model, q, v, x, held):
    """The value and what JAX says its derivatives are, by the numbers of q; `jacfwd` has them from closed forms too."""

    def value(q: Any, v: Any, x: Any) -> Any:
        return dynamics(model, q, v, x, held, force_elements=True)

    return value(q, v, x), *one_by_one(value, q, v, x)


def under_all_forces(derivatives, model, q, v, x, held):
    """By the numbers of q, as JAX has it."""
    return derivatives(model, q, v, x, held, force_elements=True, wrt="qdot")


@pytest.mark.whole_run("springs at Drake's ports in tests/simulation, and Pinocchio's rnea, below")
@pytest.mark.parametrize("name", ["elements", "every joint"])
def test_force_elements_in_one_pass(name: str) -> None:
    """Their forces act as those one passes; where a joint is locked, those at its velocity zero.

    Whole run: without other forces too, as in the Jacobians below.
    """
    model, (q, v, x, held) = MODELS[name](), sample(name)
    model = mbjax.lock_joint(model, model.joint_names[0])

    @compiled
    def errors(model, q, v, x, held):
        given = held + mbjax.force_elements_contribution(model, q, v)
        still = jnp.where(model.parameters.velocity_locked > 0.5, 0.0, v)
        given_still = held + mbjax.force_elements_contribution(model, q, still)
        tau = mbjax.inverse_dynamics(model, q, v, x, held, force_elements=True)
        vdot = mbjax.forward_dynamics(model, q, v, x, held, force_elements=True)
        expected = mbjax.inverse_dynamics(model, q, v, x, given), mbjax.forward_dynamics(model, q, v, x, given_still)
        if not WHOLE_RUN:
            return (tau, vdot), expected
        alone = mbjax.inverse_dynamics(model, q, v, x, force_elements=True)
        elements = mbjax.force_elements_contribution(model, q, v)
        return (tau, vdot, alone), (*expected, mbjax.inverse_dynamics(model, q, v, x, elements))

    got, expected = errors(model, q, v, x, held)
    for (ours, theirs), allowed in zip(zip(got, expected, strict=True), (1e-14, 1e-12, 1e-14), strict=False):
        assert relative_error(ours, theirs) < allowed


closed_form = compiled(under_all_forces, static_argnums=0)


INVERSE = mbjax.inverse_dynamics, inverse_dynamics_derivatives
FORWARD = mbjax.forward_dynamics, forward_dynamics_derivatives


@pytest.mark.parametrize(
    ("name", "functions"),
    [
        pytest.param("every joint", INVERSE, marks=pytest.mark.whole_run("derivatives as Pinocchio's, below")),
        pytest.param("every joint", FORWARD, marks=pytest.mark.whole_run("derivatives as Pinocchio's, below")),
        pytest.param("elements", FORWARD, marks=pytest.mark.whole_run("derivatives as Pinocchio's, below")),
    ],
)
def test_equal_those_of_jax(name: str, functions: tuple) -> None:
    model, (dynamics, derivatives) = MODELS[name](), functions
    expected, got = by_jax(dynamics, model, *sample(name)), closed_form(derivatives, model, *sample(name))
    for ours, theirs in zip(jax.tree.leaves(got), expected, strict=True):
        assert relative_error(ours, theirs) < CLOSE


@pytest.mark.whole_run("derivatives as Pinocchio's, below, and locked joints in plants in tests/constraints")
def test_locked_joints_do_not_move() -> None:
    """Trimmed: derivatives are those of differences, whose program is small; whole run: those of JAX."""
    model, (dynamics, derivatives) = mbjax.lock_joint(with_elements(), "u"), FORWARD
    given, ends = sample("elements"), np.cumsum([x.size for x in sample("elements")[:3]])
    got = closed_form(derivatives, model, *given)
    if WHOLE_RUN:
        expected, allowed = by_jax(dynamics, model, *given), CLOSE
    else:

        def value(numbers: jax.Array) -> jax.Array:
            return dynamics(model, *jnp.split(numbers, ends[:-1]), given[3], force_elements=True)

        numbers, allowed = jnp.concatenate(given[:3]), 1e-7
        slopes, at = compiled(lambda x: (central_differences(value, x), value(x)))(numbers)
        expected = at, *np.split(np.asarray(slopes), ends[:-1], axis=1)
    for ours, theirs in zip(jax.tree.leaves(got), expected, strict=True):
        assert relative_error(ours, theirs) < allowed
    held = model.joint("u").v
    assert not np.any(got.dtau[held])
    assert not np.any(got.dtau[:, held])
    assert not np.any(got.dv[:, held])


@pytest.mark.whole_run("Jacobians equal those of Pinocchio")
def test_by_the_tangent_of_q() -> None:
    """Along q̇ = N(q) v; and M times the derivative by tau is the identity."""
    model, (q, v, x, held) = with_elements(), sample("elements")
    by_numbers = closed_form(forward_dynamics_derivatives, model, q, v, x, held)

    @compiled
    def of_tangent(model, q, v, x, held):
        got = forward_dynamics_derivatives(model, q, v, x, held, force_elements=True)
        return got, mbjax.velocity_to_qdot_matrix(model, q), mbjax.mass_matrix(model, q)

    got, N, M = of_tangent(model, q, v, x, held)
    assert relative_error(got.dq, by_numbers.dq @ N) < CLOSE
    assert relative_error(M @ got.dtau, np.eye(v.size)) < CLOSE


@pytest.mark.whole_run("one world as Pinocchio's, below; what worlds share, in tests/execution/test_few_worlds.py")
@pytest.mark.parametrize("shared", ["q", "v"])
def test_worlds_may_share_arguments(shared: str) -> None:
    model, (q, v, x, held) = with_elements(), sample("elements")
    worlds = 3
    scales = 1.0 + 0.1 * jnp.arange(float(worlds))[:, None]
    q_axis, v_axis = (None, 0) if shared == "q" else (0, None)
    in_worlds = q if q_axis is None else q * scales, v if v_axis is None else v * scales, x * scales
    one = functools.partial(under_all_forces, forward_dynamics_derivatives)
    together = compiled(jax.vmap(one, (None, q_axis, v_axis, 0, None)))(model, *in_worlds, held)
    last = (y if axis is None else y[-1] for y, axis in zip(in_worlds, (q_axis, v_axis, 0), strict=True))
    alone = closed_form(forward_dynamics_derivatives, model, *last, held)
    for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
        assert relative_error(a[-1], b) < CLOSE


@pytest.mark.whole_run("the columns themselves are compared")
def test_can_be_differentiated() -> None:
    """Second derivatives: forward = reverse = differences, by q, v, tau, the masses and a wrench held."""
    model = random_tree(4, ("universal", "revolute")).model
    rng, nv = np.random.default_rng(1), model.num_velocities
    q, weights = mbjax.random_state_within_limits(model, jax.random.key(2)).q, rng.normal(size=(3, nv, nv))
    y = {"dq": np.zeros(nv), "v": rng.normal(size=nv), "tau": rng.normal(size=nv), "F": rng.normal(size=(4, 6))}

    def number(y: dict) -> Any:
        moved = mbjax.integrate_configuration(model, q, y["dq"])
        heavier = mbjax.set_masses(model, y["masses"])
        held = mbjax.MultibodyForces(jnp.zeros(nv), y["F"])
        d = forward_dynamics_derivatives(heavier, moved, y["v"], y["tau"], held)
        return jnp.sum(weights * jnp.stack([d.dq, d.dv, d.dtau]))

    check_gradients(number, jax.tree.map(jnp.asarray, {**y, "masses": model.parameters.body_mass}))


def test_equal_those_of_pinocchio() -> None:
    """Panda under gravity, without the damping Pinocchio leaves out."""
    model = load_robot(PANDA, "fixed")
    zero = jnp.zeros(model.num_velocities)
    model = eqx.tree_at(lambda m: (m.parameters.joint_damping, m.parameters.joint_friction), model, (zero, zero))
    theirs = pinocchio.buildModelFromUrdf(str(ROBOTS / PANDA))
    data = theirs.createData()
    order = np.array([model.joint(name).v_start for name in list(theirs.names)[1:]])
    state = mbjax.random_state_within_limits(model, jax.random.key(7))
    x = np.random.default_rng(7).normal(size=9)
    q, v, permuted = (np.asarray(y)[order] for y in (state.q, state.v, x))
    required = compiled(functools.partial(mbjax.inverse_dynamics, force_elements=True))(model, state.q, state.v, x)
    assert relative_error(np.asarray(required)[order], pinocchio.rnea(theirs, data, q, v, permuted)) < 1e-13
    for ours, evaluate in (
        (inverse_dynamics_derivatives, pinocchio.computeRNEADerivatives),
        (forward_dynamics_derivatives, pinocchio.computeABADerivatives),
    ):
        got = compiled(functools.partial(ours, force_elements=True))(model, state.q, state.v, x)
        for a, b in zip(
            (got.dq, got.dv, jax.tree.leaves(got)[-1]), evaluate(theirs, data, q, v, permuted), strict=True
        ):
            b = np.triu(b) + np.triu(b, 1).T if a is jax.tree.leaves(got)[-1] else b  # of M the upper half
            assert relative_error(np.asarray(a)[np.ix_(order, order)], b) < 1e-10


def test_nothing_that_moves() -> None:
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("fixed", mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.2))
    plant.weld_frames("world", "fixed")
    model, none = plant.finalize(), np.zeros(0)
    assert forward_dynamics_derivatives(model, none, none, none).dq.shape == (0, 0)
    assert inverse_dynamics_derivatives(model, none, none, none).dq.shape == (0, 0)


def test_an_unknown_coordinate_is_refused() -> None:
    q, v, x, _ = sample("elements")
    with pytest.raises(mbjax.ModelError, match=r"wrt must be 'v' .* 'qdot' .*, got 'q'"):
        forward_dynamics_derivatives(with_elements(), q, v, x, wrt="q")  # pyright: ignore[reportArgumentType]
