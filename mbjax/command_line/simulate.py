"""`mbjax simulate [FILE]`: simulates a robot, differentiates the rollout, and draws pictures of it."""

import argparse
import warnings
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mbjax.dynamics import kinetic_energy, mass_matrix, potential_energy
from mbjax.errors import ModelWarning
from mbjax.formats import Parser
from mbjax.model import (
    CouplerConstraint,
    MultibodyModel,
    actuator_ratios,
    all_joint_positions,
    all_joint_velocities,
    set_controller_gains,
    set_masses,
)
from mbjax.model.model_table import print_model
from mbjax.model.whole_table import Column, WholeTable
from mbjax.plant import MultibodyPlant
from mbjax.progress import telling
from mbjax.simulation import Inputs, Trajectory, default_state, rollout
from mbjax.visualization import animate, write_plots

STEPS_PER_CALL = 100
SWING = {"rad": 0.9, "m": 0.3}  # largest amplitude of the targets
SWING_PERIOD = 3.0  # s


class GradientRow(NamedTuple):
    """One entry of a gradient, with its finite difference."""

    group: str
    name: str
    autodiff: float
    finite_difference: float


def simulate_model(options: argparse.Namespace, console: Console) -> None:
    """Loads a model, prints and simulates it, differentiates the rollout, and draws pictures."""
    model, num_added = load_with_actuators(options)
    print_model(console, model, weld="--base fixed")
    if num_added:
        console.print(
            f"the file has no actuators: one was added to each of its {num_added} one-dof joints that bear an effort"
        )
    if not model.num_actuators:
        console.print("the model has no actuators, and no joint that one can drive: it moves without control")
    with telling("tuning the controller"):
        model = tune_controller(model, options.bandwidth)
    targets = make_targets(model, round(options.duration / options.time_step))
    trajectory = run_with_progress(model, targets, console)
    window = min(targets.shape[0], max(1, round(options.gradient_duration / options.time_step)))
    with telling(f"differentiating a rollout of {window} steps"):
        cost, rows = differentiate_rollout(model, targets[:window])
    console.print(gradient_table(cost, rows, window))
    options.output.mkdir(parents=True, exist_ok=True)
    with telling("drawing"):
        paths = draw(model, trajectory, rows, options)
    for path in paths:
        console.print(f"wrote {path}", markup=False)


def load_with_actuators(options: argparse.Namespace) -> tuple[MultibodyModel, int]:
    """Loads the file's model; if it has no actuators, as with `--actuators joints`. Returns the number added so.

    An actuator that is added has its joint's effort limit. Joints that mimic others, or have the limit 0, get none.
    """
    plant = read_plant(options, options.actuators)
    if plant.actuators or options.actuators == "joints":
        return plant.finalize(), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # given above
        plant = read_plant(options, "joints")
    return plant.finalize(), len(plant.actuators)


def read_plant(options: argparse.Namespace, actuators: Literal["file", "joints"]) -> MultibodyPlant:
    """The file as a plant, before finalize."""
    plant = MultibodyPlant(options.time_step, contact_model="none")  # as in `load`, since a file has no ground
    parser = Parser(
        plant, base=options.base, package_map=options.package_map, on_unsupported=options.on_unsupported,
        mimic=options.mimic, xacro_arguments=options.xacro_arguments, actuators=actuators,
    )  # fmt: skip
    parser.add_models(options.file)
    return plant


def tune_controller(model: MultibodyModel, bandwidth: float) -> MultibodyModel:
    """Critically damped PD gains at a bandwidth in Hz, from the inertia each joint sees at the default pose.

    The inertia includes that of rotors behind gears, and an effort acts at the joint, so that no gear ratio enters
    here. That of a joint that mimics acts on its leader through its multiplier, as does the position that it reads.
    """
    if not model.num_actuators:
        return model
    inertia = jnp.diag(jax.jit(mass_matrix)(model, model.parameters.default_positions))
    velocities = model.layout.velocities_of_actuators
    ratios = actuator_ratios(model)
    squares = jnp.ones(len(velocities), model.dtype) if ratios is None else ratios**2
    sharing = jnp.array([velocities.count(place) for place in velocities], model.dtype)
    divisor = jnp.where(squares > 0.0, squares, jnp.inf) * sharing
    seen = inertia[jnp.array(velocities, int)] / divisor
    w = 2.0 * np.pi * bandwidth
    return set_controller_gains(model, w * w * seen, 2.0 * w * seen)


def make_targets(model: MultibodyModel, num_steps: int) -> Float[Array, "steps two_nu"]:
    """Desired positions and velocities: a slow swing about the default pose within limits, phase-shifted by joint.

    Those of a joint that mimics, or that a coupler holds, follow from its leader's.
    """
    joints, couplers = [model.layout.joints[a.joint] for a in model.layout.actuators], couplers_leaders_first(model)
    leader_of = {coupler.joint0: coupler.joint1 for coupler in couplers}
    leaders = [model.layout.joints[first_leader(leader_of, a.joint)] for a in model.layout.actuators]
    driven = list(dict.fromkeys((joint.q_start, joint.v_start) for joint in leaders))  # its leader's, if one mimics
    in_q, in_v = (jnp.array([place[k] for place in driven], int) for k in (0, 1))
    kind_at = {joint.q_start: joint.kind for joint in model.layout.joints if joint.num_positions}
    default = model.parameters.default_positions
    center, lower, upper = (x[in_q] for x in (default, *limits_with_couplers(model, couplers)))
    room = jnp.minimum(upper - center, center - lower)
    swing = jnp.array([SWING["m" if kind_at[q] == "prismatic" else "rad"] for q, _ in driven], model.dtype)
    width = jnp.where(room > 0.0, jnp.minimum(swing, 0.5 * room), 0.0)
    time = model.time_step * jnp.arange(1, num_steps + 1, dtype=model.dtype)[:, None]
    phase = 2.0 * jnp.pi * time / SWING_PERIOD + 0.5 * jnp.arange(len(driven), dtype=model.dtype)
    share = jnp.minimum(time, 1.0)  # the swing grows in the first second, without a jerk
    start, rate = share**2 * (3.0 - 2.0 * share), 6.0 * share * (1.0 - share)
    w = 2.0 * jnp.pi / SWING_PERIOD
    q = jnp.tile(default, (num_steps, 1)).at[:, in_q].set(center + width * start * jnp.sin(phase))
    swung = width * (start * w * jnp.cos(phase) + rate * jnp.sin(phase))
    v = jnp.zeros((num_steps, model.num_velocities), model.dtype).at[:, in_v].set(swung)
    for coupler in couplers:
        follower, leader = (model.layout.joints[joint] for joint in (coupler.joint0, coupler.joint1))
        q = q.at[:, follower.q_start].set(coupler.gear_ratio * q[:, leader.q_start] + coupler.offset)
        v = v.at[:, follower.v_start].set(coupler.gear_ratio * v[:, leader.v_start])
    of_all = jax.vmap(all_joint_velocities, (None, 0))(model, v)
    velocities = of_all[:, jnp.array([joint.all_v_start for joint in joints], int)]
    return jnp.concatenate([positions_of_actuators(model, q), velocities], axis=1)


def couplers_leaders_first(model: MultibodyModel) -> list[CouplerConstraint]:
    """The active couplers, each after the one that holds its leader; without those of loops, which have no leader.

    None where joints that mimic have no coordinates of their own.
    """
    if model.topology.followers:
        return []
    waiting = [coupler for coupler in model.coupler_constraint_specs().values() if np.all(coupler.active)]
    held, found = {coupler.joint0 for coupler in waiting}, []
    while ready := [coupler for coupler in waiting if coupler.joint0 in held and coupler.joint1 not in held]:
        found.append(ready[0])
        held.remove(ready[0].joint0)
    return found


def first_leader(leader_of: dict[int, int], joint: int) -> int:
    """The joint at the end of a chain of leaders; the joint itself, where nothing holds it."""
    while joint in leader_of:
        joint = leader_of[joint]
    return joint


def limits_with_couplers(
    model: MultibodyModel, couplers: list[CouplerConstraint]
) -> tuple[Float[Array, " nq"], Float[Array, " nq"]]:
    """Position limits, with those of joints that couplers hold as limits of their leaders too."""
    lower, upper = model.position_lower_limits, model.position_upper_limits
    for coupler in reversed(couplers):
        follower, leader = (model.layout.joints[joint].q_start for joint in (coupler.joint0, coupler.joint1))
        if coupler.gear_ratio == 0.0:
            continue
        ends = (jnp.stack([lower[follower], upper[follower]]) - coupler.offset) / coupler.gear_ratio
        lower, upper = lower.at[leader].max(jnp.min(ends)), upper.at[leader].min(jnp.max(ends))
    return lower, upper


def positions_of_actuators(model: MultibodyModel, q: Float[Array, "steps nq"]) -> Float[Array, "steps nu"]:
    """Positions of the joints that actuators drive, those that mimic included, in rad or m."""
    places = jnp.array([model.layout.joints[a.joint].all_q_start for a in model.layout.actuators], int)
    return jax.vmap(all_joint_positions, (None, 0))(model, q)[:, places]


def run_with_progress(model: MultibodyModel, targets: Float[Array, "steps two_nu"], console: Console) -> Trajectory:
    """Runs the rollout in equal pieces, with a progress bar."""
    columns = (TextColumn("simulating"), BarColumn(), TextColumn("{task.fields[at]}"), TimeElapsedColumn())
    advance = jax.jit(lambda state, targets: rollout(model, state, Inputs(desired_state=targets)))
    steps, pieces = targets.shape[0], []
    state = default_state(model)
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=False) as progress:
        task = progress.add_task("simulating", total=steps, at="compiling")
        for start in range(0, steps, STEPS_PER_CALL):
            piece = advance(state, targets[start : start + STEPS_PER_CALL])
            jax.block_until_ready(piece)
            state = piece.final_state
            pieces.append(piece)
            progress.update(task, completed=min(steps, start + STEPS_PER_CALL), at=f"{float(state.time):.2f} s")
    return join_words(pieces)


def join_words(pieces: list[Trajectory]) -> Trajectory:
    """Joins trajectories that follow one another."""

    def with_start(name: str) -> Array:
        first = getattr(pieces[0], name)[:1]
        return jnp.concatenate([first, *[getattr(piece, name)[1:] for piece in pieces]])

    def end_to_end(name: str) -> Array:
        return jnp.concatenate([getattr(piece, name) for piece in pieces])

    return Trajectory(
        with_start("q"),
        with_start("v"),
        with_start("time"),
        end_to_end("generalized_acceleration"),
        end_to_end("net_actuation"),
        end_to_end("constraint_forces"),
    )


def differentiate_rollout(
    model: MultibodyModel, targets: Float[Array, "steps two_nu"]
) -> tuple[float, list[GradientRow]]:
    """The tracking cost of a rollout, and its gradient by reverse mode and by central differences.

    The gradient is with respect to a constant feed-forward effort of every actuator, and to every body's mass.
    """
    nu = model.num_actuators
    state = default_state(model)

    def cost(effort: Array, masses: Array) -> Array:
        inputs = Inputs(actuation=jnp.broadcast_to(effort, (targets.shape[0], nu)), desired_state=targets)
        q = rollout(set_masses(model, masses), state, inputs).q
        return jnp.sum(model.time_step * (positions_of_actuators(model, q[1:]) - targets[:, :nu]) ** 2)

    effort, masses = jnp.zeros(nu, model.dtype), model.parameters.body_mass
    value, (by_effort, by_mass) = jax.jit(jax.value_and_grad(cost, (0, 1)))(effort, masses)
    h_effort = 1e-3 * jnp.maximum(1.0, jnp.abs(effort))
    h_mass = 1e-4 * jnp.where(masses > 0.0, masses, 0.0)

    def shifted(index: Array, sign: Array) -> Array:
        at = (jnp.arange(nu + masses.size) == index).astype(masses.dtype)
        return cost(effort + sign * h_effort * at[:nu], masses + sign * h_mass * at[nu:])

    count = nu + masses.size
    values = jax.jit(lambda: jax.lax.map(lambda x: shifted(*x), (jnp.arange(2 * count) % count, sign_of(count))))()
    steps = jnp.concatenate([h_effort, h_mass])
    difference = (values[:count] - values[count:]) / (2.0 * jnp.where(steps > 0.0, steps, 1.0))
    names = [("feed-forward effort", name) for name in model.actuator_names]
    names += [("mass", name) for name in model.body_names[1:]]
    gradient = np.concatenate([by_effort, by_mass])
    counted = np.concatenate([np.ones(nu, bool), np.asarray(masses) > 0.0])
    rows = [
        GradientRow(group, name, float(a), float(d))
        for (group, name), a, d, use in zip(names, gradient, np.asarray(difference), counted, strict=True)
        if use
    ]
    return float(value), rows


def sign_of(count: int) -> Float[Array, " two_count"]:
    """Signs of the shifts: `count` ones, then `count` minus ones."""
    return jnp.concatenate([jnp.ones(count), -jnp.ones(count)])


def gradient_table(cost: float, rows: list[GradientRow], window: int) -> WholeTable:
    """Table of autodiff gradients and finite differences, by name."""
    scale = {group: max(abs(r.autodiff) for r in rows if r.group == group) for group in {r.group for r in rows}}
    errors = [
        abs(row.autodiff - row.finite_difference) / max(abs(row.autodiff), 1e-9 * scale[row.group], 1e-300)
        for row in rows
    ]
    columns = (
        Column("with respect to", [row.group for row in rows], is_text=True, once=True),
        Column("name", [row.name for row in rows], is_text=True),
        Column("autodiff", [f"{row.autodiff:+.6e}" for row in rows]),
        Column("finite differences", [f"{row.finite_difference:+.6e}" for row in rows]),
        Column("relative difference", [f"{error:.1e}" for error in errors]),
    )
    return WholeTable(f"tracking cost {cost:.4g} over {window} steps, and its gradient", columns)


def draw(model: MultibodyModel, trajectory: Trajectory, rows: list[GradientRow], options: argparse.Namespace) -> list:
    """Writes animation.html and plots.png; returns their paths."""
    title, animation = options.file.stem, options.output / "animation.html"
    animate(model, trajectory, title=title, path=animation)
    kinetic = jax.jit(jax.vmap(lambda q, v: kinetic_energy(model, q, v)))(trajectory.q, trajectory.v)
    potential = jax.jit(jax.vmap(lambda q: potential_energy(model, q)))(trajectory.q)
    energy = {"kinetic": np.asarray(kinetic), "potential": np.asarray(potential)}
    energy["total"] = energy["kinetic"] + energy["potential"]
    plots = write_plots(
        options.output / "plots.png",
        times=np.asarray(trajectory.time),
        q=np.asarray(trajectory.q),
        v=np.asarray(trajectory.v),
        actuation=np.asarray(trajectory.net_actuation),
        position_names=model.position_names(add_model_instance_prefix=False),
        velocity_names=model.velocity_names(add_model_instance_prefix=False),
        actuator_names=model.actuator_names,
        gradient_table=rows,
        energy=energy,
        title=title,
    )
    return [animation, plots]
