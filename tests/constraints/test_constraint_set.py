"""Building and binding sets; batches, switches and new values; what is refused."""

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import ConstraintSet, ModelError
from mbjax.model import with_names
from tests.execution.test_worlds import WORLDS
from tests.gradients.checks import check_gradients, compiled
from tests.models import relative_error

from .mechanisms import compiled_terms, constraint_terms, four_bar, quadruped, spring_leg, zoo


def test_rows_are_numbered_in_the_order_of_the_set() -> None:
    cset = zoo().cset
    assert cset.num_rows == sum(c.num_rows for c in cset.constraints) == len(cset.row_names)
    assert cset.rows_of("hinge") == slice(2, 7)
    assert cset.row_names[2:8] == ("hinge[0]", "hinge[1]", "hinge[2]", "hinge[3]", "hinge[4]", "contact[0]")
    assert cset.row_names[cset.rows_of("coupler").start] == "coupler"
    assert cset.names[-2] == "custom_14"
    forces = mbjax.constraint_forces_by_name(cset, np.arange(2.0 * cset.num_rows).reshape(2, -1))
    assert list(forces) == list(cset.names)
    np.testing.assert_array_equal(forces["hinge"][1], cset.num_rows + np.arange(2.0, 7.0))


def test_bodies_and_joints_by_name_index_or_element() -> None:
    model = spring_leg().model
    arguments = (np.zeros(3), np.array([0.1, 0.2, 0.3]))
    by_name = ConstraintSet().add_ball_constraint("toe", arguments[0], "DefaultModelInstance::heel", arguments[1])
    by_index = ConstraintSet().add_ball_constraint(
        model.body_index("toe"), arguments[0], model.body("heel"), arguments[1]
    )
    a, b = (x.bind(model).constraints[0] for x in (by_name, by_index))
    assert (a.body_A, a.body_B) == (b.body_A, b.body_B) == (model.body_index("toe"), model.body_index("heel"))
    coupler = ConstraintSet().add_coupler_constraint(model.joint("ankle"), "toe_pitch").bind(model).constraints[0]
    assert (coupler.joint0, coupler.joint1) == (model.joint_index("ankle"), model.joint_index("toe_pitch"))


def test_a_set_is_cast_to_the_models_type() -> None:
    single = mbjax.astype(four_bar().model, jnp.float32)
    cset = ConstraintSet().add_coupler_constraint("crank_pivot", "rocker_pivot", 2).bind(single)
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(cset))
    assert mbjax.constraints_position_error(single, cset, np.zeros(3)).dtype == jnp.float32


def test_a_ball_finds_its_other_point_in_the_default_configuration() -> None:
    model = zoo().model
    cset = ConstraintSet().add_ball_constraint(6, [0.1, 0.2, 0.3], 2).bind(model)
    error = compiled(mbjax.constraints_position_error)(model, cset, mbjax.default_positions(model))
    assert np.abs(error).max() < 1e-14


def test_batches_of_states_and_of_constraints() -> None:
    """Each world as it is alone, whether they share the set or each has its own."""
    mechanism = spring_leg()
    model, cset = mechanism.model, mechanism.cset
    keys = jax.random.split(jax.random.key(0), WORLDS)
    q = mechanism.q + 0.1 * jax.vmap(lambda k: jax.random.normal(k, mechanism.q.shape))(keys)
    v = jax.vmap(lambda k: jax.random.normal(k, mechanism.v.shape))(keys)
    scale = jnp.linspace(1.0, 2.0, WORLDS)
    own = jax.tree.map(lambda leaf: jnp.multiply.outer(scale, leaf), cset)
    shared = compiled(jax.vmap(constraint_terms, (None, None, 0, 0)))(model, cset, q, v)
    apart = compiled(jax.vmap(constraint_terms, (None, 0, 0, None)))(model, own, q, v[0])
    for i in (0, 5, WORLDS - 1):
        for got, expected in zip(shared, compiled_terms(model, cset, q[i], v[i]), strict=True):
            assert relative_error(got[i], expected) < 1e-12
        alone = jax.tree.map(lambda leaf, i=i: leaf[i], own)
        for got, expected in zip(apart, compiled_terms(model, alone, q[i], v[0]), strict=True):
            assert relative_error(got[i], expected) < 1e-12


@pytest.mark.whole_run("batches of a leg's constraints, above, and every kind alone beside Drake")
def test_batches_of_every_kind() -> None:
    model, cset, q, v = vars(zoo()).values()
    together = compiled(jax.vmap(constraint_terms, (None, None, 0, 0)))(
        model, cset, jnp.stack([q, q + 0.1]), jnp.stack([v, 2.0 * v])
    )
    for got, expected in zip(together, compiled_terms(model, cset, q, v), strict=True):
        assert relative_error(got[0], expected) < 1e-12


def test_new_values_and_switches_need_no_new_program() -> None:
    mechanism, count = quadruped(), 0

    def counted(model, cset, q, v):
        nonlocal count
        count += 1
        return constraint_terms(model, cset, q, v)

    run, cset = compiled(counted), mechanism.cset
    first = run(mechanism.model, cset, mechanism.q, mechanism.v)
    np.testing.assert_array_equal(first.active, 1.0)
    moved = eqx.tree_at(lambda c: c.constraints[0].p_BP, cset, jnp.array([0.0, 0.0, -0.02]))
    assert not np.allclose(run(mechanism.model, moved, mechanism.q, mechanism.v).G, first.G)
    lifted = run(mechanism.model, cset.with_active({"FL_foot": False}), mechanism.q, mechanism.v)
    np.testing.assert_array_equal(lifted.active, np.repeat([1.0, 0.0, 1.0, 1.0], 3))
    np.testing.assert_array_equal(lifted.G, first.G)
    bounced = cset.with_v_plus({"RL_foot": [0.1, 0.2, 0.3], "FR_foot": 0.0})
    np.testing.assert_array_equal(run(mechanism.model, bounced, mechanism.q, mechanism.v).v_plus[9:], [0.1, 0.2, 0.3])
    run(mechanism.model, ConstraintSet(map(unbound, cset.constraints)).bind(mechanism.model), mechanism.q, mechanism.v)
    assert count == 1


def test_numbers_of_a_bound_set_are_changed_by_name() -> None:
    """Times of stabilization and the records' own numbers, in the error and its correction, with one program."""
    mechanism, count = four_bar(), 0

    def terms(cset):
        nonlocal count
        count += 1
        return constraint_terms(mechanism.model, cset, mechanism.q + 0.01, mechanism.v)

    run, cset = compiled(terms), mechanism.cset
    first = run(cset)
    rate, error = np.asarray(first.velocity_error), np.asarray(first.error)
    for time in (0.5, 0.02):
        slower = run(cset.with_stabilization_time({"loop": time}))
        np.testing.assert_allclose(slower.stabilization, -2.0 / time * rate - error / time**2, rtol=1e-12)
    np.testing.assert_array_equal(run(cset.with_stabilization_time({"loop": None})).stabilization, 0.0)
    moved = cset.with_numbers("loop", p_AP=[0.8, 0.0, 0.0], p_BS=jnp.array([0.7, 0.01, 0.0]))
    np.testing.assert_array_equal(moved.constraint("loop").p_AP, [0.8, 0.0, 0.0])
    assert np.abs(run(moved).error - error).max() > 0.05
    assert count == 1

    def squared(time):
        return jnp.sum(terms(cset.with_stabilization_time({"loop": time})).stabilization ** 2)

    check_gradients(lambda time: squared(time[0]), jnp.array([0.3]))
    times = jnp.array([0.1, 0.4])
    np.testing.assert_allclose(jax.vmap(squared)(times), [squared(t) for t in times], rtol=1e-12)


def test_numbers_that_a_bound_set_refuses() -> None:
    cset = four_bar().cset
    for time in (0.0, -1.0, np.nan, [0.1, 0.2]):
        with pytest.raises(ModelError, match=r"'loop' takes a number of seconds > 0, or None"):
            cset.with_stabilization_time({"loop": time})
    with pytest.raises(ModelError, match=r"'loop' has no number 'p_AQ'; it has: .*p_AP"):
        cset.with_numbers("loop", p_AQ=[0.0, 0.0, 0.0])
    with pytest.raises(ModelError, match=r"'p_AP' has shape \(3,\), got \(2,\)"):
        cset.with_numbers("loop", p_AP=[0.0, 0.0])
    with pytest.raises(ModelError, match="use with_active"):
        cset.with_numbers("loop", active=False)
    rod = ConstraintSet().add_distance_constraint("crank", ZERO, "rocker", ZERO, 0.6, name="rod").bind(four_bar().model)
    with pytest.raises(ModelError, match=r"'stiffness' was inf and can't become 5\.0.*Make another"):
        rod.with_numbers("rod", stiffness=5.0)
    assert float(rod.with_numbers("rod", distance=0.7).constraint("rod").distance) == 0.7


def test_rules_of_constructors_hold_for_new_numbers() -> None:
    """Known numbers alone: traced ones pass, such as switches that are differentiated."""
    model, ends = four_bar().model, ("crank", ZERO, "rocker", ZERO)
    constraints = ConstraintSet().add_distance_constraint(*ends, 0.6, name="rod")
    constraints.add_distance_constraint(*ends, 0.6, stiffness=10.0, name="spring")
    constraints.add_loop_constraint("crank", "rocker", None, None, LINE, name="loop")
    cset = constraints.bind(model)
    for value in (5.0, 0.5, -1, np.nan, "off"):
        with pytest.raises(ModelError, match=r"with_active: DistanceConstraint 'spring': active must be True or False"):
            cset.with_active({"spring": value})
    assert [float(cset.with_active({"spring": x}).active[1]) for x in (True, 0, 1.0, np.False_)] == [1.0, 0.0, 1.0, 0.0]
    assert jax.jit(lambda x: cset.with_active({"spring": x}).active[1])(0.5) == 0.5
    with pytest.raises(
        ModelError, match=r"with_active takes values by the constraints' names in a dict, got \['rod'\]"
    ):
        cset.with_active(["rod"])
    for value in (np.nan, np.inf, "fast"):
        with pytest.raises(ModelError, match=r"with_v_plus: DistanceConstraint 'rod' takes 1 finite number"):
            cset.with_v_plus({"rod": value})
    for value in ("fast", 0.0, np.nan, [0.1, 0.1]):
        with pytest.raises(ModelError, match=r"DistanceConstraint 'rod' takes a number of seconds > 0, or None"):
            cset.with_stabilization_time({"rod": value})
    for name, numbers, message in (
        ("rod", {"distance": -1.0}, "'distance' must be a finite number > 0, got -1.0"),
        ("rod", {"distance": "far"}, "'distance' takes numbers of shape (), got 'far'"),
        ("rod", {"damping": 1.0}, "a rigid constraint has no damping"),
        ("spring", {"stiffness": -5.0}, "'stiffness' must be a finite number > 0"),
        ("spring", {"damping": -0.1}, "'damping' must be a finite number >= 0"),
        ("loop", {"axes": 0.0}, "row 0 of 'axes' is zero"),
        ("loop", {"quaternion_AP": 0.0}, "'quaternion_AP' must be finite and not all zero"),
    ):
        with pytest.raises(ModelError, match=re.escape(message)):
            cset.with_numbers(name, **numbers)
    stiffer = cset.with_numbers("spring", stiffness=20.0, damping=0.0, distance=0.1).with_numbers("rod", damping=0.0)
    assert float(stiffer.constraint("spring").stiffness) == 20.0
    assert jax.jit(lambda x: cset.with_numbers("rod", distance=x).constraint("rod").distance)(-1.0) == -1.0


def test_sets_that_are_not_bound_say_so() -> None:
    model, _, q, v = vars(four_bar()).values()
    loose = ConstraintSet()
    for call in (
        lambda: mbjax.constraints_jacobian(model, loose, q),
        lambda: mbjax.constrained_forward_dynamics(model, loose, q, v, v),
        lambda: mbjax.constrained_inverse_dynamics(model, loose, q, v, v),
        lambda: mbjax.constraint_impulses(model, loose, q, v),
        lambda: mbjax.constrained_system_variables(model, loose, q, v, v),
        lambda: mbjax.project_onto_constraints(model, loose, q, v),
        lambda: mbjax.assembly_q(model, loose, q),
        lambda: mbjax.assembly_qdot(model, loose, q, v),
        lambda: mbjax.check_constraints(model, loose, q),
        lambda: mbjax.constraint_forces_by_name(loose, []),
    ):
        with pytest.raises(ModelError, match=r"\.bind\(model\)"):
            call()


def unbound(contact):
    return mbjax.ContactConstraint(contact.body, contact.p_BP, contact.normals, name=contact.name)


def test_switches_differ_between_worlds() -> None:
    mechanism = quadruped()

    def active(flag):
        return constraint_terms(
            mechanism.model, mechanism.cset.with_active({"RR_foot": flag}), mechanism.q, mechanism.v
        ).active

    got = compiled(jax.vmap(active))(jnp.array([True, False]))
    np.testing.assert_array_equal(got[:, 6:9], [[1.0] * 3, [0.0] * 3])


def test_empty_sets_and_sets_of_springs_have_no_rows() -> None:
    model, _, q, v = vars(four_bar()).values()
    spring = ConstraintSet().add_distance_constraint(1, np.zeros(3), 3, np.zeros(3), 0.5, stiffness=10.0)
    for constraints in (ConstraintSet(), spring):
        cset = constraints.bind(model)
        terms = constraint_terms(model, cset, q, v)
        assert terms.G.shape == (0, 3)
        assert terms.error.shape == terms.gamma.shape == terms.active.shape == (0,)
        together = jax.vmap(lambda q, c=cset: constraint_terms(model, c, q, v).G)(jnp.stack([q, q]))
        assert together.shape == (2, 0, 3)


LINE = [[0, 0, 0, 1, 0, 0]]
ZERO = np.zeros(3)
BAD = {
    "both sides are body 'rod'; a constraint needs two bodies": lambda s: s.add_loop_constraint(
        "rod", "rod", None, None, LINE
    ),
    "BallConstraint 'b': both sides are body 'heel'": lambda s: s.add_ball_constraint("heel", ZERO, 6, ZERO, name="b"),
    "body 'world'; a constraint needs two": lambda s: s.add_contact_constraint("world", ZERO, [[0, 0, 1]]),
    "no body named 'tow'. Did you mean 'toe'": lambda s: s.add_contact_constraint("tow", ZERO, [[0, 0, 1]]),
    "there is no body 99: indices run from 0 to 10": lambda s: s.add_contact_constraint(99, ZERO, [[0, 0, 1]]),
    "no joint named 'ancle'. Did you mean 'ankle'": lambda s: s.add_lock_constraint("ancle"),
    "joint 'rod_pivot' (universal) has 2 degrees": lambda s: s.add_coupler_constraint("rod_pivot", "ankle"),
    "both joints are 'ankle'": lambda s: s.add_coupler_constraint("ankle", "ankle"),
    "has 1 positions, got 2 numbers": lambda s: s.add_lock_constraint("ankle", [0.1, 0.2]),
    "returns shape (1,), it must be (2,)": lambda s: s.add_custom_constraint(lambda m, q: q[:1], 2),
    "row 1 of normals is zero": lambda s: s.add_contact_constraint("toe", ZERO, [[0, 0, 1], [0, 0, 0]]),
    "rows of axes depend on each other": lambda s: s.add_loop_constraint(
        "toe", "rod", None, None, [[0, 0, 0, 1, 1, 0], [0, 0, 0, 2, 2, 0]]
    ),
    "axes must be 1 to 6 rows of 6 finite": lambda s: s.add_loop_constraint("toe", "rod", None, None, [[1, 0, 0]]),
    "normals must be 1 to 3 rows of 3 finite": lambda s: s.add_contact_constraint("toe", ZERO, [[0, 0, np.nan]]),
    "X_AP: the rotation is not a rotation matrix": lambda s: s.add_weld_constraint(
        "toe", np.diag([2.0, 1, 1, 1]), "rod", None
    ),
    "p_AP must be 3 finite numbers": lambda s: s.add_ball_constraint("toe", [0, np.inf, 0], "rod", ZERO),
    "To hold two points together use a BallConstraint": lambda s: s.add_distance_constraint(
        "toe", ZERO, "rod", ZERO, 0.0
    ),
    "stiffness must be a finite number": lambda s: s.add_distance_constraint(
        "toe", ZERO, "rod", ZERO, 1.0, stiffness=np.nan
    ),
    "stiffness must be > 0": lambda s: s.add_distance_constraint("toe", ZERO, "rod", ZERO, 1.0, stiffness=-2.0),
    "a rigid constraint has no damping": lambda s: s.add_distance_constraint(
        "toe", ZERO, "rod", ZERO, 1.0, damping=1.0
    ),
    "gear_ratio must be a finite number": lambda s: s.add_coupler_constraint("ankle", "crank", "two"),
    "stabilization_time must be a number of seconds > 0": lambda s: s.add_coupler_constraint(
        "ankle", "crank", stabilization_time=0.0
    ),
    "v_plus must be finite numbers of shape (1,)": lambda s: s.add_coupler_constraint(
        "ankle", "crank", v_plus=[1.0, 2.0]
    ),
    "active must be True or False": lambda s: s.add_coupler_constraint("ankle", "crank", active=0.5),
    "level must be 'position' or 'velocity'": lambda s: s.add_custom_constraint(lambda m, q: q, 1, "acceleration"),
    "num_rows must be a positive integer": lambda s: s.add_custom_constraint(lambda m, q: q, 0),
    "function must be callable": lambda s: s.add_custom_constraint(3.0, 1),
    "the name must be a non-empty string": lambda s: s.add_lock_constraint("ankle", name=""),
    "the name is taken": lambda s: s.add_lock_constraint("ankle", name="a").add_lock_constraint("crank", name="a"),
    "expected an AbstractConstraint, got float": lambda s: s.add_constraint(1.0),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_refused(message: str) -> None:
    with pytest.raises(ModelError, match=re.escape(message)):
        BAD[message](ConstraintSet()).bind(spring_leg().model)


def test_names_are_unlike() -> None:
    twice = [mbjax.LockConstraint("ankle", name="lock_1"), mbjax.LockConstraint("crank")]
    assert [c.name for c in with_names(twice)] == ["lock_1", "_lock_1"]
    with pytest.raises(ModelError, match="two constraints are named 'lock_1'"):
        with_names([twice[0], twice[0]])


def test_locks_of_floating_joints_need_a_direction() -> None:
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("body", mbjax.SpatialInertia.solid_box_with_mass(1.0, 0.1, 0.2, 0.3))
    model = plant.finalize()
    with pytest.raises(ModelError, match=r"the quaternion of the position of joint '.*' is zero"):
        ConstraintSet().add_lock_constraint(0, np.zeros(7)).bind(model)
    cset = ConstraintSet().add_lock_constraint(0, [2.0, 0, 0, 0, 0, 0, 0], name="k").bind(model)
    assert float(cset.with_numbers("k", position=[1.0, 0, 0, 0, 0, 0, 2]).constraint("k").position[6]) == 2.0
    with pytest.raises(ModelError, match="the quaternion of 'position' must be finite and not all zero"):
        cset.with_numbers("k", position=np.zeros(7))


def test_wrong_models_are_refused() -> None:
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("crank", mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.1))
    foreign = plant.add_rigid_body("foreign", mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.1))
    plant.add_joint(mbjax.WeldJoint("weld", "crank", "foreign"))
    contact = ConstraintSet().add_contact_constraint("crank", ZERO, [[0, 0, 1]])
    with pytest.raises(ModelError, match="got MultibodyPlant; call finalize"):
        contact.bind(plant)
    model, _, q, _ = vars(four_bar()).values()
    with pytest.raises(ModelError, match="body 'foreign' belongs to another plant; body 2 of this one is 'coupler'"):
        ConstraintSet().add_contact_constraint(foreign, ZERO, [[0, 0, 1]]).bind(model)
    with pytest.raises(ModelError, match="'crank' and 'foreign' are welded together"):
        ConstraintSet().add_ball_constraint("crank", ZERO, "foreign", ZERO).bind(plant.finalize())
    with pytest.raises(ModelError, match="bound to another model"):
        mbjax.constraints_jacobian(model, spring_leg().cset, q)
    with pytest.raises(ModelError, match=r"there is no constraint named 'lop'\. Did you mean 'loop'"):
        four_bar().cset.with_active({"lop": False})
    with pytest.raises(ModelError, match=r"'loop' has 2 row\(s\), got shape \(3,\)"):
        four_bar().cset.with_v_plus({"loop": [0.0, 0.0, 1.0]})
    with pytest.raises(ModelError, match=r"'loop' has one switch for all of its rows, got shape \(3,\)"):
        four_bar().cset.with_active({"loop": [1, 0, 1]})
    with pytest.raises(ModelError, match=r"by_name: multipliers have shape \(3,\).* 2 rows: loop\[0\], loop\[1\]"):
        mbjax.constraint_forces_by_name(four_bar().cset, np.zeros(3))
    with pytest.raises(ModelError, match="by_name: multipliers must be numbers, got 'ab'"):
        mbjax.constraint_forces_by_name(four_bar().cset, "ab")
    for wrong in (None, "a"):
        with pytest.raises(ModelError, match="constraint_terms: cset must be a BoundConstraintSet"):
            mbjax.constraints_position_error(model, wrong, q)
        with pytest.raises(ModelError, match="assembly_q: cset must be a BoundConstraintSet"):
            mbjax.assembly_q(model, wrong, q)
    with pytest.raises(ModelError, match="wrt must be 'v' or 'qdot', got 'q'"):
        mbjax.constraints_jacobian(model, four_bar().cset, q, "q")
