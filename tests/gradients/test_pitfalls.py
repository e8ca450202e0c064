"""The singular and degenerate states where gradients of other simulators fail, each named by its id."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.spatial import quaternion as rotation
from tests.gradients.checks import WHOLE_RUN, all_gradients, check_gradients, compiled
from tests.models import ALL_KINDS, random_tree, relative_error

DT = 0.002


def free_body(dtype=None, moments=(0.3, 0.5, 0.7), gravity=(0.0, 0.0, -9.81)) -> mbjax.MultibodyModel:
    """One floating body."""
    plant = mbjax.MultibodyPlant(DT)
    plant.set_gravity(gravity)
    inertia = mbjax.SpatialInertia(2.0, np.zeros(3), mbjax.UnitInertia(*moments))
    plant.add_rigid_body("body", inertia)
    return plant.finalize(dtype)


def free_state(model, w=(0.0, 0.0, 0.0), v=(0.0, 0.0, 0.0), quaternion=(1.0, 0.0, 0.0, 0.0)) -> mbjax.State:
    d = model.dtype
    q = jnp.concatenate([jnp.asarray(quaternion, d), jnp.zeros(3, d)])
    return mbjax.State(q, jnp.concatenate([jnp.asarray(w, d), jnp.asarray(v, d)]), jnp.zeros((), d))


def quaternion_after(model, w) -> jax.Array:
    """x, y, z of the quaternion after a step at angular velocity w."""
    state = free_state(model)
    v = jnp.concatenate([w, jnp.zeros(3, w.dtype)])
    return mbjax.step(model, mbjax.State(state.q, v, state.time))[0].q[1:4]


@pytest.mark.whole_run("the rows of free bodies in test_degenerate_models")
@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32], ids=["f64", "f32"])
def test_G01_G02_orientation_follows_small_angular_velocities(dtype) -> None:
    """dq/dw = dt/2 at rest and at every small speed, in one batch, both modes, also inside a scan."""
    model = free_body(dtype, moments=(0.4, 0.4, 0.4))  # a sphere: no gyroscopic term beside dt/2
    speeds = jnp.array([0.0, 1e-12, 1e-9, 1e-8, 1e-7, 1e-4, 1e-3], dtype)
    ws = speeds[:, None] * jnp.array([0.6, -0.64, 0.48], dtype)
    f = lambda w: quaternion_after(model, w)  # noqa: E731

    def scanned(w):
        return jax.lax.scan(lambda c, _: (c, f(c)), w, None, length=1)[1][0]

    expected = np.broadcast_to(0.5 * DT * np.eye(3), (len(ws), 3, 3))
    allowed = 1e-8 if dtype == jnp.float64 else 2e-6
    for function in (f, scanned) if dtype == jnp.float64 else (f,):
        for mode in (jax.jacfwd, jax.jacrev):
            jacobian = jax.jit(jax.vmap(mode(function)))(ws)
            assert jacobian.dtype == dtype
            np.testing.assert_allclose(jacobian, expected, atol=allowed * DT)


def test_G03_exp_and_log_of_rotations_at_their_special_points() -> None:
    """difference_configuration inverts integrate_configuration, derivative one, at 0 and near; half turns finite."""
    model = free_body()
    axes = np.array([[0.0, 0, 0], [1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1] / np.sqrt(3)])
    q0s = jnp.stack([free_state(model, quaternion=(sign, 0.0, 0.0, 0.0)).q for sign in (1.0, -1.0)])

    def there_and_back(w):
        moved = jax.vmap(mbjax.integrate_configuration, (None, 0, None))(model, q0s, jnp.append(w, jnp.zeros(3)))
        return jax.vmap(mbjax.difference_configuration, (None, 0, 0))(model, q0s, moved)[:, :3]

    jacobians = compiled(jax.vmap(jax.jacrev(there_and_back)))(jnp.asarray(np.pi * axes))
    assert np.isfinite(jacobians).all()
    np.testing.assert_allclose(jacobians[0], np.stack([np.eye(3)] * 2), atol=1e-12)
    check_gradients(there_and_back, jnp.array([0.5, -1.0, 0.7]))
    turns = 0.999 * np.pi * axes
    values = compiled(jax.vmap(there_and_back))(jnp.asarray(turns))
    np.testing.assert_allclose(values, np.stack([turns] * 2, axis=1), atol=1e-9)


def test_G04_rotation_matrix_to_quaternion_at_half_turns() -> None:
    axes = np.concatenate([np.eye(3), np.ones((1, 3)) / np.sqrt(3.0)])
    ws = jnp.asarray(np.concatenate([axes * (np.pi + offset) for offset in (0.0, 1e-12, -1e-12)]))
    R = compiled(jax.vmap(lambda w: rotation.quaternion_to_matrix(rotation.quaternion_exp(w))))(ws)
    for mode in (jax.jacfwd, jax.jacrev):
        assert np.isfinite(compiled(jax.vmap(mode(rotation.matrix_to_quaternion)))(R)).all()


@pytest.mark.whole_run("rpy joints among every joint, in test_dynamics_derivatives")
def test_G05_dynamics_of_rpy_joints_ignore_gimbal_lock() -> None:
    """At pitch 90 degrees they are as regular as elsewhere. Free bodies: test_degenerate_models."""
    rpy = random_tree(2, ("rpy_floating", "ball_rpy", "revolute")).model
    q = mbjax.random_state(rpy, jax.random.key(0)).q
    for joint in ("joint0", "joint1"):
        q = q.at[rpy.joint(joint).q_start + 1].set(jnp.pi / 2)
    v = jnp.asarray(np.random.default_rng(0).normal(size=rpy.num_velocities))
    result = all_gradients(lambda x: mbjax.forward_dynamics(rpy, x["q"], x["v"], v), {"q": q, "v": v}, forward=False)
    size = np.abs(result.differences).max()
    np.testing.assert_allclose(result.reverse, result.differences, atol=1e-6 * size)
    qdot = compiled(mbjax.velocity_to_qdot)(rpy, q, v)
    assert not np.isfinite(qdot).all() or np.abs(qdot).max() > 1e6


@pytest.mark.whole_run("the rows of free bodies in test_degenerate_models")
@pytest.mark.parametrize("scale", [2.0, 1.001, 0.5])
def test_G06_raw_quaternions_of_any_length(scale: float) -> None:
    model = free_body()
    q = mbjax.random_state(model, jax.random.key(4)).q
    q = q.at[:4].multiply(scale)
    v = jnp.array([0.3, -0.4, 0.5, 1.0, 2.0, 3.0])

    def f(q):
        return mbjax.body_poses_in_world(model, q).as_matrix4()[1], mbjax.step(
            model, mbjax.State(q, v, jnp.array(0.0))
        )[0].q

    check_gradients(f, q)


@pytest.mark.whole_run("slides with offset frames below a hinge, in test_leaf_coverage")
def test_G07_zero_angles_and_offset_slides() -> None:
    """Zero angle about a fixed axis, and a prismatic joint with an offset frame below a revolute one."""
    plant = mbjax.MultibodyPlant(DT)
    inertia = mbjax.SpatialInertia.solid_box_with_mass(1.0, 0.3, 0.2, 0.1)
    plant.add_rigid_body("a", inertia)
    plant.add_rigid_body("b", inertia)
    plant.add_joint(mbjax.RevoluteJoint("turn", "world", "a", axis=[1, 2, 3]))
    X = mbjax.RigidTransform.from_rpy_xyz(jnp.array([0.3, 0.4, 0.5]), jnp.array([0.4, 0.1, -0.2]))
    plant.add_joint(mbjax.PrismaticJoint("slide", "a", "b", X_PF=X, axis=[0, 1, 1]))
    model = plant.finalize()

    def f(x):
        after, outputs = mbjax.step(model, mbjax.State(x["q"], x["v"], jnp.array(0.0)))
        return outputs.generalized_acceleration, after.q, mbjax.body_poses_in_world(model, x["q"]).translation

    check_gradients(f, {"q": jnp.zeros(2), "v": jnp.array([1.5, 0.7])}, tolerance=1e-7)


@pytest.mark.whole_run("joint_damping in test_leaf_coverage: in a step, and as the law of continuous plants")
def test_G17_damping_has_a_gradient_in_the_implicit_and_in_the_explicit_law() -> None:
    model = random_tree(6, ("revolute", "prismatic", "ball_rpy"), 0.01).model
    state = mbjax.random_state(model, jax.random.key(1))

    def f(damping):
        damped = eqx.tree_at(lambda m: m.parameters.joint_damping, model, damping)
        return mbjax.step(damped, state)[0].v, mbjax.time_derivatives(damped, state)[1]

    result = check_gradients(f, model.parameters.joint_damping + 0.5)
    assert (np.abs(result.reverse).max(axis=0) > 0.0).all()


@pytest.mark.whole_run("derivatives of a step of free bodies, in test_degenerate_models.py")
def test_G32_free_fall_and_G33_no_spurious_rotation() -> None:
    """100 steps: dz/dz0 = 1, dz/dv0 = T, and falling does not depend on spinning; the body never starts to spin."""
    model = free_body()
    steps, T = 100, 100 * DT

    def end(x):
        state = mbjax.State(
            jnp.concatenate([jnp.array([1.0, 0, 0, 0]), x["p"]]), jnp.concatenate([x["w"], x["v"]]), jnp.array(0.0)
        )
        return mbjax.rollout(model, state, None, steps).q[-1]

    x = {"p": jnp.array([0.1, 0.2, 0.5]), "w": jnp.zeros(3), "v": jnp.array([1.0, 0.0, -1.0])}
    value, jacobian = compiled(lambda x: (end(x), jax.jacrev(end)(x)))(x)
    np.testing.assert_allclose(jacobian["p"][4:], np.eye(3), atol=1e-12)
    np.testing.assert_allclose(jacobian["v"][4:], T * np.eye(3), atol=1e-12)
    np.testing.assert_allclose(jacobian["w"][4:], 0.0, atol=1e-12)
    np.testing.assert_array_equal(value[:4], [1.0, 0.0, 0.0, 0.0])
    assert np.abs(jacobian["w"][1:4]).max() < 1.0


@pytest.mark.whole_run("single precision stays single")
def test_G34_cart_pole_in_single_precision_and_G36_gradients_that_repeat() -> None:
    """Under 100 random controls; called twice; whole run: with checkpoints, 10 by 10 steps."""
    path = mbjax.reference_models.path("cart_pole")
    controls = jax.random.uniform(jax.random.key(0), (100, 2), jnp.float64, -5.0, 5.0)

    def gradient_in(dtype, checkpoint=None):
        model = mbjax.load(path, time_step=0.01, dtype=dtype)
        state, u = mbjax.default_state(model), controls[:, : model.num_actuators].astype(dtype)

        def cost(u):
            return jnp.sum(mbjax.rollout(model, state, u, checkpoint=checkpoint).q[-1] ** 2)

        return jax.jit(jax.grad(cost)), u

    gradient, u = gradient_in(jnp.float64)
    plain = gradient(u)
    np.testing.assert_array_equal(gradient(u), plain)
    if WHOLE_RUN:  # trimmed: long rollouts with checkpoints in tests/simulation/test_rollout.py
        checkpointed, u = gradient_in(jnp.float64, "sqrt")
        assert relative_error(checkpointed(u), plain) < 1e-12
    single, u = gradient_in(jnp.float32)
    assert single(u).dtype == jnp.float32
    assert relative_error(single(u), plain) < 1e-3


@pytest.mark.whole_run("derivatives of a step, and a rollout's gradient in docs/usage/first_gradient.md")
def test_G37_chaos_grows_as_it_does_in_the_system_itself() -> None:
    """Undamped double pendulum: reverse mode follows finite differences until the growth makes those useless."""
    model = mbjax.load(mbjax.reference_models.path("acrobot"), time_step=0.005)
    for joint in model.joint_names:
        if model.joint(joint).num_velocities:
            model = mbjax.set_joint_damping(model, joint, 0.0)
    start = jnp.array([2.0, 1.0])

    def path(q):
        return mbjax.rollout(model, mbjax.State(q, jnp.zeros(2), jnp.array(0.0)), None, 1000).q

    run = jax.jit(lambda q: (path(q), jax.jacfwd(path)(q)))
    h, (_, jacobian) = 1e-7, run(start)
    differences = np.stack([(run(start + h * e)[0] - run(start - h * e)[0]) / (2 * h) for e in np.eye(2)], axis=-1)
    growth = np.abs(jacobian).max(axis=(1, 2))
    assert np.isfinite(growth).all()
    for horizon in (10, 100, 300, 1000):
        if growth[horizon] < 1e3:  # beyond, the differences' own error, growth² h², passes 1e-5
            error = np.abs(jacobian[horizon] - differences[horizon]).max() / growth[horizon]
            assert error < 1e-5, (horizon, growth[horizon])
    reverse = jax.jit(jax.jacrev(lambda q: path(q)[300]))(start)
    assert relative_error(reverse, jacobian[300]) < 1e-9


def chain(masses, moments) -> mbjax.MultibodyModel:
    """Links on parallel axes, 0.5 m apart."""
    plant = mbjax.MultibodyPlant(DT)
    parent = "world"
    for i, (mass, moment) in enumerate(zip(masses, moments, strict=True)):
        G = mbjax.UnitInertia(moment, moment, moment).shift_from_center_of_mass(jnp.array([0.0, 0.0, 0.25]))
        plant.add_rigid_body(f"link{i}", mbjax.SpatialInertia(mass, np.array([0.0, 0.0, -0.25]), G))
        offset = [0.0, 0.0, 0.0 if i == 0 else -0.5]
        plant.add_joint(mbjax.RevoluteJoint(f"joint{i}", parent, f"link{i}", X_PF=offset, axis=[0, 1, 0]))
        parent = f"link{i}"
    return plant.finalize()


def test_G43_massless_and_tiny_links() -> None:
    with pytest.raises(mbjax.ModelError, match="link1"):
        chain([1.0, 0.0], [0.01, 0.01])
    of_both = stacked([chain(masses, [0.01] * 3) for masses in ([1.0, 0.0, 1.0], [1.0, 1.0, 1e-9])])
    v = jnp.array([0.3, -0.5, 0.7])

    def f(q):
        return jax.lax.map(lambda model: mbjax.time_derivatives(model, mbjax.State(q, v, jnp.array(0.0)))[1], of_both)

    check_gradients(f, jnp.array([0.4, -0.8, 0.6]))


def stacked(models: list[mbjax.MultibodyModel]) -> mbjax.MultibodyModel:
    """Models of one topology as one, for `vmap` and `lax.map`."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *models)


@pytest.mark.whole_run("all numbers of inertias in test_leaf_coverage, and links without mass above")
def test_G44_special_inertias() -> None:
    """Three equal moments, a thin rod, and the triangle's equality."""
    models = stacked([free_body(moments=m) for m in ((0.4, 0.4, 0.4), (0.3, 0.3, 1e-12), (0.2, 0.3, 0.5))])
    state = free_state(free_body(), w=(0.1, -0.2, 0.0), v=(1.0, 0.0, 0.0))

    def f(x):
        changed = eqx.tree_at(lambda m: m.parameters.body_unit_inertia, models, x)
        calls = [lambda m: mbjax.kinetic_energy(m, state.q, state.v), lambda m: mbjax.mass_matrix(m, state.q)]
        return [jax.lax.map(call, changed) for call in calls]

    check_gradients(f, models.parameters.body_unit_inertia)

    if not WHOLE_RUN:
        return  # steps of free bodies are in test_degenerate_models.py

    def after(v, model):
        return mbjax.step(model, mbjax.State(state.q, v, state.time))[0].v

    assert np.isfinite(compiled(jax.vmap(jax.jacrev(after), (None, 0)))(state.v, models)).all()


def sized_models() -> dict[str, mbjax.MultibodyModel]:
    welded = mbjax.MultibodyPlant(DT)
    welded.add_rigid_body("a", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
    welded.weld_frames("world", "a")
    return {
        "world only": mbjax.MultibodyPlant(DT).finalize(),
        "no degree of freedom": welded.finalize(),
        "one body": free_body(),
        "chain of 50": chain([1.0] * 50, [0.01] * 50),
    }


CHAIN = pytest.param("chain of 50", marks=pytest.mark.whole_run("the other sizes"))
ONE_BODY = pytest.param("one body", marks=pytest.mark.whole_run("free bodies in one batch, in test_degenerate_models"))


@pytest.mark.parametrize("name", ["world only", "no degree of freedom", ONE_BODY, CHAIN])
def test_G49_sizes_and_G50_every_transformation(name: str) -> None:
    """jacfwd, jacrev, jvp, vjp, hessian and linearize of a step, of nothing at all and of long chains."""
    model = sized_models()[name]
    state = mbjax.random_state(model, jax.random.key(0))

    def f(v):
        return mbjax.step(model, mbjax.State(state.q, v, state.time))[0].v

    forward, reverse = jax.jit(lambda v: (jax.jacfwd(f)(v), jax.jacrev(f)(v)))(state.v)
    assert forward.shape == (model.num_velocities,) * 2
    assert np.isfinite(forward).all()
    if forward.size:
        assert relative_error(reverse, forward) < 1e-9
    if name != "chain of 50":
        ones = jnp.ones_like(state.v)

        @compiled
        def others(v, ones):
            branch = jax.grad(lambda v: jnp.sum(jax.lax.cond(v.size >= 0, f, lambda v: v, v)))
            moved = jax.jvp(f, (v,), (ones,))[1], jax.linearize(f, v)[1](ones)
            return moved, (jax.vjp(f, v)[1](ones)[0], branch(v)), jax.hessian(f)(v)

        moved, pulled, hessian = others(state.v, ones)
        for got in moved:
            np.testing.assert_allclose(got, forward @ ones, atol=1e-9)
        for got in pulled:
            np.testing.assert_allclose(got, ones @ forward, atol=1e-9)
        assert np.isfinite(hessian).all()


@pytest.mark.whole_run("a bad world stays alone, in tests/execution/test_worlds.py")
def test_G51_a_nan_world_stays_alone() -> None:
    model = mbjax.load(mbjax.reference_models.path("quadruped"), time_step=DT)
    states = jax.vmap(lambda k: mbjax.random_state(model, k))(jax.random.split(jax.random.key(0), 64))
    broken = mbjax.State(states.q.at[17, 9].set(jnp.nan), states.v, states.time)

    def f(q, v):
        return jnp.sum(mbjax.step(model, mbjax.State(q, v, jnp.array(0.0)))[0].v)

    run = jax.jit(jax.vmap(jax.value_and_grad(f, (0, 1))))
    well, ill = run(states.q, states.v), run(broken.q, broken.v)
    others = np.arange(64) != 17
    for a, b in zip(jax.tree.leaves(well), jax.tree.leaves(ill), strict=True):
        np.testing.assert_array_equal(np.asarray(a)[others], np.asarray(b)[others])
        assert np.isnan(np.asarray(b)[17]).any()


@pytest.mark.whole_run("every public function is asked in test_transformations")
def test_G53_single_precision_stays_single() -> None:
    model = mbjax.astype(random_tree(9, ALL_KINDS, 0.01).model, jnp.float32)
    state = mbjax.random_state(model, jax.random.key(0))
    nv, key64 = model.num_velocities, np.ones(model.num_velocities)
    q, v = np.asarray(state.q, np.float64), np.asarray(state.v, np.float64)
    results = {
        "poses": mbjax.body_poses_in_world(model, q),
        "velocities": mbjax.body_spatial_velocities_in_world(model, q, v),
        "accelerations": mbjax.spatial_accelerations_from_vdot(model, q, v, key64),
        "mass matrix": mbjax.mass_matrix(model, q),
        "forces": mbjax.force_elements_contribution(model, q, v),
        "inverse": mbjax.inverse_dynamics(model, q, v, key64),
        "forward": mbjax.forward_dynamics(model, q, v, key64),
        "jacobian": mbjax.jacobian_spatial_velocity(model, q, "body1", np.zeros(3), "body0", "world", "qdot"),
        "bias": mbjax.bias_spatial_acceleration(model, q, v, "body1", np.zeros(3), "body0", "world"),
        "centre": mbjax.center_of_mass_position_in_world(model, q),
        "momentum": mbjax.spatial_momentum_in_world_about_point(model, q, v, np.zeros(3)),
        "energies": (mbjax.kinetic_energy(model, q, v), mbjax.potential_energy(model, q), mbjax.total_mass(model)),
        "step": mbjax.step(model, mbjax.State(q, v, 0.0)),
        "gradient": jax.grad(lambda m: jnp.sum(mbjax.forward_dynamics(m, q, v, np.zeros(nv))))(model),
    }
    for name, result in results.items():
        assert {leaf.dtype for leaf in jax.tree.leaves(result)} == {jnp.dtype("float32")}, name


def test_G54_one_compilation_from_the_first_state_on() -> None:
    model = mbjax.load(mbjax.reference_models.path("pendulum"), time_step=DT)
    step = jax.jit(lambda m, s: mbjax.step(m, s)[0])
    state = mbjax.default_state(model)
    for _ in range(4):
        state = step(model, state)
    assert step._cache_size() == 1
