"""`check_grads` finds wrong derivatives and kinks, and names the entry."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax


@pytest.fixture(scope="module")
def model():
    return mbjax.load("pendulum", time_step=0.01)


@jax.custom_vjp
def wrong(x):
    return x**2


wrong.defvjp(lambda x: (x**2, x), lambda x, cotangent: (3.0 * x * cotangent,))


@jax.custom_jvp
def doubled(x):
    return x


doubled.defjvp(lambda x, dx: (x[0], 2.0 * dx[0]))


def test_a_models_entries_have_names(model, capsys) -> None:
    """By model and state all agree; with a wrong derivative of one mass, that mass is named."""
    state = mbjax.State(model.parameters.default_positions + 0.4, jnp.full(model.num_velocities, 0.7))
    body = model.body_names[-1]

    def function(x, mass_rule=lambda m: m):
        model, state = x
        model = mbjax.set_mass(model, body, mass_rule(mbjax.mass(model, body)))
        return mbjax.total_mass(model) ** 2 * jnp.sum(state.v**2 + state.q)

    check = mbjax.check_grads(function, (model, state))
    assert check
    assert f"mass of '{body}'" in check.names
    assert any(name.endswith(f"v of '{model.velocity_names()[0]}'") for name in check.names)
    assert not any("locked" in name for name in check.names)
    assert f"all {len(check.names)} entries agree" in capsys.readouterr().out
    bad = mbjax.check_grads(lambda x: function(x, doubled), (model, state), quiet=True)
    assert not bad
    assert capsys.readouterr().out == ""
    assert bad.names[bad.worst[1]] == f"mass of '{body}'"
    text = str(bad)
    assert f"worst: mass of '{body}' = {float(mbjax.mass(model, body)):.6g}" in text
    assert "not at a kink" in text
    np.testing.assert_allclose(bad.forward[bad.worst], 2.0 * bad.differences[bad.worst], rtol=1e-6)


def test_kinks_are_told_from_errors() -> None:
    x = {"gap": jnp.array([0.0, 1.0, -1.0]), "speed": jnp.array(2.0)}
    check = mbjax.check_grads(lambda x: jnp.sum(jnp.maximum(x["gap"], 0.0)) + x["speed"] ** 3, x, quiet=True)
    np.testing.assert_array_equal(check.at_kink, [[True, False, False, False]])
    np.testing.assert_allclose([check.below[0, 0], check.above[0, 0]], [0.0, 1.0], atol=1e-9)
    assert check.names == ("['gap'][0]", "['gap'][1]", "['gap'][2]", "['speed']")
    assert "x is at a kink here" in str(check)
    assert check  # jnp.maximum gives half of both sides, as central differences do


def test_a_mode_that_fails_is_said() -> None:
    check = mbjax.check_grads(wrong, jnp.array(2.0), quiet=True)
    assert "forward mode fails: TypeError" in str(check)
    assert check.forward is None
    assert "1 of 1 entries disagree in reverse mode" in str(check)
    np.testing.assert_allclose([check.reverse[0, 0], check.differences[0, 0]], [6.0, 4.0], rtol=1e-6)


def test_outputs_that_are_not_finite_hide_no_wrong_gradient() -> None:
    """One NaN among the outputs is named, and the tolerances of the others stay numbers."""

    def function(x):
        return {"gap": jnp.log(x[0] - 2.0), "right": x[1] ** 3, "wrong": doubled(x[1])}

    check = mbjax.check_grads(function, jnp.array([1.0, 2.0]), quiet=True)
    assert not check
    np.testing.assert_array_equal(check.disagreement > 1.0, [[True, True], [False, False], [False, True]])
    assert np.isfinite(check.tolerance[1:]).all()
    assert check.outputs[check.worst[0]] == "['gap']"
    assert "3 of 6 entries disagree" in str(check)
    assert "not finite at x: ['gap'] is nan; no derivative of these can agree" in str(check)
    assert "kink" not in str(check)


def test_a_function_that_is_not_finite_next_to_x_is_named() -> None:
    check = mbjax.check_grads(lambda x: jnp.sqrt(x), jnp.array(0.0), quiet=True)
    assert not check
    assert "1 of 1 entries disagree" in str(check)
    assert "not finite next to x" in str(check)


def test_without_any_derivative_nothing_agrees() -> None:
    def refused(x):
        return jax.pure_callback(lambda x: x, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    check = mbjax.check_grads(refused, jnp.array(2.0), quiet=True)
    assert not check
    assert set(check.failures) == {"forward", "reverse"}
    assert "agree" not in str(check)
    assert "no derivative to compare" in str(check)


def test_results_may_be_trees(model) -> None:
    def function(v):
        return {"state": mbjax.State(2.0 * v, v**2), "sum": jnp.sum(v)}

    check = mbjax.check_grads(function, jnp.array([0.5]), model=model, quiet=True)
    assert check
    assert check.outputs[0].endswith(f"q of '{model.position_names()[0]}'")
    np.testing.assert_allclose(check.forward[:, 0], [2.0, 1.0, 0.0, 1.0])  # q, v, time, sum


def test_what_cannot_be_differentiated_is_said() -> None:
    with pytest.raises(mbjax.ModelError, match="no finite floating-point numbers"):
        mbjax.check_grads(lambda x: x, jnp.array([np.inf]))
    with pytest.raises(mbjax.ModelError, match="outside of jit"):
        jax.jit(lambda x: mbjax.check_grads(lambda y: y, x))(1.0)
