"""Free bodies that touch each other: searched with the contacts that act, as with all that might."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.contact.forms import choose
from mbjax.contact.forms.all_points import AllPoints
from mbjax.contact.forms.listed_bodies import ListedBodies
from mbjax.geometry import Box, Geometry, HalfSpace, Sphere
from tests.gradients.checks import compiled
from tests.models import relative_error

WORLDS = 12


def crowd(is_tied: bool = False, **settings: Any) -> mbjax.MultibodyModel:
    """Three balls and, between them in order, a box that slides on the ground: three velocities among six.

    A rod may keep two of the balls apart.
    """
    plant = mbjax.MultibodyPlant(2e-3, **settings)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), 0.5)
    inertia = mbjax.SpatialInertia.solid_box_with_mass(1.0, 0.2, 0.2, 0.2)
    for body, shape in (("first", Sphere(0.1)), ("cart", Box((0.2, 0.2, 0.2))), ("second", Sphere(0.1))):
        plant.add_rigid_body(body, inertia)
        plant.register_collision_geometry(body, Geometry(body, shape), 0.5)
    plant.add_rigid_body("third", inertia)
    for name, y in (("left", -0.06), ("right", 0.06)):  # two pairs of shapes of the same two bodies
        plant.register_collision_geometry("third", Geometry(name, Sphere(0.1), translation=(0.0, y, 0.0)), 0.5)
    if is_tied:
        plant.add_distance_constraint("first", (0.0, 0.0, 0.0), "third", (0.0, 0.0, 0.0), 0.3)
    plant.add_joint(mbjax.PlanarJoint("cart", "world", "cart", X_PF=(0.0, 0.0, 0.1)))
    return plant.finalize()


def thrown(model: mbjax.MultibodyModel, worlds: int) -> tuple[jax.Array, jax.Array]:
    """q and v of worlds in which bodies overlap, each in its own way: in some all, in some none."""
    rng, q = np.random.default_rng(0), np.tile(np.asarray(mbjax.default_state(model).q), (worlds, 1))
    for k, body in enumerate(("first", "second", "third")):
        start = model.joint(body).q.start
        spread = np.linspace(0.8, 2.5, worlds)[:, None]
        q[:, start + 4 : start + 7] = spread * np.array([[0.0, 0.18 * (k - 1), 0.27]]) + rng.normal(
            0, 0.01, (worlds, 3)
        )
    return jnp.asarray(q), jnp.asarray(rng.normal(size=(worlds, model.num_velocities)))


def after(model: mbjax.MultibodyModel, q: jax.Array, v: jax.Array) -> tuple:
    state, outputs = mbjax.step(model, mbjax.State(q, v, jnp.zeros(())))
    found = outputs.contact_results
    return state.v, found.force, found.num_iterations, found.converged


@pytest.mark.whole_run("lists of contacts beside all points")
def test_contacts_that_act_give_what_all_do(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Velocities and forces of many worlds; bit by bit whatever touches in other worlds. Whole run: and of one."""
    model = crowd()
    q, v = thrown(model, WORLDS)
    together = compiled(jax.vmap(lambda q, v: after(model, q, v)))
    velocity, force, num_iterations, converged = (np.asarray(x) for x in together(q, v))
    assert converged.all()
    touching = np.any(force != 0.0, axis=2).sum(axis=1)
    assert touching.max() >= 4
    assert touching.min() == 0

    if not request.config.getoption("--trimmed"):
        alone = compiled(lambda q, v: after(model, q, v))(q[0], v[0])
        assert relative_error(alone[0], velocity[0]) < 1e-11
    beside = together(q.at[: WORLDS // 2].set(q[-1]), v)
    for ours, theirs in zip((velocity, force, num_iterations), beside, strict=False):
        np.testing.assert_array_equal(ours[WORLDS // 2 :], np.asarray(theirs)[WORLDS // 2 :])

    anew = crowd(max_pairs=99)  # more than there are: traced again
    assert choose.form_on_cpu(model, reads_points=True) is ListedBodies
    monkeypatch.setattr(choose, "FORMS", choose.FORMS[1:])
    assert choose.form_on_cpu(anew, reads_points=True) is AllPoints
    whole = compiled(jax.vmap(lambda q, v: after(anew, q, v)))(q, v)
    assert relative_error(velocity, whole[0]) < 1e-11
    assert relative_error(force, whole[1]) < 1e-9
