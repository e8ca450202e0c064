"""Worlds shared out to devices by `jax.shard_map`: each runs its own by the kernels of one device."""

import os
import subprocess
import sys
import textwrap

import jax
import pytest

from tests.gradients.checks import WHOLE_RUN

SET_UP = """
    import os, equinox as eqx, jax, jax.numpy as jnp, numpy as np, mbjax
    from jax.sharding import AxisType, PartitionSpec

    jax.config.update("jax_enable_x64", True)
    model = mbjax.load(mbjax.reference_models.path("ROBOT"), time_step=1e-3, dtype=np.float64)
    state = jax.vmap(lambda key: mbjax.random_state(model, key))(jax.random.split(jax.random.key(0), 6))
    devices = jax.make_mesh((2,), ("worlds",), axis_types=(AxisType.Auto,))
    each, same = PartitionSpec("worlds"), PartitionSpec()
    numbers, rest = eqx.partition(model, eqx.is_inexact_array)

    def accelerations(numbers, state):
        model = eqx.combine(numbers, rest)
        return jax.vmap(lambda q, v: mbjax.forward_dynamics(model, q, v, v))(state.q, state.v)

    def squares(numbers, state):
        return jnp.sum(accelerations(numbers, state) ** 2)

    def shared_out(function, of_numbers=same, results=each):
        return jax.shard_map(function, mesh=devices, in_specs=(of_numbers, each), out_specs=results)

    def compare(expected, found):
        for x, y in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
            assert x.shape == y.shape
            scale = jnp.max(jnp.abs(x), initial=0.0)
            assert jnp.allclose(x, y, rtol=0.0, atol=1e-12 * scale), (jnp.max(jnp.abs(x - y)), scale)
"""
CASES = {
    "kernels": """
        found = jax.jit(shared_out(accelerations)).lower(numbers, state)
        assert found.as_text().count("xla_cpu_small_call"), "no kernels"
        compare(accelerations(numbers, state), found.compile()(numbers, state))
    """,
    "kernels of a GPU, interpreted": """
        expected = accelerations(numbers, state)
        os.environ["MBJAX_GPU_KERNELS"] = "interpret"
        compare(expected, jax.jit(shared_out(accelerations))(numbers, state))
    """,
    "gradients by the state": """
        by_state = jax.grad(squares, argnums=1)
        expected = jax.jit(by_state)(numbers, state)
        compare(expected, jax.jit(shared_out(by_state))(numbers, state))
        summed = lambda numbers, state: jnp.sum(shared_out(accelerations)(numbers, state) ** 2)
        compare(expected, jax.jit(jax.grad(summed, argnums=1))(numbers, state))
    """,
    "gradients by a model that all share": """
        expected = jax.jit(jax.grad(squares))(numbers, state)
        compare(expected, jax.jit(shared_out(jax.grad(squares), results=same))(numbers, state))
        summed = lambda numbers, state: jnp.sum(shared_out(accelerations)(numbers, state) ** 2)
        compare(expected, jax.jit(jax.grad(summed))(numbers, state))
    """,
    "rollouts": """
        def squares(numbers, state):
            model = eqx.combine(numbers, rest)
            q = jax.vmap(lambda s: mbjax.rollout(model, s, num_steps=4, checkpoint=2).q)(state)
            return jnp.sum(q**2)

        by_state = jax.grad(squares, argnums=1)
        compare(jax.jit(by_state)(numbers, state), jax.jit(shared_out(by_state))(numbers, state))
    """,
    "what is closed over": """
        pendulum = mbjax.load(mbjax.reference_models.path("pendulum"), time_step=1e-2)
        controls = jnp.asarray(np.random.default_rng(0).normal(size=(6, 4, pendulum.num_actuators)))
        resting = mbjax.default_state(pendulum)

        def ends(controls, checkpoint=None):
            return jax.vmap(lambda u: mbjax.rollout(pendulum, resting, u, checkpoint=checkpoint).q[-1])(controls)

        def cost(controls):
            return jnp.sum(ends(controls, "sqrt") ** 2)

        def both(controls):
            return ends(controls), jax.grad(cost)(controls)

        map_each = lambda f: jax.jit(jax.shard_map(f, mesh=devices, in_specs=each, out_specs=each))
        compare(jax.jit(both)(controls), map_each(both)(controls))

        # others whose loops start from what is the same on all devices: types tell
        plant = mbjax.MultibodyPlant()
        for name, parent in (("upper", "world"), ("lower", "upper")):
            plant.add_rigid_body(name, mbjax.SpatialInertia.solid_box_with_mass(1.0, 0.1, 0.2, 0.3))
            plant.add_joint(mbjax.RevoluteJoint(name, parent, name, axis=[0, 1, 0]))
        plant.add_coupler_constraint("upper", "lower", gear_ratio=2.0)
        arm = plant.finalize()
        cset, at_rest = mbjax.bound_constraints(arm), mbjax.default_state(arm)
        functions = {
            "assembly": lambda x: mbjax.assembly_q(arm, cset, at_rest.q, 1.0 + x**2).q,
            "residual": lambda x: mbjax.implicit_time_derivatives_residual(
                arm, at_rest, at_rest.q, at_rest.v, mbjax.Inputs(applied_generalized_force=x)
            ),
            "power": lambda x: mbjax.conservative_power(arm, at_rest.q, x),
        }
        for name, function in functions.items():
            x = jnp.ones((6, 2))
            found = jax.eval_shape(map_each(jax.vmap(function)), x)
            assert found.shape == jax.eval_shape(jax.vmap(function), x).shape, name
    """,
    "functions that are not batched as a whole": """
        def energies(numbers, state):
            return jax.vmap(lambda q: mbjax.potential_energy(eqx.combine(numbers, rest), q))(state.q)

        compare(energies(numbers, state), jax.jit(shared_out(energies))(numbers, state))
        summed = lambda numbers, state: jnp.sum(energies(numbers, state))
        expected = jax.jit(jax.grad(summed))(numbers, state)
        compare(expected, jax.jit(shared_out(jax.grad(summed), results=same))(numbers, state))
    """,
}


BY_JIT = pytest.mark.whole_run("kernels; gradients that jit shares out, in test_sharded_worlds")
LEFT_OUT = {
    "rollouts": pytest.mark.whole_run("gradients of rollouts that jit shares out, in test_sharded_worlds"),
    "kernels of a GPU, interpreted": pytest.mark.whole_run("kernels of a CPU; the interpreter in test_gpu_kernels"),
    "gradients by a model that all share": BY_JIT,
    "gradients by the state": BY_JIT,
    "functions that are not batched as a whole": BY_JIT,
    "what is closed over": BY_JIT,
}


@pytest.mark.skipif(jax.__version__ == "0.11.2", reason="JAX ends the process while it compiles a `shard_map`")
@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=LEFT_OUT[case]) if case in LEFT_OUT else case for case in CASES]
)
def test_worlds_shared_out(case: str) -> None:
    """Trimmed: of one joint."""
    program = textwrap.dedent(SET_UP.replace("ROBOT", "arm" if WHOLE_RUN else "pendulum")) + textwrap.dedent(
        CASES[case]
    )
    environment = {"JAX_NUM_CPU_DEVICES": "2", "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ | environment)
