"""Builder: misuse is refused with the remedy; every setter equals a separately built model; springs equal Drake's."""

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pydrake.multibody.tree as drake_tree
import pytest
from pydrake.math import RigidTransform as DrakeTransform
from pydrake.math import RollPitchYaw
from pydrake.multibody.plant import MultibodyPlant as DrakePlant

import mbjax
from tests.models import ALL_KINDS, JOINT_CLASSES, make_twin, random_tree, relative_error

mass_matrix = jax.jit(mbjax.mass_matrix)
bias_term = jax.jit(mbjax.bias_term)
gravity_forces = jax.jit(mbjax.gravity_generalized_forces)
forward_dynamics = jax.jit(mbjax.forward_dynamics)
force_elements = jax.jit(mbjax.force_elements_contribution)


def inertia(mass=1.3, com=(0.1, -0.05, 0.2), sides=(0.3, 0.4, 0.5)):
    com = np.asarray(com, float)
    return mbjax.SpatialInertia(mass, com, mbjax.UnitInertia.solid_box(*sides).shift_from_center_of_mass(-com))


def hinge(name, parent, child, **keywords):
    return mbjax.RevoluteJoint(name, parent, child, **{"axis": (0.2, 0.9, -0.3), "X_PF": (0.0, 0.1, 0.4)} | keywords)


def two_links() -> mbjax.MultibodyPlant:
    plant = mbjax.MultibodyPlant()
    for name in ("upper", "lower"):
        plant.add_rigid_body(name, inertia())
    plant.add_joint(hinge("shoulder", "world", "upper"))
    plant.add_joint(hinge("elbow", "upper", "lower"))
    return plant


def dynamics(model):
    """M, bias and gravity at one generic state."""
    state = mbjax.random_state(model, jax.random.key(1))
    q, v = state.q, state.v
    return {"M": mass_matrix(model, q), "bias": bias_term(model, q, v), "gravity": gravity_forces(model, q)}


def assert_same_dynamics(got, expected, tolerance=1e-13):
    """Same tree, same numbers."""
    a, b = dynamics(got), dynamics(expected)
    for name in b:
        assert relative_error(a[name], b[name]) < tolerance, name


# Misuse

MISUSES = {
    "two parents": (
        lambda p: (p.add_joint(hinge("third", "world", "lower")), p.finalize()),
        r"'lower' is the child of two joints, 'elbow' and 'third'.*constraint",
    ),
    "cycle": (
        lambda p: (p.add_rigid_body("a"), p.add_rigid_body("b"), p.add_joint(hinge("j1", "a", "b")),
                   p.add_joint(hinge("j2", "b", "a")), p.finalize()),
        r"'j2', 'j1' form a cycle|'j1', 'j2' form a cycle",
    ),
    "world as child": (lambda p: p.add_joint(hinge("j", "lower", "world")), "the world cannot be a child; swap"),
    "self joint": (lambda p: p.add_joint(hinge("j", "lower", "lower")), "same body 'lower'; a joint needs two"),
    "duplicate body": (lambda p: p.add_rigid_body("upper"), "has a body of that name already"),
    "duplicate frame": (lambda p: p.add_frame("upper", "lower"), "has a frame of that name already"),
    "duplicate joint": (lambda p: p.add_joint(hinge("elbow", "world", "lower")), "has a joint of that name already"),
    "duplicate actuator": (
        lambda p: (p.add_joint_actuator("motor", "elbow"), p.add_joint_actuator("motor", "shoulder")),
        "has an actuator of that name already",
    ),
    "duplicate instance": (lambda p: p.add_model_instance("DefaultModelInstance"), "name is taken"),
    "unknown parent": (lambda p: p.add_joint(hinge("j", "uper", "lower")), "'uper'. Did you mean 'upper'"),
    "unknown joint": (lambda p: p.add_joint_actuator("m", "elbo"), "no joint named 'elbo'. Did you mean 'elbow'"),
    "unknown instance": (lambda p: p.add_rigid_body("x", None, "robot"), "no model instance 'robot'"),
    "instance index": (lambda p: p.add_rigid_body("x", None, 7), "no model instance 7"),
    "world's instance": (lambda p: p.add_rigid_body("x", None, 0), "holds the world alone"),
    "foreign body": (lambda p: p.add_frame("f", two_links().body("upper")), "'upper' belongs to another plant"),
    "foreign joint": (lambda p: p.add_joint_actuator("m", two_links().joint("elbow")), "belongs to another plant"),
    "joint used twice": (lambda p: p.add_joint(p.joint("elbow")), "is part of a plant already"),
    "joint of another plant": (lambda p: p.add_joint(two_links().joint("elbow")), "is part of a plant already"),
    "zero axis": (lambda p: hinge("j", "world", "upper", axis=(0, 0, 0)), r"joint 'j': the axis .* has no direction"),
    "NaN axis": (lambda p: hinge("j", "world", "upper", axis=(0, np.nan, 0)), "joint 'j': axis must be finite"),
    "NaN damping": (lambda p: hinge("j", "world", "upper", damping=np.nan), "joint 'j': damping must be finite"),
    "negative damping": (lambda p: hinge("j", "world", "upper", damping=-0.1), "damping must be at least 0"),
    "two dampings": (lambda p: hinge("j", "world", "upper", damping=(1, 2)), r"damping must be 1 number\(s\)"),
    "reversed limits": (lambda p: hinge("j", "world", "upper", position_limits=(1, -1)), "got 1 and -1"),
    "NaN limits": (lambda p: hinge("j", "world", "upper", position_limits=(np.nan, 1)), "lower <= upper"),
    "zero quaternion": (
        lambda p: mbjax.QuaternionFloatingJoint("f", "world", "upper", default_positions=np.zeros(7)),
        "default quaternion is zero",
    ),
    "nameless joint": (lambda p: hinge("", "world", "upper"), "name must be a non-empty string"),
    "nameless body": (lambda p: p.add_rigid_body(""), "name must be a non-empty string"),
    "reflection as pose": (lambda p: p.add_frame("f", "upper", np.diag([1.0, 1, -1, 1])), "not a rotation matrix"),
    "pose of wrong shape": (lambda p: p.add_frame("f", "upper", np.eye(3)), r"4x4.*shape \(3, 3\)"),
    "NaN pose": (lambda p: p.add_frame("f", "upper", [0.0, np.nan, 0.0]), "must be finite"),
    "actuated ball": (
        lambda p: (p.add_rigid_body("b", inertia()), p.add_joint(mbjax.BallRpyJoint("ball", "lower", "b")),
                   p.add_joint_actuator("m", "ball")),
        "has 3 degrees of freedom",
    ),
    "negative effort": (lambda p: p.add_joint_actuator("m", "elbow", -1.0), "effort_limit must be"),
    "NaN gain": (lambda p: p.add_joint_actuator("m", "elbow", kp=np.nan), "kp must be a finite number"),
    "NaN gravity": (lambda p: p.set_gravity([0, np.nan, 0]), "three finite numbers"),
    "no force element": (lambda p: p.add_force_element("spring"), "expected an AbstractForceElement, got str"),
    "spring on nothing": (
        lambda p: (p.add_force_element(mbjax.RevoluteSpring("elbw", 0.0, 1.0)), p.finalize()),
        "RevoluteSpring: there is no joint named 'elbw'. Did you mean 'elbow'",
    ),
    "spring on the wrong joint": (
        lambda p: (p.add_force_element(mbjax.PrismaticSpring("elbow", 0.0, 1.0)), p.finalize()),
        "joint 'elbow' is revolute, it must be prismatic",
    ),
    "negative stiffness": (lambda p: mbjax.RevoluteSpring("elbow", 0.0, -1.0), "stiffness must be at least 0"),
    "pose of a body that hangs": (
        lambda p: (p.set_default_free_body_pose("lower", np.eye(4)), p.finalize()),
        "hangs on a joint and does not float",
    ),
    "negative time step": (lambda p: mbjax.MultibodyPlant(-0.1), "time_step must be a finite number"),
    "NaN time step": (lambda p: mbjax.MultibodyPlant(np.nan), "time_step must be a finite number"),
}  # fmt: skip


@pytest.mark.parametrize("misuse", MISUSES)
def test_misuse_is_refused(misuse):
    act, message = MISUSES[misuse]
    with pytest.raises(mbjax.ModelError, match=message):
        act(two_links())


AFTER_FINALIZE = {
    "add_model_instance": lambda p: p.add_model_instance("x"),
    "add_rigid_body": lambda p: p.add_rigid_body("x"),
    "add_frame": lambda p: p.add_frame("x", "upper"),
    "add_joint": lambda p: p.add_joint(hinge("x", "upper", "lower")),
    "weld_frames": lambda p: p.weld_frames("upper", "lower"),
    "add_joint_actuator": lambda p: p.add_joint_actuator("x", "elbow"),
    "add_force_element": lambda p: p.add_force_element(mbjax.RevoluteSpring("elbow", 0.0, 1.0)),
    "register_visual_geometry": lambda p: p.register_visual_geometry("upper", None),
    "register_collision_geometry": lambda p: p.register_collision_geometry("upper", None),
    "set_gravity": lambda p: p.set_gravity([0, 0, -1]),
    "set_gravity_enabled": lambda p: p.set_gravity_enabled(1, False),
    "set_default_free_body_pose": lambda p: p.set_default_free_body_pose("upper", np.eye(4)),
    "finalize": lambda p: p.finalize(),
}


@pytest.mark.parametrize("call", AFTER_FINALIZE)
def test_a_finalized_plant_takes_nothing_more(call):
    plant = two_links()
    plant.finalize()
    with pytest.raises(mbjax.ModelError, match=f"{call}: the plant is finalized.*setters"):
        AFTER_FINALIZE[call](plant)


def test_every_method_that_adds_is_in_the_list():
    methods = {m for m in dir(mbjax.MultibodyPlant) if re.match("(add|register|set|weld)_", m)}
    assert methods <= set(AFTER_FINALIZE)


def test_unknown_names_of_a_model_have_near_matches():
    model = two_links().finalize()
    for call in (model.body_index, model.frame_index):
        with pytest.raises(mbjax.ModelError, match=r"named 'uper'\. Did you mean 'upper'"):
            call("uper")
    with pytest.raises(mbjax.ModelError, match=r"no joint named 'elbo'\. Did you mean 'elbow'"):
        model.joint("elbo")
    with pytest.raises(mbjax.ModelError, match="indices run from 0 to 2"):
        model.body_index(3)


def test_bodies_without_a_joint_float():
    plant = two_links()
    plant.add_rigid_body("alone", inertia())
    X = RollPitchYaw(0.4, -0.7, 1.1).ToRotationMatrix().matrix()
    plant.set_default_free_body_pose("alone", mbjax.RigidTransform(X, np.array([1.0, -2.0, 3.0])))
    model = plant.finalize()
    assert model.joint("alone").kind == "quaternion_floating"
    pose = jax.jit(mbjax.body_poses_in_world)(model, mbjax.default_state(model).q)
    np.testing.assert_allclose(pose.rotation[-1], X, atol=1e-15)
    np.testing.assert_allclose(pose.translation[-1], [1.0, -2.0, 3.0])


# Inertias at the border (G43, G44)


def chain_of(*inertias, rotor=0.0):
    plant = mbjax.MultibodyPlant()
    parent = "world"
    for i, M in enumerate(inertias):
        plant.add_rigid_body(f"link{i}", M)
        plant.add_joint(hinge(f"joint{i}", parent, f"link{i}"))
        parent = f"link{i}"
    if rotor:
        plant.add_joint_actuator("motor", f"joint{len(inertias) - 1}", rotor_inertia=rotor)
    return plant


def test_massless_last_link_is_refused_by_name():
    with pytest.raises(mbjax.ModelError, match=r"body 'link1' has no mass.*joint 'joint1'.*rotor inertia"):
        chain_of(inertia(), None).finalize()
    massive = chain_of(inertia(), None, rotor=0.01).finalize()
    assert np.linalg.eigvalsh(mass_matrix(massive, jnp.array([0.3, 0.4]))).min() > 0.0


def test_point_mass_at_the_origin_resists_no_hinge():
    point = mbjax.SpatialInertia(2.0, np.zeros(3), mbjax.UnitInertia.zero())
    with pytest.raises(mbjax.ModelError, match="body 'link0' has no rotational inertia"):
        chain_of(point).finalize()


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


def test_tiny_last_link_stays_finite():
    model = chain_of(inertia(), inertia(1e-9)).finalize()
    q, v, tau = jnp.array([0.3, -0.7]), jnp.array([0.5, 0.2]), jnp.array([1.0, 1e-9])

    def forward(model):
        return forward_dynamics(model, q, v, tau)

    vdot = forward(model)
    M, bias = mass_matrix(model, q), bias_term(model, q, v)
    np.testing.assert_allclose(vdot, np.linalg.solve(M, tau - bias), rtol=1e-8)
    gradient = jax.jacrev(forward)(model).parameters.body_mass
    h = 1e-12
    steps = [forward(mbjax.set_mass(model, "link1", 1e-9 + s)) for s in (h, -h)]
    np.testing.assert_allclose(gradient[:, 1], (steps[0] - steps[1]) / (2 * h), rtol=1e-3)


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


# Welded bodies


def welded_plant(tool_mass=0.7):
    """Two links, and two bodies welded one to the other on the last, with a frame on the outer."""
    plant = two_links()
    pose = DrakeTransform(RollPitchYaw(0.3, -0.5, 0.9), [0.1, 0.2, -0.3]).GetAsMatrix4()
    plant.add_rigid_body("flange", inertia(0.4))
    plant.add_rigid_body("tool", inertia(tool_mass, (0.05, 0.1, -0.02), (0.1, 0.2, 0.3)))
    plant.weld_frames("lower", "flange", pose)
    plant.weld_frames("flange", "tool", pose)
    plant.add_frame("tip", "tool", pose)
    return plant


def test_welded_bodies_stay_addressable():
    model = welded_plant().finalize()
    assert model.topology.num_mobods == 3
    assert model.num_velocities == 2
    assert {"flange", "tool"} <= set(model.body_names)
    assert "tip" in model.frame_names
    assert model.joint("lower_welds_to_flange").kind == "weld"
    X = DrakeTransform(RollPitchYaw(0.3, -0.5, 0.9), [0.1, 0.2, -0.3])
    q = jnp.array([0.4, -0.8])
    got = mbjax.relative_transform(model, q, "lower", "tip")
    expected = X.multiply(X).multiply(X)
    np.testing.assert_allclose(got.rotation, expected.rotation().matrix(), atol=1e-14)
    np.testing.assert_allclose(got.translation, expected.translation(), atol=1e-14)
    assert float(mbjax.mass(model, "tool")) == pytest.approx(0.7)
    assert np.abs(mbjax.body_spatial_velocities_in_world(model, q, jnp.array([0.3, 0.5]))[-1]).min() > 0.0


def test_welded_bodies_stay_differentiable():
    model = welded_plant().finalize()
    q = jnp.array([0.4, -0.8])
    mixed = [mass_matrix(welded_plant(m).finalize(), q) for m in (0.8, 0.6)]
    dM = jax.jacfwd(lambda m: mass_matrix(mbjax.set_mass(model, "tool", m), q))(0.7)
    assert relative_error(dM, (mixed[0] - mixed[1]) / 0.2) < 1e-12  # M is linear in the mass

    def first_entry(model):
        return mass_matrix(model, q)[0, 0]

    gradient = eqx.filter_jit(jax.grad(first_entry))(model)
    weld = model.layout.offset_frames.index(model.frame_index("lower_welds_to_flange_parent"))
    X, h = mbjax.frame_pose(model, "lower_welds_to_flange_parent"), 1e-6
    for axis in range(3):
        ends = [
            first_entry(
                mbjax.set_frame_pose(
                    model,
                    "lower_welds_to_flange_parent",
                    mbjax.RigidTransform(X.rotation, X.translation.at[axis].add(s)),
                )
            )
            for s in (h, -h)
        ]
        np.testing.assert_allclose(
            gradient.parameters.frame_translation[weld, axis], (ends[0] - ends[1]) / (2 * h), rtol=1e-7
        )


# Model instances


def two_arms() -> mbjax.MultibodyPlant:
    plant = mbjax.MultibodyPlant()
    for side in ("left", "right"):
        instance = plant.add_model_instance(side)
        body = plant.add_rigid_body("arm", inertia(), instance)
        plant.add_joint(hinge("shoulder", "world", body))
    return plant


def test_equal_names_in_two_instances():
    model = two_arms().finalize()
    assert model.position_names() == ("left_shoulder_q", "right_shoulder_q")
    assert model.joint("right::shoulder").q == slice(1, 2)
    assert model.body_index("left::arm") == 1
    with pytest.raises(mbjax.ModelError, match="say which: 'left::arm', 'right::arm'"):
        model.body_index("arm")
    q = jnp.array([0.3, 0.9])
    assert float(mbjax.total_mass(model, ["right"])) == pytest.approx(1.3)
    left, right = (mbjax.center_of_mass_position_in_world(model, q, [i]) for i in ("left", "right"))
    assert not np.allclose(left, right)
    np.testing.assert_allclose(mbjax.center_of_mass_position_in_world(model, q), (left + right) / 2, atol=1e-15)


def test_gravity_off_for_one_instance_as_in_drake():
    plant = two_arms()
    plant.set_gravity_enabled("right", False)
    plant.set_gravity([1.0, -2.0, -7.0])
    model = plant.finalize()
    theirs = DrakePlant(0.0)
    axis = np.array([0.2, 0.9, -0.3])
    for side in ("left", "right"):
        instance = theirs.AddModelInstance(side)
        G = drake_tree.UnitInertia(*np.asarray(inertia().unit_inertia.moments_products()))
        body = theirs.AddRigidBody("arm", instance, drake_tree.SpatialInertia(1.3, [0.1, -0.05, 0.2], G))
        F = theirs.AddFrame(
            drake_tree.FixedOffsetFrame(f"F{side}", theirs.world_frame(), DrakeTransform([0.0, 0.1, 0.4]), instance)
        )
        theirs.AddJoint(drake_tree.RevoluteJoint("shoulder", F, body.body_frame(), axis / np.linalg.norm(axis)))
    theirs.mutable_gravity_field().set_gravity_vector([1.0, -2.0, -7.0])
    theirs.set_gravity_enabled(theirs.GetModelInstanceByName("right"), False)
    theirs.Finalize()
    twin = make_twin(model, theirs)
    q = np.array([0.3, 0.9])
    context = twin.context(q, np.zeros(2))
    expected = theirs.CalcGravityGeneralizedForces(context)[np.argsort(twin.to_drake_v)]
    got = gravity_forces(model, q)
    assert got[1] == 0.0
    assert got[0] != 0.0
    assert relative_error(got, expected) < 1e-13
    forces = force_elements(model, q, jnp.zeros(2))
    np.testing.assert_array_equal(forces.body[2], 0.0)
    assert relative_error(mbjax.potential_energy(model, q), theirs.CalcPotentialEnergy(context)) < 1e-13


# Sizes (G49)


def everything(model):
    """Runs the main functions; returns what must be finite."""
    x = mbjax.random_state(model, jax.random.key(0))
    zero = jnp.zeros(model.num_velocities)
    forces = force_elements(model, x.q, x.v)
    return {
        "X": mbjax.body_poses_in_world(model, x.q).translation,
        "V": mbjax.body_spatial_velocities_in_world(model, x.q, x.v),
        "M": mass_matrix(model, x.q),
        "tau": mbjax.inverse_dynamics(model, x.q, x.v, zero, forces),
        "vdot": mbjax.forward_dynamics(model, x.q, x.v, zero, forces),
        "q": mbjax.integrate_configuration(model, x.q, x.v),
        "dv": mbjax.difference_configuration(model, x.q, x.q),
        "N": mbjax.velocity_to_qdot_matrix(model, x.q),
        "J": mbjax.jacobian_spatial_velocity(model, x.q, model.num_frames - 1, jnp.ones(3), 0, 0, "qdot"),
        "com": mbjax.center_of_mass_position_in_world(model, x.q),
        "energy": mbjax.kinetic_energy(model, x.q, x.v) + mbjax.potential_energy(model, x.q),
    }  # fmt: skip


def sized(what: str) -> mbjax.MultibodyModel:
    plant = mbjax.MultibodyPlant()
    if what == "all welded":
        plant.add_rigid_body("a", inertia())
        plant.add_rigid_body("b", inertia())
        plant.weld_frames("world", "a", [0.1, 0.2, 0.3])
        plant.weld_frames("a", "b", [0.1, 0.2, 0.3])
    if what == "single body":
        plant.add_rigid_body("a", inertia())
    if what in ("chain of 50", "50 branches"):
        for i in range(50):
            plant.add_rigid_body(f"b{i}", inertia())
            parent = "world" if i == 0 or what == "50 branches" else f"b{i - 1}"
            plant.add_joint(hinge(f"j{i}", parent, f"b{i}"))
    return plant.finalize()


@pytest.mark.parametrize("what", ["world only", "all welded", "single body", "chain of 50", "50 branches"])
def test_any_size_works(what):
    model = sized(what)
    results = eqx.filter_jit(everything)(model)
    assert all(np.all(np.isfinite(x)) for x in results.values())
    assert results["M"].shape == (model.num_velocities,) * 2
    assert str(model)
    if what == "all welded":
        np.testing.assert_allclose(results["X"][2], [0.2, 0.4, 0.6])
        assert float(mbjax.total_mass(model)) == pytest.approx(2.6)
        np.testing.assert_allclose(results["com"], [0.25, 0.25, 0.65])
    if what == "50 branches":
        np.testing.assert_array_equal(results["M"], np.diag(np.diag(results["M"])))
        one = mass_matrix(chain_of(inertia()).finalize(), jnp.zeros(1))
        np.testing.assert_allclose(np.diag(results["M"]), one[0, 0], rtol=1e-13)
    if what == "chain of 50":
        residual = results["M"] @ results["vdot"] + results["tau"]
        assert np.abs(residual).max() < 1e-9 * np.abs(results["tau"]).max()


# Names


@pytest.mark.parametrize("kind", [k for k in ALL_KINDS if k != "weld"])
def test_coordinate_names_equal_drakes(kind):
    ours, theirs = mbjax.MultibodyPlant(), DrakePlant(0.0)
    our_class, their_class = JOINT_CLASSES[kind]
    instance = ours.add_model_instance("robot")
    body = ours.add_rigid_body("link", inertia(), instance)
    pitch = {"screw_pitch": 0.7} if our_class.has_pitch else {}
    ours.add_joint(our_class("joint", "world", body, **pitch))
    M = drake_tree.SpatialInertia.SolidSphereWithMass(1.0, 0.2)
    link = theirs.AddRigidBody("link", theirs.AddModelInstance("robot"), M)
    extra = {"revolute": ([0, 0, 1],), "prismatic": ([0, 0, 1],), "screw": ([0, 0, 1], 0.7, 0.0)}.get(kind, ())
    extra = ([0, 0, 0],) if kind == "planar" else extra
    theirs.AddJoint(their_class("joint", theirs.world_frame(), link.body_frame(), *extra))
    theirs.Finalize()
    model = ours.finalize()
    assert list(model.position_names()) == theirs.GetPositionNames()
    assert list(model.velocity_names()) == theirs.GetVelocityNames()
    assert list(model.state_names()) == theirs.GetStateNames()
    for prefix in (True, False):
        got = model.position_names(add_model_instance_prefix=prefix)
        assert list(got) == theirs.GetPositionNames(add_model_instance_prefix=prefix)


# Setters


def arm(
    upper=None, X_PF=(0.0, 0.1, 0.4), axis=(0.2, 0.9, -0.3), gravity=(0, 0, -9.81), rotor=0.02, gear=5.0, damping=0.0
):
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("upper", inertia() if upper is None else upper)
    plant.add_rigid_body("lower", inertia())
    plant.add_joint(hinge("shoulder", "world", "upper", damping=damping))
    plant.add_joint(hinge("elbow", "upper", "lower", X_PF=X_PF, axis=axis))
    plant.add_joint_actuator("motor", "elbow", rotor_inertia=rotor, gear_ratio=gear)
    plant.set_gravity(gravity)
    return plant.finalize()


TURNED = DrakeTransform(RollPitchYaw(0.3, -0.5, 0.9), [0.1, 0.2, -0.3]).GetAsMatrix4()
SETTERS = {
    "mass": (
        lambda m: mbjax.set_mass(m, "upper", 2.1),
        lambda: arm(mbjax.SpatialInertia(2.1, inertia().com, inertia().unit_inertia)),
    ),
    "centre of mass": (
        lambda m: mbjax.set_center_of_mass_in_body_frame(m, "upper", (0.05, 0.02, 0.1)),
        lambda: arm(mbjax.SpatialInertia(1.3, (0.05, 0.02, 0.1), inertia().unit_inertia)),
    ),
    "centre of mass, central inertia kept": (
        lambda m: mbjax.set_center_of_mass_in_body_frame_and_preserve_central_inertia(m, "upper", (0.4, -0.6, 0.5)),
        lambda: arm(inertia(com=(0.4, -0.6, 0.5))),
    ),
    "inertia": (
        lambda m: mbjax.set_spatial_inertia_in_body_frame(m, "upper", inertia(3.0, (0.3, 0.2, 0.1), (0.7, 0.2, 0.4))),
        lambda: arm(inertia(3.0, (0.3, 0.2, 0.1), (0.7, 0.2, 0.4))),
    ),
    "frame pose": (
        lambda m: mbjax.set_frame_pose(m, "elbow_parent", mbjax.RigidTransform(TURNED[:3, :3], TURNED[:3, 3])),
        lambda: arm(X_PF=TURNED),
    ),
    "axis": (
        lambda m: mbjax.set_joint_axis(m, "elbow", np.array([3.0, 0.5, 1.0]) / np.linalg.norm([3.0, 0.5, 1.0])),
        lambda: arm(axis=(3.0, 0.5, 1.0)),
    ),
    "gravity": (lambda m: mbjax.set_gravity(m, (1.0, 2.0, 3.0)), lambda: arm(gravity=(1.0, 2.0, 3.0))),
    "rotor inertia": (lambda m: mbjax.set_rotor_inertia(m, "motor", 0.3), lambda: arm(rotor=0.3)),
    "gear ratio": (lambda m: mbjax.set_gear_ratio(m, "motor", 9.0), lambda: arm(gear=9.0)),
    "damping": (lambda m: mbjax.set_joint_damping(m, "shoulder", 0.8), lambda: arm(damping=0.8)),
}  # fmt: skip


@pytest.mark.parametrize("what", SETTERS)
def test_setter_equals_a_model_built_so(what):
    setter, build = SETTERS[what]
    original = arm()
    leaves = jax.tree.leaves(original)
    changed, built = setter(original), build()
    assert all(a is b for a, b in zip(leaves, jax.tree.leaves(original), strict=True))
    assert jax.tree.structure(changed) == jax.tree.structure(original)
    for a, b in zip(jax.tree.leaves(changed), jax.tree.leaves(built), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-15)
    assert any(np.any(np.asarray(a) != np.asarray(b)) for a, b in zip(leaves, jax.tree.leaves(changed), strict=True))
    assert_same_dynamics(changed, built)


def test_the_length_of_an_axis_does_not_matter():
    assert_same_dynamics(mbjax.set_joint_axis(arm(), "elbow", (3.0, 0.5, 1.0)), arm(axis=(3.0, 0.5, 1.0)))


def test_other_setters_write_their_numbers():
    model = arm()
    gains = mbjax.set_controller_gains(model, 10.0, 1.0, "motor").parameters
    assert (float(gains.proportional_gain[0]), float(gains.derivative_gain[0])) == (10.0, 1.0)
    assert float(mbjax.set_effort_limit(model, "motor", 7.0).parameters.effort_limit[0]) == 7.0
    assert float(mbjax.set_joint_friction(model, "elbow", 0.4).parameters.joint_friction[1]) == 0.4
    assert float(mbjax.set_default_positions(model, "elbow", 0.3).parameters.default_positions[1]) == 0.3
    with pytest.raises(mbjax.ModelError, match="continuous"):
        mbjax.set_time_step(model, 0.1)
    with pytest.raises(mbjax.ModelError, match="world has no mass"):
        mbjax.set_mass(model, "world", 1.0)
    with pytest.raises(mbjax.ModelError, match="body's own frame and cannot be moved"):
        mbjax.set_frame_pose(model, "upper", mbjax.RigidTransform(np.eye(3), np.zeros(3)))
    with pytest.raises(mbjax.ModelError, match="has no axis"):
        mbjax.set_joint_axis(random_tree(0, ALL_KINDS).model, "joint3", (1, 0, 0))


@pytest.mark.parametrize("keeps_central_inertia", [False, True])
def test_centre_of_mass_setters_do_what_drakes_do(keeps_central_inertia):
    twin = random_tree(3, ("revolute", "universal"))
    context, new = twin.plant.CreateDefaultContext(), np.array([0.11, -0.07, 0.05])
    body = twin.plant.GetBodyByName("body1")
    old = body.CalcSpatialInertiaInBodyFrame(context)
    if keeps_central_inertia:  # not bound in Python: by two shifts of Drake's spatial inertia
        expected = old.Shift(old.get_com()).Shift(-new).CopyToFullMatrix6()
        model = mbjax.set_center_of_mass_in_body_frame_and_preserve_central_inertia(twin.model, "body1", new)
    else:
        body.SetCenterOfMassInBodyFrame(context, new)
        expected = body.CalcSpatialInertiaInBodyFrame(context).CopyToFullMatrix6()
        model = mbjax.set_center_of_mass_in_body_frame(twin.model, "body1", new)
    got = mbjax.spatial_inertia_in_body_frame(model, "body1").copy_to_full_matrix6()
    assert relative_error(got, expected) < 1e-13


def test_rotor_inertia_as_in_drake():
    plant = DrakePlant(0.0)
    body = plant.AddRigidBody("link0", drake_tree.SpatialInertia.SolidSphereWithMass(1.3, 0.3))
    joint = plant.AddJoint(drake_tree.RevoluteJoint("joint0", plant.world_frame(), body.body_frame(), [0, 0, 1]))
    actuator = plant.AddJointActuator("motor", joint)
    actuator.set_default_rotor_inertia(0.02)
    actuator.set_default_gear_ratio(5.0)
    plant.Finalize()
    ours = mbjax.MultibodyPlant()
    ours.add_rigid_body("link0", mbjax.SpatialInertia(1.3, np.zeros(3), mbjax.UnitInertia.solid_sphere(0.3)))
    ours.add_joint(mbjax.RevoluteJoint("joint0", "world", "link0", axis=(0, 0, 1)))
    ours.add_joint_actuator("motor", "joint0", rotor_inertia=0.02, gear_ratio=5.0)
    model = ours.finalize()
    context = plant.CreateDefaultContext()
    plant.SetVelocities(context, [0.7])
    v = jnp.array([0.7])
    assert relative_error(mass_matrix(model, jnp.zeros(1)), plant.CalcMassMatrix(context)) < 1e-14
    assert relative_error(mbjax.kinetic_energy(model, jnp.zeros(1), v), plant.CalcKineticEnergy(context)) < 1e-14
    tau = plant.CalcInverseDynamics(context, [2.0], drake_tree.MultibodyForces(plant))
    assert relative_error(mbjax.inverse_dynamics(model, jnp.zeros(1), v, jnp.array([2.0])), tau) < 1e-14


# Springs


def test_springs_equal_drakes():
    """Forces, energy, and through dynamics, for the three springs together on one tree."""
    kinds = ("revolute", "prismatic", "universal")
    axis, rng = np.array([0.6, 0.0, 0.8]), np.random.default_rng(5)
    ours, theirs = mbjax.MultibodyPlant(), DrakePlant(0.0)
    parent = "world"
    for i, kind in enumerate(kinds):
        p = rng.normal(size=3)
        G = np.asarray(inertia().unit_inertia.moments_products())
        ours.add_rigid_body(f"b{i}", inertia())
        body = theirs.AddRigidBody(
            f"b{i}", drake_tree.SpatialInertia(1.3, [0.1, -0.05, 0.2], drake_tree.UnitInertia(*G))
        )
        our_class, their_class = JOINT_CLASSES[kind]
        F = theirs.AddFrame(drake_tree.FixedOffsetFrame(f"F{i}", theirs.GetFrameByName(parent), DrakeTransform(p)))
        with_axis = {"axis": axis} if our_class.has_axis else {}
        ours.add_joint(our_class(f"j{i}", parent, f"b{i}", X_PF=p, **with_axis))
        theirs.AddJoint(their_class(f"j{i}", F, body.body_frame(), *with_axis.values()))
        parent = f"b{i}"
    P, Q = np.array([0.1, 0.3, -0.2]), np.array([-0.2, 0.15, 0.4])
    ours.add_force_element(mbjax.RevoluteSpring("j0", 0.3, 11.0))
    ours.add_force_element(mbjax.PrismaticSpring("j1", -0.2, 70.0))
    ours.add_force_element(mbjax.LinearSpringDamper("b0", P, "b2", Q, 0.9, 40.0, 3.0))
    ours.add_force_element(mbjax.LinearSpringDamper("world", P, "b1", Q, 0.5, 20.0, 2.0))
    body = theirs.GetBodyByName
    theirs.AddForceElement(drake_tree.RevoluteSpring(theirs.GetJointByName("j0"), 0.3, 11.0))
    theirs.AddForceElement(drake_tree.PrismaticSpring(theirs.GetJointByName("j1"), -0.2, 70.0))
    theirs.AddForceElement(drake_tree.LinearSpringDamper(body("b0"), P, body("b2"), Q, 0.9, 40.0, 3.0))
    theirs.AddForceElement(drake_tree.LinearSpringDamper(body("world"), P, body("b1"), Q, 0.5, 20.0, 2.0))
    theirs.Finalize()
    twin = make_twin(ours.finalize(), theirs)
    model, plant = twin.model, twin.plant
    for seed in range(3):
        state = mbjax.random_state(model, jax.random.key(seed))
        context = twin.context(state.q, state.v)
        order = np.argsort(twin.to_drake_v)
        expected = drake_tree.MultibodyForces(plant)
        plant.CalcForceElementsContribution(context, expected)
        got = force_elements(model, state.q, state.v)
        assert relative_error(got.generalized, expected.generalized_forces()[order]) < 1e-12
        names = ("b0", "b1", "b2")
        bodies = np.stack([body(n).GetForceInWorld(context, expected).get_coeffs() for n in names])
        assert relative_error(got.body[1:], bodies) < 1e-12
        assert relative_error(mbjax.potential_energy(model, state.q), plant.CalcPotentialEnergy(context)) < 1e-12
        vdot = mbjax.time_derivatives(model, state)[1]
        derivatives = plant.EvalTimeDerivatives(context).CopyToVector()[model.num_positions :][: model.num_velocities]
        assert relative_error(vdot, derivatives[order]) < 1e-10
    got = force_elements(model, state.q, state.v)
    power = got.generalized @ state.v + jnp.sum(
        got.body * mbjax.body_spatial_velocities_in_world(model, state.q, state.v)
    )
    theirs_power = plant.CalcConservativePower(context) + plant.CalcNonConservativePower(context)
    assert relative_error(power, theirs_power) < 1e-12


def test_spring_between_coincident_points_is_finite():
    """G40: no direction, so no force; and no NaN in the gradient."""
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("b", inertia())
    plant.add_joint(mbjax.PrismaticJoint("slide", "world", "b", axis=(1, 0, 0)))
    plant.add_force_element(mbjax.LinearSpringDamper("world", np.zeros(3), "b", np.zeros(3), 0.0, 30.0, 1.0))
    model = plant.finalize()

    def force(q, v):
        forces = force_elements(model, q, v)
        return mbjax.inverse_dynamics(model, q, v, jnp.zeros(1), forces)

    q, v = jnp.zeros(1), jnp.array([0.4])
    assert np.all(np.isfinite(force(q, v)))
    assert np.all(np.isfinite(jax.jacrev(force)(q, v)))
    assert np.all(np.isfinite(jax.jacfwd(force)(q, v)))
    np.testing.assert_allclose(force(q + 0.1, 0 * v), 3.0, rtol=1e-12)


def test_new_numbers_do_not_recompile():
    model = arm()
    count = mass_matrix._cache_size()
    q = jnp.array([0.1, 0.2])
    mass_matrix(model, q)
    first = mass_matrix._cache_size()
    for changed in (mbjax.set_mass(model, "upper", 5.0), mbjax.set_joint_axis(model, "elbow", (1, 2, 3))):
        mass_matrix(changed, q)
    assert mass_matrix._cache_size() == first <= count + 1
