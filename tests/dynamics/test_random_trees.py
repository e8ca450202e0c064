"""Every joint type, alone and in random trees, against Drake."""

import numpy as np
import pytest

from tests.models import ALL_KINDS, random_tree

from .oracles import drake_quantities, make_sample, mbjax_quantities, relative_errors

# Every kind once in two shapes of tree; and kinds repeated on one tree, in mixed order.
TREES = {
    "every kind": (0, ALL_KINDS),
    "every kind, reversed": (1, ALL_KINDS[::-1]),
    "repeated": (
        2,
        (
            "universal", "screw", "weld", "weld", "planar", "revolute", "ball_rpy", "universal", "screw", "planar",
            "weld", "ball_rpy", "prismatic", "prismatic", "revolute", "rpy_floating", "quaternion_floating",
        ),
    ),
}  # fmt: skip


@pytest.mark.whole_run("a quadruped; every kind at Drake's ports in tests/simulation; Jacobians in tests/kinematics")
@pytest.mark.parametrize("tree", TREES)
def test_equals_drake(tree, record_property):
    twin = random_tree(*TREES[tree])
    for seed in range(4):
        sample = make_sample(twin.model, seed)
        got, expected = mbjax_quantities(twin.model, sample), drake_quantities(twin, sample)
        assert got.keys() == expected.keys()
        errors = relative_errors(got, expected)
        record_property(f"errors of seed {seed}", errors)
        assert max(errors.values()) <= 1e-10, {k: e for k, e in errors.items() if e > 1e-10}


@pytest.mark.parametrize("tree", TREES)
def test_names_equal_drakes(tree):
    """The sets agree for every joint type; `make_twin` pairs coordinates by them."""
    twin = random_tree(*TREES[tree])
    assert sorted(twin.model.position_names()) == sorted(twin.plant.GetPositionNames())
    assert sorted(twin.model.velocity_names()) == sorted(twin.plant.GetVelocityNames())
    assert len(np.unique(twin.to_drake_q)) == twin.model.num_positions
