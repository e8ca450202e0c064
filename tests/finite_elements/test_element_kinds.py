"""Kinds of elements: shape functions, rules of integration, the mass matrix, and nodes in the middles of edges."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.finite_elements import ELEMENT_KINDS, LameConstants, between_corners, lame_constants
from mbjax.finite_elements.element_kinds import ENDS_OF_EDGES
from mbjax.finite_elements.elements import lame_at_points
from mbjax.model.deformable_bodies import boundary_triangles

from ..deformable_meshes import box_mesh

rng = np.random.default_rng(0)


@pytest.mark.parametrize("name", ELEMENT_KINDS)
def test_shape_functions_are_one_at_their_node_and_their_slopes_are_their_derivatives(name: str) -> None:
    kind = ELEMENT_KINDS[name]
    np.testing.assert_allclose(kind.shapes(kind.nodes), np.eye(kind.num_nodes), atol=1e-15)
    L = rng.dirichlet(np.ones(4), 5)
    np.testing.assert_allclose(kind.shapes(L).sum(axis=1), 1.0, atol=1e-15)
    along = np.array([0.3, -0.5, 0.1, 0.1])  # coordinates keep their sum
    differences = (kind.shapes(L + 1e-4 * along) - kind.shapes(L - 1e-4 * along)) / 2e-4
    np.testing.assert_allclose(kind.slopes(L) @ along, differences, atol=1e-11)


def integral(powers: tuple[int, ...]) -> float:
    """That of a product of powers of barycentric coordinates over an element of unit volume."""
    return 6.0 * math.prod(map(math.factorial, powers)) / math.factorial(3 + sum(powers))


def test_rules_of_quadratic_elements_are_exact_to_the_second_and_fifth_degree() -> None:
    kind = ELEMENT_KINDS["quadratic"]
    assert (kind.mass_weights > 0.0).all()
    for powers in ((0, 0, 0, 0), (1, 0, 0, 0), (2, 0, 0, 0), (0, 1, 1, 0), (3, 1, 0, 0), (2, 1, 1, 1), (0, 5, 0, 0)):
        terms = np.prod(kind.mass_points ** np.array(powers), axis=1)
        np.testing.assert_allclose(kind.mass_weights @ terms, integral(powers), atol=1e-15)
        if sum(powers) <= 2:
            np.testing.assert_allclose(np.mean(np.prod(kind.load_points ** np.array(powers), axis=1)), integral(powers))


@pytest.mark.parametrize("nu", [-0.9, -0.3, 0.0, 0.3, 0.4999])
def test_constants_at_points_add_up_to_those_of_the_element(nu: float) -> None:
    """Each with its share of the volume; where λ is large, no more than twice mu is beside mu."""
    kind, lame = ELEMENT_KINDS["quadratic"], lame_constants(jnp.array([2.0, 5.0]), jnp.full(2, nu))
    for all_points, whole in zip(lame_at_points(kind, lame), lame, strict=True):
        np.testing.assert_allclose(all_points.reshape(2, 5) @ kind.shares_of_volume, whole, rtol=1e-12)
    mu, lam = (x.reshape(2, 5)[:, :4] for x in lame_at_points(kind, lame))
    assert (lam <= 2.0 * mu).all()
    slope = jax.jacfwd(lambda lam: lame_at_points(kind, LameConstants(lame.mu, lam)).lam)(jnp.zeros(2))
    np.testing.assert_allclose(slope[0, 0], 1.0)  # on both sides of λ = 0


def test_the_mass_matrix_of_ten_nodes_is_the_consistent_one() -> None:
    kind, M = ELEMENT_KINDS["quadratic"], ELEMENT_KINDS["quadratic"].mass_numbers
    expected = np.zeros((10, 10))
    expected[:4, :4] = 1.0 + 5.0 * np.eye(4)
    for a, edge in enumerate(ENDS_OF_EDGES):
        for i in range(4):
            expected[i, 4 + a] = expected[4 + a, i] = -4.0 if i in edge else -6.0
        for b, other in enumerate(ENDS_OF_EDGES):
            expected[4 + a, 4 + b] = {2: 32.0, 1: 16.0, 0: 8.0}[len(set(edge) & set(other))]
    np.testing.assert_array_equal(M, expected)
    S = kind.shapes(kind.mass_points)
    np.testing.assert_allclose(420.0 * np.einsum("r,ra,rb->ab", kind.mass_weights, S, S), M, atol=1e-12)
    assert np.linalg.eigvalsh(M).min() > 1.0
    np.testing.assert_allclose(kind.shares, [-0.05] * 4 + [0.2] * 6)


def test_each_edge_of_a_mesh_has_one_node_and_each_face_outside_four_triangles() -> None:
    points, tetrahedra = box_mesh((2, 1, 1), (2.0, 1.0, 1.0))
    ends, elements = between_corners(ELEMENT_KINDS["quadratic"], len(points), tetrahedra)
    nodes = points[ends].mean(axis=1)
    assert len(np.unique(ends, axis=0)) == len(ends) == len(np.unique(elements))
    np.testing.assert_array_equal(nodes[: len(points)], points)
    for a, (i, j) in enumerate(ENDS_OF_EDGES):
        np.testing.assert_allclose(nodes[elements[:, 4 + a]], 0.5 * (nodes[elements[:, i]] + nodes[elements[:, j]]))
    triangles, owners = boundary_triangles(elements, "quadratic")
    plain, plain_owners = boundary_triangles(tetrahedra)
    assert len(triangles) == 4 * len(plain)
    np.testing.assert_array_equal(owners, np.repeat(plain_owners, 4))
    assert all(set(triangle) <= set(elements[owner]) for triangle, owner in zip(triangles, owners, strict=True))
    a, b, c = (nodes[triangles[:, k]] for k in range(3))
    areas = 0.5 * np.cross(b - a, c - a)
    np.testing.assert_allclose(np.linalg.norm(areas, axis=1).sum(), 10.0)
    volume = np.sum(areas * (a + b + c)) / 9.0
    np.testing.assert_allclose(volume, 2.0)
