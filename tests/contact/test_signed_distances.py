"""Signed distances of a model: Drake's numbers on robots, exact derivatives, and names."""

import logging
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pydrake.geometry as drake_geometry
import pytest
from pydrake.math import RigidTransform as DrakeTransform
from pydrake.math import RollPitchYaw
from pydrake.multibody.parsing import Parser as DrakeParser
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, CoulombFriction
from pydrake.systems.framework import DiagramBuilder

import mbjax
from mbjax.errors import ModelError, ModelWarning
from mbjax.geometry import Box, Capsule, Convex, Cylinder, Ellipsoid, Geometry, HalfSpace, Shape, Sphere
from tests.gradients.checks import check_gradients, compiled
from tests.model.plants import inertia
from tests.models import load_robot, make_twin

QUADRUPED, ARM = (mbjax.reference_models.path(name) for name in ("quadruped", "arm"))
POSES = 4
DRAKE_SHAPES = {
    Sphere: drake_geometry.Sphere,
    Capsule: drake_geometry.Capsule,
    Cylinder: drake_geometry.Cylinder,
    Ellipsoid: drake_geometry.Ellipsoid,
}
# Around the arm: name, shape, roll-pitch-yaw and place in the world.
OBSTACLES = (
    ("ball", Sphere(0.12), (0.0, 0.0, 0.0), (0.5, 0.2, 0.6)),
    ("table", Box((0.6, 0.8, 0.05)), (0.0, 0.1, 0.3), (0.7, 0.0, 0.2)),
    ("pole", Capsule(0.05, 0.8), (0.2, 0.1, 0.0), (0.3, -0.5, 0.5)),
    ("egg", Ellipsoid(0.1, 0.2, 0.15), (0.3, 0.2, 0.1), (-0.3, 0.4, 0.9)),
    ("tin", Cylinder(0.1, 0.3), (0.4, 0.3, 0.2), (-0.5, -0.2, 0.7)),
)


def as_drakes(shape: Shape) -> drake_geometry.Shape:
    if isinstance(shape, HalfSpace):
        return drake_geometry.HalfSpace()
    if isinstance(shape, Box):
        return drake_geometry.Box(*shape.size)
    return DRAKE_SHAPES[type(shape)](*vars(shape).values())


class Scene:
    """A robot of a file among shapes of the world, here and in Drake."""

    def __init__(self, file, shapes=(), on_links=()):
        logging.getLogger("drake").setLevel(logging.ERROR)
        ours = mbjax.MultibodyPlant(contact_model="none")
        mbjax.Parser(ours).add_models(file)
        builder = DiagramBuilder()
        theirs, self.graph = AddMultibodyPlantSceneGraph(builder, 0.0)
        DrakeParser(theirs).AddModelsFromString(
            re.sub("<visual>.*?</visual>", "", file.read_text(), flags=re.S), "urdf"
        )
        for body, name, shape, rpy, place in [("world", *x) for x in shapes] + list(on_links):
            X_BG = DrakeTransform(RollPitchYaw(rpy), place)
            ours.register_collision_geometry(body, X_BG.GetAsMatrix4(), shape, name, 1.0)
            on = theirs.GetBodyByName(body)
            theirs.RegisterCollisionGeometry(on, X_BG, as_drakes(shape), name, CoulombFriction(1.0, 1.0))
        theirs.Finalize()
        self.model, self.plant = ours.finalize(), theirs
        self.twin = make_twin(self.model, theirs)
        self.diagram = builder.Build()
        self.context = self.diagram.CreateDefaultContext()

    def query(self, q) -> drake_geometry.QueryObject:
        context = self.plant.GetMyContextFromRoot(self.context)
        self.plant.SetPositions(context, np.asarray(q)[self.twin.to_drake_q])
        return self.plant.get_geometry_query_input_port().Eval(context)

    def geometry(self, name: str) -> drake_geometry.GeometryId:
        body, geometry = name.split("::")[-2:]
        inspector, on = self.graph.model_inspector(), self.plant.GetBodyByName(body)
        shapes = self.model.collision_geometries_for_body(body)
        place = next(i for i, shape in enumerate(shapes) if shape.name == geometry)
        found = self.plant.GetCollisionGeometriesForBody(on)[place]
        assert type(inspector.GetShape(found)).__name__ == type(shapes[place].shape).__name__
        return found

    def drakes(self, q, pair) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """Distance, p_WCa, p_WCb and nhat_BA_W of a pair in its order."""
        query, (A, B) = self.query(q), map(self.geometry, pair)
        answer = query.ComputeSignedDistancePairClosestPoints(A, B)
        points = [query.GetPoseInWorld(g) @ p for g, p in ((answer.id_A, answer.p_ACa), (answer.id_B, answer.p_BCb))]
        if answer.id_A == A:
            return answer.distance, *points, answer.nhat_BA_W
        return answer.distance, *points[::-1], -answer.nhat_BA_W

    def poses(self, spread: float) -> jax.Array:
        rng = np.random.default_rng(0)
        q, step = mbjax.default_state(self.model).q, spread * rng.normal(size=(POSES, self.model.num_velocities))
        return jnp.stack([mbjax.integrate_configuration(self.model, q, dv) for dv in step])


def evaluate(model: mbjax.MultibodyModel, q: jax.Array, pairs) -> mbjax.SignedDistances:
    found = compiled(jax.vmap(lambda q: mbjax.signed_distances(model, q, pairs)))(q)
    apart = found.point_A - found.point_B - found.distance[..., None] * found.normal
    np.testing.assert_allclose(apart, 0.0, atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(found.normal, axis=-1), 1.0, atol=1e-14)
    return found


def test_distances_of_a_quadruped_are_drakes() -> None:
    """Of its feet from the ground, its trunk, one another and a shank: Drake's closed forms, in every number."""
    scene = Scene(QUADRUPED, [("ground", HalfSpace(), (0.1, 0.2, 0.0), (0.0, 0.0, -0.4))])
    pairs = [("*foot", "ground"), ("trunk", "*foot"), ("front_left_foot", "rear*foot"), ("*shank", "front_left_foot")]
    q = scene.poses(0.6)
    found = evaluate(scene.model, q, pairs)
    assert found.distance.shape == (POSES, 4 + 8 + 2 + 4)
    assert (found.distance < 0.0).any()
    assert (found.distance > 0.1).any()
    for k in range(POSES):
        for i, pair in enumerate(found.pairs):
            expected = scene.drakes(q[k], pair)
            got = (x[k, i] for x in (found.distance, found.point_A, found.point_B, found.normal))
            for mine, theirs in zip(got, expected, strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-12, err_msg=str(pair))


@pytest.mark.whole_run("a quadruped's are Drake's")
def test_distances_of_an_arm_among_obstacles_are_drakes(request: pytest.FixtureRequest) -> None:
    """Whole run: of all kinds, as far as Drake's iterations, which stop at 1e-4, tell; trimmed: of closed forms."""
    is_trimmed = request.config.getoption("--trimmed")
    palm = ("tool", "palm", Capsule(0.04, 0.1), (0.0, 0.5, 0.0), (0.0, 0.0, 0.05))
    scene = Scene(ARM, OBSTACLES, [palm])
    pairs = [("forearm", "ball"), ("palm", "ball"), ("palm", "table"), ("palm", "pole")]
    if not is_trimmed:
        pairs += [(link, name) for link in ("forearm", "palm") for name in ("table", "pole", "egg", "tin")]
    q = scene.poses(0.5)
    found = evaluate(scene.model, q, pairs)
    exact = {frozenset(x) for x in (("Sphere", "Cylinder"), ("Sphere", "Capsule"), ("Sphere", "Box"))}
    kinds = {g.name: g.kind for g in scene.model.layout.contact.all_geometries}
    for k in range(POSES):
        for i, pair in enumerate(found.pairs):
            is_exact = frozenset(kinds[name.split("::")[1]] for name in pair) in exact
            expected = scene.drakes(q[k], pair)[0]
            np.testing.assert_allclose(found.distance[k, i], expected, rtol=0, atol=1e-12 if is_exact else 2e-4)


def workshop(contact_model: str = "none") -> mbjax.MultibodyModel:
    """An arm of two links that a joint connects, over a floor, beside a box, and a hull that floats."""
    plant = mbjax.MultibodyPlant(0.01, contact_model=contact_model)
    for name in ("upper", "lower", "rock"):
        plant.add_rigid_body(name, inertia())
    X_PF = mbjax.RigidTransform.from_rpy_xyz(np.array([0.1, 0.2, 0.3]), np.array([0.1, 0.0, 0.9]))
    plant.add_joint(mbjax.BallRpyJoint("shoulder", "world", "upper", X_PF=X_PF))
    X_PF = mbjax.RigidTransform.from_rpy_xyz(np.array([0.2, 0.0, 0.1]), np.array([0.0, 0.1, -0.4]))
    plant.add_joint(mbjax.RevoluteJoint("elbow", "upper", "lower", axis=[0, 1, 0], X_PF=X_PF))
    X_BG = mbjax.RigidTransform.from_rpy_xyz(np.array([0.3, -0.2, 0.4]), np.array([0.02, 0.03, -0.2]))
    rock = Convex([(0.1, 0.0, 0.0), (-0.1, 0.1, 0.0), (-0.1, -0.1, 0.02), (0.0, 0.0, 0.15)])
    for body, name, shape in (
        ("world", "floor", HalfSpace()),
        ("world", "crate", Box((0.2, 0.3, 0.4))),
        ("upper", "bone", Capsule(0.05, 0.3)),
        ("upper", "cap", Sphere(0.06)),
        ("lower", "bone", Capsule(0.04, 0.2)),
        ("lower", "fist", Ellipsoid(0.05, 0.06, 0.08)),
        ("rock", "rock", rock),
    ):
        plant.register_collision_geometry(body, X_BG, shape, name, 1.0)
    return plant.finalize()


Q = jnp.array([0.3, -0.2, 0.1, 0.6, 0.9, 0.1, -0.2, 0.3, 0.3, -0.1, 0.35])
FILTERED = [("lower::bone", "cap"), ("fist", "floor"), ("crate", "cap"), ("floor", "rock")]


def test_derivatives_are_exact() -> None:
    """By q, the shapes and what places them, forward and reverse; of pairs that joints keep from touching, too."""
    model = workshop()
    assert model.collision.size.size == 0  # nothing may touch: all are in `others`

    def numbers(q: jax.Array, others: mbjax.GeometryParameters, X_PF: jax.Array) -> list[jax.Array]:
        changed = eqx.tree_at(lambda m: (m.collision.others, m.parameters.frame_translation), model, (others, X_PF))
        found = mbjax.signed_distances(changed, q, FILTERED)
        return [found.distance, found.point_A, found.point_B, found.normal]

    result = check_gradients(numbers, Q, model.collision.others, model.parameters.frame_translation, tolerance=1e-5)
    moved = {name[: name.rindex("[")] for name, x in zip(result.names, result.reverse.T, strict=True) if x.any()}
    assert moved == {"[0]", "[2]", *(f"[1].{part}" for part in ("quaternion", "translation", "size", "vertices"))}


@pytest.mark.whole_run("derivatives by q as those of differences, above")
def test_a_distance_changes_with_its_points() -> None:
    """d distance / dq = normal . (J_Ca - J_Cb), with Ca and Cb fixed to their bodies; the same for each of a batch."""
    model = workshop()
    q = jnp.stack([Q, Q + 0.1, Q - 0.2])

    def of(q: jax.Array) -> tuple[mbjax.SignedDistances, jax.Array, jax.Array, jax.Array]:
        found = mbjax.signed_distances(model, q, FILTERED)
        X_WB = mbjax.body_poses_in_world(model, q)
        bodies = [[model.body_index(name.split("::")[0]) for name in pair] for pair in found.pairs]

        def carried(q: jax.Array) -> jax.Array:
            """p_WCa - p_WCb of points that stay where they are in their bodies."""
            at = mbjax.body_poses_in_world(model, q)

            def moved(body: int, p_WC: jax.Array) -> jax.Array:
                p_BC = X_WB.rotation[body].T @ (p_WC - X_WB.translation[body])
                return at.rotation[body] @ p_BC + at.translation[body]

            ends = [(moved(A, found.point_A[i]), moved(B, found.point_B[i])) for i, (A, B) in enumerate(bodies)]
            return jnp.stack([a - b for a, b in ends])

        expected = jnp.einsum("ik,ikq->iq", found.normal, jax.jacfwd(carried)(q))

        def distance(q: jax.Array) -> jax.Array:
            return mbjax.signed_distances(model, q, FILTERED).distance

        return found, expected, jax.jacfwd(distance)(q), jax.jacrev(distance)(q)

    found, expected, forward, reverse = compiled(jax.vmap(of))(q)
    size = np.abs(expected).max()
    np.testing.assert_allclose(forward, expected, rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(reverse, expected, rtol=0, atol=1e-12 * size)
    alone = compiled(lambda q: mbjax.signed_distances(model, q, FILTERED))(q[1])
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(alone), strict=True):
        np.testing.assert_allclose(x[1], y, rtol=0, atol=1e-14)


def test_shapes_that_touch_nothing_have_numbers_to_set_and_to_batch() -> None:
    """Size, place and vertices of each; friction has no meaning and no place."""
    model = workshop()
    pairs = [("upper::cap", "floor")]

    def height(model: mbjax.MultibodyModel) -> jax.Array:
        return mbjax.signed_distances(model, Q, pairs).distance[0]

    radii = jnp.array([0.01, 0.06, 0.2])
    heights = compiled(jax.vmap(lambda r: height(mbjax.set_collision_geometry_size(model, "cap", r[None]))))(radii)
    np.testing.assert_allclose(heights + radii, heights[0] + radii[0], atol=1e-14)
    X_BG = mbjax.collision_geometry_pose(model, "floor")
    lower = mbjax.RigidTransform(X_BG.rotation, X_BG.translation - 0.5 * X_BG.rotation[:, 2])
    sunk = mbjax.set_collision_geometry_pose(model, "floor", lower)
    np.testing.assert_allclose(compiled(height)(sunk), heights[1] + 0.5, atol=1e-14)
    corners = mbjax.collision_geometry_vertices(model, "rock")
    larger = mbjax.set_collision_geometry_vertices(model, "rock", 2.0 * corners)
    np.testing.assert_array_equal(mbjax.collision_geometry_vertices(larger, "rock"), 2.0 * corners)
    assert mbjax.collision_geometry_size(model, "upper::bone").tolist() == [0.05, 0.3]
    with pytest.raises(ModelError, match=r"'cap' can touch no other one.*no friction"):
        mbjax.set_friction(model, "cap", 0.5)


def test_without_names_pairs_are_those_of_contact() -> None:
    """With contact on, and the same with it off: not those of bodies that a joint connects."""

    def chain(contact_model: str) -> mbjax.MultibodyModel:
        plant = mbjax.MultibodyPlant(0.01, contact_model=contact_model)
        plant.register_collision_geometry("world", Geometry("floor", HalfSpace()), 1.0)
        for name in "abc":
            plant.add_rigid_body(name, inertia())
            plant.register_collision_geometry(name, Geometry(name, Sphere(0.1)), 1.0)
        plant.add_joint(mbjax.RevoluteJoint("hinge", "a", "b", axis=[0, 0, 1]))
        plant.exclude_collisions_between("c", "world")
        return plant.finalize()

    off, on = chain("none"), chain("point")
    assert off.collision_pairs == ()
    of_each = [shapes_of(jax.eval_shape(mbjax.signed_distances, m, mbjax.default_state(m).q).pairs) for m in (off, on)]
    assert of_each[0] == of_each[1] == shapes_of(on.collision_pairs)
    names = ("world::floor", "a::a", "b::b", "c::c")
    assert of_each[0] == shapes_of((names[i], names[k]) for i, k in ((0, 1), (0, 2), (1, 3), (2, 3)))


def test_a_force_of_ones_own_may_read_the_distances_of_what_touches_nothing() -> None:
    """A ball is pushed up off a floor that it cannot touch, in a step and in a batch of models."""

    class Buoyancy(mbjax.AbstractForceElement):
        stiffness: jax.Array

        def resolve(self, plant):
            return self

        def forces(self, model, position, velocity, q, v):
            depth = mbjax.signed_distances(model, q, [("ball", "floor")]).distance[0]
            F_Bo_W = jnp.zeros((model.num_bodies, 6), v.dtype).at[1, 5].set(-self.stiffness * depth)
            return mbjax.MultibodyForces(jnp.zeros_like(v), F_Bo_W)

        def potential_energy(self, model, position, q):
            return jnp.zeros((), q.dtype)

    plant = mbjax.MultibodyPlant(0.01, contact_model="none")
    plant.register_collision_geometry("world", Geometry("floor", HalfSpace()), 1.0)
    plant.add_rigid_body("ball", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
    plant.register_collision_geometry("ball", Geometry("ball", Sphere(0.1)), 1.0)
    plant.add_force_element(Buoyancy(jnp.asarray(100.0)))
    model = plant.finalize()
    radii = jnp.array([0.1, 0.2])

    def speed(radius: jax.Array) -> jax.Array:
        changed = mbjax.set_collision_geometry_size(model, "ball", radius[None])
        return mbjax.step(changed, mbjax.default_state(changed))[0].v[5]

    np.testing.assert_allclose(compiled(jax.vmap(speed))(radii), 0.01 * (100.0 * radii - 9.81), rtol=1e-12)


def shapes_of(pairs) -> set[frozenset[str]]:
    return {frozenset(pair) for pair in pairs}


@pytest.mark.whole_run("distances, points and normals of a quadruped's pairs are Drake's, in the order of their names")
def test_a_pair_is_in_the_order_of_its_names() -> None:
    """A is what is named first; each pair of shapes comes once; and contact, on or off, changes no number."""
    off, on = workshop(), workshop("point")
    names = [("cap", "crate"), ("crate", "upper"), ("crate", "upper::cap")]

    def of(model: mbjax.MultibodyModel, names) -> mbjax.SignedDistances:
        return compiled(lambda q: mbjax.signed_distances(model, q, names))(Q)

    found = of(off, names)
    assert found.pairs == (("upper::cap", "world::crate"), ("world::crate", "upper::bone"))
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(of(on, names)), strict=True):
        np.testing.assert_array_equal(x, y)
    turned = of(off, [(B, A) for A, B in found.pairs])
    np.testing.assert_allclose(turned.distance, found.distance, atol=1e-14)
    np.testing.assert_allclose(turned.normal, -found.normal, atol=1e-14)
    np.testing.assert_allclose(turned.point_A, found.point_B, atol=1e-14)
    np.testing.assert_allclose(turned.point_B, found.point_A, atol=1e-14)


def test_what_has_no_distance_is_said() -> None:
    """A named pair is refused; what contact would consider is left out with a warning."""
    plant = mbjax.MultibodyPlant(contact_model="none")
    plant.register_collision_geometry("world", Geometry("floor", HalfSpace()), 1.0)
    plant.add_rigid_body("lid", inertia())
    plant.register_collision_geometry("lid", Geometry("slab", HalfSpace()), 1.0)
    model = plant.finalize()
    q = mbjax.default_state(model).q
    with pytest.warns(ModelWarning, match="left out: 1 of HalfSpace and HalfSpace"):
        assert mbjax.signed_distances(model, q).distance.shape == (0,)
    with pytest.raises(ModelError, match=r"no signed distance of .*slab' \(HalfSpace\) and .*floor' \(HalfSpace\)"):
        mbjax.signed_distances(model, q, [("lid", "floor")])
    with pytest.raises(ModelError, match=r"signed_distances: no body .* is named 'lit'\. Did you mean 'lid'"):
        mbjax.signed_distances(model, q, [("lit", "floor")])
    in_batch = jax.vmap(lambda q: mbjax.signed_distances(model, q, []))(jnp.stack([q] * 3))
    assert (in_batch.distance.shape, in_batch.point_A.shape, in_batch.pairs) == ((3, 0), (3, 0, 3), ())
    with pytest.raises(ModelError, match=r"signed_distances: expected a list of pairs of names"):
        mbjax.signed_distances(model, q, ("lid", "floor"))
    panda = load_robot("panda_description/urdf/panda.urdf")
    with pytest.raises(ModelError, match=r"panda_hand_collision.*Mesh.*meshes='hull'"):
        mbjax.signed_distances(panda, jnp.zeros(panda.num_positions), [("panda_hand", "panda_leftfinger")])
    assert ("HalfSpace", "HalfSpace") not in mbjax.supported_pairs()
    assert {("Box", "Sphere"), ("Sphere", "Box")} <= mbjax.supported_pairs()


def test_bodies_that_start_in_collision_by_name() -> None:
    """The recipe of docs/contact.md."""
    model = mbjax.load(QUADRUPED, ground=True, contact_pairs=[("*foot*", "ground")])
    found = compiled(lambda q: mbjax.signed_distances(model, q))(mbjax.default_state(model).q)
    overlaps = {pair: float(d) for pair, d in zip(found.pairs, found.distance, strict=True) if d < 0.0}
    assert len(overlaps) == 4
    assert all("foot" in A and B == "world::ground" for A, B in overlaps)


def test_single_precision_stays_single() -> None:
    model = mbjax.astype(workshop(), jnp.float32)
    found = jax.eval_shape(lambda q: mbjax.signed_distances(model, q, FILTERED), Q.astype(jnp.float32))
    assert {x.dtype for x in jax.tree.leaves(found)} == {jnp.dtype(jnp.float32), jnp.dtype(bool)}
