// Pages that circle-view wrote, read by another page: their documents, alone or put beside each other.

const WORDS = ["only in the first model", "only in the second model"];

// The document and the arrays of a page's text. Throws an Error where it is no such page.
export function pageContents(text, name) {
  const parsed = new DOMParser().parseFromString(text, "text/html"); // runs nothing, loads nothing
  const part = (id) => JSON.parse(parsed.getElementById(id)?.textContent ?? "null");
  let [content, arrays] = [null, null];
  try {
    [content, arrays] = [part("document"), part("blobs")];
  } catch {
    // said below
  }
  if (!Array.isArray(content?.models) || !content.models.length || arrays === null)
    throw new Error(`${name}: not a page that circle-view wrote`);
  if (content.served) throw new Error(`${name}: a page that was served holds no arrays`);
  return { content, arrays };
}

// Gives every array of a document a name of its own: numbers would be another document's too.
export function renamed({ content, arrays }, mark) {
  everyArray(content, (spec) => {
    spec.blob = `${mark}/${spec.blob}`;
  });
  const found = Object.entries(arrays).map(([number, text]) => [`${mark}/${number}`, text]);
  return { content, arrays: Object.fromEntries(found) };
}

function everyArray(part, act) {
  if (part === null || typeof part !== "object") return;
  if (typeof part.blob === "number") act(part);
  else for (const inner of Object.values(part)) everyArray(inner, act);
}

// The last model of a document beside the first one of another, operators matched by name.
export function beside(first, second) {
  const models = [structuredClone(first.models[0]), second.models.at(-1)];
  models.forEach((model, m) => numbered(model, m));
  const measures = new Map([...first.measures, ...second.measures].map((m) => [m.key, m]));
  return {
    ...first,
    title: models.map((m) => m.title).join(" and "),
    models,
    measures: [...measures.values()],
    differences: paired(...models.map(operators)),
  };
}

function operators(model) {
  return model.graphs.flatMap((g) => g.nodes.filter((n) => n.what === "op"));
}

// Makes a model the m-th of its document.
function numbered(model, m) {
  const changed = (id) => id.replace(/^\d+/, m);
  for (const graph of model.graphs) {
    for (const node of graph.nodes) {
      node.id = changed(node.id);
      for (const key of ["twin", "status", "difference"]) delete node[key];
    }
    for (const tensor of graph.tensors) tensor.id = changed(tensor.id);
  }
}

// Matches operators as Python does: by what a layer was called before it was quantized, else by name.
function paired(ours, theirs) {
  const named = unique(ours);
  const found = new Set();
  const differences = [];
  for (const node of theirs) {
    const names = [node.layer, node.original, node.name];
    const twin = names.map((name) => named.get(name)).find((n) => n && !found.has(n));
    if (twin) found.add(twin);
    differences.push(difference(twin ?? null, node));
  }
  differences.push(...ours.filter((node) => !found.has(node)).map((n) => difference(n, null)));
  return differences.filter(Boolean);
}

function unique(nodes) {
  const named = new Map();
  for (const node of nodes) {
    const name = node.original ?? node.name;
    named.set(name, named.has(name) ? null : node);
  }
  return named;
}

function difference(a, b) {
  if (a && b) [a.twin, b.twin] = [b.id, a.id];
  const words = a && b ? changes(a, b) : [WORDS[a ? 0 : 1]];
  if (!words.length) return null;
  const status = !a ? "added" : !b ? "removed" : a.kind !== b.kind ? "replaced" : "changed";
  const both = [a, b];
  for (const node of both.filter(Boolean)) Object.assign(node, { status, difference: words });
  return { status, words, nodes: both.map((n) => n?.id ?? null), bytes: both.map((n) => n?.bytes ?? null) };
}

function changes(a, b) {
  const words = [];
  if (a.kind !== b.kind) words.push(`${a.kind} became ${b.kind}`);
  if (a.bits?.[0] !== b.bits?.[0])
    words.push(`weights: ${a.bits?.[0] ?? "?"} bit became ${b.bits?.[0] ?? "?"} bit`);
  if (a.kind === b.kind && a.bytes !== b.bytes) words.push("constants differ in size");
  const before = new Map(a.attributes);
  for (const [name, value] of a.kind === b.kind ? b.attributes : [])
    if (before.has(name) && before.get(name) !== value)
      words.push(`${name}: ${before.get(name)} became ${value}`);
  return words;
}
