"""Worlds shared out to devices by `jax.jit`, as `NamedSharding` says: each runs its own, and nothing is gathered."""

import os
import subprocess
import sys
import textwrap

import pytest

SET_UP = """
    import re, equinox as eqx, jax, jax.numpy as jnp, numpy as np, mbjax
    from jax.sharding import AxisType, NamedSharding, PartitionSpec

    jax.config.update("jax_enable_x64", True)
    DEVICES, SHARE = 8, 13  # the worlds of a device: none of the models' own sizes
    WORLDS = DEVICES * SHARE
    mesh = jax.make_mesh((2, 4), ("hosts", "cores"), axis_types=(AxisType.Auto,) * 2)
    each = NamedSharding(mesh, PartitionSpec(("hosts", "cores")))
    draw = np.random.default_rng(0)
    arm = mbjax.load(mbjax.reference_models.path("pendulum"), time_step=1e-2)
    n = arm.num_velocities
    q, v, u = (jnp.asarray(draw.normal(size=(WORLDS, *shape))) for shape in ((n,), (n,), (2, arm.num_actuators)))
    numbers, rest = eqx.partition(arm, eqx.is_inexact_array)
    COLLECTIVES = ("all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter", "partition-id")

    def compiled(function, *args):
        program = jax.jit(function).lower(*args).compile()
        text = program.as_text()
        return program(*args), {name for name in COLLECTIVES if re.search(name + r"(-start)?\\(", text)}, text

    def compare(expected, found):
        leaves = jax.tree.leaves_with_path(expected)
        for (name, x), y in zip(leaves, jax.tree.leaves(found), strict=True):
            scale = np.max(np.abs(x), initial=1e-9)
            assert np.allclose(x, y, rtol=0.0, atol=1e-11 * scale), (name, np.max(np.abs(x - y)), scale)

    def check_shares(found, collectives, text):
        assert not collectives, collectives
        whole = [x for x in text.splitlines() if re.search(rf"[\\[,]{WORLDS}[\\],]", x)]
        assert not whole, whole
        for name, x in jax.tree.leaves_with_path(found):
            assert x.sharding.is_equivalent_to(each, x.ndim), (name, x.sharding)
"""
CASES = {
    "functions": """
        def of_world(q, v, u):
            state = mbjax.State(q, v, jnp.zeros(()))
            return {
                "forward dynamics": mbjax.forward_dynamics(arm, q, v, v),
                "inverse dynamics": mbjax.inverse_dynamics(arm, q, v, v),
                "mass matrix": mbjax.mass_matrix(arm, q),
                "jacobian": mbjax.jacobian_spatial_velocity(arm, q, arm.body_names[-1], jnp.ones(3), "world", "world"),
                "step": mbjax.step(arm, state, u[0])[0],
                "rollout": mbjax.rollout(arm, mbjax.default_state(arm), u).q,
                "accelerations": mbjax.outputs(arm, state, u[0]).generalized_acceleration,
            }

        together = jax.vmap(of_world)
        args = jax.device_put((q, v, u), each)
        found, collectives, text = compiled(together, *args)
        check_shares(found, collectives, text)
        assert "xla_cpu_small_call" in text, "no kernels"
        compare(compiled(together, q, v, u)[0], found)
    """,
    "gradients": """
        def cost(numbers, u):
            model = eqx.combine(numbers, rest)
            q = jax.vmap(lambda u: mbjax.rollout(model, mbjax.default_state(model), u).q)(u)
            return jnp.sum(q**2)

        gradients = jax.value_and_grad(cost, (0, 1))
        found, collectives, text = compiled(gradients, numbers, jax.device_put(u, each))
        check_shares(found[1][1], collectives - {"all-reduce"}, text)
        compare(compiled(gradients, numbers, u)[0], found)
    """,
    "limits": """
        model = mbjax.load(mbjax.reference_models.path("cart_pole"), time_step=1e-3)  # whose slider has limits
        ground = mbjax.default_state(model)
        v = 0.1 * draw.normal(size=(WORLDS, model.num_velocities))
        step = jax.vmap(lambda v: mbjax.step(model, mbjax.State(ground.q, v, ground.time))[0].v)
        found, collectives, text = compiled(step, jax.device_put(jnp.asarray(v), each))
        check_shares(found, collectives, text)
        compare(step(v), found)
    """,
    "shares that are not equal, and an explicit mesh": """
        def accelerations(q, v):
            return jax.vmap(lambda q, v: mbjax.forward_dynamics(arm, q, v, v))(q, v)

        args = jax.device_put((q, v), each)
        found = jax.jit(lambda q, v: accelerations(q[1:], v[1:]))(*args)
        compare(accelerations(q[1:], v[1:]), found)
        mesh = jax.make_mesh((8,), ("worlds",), axis_types=(AxisType.Explicit,))
        explicit = NamedSharding(mesh, PartitionSpec("worlds"))
        found, collectives, text = compiled(accelerations, *jax.device_put((q, v), explicit))
        assert found.sharding.is_equivalent_to(explicit, 2) and not collectives, (found.sharding, collectives)
        assert jax.eval_shape(accelerations, *jax.device_put((q, v), explicit)).sharding.spec[0] == "worlds"
        compare(accelerations(q, v), found)
        rollouts = jax.vmap(lambda u: mbjax.rollout(arm, mbjax.default_state(arm), u).q)
        rollouts = jax.sharding.auto_axes(rollouts, out_sharding=explicit)
        assert jax.eval_shape(rollouts, jax.device_put(u, explicit)).sharding.spec[0] == "worlds"
    """,
}


LEFT_TO_THE_WHOLE_RUN = {
    "functions": "gradients of rollouts",
    "limits": "gradients of rollouts, and limits of joints in tests/contact/test_closed_forms.py",
    "shares that are not equal, and an explicit mesh": "equal shares",
}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.whole_run(LEFT_TO_THE_WHOLE_RUN[case]))
        if case in LEFT_TO_THE_WHOLE_RUN
        else case
        for case in CASES
    ],
)
def test_worlds_shared_out_by_jit(case: str) -> None:
    program = textwrap.dedent(SET_UP) + textwrap.dedent(CASES[case])
    flags = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"
    environment = {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}", "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ | environment)
