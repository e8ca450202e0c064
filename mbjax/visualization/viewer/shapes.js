"use strict";
// The record's shapes as three.js objects. Lengths in metres, z up; three.js solids of revolution lie along y.

const SEGMENTS = 48;
const CREASE_ANGLE = 0.6;
const OVERLAY_OPACITY = 0.22;
const GHOST_OPACITY = 0.34;
const GHOST_COLORS = ["#2f6fb3", "#d9652b", "#2f9580"];
const PALETTE = ["#3b5b8c", "#3f8fa6", "#58b09c", "#d9b44a", "#dd7f4f", "#b5566b"];

function decodeMesh(record, arrays) {
  const changes = unpackArray(arrays, record.changes), back = unpackArray(arrays, record.back);
  const positions = new Float32Array(changes.length), steps = [0, 0, 0];
  for (let i = 0; i < changes.length; i++) {
    steps[i % 3] += changes[i] & 1 ? -(changes[i] + 1) >> 1 : changes[i] >> 1;
    positions[i] = record.lower[i % 3] + record.step * steps[i % 3];
  }
  const corners = new Uint32Array(back.length);
  for (let i = 0, newest = 0; i < back.length; i++) {
    corners[i] = newest - back[i];
    if (back[i] === 0) newest++;
  }
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.BufferAttribute(positions, 3));
  geometry.setIndex(new THREE.BufferAttribute(corners, 1));
  return THREE.toCreasedNormals(geometry, CREASE_ANGLE);
}

function meshGeometry(shape, surfaces) {
  const [sx, sy, sz] = shape.scale;
  const geometry = surfaces[shape.mesh].clone().scale(sx, sy, sz);
  if (sx * sy * sz < 0) {
    // A mirrored mesh is inside out: swap two corners of each triangle back.
    for (const attribute of Object.values(geometry.attributes)) {
      for (let i = 0; i + 2 < attribute.count; i += 3) {
        for (let k = 0; k < 3; k++) {
          const kept = attribute.getComponent(i, k);
          attribute.setComponent(i, k, attribute.getComponent(i + 1, k));
          attribute.setComponent(i + 1, k, kept);
        }
      }
    }
  }
  return geometry;
}

function buildGeometry(shape, surfaces) {
  switch (shape.kind) {
    case "sphere": return new THREE.SphereGeometry(shape.radius, SEGMENTS, SEGMENTS / 2);
    case "box": return new THREE.BoxGeometry(...shape.size);
    case "cylinder":
      return new THREE.CylinderGeometry(shape.radius, shape.radius, shape.length, SEGMENTS).rotateX(Math.PI / 2);
    case "capsule": return new THREE.CapsuleGeometry(shape.radius, shape.length, 12, SEGMENTS).rotateX(Math.PI / 2);
    case "ellipsoid": return new THREE.SphereGeometry(1, SEGMENTS, SEGMENTS / 2).scale(...shape.semi_axes);
    case "mesh": return meshGeometry(shape, surfaces);
    case "half_space": return new THREE.PlaneGeometry(1, 1);
  }
  throw new Error(`unknown shape kind '${shape.kind}'`);
}

// A color for bodies that bring none: along the palette in the order of bodies.
function paletteColor(index, count) {
  const place = count > 1 ? (index / (count - 1)) * (PALETTE.length - 1) : 0;
  const low = Math.min(Math.floor(place), PALETTE.length - 2);
  return new THREE.Color(PALETTE[low]).lerp(new THREE.Color(PALETTE[low + 1]), place - low);
}

function fileColor([red, green, blue]) {
  return new THREE.Color().setRGB(red, green, blue, "srgb");
}

// `ghost`: color and opacity of a world that is laid over the first one.
function buildMaterial(color, alpha, ghost) {
  const opacity = alpha * (ghost ? ghost.opacity : 1);
  return new THREE.MeshStandardMaterial({
    color: ghost?.color ?? color, opacity, transparent: opacity < 1, depthWrite: !ghost, roughness: 0.52, metalness: 0.05,
    polygonOffset: Boolean(ghost), polygonOffsetFactor: 2, polygonOffsetUnits: 8, // a ghost in the same place is hidden
  });
}

function place(object, translation, quaternion) {
  object.position.set(...translation);
  object.quaternion.set(...quaternion).normalize();
}

function buildTriad(length, opacity) {
  const triad = new THREE.Group();
  const bar = new THREE.CylinderGeometry(length * 0.035, length * 0.035, length, 12).translate(0, length / 2, 0);
  for (const [color, rotate] of [["#d1495b", (g) => g.rotateZ(-Math.PI / 2)], ["#4f9d69", (g) => g],
    ["#3566b8", (g) => g.rotateX(Math.PI / 2)]]) {
    const material = new THREE.MeshBasicMaterial({ color, opacity, transparent: opacity < 1, toneMapped: false });
    triad.add(new THREE.Mesh(rotate(bar.clone()), material));
  }
  return triad;
}

// A fading grid, drawn by the fragment shader so that its lines stay thin at any distance.
// A ground that bodies touch is tiled; one for the eye alone is a grid.
function buildGround(radius, cell, isSolid) {
  const material = new THREE.ShaderMaterial({
    transparent: true, depthWrite: false, side: THREE.DoubleSide,
    uniforms: { cell: { value: cell }, reach: { value: radius }, center: { value: new THREE.Vector2() }, solid: { value: isSolid ? 1 : 0 } },
    vertexShader: `
      varying vec2 p;
      void main() { vec4 w = modelMatrix * vec4(position, 1.0); p = w.xy; gl_Position = projectionMatrix * viewMatrix * w; }`,
    fragmentShader: `
      varying vec2 p; uniform float cell; uniform float reach; uniform vec2 center; uniform float solid;
      float lines(float size, float width) {
        vec2 g = p / size; vec2 w = fwidth(g);
        vec2 d = abs(fract(g - 0.5) - 0.5) / max(w, 1e-6);
        return (1.0 - min(min(d.x, d.y) / width, 1.0)) * (1.0 - smoothstep(0.2, 0.6, max(w.x, w.y)));
      }
      void main() {
        float fade = 1.0 - smoothstep(0.15, 1.0, length(p - center) / reach);
        float ink = max(0.17 * lines(cell, 1.2), 0.36 * lines(5.0 * cell, 1.4));
        vec2 tile = floor(p / cell);
        float checks = mod(tile.x + tile.y, 2.0) * (1.0 - smoothstep(0.2, 0.6, max(fwidth(p.x / cell), fwidth(p.y / cell))));
        vec3 floorColor = mix(vec3(0.905, 0.922, 0.937), vec3(0.825, 0.855, 0.882) + 0.05 * checks, solid);
        ink *= 1.0 - 0.55 * solid;
        float a = fade * mix(0.55 + 0.45 * ink, 0.96, solid);
        gl_FragColor = vec4(mix(floorColor, vec3(0.42, 0.50, 0.58), ink), a);
      }`,
  });
  return new THREE.Mesh(new THREE.PlaneGeometry(2 * radius, 2 * radius), material);
}
