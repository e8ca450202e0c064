// What stands in the scene besides bodies: force arrows, and the centre of mass.

const TYPICAL_ARROW = 0.17; // of the scene's size: the length of an arrow that nine of ten do not exceed
const LONGEST_ARROW = 0.5;
const Y_AXIS = new THREE.Vector3(0, 1, 0);

// Arrows of one kind, in all worlds: in each frame a list of entries.
class ArrowSet {
  constructor(scene, look, arrays, size) {
    this.scene = scene;
    this.look = look;
    this.size = size;
    this.isOn = true;
    this.pool = [];
    this.worlds = look.worlds.map((record) => record && decodeArrows(record, arrays));
    const typical = Math.max(...look.worlds.map((record) => record?.typical ?? 0));
    this.largest = Math.max(...look.worlds.map((record) => record?.largest ?? 0));
    this.scale = typical > 0 ? (TYPICAL_ARROW * size) / typical : 0;
    this.point = new THREE.Vector3();
    this.vector = new THREE.Vector3();
    this.next = new THREE.Vector3();
    this.shown = [];
  }

  pose(recordings, time) {
    let used = 0;
    this.shown = [];
    this.worlds.forEach((arrows, world) => {
      if (!arrows || !this.isOn || !recordings.length) return;
      const { frame, share } = recordings[world].placeAt(time);
      for (const entry of arrows.inFrame.get(frame) ?? []) {
        this.read(arrows, entry, share);
        this.arrow(used++).show(this.point, this.vector, this.scale, arrows.names[arrows.slots[entry]], this.look.unit, world);
        this.shown.push({ world, name: arrows.names[arrows.slots[entry]], point: this.point.toArray(), vector: this.vector.toArray() });
      }
    });
    for (let k = used; k < this.pool.length; k++) this.pool[k].group.visible = false;
  }

  // Between two frames an arrow that is in both moves; one that ends stays until then.
  read({ slots, frames, points, vectors }, entry, share) {
    this.point.fromArray(points, 3 * entry);
    this.vector.fromArray(vectors, 3 * entry);
    if (share === 0 || slots[entry + 1] !== slots[entry] || frames[entry + 1] !== frames[entry] + 1) return;
    this.point.lerp(this.next.fromArray(points, 3 * entry + 3), share);
    this.vector.lerp(this.next.fromArray(vectors, 3 * entry + 3), share);
  }

  arrow(index) {
    if (index === this.pool.length) this.pool.push(new Arrow(this.scene, this.look, this.size));
    return this.pool[index];
  }

  get pickable() {
    return this.pool.filter(({ group }) => group.visible).flatMap(({ group }) => group.children);
  }

  // Of the first world that has such arrows.
  get total() {
    const first = this.worlds.findIndex(Boolean);
    return this.shown.reduce((sum, { world, vector }) => sum + (world === first ? Math.hypot(...vector) : 0), 0);
  }
}

function decodeArrows(record, arrays) {
  const lengths = (reference, step) => Float64Array.from(unpackArray(arrays, reference), (x) => x * step);
  const slots = unpackArray(arrays, record.slots), frames = unpackArray(arrays, record.frames);
  const inFrame = new Map();
  frames.forEach((frame, entry) => {
    if (!inFrame.has(frame)) inFrame.set(frame, []);
    inFrame.get(frame).push(entry);
  });
  return {
    names: record.names, slots, frames, inFrame,
    points: lengths(record.points, record.point_step), vectors: lengths(record.vectors, record.vector_step),
  };
}

// Solid where it is in sight, and faint where a body is in front of it.
class Arrow {
  constructor(scene, { color, heads }, size) {
    this.size = size;
    this.radius = 0.0055 * size;
    this.group = new THREE.Group();
    this.shafts = [];
    this.heads = [];
    for (const isHidden of [true, false]) {
      const material = new THREE.MeshStandardMaterial({
        color, emissive: color, emissiveIntensity: 0.35, roughness: 0.6, transparent: true, depthTest: !isHidden, depthWrite: !isHidden,
      });
      const add = (list, geometry) => {
        const mesh = new THREE.Mesh(geometry, material);
        mesh.renderOrder = isHidden ? 3 : 2;
        list.push(mesh);
        this.group.add(mesh);
      };
      add(this.shafts, new THREE.CylinderGeometry(1, 1, 1, 14).translate(0, 0.5, 0));
      for (let k = 0; k < heads; k++) add(this.heads, new THREE.CylinderGeometry(0, 2.5, 1, 18).translate(0, -0.5 - 0.7 * k, 0));
    }
    scene.add(this.group);
  }

  show(point, vector, scale, name, unit, world) {
    const magnitude = vector.length();
    const length = Math.min(magnitude * scale, LONGEST_ARROW * this.size);
    const head = Math.min(7 * this.radius, 0.55 * length), radius = Math.min(this.radius, 0.14 * length);
    this.group.visible = length > 1e-4 * this.size;
    this.group.position.copy(point);
    this.group.quaternion.setFromUnitVectors(Y_AXIS, vector.clone().divideScalar(Math.max(magnitude, 1e-30)));
    for (const shaft of this.shafts) shaft.scale.set(radius, length - head, radius);
    for (const mesh of this.heads) {
      mesh.position.y = length;
      mesh.scale.set(radius, head, radius);
    }
    for (const mesh of this.group.children) {
      mesh.userData.text = `${name}: ${magnitude.toPrecision(3)} ${unit}`;
      mesh.material.opacity = (mesh.material.depthTest ? 1 : 0.4) * (world > 0 ? 0.55 : 1);
    }
  }
}

// A ball in black and white, with a plumb line to the ground.
class MassCenter {
  constructor(scene, center, recording, size, groundLevel, opacity) {
    Object.assign(this, { center, recording, groundLevel });
    this.group = new THREE.Group();
    const radius = 0.018 * size;
    for (let k = 0; k < 8; k++) {
      const quarter = k % 4, isUpper = k < 4;
      const material = new THREE.MeshBasicMaterial({
        color: (quarter + (isUpper ? 0 : 1)) % 2 ? "#f8fafc" : "#111827", depthTest: false, transparent: true, opacity, toneMapped: false,
      });
      const patch = new THREE.SphereGeometry(radius, 12, 12, (quarter * Math.PI) / 2, Math.PI / 2,
        isUpper ? 0 : Math.PI / 2, Math.PI / 2).rotateX(Math.PI / 2);
      const mesh = new THREE.Mesh(patch, material);
      mesh.renderOrder = 5;
      this.group.add(mesh);
    }
    const material = new THREE.MeshBasicMaterial({ color: "#111827", depthTest: false, transparent: true, opacity: 0.5 * opacity });
    this.line = new THREE.Mesh(new THREE.CylinderGeometry(0.08 * radius, 0.08 * radius, 1, 8).rotateX(Math.PI / 2).translate(0, 0, -0.5), material);
    this.foot = new THREE.Mesh(new THREE.CylinderGeometry(0.7 * radius, 0.7 * radius, 0.02 * radius, 24).rotateX(Math.PI / 2), material);
    for (const mesh of [this.line, this.foot]) { mesh.renderOrder = 4; this.group.add(mesh); }
    this.group.visible = this.isOn = false;
    this.next = new THREE.Vector3();
    scene.add(this.group);
  }

  pose(time, isRecorded) {
    const { frame, share } = this.recording.placeAt(time), { position } = this.group;
    this.group.visible = this.isOn && isRecorded;
    position.fromArray(this.center, 3 * frame);
    if (share > 0) position.lerp(this.next.fromArray(this.center, 3 * frame + 3), share);
    const height = position.z - this.groundLevel;
    this.line.visible = this.foot.visible = this.groundLevel !== null && height > 0;
    this.line.scale.z = Math.max(height, 1e-6);
    this.foot.position.z = -height;
  }
}
