"""Recursions of worlds with models of their own, or that share all but one argument, are those of each alone."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.gradients.checks import WHOLE_RUN, compiled
from tests.models import relative_error

from .recursion_models import G1, case, largest_error

OWN = "body_mass", "gravity", "frame_translation", "joint_axis", "screw_pitch", "joint_damping"


@pytest.mark.whole_run("values and derivatives where worlds differ in one leaf alone, and randomized worlds")
@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        ("constant hinge maps", "1"),
        pytest.param("constant hinge maps", "0", marks=G1),
        pytest.param("every joint", "1", marks=G1),
        pytest.param("quadruped", "1", marks=G1),
        pytest.param("quadruped", "0", marks=G1),
    ],
)
def test_worlds_with_models_of_their_own(
    name: str, kernels: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Of each world its own masses or gravity beside what all share, positions too; whole run: frames and axes too."""
    trimmed = request.config.getoption("--trimmed")  # inertias and forces at once; frames and axes in the test below
    own = [OWN[:2]] if trimmed else [(leaf,) for leaf in OWN if getattr(case(name)[0].parameters, leaf).size]
    model, q, v, vdot, *_ = case(name)
    scales = np.linspace(0.5, 2.0, 3)
    monkeypatch.setenv("MBJAX_ONE_KERNEL", kernels)
    jax.clear_caches()

    def with_scaled(leaves, scale):
        scaled = {leaf: getattr(model.parameters, leaf) * scale for leaf in leaves}
        return dataclasses.replace(model, parameters=dataclasses.replace(model.parameters, **scaled))

    def everything(model):
        accelerations = mbjax.forward_dynamics(model, q, v, vdot, force_elements=True)
        torques = mbjax.inverse_dynamics(model, q, v, vdot, force_elements=True), mbjax.bias_term(model, q, v)
        poses = mbjax.body_poses_in_world(model, q)
        return accelerations, torques, mbjax.mass_matrix(model, q), (poses.rotation, poses.translation)

    alone = compiled(everything)
    for leaves in own:
        together = compiled(jax.vmap(lambda scale, leaves=leaves: everything(with_scaled(leaves, scale))))(scales)
        for i in (0, 2):
            found = jax.tree.map(lambda x, i=i: x[i], together)
            assert largest_error(found, alone(with_scaled(leaves, scales[i]))) < 1e-12, leaves
    jax.clear_caches()


@pytest.mark.parametrize("kernels", ["1", pytest.param("0", marks=G1)])
def test_derivatives_where_worlds_differ_in_one_leaf_alone(
    kernels: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """All share positions, of an arm stretched out: forward and reverse mode, differences, and each as alone.

    Trimmed: frames, which move all that is placed, and axes, of which the mass matrix alone hears; no forward mode.
    """
    model = mbjax.load(mbjax.reference_models.path("arm"))
    q, v = jnp.zeros(model.num_positions), jnp.linspace(-1.0, 1.0, model.num_velocities)
    results = {
        "frame_translation": lambda model: mbjax.body_poses_in_world(model, q).translation,
        "joint_axis": lambda model: mbjax.mass_matrix(model, q),
        "rotor_inertia": lambda model: mbjax.mass_matrix(model, q),
        "gravity": lambda model: mbjax.inverse_dynamics(model, q, v, v, force_elements=True),
    }
    if request.config.getoption("--trimmed"):
        del results["rotor_inertia"], results["gravity"]
    monkeypatch.setenv("MBJAX_ONE_KERNEL", kernels)
    jax.clear_caches()
    for leaf, result in results.items():
        given = getattr(model.parameters, leaf)
        assert given.size
        direction = np.max(np.abs(given)) * jax.random.normal(jax.random.key(given.size), given.shape)

        def cost(step, leaf=leaf, result=result, given=given, direction=direction):
            parameters = dataclasses.replace(model.parameters, **{leaf: given + step * direction})
            found = jnp.ravel(result(dataclasses.replace(model, parameters=parameters)))
            return jnp.sum(jnp.cos(jnp.arange(found.size)) * found**2)

        steps, h = jnp.asarray([0.0, 0.1, 0.2]), 1e-5
        points = jnp.concatenate([steps, steps + h, steps - h])
        values, reverse = compiled(jax.vmap(jax.value_and_grad(cost)))(points)
        assert relative_error(reverse[:3], (values[3:6] - values[6:]) / (2.0 * h)) < 1e-7, leaf
        assert relative_error(values[2], compiled(cost)(steps[2])) < 1e-12, leaf
        if not WHOLE_RUN:
            continue
        forward = compiled(jax.vmap(lambda step, cost=cost: jax.jvp(cost, (step,), (jnp.ones(()),))[1]))(steps)
        assert relative_error(reverse[:3], forward) < 1e-12, leaf
    jax.clear_caches()


@pytest.mark.whole_run("values and derivatives where worlds differ in one leaf alone")
@pytest.mark.parametrize("kernels", ["1", pytest.param("0", marks=G1)])
def test_worlds_that_share_all_but_one_argument(
    kernels: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Values and gradients of forward and inverse dynamics; trimmed: of forward dynamics, q and v shared."""
    monkeypatch.setenv("MBJAX_ONE_KERNEL", kernels)
    jax.clear_caches()
    model, q, v, vdot, tau, weight, _ = case("constant hinge maps")

    def acceleration(q, v, tau):
        return mbjax.forward_dynamics(model, q, v, tau, force_elements=True)

    def torque(q, v, vdot):
        return mbjax.inverse_dynamics(model, q, v, vdot, force_elements=True)

    functions = ((acceleration, tau), (torque, vdot))
    for function, last in functions[:1] if request.config.getoption("--trimmed") else functions:
        arguments = q, v, last

        def gradient(*x, function=function):
            return function(*x), jax.grad(lambda *x: jnp.sum(weight * function(*x)), (0, 1, 2))(*x)

        one = jax.jit(gradient)
        for i in (2,) if request.config.getoption("--trimmed") else range(3):
            axes = tuple(0 if k == i else None for k in range(3))
            given = [jnp.stack([x, 0.9 * x, 1.1 * x]) if k == i else x for k, x in enumerate(arguments)]
            together = jax.jit(jax.vmap(gradient, axes))(*given)
            alone = one(*(x[2] if k == i else x for k, x in enumerate(given)))
            assert largest_error(jax.tree.map(lambda x: x[2], together), alone) < 1e-11, (function, i)
    jax.clear_caches()
