// What colours mean: weight bits, what operators are for, differences, or a figure from low to high.

import { measured } from "./format.js";

export const STATUS = {
  replaced: ["replaced", "#1c63c9"],
  dtype: ["type changed", "#a15c00"],
  changed: ["changed", "#7a4fa3"],
  added: ["added", "#00796b"],
  removed: ["removed", "#b3261e"],
};

const LOW = [247, 236, 222];
const HIGH = [170, 45, 18];

// The colour modes of a document: key, title.
export function modesOf(doc) {
  const modes = [
    ["bits", "weight bits"],
    ["kind", "kind of operator"],
  ];
  if (doc.differences.length) modes.push(["status", "difference"]);
  return [...modes, ...doc.measures.map((m) => [m.key, m.title])];
}

// How a mode colours: `fill` and `ink` of a node, and the legend's entries.
export function colouring(doc, mode) {
  if (mode === "bits") return byBits(doc);
  if (mode === "kind") return byKind(doc);
  if (mode === "status") return byStatus(doc);
  return byMeasure(
    doc,
    doc.measures.find((m) => m.key === mode),
  );
}

function colouringOf(fill, legend, ink = () => "#ffffff") {
  const io = { fill: "var(--io)", ink: "var(--ink)" };
  return { of: (node) => (node.what === "op" ? { fill: fill(node), ink: ink(node) } : io), legend };
}

function bitsColour(doc, bits) {
  const widths = Object.keys(doc.palette.bits).map(Number);
  return doc.palette.bits[widths.find((w) => bits <= w) ?? widths.at(-1)];
}

function byBits(doc) {
  const present = new Set(
    operatorsOf(doc)
      .filter((n) => n.bits)
      .map((n) => n.bits[0]),
  );
  const legend = [...present].sort((a, b) => a - b).map((b) => [`${b} bit`, bitsColour(doc, b)]);
  return colouringOf(
    (n) => (n.bits ? bitsColour(doc, n.bits[0]) : doc.palette.plain),
    [...legend, ["no weights", doc.palette.plain]],
  );
}

function byKind(doc) {
  const kinds = doc.palette.categories;
  const present = [...new Set(operatorsOf(doc).map((n) => n.category))];
  return colouringOf(
    (n) => kinds[n.category],
    present.map((k) => [k, kinds[k]]),
  );
}

// The kinds of differences that a document has.
export function statusesOf(doc) {
  const present = new Set(doc.differences.map((d) => d.status));
  return Object.keys(STATUS).filter((k) => present.has(k));
}

function byStatus(doc) {
  const legend = statusesOf(doc).map((k) => STATUS[k]);
  return colouringOf(
    (n) => STATUS[n.status]?.[1] ?? doc.palette.plain,
    [...legend, ["the same", doc.palette.plain]],
  );
}

function byMeasure(doc, measure) {
  const values = operatorsOf(doc)
    .map((n) => n.measures[measure.key])
    .filter((v) => v !== undefined);
  const scale = scaleOf(values, measure.worse === "low");
  const known = (n) => n.measures[measure.key] !== undefined;
  const ends = [Math.min(...values), Math.max(...values)];
  const legend =
    ends[0] === ends[1] ? [ends[0]] : measure.worse === "low" ? [ends[1], ends[0]] : ends;
  return colouringOf(
    (n) => (known(n) ? rampColour(scale(n.measures[measure.key])) : doc.palette.plain),
    legend.map((v) => [measured(measure, v), rampColour(scale(v))]),
    (n) => (known(n) ? inkOn(scale(n.measures[measure.key])) : "#ffffff"),
  );
}

// From a value to 0 (good) ... 1 (bad); by magnitude where values span more than two.
function scaleOf(values, lowIsBad) {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const bend = low > 0 && high / low > 100 ? Math.log : (x) => x;
  const span = bend(high) - bend(low) || 1;
  return (v) => (lowIsBad ? (bend(high) - bend(v)) / span : (bend(v) - bend(low)) / span);
}

function rampPart(t) {
  return LOW.map((low, i) => Math.round(low + (HIGH[i] - low) * Math.min(Math.max(t, 0), 1)));
}

function rampColour(t) {
  return `rgb(${rampPart(t).join(",")})`;
}

// Dark or white letters, whichever stand out more (relative luminance of WCAG 2).
function inkOn(t) {
  const [r, g, b] = rampPart(t).map((c) => (c / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.2 ? "#2a1a10" : "#ffffff";
}

export function operatorsOf(doc) {
  return doc.models.flatMap((m) => m.graphs.flatMap((g) => g.nodes.filter((n) => n.what === "op")));
}
