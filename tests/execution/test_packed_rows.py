"""Records with names in rows of one array: scans flatten and restore them, and stages read what they ask for."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.execution.recursion.packed_rows import Packed
from mbjax.execution.recursions import (
    array_of,
    in_one_kernel,
    kept_stage,
    rows_of,
    scan_inward,
    scan_outward,
    stage,
    walk_plan,
    zeros_of,
)


class Screw(NamedTuple):
    """Two vectors."""

    w: Any
    v: Any
    shapes = 2, 3


class Block(NamedTuple):
    """A matrix, a number, and a record within the record."""

    A: Any
    x: Any
    screw: Any
    shapes = (2, 2), 1, Screw


@stage
def doubled(block: Block) -> Block:
    """Every entry twice, in the shapes that a stage sees."""
    assert [len(row) for row in block.A] == [2, 2]
    A = [[2.0 * x for x in row] for row in block.A]
    return Block(A, 2.0 * block.x, Screw(*([2.0 * x for x in part] for part in block.screw)))


@kept_stage
def plus(a: Block, b: Block) -> Block:
    """Sum of two records."""
    return jax.tree.map(jnp.add, a, b)


@stage
def first_of(screw: Screw) -> Any:
    """An entry of a field."""
    return screw.w[0]


@pytest.mark.parametrize("worlds", [(), (3,), (128,)])
def test_scans_flatten_and_restore_records(worlds: tuple[int, ...]) -> None:
    """A record in each row is added up toward the root; what is kept is a record as well."""
    parents = (0, 1, 1, 3)  # of nodes 1 to 4; 0 is the world
    rows = jnp.arange(4.0 * 10).reshape(4, 10, *(1 for _ in worlds)) + jnp.arange(float(np.prod(worlds, dtype=int)))
    rows = rows.reshape(4, 10, *worlds)

    def step(outboard: Any, row: Any) -> Any:
        total = plus(outboard, doubled(row))
        return total, (total, first_of(row.screw))

    def inward(rows: jax.Array) -> Any:
        given = Packed(rows, Block)
        zero = zeros_of(Block, worlds, rows.dtype)
        return scan_inward(walk_plan(parents), step, given, zero, staged=True)

    (kept, first), _ = jax.jit(lambda rows: in_one_kernel(inward, rows))(rows)
    assert kept.kind is Block
    outboard = [range(4), (1,), (2, 3), (3,)]
    expected = np.stack([2.0 * np.sum(np.asarray(rows)[list(x)], 0) for x in outboard])
    np.testing.assert_array_equal(kept.array, expected)
    np.testing.assert_array_equal(first, rows[:, 5])


def test_a_field_reads_its_own_entries_alone() -> None:
    """The program of a stage that is given one field slices what is read, and no other entries."""
    packed = Packed(jnp.arange(10.0), Block)
    text = jax.jit(lambda packed: first_of(packed.screw)).lower(packed).as_text()
    assert text.count("stablehlo.slice") == 1
    with pytest.raises(AttributeError):
        _ = packed.mass


def test_a_stage_of_whole_arrays_is_a_plain_call() -> None:
    """In a step of whole arrays nothing is marked."""
    block = Block(jnp.ones((2, 2)), jnp.ones(()), Screw(jnp.ones(2), jnp.ones(3)))
    assert "func.call" not in jax.jit(lambda x: plus(x, x)).lower(block).as_text()


class Spin(NamedTuple):
    """A vector, and a number that rows may leave out."""

    w: Any
    rate: Any = None
    shapes = 2, 1


@stage
def turned(spin: Spin, axis: Any, factor: Any) -> tuple[Spin, Any]:
    """Multiplies by a number, and hands the axis on as the list that a row of three is."""
    assert isinstance(axis, list)
    rate = None if spin.rate is None else factor * spin.rate
    return Spin([factor * x for x in spin.w], rate), [factor * x for x in axis]


@pytest.mark.parametrize("has_rate", [True, False])
def test_rows_leave_out_last_fields_and_may_be_vectors_or_numbers(has_rate: bool) -> None:
    """What is None by default may be left out; a stage sees a row of one entry as a number, of three as a vector."""
    row, factors, axes = jnp.arange(1.0, 4.0)[: 2 + has_rate], jnp.array([[2.0], [5.0]]), jnp.arange(6.0).reshape(2, 3)

    def step(inboard: Any, row: Any) -> Any:
        spin, axis = turned(inboard, *row)
        return spin, (axis, spin.w)

    def outward(row: jax.Array, axes: jax.Array, factors: jax.Array) -> Any:
        rows = rows_of(3, axes), rows_of(1, factors)
        return scan_outward(walk_plan((0, 1)), step, rows, rows_of(Spin, row), staged=True)

    axis, w = jax.jit(lambda *x: in_one_kernel(outward, *x))(row, axes, factors)
    assert (axis.kind, w.kind) == (3, 2)
    np.testing.assert_array_equal(array_of(axis), factors * axes)
    np.testing.assert_array_equal(array_of(w), [2.0 * row[:2], 10.0 * row[:2]])
