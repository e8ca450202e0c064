"""Compiled programs kept between processes, in JAX's persistent cache."""

import os
import pathlib

import jax


def keep_compiled_programs(folder: str | os.PathLike | None = None) -> pathlib.Path:
    """Has every program that is compiled from now on kept for later processes; returns the folder they are kept in.

    It is JAX's persistent cache with the settings that suit mbjax: also programs that took less than a second to
    compile are kept. Without `folder`, a folder that JAX was given stays, else it is `~/.cache/mbjax`. A later process
    still traces its programs, but does not compile them. Delete the folder whenever you like.
    """
    if folder is None:
        folder = jax.config.jax_compilation_cache_dir or default_folder()  # type: ignore[attr-defined]
    folder = pathlib.Path(folder).expanduser()
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return folder


def default_folder() -> pathlib.Path:
    """Where programs are kept unless a folder is given: the user's cache."""
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "mbjax"
