"""The problems in MJX, and in MuJoDiCo, which has the same functions and a contact law of its own.

MJX differentiates in forward mode through its solver's loop; reverse mode needs one iteration of it. MuJoDiCo reads the
numbers of MuJoCo's contacts otherwise: its stiffness is 100 times the first one of `solref`, in N/m, its dissipation a
tenth of the second one, in s/m. Its law divides by the dissipation, so none is described as `NO_DISSIPATION`.

Without `contact_smoothing`, which is its default, every derivative of MuJoDiCo 3.17 with a contact is NaN: it takes the
square root of the smoothing, whose slope at 0 is infinite, times a change of 0 in its rule for the solver's derivative.
`jax.jvp` of one `mjx.step` of a ball above a plane shows it. So it is measured with two amounts of smoothing.
"""

import importlib
from collections.abc import Callable
from typing import Any

from .problems import Body, Problem

IMPEDANCE = 0.99  # of springs that are given directly
NO_DISSIPATION = 1e-6  # s/m


def build(problem: Problem, setting: str, package: str, static_step: float | None = None) -> Callable[..., Any]:
    """Values of the knobs, time step (s) → the coordinate at the end.

    With `static_step` it takes steps of that length only, and is for reverse mode. `package` is "mjx" or "mujodico".
    """
    import jax
    import jax.numpy as jnp
    import mujoco

    is_mjx, is_reverse = package == "mjx", static_step is not None
    mjx = importlib.import_module("mujoco.mjx" if is_mjx else "mujodico.mjx")
    text = mjcf(problem, package, "RK4" if setting == "RK4" else "Euler", is_reverse and is_mjx)
    options = {}
    if not is_mjx:
        options = {"contact_approximation": "Hunt-Crossley", "contact_smoothing": float(setting.split()[-1])}
    model = mjx.put_model(mujoco.MjModel.from_xml_string(text), **options)
    start = mjx.make_data(model)

    def end(x: Any, step: Any) -> Any:
        step = static_step or step
        changed, q, v = model, jnp.array(problem.qpos), jnp.array(problem.qvel)
        efforts = jnp.array(problem.efforts or (0.0,) * len(problem.qvel))
        for (kind, which), value in zip(problem.knobs, x, strict=True):
            if kind == "friction":
                friction = changed.pair_friction
                changed = changed.replace(pair_friction=friction.at[:, :2].set(value))
            elif kind == "stiffness":
                solref = jnp.asarray(changed.pair_solref).at[:, 0].set(-spring(problem, package, value))
                changed = changed.replace(pair_solref=solref)
            elif kind == "q":
                q = q.at[which].set(value)
            elif kind == "v":
                v = v.at[which].set(value)
            else:
                efforts = efforts.at[which].set(value)
        changed = changed.tree_replace({"opt.timestep": jnp.asarray(step)})
        data = start.replace(qpos=q, qvel=v, qfrc_applied=efforts)
        if is_reverse:
            steps = round(problem.horizon / static_step)
            data, _ = jax.lax.scan(lambda data, _: (mjx.step(changed, data), None), data, None, length=steps)
        else:
            steps = jnp.round(problem.horizon / step).astype(int)
            data = jax.lax.fori_loop(0, steps, lambda _, data: mjx.step(changed, data), data)
        return data.qpos[problem.output]

    return end


def spring(problem: Problem, package: str, stiffness: Any) -> Any:
    """The size of solref's first number for a spring of so many N/m."""
    if package == "mujodico":
        return stiffness * IMPEDANCE**2 / 100.0
    return stiffness * IMPEDANCE / problem.moved_mass


def contact_numbers(problem: Problem, package: str) -> tuple[tuple[float, float], str]:
    """Solref and solimp: in MJX the problem's or else those of an undamped spring, in MuJoDiCo those of its own law."""
    direct = f"{IMPEDANCE} {IMPEDANCE} 0.001 0.5 2"
    if package == "mujodico":
        damper = max(problem.dissipation, NO_DISSIPATION) * IMPEDANCE * 10.0
        return (-spring(problem, package, problem.stiffness), -damper), direct
    if problem.solref:
        return problem.solref, "0 0.95 0.001 0.5 2"
    return (-spring(problem, package, problem.stiffness), 0.0), direct


def mjcf(problem: Problem, package: str, integrator: str, has_one_iteration: bool) -> str:
    """The problem as MuJoCo reads it: a pyramidal cone in MJX, as in DiffMJX's table, a round one in MuJoDiCo."""
    solver = 'iterations="1" ls_iterations="4"' if has_one_iteration else 'iterations="20" ls_iterations="20"'
    solver = solver if package == "mjx" else 'iterations="50" tolerance="1e-12"'
    numbers, solimp = contact_numbers(problem, package)
    solref, mu = " ".join(map(str, numbers)), problem.friction
    pairs = "".join(
        f'<pair geom1="{a}" geom2="{b}" condim="{3 if mu else 1}" solref="{solref}" solimp="{solimp}" '
        f'friction="{mu} {mu} 0 0 0"/>'
        for a, b in problem.contacts
    )
    roots = "".join(element(body, problem) for body in problem.bodies if body.parent == "world")
    cone = "elliptic" if package == "mujodico" and mu else "pyramidal"
    return (
        f'<mujoco><option gravity="0 0 {-problem.gravity}" integrator="{integrator}" cone="{cone}" {solver}>'
        '<flag eulerdamp="disable"/></option>'
        '<worldbody><geom name="ground" type="plane" size="9 9 1" contype="0" conaffinity="0"/>'
        f"{roots}</worldbody><contact>{pairs}</contact></mujoco>"
    )


def element(body: Body, problem: Problem) -> str:
    """A body and its children."""
    axis, size, offset = (" ".join(map(str, numbers)) for numbers in (body.axis, body.size, body.offset))
    loss = f' frictionloss="{body.friction_loss}"' if body.friction_loss else ""
    joint = "<freejoint/>" if body.joint == "free" else f'<joint type="{body.joint}" axis="{axis}"{loss}/>'
    children = "".join(element(child, problem) for child in problem.bodies if child.parent == body.name)
    return (
        f'<body name="{body.name}">{joint}<geom name="{body.name}" type="{body.shape}" size="{size}" pos="{offset}" '
        f'mass="{body.mass}" contype="0" conaffinity="0"/>{children}</body>'
    )
