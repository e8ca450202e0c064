"""Ten-node tetrahedra: even strain, rotations, forces as derivatives of the energy; beside linear ones in one mesh."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.finite_elements import (
    LAWS,
    ElementNumbers,
    LameConstants,
    MeshOfBody,
    MeshStructure,
    MotionProblem,
    calc_elastic_energies,
    calc_largest_strains,
    calc_node_averages,
    calc_reference_elements,
    calc_reference_points,
    calc_rest_positions,
    calc_start_rotations,
    calc_von_mises_stresses,
    lame_constants,
    mesh_structure,
)
from mbjax.finite_elements.free_motion import calc_equation
from mbjax.linear_algebra.block_tridiagonal import dense_of
from tests.gradients.checks import WHOLE_RUN

from ..deformable_meshes import box_mesh

rng = np.random.default_rng(0)
UNEVEN = box_mesh((2, 2, 2), (0.2, 0.2, 0.2))
UNEVEN[0][13] += [0.02, -0.01, 0.015]  # the node inside
ROTATION = np.linalg.qr(rng.normal(size=(3, 3)))[0]
ROTATION = ROTATION * np.sign(np.linalg.det(ROTATION))


def one_body(law: str, mesh: tuple[np.ndarray, np.ndarray] = UNEVEN, kind: str = "quadratic") -> MeshStructure:
    """The structure of one free body."""
    free = np.zeros(mesh_structure([MeshOfBody(*mesh, law, np.zeros(0, bool), kind)]).num_nodes, bool)
    return mesh_structure([MeshOfBody(*mesh, law, free, kind)])


def lame_of(mesh: MeshStructure) -> LameConstants:
    return lame_constants(jnp.full(mesh.num_elements, 3.0), jnp.full(mesh.num_elements, 0.4))


@eqx.filter_jit
def equation_at(mesh: MeshStructure, X: Any, x: Any) -> Any:
    """Elastic forces and stiffness with the nodes at x: a step of 2 s without mass or damping."""
    points = calc_reference_points(mesh, calc_reference_elements(mesh, jnp.asarray(X)))
    rest = calc_rest_positions(mesh, jnp.asarray(X))
    none = jnp.zeros(mesh.num_elements)
    numbers = ElementNumbers(lame_of(mesh), none, none, none)
    R = calc_start_rotations(mesh, points, jnp.asarray(x))
    zero = jnp.zeros_like(rest)
    return calc_equation(mesh, MotionProblem(rest, zero, jnp.array(2.0), points, R, numbers, zero), x - rest)


@eqx.filter_jit
def energy_at(mesh: MeshStructure, X: Any, x: Any, R: Any = None) -> Any:
    points = calc_reference_points(mesh, calc_reference_elements(mesh, jnp.asarray(X)))
    R = calc_start_rotations(mesh, points, jnp.asarray(x)) if R is None else R
    return calc_elastic_energies(mesh, points, lame_of(mesh), R, jnp.asarray(x))


@pytest.mark.parametrize(
    "law",
    [
        pytest.param(
            "linear_corotated",
            marks=pytest.mark.whole_run("forces as derivatives, below, and a bent bar in test_quadratic_bodies.py"),
        ),
        pytest.param("stable_neo_hookean", marks=pytest.mark.whole_run("forces as derivatives, below")),
    ],
)
def test_an_even_strain_gives_the_same_stress_everywhere_and_no_force_inside(law: str) -> None:
    mesh, A = one_body(law), np.eye(3) + 0.05 * rng.normal(size=(3, 3))
    X = jnp.asarray(UNEVEN[0])
    rest = calc_rest_positions(mesh, X)
    x = rest @ A.T + 0.3
    found = equation_at(mesh, X, x).residual
    inside = np.all((rest > 1e-9) & (rest < 0.2 - 1e-9), axis=1)
    assert inside.sum() > 10
    assert np.abs(found[inside]).max() < 1e-15
    assert np.abs(found[~inside]).max() > 1e-4
    elements = calc_reference_elements(mesh, X)
    (strains,) = calc_largest_strains(mesh, elements, x)
    (stresses,) = calc_von_mises_stresses(mesh, elements, lame_of(mesh), x)
    np.testing.assert_allclose(strains, np.abs(np.linalg.svd(A, compute_uv=False) - 1.0).max(), rtol=1e-12)
    np.testing.assert_allclose(stresses, stresses[0], rtol=1e-12)
    np.testing.assert_allclose(calc_node_averages(mesh, elements, (stresses,)), stresses[0], rtol=1e-12)
    expected = energy_at(one_body(law, kind="linear"), X, X @ A.T + 0.3)
    np.testing.assert_allclose(energy_at(mesh, X, x), expected, rtol=1e-10)


TRIMMED = ("linear_corotated", "neo_hookean")


@pytest.mark.parametrize(
    "law",
    [
        pytest.param(law, marks=() if law in TRIMMED else pytest.mark.whole_run("two other laws stand for it"))
        for law in LAWS
        if law != "linear"
    ],
)
def test_a_rotation_gives_no_force_and_forces_and_stiffness_are_derivatives(law: str) -> None:
    mesh = one_body(law, box_mesh((1, 1, 1), (0.2, 0.1, 0.1)))
    X = jnp.asarray(box_mesh((1, 1, 1), (0.2, 0.1, 0.1))[0])
    rest = calc_rest_positions(mesh, X)
    turned = rest @ ROTATION.T - 0.2
    assert np.abs(equation_at(mesh, X, turned).residual).max() < 1e-15
    assert np.abs(energy_at(mesh, X, turned)).max() < 1e-15
    x = turned + 2e-3 * rng.normal(size=turned.shape)
    at_start = calc_start_rotations(mesh, calc_reference_points(mesh, calc_reference_elements(mesh, X)), x)
    found = jax.grad(lambda x: jnp.sum(energy_at(mesh, X, x, at_start)))(x)
    residual = equation_at(mesh, X, x).residual
    np.testing.assert_allclose(residual, found, atol=1e-15)
    h, along = 1e-6, rng.normal(size=x.shape)
    along /= np.abs(along).max()
    differences = sum(energy_at(mesh, X, x + s * h * along, at_start).sum() * s for s in (1, -1)) / (2 * h)
    assert abs(differences - np.vdot(residual, along)) < 1e-9
    K = dense_of(equation_at(mesh, X, turned).matrix)  # no eigenvalue is negative here
    order = 3 * (np.array(mesh.layer) * mesh.layer_size + np.array(mesh.slot))[:, None] + np.arange(3)
    ahead, behind = (equation_at(mesh, X, turned + s * h * along).residual for s in (1, -1))
    if law != "linear_corotated":  # its forces also change with the rotations, which are the start's
        product = (K[order.reshape(-1)][:, order.reshape(-1)] @ along.reshape(-1)).reshape(-1, 3)
        np.testing.assert_allclose(product, (ahead - behind) / (2 * h), atol=1e-9)


@pytest.mark.whole_run("quadratic bodies alone, above, and sums of linear elements in test_layers_and_factors.py")
def test_linear_and_quadratic_bodies_of_one_mesh_are_as_each_alone() -> None:
    """Three bodies, two of them of one kind with another between, of two laws. Trimmed: the first is not compared."""
    cube = box_mesh((1, 1, 1), (0.1, 0.1, 0.1))
    whats = [("linear", "quadratic"), ("corotated", "linear"), ("corotated", "quadratic")]
    alone = [one_body(law, cube, kind) for law, kind in whats]
    both = mesh_structure([MeshOfBody(*cube, x.laws_of_bodies[0], x.is_held, x.kinds_of_bodies[0]) for x in alone])
    assert both.nodes_of_bodies == (27, 8, 27)
    X = jnp.asarray(np.concatenate([cube[0] + 0.3 * i for i in range(3)]))
    x = calc_rest_positions(both, X) + 1e-3 * rng.normal(size=(both.num_nodes, 3))
    found, energies = equation_at(both, X, x), energy_at(both, X, x)
    for i, mesh in list(enumerate(alone))[0 if WHOLE_RUN else 1 :]:
        X_i, x_i = X[both.corners(i)], x[both.nodes(i)]
        np.testing.assert_allclose(found.residual[both.nodes(i)], equation_at(mesh, X_i, x_i).residual, atol=1e-15)
        np.testing.assert_allclose(energies[both.elements_of(i)], energy_at(mesh, X_i, x_i), atol=1e-17)
    K = np.asarray(dense_of(found.matrix))
    assert np.linalg.eigvalsh(K).min() > -1e-12
