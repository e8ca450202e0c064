// Surfaces of deformable bodies: their nodes move, and so do the normals. Colors may show strain or stress.

class DeformableSet {
  // `look(world, body)` has the color and the ghost of a body in a world, `mark` what the pointer finds.
  constructor(scene, record, recordings, arrays, look, mark) {
    this.recordings = recordings;
    this.colors = record.colors;
    this.nodes = record.num_nodes;
    const bodies = record.bodies.map(({ vertices, triangles }) => (
      { vertices: unpackArray(arrays, vertices), triangles: unpackArray(arrays, triangles) }));
    this.worlds = record.worlds.map((world) => ({
      points: Float32Array.from(unpackArray(arrays, world.points), (x, i) => world.lower[i % 3] + x * world.step),
      values: world.values && Float32Array.from(unpackArray(arrays, world.values), (x) => x / 65535),
    }));
    this.meshes = record.worlds.map((_, world) => bodies.map(({ vertices, triangles }, body) => {
      const geometry = new THREE.BufferGeometry();
      for (const name of ["position", "normal", ...(this.colors ? ["color"] : [])]) {
        geometry.setAttribute(name, new THREE.BufferAttribute(new Float32Array(3 * vertices.length), 3));
      }
      geometry.setIndex(new THREE.BufferAttribute(Uint32Array.from(triangles), 1));
      const { color, ghost } = look(world, body);
      const material = buildMaterial(color, 1, ghost);
      material.side = THREE.DoubleSide; // an element that is inside out stays visible
      if (this.colors) { material.vertexColors = true; material.color.set("#ffffff"); }
      const mesh = new THREE.Mesh(geometry, material);
      mesh.castShadow = mesh.receiveShadow = !ghost;
      mesh.frustumCulled = false;
      mesh.userData.nodes = vertices;
      scene.add(mesh);
      mark(mesh, world, body);
      return mesh;
    }));
    this.color = new THREE.Color();
  }

  // Nodes and values are on a straight line between two frames.
  pose(time) {
    this.meshes.forEach((meshes, world) => {
      const { points, values } = this.worlds[world], { frame, share } = this.recordings[world].placeAt(time);
      const now = frame * this.nodes, next = (share > 0 ? frame + 1 : frame) * this.nodes;
      const between = (numbers, i, j) => numbers[i] + share * (numbers[j] - numbers[i]);
      for (const { geometry, userData: { nodes } } of meshes) {
        const { position, color } = geometry.attributes;
        nodes.forEach((node, vertex) => {
          const i = now + node, j = next + node;
          for (let k = 0; k < 3; k++) position.array[3 * vertex + k] = between(points, 3 * i + k, 3 * j + k);
          if (!color) return;
          scaleColor(between(values, i, j), this.color);
          color.setXYZ(vertex, this.color.r, this.color.g, this.color.b);
        });
        position.needsUpdate = true;
        if (color) color.needsUpdate = true;
        geometry.computeVertexNormals();
        geometry.computeBoundingBox();
        geometry.computeBoundingSphere(); // by which the pointer finds it
      }
    });
  }

  expand(box) {
    for (const { geometry } of this.meshes.flat()) box.union(geometry.boundingBox);
  }

  // Middles of the boxes around the bodies of the first world.
  centers() {
    return this.meshes[0].map(({ geometry }) => geometry.boundingBox.getCenter(new THREE.Vector3()));
  }
}
