"""Stock learners of brax beside the short-horizon actor–critic: returns over time on one machine.

    python -m benchmarks.policies ppo cart_pole 3000000     # steps
    python -m benchmarks.policies ppo ant 6000000
    python -m benchmarks.policies sac cart_pole 100000
    python -m benchmarks.policies apg cart_pole 200         # updates
    python -m benchmarks.policies gradient cart_pole 400    # updates
    python -m benchmarks.policies gradient hopper 300
    python -m benchmarks.policies gradient ant 750
    python -m benchmarks.policies ppo quadruped 1500000 --seed 1 --policy walk.npz      # keeps the policy of this seed
    python -m benchmarks.policies ppo quadruped 1500000 --randomized --policy walk.npz  # worlds of different numbers
    python -m benchmarks.policies picture                   # policies.png of all curves in policies.json

Each prints steps, seconds of wall and of the processor since it began, compilation included, and the mean return of an
episode without exploration; that of seed 0 adds its curve to policies.json. Tasks are cart_pole (an episode has 250
steps), hopper and ant (1000), quadruped, go1 and g1 (500). `python -m benchmarks.walking` measures how it walks.
"""

import argparse
import functools
import importlib
import json
import pathlib
import time
import warnings
from typing import Any

import jax

import mbjax
from mbjax.environments import (
    Ant,
    CartPoleSwingUp,
    Episodes,
    Hopper,
    QuadrupedVelocity,
    RandomPushes,
    Sensor,
    as_brax,
)
from mbjax.learners.network_policy import NetworkPolicy
from mbjax.learners.playground_tasks import FRICTION, PLAYGROUND_TASKS, playground_file, playground_model

# Horizons of 0.3 to 0.8 s: through contact, longer ones give gradients of 1e2 and more, from which nothing is learned.
CONTACT: dict[str, Any] = {"longest": 10.0, "last_rate": 0.1, "critic_passes": 16}
CORRELATED = {"correlation": 0.9, "actor_trace": 0.97}
WALK = CONTACT | {"horizon": 16, "exploration": -1.0, "last_rate": 0.3}
SETTINGS: dict[str, dict[str, Any]] = {
    "cart_pole": {},
    "hopper": CONTACT | {"horizon": 32, "exploration": 0.0},
    "ant": CONTACT
    | CORRELATED
    | {"horizon": 16, "exploration": -1.4, "keeps_exploring": True, "last_rate": 0.02}
    | {"reward_scale": 0.01, "longest": 10.0 / 1024, "policy_rate": 0.02},
    "quadruped": WALK,
    "go1": WALK,
    "g1": WALK
    | {"horizon": 24, "exploration": -1.6, "correlation": 0.8, "actor_trace": 0.95, "actor_rate": 1e-3}
    | {"critic_passes": 8, "last_rate": 0.1, "policy_rate": 0.02},
}
# brax's own batches have hundreds of thousands of steps; small ones learn from fewer steps, which a CPU is short of.
SMALL = {"num_envs": 128, "unroll_length": 32, "batch_size": 16, "num_minibatches": 8, "num_updates_per_batch": 8}
PPO: dict[str, dict[str, Any]] = {
    "cart_pole": SMALL | {"discounting": 0.98, "learning_rate": 1e-3},
    "hopper": SMALL | {"discounting": 0.99},
    "ant": SMALL | {"discounting": 0.98},
    "walker": {
        "num_envs": 512,
        "unroll_length": 16,
        "batch_size": 64,
        "num_minibatches": 8,
        "num_updates_per_batch": 4,
        "learning_rate": 5e-4,
        "entropy_cost": 2e-3,
        "discounting": 0.97,
        "reward_scaling": 0.2,
        "num_eval_envs": 64,
    },
}
CURVES = pathlib.Path(__file__).parent / "policies.json"
WALKING = CURVES.with_name("quadruped.npz")
RANDOMIZED = {  # what differs from world to world, of a robot with PD controllers
    "mass:*": mbjax.uniform(0.8, 1.2, relative=True),
    "friction:*": mbjax.uniform(0.5, 1.25, relative=True),
    "kp:*": mbjax.uniform(0.8, 1.2, relative=True),
    "kd:*": mbjax.uniform(0.8, 1.2, relative=True),
}
TASKS = {"cart_pole": 250, "hopper": 1000, "ant": 1000, "quadruped": 500, "go1": 500, "g1": 500}  # steps of an episode


def episodes(task: str) -> Episodes:
    """The task with its length."""
    if task == "cart_pole":
        return Episodes(CartPoleSwingUp(mbjax.load("cart_pole", time_step=0.02)), length=TASKS[task])
    if task in WALKERS:
        return Episodes(walker(task, is_disturbed=True), length=TASKS[task])
    import gymnasium

    path = pathlib.Path(gymnasium.__file__).parent / f"envs/mujoco/assets/{task}.xml"
    time_step = {"ant": 0.01, "hopper": 0.002}[task]
    with warnings.catch_warnings():  # the ant's joints start outside of their ranges: the task moves them inside
        warnings.simplefilter("ignore")
        model = mbjax.load(path, time_step=time_step, contact_model="point", on_unsupported="warn")
    return Episodes({"ant": Ant, "hopper": Hopper}[task](model), length=TASKS[task])


def quadruped(time_step: float = 0.01) -> mbjax.MultibodyModel:
    """The bundled robot, whose feet may touch the ground, with controllers."""
    model = mbjax.load("quadruped", time_step=time_step, ground=0.8, contact_pairs=[("*foot*", "ground")])
    return mbjax.set_controller_gains(model, 60.0, 1.5)


def go1(time_step: float = 0.01) -> mbjax.MultibodyModel:
    """Playground's Unitree Go1 on its floor, with the gains of its file."""
    return playground_model("Go1JoystickFlatTerrain", time_step)


def g1(time_step: float = 0.01) -> mbjax.MultibodyModel:
    """Playground's Unitree G1, whose soles alone may touch its floor, with legs and waist stiff enough to stand."""
    with warnings.catch_warnings():  # of meshes that are only drawn
        warnings.simplefilter("ignore")
        path = playground_file(PLAYGROUND_TASKS["G1JoystickFlatTerrain"].file)
        soles = [("*foot*", "floor")]
        model = mbjax.load(path, time_step=time_step, contact_pairs=soles, on_unsupported="warn")
    for shape in sorted({name for pair in model.collision_pairs for name in pair}):
        model = mbjax.set_friction(model, shape, FRICTION)
    for actuator in model.layout.actuators:
        if any(part in model.joint(actuator.joint).name for part in ("hip", "knee", "ankle", "waist")):
            model = mbjax.set_controller_gains(model, 200.0, 5.0, actuator.name)
    return model


WALKERS = {"quadruped": quadruped, "go1": go1, "g1": g1}
SMALL_STEPS = {"fastest": (0.4, 0.2, 0.5), "width": 0.05, "effort_cost": 1e-5, "keyframe": "knees_bent"}
OPTIONS: dict[str, dict[str, Any]] = {"quadruped": {}, "go1": {}, "g1": SMALL_STEPS}
TRUNK = {"quadruped": "trunk", "go1": "trunk", "g1": "pelvis"}


def walker(robot: str, is_disturbed: bool = False, time_step: float = 0.01, **options: Any) -> QuadrupedVelocity:
    """A robot that walks at commanded velocities, perhaps under the pushes and the noise of training."""
    if is_disturbed:
        options |= {"encoders": Sensor(noise=0.02), "pushes": RandomPushes(TRUNK[robot], 40.0, 0.004, 10)}
    return QuadrupedVelocity(WALKERS[robot](time_step), **(OPTIONS[robot] | options))


class Curve:
    """Returns over time: prints each, and adds them to the file of curves if they have a name there."""

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.began, self.used = time.perf_counter(), time.process_time()
        self.points: list[list[float]] = []

    def __call__(self, steps: int, found: float) -> None:
        wall, processor = time.perf_counter() - self.began, time.process_time() - self.used
        print(f"{steps:8d} steps, {wall:6.1f} s ({processor:6.1f} s): return {found:7.2f}", flush=True)
        self.points.append([steps, round(wall, 1), round(processor, 1), round(found, 2)])
        if self.name is None:
            return
        curves = json.loads(CURVES.read_text()) if CURVES.exists() else {}
        CURVES.write_text(json.dumps(curves | {self.name: self.points}, indent=None) + "\n")


def settings_of(method: str, task: str, amount: int) -> dict[str, Any]:
    """What a learner of brax is called with beside the task; networks as wide as the gradient method's, for a CPU."""
    networks: Any = importlib.import_module(f"brax.training.agents.{method}.networks")
    if method == "ppo":
        wide: dict[str, Any] = {"policy_hidden_layer_sizes": (64, 64), "value_hidden_layer_sizes": (128, 128)}
        if task in WALKERS:  # its first actions are small: the trot in open loop, and noise
            small = functools.partial(jax.nn.initializers.variance_scaling, 0.01, "fan_in", "uniform")
            wide |= {"policy_hidden_layer_sizes": (128, 128), "mean_kernel_init_fn": small}
            wide |= {"distribution_type": "normal", "noise_std_type": "log", "init_noise_std": 0.5}
        return {
            "num_timesteps": amount,
            "learning_rate": 3e-4,
            "entropy_cost": 1e-3,
            "reward_scaling": 0.1,
            "clipping_epsilon": 0.2,
            "max_grad_norm": 1.0,
            "num_evals": 13,
            "num_eval_envs": 32,
            "network_factory": functools.partial(networks.make_ppo_networks, **wide),
        } | PPO["walker" if task in WALKERS else task]
    if method == "sac":
        return {
            "num_timesteps": amount,
            "num_envs": 32,
            "grad_updates_per_step": 8,
            "min_replay_size": 4096,
            "max_replay_size": 200_000,
            "learning_rate": 1e-3,
            "discounting": 0.98,
            "num_evals": 6,
            "num_eval_envs": 32,
            "network_factory": functools.partial(networks.make_sac_networks, hidden_layer_sizes=(64, 64)),
        }
    return {
        "policy_updates": amount,
        "num_envs": 64,
        "horizon_length": 64,
        "learning_rate": 2e-3,
        "max_gradient_norm": 1.0,
        "num_evals": 6,
        "num_eval_envs": 32,
        "network_factory": functools.partial(networks.make_apg_networks, hidden_layer_sizes=(64, 64)),
    }


def by_brax(options: argparse.Namespace, curve: Curve) -> None:
    """PPO, SAC or APG of brax, with its own wrappers; PPO's policy is kept, as far as it is."""
    method, task, amount = options.method, options.task, options.amount
    train = importlib.import_module(f"brax.training.agents.{method}.train").train
    settings = settings_of(method, task, amount)
    of_epoch = settings["num_envs"] * settings["horizon_length"] * amount // 5 if method == "apg" else 1

    def tell(progress: int, metrics: dict) -> None:  # steps, by APG: epochs
        curve(of_epoch * int(progress), float(metrics["eval/episode_reward"]))

    def keep(_: int, __: Any, params: Any) -> None:
        NetworkPolicy.from_brax(params).save(options.policy)

    if method == "ppo" and options.policy:
        settings["policy_params_fn"] = keep
    if options.randomized:
        settings["randomization_fn"] = mbjax.domain_randomizer(RANDOMIZED)
    train(
        as_brax(episodes(task).environment),
        episode_length=TASKS[task],
        seed=options.seed,
        normalize_observations=True,
        deterministic_eval=True,
        progress_fn=tell,
        **settings,
    )


def by_gradient(options: argparse.Namespace, curve: Curve) -> None:
    """The short-horizon actor–critic of mbjax."""
    from mbjax.learners.short_horizon_actor_critic import Settings, network_policy, train_by_gradients

    def tell(progress: Any) -> None:
        print(progress, flush=True)
        curve(progress.steps, progress.episode_return)

    settings = Settings(**SETTINGS[options.task], updates=options.amount)
    every = max(options.amount // 12, 1)
    distributions = RANDOMIZED if options.randomized else None
    learner = train_by_gradients(
        episodes(options.task), settings, seed=options.seed, every=every, tell=tell, distributions=distributions
    )
    if options.policy:
        network_policy(learner).save(options.policy)


def draw() -> None:
    """The picture of all curves, a panel a task: returns over seconds of the processor."""
    import matplotlib.pyplot as plt

    curves = json.loads(CURVES.read_text())
    tasks = [task for task in TASKS if any(name.split()[1] == task for name in curves)]
    titles = {
        "ppo": "PPO of brax",
        "sac": "SAC of brax",
        "apg": "APG of brax",
        "gradient": "short-horizon actor–critic",
    }
    figure, panels = plt.subplots(1, len(tasks), figsize=(3.6 * len(tasks), 3.6), layout="constrained", squeeze=False)
    lines = {}
    for panel, task in zip(panels[0], tasks, strict=True):
        for number, (method, title) in enumerate(titles.items()):
            points = curves.get(f"{method} {task}")
            if points:
                x, y = [point[2] for point in points], [point[3] for point in points]
                lines[title] = panel.plot(x, y, ".-", color=f"C{number}")[0]
        panel.set(title=task.replace("_", "-"), xlabel="seconds of the processor", ylabel="return of an episode")
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(alpha=0.25)
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(CURVES.with_suffix(".png"), dpi=130)


def main() -> None:
    """Runs what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.policies")
    parser.add_argument("method", choices=("ppo", "sac", "apg", "gradient", "picture"))
    parser.add_argument("task", nargs="?", choices=tuple(TASKS), default="cart_pole")
    parser.add_argument("amount", nargs="?", type=int, default=400, help="steps, by gradients and APG: updates")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--policy", type=pathlib.Path, help="an .npz file for the policy of PPO or of the gradients")
    parser.add_argument(
        "--randomized", action="store_true", help="masses, friction and gains differ from world to world"
    )
    options = parser.parse_args()
    if options.method == "picture":
        draw()
        return
    if options.randomized and options.method not in ("ppo", "gradient"):
        parser.error("--randomized is for ppo and gradient")
    is_plain = options.seed == 0 and not options.randomized
    curve = Curve(f"{options.method} {options.task}" if is_plain else None)
    (by_gradient if options.method == "gradient" else by_brax)(options, curve)


if __name__ == "__main__":
    main()
