"""Steps with contact in batches of several chunks, whose slow worlds go on in a turn of their own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.contact.search import convex_search
from mbjax.execution.worlds.chunks import CHUNK
from tests.gradients.checks import compiled
from tests.models import relative_error

from .test_gradients import LOCAL, state_of, two_balls

MODEL = two_balls()
WORLDS = 2 * CHUNK + 57  # three chunks that are not quite full


def thrown() -> tuple[jax.Array, jax.Array]:
    """q and v, about states of every kind: some need twice as many iterations as others."""
    kinds = [state_of(case) for case in LOCAL]
    rng = np.random.default_rng(0)
    q, v = (np.stack([np.asarray(kinds[w % len(kinds)][i]) for w in range(WORLDS)]) for i in range(2))
    return jnp.asarray(q), jnp.asarray(v + rng.normal(size=v.shape) * rng.uniform(0.0, 3.0, (WORLDS, 1)))


def after(q: jax.Array, v: jax.Array, model: mbjax.MultibodyModel = MODEL) -> tuple:
    state, outputs = mbjax.step(model, mbjax.State(q, v, jnp.zeros(())))
    contacts = outputs.contact_results
    return state.q, state.v, contacts.force, contacts.num_iterations, contacts.converged


together = compiled(jax.vmap(after))


@pytest.mark.whole_run("worlds of drops, of which one breaks and leaves the others alone, in test_drops.py")
def test_each_world_is_as_alone_and_leaves_the_others_alone() -> None:
    """Values and iterations, bit by bit whatever becomes of others: G51.

    Alone, by another program, it comes to the same values; where a point that hardly slips may stick or slide, rounding
    decides on the way there, and one world of these needs 8 iterations instead of 10.
    """
    q, v = thrown()
    alone = compiled(after)
    results = [np.asarray(x) for x in together(q, v)]
    num_iterations, converged = results[3:]
    assert converged.all()
    late = np.argsort(num_iterations)[-5:]
    assert num_iterations[late].min() > np.quantile(num_iterations, 2 / 3)  # a third of three chunks may be late
    for w in (0, 1, 2, WORLDS - 1, *late):
        own = alone(q[w], v[w])
        for ours, theirs in zip(results[:3], own[:3], strict=True):
            np.testing.assert_allclose(ours[w], theirs, rtol=1e-11, atol=1e-11 * np.abs(theirs).max())

    broken = np.arange(WORLDS) % 3 == 1
    beside = [np.asarray(x) for x in together(q, jnp.where(broken[:, None], jnp.nan, v))]
    assert np.isnan(beside[1][broken]).all()
    assert not beside[4][broken].any()
    for ours, theirs in zip(results, beside, strict=True):
        np.testing.assert_array_equal(ours[~broken], theirs[~broken])


@pytest.mark.whole_run("worlds of drops, of which one breaks, in test_drops.py")
def test_a_world_that_is_given_up_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though others of its late turn, which came there after fewer iterations, go on."""
    q, v = thrown()
    needed = np.asarray(together(q, v)[3])
    fast, slow, slowest = (np.flatnonzero(x)[:k] for x, k in ((needed == 1, 75), (needed == 6, 30), (needed > 6, 30)))
    middle = np.flatnonzero(needed == 5)[: 105 - slowest.size]
    chunks = np.concatenate([fast, slow, middle, slowest])  # the one leaves its slow worlds at once, the other later
    order, most = np.concatenate([chunks, np.setdiff1d(np.arange(WORLDS), chunks)]), 6
    assert slowest.size >= 4
    monkeypatch.setattr(convex_search, "MAX_ITERATIONS", most)
    anew = two_balls(max_pairs=9)  # more than there are: the same, but traced again
    *_, num_iterations, converged = compiled(jax.vmap(lambda q, v: after(q, v, anew)))(q[order], v[order])
    np.testing.assert_array_equal(num_iterations, np.minimum(needed[order], most))
    np.testing.assert_array_equal(converged, needed[order] <= most)


@pytest.mark.whole_run("values of worlds of drops, and gradients of a ball with friction in test_impact_gradients.py")
def test_gradients_of_worlds_that_were_late() -> None:
    q, v = thrown()

    def cost(q: jax.Array, v: jax.Array) -> jax.Array:
        return jnp.sum(after(q, v)[1] ** 2) + 1e-4 * jnp.sum(after(q, v)[2] ** 2)

    slopes = compiled(jax.vmap(jax.grad(cost, (0, 1))))(q, v)
    alone = compiled(jax.grad(cost, (0, 1)))
    late = np.argsort(together(q, v)[3])[-5:]
    for w in (0, 1, 2, *late):
        for ours, theirs in zip(slopes, alone(q[w], v[w]), strict=True):
            assert relative_error(ours[w], theirs) < 1e-9
