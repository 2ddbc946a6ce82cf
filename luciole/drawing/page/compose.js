// Puts the drawings of a graph and of its open groups together into one scene.
//
// Drawings come finished from Python. Where a group opens or a box changes its size, everything else
// moves: each axis is stretched there, as far as the largest needs it, or shrunk, as far as all let it,
// in order, so that what did not overlap still does not.

import { boxOf } from "./boxes.js";

const FRAME = 14;
const FRAME_TITLE = 22;

// The scene of a graph: items (nodes, closed groups, frames of open groups) and edges, in pixels.
// `look` has its direction, the set `open` of open groups (null for the drawing without groups), what
// boxes have `shown`, and the `sizes` that they are drawn with.
export function compose(graph, look) {
  const root = arranged(graph, look, look.open === null ? null : "root");
  const scene = { items: [], edges: [], byKey: new Map(), width: root.width, height: root.height };
  flatten(root, 0, 0, 0, "", scene);
  for (const item of scene.items) scene.byKey.set(item.key, item);
  scene.after = neighbours(scene.edges, "source", "target");
  scene.before = neighbours(scene.edges, "target", "source");
  return scene;
}

function arranged(graph, look, id) {
  const drawing = (id === null ? graph.flat : graph.groups[id])[look.direction];
  const items = drawing.items.map(([reference, x, y]) => {
    const [width, height] = sizeOf(graph, reference);
    const inner = look.open?.has(reference) ? arranged(graph, look, reference) : null;
    return { reference, x, y, width, height, inner, ...contents(graph, reference, inner, look) };
  });
  const changed = items.some((i) => i.to[0] !== i.width || i.to[1] !== i.height) ? items : [];
  const mapX = stretched(changed.map((i) => [i.x - i.width / 2, i.x + i.width / 2, i.to[0]]));
  const mapY = stretched(changed.map((i) => [i.y - i.height / 2, i.y + i.height / 2, i.to[1]]));
  for (const item of items) place(item, mapX, mapY);
  const edges = drawing.edges.map(([a, b, tensors, points]) => ({
    a,
    b,
    tensors,
    points: moved(points, items[a], items[b], mapX, mapY),
  }));
  return { items, edges, width: mapX(drawing.size[0]), height: mapY(drawing.size[1]) };
}

function sizeOf(graph, reference) {
  if (typeof reference === "number") return graph.nodes[reference].size;
  return graph.groups[reference]?.box ?? [0, 0];
}

// How large an item is to be, and the lines of a node's box.
function contents(graph, reference, inner, look) {
  if (inner) return { to: [inner.width + 2 * FRAME, inner.height + 2 * FRAME + FRAME_TITLE] };
  if (typeof reference !== "number") return { to: sizeOf(graph, reference) };
  const { rows, size } = boxOf(graph.nodes[reference], look.shown, look.sizes);
  return { to: size, rows };
}

// Where an item lies in the stretched drawing: the middle of the room that it got.
function place(item, mapX, mapY) {
  item.old = { x: item.x, y: item.y, width: item.width, height: item.height };
  item.x = (mapX(item.x - item.width / 2) + mapX(item.x + item.width / 2)) / 2;
  item.y = (mapY(item.y - item.height / 2) + mapY(item.y + item.height / 2)) / 2;
  [item.width, item.height] = item.to;
}

// A piecewise linear function that makes each interval at least so long, and what is in none no longer.
function stretched(intervals) {
  if (!intervals.length) return (x) => x;
  const cuts = [...new Set(intervals.flatMap(([a, b]) => [a, b]))].sort((a, b) => a - b);
  const slopes = cuts.slice(1).map((next, k) => {
    const over = intervals.filter(([a, b]) => a <= cuts[k] && b >= next);
    return over.length ? Math.max(...over.map(([a, b, to]) => to / (b - a))) : 1;
  });
  const starts = [cuts[0]];
  slopes.forEach((slope, k) => starts.push(starts[k] + slope * (cuts[k + 1] - cuts[k])));
  return (x) => {
    if (x <= cuts[0]) return x;
    let k = cuts.length - 1;
    while (cuts[k] > x) k -= 1;
    return starts[k] + (x - cuts[k]) * (slopes[k] ?? 1);
  };
}

// An edge's points: its ends stay where they are on their boxes, or go to an open group's points.
function moved(points, from, to, mapX, mapY) {
  const last = points.length - 2;
  const result = [];
  for (let i = 0; i <= last; i += 2) {
    const item = i === 0 ? from : i === last ? to : null;
    if (!item) result.push(mapX(points[i]), mapY(points[i + 1]));
    else if (item.inner) result.push(...portOf(item, i === 0 ? "out" : "in"));
    else result.push(...onBox(item, points[i], points[i + 1]));
  }
  return result;
}

// Where an end of an edge lies on its box; the points where edges enter a group have no extent.
function onBox({ x, y, width, height, old }, a, b) {
  const [wider, higher] = [old.width ? width / old.width : 1, old.height ? height / old.height : 1];
  return [x + (a - old.x) * wider, y + (b - old.y) * higher];
}

function portOf(item, name) {
  const port = item.inner.items.find((i) => i.reference === name);
  const left = item.x - item.width / 2 + FRAME;
  const top = item.y - item.height / 2 + FRAME + FRAME_TITLE;
  return port ? [left + port.x, top + port.y] : [item.x, item.y];
}

function flatten(level, left, top, depth, around, scene) {
  const keys = level.items.map((item) => keyOf(item.reference, around));
  level.items.forEach((item, i) => {
    const x = left + item.x - item.width / 2;
    const y = top + item.y - item.height / 2;
    const type = item.inner ? "frame" : typeof item.reference === "number" ? "node" : "group";
    if (item.reference !== "in" && item.reference !== "out") {
      const box = { x, y, width: item.width, height: item.height };
      const { reference, rows } = item;
      scene.items.push({ key: keys[i], reference, type, depth, rows, ...box });
    }
    if (item.inner)
      flatten(item.inner, x + FRAME, y + FRAME + FRAME_TITLE, depth + 1, item.reference, scene);
  });
  for (const edge of level.edges) {
    const points = edge.points.map((c, i) => c + (i % 2 ? top : left));
    const source = keys[edge.a] + (level.items[edge.a].inner ? ":out" : "");
    const target = keys[edge.b] + (level.items[edge.b].inner ? ":in" : "");
    scene.edges.push({ source, target, tensors: edge.tensors, points });
  }
}

function keyOf(reference, around) {
  if (typeof reference === "number") return `n${reference}`;
  return reference === "in" || reference === "out" ? `${around}:${reference}` : reference;
}

// What each key's edges lead to, the points of open groups left out.
function neighbours(edges, from, to) {
  const direct = new Map();
  for (const edge of edges) {
    if (!direct.has(edge[from])) direct.set(edge[from], []);
    direct.get(edge[from]).push(edge[to]);
  }
  const follow = (key) =>
    (direct.get(key) ?? []).flatMap((k) => (k.includes(":") ? follow(k) : [k]));
  return (key) => [...new Set(follow(key))];
}

// The groups around a node, outermost first, so that they can be opened to show it.
export function groupsAround(graph, node) {
  return Object.entries(graph.groups)
    .filter(([id, group]) => id !== "root" && group.nodes.includes(node))
    .sort(([, a], [, b]) => b.nodes.length - a.nodes.length)
    .map(([id]) => id);
}
