"""Draws docs/images/hydroelastic_contact.png: the faces of a contact surface with their pressures, at two resolutions.

Run it with `python docs/images/draw_hydroelastic.py`.
"""

import pathlib

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import PolyCollection

import mbjax
from mbjax.geometry import Geometry, HalfSpace, ProximityProperties, Sphere

RADIUS, DEPTH, MODULUS = 0.1, 0.01, 2e5
PICTURE = pathlib.Path(__file__).parent / "hydroelastic_contact.png"


def surface_of_ball(resolution_hint: float) -> mbjax.geometry.hydroelastic.ContactSurface:
    """The contact surface of a compliant ball that is pressed into the rigid ground."""
    plant = mbjax.MultibodyPlant(0.001, max_faces=400)
    rigid = ProximityProperties().add_rigid_hydroelastic_properties()
    soft = ProximityProperties().add_compliant_hydroelastic_properties(resolution_hint, MODULUS)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), rigid)
    plant.add_rigid_body("ball", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, RADIUS))
    plant.register_collision_geometry("ball", Geometry("skin", Sphere(RADIUS)), soft)
    model = plant.finalize()
    state = mbjax.default_state(model)
    q = state.q.at[6].set(RADIUS - DEPTH).at[:4].set(jnp.array([0.9, 0.3, 0.2, 0.2]))
    outputs = mbjax.outputs(model, mbjax.State(q, state.v, state.time))
    return outputs.contact_results.surface(model, "ground", "skin").surface


def main() -> None:
    figure, panels = plt.subplots(1, 2, figsize=(9.0, 3.8), constrained_layout=True)
    for panel, hint in zip(panels, (0.08, 0.02), strict=True):
        surface = surface_of_ball(hint)
        active = np.asarray(surface.active)
        corners = 100.0 * np.asarray(surface.vertices_W)[active][:, :, :2]
        faces = PolyCollection(
            corners, array=1e-3 * np.asarray(surface.pressure)[active], edgecolor="white", linewidth=0.6
        )
        faces.set_clim(0.0, 1e-3 * MODULUS * DEPTH / RADIUS)
        panel.add_collection(faces)
        panel.set(xlim=(-5, 5), ylim=(-5, 5), aspect="equal", xlabel="x in cm", ylabel="y in cm")
        panel.set_title(f"resolution hint {100 * hint:g} cm: {active.sum()} faces", fontsize=10)
    figure.colorbar(faces, ax=panels, label="pressure in kPa")
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    main()
