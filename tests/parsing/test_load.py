"""`load`: what it costs, what it takes besides a path, and which options it passes on."""

import jax
import pytest

import mbjax


@pytest.fixture
def compiled():
    """Programs compiled since the test began, one entry each."""
    seen: list[str] = []

    def listener(event: str, duration_secs: float, **_: str | int) -> None:
        del duration_secs
        if event == "/jax/core/compile/backend_compile_duration":
            seen.append(event)

    jax.clear_caches()
    jax.monitoring.register_event_duration_secs_listener(listener)
    yield seen
    jax.monitoring.unregister_event_duration_listener(listener)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_loading_compiles_nothing(compiled, dtype):
    """Each little program JAX makes of a conversion costs as much as reading the file."""
    mbjax.load(mbjax.reference_models.path("arm"), dtype=dtype)
    assert compiled == []
    jax.jit(lambda x: x + 1.0)(2.0).block_until_ready()
    assert compiled, "the listener hears compilations"
