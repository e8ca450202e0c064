"""The problems, as data: bodies, contacts, a start, what to differentiate by, and the derivative where it is known.

No library is imported here but NumPy, so that engines with environments of their own can read it.
"""

import dataclasses
import functools
import math

import numpy as np

# ("q", i) and ("v", i) in MuJoCo's order, ("effort", i), ("friction", ""), ("stiffness", "")
Knob = tuple[str, int | str]
OWN_STEPS = ("recommended",)  # settings that choose their steps, whose "step" is a tolerance
TOLERANCE = 1e-8  # the default of ContactIntegrator
SPEEDS_OF = (("mbjax", "recommended"), ("mbjax", "lagged"))  # what is run with many speeds


@dataclasses.dataclass(frozen=True)
class Body:
    """A uniform solid on one joint at its parent's origin; `size` as MuJoCo has it. "ground" is the plane z = 0."""

    name: str
    shape: str
    size: tuple[float, ...]
    mass: float
    joint: str = "free"  # or "slide"
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    parent: str = "world"
    friction_loss: float = 0.0  # N or N m, of the joint
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)  # of the solid, from the body's origin


@dataclasses.dataclass(frozen=True)
class Problem:
    """The derivative of coordinate `output` of qpos at the end by each knob; `truth` has those known in closed form."""

    name: str
    bodies: tuple[Body, ...]
    contacts: tuple[tuple[str, str], ...]
    qpos: tuple[float, ...]
    qvel: tuple[float, ...]
    output: int
    knobs: tuple[Knob, ...]
    horizon: float = 1.0
    gravity: float = 0.0  # m/s², downwards
    friction: float = 0.0
    stiffness: float = 1e4  # N/m
    dissipation: float = 0.0  # s/m, Hunt–Crossley
    solref: tuple[float, float] | None = None  # MuJoCo's; None: the same spring without a damper
    moved_mass: float = 1.0  # kg, of one contact
    efforts: tuple[float, ...] = ()  # generalized forces, constant
    truth: tuple[float | None, ...] = ()
    has_reverse: bool = True  # measured in reverse mode too

    @property
    def values(self) -> np.ndarray:
        """The numbers that the knobs stand for."""
        return np.array([self.value_of(knob) for knob in self.knobs])

    def value_of(self, knob: Knob) -> float:
        """One of them."""
        kind, which = knob
        if isinstance(which, str):
            return getattr(self, kind)
        return {"q": self.qpos, "v": self.qvel, "effort": self.efforts}[kind][which]


def toss(shape: str, size: tuple[float, ...], volume: float, vz: float = -2.0, name: str | None = None) -> Problem:
    """DiffMJX's tossed objects: density 100, turned by 60° about x, g = 2, for 1 s; y by the first speed upwards."""
    return Problem(
        name or f"toss of {'an' if shape == 'ellipsoid' else 'a'} {shape}",
        (Body("object", shape, size, 100.0 * volume),),
        (("ground", "object"),),
        (0.0, 0.0, 0.2, math.cos(math.pi / 6), math.sin(math.pi / 6), 0.0, 0.0),
        (0.0, -0.1, vz, 0.0, 0.0, 0.0),
        1,
        (("v", 2),),
        gravity=2.0,
        friction=1.0,
        stiffness=1e3,
        dissipation=1.0,
        solref=(0.005, 1.0),
        moved_mass=0.1,
        has_reverse=shape == "box",
    )


OBJECTS = {
    "box": ((0.05, 0.05, 0.05), 1e-3),
    "sphere": ((0.05,), 4.0 / 3.0 * math.pi * 0.05**3),
    "cylinder": ((0.05, 0.05), math.pi * 0.05**2 * 0.1),
    "capsule": ((0.04, 0.05), math.pi * 0.04**2 * 0.1 + 4.0 / 3.0 * math.pi * 0.04**3),
    "ellipsoid": ((0.06, 0.05, 0.04), 4.0 / 3.0 * math.pi * 0.06 * 0.05 * 0.04),
}
TOSS_SPEEDS = np.linspace(-3.0, -1.0, 200)  # m/s
cube_toss = toss("box", *OBJECTS["box"], name="cube toss")


def bounce(stiffness: float = 1e4) -> Problem:
    """A ball of 1 kg, 0.5 m from the ground at 1 m/s, bounces back without loss: half a period after it touched."""
    R, gap, v, T = 0.1, 0.50037, 1.0, 1.0  # touches within a step of any usual length
    contact_time = math.pi / math.sqrt(stiffness)
    return Problem(
        f"bounce, {stiffness:.0e} N/m",
        (Body("ball", "sphere", (R,), 1.0, "slide"),),
        (("ground", "ball"),),
        (R + gap,),
        (-v,),
        0,
        (("q", 0), ("v", 0), ("stiffness", "")),
        horizon=T,
        stiffness=stiffness,
        truth=(-1.0, contact_time - T, 0.5 * v * contact_time / stiffness),
    )


def billiards(stiffness: float = 1e5) -> Problem:
    """One ball at 1 m/s meets an equal one at rest, without loss: where the second one is after 1 s."""
    contact_time = math.pi * math.sqrt(0.5 / stiffness)
    balls = tuple(Body(name, "sphere", (0.1,), 1.0, "slide", (1.0, 0.0, 0.0)) for name in ("one", "two"))
    return Problem(
        "billiards",
        balls,
        (("one", "two"),),
        (0.0, 0.52037),  # touches within a step of any usual length
        (1.0, 0.0),
        1,
        (("q", 0), ("q", 1), ("v", 0), ("v", 1)),
        stiffness=stiffness,
        moved_mass=0.5,
        truth=(1.0, 0.0, 1.0 - 0.5 * contact_time, 0.5 * contact_time),  # of hard balls: 1, 0, 1, 0
    )


def sliding_ball() -> Problem:
    """A ball slides at 1 m/s, until friction has made it roll: how far it is after 1 s."""
    mu, g, R, T, k, v = 0.2, 9.81, 0.1, 1.0, 1e4, 1.0
    slides = 2.0 * v / (7.0 * mu * g)
    by_v = 5.0 / 7.0 * T + 2.0 * v * (2.0 / (7.0 * mu * g)) * (1.0 - 1.0 / 7.0 - 5.0 / 7.0)
    by_mu = -(v * slides / mu) * (1.0 - 1.0 / 7.0 - 5.0 / 7.0)
    return Problem(
        "ball that slides, then rolls",
        (Body("ball", "sphere", (R,), 1.0),),
        (("ground", "ball"),),
        (0.0, 0.0, R - g / k, 1.0, 0.0, 0.0, 0.0),
        (v, 0.0, 0.0, 0.0, 0.0, 0.0),
        0,
        (("v", 0), ("friction", "")),
        horizon=T,
        gravity=g,
        friction=mu,
        stiffness=k,
        dissipation=1.0,
        solref=(0.01, 1.0),
        truth=(by_v, by_mu),
    )


def resting_pendulum() -> Problem:
    """A pendulum that friction in its joint holds aside, under a torque: more torque moves it by creep alone."""
    return Problem(
        "pendulum held by friction",
        (
            Body(
                "rod", "box", (0.02, 0.02, 0.25), 1.0, "hinge", (0.0, 1.0, 0.0), friction_loss=1.0, offset=(0, 0, -0.25)
            ),
        ),
        (),
        (0.1,),
        (0.0,),
        0,
        (("effort", 0), ("q", 0)),
        gravity=9.81,
        efforts=(0.1,),
        truth=(0.0, 1.0),
        has_reverse=False,
    )


def grip(force: float, speed: float, name: str, knobs: tuple[Knob, ...], truth: tuple[float, ...]) -> Problem:
    """Two fingers press a block of 1 kg from both sides with so many N each: how high it is after 0.3 s."""
    k = 1e4
    depth = force / k
    fingers = tuple(Body(name, "sphere", (0.05,), 0.2, "slide", (1.0, 0.0, 0.0)) for name in ("left", "right"))
    return Problem(
        name,
        (*fingers, Body("block", "box", (0.05, 0.05, 1.0), 1.0, "slide")),
        (("left", "block"), ("right", "block")),
        (-0.1 + depth, 0.1 - depth, 0.0),
        (0.0, 0.0, speed),
        2,
        knobs,
        horizon=GRIP_HORIZON,
        gravity=9.81,
        friction=GRIP_FRICTION,
        stiffness=k,
        dissipation=1.0,
        solref=(0.005, 1.0),
        moved_mass=0.2,
        efforts=(force, -force, 0.0),
        truth=truth,
        has_reverse=False,
    )


GRIP_HORIZON, GRIP_FRICTION = 0.3, 0.5


def slipping_grip() -> Problem:
    """The fingers press too weakly to hold the block: each newton of one of them slows it."""
    force, T, mu = 6.0, GRIP_HORIZON, GRIP_FRICTION
    truth = (0.5 * mu * T * T, force * T * T)
    return grip(force, -0.1, "gripper whose block slips", (("effort", 0), ("friction", "")), truth)


def holding_grip() -> Problem:
    """The fingers hold the block: it stays where it began, however hard they press."""
    knobs: tuple[Knob, ...] = (("effort", 0), ("friction", ""), ("q", 2))
    return grip(20.0, 0.0, "gripper that holds its block", knobs, (0.0, 0.0, 1.0))


def push_off() -> Problem:
    """A leg pushes its trunk up from a foot on the ground, harder than the weight: how far, by the leg's force."""
    T, m, push, k, foot = 0.2, 1.0, 15.0, 1e5, 0.2
    return Problem(
        "foot's push-off",
        (
            Body("foot", "sphere", (0.05,), foot, "slide"),
            Body("trunk", "box", (0.1, 0.1, 0.1), m, "slide", parent="foot"),
        ),
        (("ground", "foot"),),
        (0.05 - (push + foot * 9.81) / k, 0.5),
        (0.0, 0.0),
        1,
        (("effort", 1),),
        horizon=T,
        gravity=9.81,
        friction=0.8,
        stiffness=k,
        dissipation=1.0,
        solref=(0.005, 1.0),
        moved_mass=foot,
        efforts=(0.0, push),
        truth=(0.5 * T * T / m,),
    )


SWEEP = tuple(10.0**n for n in range(2, 9))  # N/m
STARTS = (0.0, 1.7e-4, 3.3e-4, 5.1e-4, 8.3e-4)  # m higher, within the way of a step of 1 ms


@functools.cache
def problems() -> dict[str, Problem]:
    """All problems of the table, by name."""
    tossed = [toss(shape, *OBJECTS[shape]) for shape in OBJECTS if shape != "box"]
    found = [cube_toss, *tossed, billiards(), bounce(), sliding_ball(), resting_pendulum()]
    found += [slipping_grip(), holding_grip(), push_off()]
    return {problem.name: problem for problem in found}
