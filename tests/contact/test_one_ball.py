"""A body with one ball on level ground: bounces, rolling and a spinning top, where the answer is known.

All scenes are worlds of one batch: they differ in numbers only.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
import scipy.optimize

import mbjax
from mbjax.geometry import Geometry, HalfSpace, ProximityProperties, Sphere
from tests.contact import mujoco_scenes
from tests.gradients.checks import compiled

NUM_STEPS = 2000
RADIUS, MASS, GRAVITY = 0.1, 1.0, 9.81
BALL = (0.4 * RADIUS**2,) * 3
STIFFNESS = 2e4  # N/m, of each side: 1e4 of both in series
TIME_STEPS = (1e-4, 5e-5)  # of bounces
IMPACT_SPEED = 0.8  # m/s
OMEGA = np.sqrt(0.5 * STIFFNESS / MASS)

TOP_ARM, TOP_TILT, TOP_SPIN = 0.06, 0.4, 300.0  # m from the tip's centre to the centre of mass, rad, rad/s
TOP_INERTIA = (6e-4, 6e-4, 3e-4)  # m²
ROLL_SPEED, ROLL_FRICTION, HARD = 1.0, 0.3, 2e6


@functools.cache
def ball(approximation: str) -> mbjax.MultibodyModel:
    plant = mbjax.MultibodyPlant(TIME_STEPS[0], discrete_contact_approximation=approximation)
    material = ProximityProperties(0.0, point_stiffness=STIFFNESS, hunt_crossley_dissipation=0.0, relaxation_time=0.0)
    plant.add_rigid_body("ball", mbjax.SpatialInertia.solid_sphere_with_mass(MASS, RADIUS))
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), material)
    plant.register_collision_geometry("ball", Geometry("ball", Sphere(RADIUS)), material)
    return plant.finalize()


def world(
    approximation: str,
    dissipation: float = 0.0,
    relaxation_time: float = 0.0,
    friction: float = 0.0,
    time_step: float = TIME_STEPS[0],
    gravity: float = 0.0,
    inertia: tuple[float, float, float] = BALL,
    height: float = RADIUS,
    **leaves: float | tuple,
) -> tuple[mbjax.MultibodyModel, mbjax.State]:
    """The model with these numbers; the state from q and v in `leaves`, at rest at `height` if they are not there."""
    model = ball(approximation)
    both = np.ones(2)
    values = {
        ("collision", "hunt_crossley_dissipation"): dissipation * both,
        ("collision", "stiffness"): leaves.get("stiffness", STIFFNESS) * both,
        ("collision", "relaxation_time"): 0.5 * relaxation_time * both,
        ("collision", "dynamic_friction"): friction * both,
        ("collision", "static_friction"): friction * both,
        ("collision", "translation"): np.array([[0.0, 0.0, 0.0], leaves.get("p_BG", (0.0, 0.0, 0.0))]),
        ("collision", "size"): np.array([leaves.get("radius", RADIUS)]),
        ("parameters", "body_unit_inertia"): np.array([[*inertia, 0.0, 0.0, 0.0]]),
        ("parameters", "time_step"): np.array(time_step),
        ("parameters", "gravity"): np.array([0.0, 0.0, -gravity]),
    }
    for (group, name), value in values.items():
        model = eqx.tree_at(lambda m, g=group, n=name: getattr(getattr(m, g), n), model, jnp.asarray(value))
    q = leaves.get("q", (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, height))
    v = leaves.get("v", (0.0,) * 6)
    return model, mbjax.State(jnp.asarray(q), jnp.asarray(v), jnp.zeros(()))


@compiled
@jax.vmap
def trajectories(model: mbjax.MultibodyModel, state: mbjax.State) -> mbjax.Trajectory:
    return mbjax.rollout(model, state, num_steps=NUM_STEPS)


def bounces(approximation: str, name: str, values: tuple[float, ...]) -> list:
    """Without gravity, from where the surfaces just touch; every value with both time steps."""
    down = (0.0, 0.0, 0.0, 0.0, 0.0, -IMPACT_SPEED)
    return [world(approximation, time_step=dt, v=down, **{name: x}) for x in values for dt in TIME_STEPS]


def run(worlds: list) -> mbjax.Trajectory:
    return trajectories(*jax.tree.map(lambda *x: jnp.stack(x), *worlds))


def restitution(v: np.ndarray) -> np.ndarray:
    """Of pairs of worlds with both time steps, without the error of first order in the step; its size as a check."""
    coarse, fine = (v[:, -1, 5] / IMPACT_SPEED).reshape(-1, 2).T
    assert (np.abs(coarse - fine) < 0.03).all()
    return 2.0 * fine - coarse


def hunt_crossley_restitution(dissipation: float) -> float:
    """d v (1 + e) = ln((1 + d v) / (1 - d e v)): what m ẍ = -k x (1 + d ẋ) gives back, whatever k.

    By separation of variables; the law of Hunt and Crossley 1975, J. Applied Mechanics 42(2), integrated as by Marhefka
    and Orin 1999, IEEE Trans. Systems, Man, and Cybernetics 29(6).
    """
    dv = dissipation * IMPACT_SPEED
    if dv == 0.0:
        return 1.0
    largest = min(1.0, 1.0 / dv) * (1.0 - 1e-12)
    return scipy.optimize.brentq(lambda e: dv * (1.0 + e) - np.log((1.0 + dv) / (1.0 - dv * e)), 0.0, largest)


def linear_restitution(relaxation_time: float) -> float:
    """m ẍ = -k (x + τ ẋ) until the force is zero: surfaces do not pull.

    Schwager and Pöschel 2007, Granular Matter 9(6).
    """
    beta = 0.5 * relaxation_time * OMEGA**2
    omega = np.sqrt(OMEGA**2 - beta**2)
    return float(np.exp(-beta / omega * (np.pi - np.arctan2(2.0 * beta * omega, omega**2 - beta**2))))


def top(approximation: str, time_step: float) -> tuple[mbjax.MultibodyModel, mbjax.State]:
    """Its tip is a ball without friction, so its centre of mass stays over one point; in steady precession."""
    rate = precession_rate()
    axis = np.array([np.sin(TOP_TILT), 0.0, np.cos(TOP_TILT)])
    w = rate * np.array([0.0, 0.0, 1.0]) + (TOP_SPIN - rate * np.cos(TOP_TILT)) * axis
    sag = MASS * GRAVITY / (0.5 * STIFFNESS)
    q = (np.cos(0.5 * TOP_TILT), 0.0, np.sin(0.5 * TOP_TILT), 0.0, 0.0, 0.0, 0.01 - sag + TOP_ARM * np.cos(TOP_TILT))
    return world(
        approximation,
        time_step=time_step,
        gravity=GRAVITY,
        inertia=TOP_INERTIA,
        p_BG=(0.0, 0.0, -TOP_ARM),
        radius=0.01,
        q=q,
        v=(*w, 0, 0, 0),
    )


def precession_rate() -> float:
    """The slow root of I₁ Ω² cos θ - I₃ ω₃ Ω + m g l = 0 (Goldstein, Classical Mechanics, sec. 5.7), I about the
    centre of mass, which the tip moves around."""
    a, b = MASS * TOP_INERTIA[0] * np.cos(TOP_TILT), MASS * TOP_INERTIA[2] * TOP_SPIN
    return float((b - np.sqrt(b * b - 4.0 * a * MASS * GRAVITY * TOP_ARM)) / (2.0 * a))


def sliding(approximation: str) -> tuple[mbjax.MultibodyModel, mbjax.State]:
    """Thrown along hard ground without spin, at the depth at which it is carried: friction acts at that radius."""
    sag = MASS * GRAVITY / (0.5 * HARD)
    v = (0.0, 0.0, 0.0, ROLL_SPEED, 0.0, 0.0)
    return world(
        approximation, relaxation_time=0.01, dissipation=10.0, friction=ROLL_FRICTION, time_step=5e-4, gravity=GRAVITY,
        height=RADIUS - sag, v=v, stiffness=HARD,
    )  # fmt: skip


OF_SAP = pytest.mark.whole_run("sap; lagged beside Drake's steps, and drops")


@pytest.mark.parametrize(
    "approximation",
    ["sap", *(pytest.param(x, marks=OF_SAP) for x in ("lagged", "similar"))],
)
def test_bounces_a_top_and_rolling(approximation: str) -> None:
    """Restitution within 5e-4, precession within 1e-3; it slides, then rolls with 5/7 of its speed, as MuJoCo's."""
    is_linear = approximation == "sap"
    name, values = ("relaxation_time", (0.0, 1e-3, 5e-3)) if is_linear else ("dissipation", (0.0, 0.2, 1.0, 5.0))
    worlds = bounces(approximation, name, values)
    found = run([*worlds, *(top(approximation, dt) for dt in TIME_STEPS), sliding(approximation)])
    q, v = np.asarray(found.q), np.asarray(found.v)
    assert np.isfinite(v).all()

    law = linear_restitution if is_linear else hunt_crossley_restitution
    e = restitution(v[: len(worlds)])
    print(f"{approximation}: restitution {e}, theory {[law(x) for x in values]}")
    np.testing.assert_allclose(e, [law(x) for x in values], atol=5e-4)
    if is_linear:
        k = 0.5 * STIFFNESS
        theirs = [mujoco_scenes.bounce(IMPACT_SPEED, k, x * k, RADIUS) for x in values]
        print(f"MuJoCo's restitution {theirs}")
        np.testing.assert_allclose(e, theirs, atol=1e-3)

    turned, tilt = precession(q[-3], NUM_STEPS // 2), precession(q[-2], NUM_STEPS)
    rate = (2.0 * tilt[0] - turned[0]) / (NUM_STEPS * TIME_STEPS[1])
    print(f"{approximation}: precession {rate}, theory {precession_rate()}, tilt {turned[1]:.1e}, {tilt[1]:.1e}")
    assert rate == pytest.approx(precession_rate(), rel=1e-3)
    assert tilt[1] < min(3e-3, 0.55 * turned[1])  # of first order in the step
    assert np.abs(q[-3:-1, :, 4:6]).max() < 1e-9

    end, theirs = v[-1, -1], mujoco_rolling()
    print(f"{approximation}: rolls at {end[3]}, MuJoCo's at {theirs[3]}, theory {5.0 / 7.0 * ROLL_SPEED}")
    assert end[3] == pytest.approx(5.0 / 7.0 * ROLL_SPEED, rel=1e-3)
    assert end[1] * RADIUS == pytest.approx(end[3], rel=1e-3)
    assert end[3] == pytest.approx(theirs[3], rel=5e-3)
    slides_for = 2.0 * ROLL_SPEED / (7.0 * ROLL_FRICTION * GRAVITY)
    at = q[-1, round(slides_for / 5e-4), 4]
    assert at == pytest.approx(12.0 * ROLL_SPEED**2 / (49.0 * ROLL_FRICTION * GRAVITY), rel=1e-2)


def precession(q: np.ndarray, steps: int) -> tuple[float, float]:
    """By how much the top's axis has turned about the vertical in these steps, and how its tilt varied."""
    w, x, y, z = q[: steps + 1, :4].T
    axis = np.stack([2.0 * (x * z + w * y), 2.0 * (y * z - w * x), w * w - x * x - y * y + z * z])
    angle = np.unwrap(np.arctan2(axis[1], axis[0]))
    return angle[-1] - angle[0], np.ptp(np.arccos(axis[2]))


@functools.cache
def mujoco_rolling() -> np.ndarray:
    """Its last angular, then translational velocity, of the same throw."""
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco><option timestep="5e-4" cone="elliptic" impratio="100"/><worldbody>
        <geom type="plane" size="5 5 1" friction="{ROLL_FRICTION} 0 0"/>
        <body pos="0 0 {RADIUS}"><freejoint/><geom type="sphere" size="{RADIUS}" mass="{MASS}" condim="3"
          friction="{ROLL_FRICTION} 0 0"/></body>
      </worldbody></mujoco>""")
    data = mujoco.MjData(model)
    data.qvel[0] = ROLL_SPEED
    for _ in range(NUM_STEPS):
        mujoco.mj_step(model, data)
    return np.concatenate([data.qvel[3:], data.qvel[:3]])
