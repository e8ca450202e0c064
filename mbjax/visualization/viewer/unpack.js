"use strict";
// Reads what packed_arrays.py wrote, then starts the viewer, which is deflated too.

window.mbjax = { ready: false, time: 0, playing: false, frame: 0, frames: 0, error: null };

async function inflate(id) {
  const raw = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

// Bytes of equal weight stand together, columns one after another, as differences: back to rows of numbers.
function unpackArray(buffer, { at, count, type, columns, differences }) {
  const Numbers = globalThis[`${type}Array`], size = Numbers.BYTES_PER_ELEMENT;
  const packed = new Uint8Array(buffer, at, count * size), bytes = new Uint8Array(count * size);
  for (let i = 0; i < count; i++) for (let b = 0; b < size; b++) bytes[i * size + b] = packed[b * count + i];
  const stored = new Numbers(bytes.buffer), rows = count / Math.max(columns, 1);
  for (let d = 0; d < differences; d++) {
    for (let c = 0; c < columns; c++) {
      for (let r = 1; r < rows; r++) stored[c * rows + r] += stored[c * rows + r - 1];
    }
  }
  if (columns === 1) return stored;
  const turned = new Numbers(count);
  for (let c = 0; c < columns; c++) for (let r = 0; r < rows; r++) turned[r * columns + c] = stored[c * rows + r];
  return turned;
}

function showError(text, error) {
  window.mbjax.error = String(error);
  document.getElementById("message").hidden = false;
  document.getElementById("message").textContent = text;
  console.error(error);
}

(async () => {
  try {
    const [viewer, arrays] = await Promise.all([inflate("mbjax-viewer"), inflate("mbjax-arrays")]);
    const script = document.createElement("script");
    script.textContent = new TextDecoder().decode(viewer);
    document.body.append(script);
    startPlayer(JSON.parse(document.getElementById("mbjax-data").textContent), arrays);
  } catch (error) {
    showError(`This animation could not be unpacked, which needs a browser of 2023 or newer: ${error.message || error}`, error);
  }
})();
