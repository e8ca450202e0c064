"""Problems that have no solution, or that are none, name what is wrong: cost, step, constraint, argument."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import trajectory_optimization as to
from mbjax.trajectory_optimization.solve import first_bad_place

from .problems import STEPS, Goal, Linear, Pendulum, angle, goal_at, pendulum, speed


def test_an_unreachable_goal_names_the_constraint_and_the_step():
    base = pendulum(limited=True)
    problem = to.Problem(
        None,
        base.start,
        STEPS,
        base.running,
        base.terminal,
        (base.low, base.high),
        to.equality(lambda model, x: x[0], 30.0, at="end", name="far goal"),
        dynamics=base.dynamics,
    )
    with pytest.warns(mbjax.ModelWarning, match=rf"'far goal' is .* off its bounds at step {STEPS}"):
        found = to.solve(problem)
    assert found.report.outcome == to.Outcome.CONSTRAINTS_VIOLATED
    assert not found.report.converged


def test_a_cost_that_is_not_finite_names_itself_and_the_step():
    def rooted(model, x, u):
        return jnp.sqrt(x[:1] - 1e-3)

    problem = to.Problem(
        None,
        jnp.zeros(2),
        STEPS,
        rooted,
        Goal(jnp.array(1.0)),
        (jnp.array([-1.0]), jnp.array([1.0])),
        dynamics=Pendulum(jnp.array(1.0)),
    )
    with pytest.warns(mbjax.ModelWarning, match=r"running cost 0 \(rooted\) of step 0 is not finite"):
        assert to.solve(problem).report.outcome == to.Outcome.NOT_FINITE


def test_one_bad_world_leaves_its_neighbours_alone():
    problem = pendulum()
    solve = jax.jit(jax.vmap(lambda start: to.solve(eqx.tree_at(lambda p: p.start, problem, start))))
    found = solve(jnp.array([[0.0, 0.0], [jnp.nan, 0.0]]))
    assert found.report.converged.tolist() == [True, False]
    np.testing.assert_allclose(found.efforts[0], to.solve(problem).efforts, atol=1e-7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(efforts=(jnp.array([2.0]), jnp.array([1.0]))), "no effort is both"),
        (dict(num_steps=0), "at least 1"),
        (dict(running=(), terminal=()), "running cost, a terminal cost"),
        (dict(stages=jnp.zeros(3)), "num_steps \\+ 1"),
        (dict(running=3.0), r"the running cost must be a function, or several, got 3\.0"),
        (dict(constraints=(1,)), "must be a trajectory_optimization.Constraint"),
        (dict(constraints=to.at_most(angle, when=[1, 0])), r"'angle' has when= of shape \(2,\); give .* \+ 1 = 4"),
        (dict(running=to.AtStage(goal_at)), "AtStage needs the data of each step; give stages="),
        (dict(running=to.Scheduled(to.AtStage(goal_at), jnp.ones(4))), "Problem: AtStage needs the data"),
        (dict(terminal=to.Barrier(to.AtStage(goal_at), 0.0, 1.0)), "Problem: AtStage needs the data"),
        (dict(constraints=to.at_most(to.AtStage(goal_at))), "Problem: AtStage needs the data"),
        (dict(terminal=to.Scheduled(to.Effort(), jnp.ones(4))), "Effort reads the effort, so it is no terminal"),
        (dict(constraints=to.at_most(to.Effort(), 1.0)), r"'constraint' is at='all', .* give it at='running'"),
        (
            dict(running=to.Duration(), dynamics=to.Trapezoid(speed, 0.1)),
            r"Duration is for dynamics=FreeSteps\(…\)",
        ),
        (dict(efforts=(0.0, jnp.ones((7, 2)))), r"limits of shapes \(\) and \(7, 2\); give .* num_steps = 3"),
    ],
)
def test_wrong_arguments(change, message):
    given = dict(
        model=None,
        start=jnp.zeros(2),
        num_steps=3,
        running=lambda m, x, u: u,
        terminal=lambda m, x: x,
        efforts=(jnp.array([-1.0]), jnp.array([1.0])),
        dynamics=Linear(jnp.eye(2), jnp.ones((2, 1))),
    )
    with pytest.raises(mbjax.ModelError, match=message):
        to.Problem(**(given | change))


@pytest.mark.parametrize("returned", [0, None, (jnp.ones(1), jnp.ones(1))])
def test_a_cost_returns_floating_point_numbers(returned):
    with pytest.raises(mbjax.ModelError, match="the cost <lambda> must return a floating-point number or an array"):
        to.solve(eqx.tree_at(lambda p: p.running, pendulum(), (lambda model, x, u: returned,)))


def test_choices_of_steps_are_truth_values():
    with pytest.raises(mbjax.ModelError, match="when must be a truth value for each"):
        to.at_most(angle, when=[0, 1, 5])


def test_a_constraint_that_is_not_finite_names_itself_and_the_step():
    base = pendulum()
    bad = to.at_most(lambda model, x: jnp.log(x[0] - 1.0), when=jnp.arange(STEPS + 1) == 7, name="height")
    given = STEPS, base.running, base.terminal, (base.low, base.high), bad
    problem = to.Problem(None, base.start, *given, dynamics=base.dynamics)
    states = jnp.zeros((STEPS + 1, 2))
    found = first_bad_place(problem, states, jnp.zeros((STEPS, 1)))
    assert "constraint 'height' of step 7 is not finite" in found
    assert first_bad_place(problem, states + 2.0, jnp.zeros((STEPS, 1))) == ""


def test_names_of_constraints_differ():
    with pytest.raises(mbjax.ModelError, match="two constraints are named"):
        to.Problem(
            None,
            jnp.zeros(2),
            3,
            lambda m, x, u: u,
            constraints=[to.at_most(lambda m, x: x) for _ in range(2)],
            dynamics=Linear(jnp.eye(2), jnp.ones((2, 1))),
        )


def test_bounds_of_a_constraint():
    with pytest.raises(mbjax.ModelError, match="no value is both"):
        to.Constraint(lambda m, x: x, 1.0, 0.0)


def test_shapes_of_a_guess():
    with pytest.raises(mbjax.ModelError, match="efforts of shape"):
        to.solve(pendulum(), jnp.zeros((3, 1)))
    with pytest.raises(mbjax.ModelError, match="the guess has the effort nan at step 2, place 0"):
        to.solve(pendulum(), jnp.zeros((STEPS, 1)).at[2].set(jnp.nan))
    with pytest.raises(mbjax.ModelError, match=r"the guess must be None, efforts of shape \(40, 1\)"):
        to.solve(pendulum(), Goal(jnp.array(1.0)))
    with pytest.raises(mbjax.ModelError, match="leading axis"):
        to.solve(pendulum(), (jnp.zeros((3, 2)), jnp.zeros((STEPS, 1))))


@pytest.mark.parametrize(
    "numbers",
    [
        dict(num_lengths=0),
        dict(max_iterations=0),
        dict(max_iterations=2.5),
        dict(tolerance=-1.0),
        dict(regularization_factor=0.5),
    ],
)
def test_numbers_of_a_solver(numbers):
    with pytest.raises(mbjax.ModelError, match=f"FeasibilityDDP: {next(iter(numbers))} must be a"):
        to.FeasibilityDDP(**numbers)


def test_bounds_have_the_shape_of_the_value():
    """Also of two axes."""
    base = pendulum()

    def solved(upper):
        limit = to.at_most(lambda model, x: jnp.outer(x, x), upper, at="end", name="square")
        given = STEPS, base.running, base.terminal, (base.low, base.high), limit
        return to.solve(to.Problem(None, base.start, *given, dynamics=base.dynamics))

    found = solved(jnp.array([[1.0, 9.0], [9.0, 9.0]]))
    np.testing.assert_allclose(found.states[-1, 0], 1.0, atol=1e-5)
    with pytest.raises(mbjax.ModelError, match=r"'square': its function returns shape \(2, 2\) and a bound .* \(3,\)"):
        solved(jnp.ones(3))
    with pytest.raises(mbjax.ModelError, match=r"the lower bound has shape \(2,\), the upper \(3,\)"):
        to.Constraint(speed, jnp.zeros(2), jnp.ones(3))
    for bounds in ((1.0, -1.0), (np.nan, 1.0)):
        with pytest.raises(mbjax.ModelError, match=r"Barrier: entry .* no value is both"):
            to.Barrier(speed, *bounds)


def test_a_continuous_model():
    model = mbjax.load("arm")
    with pytest.raises(mbjax.ModelError, match="time_step"):
        to.Problem(model, mbjax.default_state(model), 3, lambda m, x, u: u)
