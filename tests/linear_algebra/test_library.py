"""LAPACK's factorizations: right for one matrix and many, differentiable, and never many in one call that may wait."""

import os
import pathlib
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import linear_algebra
from mbjax.execution.targets import library_calls
from tests.constraints.mechanisms import four_bar

PACKAGE = pathlib.Path(mbjax.__file__).parent
ROOT = PACKAGE.parent
CALLERS = {"linear_algebra/lapack.py"}  # the only file that may call LAPACK
RNG = np.random.default_rng(0)
GENERAL, RIGHT = RNG.normal(size=(9, 5, 5)), RNG.normal(size=(9, 5))
POSITIVE = GENERAL @ GENERAL.swapaxes(1, 2) + np.eye(5)
THEIRS = {
    "solve": (GENERAL, jnp.linalg.solve),
    "solve_positive_definite": (POSITIVE, jnp.linalg.solve),
    "solve_lower_triangular": (GENERAL, lambda A, b: jax.scipy.linalg.solve_triangular(A, b, lower=True)),
    "solve_upper_triangular": (GENERAL, jax.scipy.linalg.solve_triangular),
    "cholesky_solve": (POSITIVE, lambda L, b: jax.scipy.linalg.cho_solve((jnp.tril(L), True), b)),
    "cholesky": (POSITIVE, lambda A, _: jnp.linalg.cholesky(A)),
    "log_determinant": (POSITIVE, lambda A, _: jnp.linalg.slogdet(A)[1]),
    "singular_values": (GENERAL, lambda A, _: jnp.linalg.svd(A, compute_uv=False)),
}


@pytest.mark.parametrize("name", THEIRS)
def test_values_and_derivatives_are_those_of_jax(name: str) -> None:
    """For a batch, by the matrix and the right-hand side."""
    matrices, theirs = THEIRS[name]
    takes_right_side = "solve" in name
    ours = getattr(linear_algebra, name)

    def with_slopes(function):
        def of_one(A: jax.Array, b: jax.Array) -> jax.Array:
            A = jnp.tril(A) if name == "cholesky_solve" else A
            return jnp.sum(jnp.sin(function(A, b) if takes_right_side or function is theirs else function(A)))

        return jax.jit(jax.vmap(jax.value_and_grad(of_one, (0, 1))))(matrices, RIGHT)

    for x, y in zip(*map(jax.tree.leaves, (with_slopes(ours), with_slopes(theirs))), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-8)


def test_values_are_those_of_numpy() -> None:
    """What has no derivative, for matrices of unlike shapes and for a batch of right-hand sides of one matrix."""
    wide = GENERAL[:, :3]
    found = jax.vmap(lambda A: linear_algebra.pseudo_inverse(A, 1e-10))(wide)
    np.testing.assert_allclose(found, np.linalg.pinv(wide), rtol=1e-9, atol=1e-12)
    R = np.asarray(jax.vmap(linear_algebra.triangular_factor)(wide))
    np.testing.assert_allclose(R.swapaxes(1, 2) @ R, wide.swapaxes(1, 2) @ wide, rtol=0, atol=1e-12)
    Q, R = jax.vmap(linear_algebra.orthogonal_factors)(wide.swapaxes(1, 2))
    np.testing.assert_allclose(Q @ R, wide.swapaxes(1, 2), rtol=0, atol=1e-12)
    found = jax.vmap(linear_algebra.eigenvalues)(POSITIVE)
    np.testing.assert_allclose(found, np.linalg.eigvalsh(POSITIVE), rtol=1e-12)
    twice = jax.vmap(jax.vmap(linear_algebra.solve, (None, 0)), (0, None))(GENERAL, RIGHT)
    np.testing.assert_allclose(twice, np.linalg.solve(GENERAL[:, None], RIGHT[None, ..., None])[..., 0], rtol=1e-9)


def test_right_hand_sides_of_one_matrix_are_one_call() -> None:
    jaxpr = jax.make_jaxpr(jax.vmap(linear_algebra.solve, (None, 0)))(GENERAL[0], RIGHT)
    assert re.search(r"f64\[5,9\] = library_call", str(jaxpr).replace("\n", "")) or "5,1,9" in str(jaxpr), jaxpr


def test_nothing_else_calls_lapack() -> None:
    """Other calls could stand side by side in one program, where each waits for a thread that waits too."""
    calls = re.compile(
        r"\b(jnp|jsp|jax\.numpy|jax\.scipy|lax)\.linalg\b|\bfrom jax\S* import .*\blinalg\b|\bfrom jax\S*\.linalg\b"
        r"|\b(lx|lineax)\.(QR|SVD|LU|Cholesky|AutoLinearSolver|Tridiagonal)\b"
    )
    found = [
        f"{file.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for file in sorted(PACKAGE.rglob("*.py"))
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if calls.search(line) and file.relative_to(PACKAGE).as_posix() not in CALLERS
    ]
    assert not found, "call mbjax.linear_algebra instead of LAPACK: " + "; ".join(found)


def most_work_shared_out(text: str) -> int:
    """Operations that jaxlib may count for the largest batch of a program's LAPACK calls, 0 if all are alone."""
    work = [0]
    for line in text.splitlines():
        if "lapack_" not in line:
            continue
        for shape in re.findall(r"tensor<((?:\d+x)+)f\d+>", line.split(" : ")[-1]):
            *batch, n, m = map(int, shape.split("x")[:-1]) if shape.count("x") > 2 else (0, 0, 0)
            work.append(int(np.prod(batch)) * library_calls.MOST_PER_ENTRY * max(n, m) ** 3 if batch != [1] else 0)
    return max(work)


@pytest.mark.skipif(not library_calls.SHARES_OUT, reason="this jaxlib shares no batch out among threads")
def test_no_batch_is_shared_out_among_threads(request: pytest.FixtureRequest) -> None:
    """Batches of solves and decompositions, in batches of batches too; whole run: of assemblies."""
    if not request.config.getoption("--trimmed"):
        mechanism = four_bar()
        q = jnp.tile(mechanism.q, (300, 1))
        many = jax.jit(jax.vmap(mbjax.assembly_q, (None, None, 0))).lower(mechanism.model, mechanism.cset, q).as_text()
        assert "lapack_" in many
        assert most_work_shared_out(many) < library_calls.LEAST_SHARED_OUT
    matrices = jnp.ones((40, 30, 12, 12))
    for function in (linear_algebra.cholesky, linear_algebra.singular_values, linear_algebra.triangular_factor):
        text = jax.jit(jax.vmap(jax.vmap(function))).lower(matrices).as_text()
        assert 0 < most_work_shared_out(text) < library_calls.LEAST_SHARED_OUT
    plain = jax.jit(jax.vmap(jax.vmap(jnp.linalg.cholesky))).lower(matrices).as_text()
    assert most_work_shared_out(plain) >= library_calls.LEAST_SHARED_OUT  # what this test looks for


STEWART = """
import os
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
import jax
import numpy as np
jax.config.update("jax_enable_x64", True)
import mbjax
from tests.constraints.mechanisms import stewart_platform
from tests.constraints.test_assembly import guesses
mechanism = stewart_platform()
q = guesses(mechanism, 0.3, 36)
found = jax.jit(jax.vmap(mbjax.assembly_q, (None, None, 0)))(mechanism.model, mechanism.cset, q)
print("converged:", int(np.sum(np.asarray(found.status) == mbjax.AssemblyStatus.CONVERGED)))
"""


@pytest.mark.whole_run("no batch is shared out among threads")
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the cores of a process can be chosen on Linux only")
def test_many_assemblies_end_on_two_cores() -> None:
    """36 Stewart platforms: with batched factorizations side by side this program never ended."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", STEWART], capture_output=True, text=True, timeout=600, cwd=ROOT, env=environment
    )
    assert run.stdout.strip() == "converged: 36", run.stdout + run.stderr
