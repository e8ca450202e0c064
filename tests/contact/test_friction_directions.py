"""Stiffness with the direction of friction as its own unknown: positive semidefinite, and exact at the solution."""

import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.contact.laws.abstract_law import AbstractContactLaw
from mbjax.contact.laws.elastic_force import ElasticForce
from mbjax.contact.laws.hunt_crossley_law import HuntCrossleyLaw
from mbjax.contact.laws.sap_law import SapLaw
from mbjax.spatial import component_algebra as ca

rng = np.random.default_rng(0)
M = 40


def law_named(name: str) -> AbstractContactLaw:
    """The law with random numbers at many points, of which some are inactive."""
    n = rng.normal(size=(3, M))
    n = jnp.array(n / np.linalg.norm(n, axis=0))
    friction, active = jnp.array(rng.uniform(0.2, 1.0, M)), jnp.array(rng.uniform(size=M) < 0.9)
    if name == "sap":
        R_t, R_n = jnp.array(rng.uniform(0.01, 0.1, M)), jnp.array(rng.uniform(0.05, 0.5, M))
        return SapLaw(n, friction, R_t, R_n, jnp.array(rng.uniform(0.0, 2.0, M)), active)
    return HuntCrossleyLaw(
        n,
        friction,
        ElasticForce(jnp.array(rng.uniform(10.0, 100.0, M)), None),
        jnp.array(rng.uniform(0.0, 0.2, M)),
        jnp.array(rng.uniform(-0.2, 0.0, M)),
        jnp.array(rng.uniform(0.0, 1.0, M)),
        jnp.array(rng.uniform(0.01, 0.5, M)),
        active,
        jnp.array(0.01),
        name == "lagged",
    )


@pytest.mark.parametrize("name", ["sap", "similar", "lagged"])
def test_the_direction_of_the_impulse_itself_gives_the_stiffness_and_others_stay_semidefinite(name: str) -> None:
    law = law_named(name)
    v = jnp.array(rng.normal(size=(3, M)))
    exact, again = law.stiffness(v), law.stiffness(v, law.impulse(v))
    np.testing.assert_allclose(again, exact, rtol=1e-9, atol=1e-9 * float(jnp.abs(exact).max()))
    np.testing.assert_array_equal(law.stiffness(v, jnp.zeros((3, M))), exact)  # of points that were apart
    for size in (0.1, 1.0, 10.0):
        other = law.stiffness(v, jnp.array(size * rng.normal(size=(3, M))))
        assert float(jnp.abs(other - exact).max()) > 1e-3 * float(jnp.abs(exact).max())
        matrices = jnp.moveaxis(ca.symmetric_matrix(other), -1, 0)
        least = jnp.linalg.eigvalsh(matrices)[:, 0]
        assert float(least.min()) > -1e-12 * float(jnp.abs(matrices).max())
