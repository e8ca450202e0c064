"""Steps under scheduled contacts are linearized in closed form, along a floating base's manifold."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import trajectory_optimization as to
from mbjax.trajectory_optimization.linearization import differentiate_steps
from tests.constraints.walkers import contacts_of, walker


@pytest.mark.whole_run("the derivatives they are made of, in tests/constraints/test_contact_derivatives.py")
def test_steps_of_a_walker_against_reverse_mode_and_differences():
    model = walker()
    dynamics = to.ScheduledContacts(contacts_of(model))
    active = [[True, False, False], [True, True, False], [False, True, True], [False, False, False], [True, True, True]]
    stages = jax.tree.map(lambda x: x[:-1], to.contact_schedule(active))
    assert np.sum(np.any(stages["begins"], axis=1)) == 2
    keys, n = jax.random.split(jax.random.key(0), 4), model.num_velocities
    v, u = jax.random.normal(jax.random.key(1), (4, n)), jax.random.normal(jax.random.key(2), (4, 4))
    states = mbjax.State(jax.vmap(lambda key: mbjax.random_state(model, key).q)(keys), v, jnp.zeros(4))

    @jax.jit
    def both(states, u, dz):
        def moved(x, u, stage, dz):
            after = dynamics(model, x, u, stage)
            x_moved = to.move_state(model, x, dz[: 2 * n])
            return to.difference_states(model, after, dynamics(model, x_moved, u + dz[2 * n :], stage))

        plain = differentiate_steps(lambda *args: dynamics(model, *args), model, states, u, stages)
        ahead, back = (jax.vmap(moved, (0, 0, 0, None))(states, u, stages, s * dz) for s in (1.0, -1.0))
        return dynamics.linearize(model, states, u, stages), plain, ahead - back

    h, direction = 1e-5, jnp.linspace(-1.0, 1.0, 2 * n + 4)
    found, plain, difference = both(states, u, h * direction)
    for a, b in zip(found, plain, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10 * np.max(np.abs(b)))
    along = jnp.concatenate(tuple(found), axis=2) @ direction
    np.testing.assert_allclose(along, difference / (2 * h), atol=1e-7 * np.max(np.abs(along)))


def hopper() -> mbjax.MultibodyModel:
    """A slide with a leg that turns, whose tip touches the ground."""
    plant = mbjax.MultibodyPlant(0.01)
    for name, joint in (("slide", mbjax.PrismaticJoint), ("leg", mbjax.RevoluteJoint)):
        parent = "world" if name == "slide" else "slide_body"
        plant.add_rigid_body(f"{name}_body", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
        axis = (0.0, 0.0, 1.0) if name == "slide" else (0.0, 1.0, 0.0)
        plant.add_joint(joint(name, parent, f"{name}_body", axis=axis))
        plant.add_joint_actuator(f"{name}_motor", name)
    return plant.finalize()


def test_single_precision(request: pytest.FixtureRequest) -> None:
    """Closed forms of a step that stands, of one that lands and of a free one, in both precisions; trimmed: types."""
    double = hopper()
    foot = mbjax.ConstraintSet().add_contact_constraint("leg_body", [0.1, 0.0, -0.5], [[0.0, 0.0, 1.0]], name="foot")
    stages = jax.tree.map(lambda x: x[:-1], to.contact_schedule([[True], [False], [True], [True]]))

    def linearized(dtype: type, of: Any = jax.jit) -> Any:
        model = mbjax.astype(double, dtype)
        dynamics = to.ScheduledContacts(mbjax.astype(foot.bind(double), dtype))
        q, v, u = jnp.linspace(-0.5, 1.0, 18, dtype=dtype).reshape(3, 3, 2)
        states = mbjax.State(q, v, jnp.zeros(3, dtype))
        return tuple(of(lambda: dynamics.linearize(model, states, u, stages))())

    if request.config.getoption("--trimmed"):
        shapes = linearized(jnp.float32, lambda f: lambda: jax.eval_shape(f))
        assert {x.dtype for x in jax.tree.leaves(shapes)} == {jnp.dtype(jnp.float32)}
        return

    for single, exact in zip(linearized(jnp.float32), linearized(jnp.float64), strict=True):
        assert single.dtype == jnp.float32
        np.testing.assert_allclose(single, exact, atol=1e-5 * np.max(np.abs(exact)))
