// Links to nodes: what stands behind # in the page's address.

const MOST = 5;

const opsOf = (nodes) => nodes.filter((node) => node.what === "op");

// A link by name, where that says which node it is, else by number.
export function linkTo({ m, g, n }, nodes) {
  const { name, what } = nodes[n];
  const unique = what === "op" && opsOf(nodes).filter((x) => x.name === name).length === 1;
  const place = (m ? `&model=${m}` : "") + (g ? `&graph=${g}` : "");
  return `#node=${encodeURIComponent(unique ? name : `:${n}`)}${place}`;
}

// The model, the graph and the name that an address asks for, null where it asks for none.
export function asked(hash) {
  const parts = new URLSearchParams(hash.slice(1));
  const wanted = parts.get("node");
  return wanted && { wanted, m: Number(parts.get("model") ?? 0), g: Number(parts.get("graph") ?? 0) };
}

// The numbers of the nodes that are called so, or whose names end so, of parts of a name first.
export function namedBy(wanted, nodes) {
  const number = /^:(\d+)$/.exec(wanted)?.[1];
  if (number !== undefined) return nodes[number] ? [Number(number)] : [];
  const fits = (ends) => nodes.flatMap((x, n) => (x.what === "op" && ends(x.name) ? [n] : []));
  const equal = fits((name) => name === wanted);
  if (equal.length) return equal.slice(0, 1);
  const parts = fits((name) => name.endsWith(`/${wanted}`));
  return parts.length ? parts : fits((name) => name.endsWith(wanted));
}

// A sentence about a name that is none, or that several nodes end with.
export function unnamed(wanted, found, nodes) {
  if (found.length)
    return `${found.length} nodes end with ${wanted}: ${listed(found.map((n) => nodes[n].name))}`;
  const last = wanted.split("/").at(-1).toLowerCase();
  const names = opsOf(nodes).map((node) => node.name);
  const like = names.filter((name) => name.toLowerCase().includes(last));
  return `No node is called ${wanted}: there are ${listed(like.length ? like : names)}`;
}

function listed(names) {
  const rest = names.length > MOST ? ` and ${names.length - MOST} more` : "";
  return names.slice(0, MOST).join(", ") + rest;
}
