"""What NumPy computes while a program is traced is what JAX would."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend.core import ClosedJaxpr

from mbjax.execution.arrays import dot_with_mask, take
from mbjax.execution.calls.known_numbers import CALLS, ELEMENTWISE, RULES, call_now, evaluate_now
from mbjax.kinematics import calc_model_placement
from mbjax.kinematics.placed_model import read_by_placement
from tests.models import ALL_KINDS, load_robot, random_tree

X = np.linspace(0.1, 1.3, 12).reshape(3, 4)
MASK = np.arange(20).reshape(4, 5) % 3 == 0
OF_ONE = (abs, jnp.cos, jnp.exp, jnp.isfinite, jnp.log, jnp.negative, jnp.sign, jnp.sin, jnp.sqrt, jnp.square, jnp.tan)
OF_TWO = (
    jnp.add, jnp.subtract, jnp.multiply, jnp.divide, jnp.maximum, jnp.minimum, jnp.equal, jnp.not_equal,
    jnp.less, jnp.less_equal, jnp.greater, jnp.greater_equal,
)  # fmt: skip
REST = {
    "broadcast_in_dim": lambda x: lax.broadcast_in_dim(x, (2, 3, 5, 4), (1, 3)),
    "concatenate": lambda x: jnp.concatenate([x, 2.0 * x], 1),
    "convert_element_type": lambda x: (3.0 * x).astype(jnp.int32),
    "dot_with_mask": lambda x: dot_with_mask(x, MASK, 1),
    "reduce_sum": lambda x: jnp.sum(x, 0),
    "reshape": lambda x: x.reshape(2, 6),
    "select_n": lambda x: jnp.where(x > 0.5, x, 0.0),
    "slice": lambda x: x[1:3, ::2],
    "split": lambda x: lax.split(x, (1, 3), 1),
    "squeeze": lambda x: x[:1].squeeze(0),
    "stack": lambda x: jnp.stack([x, x + 1.0], 1),
    "stop_gradient": lambda x: lax.stop_gradient(x) + 1.0,
    "take": lambda x: take(x, (3, 1, 1), 1),
    "transpose": lambda x: x.T,
    "unstack": lambda x: jnp.unstack(x, axis=1),
    "and": lambda x: (x > 0.3) & (x < 0.9),
    "or": lambda x: (x < 0.3) | (x > 0.9),
    "not": lambda x: ~(x > 0.5),
    "jit": jax.jit(lambda x: x * 2.0),
    "custom_jvp_call": jax.nn.relu,
}
FUNCTIONS = {f.__name__: f for f in OF_ONE} | {f.__name__: lambda x, f=f: f(x, x[::-1]) for f in OF_TWO} | REST


KNOWN = {*ELEMENTWISE, *RULES, *CALLS}
MODELS = {
    "every kind": lambda: random_tree(3, ALL_KINDS).model,
    "one kind": lambda: random_tree(4, ("revolute",) * 4).model,
    "A1": lambda: load_robot("a1_description/urdf/a1.urdf", base="floating"),
}


def names_in(jaxpr: ClosedJaxpr) -> set[str]:
    """Of all operations, those of inner functions too."""
    names, pending = set(), [jaxpr]
    while pending:
        for equation in pending.pop().jaxpr.eqns:
            names.add(equation.primitive.name)
            pending += [x for x in equation.params.values() if isinstance(x, ClosedJaxpr)]
    return names


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rules_are_those_of_jax(name: str) -> None:
    function = FUNCTIONS[name]
    jaxpr = jax.make_jaxpr(function)(X)
    found, expected = evaluate_now(jaxpr, [X]), jax.tree.leaves(jax.jit(function)(X))
    for x, y in zip(found, expected, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(x, y, rtol=1e-15)


def test_every_rule_is_tried() -> None:
    met = set().union(*(names_in(jax.make_jaxpr(function)(X)) for function in FUNCTIONS.values()))
    of_other_versions = {"pjit", "stack", "stop_gradient", "unstack"}
    assert KNOWN - met <= of_other_versions


def test_nothing_of_it_is_in_the_program() -> None:
    """Not what has no rule either, which JAX computes at once; and it may be no number, without a warning."""

    def known(x: np.ndarray) -> dict:
        return {"sums": jnp.cumsum(jnp.sin(x), 0), "zero": x[:, 0] / (x[:, 0] - x[:, 0])}

    def program(y: jax.Array) -> tuple:
        found = call_now(known, X)
        return y + found["sums"], found["zero"]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sums, zero = jax.jit(program)(X)
    np.testing.assert_allclose(sums, X + np.cumsum(np.sin(X), 0), rtol=1e-15)
    assert np.isinf(zero).all()
    assert [e.primitive.name for e in jax.make_jaxpr(program)(X).eqns] == ["add"]
    with jax.disable_jit():
        np.testing.assert_allclose(program(X)[0], sums, rtol=1e-15)


@pytest.mark.parametrize("name", MODELS)
def test_placement_is_that_of_a_program(name: str) -> None:
    model = read_by_placement(MODELS[name]())
    found, expected = call_now(calc_model_placement, model), jax.jit(calc_model_placement)(model)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert isinstance(x, jax.Array)
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(x, y, rtol=1e-13, atol=1e-15)
    leaves, treedef = jax.tree.flatten(model)
    jaxpr = jax.make_jaxpr(lambda *x: calc_model_placement(jax.tree.unflatten(treedef, x)))(*leaves)
    assert names_in(jaxpr) <= KNOWN, "JAX compiles each operation that has no rule"
