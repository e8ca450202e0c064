"""A pose may be given in several forms, everywhere the same ones; what is none of them is named."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.spatial import rotation_exp
from tests.gradients.checks import check_gradients
from tests.model.plants import inertia

R = np.asarray(rotation_exp(jnp.array([0.3, -0.5, 0.2])))
P = np.array([0.4, -0.1, 0.7])
MATRIX = np.block([[R, P[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])
FORMS = {
    "RigidTransform": mbjax.RigidTransform(R, P),
    "pair": (R, P),
    "list of two": [R.tolist(), P.tolist()],
    "pair of JAX arrays": (jnp.asarray(R), jnp.asarray(P)),
    "matrix": MATRIX,
    "nested list": MATRIX.tolist(),
}
WRONG = {
    "swapped pair": ((P, R), r"a tuple of an array of shape \(3,\) and an array of shape \(3, 3\)"),
    "quaternion and translation": (([1.0, 0, 0, 0], P), r"a tuple of a list of (shape \(4,\)|4) and"),
    "rotation alone": (R, r"an array of shape \(3, 3\)"),
    "text": ("here", "'here'"),
    "ragged": ([[1.0], [1.0, 2.0], 3.0], "a list of 3"),
    "several": (mbjax.RigidTransform(np.stack([R, R]), np.stack([P, P])), r"a rotation \(2, 3, 3\)"),
}


@functools.cache
def model() -> mbjax.MultibodyModel:
    """A free body with a frame and a shape."""
    plant = mbjax.MultibodyPlant()
    body = plant.add_rigid_body("body", inertia())
    plant.add_frame("f", body, (R, P))
    for on, name in ((body, "ball"), (plant.world_body, "ground")):
        plant.register_collision_geometry(on, P, mbjax.Sphere(0.1), name, 0.5)
    return plant.finalize()


def frame_added(X):
    plant = mbjax.MultibodyPlant()
    return plant.add_frame("f", plant.world_frame, X).X_PF


def joint_added(X, side="X_PF"):
    plant = mbjax.MultibodyPlant()
    body = plant.add_rigid_body("body", inertia())
    joint = plant.add_joint(mbjax.RevoluteJoint("j", "world", body, **{side: X}))
    return (joint.parent if side == "X_PF" else joint.child).X_PF


def welded(X):
    plant = mbjax.MultibodyPlant()
    body = plant.add_rigid_body("body", inertia())
    return plant.weld_frames(plant.world_frame, body, X).parent.X_PF


def started(X):
    plant = mbjax.MultibodyPlant()
    plant.set_default_free_body_pose(plant.add_rigid_body("body", inertia()), X)
    return mbjax.default_free_body_pose(plant.finalize(), "body")


def registered(X, call="register_collision_geometry"):
    plant = mbjax.MultibodyPlant()
    body = plant.add_rigid_body("body", inertia())
    more = {"properties": 0.5} if call == "register_collision_geometry" else {}
    made = getattr(plant, call)(body, X, mbjax.Sphere(0.1), "ball", **more)
    return mbjax.RigidTransform(np.array(made.rotation), np.array(made.translation))


def constrained(X, kind="weld"):
    from mbjax.spatial import quaternion_to_matrix

    if kind == "weld":
        record = mbjax.WeldConstraint("world", X, "body", X)
    else:
        record = mbjax.LoopConstraint("world", "body", X, X, np.eye(6))
    return mbjax.RigidTransform(np.asarray(quaternion_to_matrix(jnp.asarray(record.quaternion_AP))), record.p_AP)


def free_body(X, call):
    state, where = mbjax.default_state(model()), ("world",) if "anchored" in call.__name__ else ()
    return mbjax.free_body_pose(model(), call(model(), state, *where, "body", X).q, "body")


PLACES = {
    "add_frame": frame_added,
    "X_PF of a joint": joint_added,
    "X_BM of a joint": lambda X: joint_added(X, "X_BM"),
    "weld_frames": welded,
    "plant.set_default_free_body_pose": started,
    "register_collision_geometry": registered,
    "register_visual_geometry": lambda X: registered(X, "register_visual_geometry"),
    "WeldConstraint": constrained,
    "LoopConstraint": lambda X: constrained(X, "loop"),
    "set_frame_pose": lambda X: mbjax.frame_pose(mbjax.set_frame_pose(model(), "f", X), "f"),
    "set_collision_geometry_pose": lambda X: mbjax.collision_geometry_pose(
        mbjax.set_collision_geometry_pose(model(), "ball", X), "ball"
    ),
    "set_default_free_body_pose": lambda X: mbjax.default_free_body_pose(
        mbjax.set_default_free_body_pose(model(), "body", X), "body"
    ),
    "set_free_body_pose": lambda X: free_body(X, mbjax.set_free_body_pose),
    "set_free_body_pose_in_world_frame": lambda X: free_body(X, mbjax.set_free_body_pose_in_world_frame),
    "set_free_body_pose_in_anchored_frame": lambda X: free_body(X, mbjax.set_free_body_pose_in_anchored_frame),
}


@pytest.mark.parametrize("place", PLACES)
def test_every_form_is_the_same_pose(place: str) -> None:
    forms = FORMS if "anchored" not in place and "world" not in place else {"pair": FORMS["pair"]}  # slow to compile
    for form, X in forms.items():
        got = PLACES[place](X)
        np.testing.assert_allclose(got.rotation, R, atol=1e-14, err_msg=form)
        np.testing.assert_allclose(got.translation, P, atol=1e-14, err_msg=form)
    if forms is not FORMS:
        return
    shifted = PLACES[place](P.tolist())
    np.testing.assert_allclose(shifted.rotation, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(shifted.translation, P, atol=1e-14)


@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_pose_is_named_with_what_is_accepted(place: str) -> None:
    for X, came in WRONG.values():
        with pytest.raises(mbjax.ModelError, match=came) as caught:
            PLACES[place](X)
        for accepted in ("RigidTransform", "pair (R, p)", "4x4 matrix", "translation"):
            assert accepted in str(caught.value)
        assert not re.search("inhomogeneous|attribute", str(caught.value))


def test_pairs_are_differentiated_and_batched() -> None:
    def placed(rotvec, p):
        return mbjax.frame_pose(mbjax.set_frame_pose(model(), "f", (rotation_exp(rotvec), p)), "f")

    check_gradients(lambda w, p: placed(w, p).rotation @ placed(w, p).translation, jnp.array([0.3, 0.2, -0.4]), P)
    many = jax.vmap(placed, (None, 0))(jnp.zeros(3), jnp.stack([P, 2 * P]))
    np.testing.assert_allclose(many.translation, [P, 2 * P])


@pytest.mark.parametrize("place", ["set_frame_pose", "add_frame", "WeldConstraint"])
def test_a_matrix_for_row_vectors_is_refused(place: str) -> None:
    """Its translation is in the last row, which would be lost."""
    with pytest.raises(mbjax.ModelError, match=r"last row of a 4x4 pose is \[0, 0, 0, 1\].*transposed"):
        PLACES[place](MATRIX.T)
