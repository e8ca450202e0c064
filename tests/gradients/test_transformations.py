"""G50, G51, G53, G54 where every branch is in use: a step in which PD control saturates, and all public functions."""

import functools
import inspect
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import trajectory_optimization as to
from tests.gradients.checks import check_gradients
from tests.models import relative_error

BOX = mbjax.SpatialInertia.solid_box_with_mass(1.3, 0.3, 0.5, 0.1).shift(np.array([-0.1, 0.05, 0.2]))


def saturating_arm(free_body: bool = False) -> mbjax.MultibodyModel:
    """Two links under PD control of which one saturates; with `free_body` a body on a spring beside them."""
    plant = mbjax.MultibodyPlant(0.01)
    for i in range(3 if free_body else 2):
        plant.add_rigid_body(f"b{i}", BOX)
    for i, parent in enumerate(("world", "b0")):
        X = mbjax.RigidTransform(jnp.eye(3), jnp.array([0.0, 0.0, -0.5 * i]))
        plant.add_joint(mbjax.RevoluteJoint(f"j{i}", parent, f"b{i}", axis=[0, 1, 0], X_PF=X))
        plant.add_joint_actuator(f"m{i}", f"j{i}", (1.0, 100.0)[i], kp=300.0, kd=5.0)
    if free_body:
        plant.add_force_element(mbjax.LinearSpringDamper("b0", [0.1, 0.2, 0.3], "b2", [0.2, 0.1, 0.0], 0.3, 30.0, 2.0))
        plant.add_coupler_constraint("j0", "j1", gear_ratio=2.0)
        plant.add_rigid_body("tool", BOX)
        plant.add_joint(mbjax.WeldJoint("grip", "b1", "tool", X_PF=mbjax.RigidTransform(jnp.eye(3), jnp.ones(3))))
        tetrahedron = mbjax.Convex([[0.1, 0.0, 0.0], [0.0, 0.1, 0.0], [0.0, 0.0, 0.1], [0.0, 0.0, 0.0]])
        plant.exclude_collisions_between("b1", "b2")
        shapes = {"world": mbjax.geometry.HalfSpace(), "b1": tetrahedron, "b2": mbjax.geometry.Sphere(0.1)}
        for body, shape in shapes.items():
            plant.register_collision_geometry(body, mbjax.geometry.Geometry(f"{body}_shape", shape), 0.5)
    return plant.finalize()


def controlled_step(model: mbjax.MultibodyModel, qv: jax.Array) -> jax.Array:
    """q, v and the net actuation after a step towards a fixed target."""
    inputs = mbjax.Inputs(desired_state=jnp.asarray([1.0, 0.5, 0.0, 0.0], qv.dtype))
    after, outputs = mbjax.step(model, mbjax.State(qv[:2], qv[2:], jnp.zeros((), qv.dtype)), inputs)
    return jnp.concatenate([after.q, after.v, outputs.net_actuation])


@pytest.mark.whole_run("every leaf of a saturated step in test_leaf_coverage.py, and one compilation, in G54")
def test_g50_every_transformation_of_a_saturated_step() -> None:
    """Forward, reverse, jvp, vjp, linearize and Hessian, and inside scan and cond, where the branch is taken or not."""
    x, dx = jnp.array([0.3, -0.2, 0.5, 0.1]), jnp.array([0.2, 0.1, -0.3, 0.4])
    f = functools.partial(controlled_step, saturating_arm())
    weights = jnp.asarray(np.random.default_rng(0).normal(size=6))
    J = check_gradients(f, x).reverse
    assert not J[4].any()  # the first effort is at its limit

    @jax.jit
    def all_of_them(x: jax.Array, dx: jax.Array, weights: jax.Array) -> dict:
        def in_scan_and_cond(x: jax.Array) -> jax.Array:  # the branch is taken, then not
            def choose(x: jax.Array, is_taken: jax.Array) -> tuple[jax.Array, jax.Array]:
                return x, jax.lax.cond(is_taken, f, lambda x: jnp.concatenate([2.0 * x, x[:2]]), x)

            return jax.lax.scan(choose, x, jnp.array([True, False]))[1]

        gradient, curvature = jax.linearize(jax.grad(lambda x: weights @ f(x)), x)
        return {
            "jvp": jax.jvp(in_scan_and_cond, (x,), (dx,))[1],
            "vjp": jax.vmap(jax.vjp(in_scan_and_cond, x)[1])(jnp.einsum("ij,k->ijk", jnp.eye(2), weights))[0],
            "gradient": gradient,
            "hessian": jax.vmap(curvature)(jnp.eye(4)),
        }

    got, h = all_of_them(x, dx, weights), 1e-5
    not_taken = np.vstack([2 * np.eye(4), np.eye(4)[:2]])
    for name, expected in (
        ("jvp", [J @ dx, not_taken @ dx]),
        ("vjp", [weights @ J, weights @ not_taken]),
        ("gradient", weights @ J),
    ):
        np.testing.assert_allclose(got[name], expected, rtol=0, atol=1e-10, err_msg=name)
    gradients = [[all_of_them(x + sign * h * e, dx, weights)["gradient"] for e in np.eye(4)] for sign in (1.0, -1.0)]
    differences = np.subtract(*np.array(gradients)) / (2 * h)
    assert relative_error(got["hessian"], differences) < 1e-6


@pytest.mark.whole_run("a bad world stays alone, in tests/execution/test_worlds.py")
def test_g51_a_nan_world_in_a_saturated_batch() -> None:
    """The search for saturated actuators runs on until its rounds end: 63 neighbours keep the same bits."""
    model = saturating_arm()
    x = jax.random.normal(jax.random.key(0), (64, 4))

    @jax.jit
    @jax.vmap
    def five_steps(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        def cost(x: jax.Array) -> tuple[jax.Array, jax.Array]:
            y, _ = jax.lax.scan(lambda y, _: (controlled_step(model, y)[:4], None), x, length=5)
            return jnp.sum(y**2), y

        (_, y), gradient = jax.value_and_grad(cost, has_aux=True)(x)
        return y, gradient

    healthy = five_steps(x)
    others = np.arange(64) != 20
    for bad in (jnp.nan, jnp.inf):
        for entry in (0, 2):
            hurt = five_steps(x.at[20, entry].set(bad))
            for a, b in zip(healthy, hurt, strict=True):
                np.testing.assert_array_equal(np.asarray(a)[others], np.asarray(b)[others])
                assert not np.isfinite(b[20]).all()


OF_KNOWN_NUMBERS = {
    "check_constraints", "describe", "diagnose", "plot", "save", "show", "to_mjcf", "to_sdf", "to_urdf",
}  # fmt: skip


# They refuse a model without deformable bodies; their values and derivatives: tests/simulation/test_deformable_*.py
OF_DEFORMABLE_BODIES = {
    "deformable_contact_surfaces", "deformable_energies", "deformable_equilibrium", "deformable_momentum",
    "set_deformable_enabled",
}  # fmt: skip


def functions_of_a_model() -> dict:
    """Public functions whose first parameter is a model; but for those of deformable bodies."""
    found = {}
    for name, value in vars(mbjax).items():
        if inspect.isfunction(value) and not name.startswith("_"):
            parameters = list(inspect.signature(value).parameters)
            if parameters and parameters[0] == "model" and name not in OF_KNOWN_NUMBERS | OF_DEFORMABLE_BODIES:
                found[name] = value
    return found


def arguments_of(model: mbjax.MultibodyModel, q: jax.Array, v: jax.Array) -> dict:
    """What to pass for a parameter of each name."""
    T, nb, nu = model.dtype, model.num_bodies, model.num_actuators
    one, three, points = jnp.ones((), T), jnp.ones(3, T), jnp.ones((2, 3), T)
    state = mbjax.State(q, v, jnp.zeros((), T))
    forces = mbjax.MultibodyForces(v, jnp.ones((nb, 6), T))
    applied = mbjax.AppliedSpatialForces(["b1"], jnp.ones((1, 6), T), jnp.ones((1, 3), T))
    position = mbjax.position_kinematics(model, q)
    velocity = mbjax.velocity_kinematics(model, position, q, v)
    cset = mbjax.ConstraintSet()
    cset.add_coupler_constraint("j0", "j1", gear_ratio=2.0)
    cset.add_distance_constraint("b1", [0.0, 0.0, -0.5], "b2", [0.0, 0.0, 0.0], 3.0)
    cset.add_distance_constraint("b0", [0.0, 0.0, -0.5], "b2", [0.0, 0.0, 0.0], 3.0, stiffness=50.0, damping=1.0)
    cset = cset.bind(model)
    common = dict.fromkeys(
        (
            "damping",
            "friction",
            "armature",
            "kp",
            "kd",
            "effort_limit",
            "rotor_inertia",
            "gear_ratio",
            "stiction_tolerance",
        ),
        one,
    )
    return common | {
        "model": model, "q": q, "v": v, "vdot": v, "tau": v, "dv": v, "q0": q, "q1": q, "qdot": q,
        "forces": forces, "state": state, "inputs": mbjax.Inputs(jnp.ones(nu, T), jnp.ones(2 * nu, T), v, applied),
        "num_steps": 3, "save_at": jnp.array([0.0, 0.1], T), "key": jax.random.key(0), "dtype": T,
        "position": position, "velocity": velocity, "p_WoP_W": three, "p_BoBp_B": three, "p_BoBi_B": points,
        "p_BQi": points, "p_BoBcm_B": three, "frame_A": "world", "frame_E": "world", "frame_B": "j1_parent",
        "body": "b2", "joint": "j1", "actuator": "m1", "frame": "j1_parent", "mass": one, "masses": jnp.ones(nb - 1, T),
        "axis": three, "gravity": three, "time_step": one, "X_PF": mbjax.frame_pose(model, "j1_parent"),
        "M_BBo_B": mbjax.spatial_inertia_in_body_frame(model, "b1"),
        "model_instance": 1, "q_instance": q, "v_instance": v, "u": jnp.ones(nu, T), "u_instance": jnp.ones(nu, T),
        "x": jnp.concatenate([q, v]), "distribution": mbjax.GaussianDistribution(one, one), "joints": ["j1", "j0"],
        "bodies": ["b1", "b2"], "frame_F": "world", "p_BP_E": three, "F_Bp_E": jnp.ones(6, T), "F_Bo_W": jnp.ones(6, T),
        "geometry": "b2_shape", "lower": -one, "upper": one, "static_friction": one, "size": v[:1],
        "vertices": jnp.ones((4, 3), T), "penetration_allowance": one, "near_rigid_threshold": one,
        "X_BG": mbjax.frame_pose(model, "j1_parent"), "joint_dof": 0, "joint_tau": one, "index": 0,
        "cset": cset, "multipliers": jnp.ones(cset.num_rows, T),
        "force": jnp.ones(cset.num_rows, T), "q_guess": q, "v_guess": v, "v_minus": v, "constraint": 0, "status": True,
        "goals": [to.PointGoal("b2", three)], "path": points,
        "actuators": ["m1", "m0"], "V_FM_F": v[:6], "V_WB_W": v[:6], "V_AB_A": v[:6],
        "qpos": q, "qvel": v, "position_names": model.position_names(), "velocity_names": model.velocity_names(),
        "ctrl": v, "joint_names": tuple(joint.name for joint in model.layout.joints if joint.mobod >= 0),
        **dict.fromkeys(("X_FM", "X_WB", "X_AB"), mbjax.frame_pose(model, "j1_parent")),
    }  # fmt: skip


OPTIONAL = ("forces", "inputs", "num_steps", "actuators")  # passed wherever they are taken


@pytest.mark.slow
def test_g53_single_precision_stays_single_with_x64_on(request: pytest.FixtureRequest) -> None:
    """Values and gradients of every public function, by their abstract types: nothing is run.

    Trimmed: values of one in thirty, gradients of one in 120; what to pass is asked of all.
    """
    every, every_gradient = (30, 120) if request.config.getoption("--trimmed") else (1, 1)
    model = mbjax.astype(saturating_arm(free_body=True), jnp.float32)
    q, v = jnp.ones(model.num_positions, jnp.float32), jnp.ones(model.num_velocities, jnp.float32)
    known, wrong = set(arguments_of(model, q, v)), {}
    for k, (name, function) in enumerate(functions_of_a_model().items()):
        parameters = inspect.signature(function).parameters.values()
        wanted = [p.name for p in parameters if p.default is p.empty or p.name in OPTIONAL]
        unknown = set(wanted) - known
        if name == "set_joint_default_positions":
            unknown = set()
        if name in (
            "set_contact_smoothing_length",
            "set_mimic",
            "keyframe_state",
            "inputs_from_mujoco",
            "rollout_policy",
            "randomize",
            "follow",
        ):
            continue  # of a plant that was built with one: tests/contact, tests/model; policies, distributions, paths
        assert not unknown, f"{name}: say in arguments_of what to pass for {sorted(unknown)}"

        def call(model, q, v, function=function, wanted=wanted, name=name):
            given = arguments_of(model, q, v)
            if name == "set_joint_default_positions":
                given["q"] = v[:1]
            if name.endswith("vertices"):
                given["geometry"] = "b1_shape"
            return function(**{p: given[p] for p in wanted})

        def weigh(model, q, v, call=call):
            leaves = [x for x in jax.tree.leaves(call(model, q, v)) if jnp.issubdtype(jnp.result_type(x), jnp.floating)]
            return sum((jnp.sum(x) for x in leaves), jnp.zeros((), jnp.float32))

        if k % every:
            continue
        results = jax.tree.leaves(jax.eval_shape(call, model, q, v))
        if k % every_gradient == 0:
            results += jax.tree.leaves(jax.eval_shape(jax.grad(weigh, (0, 1, 2)), model, q, v))
        types = {leaf.dtype for leaf in results if jnp.issubdtype(leaf.dtype, jnp.floating)}
        if types - {jnp.dtype(jnp.float32)}:
            wrong[name] = types
    assert not wrong, f"float64 in {wrong}"


@pytest.mark.whole_run("one program for all steps and all numbers of a rollout, and G54 in test_pitfalls.py")
def test_g54_new_numbers_never_recompile() -> None:
    """The gradient of a step: one program for every value of every leaf, and for equal models built apart."""
    traces = []

    @jax.jit
    def gradient(model: mbjax.MultibodyModel, qv: jax.Array) -> tuple:
        traces.append(1)
        return jax.grad(lambda model, qv: jnp.sum(controlled_step(model, qv)), (0, 1))(model, qv)

    model, qv = saturating_arm(), jnp.array([0.3, 0.2, -0.4, 0.5])
    reference = gradient(model, qv)
    np.testing.assert_array_equal(reference[1], gradient(saturating_arm(), qv)[1])
    changes = [
        mbjax.set_mass(model, "b1", 3.0),
        mbjax.set_gravity(model, [0.0, 1.0, -3.0]),
        mbjax.set_time_step(model, 0.002),
        mbjax.set_joint_axis(model, "j1", [1.0, 1.0, 0.0]),
        mbjax.set_controller_gains(model, 10.0, 1.0),
        mbjax.set_effort_limit(model, "m1", 0.1),
        mbjax.set_frame_pose(model, "j1_parent", mbjax.RigidTransform(jnp.eye(3), jnp.array([0.1, 0.2, -0.6]))),
    ]
    for changed in changes:
        assert np.abs(gradient(changed, qv)[1] - reference[1]).max() > 0.0
    assert len(traces) == 1
    assert gradient._cache_size() == 1


COMPILED = []
jax.monitoring.register_event_duration_secs_listener(
    lambda name, seconds, **_: COMPILED.append(seconds) if name.endswith("backend_compile_duration") else None
)
IN_THE_TRIMMED_RUN = (
    "assembly_qdot", "implicit_time_derivatives_residual", "mass_matrix", "spatial_accelerations_from_vdot",
)  # fmt: skip


def without_check(function: Callable) -> Callable:
    """A function as it is decorated, without the check that a model comes first."""
    code = getattr(function, "__code__", None)
    return function.__wrapped__ if code is not None and code.co_qualname.startswith("takes_model_first") else function


@pytest.mark.whole_run("one compilation from the first state on, G54 in test_pitfalls.py")
def test_outside_jit_the_first_call_compiles_one_program_and_the_second_none(request: pytest.FixtureRequest) -> None:
    """Of every function of the state; trimmed: of those with a loop of each kind."""
    model = saturating_arm(free_body=True)
    q, v = jnp.full(model.num_positions, 0.3), jnp.full(model.num_velocities, 0.2)
    given, wrong = arguments_of(model, q, v), {}
    COMPILED.clear()
    jax.jit(lambda x: x + 1.0)(q)
    assert COMPILED, "JAX names its compilations otherwise now: this test would not see them"
    for name, function in functions_of_a_model().items():
        parameters = inspect.signature(function).parameters.values()
        wanted = [p.name for p in parameters if p.default is p.empty or p.name in OPTIONAL]
        if name == "simulate" or not {"q", "state"} & set(wanted):
            continue
        if request.config.getoption("--trimmed") and name not in IN_THE_TRIMMED_RUN:
            continue
        call = functools.partial(function, **{p: given[p] for p in wanted if name != "set_joint_default_positions"})
        if name == "set_joint_default_positions":
            call = functools.partial(function, model, given["joint"], v[:1])
        COMPILED.clear()
        call()
        first = len(COMPILED)
        COMPILED.clear()
        call()
        if COMPILED or (hasattr(without_check(function), "__wrapped__") and first > 1):
            wrong[name] = first, len(COMPILED)
    assert not wrong, f"programs at the first and at the second call: {wrong}"


@pytest.mark.whole_run("one program for all numbers of a rollout, in tests/simulation/test_rollout.py")
def test_new_numbers_outside_jit_compile_nothing(request: pytest.FixtureRequest) -> None:
    """Of the model, the state and forces, lists of them too, and of their transformations.

    Trimmed: values, their gradient, and forces in lists.
    """
    model = saturating_arm(free_body=True)

    def accelerations(model, q, v):
        return mbjax.forward_dynamics(model, q, v, v, force_elements=True)

    def total(model, q, v):
        return jnp.sum(jnp.sin(accelerations(model, q, v)))

    def forces(v) -> mbjax.MultibodyForces:
        return mbjax.MultibodyForces(v.tolist(), (np.full((model.num_bodies, 6), v[0])).tolist())

    calls = {
        "value": accelerations,
        "worlds": lambda m, q, v: jax.vmap(accelerations, (None, 0, None))(m, jnp.stack([q, q]), v),
        "gradient": jax.grad(total, (0, 1), allow_int=True),
        "gradients": lambda m, q, v: jax.vmap(jax.grad(total, 1), (None, None, 0))(m, q, jnp.stack([v, v])),
        "jacobian": jax.jacfwd(accelerations, 2),
        "lists": lambda m, q, v: mbjax.forward_dynamics(m, q.tolist(), v.tolist(), v.tolist()),
        "forces": lambda m, q, v: mbjax.forward_dynamics(m, q, v, v, forces(v)),
        "torques": lambda m, q, v: mbjax.inverse_dynamics(m, q, v, v, forces(v)),
        "a float": lambda m, q, v: accelerations(eqx.tree_at(lambda m: m.parameters.time_step, m, float(v[0])), q, v),
    }
    if request.config.getoption("--trimmed"):
        for name in ("worlds", "gradients", "jacobian", "lists", "torques"):
            del calls[name]
    q, v = jnp.full(model.num_positions, 0.3), jnp.full(model.num_velocities, 0.2)
    other = mbjax.set_mass(model, model.body_names[1], 1.7), q + 0.1, v - 0.05
    wrong = {}
    for name, call in calls.items():
        call(model, q, v)
        COMPILED.clear()
        call(*other)
        if COMPILED:
            wrong[name] = len(COMPILED)
    assert not wrong, f"programs compiled for new numbers: {wrong}"
