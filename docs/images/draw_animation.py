"""Draws `animation.png` of the page on pictures: `python docs/images/draw_animation.py`; needs Chromium and Pillow."""

import pathlib
import shutil
import subprocess
import tempfile

import jax.numpy as jnp
from PIL import Image

import mbjax
from mbjax.geometry import Geometry, HalfSpace

STEPS = 500
MOMENT = 0.85  # s
SIZE = (1200, 720)
BROWSER_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--virtual-time-budget=20000",
)
SEEK = f"""<script>const waiting = setInterval(() => {{
  if (!window.mbjax.ready) return;
  clearInterval(waiting);
  window.mbjax.pause();
  document.getElementById("names").click();
  document.getElementById("mass").click();
  window.mbjax.seek({MOMENT});
}}, 100);</script></body>"""


def quadruped_on_ground() -> mbjax.MultibodyModel:
    """The reference robot, whose feet alone touch."""
    plant = mbjax.MultibodyPlant(time_step=0.002)
    mbjax.Parser(plant).add_models(mbjax.reference_models.path("quadruped"))
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), 0.8)
    robot = [body for body in plant.bodies if body.name != "world"]
    for k, body in enumerate(robot):
        for other in robot[k + 1 :]:
            plant.exclude_collisions_between(body, other)
        if not body.name.endswith("foot"):
            plant.exclude_collisions_between("world", body)
    model = plant.finalize()
    return mbjax.set_controller_gains(model, jnp.full(12, 60.0), jnp.full(12, 2.0))


def motions(model: mbjax.MultibodyModel) -> tuple[mbjax.Trajectory, mbjax.Trajectory, mbjax.Inputs]:
    """Knee bends as planned, the same with a push from the side, and what pushed."""
    time = model.time_step * jnp.arange(STEPS)
    stance = jnp.tile(jnp.array([0.0, 0.6, -1.2]), 4)
    targets = stance + jnp.sin(10.0 * time)[:, None] * jnp.tile(jnp.array([0.0, 0.2, -0.4]), 4)
    desired = jnp.concatenate([targets, jnp.zeros_like(targets)], axis=1)
    q = model.parameters.default_positions.at[7:].set(stance).at[6].set(0.39)
    start = mbjax.State(q, jnp.zeros(model.num_velocities), jnp.zeros(()))
    force = jnp.zeros((STEPS, 1, 6)).at[300:, 0, 4].set(70.0)

    def inputs(force):
        pushes = mbjax.AppliedSpatialForces(["trunk"], force, jnp.zeros((STEPS, 1, 3)))
        return mbjax.Inputs(desired_state=desired, applied_spatial_forces=pushes)

    return mbjax.rollout(model, start, inputs(force)), mbjax.rollout(model, start, inputs(0 * force)), inputs(force)


def few_colors(image: Image.Image) -> Image.Image:
    """With 256 colors: 200 of the soft shades that most of it is, the others of what stands out."""
    parts = [(200, Image.Quantize.MEDIANCUT), (56, Image.Quantize.MAXCOVERAGE)]
    colors = [image.quantize(count, method).getpalette()[: 3 * count] for count, method in parts]
    palette = Image.new("P", (1, 1))
    palette.putpalette([value for part in colors for value in part])
    return image.quantize(palette=palette, dither=Image.Dither.NONE)


def main() -> None:
    model = quadruped_on_ground()
    pushed, plan, inputs = motions(model)
    runs = {"pushed": pushed, "plan": plan}
    animation = mbjax.show(model, runs, inputs={"pushed": inputs}, title="Quadruped")
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with tempfile.TemporaryDirectory() as folder:
        page, shot = pathlib.Path(folder, "page.html"), pathlib.Path(folder, "shot.png")
        page.write_text(animation.html.replace("</body>", SEEK), encoding="utf-8")
        window = f"--window-size={SIZE[0]},{SIZE[1]}"
        profile = f"--user-data-dir={folder}/profile"
        subprocess.run([browser, *BROWSER_OPTIONS, profile, window, f"--screenshot={shot}", page.as_uri()], check=True)
        few_colors(Image.open(shot).convert("RGB")).save(pathlib.Path(__file__).parent / "animation.png", optimize=True)


if __name__ == "__main__":
    main()
