// Surfaces of hydroelastic contact, colored by pressure.

const SCALE_COLORS = ["#440154", "#3b528b", "#21918c", "#5ec962", "#fde725"];

// The color of a share between 0 and 1 of the largest value.
function scaleColor(share, target) {
  scaleColor.stops ??= SCALE_COLORS.map((color) => new THREE.Color(color));
  const { stops } = scaleColor, place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const below = Math.min(Math.floor(place), stops.length - 2);
  return target.lerpColors(stops[below], stops[below + 1], place - below);
}

// The surfaces of all worlds: in each frame the triangles that are there.
class PatchSet {
  constructor(scene, record, arrays) {
    this.isOn = true;
    this.worlds = record.worlds.map((world) => world && decodePatches(world, arrays));
    this.largest = Math.max(...record.worlds.map((world) => world?.largest ?? 0));
    const most = Math.max(0, ...this.worlds.flatMap((world) => (world ? [...world.inFrame.values()].map(({ end, start }) => end - start) : [0])));
    this.meshes = this.worlds.map((world) => {
      if (!world) return null;
      const geometry = new THREE.BufferGeometry();
      for (const name of ["position", "color"]) geometry.setAttribute(name, new THREE.BufferAttribute(new Float32Array(9 * most), 3));
      const material = new THREE.MeshBasicMaterial({
        vertexColors: true, side: THREE.DoubleSide, depthTest: false, transparent: true, opacity: 0.9, toneMapped: false,
      });
      const mesh = new THREE.Mesh(geometry, material);
      mesh.frustumCulled = false;
      mesh.renderOrder = 1;
      scene.add(mesh);
      return mesh;
    });
    this.color = new THREE.Color();
  }

  // Surfaces do not move between two frames, as faces come and go.
  pose(recordings, time) {
    this.meshes.forEach((mesh, world) => {
      if (!mesh) return;
      const patches = this.worlds[world], { frame } = recordings.length ? recordings[world].placeAt(time) : { frame: -1 };
      const found = patches.inFrame.get(frame - (frame % patches.every));
      mesh.visible = this.isOn && Boolean(found);
      if (!mesh.visible) return;
      const { position, color } = mesh.geometry.attributes;
      for (let corner = 0; corner < 3 * (found.end - found.start); corner++) {
        const at = 3 * found.start + corner;
        position.setXYZ(corner, patches.points[3 * at], patches.points[3 * at + 1], patches.points[3 * at + 2]);
        scaleColor(patches.pressures[at] / this.largest, this.color);
        color.setXYZ(corner, this.color.r, this.color.g, this.color.b);
      }
      position.needsUpdate = color.needsUpdate = true;
      mesh.geometry.setDrawRange(0, 3 * (found.end - found.start));
    });
  }
}

function decodePatches(record, arrays) {
  const frames = unpackArray(arrays, record.frames), inFrame = new Map();
  frames.forEach((frame, entry) => {
    if (!inFrame.has(frame)) inFrame.set(frame, { start: entry, end: entry });
    inFrame.get(frame).end = entry + 1;
  });
  const scaled = (reference, step) => Float32Array.from(unpackArray(arrays, reference), (x) => x * step);
  return {
    every: record.every, largest: record.largest, inFrame,
    points: scaled(record.points, record.point_step), pressures: scaled(record.pressures, record.largest / 65535),
  };
}
