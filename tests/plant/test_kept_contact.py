"""`keep_contact_only` and `load(ground=, contact_pairs=)`: the pairs that are named, and no others."""

import jax
import numpy as np
import pytest

import mbjax
from mbjax.errors import ModelError
from tests.gradients.checks import WHOLE_RUN
from tests.model.plants import inertia
from tests.models import ROBOTS

QUADRUPED = mbjax.reference_models.path("quadruped")
A1 = ROBOTS / "a1_description/urdf/a1.urdf"
PANDA = ROBOTS / "panda_description/urdf/panda.urdf"
LEGS = ("front_left", "front_right", "rear_left", "rear_right")
FEET_ON_GROUND = [("*foot*", "ground")]
BALL = mbjax.Geometry("ball", mbjax.Sphere(0.1))


def load(file, **options) -> mbjax.MultibodyModel:
    return mbjax.load(file, time_step=0.002, on_unsupported="warn", **options)


def test_only_the_feet_of_a_quadruped_touch_the_ground() -> None:
    model = load(QUADRUPED, ground=0.8, contact_pairs=FEET_ON_GROUND)
    assert model.collision_pairs == tuple((f"{leg}_foot::{leg}_foot_collision", "world::ground") for leg in LEGS)
    assert mbjax.friction(model, "ground") == (0.8, 0.8)
    assert model.num_collision_geometries == 23
    (entry,) = [e for e in model.report() if e.element == "contact"]
    everything = load(QUADRUPED, ground=True)
    assert entry.message.startswith(f"of {len(everything.collision_pairs)} pairs of shapes that might touch 4 are kept")
    listed = entry.message.split("touch nothing: ")[1].split(", ")
    assert listed == [f"'{name}'" for name in everything.collision_geometry_names if "foot" not in name][:-1]
    assert not [e for e in everything.report() if e.element == "contact"]
    assert "4 pairs may touch" in " ".join(str(model).split())


def test_only_the_feet_of_a1_touch_the_ground() -> None:
    model = load(A1, ground=True, contact_pairs=FEET_ON_GROUND)
    expected = {(f"{leg}_foot::{leg}_foot_collision", "world::ground") for leg in ("FR", "FL", "RR", "RL")}
    assert set(model.collision_pairs) == expected
    assert len(model.collision_pairs) == 4


@pytest.mark.filterwarnings("ignore::mbjax.ModelWarning")
def test_only_the_fingers_of_a_panda_touch() -> None:
    """One another, with all of their shapes; its meshes have no distance, and are asked for in vain."""
    model = load(PANDA, contact_pairs=[("panda_leftfinger", "panda_rightfinger")])
    shapes = [f"{{0}}::{{0}}_collision{end}" for end in ("", "_1", "_2", "_3")]
    left, right = ([shape.format(f"panda_{side}finger") for shape in shapes] for side in ("left", "right"))
    assert set(model.collision_pairs) == {(a, b) for a in left for b in right}
    assert len(model.collision_pairs) == 16
    with pytest.raises(ModelError, match=r"'panda_hand' and 'panda_link3'.*no signed distance.*Mesh.*meshes='hull'"):
        load(PANDA, contact_pairs=[("panda_hand", "panda_link3")])
    with pytest.raises(ModelError, match="may not touch: their shapes are on one body, on bodies welded"):
        load(PANDA, contact_pairs=[("panda_link6", "panda_link7")])


@pytest.mark.whole_run("the number of pairs that are kept, above and below")
def test_the_program_of_a_step_shrinks_to_that_of_what_is_kept() -> None:
    """Operations of the lowered step: fewer than of all pairs, no more than without the other shapes."""

    def count(model: mbjax.MultibodyModel) -> int:
        program = jax.jit(mbjax.step).lower(model, mbjax.default_state(model)).as_text()
        return sum(" = " in line for line in program.splitlines())

    def leg(kept: bool, with_others: bool) -> mbjax.MultibodyModel:
        plant = mbjax.MultibodyPlant(0.002)
        plant.register_collision_geometry("world", mbjax.Geometry("ground", mbjax.HalfSpace()), 0.8)
        for name, shape in (("shin", mbjax.Capsule(0.02, 0.2)), ("foot", mbjax.Sphere(0.03))):
            plant.add_rigid_body(name, inertia())
            if with_others or name == "foot":
                plant.register_collision_geometry(name, mbjax.Geometry(name, shape), 0.8)
        if kept:
            plant.keep_contact_only([("foot", "ground")])
        return plant.finalize()

    every, kept, alone = leg(False, True), leg(True, True), leg(False, False)
    assert [len(m.collision_pairs) for m in (every, kept, alone)] == [3, 1, 1]
    whole = [("every", every)] if WHOLE_RUN else []  # trimmed: the number of pairs, above
    operations = {name: count(m) for name, m in (*whole, ("kept", kept), ("alone", alone))}
    print(operations)
    assert operations["kept"] < operations.get("every", np.inf)
    assert operations["kept"] == operations["alone"]
    assert kept.collision.size.size == alone.collision.size.size  # what a step reads is no larger either


def two_robots() -> mbjax.MultibodyPlant:
    """Two instances with a foot of two shapes and a hand each, on the ground."""
    plant = mbjax.MultibodyPlant(0.01)
    plant.register_collision_geometry("world", mbjax.Geometry("ground", mbjax.HalfSpace()), 1.0)
    for instance in ("left", "right"):
        plant.add_model_instance(instance)
        for body in ("foot", "hand"):
            on = plant.add_rigid_body(body, inertia(), instance)
            plant.register_collision_geometry(on, BALL, 1.0)
        plant.register_collision_geometry(f"{instance}::foot", mbjax.Geometry("toe", mbjax.Sphere(0.05)), 1.0)
    plant.add_rigid_body("ghost", inertia())
    return plant


SELECTIONS = {
    "a geometry": ([("left::foot::toe", "ground")], {"left::foot::toe world::ground"}),
    "a body": ([("left::foot", "world")], {"left::foot::ball world::ground", "left::foot::toe world::ground"}),
    "a pattern of bodies": ([("*hand", "ground")], {f"{side}::hand::ball world::ground" for side in ("left", "right")}),
    "a pattern of shapes": ([("world", "t?e")], {f"{side}::foot::toe world::ground" for side in ("left", "right")}),
    "two pairs": (
        [("left::hand", "right::hand"), ("left::hand", "ground")],
        {"left::hand::ball right::hand::ball", "left::hand::ball world::ground"},
    ),
    "one pattern twice": ([("*hand*", "*hand*")], {"left::hand::ball right::hand::ball"}),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_names_of_bodies_of_geometries_and_patterns(name) -> None:
    between, expected = SELECTIONS[name]
    plant = two_robots()
    plant.keep_contact_only(between)
    model = plant.finalize()
    assert {" ".join(sorted(pair)) for pair in model.collision_pairs} == expected
    assert len(model.collision_pairs) == len(expected)


def test_called_again_it_adds_and_filters_hold() -> None:
    plant = two_robots()
    plant.keep_contact_only([("*toe", "ground")])
    plant.keep_contact_only([("*::hand", "ground")])
    plant.exclude_collisions_between("left::hand", "world")
    names = {a if b == "world::ground" else b for a, b in plant.finalize().collision_pairs}
    assert names == {"left::foot::toe", "right::foot::toe", "right::hand::ball"}


MISUSES = {
    "no such name": ([("fot", "ground")], r"no body and no collision geometry is named 'fot'. Did you mean 'foot'"),
    "no such pattern": ([("*fot*", "ground")], r"matches the pattern '\*fot\*'. Did you mean 'foot'"),
    "several bodies": (
        [("foot", "ground")],
        r"several things; say which: 'left::foot' \(a body, with all its shapes\), "
        "'right::foot'",
    ),
    "several shapes": ([("toe", "ground")], r"say which: 'left::foot::toe' \(a shape\), 'right::foot::toe'"),
    "no shapes": ([("ghost", "ground")], "'ghost' means 'ghost', without any collision geometry"),
    "one body": ([("left::foot::toe", "left::foot::ball")], "'left::foot::toe' and .* may not touch"),
    "one shape": ([("ground", "world")], "mean the same one geometry, 'WorldModelInstance::world::ground'"),
    "one pair": (("foot", "ground"), r"expected a list of pairs of names, like \[\('\*foot\*', 'ground'\)\]"),
    "one name": ("foot", "expected a list of pairs of names"),
    "no pairs": ([], "expected a list of pairs of names"),
    "indices": ([(1, 0)], "expected a list of pairs of names"),
}


@pytest.mark.parametrize("name", MISUSES)
def test_what_means_nothing_is_refused(name) -> None:
    between, message = MISUSES[name]
    plant = two_robots()

    def keep() -> None:
        plant.keep_contact_only(between)
        plant.finalize()

    with pytest.raises(ModelError, match=f"keep_contact_only: .*{message}"):
        keep()


def test_load_turns_contact_on_where_something_asks_for_it() -> None:
    assert load(QUADRUPED).contact_model == "none"
    for options in ({"ground": True}, {"contact_pairs": [("front_left_foot", "rear_left_foot")]}):
        assert load(QUADRUPED, **options).contact_model == "hydroelastic_with_fallback"
        with pytest.raises(ModelError, match=f"contact_model='none' asks for no contact, {next(iter(options))}= for"):
            load(QUADRUPED, contact_model="none", **options)
    model = load(QUADRUPED, ground=mbjax.ProximityProperties(0.5, point_stiffness=1e4), contact_pairs=FEET_ON_GROUND)
    assert np.asarray(model.collision.stiffness) == [1e4]
    with pytest.raises(ModelError, match=r"'ground'.*static_friction is -1"):
        load(QUADRUPED, ground=-1.0)
