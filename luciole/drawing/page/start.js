// The page before there is a model: it takes the first one.

import { button, h, replaceContent } from "./dom.js";
import { Opening } from "./opening.js";

export class Start {
  // `begin(doc)` shows a document in the place of this.
  constructor(doc, begin) {
    this.doc = doc;
    this.begin = begin;
    this.opening = new Opening(this);
    document.body.classList.add("empty");
    document.title = doc.title;
    replaceContent(document.getElementById("bar"), h("h1", {}, "luciole"));
    replaceContent(document.getElementById("panes"), this.invitation());
    performance.mark("drawn");
  }

  invitation() {
    const words = this.doc.served
      ? "It takes .circle and .tflite files, ONNX files, recipes, and pages that circle-view -o wrote."
      : "This page is a file: it takes pages that circle-view -o wrote. Run circle-view to open models.";
    return h(
      "section",
      { class: "start" },
      h("b", {}, "Drop a file here"),
      h("p", {}, words),
      button("Open a file …", "Ctrl+O", () => this.opening.ask(false)),
    );
  }

  restart(doc) {
    this.opening.remove();
    document.body.classList.remove("empty");
    this.begin(doc);
  }

  // Acts on a key; whether it meant something.
  key(event) {
    const opens = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "o";
    if (opens) this.opening.ask(false);
    else if (event.key === "Escape") this.opening.hide();
    return opens;
  }

  follow() {}
}
