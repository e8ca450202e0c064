"""Contact of deformable bodies with rigid shapes: closed forms, derivatives, batches, grips, who may touch."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.contact import calc_node_points
from mbjax.kinematics import calc_position_kinematics
from mbjax.simulation.discrete_acceleration import calc_discrete_acceleration
from tests.gradients.checks import WHOLE_RUN

from ..deformable_meshes import box_mesh
from .deformable_plants import DT, foam
from .test_deformable_derivatives import check

CELLS, SIDE, MODULUS = (2, 2, 2), 0.06, 1e6
TILT = np.array([[0.9553364891, 0.0, 0.2955202067], [0.0, 1.0, 0.0], [-0.2955202067, 0.0, 0.9553364891]])
TILT = TILT @ np.array([[1.0, 0.0, 0.0], [0.0, 0.9800665778, -0.1986693308], [0.0, 0.1986693308, 0.9800665778]])
TILT = np.linalg.qr(TILT)[0] * np.sign(np.diag(np.linalg.qr(TILT)[1]))  # no face stands upright, where forces jump
PLACE = np.array([0.31, 0.12, 0.058])  # above no edge within the field of the ground
PLACE_OF_BALL = [0.315, 0.12, 0.119]


def middle(mesh: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The mesh with its middle at the origin."""
    return mesh[0] - 0.5 * (mesh[0].max(axis=0) + mesh[0].min(axis=0)), mesh[1]


BLOCK = middle(box_mesh(CELLS, (SIDE, SIDE, SIDE)))


def rubber(friction: float = 0.5) -> mbjax.ProximityProperties:
    return mbjax.ProximityProperties(friction, hunt_crossley_dissipation=1.0)


def compliant(friction: float = 0.5, hint: float | None = None) -> mbjax.ProximityProperties:
    return rubber(friction).add_compliant_hydroelastic_properties(hint, MODULUS)


def at(x: Any) -> mbjax.RigidTransform:
    return mbjax.RigidTransform(jnp.eye(3), jnp.asarray(x, float))


def ground_plant(approximation: str = "sap", friction: float = 0.5, **more: Any) -> mbjax.MultibodyPlant:
    """Ground as the top of a large box."""
    plant = mbjax.MultibodyPlant(DT, discrete_contact_approximation=approximation, **more)
    plant.register_collision_geometry(
        plant.world_body, at([0, 0, -0.5]), mbjax.Box((2.0, 2.0, 1.0)), "ground", compliant(friction)
    )
    return plant


def add_ball(plant: mbjax.MultibodyPlant, friction: float = 0.5) -> None:
    ball = plant.add_rigid_body("ball", mbjax.SpatialInertia.solid_sphere_with_mass(0.1, 0.02))
    plant.register_collision_geometry(
        ball, mbjax.RigidTransform.identity(), mbjax.Sphere(0.02), "ball", compliant(friction, 0.02)
    )


def block_and_ball(approximation: str, friction: float, law: str = "linear_corotated") -> tuple[Any, Any]:
    """A tilted block that falls on the ground, with a ball that falls on it; the model and its state."""
    plant = ground_plant(approximation, friction)
    add_ball(plant, friction)
    pose = mbjax.RigidTransform(jnp.asarray(TILT), jnp.asarray(PLACE))
    plant.add_deformable_body("block", BLOCK, foam(law), pose=pose, properties=rubber(friction))
    model = plant.finalize()
    return model, mbjax.set_free_body_pose(model, mbjax.default_state(model), "ball", at(PLACE_OF_BALL))


@pytest.mark.whole_run("blocks that fall on the ground and on one another as in Drake")
def test_a_half_space_is_the_top_of_a_box_with_the_same_gradient() -> None:
    """In closed form, against the mesh of the box where a block is above one element of it."""
    states = []
    for half_space in (True, False):
        plant = mbjax.MultibodyPlant(DT)
        if half_space:
            soft = rubber().add_compliant_hydroelastic_properties_for_half_space(0.5, MODULUS)
            plant.register_collision_geometry(
                plant.world_body, mbjax.RigidTransform.identity(), mbjax.HalfSpace(), "ground", soft
            )
        else:
            plant = ground_plant()
        block = middle(box_mesh((1, 1, 1), (0.03, 0.03, 0.03)))
        pose = mbjax.RigidTransform(jnp.asarray(TILT), jnp.array([0.31, 0.12, 0.024]))
        plant.add_deformable_body("block", block, foam("neo_hookean"), pose=pose, properties=rubber())
        model = plant.finalize()
        trajectory = mbjax.rollout(model, mbjax.default_state(model), num_steps=30)
        states.append(trajectory.final_state.nodes.position)
    np.testing.assert_allclose(states[0], states[1], rtol=0, atol=1e-10)


@pytest.mark.whole_run(
    "blocks that fall on one another as in Drake, and areas and pressures in test_deformable_surfaces.py"
)
def test_forces_are_pressures_times_areas_and_balance() -> None:
    """A ball on a block on the ground: action is reaction, momentum changes by what acts, weights are carried."""
    model, state = block_and_ball("sap", 0.5)
    step = jax.jit(lambda state: mbjax.step(model, state))
    for _ in range(30):
        state, _ = step(state)
    before = mbjax.deformable_momentum(model, state)
    after, outputs = step(state)
    contacts = outputs.deformable_contacts
    ground, ball = (contacts.of(model, "block", name) for name in ("world::ground", "ball::ball"))
    scoped = "DefaultModelInstance::block"
    assert contacts.names(model) == ((scoped, "world::ground"), (scoped, "ball::ball"))
    block_mass = float(before.mass[0])
    velocity = mbjax.deformable_momentum(model, after).velocity[0]
    change = block_mass * (velocity - before.velocity[0] + DT * 0.1 * velocity)  # with the mass damping
    weight = jnp.array([0.0, 0.0, -9.81 * block_mass])
    on_block = -(ground.spatial_force + ball.spatial_force)[3:]
    np.testing.assert_allclose(change, DT * (weight + on_block), rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        0.1 * (after.v[3:] - state.v[3:]), DT * (ball.spatial_force[3:] + jnp.array([0.0, 0.0, -0.981])), atol=1e-13
    )
    np.testing.assert_allclose(outputs.generalized_contact_forces[3:], ball.spatial_force[3:], atol=1e-13)
    floating = outputs.reaction_forces[0]
    np.testing.assert_allclose(floating, 0.0, atol=1e-10)  # nothing but contacts and weight moves the ball
    x = np.asarray(state.nodes.position)
    depth = np.maximum(-x[:, 2], 0.0)
    assert float(ground.area) > 1e-5
    assert float(contacts.pressure.max()) > 0.0
    assert abs(float(ground.centroid[2])) < depth.max()
    assert "DeformableContacts" in str(contacts)
    assert "DeformableContacts" in str(outputs)
    with pytest.raises(mbjax.ModelError, match="may not touch"):
        dataclasses.replace(contacts, pairs=((0, 0),), sizes=(1,)).of(model, "block", "ball::ball")


def numbers_in_contact(model: mbjax.MultibodyModel) -> Any:
    """The numbers that contact of the block reads, of both sides."""
    deformables, collision = model.deformables, model.collision
    assert deformables is not None
    return (
        (deformables.youngs_modulus, deformables.mass_density, deformables.stiffness_damping),
        (deformables.dynamic_friction, deformables.hunt_crossley_dissipation, deformables.relaxation_time),
        deformables.reference_positions,
        (collision.dynamic_friction, collision.relaxation_time, collision.hydroelastic_modulus, collision.size),
        (collision.translation, model.parameters.gravity, model.parameters.body_mass),
    )


def with_numbers_in_contact(model: mbjax.MultibodyModel, numbers: Any) -> mbjax.MultibodyModel:
    (E, rho, beta), (mu, d, tau), rest, (mu_B, tau_B, modulus, size), (p_BG, gravity, mass) = numbers
    deformables = dataclasses.replace(
        model.deformables,
        youngs_modulus=E,
        mass_density=rho,
        stiffness_damping=beta,
        dynamic_friction=mu,
        hunt_crossley_dissipation=d,
        relaxation_time=tau,
        reference_positions=rest,
    )
    collision = dataclasses.replace(
        model.collision,
        dynamic_friction=mu_B,
        relaxation_time=tau_B,
        hydroelastic_modulus=modulus,
        size=size,
        translation=p_BG,
    )
    parameters = dataclasses.replace(model.parameters, gravity=gravity, body_mass=mass)
    return dataclasses.replace(model, deformables=deformables, collision=collision, parameters=parameters)


@pytest.mark.whole_run("gradients of two bodies that touch")
@pytest.mark.parametrize(("approximation", "law"), [("sap", "linear_corotated"), ("similar", "neo_hookean")])
def test_derivatives_of_steps_with_contact(approximation: str, law: str) -> None:
    """Of a block that a ball lies on, which slides over the ground, by the state and by the numbers of both sides."""
    plant = ground_plant(approximation)
    add_ball(plant)
    pose = mbjax.RigidTransform(jnp.asarray(TILT), jnp.array([0.31, 0.12, 0.019]))
    small = middle(box_mesh((1, 1, 1), (0.03, 0.03, 0.03)))
    plant.add_deformable_body("block", small, foam(law), pose=pose, properties=rubber())
    model = plant.finalize()
    state = mbjax.set_free_body_pose(model, mbjax.default_state(model), "ball", at([0.312, 0.118, 0.049]))
    rng = np.random.default_rng(1)
    v = 0.1 * rng.normal(size=state.nodes.velocity.shape) + [0.4, 0.1, -0.3]
    state = mbjax.State(state.q, state.v + 0.1, state.time, mbjax.NodeState(state.nodes.position, jnp.asarray(v)))
    contacts = mbjax.step(model, state)[1].deformable_contacts
    assert contacts.of(model, "block", "ball::ball").area > 1e-6
    assert contacts.of(model, "block", "world::ground").area > 1e-6
    weights = jnp.array(rng.normal(size=v.shape))

    def loss(at: Any) -> jax.Array:
        numbers, state = at
        after, outputs = mbjax.step(with_numbers_in_contact(model, numbers), state)
        read = jnp.sum(weights * (after.nodes.position + 0.1 * after.nodes.velocity)) + jnp.sum(jnp.sin(after.q))
        return read + jnp.sum(after.v) + 1e-2 * jnp.sum(outputs.deformable_contacts.force[:, 0])

    check(loss, (numbers_in_contact(model), state), 1e-6, h=2e-6)


@pytest.mark.whole_run("first derivatives of two bodies that touch")
def test_hessian_vector_products_of_a_step_with_contact() -> None:
    """By the nodes' positions and velocities, beside differences of gradients."""
    plant = ground_plant()
    pose = mbjax.RigidTransform(jnp.asarray(TILT), jnp.array([0.31, 0.12, 0.019]))
    small = middle(box_mesh((1, 1, 1), (0.03, 0.03, 0.03)))
    plant.add_deformable_body("block", small, foam("linear_corotated"), pose=pose, properties=rubber())
    model = plant.finalize()
    state = mbjax.default_state(model)
    rng = np.random.default_rng(7)
    weights = jnp.array(rng.normal(size=state.nodes.position.shape))
    v = jnp.array(0.1 * rng.normal(size=weights.shape) + [0.4, 0.1, -0.3])

    def loss(nodes: Any) -> jax.Array:
        after = mbjax.step(model, mbjax.State(state.q, state.v, state.time, mbjax.NodeState(*nodes)))[0].nodes
        return jnp.sum(weights * after.velocity) + jnp.sum(weights * jnp.sin(after.position))

    nodes = (state.nodes.position, v)
    along = tuple(jnp.array(size * rng.normal(size=v.shape)) for size in (1e-2, 1.0))
    found = jax.jit(lambda x: jax.jvp(jax.grad(loss), (x,), (along,))[1])(nodes)
    gradient, h = jax.jit(jax.grad(loss)), 1e-5
    ahead, behind = (gradient(jax.tree.map(lambda x, d, h=h: x + h * d, nodes, along)) for h in (h, -h))
    for product, a, b in zip(found, ahead, behind, strict=True):
        np.testing.assert_allclose(product, (a - b) / (2 * h), rtol=0, atol=1e-6 * float(jnp.abs(product).max()))


def gripper(dtype: Any = None, **more: Any) -> tuple[Any, float]:
    """Two fingers with pads on a hand that moves up, coupled, and a box on a table; the model, and its weight in N."""
    plant = mbjax.MultibodyPlant(DT, **more)
    hand = plant.add_rigid_body("hand", mbjax.SpatialInertia.solid_cube_with_mass(0.5, 0.05))
    lift = mbjax.PrismaticJoint("lift", plant.world_frame, plant.frame(hand), axis=[0.0, 0.0, 1.0], damping=1.0)
    plant.add_joint_actuator("lift", plant.add_joint(lift))
    joints, pad = [], box_mesh((1, 2, 2), (0.02, 0.03, 0.03))
    for name, side in (("left", 1.0), ("right", -1.0)):
        finger = plant.add_rigid_body(name, mbjax.SpatialInertia.solid_cube_with_mass(0.1, 0.02))
        frame = plant.add_frame(f"{name}_frame", plant.frame(hand), at([-0.06 * side, 0.0, 0.0]))
        joint = mbjax.PrismaticJoint(
            name, frame, plant.frame(finger), axis=[side, 0.0, 0.0], position_limits=(-0.01, 0.05), damping=5.0
        )
        joints.append(plant.add_joint(joint))
        plant.add_joint_actuator(name, joints[-1])
        order = [0, 1, 2, 3] if side > 0 else [1, 0, 2, 3]  # a mirror turns elements inside out
        mesh = (pad[0] - [0.0, 0.015, 0.015]) * [side, 1.0, 1.0], pad[1][:, order]
        plant.add_deformable_body(
            f"{name}_pad",
            mesh,
            mbjax.DeformableMaterial(1e5, 0.4, 500.0, 0.0, 0.01),
            pose=at([-0.06 * side, 0.0, 0.0]),
            properties=rubber(1.0),
        )
        plant.add_fixed_constraint(f"{name}_pad", finger, shape=mbjax.Box((0.002, 0.1, 0.1)))
    plant.exclude_collisions_between("left_pad", "right_pad")  # the box is between them
    plant.add_coupler_constraint(*joints, 1.0)
    box = plant.add_rigid_body("box", mbjax.SpatialInertia.solid_cube_with_mass(0.1, 0.05))
    plant.register_collision_geometry(
        box, mbjax.RigidTransform.identity(), mbjax.Box((0.05, 0.05, 0.05)), "box", compliant(0.8)
    )
    plant.register_collision_geometry(
        plant.world_body, at([0.0, 0.0, -0.525]), mbjax.Box((1.0, 1.0, 1.0)), "table", 0.5
    )
    model = plant.finalize() if dtype is None else plant.finalize(dtype=dtype)
    return model, 9.81 * (0.7 + 2 * 500.0 * 0.02 * 0.03**2)


@pytest.mark.whole_run("blocks that fall on one another as in Drake")
@pytest.mark.parametrize(
    ("dtype", "max_contacts"),
    [(None, None), (jnp.float32, 8)],
)
def test_soft_pads_lift_a_box(dtype: Any, max_contacts: int | None) -> None:
    """Beside joint limits, a coupler, actuators, and contact of the box with the table at points."""
    model, weight = gripper(dtype, max_contacts=max_contacts)
    efforts = jnp.array([[weight + lift, 6.0, 6.0] for lift in (0.0, 1.6) for _ in range(40)], model.dtype)

    def advance(state: Any, u: Any) -> Any:
        after, outputs = mbjax.step(model, state, u)
        return after, (outputs.deformables_converged, outputs.generalized_acceleration, outputs.deformable_contacts)

    state, (converged, vdot, contacts) = jax.jit(lambda s: jax.lax.scan(advance, s, efforts))(
        mbjax.default_state(model)
    )
    assert converged.all()
    height, (hand, left, right) = float(state.q[-1]), (float(x) for x in state.q[:3])
    assert height > 0.01
    assert abs(height - hand) < 1e-3  # the box does not slip
    assert abs(left - right) < 1e-4
    pads = [contacts.of(model, f"{name}_pad", "box::box").spatial_force[-1] for name in ("left", "right")]
    up = sum(float(pad[5]) for pad in pads)
    np.testing.assert_allclose(up, 0.1 * (float(vdot[-1, -1]) + 9.81), rtol=1e-9 if dtype is None else 1e-3)
    np.testing.assert_allclose([pads[0][3], -pads[1][3]], 6.0, rtol=0.05)


@pytest.mark.whole_run("steps beside Drake's converge; what is left out is counted where bodies touch each other")
def test_a_block_at_rest_takes_few_iterations_and_points_without_slots_are_counted() -> None:
    """Its points stick and slip by turns: 30 iterations and more, were the direction of friction not an unknown."""
    plant = ground_plant()
    plant.add_deformable_body("block", BLOCK, foam("linear_corotated"), pose=at([0, 0, 0.0299]), properties=rubber())
    model = plant.finalize()
    state = mbjax.rollout(model, mbjax.default_state(model), num_steps=30).final_state

    def find(model: Any) -> Any:
        acceleration, found, _ = calc_discrete_acceleration(model, state, mbjax.Inputs())
        return acceleration.nodes.contacts, found

    contacts, found = jax.jit(find)(model)
    assert bool(found.converged)
    assert 2 < int(found.num_iterations) < 16
    assert int(contacts.num_left_out[0]) == 0
    layout = model.deformables.layout
    pair = dataclasses.replace(layout.contacts[0], max_nodes=5)  # of nine on the ground
    few = eqx.tree_at(
        lambda m: m.deformables,
        model,
        dataclasses.replace(model.deformables, layout=dataclasses.replace(layout, contacts=(pair,))),
    )
    fewer, found = jax.jit(find)(few)
    assert bool(found.converged)
    assert int(fewer.num_left_out[0]) + int(fewer.is_active.sum()) == int(contacts.is_active.sum())
    assert int(fewer.num_left_out[0]) > 0
    assert bool(jnp.all(jnp.isfinite(fewer.force)))


@pytest.mark.whole_run("single worlds that fall as in Drake; broken ones in tests/contact/test_drops.py")
def test_batches_with_contact_equal_single_worlds_and_a_bad_world_harms_no_other() -> None:
    model, state = block_and_ball("sap", 0.5)
    state = mbjax.rollout(model, state, num_steps=20).final_state
    shifts = jnp.array([0.0, 1e-4, 2e-4])
    states = [
        dataclasses.replace(state, nodes=mbjax.NodeState(state.nodes.position - dz, state.nodes.velocity))
        for dz in shifts
    ]
    many = jax.tree.map(lambda *x: jnp.stack(x), *states)
    broken = dataclasses.replace(
        many, nodes=mbjax.NodeState(many.nodes.position.at[1].set(jnp.nan), many.nodes.velocity)
    )
    step = jax.jit(jax.vmap(lambda s: mbjax.step(model, s)))
    (after, outputs), (after_broken, outputs_broken) = step(many), step(broken)
    for k, one in enumerate(states):
        alone, _ = mbjax.step(model, one)
        np.testing.assert_allclose(after.nodes.velocity[k], alone.nodes.velocity, atol=1e-11)
        np.testing.assert_allclose(after.v[k], alone.v, atol=1e-11)
        if k != 1:
            np.testing.assert_array_equal(after_broken.nodes.position[k], after.nodes.position[k])
    assert outputs.deformables_converged.all()
    assert outputs_broken.deformables_converged[:, 0].tolist() == [True, False, True]


def test_who_may_touch() -> None:
    """Filters, bodies that are fixed to the geometry's body, shapes without a field, contact that is off."""

    def pairs(change: Any, contact_model: str = "hydroelastic_with_fallback") -> tuple[Any, list[str]]:
        plant = ground_plant(contact_model=contact_model)
        add_ball(plant)
        plant.register_collision_geometry(
            plant.body("ball"), mbjax.RigidTransform.identity(), mbjax.Box((0.01, 0.01, 0.01)), "hard", 0.5
        )
        plant.add_deformable_body("block", BLOCK, foam("linear"), pose=at([0.0, 0.0, 0.1]))
        change(plant)
        model = plant.finalize()
        assert model.deformables is not None
        names = [model.collision_geometry_name(x.geometry) for x in model.deformables.layout.contacts]
        return model, names

    model, names = pairs(lambda plant: None)
    assert names == ["world::ground", "ball::ball"]
    assert "passes through" in str(model.report())
    assert "ball::hard" in str(model.report())
    for apart in (
        lambda plant: plant.exclude_collisions_between("block", "ball"),
        lambda plant: plant.keep_contact_only([("block", "ground")]),
    ):
        model_apart, names_apart = pairs(apart)
        assert names_apart == ["world::ground"]
        assert "passes through" not in str(model_apart.report())
    kept, _ = pairs(lambda plant: plant.keep_contact_only([("block", "DefaultModelInstance::ball")]))
    assert "passes through shapes without a pressure field: 'ball::hard'" in str(kept.report())
    big = mbjax.Box((0.05, 0.05, 0.05))
    fixed = pairs(lambda plant: plant.add_fixed_constraint("block", "ball", shape=big))[1]
    assert fixed == ["world::ground"]
    off, none = pairs(lambda plant: None, "none")
    assert none == []
    assert "passes through" not in str(off.report())
    pad = mbjax.ProximityProperties(0.9, 0.2, point_stiffness=1e4).add_compliant_hydroelastic_properties(0.1, 1e5)
    unused, _ = pairs(lambda plant: plant.add_deformable_body("pad", BLOCK, foam("linear"), properties=pad))
    assert "'pad': point_stiffness and hydroelastic properties have no effect" in str(unused.report())
    assert "a static friction of 0.9 has no effect: steps take the dynamic one, 0.2" in str(unused.report())
    with pytest.raises(mbjax.ModelError, match="friction"):
        mbjax.MultibodyPlant(DT).add_deformable_body("x", BLOCK, properties=-1.0)
    if not WHOLE_RUN:
        return  # what is left out is counted, and bodies are disabled, in test_contact_between_deformables.py
    bounded, _ = pairs(lambda plant: plant.set_max_faces(1))
    state = mbjax.default_state(bounded)
    lower = mbjax.NodeState(state.nodes.position - jnp.array([0.0, 0.0, 0.075]), state.nodes.velocity)

    def points(model: mbjax.MultibodyModel) -> Any:
        return calc_node_points(model, calc_position_kinematics(model, state.q), lower.position)

    assert int(jax.jit(points)(bounded).left_out[0]) > 0
    find = jax.jit(points)
    assert find(model).active.any()
    assert not find(mbjax.set_deformable_enabled(model, "block", False)).active.any()
