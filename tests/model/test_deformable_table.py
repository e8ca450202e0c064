"""`print(model)` has a section for deformable bodies where there are any."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import mbjax
from mbjax.geometry import Box
from tests.deformable_cube import FOAM, SIDE, cube_mesh, cube_plant

HALF = np.array([0.9 * SIDE, 0.5 * SIDE, 0.5 * SIDE])


def model_of_two() -> mbjax.MultibodyModel:
    """A cube at a wall, and one that is fixed to a ball, with a modulus for each element."""
    plant = cube_plant()
    moduli = dataclasses.replace(FOAM, youngs_modulus=np.linspace(1e4, 6e4, 6), model="neo_hookean")
    plant.add_deformable_body("pad", cube_mesh(), moduli)
    plant.add_fixed_constraint("pad", "ball", shape=Box((0.4 * SIDE, 2 * SIDE, 2 * SIDE)), X_BG=HALF)
    return plant.finalize()


def line_of(text: str, name: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
    return " ".join(line.split())


def test_a_line_for_each_body() -> None:
    model = model_of_two()
    text = str(model)
    assert line_of(text, "body") == "body nodes elements law kg Young's modulus (Pa) Poisson's ratio held fixed to"
    assert line_of(text, "foam") == "foam 8 6 linear_corotated 0.3 5e+04 0.3 4 nodes"
    assert line_of(text, "pad") == "pad 8 6 neo_hookean 0.3 1e+04 … 6e+04 0.3 ball (4 nodes)"
    assert "2 deformable bodies of 16 nodes" in text
    assert "2 deformable bodies of 16 nodes" in repr(model)
    assert "pad" in model._repr_html_()


def test_numbers_that_are_not_known() -> None:
    model = model_of_two()
    said: list[str] = []
    jax.eval_shape(lambda m: said.append(str(m)), model)
    batch = str(jax.tree.map(lambda x: jnp.stack([x, x]), model))
    for text in (said[0], batch):
        assert line_of(text, "foam") == "foam 8 6 linear_corotated – – – 4 nodes"


def test_models_without_any_print_as_before() -> None:
    pendulum = mbjax.load("pendulum")
    assert "deformable" not in str(pendulum) + repr(pendulum) + pendulum._repr_html_()


def test_a_model_of_deformable_bodies_alone() -> None:
    plant = mbjax.MultibodyPlant(0.01)
    soft = plant.add_model_instance("soft")
    plant.add_deformable_body("foam", cube_mesh(), FOAM, model_instance=soft)
    text = str(plant.finalize())
    assert text.splitlines()[0].strip() == "soft"
    assert line_of(text, "foam") == "foam 8 6 linear_corotated 0.3 5e+04 0.3"
