"""Contact surfaces of hydroelastic geometries: against Drake, against an integral, and their derivatives."""

import functools
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mbjax.geometry import Box, Capsule, Convex, Cylinder, Ellipsoid, HalfSpace, Shape, Sphere, shape_lengths
from mbjax.geometry.hydroelastic import (
    ContactSurface,
    HydroelasticTopology,
    PressureField,
    Representation,
    contact_surface,
    field,
    hydroelastic_geometry,
    largest_number_of_faces,
    reason_for_no_surface,
)
from mbjax.spatial import RigidTransform, rpy_to_matrix

from .drake_surfaces import DrakeSurface, DrakeSurfaces

HULL = ((0.1, 0.1, 0.1), (-0.1, 0.1, 0.1), (0.0, -0.1, 0.1), (0.0, 0.02, -0.1), (0.05, -0.05, -0.02))
SHAPES: dict[str, tuple[Shape, float | None]] = {
    "sphere": (Sphere(0.1), 0.1),
    "fine sphere": (Sphere(0.1), 0.04),
    "ellipsoid": (Ellipsoid(0.1, 0.15, 0.07), 0.1),
    "box": (Box((0.3, 0.2, 0.1)), None),
    "cube": (Box((0.2, 0.2, 0.2)), None),
    "long box": (Box((0.1, 0.3, 0.1)), None),
    "cylinder": (Cylinder(0.1, 0.3), 0.08),
    "disk": (Cylinder(0.1, 0.1), 0.08),
    "capsule": (Capsule(0.07, 0.1), 0.08),
    "half-space": (HalfSpace(), None),
    "hull": (Convex(HULL), None),
}
MODULI = 1e5, 3e5
THICKNESS = 0.1
BOUND = 220  # pairs in random poses overlap more than bodies do in contact


class Case(NamedTuple):
    A: str  # compliant
    B: str
    B_is_compliant: bool = False
    swapped: bool = False  # the second geometry comes first
    margin: float = 0.0
    representation: Representation = "polygon"

    def __str__(self) -> str:
        kinds = ("compliant" if self.B_is_compliant else "rigid", "swapped" if self.swapped else "")
        margin = f"margin {self.margin}" if self.margin else ""
        return " ".join(filter(None, (self.A, "on", kinds[0], self.B, kinds[1], margin, self.representation)))


OFTEN = (
    Case("sphere", "half-space", margin=0.01),
    Case("half-space", "cylinder", swapped=True, representation="triangle"),
    Case("capsule", "box", margin=0.01),
    Case("box", "disk", B_is_compliant=True),
)
SELDOM = (
    *(Case(A, "half-space") for A in ("fine sphere", "ellipsoid", "cube", "long box", "cylinder", "disk", "hull")),
    *(Case("half-space", B, margin=0.01) for B in ("sphere", "ellipsoid", "box", "capsule", "hull")),
    *(Case(A, "long box", margin=0.01, representation="triangle") for A in ("ellipsoid", "box", "cylinder", "disk")),
    Case("hull", "fine sphere"),
    Case("box", "hull", swapped=True),
    Case("cube", "capsule", margin=0.01, swapped=True),
    *(Case("sphere", B, B_is_compliant=True, margin=0.01) for B in ("sphere", "cube", "capsule")),
    Case("hull", "ellipsoid", B_is_compliant=True, representation="triangle"),
    Case("long box", "cylinder", B_is_compliant=True, margin=0.01, representation="triangle"),
)
SHORT = pytest.mark.whole_run("the four cases above")


@functools.partial(jax.jit, static_argnums=(0, 1), static_argnames=("representation", "bound"))
def surfaces(
    topology_A: HydroelasticTopology,
    topology_B: HydroelasticTopology,
    numbers_A: jax.Array,
    numbers_B: jax.Array,
    X_WA: RigidTransform,
    X_WB: RigidTransform,
    *,
    moduli: tuple[Any, Any] = MODULI,
    representation: Representation = "polygon",
    bound: int = BOUND,
) -> ContactSurface:
    """Contact surfaces in many poses."""
    field_A, field_B = field(topology_A, numbers_A, moduli[0]), field(topology_B, numbers_B, moduli[1])

    def surface(X_WA: RigidTransform, X_WB: RigidTransform) -> ContactSurface:
        each = (topology_A, field_A, X_WA, topology_B, field_B, X_WB)
        return contact_surface(*each, representation=representation, bound=bound)

    return jax.vmap(surface)(X_WA, X_WB)


def numbers_of(shape: Shape) -> jax.Array:
    return jnp.array(shape.vertices if isinstance(shape, Convex) else shape_lengths(shape), float)


def random_poses(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return Rotation.from_quat(rng.normal(size=(count, 4))).as_matrix(), rng.normal(size=(count, 3)) * 0.06


def totals(area: Any, centroid: Any, pressure: Any, normal: Any) -> np.ndarray:
    """Area, its moment, force and torque about the world's origin, each relative to its own size."""
    forces = (pressure * area)[:, None] * normal
    torques = np.cross(centroid, forces)
    return np.concatenate([[area.sum()], area @ centroid * 10.0, forces.sum(0) * 1e-5, torques.sum(0) * 1e-4])


@pytest.mark.parametrize("case", [*OFTEN, *(pytest.param(case, marks=SHORT) for case in SELDOM)], ids=str)
def test_surfaces_equal_drakes(case: Case) -> None:
    names = [(case.A, "compliant"), (case.B, "compliant" if case.B_is_compliant else "rigid")]
    geometries: list[dict] = [
        {
            "shape": SHAPES[name][0],
            "resolution_hint": SHAPES[name][1],
            "compliance": compliance,
            "margin": case.margin if compliance == "compliant" else 0.0,
            "slab_thickness": THICKNESS,
        }
        for name, compliance in names
    ]
    geometries = geometries[::-1] if case.swapped else geometries
    A, B = (hydroelastic_geometry(**geometry) for geometry in geometries)
    drake = DrakeSurfaces([g | {"modulus": modulus} for g, modulus in zip(geometries, MODULI, strict=True)])
    poses = [random_poses(6, seed) for seed in (3, 4)]
    of_A, of_B = (numbers_of(geometry["shape"]) for geometry in geometries)
    X_WA, X_WB = (RigidTransform(jnp.asarray(R), jnp.asarray(p)) for R, p in poses)
    ours = surfaces(A, B, of_A, of_B, X_WA, X_WB, representation=case.representation)
    assert not ours.left_out.any()
    for world in range(6):
        theirs = drake.surface([(R[world], p[world]) for R, p in poses], case.representation)
        check_one(jax.tree.map(lambda x, world=world: np.asarray(x[world]), ours), theirs)


@pytest.mark.whole_run("surfaces of other shapes beside Drake's")
def test_flush_boxes_equal_drakes() -> None:
    """Equal compliant boxes on each other: sides, edges and medial planes coincide, up to rounding or exactly."""
    size = (0.2, 0.2, 0.2)
    box = hydroelastic_geometry(Box(size))
    drake = DrakeSurfaces([{"shape": Box(size), "compliance": "compliant", "modulus": modulus} for modulus in MODULI])
    placed = [
        (angle, (x, y, 0.2 - depth))
        for angle in (0.0, 0.25 * np.pi, 0.5 * np.pi, 1e-13)
        for x, y in ((0.0, 0.0), (0.05, 0.0), (0.1, 0.1))
        for depth in (0.01, 1e-5)
    ]
    R = Rotation.from_rotvec([[0.0, 0.0, angle] for angle, _ in placed]).as_matrix()
    p = np.array([position for _, position in placed])
    on_ground = np.eye(3), np.zeros(3)
    ground = RigidTransform(jnp.eye(3)[None].repeat(len(p), 0), jnp.zeros((len(p), 3)))
    lengths = jnp.array(size)
    ours = surfaces(box, box, lengths, lengths, RigidTransform(jnp.asarray(R), jnp.asarray(p)), ground)
    assert not ours.left_out.any()
    for world in range(len(p)):
        theirs = drake.surface([(R[world], p[world]), on_ground], "polygon")
        one = jax.tree.map(lambda x, world=world: np.asarray(x[world]), ours)
        mine = totals(one.area, one.centroid_W, one.pressure, one.normal_W)
        expected = totals(theirs.area, theirs.centroid, theirs.pressure, theirs.normal)
        np.testing.assert_allclose(mine, expected, rtol=1e-9, atol=1e-10)


def check_one(ours: ContactSurface, theirs: DrakeSurface) -> None:
    """The sums, and the gradients of both pressures face by face."""
    active = ours.active
    if len(theirs.area) == 0:
        assert not active.any()
        return
    mine = totals(ours.area, ours.centroid_W, ours.pressure, ours.normal_W)
    np.testing.assert_allclose(
        mine, totals(theirs.area, theirs.centroid, theirs.pressure, theirs.normal), rtol=1e-9, atol=1e-11
    )
    if ours.vertices_W.shape[1] > 3:  # a corner of Drake's on a straight edge makes two triangles of one
        is_large = theirs.area > 1e-14
        assert abs(active.sum() - is_large.sum()) <= 1  # a face may be as small as the smallest that counts
    for gradient, theirs_of, sign in ((ours.gradient_M, theirs.grad_M, 1.0), (ours.gradient_N, theirs.grad_N, -1.0)):
        if np.isfinite(theirs_of).all():
            along = sign * np.einsum("ij,ij->i", theirs_of, theirs.normal)
            weighted = (along * theirs.area).sum()
            np.testing.assert_allclose((gradient * ours.area).sum(), weighted, rtol=1e-9, atol=1e-6)
        else:
            assert np.isinf(gradient[active]).all()
    for face in np.flatnonzero(active):  # corners wind counterclockwise about the normal
        corners = ours.vertices_W[face, : ours.num_vertices[face]]
        twice = np.cross(corners - corners[0], np.roll(corners, -1, axis=0) - corners[0]).sum(axis=0)
        np.testing.assert_allclose(twice, 2.0 * ours.area[face] * ours.normal_W[face], atol=1e-12)


@pytest.mark.whole_run("surfaces beside Drake's")
def test_force_of_a_sphere_approaches_the_integral() -> None:
    """p = E (1 - r / R) over the disk of radius a in which a plane at distance d cuts a sphere of radius R."""
    R, d, E = 0.1, 0.07, 1e5
    a_squared = R * R - d * d
    exact = 2.0 * np.pi * E * (0.5 * a_squared - (R**3 - d**3) / (3.0 * R))
    ground = hydroelastic_geometry(HalfSpace(), compliance="rigid")
    tilt = Rotation.from_rotvec([0.3, -0.5, 0.2]).as_matrix()
    pose = RigidTransform(jnp.asarray(tilt)[None], jnp.array([[0.0, 0.0, d]]))
    plane = RigidTransform(jnp.eye(3)[None], jnp.zeros((1, 3)))
    forces = []
    for hint in (0.04, 0.02, 0.01):
        ball = hydroelastic_geometry(Sphere(R), resolution_hint=hint)
        found = surfaces(ball, ground, jnp.array([R]), jnp.zeros(0), pose, plane, moduli=(E, 0.0), bound=400)
        assert not found.left_out.any()
        forces.append(float((found.pressure * found.area * found.normal_W[..., 2]).sum()))
    coarse, middle, fine = np.array(forces) / exact - 1.0
    assert 3.5 < coarse / middle < 4.0  # second order in the length of an edge
    assert 3.8 < middle / fine < 4.0
    assert abs(4.0 * fine - middle) / 3.0 < 1e-3  # and the limit is the integral


DERIVATIVES = {
    "sphere on plane": (Sphere(0.1), 0.06, HalfSpace(), "rigid", 0.09, 0.01),
    "box on disk": (Box((0.2, 0.3, 0.1)), None, Cylinder(0.1, 0.15), "compliant", 0.12, 0.005),
    "hull on ball": (Convex(HULL), None, Sphere(0.1), "rigid", 0.15, 0.01),
    "slab on capsule": (HalfSpace(), None, Capsule(0.05, 0.1), "rigid", -0.06, 0.01),
}
SLOW = pytest.mark.whole_run("the derivatives of a sphere on a plane")


@pytest.mark.parametrize(
    "name", [*list(DERIVATIVES)[:1], *(pytest.param(name, marks=SLOW) for name in list(DERIVATIVES)[1:])]
)
def test_derivatives(name: str) -> None:
    """By lengths, moduli, margin, thickness and pose: reverse = forward = differences."""
    shape_A, hint, shape_B, compliance, height, margin = DERIVATIVES[name]
    options: dict[str, Any] = {"resolution_hint": hint or 0.08, "slab_thickness": THICKNESS}
    A = hydroelastic_geometry(shape_A, margin=margin, **options)
    B = hydroelastic_geometry(shape_B, compliance=compliance, margin=margin, **options)
    counts = [numbers_of(shape).size for shape in (shape_A, shape_B)]
    start = np.concatenate(
        [
            numbers_of(shape_A).ravel() / 0.1,
            numbers_of(shape_B).ravel() / 0.1,
            [1.0, 1.0, margin / 0.1, THICKNESS / 0.1],
            [0.13, 0.21, height / 0.1, 0.13, -0.24, 0.3],
        ]
    )

    @jax.jit
    def measure(x: jax.Array) -> jax.Array:
        a, b, rest, pose = jnp.split(x, np.cumsum([*counts, 4]))
        margin, thickness = 0.1 * rest[2], 0.1 * rest[3]
        more: dict[str, Any] = {"margin": margin, "slab_thickness": thickness}
        field_A = field(A, (0.1 * a).reshape(numbers_of(shape_A).shape), MODULI[0] * rest[0], **more)
        field_B = field(B, (0.1 * b).reshape(numbers_of(shape_B).shape), MODULI[1] * rest[1], **more)
        X_WA = RigidTransform(rpy_to_matrix(pose[3:]), 0.1 * pose[:3])
        X_WB = RigidTransform(rpy_to_matrix(jnp.array([0.1, 0.2, 0.3])), jnp.zeros(3))
        found = contact_surface(A, field_A, X_WA, B, field_B, X_WB)
        force = (found.pressure * found.area)[:, None] * found.normal_W
        torque = jnp.cross(found.centroid_W, force)
        stiffness = 1.0 / (1.0 / found.gradient_M + 1.0 / found.gradient_N) * found.area
        parts = [force.sum(0), 10.0 * torque.sum(0), 1e4 * found.area.sum()[None], 1e-2 * stiffness.sum()[None]]
        return jnp.concatenate(parts) @ jnp.array([0.3, -0.5, 1.0, 0.7, 0.2, -0.4, 0.6, 0.5])

    reverse, value = jax.jit(jax.grad(measure))(start), measure(start)
    assert float(jnp.abs(value)) > 1.0
    forward = jax.jit(lambda d: jax.jvp(measure, (jnp.asarray(start),), (d,))[1])
    direction = np.random.default_rng(5).normal(size=start.size)
    scale = float(jnp.abs(reverse).max())
    np.testing.assert_allclose(forward(jnp.asarray(direction)), reverse @ direction, atol=1e-11 * scale)
    step = 1e-6
    sides = np.eye(start.size) * step
    differences = [(measure(start + side) - measure(start - side)) / (2.0 * step) for side in sides]
    np.testing.assert_allclose(reverse, np.array(differences), atol=1e-7 * scale)


@pytest.mark.parametrize("name", ["sphere on plane", pytest.param("box on disk", marks=SLOW)])
def test_forces_are_continuous_while_faces_come_and_go(name: str) -> None:
    """Down, across and around: steps of the pose that are half as long change the force at most half as much."""
    shape_A, hint, shape_B, compliance, height, _ = DERIVATIVES[name]
    A = hydroelastic_geometry(shape_A, resolution_hint=hint)
    B = hydroelastic_geometry(shape_B, compliance=compliance, resolution_hint=hint or 0.08)
    along = np.linspace(0.0, 1.0, 401)[:, None]
    turned = Rotation.from_rotvec([0.02, 0.03, 0.4] + along * [0.1, -0.05, 0.2])
    moved = [0.013, 0.021, height + 0.012] + along * [0.011, -0.007, -0.022]
    poses = RigidTransform(jnp.asarray(turned.as_matrix()), jnp.asarray(moved))
    still = RigidTransform(jnp.eye(3)[None].repeat(401, 0), jnp.zeros((401, 3)))
    found = surfaces(A, B, numbers_of(shape_A), numbers_of(shape_B), poses, still)
    forces = np.asarray(((found.pressure * found.area)[..., None] * found.normal_W).sum(axis=1))
    changes, coarse = (np.linalg.norm(np.diff(forces[::k], axis=0), axis=1) for k in (1, 2))
    assert np.count_nonzero(np.diff(found.active.astype(int), axis=0).any(axis=1)) >= 5
    assert not found.left_out.any()
    assert np.linalg.norm(forces, axis=1).max() > 10.0
    assert 0.45 < changes.max() / coarse.max() < 0.6


def test_worlds_without_contact_and_nan_worlds_stay_alone() -> None:
    A, B = hydroelastic_geometry(Box((0.2, 0.3, 0.1))), hydroelastic_geometry(Box((1.0, 1.0, 0.1)), compliance="rigid")
    lengths = jnp.array([0.2, 0.3, 0.1]), jnp.array([1.0, 1.0, 0.1])
    heights = jnp.array([0.095, 0.3, jnp.nan, 0.09])
    turn = jnp.asarray(Rotation.from_rotvec([0.02, 0.03, 0.4]).as_matrix())
    ground = RigidTransform(jnp.eye(3)[None].repeat(4, 0), jnp.zeros((4, 3)))

    @jax.jit
    @jax.grad
    def slope(heights: jax.Array) -> jax.Array:
        up = jnp.stack([jnp.zeros(4), jnp.zeros(4), heights], axis=1)
        found = surfaces(A, B, *lengths, RigidTransform(turn[None].repeat(4, 0), up), ground)
        return (found.pressure * found.area).sum()

    slopes = slope(heights)
    assert slopes[1] == 0.0
    assert jnp.isfinite(slopes[jnp.array([0, 1, 3])]).all()
    np.testing.assert_allclose(slopes[0], slope(heights.at[2].set(0.3))[0], rtol=1e-12)
    assert slopes[0] < 0.0
    assert slopes[3] < 0.0


def test_faces_beyond_the_bound_are_counted() -> None:
    A = hydroelastic_geometry(Sphere(0.1), resolution_hint=0.04)
    B = hydroelastic_geometry(HalfSpace(), compliance="rigid")
    pose = RigidTransform(jnp.eye(3)[None], jnp.array([[0.01, 0.02, 0.07]]))
    plane = RigidTransform(jnp.eye(3)[None], jnp.zeros((1, 3)))
    few = surfaces(A, B, jnp.array([0.1]), jnp.zeros(0), pose, plane, moduli=(1e5, 0.0), bound=10)
    all_of_them = surfaces(A, B, jnp.array([0.1]), jnp.zeros(0), pose, plane, moduli=(1e5, 0.0), bound=128)
    assert int(few.num_faces) == 10
    assert int(few.active.sum()) + int(few.left_out[0]) == int(all_of_them.active.sum()) == 36
    assert int(all_of_them.left_out[0]) == 0


BOUNDS = [  # a pair, and the most faces that were counted: pressed in by 10 % of its width, in 160 poses
    ("fine sphere", "half-space", 30), ("box", "half-space", 28), ("cylinder", "half-space", 32),
    ("half-space", "box", 16), ("box", "cube", 63), ("box", "fine sphere", 49),
]  # fmt: skip


@pytest.mark.parametrize(("name_A", "name_B", "counted"), BOUNDS)
def test_bounds_hold_usual_contact_and_not_much_more(name_A: str, name_B: str, counted: int) -> None:
    A, B = (
        hydroelastic_geometry(shape, compliance=compliance, resolution_hint=hint, slab_thickness=THICKNESS)
        for (shape, hint), compliance in ((SHAPES[name_A], "compliant"), (SHAPES[name_B], "rigid"))
    )
    assert counted <= largest_number_of_faces(A, B) <= 1.5 * counted


def test_a_bound_holds_a_box_that_lies_flush() -> None:
    """A compliant box a tenth deep in a rigid one, with sides nearly parallel and askew."""
    A, B = hydroelastic_geometry(Box((0.3, 0.2, 0.1))), hydroelastic_geometry(Box((0.2, 0.2, 0.2)), compliance="rigid")
    count = 24
    tilts = 1e-2 * np.random.default_rng(0).normal(size=(count, 3)) * [1.0, 1.0, 0.0]
    turns = Rotation.from_rotvec(tilts) * Rotation.from_rotvec(np.linspace(0.0, 1.6, count)[:, None] * [0.0, 0.0, 1.0])
    shifts = np.random.default_rng(1).uniform(-0.1, 0.1, size=(count, 2))
    X_WA = RigidTransform(jnp.asarray(turns.as_matrix()), jnp.asarray(np.column_stack([shifts, np.full(count, 0.14)])))
    X_WB = RigidTransform(jnp.eye(3)[None].repeat(count, 0), jnp.zeros((count, 3)))
    bound = largest_number_of_faces(A, B)
    found = surfaces(A, B, numbers_of(A.shape), numbers_of(B.shape), X_WA, X_WB, bound=bound)
    assert not found.left_out.any()
    assert int(found.active.sum(axis=1).max()) > bound // 2


@pytest.mark.parametrize(
    ("shape_A", "compliance_A", "shape_B", "compliance_B", "words"),
    [
        (Box((1, 1, 1)), "rigid", Box((1, 1, 1)), "rigid", "both are rigid"),
        (HalfSpace(), "compliant", HalfSpace(), "rigid", "both are half spaces"),
        (HalfSpace(), "compliant", Box((1, 1, 1)), "compliant", "compliant half space has a surface with rigid"),
    ],
)
def test_pairs_without_a_surface_are_refused(
    shape_A: Shape, compliance_A: Any, shape_B: Shape, compliance_B: Any, words: str
) -> None:
    """Those which Drake refuses too, or gives to contact at points."""
    A = hydroelastic_geometry(shape_A, compliance=compliance_A, slab_thickness=0.1)
    B = hydroelastic_geometry(shape_B, compliance=compliance_B, slab_thickness=0.1)
    assert words in str(reason_for_no_surface((compliance_A, shape_A), (compliance_B, shape_B)))
    assert largest_number_of_faces(A, B) >= 0
    identity, unread = RigidTransform.identity(), cast(PressureField, None)
    with pytest.raises(ValueError, match=words):
        contact_surface(A, unread, identity, B, unread, identity)
