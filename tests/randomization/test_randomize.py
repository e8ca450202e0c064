"""Randomised worlds equal models made by setters; patterns that match nothing are refused."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.parameters import named_numbers
from mbjax.randomization.randomize import drawn_leaves
from tests.deformable_meshes import box_mesh

WORLDS = 3
KEY = jax.random.key(4)
OFFSET = mbjax.RigidTransform(np.eye(3), np.array([0.1, 0.0, -0.1]))


@functools.cache
def cart_pole() -> mbjax.MultibodyModel:
    return mbjax.load("cart_pole", time_step=0.01)


@functools.cache
def sledge() -> mbjax.MultibodyModel:
    """A ball on the ground behind a box that slides, with a spring and a motor."""
    plant = mbjax.MultibodyPlant(0.01)
    box = mbjax.SpatialInertia.solid_box_with_mass(2.0, 0.3, 0.2, 0.1)
    for name in ("box", "ball"):
        plant.add_rigid_body(name, box.shift(np.array([0.05, 0.0, 0.02])))
    plant.add_joint(mbjax.PrismaticJoint("slide", "world", "box", axis=[0, 0, 1], damping=0.5))
    plant.add_joint(mbjax.RevoluteJoint("hinge", "box", "ball", axis=[0, 1, 0], X_PF=OFFSET, damping=0.1))
    plant.add_joint_actuator("motor", "hinge", effort_limit=5.0, rotor_inertia=1e-3, gear_ratio=3.0, kp=4.0, kd=0.2)
    plant.add_force_element(mbjax.RevoluteSpring("hinge", 0.1, 2.0))
    surface = mbjax.ProximityProperties(
        static_friction=0.8, dynamic_friction=0.6, point_stiffness=1e4, hunt_crossley_dissipation=0.2
    )
    plant.register_collision_geometry("ball", np.array([0.2, 0.0, 0.0]), mbjax.Sphere(0.1), "sole", surface)
    plant.register_collision_geometry("world", np.zeros(3), mbjax.HalfSpace(), "ground", surface)
    return plant.finalize()


def stepped(model: mbjax.MultibodyModel, state: mbjax.State) -> mbjax.State:
    return mbjax.step(model, state, jnp.full(model.num_actuators, 0.3))[0]


DRAWN = {
    "mass:*": mbjax.uniform(0.9, 1.1, relative=True),
    "center_of_mass:ball.x": mbjax.normal(0.0, 0.02, add=True),
    "joint_friction:slide": mbjax.uniform(0.1, 0.2),
    "joint_damping": mbjax.log_uniform(0.5, 2.0, relative=True),
    "armature:hinge": mbjax.uniform(0.01, 0.02),
    "kp:*": mbjax.uniform(0.9, 1.1, relative=True),
    "kd:motor": mbjax.uniform(0.9, 1.1, relative=True),
    "effort_limit": mbjax.uniform(0.2, 0.4),
    "rotor_inertia": mbjax.uniform(0.9, 1.1, relative=True),
    "gear_ratio": mbjax.uniform(0.9, 1.1, relative=True),
    "frame_translation:hinge_parent.?": mbjax.normal(0.0, 0.01, add=True),
    "gravity:world.z": mbjax.uniform(-1.0, 1.0, add=True),
    "time_step": mbjax.uniform(0.005, 0.01),
    "friction:*sole": mbjax.uniform(0.4, 1.0),
    "stiffness:*": mbjax.uniform(0.5, 2.0, relative=True),
    "dissipation:ball*": mbjax.uniform(0.1, 0.3),
    "relaxation_time:*": mbjax.uniform(0.05, 0.1, shared=True),
    "geometry_size:ball::sole": mbjax.uniform(0.9, 1.1, relative=True),
    "geometry_translation:ball::sole.x": mbjax.uniform(-0.01, 0.01, add=True),
    "spring_stiffness:hinge": mbjax.uniform(0.5, 2.0, relative=True),
    "default_position:slide": mbjax.uniform(-0.05, 0.05),
}


def built(models: mbjax.MultibodyModel, world: int) -> mbjax.MultibodyModel:
    """The model of a world, made from the sledge by setters of the numbers that were drawn."""
    p = jax.tree.map(lambda x: np.asarray(x)[world], models.parameters)
    c = jax.tree.map(lambda x: np.asarray(x)[world], models.collision)
    model = mbjax.set_masses(sledge(), p.body_mass)
    model = mbjax.set_center_of_mass_in_body_frame_and_preserve_central_inertia(model, "ball", p.body_com[1])
    model = mbjax.set_joint_friction(model, "slide", p.joint_friction[0])
    for i, joint in enumerate(("slide", "hinge")):
        model = mbjax.set_joint_damping(model, joint, p.joint_damping[i])
    model = mbjax.set_joint_armature(model, "hinge", p.joint_armature[1])
    model = mbjax.set_controller_gains(model, p.proportional_gain, p.derivative_gain)
    model = mbjax.set_effort_limit(model, "motor", p.effort_limit[0])
    model = mbjax.set_rotor_inertia(model, "motor", p.rotor_inertia[0])
    model = mbjax.set_gear_ratio(model, "motor", p.gear_ratio[0])
    frame = model.layout.offset_frames.index(model.frame_index("hinge_parent"))
    model = mbjax.set_frame_pose(model, "hinge_parent", p.frame_translation[frame])
    model = mbjax.set_time_step(mbjax.set_gravity(model, p.gravity), p.time_step)
    model = mbjax.set_default_positions(model, p.default_positions)
    for i, name in enumerate(model.collision_geometry_names):
        model = mbjax.set_proximity_properties(
            model,
            name,
            static_friction=c.static_friction[i],
            dynamic_friction=c.dynamic_friction[i],
            point_stiffness=c.stiffness[i],
            hunt_crossley_dissipation=c.hunt_crossley_dissipation[i],
            relaxation_time=c.relaxation_time[i],
        )
    model = mbjax.set_collision_geometry_size(model, "sole", c.size[0])
    model = mbjax.set_collision_geometry_pose(model, "sole", c.translation[0])
    stiffness = np.asarray(models.force_elements[0].stiffness)[world]
    leaf = model.force_elements[0].stiffness
    return jax.tree.map(lambda x: jnp.asarray(stiffness) if x is leaf else x, model)


def as_batch(models: mbjax.MultibodyModel, axes: mbjax.MultibodyModel) -> mbjax.MultibodyModel:
    """All leaves with an axis of worlds."""
    return jax.vmap(lambda model, _: model, (axes, 0))(models, jnp.zeros(WORLDS))


def test_worlds_equal_models_made_by_setters() -> None:
    """Every kind of number at once: all leaves, and a step with contact, friction and springs, agree to 1e-12."""
    models, axes = mbjax.randomize(sledge(), KEY, WORLDS, DRAWN)
    batch = as_batch(models, axes)
    expected = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(built(batch, world) for world in range(WORLDS)))
    for a, b in zip(jax.tree.leaves(batch), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=0)
    state = mbjax.State(jnp.array([0.07, 0.1]), jnp.array([-0.5, 0.3]))
    step = jax.jit(jax.vmap(stepped, (0, None)))
    found, wanted = step(batch, state), step(expected, state)
    np.testing.assert_allclose(found.q, wanted.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.v, wanted.v, rtol=0, atol=1e-12)
    assert np.ptp(np.asarray(found.v), axis=0).min() > 1e-4  # worlds do differ
    ratio = batch.collision.dynamic_friction / batch.collision.static_friction
    np.testing.assert_allclose(ratio, 0.75, rtol=1e-12)


@pytest.mark.whole_run("worlds equal models made by setters")
def test_only_drawn_leaves_have_an_axis_of_worlds() -> None:
    """The batch goes through `vmap` with its axes, and its worlds step like models of their own."""
    models, axes = mbjax.randomize(cart_pole(), KEY, WORLDS, {"mass:pole": mbjax.uniform(1.0, 2.0)})
    assert axes.parameters.body_mass == 0
    assert axes.parameters.body_com is None
    np.testing.assert_array_equal(models.parameters.body_mass[:, :2], np.broadcast_to([3.0, 2.0], (WORLDS, 2)))
    assert models.parameters.gravity is cart_pole().parameters.gravity
    masses = np.asarray(models.parameters.body_mass)[:, 2]
    assert len(set(masses.tolist())) == WORLDS
    state = mbjax.State(jnp.array([0.1, 0.3]), jnp.array([0.2, -0.4]))
    found = jax.jit(jax.vmap(stepped, (axes, None)))(models, state)
    step = jax.jit(stepped)
    for world in range(WORLDS):
        wanted = step(mbjax.set_mass(cart_pole(), "pole", masses[world]), state)
        np.testing.assert_allclose(found.v[world], wanted.v, rtol=1e-12)


def test_inertias_stay_physical_and_scale_with_mass() -> None:
    """Stretched by factors from 0.05 to 20, and still a body that can be; the mass scales moments too."""
    drawn = {"inertia:pole": mbjax.log_uniform(0.05, 20.0, relative=True), "mass:pole": mbjax.uniform(1.0, 2.0)}
    models, axes = mbjax.randomize(cart_pole(), KEY, 50, drawn)
    status = jax.jit(jax.vmap(mbjax.model_status, (axes,)))(models)
    assert np.asarray(status.is_valid).all()
    exact, axes = mbjax.randomize(cart_pole(), KEY, 1, {"inertia:*": mbjax.uniform(2.0, 2.0, relative=True)})
    S = cart_pole().parameters.body_unit_inertia - exact.parameters.body_unit_inertia[0]
    com = np.asarray(cart_pole().parameters.body_com)
    of_points = np.sum(com**2, 1)[:, None] * np.array([1.0, 1.0, 1.0]) - com**2
    np.testing.assert_allclose(S[:, :3], -(cart_pole().parameters.body_unit_inertia[:, :3] - of_points), atol=1e-12)


def test_every_spring_is_drawn() -> None:
    """Springs have kinds of one name: all that a pattern matches are drawn, whatever their number."""
    plant = mbjax.MultibodyPlant(0.01)
    for i, parent in enumerate(("world", "link0", "link1")):
        plant.add_rigid_body(f"link{i}", mbjax.SpatialInertia.solid_box_with_mass(1.0, 0.3, 0.2, 0.1))
        plant.add_joint(mbjax.RevoluteJoint(f"hinge{i}", parent, f"link{i}", axis=[0, 1, 0]))
        plant.add_force_element(mbjax.RevoluteSpring(f"hinge{i}", 0.0, 2.0 + i))
    models, axes = mbjax.randomize(plant.finalize(), KEY, WORLDS, {"spring_stiffness:*": mbjax.uniform(5.0, 6.0)})
    springs = [i for i, e in enumerate(models.force_elements) if isinstance(e, mbjax.RevoluteSpring)]
    drawn = np.stack([np.asarray(models.force_elements[i].stiffness) for i in springs])
    assert drawn.shape == (3, WORLDS)
    assert ((drawn >= 5.0) & (drawn <= 6.0)).all()
    assert len(set(drawn.ravel().tolist())) == drawn.size
    assert [axes.force_elements[i].stiffness for i in springs] == [0, 0, 0]


def test_turned_frames_and_shared_draws() -> None:
    drawn = {
        "frame_rotation:slider_parent.y": mbjax.normal(0.0, 0.1),
        "mass:*": mbjax.uniform(0.5, 1.5, relative=True, shared=True),
        "mass:rail": mbjax.uniform(1.0, 1.0, relative=True),
    }
    models, axes = mbjax.randomize(cart_pole(), KEY, WORLDS, drawn)
    factors = np.asarray(models.parameters.body_mass / cart_pole().parameters.body_mass)
    np.testing.assert_array_equal(factors[:, 0], 1.0)  # a later pattern replaces an earlier one
    np.testing.assert_allclose(factors[:, 1], factors[:, 2], rtol=1e-14)
    poses = jax.vmap(lambda model: mbjax.frame_pose(model, "slider_parent").rotation, (axes,))(models)
    np.testing.assert_allclose(poses[:, 1, 1], 1.0, atol=1e-14)
    assert np.abs(np.asarray(poses)[:, 0, 2]).min() > 1e-4


def test_gradients_go_through_draws_and_ranges_may_be_empty() -> None:
    """A factor's derivative is the factor, a replaced number has none; without width all worlds are the model."""
    drawn = {
        "mass:*": mbjax.uniform(0.5, 1.5, relative=True),
        "joint_damping:*": mbjax.log_uniform(0.1, 0.2),
        "center_of_mass:pole.z": mbjax.normal(0.0, 0.0, add=True),
        "gravity": mbjax.uniform(1.0, 1.0, relative=True),
    }
    models, _ = mbjax.randomize(cart_pole(), KEY, WORLDS, drawn)
    p, old = models.parameters, cart_pole().parameters
    np.testing.assert_array_equal(p.gravity, np.broadcast_to(old.gravity, (WORLDS, 3)))
    np.testing.assert_allclose(p.body_com, np.broadcast_to(old.body_com, p.body_com.shape), atol=0)
    np.testing.assert_allclose(p.body_unit_inertia, np.broadcast_to(old.body_unit_inertia, (WORLDS, 3, 6)), rtol=1e-14)

    def total(model: mbjax.MultibodyModel) -> jax.Array:
        drawn_models, _ = mbjax.randomize(model, KEY, WORLDS, drawn)
        return jnp.sum(drawn_models.parameters.body_mass) + jnp.sum(drawn_models.parameters.joint_damping)

    by_model = jax.grad(total)(cart_pole()).parameters
    np.testing.assert_allclose(by_model.body_mass, (p.body_mass / old.body_mass).sum(0), rtol=1e-13)
    np.testing.assert_array_equal(by_model.joint_damping, 0.0)


def test_the_signature_of_playground() -> None:
    """One key a world; the same worlds as `randomize`, whether drawn together or alone, and under jit."""
    randomizer = mbjax.domain_randomizer({"mass:*": mbjax.uniform(0.9, 1.1, relative=True)})
    keys = jax.random.split(KEY, WORLDS)
    models, _ = randomizer(cart_pole(), keys)
    programs = drawn_leaves._cached._cache_size()
    same, _ = mbjax.randomize(cart_pole(), KEY, WORLDS, {"mass:*": mbjax.uniform(0.9, 1.1, relative=True)})
    alone, _ = randomizer(cart_pole(), keys[1:2])
    assert (
        drawn_leaves._cached._cache_size() == programs + 1
    )  # for one key; the second call ran what the first compiled
    masses = jax.jit(lambda keys: randomizer(cart_pole(), keys)[0].parameters.body_mass)(keys)
    np.testing.assert_array_equal(models.parameters.body_mass, same.parameters.body_mass)
    np.testing.assert_array_equal(models.parameters.body_mass[1], alone.parameters.body_mass[0])
    np.testing.assert_allclose(masses, same.parameters.body_mass, rtol=1e-14)


def test_two_springs_in_a_joint_have_names_of_their_own() -> None:
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("arm", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
    plant.add_joint(mbjax.RevoluteJoint("hinge", "world", "arm"))
    for stiffness in (1.0, 2.0, 3.0):
        plant.add_force_element(mbjax.RevoluteSpring("hinge", 0.0, stiffness))
    model = plant.finalize()
    for pattern, drawn in (
        ("spring_stiffness:hinge", [7.0, 2.0, 3.0]),
        ("spring_stiffness:hinge #2", [1.0, 7.0, 3.0]),
        ("spring_stiffness:hinge #3", [1.0, 2.0, 7.0]),
        ("spring_stiffness", [7.0, 7.0, 7.0]),
    ):
        models, _ = mbjax.randomize(model, KEY, 1, {pattern: mbjax.uniform(7.0, 7.0)})
        np.testing.assert_array_equal([float(e.stiffness.squeeze()) for e in models.force_elements[-3:]], drawn)


def test_names_with_brackets_are_found_before_patterns() -> None:
    plant = mbjax.MultibodyPlant()
    for name in ("wheel[0]", "wheel[1]", "wheel0", "hub[2]"):
        plant.add_rigid_body(name, mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
    model = plant.finalize()
    for pattern, drawn in (
        ("mass:wheel[0]", [7.0, 1.0, 1.0, 1.0]),
        ("mass:wheel[01]", [1.0, 1.0, 7.0, 1.0]),  # a pattern of letters, as ever
        ("mass:hub[2]*", [1.0, 1.0, 1.0, 7.0]),  # nothing is called hub2
        ("mass:wheel*", [7.0, 7.0, 7.0, 1.0]),
    ):
        models, _ = mbjax.randomize(model, KEY, 1, {pattern: mbjax.uniform(7.0, 7.0)})
        np.testing.assert_array_equal(models.parameters.body_mass.reshape(-1), drawn, err_msg=pattern)
    with pytest.raises(mbjax.ModelError, match="matches nothing"):
        mbjax.randomize(model, KEY, 1, {"mass:wheel[7]": mbjax.uniform(7.0, 7.0)})


@pytest.mark.parametrize("kind", sorted({number.kind.name for number in named_numbers(sledge()).values()}))
def test_a_pattern_that_matches_nothing_is_refused_with_near_matches(kind: str) -> None:
    element = next(n.element for n in named_numbers(sledge()).values() if n.kind.name == kind)
    with pytest.raises(mbjax.ModelError, match="matches nothing") as caught:
        mbjax.randomize(sledge(), KEY, WORLDS, {f"{element}e": mbjax.uniform(0.0, 1.0)})
    assert f"'{element}'" in str(caught.value)


@pytest.mark.parametrize(
    ("distributions", "words"),
    [
        ({"maas:*": mbjax.uniform(0.0, 1.0)}, "Did you mean 'mass'"),
        ({"friction:*": mbjax.uniform(0.0, 1.0)}, "load the model with ground="),
        ({"mass:cart": mbjax.uniform(-2.0, -1.0)}, r"drawn mass of 'cart' is -1.*, or draw factors by relative=True"),
        ({"mass:*": mbjax.uniform(-2.0, -1.0, relative=True)}, r"drawn mass of '.*Narrow uniform.* relative=True\)\.$"),
        ({"inertia:cart": mbjax.uniform(1.0, 2.0)}, "needs relative=True"),
        ({"mass:cart": 3.0}, "must have a distribution"),
        ({}, "no names"),
    ],
)
def test_misuse_is_refused_in_words(distributions: dict, words: str) -> None:
    with pytest.raises(mbjax.ModelError, match=words):
        mbjax.randomize(cart_pole(), KEY, WORLDS, distributions)


def test_materials_and_lengths_that_no_model_may_have_are_refused() -> None:
    plant = mbjax.MultibodyPlant(0.01)
    plant.add_deformable_body("foam", box_mesh((1, 1, 1), (0.02, 0.02, 0.02)), mbjax.DeformableMaterial(1e4, 0.3))
    rigid = mbjax.ProximityProperties(0.5).add_rigid_hydroelastic_properties(0.1)
    soft = mbjax.ProximityProperties(0.5).add_compliant_hydroelastic_properties(0.1, 1e6)
    plant.add_rigid_body("brick", mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.1))
    plant.register_collision_geometry("brick", mbjax.Geometry("skin", mbjax.Box((0.3, 0.2, 0.1))), soft)
    plant.register_collision_geometry("world", mbjax.Geometry("table", mbjax.Box((1.0, 1.0, 0.1))), rigid)
    model = plant.finalize()
    for name, drawn, words in (
        ("poissons_ratio:foam", (0.6, 0.7), "drawn Poisson's ratio of 'foam' is 0.6.* must be a number between -1 and"),
        (
            "geometry_size:*skin",
            (0.05, 0.5),
            r"drawn size of 'skin' is \[0\..* in world \d.* the shortest side of a box",
        ),
    ):
        with pytest.raises(mbjax.ModelError, match=words):
            mbjax.randomize(model, KEY, WORLDS, {name: mbjax.uniform(*drawn)})
    models, _ = mbjax.randomize(model, KEY, WORLDS, {"geometry_size:*skin": mbjax.uniform(0.9, 1.1, relative=True)})
    assert models.collision.size.shape[0] == WORLDS


def test_bad_distributions_are_refused() -> None:
    for wrong, words in (
        (lambda: mbjax.uniform(2.0, 1.0), "finite and in order"),
        (lambda: mbjax.uniform("a", "b"), r"uniform\(a, b\): what is given must be one number"),  # pyright: ignore
        (lambda: mbjax.randomization.Distribution("unifrom", 1.0, 2.0), "kind must be one of uniform"),  # pyright: ignore
        (lambda: mbjax.log_uniform(0.0, 1.0), "above 0"),
        (lambda: mbjax.normal(0.0, -1.0), "standard deviation >= 0"),
        (lambda: mbjax.uniform(0.0, 1.0, relative=True, add=True), "give one of them"),
        (lambda: mbjax.randomize(cart_pole(), KEY, 0, {"mass:*": mbjax.uniform(1.0, 2.0)}), "worlds must be"),
        (lambda: mbjax.randomize(cart_pole(), 3, 2, {"mass:*": mbjax.uniform(1.0, 2.0)}), "must be one key"),
    ):
        with pytest.raises(mbjax.ModelError, match=words):
            wrong()
