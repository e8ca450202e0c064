"""A bar eight times as long as thick, held at one end, beside Timoshenko's beam; and the order of the time step."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from jaxtyping import Float

import mbjax
from mbjax.finite_elements import calc_tangent
from mbjax.linear_algebra.block_tridiagonal import dense_of
from mbjax.simulation.deformable_step import calc_motion_problem

from ..deformable_meshes import box_mesh, held_bar

E, DENSITY, SIDE, LENGTH, GRAVITY = 1e6, 1000.0, 0.06, 0.48, 1e-2
AREA, INERTIA = SIDE**2, SIDE**4 / 12.0


def shear_stiffness(nu: float) -> float:
    """κ G A, with κ of a square (Cowper 1966)."""
    return 10.0 * (1.0 + nu) / (12.0 + 11.0 * nu) * E / (2.0 * (1.0 + nu)) * AREA


def bar(across: int, elements: str, nu: float = 0.3, dt: float = 5e-3) -> Any:
    """The model of the bar with so many cells across, held at x = 0, under a weight so light that it bends little."""
    plant = mbjax.MultibodyPlant(dt)
    plant.set_gravity([0.0, 0.0, -GRAVITY])
    mesh = box_mesh((8 * across, across, across), (LENGTH, SIDE, SIDE))
    material = mbjax.DeformableMaterial(E, nu, DENSITY, model="linear")
    plant.add_deformable_body("bar", mesh, material, elements=elements)
    plant.set_wall_boundary_condition("bar", [1e-6, 0.0, 0.0], [1.0, 0.0, 0.0])
    return plant.finalize()


def part_of_sag(model: Any, nu: float = 0.3) -> float:
    """The sag of the bar's end under its weight, in parts of Timoshenko's."""
    w = DENSITY * AREA * GRAVITY
    sag = w * LENGTH**4 / (8.0 * E * INERTIA) + w * LENGTH**2 / (2.0 * shear_stiffness(nu))
    found = mbjax.deformable_equilibrium(model)
    assert bool(found.converged.all())
    rest = np.asarray(model.deformables.rest_positions())
    at_end = rest[:, 0] > LENGTH - 1e-9
    return float(np.mean((rest - np.asarray(found.state.nodes.position))[at_end, 2]) / sag)


def first_frequency_of_beam(nu: float = 0.3) -> float:
    """The first frequency of Timoshenko's cantilever, in rad/s (Huang 1961)."""
    r2, s2 = INERTIA / (AREA * LENGTH**2), E * INERTIA / (shear_stiffness(nu) * LENGTH**2)

    def characteristic(b: float) -> float:
        root = np.sqrt((r2 - s2) ** 2 + 4.0 / b**2)
        alpha, beta = (np.sqrt(0.5 * (sign * (r2 + s2) + root)) for sign in (-1.0, 1.0))
        of_both = b * (r2 + s2) / np.sqrt(1.0 - b**2 * r2 * s2) * np.sinh(b * alpha) * np.sin(b * beta)
        return 2.0 + (b**2 * (r2 - s2) ** 2 + 2.0) * np.cosh(b * alpha) * np.cos(b * beta) - of_both

    b = scipy.optimize.brentq(characteristic, 3.0, 3.6)  # 3.516 for a thin one
    return b * np.sqrt(E * INERTIA / (DENSITY * AREA * LENGTH**4))


def stiffness_and_mass(model: Any) -> tuple[Float[np.ndarray, "f f"], Float[np.ndarray, "f f"]]:
    """K and M of the nodes that are not held, by two lengths of the step: its matrix is M / dt + dt / 2 K."""
    deformables, state = model.deformables, mbjax.default_state(model)
    problem = calc_motion_problem(model, deformables, state.nodes, None)

    def matrix(dt: float) -> Any:
        changed = type(problem)(
            problem.x0, problem.v0, jnp.array(dt), problem.points, problem.rotations, problem.numbers, problem.forces
        )
        return dense_of(calc_tangent(deformables.mesh, changed, problem.v0))

    mesh = deformables.mesh
    free = ~np.array(mesh.is_held)
    places = 3 * (np.array(mesh.layer) * mesh.layer_size + np.array(mesh.slot))[free, None] + np.arange(3)
    of_free = np.ix_(places.reshape(-1), places.reshape(-1))
    one, two = np.asarray(matrix(1.0))[of_free], np.asarray(matrix(2.0))[of_free]
    M = (2.0 * one - two) / 1.5
    return 2.0 * (one - M), M


def part_of_frequency(model: Any) -> float:
    """The first frequency of bending in parts of Timoshenko's."""
    squared = scipy.linalg.eigh(*stiffness_and_mass(model), eigvals_only=True, subset_by_index=[0, 0])
    return float(np.sqrt(squared[0]) / first_frequency_of_beam())


FEWER = pytest.mark.whole_run("fewer cells stand for it")


@pytest.mark.parametrize(
    ("across", "elements", "nu", "part"),
    [
        (1, "linear", 0.3, 0.225),
        (2, "linear", 0.3, 0.504),
        (1, "quadratic", 0.3, 0.998),
        (2, "quadratic", 0.3, 0.990),
        (1, "linear", 0.49, 0.045),
        (1, "quadratic", 0.49, 0.979),
        (2, "quadratic", 0.49, 0.964),
        pytest.param(4, "linear", 0.3, 0.784, marks=FEWER),
        pytest.param(4, "quadratic", 0.3, 0.989, marks=FEWER),
        pytest.param(4, "quadratic", 0.49, 0.966, marks=FEWER),
    ],
)
def test_a_bar_sags_by_the_known_part_of_timoshenkos_sag(across: int, elements: str, nu: float, part: float) -> None:
    """Linear elements are too stiff in bending where they are few across; quadratic ones are right with one or two.

    The wall, which the beam's formula does not have, takes about 1 % with ν = 0.3, and 3 % with 0.49.
    """
    assert abs(part_of_sag(bar(across, elements, nu), nu) - part) < 1e-3


@pytest.mark.parametrize(
    ("across", "elements", "part"),
    [
        pytest.param(1, "linear", 1.879, marks=pytest.mark.whole_run("quadratic elements, and its sag")),
        (1, "quadratic", 0.994),
        pytest.param(2, "linear", 1.303, marks=pytest.mark.whole_run("quadratic elements, and its sag")),
        pytest.param(2, "quadratic", 1.003, marks=pytest.mark.whole_run("one cell stands for it")),
    ],
)
def test_the_first_frequency_is_the_known_part_of_timoshenkos(across: int, elements: str, part: float) -> None:
    assert abs(part_of_frequency(bar(across, elements)) - part) < 1e-3


@pytest.mark.whole_run("sags and first frequencies are known parts of Timoshenko's, and steps are Drake's")
@pytest.mark.parametrize("elements", ["linear", "quadratic"])
def test_a_free_vibration_is_of_the_first_order_in_the_time_step(elements: str) -> None:
    """Velocities are implicit, so that the error after a period of the first mode falls as the step."""
    material = mbjax.DeformableMaterial(2e4, 0.4, 500.0, model="linear")
    squared, shapes = scipy.linalg.eigh(*stiffness_and_mass(held_bar(material, elements=elements).finalize()))
    period = 2.0 * np.pi / np.sqrt(squared[0])

    def error(count: int) -> float:
        plant = held_bar(material, time_step=period / count, elements=elements)
        plant.set_gravity([0.0, 0.0, 0.0])
        model = plant.finalize()
        state = mbjax.default_state(model)
        v = np.zeros(state.nodes.velocity.shape)
        v[~model.deformables.mesh.is_held] = shapes[:, 0].reshape(-1, 3)
        state = dataclasses.replace(state, nodes=mbjax.NodeState(state.nodes.position, jnp.array(v)))
        final = jax.jit(lambda s: mbjax.rollout(model, s, num_steps=count).final_state)(state)
        return float(np.abs(final.nodes.velocity - v).max() / np.abs(v).max())

    errors = [error(count) for count in (200, 400)]
    assert abs(np.log2(errors[0] / errors[1]) - 1.0) < 0.05
    assert errors[1] < 0.05
