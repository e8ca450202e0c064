"""Random drops: no NaN, no tunnelling, energy never grows, and worlds do not touch each other.

`python -m benchmarks.contact_drops` runs a hundred thousand of them.
"""

import functools

import equinox as eqx
import jax
import numpy as np
import pytest

from benchmarks.drops import Drop, Outcome, Start, build, drop_it, random_start
from tests.gradients.checks import compiled

WORLDS, STEPS, HURT = 48, 30, 5
ROUNDING = {"float32": 1e-5, "float64": 1e-12}  # of energies, beside the largest kinetic one


@functools.cache
def program(drop: Drop):
    """Starts of random worlds, and what happens to them."""
    model = build(drop)
    starts = compiled(jax.vmap(lambda key: random_start(drop, model, key, STEPS)))
    return starts, compiled(jax.vmap(lambda start: drop_it(start, STEPS)))


def dropped(drop: Drop) -> tuple[Start, Outcome]:
    starts, fall = program(drop)
    start = starts(jax.random.split(jax.random.key(1), WORLDS))
    return start, fall(start)


CASES = [
    (("box",), "sap", "float32"),
    (("sphere",), "similar", "float64"),
    (("capsule",), "lagged", "float32"),
    (("cylinder",), "sap", "float64"),
    (("ellipsoid",), "similar", "float32"),
    (("convex",), "lagged", "float64"),
    (("sphere", "sphere"), "sap", "float64"),
]
WHOLE_RUN = pytest.mark.whole_run("boxes")


@pytest.mark.parametrize("case", [CASES[0], *(pytest.param(case, marks=WHOLE_RUN) for case in CASES[1:])], ids=str)
def test_drops(case: tuple) -> None:
    """On the ground, and one on the other; G51: a world that breaks leaves its neighbours bit by bit alone."""
    drop = Drop(*case)
    start, seen = dropped(drop)
    growth = np.asarray(seen.energy_growth / seen.peak_energy)
    depth = np.asarray(seen.deepest / start.smallest_length)
    print(f"{drop}: growth {growth.max():.1e}, depth {depth.max():.2f}, {seen.most_iterations.max()} iterations")
    assert seen.is_finite.all()
    assert seen.touched.mean() > 0.6
    assert not seen.unconverged.any()
    assert (growth < ROUNDING[drop.dtype]).all()
    assert not (seen.crossed & ~seen.driven).any()

    broken = eqx.tree_at(lambda s: s.state.v, start, start.state.v.at[HURT].set(np.nan))
    beside = program(drop)[1](broken)
    assert not beside.is_finite[HURT]
    others = np.arange(WORLDS) != HURT
    for ours, theirs in zip(jax.tree.leaves(seen), jax.tree.leaves(beside), strict=True):
        np.testing.assert_array_equal(np.asarray(ours)[others], np.asarray(theirs)[others])
