// Learned levels: one channel's weights and the levels they take, its basis, and the layer's input.

import { button, h, replaceContent } from "./dom.js";
import { available, loadBlob } from "./blobs.js";
import { levelChart, overviewChart } from "./charts.js";
import { number, percent } from "./format.js";
import { valuesPart } from "./values.js";

export function levelsPart(node) {
  const { weights, input } = node.levels;
  return [weightsPart(node, weights), input ? inputPart(input) : null];
}

// ---------------------------------------------------------------------- weights
function weightsPart(node, weights) {
  const body = h("div", { class: "channel" });
  const facts = [
    `${weights.channels} channels of ${weights.per_channel} weights, ${2 ** weights.bits} levels each`,
  ];
  if (weights.clipped_share !== undefined)
    facts.push(
      `${percent(weights.clipped_share)} of the original weights clipped: more than half a step beyond the levels`,
    );
  const part = h(
    "section",
    { class: "levels", "aria-label": "Learned levels of the weights" },
    h("h3", {}, "Weights: learned levels"),
    h("p", { class: "hint" }, `${facts.join("; ")}.`),
    errorLine(weights.error),
    body,
    valuesPart({ name: `${node.name} weights`, values: weights.values }, "Weights as numbers"),
  );
  if (!available(weights.levels) || !available(weights.counts)) {
    replaceContent(
      body,
      h(
        "p",
        { class: "hint leftout" },
        "The levels are left out of this file: too many channels. circle-view --embed-limit takes more, without -o it shows them.",
      ),
    );
    return part;
  }
  loadAll(weights).then((arrays) => new ChannelPicker(body, weights, arrays));
  return part;
}

function errorLine(error) {
  if (!error) return null;
  const parts = [
    ["signal/noise", error.snr_db, " dB"],
    ["mse", error.mse, ""],
    ["cosine", error.cosine, ""],
    ["peak error / range", error.peak, ""],
  ];
  return h(
    "p",
    { class: "figures" },
    parts
      .filter(([, v]) => v !== null)
      .map(([name, v, unit]) => h("span", {}, h("b", {}, `${number(v)}${unit}`), ` ${name}`)),
  );
}

async function loadAll(weights) {
  const names = [
    "basis",
    "offsets",
    "levels",
    "codes",
    "counts",
    "histogram",
    "ends",
    "clipped",
    "channel_mse",
    "row_bits",
  ];
  const found = await Promise.all(names.map((n) => (weights[n] ? loadBlob(weights[n]) : null)));
  return Object.fromEntries(names.map((n, i) => [n, found[i]]));
}

class ChannelPicker {
  constructor(body, weights, arrays) {
    this.weights = weights;
    this.arrays = arrays;
    this.many = 2 ** weights.bits;
    this.overview = h("div");
    this.detail = h("div");
    const most = weights.channels - 1;
    this.box = h("input", {
      type: "number",
      min: 0,
      max: most,
      value: 0,
      "aria-label": "Channel",
      onchange: () => this.show(Number(this.box.value)),
    });
    this.slider = h("input", {
      type: "range",
      min: 0,
      max: most,
      value: 0,
      "aria-label": "Channel",
      oninput: () => this.show(Number(this.slider.value)),
    });
    const tools = [
      button("‹", "Previous channel", () => this.show(this.channel - 1)),
      button("›", "Next channel", () => this.show(this.channel + 1)),
    ];
    if (arrays.channel_mse)
      tools.push(
        button("worst", "The channel with the largest error", () =>
          this.show(largest(arrays.channel_mse)),
        ),
      );
    replaceContent(
      body,
      h("div", { class: "picker" }, h("span", {}, "channel"), this.box, this.slider, tools),
      this.overview,
      this.detail,
    );
    this.show(0);
  }

  show(channel) {
    this.channel = Math.min(Math.max(Math.round(channel) || 0, 0), this.weights.channels - 1);
    this.box.value = this.slider.value = this.channel;
    replaceContent(
      this.overview,
      this.weights.channels > 1
        ? overviewChart(this.arrays.levels, this.many, this.channel, (c) => this.show(c))
        : null,
    );
    const levels = this.levels();
    const chart = levelChart(
      { ...this.histogram(levels), levels, thresholds: middles(levels) },
      `channel ${this.channel}`,
      (i) => mark(table, i),
    );
    const table = levelTable(levels);
    replaceContent(
      this.detail,
      h("p", { class: "hint" }, this.words()),
      chart,
      basisLine(this.basis(), this.arrays.offsets[this.channel]),
      table,
    );
  }

  part(name, each) {
    return Array.from(this.arrays[name].slice(this.channel * each, (this.channel + 1) * each));
  }

  basis() {
    const bits = this.arrays.row_bits ? this.arrays.row_bits[this.channel] : this.weights.bits;
    return this.part("basis", this.weights.bits).slice(0, bits);
  }

  levels() {
    const counts = this.part("counts", this.many);
    const codes = this.part("codes", this.many);
    const bits = this.basis().length;
    const levels = this.part("levels", this.many).map((value, i) => ({
      value,
      share: counts[i] / this.weights.per_channel,
      code: signs(codes[i], bits),
      used: codes[i] < 2 ** bits,
    }));
    return levels.filter((level) => level.used);
  }

  histogram(levels) {
    if (this.arrays.histogram) {
      const [low, high] = this.part("ends", 2);
      const bins = this.weights.histogram.shape[1];
      return { low, high, counts: this.part("histogram", bins) };
    }
    return { ...around(levels.map((l) => l.value)), counts: null };
  }

  words() {
    if (!this.arrays.histogram)
      return "Knobs: share of the weights at each level. Give the float model too (circle-view float.circle this.circle) and its weights are drawn behind.";
    const mse = number(this.arrays.channel_mse[this.channel], 3);
    return `Grey: the original weights. Knobs: share at each level. ${percent(this.arrays.clipped[this.channel])} clipped, mse ${mse}.`;
  }
}

function largest(values) {
  return values.reduce((best, v, i) => (v > values[best] ? i : best), 0);
}

function around(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const margin = (high - low || 1) * 0.12;
  return { low: low - margin, high: high + margin };
}

function middles(levels) {
  return levels.slice(1).map((level, i) => (level.value + levels[i].value) / 2);
}

// A code number as the signs of the basis elements, the first one first.
function signs(code, bits) {
  return Array.from({ length: bits }, (_, i) => ((code >> i) & 1 ? "+" : "−")).join("");
}

function basisLine(basis, offset) {
  const most = Math.max(...basis.map(Math.abs), Math.abs(offset), 1e-30);
  const rows = basis.map((a, i) => [`a${i + 1}`, a]);
  if (offset) rows.unshift(["offset", offset]);
  return h(
    "div",
    {
      class: "basis",
      role: "img",
      "aria-label": `basis ${basis.map((a) => number(a)).join(", ")}`,
    },
    h(
      "p",
      { class: "hint" },
      `A level is ${offset ? "offset " : ""}${basis.map((_, i) => `± a${i + 1}`).join(" ")}.`,
    ),
    rows.map(([name, a]) =>
      h(
        "div",
        { class: "basis-row" },
        h("span", { class: "basis-name" }, name),
        h(
          "span",
          { class: "basis-bar" },
          h("span", {
            style: `width:${(50 * Math.abs(a)) / most}%;${a < 0 ? "right:50%" : "left:50%"}`,
          }),
        ),
        h("span", { class: "basis-value" }, number(a)),
      ),
    ),
  );
}

function levelTable(levels) {
  const known = levels.some((l) => l.share !== null);
  const most = Math.max(...levels.map((l) => l.share ?? 0), 1e-9);
  const rows = levels.map((l) =>
    h(
      "tr",
      {},
      h("td", { class: "figure" }, number(l.value)),
      h("td", { class: "code" }, l.code),
      known
        ? [
            h("td", { class: "figure" }, percent(l.share)),
            h("td", { class: "share" }, h("span", { style: `width:${(100 * l.share) / most}%` })),
          ]
        : null,
    ),
  );
  return h(
    "table",
    { class: "level-table" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, "level"),
        h("th", { scope: "col" }, "signs"),
        known ? [h("th", { scope: "col" }, "share"), h("th", { "aria-hidden": "true" }, "")] : null,
      ),
    ),
    h("tbody", {}, rows),
  );
}

function mark(table, index) {
  [...table.tBodies[0].rows].forEach((row, i) => row.classList.toggle("marked", i === index));
}

// ---------------------------------------------------------------------- input
function inputPart(input) {
  const histogram = input.histogram;
  const total = histogram?.level_counts?.reduce((a, b) => a + b, 0);
  const levels = input.levels.map((value, i) => ({
    value,
    code: signs(input.codes[i], input.bits),
    share: total ? histogram.level_counts[i] / total : null,
  }));
  const range = histogram ?? around(input.levels);
  const table = levelTable(levels);
  const chart = levelChart(
    {
      low: range.low,
      high: range.high,
      counts: histogram?.counts ?? null,
      levels,
      thresholds: input.thresholds,
    },
    "levels of the input",
    (i) => mark(table, i),
  );
  return h(
    "section",
    { class: "levels", "aria-label": "Learned levels of the input" },
    h("h3", {}, "Input: learned levels"),
    h("p", { class: "hint" }, inputWords(histogram)),
    chart,
    basisLine(input.basis, input.offset),
    table,
  );
}

function inputWords(histogram) {
  if (!histogram) return "Dotted: thresholds. The input's histogram comes with --data FILE.";
  const beyond =
    histogram.clipped === undefined
      ? ""
      : ` ${percent(histogram.clipped)} clipped (more than half a step beyond the levels).`;
  const outside = (histogram.below ?? 0) + (histogram.above ?? 0);
  return `Grey: the input over ${histogram.source}. Dotted: thresholds.${beyond}${outside ? ` ${outside} values outside the chart.` : ""}`;
}
