"""Settings every test runs under: double precision, no silent type promotion; and which tests a tier has."""

import gc
import math
import os
import pathlib
import sys

import jax
import pytest

from mbjax.execution.worlds import chunks
from tests.tiers import is_quick, may_hold_quick_tests, quick_name
from tests.xla_options import FAST_TO_COMPILE

# Most of the time is XLA's: programs that are not optimized compile in a quarter of it. Workers inherit what is set.
if {"--trimmed", "--quick"} & set(sys.argv):
    os.environ["MBJAX_TRIMMED_TESTS"] = "1"
if {"--trimmed", "--quick", "--whole"} & set(sys.argv) and "--optimized" not in sys.argv:
    flags = " ".join(f"--{name}={str(value).lower()}" for name, value in FAST_TO_COMPILE.items())
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}"

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # workers share the cores, and its threads spin while they wait
os.environ.setdefault("JAX_ENABLE_COMPILATION_CACHE", "false")  # `mbjax` in a process of its own writes nothing at home
os.environ.pop("COLUMNS", None)  # which pytest-xdist sets in its workers: tables would be as narrow as a terminal
MOST_BYTES = 2 << 30
FEW_NUMBERS, chunks.FEW_NUMBERS = chunks.FEW_NUMBERS, 0  # batches of few worlds stand for large ones, in chunks
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_traceback_in_locations_limit", 0)  # nobody reads the places in programs: a tenth of the time
os.environ["JAX_TRACEBACK_IN_LOCATIONS_LIMIT"] = "0"  # in programs of their own, too


def pytest_configure(config: pytest.Config) -> None:
    """The quick run has trimmed tests."""
    config.option.trimmed = config.option.trimmed or config.option.quick


def pytest_ignore_collect(collection_path: pathlib.Path, config: pytest.Config) -> bool | None:
    """Reads no file that has nothing for a tier: to import all of them takes half a minute in each worker."""
    path = collection_path.relative_to(config.rootpath).as_posix()
    others = (config.option.quick and not may_hold_quick_tests(path)) or (config.option.beyond_quick and is_quick(path))
    return True if others else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Chooses the tests of the quick run or those beyond it; trimmed runs skip `whole_run("what stands for it")`."""
    if config.option.quick or config.option.beyond_quick:
        others = [item for item in items if is_quick(item.nodeid) != config.option.quick]
        items[:] = [item for item in items if is_quick(item.nodeid) == config.option.quick]
        config.hook.pytest_deselected(items=others)
    if config.option.quick and (idle := names_without_a_test(items)):
        raise pytest.UsageError(f"tests/tiers.py names what only the whole run has: {', '.join(idle)}")
    if config.option.trimmed:
        for item in items:
            for mark in item.iter_markers("whole_run"):
                item.add_marker(pytest.mark.skip(reason=f"trimmed: {mark.args[0]}"))


def names_without_a_test(items: list[pytest.Item]) -> list[str]:
    """Names of the quick run all of whose tests here are left out as those of the whole run."""
    runs: dict[str, list[bool]] = {}
    for item in items:
        is_left_out = any(item.iter_markers("whole_run"))
        runs.setdefault(quick_name(item.nodeid) or "", []).append(not is_left_out)
    return [name for name, run in runs.items() if not any(run)]


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is imported by now stays: the collector of cycles need not look at it time and again."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(autouse=True, scope="module")
def release_programs():
    """Compiled programs go once they fill the memory: kept to the end they are 7 GB a worker, and many serve again."""
    yield
    if resident_bytes() > MOST_BYTES:
        jax.clear_caches()


def resident_bytes() -> float:
    """Memory of this process; without Linux's account of it, infinite."""
    statm = pathlib.Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else math.inf


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="run the trimmed tests that tests/tiers.py names")
    parser.addoption("--trimmed", action="store_true", help="run slow tests on fewer cases, as CI does")
    parser.addoption("--beyond-quick", action="store_true", help="leave out what the quick run has")
    parser.addoption("--whole", action="store_true", help="run every test on all of its cases")
    parser.addoption("--optimized", action="store_true", help="compile as users do, which takes four times as long")
