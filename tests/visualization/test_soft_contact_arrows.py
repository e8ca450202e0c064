"""Forces of deformable bodies on what they touch, as arrows of an animation, with the surfaces and their pressure."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.visualization import animate
from tests.deformable_cube import FOAM, SIDE, cube_mesh
from tests.visualization.pages import read_record


@pytest.mark.whole_run("arrows in test_animate.py and patches in test_contact_patches.py, of rigid bodies")
def test_arrows_are_the_forces_of_each_pair_and_surfaces_have_its_pressure() -> None:
    plant = mbjax.MultibodyPlant(0.005)
    rough = mbjax.ProximityProperties(0.5)
    soft = rough.add_compliant_hydroelastic_properties_for_half_space(0.1, 1e6)
    plant.register_collision_geometry("world", mbjax.Geometry("ground", mbjax.HalfSpace()), soft)
    lid = plant.add_rigid_body("lid", mbjax.SpatialInertia.solid_cube_with_mass(0.2, 0.1))
    down = mbjax.Geometry("under", mbjax.HalfSpace(), rotation=np.diag([1.0, -1.0, -1.0]))
    plant.register_collision_geometry(lid, down, soft)
    plant.add_joint(mbjax.PrismaticJoint("rail", plant.world_frame, plant.frame(lid), axis=[0.0, 0.0, 1.0]))
    plant.exclude_collisions_between("world", "lid")
    place = mbjax.RigidTransform(jnp.eye(3), jnp.array([0.0, 0.0, -1e-4]))
    plant.add_deformable_body("cube", cube_mesh(), FOAM, pose=place, properties=rough)
    model = plant.finalize()
    state = dataclasses.replace(mbjax.default_state(model), q=jnp.array([SIDE - 3e-4]))

    def advance(state: mbjax.State, _: None) -> tuple[mbjax.State, tuple[mbjax.State, mbjax.Outputs]]:
        after, outputs = mbjax.step(model, state)
        return after, (state, outputs)

    _, (states, outputs) = jax.jit(lambda state: jax.lax.scan(advance, state, None, length=6))(state)
    assert read_record(animate(model, states).html)["arrows"] == []  # to compute them takes a while
    record = read_record(animate(model, states, outputs=outputs, frames_per_second=1000.0).html)
    drawn = next(look for look in record["arrows"] if look["label"] == "Contact forces")["worlds"][0]
    assert drawn["names"] == ["world::ground on cube", "cube on lid::under"]
    frames, slots = drawn["frames"], drawn["slots"]
    vectors = (drawn["vectors"] * drawn["vector_step"]).reshape(-1, 3)
    for slot, (geometry, sign) in enumerate((("world::ground", -1.0), ("lid::under", 1.0))):
        force = sign * np.asarray(outputs.deformable_contacts.of(model, "cube", geometry).spatial_force)[:, 3:]
        assert np.all(force[:, 2] > 0.0)
        np.testing.assert_array_equal(frames[slots == slot], np.arange(6))
        np.testing.assert_allclose(vectors[slots == slot], force, atol=1e-3 * np.abs(force).max())
    (patches,) = record["patches"]["worlds"]
    corners = patches["points"].reshape(-1, 3, 3) * patches["point_step"]
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    push = area * patches["pressures"].mean(1) * (patches["largest"] / 65535.0)
    contacts = outputs.deformable_contacts
    for values, expected in ((area, contacts.area), (push, contacts.area * contacts.pressure)):
        of_frames = np.bincount(patches["frames"], values, minlength=6)
        np.testing.assert_allclose(of_frames, np.asarray(expected).sum(axis=1), rtol=1e-3)
    with pytest.raises(mbjax.ModelError, match="leading axis of 6 times"):
        animate(model, states, outputs=jax.tree.map(lambda x: x[:3], outputs))
