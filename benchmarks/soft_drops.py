"""Drops, throws and squeezes of soft bodies at random: does every step stay finite, solved or reported, and calm?

`python -m benchmarks.soft_drops [--worlds 63] [--damping 1e-3]`: a block, a ball, a thin pad and a bar on a half-space,
of the linear corotated and the stable neo-Hookean law, in both precisions; so many worlds of 60 steps of 5 ms for each.
E is between 1e3 and 1e9 Pa, ν between 0 and 0.49, poses are at random; a third of the bodies begin squeezed to between
half and all of their height, a third are thrown at up to 3 m/s. Energy is elastic, kinetic and that of weight, without
the field of the ground. It has grown where it is more than a tenth above what there was before.
Worlds go one after the other: in a batch each step takes as many iterations as the worst of them.
"""

import argparse
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import mbjax
from mbjax.geometry import Geometry, ProximityProperties

DT, NUM_STEPS, DENSITY, GRAVITY = 5e-3, 60, 1000.0, 9.81
GROUND = 1e7  # Pa, over a slab of 1 m
SHAPES = {
    "block": (mbjax.Box((0.06, 0.06, 0.06)), 0.03),
    "ball": (mbjax.Sphere(0.04), 0.04),
    "pad": (mbjax.Box((0.08, 0.08, 0.01)), 0.02),
    "bar": (mbjax.Box((0.12, 0.03, 0.03)), 0.03),
}
LAWS = "linear_corotated", "stable_neo_hookean"
GROWN = 0.1


def model_of(name: str, law: str, dtype: jnp.dtype, damping: float) -> mbjax.MultibodyModel:
    """A body of this shape above the ground."""
    plant = mbjax.MultibodyPlant(DT)
    rough = ProximityProperties(0.5)
    soft = rough.add_compliant_hydroelastic_properties_for_half_space(1.0, GROUND)
    plant.register_collision_geometry("world", Geometry("ground", mbjax.HalfSpace()), soft)
    shape, hint = SHAPES[name]
    material = mbjax.DeformableMaterial(1e5, 0.4, DENSITY, 0.0, damping, model=law)
    plant.add_deformable_body("body", mbjax.tetrahedra_of(shape, hint), material, properties=rough)
    return plant.finalize(dtype)


def random_start(model: mbjax.MultibodyModel, rng: np.random.Generator) -> tuple[mbjax.State, float, float]:
    """A state and the modulus and ratio of one world."""
    state, deformables = mbjax.default_state(model), model.deformables
    assert deformables is not None
    assert state.nodes is not None
    kind = rng.integers(3)
    x = np.asarray(state.nodes.position, float)
    if kind == 1:
        x = x * [1.0, 1.0, rng.uniform(0.5, 1.0)]
    R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    x = x @ (R * np.sign(np.linalg.det(R))).T
    x[:, 2] += rng.uniform(1e-3, 0.05) - x[:, 2].min()
    v = np.tile(rng.normal(size=3) if kind == 2 else np.zeros(3), (len(x), 1))
    nodes = mbjax.NodeState(jnp.asarray(x, model.dtype), jnp.asarray(v, model.dtype))
    return eqx.tree_at(lambda s: s.nodes, state, nodes), 10.0 ** rng.uniform(3.0, 9.0), rng.uniform(0.0, 0.49)


def measure(name: str, law: str, dtype: jnp.dtype, worlds: int, damping: float) -> str:
    """A row of the table."""
    model = model_of(name, law, dtype, damping)
    rng = np.random.default_rng(0)
    states, moduli, ratios = zip(*(random_start(model, rng) for _ in range(worlds)), strict=True)
    states = jax.tree.map(lambda *x: jnp.stack(x), *states)

    def of_world(E: jax.Array, nu: jax.Array, state: mbjax.State) -> tuple[jax.Array, ...]:
        deformables = eqx.tree_at(lambda d: (d.youngs_modulus, d.poissons_ratio), model.deformables, (E, nu))
        own = eqx.tree_at(lambda m: m.deformables, model, deformables)

        def energy(state: mbjax.State) -> jax.Array:
            assert state.nodes is not None
            found = mbjax.deformable_energies(own, state)
            heights = jnp.mean(state.nodes.position[deformables.mesh.elements, 2], axis=1)
            weight = GRAVITY * jnp.sum(deformables.element_masses() * heights)
            return found.elastic[0] + found.kinetic[0] + weight

        def advance(state: mbjax.State, _: None) -> tuple[mbjax.State, tuple[jax.Array, ...]]:
            after, outputs = mbjax.step(own, state)
            contacts = outputs.deformable_contacts
            out = energy(after), outputs.deformables_converged[0], contacts.num_left_out[0], contacts.is_active.any()
            return after, out

        after, found = jax.lax.scan(advance, state, None, length=NUM_STEPS)
        return energy(state), *found, jnp.all(jnp.isfinite(after.nodes.position))

    run = jax.jit(lambda *worlds: jax.lax.map(lambda world: of_world(*world), worlds))
    E = jnp.asarray(np.array(moduli)[:, None], model.dtype)
    nu = jnp.asarray(np.array(ratios)[:, None], model.dtype)
    compiled = run.lower(E, nu, states).compile()
    start = time.process_time()
    first, energies, converged, left_out, touches, finite = map(np.asarray, compiled(E, nu, states))
    seconds = time.process_time() - start
    growth = np.max(energies, axis=1) / first  # heights are above the ground, so that energies are positive
    stiff = np.array(moduli) >= 1e6
    grown = growth > 1.0 + GROWN
    return " | ".join(
        [
            name,
            law.replace("_", " "),
            "f64" if dtype == jnp.float64 else "f32",
            str(worlds),
            f"{touches.any(axis=1).sum()}",
            f"{(~finite).sum()}",
            f"{(~converged).sum()}",
            f"{(left_out > 0).sum()}",
            f"{(grown & ~stiff).sum()}, {(grown & stiff).sum()}",
            f"{growth.max():.3g}",
            f"{1e3 * seconds / (worlds * NUM_STEPS):.2g}",
        ]
    )


def main() -> None:
    """Prints the table, a row as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=63, help="of each shape, law and precision")
    parser.add_argument("--damping", type=float, default=1e-3, help="stiffness damping in s")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(
        "| body | law | | worlds | touch | not finite | steps unconverged | steps with faces left out | "
        "energy grows: E < 1e6, above | most, times | ms a step |\n|" + "---|" * 11,
        flush=True,
    )
    for name in SHAPES:
        for law in LAWS:
            for dtype in (jnp.float64, jnp.float32):
                print(f"| {measure(name, law, dtype, options.worlds, options.damping)} |", flush=True)


if __name__ == "__main__":
    main()
