/** A vector as it is stored: 32-bit floats, scaled to the length 1. */
export const packedVector = (vector: readonly number[]): Uint8Array => {
  const length = Math.hypot(...vector);
  const floats = Float32Array.from(vector, (value) => (length === 0 ? 0 : value / length));
  return new Uint8Array(floats.buffer);
};

/** The cosine similarity to stored vectors, `NaN` for those of another length. */
export const similarityTo = (vector: readonly number[]): ((stored: unknown) => number) => {
  const wanted = floatsIn(packedVector(vector));
  return (stored) => {
    const floats = floatsIn(stored);
    if (floats.length !== wanted.length) return Number.NaN;
    let sum = 0;
    for (let at = 0; at < floats.length; at += 1) sum += (floats[at] ?? 0) * (wanted[at] ?? 0);
    return sum;
  };
};

/** Drivers return a blob as a `Uint8Array` or as an `ArrayBuffer`. */
const floatsIn = (blob: unknown): Float32Array => {
  if (blob instanceof ArrayBuffer) return new Float32Array(blob);
  if (!(blob instanceof Uint8Array)) return new Float32Array();
  const isAligned = blob.byteOffset % 4 === 0;
  const { buffer, byteOffset, byteLength } = isAligned ? blob : blob.slice();
  return new Float32Array(buffer, byteOffset, byteLength / 4);
};
