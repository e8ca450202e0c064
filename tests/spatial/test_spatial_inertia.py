"""Inertias: Drake as oracle, physical validity in words, and gradients at special shapes (G44)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydrake.math import RotationMatrix
from pydrake.multibody import tree as drake

from mbjax.spatial import (
    RotationalInertia,
    SpatialInertia,
    UnitInertia,
    quaternion_to_matrix,
    rotational_inertia_matrix,
    spatial_inertia_matrix,
)

RNG = np.random.default_rng(23)
AXIS = np.array([0.36, -0.48, 0.8])
COM = np.array([0.2, -0.1, 0.3])
R_AE = np.asarray(quaternion_to_matrix(jnp.asarray(RNG.normal(size=4))))
OFFSET = np.array([-0.4, 0.7, 0.25])


def body():
    """A body that is like no special case, and Drake's copy of it."""
    central = (0.3, 0.4, 0.5, 0.02, -0.03, 0.04)
    ours = SpatialInertia.from_central_inertia(2.3, COM, RotationalInertia(*central))
    return ours, drake.SpatialInertia.MakeFromCentralInertia(2.3, COM, drake.RotationalInertia(*central))


def assert_same(ours, theirs, atol=1e-14):
    np.testing.assert_allclose(ours.copy_to_full_matrix6(), theirs.CopyToFullMatrix6(), rtol=1e-13, atol=atol)
    np.testing.assert_allclose(ours.mass, theirs.get_mass(), rtol=1e-14)
    np.testing.assert_allclose(ours.com, theirs.get_com(), atol=1e-15)


def test_members_match_drake():
    ours, theirs = body()
    assert_same(ours, theirs)
    np.testing.assert_allclose(ours.calc_com_moment(), theirs.CalcComMoment(), rtol=1e-15)
    inertia, expected = ours.calc_rotational_inertia(), theirs.CalcRotationalInertia()
    np.testing.assert_allclose(inertia.moments, expected.get_moments(), rtol=1e-14)
    np.testing.assert_allclose(inertia.products, expected.get_products(), rtol=1e-14)
    np.testing.assert_allclose(inertia.copy_to_full_matrix3(), expected.CopyToFullMatrix3(), 1e-14)
    np.testing.assert_allclose(inertia.trace(), expected.Trace(), rtol=1e-14)
    np.testing.assert_allclose(inertia.calc_principal_moments(), expected.CalcPrincipalMomentsOfInertia(), rtol=1e-13)
    central = ours.calc_central_rotational_inertia()
    np.testing.assert_allclose(central.moments, [0.3, 0.4, 0.5], rtol=1e-14)
    A = jnp.asarray(RNG.normal(size=6))
    np.testing.assert_allclose(ours * A, theirs.CopyToFullMatrix6() @ A, rtol=1e-13)


def test_shift_re_express_and_sum_match_drake():
    ours, theirs = body()
    assert_same(ours.shift(jnp.asarray(OFFSET)), theirs.Shift(OFFSET))
    assert_same(ours.re_express(jnp.asarray(R_AE)), theirs.ReExpress(RotationMatrix(R_AE)))
    other = ours.shift(jnp.asarray(OFFSET)).re_express(jnp.asarray(R_AE))
    expected = theirs.Shift(OFFSET).ReExpress(RotationMatrix(R_AE))
    expected += theirs
    assert_same(ours + other, expected)


def test_rotational_and_unit_inertia_shifts_match_drake():
    numbers = (0.3, 0.4, 0.5, 0.02, -0.03, 0.04)
    ours, theirs = RotationalInertia(*numbers), drake.RotationalInertia(*numbers)
    p = jnp.asarray(OFFSET)
    pairs = [
        (ours.shift_from_center_of_mass(1.7, p), theirs.ShiftFromCenterOfMass(1.7, OFFSET)),
        (ours.shift_to_center_of_mass(0.1, p), theirs.ShiftToCenterOfMass(0.1, OFFSET)),
        (ours.re_express(jnp.asarray(R_AE)), theirs.ReExpress(RotationMatrix(R_AE))),
        (
            UnitInertia(*numbers).shift_from_center_of_mass(p),
            drake.UnitInertia(*numbers).ShiftFromCenterOfMass(OFFSET),
        ),
        (
            UnitInertia(*numbers).shift_to_center_of_mass(0.1 * p),
            drake.UnitInertia(*numbers).ShiftToCenterOfMass(0.1 * OFFSET),
        ),
    ]
    for mine, drakes in pairs:
        np.testing.assert_allclose(mine.copy_to_full_matrix3(), drakes.CopyToFullMatrix3(), atol=1e-15)
    w = jnp.asarray(RNG.normal(size=3))
    np.testing.assert_allclose(ours @ w, theirs.CopyToFullMatrix3() @ w, rtol=1e-14)


UNIT_SHAPES = {
    "SolidBox": (0.3, 0.5, 0.7),
    "SolidCube": (0.3,),
    "SolidSphere": (0.3,),
    "HollowSphere": (0.3,),
    "SolidEllipsoid": (0.3, 0.5, 0.7),
    "SolidCylinder": (0.3, 0.5, AXIS),
    "SolidCylinderAboutEnd": (0.3, 0.5, AXIS),
    "SolidCapsule": (0.3, 0.5, AXIS),
    "ThinRod": (0.3, AXIS),
    "StraightLine": (0.3, AXIS),
    "AxiallySymmetric": (0.3, 0.2, AXIS),
    "PointMass": (COM,),
    "TriaxiallySymmetric": (0.3,),
}

SPATIAL_SHAPES = {
    "SolidBoxWithMass": (2.3, 0.3, 0.5, 0.7),
    "SolidBoxWithDensity": (2.3, 0.3, 0.5, 0.7),
    "SolidCubeWithDensity": (2.3, 0.3),
    "SolidSphereWithMass": (2.3, 0.3),
    "SolidSphereWithDensity": (2.3, 0.3),
    "HollowSphereWithMass": (2.3, 0.3),
    "HollowSphereWithDensity": (2.3, 0.3),
    "SolidEllipsoidWithMass": (2.3, 0.3, 0.5, 0.7),
    "SolidEllipsoidWithDensity": (2.3, 0.3, 0.5, 0.7),
    "SolidCylinderWithMass": (2.3, 0.3, 0.5, AXIS),
    "SolidCylinderWithDensity": (2.3, 0.3, 0.5, AXIS),
    "SolidCylinderWithMassAboutEnd": (2.3, 0.3, 0.5, AXIS),
    "SolidCylinderWithDensityAboutEnd": (2.3, 0.3, 0.5, AXIS),
    "SolidCapsuleWithMass": (2.3, 0.3, 0.5, AXIS),
    "SolidCapsuleWithDensity": (2.3, 0.3, 0.5, AXIS),
    "ThinRodWithMass": (2.3, 0.3, AXIS),
    "ThinRodWithMassAboutEnd": (2.3, 0.3, AXIS),
    "Zero": (),
}


def snake_case(name):
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


@pytest.mark.parametrize("name", UNIT_SHAPES)
def test_unit_inertia_of_solids_matches_drake(name):
    arguments = UNIT_SHAPES[name]
    ours = getattr(UnitInertia, snake_case(name))(*arguments)
    theirs = getattr(drake.UnitInertia, name)(*arguments)
    np.testing.assert_allclose(ours.copy_to_full_matrix3(), theirs.CopyToFullMatrix3(), rtol=1e-13, atol=1e-16)
    assert ours.could_be_physically_valid()


@pytest.mark.parametrize("name", SPATIAL_SHAPES)
def test_spatial_inertia_of_solids_matches_drake(name):
    arguments = SPATIAL_SHAPES[name]
    ours = getattr(SpatialInertia, snake_case(name))(*arguments)
    theirs = getattr(drake.SpatialInertia, name)(*arguments)
    np.testing.assert_allclose(ours.copy_to_full_matrix6(), theirs.CopyToFullMatrix6(), rtol=1e-13, atol=1e-15)
    assert ours.is_physically_valid()


def test_every_drake_shape_has_its_snake_case():
    for ours, theirs in ((UnitInertia, drake.UnitInertia), (SpatialInertia, drake.SpatialInertia)):
        shapes = [n for n in dir(theirs) if n.startswith(("Solid", "Hollow", "Thin"))]
        assert [n for n in shapes if not hasattr(ours, snake_case(n))] == []


def test_tetrahedra_fill_a_box():
    """Six path tetrahedra of a box, about a point off the box, add up to the box."""
    import itertools

    lengths = np.array([0.3, 0.5, 0.7])
    total = SpatialInertia.zero()
    for order in itertools.permutations(range(3)):
        corners = [OFFSET]
        for axis in order:
            corners.append(corners[-1] + lengths[axis] * np.eye(3)[axis])
        total = total + SpatialInertia.solid_tetrahedron_about_point_with_density(1.7, *corners)
    box = SpatialInertia.solid_box_with_density(1.7, *lengths)
    expected = box.shift(jnp.asarray(-(OFFSET + 0.5 * lengths)))
    np.testing.assert_allclose(total.copy_to_full_matrix6(), expected.copy_to_full_matrix6(), rtol=1e-13)
    vertices = np.asarray(corners[1:]) - corners[0]
    about_vertex = SpatialInertia.solid_tetrahedron_about_vertex_with_density(1.7, *vertices)
    shifted = SpatialInertia.solid_tetrahedron_about_point_with_density(1.7, *corners)
    np.testing.assert_allclose(
        shifted.shift(jnp.asarray(OFFSET)).copy_to_full_matrix6(),
        about_vertex.copy_to_full_matrix6(),
        atol=1e-15,
    )


def test_thin_triangle_is_half_a_flat_box():
    plate = UnitInertia.thin_triangle_about_point([0, 0, 0], [0.4, 0, 0], [0, 0.6, 0])
    np.testing.assert_allclose(plate.moments, [0.06, 0.4**2 / 6, 0.06 + 0.4**2 / 6], rtol=1e-14)
    np.testing.assert_allclose(plate.products, [-0.4 * 0.6 / 12, 0, 0], atol=1e-16)


# Validity

IMPOSSIBLE = {
    "triangle inequality Ixx + Iyy >= Izz fails about the centre of mass: 0.1 + 0.1 < 0.5": (
        1.0,
        np.zeros(3),
        (0.1, 0.1, 0.5),
    ),
    "negative mass: -1 kg": (-1.0, np.zeros(3), (0.1, 0.1, 0.1)),
    "negative moment of inertia about the centre of mass: Ixx = -0.1": (
        1.0,
        np.zeros(3),
        (-0.1, 0.1, 0.1),
    ),
    "negative moment of inertia for the principal moments": (
        1.0,
        np.zeros(3),
        (1.0, 1.0, 1.0, 1.1, 0.0, 0.0),
    ),
    "about the centre of mass": (1.0, np.array([0, 0, 1.0]), (0.1, 0.1, 0.1)),
    "NaN in mass": (np.nan, np.zeros(3), (0.1, 0.1, 0.1)),
    "NaN among the moments": (1.0, np.zeros(3), (np.nan, 0.1, 0.1)),
    "infinite mass": (np.inf, np.zeros(3), (0.1, 0.1, 0.1)),
    "fails for the principal moments": (1.0, np.zeros(3), (1.0, 1.0, 1.0, 0.7, 0.0, 0.0)),
}


@pytest.mark.parametrize("words", IMPOSSIBLE)
def test_report_names_what_fails_with_numbers(words):
    mass, com, numbers = IMPOSSIBLE[words]
    with pytest.raises(ValueError, match="SpatialInertia"):
        SpatialInertia(mass, com, UnitInertia(*numbers))
    M = SpatialInertia(mass, com, UnitInertia(*numbers), skip_validity_check=True)
    assert words in M.physical_validity_report()
    assert not M.is_physically_valid()
    if np.isfinite([mass, *numbers]).all():  # Drake throws for others
        theirs = drake.SpatialInertia(mass, com, drake.UnitInertia(*numbers), True)
        assert not theirs.IsPhysicallyValid()


@pytest.mark.parametrize("excess", [4.0, 14.0, 18.0, 100.0])
def test_tolerance_is_drakes(excess):
    """At the triangle equality Drake forgives 16 epsilon of the largest moment."""
    for numbers in ((1.0, 1.0, 2 * (1 + excess * 2.2e-16)), (1.0, 1.0, -excess * 2.2e-16)):
        theirs = drake.SpatialInertia(1.0, np.zeros(3), drake.UnitInertia(*numbers), True)
        ours = SpatialInertia(1.0, np.zeros(3), UnitInertia(*numbers), skip_validity_check=True)
        assert ours.is_physically_valid() == theirs.IsPhysicallyValid()


def test_float32_rods_far_from_their_centre_are_valid():
    rod = SpatialInertia.thin_rod_with_mass(jnp.float32(0.3), 0.7, AXIS)
    assert rod.shift(jnp.asarray([10.0, -3.0, 2.0], jnp.float32)).is_physically_valid()


def test_traced_construction_does_not_check_and_reports_refuse_tracers():
    def build(moment):
        return SpatialInertia(1.0, jnp.zeros(3), UnitInertia(0.1, 0.1, moment)).mass

    assert jax.jit(build)(0.5) == 1.0
    with pytest.raises(TypeError, match="outside the transformed function"):
        jax.jit(lambda m: UnitInertia(m, m, m).calc_principal_moments())(1.0)


def test_nan_zero_and_massless_bodies():
    assert SpatialInertia.nan().is_nan()
    assert SpatialInertia.zero().is_zero()
    assert not body()[0].is_nan()
    point = SpatialInertia.point_mass(0.0, COM)
    total = point + SpatialInertia.zero()
    np.testing.assert_allclose(total.com, 0.5 * COM)
    assert not total.is_nan()
    assert not total.shift(jnp.asarray(OFFSET)).is_nan()
    massless = SpatialInertia.from_central_inertia(0.0, COM, RotationalInertia.zero())
    assert massless.is_physically_valid()

    def total_mass_and_inertia(mass):
        M = SpatialInertia.point_mass(mass, COM) + SpatialInertia.zero()
        return M.shift(jnp.asarray(OFFSET)).copy_to_full_matrix6()

    for transform in (jax.jacfwd, jax.jacrev):
        assert jnp.all(jnp.isfinite(jax.jit(transform(total_mass_and_inertia))(0.0)))


# Gradients and dtypes


def inertia_numbers(x):
    """All operations that a model applies to an inertia, from ten numbers."""
    six = UnitInertia.from_moments_products(x[4:])
    M = SpatialInertia(x[0], x[1:4], six, skip_validity_check=True)
    shifted = M.shift(jnp.asarray(OFFSET, x.dtype)).re_express(jnp.asarray(R_AE, x.dtype))
    return (shifted + M).copy_to_full_matrix6() @ jnp.arange(1.0, 7.0, dtype=x.dtype)


G44_SHAPES = {
    "three equal moments": [0.4, 0.4, 0.4],
    "two equal moments": [0.4, 0.4, 0.3],
    "thin rod": [0.4, 0.4, 0.0],
    "triangle equality": [0.1, 0.3, 0.4],
    "point": [0.0, 0.0, 0.0],
}


def test_g44_derivatives_at_special_inertias():
    rows = [[2.0, *COM, *moments, 0.0, 0.0, 0.0] for moments in G44_SHAPES.values()]
    x = jnp.asarray([*rows, [1.3, *COM, 0.3, 0.4, 0.5, 0.02, -0.03, 0.04]])
    f = jax.jit(jax.vmap(inertia_numbers))
    forward = jax.jit(jax.vmap(jax.jacfwd(inertia_numbers)))(x)
    reverse = jax.jit(jax.vmap(jax.jacrev(inertia_numbers)))(x)
    hessian = jax.jit(jax.vmap(jax.hessian(inertia_numbers)))(x)
    assert jnp.all(jnp.isfinite(hessian))
    np.testing.assert_allclose(forward, reverse, atol=1e-12)
    h = 1e-6
    steps = h * np.eye(10)[:, None, :]
    differences = np.stack([(f(x + e) - f(x - e)) / (2 * h) for e in steps], -1)
    np.testing.assert_allclose(forward, differences, rtol=1e-6, atol=1e-7)
    for row in x:
        M = SpatialInertia.from_central_inertia(row[0], row[1:4], UnitInertia(*row[4:]) * row[0])
        assert M.is_physically_valid()
        assert M.calc_rotational_inertia().calc_principal_moments().shape == (3,)


def test_shape_parameters_can_be_differentiated():
    def diagonal(x):
        M = SpatialInertia.solid_capsule_with_density(x[0], x[1], x[2], jnp.asarray(AXIS))
        return jnp.diag(M.copy_to_full_matrix6())

    f = jax.jit(diagonal)
    x, h = jnp.asarray([1000.0, 0.05, 0.3]), 1e-6
    expected = np.stack([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(3)], -1)
    np.testing.assert_allclose(jax.jit(jax.jacrev(diagonal))(x), expected, rtol=1e-5, atol=1e-8)


def test_float32_is_preserved():
    x = jnp.asarray([1.3, *COM, 0.3, 0.4, 0.5, 0.02, -0.03, 0.04], jnp.float32)
    assert jax.eval_shape(inertia_numbers, x).dtype == jnp.float32
    box = SpatialInertia.solid_cylinder_with_mass(jnp.float32(1.0), 0.2, 0.3, [0.0, 0.0, 2.0])
    assert {leaf.dtype for leaf in jax.tree.leaves(box)} == {jnp.dtype(jnp.float32)}
    assert {leaf.dtype for leaf in jax.tree.leaves(body()[0].astype(jnp.float32))} == {jnp.dtype(jnp.float32)}
    assert SpatialInertia.zero(jnp.float32).com.dtype == jnp.float32


def test_free_functions_and_batches():
    ours, _ = body()
    six = ours.unit_inertia.moments_products()
    many = jnp.tile(six, (3, 1))
    np.testing.assert_array_equal(rotational_inertia_matrix(many)[1], ours.unit_inertia.copy_to_full_matrix3())
    batch = spatial_inertia_matrix(jnp.full(3, ours.mass), jnp.tile(ours.com, (3, 1)), many)
    np.testing.assert_array_equal(batch[2], ours.copy_to_full_matrix6())
    vmapped = jax.vmap(SpatialInertia, (0, None, None))(jnp.arange(1.0, 4.0), COM, ours.unit_inertia)
    assert vmapped.com.shape == (3, 3)


def test_text():
    text = str(body()[0])
    assert "mass: 2.3 kg" in text
    assert "kg m^2" in text


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RotationalInertia.from_moments_products([1.0, 2.0, 3.0]), r"shape \(6,\), got \(3,\)"),
        (lambda: RotationalInertia.from_matrix(jnp.eye(6)), r"shape \(3, 3\), got \(6, 6\)"),
        (lambda: UnitInertia.point_mass([1.0, 2.0]), r"p_FQ must have shape \(3,\)"),
        (lambda: UnitInertia.solid_cube(1.0).shift_from_center_of_mass(jnp.ones(1)), r"p_ScmQ_E must have shape"),
        (lambda: SpatialInertia.solid_cube_with_mass(1.0, 1.0).shift(jnp.ones(1)), r"p_PQ_E must have shape"),
        (lambda: UnitInertia.thin_rod(1.0, [1.0]), r"unit_vector must have shape"),
        (lambda: SpatialInertia.solid_cylinder_with_mass(1.0, 0.1, 1.0, [0.0, 0.0, 0.0]), "unit_vector has no length"),
    ],
)
def test_numbers_of_another_shape_are_refused(make, message):
    """JAX would read the last entry where there is none."""
    with pytest.raises(ValueError, match=message):
        make()


def test_offsets_may_be_lists():
    moved = SpatialInertia.solid_cube_with_mass(2.0, 0.3).shift([0.1, 0.2, 0.3])
    np.testing.assert_allclose(moved.com, [-0.1, -0.2, -0.3])
