"""The search along a line: where the slope of a convex function crosses zero."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.contact.search.line_search import MAX_EVALUATIONS, find_minimum

ONE, NONE = jnp.ones(()), jnp.zeros(())


def piecewise(kinks: jax.Array, rises: jax.Array, start: jax.Array) -> Callable:
    """A slope that rises from `start` at 0, by another rate after each kink, and its derivative."""

    def slope(t: jax.Array) -> tuple[jax.Array, jax.Array]:
        past = jnp.maximum(t - kinks, 0.0)
        return start + jnp.sum(rises * past, 0), jnp.sum(jnp.where(t > kinks, rises, 0.0), 0)

    return slope


def counted(slope: Callable, calls: list) -> Callable:
    """The same, that notes how often it is asked."""

    def of(t: jax.Array) -> tuple[jax.Array, jax.Array]:
        jax.debug.callback(lambda t: calls.append(np.asarray(t)), t)
        return slope(t)

    return of


def test_the_slope_found_is_a_hundredth_of_the_first_or_t_is_1() -> None:
    rng, worlds = np.random.default_rng(0), 200
    kinks = np.concatenate([np.zeros((1, worlds)), rng.uniform(size=(6, worlds))])
    rises = 10.0 ** rng.uniform(-2.0, 6.0, kinks.shape)
    start = -(10.0 ** rng.uniform(-2.0, 5.0, worlds))
    slope = piecewise(kinks, rises, start)
    t = find_minimum(slope, jnp.asarray(start), jnp.zeros(worlds), ONE, NONE, jnp.ones(worlds, bool))
    found, at_1 = slope(t)[0], slope(jnp.ones(worlds))[0]
    stays_below = np.asarray(at_1 <= 0.0)
    assert 10 < stays_below.sum() < 190
    np.testing.assert_array_equal(np.asarray(t)[stays_below], 1.0)
    assert (np.abs(found) <= 0.01 * np.abs(start))[~stays_below].all()


def test_worlds_that_are_not_wanted_go_all_the_way() -> None:
    slope = piecewise(jnp.zeros((1, 2)), jnp.full((1, 2), 10.0), jnp.full(2, -1.0))
    t = find_minimum(slope, jnp.full(2, -1.0), jnp.zeros(2), ONE, NONE, jnp.array([True, False]))
    np.testing.assert_allclose(t, [0.1, 1.0], rtol=1e-12)


@pytest.mark.parametrize(("lost", "most"), [(0.1, 6), (0.0, MAX_EVALUATIONS)])
def test_a_slope_that_jumps_over_zero_is_asked_until_the_bracket_is_lost_in_rounding(lost: float, most: int) -> None:
    calls: list = []

    def slope(t: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.where(t < 0.59, -1.0, 1.0) + 1e-3 * t, jnp.full_like(t, 1e-3)

    t = find_minimum(counted(slope, calls), jnp.full(3, -1.0), jnp.zeros(3), ONE, jnp.full(3, lost), jnp.ones(3, bool))
    jax.effects_barrier()
    np.testing.assert_allclose(t, 0.59, atol=max(lost, 1e-6))
    assert len(calls) <= most
    assert lost or len(calls) == most


def test_where_there_is_nowhere_to_go_nothing_is_divided_by_zero() -> None:
    """So that `jax_debug_nans` has nothing to say of a robot at rest in balance."""
    calls: list = []
    slope = piecewise(jnp.zeros((1, 1)), jnp.ones((1, 1)), jnp.zeros(1))
    with jax.debug_nans(True):
        t = find_minimum(counted(slope, calls), NONE[None], NONE[None], NONE, NONE, jnp.ones(1, bool))
    jax.effects_barrier()
    np.testing.assert_array_equal(t, 1.0)
    assert len(calls) == 1
