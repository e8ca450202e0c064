"""Draws `live_view.png` of the page on pictures: `python docs/images/draw_live_view.py`; needs Chromium and viser."""

import io
import json
import pathlib
import time

import jax
import jax.numpy as jnp
from draw_animation import few_colors
from PIL import Image

import mbjax
from mbjax.visualization.browser import Browser

STEPS = 250
OPACITIES = "JSON.stringify([...document.querySelectorAll('canvas')].map(canvas => canvas.style.opacity))"
CLOSE_WARNING = "document.querySelectorAll('.mantine-Notification-closeButton').forEach(button => button.click())"


def main() -> None:
    """Three worlds of a quadruped that stands and is pushed sideways by 0, 15 and 30 N."""
    model = mbjax.load("quadruped", time_step=0.004, ground=0.8, contact_pairs=[("*foot*", "ground")])
    model = mbjax.set_controller_gains(model, 60.0, 1.5)
    stance = jnp.tile(jnp.array([0.0, 0.6, -1.2]), 4)
    q = model.parameters.default_positions.at[7:].set(stance).at[6].set(0.376)
    start = mbjax.State(q, jnp.zeros(model.num_velocities), jnp.zeros(()))
    desired = jnp.concatenate([stance, jnp.zeros(12)])

    def inputs(force: jax.Array) -> mbjax.Inputs:
        push = mbjax.AppliedSpatialForces(["trunk"], jnp.zeros((1, 6)).at[0, 4].set(force), jnp.zeros((1, 3)))
        return mbjax.Inputs(desired_state=desired, applied_spatial_forces=push)

    forces = {"0 N": 0.0, "15 N": 15.0, "30 N": 30.0}
    runs = {name: mbjax.rollout(model, start, inputs(jnp.array(force)), STEPS) for name, force in forces.items()}
    acting = {name: inputs(jnp.array(force)) for name, force in forces.items()}
    with mbjax.Viewer(model, runs, inputs=acting, state=start, port=0) as viewer, Browser(1280, 800) as browser:
        viewer.seek(0.9)
        viewer.show("mass_center")
        browser.open(viewer.url)
        while "1" not in json.loads(browser.run(OPACITIES)):  # viser fades in, which takes seconds without a GPU
            time.sleep(0.5)
        browser.run(CLOSE_WARNING)
        time.sleep(5.0)
        picture = Image.open(io.BytesIO(browser.picture())).convert("RGB")
    few_colors(picture).save(pathlib.Path(__file__).parent / "live_view.png", optimize=True)


if __name__ == "__main__":
    main()
