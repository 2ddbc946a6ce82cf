// Charts of the sidebar: histograms with levels drawn over them, and bars.

import { s } from "./dom.js";
import { number, percent } from "./format.js";

const WIDTH = 344;
const SIDES = { left: 6, right: 6, top: 12, bottom: 20 };

function axis(low, high, height) {
  const inner = WIDTH - SIDES.left - SIDES.right;
  const x = (v) => SIDES.left + ((v - low) / (high - low || 1)) * inner;
  const base = height - SIDES.bottom;
  const ticks = niceTicks(low, high).map((t) => [
    s("line", { x1: x(t), x2: x(t), y1: base, y2: base + 3, class: "tick" }),
    s(
      "text",
      {
        x: Math.min(Math.max(x(t), 16), WIDTH - 16),
        y: base + 14,
        class: "tick-text",
        "text-anchor": "middle",
      },
      number(t, 3),
    ),
  ]);
  return {
    x,
    base,
    parts: [
      s("line", { x1: SIDES.left, x2: WIDTH - SIDES.right, y1: base, y2: base, class: "tick" }),
      ...ticks,
    ],
  };
}

function niceTicks(low, high) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(span / 5));
  const step = [1, 2, 5, 10].map((m) => m * power).find((t) => span / t <= 6);
  const ticks = [];
  for (let t = Math.ceil(low / step) * step; t <= high + step * 1e-6; t += step)
    ticks.push(Math.abs(t) < step / 1e6 ? 0 : t);
  return ticks;
}

function chart(height, label, parts) {
  return s(
    "svg",
    { class: "chart", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label },
    parts,
  );
}

// Bars between `low` and `high`.
export function histogramChart({ low, high, counts }, label, height = 110) {
  const { x, base, parts } = axis(low, high, height);
  return chart(height, label, [bars(counts, low, high, x, base, height), parts]);
}

function bars(counts, low, high, x, base, height) {
  const most = Math.max(...counts, 1);
  const room = base - SIDES.top;
  const step = (high - low) / counts.length;
  let d = "";
  counts.forEach((count, i) => {
    if (!count) return;
    const [x0, x1] = [x(low + i * step), x(low + (i + 1) * step)];
    const tall = Math.max((count / most) * room, 0.7);
    d += `M${x0.toFixed(2)} ${base}v${(-tall).toFixed(2)}h${Math.max(x1 - x0 - 0.5, 0.5).toFixed(2)}v${tall.toFixed(2)}z`;
  });
  return s("path", { d, class: "bars" });
}

// A histogram (or none) with levels: a line for each, its knob as high as its share, dotted
// thresholds between. `levels` are {value, share, code, colour}; `onlevel` hears what is pointed at.
export function levelChart(
  { low, high, counts, levels, thresholds },
  label,
  onlevel,
  height = 168,
) {
  const { x, base, parts } = axis(low, high, height);
  const room = base - SIDES.top;
  const most = Math.max(...levels.map((l) => l.share ?? 0), 1e-9);
  const lines = levels.map((level, i) => {
    const at = x(level.value);
    const knob =
      level.share === null ? SIDES.top + 4 : base - (level.share / most) * (room - 6) - 2;
    const words = [
      `level ${number(level.value)}`,
      level.code,
      level.share === null ? "" : percent(level.share),
    ]
      .filter(Boolean)
      .join(", ");
    return s(
      "g",
      { class: "level", onpointerenter: () => onlevel(i), onpointerleave: () => onlevel(null) },
      [
        s("title", {}, words),
        s("line", { x1: at, x2: at, y1: SIDES.top - 4, y2: base, class: "level-reach" }),
        s("line", { x1: at, x2: at, y1: knob, y2: base, class: "level-line" }),
        s("circle", { cx: at, cy: knob, r: 4.2, class: "level-knob" }),
      ],
    );
  });
  const between = (thresholds ?? []).map((t) =>
    s("line", { x1: x(t), x2: x(t), y1: SIDES.top + 6, y2: base, class: "threshold" }),
  );
  return chart(height, label, [
    counts ? bars(counts, low, high, x, base, height) : null,
    between,
    parts,
    lines,
  ]);
}

// Every channel's levels, a column of dots for each channel; a click chooses one.
export function overviewChart(levels, many, chosen, onchannel, height = 72) {
  const channels = levels.length / many;
  const [low, high] = levels.reduce(
    ([a, b], v) => [Math.min(a, v), Math.max(b, v)],
    [Infinity, -Infinity],
  );
  const inner = WIDTH - SIDES.left - SIDES.right;
  const x = (c) => SIDES.left + ((c + 0.5) / channels) * inner;
  const y = (v) => height - 8 - ((v - low) / (high - low || 1)) * (height - 16);
  const wide = Math.min(Math.max(inner / channels - 0.4, 0.7), 7);
  let d = "";
  for (let i = 0; i < levels.length; i += 1)
    d += `M${(x(Math.floor(i / many)) - wide / 2).toFixed(1)} ${y(levels[i]).toFixed(1)}h${wide.toFixed(2)}`;
  const mark = s("rect", {
    x: x(chosen) - Math.max(wide, 3) / 2 - 1,
    y: 1,
    width: Math.max(wide, 3) + 2,
    height: height - 2,
    class: "chosen",
  });
  const picture = chart(height, `levels of all ${channels} channels; channel ${chosen} is chosen`, [
    mark,
    s("path", { d, class: "dots" }),
  ]);
  picture.classList.add("overview");
  picture.addEventListener("click", (event) => {
    const box = picture.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * WIDTH;
    onchannel(
      Math.min(channels - 1, Math.max(0, Math.floor(((at - SIDES.left) / inner) * channels))),
    );
  });
  return picture;
}

// One bar for each value, from zero; for scales of channels.
export function barChart(values, label, height = 80) {
  const most = Math.max(...values, 0);
  const least = Math.min(...values, 0);
  const inner = WIDTH - SIDES.left - SIDES.right;
  const y = (v) => height - 14 - ((v - least) / (most - least || 1)) * (height - 30);
  const step = inner / values.length;
  let d = "";
  values.forEach((v, i) => {
    d += `M${(SIDES.left + i * step).toFixed(2)} ${y(0).toFixed(2)}V${y(v).toFixed(2)}h${Math.max(step * 0.82, 0.4).toFixed(2)}V${y(0).toFixed(2)}z`;
  });
  return chart(height, label, [
    s("path", { d, class: "bars" }),
    s("text", { x: SIDES.left, y: height - 2, class: "tick-text" }, "0"),
    s(
      "text",
      { x: WIDTH - SIDES.right, y: height - 2, class: "tick-text", "text-anchor": "end" },
      String(values.length - 1),
    ),
    s(
      "text",
      { x: WIDTH - SIDES.right, y: 9, class: "tick-text", "text-anchor": "end" },
      `largest ${number(most, 3)}`,
    ),
  ]);
}
