"""`print(model)` says what there is, in words that find it."""

import jax
import jax.numpy as jnp

import mbjax
from tests.model.plants import hinge, inertia


def two_arms() -> mbjax.MultibodyModel:
    """Two instances with equal names, a motor with and one without limit, a spring, gravity off for one."""
    plant = mbjax.MultibodyPlant()
    for side in ("left", "right"):
        body = plant.add_rigid_body("arm", inertia(), plant.add_model_instance(side))
        plant.add_joint(hinge("shoulder", "world", body))
    plant.add_rigid_body("tool", inertia(), "right")
    plant.add_joint(hinge("wrist", "right::arm", "tool"))
    plant.add_joint_actuator("strong", "left::shoulder")
    plant.add_joint_actuator("weak", "wrist", 2.5)
    plant.add_force_element(mbjax.RevoluteSpring("wrist", 0.0, 1.0))
    plant.set_gravity_enabled("right", False)
    plant.set_gravity([0.0, 1.0, -9.0])
    return plant.finalize()


def test_joints_are_named_by_what_finds_them():
    model = two_arms()
    first_words = [line.split(maxsplit=1)[0] for line in str(model).splitlines() if line.strip()]
    keys = ["left::shoulder", "right::shoulder", "wrist"]
    assert [word for word in first_words if word in keys] == keys
    assert [model.joint(key).index for key in keys] == [0, 1, 2]


def test_what_is_unusual_is_said():
    model = two_arms()
    rows = {line.split(maxsplit=1)[0]: line for line in str(mbjax.lock_joint(model, "wrist")).splitlines() if line}
    assert rows["left::shoulder"].rstrip().endswith("no limit")
    assert rows["wrist"].rstrip().endswith("±2.5")
    assert "revolute, locked" in rows["wrist"]
    assert "locked" not in str(model)
    text = " ".join(str(model).split())
    assert "1 force element;" in text
    assert "gravity [0.0, 1.0, -9.0] m/s²; no gravity on right" in text


def test_traced_and_batched_models_print():
    model = two_arms()
    batch = jax.vmap(lambda mass: mbjax.set_mass(model, "tool", mass))(jnp.ones(3))
    seen = []
    jax.jit(lambda m: seen.append(str(m)) or m.parameters.gravity)(model)
    for text in (str(batch), *seen):
        assert "wrist" in text
        assert "–" in text
