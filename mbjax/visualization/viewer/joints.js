// Sliders of joints: where they are in the recording, and where a hand has put them.

const followersOf = (joints, index) => joints.map((_, k) => k).filter((k) => joints[k].leader === index);

class Joints {
  constructor(record, bodies, recording, arrays) {
    this.list = record.joints;
    this.recording = recording;
    this.recorded = record.positions && Float64Array.from(unpackArray(arrays, record.positions), (x) => x * record.step);
    this.offsets = this.list.map(() => 0);
    this.ofBody = bodies.map((_, body) => this.list.findIndex((joint) => joint.body === body));
    const depth = (body) => (bodies[body].parent < 0 ? 0 : 1 + depth(bodies[body].parent));
    this.outward = bodies.map((_, body) => body).sort((a, b) => depth(a) - depth(b));
    this.parents = bodies.map(({ parent }) => parent);
    this.old = bodies.map(() => ({ position: new THREE.Vector3(), quaternion: new THREE.Quaternion() }));
  }

  get isPosed() { return this.offsets.some((offset) => offset !== 0); }

  // The position of a joint in the recording, then with what a hand has added.
  recordedAt(index, time) {
    const { frame, share } = this.recording.placeAt(time), count = this.list.length;
    const here = this.recorded[frame * count + index];
    return share > 0 ? here + share * (this.recorded[(frame + 1) * count + index] - here) : here;
  }

  at(index, time) { return this.recordedAt(index, time) + this.offsets[index]; }

  set(index, value, time) {
    this.offsets[index] = value - this.recordedAt(index, time);
    for (const k of followersOf(this.list, index)) this.offsets[k] = this.list[k].ratio * this.offsets[index];
  }

  clear() { this.offsets.fill(0); }

  // Moves bodies from where the recording has them, outward along the tree.
  apply(groups) {
    if (!this.isPosed) return;
    groups.forEach((group, body) => {
      this.old[body].position.copy(group.position);
      this.old[body].quaternion.copy(group.quaternion);
    });
    const away = new THREE.Quaternion(), turned = new THREE.Quaternion(), axis = new THREE.Vector3(), point = new THREE.Vector3();
    for (const body of this.outward) {
      const parent = this.parents[body], group = groups[body], joint = this.list[this.ofBody[body]];
      if (parent < 0) continue;
      away.copy(this.old[parent].quaternion).conjugate();
      group.position.sub(this.old[parent].position).applyQuaternion(away).applyQuaternion(groups[parent].quaternion);
      group.position.add(groups[parent].position);
      group.quaternion.premultiply(away).premultiply(groups[parent].quaternion);
      const offset = joint ? this.offsets[this.ofBody[body]] : 0;
      if (offset === 0) continue;
      axis.fromArray(joint.axis);
      turned.setFromAxisAngle(axis, joint.turn * offset);
      const moved = point.fromArray(joint.point).clone().sub(point.clone().applyQuaternion(turned));
      moved.addScaledVector(axis, joint.advance * offset).applyQuaternion(group.quaternion);
      group.position.add(moved);
      group.quaternion.multiply(turned);
    }
  }
}
