"""The problems in jaxsim that it can state: one box, or a ball that does not turn, on the ground.

Its shapes touch the ground only, with points: a box with its corners. Its Hunt–Crossley contact is mbjax's law along
the normal; friction has a spring of the same stiffness. What does not turn is a box with a part of it a corner.
"""

from collections.abc import Callable
from typing import Any

from .problems import Problem

INTEGRATORS = {"semi-implicit Euler": "SemiImplicitEuler", "RK4": "RungeKutta4"}
NO_DISSIPATION = 1e-6  # s/m: its law divides by it


def build(problem: Problem, setting: str, static_step: float | None = None) -> Callable[..., Any]:
    """Values of the knobs, time step (s) → the coordinate at the end; with `static_step` for reverse mode."""
    import jax
    import jax.numpy as jnp
    import jaxsim.api as js
    from jaxsim.rbda.contacts import SoftContacts, SoftContactsParams

    (body,) = problem.bodies
    is_free = body.joint == "free"
    if problem.contacts != (("ground", body.name),) or not (body.shape == "box" or body.joint == "slide"):
        raise NotImplementedError("jaxsim has contact of boxes with the ground only.")
    part = 1.0 if is_free else 0.25  # of the stiffness, a corner
    dissipation = max(problem.dissipation, NO_DISSIPATION)

    def contact(stiffness: Any, friction: Any) -> Any:
        K = jnp.asarray(part * stiffness, float)
        numbers = {"D": dissipation * K, "mu": jnp.asarray(friction, float), "p": jnp.zeros(()), "q": jnp.ones(())}
        return SoftContactsParams(K=K, **numbers)

    model = js.model.JaxSimModel.build_from_model_description(
        sdf(problem),
        time_step=static_step or 1e-3,
        contact_model=SoftContacts.build(),
        contact_params=contact(problem.stiffness, problem.friction),
        integrator=js.model.IntegratorType[INTEGRATORS[setting]],
        gravity=problem.gravity,
        is_urdf=False,
    )

    def end(x: Any, step: Any) -> Any:
        q, v = jnp.array(problem.qpos), jnp.array(problem.qvel)
        stiffness, friction = problem.stiffness, problem.friction
        for (kind, which), value in zip(problem.knobs, x, strict=True):
            if kind == "q":
                q = q.at[which].set(value)
            elif kind == "v":
                v = v.at[which].set(value)
            elif kind == "stiffness":
                stiffness = value
            else:
                friction = value
        changed = model.replace(contact_params=contact(stiffness, friction), validate=False)
        if static_step is None:
            changed = changed.replace(time_step=step, validate=False)
        zero = jnp.zeros(())
        data = js.data.JaxSimModelData.build(
            changed,
            base_position=q[:3] if is_free else jnp.stack([zero, zero, q[0]]),
            base_quaternion=q[3:] if is_free else jnp.array([1.0, 0.0, 0.0, 0.0]),
            base_linear_velocity=v[:3] if is_free else jnp.stack([zero, zero, v[0]]),
            base_angular_velocity=v[3:] if is_free else jnp.zeros(3),
        )
        if static_step is None:
            steps = jnp.round(problem.horizon / step).astype(int)
            data = jax.lax.fori_loop(0, steps, lambda _, data: js.model.step(changed, data), data)
        else:
            steps = round(problem.horizon / static_step)
            data, _ = jax.lax.scan(lambda data, _: (js.model.step(changed, data), None), data, None, length=steps)
        return data.base_position[problem.output if is_free else 2]

    return end


def sdf(problem: Problem) -> str:
    """The body, a uniform box as far as the ground is concerned."""
    (body,) = problem.bodies
    half = body.size if body.shape == "box" else body.size * 3
    x, y, z = (2.0 * s for s in half)
    inertia = "".join(
        f"<{name}>{body.mass * (a * a + b * b) / 12.0}</{name}>"
        for name, a, b in (("ixx", y, z), ("iyy", x, z), ("izz", x, y))
    )
    return (
        f'<sdf version="1.7"><model name="problem"><link name="{body.name}"><inertial><mass>{body.mass}</mass>'
        f"<inertia>{inertia}<ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial>"
        f'<collision name="shape"><geometry><box><size>{x} {y} {z}</size></box></geometry></collision>'
        "</link></model></sdf>"
    )
