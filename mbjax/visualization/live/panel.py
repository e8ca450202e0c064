"""The controls beside a live view: sliders of the joints, playback, simulation, and what is drawn."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from mbjax.model import MultibodyModel

from .coordinates import sliders_of

SPEEDS = ("0.1×", "0.25×", "0.5×", "1×", "2×", "4×")
OVERLAYS = {"forces": "Contact forces", "frames": "Body frames", "mass_center": "Centre of mass"}


class Viewed(Protocol):
    """What a panel controls: the view of one model, with a method for each control."""

    model: MultibodyModel

    @property
    def q(self) -> np.ndarray: ...
    def set_positions(self, q: Any) -> None: ...
    def resume(self) -> None: ...
    def pause(self) -> None: ...
    def seek(self, time: float) -> None: ...
    def simulate(self) -> None: ...
    def redraw(self) -> None: ...
    def reset(self) -> None: ...


class Panel:
    """Controls of a view: `show_state` and `show_time` write what happens, callbacks pass on what a user does."""

    def __init__(self, server: Any, viewer: Viewed) -> None:
        gui = server.gui
        self.sliders = sliders_of(viewer.model)
        with gui.add_folder("Playback") as self.playback:
            self.playing = gui.add_checkbox("Play", False)
            self.time = gui.add_slider("Time [s]", 0.0, 1.0, 1e-3, 0.0)
            self.speed = gui.add_dropdown("Speed", SPEEDS, initial_value="1×")
        with gui.add_folder("Simulation"):
            why = "Drag a body: a spring pulls it." if viewer.model.is_discrete else "Load with a time_step above 0."
            self.simulating = gui.add_checkbox("Simulate", False, disabled=not viewer.model.is_discrete, hint=why)
            self.reset = gui.add_button("Reset")
        with gui.add_folder("Show"):
            self.overlays = {key: gui.add_checkbox(label, key == "forces") for key, label in OVERLAYS.items()}
            self.note = gui.add_markdown("Drag a body with the left button.")
            self.legend = gui.add_markdown("", visible=False)
        with gui.add_folder("Joints", expand_by_default=len(self.sliders) <= 40):
            self.handles = [
                gui.add_slider(each.label, each.lower, each.upper, step_of(each.lower, each.upper), each.read(viewer.q))
                for each in self.sliders
            ]
        self._bind(viewer)
        self.set_track(None, None)

    def _bind(self, viewer: Viewed) -> None:
        """Connects what a user does; changes that the program makes have no client and are not passed on."""

        def by_user(handle: Any, action: Any) -> None:
            handle.on_update(lambda event: action(handle.value) if event.client is not None else None)

        for slider, handle in zip(self.sliders, self.handles, strict=True):
            by_user(handle, lambda value, slider=slider: viewer.set_positions(slider.write(viewer.q, value)))
        by_user(self.playing, lambda value: viewer.resume() if value else viewer.pause())
        by_user(self.time, lambda value: viewer.seek(value))
        by_user(self.simulating, lambda value: viewer.simulate() if value else viewer.pause())
        for handle in self.overlays.values():
            by_user(handle, lambda _: viewer.redraw())
        self.reset.on_click(lambda _: viewer.reset())

    def set_track(self, start: float | None, end: float | None) -> None:
        """Sets the ends of the time slider, or hides playback if there is no trajectory."""
        self.playback.visible = start is not None
        if start is not None and end is not None:
            self.time.max = max(end, start + 1e-6)
            self.time.min = start
            self.time.step = step_of(start, end)

    def show_state(self, q: np.ndarray) -> None:
        """Moves the sliders to these positions."""
        for slider, handle in zip(self.sliders, self.handles, strict=True):
            value = slider.read(q)
            if abs(handle.value - value) > 1e-9:
                handle.value = value

    def show_pressure(self, largest: float | None) -> None:
        """Says which contact pressure in Pa is yellow, or nothing."""
        text = "" if largest is None else f"Contact pressure, yellow {largest / 1e3:.3g} kPa"
        if self.legend.content != text:
            self.legend.content, self.legend.visible = text, largest is not None

    def show_mode(self, mode: str, time: float) -> None:
        """Shows whether a trajectory plays or a simulation runs, and its time."""
        for handle, value in ((self.playing, mode == "playing"), (self.simulating, mode == "simulating")):
            if handle.value != value:
                handle.value = value
        if self.playback.visible:
            self.time.value = float(np.clip(time, self.time.min, self.time.max))

    @property
    def factor(self) -> float:
        """How many seconds of the trajectory pass in one second."""
        return float(self.speed.value.rstrip("×"))


def step_of(lower: float, upper: float) -> float:
    """A slider's step: a thousandth of its width, or a bit more, as a power of ten."""
    return float(10.0 ** np.ceil(np.log10(max(upper - lower, 1e-6) / 1e3) - 0.5))
