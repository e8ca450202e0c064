"""A tree with joints that mimic others, beside the same tree with all joints free, and the maps between the two.

In the free model q_all = E_q q + c and v_all = E_v v, so that forces are Eᵀ tau_all and Jacobians J_all E.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import mbjax

BOX = mbjax.SpatialInertia.solid_box_with_mass(1.3, 0.3, 0.5, 0.1).shift(np.array([-0.1, 0.05, 0.2]))
RELATIONS = {
    "j3": ("j1", -0.7, 0.05),
    "j4": ("j0", 1.3, -0.2),
    "j5": ("j3", -0.6, 0.1),
}  # of them j5 follows a follower
JOINTS = {  # parent, kind, axis; b2 floats and carries b4
    "j0": ("world", mbjax.RevoluteJoint, [0, 1, 0]),
    "j1": ("b0", mbjax.RevoluteJoint, [0.2, 1, 0]),
    "j3": ("b0", mbjax.PrismaticJoint, [1, 0.3, 0.2]),
    "j4": ("b2", mbjax.RevoluteJoint, [0.1, 0.4, 1]),
    "j5": ("b1", mbjax.RevoluteJoint, [1, 0.2, 0.3]),
    "j6": ("b3", mbjax.RevoluteJoint, [0, 0, 1]),
}


@functools.cache
def make_model(relation: str, time_step: float = 0.01, friction: float = 0.05) -> mbjax.MultibodyModel:
    """`relation` is "mimic", "couple" or "free"; `friction` grows from joint to joint by this."""
    plant = mbjax.MultibodyPlant(time_step)
    for i in range(7):
        plant.add_rigid_body(f"b{i}", BOX)
    for i, (name, (parent, kind, axis)) in enumerate(JOINTS.items()):
        X_PF = mbjax.RigidTransform.from_rpy_xyz(0.1 * np.array([i, 2, -i]), np.array([0.05 * i, 0.02, -0.3]))
        limits = (-1.0, 1.0) if name == "j5" else None
        options = {"damping": 0.1 * i + 0.1, "friction": friction * i, "position_limits": limits}
        plant.add_joint(kind(name, parent, f"b{name[1]}", axis=axis, X_PF=X_PF, **options))
    for i, name in enumerate(("j0", "j1", "j3")):
        limit = (1.0, 100.0, 4.0)[i]
        plant.add_joint_actuator(f"m{i}", name, limit, kp=30.0, kd=5.0, rotor_inertia=0.01, gear_ratio=3.0)
    plant.add_force_element(mbjax.LinearSpringDamper("b4", [0.1, 0.2, 0.3], "b3", [0.2, 0.1, 0.0], 0.3, 30.0, 2.0))
    plant.add_force_element(mbjax.RevoluteSpring("j4", 0.3, 5.0))
    plant.add_force_element(mbjax.PrismaticSpring("j3", 0.3, 5.0))
    plant.add_coupler_constraint("j0", "j6", gear_ratio=2.0)
    if relation == "mimic":
        for follower in ("j5", "j3", "j4"):  # the chain in any order
            plant.add_mimic(follower, *RELATIONS[follower])
    if relation == "couple":
        for follower, of in RELATIONS.items():
            plant.add_coupler_constraint(follower, *of, name=follower)
    for body, shape in {"world": mbjax.HalfSpace(), "b5": mbjax.Sphere(0.1)}.items():
        plant.register_collision_geometry(body, mbjax.Geometry(f"{body}_shape", shape), 0.5)
    return plant.finalize()


def elimination(names: tuple[str, ...], all_names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """E and c from the names of coordinates, with and without mimics."""
    E, c = np.zeros((len(all_names), len(names))), np.zeros(len(all_names))
    for row, name in enumerate(all_names):
        stem, suffix = name.rsplit("_", 1)
        joint, multiplier, offset = stem.rsplit("_", 1)[-1], 1.0, 0.0
        while joint in RELATIONS:  # q = m q' + o with q' = m' q'' + o'
            joint, m, o = RELATIONS[joint]
            multiplier, offset = multiplier * m, multiplier * o + offset
        own = [k for k, n in enumerate(names) if n.rsplit("_", 1)[0].endswith(joint)]
        column = own[0] if len(own) == 1 else names.index(f"{stem}_{suffix}")
        E[row, column], c[row] = multiplier, offset
    return E, c


@functools.cache
def maps() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """E_q, c, E_v."""
    mimic, free = make_model("mimic"), make_model("free")
    E_q, c = elimination(mimic.position_names(), free.position_names())
    E_v, _ = elimination(mimic.velocity_names(), free.velocity_names())
    return E_q, c, E_v


def state() -> tuple[jax.Array, jax.Array]:
    """q and v of the model with mimics, with every joint away from zero; its quaternion is not of unit length."""
    rng = np.random.default_rng(1)
    q = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5]) + 0.4 * rng.normal(size=10)
    return jnp.asarray(q), jnp.asarray(rng.normal(size=9))
