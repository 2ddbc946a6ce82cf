// The parts of a drawing as SVG elements. Colours are CSS variables, so that themes need no redraw.

import { s } from "./dom.js";
import { kept, widthOf } from "./letters.js";

const BADGE = 10 / 12;
const GAP = 10;

export function drawItem(graph, item, colours, sizes) {
  if (item.type === "node") return drawNode(graph.nodes[item.reference], item, colours, sizes);
  return item.type === "group" ? drawGroup(graph, item, colours, sizes) : drawFrame(graph, item);
}

function drawNode(node, item, colours, sizes) {
  const { fill, ink } = colours.of(node);
  const radius = node.what === "op" ? 5 : 13;
  const { width, height } = item;
  const rows = item.rows ?? node.rows;
  const flat = height > sizes.header;
  const parts = [
    s("rect", { width, height, rx: radius, class: "box" }),
    s("path", {
      d: topBand(width, flat ? sizes.header : height, radius, flat),
      style: `fill:${fill}`,
    }),
    ...titleOf(node, width, ink, sizes),
  ];
  rows.forEach(([name, text], i) => {
    const place = { x: sizes.margin, y: sizes.header + (i + 1) * sizes.row - 2 };
    const line = name ? [s("tspan", { class: "name" }, name), ` ${text}`] : text;
    const wide = name ? widthOf(name, true) + widthOf(` ${text}`) : widthOf(text);
    const style = { class: name ? "row" : "row faint" };
    parts.push(kept(wide, width - 2 * sizes.margin, { ...place, ...style }, line));
  });
  if (node.activation) parts.push(...activationBand(node.activation, width, height, sizes));
  if (node.mark) parts.push(...markOf(node.mark, width, height, radius));
  if (node.status)
    parts.push(
      s("rect", {
        x: -3,
        y: -3,
        width: width + 6,
        height: height + 6,
        rx: radius + 3,
        class: `status ${node.status}`,
      }),
    );
  return s(
    "g",
    {
      transform: `translate(${item.x} ${item.y})`,
      class: `node ${node.what}`,
      id: "",
      role: "img",
      "aria-label": spoken(node),
    },
    s("title", {}, node.name),
    parts,
  );
}

// The title and the badge beside it, in the room that both have.
function titleOf(node, width, ink, sizes) {
  const room = width - 2 * sizes.margin;
  const style = { style: `fill:${ink}` };
  const y = sizes.header - 9;
  const own = widthOf(node.shown, true);
  if (node.what !== "op") {
    const place = { x: width / 2, y, "text-anchor": "middle", class: "title" };
    return [kept(own, room, { ...place, ...style }, node.shown)];
  }
  const beside = node.badge ? BADGE * widthOf(node.badge, true) : 0;
  const share = Math.min(1, (room - (beside && GAP)) / (own + beside));
  const title = { x: sizes.margin, y, class: "title", ...style };
  const texts = [kept(own, own * share, title, node.shown)];
  if (!node.badge) return texts;
  const end = { x: width - sizes.margin, y: y - 0.5, "text-anchor": "end", class: "badge", ...style };
  return [...texts, kept(beside, beside * share, end, node.badge)];
}

// The outline and the sign of a box that luciole verify complains of.
function markOf(severity, width, height, radius) {
  return [
    s("rect", { x: -2, y: -2, width: width + 4, height: height + 4, rx: radius + 2, class: `mark ${severity}` }),
    s("circle", { cx: width, cy: 0, r: 8, class: `sign ${severity}` }),
    s("text", { x: width, y: 4, "text-anchor": "middle", class: "light title" }, "!"),
  ];
}

export function spoken(node) {
  const inside = node.rows.map(([name, text]) => `${name} ${text}`).join(", ");
  const parts = [
    node.title,
    node.badge,
    node.what === "op" ? node.name : node.what,
    inside,
    node.activation,
    node.mark,
  ];
  return parts.filter(Boolean).join(", ");
}

function topBand(width, height, radius, flat) {
  const arc = `a${radius} ${radius} 0 0 1`;
  const upper = `v-${height - radius}${arc} ${radius} -${radius}h${width - 2 * radius}${arc} ${radius} ${radius}`;
  if (flat) return `M0 ${height}${upper}v${height - radius}z`;
  const side = height - 2 * radius;
  return `M0 ${height - radius}v-${side}${arc} ${radius} -${radius}h${width - 2 * radius}${arc} ${radius} ${radius}v${side}${arc} -${radius} ${radius}h-${width - 2 * radius}${arc} -${radius} -${radius}z`;
}

function activationBand(name, width, height, sizes) {
  const top = height - sizes.band;
  const d = `M0 ${top}h${width}v${sizes.band - 5}a5 5 0 0 1 -5 5h-${width - 10}a5 5 0 0 1 -5 -5z`;
  return [
    s("path", { d, class: "activation" }),
    label(sizes.margin, height - 6, name, width - 2 * sizes.margin, { class: "light" }),
  ];
}

function label(x, y, text, room, properties) {
  return kept(widthOf(text, properties.class.startsWith("title")), room, { x, y, ...properties }, text);
}

// What colours the operators inside have, as a bar.
function insideBar(graph, group, item, colours) {
  const counts = new Map();
  for (const n of group.nodes)
    counts.set(
      colours.of(graph.nodes[n]).fill,
      (counts.get(colours.of(graph.nodes[n]).fill) ?? 0) + 1,
    );
  const step = (item.width - 16) / group.nodes.length;
  let x = 8;
  return [...counts].map(([fill, count]) => {
    x += count * step;
    return s("rect", {
      x: x - count * step,
      y: item.height - 8,
      width: count * step,
      height: 4,
      style: `fill:${fill}`,
    });
  });
}

export const MARKS = ["error", "warning"];

// The mark of a box: of an operator its own, of a closed group the worst one inside.
export function markAt(graph, item) {
  if (item.type === "node") return graph.nodes[item.reference].mark;
  if (item.type !== "group") return undefined;
  const marks = graph.groups[item.reference].nodes.map((n) => graph.nodes[n].mark);
  return MARKS.find((mark) => marks.includes(mark));
}

function drawGroup(graph, item, colours, sizes) {
  const group = graph.groups[item.reference];
  const room = item.width - 2 * sizes.margin;
  const mark = markAt(graph, item);
  return s(
    "g",
    {
      transform: `translate(${item.x} ${item.y})`,
      class: "group",
      role: "img",
      "aria-label": `closed group ${group.title}, ${group.line}`,
    },
    [
      s("rect", { x: 4, y: 4, width: item.width, height: item.height, rx: 8, class: "behind" }),
      s("rect", { width: item.width, height: item.height, rx: 8, class: "front" }),
      label(sizes.margin, 18, group.shown, room - 2 * GAP, { class: "title" }),
      label(sizes.margin, 18 + sizes.row, group.line, room, { class: "faint" }),
      label(item.width - sizes.margin, 18, "+", GAP, { class: "title", "text-anchor": "end" }),
      insideBar(graph, group, item, colours),
      mark ? markOf(mark, item.width, item.height, 8) : null,
    ],
  );
}

function drawFrame(graph, item) {
  const group = graph.groups[item.reference];
  return s(
    "g",
    {
      transform: `translate(${item.x} ${item.y})`,
      class: `frame deep${item.depth % 2}`,
      role: "img",
      "aria-label": `open group ${group.title}`,
    },
    [
      s("rect", { width: item.width, height: item.height, rx: 10 }),
      label(12, 18, `− ${group.shown}`, item.width - 24, { class: "title" }),
    ],
  );
}

// Points joined by curves that leave and arrive in the drawing's direction.
export function curve(points, direction) {
  let d = `M${points[0]} ${points[1]}`;
  for (let i = 2; i < points.length; i += 2) {
    const [x0, y0, x1, y1] = points.slice(i - 2, i + 2);
    if (direction === "vertical") d += `C${x0} ${(y0 + y1) / 2} ${x1} ${(y0 + y1) / 2} ${x1} ${y1}`;
    else d += `C${(x0 + x1) / 2} ${y0} ${(x0 + x1) / 2} ${y1} ${x1} ${y1}`;
  }
  return d;
}

// Places along such a curve, close enough to each other to tell what is near.
export function along(points, direction) {
  const places = [];
  for (let i = 2; i < points.length; i += 2) {
    const [x0, y0, x1, y1] = points.slice(i - 2, i + 2);
    const steps = Math.min(Math.ceil(Math.hypot(x1 - x0, y1 - y0) / 8) + 1, 400);
    for (let k = 0; k <= steps; k += 1) {
      const t = k / steps;
      const bent = t * t * (3 - 2 * t);
      const slow = 1.5 * t * (1 - t) + t * t * t;
      const [u, v] = direction === "vertical" ? [bent, slow] : [slow, bent];
      places.push([x0 + (x1 - x0) * u, y0 + (y1 - y0) * v]);
    }
  }
  return places;
}

export function arrow(points, direction) {
  const [x, y] = points.slice(-2);
  return `M${x} ${y}${direction === "vertical" ? "l-3.5 -7h7z" : "l-7 -3.5v7z"}`;
}

// The label of what a node makes, beside the beginning of its first edge.
export function edgeLabel(graph, edge, direction, sizes) {
  const text = graph.tensors[edge.tensors[0]].text;
  if (!text) return null;
  const [x, y] = edge.points;
  const place =
    direction === "vertical"
      ? { x, y: y + sizes.label + 4, "text-anchor": "middle" }
      : { x: x + 6, y: y - 4 };
  return s("text", { ...place, class: "shape" }, text);
}
