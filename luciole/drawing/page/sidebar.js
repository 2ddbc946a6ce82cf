// The details of what is selected: a node, a group, or the model itself.

import { button, h } from "./dom.js";
import { barChart, histogramChart } from "./charts.js";
import { STATUS, colouring, operatorsOf } from "./colours.js";
import { counted, measured, number, percent, size, typed } from "./format.js";
import { levelsPart } from "./levels.js";
import { valuesPart } from "./values.js";

const MOST_ENDS = 24;

// ---------------------------------------------------------------------- a node
export function nodePanel(app, modelIndex, graphIndex, index) {
  const graph = app.doc.models[modelIndex].graphs[graphIndex];
  const node = graph.nodes[index];
  const here = { app, doc: app.doc, modelIndex, graphIndex, graph };
  return [
    headOf(here, node),
    node.mark ? findingsPart(app, here.doc.models[modelIndex], modelIndex, placeOf(here, node)) : null,
    differencePart(here, node),
    node.levels ? levelsPart(node) : null,
    measuresPart(here, node),
    originsPart(here, node),
    node.what === "op" ? attributesPart(node) : null,
    subgraphsPart(here, node),
    node.what === "input"
      ? null
      : tensorsPart(here, node.what === "output" ? "Value" : "Operands", node.operands),
    node.what === "output"
      ? null
      : tensorsPart(here, node.what === "input" ? "Value" : "Results", node.results),
  ];
}

function headOf(here, node) {
  const mode = here.app.colours.of(node);
  const bits =
    node.bits && `${node.bits[0]} bit weights${node.bits[1] ? `, ${node.bits[1]} bit input` : ""}`;
  const facts = [
    node.kind !== node.title && node.kind,
    node.custom_code && `custom code ${node.custom_code}`,
    bits,
    node.bytes && size(node.bytes),
    node.version > 1 && `version ${node.version}`,
  ];
  return h(
    "header",
    { class: "head" },
    h(
      "h2",
      {},
      h("span", { class: "swatch", style: `background:${mode.fill}` }),
      node.what === "op" ? node.title : node.what,
    ),
    h("p", { class: "name" }, h("bdi", {}, node.name)),
    node.short ? h("p", { class: "name" }, "layer ", h("bdi", {}, node.short)) : null,
    node.original
      ? h("p", { class: "name" }, "equalized from ", h("bdi", {}, node.original))
      : null,
    h("p", { class: "faint" }, facts.filter(Boolean).join(" · ")),
    node.help
      ? h("details", {}, h("summary", {}, "What it does"), h("p", { class: "help" }, node.help))
      : null,
  );
}

function differencePart(here, node) {
  if (!node.status && !node.twin) return null;
  const [title] = STATUS[node.status] ?? ["the same in both models"];
  const other = 1 - here.modelIndex;
  const link =
    node.twin &&
    button("show the other one", "Select the operator with the same name in the other model", () =>
      here.app.selectId(node.twin),
    );
  return h(
    "section",
    { class: "part" },
    h("h3", {}, "Compared"),
    h(
      "p",
      {},
      h("span", { class: `tag ${node.status ?? "same"}` }, title),
      ` ${(node.difference ?? []).join("; ")}`,
    ),
    link
      ? h("p", {}, link, h("span", { class: "faint" }, ` in ${here.doc.models[other].title}`))
      : null,
  );
}

function measuresPart(here, node) {
  const known = here.doc.measures.filter((m) => node.measures?.[m.key] !== undefined);
  if (!known.length && !node.note) return null;
  const rows = known.map((m) =>
    h("tr", {}, h("th", { scope: "row" }, m.title), h("td", {}, measured(m, node.measures[m.key]))),
  );
  return h(
    "section",
    { class: "part" },
    h("h3", {}, "Figures"),
    h("table", { class: "pairs" }, h("tbody", {}, rows)),
    node.note ? h("p", { class: "hint" }, node.note) : null,
  );
}

// The nodes of another format, or the layers, that an operator was imported from.
function originsPart(here, node) {
  const { source } = here.doc.models[here.modelIndex];
  if (!source || node.what !== "op") return null;
  const from = (node.origins ?? []).map((n) =>
    h("p", {}, h("b", {}, source[n][0]), " ", h("bdi", { class: "name" }, source[n][1])),
  );
  const none = h("p", { class: "hint" }, "No node: it was put between them.");
  return h("section", { class: "part origins" }, h("h3", {}, "Imported from"), from.length ? from : none);
}

function attributesPart(node) {
  if (!node.attributes.length) return null;
  const rows = node.attributes.map(([name, value, isDefault]) =>
    h(
      "tr",
      { class: isDefault ? "default" : "" },
      h("th", { scope: "row" }, name),
      h(
        "td",
        {},
        h("bdi", {}, value),
        isDefault ? h("span", { class: "faint" }, " default") : null,
      ),
    ),
  );
  return h(
    "section",
    { class: "part" },
    h("h3", {}, "Attributes"),
    h("table", { class: "pairs" }, h("tbody", {}, rows)),
  );
}

function subgraphsPart(here, node) {
  if (!node.graphs) return null;
  const graphs = here.doc.models[here.modelIndex].graphs;
  const links = node.graphs.map((g) =>
    button(graphs[g].name, "Show this graph", () => here.app.showGraph(here.modelIndex, g)),
  );
  return h("section", { class: "part" }, h("h3", {}, "Graphs it calls"), h("p", {}, links));
}

// ---------------------------------------------------------------------- tensors
export function edgePanel(app, modelIndex, graphIndex, tensors) {
  const graph = app.doc.models[modelIndex].graphs[graphIndex];
  const here = { app, doc: app.doc, modelIndex, graphIndex, graph };
  const entries = tensors.map((t) => tensorEntry(here, "", t));
  entries[0].open = true;
  const title = tensors.length > 1 ? `Edge of ${tensors.length} tensors` : "Edge";
  return [h("header", { class: "head" }, h("h2", {}, title)), entries];
}

function tensorsPart(here, title, slots) {
  if (!slots.length) return null;
  return h(
    "section",
    { class: "part" },
    h("h3", {}, title),
    slots.map(([name, t]) => tensorEntry(here, name, t)),
  );
}

function tensorEntry(here, name, index) {
  if (index < 0)
    return h(
      "div",
      { class: "tensor" },
      h("b", {}, name),
      h("span", { class: "faint" }, " absent"),
    );
  const tensor = here.graph.tensors[index];
  const body = h("div", { class: "tensor-body" });
  const part = h(
    "details",
    { class: "tensor" },
    h(
      "summary",
      {},
      h("b", {}, name || "tensor"),
      h("span", { class: "type" }, typed(tensor)),
      h("bdi", { class: "tensor-name" }, tensor.name),
    ),
    body,
  );
  part.addEventListener(
    "toggle",
    () => part.open && !body.firstChild && body.append(...tensorFacts(here, tensor)),
  );
  return part;
}

function tensorFacts(here, tensor) {
  const parts = [
    h("p", { class: "name" }, h("bdi", {}, tensor.name)),
    h(
      "p",
      { class: "faint" },
      [
        tensor.id.split(":").at(-1).replace("t", "tensor "),
        tensor.bytes !== undefined && `constant, ${size(tensor.bytes)}`,
        tensor.variable && "variable",
      ]
        .filter(Boolean)
        .join(" · "),
    ),
    tensor.equalized
      ? h("p", {}, h("bdi", {}, tensor.equalized[0]), `, ${tensor.equalized[1]}`)
      : null,
    linksOf(here, tensor),
    tensor.quantization ? quantizationPart(tensor.quantization) : null,
    tensor.contents ? contentsPart(tensor) : null,
    valuesPart(tensor),
  ];
  return parts.filter(Boolean);
}

function linksOf(here, tensor) {
  const link = (n) =>
    button(
      here.graph.nodes[n].title,
      here.graph.nodes[n].name,
      () => here.app.select(here.modelIndex, here.graphIndex, n),
      { class: "link" },
    );
  const made = tensor.producer === null ? null : h("span", {}, "from ", link(tensor.producer), " ");
  const used = tensor.users.slice(0, 12).map(link);
  return h(
    "p",
    { class: "links" },
    made,
    used.length
      ? ["to ", used, tensor.users.length > 12 ? ` and ${tensor.users.length - 12} more` : null]
      : h("span", { class: "faint" }, "used by nothing"),
  );
}

function quantizationPart(q) {
  const rows = [["formula", h("code", {}, q.formula)]];
  if (q.range) rows.push(["range", `${number(q.range[0])} … ${number(q.range[1])}`]);
  if (q.codes) rows.push(["codes", `${q.codes[0]} … ${q.codes[1]}`]);
  if (q.observed) rows.push(["observed", `${number(q.observed[0])} … ${number(q.observed[1])}`]);
  if (q.scale.length === 1)
    rows.push(["scale", number(q.scale[0], 6)], ["zero point", String(q.zero[0])]);
  if (q.clipped !== undefined) rows.push(["at the end codes", percent(q.clipped)]);
  const many = q.scale.length > 1;
  return h(
    "div",
    { class: "quantization" },
    h("p", {}, `${q.words}.`),
    h(
      "table",
      { class: "pairs" },
      h(
        "tbody",
        {},
        rows.map(([name, value]) =>
          h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value)),
        ),
      ),
    ),
    many
      ? h(
          "div",
          {},
          h("p", { class: "hint" }, `Scale of each channel along axis ${q.axis}:`),
          barChart(q.scale, `scales of ${q.scale.length} channels`),
        )
      : null,
  );
}

function contentsPart(tensor) {
  const c = tensor.contents;
  const names = [
    ["min", c.min],
    ["max", c.max],
    ["mean", c.mean],
    ["deviation", c.deviation],
  ];
  const coded = tensor.quantization ? "codes" : "values";
  return h(
    "div",
    {},
    tensor.quantization ? h("p", { class: "hint" }, "The codes themselves:") : null,
    c.every ? h("p", { class: "hint" }, `Of every ${c.every}th value:`) : null,
    h(
      "p",
      { class: "figures" },
      names.map(([name, v]) => h("span", {}, h("b", {}, number(v)), ` ${name}`)),
      h("span", {}, h("b", {}, percent(c.zeros)), " zeros"),
      c.not_finite ? h("span", { class: "bad" }, `${c.not_finite} not finite`) : null,
    ),
    c.histogram ? histogramChart(c.histogram, `histogram of the ${coded}`) : null,
  );
}

// ---------------------------------------------------------------------- a group, the model
export function groupPanel(app, modelIndex, graphIndex, id) {
  const graph = app.doc.models[modelIndex].graphs[graphIndex];
  const group = graph.groups[id];
  const nodes = group.nodes.map((n) => graph.nodes[n]);
  const bytes = nodes.reduce((sum, n) => sum + n.bytes, 0);
  return [
    h(
      "header",
      { class: "head" },
      h("h2", {}, "Group"),
      h("p", { class: "name" }, h("bdi", {}, group.title)),
      h("p", { class: "faint" }, `${group.line} · ${size(bytes)} of constants`),
    ),
    h(
      "p",
      {},
      button("Open or close", "Enter does the same", () => app.toggleGroup(modelIndex, id)),
    ),
    bitsPart(app.doc, nodes),
    kindsPart(nodes),
  ];
}

export function modelPanel(app) {
  return app.doc.models.map((model, m) => [
    h(
      "header",
      { class: "head" },
      h("h2", {}, h("bdi", {}, model.title)),
      h("p", { class: "faint" }, modelFacts(model)),
    ),
    sourcePart(model),
    findingsPart(app, model, m),
    proofPart(model),
    bitsPart(app.doc, operatorsOf({ models: [model] })),
    kindsPart(operatorsOf({ models: [model] })),
    endsPart(app, model, m),
    model.graphs.length > 1 ? graphsPart(app, model, m) : null,
    model.signatures.length
      ? h(
          "section",
          { class: "part" },
          h("h3", {}, "Signatures"),
          model.signatures.map((s) =>
            h(
              "p",
              {},
              h("b", {}, s.key),
              ` ${s.inputs.map((i) => i[0]).join(", ")} → ${s.outputs.map((o) => o[0]).join(", ")}`,
            ),
          ),
        )
      : null,
    model.description
      ? h(
          "section",
          { class: "part" },
          h("h3", {}, "Description"),
          h("p", {}, h("bdi", {}, model.description)),
        )
      : null,
    model.metadata.length
      ? h(
          "section",
          { class: "part" },
          h("h3", {}, "Metadata"),
          model.metadata.map(([name, bytes]) =>
            h("p", {}, h("bdi", {}, name), h("span", { class: "faint" }, ` ${size(bytes)}`)),
          ),
        )
      : null,
  ]);
}

// How many nodes or layers that were imported became how many operators.
function sourcePart(model) {
  if (!model.source) return null;
  const operators = model.graphs[0].nodes.filter((n) => n.what === "op");
  const words = `${counted(model.source.length, "node")} became ${counted(operators.length, "operator")}`;
  return h(
    "section",
    { class: "part" },
    h("h3", {}, "Shown as imported"),
    h("p", {}, `${words}. Each one lists the nodes that it came from, and Find takes their names.`),
  );
}

function proofPart(model) {
  if (!model.proof?.length) return null;
  const lines = model.proof.map((line) => h("p", {}, line.replace(/^proof: /, "")));
  return h("section", { class: "part" }, h("h3", {}, "Proof"), lines);
}

// Where findings speak of an operator.
function placeOf(here, node) {
  return `subgraphs[${here.graphIndex}].operators[${node.index}]`;
}

// What luciole verify says (of a place), worst first; where it speaks of an operator, a link to it.
function findingsPart(app, model, m, place = "") {
  const about = model.findings.filter(({ path }) => `${path}.`.startsWith(place && `${place}.`));
  if (!about.length) return null;
  const order = ["error", "warning", "note"];
  const sorted = about.sort(
    (a, b) => order.indexOf(a.severity) - order.indexOf(b.severity),
  );
  return h(
    "section",
    { class: "part findings" },
    h("h3", {}, "What is wrong"),
    sorted.map((f) =>
      h(
        "p",
        {},
        h("span", { class: `tag ${f.severity}` }, f.severity),
        place ? null : findingPlace(app, model, m, f.path),
        h("bdi", {}, ` ${f.sentence}`),
      ),
    ),
    model.more_findings && !place
      ? h("p", { class: "hint" }, `and ${model.more_findings} more: luciole verify lists them`)
      : null,
  );
}

function findingPlace(app, model, m, path) {
  const [, g, i] = path.match(/^subgraphs\[(\d+)\]\.operators\[(\d+)\]/) ?? [];
  const nodes = model.graphs[g]?.nodes ?? [];
  const node = nodes.findIndex((n) => n.what === "op" && n.index === Number(i));
  if (node < 0) return h("bdi", { class: "faint" }, path);
  return button(path, "Select this operator", () => app.select(m, Number(g), node), {
    class: "link",
  });
}

function modelFacts(model) {
  const ops = operatorsOf({ models: [model] });
  return [model.source ? "imported" : model.format, model.bytes !== null && size(model.bytes), counted(ops.length, "operator")]
    .filter(Boolean)
    .join(" · ");
}

// How the bytes of all constants divide into weight widths.
function bitsPart(doc, nodes) {
  const sums = new Map();
  for (const node of nodes) {
    if (node.bytes)
      sums.set(node.bits?.[0] ?? null, (sums.get(node.bits?.[0] ?? null) ?? 0) + node.bytes);
  }
  const total = [...sums.values()].reduce((a, b) => a + b, 0);
  if (!total) return null;
  const entries = [...sums].sort((a, b) => (a[0] ?? 99) - (b[0] ?? 99));
  const fill = (bits) =>
    colouring(doc, "bits").of({ what: "op", bits: bits === null ? undefined : [bits] }).fill;
  return h(
    "section",
    { class: "part" },
    h("h3", {}, "Bytes by weight bits"),
    h(
      "div",
      {
        class: "stack",
        role: "img",
        "aria-label": entries.map(([b, n]) => `${b ?? "other"}: ${n} bytes`).join(", "),
      },
      entries.map(([b, n]) =>
        h("span", { style: `width:${(100 * n) / total}%;background:${fill(b)}` }),
      ),
    ),
    h(
      "table",
      { class: "pairs" },
      h(
        "tbody",
        {},
        entries.map(([b, n]) =>
          h(
            "tr",
            {},
            h(
              "th",
              { scope: "row" },
              h("span", { class: "swatch", style: `background:${fill(b)}` }),
              b === null ? "no weights" : `${b} bit`,
            ),
            h("td", {}, `${size(n)}, ${percent(n / total)}`),
          ),
        ),
      ),
    ),
  );
}

function kindsPart(nodes) {
  const counts = new Map();
  for (const node of nodes) counts.set(node.title, (counts.get(node.title) ?? 0) + 1);
  const sorted = [...counts].sort((a, b) => b[1] - a[1]);
  return h(
    "section",
    { class: "part" },
    h("h3", {}, "Operators"),
    h(
      "table",
      { class: "pairs" },
      h(
        "tbody",
        {},
        sorted.map(([kind, n]) =>
          h("tr", {}, h("th", { scope: "row" }, kind), h("td", {}, String(n))),
        ),
      ),
    ),
  );
}

function endsPart(app, model, m) {
  const graph = model.graphs[0];
  const side = (title, what) => {
    const nodes = graph.nodes.map((n, i) => [n, i]).filter(([n]) => n.what === what);
    const slot = what === "input" ? "results" : "operands";
    const more =
      nodes.length > MOST_ENDS
        ? h("p", { class: "hint" }, `and ${nodes.length - MOST_ENDS} more`)
        : null;
    return h(
      "section",
      { class: "part" },
      h("h3", {}, title),
      nodes.slice(0, MOST_ENDS).map(([n, i]) => {
        const tensor = graph.tensors[n[slot][0][1]];
        return h(
          "p",
          { class: "end" },
          button(n.title, "Select", () => app.select(m, 0, i), { class: "link" }),
          h("span", { class: "type" }, typed(tensor)),
          tensor.quantization ? h("code", {}, tensor.quantization.formula) : null,
        );
      }),
      more,
    );
  };
  return [side("Inputs", "input"), side("Outputs", "output")];
}

function graphsPart(app, model, m) {
  return h(
    "section",
    { class: "part" },
    h("h3", {}, "Graphs"),
    model.graphs.map((g, i) =>
      h(
        "p",
        {},
        button(g.name, "Show this graph", () => app.showGraph(m, i), { class: "link" }),
        h("span", { class: "faint" }, ` ${g.nodes.length} nodes`),
      ),
    ),
  );
}
