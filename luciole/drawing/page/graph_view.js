// One pane: a graph that can be panned, zoomed, walked with the keyboard and selected in.
//
// Near by, only what is in sight is in the document, one element for each node; from afar, all nodes
// of a colour are one path. Either way a move costs little, whatever the size of the graph.

import { h, replaceContent, s } from "./dom.js";
import { compose, groupsAround } from "./compose.js";
import { MARKS, along, arrow, curve, drawItem, edgeLabel, markAt } from "./draw.js";

const MOST_DRAWN = 350;
const SMALLEST = 0.004;
const LARGEST = 4;
const READABLE = 0.6;
const NEAR = 7;
const MARGIN_AROUND = 40;

export class GraphView {
  // `app` is told what the user does: picked(view, node), pickedTensor(view, edge), moved(view).
  constructor(app, modelIndex) {
    this.app = app;
    this.modelIndex = modelIndex;
    this.model = app.doc.models[modelIndex];
    this.direction = app.doc.direction;
    this.camera = { x: 0, y: 0, k: 1 };
    this.selected = null;
    this.drawn = new Map();
    this.frames = s("g");
    this.edgeLayer = s("g", { class: "edges" });
    this.labels = s("g", { class: "labels" });
    this.nodeLayer = s("g");
    this.focus = s("g", { class: "focus" });
    this.focusEdges = s("g", { class: "focus" });
    this.world = s(
      "g",
      {},
      this.frames,
      this.edgeLayer,
      this.focusEdges,
      this.labels,
      this.nodeLayer,
      this.focus,
    );
    const text = `Graph of ${this.model.title}. Arrow keys walk along edges, E selects them, Enter opens and closes groups.`;
    this.svg = s(
      "svg",
      { class: "graph", tabindex: "0", role: "application", "aria-label": text },
      this.world,
    );
    this.element = h("section", { class: "pane", "aria-label": this.model.title }, this.svg);
    this.listen();
    new ResizeObserver(() => this.resized()).observe(this.svg);
    this.show(0);
  }

  // Shows a graph of the model from its beginning.
  show(graphIndex) {
    this.graphIndex = graphIndex;
    this.graph = this.model.graphs[graphIndex];
    this.open = this.graph.closed ? new Set() : null;
    this.selected = null;
    this.compose();
    if (this.svg.isConnected) this.home();
  }

  compose() {
    this.selectedEdge = null;
    const { app, direction, open } = this;
    this.scene = compose(this.graph, {
      direction,
      open,
      shown: app.shown,
      sizes: app.doc.sizes,
    });
    const labelled = new Set();
    for (const edge of this.scene.edges) {
      edge.box = boxAround(edge.points);
      edge.labelled = /^n\d+$/.test(edge.source) && !labelled.has(edge.source);
      labelled.add(edge.source);
    }
    this.far = null;
    this.clear();
  }

  clear() {
    for (const layer of [
      this.frames,
      this.edgeLayer,
      this.focusEdges,
      this.labels,
      this.nodeLayer,
      this.focus,
    ])
      layer.replaceChildren();
    this.drawn.clear();
    this.drewFar = false;
  }

  // Draws again with other colours.
  recolour() {
    this.far = null;
    this.clear();
    this.draw();
  }

  // ------------------------------------------------------------------ where the eye is
  resized() {
    const first = !this.width;
    const { width, height } = this.svg.getBoundingClientRect();
    if (!first && this.direction === "vertical") this.camera.x += (width - this.width) / 2;
    else if (!first) this.camera.y += (height - this.height) / 2;
    this.width = width;
    this.height = height;
    if (first && width) this.app.ready(this);
    else this.draw();
  }

  // The whole graph where it stays readable, else its beginning.
  home() {
    const fit = this.fitScale();
    if (fit >= READABLE) return this.fit();
    const vertical = this.direction === "vertical";
    const across = vertical
      ? this.width / (this.scene.width + 2 * MARGIN_AROUND)
      : this.height / (this.scene.height + 2 * MARGIN_AROUND);
    const k = Math.min(1, Math.max(across, READABLE));
    const first = this.scene.items[0] ?? { x: 0, y: 0, width: 0, height: 0 };
    const x = vertical ? this.width / 2 - k * (first.x + first.width / 2) : MARGIN_AROUND;
    const y = vertical ? MARGIN_AROUND : this.height / 2 - k * (first.y + first.height / 2);
    return this.move({ x, y, k });
  }

  fitScale() {
    const { width, height } = this.scene;
    return Math.min(
      1.15,
      this.width / (width + 2 * MARGIN_AROUND),
      this.height / (height + 2 * MARGIN_AROUND),
    );
  }

  fit() {
    const k = Math.max(this.fitScale(), SMALLEST);
    this.move({
      x: (this.width - k * this.scene.width) / 2,
      y: (this.height - k * this.scene.height) / 2,
      k,
    });
  }

  move(camera) {
    this.camera = camera;
    this.draw();
  }

  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const k = Math.min(LARGEST, Math.max(SMALLEST, this.camera.k * factor));
    const part = k / this.camera.k;
    this.move({ x: x - (x - this.camera.x) * part, y: y - (y - this.camera.y) * part, k });
  }

  // Brings an item into sight, in the middle when it was not there (or, with `always`, near the edge).
  reveal(key, always = false, least = READABLE) {
    const item = this.scene.byKey.get(key);
    if (!item) return;
    const k = Math.max(this.camera.k, least);
    const y = item.y + Math.min(item.height, this.height / k) / 2;
    this.bring(item.x + item.width / 2, y, always, least);
  }

  // Brings a place of the drawing into sight, with no more room beside the drawing than is needed,
  // and at a scale of at least `least`.
  bring(x, y, always = false, least = READABLE) {
    const k = Math.max(this.camera.k, least);
    const at = [this.camera.x + this.camera.k * x, this.camera.y + this.camera.k * y];
    const [dx, dy] = always ? [this.width / 6, this.height / 6] : [60, 60];
    const inside = at[0] > dx && at[1] > dy && at[0] < this.width - dx && at[1] < this.height - dy;
    if (inside && this.camera.k >= least) return;
    this.move({
      x: within(this.width / 2 - k * x, k, this.scene.width, this.width),
      y: within(this.height / 2 - k * y, k, this.scene.height, this.height),
      k,
    });
  }

  inSight(margin) {
    const { x, y, k } = this.camera;
    return {
      x0: (-x - margin) / k,
      y0: (-y - margin) / k,
      x1: (this.width - x + margin) / k,
      y1: (this.height - y + margin) / k,
    };
  }

  // ------------------------------------------------------------------ drawing
  draw() {
    if (this.waiting || !this.width) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.drawNow();
    });
  }

  drawNow() {
    const { x, y, k } = this.camera;
    this.world.setAttribute("transform", `translate(${x} ${y}) scale(${k})`);
    const sight = this.inSight(200);
    const items = this.scene.items.filter(
      (i) =>
        i.x < sight.x1 && i.x + i.width > sight.x0 && i.y < sight.y1 && i.y + i.height > sight.y0,
    );
    if (items.length > MOST_DRAWN) this.drawFar();
    else this.drawNear(items, sight);
    this.drawFocus();
    this.app.moved(this);
  }

  drawFar() {
    if (this.drewFar) return;
    this.clear();
    this.drewFar = true;
    this.far ??= this.farPaths();
    this.edgeLayer.append(this.far.edges);
    this.nodeLayer.append(...this.far.nodes);
  }

  farPaths() {
    const rectangles = new Map();
    for (const item of this.scene.items) {
      const colour =
        item.type === "node"
          ? this.app.colours.of(this.graph.nodes[item.reference]).fill
          : item.type === "group"
            ? "var(--group)"
            : "none";
      rectangles.set(colour, (rectangles.get(colour) ?? "") + outline(item));
    }
    const nodes = [...rectangles].map(([colour, d]) =>
      s("path", { d, style: `fill:${colour}`, class: "far" }),
    );
    return {
      nodes: [...nodes, ...MARKS.map((mark) => this.farMark(mark)).filter(Boolean)],
      edges: s("path", {
        d: this.scene.edges.map((e) => curve(e.points, this.direction)).join(""),
        class: "edge",
      }),
    };
  }

  // The outlines of all boxes that have a mark.
  farMark(mark) {
    const d = this.scene.items
      .filter((item) => markAt(this.graph, item) === mark)
      .map(outline)
      .join("");
    return d ? s("path", { d, class: `mark ${mark} far-mark` }) : null;
  }

  drawNear(items, sight) {
    if (this.drewFar) this.clear();
    this.drewFar = false;
    const wanted = new Map(items.map((item) => [item.key, () => this.itemElement(item)]));
    this.scene.edges.forEach((edge, i) => {
      const b = edge.box;
      if (b[0] < sight.x1 && b[2] > sight.x0 && b[1] < sight.y1 && b[3] > sight.y0)
        wanted.set(`e${i}`, () => this.edgeElement(edge));
    });
    for (const [key, element] of this.drawn) {
      if (wanted.has(key)) continue;
      element.remove();
      element.label?.remove();
      this.drawn.delete(key);
    }
    for (const [key, make] of wanted) if (!this.drawn.has(key)) this.drawn.set(key, make());
  }

  itemElement(item) {
    const element = drawItem(this.graph, item, this.app.colours, this.app.doc.sizes);
    element.id = `p${this.modelIndex}-${item.key}`;
    (item.type === "frame" ? this.frames : this.nodeLayer).append(element);
    return element;
  }

  edgeElement(edge) {
    const d = curve(edge.points, this.direction);
    const head = edge.target.includes(":")
      ? null
      : s("path", { d: arrow(edge.points, this.direction), class: "head" });
    const element = s("g", {}, s("path", { d, class: "edge" }), head);
    this.edgeLayer.append(element);
    if (edge.labelled) {
      element.label = edgeLabel(this.graph, edge, this.direction, this.app.doc.sizes);
      if (element.label) this.labels.append(element.label);
    }
    return element;
  }

  // The selected item's outline and edges, above everything else.
  drawFocus() {
    const item = this.selected && this.scene.byKey.get(this.selected);
    this.svg.setAttribute("aria-activedescendant", item ? `p${this.modelIndex}-${item.key}` : "");
    this.focusEdges.replaceChildren();
    if (this.selectedEdge) {
      const d = curve(this.selectedEdge.points, this.direction);
      this.focusEdges.append(s("path", { d, class: "after" }));
    }
    if (!item) return this.focus.replaceChildren();
    const near = this.scene.edges.filter((e) => e.source === item.key || e.target === item.key);
    const paths = near.map((e) =>
      s("path", {
        d: curve(e.points, this.direction),
        class: e.source === item.key ? "after" : "before",
      }),
    );
    const outline = s("rect", {
      x: item.x - 4,
      y: item.y - 4,
      width: item.width + 8,
      height: item.height + 8,
      rx: 9,
      "stroke-width": Math.max(2.5, 2 / this.camera.k),
    });
    replaceContent(this.focusEdges, ...paths);
    return replaceContent(this.focus, outline);
  }

  // ------------------------------------------------------------------ groups and direction
  setOpen(open) {
    this.open = open;
    this.compose();
    if (this.selected && !this.scene.byKey.has(this.selected)) this.selected = null;
    this.draw();
  }

  // Opens or closes a group; what was under it stays where it is on the screen.
  toggle(id) {
    const before = this.scene.byKey.get(id);
    const open = new Set(this.open ?? this.groupIds());
    if (!open.delete(id)) open.add(id);
    this.setOpen(open);
    const after = this.scene.byKey.get(id);
    if (before && after) {
      this.camera.x += this.camera.k * (before.x + before.width / 2 - after.x - after.width / 2);
      this.camera.y += this.camera.k * (before.y - after.y);
    }
    this.pick(after ?? null);
  }

  groupIds() {
    return Object.keys(this.graph.groups).filter((id) => id !== "root");
  }

  // Draws boxes with other contents; what is selected, or else the top of the graph, stays in sight.
  rebox() {
    const before = this.scene.byKey.get(this.selected);
    const { selected } = this;
    this.compose();
    const after = this.scene.byKey.get(selected);
    if (before && after) {
      this.camera.x += this.camera.k * (before.x + before.width / 2 - after.x - after.width / 2);
      this.camera.y += this.camera.k * (before.y - after.y);
    }
    this.draw();
  }

  turn() {
    this.direction = this.direction === "vertical" ? "horizontal" : "vertical";
    this.compose();
    if (this.selected && this.fitScale() < READABLE) this.reveal(this.selected, true);
    else this.home();
    this.draw();
  }

  // ------------------------------------------------------------------ selection
  // Selects a node by number; groups around it are opened.
  select(node, always = false) {
    this.selectedEdge = null;
    if (node !== null && this.open && !this.scene.byKey.has(`n${node}`)) {
      this.setOpen(new Set([...this.open, ...groupsAround(this.graph, node)]));
    }
    this.selected = node === null ? null : `n${node}`;
    if (node !== null) this.reveal(this.selected, always);
    this.draw();
  }

  pick(item) {
    this.selectedEdge = null;
    this.selected = item?.key ?? null;
    this.app.picked(this, item ?? null);
    this.draw();
  }

  hit(x, y) {
    const [a, b] = [(x - this.camera.x) / this.camera.k, (y - this.camera.y) / this.camera.k];
    const under = this.scene.items.filter(
      (i) => a >= i.x && a <= i.x + i.width && b >= i.y && b <= i.y + i.height,
    );
    return (
      under.sort((p, q) => q.depth - p.depth || p.width * p.height - q.width * q.height)[0] ?? null
    );
  }

  // The edge that passes closest to a place, none farther than a few pixels away.
  hitEdge(x, y) {
    const { camera } = this;
    const [a, b] = [(x - camera.x) / camera.k, (y - camera.y) / camera.k];
    const reach = NEAR / camera.k;
    const within = ({ box }) =>
      a > box[0] - reach && a < box[2] + reach && b > box[1] - reach && b < box[3] + reach;
    const found = this.scene.edges
      .filter(within)
      .map((edge) => [distance(along(edge.points, this.direction), a, b), edge])
      .sort((p, q) => p[0] - q[0])[0];
    return found && found[0] < reach ? found[1] : null;
  }

  // `around` is the key of the item whose edges are gone through, null for all.
  pickEdge(edge, around = null) {
    this.selected = null;
    this.selectedEdge = edge;
    this.around = around;
    this.app.pickedEdge(this, edge);
    this.draw();
  }

  // Goes to the next edge of the selected item, or of the graph; to the one before with a step of -1.
  nextEdge(step) {
    const around = this.selectedEdge ? this.around : this.selected;
    const edges = this.scene.edges.filter(
      (e) => !around || e.source === around || e.target === around,
    );
    const at = edges.indexOf(this.selectedEdge);
    const edge = edges.at(at < 0 && step < 0 ? -1 : (at + step) % edges.length);
    if (!edge) return;
    this.pickEdge(edge, around);
    const places = along(edge.points, this.direction);
    this.bring(...places[Math.floor(places.length / 2)], false, 0);
  }

  // Goes from the selected item along edges, or to its neighbour at the same height; from an edge to
  // one of its ends.
  walk(key) {
    if (this.selectedEdge) {
      const { source, target } = this.selectedEdge;
      const end = key === "ArrowDown" || key === "ArrowRight" ? target : source;
      return this.pickAndReveal(this.scene.byKey.get(end.split(":")[0]));
    }
    const item = this.scene.byKey.get(this.selected);
    if (!item) return this.pickAndReveal(this.scene.items.find((i) => i.type !== "frame"));
    const vertical = this.direction === "vertical";
    const along = {
      ArrowDown: vertical,
      ArrowUp: vertical,
      ArrowRight: !vertical,
      ArrowLeft: !vertical,
    }[key];
    const forward = key === "ArrowDown" || key === "ArrowRight";
    if (!along) return this.pickAndReveal(this.beside(item, forward));
    const next = (forward ? this.scene.after : this.scene.before)(item.key);
    return this.pickAndReveal(this.scene.byKey.get(this.nearest(item, next)));
  }

  nearest(item, keys) {
    const far = (k) => {
      const other = this.scene.byKey.get(k);
      return (
        Math.abs(middle(other)[0] - middle(item)[0]) + Math.abs(middle(other)[1] - middle(item)[1])
      );
    };
    return keys.sort((a, b) => far(a) - far(b))[0];
  }

  beside(item, forward) {
    const across = this.direction === "vertical" ? 0 : 1;
    const [from, level] = [middle(item)[across], middle(item)[1 - across]];
    const thick = across === 0 ? "height" : "width";
    const others = this.scene.items.filter(
      (i) =>
        i.type !== "frame" &&
        Math.abs(middle(i)[1 - across] - level) < (i[thick] + item[thick]) / 2,
    );
    const ahead = others.filter((i) =>
      forward ? middle(i)[across] > from + 1 : middle(i)[across] < from - 1,
    );
    return ahead.sort(
      (a, b) => Math.abs(middle(a)[across] - from) - Math.abs(middle(b)[across] - from),
    )[0];
  }

  pickAndReveal(item) {
    if (!item) return;
    this.pick(item);
    this.reveal(item.key, false, 0);
  }

  // ------------------------------------------------------------------ mouse, touch, wheel
  listen() {
    this.svg.addEventListener("pointerdown", (e) => this.pressed(e));
    this.svg.addEventListener("wheel", (e) => this.wheeled(e), { passive: false });
    this.svg.addEventListener("dblclick", (e) => this.doubled(e));
    this.svg.addEventListener("focus", () => this.app.focused(this));
  }

  at(event) {
    const box = this.svg.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  pressed(event) {
    if (event.button > 1) return;
    const start = [event.clientX, event.clientY, { ...this.camera }];
    let moved = false;
    const move = (e) => {
      const [dx, dy] = [e.clientX - start[0], e.clientY - start[1]];
      moved ||= Math.abs(dx) + Math.abs(dy) > 4;
      if (moved) this.move({ ...start[2], x: start[2].x + dx, y: start[2].y + dy });
    };
    const up = (e) => {
      this.svg.removeEventListener("pointermove", move);
      if (!moved && e.button === 0) this.clicked(e);
    };
    this.svg.setPointerCapture(event.pointerId);
    this.svg.addEventListener("pointermove", move);
    this.svg.addEventListener("pointerup", up, { once: true });
  }

  clicked(event) {
    const item = this.hit(...this.at(event));
    this.svg.focus({ preventScroll: true });
    const onSign =
      item?.type === "frame" && (this.at(event)[1] - this.camera.y) / this.camera.k < item.y + 24;
    if (item?.type === "group" || onSign) return this.toggle(item.reference);
    const edge = item?.type === "node" ? null : this.hitEdge(...this.at(event));
    if (edge) return this.pickEdge(edge);
    return this.pick(item?.type === "node" ? item : null);
  }

  doubled(event) {
    if (!this.hit(...this.at(event))) this.zoom(1.5, ...this.at(event));
  }

  wheeled(event) {
    event.preventDefault();
    const zooms = event.ctrlKey || event.metaKey || this.app.wheelZooms;
    if (zooms)
      return this.zoom(Math.exp(-event.deltaY / (event.ctrlKey ? 120 : 500)), ...this.at(event));
    const [dx, dy] = event.shiftKey ? [event.deltaY, event.deltaX] : [event.deltaX, event.deltaY];
    return this.move({ ...this.camera, x: this.camera.x - dx, y: this.camera.y - dy });
  }
}

// Where a drawing begins, so that it fills the room or is in its middle.
function within(start, k, size, room) {
  const free = room - k * size;
  const around = MARGIN_AROUND * k;
  return free >= 2 * around ? free / 2 : Math.max(free - around, Math.min(around, start));
}

function outline(item) {
  return `M${item.x} ${item.y}h${item.width}v${item.height}h${-item.width}z`;
}

function middle(item) {
  return [item.x + item.width / 2, item.y + item.height / 2];
}

function distance(places, a, b) {
  return Math.min(...places.map(([x, y]) => Math.hypot(x - a, y - b)));
}

function boxAround(points) {
  const xs = points.filter((_, i) => i % 2 === 0);
  const ys = points.filter((_, i) => i % 2 === 1);
  return [Math.min(...xs) - 20, Math.min(...ys), Math.max(...xs) + 20, Math.max(...ys)];
}
