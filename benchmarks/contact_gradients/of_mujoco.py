"""The problems in MJX, and in MuJoDiCo, which has the same functions.

MJX differentiates in forward mode through its solver's loop; reverse mode needs one iteration of it. MuJoDiCo's
Hunt–Crossley contact returned NaN for billiards as they are described here (no friction, no damping, direct solref);
why has not been found, so its numbers are not to be shown before it has been.
"""

import importlib
from collections.abc import Callable
from typing import Any

from .problems import Body, Problem

SETTINGS = {"mjx": ("Euler", "RK4"), "mujodico": ("Hunt-Crossley", "Hunt-Crossley, smoothed")}


def build(problem: Problem, setting: str, step: float, package: str, is_reverse: bool) -> Callable[[Any], Any]:
    """Values of the knobs → the coordinate at the end; `package` is "mjx" or "mujodico"."""
    import jax
    import jax.numpy as jnp
    import mujoco

    mjx = importlib.import_module("mujoco.mjx" if package == "mjx" else "mujodico.mjx")
    text = mjcf(problem, step, "RK4" if setting == "RK4" else "Euler", is_reverse and package == "mjx")
    options = {}
    if package == "mujodico":
        smoothing = 1e-5 if setting.endswith("smoothed") else 0.0
        options = {"contact_approximation": "Hunt-Crossley", "contact_smoothing": smoothing}
    model = mjx.put_model(mujoco.MjModel.from_xml_string(text), **options)
    start = mjx.make_data(model)

    def end(x: Any) -> Any:
        changed, q, v = model, jnp.array(problem.qpos), jnp.array(problem.qvel)
        efforts = jnp.array(problem.efforts or (0.0,) * len(problem.qvel))
        for (kind, which), value in zip(problem.knobs, x, strict=True):
            if kind == "friction":
                friction = changed.pair_friction
                changed = changed.replace(pair_friction=friction.at[:, :2].set(value))
            elif kind == "stiffness":
                solref = jnp.asarray(changed.pair_solref).at[:, 0].set(-value / problem.moved_mass)
                changed = changed.replace(pair_solref=solref)
            elif kind == "q":
                q = q.at[which].set(value)
            elif kind == "v":
                v = v.at[which].set(value)
            else:
                efforts = efforts.at[which].set(value)
        data = start.replace(qpos=q, qvel=v, qfrc_applied=efforts)
        steps = round(problem.horizon / step)
        data, _ = jax.lax.scan(lambda data, _: (mjx.step(changed, data), None), data, None, length=steps)
        return data.qpos[problem.output]

    return end


def mjcf(problem: Problem, step: float, integrator: str, has_one_iteration: bool) -> str:
    """The problem as MuJoCo reads it, with a pyramidal cone as in DiffMJX's table."""
    solver = 'iterations="1" ls_iterations="4"' if has_one_iteration else 'iterations="20" ls_iterations="20"'
    solref, mu = " ".join(map(str, problem.solref_or_spring)), problem.friction
    condim = 3 if mu else 1
    pairs = "".join(
        f'<pair geom1="{a}" geom2="{b}" condim="{condim}" solref="{solref}" solimp="0 0.95 0.001 0.5 2" '
        f'friction="{mu} {mu} 0 0 0"/>'
        if problem.solref
        else f'<pair geom1="{a}" geom2="{b}" condim="{condim}" solref="{solref}" solimp="0.99 0.99 0.001 0.5 2" '
        f'friction="{mu} {mu} 0 0 0"/>'
        for a, b in problem.contacts
    )
    roots = "".join(element(body, problem) for body in problem.bodies if body.parent == "world")
    return (
        f'<mujoco><option timestep="{step}" gravity="0 0 {-problem.gravity}" integrator="{integrator}" {solver}>'
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
