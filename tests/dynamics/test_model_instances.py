"""Centre of mass, momentum, mass and inertia per set of model instances, and motion body by body, against Drake."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.dynamics.oracles import WRT, drake_bodies
from tests.forces.models import build, every_element
from tests.gradients.checks import WHOLE_RUN, check_gradients
from tests.models import ALL_KINDS, random_tree

TOLERANCE = 1e-10
SETS = {"all": None, "one": ("arm",), "two welded together": ("tool", "ball"), "repeated": ("drone", "arm", "arm")}
FRAME_A, FRAME_E = "j6_child", "b3"
SETS_OF_BODIES = {"some": ("b2", "b8", "b4"), "one": ("b5",), "with the world": ("world", "b0", "b1", "b10")}
BODIES = ("b2", "b6", "b9")
if not WHOLE_RUN:  # the others run through the same formulas
    SETS_OF_BODIES, BODIES = {"with the world": SETS_OF_BODIES["with the world"]}, BODIES[2:]
P = np.array([0.3, 0.5, -0.7])


@functools.partial(jax.jit, static_argnames="sets")
def quantities(model, q, v, vdot, sets):
    result = {}
    for name in sets:
        instances = SETS[name]
        J = lambda *arguments: mbjax.jacobian_center_of_mass_translational_velocity(model, q, *arguments)  # noqa: E731
        bias = mbjax.bias_center_of_mass_translational_acceleration
        result |= {
            f"{name}: mass": mbjax.total_mass(model, instances),
            f"{name}: p_WScm": mbjax.center_of_mass_position_in_world(model, q, instances),
            f"{name}: v_WScm": mbjax.center_of_mass_translational_velocity_in_world(model, q, v, instances),
            f"{name}: a_WScm": mbjax.center_of_mass_translational_acceleration_in_world(model, q, v, vdot, instances),
            f"{name}: momentum": mbjax.spatial_momentum_in_world_about_point(model, q, v, P, instances),
            f"{name}: bias in W": bias(model, q, v, instances),
            f"{name}: bias in A": bias(model, q, v, instances, FRAME_A, FRAME_E),
            f"{name}: J in W, v": J(instances),
            f"{name}: J in A, v": J(instances, "v", FRAME_A, FRAME_E),
            f"{name}: J in A, qdot": J(instances, "qdot", FRAME_A, FRAME_E),
        }
    for name, bodies in SETS_OF_BODIES.items():
        for frame in (FRAME_A, "world"):
            M = mbjax.spatial_inertia(model, q, model.frame_index(frame), bodies)
            result[f"inertia of {name} in {frame}"] = M.copy_to_full_matrix6()
    for body in BODIES:
        X = mbjax.body_pose_in_world(model, q, body)
        result |= {
            f"{body}: X_WB": jnp.concatenate([X.rotation, X.translation[:, None]], axis=1),
            f"{body}: V_WB": mbjax.body_spatial_velocity_in_world(model, q, v, body),
            f"{body}: A_WB": mbjax.body_spatial_acceleration_in_world(model, q, v, vdot, body),
            f"{body}: v_WBcm": mbjax.body_center_of_mass_translational_velocity_in_world(model, q, v, body),
            f"{body}: a_WBcm": mbjax.body_center_of_mass_translational_acceleration_in_world(model, q, v, vdot, body),
        }
    return result


def drake_quantities(twin, q, v, sets):
    """Drake's answers, at the accelerations its own forward dynamics finds: those are returned first."""
    plant, model = twin.plant, twin.model
    context = twin.context(q, v)
    columns = {"v": np.argsort(twin.to_drake_v), "qdot": np.argsort(twin.to_drake_q)}
    W, A, E = (plant.GetFrameByName(name) for name in ("world", FRAME_A, FRAME_E))
    derivatives = plant.EvalTimeDerivatives(context).CopyToVector()
    vdot = derivatives[plant.num_positions() :][columns["v"]]
    result = {}
    for name in sets:
        instances = SETS[name]
        some = [] if instances is None else [[plant.GetModelInstanceByName(i) for i in instances]]
        once = [list(dict.fromkeys(*some))] if some else []  # what is named twice has Drake 1.51's momentum twice

        def J(wrt, A, E, some=some):
            J = plant.CalcJacobianCenterOfMassTranslationalVelocity(context, *some, WRT[wrt], A, E)
            return J[:, columns[wrt]]

        bias = plant.CalcBiasCenterOfMassTranslationalAcceleration
        result |= {
            f"{name}: mass": plant.CalcTotalMass(context, *some),
            f"{name}: p_WScm": plant.CalcCenterOfMassPositionInWorld(context, *some),
            f"{name}: v_WScm": plant.CalcCenterOfMassTranslationalVelocityInWorld(context, *some),
            f"{name}: a_WScm": plant.CalcCenterOfMassTranslationalAccelerationInWorld(context, *some),
            f"{name}: momentum": plant.CalcSpatialMomentumInWorldAboutPoint(context, *once, P).get_coeffs(),
            f"{name}: bias in W": bias(context, *some, WRT["v"], W, W),
            f"{name}: bias in A": bias(context, *some, WRT["v"], A, E),
            f"{name}: J in W, v": J("v", W, W),
            f"{name}: J in A, v": J("v", A, E),
            f"{name}: J in A, qdot": J("qdot", A, E),
        }
    bodies = dict(zip(("world", *model.body_names[1:]), drake_bodies(model, plant), strict=True))
    for name, some in SETS_OF_BODIES.items():
        for frame in (FRAME_A, "world"):
            indices = [bodies[body].index() for body in some]
            M = plant.CalcSpatialInertia(context, plant.GetFrameByName(frame), indices)
            result[f"inertia of {name} in {frame}"] = M.CopyToFullMatrix6()
    for name in BODIES:
        body = bodies[name]
        result |= {
            f"{name}: X_WB": plant.EvalBodyPoseInWorld(context, body).GetAsMatrix34(),
            f"{name}: V_WB": body.EvalSpatialVelocityInWorld(context).get_coeffs(),
            f"{name}: A_WB": body.EvalSpatialAccelerationInWorld(context).get_coeffs(),
            f"{name}: v_WBcm": body.CalcCenterOfMassTranslationalVelocityInWorld(context),
            f"{name}: a_WBcm": body.CalcCenterOfMassTranslationalAccelerationInWorld(context),
        }
    return vdot, result


@pytest.mark.whole_run("those of all bodies in test_against_drake_and_pinocchio.py, in the quick run")
def test_equals_drake(record_property, request):
    """Trimmed: of two instances of which one is named twice; of all of them in test_against_drake_and_pinocchio.py."""
    twin, sets = every_element(), ("repeated",) if request.config.getoption("--trimmed") else tuple(SETS)
    for seed in range(4):
        state = mbjax.random_state(twin.model, jax.random.key(seed))
        vdot, expected = drake_quantities(twin, state.q, state.v, sets)
        got = quantities(twin.model, state.q, state.v, vdot, sets)
        errors = {
            name: float(np.abs(got[name] - expected[name]).max() / max(np.abs(expected[name]).max(), 1e-3))
            for name in expected
        }
        assert got.keys() == errors.keys()
        record_property(f"errors of seed {seed}", errors)
        assert np.max(list(errors.values())) <= TOLERANCE, {k: e for k, e in errors.items() if not e <= TOLERANCE}


@pytest.mark.whole_run("rates of poses and velocities in test_configuration.py, momentum in test_identities.py")
def test_derivatives():
    """Of what has no rule of its own elsewhere, with respect to the configuration, v and vdot, on two joints."""
    model = random_tree(5, ("revolute",)).model
    state = mbjax.random_state(model, jax.random.key(0))

    def f(dq, v, vdot):
        q = mbjax.integrate_configuration(model, state.q, dq)
        M = mbjax.spatial_inertia(model, q, "body0", ["body0", "body1"])
        a = mbjax.center_of_mass_translational_acceleration_in_world(model, q, v, vdot)
        bias = mbjax.bias_center_of_mass_translational_acceleration(model, q, v, None, "body0", "body1")
        a_WBcm = mbjax.body_center_of_mass_translational_acceleration_in_world(model, q, v, vdot, "body1")
        return M.com, M.unit_inertia.moments_products(), a, bias, a_WBcm

    check_gradients(f, jnp.zeros_like(state.v), state.v, 0.5 * state.v)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_velocity_is_qdot_for_the_kinds_drake_says(kind):
    ours, theirs, _ = build(((kind, None, "one"),), 0)
    theirs.Finalize()
    assert mbjax.is_velocity_equal_to_qdot(ours.finalize()) is theirs.IsVelocityEqualToQDot()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, q: mbjax.center_of_mass_position_in_world(m, q, []), "hold no body but the world"),
        (lambda m, q: mbjax.center_of_mass_position_in_world(m, q, ["WorldModelInstance"]), "hold no body"),
        (lambda m, q: mbjax.center_of_mass_position_in_world(m, q, "arm"), "must be a list"),
        (lambda m, q: mbjax.spatial_inertia(m, q, "world", ["b1", 2]), "named twice"),
        (lambda m, q: mbjax.total_mass(m, ["arms"]), "no model instance named 'arms'"),
    ],
)
def test_wrong_sets_are_refused(call, message):
    model = build((("prismatic", None, "arm"), ("weld", 0, "arm")), 0)[0].finalize()
    with pytest.raises(mbjax.ModelError, match=message):
        call(model, model.parameters.default_positions)
