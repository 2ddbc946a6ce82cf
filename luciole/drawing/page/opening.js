// Opens other files: chosen with a key or a menu, or dropped on the page.
//
// A served page gives model files to its own server, which answers with their document. A page that
// is a file can read no models, but other pages that circle-view wrote.

import { announce, button, h, replaceContent } from "./dom.js";
import { addBlobs, openBlobs } from "./blobs.js";
import { beside, pageContents, renamed } from "./merging.js";
import { size } from "./format.js";

const MOST_PAGE = 400_000_000;

let pages = 0;

export class Opening {
  // `app` has the document `doc` that is shown, and `restart(doc)`.
  constructor(app) {
    this.app = app;
    this.input = h("input", {
      type: "file",
      hidden: true,
      "aria-label": "File",
      onchange: () => this.chosen(),
    });
    this.title = h("b");
    this.zones = h(
      "div",
      { id: "zones", hidden: true },
      this.zone("Open", app.doc.models.length ? "instead of what is shown" : "", false),
      app.doc.models.length
        ? this.zone("Compare", `with ${app.doc.models[0].title}`, true)
        : null,
    );
    this.message = h("div", { id: "message", role: "alert", hidden: true });
    document.body.append(this.input, this.zones, this.message);
    this.busy = false;
  }

  // Takes everything that it put on the page away.
  remove() {
    for (const element of [this.input, this.zones, this.message]) element.remove();
  }

  ask(isBeside) {
    this.isBeside = isBeside;
    this.input.accept = this.app.doc.served ? "" : ".html";
    this.input.value = "";
    this.input.click();
  }

  chosen() {
    const [file] = this.input.files;
    if (file) this.open(file, this.isBeside);
  }

  // ------------------------------------------------------------------ dropped files
  zone(title, words, isBeside) {
    return h(
      "div",
      {
        class: "zone",
        ondragenter: (e) => e.currentTarget.classList.add("over"),
        ondragleave: (e) => e.currentTarget.classList.remove("over"),
        ondrop: (e) => this.dropped(e, isBeside),
      },
      h("b", {}, title),
      h("bdi", {}, words),
    );
  }

  dragged(event) {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    this.zones.hidden = false;
  }

  dragLeft(event) {
    if (event.relatedTarget === null) this.zones.hidden = true;
  }

  // A drop beside the zones opens nothing; the browser must not go to the file.
  dropped(event, isBeside = null) {
    event.preventDefault();
    event.stopPropagation();
    this.zones.hidden = true;
    for (const zone of this.zones.children) zone.classList.remove("over");
    const [file] = event.dataTransfer?.files ?? [];
    if (file && isBeside !== null) this.open(file, isBeside);
  }

  // ------------------------------------------------------------------ reading
  async open(file, isBeside) {
    if (this.busy) return;
    this.busy = true;
    this.say(`Reading ${file.name} …`);
    try {
      const doc = /\.html?$/i.test(file.name)
        ? await this.fromPage(file, isBeside)
        : await this.fromServer(file, isBeside);
      this.app.restart(doc);
    } catch (error) {
      this.refuse(error.message);
    }
    this.busy = false;
  }

  async fromServer(file, isBeside) {
    const { served, most_opened: most } = this.app.doc;
    if (!served)
      throw new Error(
        `${file.name}: a page that is a file reads no models. Run circle-view ${file.name}, or open a page that circle-view -o wrote.`,
      );
    if (file.size > most)
      throw new Error(`${file.name} has ${size(file.size)}, the page takes up to ${size(most)}`);
    const here = isBeside && this.app.doc.isPage; // the server does not know what is shown
    const what = `${isBeside && !here ? "compare" : "open"}?name=${encodeURIComponent(file.name)}`;
    const path = `${this.app.doc.view ?? ""}${what}`;
    const answer = await fetch(path, { method: "POST", body: file }).catch(() => null);
    if (!answer) throw new Error(`${file.name}: circle-view does not answer any more`);
    if (!answer.ok) throw new Error((await answer.text()).trim());
    const view = answer.headers.get("Location"); // of this page alone, also when it is reloaded
    const doc = { ...(await answer.json()), view };
    history.replaceState(null, "", view);
    if (here) return { ...beside(this.app.doc, doc), isPage: true };
    openBlobs({}, true);
    return doc;
  }

  async fromPage(file, isBeside) {
    if (file.size > MOST_PAGE)
      throw new Error(`${file.name} has ${size(file.size)}, a page up to ${size(MOST_PAGE)} is read`);
    pages += 1;
    const { content, arrays } = renamed(pageContents(await file.text(), file.name), `page${pages}`);
    const { served, most_opened } = this.app.doc;
    addBlobs(arrays);
    const doc = isBeside ? beside(this.app.doc, content) : content;
    return { ...doc, served, most_opened, isPage: true };
  }

  // ------------------------------------------------------------------ what it says
  say(text) {
    replaceContent(this.message, h("bdi", {}, text));
    this.message.className = "";
    this.message.hidden = false;
    announce(text);
  }

  refuse(text) {
    const close = button("Close", "Close this message", () => this.hide());
    replaceContent(this.message, h("bdi", {}, text), close);
    this.message.className = "bad-news";
    this.message.hidden = false;
    close.focus();
  }

  // Hides the message and the zones; whether there was anything to hide.
  hide() {
    const was = !this.zones.hidden || (!this.message.hidden && !this.busy);
    this.zones.hidden = true;
    if (!this.busy) this.message.hidden = true;
    return was;
  }
}
