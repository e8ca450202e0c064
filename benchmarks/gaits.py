"""Crocoddyl's gaits of quadrupeds and of a biped beside it: the same nodes, cost at convergence, time of an iteration.

    python -m benchmarks.gaits --crocoddyl PYTHON [--robot solo12] [--gaits walk trot]

PYTHON is an interpreter that has Crocoddyl (`pip install crocoddyl pin==4.0.0`). Its problems are read node by node:
feet in contact, impulses where feet touch down, and weights of all costs. They are stated here as a `Problem` whose
`dynamics` takes the same steps: Pinocchio moves a floating base along twists in its own frame, and feet are held with a
gain on their velocities. The feet of quadrupeds are points; those of a biped are flat, six rows each, within wrench
cones. First, costs and steps along Crocoddyl's optimum are compared. Times are of the processor.
"""

import argparse
import dataclasses
import json
import pathlib
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import mbjax
from mbjax import trajectory_optimization as to
from mbjax.constraints import (
    constrained_forward_dynamics,
    constraint_impulses,
    contact_impulse_derivatives,
    contact_motion_derivatives,
)
from mbjax.execution import called_if
from mbjax.simulation import actuation_matrix
from mbjax.spatial import (
    cross3,
    displacement_matrix,
    quaternion_exp,
    quaternion_multiply,
    rotation_exp,
    skew,
    small_matmul,
    small_matvec,
)
from mbjax.trajectory_optimization.contact_forces import AbstractForceTerm
from mbjax.trajectory_optimization.linearization import replace_chosen

from .robots import Robot, reduced_urdf

DT = 0.01


@dataclasses.dataclass(frozen=True)
class Legged:
    """A robot, how it stands, and its gaits: Crocoddyl's function, its arguments, and the friction."""

    robot: Robot
    feet: tuple[str, ...]  # of quadrupeds left and right in front, then behind; of bipeds right and left
    height: float
    standing: Callable[[str], float]  # the angle of a joint
    gaits: dict[str, tuple[str, tuple, float]]
    gain: float = 50.0  # of the feet's velocities: 2 / stabilization time
    time_step: float = DT
    fixed_joints: str | None = None  # a pattern of names
    size: tuple[float, float] | None = None  # of flat feet; None if they are points

    @property
    def urdf(self) -> str:
        """The robot's text, with the joints fixed that do not move."""
        text = reduced_urdf(self.robot)
        pattern = rf'(<joint name="(?:{self.fixed_joints})" type=)"[a-z]+"'
        return re.sub(pattern, r'\1"fixed"', text) if self.fixed_joints else text


def angle_of_hyq(joint: str) -> float:
    """As in Crocoddyl's example: knees bent against each other."""
    bend = 0.75 if joint.startswith(("lf", "rf")) else -0.75
    return -0.2 if "haa" in joint else bend if "hfe" in joint else -2.0 * bend


def angle_of_solo(joint: str) -> float:
    """Knees bent against each other."""
    bend = 0.8 if joint.startswith("F") else -0.8
    return 0.0 if "HAA" in joint else bend if "HFE" in joint else -2.0 * bend


def angle_of_talos(joint: str) -> float:
    """Legs as in the file's half sitting, soles level."""
    return {"3": -0.411354, "4": 0.859395, "5": -0.448041}.get(joint.split("_")[2], 0.0)


ROBOTS = {
    "hyq": Legged(
        Robot("hyq", "HyQ (18 dof)", "hyq_description/robots/hyq_no_sensors.urdf", "floating"),
        ("lf_foot", "rf_foot", "lh_foot", "rh_foot"),
        0.5775,
        angle_of_hyq,
        {
            "walk": ("Walking", (0.25, 0.15, DT, 25, 2), 0.7),
            "trot": ("Trotting", (0.15, 0.1, DT, 25, 2), 0.7),
            "pace": ("Pacing", (0.15, 0.1, DT, 25, 5), 0.7),
            "bound": ("Bounding", (0.15, 0.1, DT, 25, 5), 0.7),
            "jump": ("Jumping", (0.15, [0.0, 0.3, 0.0], DT, 10, 20), 0.7),
        },
    ),
    "solo12": Legged(
        Robot("solo12", "Solo (18 dof)", "solo_description/robots/solo12.urdf", "floating"),
        ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"),
        0.24,
        angle_of_solo,
        {
            "jump": ("Jumping", (0.1, [0.15, 0.0, 0.0], DT, 12, 14), 0.7),
            "slippery trot": ("Trotting", (0.1, 0.05, DT, 20, 4), 0.25),
        },
    ),
    "talos": Legged(
        Robot("talos", "Talos's legs (18 dof)", "talos_data/robots/talos_reduced.urdf", "floating"),
        ("right_sole_link", "left_sole_link"),
        1.01927,
        angle_of_talos,
        {
            "walk": ("Walking", (0.6, 0.1, 0.0375, 35, 10), 0.7),
            "short step": ("Walking", (0.2, 0.05, 0.0375, 20, 5), 0.5),
        },
        gain=30.0,
        time_step=0.0375,
        fixed_joints="(?:arm|torso|head|gripper)_.*?",
        size=(0.2, 0.1),
    ),
}


class StepMotion(NamedTuple):
    """What happens at a node: velocities after an impulse, or accelerations and forces; or derivatives of them."""

    v: Any
    vdot: Any
    force: Any
    is_impulse: Any


class Gait(eqx.Module):
    """Steps of Crocoddyl: Euler steps under the contacts of a node, or an impulse that stops feet."""

    contacts: Any
    time_step: float = eqx.field(static=True)

    def acting(self, node: dict) -> Any:
        return self.contacts.with_active({name: node["active"][i] for i, name in enumerate(self.contacts.names)})

    def __call__(self, model: Any, state: mbjax.State, effort: jax.Array, node: dict) -> mbjax.State:
        return self.moved(model, state, self.motion(model, state, effort, node))

    def motion(self, model: Any, state: mbjax.State, effort: jax.Array, node: dict) -> StepMotion:
        """The velocity after an impulse, else accelerations and forces of the feet; which is told by the node."""
        acting, is_impulse = self.acting(node), node["impulse"]
        v = called_if(is_impulse, velocity_after_impact, (model, acting, state.q, state.v), state.v)
        tau = jnp.sum(actuation_matrix(model) * effort, axis=1)
        found = constrained_forward_dynamics(model, acting, state.q, state.v, tau, force_elements=True)
        return StepMotion(v, found.vdot, jnp.where(is_impulse, 0.0, found.force), is_impulse)

    def moved(self, model: Any, state: mbjax.State, motion: StepMotion) -> mbjax.State:
        """The state after an impulse or an Euler step."""
        hit = mbjax.State(state.q, motion.v, state.time)
        return jax.tree.map(lambda x, y: jnp.where(motion.is_impulse, x, y), hit, self.euler_step(state, motion.vdot))

    def motion_slopes(self, model: Any, states: mbjax.State, efforts: jax.Array, nodes: dict) -> list[StepMotion]:
        """Motions of all nodes and their derivatives by q, v and efforts, by the closed forms of the library."""
        B, is_impulse, nv = actuation_matrix(model), nodes["impulse"], states.v.shape[1]
        one = jnp.broadcast_to(jnp.eye(nv), (len(is_impulse), nv, nv))

        def hit(q: jax.Array, v: jax.Array, node: dict) -> tuple[jax.Array, jax.Array, jax.Array]:
            of = contact_impulse_derivatives(model, self.acting(node), q, v)
            return v + of.result.vdot, of.x_q, jnp.eye(nv) + of.x_v

        def go(q: jax.Array, v: jax.Array, effort: jax.Array, node: dict) -> Any:
            return contact_motion_derivatives(model, self.acting(node), q, v, B @ effort)

        plain = states.v, jnp.zeros_like(one), one
        v, v_q, v_v = replace_chosen(hit, is_impulse, (states.q, states.v, nodes), plain)
        of = jax.vmap(go)(states.q, states.v, efforts, nodes)
        parts = (
            (v, of.result.vdot, of.result.multipliers),
            (v_q, of.x_q, of.force_q),
            (v_v, of.x_v, of.force_v),
            (None, of.x_tau @ B, of.force_tau @ B),
        )
        there = jnp.where(is_impulse, 0.0, 1.0)
        return [StepMotion(v, a, f * there.reshape(-1, *(1,) * (f.ndim - 1)), is_impulse) for v, a, f in parts]

    def linearize(self, model: Any, states: mbjax.State, efforts: jax.Array, nodes: dict, motions: Any = None) -> Any:
        """A and B of all nodes at once, by the closed forms that the library's own steps use."""
        motions = self.motion_slopes(model, states, efforts, nodes) if motions is None else motions
        motion, by_q, by_v, by_u = motions
        W = jnp.concatenate([by_q.vdot, by_v.vdot, by_u.vdot], axis=2)
        AB = jax.vmap(self.slopes_of_euler_step)(states.v, motion.vdot, W)
        one = jnp.broadcast_to(jnp.eye(states.v.shape[1]), by_q.v.shape)
        hit = jnp.concatenate([jnp.concatenate([one, 0.0 * one], 2), jnp.concatenate([by_q.v, by_v.v], 2)], 1)
        hit = jnp.concatenate([hit, jnp.zeros((*hit.shape[:2], efforts.shape[1]))], axis=2)
        AB = jnp.where(motion.is_impulse[:, None, None], hit, AB)
        ndx = hit.shape[1]
        return to.Linearization(AB[:, :, :ndx], AB[:, :, ndx:])

    def step_of_base(self, v: jax.Array, vdot: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """New angular velocity, the rotation vector of the step, and its velocity u before that turn.

        The base moves along the twist dt (w_B, v_B) of its own frame. In the world's axes that is a turn by dt w and a
        displacement dt V(dt w) u, and its new velocity is exp(dt w) u: none of them depends on the attitude.
        """
        dt = self.time_step
        w = v[:3] + dt * vdot[:3]
        return w, dt * w, v[3:6] + dt * (vdot[3:6] - cross3(v[:3], v[3:6]))

    def euler_step(self, state: mbjax.State, vdot: jax.Array) -> mbjax.State:
        """A step whose base velocity and twist are those in its own frame; here (w, v) are those in the world."""
        dt = self.time_step
        q, v = state.q, state.v
        w, turn, u = self.step_of_base(v, vdot)
        joints_v = v[6:] + dt * vdot[6:]
        quaternion = quaternion_multiply(quaternion_exp(turn), q[:4])
        p = q[4:7] + dt * small_matvec(displacement_matrix(turn), u)
        q_after = jnp.concatenate([quaternion, p, q[7:] + dt * joints_v])
        v_after = jnp.concatenate([w, small_matvec(rotation_exp(turn), u), joints_v])
        return mbjax.State(q_after, v_after, state.time + dt)

    def slopes_of_euler_step(self, v: jax.Array, vdot: jax.Array, W: jax.Array) -> jax.Array:
        """Derivatives of `euler_step` by (dq, dv, du), of whose accelerations W has the derivatives."""
        dt = self.time_step
        nv, n = W.shape
        _, turn, u = self.step_of_base(v, vdot)
        R, V = rotation_exp(turn), displacement_matrix(turn)
        dq, dv = jnp.eye(nv, n), jnp.eye(nv, n, nv)
        w_u = dv[3:6] + dt * (W[3:6] - small_matmul(skew(v[:3]), dv[3:6]) + small_matmul(skew(v[3:6]), dv[:3]))
        w_w = dv[:3] + dt * W[:3]
        turned = dt * small_matmul(V, w_w)
        D = jax.jacfwd(lambda turn: small_matvec(displacement_matrix(turn), u))(turn)
        p = dq[3:6] + dt * (dt * small_matmul(D, w_w) + small_matmul(V, w_u))
        v_after = small_matmul(R, w_u) - small_matmul(skew(small_matvec(R, u)), turned)
        joints = dv[6:] + dt * W[6:]
        of_q = [turned + small_matmul(R, dq[:3]), p, dq[6:] + dt * joints]
        return jnp.concatenate([*of_q, w_w, v_after, joints])


def velocity_after_impact(model: Any, contacts: Any, q: jax.Array, v: jax.Array) -> jax.Array:
    """Velocities after the impulse of all active contacts."""
    return constraint_impulses(model, contacts, q, v).v


class WrenchRows(AbstractForceTerm):
    """Rows of Crocoddyl's cone; zero of a foot that is not down, which is within all bounds."""

    dynamics: Gait
    feet: tuple[to.FlatFoot, ...]
    rows: jax.Array  # of force, then torque

    def of_force(self, force: jax.Array, stage: dict) -> jax.Array:
        wrenches = [jnp.roll(foot.wrench(self.dynamics, force), 3) for foot in self.feet]
        return jnp.concatenate([small_matvec(self.rows, wrench) for wrench in wrenches])


class Costs(eqx.Module):
    """Goals of a node, with its references and weights."""

    start: mbjax.State
    zero: mbjax.State
    bounds: tuple[jax.Array, jax.Array] | None
    cone: tuple[Any, Any, Any]  # of the forces that feet bear: rows, and their bounds
    feet: tuple[str, ...] = eqx.field(static=True)

    def running(self, node: dict) -> list:
        """Goals of states, efforts and forces."""
        factor = node["factor"]
        return [
            *self.of_states(node),
            to.Effort(factor=factor * node["effort_weight"]),
            to.Barrier(*self.cone, factor=factor * node["cone_weight"]),
        ]

    def of_states(self, node: dict) -> list:
        """Goals of states alone."""
        factor = node["factor"]
        weights = [factor * weight for weight in jnp.unstack(node["feet_weights"])]
        if "turns" in node:
            poses = [mbjax.RigidTransform(node["turns"][i], node["feet"][i]) for i in range(len(self.feet))]
            feet = [
                to.PoseGoal(name, pose, factor=weight, in_frame="own")
                for name, pose, weight in zip(self.feet, poses, weights, strict=True)
            ]
        else:
            feet = [
                to.PointGoal(name, point, factor=weight)
                for name, point, weight in zip(self.feet, jnp.unstack(node["feet"]), weights, strict=True)
            ]
        zero = to.StateGoal(self.zero, in_frame="own")
        limits = [to.Barrier(zero, *self.bounds, factor=factor * node["bounds_weight"])] if self.bounds else []
        return [
            to.StateGoal(self.start, factor=factor * node["state_weights"], in_frame="own"),
            to.CenterOfMass(node["com"], factor=factor * node["com_weight"]),
            *feet,
            *limits,
        ]


def load(legged: Legged) -> mbjax.MultibodyModel:
    """The robot here: joints without limits, and motors without."""
    text = re.sub(r"<limit [^>]*/>", "", legged.urdf).replace('type="revolute"', 'type="continuous"')
    return mbjax.load(text, time_step=legged.time_step, base="floating", actuators="joints", on_unsupported="warn")


def problem_of(legged: Legged, model: Any, given: dict, gait: dict) -> tuple[to.Problem, Any]:
    """A gait as a problem here, and how to read Pinocchio's states."""
    names = given["joint_names"]
    nv = model.num_velocities

    def state(x: Any, time: float = 0.0) -> mbjax.State:
        x = jnp.asarray(x)
        return mbjax.state_from_pinocchio(model, x[: nv + 1], x[nv + 1 :], names, time=time)

    nodes = {key: jnp.asarray(np.array([node[key] for node in gait["nodes"]])) for key in gait["nodes"][0]}
    nodes["factor"] = nodes["factor"].at[-1].set(1.0)
    nodes["effort_weight"] = jnp.where(nodes["impulse"], 1.0, nodes["effort_weight"])  # efforts there change nothing
    order = joint_order(model, names)
    columns = np.concatenate([np.arange(6), 6 + order])
    order_of_base = [3, 4, 5, 0, 1, 2]  # there translation comes first
    columns[:6] = order_of_base
    columns = np.concatenate([columns, nv + columns])
    nodes["state_weights"] = nodes["state_weights"][:, columns]
    bounds = None
    if given["bounds"]:
        low, high = (np.array(given["bounds"][side])[columns] for side in ("lower", "upper"))
        bounds = infinite(low), infinite(high)
        bounds = tuple(x.at[:6].set(limit) for x, limit in zip(bounds, (-jnp.inf, jnp.inf), strict=True))
    feet, normals, time = mbjax.ConstraintSet(), np.eye(3)[[2, 0, 1]], 2.0 / legged.gain
    flat = tuple(to.FlatFoot(name, name, legged.size) for name in legged.feet if legged.size)
    for foot in flat:
        foot.add_to(feet, stabilization_time=time)
    for name in () if flat else legged.feet:
        feet.add_contact_constraint(name, [0.0, 0, 0], normals, name=name, stabilization_time=time)
    dynamics = Gait(feet.bind(model), legged.time_step)
    rows, *limits = (infinite(np.array(gait["cone"][key])) for key in ("A", "lower", "upper"))
    if flat:
        nodes["active"] = jnp.repeat(nodes["active"], len(flat[0].contact_names), axis=1)
        cone = (WrenchRows(dynamics, flat, rows), *(jnp.tile(limit, len(flat)) for limit in limits))
    else:
        cone = (to.FrictionPyramid(dynamics, -rows[0, 2]), 0.0, jnp.inf)
    start = state(given["start"])
    neutral = np.zeros(2 * nv + 1)
    neutral[6] = 1.0
    costs = Costs(start, state(neutral), bounds, cone, legged.feet)
    steps = len(gait["nodes"]) - 1
    running, final = to.AtStage(costs.running), to.AtStage(costs.of_states)
    return to.Problem(model, start, steps, running, final, stages=nodes, dynamics=dynamics), (state, order)


def infinite(x: np.ndarray) -> jax.Array:
    """Numbers of which those beyond 1e100 stand for infinity."""
    return jnp.asarray(np.where(abs(x) < 1e100, x, np.copysign(np.inf, x)))


def joint_order(model: Any, names: list[str]) -> np.ndarray:
    """Where the model's actuated joints are among Pinocchio's."""
    theirs = names[2:]
    return np.array([theirs.index(name) for name in model.actuator_names])


def differences(problem: to.Problem, states: mbjax.State, efforts: jax.Array, costs: np.ndarray) -> tuple[float, float]:
    """Largest differences of nodes' costs, as parts of them, and of steps, along Crocoddyl's optimum."""
    model, (before, after) = problem.model, (jax.tree.map(lambda x, p=p: x[p], states) for p in (np.s_[:-1], np.s_[1:]))
    nodes = jax.tree.map(lambda x: x[:-1], problem.stages)

    @jax.jit
    @jax.vmap
    def one(x: Any, u: jax.Array, node: dict, after: Any) -> tuple[jax.Array, jax.Array]:
        cost = 0.5 * jnp.sum(problem.running[0](model, x, u, node) ** 2)
        return cost, to.difference_states(model, after, problem.next_state(x, u, node))

    ours, gaps = one(before, efforts, nodes, after)
    return float(np.max(np.abs(ours / costs[:-1] - 1.0))), float(jnp.max(jnp.abs(gaps)))


def there(legged: Legged, python: str, gaits: Sequence[str] | None) -> dict:
    """The gaits as Crocoddyl has them, node by node, and what it found."""
    urdf = legged.urdf
    joints = re.findall(r'<joint name="([^"]*)" type="revolute"', urdf)
    asked = {
        "urdf": urdf,
        "feet": legged.feet,
        "height": legged.height,
        "standing": {joint: legged.standing(joint) for joint in joints},
        "gaits": {name: legged.gaits[name] for name in gaits or legged.gaits},
    }
    script = pathlib.Path(__file__).with_name("crocoddyl_gaits.py")
    done = subprocess.run([python, script], input=json.dumps(asked), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def main() -> None:
    """Prints a row for each gait."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crocoddyl", default=sys.executable, help="an interpreter that has Crocoddyl")
    parser.add_argument("--robot", choices=ROBOTS, default="hyq")
    parser.add_argument("--gaits", nargs="+", help="some of the robot's gaits")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    legged = ROBOTS[options.robot]
    given, model = there(legged, options.crocoddyl, options.gaits), load(legged)
    solver = to.FeasibilityDDP(tolerance=1e-12, max_iterations=100)
    for name, gait in given["gaits"].items():
        problem, (state, order) = problem_of(legged, model, given, gait)
        theirs = jax.tree.map(lambda *x: jnp.stack(x), *(state(x) for x in gait["states"]))
        efforts, guess = (jnp.asarray(np.array(gait[key])[:, order]) for key in ("efforts", "guess"))
        of_costs, of_steps = differences(problem, theirs, efforts, np.array(gait["costs"]))
        still = jax.tree.map(
            lambda x, n=problem.num_steps: jnp.repeat(jnp.asarray(x)[None], n + 1, axis=0), problem.start
        )
        times = []
        for _ in range(3):
            begin = time.process_time()
            plan = jax.block_until_ready(to.solve(problem, (still, guess), solver))
            times.append(time.process_time() - begin)
        count, seconds = int(plan.report.iterations), min(times)
        print(
            f"{name}: nodes differ by {of_costs:.0e} in cost and {of_steps:.0e} in steps; cost {float(plan.cost):.9g} "
            f"and {gait['cost']:.9g}, {count} and {gait['iterations']} iterations, {1e3 * seconds / count:.1f} and "
            f"{1e3 * gait['seconds'] / gait['iterations']:.1f} ms each, {times[0] - seconds:.0f} s to compile",
            flush=True,
        )


if __name__ == "__main__":
    main()
