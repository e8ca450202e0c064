"""Materials: stress and stiffness are derivatives of the energy; rotations cost nothing; positive parts are right."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.finite_elements import LAWS, lame_constants
from mbjax.finite_elements.convex_stiffness import convex_stiffness, stiffness_in_search
from mbjax.finite_elements.material_laws import stiffness_of
from mbjax.finite_elements.rotation_factor import rotation_factor, singular_factors

rng = np.random.default_rng(0)


def rotation() -> np.ndarray:
    Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return Q * np.sign(np.linalg.det(Q))


GRADIENTS = {
    "small": np.eye(3) + 1e-3 * rng.normal(size=(3, 3)),
    "rotated": rotation(),
    "stretched": rotation() @ np.diag([2.0, 1.0, 0.9]) @ rotation(),
    "squeezed": rotation() @ np.diag([0.5, 1.0, 1.1]),
    "inverted": rotation() @ np.diag([1.0, 0.8, -0.3]) @ rotation(),
    "nearly flat": rotation() @ np.diag([1.0, 0.9, 1e-4]),
    "rest": np.eye(3),
}
F_ALL = jnp.array(np.stack(list(GRADIENTS.values())))
LAME = lame_constants(jnp.full(len(GRADIENTS), 3.0), jnp.full(len(GRADIENTS), 0.4))
R_START = jnp.array(np.stack([rotation() for _ in GRADIENTS]))


def start_rotations(name: str) -> jax.Array:
    return R_START if LAWS[name].reads_rotation else jnp.broadcast_to(jnp.eye(3), R_START.shape)


@pytest.mark.parametrize("name", LAWS)
def test_stress_and_stiffness_are_derivatives_of_the_energy(name: str) -> None:
    law, R = LAWS[name], start_rotations(name)
    energy = lambda F: jnp.sum(law.energy_density(F, R, LAME))  # noqa: E731
    dF = jnp.array(rng.normal(size=F_ALL.shape))
    h = 1e-6

    @jax.jit
    def at(F: jax.Array) -> tuple[jax.Array, ...]:
        stress = law.stress(F, R, LAME), jax.grad(energy)(F)
        return *stress, law.stress_change(F, R, LAME, dF), stiffness_of(law, F, R, LAME)

    P, expected, dP, C = at(F_ALL)
    np.testing.assert_allclose(P, expected, atol=1e-12)
    of_stress = (at(F_ALL + h * dF)[0] - at(F_ALL - h * dF)[0]) / (2 * h)
    np.testing.assert_allclose(dP, of_stress, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose((C @ dF.reshape(-1, 9, 1)).reshape(-1, 3, 3), dP, atol=1e-12)
    np.testing.assert_allclose(C, jnp.swapaxes(C, 1, 2), atol=1e-12)


@pytest.mark.parametrize("name", LAWS)
def test_the_positive_part_of_the_stiffness(name: str) -> None:
    law, R = LAWS[name], start_rotations(name)
    dF, turns = jnp.array(rng.normal(size=F_ALL.shape)), jnp.arange(len(F_ALL)) % 2 == 0

    @jax.jit
    def at(F: jax.Array) -> tuple:
        given = law, F, R, LAME
        return stiffness_of(*given), convex_stiffness(*given), stiffness_in_search(*given, turns, dF)

    C, found, (stiffness, along) = jax.tree.map(np.asarray, at(F_ALL))
    values, vectors = np.linalg.eigh(C)
    expected = (vectors * np.maximum(values, 0.0)[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    scale = np.abs(C).max(axis=(1, 2))[:, None, None]
    assert np.abs((found - expected) / scale).max() < 1e-12
    turned = (vectors * np.abs(values)[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    expected = np.where(turns[:, None, None], turned, expected)
    assert np.abs((stiffness - expected) / scale).max() < 1e-12
    assert (
        np.abs((along.reshape(-1, 9) - np.einsum("mab,mb->ma", found, dF.reshape(-1, 9))) / scale[:, 0]).max() < 1e-11
    )
    if not law.is_linear:
        assert values.min() < -0.1  # something was dropped


@pytest.mark.parametrize("name", ["corotated", "neo_hookean"])
def test_the_derivative_of_the_positive_part_also_where_eigenvalues_were_dropped(name: str) -> None:
    keep = [i for i, what in enumerate(GRADIENTS) if what not in ("rest", "rotated", "small")]  # no zero eigenvalues
    law, F, lame = LAWS[name], F_ALL[jnp.array(keep)], jax.tree.map(lambda x: x[: len(keep)], LAME)
    of_F = lambda F: convex_stiffness(law, F, F, lame)  # noqa: E731
    dF = jnp.array(rng.normal(size=F.shape))
    h = 1e-6
    value_and_change = jax.jit(lambda F: jax.jvp(of_F, (F,), (dF,)))
    differences = (value_and_change(F + h * dF)[0] - value_and_change(F - h * dF)[0]) / (2 * h)
    found = value_and_change(F)[1]
    scale = jnp.max(jnp.abs(differences), axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(found / scale, differences / scale, atol=2e-7)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("corotated", marks=pytest.mark.whole_run("two other laws")),
        "stable_neo_hookean",
        "rotating_small_strain",
    ],
)
def test_a_rotation_changes_nothing_and_rest_is_a_minimum(name: str) -> None:
    law, Q = LAWS[name], jnp.array(rotation())
    at = jax.jit(lambda F: (law.energy_density(F, F_ALL, LAME), law.stress(F, F_ALL, LAME)))
    (energy, stress), (of_turned, turned) = at(F_ALL), at(Q @ F_ALL)
    np.testing.assert_allclose(of_turned, energy, atol=1e-13)
    np.testing.assert_allclose(turned, Q @ stress, atol=1e-12)
    rest = jnp.eye(3)[None]
    one = jax.tree.map(lambda x: x[:1], LAME)
    np.testing.assert_allclose(law.stress(rest, rest, one), 0.0, atol=1e-15)
    assert np.linalg.eigvalsh(np.asarray(stiffness_of(law, rest, rest, one)[0])).min() > -1e-14


def test_young_and_poisson_in_a_uniaxial_test() -> None:
    """Small stretch along x with free sides: stress E ε, contraction ν ε."""
    E, nu, e = 7.0, 0.3, 1e-6
    lame = lame_constants(jnp.array([E]), jnp.array([nu]))
    F = jnp.diag(jnp.array([1.0 + e, 1.0 - nu * e, 1.0 - nu * e]))[None]
    for name, law in LAWS.items():
        if name != "neo_hookean":  # Drake's, whose small strains have lambda - mu in the place of lambda
            P = law.stress(F, jnp.eye(3)[None], lame)[0]
            np.testing.assert_allclose(P, np.diag([E * e, 0.0, 0.0]), atol=3e-11, err_msg=name)
    softer = LAWS["neo_hookean"].stress(F, jnp.eye(3)[None], lame)
    of_linear = LAWS["linear"].stress(F, jnp.eye(3)[None], lame._replace(lam=lame.lam - lame.mu))
    np.testing.assert_allclose(softer, of_linear, atol=3e-11)


def test_singular_factors_and_rotations_with_all_derivatives_finite() -> None:
    F = jnp.concatenate(
        [F_ALL, jnp.array([np.zeros((3, 3)), -np.eye(3), np.diag([2.0, 2.0, 0.0]), np.diag([1.0, 0, 0])])]
    )
    factors = jax.jit(singular_factors)
    U, sigma, V = factors(F)
    np.testing.assert_allclose((U * sigma[:, None, :]) @ jnp.swapaxes(V, 1, 2), F, atol=1e-14)
    for Q in (U, V):
        np.testing.assert_allclose(jnp.swapaxes(Q, 1, 2) @ Q, np.broadcast_to(np.eye(3), Q.shape), atol=1e-14)
        np.testing.assert_allclose(np.linalg.det(Q), 1.0, atol=1e-14)
    np.testing.assert_allclose(jnp.abs(sigma), np.linalg.svd(F, compute_uv=False), atol=1e-14)

    def twice(F: jax.Array) -> jax.Array:
        return jax.jvp(jax.grad(lambda F: jnp.sum(jnp.sin(rotation_factor(F)))), (F,), (jnp.ones_like(F),))[1]

    assert np.isfinite(jax.jit(twice)(F)).all()
    tiny = F.astype(jnp.float32) * jnp.float32(1e-11)  # whose squares vanish
    assert all(np.isfinite(x).all() for x in factors(tiny))
    dF, h = jnp.array(rng.normal(size=F_ALL.shape)), 1e-6
    value_and_change = jax.jit(lambda F: jax.jvp(rotation_factor, (F,), (dF,)))
    differences = (value_and_change(F_ALL + h * dF)[0] - value_and_change(F_ALL - h * dF)[0]) / (2 * h)
    np.testing.assert_allclose(value_and_change(F_ALL)[1], differences, rtol=1e-6, atol=1e-7)
