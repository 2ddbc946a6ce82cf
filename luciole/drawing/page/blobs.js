// The arrays of the page: embedded in a single file, fetched from the server of a served one.

const arrays = new Map();
let embedded = {};
let served = false;

export function openBlobs(content, isServed) {
  embedded = content;
  served = isServed;
  arrays.clear();
}

// Adds the arrays of another page.
export function addBlobs(content) {
  embedded = { ...embedded, ...content };
}

// Whether an array can be had at all.
export function available(spec) {
  return Boolean(spec) && (String(spec.blob) in embedded || (served && typeof spec.blob === "number"));
}

// An array's numbers, null where the file left it out. 64-bit integers are BigInts.
export async function loadBlob(spec) {
  if (!available(spec)) return null;
  if (!arrays.has(spec.blob))
    arrays.set(
      spec.blob,
      bytesOf(spec).then((bytes) => decode(spec.type, bytes)),
    );
  return arrays.get(spec.blob);
}

export async function bytesOf(spec) {
  const text = embedded[String(spec.blob)];
  if (text !== undefined) return Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
  const answer = await fetch(`blob/${spec.blob}`);
  if (!answer.ok) throw new Error(`array ${spec.blob}: ${answer.status}`);
  return answer.arrayBuffer();
}

const KINDS = {
  f4: Float32Array,
  f8: Float64Array,
  i1: Int8Array,
  i2: Int16Array,
  i4: Int32Array,
  i8: BigInt64Array,
  u1: Uint8Array,
  u2: Uint16Array,
  u4: Uint32Array,
  u8: BigUint64Array,
  b1: Uint8Array,
};

function decode(type, bytes) {
  return type === "f2" ? Float32Array.from(new Uint16Array(bytes), half) : new KINDS[type](bytes);
}

function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

// An array as the bytes of a .npy file (format 1.0).
export function npy(spec, bytes) {
  const kind = { f2: "<f2", b1: "|b1", i1: "|i1", u1: "|u1" }[spec.type] ?? `<${spec.type}`;
  const shape = spec.shape.length === 1 ? `${spec.shape[0]},` : spec.shape.join(", ");
  let head = `{'descr': '${kind}', 'fortran_order': False, 'shape': (${shape}), }`;
  head += " ".repeat(63 - ((10 + head.length) % 64)) + "\n";
  const start = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, head.length & 255, head.length >> 8];
  return new Blob([Uint8Array.from([...start, ...new TextEncoder().encode(head)]), bytes]);
}
