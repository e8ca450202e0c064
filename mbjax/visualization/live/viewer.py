"""A live view of a model in a browser: sliders, playback, simulation, arrows, and bodies that can be dragged."""

from __future__ import annotations

import contextlib
import io
import threading
import time as clock
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from mbjax.errors import ModelError, ModelWarning
from mbjax.model import MultibodyModel, as_coordinates
from mbjax.number_rules import FINITE, checked_numbers
from mbjax.optional_packages import imported
from mbjax.simulation import NodeState, State, default_state
from mbjax.simulation.ports import as_inputs
from mbjax.simulation.state import as_state

from .drag import STIFFNESS_PER_MASS, Grip, as_ports, grip_at, reach, steps_under_grip
from .drawing import NOTHING, Drawing
from .overlays import GRADIENT_COLOR, Rgb
from .own_origin import own_origin_only
from .panel import Panel
from .recording import Recording

FRAMES_PER_SECOND = 30.0
ROUNDING = 1e-6  # of a step: ten tenths of a step are one


class Viewer:
    """A live view of a model, served to a browser; needs `pip install "mbjax[view]"`.

    `viewer.url` is its address. It shows a pose that sliders change, a trajectory that plays, or a simulation that
    runs. A body that is dragged with the left button is followed by inverse kinematics in a pose, and pulled by a
    spring in a simulation. Every control is a method too, so that a script can do what a hand does.

    `trajectory` and `inputs` are as in `mbjax.show`: with several trajectories or worlds the first is opaque and the
    others translucent over it. `port=0` takes any free port. The server answers this machine only unless `host` says
    otherwise, and its own page only: other pages that are open in a browser cannot reach it. `allow_hosts` are further
    names under which it may be opened, such as that of a proxy. The view closes with `close()`, at the end of a `with`
    block, or with the program; `wait()` keeps a script alive.
    """

    def __init__(
        self, model: MultibodyModel, trajectory: Any = None, *, inputs: Any = None, state: State | None = None,
        host: str = "127.0.0.1", port: int = 8080, allow_hosts: Sequence[str] = (),
    ) -> None:  # fmt: skip
        viser = import_viser()
        self.model = model
        self._start = default_state(model) if state is None else as_state(model, state)
        self._state = self._start
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._recording: Recording | None = None
        self._inputs: Any = None
        self._mode, self._time = "pose", 0.0
        self._owed = 0.0  # seconds that passed and are not simulated yet, less than a step
        self._grip: Grip | None = None
        self._cost: Callable[[State], Any] | None = None
        with quiet(), own_origin_only(allow_hosts):
            self.server = viser.ViserServer(host=host, port=port, label="mbjax", verbose=False)
        self.drawing = Drawing(self.server, model, self._state)
        self._stiffness = STIFFNESS_PER_MASS * max(self.drawing.mass, 1e-6)
        self.panel = Panel(self.server, self)
        self.drawing.scene.on_drag(self._dragged)
        center = self.drawing.center
        self.server.initial_camera.look_at = tuple(center)
        self.server.initial_camera.position = tuple(center + self.drawing.size * np.array([0.9, 0.75, 0.4]))
        self.redraw()
        if trajectory is not None:
            self.play(trajectory, inputs=inputs)
        self._thread = threading.Thread(target=self._run, daemon=True, name="mbjax viewer")
        self._thread.start()

    @property
    def url(self) -> str:
        """The address to open in a browser."""
        return f"http://{self.server.get_host()}:{self.server.get_port()}".replace("0.0.0.0", "localhost")

    @property
    def state(self) -> State:
        """The state that is shown; setting it stops what plays or runs."""
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        with self._lock:
            state = as_state(self.model, state)
            self._mode, self._state, self._owed = "pose", state, 0.0
            self.redraw()

    @property
    def q(self) -> np.ndarray:
        """The positions that are shown (nq,)."""
        return np.asarray(self._state.q)

    @property
    def mode(self) -> str:
        """What the view does: "pose", "paused", "playing" or "simulating"."""
        return self._mode

    @property
    def time(self) -> float:
        """The time in s that is shown of a trajectory or a simulation."""
        return self._time if self._mode in ("playing", "paused") else float(self._state.time)

    def set_positions(self, q: Any) -> None:
        """Shows these positions (nq,); a simulation goes on from them, at rest."""
        with self._lock:
            q = as_coordinates("Viewer.set_positions: q", q, self.model.num_positions, self._state.q.dtype)
            self._state, self._owed = at_rest(self._state, q), 0.0
            if self._mode != "simulating":
                self._mode = "pose"
            self.redraw()

    def play(self, trajectory: Any, *, inputs: Any = None) -> None:
        """Plays a trajectory, or several over one another, from the start and around."""
        with self._lock:
            recording = Recording("Viewer.play", self.model, trajectory, inputs)
            if inputs is not None:
                as_inputs(self.model, recording.inputs_of_first(recording.start))
            self._recording = recording
            self._time = self._recording.start
            self.drawing.pressure.forget()
            self.panel.set_track(self._recording.start, self._recording.end)
            self._mode = "playing"
            self.redraw()

    def resume(self) -> None:
        """Plays on from the time that is shown."""
        with self._lock:
            self._recorded("resume")
            self._mode = "playing"

    def pause(self) -> None:
        """Stops the trajectory, or the simulation, where it is."""
        with self._lock:
            self._mode = "paused" if self._mode in ("playing", "paused") else "pose"
            self.redraw()

    def seek(self, time: float) -> None:
        """Shows the trajectory at this time, in s, and stops there."""
        with self._lock:
            self._recorded("seek")
            self._mode, self._time = "paused", float(time)
            self.redraw()

    def simulate(self, inputs: Any = None) -> None:
        """Simulates from the state that is shown, in real time where the machine is fast enough.

        `inputs` are held constant, or a function of the state, as in `rollout`; None keeps those given before.
        """
        with self._lock:
            if not self.model.is_discrete:
                raise ModelError(
                    "Viewer.simulate: the model is continuous. Load it with time_step=1e-3, or call set_time_step."
                )
            if inputs is not None:
                self._inputs = inputs if callable(inputs) else as_inputs(self.model, inputs)
            self._mode, self._owed = "simulating", 0.0

    def reset(self) -> None:
        """Shows the state at the start; a simulation goes on from there."""
        with self._lock:
            self._state, self._owed = self._start, 0.0
            self.drawing.pressure.forget()
            self._mode = "simulating" if self._mode == "simulating" else "pose"
            self.redraw()

    def pull(self, body: str | int, target: Any, point: Any = (0.0, 0.0, 0.0)) -> None:
        """Holds the body at a point of its frame and brings it to `target`, in the world, until `release`.

        In a pose by inverse kinematics, at once; in a simulation by a damped spring.
        """
        with self._lock:
            dtype = self._state.q.dtype
            index = jnp.asarray(self.model.body_index(body), jnp.int32)
            places = {"point": point, "target": target}
            p, target = (checked_numbers("Viewer.pull", name, x, FINITE, (3,), unit="m") for name, x in places.items())
            self._grip = Grip(index, jnp.asarray(p, dtype), jnp.asarray(target, dtype))
            if self._mode != "simulating":
                self._state = at_rest(self._state, reach(self.model, self._state.q, self._grip))
                self._mode = "pose"
            self.redraw()

    def release(self) -> None:
        """Lets go of the body that is held."""
        with self._lock:
            self._grip = None
            self.redraw()

    def show(self, what: str, visible: bool = True) -> None:
        """Shows or hides "forces", "frames" or "mass_center"; forces include the surfaces of contact."""
        if what not in self.panel.overlays:
            raise ModelError(f"Viewer.show: there is no '{what}'; choose of {', '.join(self.panel.overlays)}.")
        self.panel.overlays[what].value = visible
        self.redraw()

    def arrows(self, name: str, points: Any, vectors: Any, color: Rgb = GRADIENT_COLOR) -> None:
        """Draws arrows of your own at world points (n, 3), with vectors (n, 3) in m; no points remove them."""
        with self._lock:
            self.drawing.overlays.arrows(name, np.asarray(points), np.asarray(vectors), color)

    def gradient(self, cost: Callable[[State], Any] | None) -> None:
        """Draws how each body would move if the state went down the gradient of `cost(state)`, now and from here on.

        The positions move along -N(q)ᵀ ∂cost/∂q, and arrows show the velocities of the bodies' origins, the longest a
        quarter of the scene. None removes them.
        """
        with self._lock:
            self._cost = cost
            self.drawing.overlays.arrows("gradient", NOTHING, NOTHING, GRADIENT_COLOR)
            self.redraw()

    def redraw(self) -> None:
        """Draws the present state, with everything that is switched on."""
        if self._closed.is_set():
            return
        with self._lock, self.server.atomic():
            recording = self._recording if self._mode in ("playing", "paused") else None
            if recording is not None:
                self._state, q = recording.state(self._time), recording.positions(self._time)
                nodes = recording.nodes(self._time)
            else:
                q, nodes = self._state.q[None], self._state.nodes
                nodes = None if nodes is None else nodes.position[None]
            poses = self.drawing.draw_bodies(q, nodes)
            if poses is None:
                self._mode = "pose"
                self.panel.note.content = "The state is not finite: `mbjax.diagnose` finds the reason. Reset to go on."
                return
            wanted = {key: handle.value for key, handle in self.panel.overlays.items()}
            self.drawing.draw_wanted(self._state, *poses, self._acting_inputs() if wanted["forces"] else None, wanted)
            self.drawing.draw_grip(*poses, self._grip)
            if self._cost is not None:
                cost = self.drawing.draw_descent(self._state, poses[1], self._cost)
                self.panel.note.content = f"Cost: {cost:.6g}"
            self.panel.show_pressure(self.drawing.pressure.largest if self.drawing.pressure.is_drawn else None)
            self.panel.show_state(self.q)
            self.panel.show_mode(self._mode, self.time)

    def _acting_inputs(self) -> Any:
        """The inputs under which the state shown goes on."""
        if self._recording is not None and self._mode in ("playing", "paused"):
            return self._recording.inputs_of_first(self._time)
        if self._mode == "simulating":
            return as_ports(self._inputs(self._state) if callable(self._inputs) else self._inputs)
        return as_ports(None)

    def _dragged(self, body: int, event: Any) -> None:
        """What viser calls while a body is dragged: a hold at the start, a new target, release at the end."""
        with self._lock:
            if event.phase == "end":
                self.release()
                return
            started = self._grip is not None and event.phase != "start"
            grip = (
                self._grip
                if started
                else grip_at(self.model, self._state.q, np.array(body), np.array(event.start_position))
            )
            assert grip is not None
            self.pull(body, event.end_position, grip.point)

    def _recorded(self, call: str) -> Recording:
        if self._recording is None:
            raise ModelError(f"Viewer.{call}: there is no trajectory yet. Give one to Viewer(...) or play(...).")
        return self._recording

    def _run(self) -> None:
        """Moves on what plays or runs, 30 times a second, until the view is closed; what fails is stopped and said."""
        reach(self.model, self._start.q, grip_at(self.model, self._start.q, np.array(0), np.zeros(3)))
        last = clock.perf_counter()
        while not self._closed.wait(1.0 / FRAMES_PER_SECOND):
            now = clock.perf_counter()
            elapsed, last = min(now - last, 0.1), now
            with self._lock:
                if self._mode in ("playing", "simulating"):
                    try:
                        self.advance(elapsed * self.panel.factor)
                    except Exception as error:  # of a function of the user, say; the view must go on
                        self._stopped_by(error)

    def _stopped_by(self, error: Exception) -> None:
        """Goes back to a pose, and says in the panel and by a warning what made it stop."""
        what = "playback" if self._mode == "playing" else "simulation"
        words = f"The {what} stopped: {type(error).__name__}: {error}"
        self.panel.note.content = words
        with contextlib.suppress(ModelWarning):  # where warnings are errors, this thread goes on
            warnings.warn(f"Viewer: {words}", ModelWarning, stacklevel=2)
        self._mode = "pose"  # after it was said: who sees that it stopped finds the reason
        self.panel.show_mode(self._mode, self.time)

    def advance(self, elapsed: float) -> None:
        """Moves on by this many seconds of the trajectory or the simulation; the view does it by itself."""
        with self._lock:
            if self._mode == "playing":
                self._time = self._recorded("advance").after(self._time, elapsed)
            elif self._mode == "simulating":
                self._take_steps(elapsed)
            self.redraw()

    def _take_steps(self, elapsed: float) -> None:
        """Takes the whole steps of the time that has passed, and leaves the rest for the next call."""
        dtype, time_step = self._state.q.dtype, float(self.model.time_step)
        owed = self._owed + elapsed
        count = int(owed / time_step + ROUNDING)
        if count:
            grip = self._grip or Grip(jnp.asarray(0, jnp.int32), jnp.zeros(3, dtype), jnp.zeros(3, dtype))
            stiffness = jnp.asarray(0.0 if self._grip is None else self._stiffness, dtype)
            self._state = steps_under_grip(self.model, self._state, self._inputs, grip, stiffness, jnp.asarray(count))
        self._owed = owed - count * time_step

    def wait(self) -> None:
        """Keeps a script alive until the view is closed or the program is interrupted."""
        while not self._closed.wait(0.2):
            pass

    def close(self) -> None:
        """Stops the server."""
        if not self._closed.is_set():
            with self._lock:
                self._closed.set()
            self._thread.join(timeout=5.0)
            with quiet():
                self.server.stop()

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _repr_html_(self) -> str:
        return f'<iframe src="{self.url}" style="width: 100%; height: 520px; border: 0" title="mbjax viewer"></iframe>'


def at_rest(state: State, q: Any) -> State:
    """The state with other positions q, and with neither bodies nor nodes moving."""
    nodes = state.nodes
    if nodes is not None:
        nodes = NodeState(nodes.position, jnp.zeros_like(nodes.velocity))
    return State(q, jnp.zeros_like(state.v), state.time, nodes)


def import_viser() -> Any:
    """The package viser, or an error that says how to install it."""
    otherwise = "Without it, mbjax.show(model, trajectory) makes a page that plays in any browser."
    return imported("viser", "Viewer: a live view needs viser", "view", otherwise)


def quiet() -> Any:
    """Keeps what viser prints of its own from the terminal; `url` says where the view is."""
    return contextlib.redirect_stdout(io.StringIO())
