"use strict";
// Time, controls and the hooks that a test reads: window.mbjax.

const ICON_PLAY = '<svg width="16" height="16" viewBox="0 0 16 16"><path d="M4 2.2v11.6a.6.6 0 0 0 .9.5l9.2-5.8a.6.6 0 0 0 0-1L4.9 1.7a.6.6 0 0 0-.9.5z"/></svg>';
const ICON_PAUSE = '<svg width="16" height="16" viewBox="0 0 16 16"><rect x="3" y="2" width="3.6" height="12" rx="1"/><rect x="9.4" y="2" width="3.6" height="12" rx="1"/></svg>';
const element = (id) => document.getElementById(id);

window.mbjax = { ready: false, time: 0, playing: false, frame: 0, frames: 0, error: null };

class Player {
  constructor(record) {
    this.view = new RobotScene(element("canvas"), record);
    const { times, frames } = this.view.recording;
    this.start = times[0];
    this.end = times[frames - 1];
    this.time = this.start;
    this.speed = 1;
    this.following = false;
    this.showingFrames = false;
    this.lastTick = null;
    const skipped = record.num_frames_given - frames;
    element("subtitle").textContent = [
      record.num_worlds > 1 ? `${record.num_worlds} worlds` : null, `${record.bodies.length - 1} bodies`,
      `${frames} frames${skipped > 0 ? ` of ${record.num_frames_given}` : ""}`,
    ].filter(Boolean).join("  ·  ");
    element("end").textContent = `/ ${this.end.toFixed(2)} s`;
    Object.assign(element("slider"), { min: this.start, max: this.end });
    this.listBodies(record);
    this.bindControls();
    this.bindPointer(record);
    this.setPlaying(frames > 1);
    window.mbjax.frames = frames;
    window.mbjax.seek = (time) => this.seek(time);
    window.mbjax.play = () => this.setPlaying(true);
    window.mbjax.pause = () => this.setPlaying(false);
  }

  listBodies(record) {
    this.rows = record.bodies.map((body, index) => {
      const row = document.createElement("li");
      row.textContent = row.title = body.name;
      row.style.setProperty("--dot", this.view.colors[index].getStyle());
      row.onpointerenter = () => this.highlight(index);
      row.onpointerleave = () => this.highlight(null);
      if (index > 0 || body.geometries.length) element("bodies").append(row);
      return row;
    });
    this.toggle("names", "panel", window.innerWidth > 720 && record.bodies.length < 26);
  }

  toggle(button, panel, isOn) {
    element(button).classList.toggle("on", isOn);
    element(panel).hidden = !isOn;
  }

  bindControls() {
    element("play").onclick = () => this.setPlaying(!window.mbjax.playing);
    element("slider").oninput = (event) => { this.setPlaying(false); this.seek(Number(event.target.value)); };
    element("speed").onchange = (event) => { this.speed = Number(event.target.value); event.target.blur(); };
    element("reset").onclick = () => this.view.resetCamera();
    element("names").onclick = () => this.toggle("names", "panel", element("panel").hidden);
    element("follow").onclick = () => element("follow").classList.toggle("on", (this.following = !this.following));
    element("frames").onclick = () => {
      element("frames").classList.toggle("on", (this.showingFrames = !this.showingFrames));
      this.view.showFrames(this.showingFrames);
    };
    const step = (this.end - this.start) / 100;
    const keys = {
      " ": "play", c: "follow", f: "frames", b: "names", r: "reset",
      ArrowRight: () => this.seek(this.time + step), ArrowLeft: () => this.seek(this.time - step),
      Home: () => this.seek(this.start), End: () => this.seek(this.end),
    };
    window.addEventListener("keydown", (event) => {
      const action = keys[event.key];
      if (!action || event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
      event.preventDefault();
      if (typeof action === "string") element(action).click(); else action();
    });
  }

  bindPointer(record) {
    const canvas = element("canvas"), tooltip = element("tooltip");
    const ray = new THREE.Raycaster(), spot = new THREE.Vector2();
    canvas.addEventListener("pointermove", (event) => {
      if (event.buttons) { tooltip.hidden = true; return; }
      spot.set((2 * event.clientX) / window.innerWidth - 1, 1 - (2 * event.clientY) / window.innerHeight);
      ray.setFromCamera(spot, this.view.camera);
      const hit = ray.intersectObjects(this.view.pickable, false)[0];
      const body = hit ? hit.object.userData.body : null;
      this.highlight(body);
      tooltip.hidden = body === null;
      if (body === null) return;
      tooltip.textContent = record.bodies[body].name;
      tooltip.style.left = `${Math.min(event.clientX + 14, window.innerWidth - tooltip.offsetWidth - 8)}px`;
      tooltip.style.top = `${event.clientY + 14}px`;
    });
    canvas.addEventListener("pointerleave", () => { tooltip.hidden = true; this.highlight(null); });
  }

  highlight(body) {
    if (body === this.highlighted) return;
    this.highlighted = body;
    this.view.highlight(body);
    this.rows.forEach((row, index) => row.classList.toggle("on", index === body));
  }

  setPlaying(isPlaying) {
    if (isPlaying && this.time >= this.end) this.time = this.start;
    window.mbjax.playing = isPlaying;
    element("play").innerHTML = isPlaying ? ICON_PAUSE : ICON_PLAY;
  }

  seek(time) {
    this.time = Math.min(Math.max(time, this.start), this.end);
    this.draw();
  }

  tick(now) {
    const elapsed = this.lastTick === null ? 0 : Math.min((now - this.lastTick) / 1000, 0.25);
    this.lastTick = now;
    if (window.mbjax.playing) {
      this.time += elapsed * this.speed;
      if (this.time > this.end) this.time = this.start;
    }
    this.draw();
    window.mbjax.ready = true;
  }

  draw() {
    const slider = element("slider");
    this.view.pose(this.time);
    this.view.follow(this.following);
    this.view.render();
    slider.value = this.time;
    slider.style.setProperty("--done", `${(100 * (this.time - this.start)) / Math.max(this.end - this.start, 1e-9)}%`);
    element("clock").firstChild.textContent = this.time.toFixed(3);
    window.mbjax.time = this.time;
    window.mbjax.frame = this.view.recording.frameAt(this.time);
  }
}

try {
  const player = new Player(JSON.parse(element("mbjax-data").textContent));
  const loop = (now) => { player.tick(now); requestAnimationFrame(loop); };
  requestAnimationFrame(loop);
} catch (error) {
  window.mbjax.error = String(error);
  element("message").hidden = false;
  element("message").textContent = `This animation needs WebGL 2, which the browser did not give: ${error.message || error}`;
  console.error(error);
}
