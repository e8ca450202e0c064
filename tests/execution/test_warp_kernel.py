"""Programs as one GPU kernel, a warp for each world: run by a machine of our own, and lowered for a GPU not here."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.core import eval_jaxpr

import mbjax
from mbjax.execution import dot_with_mask, gpu_kernels, repeat, sum_over_axis, take
from mbjax.execution.warp_kernel import Layout, warp_call_p, write_kernel
from mbjax.execution.worlds_primitive import for_worlds_p, searches
from mbjax.geometry import Capsule, Geometry, HalfSpace, Sphere
from tests.execution.test_gpu_kernels import absent_gpu
from tests.execution.warp_machine import Machine
from tests.models import relative_error

MASK = np.random.default_rng(1).random((9, 14)) < 0.3


def run_kernel(
    function: Callable, args: Sequence, layouts: Sequence[Layout], worlds: int, stride: int = 1
) -> list[np.ndarray]:
    """The results of a kernel of a function of one world, for arrays of all worlds; with a stride, these come last."""
    own_shapes = [x.shape[:-1] if stride > 1 else x.shape[y.has_worlds :] for x, y in zip(args, layouts, strict=True)]
    of_one = [jax.ShapeDtypeStruct(shape, x.dtype) for shape, x in zip(own_shapes, args, strict=True)]
    kernel = write_kernel(function, of_one, layouts, Layout(True, stride))
    shapes = [(*x.shape, worlds) if stride > 1 else (worlds, *x.shape) for x in kernel.results]
    results = [np.zeros(shape, x.dtype) for shape, x in zip(shapes, kernel.results, strict=True)]
    own = [np.full(kernel.num_global * worlds, 255, np.uint8)] if kernel.num_global else []
    given = [np.array(x, order="C").reshape(-1).view(np.uint8) for x in args]
    machine = Machine(kernel.text, kernel.num_shared)
    for world in range(worlds):
        machine.run(world, [*given, *(x.reshape(-1).view(np.uint8) for x in results), *own])
    return results


def with_loops(B: Any) -> Any:
    up = lax.scan(lambda c, x: (c * 0.9 + x, (c[2], c * 2, x[0])), B[0], B)
    down = lax.scan(lambda c, x: (c * 0.9 + x, c[2]), B[:, 0], B.T, reverse=True)
    swapped = lax.scan(lambda c, x: ((c[1], c[0] + x), c[0]), (B[0], B[1]), B)
    until = lax.while_loop(
        lambda c: (c[0] < 9) & (jnp.sum(jnp.abs(c[1])) < 50.0), lambda c: (c[0] + 1, c[1] * 1.4), (0, B)
    )
    return up, down, swapped, until


def at_index(B: Any) -> Any:
    def written(i: Any, c: Any) -> Any:
        return lax.dynamic_update_slice(c, lax.dynamic_slice(c, (5 - i, 0), (1, 9)) * 2 + B[:1], (i, 0))

    def read_after(_: Any, c: Any) -> Any:
        old = lax.dynamic_slice(c, (0, 0), (1, 9))
        return lax.dynamic_update_slice(c, old * 2, (0, 0)) + old

    columns = lax.scan(lambda c, i: (c + lax.dynamic_slice(B, (0, i), (6, 1))[:, 0], c), B[:, 0], jnp.arange(9))
    return lax.fori_loop(0, 6, written, B), lax.fori_loop(0, 2, read_after, B), columns


PROGRAMS: dict[str, Callable] = {
    "places": lambda A, B, T, v: (
        T[1:, ::2, 1:4], v[3:39:3], v[33:], v[5], T[2, 1, 3], T[:, :, 2], T.transpose(2, 0, 1), v[::-1],
        A.reshape(7, 5), take(T, [0, 2, 2, 4], 2), take(T, [2, 0], 0), repeat(T, 3, 1), repeat(v, 3, 0),
        v[:9, None] + jnp.zeros((9, 5)),
    ),
    "put together": lambda A, B, T, v: (
        jnp.concatenate([B, B[:, :1], B[:, 3:5], B[:, 2:3]], 1), jnp.concatenate([B[0], v[:2], v[5:9], B[1, :1], v]),
        jnp.stack([v, 2 * v], 1), jnp.stack([v[0], v[3], v[2]]), lax.pad(A, 0.0, [(1, 2, 0), (0, 3, 1)]),
        lax.pad(A, 1.0, [(-1, 0, 0), (2, -1, 0)]), lax.pad(A[0], 0.0, [(2, 1, 2)]),
    ),
    "numbers": lambda A, B, T, v: (
        v**3, v**-2, 1 / v, jnp.where(v > 0, v, 0.0), jnp.maximum(v, 0.2), jnp.where(v[0] > 0, v, -v),
        lax.round(4 * v),
        jnp.round(3 * v), jnp.sign(v), jnp.floor(v), lax.rsqrt(jnp.abs(v)), v > v[3], jnp.isfinite(v),
        v.astype(jnp.int32),
        lax.cond(v[0] > 0, lambda v: (v * 2, v[3]), lambda v: (v[::-1], v[1]), v),
    ),
    "sums": lambda A, B, T, v: (
        jnp.sum(T, (0, 2)), jnp.sum(T, 1), jnp.sum(v), jnp.max(T), jnp.min(T, (1, 2)), jnp.any(T > 2),
        jnp.all(T > -9, 1),
        sum_over_axis(T, 2), dot_with_mask(B, MASK, 1), dot_with_mask(B.T, MASK, 0), dot_with_mask(T, MASK[:4], 1),
        A.T @ A, A[0] @ A.T, jnp.einsum("ijk,ilk->ijl", T, T), jnp.einsum("ijk,ijl->kl", T, T),
    ),
    "loops": lambda A, B, T, v: with_loops(B),
    "at an index": lambda A, B, T, v: at_index(B),
}  # fmt: skip


@pytest.mark.parametrize("largest_shared", [1 << 30, 200], ids=["in shared memory", "in global memory"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_operation_is_that_of_jax(name: str, largest_shared: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mbjax.execution.warp_kernel.LARGEST_SHARED", (largest_shared,))
    rng = np.random.default_rng(0)
    args = [rng.normal(size=(2, *shape)) for shape in ((5, 7), (6, 9), (3, 4, 5), (40,))]
    found = run_kernel(PROGRAMS[name], args, [Layout(True)] * 4, 2)
    wanted = jax.tree.leaves(jax.jit(jax.vmap(PROGRAMS[name]))(*args))
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13, atol=1e-13)


def test_worlds_may_come_last() -> None:
    rng = np.random.default_rng(0)
    args = [rng.normal(size=(*shape, n)) for shape, n in (((5, 7), 3), ((6, 9), 1), ((3, 4, 5), 3), ((40,), 3))]
    layouts = [Layout(x.shape[-1] == 3, 3 if x.shape[-1] == 3 else 1) for x in args]
    found = run_kernel(PROGRAMS["sums"], args, layouts, 3, stride=3)
    of_all = [np.broadcast_to(x, (*x.shape[:-1], 3)) for x in args]
    wanted = jax.tree.leaves(jax.jit(jax.vmap(PROGRAMS["sums"], -1, -1))(*of_all))
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sine_and_cosine_are_right_to_rounding(dtype: Any) -> None:
    angles = np.concatenate([np.linspace(-40, 40, 201), [0.0, 1e6, -3e5, np.pi, 1e-8]]).astype(dtype)
    found = run_kernel(lambda x: (jnp.sin(x), jnp.cos(x)), [angles], [Layout(False)], 1)
    for x, exact in zip(found, (np.sin, np.cos), strict=True):
        wanted = exact(angles.astype(np.longdouble))
        np.testing.assert_allclose(x[0], wanted, rtol=0, atol=2 * np.finfo(dtype).eps)


@functools.cache
def hopper(dtype: Any = np.float64) -> mbjax.MultibodyModel:
    """A floating body and a leg, whose foot slides on the ground; the body may touch a ball beside it."""
    plant = mbjax.MultibodyPlant(0.002)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), 0.6)
    for name, mass in (("body", 2.0), ("leg", 0.5), ("ball", 0.2)):
        plant.add_rigid_body(name, mbjax.SpatialInertia.solid_box_with_mass(mass, 0.2, 0.1, 0.1))
    plant.register_collision_geometry("leg", Geometry("foot", Capsule(0.03, 0.3)), 0.8)
    plant.register_collision_geometry("body", Geometry("body", Sphere(0.1)), 0.5)
    plant.register_collision_geometry("ball", Geometry("ball", Sphere(0.05)), 0.5)
    plant.add_joint(mbjax.RevoluteJoint("knee", "body", "leg", axis=(0.0, 1.0, 0.0), damping=0.1))
    return plant.finalize(dtype)


def states(model: mbjax.MultibodyModel, worlds: int) -> tuple:
    """Worlds close to the ground, each moving its own way."""
    rng, default = np.random.default_rng(0), mbjax.default_state(model)
    q = np.tile(np.array(default.q), (worlds, 1))
    v = rng.normal(size=(worlds, default.v.size)) * 0.5
    q[:, 6] = 0.15
    return jnp.asarray(q, default.q.dtype), jnp.asarray(v, default.q.dtype)


def stepped(model: mbjax.MultibodyModel, q: Any, v: Any) -> Any:
    after = mbjax.step(model, mbjax.State(q, v))[0]
    return after.q, after.v


@pytest.mark.parametrize(
    "gradient", [False, pytest.param(True, marks=pytest.mark.whole_run("the step, and the operations of gradients"))]
)
def test_a_step_and_its_gradient_are_as_on_a_cpu(gradient: bool) -> None:
    model = hopper()
    q, v = states(model, 2)
    step = jax.vmap(functools.partial(stepped, model))
    program = jax.make_jaxpr(lambda q, v: jax.vjp(step, q, v)[1]((2 * q, 3 * v)) if gradient else step(q, v))(q, v)
    seen = []

    def checked(*args: Any, **params: Any) -> list:
        found = for_worlds_impl(*args, **params)
        if searches(params["function"]):
            layouts = [Layout(is_own) for is_own in params["batched"]]
            of_kernel = run_kernel(lambda *args: list(params["function"](*args)), args, layouts, 2)
            for x, y in zip(of_kernel, found, strict=True):
                seen.append(relative_error(1.0 * x, 1.0 * np.asarray(y)))
        return found

    for_worlds_impl = for_worlds_p.impl
    for_worlds_p.def_impl(checked)
    try:
        eval_jaxpr(program.jaxpr, program.consts, q, v)
    finally:
        for_worlds_p.def_impl(for_worlds_impl)
    assert len(seen) > 1 + gradient
    assert max(seen) < 1e-10, seen


@pytest.mark.parametrize(
    ("gradient", "kernels"),
    [(False, 1), pytest.param(True, 2, marks=pytest.mark.whole_run("the step, and the operations of gradients"))],
)
def test_a_step_is_one_kernel_and_waits_for_nobody(
    gradient: bool, kernels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels and loops of XLA in the program for a GPU; before, a humanoid's step was 1446 kernels and 150 waits."""
    monkeypatch.setenv(gpu_kernels.SETTING, "1")
    monkeypatch.setenv(gpu_kernels.OF_WARPS, "1")
    model = hopper(np.float32)
    args = states(model, 64)
    function = jax.vmap(lambda q, v: stepped(model, q, v))
    if gradient:
        step = function
        function = jax.grad(lambda q, v: sum(jnp.sum(x**2) for x in step(q, v)), (0, 1))
    with absent_gpu():
        text = jax.jit(function).trace(*args).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("@__gpu$xla.gpu.ptx") == kernels
    assert text.count("stablehlo.while") == 0
    assert len(text.splitlines()) < 400


def test_of_a_step_that_is_too_long_the_search_is_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(gpu_kernels.SETTING, "1")
    monkeypatch.setenv(gpu_kernels.OF_WARPS, "1")
    monkeypatch.setattr("mbjax.execution.warp_kernel.MOST_OPERATIONS", 3500)
    model = hopper(np.float32)
    with absent_gpu():
        function = jax.jit(jax.vmap(lambda q, v: stepped(model, q, v)))
        text = function.trace(*states(model, 64)).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("@__gpu$xla.gpu.ptx") == 1
    assert len(text.splitlines()) > 1000  # the rest of the step


def test_what_no_kernel_has_is_left_to_xla() -> None:
    with pytest.raises(gpu_kernels.NotInKernelError):
        write_kernel(lambda x: jnp.sort(x), [jax.ShapeDtypeStruct((4,), np.float32)], [Layout(True)], Layout(True))
    assert warp_call_p.multiple_results
