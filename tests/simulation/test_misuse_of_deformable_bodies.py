"""What deformable bodies refuse, and what refuses them, with the reason and the way out."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax

from .deformable_plants import DT, FOAM, at_height, cube_plant, foam, moving_state, swinging_plant

BAD = {
    "E": (lambda: cube_plant(youngs_modulus=0.0), "youngs_modulus must be a finite number > 0 of Pa|youngs_modulus"),
    "truth": (lambda: cube_plant(youngs_modulus=True), "youngs_modulus must be .* got True"),
    "nu": (lambda: cube_plant(poissons_ratio=0.5), "poissons_ratio must be a number between -1 and 0.5"),
    "density": (lambda: cube_plant(mass_density=-1.0), "mass_density must be a finite number > 0"),
    "damping": (lambda: cube_plant(stiffness_damping=-1.0), "stiffness_damping must be a finite number >= 0"),
    "law": (lambda: foam("rubber"), "there is no model 'rubber'"),
    "unstable law": (lambda: foam("neo_hookean", poissons_ratio=0.0), "stable_neo_hookean"),
    "per element": (lambda: cube_plant(youngs_modulus=[1e4, 2e4]), "2 numbers, and the mesh 6 elements"),
    "continuous": (lambda: cube_plant(time_step=0.0), "discrete plant"),
    "wall without nodes": (
        lambda: cube_plant().set_wall_boundary_condition("cube", [0, 0, -1], [0, 0, 1]),
        "no node of 'cube' is behind the wall",
    ),
    "wall with all nodes": (
        lambda: cube_plant().set_wall_boundary_condition("cube", [0, 0, 1], [0, 0, 1]),
        "all nodes of 'cube'",
    ),
    "no node in the shape": (
        lambda: cube_plant().add_fixed_constraint("cube", "link", shape=mbjax.Sphere(1e-3), X_BA=at_height(1.0)),
        "no node of 'cube' is within the shape",
    ),
    "name": (lambda: cube_plant().add_fixed_constraint("kube", "link", shape=mbjax.Sphere(1.0)), "Did you mean 'cube'"),
    "force": (lambda: cube_plant().add_force_density(3.0), "expected a function of p_WQ"),
    "volume": (lambda: cube_plant().add_force_density(lambda p: p, per="mass"), "per must be one of"),
    "one number": (
        lambda: cube_plant().add_force_density(lambda p: p[:1]),
        r"<lambda> .* an array of shape \(1,\), where",
    ),
    "no array": (
        lambda: cube_plant().add_force_density(lambda p: [p, p, p]),
        "<lambda> of p_WQ .* returns a list, where",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_with_its_reason(case: str) -> None:
    call, message = BAD[case]
    with pytest.raises(mbjax.ModelError, match=message):
        call()


def test_nodes_held_twice_and_states_that_do_not_fit_are_refused() -> None:
    plant = cube_plant()
    plant.set_wall_boundary_condition("cube", [1e-6, 0, 0], [1, 0, 0])
    with pytest.raises(mbjax.ModelError, match="held already"):
        plant.add_fixed_constraint("cube", "link", shape=mbjax.Box((1.0, 1.0, 1.0)))
    fixed = cube_plant()
    beside = mbjax.RigidTransform(jnp.eye(3), jnp.array([-0.02, 0.0, 0.0]))
    fixed.add_fixed_constraint("cube", "link", shape=mbjax.Box((0.01, 1.0, 1.0)), X_BA=beside)
    with pytest.raises(mbjax.ModelError, match="would be held twice"):
        fixed.set_wall_boundary_condition("cube", [0.02 - 1e-6, 0, 0], [-1, 0, 0])
    model = plant.finalize()
    state = mbjax.default_state(model)
    with pytest.raises(mbjax.ModelError, match=r"state.nodes.position has shape \(3, 3\)"):
        mbjax.step(model, mbjax.State(state.q, state.v, None, mbjax.NodeState(jnp.zeros((3, 3)), jnp.zeros((3, 3)))))
    rigid = mbjax.load(mbjax.reference_models.path("pendulum"), time_step=DT)
    with pytest.raises(mbjax.ModelError, match="no deformable bodies"):
        mbjax.step(rigid, dataclasses.replace(mbjax.default_state(rigid), nodes=state.nodes))
    with pytest.raises(mbjax.ModelError, match="fewer than three nodes"):
        mbjax.deformable_equilibrium(cube_plant().finalize())
    with pytest.raises(mbjax.ModelError, match=r"simulate: .*deformable bodies.*take mbjax\.rollout"):
        mbjax.simulate(model, state, save_at=jnp.array([0.0, 0.1]))
    with pytest.raises(mbjax.ModelError, match=r"time_derivatives: .*deformable bodies.*take mbjax\.step"):
        mbjax.time_derivatives(model, state)
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), model)
    for call in (
        lambda: mbjax.deformable_energies(batch, state),
        lambda: mbjax.deformable_momentum(batch, state),
        lambda: mbjax.deformable_equilibrium(batch),
        lambda: mbjax.set_deformable_enabled(batch, "cube", False),
    ):
        with pytest.raises(mbjax.ModelError, match="batch of models"):
            call()


def test_setters_keep_nodes_and_what_knows_rigid_bodies_alone_refuses() -> None:
    from mbjax import system_identification as si
    from mbjax import trajectory_optimization as to

    model = swinging_plant().finalize()
    state = moving_state(model)
    for changed in (mbjax.set_positions(model, state, [0.1]), mbjax.set_velocities(model, state, [0.1])):
        np.testing.assert_array_equal(changed.nodes.position, state.nodes.position)
    with pytest.raises(mbjax.ModelError, match="Problem: the model has deformable bodies"):
        to.Problem(model, state, 3, terminal=lambda model, state: state.q[0])
    with pytest.raises(mbjax.ModelError, match="linearize: the model has deformable bodies"):
        to.linearize(model, state, jnp.zeros(0))
    names = model.position_names(), model.velocity_names()
    for made in (
        mbjax.random_state(model, jax.random.key(0)),
        mbjax.random_state_within_limits(model, jax.random.key(0)),
        mbjax.state_from_drake(model, state.q, state.v, *names),
        mbjax.state_from_mujoco(model, state.q, state.v),
        mbjax.state_from_pinocchio(model, state.q, state.v, ["swing"]),
    ):
        np.testing.assert_array_equal(made.nodes.position, model.deformables.rest_positions())
    unknown = si.Parameters(model, {"youngs_modulus:bar": si.positive()})
    doubled = unknown.model(unknown.initial + jnp.log(2.0))
    np.testing.assert_allclose(doubled.deformables.youngs_modulus, 2.0 * FOAM["youngs_modulus"])
