"""Energy of deformable bodies in steps that are long beside their vibrations: it never grows."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax

from ..deformable_meshes import box_mesh

DT = 5e-3


@pytest.mark.whole_run("steps of bodies behind a wall as Drake's, and energies of motions that are known")
@pytest.mark.parametrize("law", ["corotated", "stable_neo_hookean"])
def test_a_stiff_body_that_spins_gains_no_energy(law: str) -> None:
    """With the rotation at the step's end. That of its start, as in Drake's linear law, lets a step swell the body."""
    gains = []
    for name in (law, "linear_corotated"):
        plant = mbjax.MultibodyPlant(DT)
        points, tetrahedra = box_mesh((1, 1, 1), (0.08, 0.08, 0.08))
        material = mbjax.DeformableMaterial(1e7, 0.3, 1000.0, 0.0, 0.0, model=name)
        plant.add_deformable_body("cube", (points - 0.04, tetrahedra), material)
        model = mbjax.set_gravity(plant.finalize(), jnp.zeros(3))
        state = mbjax.default_state(model)
        spin = jnp.cross(jnp.array([6.0, 10.0, 16.0]), state.nodes.position)
        state = dataclasses.replace(state, nodes=mbjax.NodeState(state.nodes.position, spin))

        def advance(state: mbjax.State, _: None, model: mbjax.MultibodyModel = model) -> tuple[mbjax.State, jax.Array]:
            after, _ = mbjax.step(model, state)
            return after, sum(mbjax.deformable_energies(model, after))[0]

        energies = jax.jit(lambda s, advance=advance: jax.lax.scan(advance, s, None, length=40)[1])(state)
        gains.append(np.diff(np.log(energies)))
    assert gains[0].max() < 1e-12
    assert gains[1].max() > 1e-3


@pytest.mark.whole_run("steps of bodies behind a wall as Drake's, and energies of motions that are known")
def test_a_body_that_springs_open_is_solved_and_gains_no_energy() -> None:
    """Squeezed flat, nearly incompressible and stiff: what is cut off from its stiffness makes Newton's steps far too
    long. Without absolute eigenvalues the third step is not a number."""
    plant = mbjax.MultibodyPlant(DT)
    material = mbjax.DeformableMaterial(8e8, 0.48, 1000.0, 0.0, 1e-3, model="stable_neo_hookean")
    plant.add_deformable_body("body", mbjax.tetrahedra_of(mbjax.Box((0.06, 0.06, 0.06)), 0.03), material)
    plant.set_gravity((0.0, 0.0, 0.0))
    model = plant.finalize()
    state = mbjax.default_state(model)
    assert state.nodes is not None
    squeezed = state.nodes.position * jnp.array([1.0, 1.0, 0.6])
    state = eqx.tree_at(lambda s: s.nodes.position, state, squeezed)

    @jax.jit
    def run(state: mbjax.State) -> tuple:
        def advance(state: mbjax.State, _: None) -> tuple:
            after, outputs = mbjax.step(model, state)
            energies = mbjax.deformable_energies(model, after)
            return after, (energies.elastic[0] + energies.kinetic[0], outputs.deformables_converged[0])

        return jax.lax.scan(advance, state, None, length=12)[1]

    energies, converged = run(state)
    start = mbjax.deformable_energies(model, state).elastic
    assert np.all(np.diff(np.concatenate([start, energies])) < 0.0)
    assert np.sum(~converged) <= 1  # damping changes with the strain, of which Newton's matrix knows nothing
