"""Massless, tiny and non-physical bodies (G43, G44): refused by name, or right."""

import jax
import jax.numpy as jnp
import numpy as np
import pydrake.multibody.tree as drake_tree
import pytest
from pydrake.math import RigidTransform as DrakeTransform
from pydrake.multibody.plant import MultibodyPlant as DrakePlant

import mbjax
from mbjax.spatial import rpy_to_matrix
from tests.model.plants import bias_term, chain_of, force_elements, forward_dynamics, inertia, mass_matrix
from tests.models import make_twin, relative_error


def test_massless_last_link_is_refused_by_name():
    with pytest.raises(mbjax.ModelError, match=r"body 'link1' has no mass.*joint 'joint1'.*rotor inertia"):
        chain_of(inertia(), None).finalize()
    massive = chain_of(inertia(), None, rotor=0.01).finalize()
    assert np.linalg.eigvalsh(mass_matrix(massive, jnp.array([0.3, 0.4]))).min() > 0.0


def test_point_mass_at_the_origin_resists_no_hinge():
    point = mbjax.SpatialInertia(2.0, np.zeros(3), mbjax.UnitInertia.zero())
    with pytest.raises(mbjax.ModelError, match="body 'link0' has no rotational inertia"):
        chain_of(point).finalize()


def test_a_rod_resists_no_hinge_along_itself():
    """The moment about the axis of all that is welded together counts, not the largest one."""
    direction = np.array([0.3, -0.5, 0.8]) / np.linalg.norm([0.3, -0.5, 0.8])
    rod = mbjax.SpatialInertia.thin_rod_with_mass(1.3, 0.7, direction)
    offset = mbjax.RigidTransform(rpy_to_matrix(jnp.array([0.3, -0.2, 0.9])), np.array([0.1, 0.2, 0.3]))

    def model(axis, p=(0.0, 0.0, 0.0), welded=None, armature=0.0):
        plant = mbjax.MultibodyPlant()
        plant.add_rigid_body("rod", rod)
        to_hinge = mbjax.RigidTransform(offset.rotation, np.array(p))
        axis_M = np.asarray(offset.rotation).T @ axis
        plant.add_joint(mbjax.RevoluteJoint("j", "world", "rod", axis=axis_M, X_BM=to_hinge, armature=armature))
        if welded is not None:
            plant.add_rigid_body("tool", welded)
            plant.weld_frames("rod", "tool", offset)
        return plant.finalize()

    on_axis = np.asarray(offset.rotation).T @ (0.4 * direction - np.asarray(offset.translation))
    for tool in (None, mbjax.SpatialInertia.point_mass(2.0, on_axis)):
        with pytest.raises(mbjax.ModelError, match=r"'rod' has no inertia about the joint's axis.*rotor inertia"):
            model(direction, 0.2 * direction, tool)
    beside_axis = mbjax.SpatialInertia.point_mass(1e-6, on_axis + np.array([1e-3, 0.0, 0.0]))
    models = [
        model(direction + np.array([0.0, 1e-3, 0.0])),
        model(direction, p=(1e-4, 0.0, 0.0)),
        model(direction, armature=1e-9),
        model(direction, welded=beside_axis),
    ]
    with jax.enable_x64(False):  # a needle resists, also where its moment is less than rounding of the others
        plant = mbjax.MultibodyPlant()
        plant.add_rigid_body("rod", mbjax.SpatialInertia.solid_cylinder_with_mass(1.0, 1e-4, 1.0, [0.0, 0.0, 1.0]))
        plant.add_joint(mbjax.RevoluteJoint("j", "world", "rod", axis=[0.0, 0.0, 1.0]))
        models.append(plant.finalize())
    assert all(mass_matrix(each, jnp.zeros(1))[0, 0] > 0.0 for each in models)


@pytest.mark.whole_run("massless and tiny links among the pitfalls")
@pytest.mark.parametrize("mass", [0.0, 1e-9])
def test_massless_middle_link_works_as_in_drake(mass):
    middle = inertia(mass) if mass else None
    model = chain_of(inertia(), middle, inertia()).finalize()
    plant = DrakePlant(0.0)
    parent = plant.world_body()
    for i, m in enumerate((1.3, mass, 1.3)):
        G = np.asarray(inertia().unit_inertia.moments_products())
        M = drake_tree.SpatialInertia(m, [0.1, -0.05, 0.2], drake_tree.UnitInertia(*G))
        body = plant.AddRigidBody(f"link{i}", M if m else drake_tree.SpatialInertia.Zero())
        axis = np.array([0.2, 0.9, -0.3])
        F = plant.AddFrame(drake_tree.FixedOffsetFrame(f"F{i}", parent.body_frame(), DrakeTransform([0.0, 0.1, 0.4])))
        plant.AddJoint(drake_tree.RevoluteJoint(f"joint{i}", F, body.body_frame(), axis / np.linalg.norm(axis)))
        parent = body
    plant.Finalize()
    twin = make_twin(model, plant)
    q, v, tau = np.array([0.3, -0.7, 1.1]), np.array([0.5, 0.2, -0.9]), np.array([1.0, -2.0, 0.5])
    context = twin.context(q, v)
    plant.get_applied_generalized_force_input_port().FixValue(context, tau)
    expected = plant.EvalTimeDerivatives(context).CopyToVector()[3:]
    forces = force_elements(model, q, v)
    assert relative_error(mass_matrix(model, q), plant.CalcMassMatrix(context)) < 1e-12
    assert relative_error(forward_dynamics(model, q, v, tau, forces), expected) < 1e-10


@pytest.mark.whole_run("massless and tiny links among the pitfalls")
def test_tiny_last_link_stays_finite():
    model = chain_of(inertia(), inertia(1e-9)).finalize()
    q, v, tau = jnp.array([0.3, -0.7]), jnp.array([0.5, 0.2]), jnp.array([1.0, 1e-9])

    def forward(model):
        return forward_dynamics(model, q, v, tau)

    vdot = forward(model)
    M, bias = mass_matrix(model, q), bias_term(model, q, v)
    np.testing.assert_allclose(vdot, np.linalg.solve(M, tau - bias), rtol=1e-8)
    gradient = jax.jit(jax.jacrev(lambda mass: forward(mbjax.set_mass(model, "link1", mass))))(1e-9)
    h = 1e-12
    steps = [forward(mbjax.set_mass(model, "link1", 1e-9 + s)) for s in (h, -h)]
    np.testing.assert_allclose(gradient, (steps[0] - steps[1]) / (2 * h), rtol=1e-3)


def test_non_physical_inertia():
    G = mbjax.UnitInertia.from_moments_products(jnp.array([0.1, 0.1, 0.9, 0.0, 0.0, 0.0]))
    bad = mbjax.SpatialInertia(1.0, np.zeros(3), G, skip_validity_check=True)
    plant = mbjax.MultibodyPlant()
    with pytest.raises(mbjax.ModelError, match=r"body 'b': the spatial inertia is not physical.*triangle"):
        plant.add_rigid_body("b", bad)
    with pytest.warns(mbjax.ModelWarning, match="body 'b'.*not physical"):
        plant.add_rigid_body("b", bad, on_invalid_inertia="warn")
    assert any("b" in entry.element for entry in plant.finalize().report())
    for wrong in (mbjax.SpatialInertia.nan(), mbjax.SpatialInertia(-1.0, np.zeros(3), G, skip_validity_check=True)):
        with pytest.raises(mbjax.ModelError, match="not physical"):
            mbjax.MultibodyPlant().add_rigid_body("b", wrong, on_invalid_inertia="warn")
