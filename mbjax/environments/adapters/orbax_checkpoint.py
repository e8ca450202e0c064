"""Checkpoints by orbax: a tree of arrays and keys, such as a learner with its worlds, read back bit-equal."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from mbjax.errors import ModelError
from mbjax.optional_packages import imported


def save_checkpoint(folder: str | Path, step: int, tree: Any) -> None:
    """Saves the arrays and keys of a tree as `folder/step`; it returns when all is written. Needs orbax.

    Arrays may be sharded over devices, or over processes that all call this. Other leaves, such as functions, are not
    saved.
    """
    checkpoint = imported("orbax.checkpoint", "save_checkpoint needs orbax", "learn")
    with checkpoint.StandardCheckpointer() as saver:
        saver.save(Path(folder).absolute() / str(step), numbered(tree), force=True)


def restore_checkpoint(folder: str | Path, like: Any, step: int | None = None) -> tuple[int, Any]:
    """The step and the tree that were saved, the last one if `step` is None. Needs orbax.

    `like` is a tree of the same structure and shapes, such as the one that a run starts with: its shardings are taken,
    and its leaves that are no arrays.
    """
    checkpoint = imported("orbax.checkpoint", "restore_checkpoint needs orbax", "learn")
    folder = Path(folder).absolute()
    steps = sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit()) if folder.is_dir() else []
    if not steps or (step is not None and step not in steps):
        there = ", ".join(map(str, steps)) or "none"
        raise ModelError(f"restore_checkpoint: {folder} has no checkpoint {'' if step is None else step}: {there}.")
    step = steps[-1] if step is None else step
    with checkpoint.StandardCheckpointer() as reader:
        found = reader.restore(folder / str(step), jax.tree.map(shape_of, numbered(like)))
    leaves, structure = jax.tree.flatten(like)
    new = [restored(leaf, found.get(name_of(i))) for i, leaf in enumerate(leaves)]
    return step, jax.tree.unflatten(structure, new)


def numbered(tree: Any) -> dict[str, jax.Array]:
    """The arrays of a tree by their place, keys as the numbers they consist of."""
    leaves = enumerate(jax.tree.leaves(tree))
    return {name_of(i): data_of(leaf) for i, leaf in leaves if eqx.is_array(leaf)}


def name_of(place: int) -> str:
    """Name of a leaf in the checkpoint."""
    return f"leaf_{place:05d}"


def is_key(leaf: Any) -> bool:
    """Whether a leaf holds typed keys."""
    return eqx.is_array(leaf) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def data_of(leaf: jax.Array) -> jax.Array:
    """An array of numbers, those of a key too."""
    return jax.random.key_data(leaf) if is_key(leaf) else jnp.asarray(leaf)


def shape_of(leaf: jax.Array) -> jax.ShapeDtypeStruct:
    """Shape, type and sharding of an array."""
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)


def restored(leaf: Any, data: Any) -> Any:
    """A leaf with the numbers that were read."""
    if data is None:
        return leaf
    return jax.random.wrap_key_data(data, impl=jax.random.key_impl(leaf)) if is_key(leaf) else data
