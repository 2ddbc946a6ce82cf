// What the boxes of operators show: constants, attributes, names, as the user wants it.
//
// Boxes come measured from Python with their constants. With anything else in them they are measured
// here, and the drawing makes room for them as it does for open groups.

import { widthOf } from "./letters.js";

export const PARTS = [
  ["attributes", "Attributes", "Ctrl+D"],
  ["constants", "Constants", "Ctrl+I"],
  ["names", "Names", "Ctrl+U"],
];

export const SHOWN = { attributes: false, constants: true, names: false };

const WIDEST = 260;
const NARROWEST = 90;
const PADDING = 6;
const MOST_ROWS = 16;

// A text that is cut to a width: at its end, or (names, whose ends differ) at its beginning.
function cut(text, room, keepEnd = false) {
  if (widthOf(text) <= room) return text;
  const letters = [...text];
  let [low, high] = [0, letters.length];
  const some = (n) =>
    keepEnd ? `…${letters.slice(letters.length - n).join("")}` : `${letters.slice(0, n).join("")}…`;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (widthOf(some(middle)) <= room) low = middle;
    else high = middle - 1;
  }
  return some(low);
}

// The lines of a box: [name, text]; a line without a name is the operator's own.
function rowsOf(node, shown) {
  const room = WIDEST - 20;
  const rows = [];
  if (shown.names) rows.push(["", cut(node.short ?? node.name, room, true)]);
  if (shown.constants) rows.push(...node.rows);
  if (shown.attributes) {
    const isOwnBand = (value) => node.activation && value === node.activation;
    const set = node.attributes.filter(([, value, isDefault]) => !isDefault && !isOwnBand(value));
    rows.push(
      ...set.slice(0, MOST_ROWS).map(([name, value]) => {
        const short = cut(name, room / 2);
        return [short, cut(`= ${value}`, room - widthOf(short, true) - 8)];
      }),
    );
    if (set.length > MOST_ROWS) rows.push(["…", `${set.length - MOST_ROWS} more`]);
  }
  return rows;
}

// Whether boxes are as they were measured in Python.
export function asMeasured(shown) {
  return Object.keys(SHOWN).every((part) => shown[part] === SHOWN[part]);
}

// A node's lines and size.
export function boxOf(node, shown, sizes) {
  if (node.what !== "op" || asMeasured(shown)) return { rows: node.rows, size: node.size };
  const rows = rowsOf(node, shown);
  const title = widthOf(node.shown, true) + (node.badge ? widthOf(node.badge, true) + 20 : 0);
  const lines = rows.map(([name, text]) => widthOf(name, true) + 8 + widthOf(text));
  const most = Math.max(title, widthOf(node.activation ?? ""), ...lines);
  const width = Math.min(Math.max(most + 2 * sizes.margin, NARROWEST), WIDEST);
  const body = rows.length ? rows.length * sizes.row + PADDING : 0;
  const height = sizes.header + body + (node.activation ? sizes.band : 0);
  return { rows, size: [Math.round(width), Math.round(height)] };
}
