// The drawing as an SVG or PNG file: the whole graph as it is arranged and coloured now.

import { download, s } from "./dom.js";
import { arrow, curve, drawItem, edgeLabel } from "./draw.js";

const AROUND = 24;
const MOST_PIXELS = 16000;
const LEAST_SCALE = 0.5; // letters of 6 pixels

const VARIABLES = [
  "--paper",
  "--ink",
  "--faint",
  "--line",
  "--back",
  "--io",
  "--group",
  "--frame0",
  "--frame1",
  "--activation",
];

const RULES = `
text{font-family:Helvetica,Arial,"Liberation Sans",sans-serif;font-size:12px;fill:var(--ink)}
.title,.badge,.name{font-weight:bold}.badge{font-size:10px}.light{fill:#fff}.faint{fill:var(--faint)}
.box{fill:var(--paper);stroke:var(--line)}.activation{fill:var(--activation)}.behind,.front{fill:var(--group);stroke:var(--line)}
.frame rect{fill:var(--frame0);stroke:var(--line);stroke-dasharray:5 4}.frame.deep1 rect{fill:var(--frame1)}
.edge{fill:none;stroke:var(--line);stroke-width:1.3}.head{fill:var(--line)}
.shape{font-size:11px;fill:var(--faint);paint-order:stroke;stroke:var(--back);stroke-width:4}
`;

// What the page's own style says of outlines of differences and of marks.
function outlineRules() {
  return [...document.styleSheets]
    .flatMap((sheet) => [...sheet.cssRules])
    .filter((rule) => /^\.(status|mark|sign)\b/.test(rule.selectorText))
    .map((rule) => rule.cssText)
    .join("");
}

// The graph of a view as the text of an SVG file that needs nothing else.
function svgText(view) {
  const { scene, graph, direction, app } = view;
  const width = Math.ceil(scene.width) + 2 * AROUND;
  const height = Math.ceil(scene.height) + 2 * AROUND;
  const style = getComputedStyle(view.element);
  const resolved = VARIABLES.map((name) => `${name}:${resolve(style, name)}`).join(";");
  const items = scene.items.map((item) => [
    item,
    drawItem(graph, item, app.colours, app.doc.sizes),
  ]);
  const parts = [
    s("style", {}, `:root{${resolved}}${RULES}${outlineRules()}`),
    s("rect", { x: -AROUND, y: -AROUND, width: "100%", height: "100%", style: "fill:var(--back)" }),
    items.filter(([item]) => item.type === "frame").map(([, element]) => element),
    scene.edges.map((e) => s("path", { d: curve(e.points, direction), class: "edge" })),
    scene.edges
      .filter((e) => !e.target.includes(":"))
      .map((e) => s("path", { d: arrow(e.points, direction), class: "head" })),
    scene.edges.filter((e) => e.labelled).map((e) => edgeLabel(graph, e, direction, app.doc.sizes)),
    items.filter(([item]) => item.type !== "frame").map(([, element]) => element),
  ];
  const whole = s(
    "svg",
    { width, height, viewBox: `${-AROUND} ${-AROUND} ${width} ${height}` },
    parts,
  );
  whole.querySelectorAll("[id='']").forEach((element) => element.removeAttribute("id"));
  return new XMLSerializer().serializeToString(whole);
}

// A CSS variable's colour in the theme that is on.
function resolve(style, name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

export function saveSvg(view) {
  download(`${fileName(view)}.svg`, svgText(view), "image/svg+xml");
}

export async function savePng(view) {
  const { width, height } = view.scene;
  const scale = Math.min(2, MOST_PIXELS / (Math.max(width, height) + 2 * AROUND));
  if (scale < LEAST_SCALE) {
    const pixels = [width, height].map((n) => Math.round(n).toLocaleString("en")).join(" x ");
    return view.app.opening.refuse(
      `This drawing of ${pixels} pixels is too large for a PNG that can be read: save it as SVG.`,
    );
  }
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(view))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(image.width * scale);
  canvas.height = Math.ceil(image.height * scale);
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  const content = await new Promise((done) => canvas.toBlob(done, "image/png"));
  return download(`${fileName(view)}.png`, content, "image/png");
}

// The model's name, and of two which of them the picture shows.
function fileName(view) {
  const name = view.model.title
    .replace(/\.\w+$/, "")
    .replace(/[^\w.-]+/g, "_")
    .slice(0, 80);
  const place = view.app.views.length > 1 ? `-${view.modelIndex + 1}of2` : "";
  return `${name || "model"}${place}`;
}
