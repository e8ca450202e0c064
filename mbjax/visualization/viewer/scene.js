"use strict";
// The scene: worlds of bodies, sticks between bare bodies, lights, ground, camera.

const FIT_SAMPLES = 24;
const VIEW_DIRECTION = [0.85, -1.25, 0.55];

// Poses of the bodies of one world over time.
class Recording {
  constructor(record, bodies, arrays) {
    this.bodies = bodies;
    this.times = unpackArray(arrays, record.times);
    this.quaternions = unpackArray(arrays, record.quaternions_xyzw);
    this.translations = Float64Array.from(unpackArray(arrays, record.translations), (x) => x * record.step);
    this.massCenter = record.mass_center && Float64Array.from(unpackArray(arrays, record.mass_center), (x) => x * record.step);
    this.frames = this.times.length;
    this.other = new THREE.Quaternion();
    this.next = new THREE.Vector3();
  }

  // The last frame at or before the time.
  frameAt(time) {
    let low = 0, high = this.frames - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.times[middle] <= time) low = middle; else high = middle - 1;
    }
    return low;
  }

  // That frame, and how far the time is on the way to the next one.
  placeAt(time) {
    const frame = this.frameAt(time);
    if (frame + 1 >= this.frames || time <= this.times[frame]) return { frame, share: 0 };
    return { frame, share: (time - this.times[frame]) / (this.times[frame + 1] - this.times[frame]) };
  }

  pose(frame, body, position, quaternion) {
    const at = frame * this.bodies + body;
    position.fromArray(this.translations, 3 * at);
    quaternion.fromArray(this.quaternions, 4 * at).normalize();
  }

  apply(objects, time) {
    const { frame, share } = this.placeAt(time);
    objects.forEach((object, body) => {
      this.pose(frame, body, object.position, object.quaternion);
      if (share === 0) return;
      this.pose(frame + 1, body, this.next, this.other);
      object.position.lerp(this.next, share);
      object.quaternion.slerp(this.other, share);
    });
  }
}

class RobotScene {
  constructor(canvas, record, arrays) {
    this.record = record;
    this.recordings = record.worlds.map((world) => new Recording(world, record.bodies.length, arrays));
    this.joints = new Joints(record.sliders, record.bodies, this.recordings[0], arrays);
    this.start = Math.min(...this.recordings.map(({ times }) => times[0]));
    this.end = Math.max(...this.recordings.map(({ times, frames }) => times[frames - 1]));
    this.scene = new THREE.Scene();
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: true, alpha: true });
    this.renderer.toneMapping = THREE.NeutralToneMapping;
    this.renderer.shadowMap.enabled = true;
    this.renderer.shadowMap.type = THREE.PCFShadowMap;
    this.surfaces = record.meshes.map((mesh) => decodeMesh(mesh, arrays));
    const soft = record.deformables?.bodies ?? [];
    this.names = [...record.bodies, ...soft].map(({ name }) => name);
    this.colors = [...record.bodies, ...soft].map((body, index) => this.bodyColor(body, index));
    this.groundLevel = null;
    this.groups = [];
    this.sticks = [];
    this.pickable = [];
    this.touching = [];
    this.planes = []; // without end: they take no part in how large the scene is
    this.isGroundSolid = false;
    if (typeof record.ground === "number" || record.ground === true) this.setGround(Number(record.ground === true ? 0 : record.ground));
    for (let world = record.worlds.length - 1; world >= 0; world--) this.addWorld(world);
    this.groups.reverse();
    this.deformables = record.deformables ? this.addDeformables(arrays) : null;
    this.measure();
    this.planes.forEach(({ group, mesh }) => group.add(mesh) && mesh.scale.set(3 * this.size, 3 * this.size, 1));
    this.addSticksAndTriads();
    this.addArrowsAndCenters(arrays);
    this.addLights();
    this.addGround();
    this.addCamera(canvas);
  }

  bodyColor(body, index) {
    const own = body.geometries?.[0];
    if (own?.rgba) return fileColor(own.rgba);
    return paletteColor(Math.max(index - 1, 0), Math.max(this.names.length - 1, 1));
  }

  // How a world looks that is laid over the first one: tinted if they are few.
  ghost(world) {
    if (world === 0) return null;
    if (this.record.worlds.length > GHOST_COLORS.length + 1) return { color: null, opacity: OVERLAY_OPACITY };
    return { color: new THREE.Color(GHOST_COLORS[world - 1]), opacity: GHOST_OPACITY };
  }

  addWorld(world) {
    const ghost = this.ghost(world);
    const groups = this.record.bodies.map((body, index) => {
      const group = new THREE.Group();
      for (const shape of body.geometries) {
        if (this.isGround(index, shape)) continue;
        const color = shape.rgba ? fileColor(shape.rgba) : this.colors[index];
        const mesh = new THREE.Mesh(buildGeometry(shape, this.surfaces), buildMaterial(color, shape.rgba ? shape.rgba[3] : 1, ghost));
        place(mesh, shape.translation, shape.quaternion_xyzw);
        mesh.castShadow = mesh.receiveShadow = !ghost;
        mesh.userData.body = index;
        if (!ghost) this.pickable.push(mesh);
        if (shape.kind === "half_space") this.planes.push({ group, mesh }); else group.add(mesh);
      }
      for (const shape of world === 0 ? body.touching : []) {
        const material = new THREE.MeshBasicMaterial({ color: "#e4572e", wireframe: true, transparent: true, opacity: 0.35, depthWrite: false });
        const mesh = new THREE.Mesh(buildGeometry(shape, this.surfaces), material);
        place(mesh, shape.translation, shape.quaternion_xyzw);
        mesh.visible = false;
        this.touching.push(mesh);
        group.add(mesh);
      }
      this.scene.add(group);
      return group;
    });
    this.groups.push(groups);
  }

  addDeformables(arrays) {
    const first = this.record.bodies.length;
    const look = (world, body) => ({ color: this.colors[first + body], ghost: this.ghost(world) });
    return new DeformableSet(this.scene, this.record.deformables, this.recordings, arrays, look, (mesh, world, body) => {
      mesh.userData.body = first + body;
      if (world === 0) this.pickable.push(mesh);
    });
  }

  setGround(level) {
    this.groundLevel = level;
    this.isGroundSolid = true;
  }

  // A half-space of the world whose normal is up is the ground itself.
  isGround(body, shape) {
    if (body !== 0 || shape.kind !== "half_space") return false;
    const up = new THREE.Vector3(0, 0, 1).applyQuaternion(new THREE.Quaternion(...shape.quaternion_xyzw).normalize());
    if (up.z < 0.999) return false;
    if (this.record.ground === "auto") this.setGround(shape.translation[2]);
    return true;
  }

  // The box around everything drawn, over a sample of frames.
  measure() {
    this.box = new THREE.Box3();
    for (let k = 0; k < FIT_SAMPLES; k++) {
      this.pose(this.start + (k / (FIT_SAMPLES - 1)) * (this.end - this.start));
      this.groups.forEach((groups) => groups.forEach((group, body) => {
        group.updateMatrixWorld(true);
        if (body > 0 || group.children.length) this.box.expandByObject(group).expandByPoint(group.position);
      }));
      this.deformables?.expand(this.box);
    }
    if (this.box.isEmpty()) this.box.expandByPoint(new THREE.Vector3());
    this.box.expandByPoint(this.box.min.clone().addScalar(1e-3));
    this.size = Math.max(this.box.getSize(new THREE.Vector3()).length(), 0.05);
    if (this.groundLevel === null) {
      const below = this.box.min.z < -0.02 * this.size;
      this.groundLevel = below ? this.box.min.z - 0.02 * this.size : Math.min(0, this.box.min.z);
    }
  }

  robotCenter() {
    const center = new THREE.Vector3();
    const places = [...this.groups[0].slice(1).map(({ position }) => position), ...(this.deformables?.centers() ?? [])];
    places.forEach((place) => center.add(place));
    return center.divideScalar(Math.max(places.length, 1));
  }

  addSticksAndTriads() {
    const { bodies } = this.record;
    const isBare = bodies.map((body) => body.geometries.length === 0);
    const thickness = 0.007 * this.size;
    this.triads = [];
    this.groups.forEach((groups, world) => groups.forEach((group, index) => {
      const triad = buildTriad(this.size * (isBare[index] ? 0.045 : 0.06), world > 0 ? OVERLAY_OPACITY : 1);
      triad.visible = isBare[index] && index > 0;
      group.add(triad);
      this.triads.push({ triad, always: triad.visible });
      const parent = bodies[index].parent;
      if (parent <= 0 || !(isBare[index] || isBare[parent])) return;
      const stick = new THREE.Mesh(new THREE.CylinderGeometry(thickness, thickness, 1, 16),
        buildMaterial(new THREE.Color("#7b8794"), 1, this.ghost(world)));
      stick.castShadow = world === 0;
      stick.userData.body = index;
      if (world === 0) this.pickable.push(stick);
      this.scene.add(stick);
      this.sticks.push({ stick, from: groups[parent], to: group });
    }));
    this.scene.add(buildTriad(this.size * 0.12, 0.85));
  }

  addArrowsAndCenters(arrays) {
    const { record, recordings, scene, size } = this;
    this.arrows = record.arrows.map((look) => new ArrowSet(scene, look, arrays, size));
    this.patches = record.patches ? new PatchSet(scene, record.patches, arrays) : null;
    const level = record.ground === false ? null : this.groundLevel;
    this.massCenters = recordings.filter(({ massCenter }, world) => massCenter && (world === 0 || recordings.length <= 4))
      .map((recording, world) => new MassCenter(scene, recording.massCenter, recording, size, level, world ? 0.55 : 1));
  }

  addLights() {
    const environment = new THREE.PMREMGenerator(this.renderer).fromScene(new THREE.RoomEnvironment(), 0.04);
    this.scene.environment = environment.texture;
    this.scene.environmentRotation.x = Math.PI / 2;
    this.scene.environmentIntensity = 0.5;
    this.scene.add(new THREE.HemisphereLight("#ffffff", "#b9ae9c", 0.4));
    this.sun = new THREE.DirectionalLight("#fff4e6", 2.1);
    this.sun.castShadow = true;
    this.sun.shadow.mapSize.set(2048, 2048);
    this.sun.shadow.radius = 4;
    this.sun.shadow.bias = -0.0004;
    this.sun.shadow.normalBias = 0.004 * this.size;
    const reach = 0.75 * this.size;
    Object.assign(this.sun.shadow.camera, { left: -reach, right: reach, top: reach, bottom: -reach, near: 0.01 * this.size,
      far: 6 * this.size });
    this.scene.add(this.sun, this.sun.target);
  }

  addGround() {
    const decade = 10 ** Math.floor(Math.log10(this.size / 5));
    const cell = decade * (this.size / 5 > 5 * decade ? 5 : this.size / 5 > 2 * decade ? 2 : 1);
    this.ground = buildGround(4.5 * this.size, cell, this.isGroundSolid);
    this.ground.renderOrder = -1;
    this.shade = new THREE.Mesh(new THREE.PlaneGeometry(9 * this.size, 9 * this.size),
      new THREE.ShadowMaterial({ opacity: 0.22, color: "#27384d" }));
    this.shade.receiveShadow = true;
    this.shade.material.depthWrite = false;
    this.scene.add(this.ground, this.shade);
  }

  addCamera(canvas) {
    this.camera = new THREE.PerspectiveCamera(32, 1, 0.01 * this.size, 60 * this.size);
    this.camera.up.set(0, 0, 1);
    this.controls = new THREE.OrbitControls(this.camera, canvas);
    this.controls.enableDamping = true;
    this.controls.dampingFactor = 0.12;
    this.controls.maxDistance = 25 * this.size;
    this.controls.minDistance = 0.05 * this.size;
    this.resetCamera();
  }

  resetCamera() {
    const center = this.box.getCenter(new THREE.Vector3());
    center.z -= 0.05 * this.size; // room for the controls below
    const narrow = Math.min(1, window.innerWidth / window.innerHeight);
    const distance = (0.5 * this.size * 1.08) / Math.sin((this.camera.fov * Math.PI) / 360) / narrow;
    this.controls.target.copy(center);
    this.camera.position.set(...VIEW_DIRECTION).normalize().multiplyScalar(distance).add(center);
    this.followed = null;
    this.controls.update();
  }

  pose(time) {
    this.recordings.forEach((recording, world) => recording.apply(this.groups[world], time));
    this.joints.apply(this.groups[0]);
    this.deformables?.pose(time);
    const isRecorded = !this.joints.isPosed; // forces and masses belong to the motion that was recorded
    this.arrows?.forEach((set) => set.pose(isRecorded ? this.recordings : [], time));
    this.patches?.pose(isRecorded ? this.recordings : [], time);
    this.massCenters?.forEach((center) => center.pose(time, isRecorded));
    const along = new THREE.Vector3();
    for (const { stick, from, to } of this.sticks) {
      along.subVectors(to.position, from.position);
      const length = along.length();
      stick.visible = length > 1e-6;
      if (!stick.visible) continue;
      stick.position.addVectors(from.position, to.position).multiplyScalar(0.5);
      stick.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), along.divideScalar(length));
      stick.scale.set(1, length, 1);
    }
  }

  follow(isOn) {
    if (!isOn) { this.followed = null; return; }
    const center = this.robotCenter();
    if (this.followed) {
      const moved = center.clone().sub(this.followed);
      this.camera.position.add(moved);
      this.controls.target.add(moved);
    }
    this.followed = center;
  }

  highlight(body) {
    for (const mesh of this.pickable) {
      mesh.material.emissive.set(mesh.userData.body === body ? "#2f6fb3" : "#000000");
      mesh.material.emissiveIntensity = 0.45;
    }
  }

  showFrames(isOn) {
    for (const { triad, always } of this.triads) triad.visible = isOn || always;
    for (const mesh of this.pickable) {
      if (isOn) mesh.userData.solid ??= { opacity: mesh.material.opacity, transparent: mesh.material.transparent };
      const solid = mesh.userData.solid;
      if (!solid) continue;
      Object.assign(mesh.material, isOn ? { opacity: 0.35 * solid.opacity, transparent: true } : solid);
      mesh.material.needsUpdate = true;
    }
  }

  show(what, isOn) {
    if (what === "frames") this.showFrames(isOn);
    if (what === "forces") for (const set of [...this.arrows, this.patches]) if (set) set.isOn = isOn;
    if (what === "mass") for (const center of this.massCenters) center.isOn = isOn;
    if (what === "touching") for (const mesh of this.touching) mesh.visible = isOn;
  }

  render() {
    const { clientWidth: width, clientHeight: height } = this.renderer.domElement;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const wanted = `${width}x${height}x${ratio}`;
    if (wanted !== this.drawn) {
      this.drawn = wanted;
      this.renderer.setPixelRatio(ratio);
      this.renderer.setSize(width, height, false);
      this.camera.aspect = width / Math.max(height, 1);
      this.camera.updateProjectionMatrix();
    }
    this.controls.update();
    const target = this.followed ? this.robotCenter() : this.box.getCenter(new THREE.Vector3());
    this.sun.target.position.copy(target);
    this.sun.position.set(0.9, -0.7, 2.1).multiplyScalar(1.2 * this.size).add(target);
    this.ground.position.set(target.x, target.y, this.groundLevel - 0.001 * this.size);
    this.ground.material.uniforms.center.value.set(target.x, target.y);
    this.shade.position.set(target.x, target.y, this.groundLevel);
    this.ground.visible = this.shade.visible = this.record.ground !== false && this.camera.position.z > this.groundLevel;
    this.renderer.render(this.scene, this.camera);
  }
}
