"""Plants of deformable bodies that several tests take, a state of theirs that moves, and the same in Drake."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import mbjax

from ..deformable_meshes import box_mesh

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


def at_height(z: float) -> mbjax.RigidTransform:
    return mbjax.RigidTransform(jnp.eye(3), jnp.array([0.0, 0.0, z]))


def cube_plant(**changes: Any) -> Any:
    """A plant with a foam cube, and a body to which it may be fixed."""
    plant = mbjax.MultibodyPlant(changes.pop("time_step", DT))
    plant.add_rigid_body("link", mbjax.SpatialInertia.solid_cube_with_mass(1.0, 0.1))
    mesh = changes.pop("mesh", box_mesh((1, 1, 1), (0.02, 0.02, 0.02)))
    plant.add_deformable_body("cube", mesh, foam("linear", **changes))
    return plant
