// Time, controls and the hooks that a test reads: window.mbjax.

const ICON_PLAY = '<svg width="16" height="16" viewBox="0 0 16 16"><path d="M4 2.2v11.6a.6.6 0 0 0 .9.5l9.2-5.8a.6.6 0 0 0 0-1L4.9 1.7a.6.6 0 0 0-.9.5z"/></svg>';
const ICON_PAUSE = '<svg width="16" height="16" viewBox="0 0 16 16"><rect x="3" y="2" width="3.6" height="12" rx="1"/><rect x="9.4" y="2" width="3.6" height="12" rx="1"/></svg>';
const element = (id) => document.getElementById(id);

class Player {
  constructor(record, arrays) {
    this.view = new RobotScene(element("canvas"), record, arrays);
    const { frames } = this.view.recordings[0];
    this.start = this.view.start;
    this.end = this.view.end;
    this.time = this.start;
    this.speed = 1;
    this.following = false;
    this.lastTick = null;
    const { num_frames_given: given } = record.worlds[0], count = this.view.names.length - 1;
    element("subtitle").textContent = [
      record.worlds.length > 1 ? `${record.worlds.length} worlds` : null, `${count} ${count === 1 ? "body" : "bodies"}`,
      `${frames} frames${given > frames ? ` of ${given}` : ""}`,
    ].filter(Boolean).join("  ·  ");
    element("end").textContent = `/ ${this.end.toFixed(2)} s`;
    Object.assign(element("slider"), { min: this.start, max: this.end });
    this.listBodies(record);
    this.listJoints(frames);
    this.explain(record);
    this.bindControls();
    this.bindPointer(record);
    this.setPlaying(frames > 1);
    window.mbjax.frames = frames;
    window.mbjax.seek = (time) => this.seek(time);
    window.mbjax.play = () => this.setPlaying(true);
    window.mbjax.pause = () => this.setPlaying(false);
    window.mbjax.view = this.view;
  }

  // The legend: who is who, and what arrows mean.
  explain(record) {
    const add = (kind, text) => {
      const row = document.createElement("li"), value = document.createElement("span");
      row.className = kind;
      row.append(text, value);
      element("legend").append(row);
      return { row, value };
    };
    record.worlds.forEach(({ label }, world) => {
      if (label === null) return;
      const ghost = this.view.ghost(world);
      add(ghost ? "ghost" : "body", label).row.style.setProperty("--dot", ghost?.color?.getStyle() ?? "#64748b");
    });
    this.sums = this.view.arrows.map((set) => {
      const { row, value } = add("arrow", set.look.label);
      row.title = `Longest: ${set.largest.toPrecision(3)} ${set.look.unit}. The number is the sum of what the first trajectory has now.`;
      row.style.setProperty("--dot", set.look.color);
      return { set, value };
    });
    if (this.view.patches) add("body", `Contact pressure, yellow ${(this.view.patches.largest / 1e3).toPrecision(3)} kPa`).row.style.setProperty("--dot", "#21918c");
    const colors = this.view.deformables?.colors;
    if (colors) add("body", `${colors.label}, yellow ${colors.largest.toPrecision(3)} ${colors.unit}`).row.style.setProperty("--dot", "#21918c");
    element("legend").hidden = !element("legend").children.length;
  }

  listBodies(record) {
    this.rows = this.view.names.map((name, index) => {
      const row = document.createElement("li");
      row.textContent = row.title = name;
      row.style.setProperty("--dot", this.view.colors[index].getStyle());
      row.onpointerenter = () => this.highlight(index);
      row.onpointerleave = () => this.highlight(null);
      if (index > 0 || record.bodies[0].geometries.length) element("bodies").append(row);
      return row;
    });
    this.toggle("names", "panel", window.innerWidth > 720 && this.rows.length < 26);
  }

  // A slider for each joint that follows no other; a hand that moves one stops the motion.
  listJoints(frames) {
    const { joints } = this.view;
    this.sliders = joints.list.flatMap((joint, index) => {
      if (joint.leader !== null) return [];
      const row = document.createElement("li"), input = document.createElement("input"), value = document.createElement("span");
      const { lower: min, upper: max } = joint;
      Object.assign(input, { type: "range", min, max, step: "any", title: `${joint.name} [${joint.unit}]`, ariaLabel: joint.name });
      input.oninput = () => {
        const wanted = Number(input.value);
        this.setPlaying(false, true);
        joints.set(index, wanted, this.time);
        this.draw();
      };
      row.append(joint.name, value, input);
      element("sliders").append(row);
      return [{ index, input, value, unit: joint.unit }];
    });
    element("move").hidden = !this.sliders.length;
    this.toggle("move", "joints", this.sliders.length > 0 && frames === 1 && window.innerWidth > 720);
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
    element("move").onclick = () => this.toggle("move", "joints", element("joints").hidden);
    element("follow").onclick = () => element("follow").classList.toggle("on", (this.following = !this.following));
    const drawn = { forces: [this.view.arrows, true], frames: [this.view.triads, false], mass: [this.view.massCenters, false],
      touching: [this.view.touching, false] };
    for (const [what, [objects, isOn]] of Object.entries(drawn)) {
      element(what).hidden = objects.length === 0;
      element(what).classList.toggle("on", isOn);
      element(what).onclick = () => this.view.show(what, element(what).classList.toggle("on"));
    }
    const step = (this.end - this.start) / 100;
    const keys = {
      " ": "play", c: "follow", a: "forces", f: "frames", m: "mass", t: "touching", b: "names", j: "move", r: "reset",
      ArrowRight: () => this.seek(this.time + step), ArrowLeft: () => this.seek(this.time - step),
      Home: () => this.seek(this.start), End: () => this.seek(this.end),
    };
    window.addEventListener("keydown", (event) => {
      const action = keys[event.key];
      if (!action || event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
      if (event.target.closest?.("#joints") && event.key.startsWith("Arrow")) return; // which move the slider
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
      const arrow = ray.intersectObjects(this.view.arrows.flatMap((set) => set.pickable), false)[0];
      const hit = arrow ?? ray.intersectObjects(this.view.pickable, false)[0];
      const body = hit?.object.userData.body ?? null;
      this.highlight(body);
      tooltip.hidden = !hit;
      if (!hit) return;
      tooltip.textContent = arrow ? arrow.object.userData.text : this.view.names[body];
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

  setPlaying(isPlaying, isPosed = false) {
    if (!isPosed) this.view.joints.clear();
    if (isPlaying && this.time >= this.end) this.time = this.start;
    window.mbjax.playing = isPlaying;
    element("play").innerHTML = isPlaying ? ICON_PAUSE : ICON_PLAY;
  }

  seek(time) {
    this.view.joints.clear();
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
    window.mbjax.frame = this.view.recordings[0].frameAt(this.time);
    for (const { index, input, value, unit } of element("joints").hidden ? [] : this.sliders) {
      const position = this.view.joints.at(index, this.time);
      if (document.activeElement !== input || window.mbjax.playing) input.value = position;
      value.textContent = `${position.toFixed(3)} ${unit}`;
    }
    for (const { set, value } of this.sums) value.textContent = `${set.total.toPrecision(3)} ${set.look.unit}`;
  }
}

function startPlayer(record, arrays) {
  try {
    const player = new Player(record, arrays);
    const loop = (now) => { player.tick(now); requestAnimationFrame(loop); };
    requestAnimationFrame(loop);
  } catch (error) {
    showError(`This animation needs WebGL 2, which the browser did not give: ${error.message || error}`, error);
  }
}
