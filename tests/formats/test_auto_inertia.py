"""<inertial auto="true"> of SDFormat: mass properties of all collisions together, as Drake has them."""

import pathlib

import numpy as np
import pytest
from pydrake.multibody.parsing import Parser as DrakeParser
from pydrake.multibody.plant import MultibodyPlant as DrakePlant

import mbjax

SHAPES = (
    "<box><size>.1 .2 .3</size></box>",
    "<sphere><radius>.1</radius></sphere>",
    "<cylinder><radius>.1</radius><length>.3</length></cylinder>",
    "<capsule><radius>.1</radius><length>.3</length></capsule>",
    "<ellipsoid><radii>.1 .2 .3</radii></ellipsoid>",
)
POSES = (".1 .2 .3 .1 .2 .3", "-.1 0 0 0 0 0", "0 -.1 0 0 0 0", "0 -.1 0 0 .4 0", "0 .3 0 .2 .4 0")
BOX_FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


def robot(inertial: str, collisions: str) -> str:
    return f'<sdf version="1.11"><model name="m"><link name="l">{inertial}{collisions}</link></model></sdf>'


def collision(k: int, shape: str, pose: str = "0 0 0 0 0 0", density: str = "") -> str:
    return f'<collision name="c{k}"><pose>{pose}</pose>{density}<geometry>{shape}</geometry></collision>'


ALL = "".join(
    collision(k, shape, pose, "<density>500</density>" if k in (0, 4) else "")
    for k, (shape, pose) in enumerate(zip(SHAPES, POSES, strict=True))
)


def inertia_of(text_or_path) -> np.ndarray:
    """Mass, centre of mass, and moments of inertia about the link's origin."""
    parameters = mbjax.load(text_or_path).parameters
    mass, com, unit = (np.asarray(x, float)[-1] for x in (
        parameters.body_mass, parameters.body_com, parameters.body_unit_inertia
    ))  # fmt: skip
    return np.array([mass, *com, *(mass * unit)])


@pytest.mark.parametrize(
    "inside", ["", "<density>200</density>", "<mass>3</mass>", "<mass>3</mass><density>2</density>"]
)
def test_shapes_and_densities_are_summed_as_in_drake(inside: str) -> None:
    text = robot(f'<inertial auto="true">{inside}</inertial>', ALL)
    plant = DrakePlant(0.0)
    DrakeParser(plant).AddModelsFromString(text, "sdf")
    plant.Finalize()
    M = plant.GetBodyByName("l").default_spatial_inertia()
    G = M.get_unit_inertia()
    six = [*G.get_moments(), *G.get_products()]
    expected = np.array([M.get_mass(), *M.get_com(), *(M.get_mass() * np.array(six))])
    np.testing.assert_allclose(inertia_of(text), expected, rtol=1e-12, atol=1e-14)


def test_a_mesh_is_what_its_closed_surface_holds(tmp_path: pathlib.Path) -> None:
    """A box as a mesh, scaled and mirrored; an open one, and one that is not there, are errors with a way out."""
    corners = [(x, y, z) for x in (0.0, 0.1) for y in (0.0, 0.2) for z in (0.0, 0.3)]
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + ["f " + " ".join(str(i + 1) for i in f) for f in BOX_FACES]
    (tmp_path / "box.obj").write_text("\n".join(lines))
    (tmp_path / "open.obj").write_text("\n".join(lines[:-1]))
    automatic, path = '<inertial auto="true"/>', tmp_path / "robot.sdf"
    expected = inertia_of(robot(automatic, collision(0, "<box><size>.2 .2 .3</size></box>", "-.1 .1 .15 0 0 0")))
    path.write_text(robot(automatic, collision(0, "<mesh><uri>box.obj</uri><scale>-2 1 1</scale></mesh>")))
    np.testing.assert_allclose(inertia_of(path), expected, rtol=1e-9, atol=1e-12)
    for name, reason in (("open", "is not closed"), ("gone", "is not there")):
        path.write_text(robot(automatic, collision(0, f"<mesh><uri>{name}.obj</uri></mesh>")))
        with pytest.raises(mbjax.ParseError, match=f"{reason}.*write <mass>|{reason}.*Write <mass>"):
            mbjax.load(path)


def test_what_cannot_be_computed_or_is_not_used_is_said() -> None:
    with pytest.raises(mbjax.ParseError, match="needs collisions with a volume"):
        mbjax.load(robot('<inertial auto="true"/>', ""))
    with pytest.raises(mbjax.ParseError, match=r"<cone> is not computed"):
        mbjax.load(robot('<inertial auto="true"/>', collision(0, "<cone><radius>1</radius><length>1</length></cone>")))
    with pytest.warns(mbjax.ModelWarning, match="computes it from the collisions instead"):
        model = mbjax.load(robot('<inertial auto="true"><pose>1 2 3 0 0 0</pose></inertial>', ALL))
    assert any("<pose>" in entry.element for entry in model.report())
    given = mbjax.load(robot("<inertial><mass>2</mass></inertial>", ALL))
    assert float(given.parameters.body_mass[-1]) == 2.0
    assert any("<density>" in entry.element for entry in given.report())
