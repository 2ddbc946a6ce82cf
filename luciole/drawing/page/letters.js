// How wide texts are with the letters that the browser has, and texts that keep to their room.

import { s } from "./dom.js";

const SIZE = 12;

let context = null;
const widths = new Map();

// The width of a text of the drawing, in pixels.
export function widthOf(text, bold = false) {
  const key = (bold ? "b" : "n") + text;
  if (!widths.has(key)) {
    context ??= letters();
    context.font = `${bold ? "bold " : ""}${SIZE}px ${context.family}`;
    widths.set(key, context.measureText(text).width);
  }
  return widths.get(key);
}

// A canvas that measures, and the page's own family of letters.
function letters() {
  const { fontFamily: family } = getComputedStyle(document.body);
  return Object.assign(document.createElement("canvas").getContext("2d"), { family });
}

// A text element that is `width` pixels wide, in letters that are drawn narrower where it has less
// room: boxes are measured for Helvetica's.
export function kept(width, room, properties, ...children) {
  const narrow = width > room && { textLength: room, lengthAdjust: "spacingAndGlyphs" };
  return s("text", { ...properties, ...narrow }, ...children);
}
