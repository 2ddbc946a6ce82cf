// Puts the drawings of a graph and of its open groups together into one scene.
//
// Drawings come finished from Python. Opening a group moves everything else apart: each axis is
// stretched where the group lies, never shrunk, so that what did not overlap still does not.

const FRAME = 14;
const FRAME_TITLE = 22;

// The scene of a graph: items (nodes, closed groups, frames of open groups) and edges, in pixels.
// `open` is the set of open groups, null for the drawing without groups.
export function compose(graph, direction, open) {
  const root = arranged(graph, direction, open === null ? null : "root", open);
  const scene = { items: [], edges: [], byKey: new Map(), width: root.width, height: root.height };
  flatten(root, 0, 0, 0, "", scene);
  for (const item of scene.items) scene.byKey.set(item.key, item);
  scene.after = neighbours(scene.edges, "source", "target");
  scene.before = neighbours(scene.edges, "target", "source");
  return scene;
}

function arranged(graph, direction, id, open) {
  const drawing = (id === null ? graph.flat : graph.groups[id])[direction];
  const items = drawing.items.map(([reference, x, y]) => {
    const [width, height] = sizeOf(graph, reference);
    const inner = open?.has(reference) ? arranged(graph, direction, reference, open) : null;
    return { reference, x, y, width, height, inner };
  });
  const opened = items.filter((item) => item.inner);
  const mapX = stretched(
    opened.map((i) => [i.x - i.width / 2, i.x + i.width / 2, i.inner.width + 2 * FRAME]),
  );
  const mapY = stretched(
    opened.map((i) => [
      i.y - i.height / 2,
      i.y + i.height / 2,
      i.inner.height + 2 * FRAME + FRAME_TITLE,
    ]),
  );
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

// Where an item lies in the stretched drawing; the middle of the room that an open group got.
function place(item, mapX, mapY) {
  item.oldX = item.x;
  item.oldY = item.y;
  if (!item.inner) {
    item.x = mapX(item.oldX);
    item.y = mapY(item.oldY);
    return;
  }
  item.x = (mapX(item.oldX - item.width / 2) + mapX(item.oldX + item.width / 2)) / 2;
  item.y = (mapY(item.oldY - item.height / 2) + mapY(item.oldY + item.height / 2)) / 2;
  item.width = item.inner.width + 2 * FRAME;
  item.height = item.inner.height + 2 * FRAME + FRAME_TITLE;
}

// A piecewise linear function with slope 1 or more that makes each interval at least so long.
function stretched(intervals) {
  if (!intervals.length) return (x) => x;
  const cuts = [...new Set(intervals.flatMap(([a, b]) => [a, b]))].sort((a, b) => a - b);
  const slopes = cuts
    .slice(1)
    .map((_, k) =>
      Math.max(
        1,
        ...intervals
          .filter(([a, b]) => a <= cuts[k] && b >= cuts[k + 1])
          .map(([a, b, to]) => to / (b - a)),
      ),
    );
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
    else result.push(item.x + points[i] - item.oldX, item.y + points[i + 1] - item.oldY);
  }
  return result;
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
      scene.items.push({ key: keys[i], reference: item.reference, type, depth, ...box });
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
