"""A state's time: zero unless given, and never the reason for a second program."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import State
from tests.gradients.checks import compiled

TEXT = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/><limit lower="-9" upper="9"
effort="5" velocity="9"/></joint></robot>"""


@pytest.mark.whole_run("one compilation from the first state on, in g54 of tests/gradients, in the quick run")
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_no_second_program_for_a_time(dtype) -> None:
    """None, Python's, NumPy's and JAX's numbers, of any dtype, in the constructor and in what replaces a field."""
    model = mbjax.load(TEXT, base="fixed", time_step=0.01, dtype=dtype)
    first = mbjax.default_state(model)
    q, v = first.q, first.v
    times = [
        0.0,
        1,
        np.float32(0.5),
        np.float64(0.5),
        np.array(0.5),
        jnp.array(0.0),
        jnp.asarray(2.0),
        jnp.float32(1.0),
    ]
    states = [first, State(q, v), *(State(q, v, time) for time in times)]
    states += [dataclasses.replace(first, time=time) for time in times]
    states.append(eqx.tree_at(lambda s: s.time, first, jnp.asarray(2.0, dtype)))
    states.append(State(q, v, jnp.asarray(2.0, dtype)))
    stepped = compiled(lambda model, state: mbjax.step(model, state)[0])
    many = compiled(lambda model, state: mbjax.rollout(model, state, None, 2).final_state)
    for state in states:
        assert state.time.dtype == dtype
        assert state.time.shape == ()
        stepped(model, state)
        many(model, state)
    assert stepped._cache_size() == many._cache_size() == 1
    assert float(stepped(model, State(q, v, 2.0)).time) == pytest.approx(2.01)


def test_a_batch_and_what_is_no_number_stay_as_they_are() -> None:
    q, v = jnp.ones((3, 2)), jnp.ones((3, 2))
    np.testing.assert_array_equal(State(q, v).time, np.zeros(3))
    assert State(0, None, 0).time == 0  # as an `in_axes`
    assert State(0, 0).time is None
    grown = jax.vmap(lambda state: State(2.0 * state.q, state.v, state.time + 1.0))(State(q, v))
    np.testing.assert_array_equal(grown.time, np.ones(3))
    slope = jax.grad(lambda time: State(q[0], v[0], time).time ** 2)(3.0)
    assert float(slope) == 6.0
    leaves, tree = jax.tree.flatten(State(q, v))
    assert jax.tree.structure(jax.tree.unflatten(tree, [object()] * len(leaves))) == tree


def test_printing_a_state_is_short_whatever_it_holds() -> None:
    """A line a field, with values where there are few; batched, traced, and not numbers at all."""
    state = State(jnp.array([0.5, -1.25]), jnp.zeros(2), 0.75)
    assert str(state).splitlines()[1:] == ["  q     (2,) [0.5 -1.25]", "  v     (2,) [0 0]", "  time  0.75"]
    assert repr(state) == "State(q=[0.5 -1.25], v=[0 0], time=0.75)"
    assert repr((state, 1)) == f"({state!r}, 1)"
    assert "[0.5 -1.25]" in state._repr_html_()
    assert repr(State(0, None, 0)) == "State(q=0, v=none, time=0)"  # as an `in_axes`
    batch = State(jnp.arange(6000.0).reshape(1000, 6).at[0, 0].set(jnp.nan), jnp.ones((1000, 6)))
    assert str(batch).splitlines()[1:3] == ["  q     (1000, 6) 1 … 5999, 1 nan", "  v     (1000, 6) 1"]
    texts = []

    def seen(state: State) -> State:
        texts.append(f"{state}\n{state!r}")
        return state

    jax.jit(jax.vmap(seen))(batch)
    assert "q     (6,) float64, traced" in texts[0]
    for other in (State(0, None), State(jax.ShapeDtypeStruct((2,), float), None), State(jnp.zeros(0), jnp.zeros(0))):
        assert len(str(other).splitlines()) == 4
