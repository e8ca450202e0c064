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


SQUEEZED = [259, 372, 506, 1482, 1969, 2326]  # of 2400 drops: a light box under a ball 3e4 to 5e5 times as heavy


@pytest.mark.whole_run("the factor's least pivots, in tests/linear_algebra")
def test_a_light_box_under_a_heavy_ball_in_single_precision() -> None:
    """Stiffness times rounding exceeds the mass of the box: the matrix of the step must stay positive. All were NaN."""
    drop = Drop(("box", "sphere"), "sap", "float32")
    model = build(drop)
    keys = jax.random.split(jax.random.key(7000), 2400)[np.array(SQUEEZED)]
    seen = compiled(jax.vmap(lambda key: drop_it(random_start(drop, model, key, 60), 60)))(keys)
    assert (seen.is_finite | seen.driven).all()
    assert not (seen.crossed & ~seen.driven).any()
    assert (seen.driven | (seen.energy_growth <= ROUNDING[drop.dtype] * seen.peak_energy)).all()
    assert seen.is_finite.sum() > len(SQUEEZED) // 2
