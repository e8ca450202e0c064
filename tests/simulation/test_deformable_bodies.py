"""Deformable bodies in a plant: Drake's steps, an independent solution, derivatives, batches, rest, bad input."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import parameters
from mbjax.finite_elements import LAWS, lame_constants

from ..deformable_meshes import box_mesh, held_bar

FOAM = {
    "youngs_modulus": 2e4,
    "poissons_ratio": 0.4,
    "mass_density": 500.0,
    "mass_damping": 0.1,
    "stiffness_damping": 0.01,
}
DT = 5e-3


def foam(model: str, **changes: Any) -> mbjax.DeformableMaterial:
    return mbjax.DeformableMaterial(**(FOAM | changes), model=model)


def moving_state(model: mbjax.MultibodyModel, size: float = 3e-3, seed: int = 0) -> mbjax.State:
    """The model's default state with nodes moved and moving at random, held ones left where they are."""
    rng = np.random.default_rng(seed)
    state = mbjax.default_state(model)
    assert model.deformables is not None
    assert state.nodes is not None
    free = ~model.deformables.mesh.is_held[:, None]
    x = state.nodes.position + jnp.where(free, size * rng.normal(size=state.nodes.position.shape), 0.0)
    v = jnp.where(free, 0.2 * rng.normal(size=x.shape), 0.0)
    return mbjax.State(state.q, state.v, state.time, mbjax.NodeState(x, v))


class Wind(eqx.Module):
    """A force per volume that differs from place to place, N/m³."""

    k: jax.Array

    def __call__(self, p_WQ: jax.Array) -> jax.Array:
        return self.k * jnp.sin(20.0 * p_WQ)


def residual_in_numpy(plant: Any, before: Any, after: Any, wind: float) -> np.ndarray:
    """The step's equation at its end, summed element by element; of a body held by a wall, under gravity and wind."""
    (body,) = plant.deformables
    law, material = LAWS[body.material.model], body.material
    lame = lame_constants(np.array([material.youngs_modulus]), np.array([material.poissons_ratio]))
    x, v0, v = (np.asarray(a) for a in (after.nodes.position, before.nodes.velocity, after.nodes.velocity))
    np.testing.assert_allclose(x, np.asarray(before.nodes.position) + 0.5 * DT * (v0 + v), atol=1e-15)
    total = np.zeros_like(x)
    for nodes in body.tetrahedra:
        X = body.points[nodes]
        inner = np.linalg.inv((X[1:] - X[0]).T)
        g = np.concatenate([-inner.sum(axis=0)[None], inner])
        volume = np.linalg.det(X[1:] - X[0]) / 6.0
        F, rate = x[nodes].T @ g, v[nodes].T @ g
        C = np.asarray(jax.jacfwd(lambda F: law.stress(F[None], F[None], lame)[0])(jnp.array(F))).reshape(9, 9)
        values, vectors = np.linalg.eigh(C)
        positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
        P = np.asarray(law.stress(jnp.array(F)[None], jnp.array(F)[None], lame)[0])
        P = P + material.stiffness_damping * (positive @ rate.reshape(9)).reshape(3, 3)
        mass = material.mass_density * volume
        acceleration = np.mean((v[nodes] - v0[nodes]) / DT + material.mass_damping * v[nodes], axis=0)
        ahead = np.asarray(before.nodes.position)[nodes] + DT * v0[nodes]
        blown = volume * np.linalg.det(ahead.T @ g) * wind * np.sin(20.0 * ahead.mean(axis=0))
        total[nodes] += volume * g @ P.T + 0.25 * mass * (acceleration - np.array([0.0, 0.0, -9.81])) - 0.25 * blown
    return np.where(body.held[:, None], 0.0, total)


@pytest.mark.parametrize(
    "law", [pytest.param("corotated", marks=pytest.mark.whole_run("neo_hookean stands for it")), "neo_hookean"]
)
def test_a_step_solves_the_equation_that_numpy_sums(law: str) -> None:
    plant = held_bar(foam(law))
    plant.add_force_density(Wind(jnp.array(2000.0)), per="current_volume")
    model = plant.finalize()
    before = moving_state(model)
    of_held = jnp.where(model.deformables.mesh.is_held[:, None], 1.0, before.nodes.velocity)  # which is left aside
    given = mbjax.State(before.q, before.v, before.time, mbjax.NodeState(before.nodes.position, of_held))
    after, _ = mbjax.step(model, given)
    residual = residual_in_numpy(plant, before, after, 2000.0)
    weight = 9.81 * FOAM["mass_density"] * 0.02**3
    assert np.abs(residual).max() < 1e-9 * weight


@pytest.mark.parametrize("law", ["linear", "linear_corotated"])
def test_bodies_held_by_a_wall_move_as_in_drake(law: str, tmp_path: Any) -> None:
    pydrake_plant = pytest.importorskip("pydrake.multibody.plant")
    fem = pytest.importorskip("pydrake.multibody.fem")
    points, tetrahedra = box_mesh((2, 1, 1), (0.04, 0.02, 0.02))
    theirs = DrakePlant(pydrake_plant, fem, points, tetrahedra, law, tmp_path)
    theirs.deformable_model.SetWallBoundaryCondition(theirs.body, np.array([1e-6, 0, 0]), np.array([1.0, 0, 0]))
    plant = held_bar(foam(law))
    model = plant.finalize()
    state = mbjax.default_state(model)
    step = jax.jit(lambda state: mbjax.step(model, state)[0])
    positions = theirs.run(20)
    for expected in positions:
        state = step(state)
        np.testing.assert_allclose(state.nodes.position, expected, rtol=0, atol=1e-12)
    assert np.abs(state.nodes.position - points).max() > 5e-4


@pytest.mark.parametrize(
    "approximation", ["sap", pytest.param("lagged", marks=pytest.mark.whole_run("sap stands for it"))]
)
def test_a_body_fixed_to_a_swinging_link_moves_as_in_drake(approximation: str, tmp_path: Any) -> None:
    pydrake_plant = pytest.importorskip("pydrake.multibody.plant")
    fem = pytest.importorskip("pydrake.multibody.fem")
    points, tetrahedra = box_mesh((2, 1, 1), (0.04, 0.02, 0.02))
    theirs = DrakePlant(pydrake_plant, fem, points, tetrahedra, "linear_corotated", tmp_path, approximation)
    theirs.add_swinging_link()
    plant = swinging_plant(approximation)
    model = plant.finalize()
    state = mbjax.default_state(model)
    step = jax.jit(lambda state: mbjax.step(model, state))
    for expected in theirs.run(40):
        state, _ = step(state)
        np.testing.assert_allclose(state.nodes.position, expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(jnp.abs(state.q), np.abs(theirs.q()), atol=1e-11)
    assert abs(float(state.q[0])) > 0.1


def swinging_plant(approximation: str = "sap") -> mbjax.MultibodyPlant:
    """A link that swings about y, with a bar of foam fixed to it at one end."""
    plant = mbjax.MultibodyPlant(DT, discrete_contact_approximation=approximation)
    inertia = mbjax.SpatialInertia.solid_cube_with_mass(0.02, 0.02).shift(jnp.array([-0.03, 0.0, 0.0]))
    link = plant.add_rigid_body("link", inertia)
    plant.add_joint(mbjax.RevoluteJoint("swing", plant.world_frame, plant.frame(link), axis=[0.0, 1.0, 0.0]))
    plant.add_deformable_body("bar", box_mesh((2, 1, 1), (0.04, 0.02, 0.02)), foam("linear_corotated"))
    plant.add_fixed_constraint("bar", "link", shape=mbjax.Box((0.01, 0.1, 0.1)))
    return plant


class DrakePlant:
    """The same body in Drake."""

    efforts: tuple[float, ...] | list[float] = ()

    def __init__(
        self, pydrake_plant, fem, points, tetrahedra, law, tmp_path, approximation="sap", pose=None, properties=None
    ) -> None:
        from pydrake.geometry import GeometryInstance, Mesh, ProximityProperties
        from pydrake.math import RigidTransform
        from pydrake.systems.framework import DiagramBuilder

        self.builder = DiagramBuilder()
        self.plant, _ = pydrake_plant.AddMultibodyPlantSceneGraph(self.builder, DT)
        kind = pydrake_plant.DiscreteContactApproximation
        kinds = {"sap": kind.kSap, "similar": kind.kSimilar, "lagged": kind.kLagged}
        self.plant.set_discrete_contact_approximation(kinds[approximation])
        self.deformable_model = self.plant.mutable_deformable_model()
        config = fem.DeformableBodyConfig()
        config.set_youngs_modulus(FOAM["youngs_modulus"])
        config.set_poissons_ratio(FOAM["poissons_ratio"])
        config.set_mass_density(FOAM["mass_density"])
        config.set_mass_damping_coefficient(FOAM["mass_damping"])
        config.set_stiffness_damping_coefficient(FOAM["stiffness_damping"])
        names = {"linear": fem.MaterialModel.kLinear, "linear_corotated": fem.MaterialModel.kLinearCorotated}
        config.set_material_model(names[law])
        file = tmp_path / "bar.vtk"
        lines = [
            "# vtk DataFile Version 3.0",
            "bar",
            "ASCII",
            "DATASET UNSTRUCTURED_GRID",
            f"POINTS {len(points)} double",
        ]
        lines += [" ".join(f"{x:.17g}" for x in p) for p in points]
        lines += [f"CELLS {len(tetrahedra)} {5 * len(tetrahedra)}", *("4 " + " ".join(map(str, t)) for t in tetrahedra)]
        lines += [f"CELL_TYPES {len(tetrahedra)}", *["10"] * len(tetrahedra), ""]
        file.write_text("\n".join(lines))
        instance = GeometryInstance(RigidTransform() if pose is None else pose, Mesh(str(file), 1.0), "bar")
        instance.set_proximity_properties(ProximityProperties() if properties is None else properties)
        self.body = self.deformable_model.RegisterDeformableBody(instance, config, 1.0)
        self.bodies = [self.body]

    def add_swinging_link(self) -> None:
        from pydrake.geometry import Box
        from pydrake.math import RigidTransform
        from pydrake.multibody.tree import RevoluteJoint, SpatialInertia, UnitInertia

        G = UnitInertia.SolidCube(0.02).ShiftFromCenterOfMass([-0.03, 0, 0])
        link = self.plant.AddRigidBody("link", SpatialInertia(0.02, [0.03, 0, 0], G))
        self.plant.AddJoint(RevoluteJoint("swing", self.plant.world_frame(), link.body_frame(), [0, 1, 0]))
        self.deformable_model.AddFixedConstraint(
            self.body, link, RigidTransform(), Box(0.01, 0.1, 0.1), RigidTransform()
        )

    def run(self, steps: int) -> list[np.ndarray]:
        from pydrake.systems.analysis import Simulator

        self.plant.Finalize()
        simulator = Simulator(self.builder.Build())
        self.context = self.plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
        if self.efforts:
            self.plant.get_actuation_input_port().FixValue(self.context, self.efforts)
        found = []
        for k in range(steps):
            simulator.AdvanceTo((k + 1) * DT)
            of_bodies = [self.deformable_model.GetPositions(self.context, body).T for body in self.bodies]
            found.append(np.concatenate(of_bodies))
        return found

    def q(self) -> np.ndarray:
        return self.plant.GetPositions(self.context)


@pytest.mark.whole_run("momenta of motions that are known, below, and blocks that fall as in Drake")
def test_free_bodies_keep_their_momenta_and_fall() -> None:
    """Two bodies in one plant, of different laws, without damping by mass, one without gravity."""
    plant = mbjax.MultibodyPlant(DT)
    mesh = box_mesh((2, 1, 1), (0.04, 0.02, 0.02))
    floating = plant.add_model_instance("floating")
    plant.set_gravity_enabled(floating, False)
    plant.add_deformable_body("first", mesh, foam("linear_corotated", mass_damping=0.0), model_instance=floating)
    plant.add_deformable_body("second", mesh, foam("linear_corotated", mass_damping=0.0), pose=at_height(0.3))
    model = plant.finalize()
    state = moving_state(model, 1e-3)
    trajectory = mbjax.rollout(model, state, num_steps=20)
    before, after = (mbjax.deformable_momentum(model, s) for s in (state, trajectory.final_state))
    np.testing.assert_allclose(after.mass, FOAM["mass_density"] * 0.04 * 0.02 * 0.02, rtol=1e-12)
    np.testing.assert_allclose(after.velocity[0], before.velocity[0], atol=1e-12)
    np.testing.assert_allclose(after.velocity[1] - before.velocity[1], [0.0, 0.0, -9.81 * 20 * DT], atol=1e-12)
    fall = before.center_of_mass[1] + 20 * DT * before.velocity[1] - jnp.array([0, 0, 0.5 * 9.81 * (20 * DT) ** 2])
    np.testing.assert_allclose(after.center_of_mass[1], fall, atol=1e-12)  # the midpoint rule is exact here
    energies = mbjax.deformable_energies(model, trajectory.final_state)
    assert (energies.elastic > 0.0).all()


def at_height(z: float) -> mbjax.RigidTransform:
    return mbjax.RigidTransform(jnp.eye(3), jnp.array([0.0, 0.0, z]))


@pytest.mark.whole_run("single worlds as in Drake, above; broken ones in tests/contact/test_drops.py")
def test_batches_equal_single_worlds_and_a_bad_world_harms_no_other() -> None:
    model = held_bar(foam("neo_hookean"), (1, 1, 1)).finalize()
    states = [moving_state(model, seed=seed) for seed in range(3)]
    many = jax.tree.map(lambda *x: jnp.stack(x), *states)
    broken = eqx.tree_at(lambda s: s.nodes.position, many, many.nodes.position.at[1].set(jnp.nan))
    step = jax.jit(jax.vmap(lambda s: mbjax.step(model, s)[0]))
    after, after_broken = step(many), step(broken)
    for k, state in enumerate(states):
        alone, _ = mbjax.step(model, state)
        np.testing.assert_allclose(after.nodes.position[k], alone.nodes.position, atol=1e-14)
        if k != 1:
            np.testing.assert_array_equal(after_broken.nodes.position[k], after.nodes.position[k])
    assert np.isnan(after_broken.nodes.position[1]).any()
    per_world = jax.vmap(
        lambda E: mbjax.step(eqx.tree_at(lambda m: m.deformables.youngs_modulus, model, E), states[0])[0]
    )(jnp.array([[2e4], [4e4]]))
    np.testing.assert_allclose(per_world.nodes.position[0], after.nodes.position[0], atol=1e-14)
    assert jnp.abs(per_world.nodes.position[1] - after.nodes.position[0]).max() > 1e-6


def test_numbers_have_names_groups_and_can_be_drawn() -> None:
    points, tetrahedra = box_mesh((1, 1, 1), (0.02, 0.02, 0.02))
    plant = mbjax.MultibodyPlant(DT)
    plant.add_deformable_body("soft", (points, tetrahedra), foam("linear"))
    plant.add_deformable_body("hard", (points, tetrahedra), foam("linear", youngs_modulus=np.linspace(1e5, 2e5, 6)))
    model = plant.finalize()
    found = [number for number in parameters.named_numbers(model).values() if number.kind.name == "youngs_modulus"]
    assert len(found) == 7
    worlds, _ = mbjax.randomize(
        model, jax.random.key(0), 4, {"youngs_modulus:soft": mbjax.uniform(0.5, 2.0, relative=True)}
    )
    drawn = worlds.deformables.youngs_modulus
    assert drawn.shape == (4, 7)
    assert np.ptp(drawn[:, 0]) > 0
    assert (np.ptp(drawn[:, 1:], axis=0) == 0).all()
    chosen, _ = eqx.partition(model, parameters.materials(model))
    assert len(jax.tree.leaves(chosen)) == 5
    np.testing.assert_allclose(model.deformables.mass("soft"), 500.0 * 8e-6)


def misuse(**changes: Any) -> Any:
    """A plant with a foam cube, and a body to which it may be fixed."""
    plant = mbjax.MultibodyPlant(changes.pop("time_step", DT))
    plant.add_rigid_body("link", mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.1))
    mesh = changes.pop("mesh", box_mesh((1, 1, 1), (0.02, 0.02, 0.02)))
    plant.add_deformable_body("cube", mesh, foam("linear", **changes))
    return plant


BAD = {
    "E": (lambda: misuse(youngs_modulus=0.0), "youngs_modulus must be a finite number > 0 of Pa|youngs_modulus"),
    "nu": (lambda: misuse(poissons_ratio=0.5), "poissons_ratio must be a number between -1 and 0.5"),
    "density": (lambda: misuse(mass_density=-1.0), "mass_density must be a finite number > 0"),
    "damping": (lambda: misuse(stiffness_damping=-1.0), "stiffness_damping must be a finite number >= 0"),
    "law": (lambda: foam("rubber"), "there is no model 'rubber'"),
    "unstable law": (lambda: foam("neo_hookean", poissons_ratio=0.0), "stable_neo_hookean"),
    "per element": (lambda: misuse(youngs_modulus=[1e4, 2e4]), "2 numbers, and the mesh 6 elements"),
    "continuous": (lambda: misuse(time_step=0.0), "discrete plant"),
    "wall without nodes": (
        lambda: misuse().set_wall_boundary_condition("cube", [0, 0, -1], [0, 0, 1]),
        "no node of 'cube' is behind the wall",
    ),
    "wall with all nodes": (
        lambda: misuse().set_wall_boundary_condition("cube", [0, 0, 1], [0, 0, 1]),
        "all nodes of 'cube'",
    ),
    "no node in the shape": (
        lambda: misuse().add_fixed_constraint("cube", "link", shape=mbjax.Sphere(1e-3), X_BA=at_height(1.0)),
        "no node of 'cube' is within the shape",
    ),
    "name": (lambda: misuse().add_fixed_constraint("kube", "link", shape=mbjax.Sphere(1.0)), "Did you mean 'cube'"),
    "force": (lambda: misuse().add_force_density(3.0), "expected a function of p_WQ"),
    "volume": (lambda: misuse().add_force_density(lambda p: p, per="mass"), "per must be one of"),
    "one number": (lambda: misuse().add_force_density(lambda p: p[:1]), r"<lambda> .* an array of shape \(1,\), where"),
    "no array": (lambda: misuse().add_force_density(lambda p: [p, p, p]), "<lambda> of p_WQ .* returns a list, where"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_with_its_reason(case: str) -> None:
    call, message = BAD[case]
    with pytest.raises(mbjax.ModelError, match=message):
        call()


def test_nodes_held_twice_and_states_that_do_not_fit_are_refused() -> None:
    plant = misuse()
    plant.set_wall_boundary_condition("cube", [1e-6, 0, 0], [1, 0, 0])
    with pytest.raises(mbjax.ModelError, match="held already"):
        plant.add_fixed_constraint("cube", "link", shape=mbjax.Box((1.0, 1.0, 1.0)))
    fixed = misuse()
    beside = mbjax.RigidTransform(jnp.eye(3), jnp.array([-0.02, 0.0, 0.0]))
    fixed.add_fixed_constraint("cube", "link", shape=mbjax.Box((0.01, 1.0, 1.0)), X_BA=beside)
    with pytest.raises(mbjax.ModelError, match="would be held twice"):
        fixed.set_wall_boundary_condition("cube", [0.02 - 1e-6, 0, 0], [-1, 0, 0])
    model = plant.finalize()
    state = mbjax.default_state(model)
    with pytest.raises(mbjax.ModelError, match=r"state.nodes.position has shape \(3, 3\)"):
        mbjax.step(model, mbjax.State(state.q, state.v, None, mbjax.NodeState(jnp.zeros((3, 3)), jnp.zeros((3, 3)))))
    rigid = mbjax.load(mbjax.reference_models.path("pendulum"), time_step=DT)
    with pytest.raises(mbjax.ModelError, match="no deformable bodies"):
        mbjax.step(rigid, dataclasses.replace(mbjax.default_state(rigid), nodes=state.nodes))
    with pytest.raises(mbjax.ModelError, match="fewer than three nodes"):
        mbjax.deformable_equilibrium(misuse().finalize())
    with pytest.raises(mbjax.ModelError, match=r"simulate: .*deformable bodies.*take mbjax\.rollout"):
        mbjax.simulate(model, state, save_at=jnp.array([0.0, 0.1]))
    with pytest.raises(mbjax.ModelError, match=r"time_derivatives: .*deformable bodies.*take mbjax\.step"):
        mbjax.time_derivatives(model, state)
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), model)
    for call in (
        lambda: mbjax.deformable_energies(batch, state),
        lambda: mbjax.deformable_momentum(batch, state),
        lambda: mbjax.deformable_equilibrium(batch),
        lambda: mbjax.set_deformable_enabled(batch, "cube", False),
    ):
        with pytest.raises(mbjax.ModelError, match="batch of models"):
            call()


@pytest.mark.whole_run("one that is off touches nothing, in test_contact_between_deformables.py")
def test_a_disabled_body_stays_and_acts_on_nothing() -> None:
    model = swinging_plant().finalize()
    state = mbjax.default_state(model)
    off = mbjax.set_deformable_enabled(model, "bar", False)
    with pytest.raises(mbjax.ModelError, match="one truth value"):
        mbjax.set_deformable_enabled(model, "bar", 2)
    step = jax.jit(mbjax.step)
    (alone, outputs), (with_bar, _) = step(off, state), step(model, state)
    np.testing.assert_array_equal(alone.nodes.position, state.nodes.position)
    link = mbjax.SpatialInertia.solid_cube_with_mass(0.02, 0.02).shift(jnp.array([-0.03, 0.0, 0.0]))
    moment = link.unit_inertia.moments[1] * 0.02
    np.testing.assert_allclose(alone.v[0], DT * 0.02 * 9.81 * 0.03 / moment, rtol=1e-9)
    assert abs(float(with_bar.v[0] - alone.v[0])) > 1e-3
    a_com = jnp.cross(jnp.array([0.0, outputs.generalized_acceleration[0], 0.0]), jnp.array([0.03, 0.0, 0.0]))
    np.testing.assert_allclose(outputs.reaction_forces[0, 3:], 0.02 * (a_com + jnp.array([0, 0, 9.81])), atol=1e-12)


@pytest.mark.whole_run("a body fixed to a swinging link moves as in Drake")
def test_action_equals_reaction_and_constraints_beside_stay_apart() -> None:
    """What the bar's momentum needs is what the joint's reaction has beside the link's own."""
    plant = swinging_plant()
    plant.add_rigid_body("pendulum", mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.1))
    plant.add_joint(
        mbjax.RevoluteJoint("second", plant.world_frame, plant.frame("pendulum"), axis=[0.0, 1.0, 0.0],
                            X_BM=at_height(0.2))
    )  # fmt: skip
    plant.add_coupler_constraint("second", "swing", 0.5)
    model = plant.finalize()
    state = mbjax.set_velocities(model, moving_state(model, 1e-3), [0.4, 0.2])
    after, outputs = jax.jit(mbjax.step)(model, state)
    assert outputs.constraint_forces.shape == (1,)
    assert bool(outputs.deformables_converged.all())
    g = jnp.array([0.0, 0.0, -9.81])
    before_bar, after_bar = (mbjax.deformable_momentum(model, s) for s in (state, after))
    m, alpha = before_bar.mass[0], FOAM["mass_damping"]
    needed = m * ((after_bar.velocity[0] - before_bar.velocity[0]) / DT + alpha * after_bar.velocity[0] - g)
    link = model.body_index("link")
    X_WB, A = mbjax.body_poses_in_world(model, state.q)[link], outputs.body_spatial_accelerations[link]
    p = X_WB.rotation @ mbjax.center_of_mass_in_body_frame(model, "link")
    w = mbjax.body_spatial_velocities_in_world(model, state.q, state.v)[link, :3]
    a_com = A[3:] + jnp.cross(A[:3], p) + jnp.cross(w, jnp.cross(w, p))
    swing = outputs.reaction_forces[model.joint_names.index("swing"), 3:]
    of_link = mbjax.mass(model, "link") * (a_com - g)
    np.testing.assert_allclose(X_WB.rotation @ swing, needed + of_link, rtol=1e-12, atol=1e-12)


@pytest.mark.whole_run("bodies behind a wall, and one fixed to a swinging link, move as in Drake")
@pytest.mark.parametrize("has_joint", [False, True])
def test_nodes_fixed_to_the_world_stay_nearly_as_behind_a_wall(has_joint: bool) -> None:
    """Near-rigid: the bar sags as one behind a wall; with and without rigid bodies that move."""
    plant = mbjax.MultibodyPlant(DT)
    if has_joint:
        plant.add_rigid_body("beside", mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.1))
    plant.add_deformable_body("bar", box_mesh((2, 1, 1), (0.04, 0.02, 0.02)), foam("linear_corotated"))
    plant.add_fixed_constraint("bar", "world", shape=mbjax.Box((0.01, 0.1, 0.1)))
    behind = held_bar(foam("linear_corotated")).finalize()
    models = plant.finalize(), behind
    found, expected = (mbjax.rollout(m, mbjax.default_state(m), num_steps=60).nodes.position[-1] for m in models)
    moved = np.abs(expected - behind.deformables.reference_positions).max()
    assert moved > 5e-4
    np.testing.assert_allclose(found, expected, atol=2e-3 * moved)
    at_rest = [mbjax.deformable_equilibrium(m).state.nodes.position for m in models]
    np.testing.assert_allclose(at_rest[0], at_rest[1], atol=1e-12)


@pytest.mark.whole_run("equilibria under weight in test_bending_of_bars.py, and forces per volume in steps, above")
def test_an_equilibrium_says_where_forces_depend_on_the_place() -> None:
    """A wind that grows with height: the first call is not at rest, and says so; calls from the result come to it."""
    plant = held_bar(foam("linear"))
    plant.add_force_density(lambda p: jnp.array([0.0, 0.0, 2e5]) * p[2])
    model, state, count = plant.finalize(), None, 0
    while not bool((found := mbjax.deformable_equilibrium(model, state)).converged.all()):
        state, count = found.state, count + 1
        assert count < 20
    assert count >= 1
    again = mbjax.deformable_equilibrium(model, found.state).state.nodes.position
    moved = np.abs(found.state.nodes.position - model.deformables.reference_positions).max()
    np.testing.assert_allclose(again, found.state.nodes.position, atol=1e-5 * moved)


def test_momenta_and_energies_of_motions_that_are_known() -> None:
    """A rigid rotation, a uniform stretch: as formulas say, with each element's mass at its centroid."""
    plant = mbjax.MultibodyPlant(DT)
    points, tetrahedra = box_mesh((1, 2, 1), (0.1, 0.2, 0.1))
    plant.add_deformable_body("block", (points, tetrahedra), foam("corotated"), pose=at_height(0.5))
    few = (
        np.concatenate([0.1 * np.eye(3), np.zeros((1, 3)), [[0.08, 0.08, 0.08]]]),
        np.array([[0, 1, 3, 2], [0, 1, 2, 4]]),
    )
    for name, count in (("point", 1), ("line", 2)):  # whose masses are
        plant.add_deformable_body(name, (few[0][: 3 + count], few[1][:count]))
        plant.set_wall_boundary_condition(name, [0.04, 0.04, 0.0], [-1.0, -1.0, 0.0])
    model = plant.finalize()
    state = mbjax.default_state(model)
    rest = mbjax.deformable_momentum(model, state)
    w, u = jnp.array([0.3, -0.2, 0.7]), jnp.array([1.0, 2.0, 3.0])
    turning = u + jnp.cross(w, state.nodes.position - rest.center_of_mass[0])
    nodes = mbjax.NodeState(state.nodes.position, turning)
    moved = mbjax.deformable_momentum(model, dataclasses.replace(state, nodes=nodes))
    np.testing.assert_allclose(moved.velocity[0], u, atol=1e-12)
    np.testing.assert_allclose(moved.angular_velocity[0], w, atol=1e-12)
    along = np.ones(3) / np.sqrt(3.0)
    np.testing.assert_allclose(moved.angular_velocity[1:], [np.zeros(3), w - along * (along @ w)], atol=1e-12)
    centroids = points[tetrahedra].mean(axis=1) + np.array([0.0, 0.0, 0.5])
    r = centroids - np.asarray(rest.center_of_mass[0])
    each = FOAM["mass_density"] * 0.1 * 0.2 * 0.1 / len(tetrahedra)
    np.testing.assert_allclose(rest.center_of_mass[0], [0.05, 0.1, 0.55], atol=1e-14)
    np.testing.assert_allclose(moved.angular_momentum[0], each * np.cross(r, np.cross(w, r)).sum(axis=0), atol=1e-14)
    stretched = state.nodes.position * jnp.array([1.2, 1.0, 1.0])
    energies = mbjax.deformable_energies(model, dataclasses.replace(state, nodes=mbjax.NodeState(stretched, turning)))
    lame = lame_constants(FOAM["youngs_modulus"], FOAM["poissons_ratio"])
    np.testing.assert_allclose(energies.elastic[0], 0.1 * 0.2 * 0.1 * (lame.mu + 0.5 * lame.lam) * 0.2**2, rtol=1e-12)
    kinetic = 0.5 * each * np.sum((np.asarray(u) + np.cross(w, r)) ** 2)
    np.testing.assert_allclose(energies.kinetic[0], kinetic, rtol=1e-12)


def test_setters_keep_nodes_and_what_knows_rigid_bodies_alone_refuses() -> None:
    from mbjax import system_identification as si
    from mbjax import trajectory_optimization as to

    model = swinging_plant().finalize()
    state = moving_state(model)
    for changed in (mbjax.set_positions(model, state, [0.1]), mbjax.set_velocities(model, state, [0.1])):
        np.testing.assert_array_equal(changed.nodes.position, state.nodes.position)
    with pytest.raises(mbjax.ModelError, match="Problem: the model has deformable bodies"):
        to.Problem(model, state, 3, terminal=lambda model, state: state.q[0])
    with pytest.raises(mbjax.ModelError, match="linearize: the model has deformable bodies"):
        to.linearize(model, state, jnp.zeros(0))
    names = model.position_names(), model.velocity_names()
    for made in (
        mbjax.random_state(model, jax.random.key(0)),
        mbjax.random_state_within_limits(model, jax.random.key(0)),
        mbjax.state_from_drake(model, state.q, state.v, *names),
        mbjax.state_from_mujoco(model, state.q, state.v),
        mbjax.state_from_pinocchio(model, state.q, state.v, ["swing"]),
    ):
        np.testing.assert_array_equal(made.nodes.position, model.deformables.rest_positions())
    unknown = si.Parameters(model, {"youngs_modulus:bar": si.positive()})
    doubled = unknown.model(unknown.initial + jnp.log(2.0))
    np.testing.assert_allclose(doubled.deformables.youngs_modulus, 2.0 * FOAM["youngs_modulus"])
