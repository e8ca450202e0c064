"""Plans that make contact: smoothed at first, sharp at last; and pictures of a plan beside its rollout."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import trajectory_optimization as to
from mbjax.geometry import Sphere
from mbjax.trajectory_optimization.solve import is_through_sharp_contact
from mbjax.visualization import plot_search
from tests.visualization.pages import read_record

STEPS, MARK = 12, 0.3


@pytest.fixture(scope="module")
def model() -> mbjax.MultibodyModel:
    """A driven ball and a damped one on a line, 5 cm apart."""
    plant = mbjax.MultibodyPlant(0.05, discrete_contact_approximation="lagged", contact_smoothing_length=0.03)
    for name, damping in (("finger", 2.0), ("puck", 5.0)):
        plant.add_rigid_body(name, mbjax.SpatialInertia.solid_sphere_with_mass(0.5, 0.05))
        plant.add_joint(mbjax.PrismaticJoint(f"{name}_x", "world", name, axis=(1.0, 0.0, 0.0), damping=damping))
        here = mbjax.RigidTransform.identity()
        plant.register_collision_geometry(name, here, Sphere(0.05), name, mbjax.ProximityProperties())
    plant.add_joint_actuator("push", "finger_x")
    return plant.finalize()


def push(model: mbjax.MultibodyModel, steps: int = STEPS) -> to.Problem:
    """The puck is to rest at a mark."""
    start = mbjax.State(jnp.array([-0.15, 0.0]), jnp.zeros(2))
    end = [to.JointGoal([0.0, MARK], weight=jnp.array([0.0, 30.0])), to.VelocityGoal(weight=jnp.array([0.0, 1.0]))]
    return to.Problem(model, start, steps, to.Effort(0.02), end)


@pytest.mark.whole_run("what is refused, below; plans without contact in test_solve")
def test_smoothing_that_ends_finds_a_contact_that_is_real(model, tmp_path) -> None:
    problem = push(model)
    plan = to.solve_through_contact(problem, smoothing_lengths=(0.03, 0.01, 0.001, 0.0))
    assert plan.report.converged, str(plan.report)
    np.testing.assert_allclose(plan.states.q[-1, 1], MARK, atol=0.02)
    sharp = mbjax.set_contact_smoothing_length(model, 0.0)
    rollout = mbjax.rollout(sharp, problem.start, plan.efforts)
    np.testing.assert_allclose(rollout.q, plan.states.q, atol=1e-9)
    touching = rollout.q[:, 1] - rollout.q[:, 0] < 0.1
    assert 0 < jnp.sum(touching) < STEPS  # the finger comes, pushes, and may let go
    still = rollout.q[:, 1][: int(jnp.argmax(touching))]
    np.testing.assert_allclose(still, 0.0, atol=1e-12)  # nothing pushes from a distance

    shown = read_record(mbjax.show(sharp, {"plan": plan, "rollout": rollout}).html)
    assert [world["label"] for world in shown["worlds"]] == ["plan", "rollout"]
    figure = plot_search(plan, path=tmp_path / "search.png")
    cost, residuals = figure.axes
    np.testing.assert_allclose(cost.get_lines()[0].get_ydata()[-1], plan.cost, rtol=1e-9)
    assert "expected decrease" in [line.get_label() for line in residuals.get_lines()]


def text_of(plan: to.Solution) -> str:
    """The report of a plan that was only traced, as if it had converged."""
    report = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), plan.report)
    return str(dataclasses.replace(report, outcome=np.array(to.Outcome.CONVERGED)))


@pytest.mark.whole_run("reports of plans in test_solve.py, and types of a plan through contact, below")
def test_a_minimum_of_sharp_contact_says_what_else_could_be_found(model) -> None:
    """Not where contact is smoothed, nor after `solve_through_contact`, nor where nothing can touch."""
    sharp = push(mbjax.set_contact_smoothing_length(model, 0.0), 2)
    plan = jax.eval_shape(lambda: to.solve(sharp, None, to.FeasibilityDDP(max_iterations=1)))
    assert "solve_through_contact" in text_of(plan)
    assert not is_through_sharp_contact(push(model))
    pole = mbjax.load("cart_pole", time_step=0.02)
    assert not is_through_sharp_contact(to.Problem(pole, mbjax.default_state(pole), 2, to.Effort()))


def single_plan(problem: to.Problem) -> to.Solution:
    """A few iterations, smoothed and sharp."""
    solver = to.FeasibilityDDP(max_iterations=4)
    return to.solve_through_contact(problem, None, solver, smoothing_lengths=[0.03, 0.0])


def test_single_precision_stays_single(model) -> None:
    plan = jax.eval_shape(single_plan, push(mbjax.astype(model, jnp.float32), 3))
    assert "contact" not in text_of(plan)
    assert {x.dtype for x in jax.tree.leaves(plan) if jnp.issubdtype(x.dtype, jnp.floating)} == {jnp.dtype("float32")}


@pytest.mark.whole_run("its types, above")
@pytest.mark.filterwarnings("ignore:solve")
def test_single_precision_goes_the_same_way(model) -> None:
    """The sharp search begins with gaps, which smoothing left, so that closing them may raise the cost."""
    plan, double = (single_plan(push(mbjax.astype(model, dtype), 3)) for dtype in (jnp.float32, jnp.float64))
    history = plan.report.history
    np.testing.assert_allclose(history.cost, double.report.history.cost, rtol=1e-5)
    assert history.gap[-1] < 0.3 * history.gap[0]


def test_what_is_not_a_plan() -> None:
    with pytest.raises(mbjax.ModelError, match="give one plan that solve returned, got a value of type int"):
        plot_search(3)


def test_without_a_length_to_set() -> None:
    model = mbjax.load("cart_pole", time_step=0.02)
    problem = to.Problem(model, mbjax.default_state(model), 2, to.Effort())
    with pytest.raises(mbjax.ModelError, match="contact_smoothing_length"):
        to.solve_through_contact(problem)
    with pytest.raises(mbjax.ModelError, match="at least one smoothing length"):
        to.solve_through_contact(problem, smoothing_lengths=())
