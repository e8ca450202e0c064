"""Real robots: every kinematic and dynamic quantity equals Drake's and Pinocchio's, in double and single precision."""

import functools
import logging
import re

import jax.numpy as jnp
import numpy as np
import pytest
from pydrake.multibody.parsing import Parser as DrakeParser
from pydrake.multibody.plant import MultibodyPlant as DrakePlant

import mbjax
from tests.models import ROBOTS, Twin, load_robot, make_twin

from .oracles import (
    PinocchioRobot,
    Sample,
    drake_bodies,
    drake_quantities,
    make_sample,
    mbjax_quantities,
    relative_errors,
)

if not ROBOTS.exists():
    pytest.skip("example-robot-data is not installed", allow_module_level=True)

# File and base. Panda, UR5 and PR2 stand on the ground, PR2 with 51 welds; the others float.
FILES = {
    "panda": ("panda_description/urdf/panda.urdf", "fixed"),
    "ur5": ("ur_description/urdf/ur5_gripper.urdf", "file"),
    "pr2": ("pr2_description/urdf/pr2.urdf", "fixed"),
    "a1": ("a1_description/urdf/a1.urdf", "floating"),
    "solo12": ("solo_description/robots/solo12.urdf", "floating"),
    "allegro": ("allegro_hand_description/urdf/allegro_right_hand.urdf", "floating"),
    "g1": ("g1_description/urdf/g1_29dof_rev_1_0.urdf", "floating"),
    "icub": ("icub_description/robots/icub.urdf", "floating"),
    "talos": ("talos_data/robots/talos_full_v2.urdf", "floating"),
}
SEEDS = (0, 1, 2)
FAR_AWAY = np.array([60.0, -80.0, 0.0])  # 100 m
EPSILON = float(np.finfo(np.float32).eps)
IN_WORLD = ("p_WB", "p_WScm")  # positions in the world: 100 m away they cannot be known to more than EPSILON * 100 m


@functools.cache
def robot(name: str) -> mbjax.MultibodyModel:
    return load_robot(*FILES[name])


@functools.cache
def twin(name: str) -> Twin:
    """Where Drake refuses a link's inertia and puts a ball in its place, our twin has the ball too."""
    urdf, base = FILES[name]
    logging.getLogger("drake").setLevel(logging.ERROR)
    plant = DrakePlant(0.0)
    # Continuous plants of Drake refuse couplers; mbjax lets mimic joints move freely.
    text = re.sub(r"<mimic[^>]*/>|<mimic.*?</mimic>", "", (ROBOTS / urdf).read_text())
    DrakeParser(plant).AddModelsFromString(text, "urdf")
    model = robot(name)
    if base == "fixed":
        joined = {model.topology.frame_bodies[joint.parent_frame]: joint for joint in model.layout.joints}
        root = model.topology.frame_bodies[joined[0].child_frame]
        plant.WeldFrames(plant.world_frame(), plant.GetFrameByName(model.body_names[root]))
    plant.Finalize()
    bodies = drake_bodies(model, plant)
    for entry in model.report():
        if entry.status == "kept" and "non-physical" in entry.message:
            body = entry.element.split("'")[1]
            M = bodies[model.body_index(body)].default_spatial_inertia()
            moments, products = M.get_unit_inertia().get_moments(), M.get_unit_inertia().get_products()
            G = mbjax.UnitInertia(*moments, *products)
            inertia = mbjax.SpatialInertia(M.get_mass(), M.get_com(), G, skip_validity_check=True)
            model = mbjax.set_spatial_inertia_in_body_frame(model, body, inertia)
    return make_twin(model, plant)


def assert_small(errors: dict[str, float], tolerance: float) -> None:
    too_large = {name: error for name, error in errors.items() if not error <= tolerance}
    assert not too_large, f"relative errors above {tolerance:g}: {too_large}"


@pytest.mark.parametrize("name", FILES)
def test_equals_drake_and_pinocchio(name, record_property):
    urdf, base = FILES[name]
    pinocchio = PinocchioRobot(str(ROBOTS / urdf), robot(name), base == "floating")
    for seed in SEEDS:
        sample = make_sample(robot(name), seed)
        for oracle, model, expected in (
            ("Drake", twin(name).model, drake_quantities(twin(name), sample)),
            ("Pinocchio", robot(name), pinocchio.quantities(sample)),
        ):
            errors = relative_errors(mbjax_quantities(model, sample), expected)
            record_property(f"errors against {oracle}, seed {seed}", errors)
            assert_small(errors, 1e-10)


def single_precision_errors(name: str, sample: Sample) -> tuple[dict[str, float], dict[str, float]]:
    """Against Drake in double precision at the same rounded inputs; and forward dynamics looked at closely."""
    model = mbjax.astype(twin(name).model, jnp.float32)
    got, expected = mbjax_quantities(model, sample), drake_quantities(twin(name), sample)
    assert all(x.dtype == np.float32 for x in got.values())
    errors = relative_errors({k: x.astype(float) for k, x in got.items()}, expected)
    M, vdot = expected["M"], got["forward dynamics"].astype(float)
    # Drake's bias and applied forces: M vdot = rhs.
    rhs = M @ expected["forward dynamics"]
    size = np.linalg.norm(M, 2) * np.linalg.norm(vdot) + np.linalg.norm(rhs)
    closely = {
        "condition of M": float(np.linalg.cond(M)),
        "backward error": float(np.linalg.norm(M @ vdot - rhs) / size),
    }
    return errors, closely


def assert_single_precision(errors: dict[str, float], closely: dict[str, float]) -> None:
    """1e-4 for everything; forward dynamics may lose what the condition of M takes from any solver.

    The exact vdot of a matrix M (1 + EPSILON) differs by EPSILON cond(M); a small backward error says that the
    solver itself lost nothing.
    """
    assert closely["backward error"] <= 1e-5
    others = {k: e for k, e in errors.items() if k != "forward dynamics"}
    assert_small(others, 1e-4)
    assert errors["forward dynamics"] <= max(1e-4, EPSILON * closely["condition of M"])


@pytest.mark.parametrize("name", FILES)
def test_single_precision(name, record_property):
    """Near the origin; for floating bases also 100 m away, which only positions in the world feel."""
    for seed in SEEDS:
        errors, closely = single_precision_errors(name, make_sample(robot(name), seed).rounded(np.float32))
        record_property(f"float32 errors of seed {seed}", errors | closely)
        assert_single_precision(errors, closely)
        if FILES[name][1] != "floating":
            continue
        sample = make_sample(robot(name), seed, FAR_AWAY).rounded(np.float32)
        errors, closely = single_precision_errors(name, sample)
        record_property(f"float32 errors of seed {seed} 100 m away", errors | closely)
        assert_single_precision(errors, closely)
        assert max(errors[k] for k in IN_WORLD) <= 8 * EPSILON  # of the largest coordinate, 80 m or more


def test_samples_are_not_trivial():
    """Random states move every coordinate, and no quantity vanishes."""
    sample = make_sample(robot("panda"), 0)
    assert np.all(sample.q != np.asarray(mbjax.default_state(robot("panda")).q))
    assert all(np.any(x != 0.0) for x in mbjax_quantities(twin("panda").model, sample).values())
