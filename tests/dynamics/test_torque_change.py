"""Closed forms of changes of poses, inertias, torques, weights and M's diagonal, against JAX through the kinematics."""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.dynamics import calc_inverse_dynamics, calc_tree_motion
from mbjax.dynamics.composite_body.mass_matrix import calc_mass_matrix
from mbjax.dynamics.composite_body.mass_matrix_diagonal import calc_mass_matrix_diagonal
from mbjax.dynamics.newton_euler.sums import newton_euler
from mbjax.dynamics.records.inertia_about_origin import calc_inertia_about_T, shift_inertia_to_T
from mbjax.forces.gravity import calc_gravity_on_mobods, calc_weights
from mbjax.kinematics import calc_position_kinematics
from mbjax.kinematics.tree_poses import calc_tree_poses
from tests.gradients.checks import compiled
from tests.model import mimics
from tests.models import ALL_KINDS, random_tree, relative_error

from .test_jacobians import with_elements

MODELS = {
    "every joint": lambda: random_tree(11, ALL_KINDS).model,
    "gravity on some bodies": with_elements,
    "joints that mimic": lambda: mimics.make_model("mimic"),
}
STATE = ("q", "v", "vdot", "F_applied_T")


def closed_form(x: dict) -> dict:
    position = calc_position_kinematics(x["model"], x["q"])
    motion = calc_tree_motion(x["model"], position, x["q"], x["v"])
    return {
        "tau": calc_inverse_dynamics(motion, x["vdot"], x["F_applied_T"]),
        "weights": calc_gravity_on_mobods(x["model"], position),
        "inertia": calc_inertia_about_T(x["model"], position, motion.inertia_W),
        "diagonal": calc_mass_matrix_diagonal(motion, motion.v),
        "position": dataclasses.replace(position, displacement=jnp.zeros(0), shift=jnp.zeros(0)),
    }


def long_way(x: dict) -> dict:
    position = calc_tree_poses(x["model"], x["q"])
    motion = calc_tree_motion(x["model"], position, x["q"], x["v"])
    inertia_T = shift_inertia_to_T(position, motion.inertia_W)
    return {
        "tau": newton_euler(motion, x["vdot"], x["F_applied_T"]),
        "weights": calc_weights(x["model"], position),
        "inertia": inertia_T,
        "diagonal": jnp.diagonal(calc_mass_matrix(x["model"].topology, position, inertia_T, motion.v)),
        "position": dataclasses.replace(position, displacement=jnp.zeros(0), shift=jnp.zeros(0)),
    }


def only(names: tuple[str, ...], direction: dict) -> dict:
    """Nothing but the arguments of these names moves."""
    return {name: d if name in names else jax.tree.map(lambda _: None, d) for name, d in direction.items()}


def first(function, x: dict, direction: dict) -> dict:
    return eqx.filter_jvp(function, (x,), (direction,))[1]


@functools.partial(compiled, static_argnames="second")
def derivatives(x: dict, direction: dict, other: dict, second: bool) -> dict:
    """Both ways: along the state alone, with the parameters of the model, and second ones along two directions."""
    found = {}
    for way, function in (("closed", closed_form), ("long", long_way)):
        of_state, of_model = (
            functools.partial(first, function, direction=only(names, direction)) for names in (STATE, ("model",))
        )
        found[way] = {
            "state": of_state(x),
            "parameters too": first(function, x, direction),
        }
        if second:
            found[way] |= {"second": first(of_state, x, other), "second of parameters": first(of_model, x, other)}
    return found


@pytest.mark.whole_run("derivatives of every joint beside differences in test_dynamics_derivatives.py, and Pinocchio's")
@pytest.mark.parametrize("name", ["gravity on some bodies", "joints that mimic", "every joint"])
def test_closed_form_is_the_long_way(name: str) -> None:
    model, rng = MODELS[name](), np.random.default_rng(4)
    state = mbjax.random_state_within_limits(model, jax.random.key(6))
    q = state.q * 1.3  # quaternions need not be of unit length
    vdot = jnp.asarray(rng.normal(size=model.num_velocities))
    F = jnp.asarray(rng.normal(size=(6, model.topology.num_mobods)))
    x = dict(zip(("model", *STATE), (model, q, state.v, vdot, F), strict=True))
    moving = eqx.filter(x, eqx.is_inexact_array)
    direction, other = (jax.tree.map(lambda a: jnp.asarray(rng.normal(size=a.shape)), moving) for _ in range(2))
    found = derivatives(x, direction, other, second=True)
    got, expected = (dict(jax.tree.leaves_with_path(found[way])) for way in ("closed", "long"))
    for path, known in (expected | got).items():
        ours, theirs = (x.get(path, jnp.zeros_like(known)) for x in (got, expected))  # what is known not to move
        assert relative_error(ours, theirs) < 1e-12, path
