// The page: one pane for each model, the bar above, the sidebar beside, and what connects them.

import { announce, button, h, replaceContent } from "./dom.js";
import { openBlobs } from "./blobs.js";
import { PARTS, SHOWN } from "./boxes.js";
import { STATUS, colouring, modesOf, statusesOf } from "./colours.js";
import { spoken } from "./draw.js";
import { Find } from "./find.js";
import { GraphView } from "./graph_view.js";
import { KEYS, onKey } from "./keys.js";
import { asked, linkTo, namedBy, unnamed } from "./links.js";
import { Menu, check, closeMenus, entry } from "./menus.js";
import { Minimap } from "./minimap.js";
import { Opening } from "./opening.js";
import { savePng, saveSvg } from "./pictures.js";
import { Start } from "./start.js";
import { edgePanel, groupPanel, modelPanel, nodePanel } from "./sidebar.js";
import { differencesPanel, rankingPanel } from "./tables.js";

class App {
  // `before` is what was shown until now, when another model is opened.
  constructor(doc, before = null) {
    this.doc = doc;
    this.mode = modesOf(doc).some(([key]) => key === before?.mode) ? before.mode : doc.mode;
    this.colours = colouring(doc, this.mode);
    this.shown = before?.shown ?? { ...SHOWN };
    this.selection = null;
    this.tab = doc.differences.length ? "differences" : "model";
    this.wheelZooms = before?.wheelZooms ?? false;
    this.current = doc.models.length - 1;
    this.find = new Find(this);
    this.opening = new Opening(this);
    this.views = doc.models.map((_, i) => new GraphView(this, i));
    this.maps = this.views.map((view) => new Minimap(view));
    this.legend = h("div", { class: "legend", "aria-label": "Colours" });
    this.views.forEach((view, i) => view.element.append(this.caption(view, i)));
    this.build();
  }

  view() {
    return this.views[this.current];
  }

  // ------------------------------------------------------------------ the frame of the page
  build() {
    replaceContent(document.getElementById("panes"), [
      h("div", { class: "side-by-side" }, ...this.views.map((view) => view.element)),
      this.legend,
    ]);
    replaceContent(document.getElementById("bar"), this.bar());
    document.title = this.doc.title;
    this.drawLegend();
    this.showTab(this.tab);
  }

  // Shows another document instead.
  restart(doc) {
    history.replaceState(null, "", location.pathname + location.search);
    const next = this.replacedBy(doc);
    this.opening.remove();
    window.app = next;
    next.view().svg.focus({ preventScroll: true });
    announce(`${doc.title} is shown`);
  }

  // A page of another document; this one again where that cannot be drawn.
  replacedBy(doc) {
    try {
      return new App(doc, this);
    } catch (error) {
      this.build();
      throw error;
    }
  }

  caption(view, i) {
    const graphs = this.doc.models[i].graphs;
    const picker =
      graphs.length > 1
        ? h(
            "select",
            { "aria-label": "Graph", onchange: () => this.showGraph(i, Number(picker.value)) },
            graphs.map((g, k) => h("option", { value: k }, g.name)),
          )
        : null;
    view.picker = picker;
    const groups = graphs.some((g) => Object.keys(g.groups).length);
    const tools = groups
      ? [
          button("Close groups", "Show every group as one box", () => this.closeGroups(i), {
            class: "small",
          }),
          button("Open groups", "Show everything, groups as frames", () => this.openGroups(i), {
            class: "small",
          }),
          button("No groups", "Show operators without groups", () => view.setOpen(null), {
            class: "small",
          }),
        ]
      : null;
    return h(
      "div",
      { class: "caption" },
      h("bdi", { class: "caption-title" }, this.doc.models[i].title),
      picker,
      tools,
    );
  }

  bar() {
    this.modes = h(
      "select",
      { "aria-label": "Colour by", onchange: () => this.setMode(this.modes.value) },
      modesOf(this.doc).map(([key, title]) =>
        h("option", { value: key, selected: key === this.mode }, title),
      ),
    );
    this.help = helpMenu();
    this.parts = new Map(
      PARTS.map(([part, title, key]) => [
        part,
        check(title, key, this.shown[part], () => this.show(part)),
      ]),
    );
    return [
      h("h1", {}, "luciole"),
      this.fileMenu().element,
      this.find.element,
      h("label", { class: "choice" }, h("span", { class: "word" }, "Colour"), this.modes),
      h("span", { class: "spring" }),
      h(
        "span",
        { class: "cluster" },
        button("−", "Zoom out (Shift+Down)", () => this.view().zoom(0.8), {
          "aria-label": "Zoom out",
        }),
        button("+", "Zoom in (Shift+Up)", () => this.view().zoom(1.25), {
          "aria-label": "Zoom in",
        }),
        button("Fit", "Whole graph (Space)", () => this.fit()),
      ),
      button("⇄", "Draw across or down (Ctrl+K)", () => this.turn(), {
        "aria-label": "Draw across or down",
      }),
      new Menu("Show", [...this.parts.values()], { label: "What boxes show" }).element,
      button("◐", "Light or dark", () => this.switchTheme(), { "aria-label": "Light or dark" }),
      button("Details", "Hide or show the details (Ctrl+B)", () => this.switchSidebar(), {
        "aria-pressed": "true",
        id: "details-switch",
      }),
      this.help.element,
    ];
  }

  fileMenu() {
    const entries = [
      entry("Open …", "Ctrl+O", () => this.opening.ask(false)),
      entry("Compare with …", "Ctrl+Shift+O", () => this.opening.ask(true)),
      entry("Save as SVG", "Ctrl+Alt+E", () => saveSvg(this.view())),
      entry("Save as PNG", "Ctrl+Shift+E", () => savePng(this.view())),
    ];
    return new Menu("File", entries, { label: "Open, compare, save" });
  }

  drawLegend() {
    const entry = (name, swatch) =>
      h("span", { class: "legend-entry" }, h("span", swatch), name);
    const fills = this.colours.legend.map(([name, fill]) =>
      entry(name, { class: "swatch", style: `background:${fill}` }),
    );
    const outlines = this.mode === "status" ? [] : statusesOf(this.doc);
    replaceContent(this.legend, [
      fills,
      outlines.map((k) => entry(STATUS[k][0], { class: `swatch outline ${k}` })),
    ]);
  }

  // ------------------------------------------------------------------ what views tell
  ready(view) {
    view.home();
    if (this.views.every((v) => v.width)) this.follow();
  }

  moved(view) {
    this.maps?.[view.modelIndex].update();
    if (!performance.getEntriesByName("drawn").length) performance.mark("drawn");
  }

  focused(view) {
    this.current = view.modelIndex;
  }

  picked(view, item) {
    this.current = view.modelIndex;
    if (!item) return this.unselect();
    const place = { m: view.modelIndex, g: view.graphIndex };
    if (item.type === "node") return this.chosen({ ...place, n: item.reference });
    this.selection = { ...place, group: item.reference };
    this.showTab("selection");
    return announce(`group ${view.graph.groups[item.reference].title}`);
  }

  pickedEdge(view, edge) {
    this.current = view.modelIndex;
    for (const other of this.views) if (other !== view) other.select(null);
    const { tensors } = edge;
    this.selection = { m: view.modelIndex, g: view.graphIndex, tensors };
    this.showTab("selection");
    announce(`edge, ${tensors.map((t) => view.graph.tensors[t].name).join(", ")}`);
  }

  unselect() {
    this.selection = null;
    for (const view of this.views) view.select(null);
    if (location.hash.length > 1)
      history.replaceState(null, "", location.pathname + location.search);
    if (this.tab === "selection") this.showTab("model");
  }

  // ------------------------------------------------------------------ selection and links
  select(m, g, n, always = false) {
    this.current = m;
    this.toGraph(m, g);
    this.views[m].select(n, always);
    this.chosen({ m, g, n });
  }

  selectId(id, always = false) {
    this.select(...id.split(":").map(Number), always);
  }

  nodeOf(id) {
    const [m, g, n] = id.split(":").map(Number);
    return this.doc.models[m].graphs[g].nodes[n];
  }

  chosen(selection) {
    this.selection = selection;
    const { m, g, n } = selection;
    const node = this.doc.models[m].graphs[g].nodes[n];
    this.showTab("selection");
    announce(spoken(node));
    const link = linkTo(selection, this.nodesOf(m, g));
    if (location.hash !== link) history.pushState(null, "", link);
    if (this.doc.models.length > 1) this.selectTwin(m, node);
  }

  selectTwin(m, node) {
    const other = this.views[1 - m];
    if (!node.twin) return other.select(null);
    const [, g, n] = node.twin.split(":").map(Number);
    this.toGraph(1 - m, g);
    return other.select(n);
  }

  // Selects what the address says.
  follow() {
    const link = asked(location.hash);
    if (!link) return;
    const { wanted, m, g } = link;
    const nodes = this.nodesOf(m, g);
    const named = namedBy(wanted, nodes);
    if (named.length !== 1) return this.opening.refuse(unnamed(wanted, named, nodes));
    const [n] = named;
    const same =
      this.selection && this.selection.m === m && this.selection.g === g && this.selection.n === n;
    return same || this.select(m, g, n, true);
  }

  nodesOf(m, g) {
    return this.doc.models[m]?.graphs[g]?.nodes ?? [];
  }

  // ------------------------------------------------------------------ graphs and groups
  toGraph(m, g) {
    const view = this.views[m];
    if (view.graphIndex === g) return;
    view.show(g);
    if (view.picker) view.picker.value = g;
  }

  showGraph(m, g) {
    this.current = m;
    this.toGraph(m, g);
    this.unselect();
  }

  toggleGroup(m, id) {
    this.views[m].toggle(id);
  }

  closeGroups(m) {
    this.views[m].setOpen(new Set());
    this.views[m].home();
  }

  openGroups(m) {
    this.views[m].setOpen(new Set(this.views[m].groupIds()));
    this.views[m].home();
  }

  fit() {
    for (const view of this.views) view.fit();
  }

  turn() {
    for (const view of this.views) view.turn();
  }

  // ------------------------------------------------------------------ modes
  // Puts attributes, constants or names into the boxes, or takes them out.
  show(part) {
    this.shown = { ...this.shown, [part]: !this.shown[part] };
    this.parts.get(part).setAttribute("aria-checked", String(this.shown[part]));
    for (const view of this.views) view.rebox();
    announce(`${part} ${this.shown[part] ? "shown" : "hidden"}`);
  }

  setMode(mode) {
    this.mode = mode;
    this.modes.value = mode;
    this.colours = colouring(this.doc, mode);
    this.drawLegend();
    for (const view of this.views) view.recolour();
    this.showTab(this.doc.measures.some((m) => m.key === mode) ? "ranking" : this.tab);
  }

  switchTheme() {
    const root = document.documentElement;
    const dark =
      getComputedStyle(root).colorScheme === "dark" ||
      (getComputedStyle(root).colorScheme !== "light" &&
        matchMedia("(prefers-color-scheme: dark)").matches);
    root.dataset.theme = dark ? "light" : "dark";
    for (const map of this.maps) map.scene = null;
    for (const view of this.views) view.draw();
  }

  switchWheel() {
    this.wheelZooms = !this.wheelZooms;
    announce(this.wheelZooms ? "the wheel zooms" : "the wheel scrolls");
  }

  // Acts on a key; whether it meant something.
  key(event) {
    return onKey(this, event);
  }

  // Leaves what is open, innermost first: a menu, a message, the selection.
  escape() {
    if (closeMenus(null) || this.opening.hide()) this.view().svg.focus();
    else this.view().pick(null);
  }

  // ------------------------------------------------------------------ the sidebar
  switchSidebar() {
    const sidebar = document.getElementById("sidebar");
    sidebar.hidden = !sidebar.hidden;
    document
      .getElementById("details-switch")
      .setAttribute("aria-pressed", String(!sidebar.hidden));
  }

  showTab(tab) {
    this.tab = tab;
    const panels = {
      selection: () => this.selectionPanel(),
      model: () => modelPanel(this),
      ranking: () => rankingPanel(this),
      differences: () => differencesPanel(this),
    };
    this.fillSidebar(panels[tab]());
  }

  selectionPanel() {
    if (!this.selection) return [h("p", { class: "hint" }, "Nothing is selected.")];
    const { m, g, n, group, tensors } = this.selection;
    if (tensors) return edgePanel(this, m, g, tensors);
    return group ? groupPanel(this, m, g, group) : nodePanel(this, m, g, n);
  }

  fillSidebar(panel) {
    const tabs = [
      ["selection", "Selection"],
      ["model", "Model"],
      ["ranking", "Ranking"],
    ];
    if (this.doc.models.length > 1) tabs.push(["differences", "Differences"]);
    const row = tabs.map(([key, title]) =>
      h(
        "button",
        {
          type: "button",
          role: "tab",
          "aria-selected": String(key === this.tab),
          onclick: () => this.showTab(key),
        },
        title,
      ),
    );
    const body = h("div", { class: "sidebar-body", role: "tabpanel", tabindex: "0" });
    replaceContent(body, panel);
    replaceContent(
      document.getElementById("sidebar"),
      h("div", { class: "tabs", role: "tablist" }, row),
      body,
    );
  }
}

function helpMenu() {
  const rows = KEYS.map(([key, what]) =>
    h("tr", {}, h("th", { scope: "row" }, key), h("td", {}, what)),
  );
  const table = h("table", { class: "pairs" }, h("tbody", {}, rows));
  const menu = new Menu("?", [table], { label: "Keys (?)", class: "menu help-menu" });
  menu.body.tabIndex = 0; // so that the keys scroll it
  return menu;
}

// After a button above the graph was clicked with the mouse, keys are the graph's again.
function clicked(event) {
  const above = "#bar > button, #bar .cluster button, .caption button";
  if (event.detail && event.target.closest(above)) window.app.view?.().svg.focus();
}

// What concerns the whole page, whichever document it shows.
function listen() {
  document.addEventListener("keydown", (e) => window.app.key(e) && e.preventDefault());
  document.addEventListener("pointerdown", (e) => closeMenus(e.target));
  document.addEventListener("click", clicked);
  document.addEventListener("dragover", (e) => window.app.opening.dragged(e));
  document.addEventListener("dragleave", (e) => window.app.opening.dragLeft(e));
  document.addEventListener("drop", (e) => window.app.opening.dropped(e));
  window.addEventListener("hashchange", () => window.app.follow());
}

function contentOf(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

const content = contentOf("document");
openBlobs(contentOf("blobs"), content.served);
window.app = content.models.length
  ? new App(content)
  : new Start(content, (doc) => {
      window.app = new App(doc);
    });
listen();
