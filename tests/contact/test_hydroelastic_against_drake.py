"""Steps with hydroelastic contact beside Drake's: the three laws, four scenes step for step, and continuous plants.

Each of our steps starts where Drake is. Drake stops its search where the residual is 1e-6 of the momentum, both
divided by the square root of the mass matrix's diagonal. The box that slides has 1 kg, up to 0.85 m/s and 0.004 kg m²:
its angular velocity, which differs most, may then be off by 1e-6 * 0.85 / sqrt(0.004) = 1.3e-5 rad/s.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.contact.hydroelastic_scenes import (
    BALL,
    HARD,
    SOFT,
    STARTS,
    UPRIGHT,
    WORLDS,
    Twins,
    drake_contexts,
    link_of,
    states_in_drake,
    twins_of,
    world_of,
)
from tests.gradients.checks import compiled
from tests.model.test_contact_surfaces_of_plants import dented_cube

STEPS = 200
APART = {"rolling": 5e-7, "sliding": 4e-6, "lifted": 2e-8, "stacked": 3e-8}  # m/s, rad/s; measured: less than half
WHOLE_RUN = pytest.mark.whole_run("a box that slides")
SCENES = [pytest.param(name, marks=() if name == "sliding" else WHOLE_RUN) for name in WORLDS]


def after_each(twins: Twins, q: np.ndarray, v: np.ndarray) -> tuple[jax.Array, mbjax.ContactResults]:
    """Our velocities after a step from each of these states, and the contact results."""
    inputs = mbjax.Inputs(applied_generalized_force=jnp.asarray(twins.tau))

    def one(state: tuple) -> tuple:
        after, outputs = mbjax.step(twins.model, mbjax.State(*state, jnp.zeros(())), inputs)
        return after.v, outputs.contact_results

    return compiled(lambda *states: jax.lax.map(one, states))(q, v)


@pytest.mark.parametrize("name", SCENES)
def test_steps_are_drakes(name: str) -> None:
    """Each of 200 steps from the state where Drake is: rolling, sliding to rest, gripping and lifting, in a stack."""
    twins = twins_of(name)
    q, v = states_in_drake(twins, STEPS)
    ours, contacts = after_each(twins, q[:-1], v[:-1])
    apart = np.abs(np.array(ours) - v[1:]).max()
    print(f"{name}: velocities apart {apart:.1e}")
    assert contacts.converged.all()
    assert max(int(contact.surface.left_out.max()) for contact in contacts.surfaces) == 0
    assert any(bool(contact.surface.active.any()) for contact in contacts.surfaces)
    assert apart < APART[name]


@pytest.mark.whole_run("a box that slides, and points under every law beside Drake's in test_step_against_drake.py")
@pytest.mark.parametrize("approximation", ["similar", "lagged"])
def test_the_other_laws_are_drakes(approximation: str) -> None:
    twins = twins_of("rolling", approximation)
    q, v = states_in_drake(twins, 10)
    ours, _ = after_each(twins, q[:-1], v[:-1])
    np.testing.assert_allclose(ours, v[1:], atol=2e-6)


@pytest.mark.whole_run("a box that slides, above, and surfaces beside Drake's in tests/geometry")
def test_results_name_the_pair_and_have_drakes_force(request: pytest.FixtureRequest) -> None:
    """Area, centroid and spatial force of the surface as a whole, in a continuous plant, whose forces are explicit.

    Trimmed: of polygons; triangles are beside Drake's in tests/geometry.
    """
    for representation in ("polygon",) if request.config.getoption("--trimmed") else ("polygon", "triangle"):
        twins = twins_of("sliding", time_step=0.0, contact_surface_representation=representation)
        q = twins.state.q.at[6].add(-0.004)
        outputs = mbjax.outputs(twins.model, mbjax.State(q, twins.state.v, jnp.zeros(())))
        contact = outputs.contact_results.surface(twins.model, "floor::top", "box::skin")
        root, context = drake_contexts(twins, q, twins.state.v)
        theirs = twins.plant.get_contact_results_output_port().Eval(context).hydroelastic_contact_info(0)
        force = np.concatenate([theirs.F_Ac_W().rotational(), theirs.F_Ac_W().translational()])
        vdot = twins.plant.get_generalized_acceleration_output_port().Eval(context)
        surface = theirs.contact_surface()
        del root
        assert contact.names(twins.model) == ("floor", "top", "box", "skin")
        assert int(contact.surface.num_faces) == surface.num_faces()
        assert "floor/top – box/skin" in str(mbjax.describe(twins.model, outputs))
        np.testing.assert_allclose(contact.area, surface.total_area(), rtol=1e-10)
        np.testing.assert_allclose(contact.centroid, surface.centroid(), atol=1e-10)
        np.testing.assert_allclose(contact.spatial_force, force, atol=1e-9 * np.abs(force).max())
        np.testing.assert_allclose(outputs.generalized_acceleration, vdot, atol=1e-9 * np.abs(vdot).max())
    with pytest.raises(mbjax.ModelError, match=r"in this order\. The model has 'floor::top' and 'box::skin'"):
        outputs.contact_results.surface(twins.model, "box::skin", "floor::top")


@pytest.mark.whole_run("surfaces of triangles beside Drake's in tests/geometry, and a box that slides")
def test_a_ball_on_a_dented_rigid_mesh_is_drakes(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Force and accelerations where a ball lies in the dent of a surface that is not convex."""
    stone = f"<mesh><uri>file://{dented_cube(tmp_path)}</uri><scale>0.1 0.1 0.1</scale></mesh>"
    ground = f"""<model name="floor"><static>true</static><link name="floor"><collision name="top"><geometry>{stone}
      </geometry><drake:proximity_properties>{HARD}</drake:proximity_properties></collision></link></model>"""
    ball = f'<model name="ball">{link_of("ball", BALL, SOFT.format(modulus=2e5))}</model>'
    monkeypatch.setitem(WORLDS, "dented", world_of(ground, ball))
    start = {"ball": (*UPRIGHT, 0.068, 0.063, 0.078)}, {"ball": (0.3, 0.2, -0.1, 0.05, 0.02, -0.1)}
    monkeypatch.setitem(STARTS, "dented", start)
    twins = twins_of("dented", time_step=0.0, contact_surface_representation="triangle")
    outputs = mbjax.outputs(twins.model, twins.state)
    (contact,) = outputs.contact_results.surfaces
    root, context = drake_contexts(twins, twins.state.q, twins.state.v)
    theirs = twins.plant.get_contact_results_output_port().Eval(context).hydroelastic_contact_info(0)
    force = np.concatenate([theirs.F_Ac_W().rotational(), theirs.F_Ac_W().translational()])
    vdot = twins.plant.get_generalized_acceleration_output_port().Eval(context)
    del root
    assert int(contact.surface.left_out) == 0
    np.testing.assert_allclose(contact.area, theirs.contact_surface().total_area(), rtol=1e-10)
    np.testing.assert_allclose(contact.spatial_force, force, atol=1e-9 * np.abs(force).max())
    np.testing.assert_allclose(outputs.generalized_acceleration, vdot, atol=1e-9 * np.abs(vdot).max())
