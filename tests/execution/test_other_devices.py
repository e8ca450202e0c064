"""Programs for devices that are not here: every main function lowers for TPUs and GPUs, in single precision.

That a program lowers is all that can be seen without the device: whether it compiles and runs there is for a machine
that has one.
"""

import dataclasses
import functools
import re
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.execution import call_library
from mbjax.geometry import Box, Geometry, HalfSpace
from mbjax.linear_algebra import lapack

WORLDS, STEPS = 3, 4
PLATFORMS = ["tpu", "rocm", "cuda"]  # lowered in one go
ARITHMETIC = "add|subtract|multiply|divide|negate|abs|sqrt|rsqrt|sine|cosine|exponential|power|dot_general|reduce|while"
DOUBLE = re.compile(rf"stablehlo\.(?:{ARITHMETIC})\b.*f64")  # of constants, which Python's numbers are, it is none


@functools.cache
def robot(**settings: Any) -> mbjax.MultibodyModel:
    """The bundled quadruped, floating."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbjax.ModelWarning)
        return mbjax.load("quadruped", dtype=np.float32, **settings)


def walker() -> mbjax.MultibodyModel:
    """A quadruped whose feet touch the ground."""
    return robot(time_step=0.004, ground=0.8, contact_pairs=(("*foot*", "ground"),))


def jumper() -> mbjax.MultibodyModel:
    """The same without contact, with joints at their limits."""
    return robot(time_step=0.004)


def continuous() -> mbjax.MultibodyModel:
    """The same without a time step."""
    return robot()


@functools.cache
def four_bar() -> mbjax.MultibodyModel:
    """A loop that constraints close."""
    return mbjax.load("four_bar", time_step=0.004, dtype=np.float32)


@functools.cache
def stack() -> mbjax.MultibodyModel:
    """Boxes that touch each other and the ground."""
    plant = mbjax.MultibodyPlant(0.002)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), 0.5)
    for k in range(3):
        plant.add_rigid_body(f"box{k}", mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.2))
        plant.register_collision_geometry(f"box{k}", Geometry("box", Box((0.2, 0.2, 0.2))), 0.5)
    return plant.finalize(np.float32)


def stepped(model: mbjax.MultibodyModel, q: jax.Array, v: jax.Array, u: jax.Array) -> jax.Array:
    return mbjax.step(model, mbjax.State(q, v), u[: model.num_actuators])[0].v


def rolled_out(model: mbjax.MultibodyModel, q: jax.Array, v: jax.Array, u: jax.Array) -> jax.Array:
    efforts = jnp.broadcast_to(u[: model.num_actuators], (STEPS, model.num_actuators))
    return mbjax.rollout(model, mbjax.State(q, v), efforts).final_state.v


def kinematics(model: mbjax.MultibodyModel, q: jax.Array, v: jax.Array, tau: jax.Array) -> tuple:
    return (
        mbjax.body_poses_in_world(model, q).translation,
        mbjax.body_spatial_velocities_in_world(model, q, v),
        mbjax.jacobian_spatial_velocity(model, q, model.body_names[-1], jnp.zeros_like(q[:3]), "world", "world"),
        mbjax.center_of_mass_position_in_world(model, q),
    )


def derivatives(model: mbjax.MultibodyModel, q: jax.Array, v: jax.Array, tau: jax.Array) -> jax.Array:
    return mbjax.time_derivatives(model, mbjax.State(q, v))[1]


FUNCTIONS: dict[str, tuple[Callable[[], mbjax.MultibodyModel], Callable]] = {
    "forward dynamics": (walker, mbjax.forward_dynamics),
    "inverse dynamics": (walker, mbjax.inverse_dynamics),
    "mass matrix": (walker, lambda model, q, v, tau: mbjax.mass_matrix(model, q)),
    "kinematics": (walker, kinematics),
    "rates of a continuous plant": (continuous, derivatives),
    "step without contact": (jumper, stepped),
    "step through contact": (walker, stepped),
    "step with constraints": (four_bar, stepped),
    "step of bodies that touch": (stack, stepped),
    "rollout through contact": (walker, rolled_out),
    "rollout of bodies that touch": (stack, rolled_out),
}


def gradient(function: Callable) -> Callable:
    """Gradient by state and effort of the sum of the results."""

    def summed(model: mbjax.MultibodyModel, *state: jax.Array) -> jax.Array:
        return jnp.sum(jnp.stack([jnp.sum(x) for x in jax.tree.leaves(function(model, *state))]))

    return jax.grad(summed, (1, 2, 3))


def by_mass(model: mbjax.MultibodyModel, *state: jax.Array) -> jax.Array:
    """Gradient of a step by the masses."""

    def summed(mass: jax.Array) -> jax.Array:
        parameters = dataclasses.replace(model.parameters, body_mass=mass)
        return jnp.sum(stepped(dataclasses.replace(model, parameters=parameters), *state))

    return jax.grad(summed)(jnp.asarray(model.parameters.body_mass))


def hessian(model: mbjax.MultibodyModel, q: jax.Array, v: jax.Array, tau: jax.Array) -> jax.Array:
    return jax.hessian(lambda tau: jnp.sum(mbjax.forward_dynamics(model, q, v, tau) ** 2))(tau)


PROGRAMS = {
    **FUNCTIONS,
    **{f"gradient of {name}": (model, gradient(function)) for name, (model, function) in FUNCTIONS.items()},
    "gradient of a step by masses": (walker, by_mass),
    "second derivatives of forward dynamics": (continuous, hessian),
}
TRIMMED = "forward dynamics", "mass matrix", "step through contact", "gradient of forward dynamics"


def lowered(name: str, worlds: int | None) -> str:
    """The program of a function, of a batch or of one world, for all of the platforms."""
    of_model, function = PROGRAMS[name]
    model = of_model()
    state = mbjax.default_state(model)
    args = state.q, state.v, jnp.ones(model.num_velocities, np.float32)

    def of_one(*args: jax.Array) -> Any:
        return function(model, *args)

    if worlds is None:
        return jax.export.export(jax.jit(of_one), platforms=PLATFORMS)(*args).mlir_module()
    batch = [jnp.tile(x, (worlds, 1)) for x in args]
    return jax.export.export(jax.jit(jax.vmap(of_one)), platforms=PLATFORMS)(*batch).mlir_module()


@pytest.mark.parametrize(
    ("name", "worlds"),
    [
        *((name, WORLDS) for name in TRIMMED),
        *(
            pytest.param(name, WORLDS, marks=pytest.mark.whole_run("the functions before them"))
            for name in PROGRAMS
            if name not in TRIMMED
        ),
        *(
            pytest.param(name, None, marks=pytest.mark.whole_run("batches"))
            for name in (*TRIMMED, "rollout of bodies that touch", "gradient of step through contact")
        ),
    ],
)
def test_every_main_function_lowers_for_them(name: str, worlds: int | None) -> None:
    """To XLA's own operations alone: no kernel of ours, no LAPACK, no call back to Python, no double precision."""
    program = lowered(name, worlds)
    assert "stablehlo.custom_call" not in program
    assert not DOUBLE.findall(program)


FUNCTIONS_OF_LAPACK = {"cholesky": 1, "solve_lower": 2, "lu": 1, "qr": 1, "svd": 1, "eigenvalues": 1}


@pytest.mark.parametrize("name", FUNCTIONS_OF_LAPACK)
@pytest.mark.parametrize("platform", ["tpu", "rocm"])
def test_lapack_is_for_a_cpu_alone(platform: str, name: str) -> None:
    """Elsewhere its functions are XLA's, or a library's of the device."""
    args = [jnp.eye(4, dtype=np.float32)] * FUNCTIONS_OF_LAPACK[name]
    function = jax.jit(lambda *args: call_library(getattr(lapack, name), *args))
    program = function.trace(*args).lower(lowering_platforms=(platform,)).as_text()
    called = set(re.findall(r"custom_call @([\w.]+)", program))
    assert not [x for x in called if "lapack" in x]
    assert all(x.startswith("hip") for x in called) or platform == "tpu"


def test_a_program_for_a_cpu_and_others_runs_here() -> None:
    """One exported program for several platforms has none of their kernels, and gives the same numbers."""
    model = walker()
    state = mbjax.default_state(model)
    args = [jnp.tile(x, (WORLDS, 1)) for x in (state.q, state.v, jnp.ones(model.num_velocities, np.float32))]
    function = jax.jit(jax.vmap(lambda *x: mbjax.forward_dynamics(model, *x)))
    exported = jax.export.export(function, platforms=["cpu", *PLATFORMS])(*args)
    expected = np.asarray(function(*args))
    np.testing.assert_allclose(exported.call(*args), expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("platform", ["rocm", "tpu"])
def test_kernels_of_nvidia_s_gpus_stay_there(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they are turned on: another device gets what it would get without them."""
    model = walker()
    state = mbjax.default_state(model)
    args = [jnp.tile(x, (64, 1)) for x in (state.q, state.v, jnp.ones(model.num_velocities, np.float32))]
    programs = []
    for setting in ("1", "0"):
        monkeypatch.setenv("MBJAX_GPU_KERNELS", setting)
        function = jax.jit(jax.vmap(lambda *x: mbjax.forward_dynamics(model, *x)))
        programs.append(function.trace(*args).lower(lowering_platforms=(platform,)).as_text())
    assert programs[0] == programs[1]
    assert "custom_call" not in programs[0]
