"""The recursions as kernels of a GPU: run by Pallas's interpreter on a CPU, and lowered for a GPU that is not here."""

import contextlib
import functools
import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.execution.recursion import gpu_scan
from mbjax.execution.recursion.gpu_scan import scan_on_gpu
from mbjax.execution.targets import gpu_kernels
from tests.dynamics.recursion_models import model_of
from tests.gradients.checks import WHOLE_RUN
from tests.models import JOINT_CLASSES, random_tree, relative_error

KINDS = (*JOINT_CLASSES, "revolute")
NUM_SCANS = {
    "forward dynamics": 3,
    "inverse dynamics": 2,
    "poses": 2,
    "mass matrix": 2,
    "gradient": 10,
    "gradient by the model": 10,
}
WHOLE = pytest.mark.whole_run("the same scans in forward dynamics")
INTERPRETED = {"gradient of the tree": 8, "jacobian": 7, "step": 2}  # which has a universal joint: it is by sums


@functools.cache
def tree() -> mbjax.MultibodyModel:
    """Of joints of every kind, in branches; the frames of bodies are not those of their joints."""
    return random_tree(3, KINDS, 0.01).model


@functools.cache
def walker() -> mbjax.MultibodyModel:
    """Whose gradient has a recursion, with several directions of one joint."""
    return mbjax.load(mbjax.reference_models.path("quadruped"), base="floating")


@functools.cache
def stepper() -> mbjax.MultibodyModel:
    """The same in steps of time, with joints at their limits."""
    return mbjax.load(mbjax.reference_models.path("quadruped"), base="floating", time_step=0.01)


def branches() -> mbjax.MultibodyModel:
    """Which is not walked as it is numbered."""
    return model_of("many branches of every kind")


def samples(model: mbjax.MultibodyModel, worlds: int) -> tuple:
    """Random states and efforts."""
    states = jax.vmap(lambda key: mbjax.random_state(model, key))(jax.random.split(jax.random.key(0), worlds))
    return states.q, states.v, jax.random.normal(jax.random.key(1), states.v.shape)


def forward_dynamics(model: mbjax.MultibodyModel, q: jax.Array, v: jax.Array, tau: jax.Array) -> jax.Array:
    return mbjax.forward_dynamics(model, q, v, tau, force_elements=True)


def number(model: mbjax.MultibodyModel, q: jax.Array, v: jax.Array, tau: jax.Array) -> jax.Array:
    return jnp.sum(jnp.sin(mbjax.forward_dynamics(model, q, v, tau)))


def by_model(model: mbjax.MultibodyModel, *state: jax.Array) -> Any:
    return jax.grad(number, allow_int=True)(jax.tree.map(jnp.asarray, model), *state).parameters.body_com


def step(model: mbjax.MultibodyModel, q: jax.Array, v: jax.Array, tau: jax.Array) -> jax.Array:
    inputs = mbjax.Inputs(applied_generalized_force=100.0 * tau)
    return mbjax.step(model, mbjax.State(q, v, jnp.zeros((), q.dtype)), inputs)[0].v


FUNCTIONS = {
    "forward dynamics": forward_dynamics,
    "inverse dynamics": functools.partial(mbjax.inverse_dynamics, force_elements=True),
    "poses": lambda model, q, v, tau: mbjax.body_poses_in_world(model, q).translation,
    "mass matrix": lambda model, q, v, tau: mbjax.mass_matrix(model, q),
    "gradient": jax.grad(number, (1, 2, 3)),
    "gradient by the model": by_model,
    "jacobian": jax.jacfwd(forward_dynamics, 2),
    "step": step,
}


def of_worlds(name: str, model: mbjax.MultibodyModel) -> Callable:
    """The function of a batch, traced anew at every call of this."""
    return jax.jit(jax.vmap(lambda *state: FUNCTIONS[name](model, *state)))


def of_one(name: str, model: mbjax.MultibodyModel) -> Callable:
    """The same of one world."""
    return jax.jit(lambda *state: FUNCTIONS[name](model, *state))


def num_kernels(function: Callable, *args: Any) -> tuple[int, int]:
    """How many of ours a GPU would run, and how many loops XLA would."""
    with absent_gpu():
        text = function.trace(*args).lower(lowering_platforms=("cuda",)).as_text()
    return text.count("@__gpu$xla.gpu.triton"), text.count("stablehlo.while")


def absent_gpu() -> contextlib.AbstractContextManager:
    """Pallas asks what it is, since JAX 0.11."""
    if jax.__version_info__ < (0, 11):
        return contextlib.nullcontext()
    device = jax.sharding.AbstractDevice("NVIDIA H200", num_cores=132, platform="gpu")
    return jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), (), abstract_device=device))


CASES = [
    ("forward dynamics", tree, 70),
    *(
        pytest.param(
            *case, marks=pytest.mark.whole_run("forward dynamics by the same scans, and that poses get a kernel, below")
        )
        for case in (
            ("gradient", walker, 40),
            ("inverse dynamics", tree, 32),
            ("forward dynamics", tree, 1),
            ("forward dynamics", branches, 33),
            ("gradient by the model", branches, 33),
            ("poses", tree, 33),
            ("mass matrix", tree, 33),
            ("gradient", tree, 40),
            ("gradient by the model", walker, 40),
            ("jacobian", walker, 5),
            ("step", stepper, 5),
        )
    ),
]


@pytest.mark.parametrize(("name", "model", "worlds"), CASES)
def test_interpreted_they_are_the_same(
    name: str, model: Callable, worlds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, scans = samples(model(), worlds), []

    def counted(*args: Any, **options: Any) -> tuple:
        scans.append(args)
        return scan_on_gpu(*args, **options)

    monkeypatch.setattr(gpu_scan, "scan_on_gpu", counted)
    monkeypatch.setenv("MBJAX_GPU_KERNELS", "interpret")
    found = of_worlds(name, model())(*state)
    monkeypatch.setenv("MBJAX_GPU_KERNELS", "0")
    expected = of_worlds(name, model())(*state)
    counts = NUM_SCANS | INTERPRETED
    assert len(scans) == counts[f"{name} of the tree" if name == "gradient" and model is tree else name]
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert relative_error(x, y) < 1e-12


@pytest.mark.skipif(jax.default_backend() != "gpu", reason="no GPU is here")
@pytest.mark.parametrize(
    ("name", "model", "worlds"), [case.values if hasattr(case, "values") else case for case in CASES]
)
def test_on_a_gpu_they_are_the_same(name: str, model: Callable, worlds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    state = samples(model(), worlds)
    found = of_worlds(name, model())(*state)
    monkeypatch.setenv("MBJAX_GPU_KERNELS", "0")
    expected = of_worlds(name, model())(*state)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert relative_error(x, y) < 1e-12


@pytest.mark.whole_run("the same scans in double precision")
def test_in_single_precision_they_are_as_exact_as_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    state = samples(tree(), 40)
    exact = of_worlds("forward dynamics", tree())(*state)
    model, state = mbjax.astype(tree(), np.float32), tuple(x.astype(np.float32) for x in state)
    on_cpu = of_worlds("forward dynamics", model)(*state)
    monkeypatch.setenv("MBJAX_GPU_KERNELS", "interpret")
    found = of_worlds("forward dynamics", model)(*state)
    assert found.dtype == np.float32
    assert relative_error(found, exact) < 2.0 * relative_error(on_cpu, exact) + 1e-6


OF_A_TREE = pytest.mark.whole_run("forward dynamics in single precision, below")
TRIMMED = {
    "forward dynamics": OF_A_TREE,
    "inverse dynamics": OF_A_TREE,
    "mass matrix": OF_A_TREE,
    "gradient": pytest.mark.whole_run("forward dynamics, below; gradients lower in test_other_devices.py"),
    "gradient by the model": pytest.mark.whole_run("forward dynamics, below; gradients lower in test_other_devices.py"),
}


@pytest.mark.parametrize("name", [pytest.param(x, marks=TRIMMED.get(x, ())) for x in NUM_SCANS])
def test_a_gpu_gets_a_kernel_for_each_scan(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton's operations are fewer than those of XLA: it would raise here if it lacked one."""
    model, state = walker(), samples(walker(), 64)
    if name == "poses":
        monkeypatch.setenv("MBJAX_GPU_KERNELS", "0")
        assert num_kernels(of_worlds(name, model), *state)[0] == 0
    monkeypatch.setenv("MBJAX_GPU_KERNELS", "1")
    assert num_kernels(of_worlds(name, model), *state) == (NUM_SCANS[name], 0)


@pytest.mark.parametrize("model", [tree, pytest.param(branches, marks=pytest.mark.whole_run("a tree of every joint"))])
def test_a_gpu_gets_kernels_in_single_precision(model: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of worlds that are not whole blocks, and of joints whose numbers are looked up.

    Trimmed: forward dynamics.
    """
    monkeypatch.setenv("MBJAX_GPU_KERNELS", "1")
    single, state = mbjax.astype(model(), np.float32), [x.astype(np.float32) for x in samples(model(), 33)]
    for name in ("forward dynamics", "inverse dynamics", "mass matrix")[: 3 if WHOLE_RUN else 1]:
        assert num_kernels(of_worlds(name, single), *state) == (NUM_SCANS[name], 0), name


@pytest.mark.whole_run("interpreted kernels are the same")
@pytest.mark.parametrize(
    "name", ["forward dynamics", *(pytest.param(x, marks=WHOLE) for x in ("gradient by the model", "jacobian", "step"))]
)
def test_one_world_is_the_only_one_of_many(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = stepper() if name == "step" else walker()
    one = [x[0] for x in samples(model, 2)]
    monkeypatch.setenv("MBJAX_GPU_KERNELS", "1")
    counts = NUM_SCANS | {"jacobian": 5}
    assert name not in counts or num_kernels(of_one(name, model), *one)[0] == counts[name]
    found = {}
    for setting in ("interpret", "0"):
        monkeypatch.setenv("MBJAX_GPU_KERNELS", setting)
        found[setting] = of_one(name, model)(*one)
    for x, y in zip(*map(jax.tree.leaves, found.values()), strict=True):
        assert relative_error(x, y) < 1e-12


def test_more_numbers_than_32_bits_count_are_left_to_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    model, state = walker(), samples(walker(), 64)
    monkeypatch.setenv("MBJAX_GPU_KERNELS", "1")
    monkeypatch.setattr(gpu_scan, "MOST_NUMBERS", 64 * 18 * 2)
    assert num_kernels(of_worlds("forward dynamics", model), *state)[0] == 0


@pytest.mark.parametrize(
    ("capability", "is_capable"), [("9.0", True), ("7.5", False), ("gfx90a", False), (None, False)]
)
def test_a_gpu_that_triton_is_not_for_has_none(
    capability: str | None, is_capable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = types.SimpleNamespace(**({} if capability is None else {"compute_capability": capability}))
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax, "local_devices", lambda: [device])
    assert gpu_kernels.has_capable_gpus.__wrapped__() is is_capable


@WHOLE
def test_a_bad_world_stays_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MBJAX_GPU_KERNELS", "interpret")
    q, v, tau = samples(walker(), 40)
    found = np.asarray(of_worlds("forward dynamics", walker())(q.at[3, -1].set(jnp.nan), v, tau))
    assert np.isnan(found[3]).any()
    assert np.isfinite(np.delete(found, 3, 0)).all()
