"""The three jobs in batches on a GPU: rows of `python -m benchmarks.gpu_contact`.

environment   20 control steps of `QuadrupedVelocity`, worlds of a vectorized environment, f32
plans         plans of the bundled arm to as many goals, f64: milliseconds an iteration of all
fits          identifications of the bundled arm from as many noisy logs of 800 samples, f64
dynamics      forward dynamics of Panda, f32: millions a second
soft_gripper  20 steps of two fingers whose soft pads of 144 elements each lift a box, f32: thousands of steps a second
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

WORLDS = {"environment": 4096, "plans": 1000, "fits": 4096, "dynamics": 65536, "soft_gripper": 4096}
IN_F64 = ("plans", "fits")


def job(name: str, quick: bool) -> tuple[Callable, tuple, Callable[[Any, float], dict]]:
    """A function of a batch, its arguments, and from its results and seconds what is to be said."""
    return JOBS[name](4 if quick else WORLDS[name])


def environment(worlds: int) -> tuple:
    import jax

    from mbjax.environments import Episodes

    from . import environment_step

    env = environment_step.environment("quadruped")
    steps = environment_step.STEPS
    episodes = Episodes(env, 500)
    states = jax.jit(jax.vmap(episodes.reset))(jax.random.split(jax.random.key(0), worlds))
    actions = jax.random.uniform(jax.random.key(1), (steps, worlds, env.action_size), minval=-1.0, maxval=1.0)

    def whole(states: Any, actions: Any) -> Any:
        return jax.lax.scan(lambda s, u: (jax.vmap(episodes.step)(s, u), None), states, actions)[0]

    return whole, (states, actions), lambda _, seconds: {"M_steps_s": worlds * steps / seconds / 1e6}


def plans(worlds: int) -> tuple:
    import jax

    import mbjax
    from mbjax import trajectory_optimization as to

    model = mbjax.load("arm", time_step=0.02)
    start = mbjax.default_state(model)
    goals = 0.6 * jax.random.uniform(jax.random.key(0), (worlds, model.num_positions), minval=-1.0, maxval=1.0)

    def plan(goal: Any) -> Any:
        costs = [to.JointGoal(goal, 10.0), to.VelocityGoal()]
        problem = to.Problem(model, start, 50, [to.Effort(0.01), to.VelocityGoal(weight=0.1)], costs)
        report = to.solve(problem).report
        return report.iterations, report.converged

    def said(found: Any, seconds: float) -> dict:
        turns = int(np.max(found[0]))
        return {"iterations": turns, "ms_an_iteration": 1e3 * seconds / turns, "converged": int(np.sum(found[1]))}

    return jax.vmap(plan), (goals,), said


def fits(worlds: int) -> tuple:
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    import mbjax
    from mbjax import system_identification as si

    from .identification import half_wrong, motion_of, unknown_of

    unknown = unknown_of(mbjax.load("arm"))
    model = unknown.base.model
    true = half_wrong(unknown, 0)
    t, q, v, vdot = motion_of(model)
    tau = jax.jit(jax.vmap(lambda *x: mbjax.inverse_dynamics(true, *x)))(q, v, vdot)
    sigma = 0.01 * np.asarray(jnp.std(tau, 0))
    problem = si.Torques(noise=1.0).problem(unknown, [si.make_log(model, t, q, v, vdot, effort=tau)])
    Y = np.asarray(jax.jit(lambda *x: si.regressor_of_log(model, *x))(q, v, vdot))
    Q, R = zip(*(np.linalg.qr(Y[:, j, problem.columns]) for j in range(Y.shape[1])), strict=True)
    noise = sigma * np.random.default_rng(5).normal(size=(worlds, *tau.shape))
    z = np.stack([(np.asarray(tau) + noise)[:, :, j] @ Q[j] for j in range(Y.shape[1])], 1)
    settings = si.LevenbergMarquardt(max_steps=60, rtol=1e-6, atol=1e-6)

    def estimate(z: Any) -> Any:
        n = len(problem.columns)
        rows = jnp.zeros((Y.shape[1], n, n + 2)).at[..., :n].set(jnp.stack(R)).at[..., -1].set(z)
        noisy = eqx.tree_at(lambda p: (p.R, p.initial), problem, (rows, unknown.initial))
        return si.solve(noisy, jnp.asarray(1.0 / sigma), settings)

    return jax.vmap(estimate), (jnp.asarray(z),), lambda _, seconds: {"fits_s": worlds / seconds}


def dynamics(worlds: int) -> tuple:
    import jax

    import mbjax
    from mbjax.command_line.questions import random_worlds

    from .peers import load_mbjax
    from .robots import ROBOTS

    model = load_mbjax(ROBOTS["panda"], "f32")
    drawn = random_worlds(model, worlds)
    function = jax.vmap(lambda *x: mbjax.forward_dynamics(model, *x))
    return function, (drawn.q, drawn.v, drawn.tau), lambda _, seconds: {"M_s": worlds / seconds / 1e6}


def soft_gripper(worlds: int) -> tuple:
    import jax
    import jax.numpy as jnp

    import mbjax

    model, lift, steps = gripper_with_pads(), 12.0, 20
    assert model.deformables is not None
    grips = jnp.linspace(4.0, 8.0, worlds, dtype=model.dtype)  # N

    def grip(force: Any) -> Any:
        def advance(state: Any, _: None) -> Any:
            after, outputs = mbjax.step(model, state, jnp.array([lift, force, force], model.dtype))
            return after, outputs.deformables_converged.all()

        after, converged = jax.lax.scan(advance, mbjax.default_state(model), None, length=steps)
        return after.q[-1], converged.all()

    def said(found: Any, seconds: float) -> dict:
        heights, converged = found
        return {
            "k_steps_s": worlds * steps / seconds / 1e3,
            "converged": int(np.sum(converged)),
            "highest_mm": 1e3 * float(np.max(heights)),
        }

    return jax.vmap(grip), (grips,), said


def gripper_with_pads() -> Any:
    """Two fingers on a hand that moves up, each with a soft pad, and a box between them on the ground; in f32."""
    import jax.numpy as jnp

    import mbjax
    from mbjax.geometry import Box, Geometry, HalfSpace, ProximityProperties
    from mbjax.spatial import RigidTransform

    plant, rough = mbjax.MultibodyPlant(5e-3), ProximityProperties(0.8)
    hand = plant.add_rigid_body("hand", mbjax.SpatialInertia.solid_cube_with_mass(0.5, 0.05))
    rail = mbjax.PrismaticJoint("lift", plant.world_frame, plant.frame(hand), axis=[0.0, 0.0, 1.0], damping=1.0)
    plant.add_joint_actuator("lift", plant.add_joint(rail))
    foam = mbjax.DeformableMaterial(1e5, 0.4, 500.0, 0.0, 0.01)
    for name, side in (("left", 1.0), ("right", -1.0)):
        finger = plant.add_rigid_body(name, mbjax.SpatialInertia.solid_cube_with_mass(0.1, 0.02))
        frame = plant.add_frame(f"{name}_frame", hand, RigidTransform(jnp.eye(3), jnp.array([-0.06 * side, 0.0, 0.0])))
        slide = mbjax.PrismaticJoint(name, frame, plant.frame(finger), axis=[side, 0.0, 0.0], damping=5.0)
        plant.add_joint_actuator(name, plant.add_joint(slide))
        place = RigidTransform(jnp.eye(3), jnp.array([-0.05 * side, 0.0, 0.0]))
        pad = mbjax.tetrahedra_of(Box((0.02, 0.03, 0.04)), 0.01)
        plant.add_deformable_body(f"{name}_pad", pad, foam, pose=place, properties=rough)
        plant.add_fixed_constraint(
            f"{name}_pad", finger, X_BA=RigidTransform(jnp.eye(3), jnp.array([0.01 * side, 0.0, 0.0])),
            shape=Box((0.002, 0.1, 0.1)),
        )  # fmt: skip
    plant.exclude_collisions_between("left_pad", "right_pad")  # the box is between them
    box = plant.add_rigid_body("box", mbjax.SpatialInertia.solid_cube_with_mass(0.1, 0.08))
    soft = rough.add_compliant_hydroelastic_properties(None, 1e6)
    plant.register_collision_geometry(box, Geometry("box", Box((0.08, 0.08, 0.08))), soft)
    ground = Geometry("ground", HalfSpace(), translation=[0.0, 0.0, -0.04])
    plant.register_collision_geometry("world", ground, 0.5)
    return plant.finalize(jnp.float32)


JOBS = {"environment": environment, "plans": plans, "fits": fits, "dynamics": dynamics, "soft_gripper": soft_gripper}


def run_job(row: Any, name: str, quick: bool, timed: Callable) -> None:
    """Compiles a job, waits for its turn, and times it."""
    import jax

    jax.config.update("jax_enable_x64", name in IN_F64)
    row.says(device=jax.devices()[0].device_kind, jax=jax.__version__)
    function, args, said = job(name, quick)
    start = time.perf_counter()
    compiled = jax.jit(function).lower(*args).compile()
    row.says(compile_s=round(time.perf_counter() - start, 1))
    found = jax.block_until_ready(compiled(*args))
    row.waits()
    row.says(**said(jax.device_get(found), timed(compiled, *args)))
