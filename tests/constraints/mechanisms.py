"""Mechanisms with closed loops that the tests of constraints share, built once per session, with consistent states."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from pydrake.math import RollPitchYaw

import mbjax
from mbjax.constraints import BoundConstraintSet, ConstraintSet, ConstraintTerms, calc_constraint_terms
from mbjax.execution.worlds.many_worlds import for_worlds
from mbjax.kinematics import calc_position_kinematics, calc_velocity_kinematics
from tests.gradients.checks import compiled
from tests.models import ALL_KINDS, load_robot, random_tree

PLANAR = np.eye(6)[[3, 4]]  # translation along x and y
HINGE_ABOUT_Z = np.eye(6)[[0, 1, 3, 4, 5]]


@dataclasses.dataclass(frozen=True, eq=False)
class Mechanism:
    """A model, constraints on it, and a state that satisfies them."""

    model: mbjax.MultibodyModel
    cset: BoundConstraintSet
    q: jax.Array
    v: jax.Array


def constraint_terms(
    model: mbjax.MultibodyModel, cset: BoundConstraintSet, q: jax.Array, v: jax.Array
) -> ConstraintTerms:
    """All terms of one world, or under vmap of many."""
    return for_worlds(terms_inside, model, cset, q, v)


def terms_inside(model, cset, q, v) -> ConstraintTerms:
    position = calc_position_kinematics(model, q)
    return calc_constraint_terms(model, cset, position, calc_velocity_kinematics(model, position, q, v), q, v)


compiled_terms = compiled(constraint_terms)
compiled_poses = compiled(mbjax.body_poses_in_world)


def mechanism(model: mbjax.MultibodyModel, constraints: ConstraintSet, q, seed: int = 0) -> Mechanism:
    """With random velocities projected onto the constraints; q must satisfy them."""
    cset, q = constraints.bind(model), jnp.asarray(q, float)
    v = np.random.default_rng(seed).normal(size=model.num_velocities)
    terms = compiled_terms(model, cset, q, jnp.asarray(v))
    error, G = np.asarray(terms.error), np.asarray(terms.G)
    assert np.all(np.abs(error) < 1e-10), f"the state does not satisfy the constraints: {error}"
    return Mechanism(model, cset, q, jnp.asarray(v - np.linalg.pinv(G) @ (G @ v)))


def body_poses(model: mbjax.MultibodyModel, q) -> np.ndarray:
    """X_WB of all bodies, (nb, 4, 4)."""
    X_WB = compiled_poses(model, jnp.asarray(q, float))
    poses = np.tile(np.eye(4), (model.num_bodies, 1, 1))
    poses[:, :3, :3], poses[:, :3, 3] = X_WB.rotation, X_WB.translation
    return poses


def place(rpy, p) -> np.ndarray:
    """A pose as a 4x4 matrix."""
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = RollPitchYaw(rpy).ToRotationMatrix().matrix(), p
    return X


def link(plant: mbjax.MultibodyPlant, name: str, mass: float, com, size: float = 0.1) -> None:
    """A body with different moments of inertia about its centre of mass."""
    central = mbjax.RotationalInertia(*(mass * size**2 * np.array([1.0, 1.3, 1.1])))
    plant.add_rigid_body(name, mbjax.SpatialInertia.from_central_inertia(mass, np.asarray(com, float), central))


def hinge(plant: mbjax.MultibodyPlant, name: str, parent: str, child: str, at=(0.0, 0.0, 0.0), axis=(0, 0, 1)) -> None:
    """A revolute joint at a point of the parent and the child's origin."""
    plant.add_joint(mbjax.RevoluteJoint(name, parent, child, X_PF=np.asarray(at, float), axis=axis))


# Planar linkages in x-y, gravity along -y. Joint angles follow from one angle or point in closed form.

CRANK, COUPLER, ROCKER, GROUND = 0.3, 0.7, 0.9, 1.1
FOUR_BAR_LINKS = {"crank": (0.4, CRANK / 2), "coupler": (0.7, COUPLER / 2), "rocker": (1.0, ROCKER / 2)}  # mass, com x


def planar_plant(time_step: float) -> mbjax.MultibodyPlant:
    plant = mbjax.MultibodyPlant(time_step)
    plant.set_gravity([0.0, -9.81, 0.0])
    return plant


def triangle(x: jax.Array, y: jax.Array, a: float, b: float, side: float) -> jax.Array:
    """Direction from the origin of a link of length a whose tip is b away from (x, y); side +-1 picks one of two."""
    r2 = x * x + y * y
    return jnp.arctan2(y, x) + side * jnp.arccos((a * a + r2 - b * b) / (2.0 * a * jnp.sqrt(r2)))


def four_bar_positions(theta: jax.Array) -> jax.Array:
    """(crank angle, coupler angle from the crank, rocker angle) of the closed four-bar."""
    x, y = CRANK * jnp.cos(theta), CRANK * jnp.sin(theta)
    rocker = triangle(x - GROUND, y, ROCKER, COUPLER, -1.0)
    tip_x, tip_y = GROUND + ROCKER * jnp.cos(rocker), ROCKER * jnp.sin(rocker)
    return jnp.stack([theta, jnp.arctan2(tip_y - y, tip_x - x) - theta, rocker])


def four_bar_links(theta: jax.Array) -> list[tuple[float, float, jax.Array]]:
    """Mass, central moment about z, and (x, y, angle) of each link's centre of mass, for `reduced_acceleration`."""
    crank, coupler, rocker = four_bar_positions(theta)
    directions = {"crank": crank, "coupler": crank + coupler, "rocker": rocker}
    tip = CRANK * jnp.stack([jnp.cos(crank), jnp.sin(crank)])
    origins = {"crank": 0.0 * tip, "coupler": tip, "rocker": jnp.array([GROUND, 0.0])}
    return [planar_link(mass, com, origins[name], directions[name]) for name, (mass, com) in FOUR_BAR_LINKS.items()]


def planar_link(mass: float, com: float, origin: jax.Array, angle: jax.Array) -> tuple[float, float, jax.Array]:
    """A body made by `link` with its centre of mass at (com, 0)."""
    at = origin + com * jnp.stack([jnp.cos(angle), jnp.sin(angle)])
    return mass, 1.1 * mass * 0.1**2, jnp.append(at, angle)


def reduced_acceleration(links, theta: jax.Array, theta_rate: jax.Array, torque: jax.Array) -> jax.Array:
    """Lagrange's equation of one degree of freedom: m(theta) acceleration + m' rate² / 2 + V' = torque."""

    def inertia(theta):
        return sum(
            m * jnp.sum(r[:2] ** 2) + J * r[2] ** 2
            for (m, J, _), r in zip(links(theta), jax.jacfwd(lambda t: [x for *_, x in links(t)])(theta), strict=True)
        )

    def potential(theta):
        return sum(m * 9.81 * x[1] for m, _, x in links(theta))

    slope = jax.grad(inertia)(theta)
    return (torque - 0.5 * slope * theta_rate**2 - jax.grad(potential)(theta)) / inertia(theta)


@functools.partial(compiled, static_argnums=(0, 1))
def one_dof_state(positions, links, theta: float, theta_rate: float, torque: float) -> tuple[jax.Array, ...]:
    """q, v, vdot in closed form, of a linkage with positions(theta) whose first joint is the driven one."""

    def velocities(theta, rate):
        return jax.jvp(positions, (theta,), (rate,))[1]

    theta, rate = jnp.asarray(theta, float), jnp.asarray(theta_rate, float)
    acceleration = reduced_acceleration(links, theta, rate, torque)
    v, vdot = jax.jvp(velocities, (theta, rate), (rate, acceleration))
    return positions(theta), v, vdot


@functools.cache
def four_bar(theta: float = 0.8, time_step: float = 0.0) -> Mechanism:
    """Crank, coupler and rocker; the loop is closed by two rows, coupler tip to rocker tip."""
    plant = planar_plant(time_step)
    for name, (mass, com) in FOUR_BAR_LINKS.items():
        link(plant, name, mass, [com, 0.0, 0.0])
    hinge(plant, "crank_pivot", "world", "crank")
    hinge(plant, "coupler_pivot", "crank", "coupler", [CRANK, 0.0, 0.0])
    hinge(plant, "rocker_pivot", "world", "rocker", [GROUND, 0.0, 0.0])
    loop = ConstraintSet().add_loop_constraint(
        "rocker", "coupler", [ROCKER, 0.0, 0.0], [COUPLER, 0.0, 0.0], PLANAR, name="loop"
    )
    return mechanism(plant.finalize(), loop, four_bar_positions(jnp.asarray(theta)))


ROD = 0.8
SLIDER_CRANK_LINKS = {"crank": (0.4, CRANK / 2), "rod": (0.7, ROD / 2)}
SLIDER_MASS = 1.5


def slider_crank_positions(theta: jax.Array) -> jax.Array:
    """(crank angle, rod angle from the crank, slider position along x)."""
    x, y = CRANK * jnp.cos(theta), CRANK * jnp.sin(theta)
    slider = x + jnp.sqrt(ROD * ROD - y * y)
    return jnp.stack([theta, jnp.arctan2(-y, slider - x) - theta, slider])


def slider_crank_links(theta: jax.Array) -> list[tuple[float, float, jax.Array]]:
    """For `reduced_acceleration`."""
    crank, rod, slider = slider_crank_positions(theta)
    tip = CRANK * jnp.stack([jnp.cos(crank), jnp.sin(crank)])
    (m_crank, c_crank), (m_rod, c_rod) = SLIDER_CRANK_LINKS.values()
    return [
        planar_link(m_crank, c_crank, 0.0 * tip, crank),
        planar_link(m_rod, c_rod, tip, crank + rod),
        (SLIDER_MASS, 0.0, jnp.stack([slider, 0.0 * slider, 0.0 * slider])),
    ]


def slider_on_x(plant: mbjax.MultibodyPlant) -> None:
    link(plant, "slider", SLIDER_MASS, [0.0, 0.0, 0.0])
    plant.add_joint(mbjax.PrismaticJoint("slide", "world", "slider", axis=[1.0, 0.0, 0.0]))


@functools.cache
def slider_crank(theta: float = 0.8, time_step: float = 0.0) -> Mechanism:
    """The rod is a body, its tip at the slider."""
    plant = planar_plant(time_step)
    for name, (mass, com) in SLIDER_CRANK_LINKS.items():
        link(plant, name, mass, [com, 0.0, 0.0])
    hinge(plant, "crank_pivot", "world", "crank")
    hinge(plant, "rod_pivot", "crank", "rod", [CRANK, 0.0, 0.0])
    slider_on_x(plant)
    loop = ConstraintSet().add_loop_constraint("slider", "rod", None, [ROD, 0.0, 0.0], PLANAR, name="loop")
    return mechanism(plant.finalize(), loop, slider_crank_positions(jnp.asarray(theta)))


def distance_rod_positions(theta: jax.Array) -> jax.Array:
    """(crank angle, slider position)."""
    return slider_crank_positions(theta)[jnp.array([0, 2])]


def distance_rod_links(theta: jax.Array) -> list[tuple[float, float, jax.Array]]:
    """For `reduced_acceleration`."""
    crank, _, slider = slider_crank_links(theta)
    return [crank, slider]


@functools.cache
def slider_crank_with_distance_rod(theta: float = 0.8, time_step: float = 0.0) -> Mechanism:
    """The rod is a distance between crank tip and slider."""
    plant = planar_plant(time_step)
    mass, com = SLIDER_CRANK_LINKS["crank"]
    link(plant, "crank", mass, [com, 0.0, 0.0])
    hinge(plant, "crank_pivot", "world", "crank")
    slider_on_x(plant)
    rod = ConstraintSet().add_distance_constraint("crank", [CRANK, 0, 0], "slider", np.zeros(3), ROD, name="rod")
    return mechanism(plant.finalize(), rod, distance_rod_positions(jnp.asarray(theta)))


@functools.cache
def five_bar(x: float = 0.25, y: float = 0.6, time_step: float = 0.0) -> Mechanism:
    """Two arms of two links whose tips are joined at (x, y): two degrees of freedom."""
    upper, lower, width = 0.4, 0.5, 0.5
    plant = planar_plant(time_step)
    q = []
    for side, base, sign in (("left", 0.0, 1.0), ("right", width, -1.0)):
        link(plant, f"{side}_upper", 0.6, [upper / 2, 0.01, 0.0])
        link(plant, f"{side}_lower", 0.5, [lower / 2, 0.0, 0.02])
        hinge(plant, f"{side}_shoulder", "world", f"{side}_upper", [base, 0.0, 0.0])
        hinge(plant, f"{side}_elbow", f"{side}_upper", f"{side}_lower", [upper, 0.0, 0.0])
        first = triangle(jnp.asarray(x - base), jnp.asarray(y), upper, lower, sign)
        second = jnp.arctan2(y - upper * jnp.sin(first), x - base - upper * jnp.cos(first)) - first
        q += [first, second]
    tip = np.array([lower, 0.0, 0.0])
    loop = ConstraintSet().add_loop_constraint("left_lower", "right_lower", tip, tip, PLANAR, name="tip")
    return mechanism(plant.finalize(), loop, jnp.stack(q))


# Spatial mechanisms


@functools.cache
def stewart_platform(time_step: float = 0.0) -> Mechanism:
    """A floating platform on six legs of universal and prismatic joints, each ending in a ball: six dofs."""
    plant = mbjax.MultibodyPlant(time_step)
    link(plant, "platform", 5.0, [0.01, 0.02, 0.0], 0.4)
    X_WB = place([0.1, -0.2, 0.3], [0.05, -0.04, 0.9])
    plant.set_default_free_body_pose("platform", X_WB)
    angles = np.pi / 3.0 * np.arange(6)
    constraints, positions = ConstraintSet(), {}
    for i in range(6):
        base = np.append(np.array([np.cos(angles[i] + 0.3), np.sin(angles[i] + 0.3)]), 0.0)
        anchor = 0.5 * np.append(np.array([np.cos(angles[i]), np.sin(angles[i])]), -0.1)
        link(plant, f"lower_{i}", 0.5, [0.0, 0.0, 0.2])
        link(plant, f"upper_{i}", 0.4, [0.0, 0.0, -0.2])
        plant.add_joint(mbjax.UniversalJoint(f"base_{i}", "world", f"lower_{i}", X_PF=base))
        plant.add_joint(mbjax.PrismaticJoint(f"leg_{i}", f"lower_{i}", f"upper_{i}", axis=[0.0, 0.0, 1.0]))
        constraints.add_ball_constraint(f"upper_{i}", np.zeros(3), "platform", anchor, name=f"ball_{i}")
        leg = X_WB[:3, :3] @ anchor + X_WB[:3, 3] - base
        length = np.linalg.norm(leg)
        x, y, z = leg / length
        positions[f"base_{i}"], positions[f"leg_{i}"] = [np.arctan2(-y, z), np.arcsin(x)], [length]
    model = plant.finalize()
    q = np.array(mbjax.default_positions(model))
    for name, value in positions.items():
        q[model.joint(name).q] = value
    return mechanism(model, constraints, q)


@functools.cache
def spring_leg(time_step: float = 0.0) -> Mechanism:
    """A floating pelvis with a leg like Cassie's: sprung shin and heel; a rod to the heel and a four-bar to the toe.

    The two loops share the branch hip, knee, shin, tarsus. They are closed in the configuration given here.
    """
    plant = mbjax.MultibodyPlant(time_step)
    y = (0.0, 1.0, 0.0)
    for name, mass, com in (
        ("pelvis", 10.0, [0.0, 0.02, 0.05]),
        ("thigh", 3.0, [0.0, 0.03, -0.2]),
        ("knee", 0.8, [0.02, 0.0, -0.05]),
        ("shin", 0.6, [0.0, 0.0, -0.2]),
        ("tarsus", 0.8, [0.01, 0.0, -0.18]),
        ("heel", 0.2, [-0.05, 0.0, 0.0]),
        ("rod", 0.3, [0.0, 0.0, -0.2]),
        ("plantar_crank", 0.2, [0.03, 0.0, 0.0]),
        ("plantar_rod", 0.2, [0.0, 0.0, -0.15]),
        ("toe", 0.3, [0.05, 0.0, 0.0]),
    ):
        link(plant, name, mass, com, 0.06)
    hinge(plant, "roll", "pelvis", "thigh", [0.0, 0.1, -0.05], (1.0, 0.0, 0.0))
    hinge(plant, "knee_pitch", "thigh", "knee", [0.02, 0.0, -0.4], y)
    hinge(plant, "shin_spring", "knee", "shin", [0.05, 0.0, -0.05], y)
    hinge(plant, "ankle", "shin", "tarsus", [0.0, 0.01, -0.4], y)
    hinge(plant, "heel_spring", "tarsus", "heel", [-0.03, 0.0, 0.02], y)
    plant.add_joint(mbjax.UniversalJoint("rod_pivot", "thigh", "rod", X_PF=np.array([-0.05, 0.03, -0.02])))
    hinge(plant, "crank", "tarsus", "plantar_crank", [0.02, 0.0, -0.02], y)
    hinge(plant, "plantar_rod_pivot", "plantar_crank", "plantar_rod", [0.06, 0.0, 0.0], y)
    hinge(plant, "toe_pitch", "tarsus", "toe", [0.0, 0.0, -0.35], y)
    plant.add_force_element(mbjax.RevoluteSpring("shin_spring", 0.1, 1500.0))
    plant.add_force_element(mbjax.RevoluteSpring("heel_spring", -0.2, 1250.0))
    model = plant.finalize()
    q = np.array(mbjax.default_positions(model))
    for name, value in {
        "pelvis": [0.98, 0.05, -0.1, 0.08, 0.1, -0.2, 1.0],
        "roll": [0.1],
        "knee_pitch": [0.6],
        "shin_spring": [0.12],
        "ankle": [-1.1],
        "heel_spring": [-0.15],
        "rod_pivot": [0.05, 0.4],
        "crank": [0.7],
        "plantar_rod_pivot": [-0.3],
        "toe_pitch": [0.9],
    }.items():
        q[model.joint(name).q] = value
    heel, toe = np.array([-0.1, 0.0, 0.01]), np.array([0.0, 0.0, -0.3])
    X_WB = body_poses(model, q)

    def point_in(body: str, p: np.ndarray, other: str) -> np.ndarray:
        X = np.linalg.inv(X_WB[model.body_index(other)]) @ X_WB[model.body_index(body)]
        return X[:3, :3] @ p + X[:3, 3]

    p_RodHeel, p_ToeRod = point_in("heel", heel, "rod"), point_in("plantar_rod", toe, "toe")
    in_plane = np.eye(6)[[3, 5]]
    constraints = ConstraintSet()
    constraints.add_ball_constraint("rod", p_RodHeel, "heel", heel, name="heel")
    constraints.add_loop_constraint("toe", "plantar_rod", p_ToeRod, toe, in_plane, name="toe")
    return mechanism(model, constraints, q)


A1_FEET = ("FR_foot", "FL_foot", "RR_foot", "RL_foot")


@functools.cache
def quadruped(time_step: float = 0.0) -> Mechanism:
    """Unitree A1 standing on four point feet: twelve rows."""
    model = load_robot("a1_description/urdf/a1.urdf", "floating", time_step)
    constraints = ConstraintSet()
    for foot in A1_FEET:
        constraints.add_contact_constraint(foot, np.zeros(3), np.eye(3), name=foot)
    q = np.array(mbjax.default_positions(model))
    for joint in model.layout.joints:
        for part, angle in (("hip", 0.05), ("thigh", 0.8), ("calf", -1.6)):
            if joint.num_velocities == 1 and part in joint.name:
                q[joint.q] = angle
    q[model.position_names().index(next(n for n in model.position_names() if n.endswith("_z")))] = 0.3
    return mechanism(model, constraints, q)


@functools.cache
def random_mechanism(seed: int, num_loops: int = 2, kinds: tuple[str, ...] = ALL_KINDS) -> Mechanism:
    """A random tree with one joint of each kind, and loops of 1 to 5 random axes between random pairs of its bodies."""
    rng = np.random.default_rng(seed)
    model = random_tree(seed, kinds).model
    q = mbjax.random_state_within_limits(model, jax.random.key(seed)).q
    X_WB = body_poses(model, q)
    constraints = ConstraintSet()
    while len(constraints.constraints) < num_loops:
        A, B = rng.choice(model.num_bodies, 2, replace=False)
        if model.body(int(A)).mobod_index == model.body(int(B)).mobod_index:
            continue
        X_AP = place(rng.normal(size=3), rng.normal(size=3))
        X_BS = np.linalg.inv(X_WB[B]) @ X_WB[A] @ X_AP
        axes = np.eye(6)[np.sort(rng.choice(6, rng.integers(1, 6), replace=False))]
        constraints.add_loop_constraint(int(A), int(B), X_AP, X_BS, axes)
    return mechanism(model, constraints, q)


ZOO_KINDS = ("quaternion_floating", "revolute", "universal", "prismatic", "planar", "ball_rpy")


def zoo_constraints(rng: np.random.Generator, last: int) -> ConstraintSet:
    """Every kind and variant, between bodies of one tree, of two, and of the world; not satisfied anywhere."""

    def pose() -> np.ndarray:
        return place(0.7 * rng.normal(size=3), rng.normal(size=3))

    def point() -> np.ndarray:
        return rng.normal(size=3)

    def rows(*chosen: int) -> np.ndarray:
        return np.eye(6)[list(chosen)]

    screw = [[0.3, -0.5, 0.8, 0.2, 0.1, -0.4], [0.0, 0.0, 0.0, 1.0, 2.0, 0.5]]
    hinge = np.array([[1.0, 0.2, 0.0, 0, 0, 0], [0.3, 0.9, 0.1, 0, 0, 0], *rows(3, 4, 5)])
    held = np.array([0.9, 0.2, -0.3, 0.1, 0.4, -0.2, 0.6])
    return (
        ConstraintSet()
        .add_loop_constraint(1, last, pose(), pose(), rows(3, 5), name="free")
        .add_loop_constraint(2, 4, pose(), pose(), hinge, name="hinge", stabilization_time=None)
        .add_contact_constraint(4, point(), [[0.3, 0.1, 2.0], [1.0, 0.0, 0.0]], name="contact")
        .add_loop_constraint(0, 3, pose(), pose(), hinge, name="hinge on world")
        .add_loop_constraint(last, 0, pose(), pose(), rows(4), name="world on successor")
        .add_custom_constraint(lambda model, q: jnp.sin(q[:3] + q[4:7]), 3, name="custom")
        .add_loop_constraint(3, 6, pose(), pose(), screw, name="screw")
        .add_distance_constraint(5, point(), 2, point(), 0.4, name="distance")
        .add_coupler_constraint("joint1", "joint3", -1.7, 0.2, name="coupler", stabilization_time=0.02)
        .add_weld_constraint(1, pose(), 5, pose(), name="weld")
        .add_lock_constraint("joint0", held, name="lock")
        .add_lock_constraint("joint5", name="lock of velocity")
        .add_ball_constraint(6, point(), last, point(), name="ball")
        .add_ball_constraint(6, point(), 0, name="ball at default")
        .add_custom_constraint(
            lambda model, q, v, p: p * (v[:2] * q[2:4] + v[3:5]), 2, "velocity", np.array([0.4, 2.0])
        )
        .add_contact_constraint(last, point(), np.eye(3), name="point contact")
    )


@functools.cache
def zoo(seed: int = 7) -> Mechanism:
    """All kinds at once on a tree with joints of many kinds and another body that floats, at a random state."""
    model = random_tree(seed, ZOO_KINDS).model
    cset = zoo_constraints(np.random.default_rng(seed), model.num_bodies - 1).bind(model)
    state = mbjax.random_state_within_limits(model, jax.random.key(seed))
    return Mechanism(model, cset, state.q, state.v)
