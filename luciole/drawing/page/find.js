// Finds nodes and tensors by name, kind, type and shape; all words must occur.

import { h, replaceContent } from "./dom.js";
import { typed } from "./format.js";

const MOST = 200;

export class Find {
  constructor(app) {
    this.app = app;
    this.input = h("input", {
      type: "search",
      placeholder: "Find  (Ctrl+F)",
      "aria-label": "Find nodes and tensors",
      role: "combobox",
      "aria-expanded": "false",
      "aria-controls": "found",
      autocomplete: "off",
      spellcheck: "false",
      oninput: () => this.search(),
      onfocus: () => this.search(),
      onkeydown: (e) => this.key(e),
    });
    this.list = h("ul", {
      id: "found",
      role: "listbox",
      "aria-label": "Found",
      hidden: true,
      onmousedown: (e) => e.preventDefault(), // the focus stays in the field
    });
    this.element = h("div", { class: "find" }, this.input, this.list);
    this.input.addEventListener("blur", () => this.close());
  }

  begin() {
    this.input.focus();
    this.input.select();
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }

  search() {
    const words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return this.close();
    this.entries ??= entriesOf(this.app.doc);
    const found = this.entries.filter((e) => words.every((w) => e.text.includes(w)));
    this.at = found.length ? 0 : -1;
    this.found = found.slice(0, MOST);
    const note = found.length
      ? found.length > MOST
        ? `${found.length} found, the first ${MOST} are listed`
        : null
      : "nothing found";
    replaceContent(
      this.list,
      this.found.map((e, i) => this.line(e, i)),
      note ? h("li", { class: "note" }, note) : null,
    );
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    return this.mark();
  }

  line(entry, i) {
    const name = h("bdi", { class: "found-name", title: entry.name }, entry.short ?? entry.name);
    return h(
      "li",
      { role: "option", id: `found-${i}`, onclick: () => this.go(i) },
      h("b", {}, entry.title),
      h("span", { class: "faint" }, entry.shape),
      name,
    );
  }

  mark() {
    [...this.list.children].forEach((li, i) => {
      if (li.getAttribute("role")) li.setAttribute("aria-selected", String(i === this.at));
    });
    this.input.setAttribute("aria-activedescendant", this.at >= 0 ? `found-${this.at}` : "");
    this.list.children[this.at]?.scrollIntoView({ block: "nearest" });
  }

  key(event) {
    if (event.key === "Escape") {
      this.close();
      this.app.view().svg.focus();
    } else if (event.key === "Enter" && this.at >= 0) this.go(this.at);
    else if (event.key === "ArrowDown") this.at = Math.min(this.at + 1, this.found.length - 1);
    else if (event.key === "ArrowUp") this.at = Math.max(this.at - 1, 0);
    else return;
    event.preventDefault();
    event.stopPropagation();
    this.mark();
  }

  go(i) {
    const { model, graph, node } = this.found[i];
    this.close();
    this.app.select(model, graph, node, true);
    this.app.views[model].svg.focus({ preventScroll: true });
  }
}

function entriesOf(doc) {
  return doc.models.flatMap((m, model) =>
    m.graphs.flatMap((g, graph) => [
      ...nodeEntries(doc, g, model, graph),
      ...tensorEntries(g, model, graph),
    ]),
  );
}

function nodeEntries(doc, g, model, graph) {
  const { source = [] } = doc.models[model];
  return g.nodes.map((n, node) => {
    const slot = n.results[0] ?? n.operands[0];
    const shape = slot && slot[1] >= 0 ? typed(g.tensors[slot[1]]) : "";
    const title = n.what === "op" ? n.title : n.what;
    const from = (n.origins ?? []).map((k) => source[k].join(" ")).join(" ");
    return {
      model,
      graph,
      node,
      title,
      shape,
      name: n.name,
      short: n.short,
      text: `${title} ${n.kind} ${n.category} ${n.name} ${from} ${shape} ${searched(`${shape} ${n.rows.map((r) => r.join(" ")).join(" ")}`)}`.toLowerCase(),
    };
  });
}

// Constants, at the operator that uses them: everything else is found as what its operator makes.
function tensorEntries(g, model, graph) {
  return g.tensors
    .filter((t) => t.bytes !== undefined && t.users.length)
    .map((t) => {
      const shape = typed(t);
      return {
        model,
        graph,
        node: t.users[0],
        title: "constant",
        shape,
        name: t.name,
        text: `constant tensor ${t.name} ${shape} ${searched(shape)}`.toLowerCase(),
      };
    });
}

// Shapes are found as 1x28x28 and as 1,28,28 too.
function searched(shape) {
  return `${shape.replaceAll("×", "x")} ${shape.replaceAll("×", ",")}`;
}
