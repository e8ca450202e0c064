"""The problems in mbjax: discrete plants with a time step, continuous ones with `ContactIntegrator`."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import mbjax
from mbjax.geometry import Box, Capsule, Cylinder, Ellipsoid, Geometry, HalfSpace, ProximityProperties, Sphere

from .problems import Problem


def build(problem: Problem, setting: str, static_step: float | None = None) -> Callable[..., Any]:
    """Values of the knobs, time step (s) → the coordinate at the end; of `recommended`, the tolerance for the step.

    With `static_step`, a discrete plant takes steps of that length only, and reverse mode has them.
    """
    model, start = build_model(problem, setting, static_step or 1e-3), jnp.array(problem.qpos)
    touching = sorted({name for pair in problem.contacts for name in pair})

    def end(x: Any, step: Any) -> Any:
        changed, q, v = model, start, jnp.array(problem.qvel)
        efforts = jnp.array(problem.efforts or (0.0,) * len(problem.qvel))
        for (kind, which), value in zip(problem.knobs, x, strict=True):
            if kind == "friction":
                for name in touching:
                    changed = mbjax.set_friction(changed, name, value)
            elif kind == "stiffness":
                for name in touching:
                    changed = mbjax.set_proximity_properties(changed, name, point_stiffness=2.0 * value)
            elif kind == "q":
                q = q.at[which].set(value)
            elif kind == "v":
                v = v.at[which].set(value)
            else:
                efforts = efforts.at[which].set(value)
        state = mbjax.state_from_mujoco(changed, q, v)
        inputs = mbjax.Inputs(applied_generalized_force=efforts) if problem.efforts else None
        after = run(changed, state, inputs, problem.horizon, setting, step, static_step)
        return mbjax.mujoco_state(changed, after)[0][problem.output]

    return end


def run(model: Any, state: Any, inputs: Any, horizon: float, setting: str, step: Any, static_step: float | None) -> Any:
    """The state at the end."""
    if setting == "recommended":
        solver, times = mbjax.ContactIntegrator(step), jnp.array([0.0, horizon])
        return mbjax.simulate(model, state, inputs, save_at=times, solver=solver).final_state
    if static_step is not None:
        return mbjax.rollout(model, state, inputs, num_steps=round(horizon / static_step)).final_state
    model, steps = mbjax.set_time_step(model, step), jnp.round(horizon / step).astype(int)
    return jax.lax.fori_loop(0, steps, lambda _, state: mbjax.step(model, state, inputs)[0], state)


def build_model(problem: Problem, setting: str, step: float) -> Any:
    """The plant of a problem."""
    is_continuous = setting == "recommended"
    options: dict[str, Any] = {}
    if not is_continuous:
        options["discrete_contact_approximation"] = "sap" if setting == "sap" else "lagged"
        options["contact_prediction"] = setting.endswith("contact_prediction")
    plant = mbjax.MultibodyPlant(0.0 if is_continuous else step, **options)
    plant.set_gravity([0.0, 0.0, -problem.gravity])
    k, d, mu = problem.stiffness, problem.dissipation, problem.friction
    material = ProximityProperties(mu, mu, point_stiffness=2.0 * k, hunt_crossley_dissipation=d)
    touching = {name for pair in problem.contacts for name in pair}
    if "ground" in touching:
        plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), material)
    for body in problem.bodies:
        shape, inertia = solid(body.shape, body.size, body.mass)
        inertia = inertia.shift(-jnp.array(body.offset)) if any(body.offset) else inertia
        plant.add_rigid_body(body.name, inertia)
        if body.joint != "free":
            kind = mbjax.PrismaticJoint if body.joint == "slide" else mbjax.RevoluteJoint
            friction = {"friction": body.friction_loss} if body.friction_loss else {}
            plant.add_joint(kind(body.name, body.parent, body.name, axis=list(body.axis), **friction))
        if body.name in touching:
            plant.register_collision_geometry(body.name, Geometry(body.name, shape), material)
    if problem.contacts:
        plant.keep_contact_only(list(problem.contacts))
    return plant.finalize()


def solid(kind: str, size: tuple[float, ...], mass: float) -> tuple[Any, Any]:
    """The shape and the inertia of a uniform solid; sizes are MuJoCo's half lengths."""
    of = mbjax.SpatialInertia
    if kind == "sphere":
        return Sphere(size[0]), of.solid_sphere_with_mass(mass, size[0])
    if kind == "box":
        lengths = [2.0 * s for s in size]
        return Box(lengths), of.solid_box_with_mass(mass, *lengths)
    if kind == "cylinder":
        return Cylinder(size[0], 2.0 * size[1]), of.solid_cylinder_with_mass(mass, size[0], 2.0 * size[1], [0, 0, 1])
    if kind == "capsule":
        return Capsule(size[0], 2.0 * size[1]), of.solid_capsule_with_mass(mass, size[0], 2.0 * size[1], [0, 0, 1])
    return Ellipsoid(*size), of.solid_ellipsoid_with_mass(mass, *size)
