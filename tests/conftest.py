"""Settings every test runs under: double precision, no silent type promotion, warnings are errors."""

import jax
import pytest

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--trimmed", action="store_true", help="run slow tests on fewer cases, as CI does")
