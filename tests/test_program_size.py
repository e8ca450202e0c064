"""The program does not grow with the robot, and neither derivatives nor values leave the device."""

import jax
import jax.numpy as jnp
import pytest

import mbjax


def chain(length: int) -> mbjax.MultibodyModel:
    """Links on axes of changing direction."""
    plant = mbjax.MultibodyPlant(0.01)
    parent = "world"
    for i in range(length):
        plant.add_rigid_body(f"link{i}", mbjax.SpatialInertia.solid_box_with_mass(1.0, 0.1, 0.2, 0.3))
        axis = [[1, 0, 0], [0, 1, 0], [0, 0, 1]][i % 3]
        plant.add_joint(mbjax.RevoluteJoint(f"joint{i}", parent, f"link{i}", X_PF=[0.0, 0.0, 0.3], axis=axis))
        parent = f"link{i}"
    return plant.finalize()


def count_equations(jaxpr) -> int:
    """Equations of a program, those of its inner programs included."""
    total = 0
    for equation in jaxpr.eqns:
        total += 1
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    total += count_equations(inner)
    return total


FUNCTIONS = {
    "forward dynamics": lambda m, q, v: mbjax.forward_dynamics(m, q, v, v),
    "inverse dynamics": lambda m, q, v: mbjax.inverse_dynamics(m, q, v, v),
    "mass matrix": lambda m, q, v: mbjax.mass_matrix(m, q),
    "step": lambda m, q, v: mbjax.step(m, mbjax.State(q, v, jnp.zeros(())))[0].q,
    "reverse mode of forward dynamics": lambda m, q, v: jax.grad(
        lambda q, v: jnp.sum(mbjax.forward_dynamics(m, q, v, v)), (0, 1)
    )(q, v),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_equations_do_not_grow_with_the_robot(name: str) -> None:
    sizes = []
    for length in (7, 20, 60):
        model = chain(length)
        q = jnp.ones(length)
        sizes.append(count_equations(jax.make_jaxpr(lambda q, v, m=model: FUNCTIONS[name](m, q, v))(q, q).jaxpr))
    # A few equations more or less: constant indices in many runs are gathered, in few runs sliced.
    assert max(sizes) <= 1.02 * min(sizes)


def test_no_callbacks_to_the_host() -> None:
    model = chain(7)
    program = str(jax.make_jaxpr(lambda s: mbjax.step(model, s))(mbjax.default_state(model)))
    assert "callback" not in program
