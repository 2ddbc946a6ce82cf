// Ranked figures, and the differences of two models: tables whose lines lead to nodes.

import { h } from "./dom.js";
import { STATUS, colouring } from "./colours.js";
import { measured, percent, size } from "./format.js";

const MOST_ROWS = 500;

export function rankingPanel(app) {
  if (!app.doc.measures.length)
    return [h("p", { class: "hint" }, "There are no figures to rank: no operator has constants.")];
  app.ranked =
    app.doc.measures.find((m) => m.key === app.mode) ?? app.ranked ?? app.doc.measures[0];
  const choice = h(
    "select",
    { "aria-label": "Figure", onchange: () => app.setMode(choice.value) },
    app.doc.measures.map((m) => h("option", { value: m.key, selected: m === app.ranked }, m.title)),
  );
  return [
    h(
      "header",
      { class: "head" },
      h("h2", {}, "Ranking"),
      h("label", { class: "choice" }, "by ", choice),
    ),
    rankingTable(app, app.ranked),
  ];
}

function rankingTable(app, measure) {
  const rows = ranked(app.doc, measure);
  const values = rows.map((r) => r.node.measures[measure.key]);
  const total = values.reduce((a, b) => a + b, 0);
  const most = Math.max(...values.map(Math.abs), 1e-30);
  const shares = measure.unit === "B" || measure.key === "latency_us";
  const before = measure.key === "bytes" && app.doc.measures.some((m) => m.key === "bytes_before");
  const colours = colouring(app.doc, measure.key);
  const lines = rows.slice(0, MOST_ROWS).map((r, i) => {
    const { node } = r;
    const value = node.measures[measure.key];
    const open = () => app.select(r.m, r.g, r.n, true);
    return h(
      "tr",
      { class: "go", tabindex: 0, onclick: open, onkeydown: (e) => e.key === "Enter" && open() },
      h("td", { class: "rank" }, String(i + 1)),
      h(
        "td",
        { class: "what" },
        h("b", {}, node.title),
        h("bdi", { title: node.name }, node.short ?? node.name),
        h(
          "span",
          { class: "bar" },
          h("span", {
            style: `width:${(100 * Math.abs(value)) / most}%;background:${colours.of(node).fill}`,
          }),
        ),
      ),
      before ? h("td", { class: "figure" }, measured(measure, node.measures.bytes_before)) : null,
      h(
        "td",
        { class: "figure" },
        measured(measure, value),
        shares && total ? h("span", { class: "faint" }, percent(value / total)) : null,
      ),
    );
  });
  const head = ["", "operator", before ? "before" : null, before ? "after" : measure.title].filter(
    (t) => t !== null,
  );
  const sum = shares
    ? h("p", { class: "hint" }, `${measured(measure, total)} in all ${rows.length} operators.`)
    : null;
  return [
    sum,
    h(
      "table",
      { class: "ranking" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          head.map((t) => h("th", { scope: "col" }, t)),
        ),
      ),
      h("tbody", {}, lines),
    ),
    rows.length > MOST_ROWS
      ? h("p", { class: "hint" }, `The first ${MOST_ROWS} of ${rows.length}.`)
      : null,
  ];
}

// The operators that have a figure, the worst first; of two models, the second one's.
function ranked(doc, measure) {
  const m = doc.models.length - 1;
  const rows = doc.models[m].graphs.flatMap((graph, g) =>
    graph.nodes
      .map((node, n) => ({ node, m, g, n }))
      .filter((r) => r.node.measures?.[measure.key] !== undefined),
  );
  const sign = measure.worse === "low" ? 1 : -1;
  return rows.sort((a, b) => sign * (a.node.measures[measure.key] - b.node.measures[measure.key]));
}

export function differencesPanel(app) {
  const { differences, models } = app.doc;
  const counts = new Map();
  for (const d of differences) counts.set(d.status, (counts.get(d.status) ?? 0) + 1);
  const sum = (i) => differences.reduce((total, d) => total + (d.bytes[i] ?? 0), 0);
  return [
    h(
      "header",
      { class: "head" },
      h("h2", {}, "Differences"),
      h("p", { class: "faint" }, `${models[0].title} → ${models[1].title}`),
    ),
    differences.length
      ? h(
          "p",
          {},
          [...counts].map(([status, n]) =>
            h("span", { class: `tag ${status}` }, `${n} ${STATUS[status][0]}`),
          ),
        )
      : h("p", {}, "No operator differs."),
    differences.length
      ? h(
          "p",
          { class: "hint" },
          `Constants of these operators: ${size(sum(0))} → ${size(sum(1))}.`,
        )
      : null,
    h(
      "div",
      {},
      differences.map((d) => differenceEntry(app, d)),
    ),
  ];
}

function differenceEntry(app, difference) {
  const [left, right] = difference.nodes.map((id) => (id ? app.nodeOf(id) : null));
  const node = right ?? left;
  const named = left ?? right;
  const bytes = difference.bytes.map((b) => (b ? size(b) : null));
  const changed =
    bytes[0] !== null && bytes[1] !== null ? `${bytes[0]} → ${bytes[1]}` : (bytes[0] ?? bytes[1]);
  const errors = app.doc.measures
    .filter((m) => m.unit === "dB" && node.measures?.[m.key] !== undefined)
    .map((m) => `${m.title} ${measured(m, node.measures[m.key])}`);
  const open = () => app.selectId(difference.nodes[1] ?? difference.nodes[0], true);
  return h(
    "div",
    {
      class: "difference go",
      role: "button",
      tabindex: 0,
      onclick: open,
      onkeydown: (e) => e.key === "Enter" && open(),
    },
    h(
      "p",
      {},
      h("span", { class: `tag ${difference.status}` }, STATUS[difference.status][0]),
      h(
        "b",
        {},
        left && right && left.title !== right.title ? `${left.title} → ${right.title}` : node.title,
      ),
      h("span", { class: "faint right" }, changed),
    ),
    h("p", { class: "name", title: named.name }, h("bdi", {}, named.short ?? named.name)),
    h("p", { class: "faint" }, [...difference.words, ...errors].join("; ")),
  );
}
