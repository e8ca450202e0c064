"""Crocoddyl's five gaits of the quadruped HyQ beside it: the same nodes, cost at convergence, time of an iteration.

    python -m benchmarks.gaits --crocoddyl PYTHON [--gaits walk trot]

PYTHON is an interpreter that has Crocoddyl (`pip install crocoddyl pin==4.0.0`). Its problems are read node by node:
feet in contact, impulses where feet touch down, and weights of all costs. They are stated here as a `Problem` whose
`dynamics` takes the same steps: Pinocchio moves a floating base along twists in its own frame, and feet are held with a
velocity gain of 50. First, costs and
steps along Crocoddyl's optimum are compared. Times are of the processor.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import time
from typing import Any

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
from mbjax.simulation import actuation_matrix
from mbjax.spatial import quaternion_exp, quaternion_multiply, quaternion_to_matrix, rotation_exp, rotation_log
from mbjax.trajectory_optimization.linearization import replace_chosen

from .robots import Robot, reduced_urdf

HYQ = Robot("hyq", "HyQ (18 dof)", "hyq_description/robots/hyq_no_sensors.urdf", "floating")
FEET = "lf_foot", "rf_foot", "lh_foot", "rh_foot"
DT = 0.01
GAIN = 50.0  # of the feet's velocities: 2 / stabilization time


def cross(w: jax.Array) -> jax.Array:
    """The matrix of w ×."""
    zero = jnp.zeros((), w.dtype)
    return jnp.array([[zero, -w[2], w[1]], [w[2], zero, -w[0]], [-w[1], w[0], zero]])


def series(x: jax.Array, near: list[float], far: Any) -> jax.Array:
    """far(angle) of the square x, by a series where the angle is small."""
    small = x < 1e-2
    angle = jnp.sqrt(jnp.where(small, 1.0, x))
    return jnp.where(small, jnp.polyval(jnp.array(near[::-1], x.dtype), x), far(angle))


def left_jacobian(w: jax.Array) -> jax.Array:
    """V of the exponential of a twist: its translation is V(w) v."""
    x, W = w @ w, cross(w)
    a = series(x, [1 / 2, -1 / 24, 1 / 720, -1 / 40320, 1 / 3628800], lambda t: (1 - jnp.cos(t)) / t**2)
    b = series(x, [1 / 6, -1 / 120, 1 / 5040, -1 / 362880, 1 / 39916800], lambda t: (t - jnp.sin(t)) / t**3)
    return jnp.eye(3, dtype=w.dtype) + a * W + b * W @ W


def inverse_left_jacobian(w: jax.Array) -> jax.Array:
    """The inverse of V."""
    x, W = w @ w, cross(w)
    c = series(
        x,
        [1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160],
        lambda t: (1 - t * (1 + jnp.cos(t)) / (2 * jnp.sin(t))) / t**2,
    )
    return jnp.eye(3, dtype=w.dtype) - 0.5 * W + c * W @ W


class Gait(eqx.Module):
    """Steps of Crocoddyl: Euler steps under the contacts of a node, or an impulse that stops feet."""

    feet: Any

    def acting(self, node: dict) -> Any:
        return self.feet.with_active({name: node["active"][i] for i, name in enumerate(self.feet.names)})

    def motion(self, model: Any, state: mbjax.State, effort: jax.Array, node: dict) -> tuple[jax.Array, jax.Array]:
        """Accelerations and forces of the feet."""
        tau = actuation_matrix(model) @ effort
        found = constrained_forward_dynamics(model, self.acting(node), state.q, state.v, tau, force_elements=True)
        return found.vdot, found.force

    def __call__(self, model: Any, state: mbjax.State, effort: jax.Array, node: dict) -> mbjax.State:
        def hit() -> mbjax.State:
            return mbjax.State(state.q, constraint_impulses(model, self.acting(node), state.q, state.v).v, state.time)

        def go() -> mbjax.State:
            return euler_step(state, self.motion(model, state, effort, node)[0])

        return jax.lax.cond(node["impulse"], hit, go)

    def linearize(self, model: Any, states: mbjax.State, efforts: jax.Array, nodes: dict) -> to.Linearization:
        """A and B of all nodes at once, by the closed forms that the library's own steps use."""

        def hit(q: jax.Array, v: jax.Array, node: dict) -> tuple[jax.Array, jax.Array]:
            of, n = contact_impulse_derivatives(model, self.acting(node), q, v), len(v)
            one, zero = jnp.eye(n, dtype=q.dtype), jnp.zeros((n, n), q.dtype)
            return jnp.block([[one, zero], [of.x_q, one + of.x_v]]), jnp.zeros((2 * n, efforts.shape[1]), q.dtype)

        def go(state: mbjax.State, effort: jax.Array, node: dict) -> tuple[jax.Array, jax.Array]:
            B = actuation_matrix(model)
            of = contact_motion_derivatives(model, self.acting(node), state.q, state.v, B @ effort)
            by_x, by_vdot = slopes_of_euler_step(state, of.result.vdot)
            nv = len(state.v)
            by_q, by_v = by_x[:, :nv] + by_vdot @ of.x_q, by_x[:, nv:] + by_vdot @ of.x_v
            return jnp.concatenate([by_q, by_v], axis=1), by_vdot @ (of.x_tau @ B)

        A, B = jax.vmap(go)(states, efforts, nodes)
        return to.Linearization(*replace_chosen(hit, nodes["impulse"], (states.q, states.v, nodes), (A, B)))


def euler_step(state: mbjax.State, vdot: jax.Array) -> mbjax.State:
    """A step whose base velocity and twist are those in its own frame; here (w, v) are those in the world."""
    q, v = state.q, state.v
    R, w, p_dot = quaternion_to_matrix(q[:4]), v[:3], v[3:6]
    w_B = R.T @ (w + DT * vdot[:3])
    v_B = R.T @ (p_dot + DT * (vdot[3:6] - jnp.cross(w, p_dot)))
    turn = DT * w_B
    base = mbjax.State(q, v, state.time)
    quaternion = turned(base.q[:4], R @ turn)
    p = q[4:7] + R @ left_jacobian(turn) @ (DT * v_B)
    R_after = R @ rotation_exp(turn)
    joints_v = v[6:] + DT * vdot[6:]
    q_after = jnp.concatenate([quaternion, p, q[7:] + DT * joints_v])
    return mbjax.State(q_after, jnp.concatenate([R_after @ w_B, R_after @ v_B, joints_v]), state.time + DT)


def slopes_of_euler_step(state: mbjax.State, vdot: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Derivatives of `euler_step` by the state's tangent and by vdot: only the base's are not plain."""
    n = len(vdot)

    def base(dq: jax.Array, v: jax.Array, vdot: jax.Array) -> jax.Array:
        q = jnp.concatenate([turned(state.q[:4], dq[:3]), state.q[4:7] + dq[3:]])
        after = euler_step(mbjax.State(q, v, state.time), vdot)
        here = quaternion_to_matrix(euler_step(mbjax.State(state.q[:7], state.v[:6], state.time), slow).q[:4])
        turn = rotation_log(quaternion_to_matrix(after.q[:4]) @ jax.lax.stop_gradient(here).T)
        return jnp.concatenate([turn, after.q[4:7], after.v])

    slow = vdot[:6]
    of_base = jax.jacfwd(base, (0, 1, 2))(jnp.zeros(6, vdot.dtype), state.v[:6], slow)
    rest, dt = jnp.arange(6, n), DT

    def whole(block: jax.Array, of_q: float, of_v: float) -> jax.Array:
        J = jnp.zeros((2 * n, n), vdot.dtype).at[:6, :6].set(block[:6]).at[n : n + 6, :6].set(block[6:])
        return J.at[rest, rest].set(of_q).at[n + rest, rest].set(of_v)

    by_q, by_v, by_vdot = (whole(*x) for x in zip(of_base, (1.0, dt, dt * dt), (0.0, 1.0, dt), strict=True))
    return jnp.concatenate([by_q, by_v], axis=1), by_vdot


def turned(quaternion: jax.Array, w: jax.Array) -> jax.Array:
    """The attitude turned by a rotation vector in the world."""
    return quaternion_multiply(quaternion_exp(w), quaternion)


def state_residual(model: Any, q_ref: jax.Array, state: mbjax.State) -> jax.Array:
    """Crocoddyl's difference from a state at rest: logarithm of the base's pose, joints, and velocities in the base."""
    q, v = state.q, state.v
    R_ref, R = quaternion_to_matrix(q_ref[:4]), quaternion_to_matrix(q[:4])
    turn = rotation_log(R_ref.T @ R)
    shift = inverse_left_jacobian(turn) @ (R_ref.T @ (q[4:7] - q_ref[4:7]))
    return jnp.concatenate([shift, turn, q[7:] - q_ref[7:], R.T @ v[3:6], R.T @ v[:3], v[6:]])


class Costs(eqx.Module):
    """Residuals of a node, each times the root of its weight."""

    gait: Gait
    q_ref: jax.Array
    q_zero: jax.Array
    bounds: tuple[jax.Array, jax.Array]
    cone: tuple[jax.Array, jax.Array, jax.Array]

    def __call__(self, model: Any, state: mbjax.State, *rest: Any) -> jax.Array:
        *effort, node = rest
        root = jnp.sqrt(node["factor"])
        parts = [jnp.sqrt(node["state_weights"]) * state_residual(model, self.q_ref, state)]
        com = mbjax.center_of_mass_position_in_world(model, state.q) - node["com"]
        parts.append(jnp.sqrt(node["com_weight"]) * com)
        at = mbjax.body_poses_in_world(model, state.q).translation[np.array([model.body_index(name) for name in FEET])]
        parts.append(jnp.ravel(jnp.sqrt(node["feet_weights"])[:, None] * (at - node["feet"])))
        from_zero = state_residual(model, self.q_zero, state)
        parts.append(jnp.sqrt(node["bounds_weight"]) * beyond(from_zero, *self.bounds)[6:])
        if effort:
            parts.append(jnp.sqrt(node["effort_weight"]) * effort[0])
            _, force = self.gait.motion(model, state, effort[0], node)
            A, low, high = self.cone
            wall = jax.vmap(lambda f: beyond(A @ f, low, high))(force.reshape(4, 3))
            wall = jnp.where((node["active"] & ~node["impulse"])[:, None], wall, 0.0)
            parts.append(jnp.sqrt(node["cone_weight"]) * jnp.ravel(wall))
        return root * jnp.concatenate(parts)


def beyond(r: jax.Array, low: jax.Array, high: jax.Array) -> jax.Array:
    """How far values are beyond bounds."""
    return jnp.minimum(r - low, 0.0) + jnp.maximum(r - high, 0.0)


def load() -> mbjax.MultibodyModel:
    """HyQ here: joints without limits, and motors without."""
    text = re.sub(r"<limit [^>]*/>", "", reduced_urdf(HYQ)).replace('type="revolute"', 'type="continuous"')
    return mbjax.load(text, time_step=DT, base="floating", actuators="joints", on_unsupported="warn")


def problem_of(model: Any, given: dict, gait: dict) -> tuple[to.Problem, Any]:
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
    nodes["state_weights"] = nodes["state_weights"][:, np.concatenate([columns, nv + columns])]
    bounds = tuple(
        jnp.asarray(np.clip(np.array(given["bounds"][side]), -1e300, 1e300)[np.concatenate([columns, nv + columns])])
        for side in ("lower", "upper")
    )
    feet = mbjax.ConstraintSet()
    for name in FEET:
        feet = feet.add_contact_constraint(name, [0.0, 0, 0], np.eye(3), name=name, stabilization_time=2.0 / GAIN)
    dynamics = Gait(feet.bind(model))
    start = state(given["start"])
    neutral = np.zeros(2 * nv + 1)
    neutral[6] = 1.0
    cone = tuple(jnp.asarray(np.array(given["cone"][k])) for k in ("A", "lower", "upper"))
    zero = state(neutral).q
    costs = Costs(dynamics, start.q, zero, bounds, cone)
    problem = to.Problem(model, start, len(gait["nodes"]) - 1, costs, costs, stages=nodes, dynamics=dynamics)
    return problem, (state, order)


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


def main() -> None:
    """Prints a row for each gait."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crocoddyl", default=sys.executable, help="an interpreter that has Crocoddyl")
    parser.add_argument("--gaits", nargs="+", default=["walk", "trot", "pace", "bound", "jump"])
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    script = pathlib.Path(__file__).with_name("crocoddyl_gaits.py")
    done = subprocess.run(
        [options.crocoddyl, script], input=reduced_urdf(HYQ), capture_output=True, text=True, check=True
    )
    given, model, solver = json.loads(done.stdout), load(), to.FeasibilityDDP(tolerance=1e-12, max_iterations=100)
    for name in options.gaits:
        gait = given["gaits"][name]
        problem, (state, order) = problem_of(model, given, gait)
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
