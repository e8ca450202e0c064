"""The scenes of these tests in MuJoCo: same geometry and numbers, elliptic cones, stiff contacts, small steps."""

import mujoco
import numpy as np

STIFF = 'solref="0.002 1" solimp="0.99 0.999 0.001"'  # s of settling, from which MuJoCo takes stiffness and damping
SMALL = 5e-4  # s


def scene(bodies: str, gravity: np.ndarray, rest: str = "", time_step: float = SMALL, contact: str = STIFF) -> str:
    """MJCF of bodies that touch without torsional or rolling friction."""
    return (
        f'<mujoco><option timestep="{time_step}" cone="elliptic" impratio="100" integrator="implicitfast" '
        f'gravity="{numbers(gravity)}"/><default><geom condim="3" {contact}/></default>'
        f"<worldbody>{bodies}</worldbody>{rest}</mujoco>"
    )


def numbers(x: np.ndarray) -> str:
    return " ".join(f"{value:.17g}" for value in np.ravel(x))


def run(xml: str, seconds: float, qvel: dict[int, float] | None = None, control=None) -> tuple[np.ndarray, np.ndarray]:
    """qpos and qvel after every step; `control` gives ctrl at a time."""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    for i, speed in (qvel or {}).items():
        data.qvel[i] = speed
    q, v = [data.qpos.copy()], [data.qvel.copy()]
    for _ in range(round(seconds / model.opt.timestep)):
        if control is not None:
            data.ctrl[:] = control(data.time)
        mujoco.mj_step(model, data)
        q.append(data.qpos.copy())
        v.append(data.qvel.copy())
    return np.array(q), np.array(v)


def slope_acceleration(friction: float, gravity: np.ndarray, size: np.ndarray, mass: float) -> float:
    """Of a box on level ground under tilted gravity, along x, in the second of two seconds."""
    sizes, ground = numbers(0.5 * size), f'<geom type="plane" size="0 0 1" friction="{friction} 0 0"/>'
    box = (
        f'<body pos="0 0 {0.5 * size[2]}"><freejoint/>'
        f'<geom type="box" size="{sizes}" mass="{mass}" friction="{friction} 0 0"/></body>'
    )
    _, v = run(scene(ground + box, gravity), 2.0)
    second = v[len(v) // 2 :, 0]
    return float(np.polyfit(SMALL * np.arange(len(second)), second, 1)[0])


def stack_heights(side: float, poses: np.ndarray, mass: float, friction: float, gravity: float) -> np.ndarray:
    """Where boxes (n, 7: quaternion, position) are after ten seconds: their positions (n, 3)."""
    bodies, half = f'<geom type="plane" size="0 0 1" friction="{friction} 0 0"/>', numbers(np.full(3, 0.5 * side))
    for pose in poses:
        bodies += (
            f'<body pos="{numbers(pose[4:])}" quat="{numbers(pose[:4])}"><freejoint/>'
            f'<geom type="box" size="{half}" mass="{mass}" friction="{friction} 0 0"/></body>'
        )
    q, _ = run(scene(bodies, np.array([0.0, 0.0, -gravity]), time_step=2e-3, contact='solref="0.004 1"'), 10.0)
    return q[-1].reshape(-1, 7)[:, :3]


def bounce(speed: float, stiffness: float, damping: float, radius: float) -> float:
    """Restitution of a ball of 1 kg on a linear spring and damper that do not pull; no gravity."""
    spring = f'solref="{-stiffness} {-damping}" solimp="0.9999 0.9999 0.001"'
    bodies = (
        '<geom type="plane" size="0 0 1" friction="0 0 0"/>'
        f'<body pos="0 0 {radius}"><freejoint/><geom type="sphere" size="{radius}" mass="1" friction="0 0 0"/></body>'
    )
    _, v = run(scene(bodies, np.zeros(3), time_step=2e-5, contact=spring), 0.1, {2: -speed})
    return float(v[-1, 2] / speed)
